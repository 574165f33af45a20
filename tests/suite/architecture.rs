//! Architecture rules that can be checked in the text of the repository.
//!
//! Each rule is a pure function from files to violations. It runs twice: on this repository, and on
//! a planted violation, which proves that the rule can find something. Rules of form (docs, names,
//! links) are in `tidy`; this file checks dependencies only.

mod circles;
mod planted_violations;

use circles::circles;
use klnode_tests::repo_source::{
    Mention, Source, Violation, assert_none, mentions, repository, split,
};
use toml::{Table, Value};

/// All crates of the workspace, for members that may use any of them.
const ALL: &[&str] = &[
    "klnode",
    "klnode-api-types",
    "klnode-cli",
    "klnode-client",
    "klnode-config",
    "klnode-crdt",
    "klnode-doctor",
    "klnode-document",
    "klnode-embed",
    "klnode-engine",
    "klnode-federation",
    "klnode-formats",
    "klnode-git",
    "klnode-home",
    "klnode-http",
    "klnode-index",
    "klnode-integrations",
    "klnode-page",
    "klnode-query",
    "klnode-replication",
    "klnode-scoring",
    "klnode-server",
    "klnode-store",
    "klnode-text",
    "klnode-transformer",
];

/// The crates that the reading and writing side of the node is made of.
const NODE_CORE: &[&str] = &[
    "klnode-api-types",
    "klnode-config",
    "klnode-crdt",
    "klnode-doctor",
    "klnode-document",
    "klnode-embed",
    "klnode-engine",
    "klnode-federation",
    "klnode-git",
    "klnode-home",
    "klnode-http",
    "klnode-index",
    "klnode-page",
    "klnode-query",
    "klnode-replication",
    "klnode-scoring",
    "klnode-store",
    "klnode-text",
];

/// Programs that other tools start: they talk to the node through its client.
const INTEGRATIONS: &[&str] = &[
    "klnode-api-types",
    "klnode-client",
    "klnode-crdt",
    "klnode-git",
    "klnode-home",
    "klnode-http",
    "klnode-scoring",
    "klnode-text",
];

/// The command line, a client of the node. `klnode` itself runs the commands that open a store.
const CLI: &[&str] = &[
    "klnode-api-types",
    "klnode-client",
    "klnode-config",
    "klnode-crdt",
    "klnode-formats",
    "klnode-git",
    "klnode-home",
    "klnode-integrations",
    "klnode-scoring",
    "klnode-text",
];

/// Each member and the workspace crates it may depend on. The order is that of the layers: a crate uses
/// only crates above it in this list.
const ARROWS: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("crdt", &[]),
    ("scoring", &["klnode-crdt"]),
    ("federation", &["klnode-crdt"]),
    ("crdt/document", &["klnode-crdt"]),
    ("node/text", &[]),
    ("node/formats", &[]),
    ("node/home", &[]),
    ("node/git", &["klnode-scoring"]),
    ("node/api-types", &["klnode-crdt", "klnode-scoring"]),
    ("node/client", &["klnode-api-types", "klnode-crdt", "klnode-home"]),
    ("node/http", &["klnode-api-types"]),
    ("node/page", &["klnode-api-types", "klnode-http"]),
    ("node/integrations", INTEGRATIONS),
    ("node/cli", CLI),
    ("node/embed", &[]),
    ("node/transformer", &["klnode-embed"]),
    ("node/store", &["klnode-crdt", "klnode-federation", "klnode-home", "klnode-scoring"]),
    (
        "node/doctor",
        &["klnode-api-types", "klnode-crdt", "klnode-home", "klnode-store", "klnode-text"],
    ),
    ("node/index", &["klnode-crdt", "klnode-embed", "klnode-scoring", "klnode-store"]),
    (
        "node/engine",
        &[
            "klnode-crdt",
            "klnode-document",
            "klnode-federation",
            "klnode-home",
            "klnode-scoring",
            "klnode-store",
        ],
    ),
    (
        "node/query",
        &[
            "klnode-config",
            "klnode-crdt",
            "klnode-document",
            "klnode-embed",
            "klnode-engine",
            "klnode-git",
            "klnode-index",
            "klnode-scoring",
            "klnode-store",
            "klnode-text",
        ],
    ),
    (
        "node/replication",
        &[
            "klnode-config",
            "klnode-crdt",
            "klnode-engine",
            "klnode-federation",
            "klnode-query",
            "klnode-store",
        ],
    ),
    ("node/server", NODE_CORE),
    ("node", ALL),
    ("examples", ALL),
    ("tests", ALL),
    (FUZZ, &["klnode-tests"]),
];

