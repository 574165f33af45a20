//! A second import of files that changed, and links between imported entries, through real processes.

use crate::support::conformance::conforms;
use crate::support::git_repos::Ground;
use crate::support::node_process::{Running, json, printed, run, start, text, told};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A node, and a folder of files beside its home.
struct Notes {
    folder: tempfile::TempDir,
    _node: Running,
}

impl Notes {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (node, _) = start(&folder.path().join("home"));
        let notes = Self { folder, _node: node };
        fs::create_dir(notes.path()).unwrap();
        files.iter().for_each(|(name, text)| notes.write(name, text));
        notes
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The report of an import; refused parts are allowed.
    fn import(&self, more: &[&str]) -> Value {
        import(&self.home(), &self.path(), more)
    }

    fn show(&self, code: &str) -> Value {
        json(&self.home(), &["show", code])
    }

    /// The code of the entry with a title.
    fn code(&self, title: &str) -> String {
        code(&self.home(), title)
    }
}

fn import(home: &Path, path: &Path, more: &[&str]) -> Value {
    let words = [&["import", path.to_str().unwrap(), "--json"], more].concat();
    let output = run(home, &words);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)))
}

fn entries(home: &Path) -> Vec<Value> {
    let list = json(home, &["list", "--all", "-n", "500"]);
    list["entries"].as_array().cloned().unwrap_or_default()
}

#[track_caller]
fn code(home: &Path, title: &str) -> String {
    let found = entries(home).into_iter().find(|entry| entry["title"] == title);
    text(&found.unwrap_or_else(|| panic!("no entry `{title}`"))["code"])
}

