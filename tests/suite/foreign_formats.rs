//! Import from and export to the files of other tools, through real processes.
//!
//! The readers and writers have tests of their own; these tests cover identities, dates, refusals and
//! round trips through a node.

use crate::support::git_repos::Ground;
use crate::support::node_process::{eventually, json, printed, run, start, told};
use crate::support::peer_processes::Peer;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The formats that klnode writes, with the fixture of each.
const WRITTEN: [(&str, &str); 6] = [
    ("flux-drive", "flux-drive"),
    ("gsd", "gsd"),
    ("wfc", "wfc"),
    ("decapod", "decapod"),
    ("formicos", "formicos"),
    ("markdown", "markdown"),
];
/// The formats that klnode only reads, with the path and the number of entries of each fixture.
const READ: [(&str, &str, u64); 8] = [
    ("basic-memory", "basic-memory", 24),
    ("claude-memory", "claude-memory", 21),
    ("instructions", "instructions", 55),
    ("mcp-memory", "mcp-memory/memory.jsonl", 30),
    ("mem0", "mem0/export.json", 24),
    ("decapod-db", "decapod-db/knowledge.db", 24),
    ("formicos-db", "formicos-db/events.db", 24),
    ("claude-mem", "claude-mem/claude-mem.db", 24),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/formats/fixtures").join(name)
}

/// A copy of a fixture outside this repository, so that its commits have no effect on identities.
fn copied(name: &str, to: &Path) -> PathBuf {
    let target = to.join(name);
    copy(&fixture(name), &target);
    target
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

/// All files of a folder with their bytes, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Imports with JSON output; refused items are allowed.
fn import(home: &Path, path: &Path, more: &[&str]) -> Value {
    let output = run(home, &[&["import", path.to_str().unwrap(), "--json"], more].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}{}", text, told(&output)))
}

fn export(home: &Path, format: &str, to: &Path) -> BTreeMap<String, Vec<u8>> {
    printed(&run(home, &["export", "--format", format, to.to_str().unwrap()]));
    files(to)
}

#[test]
fn every_written_format_round_trips_through_two_nodes_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for (format, name) in WRITTEN {
        let homes = ["one", "two"].map(|home| folder.path().join(format!("{format}-{home}")));
        let source = copied(name, folder.path());
        let (_one, _) = start(&homes[0]);
        let first = import(&homes[0], &source, &[]);
        assert_eq!(first["format"], format);
        let taken = first["taken"].as_u64().unwrap();
        assert!(taken >= 20, "{format}: {first:#}");
        let again = import(&homes[0], &source, &[]);
        assert_eq!((&again["taken"], &again["known"]), (&0.into(), &taken.into()), "{again:#}");
        let out = folder.path().join(format!("{format}-out"));
        let exported = export(&homes[0], format, &out);
        let (_two, _) = start(&homes[1]);
        let second = import(&homes[1], &out, &["--format", format]);
        assert_eq!(second["taken"], taken, "{format}: {second:#}");
        assert_eq!(second["refused"], 0, "{format}: {second:#}");
        let back = export(&homes[1], format, &folder.path().join(format!("{format}-back")));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&exported), names(&back), "{format}");
        for (path, bytes) in &exported {
            let (one, two) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&back[path]));
            assert_eq!(one, two, "{format}: {path}");
        }
    }
}

#[test]
fn every_read_format_is_imported_once_and_exported_as_notes() {
    let folder = tempfile::tempdir().unwrap();
    for (format, name, count) in READ {
        let home = folder.path().join(format!("{format}-home"));
        let source = copied(name, folder.path());
        let (_node, _) = start(&home);
        let first = import(&home, &source, &[]);
        assert_eq!(first["format"], format);
        assert_eq!(first["taken"], count, "{format}: {first:#}");
        let again = import(&home, &source, &[]);
        assert_eq!(again["taken"], 0, "{format}: {again:#}");
        let notes = folder.path().join(format!("{format}-notes"));
        let exported = export(&home, "markdown", &notes);
        assert_eq!(exported.len() as u64, count, "{format}");
        // The notes name the entries of this node.
        let back = import(&home, &notes, &["--format", "markdown"]);
        assert_eq!((&back["taken"], &back["known"]), (&0.into(), &count.into()), "{back:#}");
    }
}

