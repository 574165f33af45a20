//! Reads the repository as text, for the tests that enforce the house rules.
//!
//! It finds the files and separates code, comments and literals of Rust files; the rules themselves
//! are in the suite (`architecture` and `tidy`). It reads tokens rather than a syntax tree: a rule
//! can check anything a reader can see, and nothing has to compile first. It never looks into
//! `target` or `.git`, and never writes.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Root of the repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Extensions of files that are read as text; other files are known by path only.
const TEXT_EXTENSIONS: [&str; 6] = ["rs", "toml", "md", "sh", "yml", "yaml"];

/// Files of other tools, which no house rule concerns.
const FIXTURES: &str = "node/formats/fixtures";
/// Folders that contain no source.
const SKIPPED_FOLDERS: [&str; 3] = ["target", ".git", "node_modules"];

/// One text file of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the root, with forward slashes.
    pub path: String,
    /// Complete text as it is on disk.
    pub text: String,
}

impl Source {
    /// A file that need not exist: rules are tested on planted files.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether this is a Rust file.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Files of the repository, read when the first test needs them.
#[derive(Debug)]
pub struct Repository {
    /// Every file and folder, from the root, with forward slashes.
    pub paths: BTreeSet<String>,
    /// Every text file, sorted by path.
    pub sources: Vec<Source>,
}

/// The repository of this package, read once.
pub fn repository() -> &'static Repository {
    static REPOSITORY: OnceLock<Repository> = OnceLock::new();
    REPOSITORY.get_or_init(|| {
        let mut found = Repository { paths: BTreeSet::new(), sources: Vec::new() };
        walk(Path::new(ROOT), "", &mut found);
        found.sources.sort_by(|a, b| a.path.cmp(&b.path));
        assert!(found.paths.contains("Cargo.toml"), "{ROOT} is not the root of the repository");
        found
    })
}

fn walk(folder: &Path, prefix: &str, found: &mut Repository) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("list {}: {e}", folder.display()));
    for entry in entries {
        let entry = entry.unwrap_or_else(|e| panic!("list {}: {e}", folder.display()));
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        // Links are not followed: a link may lead out of the repository or into a cycle.
        let kind = entry.file_type().unwrap_or_else(|e| panic!("look at {path}: {e}"));
        if kind.is_dir() {
            // Fixtures have the line ends and byte order marks of other tools on purpose.
            if path == FIXTURES {
                continue;
            }
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                walk(&entry.path(), &format!("{path}/"), found);
                found.paths.insert(path);
            }
            continue;
        }
        if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(entry.path())
                .unwrap_or_else(|e| panic!("read {path} as UTF-8: {e}"));
            found.sources.push(Source { path: path.clone(), text });
        }
        found.paths.insert(path);
    }
}

fn is_text(path: &str) -> bool {
    path.starts_with(".ci/")
        || Path::new(path)
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| TEXT_EXTENSIONS.contains(&e))
}

/// A violation of a house rule, with the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `path:line`, which editors and terminals can open.
    pub place: String,
    /// Description of the violation.
    pub what: String,
    /// How to fix it.
    pub way_out: String,
}

impl Violation {
    /// A violation at a line (counted from 1), with the fix.
    pub fn new(path: &str, line: usize, what: impl Into<String>, way_out: &str) -> Self {
        Self { place: format!("{path}:{line}"), what: what.into(), way_out: way_out.to_owned() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.way_out)
    }
}

/// Fails with every violation on its own line.
#[track_caller]
pub fn assert_none(violations: &[Violation]) {
    let list: Vec<String> = violations.iter().map(|v| format!("  {v}")).collect();
    assert!(list.is_empty(), "house rules broken: {}\n{}\n", list.len(), list.join("\n"));
}

/// A Rust text split into code and comments. Both parts keep the lines of the original; literals
/// are blank in both.
#[derive(Debug)]
pub struct Split {
    /// Code, without literals.
    pub code: String,
    /// Comments and doc comments, with their slashes.
    pub comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// Splits a Rust text into code and comments.
pub fn split(text: &str) -> Split {
    let chars: Vec<char> = text.chars().collect();
    let mut parts = vec![Part::Code; chars.len()];
    let mut at = 0;
    while at < chars.len() {
        let (end, part) = part_at(&chars, at);
        parts[at..end].fill(part);
        at = end;
    }
    let keep = |wanted: Part| {
        let pick = |(c, part): (&char, &Part)| if *part == wanted || *c == '\n' { *c } else { ' ' };
        chars.iter().zip(&parts).map(pick).collect()
    };
    Split { code: keep(Part::Code), comments: keep(Part::Comment) }
}

/// The string literals of a Rust text without their quotes, each with the line on which it begins.
/// A line break after a backslash is removed with the indentation that follows.
pub fn string_literals(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut at, mut line, mut found) = (0, 1, Vec::new());
    while at < chars.len() {
        let (end, part) = part_at(&chars, at);
        let quoted = &chars[at..end];
        if part == Part::Literal && chars[at] != '\'' {
            let inside: String = quoted.iter().collect();
            let inside = inside.trim_start_matches(['r', '#']).trim_end_matches('#');
            let inside = inside.trim_start_matches('"').trim_end_matches('"');
            let mut lines = inside.split("\\\n");
            let mut joined = lines.next().unwrap_or_default().to_owned();
            lines.for_each(|rest| joined.push_str(rest.trim_start()));
            found.push((line, joined));
        }
        line += quoted.iter().filter(|c| **c == '\n').count();
        at = end;
    }
    found
}

