//! The repository's own history as a world: checkouts of its commits, the sentences of its documents
//! that name a file or a symbol, and the text that each of them describes.
//!
//! It runs git, and reports why it cannot where git or the history is missing.

use klnode_git::GitCheckout;
use klnode_scoring::predicate::{Checkout, Predicate};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The commit at which every walk ends, so that later commits do not change the figures.
const END: &str = "ecd18d3aa757d3cb70a0803174856b738f375181";

/// Fewest commits that are worth a replay.
const COMMITS_MIN: usize = 50;
/// Length of a sentence, in characters.
const SENTENCE_CHARACTERS: std::ops::RangeInclusive<usize> = 40..=400;
/// Words that begin a definition in Rust.
const DEFINITIONS: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "type", "mod"];

/// The text that a sentence describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DescribedText {
    /// The first paragraph of the file's module documentation.
    Opening,
    /// The line that defines the symbol.
    Definition,
}

/// A sentence of a document that names a file or a symbol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DocumentedFact {
    /// The file or the symbol, as the sentence spells it.
    pub(super) subject: String,
    /// The file that the sentence is about.
    pub(super) path: String,
    pub(super) describes: DescribedText,
    /// The predicate that an author would add: it holds while the described text is unchanged.
    pub(super) predicate: String,
    /// Heading above the sentence.
    pub(super) heading: String,
    pub(super) sentence: String,
}

/// A clone of the repository, checked out at one commit after another.
pub(super) struct GitHistory {
    folder: TempDir,
    /// Commits of the main line, oldest first.
    pub(super) commits: Vec<String>,
}

/// The present state of the clone.
pub(super) struct Snapshot {
    /// All documented facts.
    pub(super) facts: BTreeSet<DocumentedFact>,
    /// Definition lines by path and symbol.
    definitions: BTreeMap<(String, String), String>,
    /// First paragraph of the module documentation, by path: its lines.
    openings: BTreeMap<String, Vec<String>>,
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
    let output = output.map_err(|error| format!("git could not be run: {error}."))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(format!("git {} failed: {said}", arguments.join(" ")))
        }
    }
}

impl GitHistory {
    /// Clones the repository of this checkout.
    pub(super) fn open() -> Result<Self, String> {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let shallow = git(&source, &["rev-parse", "--is-shallow-repository"])?;
        if shallow.trim() == "true" {
            return Err("The checkout is a shallow clone without its history.".into());
        }
        let listed = git(&source, &["rev-list", "--first-parent", "--reverse", END]);
        let listed = listed
            .map_err(|_| format!("The checkout lacks commit {END}, at which the walk ends."))?;
        let commits: Vec<String> = listed.lines().map(str::to_owned).collect();
        if commits.len() < COMMITS_MIN {
            return Err(format!("The history has only {} commits.", commits.len()));
        }
        let top = git(&source, &["rev-parse", "--show-toplevel"])?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let to = folder.path().join("clone").display().to_string();
        git(&source, &["clone", "--quiet", "--no-checkout", top.trim(), &to])?;
        Ok(Self { folder, commits })
    }

    /// Root of the clone.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    /// Checks a commit out and reads it.
    pub(super) fn visit(&self, commit: &str) -> Result<Snapshot, String> {
        let root = self.path();
        git(&root, &["checkout", "--quiet", "--force", "--detach", commit])?;
        let tracked = git(&root, &["ls-files"])?;
        let paths: Vec<&str> = tracked.lines().collect();
        let mut snapshot = Snapshot {
            facts: BTreeSet::new(),
            definitions: BTreeMap::new(),
            openings: BTreeMap::new(),
        };
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        for path in paths.iter().filter(|path| path.ends_with(".rs")) {
            snapshot.read_source(path, &read(path));
        }
        let symbols = snapshot.unique_symbols();
        let checkout = GitCheckout::open(&root).map_err(|error| error.to_string())?;
        let mut found = BTreeSet::new();
        for path in
            paths.iter().filter(|path| path.ends_with(".md") && !path.contains("node/model"))
        {
            for (heading, sentence) in sentences(&read(path)) {
                let named = spans(&sentence).find_map(|span| {
                    let (path, describes) = match resolve(span, &paths) {
                        Some(path) => (path, DescribedText::Opening),
                        None => (symbols.get(symbol(span))?.as_str(), DescribedText::Definition),
                    };
                    Some(DocumentedFact {
                        subject: span.to_owned(),
                        path: path.to_owned(),
                        describes,
                        predicate: snapshot.predicate(path, symbol(span), describes, &checkout),
                        heading: heading.clone(),
                        sentence: sentence.clone(),
                    })
                });
                found.extend(named);
            }
        }
        snapshot.facts = found;
        Ok(snapshot)
    }
}