#[test]
fn a_dry_run_shows_types_refusals_and_findings_and_imports_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let notes = folder.path().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("a.md"), "---\ntype: skill\nowner: ana\n---\nUse the tool.\n").unwrap();
    fs::write(notes.join("b.md"), "A plain note.\n").unwrap();
    fs::write(notes.join("c.md"), "---\nbroken: [\n---\nx\n").unwrap();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    fs::write(notes.join("d.md"), format!("The token is {token}.\n")).unwrap();
    let (_node, _) = start(&home);
    let output = run(&home, &["import", notes.to_str().unwrap(), "--dry-run"]);
    assert_eq!(output.status.code(), Some(1), "items are refused");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["Format: markdown (4 files)", "skill", "lesson", "refused: 2", "scan matches: 1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("owner (1)"), "unknown fields are listed: {text}");
    for part in ["  skill  a  a.md:4\n", "  lesson  b  b.md:1\n", "  d.md:1: "] {
        assert!(text.contains(part), "the first entries and the finding: {part}: {text}");
    }
    let refused = told(&output);
    assert!(refused.contains("c.md:"), "{refused}");
    assert!(refused.contains("d.md:") && !refused.contains(&token), "{refused}");
    assert_eq!(json(&home, &["list"])["entries"].as_array().unwrap().len(), 0);
}

#[test]
fn a_dry_run_lists_the_first_entries_and_counts_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let entity = |n: usize| {
        format!(
            "{{\"type\":\"entity\",\"name\":\"e{n}\",\"entityType\":\"t\",\"observations\":[\"fact {n}\"]}}\n"
        )
    };
    let mut lines: String = (0..25).map(entity).collect();
    lines.push_str(&entity(3));
    let path = folder.path().join("memory.jsonl");
    fs::write(&path, lines).unwrap();
    let (_node, _) = start(&home);
    let words = ["import", path.to_str().unwrap(), "--dry-run"];
    let text = printed(&run(&home, &words));
    assert!(text.contains("  entity  e0  memory.jsonl:1\n"), "{text}");
    assert!(text.contains("  entity  e19  memory.jsonl:20\n  and 5 more\n"), "{text}");
    assert!(text.contains("duplicates in the files: 1\n  memory.jsonl:26: line 4 has"), "{text}");
    let report = json(&home, &words);
    assert_eq!(report["first"].as_array().map(Vec::len), Some(20), "{report:#}");
    assert_eq!(report["first"][0]["title"], "e0", "{report:#}");
    assert_eq!(report["repeated"][0]["line"], 26, "{report:#}");
    // Only new entries are listed.
    import(&home, &path, &[]);
    let mut lines = fs::read_to_string(&path).unwrap();
    lines.push_str(&entity(99));
    fs::write(&path, lines).unwrap();
    let text = printed(&run(&home, &words));
    assert!(text.contains("  entity  e99  memory.jsonl:27\n"), "{text}");
    assert!(!text.contains("  entity  e0"), "{text}");
}

