//! The question of `klnode search --diff`: the paths, names and imports that a diff adds.
//!
//! It reads a unified diff as text and knows no language: it takes words from lines that define or
//! import something. Deleted lines do not count, since knowledge is wanted about the code that comes.

use std::collections::BTreeSet;

/// The most words of a question: more would dilute it.
const WORDS_MAX: usize = 48;
/// Words after which a name is defined.
const DEFINING: [&str; 12] = [
    "fn",
    "def",
    "func",
    "function",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "impl",
    "module",
];
/// Words that begin an import.
const IMPORTING: [&str; 6] = ["use", "import", "from", "#include", "require", "using"];

/// The question for a diff; `None` if the diff adds nothing that can be asked about.
pub(super) fn question(diff: &str) -> Option<String> {
    let mut words = OrderedWords::default();
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.split('\t').next().unwrap_or_default().trim();
            let path = path.strip_prefix("b/").unwrap_or(path);
            if path != "/dev/null" {
                words.add(path);
            }
        } else if let Some(added) = line.strip_prefix('+') {
            add_line(&mut words, added.trim());
        }
    }
    words.question()
}

/// Takes the imports and the defined names of an added line.
fn add_line(words: &mut OrderedWords, line: &str) {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let first = line.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    if IMPORTING.contains(&first) {
        let names = line[first.len()..].split(|c: char| !is_name(c) && c != '.' && c != '/');
        names.filter(|name| !IMPORTING.contains(name)).for_each(|name| words.add(name));
        return;
    }
    let mut parts = line.split(|c: char| !is_name(c)).filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        if DEFINING.contains(&part)
            && let Some(name) = parts.next()
        {
            words.add(name);
        }
    }
}

/// Different words in the order of their first occurrence.
#[derive(Default)]
struct OrderedWords {
    seen: BTreeSet<String>,
    words: Vec<String>,
}

impl OrderedWords {
    fn add(&mut self, word: &str) {
        // A single letter is a variable or a type parameter, which says nothing.
        let word = word.trim_matches(['.', '/']);
        if word.chars().count() > 1 && self.words.len() < WORDS_MAX && self.seen.insert(word.into())
        {
            self.words.push(word.to_owned());
        }
    }

    fn question(self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::question;

    #[test]
    fn a_question_names_paths_imports_and_definitions_of_added_lines() {
        let diff = "diff --git a/src/auth/token.rs b/src/auth/token.rs\n--- a/src/auth/token.rs\n\
            +++ b/src/auth/token.rs\n@@ -1,3 +1,4 @@\n use std::fmt;\n-use old::thing;\n\
            +use ring::hmac;\n+pub fn verify_token(t: &str) -> bool {\n+    let x = 1;\n-fn gone() {}\n\
            +class SessionStore:\n+from flask import request\n+use ring::hmac;\n";
        let expected = "src/auth/token.rs ring hmac verify_token SessionStore flask request";
        assert_eq!(question(diff).as_deref(), Some(expected));
    }

    #[test]
    fn a_diff_that_adds_nothing_has_no_question() {
        assert_eq!(question(""), None);
        assert_eq!(question("--- a/x.rs\n+++ /dev/null\n-fn gone() {}\n"), None);
        let many: String = (0..200).map(|n| format!("+fn name_{n}() {{}}\n")).collect();
        assert_eq!(question(&many).map(|words| words.split(' ').count()), Some(48));
    }
}