impl Snapshot {
    fn read_source(&mut self, path: &str, text: &str) {
        let opening = text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .take_while(|line| !line.trim().is_empty())
            .map(str::to_owned)
            .collect();
        self.openings.insert(path.to_owned(), opening);
        for line in text.lines() {
            let mut words =
                line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
            while let Some(word) = words.next() {
                if DEFINITIONS.contains(&word) {
                    if let Some(name) = words.next().filter(|name| is_symbol(name)) {
                        let key = (path.to_owned(), name.to_owned());
                        self.definitions.entry(key).or_insert_with(|| line.trim().to_owned());
                    }
                    break;
                }
                if !matches!(word, "pub" | "crate" | "super" | "in" | "unsafe" | "async") {
                    break;
                }
            }
        }
    }

    /// Symbols that exactly one file defines.
    fn unique_symbols(&self) -> BTreeMap<String, String> {
        let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (path, name) in self.definitions.keys() {
            files.entry(name).or_default().insert(path);
        }
        let unique = files.into_iter().filter(|(_, paths)| paths.len() == 1);
        unique.filter_map(|(name, paths)| Some((name.into(), (*paths.first()?).into()))).collect()
    }

    /// The text that a fact describes: the definition of its symbol, or the opening of its file;
    /// `None` if it is gone.
    pub(super) fn described(&self, fact: &DocumentedFact) -> Option<String> {
        match fact.describes {
            DescribedText::Opening => self.openings.get(&fact.path).map(|lines| lines.join("\n")),
            DescribedText::Definition => {
                let key = (fact.path.clone(), symbol(&fact.subject).to_owned());
                self.definitions.get(&key).cloned()
            }
        }
    }

    /// The predicate that holds while a described text is unchanged.
    fn predicate(
        &self,
        path: &str,
        name: &str,
        describes: DescribedText,
        checkout: &GitCheckout,
    ) -> String {
        let exact = match describes {
            DescribedText::Opening => self.opening_predicate(path, checkout),
            DescribedText::Definition => self
                .definitions
                .get(&(path.to_owned(), name.to_owned()))
                .map(|line| format!("text:{path}~\"^\\s*{}$\"", escaped(line)))
                .filter(|predicate| Predicate::parse(predicate).is_ok()),
        };
        exact.unwrap_or_else(|| match describes {
            DescribedText::Opening => format!("path:{path}"),
            // A line that is too long for a pattern.
            DescribedText::Definition => format!("text:{path}~\"\\b{name}\\b\""),
        })
    }

    /// The digest of the opening and of the line after it, which ends it.
    fn opening_predicate(&self, path: &str, checkout: &GitCheckout) -> Option<String> {
        let lines = self.openings.get(path).filter(|lines| !lines.is_empty())?.len();
        let lines = u32::try_from(lines).ok()?;
        let content = std::fs::read(checkout.path().join(path)).ok()?;
        let digest = |bytes: &[u8]| checkout.digest(bytes);
        Predicate::of_content(path, Some((1, lines + 1)), &content, digest)
            .map(|predicate| predicate.to_string())
    }
}

/// The name in a text such as `module::name()`.
fn symbol(span: &str) -> &str {
    span.rsplit("::").next().unwrap_or(span).trim_end_matches("()")
}

/// A pattern that matches exactly this line.
fn escaped(line: &str) -> String {
    let mut pattern = String::new();
    for letter in line.chars() {
        if "()[]{}.*+?|^$\\\"".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Whether a name is worth a sentence: longer than a word of the language.
fn is_symbol(name: &str) -> bool {
    name.len() > 5 && (name.contains('_') || name.chars().any(char::is_uppercase))
}

/// The texts between backticks.
fn spans(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('`').skip(1).step_by(2).filter(|span| !span.is_empty())
}

/// The Rust file that a text names, in full or by the end of its path; `None` if several fit.
fn resolve<'p>(span: &str, paths: &[&'p str]) -> Option<&'p str> {
    if !span.ends_with(".rs") {
        return None;
    }
    let crate_path = span.replacen('/', "/src/", 1);
    let fits = |path: &&&str| {
        **path == span
            || path.ends_with(&format!("/{span}"))
            || path.ends_with(&format!("/{crate_path}"))
    };
    let mut found = paths.iter().filter(fits);
    let first = found.next()?;
    found.next().is_none().then_some(*first)
}

