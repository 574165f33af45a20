//! The invariants of the architecture that can be seen in the text of the repository.
//!
//! Each rule is a pure function from files to violations. It is tried twice: on this repository,
//! and on a planted violation, so that a rule which finds nothing has been seen to find something.
//! Rules of form (docs, names, links) are in `tidy`; this file only knows who may use what.

mod planted;

use klnode_tests::source::{Mention, Source, Violation, assert_none, mentions, repository, split};
use toml::{Table, Value};

/// Our crates, for those who may use any of them.
const ALL: &[&str] =
    &["klnode", "klnode-config", "klnode-crdt", "klnode-federation", "klnode-scoring"];

/// Each member and the crates of ours it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("crdt", &[]),
    ("scoring", &["klnode-crdt"]),
    ("federation", &["klnode-crdt"]),
    ("node", &["klnode-config", "klnode-crdt", "klnode-federation", "klnode-scoring"]),
    ("examples", ALL),
    ("tests", ALL),
    (FUZZ, &["klnode-tests"]),
];

/// Not a member: cargo-fuzz builds it with its own flags, so it inherits no version either.
const FUZZ: &str = "fuzz";

/// The modules of `node`, each of which uses only those before it.
const MODULES: &[&str] =
    &["store", "index", "engine", "query", "replicate", "api", "surface", "cli", "wiring"];

/// Where nothing is read but arguments and nothing written but return values.
const PURE: &[&str] = &["crdt/src/", "scoring/src/", "federation/src/proto/"];

/// What pure code never names, as the beginning of a path.
const IMPURE_PATHS: &[(&str, &str)] = &[
    ("std::env", "the environment comes in as arguments"),
    ("std::fs", "files are read and written by the node"),
    ("std::net", "sockets belong to federation's net"),
    ("std::thread", "threads belong to the node"),
    ("tokio", "the driver is asynchronous, the rules are not"),
    ("tracing", "pure code is silent: return what there is to say"),
    ("rand", "seeds and random bytes come in as arguments"),
    ("getrandom", "seeds and random bytes come in as arguments"),
];

/// What pure code never names, as any segment of a path.
const IMPURE_WORDS: &[(&str, &str)] = &[
    ("SystemTime", "time comes in as an argument"),
    ("Instant", "time comes in as an argument"),
    ("OsRng", "random bytes come in as arguments"),
    ("HashMap", "its order depends on a seed: take BTreeMap"),
    ("HashSet", "its order depends on a seed: take BTreeSet"),
    ("async", "the driver is asynchronous, the rules are not"),
];

/// What pure code never calls.
const IMPURE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Pure crates, whose clippy.toml replaces the workspace's.
const OWN_CLIPPY: &[&str] = &["crdt", "scoring", "federation"];

#[test]
fn the_crates_depend_on_each_other_only_along_the_arrows() {
    assert_none(&arrows(&repository().sources));
}

#[test]
fn a_module_of_the_node_uses_only_modules_before_it() {
    assert_none(&module_order(&repository().sources));
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
fn the_pure_crates_name_no_clock_no_chance_and_no_io() {
    assert_none(&purity(&repository().sources));
}

#[test]
fn a_pure_crate_repeats_the_bans_of_the_workspace() {
    assert_none(&repeated_bans(&repository().sources));
}

#[test]
fn every_dependency_says_what_it_is_for() {
    assert_none(&dependency_reasons(&repository().sources));
}

#[test]
fn every_member_takes_its_versions_from_the_workspace() {
    assert_none(&inherited_versions(&repository().sources));
}

/// The dependencies of a manifest: the table they stand in, their key and their value.
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

/// The manifests of the members with their folders, and a violation for each that is no TOML.
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

/// The line of a manifest on which a key is set.
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

fn module_order(sources: &[Source]) -> Vec<Violation> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let Some(inside) = source.path.strip_prefix("node/src/") else { continue };
        if matches!(inside, "lib.rs" | "main.rs") {
            continue;
        }
        let folders: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
        let depth = folders.len() - usize::from(folders.last() == Some(&"mod"));
        let Some(own) = MODULES.iter().position(|name| *name == folders[0]) else {
            let way_out = "put it in a module of the order, or give it a place there with an ADR";
            found.push(Violation::new(&source.path, 1, "a module without a place", way_out));
            continue;
        };
        for mention in mentions(&split(&source.text).code) {
            let Some(used) = root_item(&mention, depth) else { continue };
            if MODULES.iter().position(|name| *name == used).is_some_and(|at| at <= own) {
                continue;
            }
            let what = format!("`{}` uses `crate::{used}`", folders[0]);
            let way_out = "a module uses only those before it: hand the value in, or move the code";
            found.push(Violation::new(&source.path, mention.line, what, way_out));
        }
    }
    found
}

/// What a path names at the root of its crate, if it starts there: by `crate`, or by as many
/// `super` as the file lies deep.
fn root_item(mention: &Mention, depth: usize) -> Option<&str> {
    let climbed = mention.path.iter().take_while(|segment| *segment == "super").count();
    let at = match mention.path.first().map(String::as_str) {
        Some("crate") => 1,
        Some("super") if climbed == depth + mention.modules => climbed,
        _ => return None,
    };
    mention.path.get(at).map(String::as_str)
}

fn one_writer(sources: &[Source]) -> Vec<Violation> {
    let is_test_file = |path: &str| path.ends_with("/tests.rs") || path.contains("/tests/");
    let mut sites = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        if !source.path.starts_with("node/src/") || is_test_file(&source.path) {
            continue;
        }
        let named = mentions(&split(&source.text).code);
        let begins = |m: &&Mention| !m.is_test && m.path.iter().any(|word| word == "begin_write");
        sites.extend(named.iter().find(begins).map(|m| (source.path.as_str(), m.line)));
    }
    let way_out =
        "send a command to the writer: `begin_write` stands in one file of node/src/store";
    match sites.as_slice() {
        [] => vec![Violation::new("node/src/store", 1, "no file begins a write", way_out)],
        [(path, _)] if path.starts_with("node/src/store") => Vec::new(),
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

/// Why a path has no place in pure code.
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
    prints.then_some("pure code is silent: return what there is to say")
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

/// Whether a setting says at least what the common one says.
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
            let what = format!("{key} does not say what it is for");
            let way_out = "end its line with `# what it is for`";
            found.push(Violation::new("Cargo.toml", line_of(text, key), what, way_out));
        }
    }
    found
}

/// Whether the statement that declares `key` has a comment of its own, on any of its lines.
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
