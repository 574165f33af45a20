//! Reads the fixtures of every format, writes them again, and compares.
//!
//! The fixtures are files as people have them: with byte order marks, CRLF, emoji, nested lists,
//! odd dates, repeated ids, broken lines, and code blocks that contain front matter.

#![expect(clippy::unwrap_used, reason = "a test panics")]

use klnode_formats::{
    FileFormat, ImportKey, NeutralEntry, Problem, Reading, SourceCorpus, millis, write,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Found {
    entries: Vec<NeutralEntry>,
    problems: Vec<Problem>,
    duplicates: Vec<Problem>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn read(path: &Path, format: Option<FileFormat>) -> (FileFormat, Found) {
    let corpus = SourceCorpus::open(path, format).unwrap();
    let mut found = Found::default();
    let _ = corpus.read(&mut |reading| {
        match reading {
            Reading::Entry(entry) => found.entries.push(*entry),
            Reading::Problem(problem) => found.problems.push(problem),
            Reading::Duplicate(problem) => found.duplicates.push(problem),
            Reading::Bytes(_) => {}
        }
        ControlFlow::Continue(())
    });
    (corpus.format, found)
}

fn written(format: FileFormat, entries: &[NeutralEntry]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    write(format, &mut entries.iter().cloned(), &mut |file| {
        assert!(files.insert(file.path, file.text).is_none());
        Ok(())
    })
    .unwrap();
    files
}

fn store(folder: &Path, files: &BTreeMap<String, String>) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The parts of an entry that every export of its own format must keep.
fn meaning(entry: &NeutralEntry) -> NeutralEntry {
    let mut entry = entry.clone();
    entry.source.line = None;
    entry.source.path = None;
    // A file of klnode has the place of its entry; the key of a place is that of the folder.
    if matches!(entry.key, ImportKey::Place { .. }) {
        entry.key = ImportKey::Text;
    }
    entry.source.extra.remove("klnode_id");
    entry
}

/// The formats with fixtures: name, entries, problems, duplicates.
const FIXTURES: [(&str, FileFormat, usize, usize, usize); 14] = [
    ("flux-drive", FileFormat::FluxDrive, 24, 0, 0),
    ("gsd", FileFormat::Gsd, 24, 1, 0),
    ("wfc", FileFormat::Wfc, 27, 0, 1),
    ("decapod", FileFormat::Decapod, 28, 1, 1),
    ("markdown", FileFormat::Markdown, 50, 0, 0),
    ("basic-memory", FileFormat::BasicMemory, 24, 0, 0),
    ("claude-memory", FileFormat::ClaudeMemory, 21, 0, 0),
    ("instructions", FileFormat::Instructions, 54, 0, 0),
    ("mcp-memory/memory.jsonl", FileFormat::McpMemory, 30, 2, 1),
    ("mem0/export.json", FileFormat::Mem0, 24, 2, 1),
    ("formicos/knowledge.json", FileFormat::Formicos, 24, 1, 1),
    ("decapod-db/knowledge.db", FileFormat::DecapodDb, 24, 0, 0),
    ("formicos-db/events.db", FileFormat::FormicosDb, 24, 0, 0),
    ("claude-mem/claude-mem.db", FileFormat::ClaudeMem, 24, 0, 0),
];

#[test]
fn every_fixture_is_recognized_and_read() {
    for (name, format, entries, problems, duplicates) in FIXTURES {
        let (recognized, found) = read(&fixture(name), None);
        assert_eq!(recognized, format, "{name}");
        let counts = (found.entries.len(), found.problems.len(), found.duplicates.len());
        assert_eq!(counts, (entries, problems, duplicates), "{name}: {:#?}", found.problems);
        for entry in &found.entries {
            let text = format!("{}\n{}", entry.title, entry.content);
            assert!(!text.contains('\r') && !text.contains('\u{feff}'), "{name}: {text:?}");
            assert!(entry.source.path.is_some() && entry.source.line.is_some(), "{name}");
        }
        assert!(found.problems.iter().all(|problem| !problem.file.is_empty()), "{name}");
    }
}

#[test]
fn an_export_has_the_same_meaning_and_is_written_again_byte_for_byte() {
    for (name, format, ..) in FIXTURES {
        if !FileFormat::WRITTEN.contains(&format) {
            continue;
        }
        let (_, first) = read(&fixture(name), None);
        let files = written(format, &first.entries);
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), &files);
        let (_, second) = read(folder.path(), Some(format));
        assert_eq!(second.problems, [], "{name}");
        let sorted = |found: &Found| {
            let mut all: Vec<NeutralEntry> = found.entries.iter().map(meaning).collect();
            all.sort_by(|one, other| {
                (&one.title, &one.content).cmp(&(&other.title, &other.content))
            });
            all
        };
        if format != FileFormat::Markdown {
            for (one, other) in sorted(&first).iter().zip(&sorted(&second)) {
                assert_eq!(one, other, "{name}");
            }
        }
        assert_eq!(first.entries.len(), second.entries.len(), "{name}");
        assert_eq!(written(format, &second.entries), files, "{name}");
    }
}

