//! The house rules of language: sentences with a subject, file names that are nouns, type names with one
//! meaning.
//!
//! As in `tidy`, each rule is a pure function from files to violations, tried on this repository and on a
//! planted violation. The rules see forms, not meaning: a text that passes can still be unclear.

use klnode_tests::repo_source::{
    Source, Violation, assert_none, repository, split, string_literals,
};
use std::collections::{BTreeMap, BTreeSet};

/// Most headless clauses per 10,000 words of comments, documents and messages.
const HEADLESS_MAX: f64 = 5.0;

/// A literal with fewer words is a key or a name, not a sentence.
const SENTENCE_WORDS_MIN: usize = 3;

/// Pronouns that stand for no particular thing wherever they occur.
const VAGUE: [&str; 8] =
    ["nobody", "somebody", "anybody", "whoever", "whomever", "someone", "anyone", "everybody"];

/// Pronouns that begin a headless clause where a clause begins.
const OPENERS: [&str; 4] = ["what", "whoever", "whatever", "who"];

/// Words after which a clause begins.
const JOINERS: [&str; 13] = [
    "and", "but", "or", "that", "than", "if", "where", "when", "while", "because", "so", "unless",
    "for",
];

/// Files whose text is data, or belongs to the past.
const NOT_OURS: [&str; 4] = ["CHANGELOG.md", "fixtures/", "tests-data/", "node/model/"];

/// File names that end like an adjective, a participle or an adverb and are nouns or verbs all the same.
const NOUNS: [&str; 14] = [
    "briefing",
    "finding",
    "forgetting",
    "fuzzing",
    "joining",
    "logging",
    "pairing",
    "parsing",
    "peering",
    "scoring",
    "spelling",
    "tally",
    "testing",
    "vouching",
];

/// Adjectives and participles that no ending gives away.
const ADJECTIVES: [&str; 48] = [
    "broken",
    "canonical",
    "chosen",
    "clean",
    "current",
    "early",
    "empty",
    "fast",
    "final",
    "foreign",
    "fresh",
    "frozen",
    "given",
    "global",
    "golden",
    "gone",
    "held",
    "hidden",
    "hostile",
    "inbound",
    "internal",
    "kept",
    "known",
    "late",
    "left",
    "local",
    "lost",
    "new",
    "old",
    "open",
    "other",
    "outbound",
    "own",
    "pending",
    "private",
    "public",
    "quick",
    "remote",
    "same",
    "seen",
    "sent",
    "shown",
    "spent",
    "stale",
    "taken",
    "told",
    "true",
    "written",
];

/// Files that still have such a name. The list only gets shorter: a new file is named after a noun.
const UNRENAMED: [&str; 1] = ["node/cli/src/foreign/mod.rs"];

/// Type names that stand for a role every module may have; the module completes the name.
const ROLES: [&str; 12] = [
    "Args", "Error", "Handle", "Key", "Limits", "Options", "Params", "Request", "Row", "Settings",
    "Setup", "State",
];

/// Type names that two layers share because they mean the same thing: a section of the configuration and the
/// rules that it sets, or a value and its form in the API.
const LAYERED: [&str; 21] = [
    "Admission",
    "AtomResult",
    "Briefing",
    "Budget",
    "Citation",
    "Confidence",
    "Contribution",
    "Embedder",
    "Engine",
    "Entry",
    "Fallback",
    "NewEntry",
    "NewFinding",
    "NewTask",
    "ShareFlag",
    "Trust",
    "Filters",
    "Finish",
    "Edit",
    "Accept",
    "Weight",
];

#[test]
fn sentences_have_a_subject() {
    let (clauses, words) = headless(&repository().sources);
    let rate = clauses.len() as f64 * 10_000.0 / words.max(1) as f64;
    let list: Vec<String> = clauses.iter().map(|clause| format!("  {clause}")).collect();
    assert!(
        rate <= HEADLESS_MAX,
        "{} headless clauses in {words} words: {rate:.1} per 10,000, at most {HEADLESS_MAX} allowed\n{}",
        clauses.len(),
        list.join("\n")
    );
}

