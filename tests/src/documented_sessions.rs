//! Runs the sessions that documents show, and compares the printed text with the documented text.
//!
//! A session is a fenced block of kind `console`: lines that begin with `$ ` are typed, and the
//! lines after them are the expected output. Ids and citation codes differ between runs: if the
//! document shows one and another is printed, the printed one replaces it from then on. An ellipsis
//! `…` matches any text.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// One typed line with its documented output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The typed line.
    pub typed: String,
    /// Documented output lines.
    pub printed: Vec<String>,
}

/// Steps of every session in a document.
pub fn sessions(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // Index in `steps` where the current block begins; `None` outside of blocks.
    let mut block = None;
    for line in document.lines() {
        match (line.strip_prefix("$ "), block) {
            (Some(typed), Some(_)) => {
                let typed = typed.to_owned();
                steps.push(Step { typed, printed: Vec::new() });
            }
            _ if line.starts_with("```") => block = (line == "```console").then_some(steps.len()),
            (None, Some(first)) if steps.len() > first => {
                steps.last_mut().expect("longer than").printed.push(line.to_owned());
            }
            _ => {}
        }
    }
    steps
}

/// Names in a document, with the names that replace them in this run.
pub type Names = BTreeMap<String, String>;

/// Runs the steps in a shell that finds `klnode` in `programs` and the node in `home`.
///
/// # Panics
/// If the printed text differs from the documented text.
pub fn run(steps: &[Step], programs: &Path, home: &Path) {
    go_on(steps, programs, home, &mut Names::new());
}

/// As [`run`], for a part of a longer session: names learned before are used, and new ones are
/// added.
///
/// # Panics
/// If the printed text differs from the documented text.
pub fn go_on(steps: &[Step], programs: &Path, home: &Path, names: &mut Names) {
    for step in steps {
        let typed = substitute(&step.typed, names);
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1; {typed}"))
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("KLNODE_HOME", home)
            .current_dir(home.parent().expect("a home is in a folder"))
            .output()
            .expect("sh runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let printed: Vec<&str> = printed.lines().collect();
        for (shown, found) in step.printed.iter().zip(&printed) {
            learn(shown, found, names);
        }
        let promised: Vec<String> =
            step.printed.iter().map(|line| substitute(line, names)).collect();
        let is_kept = promised.len() == printed.len()
            && promised.iter().zip(&printed).all(|(promised, printed)| fits(promised, printed));
        assert!(is_kept, "`{}` prints {printed:#?}, not {promised:#?}", step.typed);
    }
}

/// Whether a printed line matches the documented one, in which `…` matches any text.
fn fits(promised: &str, printed: &str) -> bool {
    let Some((before, after)) = promised.split_once('…') else { return promised == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.into_iter().any(|at| fits(after, &rest[at..]))
}

/// Whether a word is an id or a citation code.
fn is_name(word: &str) -> bool {
    let is_id = matches!(word.len(), 32 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = word.split_once('-').filter(|(letter, _)| letter.len() == 1).map(|(_, of)| of);
    let is_code = digits.is_some_and(|digits| {
        let base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
        digits.len() == 8 && digits.bytes().all(base32)
    });
    is_id || is_code
}

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect()
}

fn learn(shown: &str, found: &str, names: &mut Names) {
    for (shown, found) in words(shown).into_iter().zip(words(found)) {
        if is_name(shown) && is_name(found) {
            names.entry(shown.to_owned()).or_insert_with(|| found.to_owned());
        }
    }
}

fn substitute(line: &str, names: &Names) -> String {
    names.iter().fold(line.to_owned(), |line, (shown, found)| line.replace(shown, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_extracted_from_a_document() {
        let document = "text\n```console\n$ klnode list\nNothing yet.\n```\n$ no\n```console\ncargo test\n```\n";
        let step = Step { typed: "klnode list".into(), printed: vec!["Nothing yet.".into()] };
        assert_eq!(sessions(document), [step]);
    }

    #[test]
    fn an_ellipsis_matches_any_text() {
        assert!(fits("a … c", "a b b c") && fits("a…", "a") && fits("…b…", "abc"));
        assert!(!fits("a … c", "a b b d") && !fits("a", "ab") && !fits("a…b", "b"));
    }

    #[test]
    fn a_printed_code_replaces_the_documented_one() {
        let mut names = BTreeMap::new();
        learn("L-7F3KQ2MX  title", "L-ABCDEFGH  title", &mut names);
        assert_eq!(substitute("show L-7F3KQ2MX", &names), "show L-ABCDEFGH");
        learn("no code", "at all", &mut names);
        assert_eq!(names.len(), 1);
    }
}