#[test]
fn entries_of_every_format_can_be_written_as_notes_and_read_back() {
    for (name, ..) in FIXTURES {
        let (_, mut first) = read(&fixture(name), None);
        for (at, entry) in first.entries.iter_mut().enumerate() {
            entry.klnode_id = Some(format!("{at:032x}"));
        }
        let files = written(FileFormat::Markdown, &first.entries);
        assert_eq!(files.len(), first.entries.len(), "{name}");
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), &files);
        let (_, second) = read(folder.path(), Some(FileFormat::Markdown));
        assert_eq!(second.problems, [], "{name}");
        let facts = |entry: &NeutralEntry| {
            let source = entry.source.clone();
            let dates = (source.created, source.updated, source.confirmed, source.status);
            let sets = (entry.tags.clone(), entry.anchors.clone(), entry.depends_on.clone());
            (
                entry.title.clone(),
                entry.content.clone(),
                dates,
                sets,
                source.citations,
                source.links,
            )
        };
        let mut one: Vec<_> = first.entries.iter().map(|of| format!("{:?}", facts(of))).collect();
        let mut other: Vec<_> =
            second.entries.iter().map(|of| format!("{:?}", facts(of))).collect();
        one.sort();
        other.sort();
        assert_eq!(one, other, "{name}");
        assert_eq!(written(FileFormat::Markdown, &second.entries), files, "{name}");
    }
}

#[test]
fn dates_conditions_citations_and_evidence_are_read() {
    let (_, flux) = read(&fixture("flux-drive"), None);
    let auth = flux.entries.iter().find(|of| of.content.contains("ctx.Err()")).unwrap();
    assert_eq!(auth.source.confirmed.as_deref(), Some("2026-01-02"));
    assert_eq!(auth.source.provenance.as_deref(), Some("independent"));
    assert_eq!(auth.anchors, ["path:middleware/auth.go"]);
    assert_eq!(auth.kind.as_deref(), Some("finding"));
    assert!(flux.entries.iter().filter(|of| of.is_archived).count() == 4);
    let (_, gsd) = read(&fixture("gsd"), None);
    let retry = gsd.entries.iter().find(|of| of.title == "Retry budgets").unwrap();
    assert_eq!(retry.depends_on[..2], ["dep:npm:prisma>=4.0", "path:src/client/retry.rs"]);
    let monorepo = &retry.depends_on[2];
    assert!(monorepo.starts_with("NOT (path:pnpm-workspace.yaml OR "), "{monorepo}");
    assert!(gsd.problems[0].reason.contains("les-2020-01-01-gone"), "{:?}", gsd.problems);
    assert_eq!(gsd.problems[0].file, "index.md");
    let (_, wfc) = read(&fixture("wfc"), None);
    let retry = wfc.entries.iter().find(|of| of.content.contains("shared budget")).unwrap();
    assert!(retry.content.contains("-- see `src/client/retry.rs` -> fix it"), "{retry:?}");
    assert_eq!(retry.source.citations[0].cited_by.as_deref(), Some("ana"));
    assert_eq!(retry.evidence, ["pr:100"]);
    let (_, decapod) = read(&fixture("decapod"), None);
    let retry = decapod.entries.iter().find(|of| of.title == "Retry budgets").unwrap();
    let cited: Vec<_> = retry.source.citations.iter().map(|of| of.evidence.as_str()).collect();
    assert_eq!(cited, ["commit:abc0000", "pr:77"]);
    assert_eq!(millis(retry.source.created.as_deref().unwrap()), Some(1_760_000_000_000));
    let (_, formicos) = read(&fixture("formicos/knowledge.json"), None);
    let last = formicos.entries.iter().find(|of| of.title == "Shutdown order").unwrap();
    assert_eq!(last.observed.unwrap().successes, 23.0);
}

