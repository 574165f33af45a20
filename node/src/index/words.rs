//! A text as the keyword index sees it: lower-case words, names of code whole as well as split.
//!
//! One function for entries and for queries, because a word that is cut differently on the two
//! sides is never found. `HashMap::new` is found by `hashmap::new`, by `HashMap`, by `hash` and by
//! `new`; `src/api/mod.rs:42` by `api/mod.rs`'s words and by the whole path. Separate from the
//! embedder's tokenizer, which must repeat what its table was trained with. Knows no language and
//! no index.

/// Longer words are cut here, in bytes: what tells two words of this length apart comes before.
pub const WORD_BYTES_MAX: usize = 96;
/// Words beyond this many in one text are not looked at.
pub const WORDS_MAX: usize = 8192;

/// The words of a text in their order, each as often as it stands there.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| found.push(word.to_owned()));
    found
}

/// Shows `visit` every word of a text, without making a string for each.
pub fn each_word(text: &str, visit: impl FnMut(&str)) {
    let mut cutter = Cutter { visit, left: WORDS_MAX, lower: String::new() };
    let mut rest = text;
    while cutter.left > 0 {
        let Some(start) = rest.find(is_letter) else { return };
        let name = &rest[start..];
        let end = name_end(name);
        cutter.name(&name[..end]);
        rest = &name[end..];
    }
}

/// Where the name that `text` starts with ends: words and what joins them.
fn name_end(text: &str) -> usize {
    let mut end = 0;
    let mut rest = text;
    loop {
        let word = rest.find(|letter| !is_letter(letter)).unwrap_or(rest.len());
        end += word;
        rest = &rest[word..];
        let joint = rest.find(|letter| !JOINTS.contains(&letter)).unwrap_or(rest.len());
        let goes_on = rest[joint..].chars().next().is_some_and(is_letter);
        if joint == 0 || joint > JOINT_BYTES_MAX || !goes_on {
            return end;
        }
        end += joint;
        rest = &rest[joint..];
    }
}

/// What joins the words of one name: `a::b`, `a.b`, `a/b`, `a-b`, `a:42`, `a->b`.
const JOINTS: [char; 6] = [':', '.', '/', '-', '\\', '>'];
/// A longer run of joints is decoration.
const JOINT_BYTES_MAX: usize = 2;

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

struct Cutter<V> {
    visit: V,
    left: usize,
    /// The last word shown, kept for its room.
    lower: String,
}

impl<V: FnMut(&str)> Cutter<V> {
    /// A name whole, then its words, then their parts.
    fn name(&mut self, name: &str) {
        let mut words = name.split(|letter| !is_letter(letter)).filter(|word| !word.is_empty());
        if words.clone().nth(1).is_some() {
            self.show(without_line(name));
        }
        words.by_ref().for_each(|word| self.word(word));
    }

    /// A word whole, then the parts that its humps, digits and underscores cut it into.
    fn word(&mut self, word: &str) {
        self.show(word);
        let parts = Parts(word);
        if parts.clone().nth(1).is_some() {
            parts.for_each(|part| self.show(part));
        }
    }

    fn show(&mut self, word: &str) {
        let bare = word.trim_matches('_');
        if bare.is_empty() || self.left == 0 {
            return;
        }
        self.left -= 1;
        self.lower.clear();
        for letter in bare.chars().flat_map(char::to_lowercase) {
            if self.lower.len() + letter.len_utf8() > WORD_BYTES_MAX {
                break;
            }
            self.lower.push(letter);
        }
        (self.visit)(&self.lower);
    }
}

/// A path without the line and column after it: those change with every edit.
fn without_line(name: &str) -> &str {
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match bare.strip_suffix(':') {
        Some(path) if bare.len() < name.len() && !path.ends_with(':') => without_line(path),
        _ => name,
    }
}

/// The parts of a word: `HTTPServer2` is `HTTP`, `Server` and `2`.
#[derive(Clone)]
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let word = self.0.trim_start_matches('_');
        let mut letters = word.char_indices().peekable();
        let (_, mut last) = letters.next()?;
        let mut end = word.len();
        while let Some((at, letter)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            if ends_between(last, letter, next) {
                end = at;
                break;
            }
            last = letter;
        }
        let (part, rest) = word.split_at(end);
        self.0 = rest;
        Some(part)
    }
}

/// Whether a part ends between `last` and `letter`, which `next` follows.
fn ends_between(last: char, letter: char, next: Option<char>) -> bool {
    letter == '_'
        || last.is_numeric() != letter.is_numeric()
        || (last.is_lowercase() && letter.is_uppercase())
        || (last.is_uppercase() && letter.is_uppercase() && next.is_some_and(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use super::{WORD_BYTES_MAX, WORDS_MAX, words};

    #[test]
    fn names_of_code_are_words_whole_and_split() {
        for (text, expect) in [
            ("", ""),
            ("  \u{1f980} -- ... ", ""),
            ("A plain sentence.", "a plain sentence"),
            ("ctx.Err()", "ctx.err ctx err"),
            ("std::io::Error", "std::io::error std io error"),
            ("snake_case_name", "snake_case_name snake case name"),
            ("camelCase HTTPServer", "camelcase camel case httpserver http server"),
            ("src/api/mod.rs:42:7", "src/api/mod.rs src api mod rs 42 7"),
            ("error[E0308]: mismatched", "error e0308 e 0308 mismatched"),
            ("ECONNREFUSED", "econnrefused"),
            ("0x80070005", "0x80070005 0 x 80070005"),
            ("--no-verify", "no-verify no verify"),
            ("tokio 1.54.0,", "tokio 1.54.0 1 54 0"),
            ("__init__", "init"),
            ("Straße ÄRGER", "straße ärger"),
        ] {
            assert_eq!(words(text).join(" "), expect, "{text}");
        }
    }

    #[test]
    fn a_word_and_a_text_have_their_limits() {
        let long = "ß".repeat(WORD_BYTES_MAX);
        assert_eq!(words(&long), ["ß".repeat(WORD_BYTES_MAX / 2)]);
        assert_eq!(words(&"a ".repeat(WORDS_MAX + 1)).len(), WORDS_MAX);
    }
}
