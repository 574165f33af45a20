//! Reads the labelled cases and fills in credential shapes, which must not be in a repository.
//!
//! A mark such as `{an36}` stands for 36 letters and digits drawn from a seed, so that no file here
//! contains anything that a hosting site's own scan would take for a secret.

use crate::thompson::SplitMix64;
use data_encoding::BASE64URL_NOPAD;

/// One labelled text.
#[derive(Debug)]
pub(super) struct Case {
    /// Rules that must match, or the rule that nearly matches.
    pub(super) labels: Vec<&'static str>,
    pub(super) text: String,
}

pub(super) fn positive() -> Vec<Case> {
    read(include_str!("../../../tests-data/scan/positive.txt"))
}

pub(super) fn negative() -> Vec<Case> {
    read(include_str!("../../../tests-data/scan/negative.txt"))
}

fn read(file: &'static str) -> Vec<Case> {
    let lines = file.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines
        .map(|(at, line)| {
            let (labels, text) = line.split_once(": ").expect("a label, a colon and a text");
            Case { labels: labels.split(',').collect(), text: expand(text, at as u64) }
        })
        .collect()
}

const CLASSES: [(&str, &str); 6] = [
    ("an", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
    ("al", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    ("up", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    ("b64", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
    ("hex", "0123456789abcdef"),
    ("dig", "0123456789"),
];

/// Fills in the marks of a text: `{an36}`, `{uuid}`, `{jwt}`, `\n`, `\\` and `\u{200B}`.
pub(super) fn expand(text: &str, seed: u64) -> String {
    let mut random = SplitMix64(seed);
    let mut result = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (piece, length) = mark(rest, &mut random).unwrap_or((c.to_string(), c.len_utf8()));
        result.push_str(&piece);
        rest = &rest[length..];
    }
    result
}

/// Replacement for the mark at the beginning of `rest`, and its length.
fn mark(rest: &str, random: &mut SplitMix64) -> Option<(String, usize)> {
    if let Some(rest) = rest.strip_prefix("\\u{") {
        let (code, _) = rest.split_once('}')?;
        let c = char::from_u32(u32::from_str_radix(code, 16).ok()?)?;
        return Some((c.to_string(), code.len() + 4));
    }
    for (escape, meaning) in [("\\\\", "\\"), ("\\n", "\n")] {
        if rest.starts_with(escape) {
            return Some((meaning.to_owned(), 2));
        }
    }
    let (name, _) = rest.strip_prefix('{')?.split_once('}')?;
    let filled = match name {
        "uuid" => uuid(random),
        "jwt" => jwt(random),
        _ => {
            let class = |(prefix, _): &&(&str, &str)| {
                name.strip_prefix(prefix).is_some_and(|count| count.parse::<usize>().is_ok())
            };
            let (prefix, letters) = CLASSES.iter().find(class)?;
            draw(random, letters, name[prefix.len()..].parse().ok()?)
        }
    };
    Some((filled, name.len() + 2))
}

/// Draws `count` of these letters.
pub(super) fn draw(random: &mut SplitMix64, letters: &str, count: usize) -> String {
    let letters = letters.as_bytes();
    let mut one = || char::from(letters[random.below(letters.len() as u32) as usize]);
    (0..count).map(|_| one()).collect()
}

/// Draws `count` letters of a class.
pub(super) fn draw_class(random: &mut SplitMix64, class: &str, count: usize) -> String {
    let (_, letters) = CLASSES.iter().find(|(name, _)| *name == class).expect("a known class");
    draw(random, letters, count)
}

pub(super) fn uuid(random: &mut SplitMix64) -> String {
    let parts = [8, 4, 4, 4, 12].map(|count| draw_class(random, "hex", count));
    parts.join("-")
}

fn jwt(random: &mut SplitMix64) -> String {
    let header = BASE64URL_NOPAD.encode(b"{\"alg\":\"HS256\",\"typ\":\"JWT\"}");
    let payload = BASE64URL_NOPAD.encode(b"{\"sub\":\"1234567890\"}");
    format!("{header}.{payload}.{}", draw_class(random, "an", 43))
}