#[test]
fn a_file_is_named_after_a_noun() {
    let found: Vec<Violation> = repository().sources.iter().flat_map(noun_names).collect();
    assert_none(&found);
}

#[test]
fn the_name_of_a_test_has_a_subject() {
    let found: Vec<Violation> = repository().sources.iter().flat_map(vague_tests).collect();
    assert_none(&found);
}

#[test]
fn a_type_name_has_one_meaning() {
    assert_none(&shared_type_names(&repository().sources));
}

#[test]
fn every_exception_is_needed() {
    let sources = &repository().sources;
    let shared = type_places(sources);
    for name in ROLES.into_iter().chain(LAYERED) {
        assert!(shared.contains_key(name), "`{name}` names one type, so it needs no exception");
    }
    let stems: BTreeSet<&str> = sources.iter().filter(|s| s.is_rust()).map(stem).collect();
    for name in NOUNS {
        assert!(stems.contains(name), "no file is called {name}.rs, so it needs no exception");
    }
    for path in UNRENAMED {
        let named = sources.iter().any(|source| source.path == path && is_adjectival(source));
        assert!(named, "{path} is gone, so it needs no exception");
    }
}

/// The headless clauses of all texts, and the number of words that were read.
fn headless(sources: &[Source]) -> (Vec<Violation>, usize) {
    let mut found = Vec::new();
    let mut words = 0;
    for source in sources {
        if NOT_OURS.iter().any(|part| source.path.contains(part)) {
            continue;
        }
        for (line, text) in prose(source) {
            words += text.split_whitespace().count();
            for clause in clauses(&text) {
                let way_out = "name the subject: the peer, the caller, an entry, this function";
                found.push(Violation::new(&source.path, line, format!("`{clause}`"), way_out));
            }
        }
    }
    (found, words)
}

/// The paragraphs of a text that people read, with the line each begins on: documents without their code,
/// comments of Rust, TOML and the scripts of the gate, and literals of three words or more.
fn prose(source: &Source) -> Vec<(usize, String)> {
    if source.path.ends_with(".md") {
        return document_paragraphs(&source.text);
    }
    let is_script = source.path.starts_with(".ci/") || source.path.ends_with(".sh");
    if is_script || source.path.ends_with(".toml") {
        let lines = source.text.lines().map(|line| line.trim_start().strip_prefix('#'));
        return comment_paragraphs(lines.map(Option::unwrap_or_default));
    }
    if !source.is_rust() {
        return Vec::new();
    }
    let comments = split(&source.text).comments;
    let mut found = comment_paragraphs(comments.lines());
    let is_sentence = |text: &str| text.split_whitespace().count() >= SENTENCE_WORDS_MIN;
    found.extend(string_literals(&source.text).into_iter().filter(|(_, text)| is_sentence(text)));
    found
}

/// The comments on these lines; a line without text ends a paragraph.
fn comment_paragraphs<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(usize, String)> {
    let mut found = Paragraphs::default();
    for (at, line) in lines.enumerate() {
        match line.trim().trim_start_matches(['/', '!', '#']).trim() {
            "" => found.end(),
            text => found.add(at + 1, text),
        }
    }
    found.end();
    found.done
}

/// Collects lines into paragraphs.
#[derive(Default)]
struct Paragraphs {
    done: Vec<(usize, String)>,
    open: Option<(usize, String)>,
}

impl Paragraphs {
    fn add(&mut self, line: usize, text: &str) {
        let (_, open) = self.open.get_or_insert_with(|| (line, String::new()));
        open.push(' ');
        open.push_str(&without_code(text));
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }
}

fn document_paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found = Paragraphs::default();
    let mut in_fence = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            found.end();
        } else if in_fence || line.trim().is_empty() {
            found.end();
        } else {
            let bullets = ['-', '*', '#', '>', '|', ' '];
            found.add(at + 1, line.trim_start_matches(bullets));
        }
    }
    found.end();
    found.done
}