#[test]
fn symbolic_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.md"), "a secret").unwrap();
    fs::write(folder.path().join("note.md"), "a note").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("away")).unwrap();
    let secret = outside.path().join("secret.md");
    std::os::unix::fs::symlink(secret, folder.path().join("file.md")).unwrap();
    let corpus = SourceCorpus::open(folder.path(), None).unwrap();
    assert_eq!((corpus.files.len(), corpus.links_skipped), (1, 2));
}

#[test]
fn a_broken_note_is_named_with_its_line_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..20 {
        let text = format!("---\nlastConfirmed: 2026-01-01\n---\nPattern number {number} holds.\n");
        fs::write(folder.path().join(format!("n{number}.md")), text).unwrap();
    }
    let broken: [(&str, &[u8]); 4] = [
        ("b0.md", b"---\nlastConfirmed: [2026\n---\nx\n"),
        ("b1.md", b"---\nlastConfirmed: 2026-01-01\nno end\n"),
        ("b2.md", b"one\n\xff\xfe\n"),
        ("b3.md", b""),
    ];
    for (name, bytes) in broken {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let (_, found) = read(folder.path(), Some(FileFormat::FluxDrive));
    assert_eq!(found.entries.len(), 20);
    let named: Vec<&str> = found.problems.iter().map(|problem| problem.file.as_str()).collect();
    assert_eq!(named, ["b0.md", "b1.md", "b2.md", "b3.md"], "{:#?}", found.problems);
    assert!(
        found.problems[..3].iter().all(|problem| problem.line.is_some()),
        "{:#?}",
        found.problems
    );
}

#[test]
fn equal_headings_of_a_file_have_different_identities() {
    let (_, found) = read(&fixture("instructions/AGENTS.md"), None);
    let keys: Vec<_> = found.entries.iter().map(|entry| entry.key.clone()).collect();
    let place = |within: &str| ImportKey::Place { path: "AGENTS.md".into(), within: within.into() };
    assert_eq!(keys, [place("Agents > Build"), place("Agents > Build#2")]);
}

#[test]
fn a_database_is_read_with_its_log_and_later_events() {
    let (_, events) = read(&fixture("formicos-db/events.db"), None);
    let first = events.entries.iter().find(|of| of.title == "Retry budgets").unwrap();
    assert_eq!(first.observed.unwrap().successes, 4.0);
    let second = events.entries.iter().find(|of| of.title == "Context cancellation").unwrap();
    assert_eq!(second.source.status.as_deref(), Some("rejected"));
    let (_, decapod) = read(&fixture("decapod-db/knowledge.db"), None);
    let first = decapod.entries.iter().find(|of| of.title == "Retry budgets").unwrap();
    assert_eq!(first.evidence, ["file:src/client/retry.rs#L0-L5"]);
    assert!(first.source.extra.contains_key("promotions"), "{first:?}");
    // A row that the owner has only written to its log.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("knowledge.db");
    fs::copy(fixture("decapod-db/knowledge.db"), &path).unwrap();
    let owner = rusqlite::Connection::open(&path).unwrap();
    owner.pragma_update(None, "journal_mode", "wal").unwrap();
    owner
        .execute("INSERT INTO knowledge (id, title, content) VALUES ('x', 'new', 'c')", [])
        .unwrap();
    let before = fs::read(&path).unwrap();
    let (_, found) = read(&path, None);
    assert_eq!(found.entries.len(), 25);
    assert_eq!(fs::read(&path).unwrap(), before, "the owner's file is not written");
}

#[test]
fn a_hostile_database_is_a_problem_and_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("knowledge.db");
    fs::write(&path, b"SQLite format 3\0 and then nonsense").unwrap();
    let (_, found) = read(&path, Some(FileFormat::DecapodDb));
    assert_eq!((found.entries.len(), found.problems.len()), (0, 1), "{:?}", found.problems);
    let path = folder.path().join("view.db");
    let owner = rusqlite::Connection::open(&path).unwrap();
    owner
        .execute_batch(
            "CREATE TABLE a (x); CREATE VIEW knowledge AS SELECT 1 AS id, 't' AS title, \
             zeroblob(1000000000) AS content;",
        )
        .unwrap();
    drop(owner);
    let (_, found) = read(&path, Some(FileFormat::DecapodDb));
    assert_eq!((found.entries.len(), found.problems.len()), (0, 1), "{:?}", found.problems);
}