#[test]
fn a_stale_index_of_gsd_is_a_note_and_no_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let source = copied("gsd", folder.path());
    let (_node, _) = start(&home);
    let output = run(&home, &["import", source.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let said = told(&output);
    assert!(said.contains("index.md:"), "{said}");
    assert!(said.contains("note: its row names `les-2020-01-01-gone`"), "{said}");
    let pools = json(&home, &["show", "sig-2026-01-03-connection-pools"]);
    assert_eq!(pools["title"], "Connection pools");
    let other = json(&home, &["show", "sig-2026-01-07-snapshot-tests"]);
    let code = pools["code"].as_str().unwrap();
    let links = json(&home, &["show", code, "--links"]).to_string();
    assert!(links.contains(other["id"].as_str().unwrap()), "{links}");
}

#[test]
fn an_export_says_what_it_leaves_out_and_playbooks_are_notes() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (_node, _) = start(&home);
    let mut codes = Vec::new();
    for (title, kind) in [("Kept", "lesson"), ("Rough edge", "friction"), ("Wrong", "lesson")] {
        let content = format!("A text about {title}.");
        let words = ["add", "--title", title, "--content", &content, "--evidence", "doc:notes"];
        let words = [&words[..], &["--type", kind]].concat();
        codes.push(json(&home, &words)["code"].as_str().unwrap().to_owned());
    }
    printed(&run(&home, &["forget", &codes[2], "--retract", "--yes"]));
    let steps = folder.path().join("steps.md");
    fs::write(&steps, "# Release\n\n## Steps\n\nTag the commit.\n").unwrap();
    let words = ["playbook", "new", "How we release", "--file", steps.to_str().unwrap()];
    printed(&run(&home, &words));
    let out = folder.path().join("flux");
    let words = ["export", "--format", "flux-drive", out.to_str().unwrap()];
    let said = printed(&run(&home, &words));
    for part in [
        "1 entry left out: flux-drive has no place for the type friction",
        "1 entry left out: retracted",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let notes = export(&home, "markdown", &folder.path().join("notes"));
    let texts: Vec<String> =
        notes.values().map(|of| String::from_utf8_lossy(of).into_owned()).collect();
    let playbook = texts.iter().find(|text| text.contains("type: playbook\n"));
    assert!(playbook.is_some_and(|text| text.contains("Tag the commit.")), "{texts:#?}");
    assert!(texts.iter().any(|text| text.contains("type: friction\n")), "{texts:#?}");
}

#[test]
fn a_renamed_entry_keeps_its_note_and_an_archived_finding_moves() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (_node, _) = start(&home);
    let words = ["add", "--title", "First title", "--content", "Text.", "--evidence", "doc:x"];
    let code = json(&home, &words)["code"].as_str().unwrap().to_owned();
    let notes = folder.path().join("notes");
    let first = export(&home, "markdown", &notes);
    printed(&run(&home, &["edit", &code, "--title", "Second title"]));
    let words = ["export", "--format", "markdown", notes.to_str().unwrap(), "--force"];
    printed(&run(&home, &words));
    let second = files(&notes);
    assert_eq!(second.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
    let text = String::from_utf8_lossy(second.values().next().unwrap()).into_owned();
    assert!(text.contains("title: Second title\n"), "{text}");
    printed(&run(&home, &["forget", &code, "--yes"]));
    let output = run(&home, &words);
    assert!(told(&output).contains("is a note of an earlier export"), "{}", told(&output));
    assert_eq!(files(&notes).len(), 1, "no note is removed");

    import(&home, &copied("flux-drive", folder.path()), &[]);
    let out = folder.path().join("out");
    let before = export(&home, "flux-drive", &out);
    assert!(before.contains_key("batch-size.md") && before.contains_key("clock-skew.md"));
    let list = json(&home, &["list", "--all", "-n", "500"]);
    let code = |file: &str| {
        let entries = list["entries"].as_array().unwrap().iter();
        let mut codes = entries.map(|of| of["code"].as_str().unwrap());
        let is_of = |code: &&str| json(&home, &["show", *code])["imported"]["path"] == file;
        codes.find(is_of).unwrap().to_owned()
    };
    for file in ["batch-size.md", "clock-skew.md"] {
        printed(&run(&home, &["archive", &code(file)]));
    }
    fs::write(out.join("clock-skew.md"), "edited by a person\n").unwrap();
    let words = ["export", "--format", "flux-drive", out.to_str().unwrap()];
    let output = run(&home, &words);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let after = files(&out);
    assert_eq!(after["archive/batch-size.md"], before["batch-size.md"]);
    assert!(!after.contains_key("batch-size.md"), "it has moved");
    assert!(after.contains_key("clock-skew.md"), "a person edited it");
    assert!(told(&output).contains("clock-skew.md exists and differs"), "{}", told(&output));
    printed(&run(&home, &["archive", &code("batch-size.md"), "--undo"]));
    run(&home, &words);
    assert!(files(&out).contains_key("batch-size.md"), "and back");
}

#[test]
fn a_file_and_its_folder_are_the_same_entries() {
    let repos = Ground::new();
    let home = repos.path("home");
    repos.repository("one", None, 1);
    copy(&fixture("wfc"), &repos.path("one").join("wfc/references/reviewers"));
    copy(&fixture("flux-drive"), &repos.path("one").join("config/flux-drive/knowledge"));
    let (_node, _) = start(&home);
    for (format, folder, part) in [
        ("wfc", "wfc/references/reviewers", "security/KNOWLEDGE.md"),
        ("wfc", "wfc/references/reviewers", "reliability"),
        ("flux-drive", "config/flux-drive/knowledge", "archive/feature-flags.md"),
    ] {
        let folder = repos.path("one").join(folder);
        import(&home, &folder, &["--format", format]);
        let one = import(&home, &folder.join(part), &["--format", format]);
        assert_eq!(one["taken"], 0, "{part}: {one:#}");
        assert_eq!(one["gone"], serde_json::json!([]), "{part}: {one:#}");
        assert!(one["known"].as_u64().unwrap() > 0, "{part}: {one:#}");
    }
}

#[test]
fn two_thousand_files_with_fifty_broken_ones_are_imported_without_those() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let notes = folder.path().join("notes");
    fs::create_dir(&notes).unwrap();
    for number in 0..2_000 {
        let text = match number % 40 {
            7 => format!("---\ntitle: [broken {number}\n---\ntext\n"),
            _ => format!("---\ntags: [t{}]\n---\nNote number {number} says so.\n", number % 7),
        };
        fs::write(notes.join(format!("n{number:04}.md")), text).unwrap();
    }
    let (_node, _) = start(&home);
    let output = run(&home, &["import", notes.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1950 imported, 0 already known, 50 refused"), "{text}");
    let refused = told(&output);
    let named = refused.lines().filter(|line| line.starts_with('n') && line.contains(".md:"));
    assert_eq!(named.count(), 50, "{refused}");
    assert!(refused.contains("n0007.md:"), "{refused}");
}

#[test]
fn dates_citations_evidence_and_ids_of_a_file_are_kept_as_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (_node, _) = start(&home);
    import(&home, &copied("gsd", folder.path()), &[]);
    import(&home, &copied("formicos", folder.path()), &[]);
    let id = "les-2026-01-01-retry-budgets";
    let shown = json(&home, &["show", id]);
    assert_eq!(shown["title"], "Retry budgets");
    assert_eq!(shown["imported"]["format"], "gsd");
    assert_eq!(shown["imported"]["created"], "2026-01-01");
    // A corpus that is older than 90 days arrives stale.
    assert_eq!(shown["status"], "stale", "{shown:#}");
    let found = json(&home, &["search", id, "--all", "--stale"]);
    assert_eq!(found["hits"][0]["id"], shown["id"], "{found:#}");
    // Prior evidence is at most two observations, and opens nothing.
    let prior = json(&home, &["show", "mem-0023-shutdown-order"]);
    let amount =
        prior["prior"]["alpha"].as_f64().unwrap() + prior["prior"]["beta"].as_f64().unwrap();
    assert!(amount <= 2.001, "{prior:#}");
    assert_ne!(prior["status"], "verified");
    assert_eq!(prior["imported"]["status"], "stale", "the file's word");
    // Only a code removes or confirms an entry.
    for words in [&["forget", id, "--yes"][..], &["forget", id, "--retract", "--yes"]] {
        let output = run(&home, words);
        assert!(!output.status.success(), "{words:?}: {}", told(&output));
    }
    let output = run(&home, &["feedback", id, "--confirm"]);
    assert!(!output.status.success(), "{}", told(&output));
    printed(&run(&home, &["forget", shown["code"].as_str().unwrap(), "--yes"]));
    assert!(!run(&home, &["show", id]).status.success(), "its id is erased with it");
}

#[test]
fn an_id_of_two_files_is_ambiguous() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (_node, _) = start(&home);
    let note = "---\npermalink: notes/same\n---\n# Title\n\nText of ";
    for name in ["a", "b"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("n.md"), format!("{note}{name}\n")).unwrap();
        import(&home, &folder.path().join(name), &[]);
    }
    let output = run(&home, &["show", "notes/same"]);
    assert!(told(&output).contains("ambiguous"), "{}", told(&output));
}