/// Not a member: cargo-fuzz builds it with its own flags, so it inherits no version either.
const FUZZ: &str = "fuzz";

/// Largest share of the lines under `node/` that one crate may hold, in per cent.
const CRATE_SHARE_MAX: usize = 30;

/// Pure code: it reads only arguments and writes only return values.
const PURE: &[&str] = &["crdt/src/", "crdt/document/src/", "scoring/src/", "federation/src/proto/"];

/// Path prefixes that pure code must not name.
const IMPURE_PATHS: &[(&str, &str)] = &[
    ("std::env", "the environment comes in as arguments"),
    ("std::fs", "files are read and written by the node"),
    ("std::net", "sockets belong to federation's net"),
    ("std::thread", "threads belong to the node"),
    ("tokio", "the driver is asynchronous, the rules are not"),
    ("tracing", "pure code is silent: return the message"),
    ("rand", "seeds and random bytes come in as arguments"),
    ("getrandom", "seeds and random bytes come in as arguments"),
];

/// Path segments that pure code must not name.
const IMPURE_WORDS: &[(&str, &str)] = &[
    ("SystemTime", "time comes in as an argument"),
    ("Instant", "time comes in as an argument"),
    ("OsRng", "random bytes come in as arguments"),
    ("HashMap", "its order depends on a seed: take BTreeMap"),
    ("HashSet", "its order depends on a seed: take BTreeSet"),
    ("async", "the driver is asynchronous, the rules are not"),
];

/// Macros that pure code must not call.
const IMPURE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Pure crates, whose clippy.toml replaces the workspace's.
const OWN_CLIPPY: &[&str] = &["crdt", "crdt/document", "scoring", "federation"];

#[test]
fn the_crates_have_only_the_allowed_dependencies() {
    assert_none(&arrows(&repository().sources));
}

#[test]
fn no_crate_holds_too_much_of_the_node() {
    assert_none(&crate_shares(&repository().sources));
}

#[test]
fn sibling_modules_form_no_circle() {
    assert_none(&circles(&repository().sources));
}

#[test]
fn a_write_begins_in_one_file_of_the_store() {
    assert_none(&one_writer(&repository().sources));
}

#[test]
fn the_network_library_is_named_only_in_federation_net() {
    assert_none(&network_stays_in_net(&repository().sources));
}

#[test]
fn the_pure_crates_use_no_clock_no_randomness_and_no_io() {
    assert_none(&purity(&repository().sources));
}

#[test]
fn a_pure_crate_repeats_the_bans_of_the_workspace() {
    assert_none(&repeated_bans(&repository().sources));
}

#[test]
fn every_dependency_has_a_comment_with_its_purpose() {
    assert_none(&dependency_reasons(&repository().sources));
}

#[test]
fn every_member_takes_its_versions_from_the_workspace() {
    assert_none(&inherited_versions(&repository().sources));
}

/// Dependencies of a manifest: their table, key and value.
fn dependencies(manifest: &Table) -> Vec<(String, &str, &Value)> {
    const TABLES: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let scopes = targets.filter_map(|(_, scope)| scope.as_table());
    let mut found = Vec::new();
    for scope in scopes.chain([manifest]) {
        for table in TABLES {
            let entries = scope.get(table).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(key, value)| (table.to_owned(), key.as_str(), value)));
        }
    }
    found
}

/// Manifests of the members with their folders, and a violation for each invalid one.
fn manifests(sources: &[Source]) -> (Vec<(&Source, &str, Table)>, Vec<Violation>) {
    let (mut parsed, mut broken) = (Vec::new(), Vec::new());
    for source in sources {
        let Some(folder) = source.path.strip_suffix("/Cargo.toml") else { continue };
        match source.text.parse() {
            Ok(table) => parsed.push((source, folder, table)),
            Err(_) => broken.push(Violation::new(&source.path, 1, "is not TOML", "mend it")),
        }
    }
    (parsed, broken)
}

/// Line of a manifest on which a key is set.
fn line_of(text: &str, key: &str) -> usize {
    let sets = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with(['.', '=', ' ']))
    };
    text.lines().position(sets).map_or(1, |at| at + 1)
}