/// End and kind of the part that starts at `at`.
fn part_at(chars: &[char], at: usize) -> (usize, Part) {
    let peek = |ahead: usize| chars.get(at + ahead).copied();
    let find = |from: usize, stop: &dyn Fn(usize) -> bool| {
        (from..chars.len()).find(|i| stop(*i)).unwrap_or(chars.len())
    };
    let after_word = at > 0 && is_word(chars[at - 1]);
    match (chars[at], peek(1)) {
        ('/', Some('/')) => (find(at, &|i| chars[i] == '\n'), Part::Comment),
        ('/', Some('*')) => (block_comment_end(chars, at), Part::Comment),
        ('"', _) => (quoted_end(chars, at, '"'), Part::Literal),
        ('\'', Some('\\')) => (quoted_end(chars, at, '\''), Part::Literal),
        ('\'', Some(_)) if peek(2) == Some('\'') => (at + 3, Part::Literal),
        ('r', Some('"' | '#')) if !after_word || matches!(chars[at - 1], 'b' | 'c') => {
            let open = find(at + 1, &|i| chars[i] != '#');
            if chars.get(open) != Some(&'"') {
                return (at + 1, Part::Code);
            }
            let hashes = open - at - 1;
            let closes = |i: usize| {
                chars[i] == '"'
                    && chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes
            };
            let end = find(open + 1, &closes) + hashes + 1;
            (end.min(chars.len()), Part::Literal)
        }
        _ => (at + 1, Part::Code),
    }
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A path in code: `a::b::c`, or a single word. `use` trees are expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Line number, counted from 1.
    pub line: usize,
    /// Segments of the path, `*` for a glob.
    pub path: Vec<String>,
    /// Number of enclosing `mod name { … }` blocks in this file.
    pub modules: usize,
    /// Whether it is in an item under `#[cfg(test)]`.
    pub is_test: bool,
    /// Whether it is part of a `use` item.
    pub is_import: bool,
    /// Whether it is the name of a called macro.
    pub is_macro: bool,
}

/// All paths in `code`, in order.
pub fn mentions(code: &str) -> Vec<Mention> {
    let mut reader = Reader { tokens: tokens(code), at: 0, depth: 0, blocks: Vec::new() };
    let mut found = Vec::new();
    let mut pending = Block::default();
    while let Some((_, token)) = reader.tokens.get(reader.at).copied() {
        match token {
            "{" => {
                reader.depth += 1;
                if pending.is_module || pending.is_test {
                    reader.blocks.push(Block { depth: reader.depth, ..pending });
                }
                pending = Block::default();
            }
            "}" => {
                reader.blocks.retain(|block| block.depth < reader.depth);
                reader.depth = reader.depth.saturating_sub(1);
            }
            ";" => pending = Block::default(),
            "#" if reader.next_are(&["#", "[", "cfg", "(", "test", ")", "]"]) => {
                pending.is_test = true;
                reader.at += 6;
            }
            "use" => {
                reader.at += 1;
                reader.use_tree(&mut Vec::new(), &mut found);
                pending = Block::default();
                continue;
            }
            word if word.starts_with(is_word) => {
                pending.is_module |= word == "mod";
                reader.path(&mut found);
                continue;
            }
            _ => {}
        }
        reader.at += 1;
    }
    found
}

#[derive(Clone, Copy, Default)]
struct Block {
    depth: usize,
    is_module: bool,
    is_test: bool,
}

struct Reader<'a> {
    tokens: Vec<(usize, &'a str)>,
    at: usize,
    depth: usize,
    blocks: Vec<Block>,
}