/// Titles and ids of all entries.
fn entries(home: &Path) -> BTreeSet<(String, String)> {
    let list = json(home, &["list", "--all", "-n", "500"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = list["entries"].as_array().unwrap().iter();
    entries.map(|entry| (text(&entry["title"]), text(&entry["id"]))).collect()
}

#[test]
fn two_members_who_import_the_same_repository_hold_each_entry_once() {
    let repos = Ground::new();
    repos.repository("one", None, 1);
    copy(&fixture("instructions"), &repos.path("one"));
    copy(&fixture("flux-drive"), &repos.path("one").join("config/flux-drive/knowledge"));
    repos.git("one", &["add", "-A"]);
    repos.commit("one", "knowledge");
    repos.clone("one", "two", None);
    let (left, right) = (Peer::start(), Peer::start());
    left.json(&["workspace", "new", "team"]);
    let joined = right.type_in(&["peer", "join", &left.ticket(&["team"])]);
    assert!(joined.status.success(), "{}", told(&joined));
    eventually("the other node knows the workspace", || {
        let list = right.json(&["workspace", "list"]).to_string();
        list.contains("team").then_some(())
    });
    let into = ["--workspace", "team"];
    for format in ["instructions", "flux-drive"] {
        let more = [&["--format", format][..], &into].concat();
        import(&left.home, &repos.path("one"), &more);
        // The other member imports from a folder below the root.
        let path = match format {
            "flux-drive" => repos.path("two").join("config/flux-drive/knowledge"),
            _ => repos.path("two"),
        };
        import(&right.home, &path, &more);
    }
    let expect = entries(&left.home);
    assert!(expect.len() >= 60, "{}", expect.len());
    assert_eq!(entries(&right.home), expect, "the same entries with the same ids");
    // Stale entries are not sent; those of the instructions have no date.
    let (_, one) = expect.iter().find(|(title, _)| title.ends_with("Build")).expect("imported");
    eventually("both authors' records meet", || {
        (left.digests(one).len() >= 2 && right.digests(one).len() >= 2).then_some(())
    });
    assert_eq!(entries(&left.home), expect);
    assert_eq!(entries(&right.home), expect);
    // Two imports of one file are one source, so neither confirms the other.
    for member in [&left, &right] {
        let shown = member.json(&["show", one]);
        assert_eq!(
            (&shown["corroborated"], &shown["status"]),
            (&false.into(), &"candidate".into())
        );
        assert_eq!(shown["alpha"], 5.0, "{shown:#}");
    }
}

#[test]
fn unrelated_files_of_the_same_name_stay_apart() {
    let repos = Ground::new();
    let home = repos.path("home");
    for name in ["one", "two"] {
        repos.repository(name, None, 1);
        fs::write(repos.path(name).join("CLAUDE.md"), "# Build\n\nRun make.\n").unwrap();
    }
    let (_node, _) = start(&home);
    for name in ["one", "two"] {
        let imported = import(&home, &repos.path(name).join("CLAUDE.md"), &[]);
        assert_eq!(imported["taken"], 1, "{imported:#}");
    }
    assert_eq!(entries(&home).len(), 2);
}

#[test]
fn an_export_keeps_files_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    let (home, out) = (folder.path().join("home"), folder.path().join("out"));
    let (_node, _) = start(&home);
    import(&home, &copied("flux-drive", folder.path()), &[]);
    let first = export(&home, "flux-drive", &out);
    let path = out.join(first.keys().next().unwrap());
    fs::write(&path, "edited by a person\n").unwrap();
    let words = ["export", "--format", "flux-drive", out.to_str().unwrap()];
    let output = run(&home, &words);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert_eq!(fs::read_to_string(&path).unwrap(), "edited by a person\n");
    printed(&run(&home, &[&words[..], &["--force"]].concat()));
    assert_eq!(files(&out), first);
}