fn arrows(sources: &[Source]) -> Vec<Violation> {
    let (manifests, mut found) = manifests(sources);
    for (folder, _) in ARROWS {
        if !manifests.iter().any(|(_, present, _)| present == folder) {
            let what = "a crate with arrows of its own is missing";
            found.push(Violation::new(folder, 1, what, "restore it, or change ARROWS with an ADR"));
        }
    }
    for (source, folder, manifest) in &manifests {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| name == folder) else {
            let way_out = "add it to ARROWS in the suite, with a page in docs/adr";
            found.push(Violation::new(&source.path, 1, "a crate without arrows", way_out));
            continue;
        };
        for (table, key, value) in dependencies(manifest) {
            let name = value.get("package").and_then(Value::as_str).unwrap_or(key);
            let is_ours = name == "klnode" || name.starts_with("klnode-");
            if table == "dev-dependencies" || !is_ours || allowed.contains(&name) {
                continue;
            }
            let what = format!("{folder} must not depend on {name}");
            let way_out = "let `node` join the two; a new arrow needs a page in docs/adr";
            found.push(Violation::new(&source.path, line_of(&source.text, key), what, way_out));
        }
    }
    found
}

fn crate_shares(sources: &[Source]) -> Vec<Violation> {
    let mut lines: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for source in
        sources.iter().filter(|source| source.is_rust() && source.path.starts_with("node/"))
    {
        let folder = source.path.split("/src/").next().unwrap_or_default();
        *lines.entry(folder).or_default() += source.text.lines().count();
    }
    let all: usize = lines.values().sum();
    let large = lines.into_iter().filter(|(_, count)| count * 100 > all * CRATE_SHARE_MAX);
    let way_out = "split it along the seam between its modules";
    large
        .map(|(folder, count)| {
            let what = format!("{count} of {all} lines, more than {CRATE_SHARE_MAX} %");
            Violation::new(folder, 1, what, way_out)
        })
        .collect()
}

fn one_writer(sources: &[Source]) -> Vec<Violation> {
    let is_test_file = |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/");
    let mut sites = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        if !source.path.starts_with("node/") || is_test_file(&source.path) {
            continue;
        }
        let named = mentions(&split(&source.text).code);
        let begins = |m: &&Mention| !m.is_test && m.path.iter().any(|word| word == "begin_write");
        sites.extend(named.iter().find(begins).map(|m| (source.path.as_str(), m.line)));
    }
    let way_out = "send a command to the writer: `begin_write` stands in one file of node/store";
    match sites.as_slice() {
        [] => vec![Violation::new("node/store", 1, "no file begins a write", way_out)],
        [(path, _)] if path.starts_with("node/store") => Vec::new(),
        many => {
            let what = format!("one of {} files that begin a write", many.len());
            many.iter().map(|(path, line)| Violation::new(path, *line, &*what, way_out)).collect()
        }
    }
}

fn network_stays_in_net(sources: &[Source]) -> Vec<Violation> {
    let way_out = "speak to it through federation's net, the one place that names libp2p";
    let (manifests, mut found) = manifests(sources);
    for (source, folder, manifest) in &manifests {
        for (_, key, _) in dependencies(manifest) {
            if *folder != "federation" && key.starts_with("libp2p") {
                let line = line_of(&source.text, key);
                found.push(Violation::new(&source.path, line, format!("names {key}"), way_out));
            }
        }
    }
    for source in sources.iter().filter(|source| source.is_rust()) {
        if source.path.starts_with("federation/src/net/") || source.path == "federation/src/net.rs"
        {
            continue;
        }
        for mention in mentions(&split(&source.text).code) {
            if let Some(name) = mention.path.iter().find(|word| word.starts_with("libp2p")) {
                let what = format!("names {name}");
                found.push(Violation::new(&source.path, mention.line, what, way_out));
            }
        }
    }
    found
}

fn purity(sources: &[Source]) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let path = source.path.as_str();
        if !PURE.iter().any(|pure| path.starts_with(pure)) && path != "federation/src/proto.rs" {
            continue;
        }
        for mention in mentions(&split(&source.text).code) {
            if let Some(way_out) = impurity(&mention) {
                let what = format!("pure code names `{}`", mention.path.join("::"));
                found.push(Violation::new(path, mention.line, what, way_out));
            }
        }
    }
    found
}

