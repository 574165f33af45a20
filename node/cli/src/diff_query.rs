//! The question of `klnode search --diff`: the paths, names, imports and calls that a diff adds.
//!
//! It reads a unified diff as text and knows no language: it takes words from lines that define,
//! import or call something. Calls come last, because most of them say least. Deleted lines do not
//! count, since knowledge is wanted about the code that comes.

use std::collections::BTreeSet;

/// The most words of a question: more would dilute it.
const WORDS_MAX: usize = 48;
/// Words after which a name is defined.
const DEFINING: [&str; 17] = [
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
    "mod",
    "const",
    "let",
    "static",
    "var",
];
/// Words that begin an import.
const IMPORTING: [&str; 6] = ["use", "import", "from", "#include", "require", "using"];
/// Words of a language that name nothing.
const KEYWORDS: [&str; 33] = [
    "Err", "None", "Ok", "Some", "and", "as", "assert", "async", "await", "catch", "crate",
    "default", "elif", "else", "export", "for", "if", "in", "match", "mut", "new", "not", "or",
    "pub", "return", "self", "sizeof", "super", "switch", "this", "throw", "while", "with",
];
/// Prefixes of a path: of two sides, and those of `diff.mnemonicPrefix`.
const PATH_PREFIXES: [&str; 5] = ["b/", "w/", "i/", "c/", "o/"];
/// How a line of a comment or an attribute begins.
const COMMENTS: [&str; 6] = ["//", "/*", "* ", "# ", "#[", "#!"];

/// The question for a diff; `None` if the diff adds nothing that can be asked about.
pub(super) fn question(diff: &str) -> Option<String> {
    let (mut words, mut called) = (OrderedWords::default(), Vec::new());
    let (mut hunk, mut is_go, mut before) = (Hunk::default(), false, "");
    for line in diff.lines() {
        let header = line.strip_prefix("+++ ").filter(|_| hunk.may_end_before(before));
        if let Some(path) = header {
            let path = header_path(path);
            is_go = path.ends_with(".go");
            hunk = Hunk::default();
            if path != "/dev/null" {
                words.add(&path);
            }
        } else if line.starts_with("@@ ") {
            hunk = Hunk::begin(line);
        } else if line.starts_with("diff ") {
            hunk = Hunk::default();
        } else {
            hunk.pass(line);
            if let Some(added) = line.strip_prefix('+') {
                add_line(&mut words, &mut called, added.trim(), is_go);
            }
        }
        before = line;
    }
    called.iter().for_each(|name| words.add(name));
    words.question()
}

/// The lines of a hunk that are still to come. An added line `++ x` looks like the header of a file,
/// and only the place tells the two apart.
#[derive(Default)]
struct Hunk {
    has_begun: bool,
    old: usize,
    new: usize,
}

impl Hunk {
    /// Reads a line such as `@@ -1,3 +1,4 @@`; without a count a side has one line.
    fn begin(line: &str) -> Self {
        let count = |side: &str| side.split(',').nth(1).map_or(Some(1), |n| n.parse().ok());
        let mut sides = line.split(' ').skip(1).map(count);
        let mut next = || sides.next().flatten().unwrap_or_default();
        Self { has_begun: true, old: next(), new: next() }
    }

    fn pass(&mut self, line: &str) {
        let is_one_sided = line.starts_with(['+', '-', '\\']);
        if line.starts_with('-') || !is_one_sided {
            self.old = self.old.saturating_sub(1);
        }
        if line.starts_with('+') || !is_one_sided {
            self.new = self.new.saturating_sub(1);
        }
    }

    /// Whether the header of a file may follow this line.
    fn may_end_before(&self, before: &str) -> bool {
        let is_over = self.old == 0 && self.new == 0;
        is_over && (!self.has_begun || before.starts_with("--- "))
    }
}

/// The path of a header, without its prefix, its time and its quotes.
fn header_path(header: &str) -> String {
    let path = header.split('\t').next().unwrap_or_default().trim();
    let path = match path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
        Some(quoted) => unquoted(quoted),
        None => path.to_owned(),
    };
    let plain = PATH_PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    plain.map(str::to_owned).unwrap_or(path)
}