/// A line with a placeholder for each piece of code in backticks.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').step_by(2).collect();
    parts.join("x")
}

/// The headless clauses of one paragraph. Questions are none.
fn clauses(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let ends = word.ends_with(['.', ',', ';', ':', '!', '?', ')']);
        let before = at.checked_sub(1).map(|before| words[before]);
        let begins = before.is_none_or(|before| {
            before.ends_with(['.', ',', ';', ':', '(', '!', '?'])
                || JOINERS.contains(&before.to_lowercase().as_str())
        });
        let next = words.get(at + 1).copied().unwrap_or_default();
        let opens =
            OPENERS.contains(&bare.as_str()) && begins && !ends && !next.is_empty() && next != "to";
        let is_question = words[at..]
            .iter()
            .find(|word| word.ends_with(['.', '?', '!']))
            .is_some_and(|w| w.ends_with('?'));
        if (opens || VAGUE.contains(&bare.as_str())) && !is_question {
            let from = at.saturating_sub(2);
            found.push(words[from..words.len().min(at + 4)].join(" "));
        }
    }
    found
}

fn noun_names(source: &Source) -> Vec<Violation> {
    if !is_adjectival(source) || UNRENAMED.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let what = format!("`{}` is an adjective, a participle or an adverb", stem(source));
    let way_out = "name the file after the noun it defines; a noun of this form goes into NOUNS";
    vec![Violation::new(&source.path, 1, what, way_out)]
}

/// Tests whose names begin with a pronoun that stands for no particular thing, or contain one.
fn vague_tests(source: &Source) -> Vec<Violation> {
    if !source.is_rust() {
        return Vec::new();
    }
    let code = split(&source.text).code;
    let mut is_test = false;
    let mut found = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            continue;
        }
        let name = line.trim_start_matches("async ").strip_prefix("fn ");
        let name = name.and_then(|rest| rest.split('(').next()).filter(|_| is_test);
        is_test = false;
        let Some(name) = name else { continue };
        let mut words = name.split('_');
        if words.clone().any(|word| VAGUE.contains(&word))
            || words.next().is_some_and(|word| OPENERS.contains(&word))
        {
            let way_out = "name the subject, as in `quarantined_records_are_not_forwarded`";
            found.push(Violation::new(&source.path, at + 1, format!("`{name}`"), way_out));
        }
    }
    found
}

/// Whether the name of a Rust file is a lone adjective, participle or adverb.
fn is_adjectival(source: &Source) -> bool {
    let stem = stem(source);
    let has_ending = |ending: &str| stem.len() > ending.len() + 2 && stem.ends_with(ending);
    let by_ending = || ["ed", "ing", "ly", "able", "ful", "less"].into_iter().any(has_ending);
    source.is_rust()
        && !stem.contains(['_', '-'])
        && !NOUNS.contains(&stem)
        && (ADJECTIVES.contains(&stem) || by_ending())
}

/// The name of a file; for `mod.rs` that of its folder.
fn stem(source: &Source) -> &str {
    let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap_or_default()
}

fn shared_type_names(sources: &[Source]) -> Vec<Violation> {
    let allowed: BTreeSet<&str> = ROLES.into_iter().chain(LAYERED).collect();
    let shared =
        type_places(sources).into_iter().filter(|(name, _)| !allowed.contains(name.as_str()));
    let way_out = "give each its own name; one meaning in two layers goes into LAYERED";
    shared
        .flat_map(|(name, places)| {
            let what = format!("`{name}` names {} types", places.len());
            places.into_iter().map(move |(path, line)| Violation::new(path, line, &*what, way_out))
        })
        .collect()
}