/// Reason why a path is not allowed in pure code.
fn impurity(mention: &Mention) -> Option<&'static str> {
    let full = mention.path.join("::");
    let starts = |prefix: &str| {
        let rest = full.strip_prefix(prefix);
        // A crate's name alone may be a variable; in a `use` it is the crate.
        rest.is_some_and(|rest| rest.starts_with("::") || (rest.is_empty() && mention.is_import))
    };
    let by_path = IMPURE_PATHS.iter().find(|(prefix, _)| starts(prefix));
    let by_word =
        || IMPURE_WORDS.iter().find(|(word, _)| mention.path.iter().any(|part| part == word));
    if let Some((_, way_out)) = by_path.or_else(by_word) {
        return Some(way_out);
    }
    let name = mention.path.last().map(String::as_str)?;
    let prints = mention.is_macro && IMPURE_MACROS.contains(&name);
    prints.then_some("pure code is silent: return the message")
}

fn repeated_bans(sources: &[Source]) -> Vec<Violation> {
    let way_out = "a crate's clippy.toml replaces the workspace's: repeat the setting there";
    let parse = |path: &str| {
        let source = sources.iter().find(|source| source.path == path);
        source.and_then(|source| source.text.parse::<Table>().ok())
    };
    let Some(common) = parse("clippy.toml") else {
        return vec![Violation::new("clippy.toml", 1, "is missing or no TOML", "restore it")];
    };
    let mut found = Vec::new();
    for folder in OWN_CLIPPY {
        let path = format!("{folder}/clippy.toml");
        let Some(own) = parse(&path) else {
            found.push(Violation::new(&path, 1, "is missing or no TOML", way_out));
            continue;
        };
        let lacks = common.iter().filter(|(key, value)| !repeats(own.get(*key), value));
        found.extend(
            lacks.map(|(key, _)| Violation::new(&path, 1, format!("lacks {key}"), way_out)),
        );
    }
    found
}

/// Whether a setting includes the common one.
fn repeats(own: Option<&Value>, common: &Value) -> bool {
    match (own, common) {
        (Some(Value::Array(own)), Value::Array(common)) => common.iter().all(|x| own.contains(x)),
        (own, common) => own == Some(common),
    }
}

fn dependency_reasons(sources: &[Source]) -> Vec<Violation> {
    let root = sources.iter().find(|source| source.path == "Cargo.toml");
    let Some(Ok(manifest)) = root.map(|root| root.text.parse::<Table>()) else {
        return vec![Violation::new("Cargo.toml", 1, "is missing or no TOML", "restore it")];
    };
    let declared = manifest.get("workspace").and_then(|w| w.get("dependencies"));
    let text = root.map_or("", |root| root.text.as_str());
    let mut found = Vec::new();
    for (key, value) in declared.and_then(Value::as_table).into_iter().flatten() {
        if value.get("path").is_none() && !has_reason(text, key) {
            let what = format!("{key} has no comment that states its purpose");
            let way_out = "end its line with `# purpose`";
            found.push(Violation::new("Cargo.toml", line_of(text, key), what, way_out));
        }
    }
    found
}

/// Whether the statement that declares `key` has a comment on any of its lines.
fn has_reason(text: &str, key: &str) -> bool {
    let mut open = 0;
    let header = format!("[workspace.dependencies.{key}]");
    let start = text.lines().position(|line| line.starts_with(&header));
    for line in text.lines().skip(start.unwrap_or(line_of(text, key) - 1)) {
        let (code, comment) = cut_comment(line);
        if comment.is_some_and(|comment| comment.contains(char::is_alphabetic)) {
            return true;
        }
        let count = |marks: [char; 2]| code.matches(marks).count();
        open += count(['{', '[']);
        open = open.saturating_sub(count(['}', ']']));
        if open == 0 {
            return false;
        }
    }
    false
}

/// A line of TOML before its comment, and the comment.
fn cut_comment(line: &str) -> (&str, Option<&str>) {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return (&line[..at], Some(&line[at + 1..])),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    (line, None)
}

fn inherited_versions(sources: &[Source]) -> Vec<Violation> {
    let (manifests, mut found) = manifests(sources);
    for (source, _, manifest) in manifests.iter().filter(|(_, folder, _)| *folder != FUZZ) {
        for (table, key, value) in dependencies(manifest) {
            let inherits = value.get("workspace") == Some(&Value::Boolean(true));
            // A crate may turn on its own features for its tests.
            let is_itself = value.get("path").and_then(Value::as_str) == Some(".");
            if !inherits && !is_itself {
                let what = format!("{key} in [{table}] does not come from the workspace");
                let way_out = "declare it in the root Cargo.toml and write `workspace = true` here";
                found.push(Violation::new(&source.path, line_of(&source.text, key), what, way_out));
            }
        }
    }
    found
}