/// The path in quotes: git writes control characters, quotes and bytes beyond ASCII as escapes.
fn unquoted(quoted: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), quoted.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        rest = match (first, octal, after.split_first()) {
            (b'\\', Some(byte), _) => {
                bytes.push(byte);
                &after[3..]
            }
            (b'\\', None, Some((escaped, after))) => {
                bytes.push(if matches!(escaped, b'n' | b't') { b' ' } else { *escaped });
                after
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Takes the imports and the defined names of an added line, and notes the names that it calls.
fn add_line(words: &mut OrderedWords, called: &mut Vec<String>, line: &str, is_go: bool) {
    if let Some(imported) = imported(line, is_go) {
        let names = imported.split(|c: char| !is_name(c) && c != '.' && c != '/');
        let names = names.map(|name| name.trim_matches(['.', '/']));
        let is_said = |name: &&str| {
            !IMPORTING.contains(name) && !DEFINING.contains(name) && !KEYWORDS.contains(name)
        };
        names.filter(is_said).for_each(|name| words.add(name));
        return;
    }
    if COMMENTS.iter().any(|begin| line.starts_with(begin)) {
        return;
    }
    let mut parts = line.split(|c: char| !is_name(c)).filter(|part| !part.is_empty());
    while let Some(part) = parts.next() {
        if DEFINING.contains(&part) {
            // `const fn name` and `let mut name` define `name`.
            let is_empty = |part: &&str| DEFINING.contains(part) || KEYWORDS.contains(part);
            let name = parts.by_ref().find(|part| !is_empty(part));
            name.into_iter().for_each(|name| words.add(name));
        }
    }
    called.extend(names_in_use(line));
}

/// The part of a line that names what it imports; `None` if it imports nothing.
fn imported(line: &str, is_go: bool) -> Option<&str> {
    let mut rest = line.strip_prefix("export ").unwrap_or(line);
    if let Some(public) = rest.strip_prefix("pub") {
        // The visibility may name a place, as in `pub(crate) use`.
        let place = public.strip_prefix('(').and_then(|place| place.split_once(')'));
        rest = place.map_or(public, |(_, rest)| rest).trim_start();
    }
    let first = rest.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    if IMPORTING.contains(&first) {
        return Some(&rest[first.len()..]);
    }
    let is_again =
        line.starts_with("export ") && (rest.contains(" from \"") || rest.contains(" from '"));
    let is_required = ["= require(", "= await import("].iter().any(|call| rest.contains(call));
    // A line in an import block of Go: a path in quotes, perhaps after another name for it.
    let path = rest.rsplit(' ').next().unwrap_or_default();
    let is_path = path.len() > 2 && path.starts_with('"') && path.ends_with('"');
    let is_in_block = is_go && is_path && rest.split(' ').count() <= 2;
    (is_again || is_required || is_in_block).then_some(rest)
}

/// Names in use: those before a parenthesis, and those with a dot or an underscore.
fn names_in_use(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_name) {
        let name = &rest[start..];
        let end = name.find(|c: char| !is_name(c) && c != '.').unwrap_or(name.len());
        let (name, after) = name.split_at(end);
        rest = after;
        let mut name = name.trim_matches('.');
        for receiver in ["self.", "this."] {
            name = name.strip_prefix(receiver).unwrap_or(name);
        }
        let is_word = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_used = after.starts_with('(') || name.trim_matches('_').contains(['.', '_']);
        if is_word && is_used && !KEYWORDS.contains(&name) && !DEFINING.contains(&name) {
            found.push(name.to_owned());
        }
    }
    found
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

    #[test]
    fn names_that_added_lines_call_or_use_come_last() {
        let diff = "--- a/fetch.py\n+++ b/fetch.py\n@@ -1,2 +1,6 @@\n def fetch(url):\n\
            +    # see the_wiki(first)\n+    answer = requests.get(url, timeout=1.5)\n\
            +    if (answer.ok): self.keep_alive(answer)\n+    return parse(answer)\n\
            +def retry(): pass\n     pass\n";
        let expected = "fetch.py retry requests.get answer.ok keep_alive parse";
        assert_eq!(question(diff).as_deref(), Some(expected));
        let many: String = (0..200).map(|n| format!("+call_{n}(x)\n")).collect();
        let many = question(&format!("+++ b/a.rs\n{many}+fn last_defined() {{}}\n")).unwrap();
        assert!(many.starts_with("a.rs last_defined call_0 "), "{many}");
        assert_eq!(many.split(' ').count(), 48);
    }

    #[test]
    fn imports_of_several_languages_are_read() {
        for (file, line, expected) in [
            ("a.rs", "pub use ring::hmac;", "ring hmac"),
            ("a.rs", "pub(crate) use crate::token::verify;", "token verify"),
            ("a.ts", "export { parseUrl } from './url';", "parseUrl url"),
            ("a.ts", "export * from \"./token\";", "token"),
            ("a.js", "const { readFile } = require('fs/promises');", "readFile fs/promises"),
            ("a.go", "\t\"net/http\"", "net/http"),
            ("a.go", "\tlog \"github.com/sirupsen/logrus\"", "log github.com/sirupsen/logrus"),
            ("a.py", "import numpy as np", "numpy np"),
        ] {
            let diff = format!("--- a/{file}\n+++ b/{file}\n@@ -1 +1,2 @@\n first\n+{line}\n");
            assert_eq!(question(&diff), Some(format!("{file} {expected}")), "{line}");
        }
    }

    #[test]
    fn constants_bindings_and_modules_are_definitions() {
        for (line, expected) in [
            ("pub const RETRY_MAX: u32 = 3;", "RETRY_MAX"),
            ("const fn limit() -> u32 {", "limit"),
            ("let mut total = 0;", "total"),
            ("static TABLE: Table = Table;", "TABLE"),
            ("mod tokens;", "tokens"),
        ] {
            let diff = format!("--- a/a.rs\n+++ b/a.rs\n@@ -1 +1,2 @@\n first\n+{line}\n");
            assert_eq!(question(&diff), Some(format!("a.rs {expected}")), "{line}");
        }
    }

    #[test]
    fn paths_lose_their_prefix_and_their_quotes() {
        for (header, expected) in [
            ("b/src/a.rs", "src/a.rs"),
            ("w/src/a.rs", "src/a.rs"),
            ("i/src/a.rs\t2026-01-01", "src/a.rs"),
            ("src/a.rs", "src/a.rs"),
            ("\"b/caf\\303\\251/\\\"x\\\".rs\"", "caf\u{e9}/\"x\".rs"),
        ] {
            let diff = format!("--- a/x\n+++ {header}\n@@ -1 +0,0 @@\n-gone\n");
            assert_eq!(question(&diff).as_deref(), Some(expected), "{header}");
        }
    }

    #[test]
    fn an_added_line_that_begins_with_two_plus_signs_is_no_path() {
        let diff = "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n first\n--- count;\n+++ count_up;\n\
            --- a/b.c\n+++ b/b.c\n@@ -0,0 +1 @@\n+++ total_sum;\n";
        assert_eq!(question(diff).as_deref(), Some("a.c b.c count_up total_sum"));
    }
}