impl Reader<'_> {
    fn next_are(&self, wanted: &[&str]) -> bool {
        let rest = self.tokens[self.at..].iter().map(|(_, token)| *token);
        rest.take(wanted.len()).eq(wanted.iter().copied())
    }

    fn mention(&self, line: usize, path: &[String]) -> Mention {
        Mention {
            line,
            path: path.to_vec(),
            modules: self.blocks.iter().filter(|block| block.is_module).count(),
            is_test: self.blocks.iter().any(|block| block.is_test),
            is_import: false,
            is_macro: false,
        }
    }

    /// Reads `a::b::c` from its first word.
    fn path(&mut self, found: &mut Vec<Mention>) {
        let (line, first) = self.tokens[self.at];
        let mut path = vec![first.to_owned()];
        self.at += 1;
        while self.next_are(&["::"]) {
            match self.tokens.get(self.at + 1) {
                Some((_, word)) if word.starts_with(is_word) => path.push((*word).to_owned()),
                _ => break,
            }
            self.at += 2;
        }
        let is_macro = self.next_are(&["!"]) && !self.next_are(&["!", "="]);
        found.push(Mention { is_macro, ..self.mention(line, &path) });
    }

    /// Reads one branch of a `use` tree up to its end: `,`, `}`, `;` or the end of the text.
    fn use_tree(&mut self, path: &mut Vec<String>, found: &mut Vec<Mention>) {
        let mut line = self.tokens.get(self.at).map_or(1, |(line, _)| *line);
        let mut is_group = false;
        while let Some((here, token)) = self.tokens.get(self.at).copied() {
            match token {
                "," | "}" | ";" => break,
                "as" => self.at += 1,
                "{" => {
                    is_group = true;
                    while !matches!(self.tokens.get(self.at), None | Some((_, "}" | ";"))) {
                        self.at += 1;
                        self.use_tree(&mut path.clone(), found);
                    }
                }
                word if word.starts_with(is_word) || word == "*" => {
                    line = here;
                    path.push(word.to_owned());
                }
                _ => {}
            }
            self.at += 1;
        }
        if !is_group && !path.is_empty() {
            found.push(Mention { is_import: true, ..self.mention(line, path) });
        }
    }
}

/// Words, `::` and single marks, each with its line.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(length);
        if first == '\n' {
            line += 1;
        } else if !first.is_whitespace() {
            found.push((line, token));
        }
        rest = tail;
    }
    found
}

/// All attributes in `code`: the line, and the bracketed text without white space.
pub fn attributes(code: &str) -> Vec<(usize, String)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        let inner = match &tokens[start..] {
            [(_, "#"), (_, "!"), (_, "["), ..] => start + 3,
            [(_, "#"), (_, "["), ..] => start + 2,
            _ => continue,
        };
        let mut depth = 1;
        let open = |(_, token): &&(usize, &str)| {
            match *token {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => {}
            }
            depth > 0
        };
        let text = tokens[inner..].iter().take_while(open).map(|(_, token)| *token).collect();
        found.push((tokens[start].0, text));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text =
            "let a = \"x // y\"; // z \"q\"\nlet b = r#\"c\"d\"#; /* e /* f */ g */ h('\"', 'i');";
        let Split { code, comments } = split(text);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&code), "let a = ; let b = ; h( , );");
        assert_eq!(words(&comments), "// z \"q\" /* e /* f */ g */");
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn a_lifetime_and_an_escaped_quote_do_not_open_a_literal() {
        let Split { code, .. } = split("fn f<'a>(x: &'a str) { g('\\'', \"\\\"\", b'x') } // '");
        assert!(code.starts_with("fn f<'a>(x: &'a str) { g("));
        assert!(code.trim_end().ends_with('}'));
    }

    #[test]
    fn an_unfinished_literal_or_comment_ends_with_the_text() {
        for text in ["\"", "'\\", "r#\"a", "/* a", "\"a\\", "'", "r#", "b\"é"] {
            assert_eq!(split(text).code.chars().count(), text.chars().count(), "{text}");
        }
    }

    fn spelt(code: &str) -> Vec<String> {
        let imports = mentions(code).into_iter().filter(|m| m.is_import);
        imports.map(|m| format!("{}:{}", m.line, m.path.join("::"))).collect()
    }

    #[test]
    fn a_use_tree_is_expanded() {
        let code =
            "use std::{fs, time::{Instant as Now, Duration},\n  net::*};\nuse a;\nuse ::b::c;";
        let expect =
            ["1:std::fs", "1:std::time::Instant", "1:std::time::Duration", "2:std::net::*"];
        assert_eq!(spelt(code)[..4], expect);
        assert_eq!(spelt(code)[4..], ["3:a", "4:b::c"]);
    }

    #[test]
    fn a_mention_carries_its_modules_and_whether_it_is_in_a_test() {
        let code = "mod a { fn f() { x::y(); } }\n#[cfg(test)]\nmod tests { z!(); }\nw != v;";
        let found = mentions(code);
        let get = |word: &str| found.iter().find(|m| m.path[0] == word).expect("named above");
        assert_eq!((get("x").modules, get("x").is_test, get("x").path.len()), (1, false, 2));
        assert_eq!((get("z").modules, get("z").is_test, get("z").is_macro), (1, true, true));
        assert_eq!((get("w").modules, get("w").is_test, get("w").is_macro), (0, false, false));
    }

    #[test]
    fn an_attribute_ends_at_its_own_bracket() {
        let found = attributes("#![a]\n#[b(c, d = [e])] fn f() { x[0] }");
        assert_eq!(found, [(1, "a".to_owned()), (2, "b(c,d=[e])".to_owned())]);
    }
}