/// Sentences of a document with the heading above each.
fn sentences(text: &str) -> Vec<(String, String)> {
    let (mut found, mut heading, mut paragraph) = (Vec::new(), String::new(), String::new());
    let mut is_code = false;
    for line in text.lines().chain([""]) {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let begins =
            line.starts_with(['-', '*', '|']) || line.starts_with(|c: char| c.is_numeric());
        if is_code || line.is_empty() || line.starts_with('#') || begins {
            let whole = std::mem::take(&mut paragraph);
            let parts = whole.split_inclusive(". ").map(|part| part.trim().to_owned());
            let fits = |part: &String| SENTENCE_CHARACTERS.contains(&part.chars().count());
            found.extend(parts.filter(fits).map(|part| (heading.clone(), part)));
        }
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        } else if !is_code && !line.starts_with("```") {
            paragraph.push_str(line.trim_start_matches(['-', '*', '|', ' ']));
            paragraph.push(' ');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{DescribedText, DocumentedFact, GitHistory, Snapshot, git, resolve, sentences};
    use klnode_git::GitCheckout;
    use klnode_scoring::predicate::{Params, Predicate, PredicateOutcome, evaluate};

    #[test]
    fn a_sentence_keeps_its_heading_and_a_file_is_found_by_the_end_of_its_path() {
        let text =
            "# Search\n\nThe module `query/candidates.rs` asks the keyword index. It is fast.\n";
        let found = sentences(text);
        let sentence = "The module `query/candidates.rs` asks the keyword index.".to_owned();
        assert_eq!(found, [("Search".to_owned(), sentence)]);
        let paths = ["node/query/src/candidates.rs", "node/query/src/search.rs"];
        assert_eq!(resolve("query/candidates.rs", &paths), Some(paths[0]));
        assert_eq!(resolve("search.rs", &paths), Some(paths[1]));
        assert_eq!(resolve("absent.rs", &paths), None);
    }

    const DOCUMENT: &str = "# Parts\n\n- The file `src/queue.rs` holds the queue of the writer.\n\
        - The function `push_back` appends a job at the end of the queue.\n";
    const CODE: &str = "//! The queue.\n//! It is bounded.\n//!\n//! More.\n\
        pub fn push_back(&mut self, job: &[Job]) -> bool {\n";

    /// Commits the two files and reads the commit.
    fn commit(history: &GitHistory, code: &str) -> Snapshot {
        let root = history.path();
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/queue.rs"), code).unwrap();
        std::fs::write(root.join("README.md"), DOCUMENT).unwrap();
        git(&root, &["add", "."]).unwrap();
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        git(&root, &[&author[..], &["commit", "--quiet", "-m", "all: Change"]].concat()).unwrap();
        history.visit(git(&root, &["rev-parse", "HEAD"]).unwrap().trim()).unwrap()
    }

    #[test]
    fn an_anchor_breaks_exactly_when_the_described_text_changes() {
        let history = GitHistory { folder: tempfile::tempdir().unwrap(), commits: Vec::new() };
        std::fs::create_dir(history.path()).unwrap();
        git(&history.path(), &["init", "--quiet"]).unwrap();
        let first = commit(&history, CODE);
        let facts: Vec<&DocumentedFact> = first.facts.iter().collect();
        let kinds: Vec<DescribedText> = facts.iter().map(|fact| fact.describes).collect();
        assert_eq!(kinds, [DescribedText::Definition, DescribedText::Opening]);
        for (change, stale) in [
            (CODE.replace("More.", "Less."), [false, false]),
            (CODE.replace("&[Job]", "&Job"), [true, false]),
            (CODE.replace("It is bounded.", "It is not bounded."), [false, true]),
            (CODE.replace("//!\n", "//! It blocks.\n//!\n"), [false, true]),
            (String::new(), [true, true]),
        ] {
            let now = commit(&history, &change);
            let checkout = GitCheckout::open(&history.path()).unwrap();
            for (fact, stale) in facts.iter().zip(stale) {
                assert_eq!(first.described(fact) != now.described(fact), stale, "{fact:?}");
                let predicate = Predicate::parse(&fact.predicate).unwrap();
                let outcome = evaluate(&predicate, &checkout, &Params::default());
                let is_broken = matches!(outcome, PredicateOutcome::Broken { .. });
                assert_eq!(is_broken, stale, "{} in {change}", fact.predicate);
            }
        }
    }
}