/// The type names of the product that occur more than once, with their places.
fn type_places(sources: &[Source]) -> BTreeMap<String, Vec<(&str, usize)>> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_product(&source.path)) {
        let code = split(&source.text).code;
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (at, line) in code.lines().enumerate() {
            if let Some(name) = defined_type(line) {
                places.entry(name.to_owned()).or_default().push((&source.path, at + 1));
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// Whether a file belongs to the product rather than to its tests.
fn is_product(path: &str) -> bool {
    let is_test = path.starts_with("tests/") || path.contains("/tests");
    path.ends_with(".rs")
        && !is_test
        && !path.starts_with("examples/")
        && !path.starts_with("fuzz/")
}

/// The type that a line at the left margin defines.
fn defined_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ").or_else(|| {
        let inside = line.strip_prefix("pub(")?;
        inside.split_once(") ").map(|(_, rest)| rest)
    });
    let rest = rest.unwrap_or(line);
    let words = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = words.iter().find_map(|word| rest.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// Each rule on planted files: where it must find something, and nowhere else.
mod planted {
    use super::*;

    fn texts(path: &str, text: &str) -> usize {
        headless(&[Source::new(path, text)]).0.len()
    }

    #[test]
    fn a_clause_without_a_subject_is_found() {
        assert_eq!(texts("docs/a.md", "What was served is logged.\n"), 1);
        assert_eq!(texts("docs/a.md", "A peer asks, and whoever waits is told.\n"), 1);
        assert_eq!(texts("crdt/src/a.rs", "/// Nobody reads it.\nfn f() {}\n"), 1);
        assert_eq!(texts("crdt/src/a.rs", "fn f() { say(\"what you see is kept\"); }\n"), 1);
        let wrapped = "fn f() { say(\"A peer asks, \\\n    and whoever waits is told\"); }\n";
        assert_eq!(texts("crdt/src/a.rs", wrapped), 1);
        assert_eq!(texts("config/a.toml", "# What is set here counts.\nkey = 1\n"), 1);
    }

    #[test]
    fn questions_code_and_objects_are_no_headless_clauses() {
        assert_eq!(texts("docs/a.md", "What is it? It says what it does.\n"), 0);
        assert_eq!(texts("docs/a.md", "```\nwhat is this\n```\n"), 0);
        assert_eq!(texts("crdt/src/a.rs", "fn f() { let what = who(); }\n"), 0);
    }

    #[test]
    fn a_file_named_after_a_participle_is_found() {
        let names = |path: &str| noun_names(&Source::new(path, "")).len();
        assert_eq!(names("node/store/src/opened.rs"), 1);
        assert_eq!(names("node/store/src/waiting.rs"), 1);
        assert_eq!(names("node/api/src/portable.rs"), 1);
        assert_eq!(names("node/api/src/kept.rs"), 1);
        assert_eq!(names("node/api/src/foreign/mod.rs"), 1);
        assert_eq!(names("node/api/src/foreign/entry.rs"), 0);
        assert_eq!(names("node/store/src/table_cache.rs"), 0);
        assert_eq!(names("node/query/src/briefing.rs"), 0);
    }

    #[test]
    fn a_test_name_without_a_subject_is_found() {
        let names = |text: &str| vague_tests(&Source::new("crdt/src/a.rs", text)).len();
        assert_eq!(names("#[test]\nfn what_was_kept_goes() {}\n"), 1);
        assert_eq!(names("#[tokio::test]\nasync fn a_flood_hides_nobody_else() {}\n"), 1);
        assert_eq!(names("#[test]\nfn a_record_is_kept() {}\nfn what_is_it() {}\n"), 0);
    }

    #[test]
    fn a_type_name_for_two_things_is_found() {
        let one = Source::new("crdt/src/a.rs", "pub struct Verdict;\n");
        let other = Source::new("scoring/src/b.rs", "pub(crate) enum Verdict {}\n");
        let role = Source::new("scoring/src/c.rs", "pub struct Error;\nstruct Error;\n");
        assert_eq!(shared_type_names(&[one.clone(), other]).len(), 2);
        assert_eq!(shared_type_names(&[one, role]).len(), 0);
    }
}