/// The counts of a report: imported, changed, known, in conflict and refused.
fn counts(report: &Value) -> [u64; 5] {
    ["taken", "changed", "known", "conflicts", "refused"]
        .map(|name| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report:#}")))
}

#[test]
fn an_edited_note_of_a_folder_edits_its_entry_and_keeps_its_feedback() {
    let notes = Notes::new(&[
        ("retry.md", "---\ntags: [net, old]\nsummary: Short.\n---\nRetry three times.\n"),
        ("cache.md", "Cache for an hour.\n"),
    ]);
    assert_eq!(counts(&notes.import(&["--format", "markdown"])), [2, 0, 0, 0, 0]);
    let code = notes.code("retry");
    printed(&run(&notes.home(), &["feedback", &code, "--success"]));
    let before = notes.show(&code);
    notes.write("retry.md", "---\ntags: [net, new]\n---\nRetry four times.\n");
    let table = run(&notes.home(), &["import", notes.path().to_str().unwrap(), "--dry-run"]);
    assert!(printed(&table).contains("changed"), "{}", printed(&table));
    assert_eq!(counts(&notes.import(&["--dry-run"])), [0, 1, 1, 0, 0]);
    assert_eq!(notes.show(&code)["content"], "Retry three times.");
    assert_eq!(counts(&notes.import(&[])), [0, 1, 1, 0, 0]);
    let after = notes.show(&code);
    assert_eq!(after["content"], "Retry four times.");
    assert_eq!(after["id"], before["id"]);
    assert_eq!(after["tags"], serde_json::json!(["net", "new"]), "{after:#}");
    assert_eq!(after["registers"]["summary"], "", "{after:#}");
    assert_eq!(after["observations"], before["observations"], "the feedback stays");
    assert_eq!(entries(&notes.home()).len(), 2);
    assert_eq!(counts(&notes.import(&[])), [0, 0, 2, 0, 0], "a third import changes nothing");
    notes.write("retry.md", "---\ntags: [net, old]\nsummary: Short.\n---\nRetry three times.\n");
    assert_eq!(counts(&notes.import(&[])), [0, 1, 1, 0, 0], "and back again");
    assert_eq!(notes.show(&code)["registers"], before["registers"]);
}

#[test]
fn an_entry_that_a_person_edited_is_not_overwritten() {
    let notes = Notes::new(&[("a.md", "First text.\n"), ("b.md", "Other text.\n")]);
    notes.import(&[]);
    let (a, b) = (notes.code("a"), notes.code("b"));
    printed(&run(&notes.home(), &["edit", &a, "--content", "Text of a person."]));
    printed(&run(&notes.home(), &["edit", &b, "--tag", "mine"]));
    assert_eq!(counts(&notes.import(&[])), [0, 0, 2, 0, 0], "the files did not change");
    notes.write("a.md", "Second text.\n");
    notes.write("b.md", "Another text.\n");
    let output = run(&notes.home(), &["import", notes.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let said = told(&output);
    assert!(
        said.contains(&format!("a.md:1: changed here and in the file: {a}: content")),
        "{said}"
    );
    assert!(said.contains("--keep file"), "{said}");
    assert_eq!(notes.show(&a)["content"], "Text of a person.");
    let other = notes.show(&b);
    assert_eq!(
        (&other["content"], &other["tags"]),
        (&Value::from("Another text."), &serde_json::json!(["mine"]),)
    );
    assert_eq!(counts(&notes.import(&[])), [0, 0, 1, 1, 0], "it is listed again");
    assert_eq!(counts(&notes.import(&["--keep", "entry"])), [0, 0, 2, 0, 0]);
    assert_eq!(counts(&notes.import(&[])), [0, 0, 2, 0, 0], "the decision is kept");
    assert_eq!(notes.show(&a)["content"], "Text of a person.");
    notes.write("a.md", "Third text.\n");
    assert_eq!(counts(&notes.import(&["--keep", "file"])), [0, 1, 1, 0, 0]);
    assert_eq!(notes.show(&a)["content"], "Third text.");
}

#[test]
fn a_section_that_is_gone_is_listed_and_retracted_on_request() {
    conforms("S000-34");
    let notes = Notes::new(&[
        (
            "batch-size.md",
            "---\nlastConfirmed: 2026-10-01\nprovenance: independent\n---\nBatches.\n",
        ),
        ("clock-skew.md", "---\nlastConfirmed: 2026-10-01\nprovenance: primed\n---\nClocks.\n"),
    ]);
    let format = ["--format", "flux-drive"];
    assert_eq!(counts(&notes.import(&format)), [2, 0, 0, 0, 0]);
    fs::remove_file(notes.path().join("clock-skew.md")).unwrap();
    let path = notes.path();
    let words = ["import", path.to_str().unwrap(), "--format", "flux-drive"];
    let said = told(&run(&notes.home(), &words));
    assert!(said.contains("clock-skew.md: gone from the file: "), "{said}");
    assert_eq!(entries(&notes.home()).len(), 2, "it is listed and stays");
    let one = import(&notes.home(), &notes.path().join("batch-size.md"), &format);
    assert_eq!(one["gone"], serde_json::json!([]), "an import of one file looks at that file only");
    let report = notes.import(&[&format[..], &["--retract-gone"]].concat());
    assert_eq!(report["retracted"], 1, "{report:#}");
    let left = entries(&notes.home());
    assert_eq!(left.len(), 1, "{left:#?}");
    assert_eq!(notes.import(&format)["gone"], serde_json::json!([]));
}

#[test]
fn a_date_that_a_person_edits_in_a_file_is_taken() {
    conforms("S000-35");
    let note = |date: &str| {
        format!("---\nlastConfirmed: {date}\nprovenance: independent\n---\nBound every batch.\n")
    };
    let notes = Notes::new(&[("batch-size.md", &note("2020-01-01"))]);
    let format = ["--format", "flux-drive"];
    notes.import(&format);
    let code = text(&entries(&notes.home())[0]["code"]);
    assert_eq!(notes.show(&code)["status"], "stale");
    let today = Command::new("date").arg("-u").arg("+%Y-%m-%d").output().unwrap();
    let today = String::from_utf8(today.stdout).unwrap().trim().to_owned();
    notes.write("batch-size.md", &note(&today));
    assert_eq!(counts(&notes.import(&format)), [0, 1, 0, 0, 0]);
    let shown = notes.show(&code);
    assert_eq!(shown["imported"]["confirmed"], today.as_str());
    assert_ne!(shown["status"], "stale", "{shown:#}");
    let out = notes.folder.path().join("out");
    printed(&run(&notes.home(), &["export", "--format", "flux-drive", out.to_str().unwrap()]));
    let written = fs::read_to_string(out.join("batch-size.md")).unwrap();
    assert!(written.contains(&format!("lastConfirmed: {today}\n")), "{written}");
}

#[test]
fn an_edited_section_of_a_repository_edits_its_entry() {
    let repos = Ground::new();
    let home = repos.path("home");
    let guide = "# Build\n\nRun make.\n\n# Test\n\nRun make test.\n";
    for name in ["one", "two"] {
        repos.repository(name, None, 1);
        fs::write(repos.path(name).join("CLAUDE.md"), guide).unwrap();
    }
    let (_node, _) = start(&home);
    let file = |name: &str| repos.path(name).join("CLAUDE.md");
    for name in ["one", "two"] {
        assert_eq!(counts(&import(&home, &file(name), &[])), [2, 0, 0, 0, 0]);
    }
    fs::write(
        file("one"),
        "Intro.\n\n".to_owned() + &guide.replace("Run make test", "Run cargo test"),
    )
    .unwrap();
    let report = import(&home, &file("one"), &[]);
    assert_eq!(counts(&report), [1, 1, 1, 0, 0], "{report:#}");
    assert_eq!(counts(&import(&home, &file("two"), &[])), [0, 0, 2, 0, 0]);
    let texts: Vec<String> = entries(&home)
        .iter()
        .map(|entry| text(&json(&home, &["show", &text(&entry["code"])])["content"]))
        .collect();
    let of = |text: &str| texts.iter().filter(|one| *one == text).count();
    assert_eq!((of("Run cargo test."), of("Run make test."), of("Run make.")), (1, 1, 2));
}

#[test]
fn two_notes_with_the_same_text_part_when_one_is_edited() {
    let notes = Notes::new(&[("a/n.md", "The same text.\n"), ("b/n.md", "The same text.\n")]);
    let first = notes.import(&["--format", "markdown"]);
    assert_eq!((&first["taken"], &first["refused"]), (&1.into(), &0.into()), "{first:#}");
    notes.write("a/n.md", "Another text.\n");
    assert_eq!(counts(&notes.import(&[])), [1, 1, 0, 0, 0]);
    assert_eq!(entries(&notes.home()).len(), 2);
    assert_eq!(counts(&notes.import(&[])), [0, 0, 2, 0, 0]);
}

/// The links of an entry, as relation and title.
fn links(notes: &Notes, title: &str) -> Vec<(String, String)> {
    let code = notes.code(title);
    let graph = json(&notes.home(), &["show", &code, "--links"]);
    let own = graph["entry"]["id"].clone();
    let titles = graph["entries"].as_array().unwrap();
    let title_of = |id: &Value| {
        let found = titles.iter().find(|of| of["id"] == *id);
        text(&found.expect("a linked entry")["title"])
    };
    let links = graph["links"].as_array().unwrap().iter().filter(|link| link["from"] == own);
    let mut links: Vec<_> =
        links.map(|link| (text(&link["relation"]), title_of(&link["to"]))).collect();
    links.sort();
    links
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
}

#[test]
fn links_of_a_vault_become_links_of_entries_and_are_written_again() {
    let index = "See [[Retry]], [the cache](sub/Cache.md#size) and [[Nowhere]].\n";
    let notes = Notes::new(&[
        ("Index.md", index),
        (
            "sub/Retry.md",
            "---\nrelated: [\"depends on [[Cache]]\"]\n---\nRetry. Back to [up](../Index.md).\n",
        ),
        ("sub/Cache.md", "Cache it.\n"),
    ]);
    let report = notes.import(&["--format", "markdown"]);
    assert_eq!(
        (&report["links"], &report["unresolved_links"]),
        (&4.into(), &1.into()),
        "{report:#}"
    );
    assert_eq!(links(&notes, "Index"), pairs(&[("related", "Cache"), ("related", "Retry")]));
    assert_eq!(links(&notes, "Retry"), pairs(&[("depends_on", "Cache"), ("related", "Index")]));
    assert_eq!(counts(&notes.import(&[])), [0, 0, 3, 0, 0]);
    // A link of a person stays, and the file's link goes with its words.
    let (index_code, cache) = (notes.code("Index"), notes.code("Cache"));
    printed(&run(&notes.home(), &["edit", &index_code, "--link", &format!("uses:{cache}")]));
    notes.write("Index.md", "See [[Retry]] only.\n");
    notes.import(&[]);
    assert_eq!(links(&notes, "Index"), pairs(&[("related", "Retry"), ("uses", "Cache")]));
    let out = notes.folder.path().join("out");
    let words = ["export", "--format", "markdown", out.to_str().unwrap()];
    printed(&run(&notes.home(), &words));
    let written = fs::read_to_string(out.join("Index.md")).unwrap();
    assert!(written.contains("uses [[Cache]]"), "{written}");
    assert!(!written.contains("related: [\"[[Retry"), "the text has it: {written}");
    // Another node reads the same links from the exported notes.
    let other = Notes::new(&[]);
    import(&other.home(), &out, &["--format", "markdown"]);
    for title in ["Index", "Retry", "Cache"] {
        assert_eq!(links(&other, title), links(&notes, title), "{title}");
    }
}

#[test]
fn relations_of_memory_files_become_links_of_their_entities() {
    let notes = Notes::new(&[(
        "memory.jsonl",
        "{\"type\":\"entity\",\"name\":\"API\",\"entityType\":\"service\",\"observations\":[\"Serves\"]}\n\
         {\"type\":\"entity\",\"name\":\"Store\",\"entityType\":\"service\",\"observations\":[\"Keeps\"]}\n\
         {\"type\":\"relation\",\"from\":\"API\",\"to\":\"Store\",\"relationType\":\"depends on\"}\n\
         {\"type\":\"relation\",\"from\":\"API\",\"to\":\"Missing\",\"relationType\":\"uses\"}\n",
    )]);
    let report = import(&notes.home(), &notes.path().join("memory.jsonl"), &[]);
    assert_eq!(report["format"], "mcp-memory");
    assert_eq!(links(&notes, "API"), pairs(&[("depends_on", "Store")]));
    let both = pairs(&[("related", "API"), ("related", "Store")]);
    assert_eq!(links(&notes, "API depends on Store"), both);
    assert_eq!(report["unresolved_links"], 2, "{report:#}");
}

#[test]
fn a_condition_against_a_monorepo_is_checked() {
    conforms("S002-45");
    let repos = Ground::new();
    let home = repos.path("home");
    repos.repository("shop", None, 1);
    let lesson = "---\nid: les-2026-10-01-one-lockfile\ntype: lesson\nproject: shop\n\
                  durability: convention\nstatus: active\ndepends_on:\n- \"NOT monorepo\"\n---\n\
                  # One lockfile\n\nKeep one lockfile.\n";
    let folder = repos.path("shop").join(".planning/knowledge/lessons/build");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("les-2026-10-01-one-lockfile.md"), lesson).unwrap();
    let (_node, _) = start(&home);
    let report = import(&home, &repos.path("shop/.planning/knowledge"), &[]);
    assert_eq!(report["taken"], 1, "{report:#}");
    let code = text(&entries(&home)[0]["code"]);
    let broken = || {
        let shop = repos.path("shop");
        let output = run(&home, &["check", "anchors", "--path", shop.to_str().unwrap(), "--json"]);
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.code() == Some(1) && found.contains(&code)
    };
    assert!(!broken(), "one package");
    fs::write(repos.path("shop").join("lerna.json"), "{}").unwrap();
    repos.git("shop", &["add", "-A"]);
    repos.commit("shop", "packages");
    assert!(broken(), "several packages");
    let out = repos.path("out");
    printed(&run(&home, &["export", "--format", "gsd", out.to_str().unwrap()]));
    let path = out.join("lessons/build/les-2026-10-01-one-lockfile.md");
    assert!(fs::read_to_string(path).unwrap().contains("NOT monorepo"), "the words of the file");
}
