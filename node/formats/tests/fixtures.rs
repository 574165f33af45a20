//! Reads the fixtures of every format, writes them again, and compares.
//!
//! The fixtures are files as people have them: with byte order marks, CRLF, emoji, nested lists,
//! odd dates, repeated ids, broken lines, and code blocks that contain front matter.

#![expect(clippy::unwrap_used, reason = "a test panics")]

use klnode_formats::{
    FileFormat, ImportKey, NeutralEntry, Problem, Reading, SourceCorpus, millis, write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Found {
    entries: Vec<NeutralEntry>,
    problems: Vec<Problem>,
    duplicates: Vec<Problem>,
    notes: Vec<Problem>,
    /// The bytes that were reported before the end of the first file.
    reported: Vec<u64>,
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
            Reading::Note(note) => found.notes.push(note),
            Reading::Bytes(bytes) => found.reported.push(bytes),
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
    ("gsd", FileFormat::Gsd, 24, 0, 0),
    ("wfc", FileFormat::Wfc, 29, 0, 1),
    ("decapod", FileFormat::Decapod, 28, 1, 1),
    ("markdown", FileFormat::Markdown, 50, 0, 0),
    ("basic-memory", FileFormat::BasicMemory, 24, 0, 0),
    ("claude-memory", FileFormat::ClaudeMemory, 21, 0, 0),
    ("instructions", FileFormat::Instructions, 55, 0, 0),
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
    // An index that went stale refuses nothing, and a file needs no `sig-` before its date.
    assert_eq!(gsd.notes.len(), 1, "{:?}", gsd.notes);
    assert!(gsd.notes[0].reason.contains("les-2020-01-01-gone"), "{:?}", gsd.notes);
    assert_eq!(gsd.notes[0].file, "index.md");
    let pools = gsd.entries.iter().find(|of| of.title == "Connection pools").unwrap();
    assert!(pools.content.starts_with("## What Happened"), "{pools:?}");
    let related: Vec<&str> = pools.source.links.iter().map(|of| of.target.as_str()).collect();
    assert_eq!(related, ["sig-2026-01-07-snapshot-tests", "sig-2026-01-19-rate-limits"]);
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
fn a_place_of_knowledge_behind_a_link_is_not_read() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = |from: &Path, to: &str| {
        let to = folder.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(from, to).unwrap();
    };
    fs::write(outside.path().join("KNOWLEDGE.md"), "## Patterns Found\n\n- a secret\n").unwrap();
    link(outside.path(), ".planning/knowledge");
    for format in [None, Some(FileFormat::Gsd)] {
        let error = SourceCorpus::open(folder.path(), format).unwrap_err().to_string();
        assert!(error.contains(".planning/knowledge"), "{error}");
        assert!(error.contains("symbolic link"), "{error}");
    }
    // A link above the place counts as well.
    fs::create_dir_all(outside.path().join("data")).unwrap();
    fs::copy(fixture("decapod-db/knowledge.db"), outside.path().join("data/knowledge.db")).unwrap();
    let other = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), other.path().join(".decapod")).unwrap();
    assert!(SourceCorpus::open(other.path(), None).is_err());
    // Files beside one that is read.
    let database = folder.path().join("knowledge.db");
    fs::copy(fixture("decapod-db/knowledge.db"), &database).unwrap();
    let ledger = fixture("decapod-db/knowledge.promotions.jsonl");
    link(&ledger, "knowledge.promotions.jsonl");
    let (_, found) = read(&database, None);
    let has_promotions = |of: &NeutralEntry| of.source.extra.contains_key("promotions");
    assert!(!found.entries.is_empty() && !found.entries.iter().any(has_promotions));
    let gsd = tempfile::tempdir().unwrap();
    fs::write(gsd.path().join("a.md"), "---\nid: les-2026-01-01-a\n---\nA lesson.\n").unwrap();
    std::os::unix::fs::symlink(fixture("gsd/index.md"), gsd.path().join("index.md")).unwrap();
    let (_, found) = read(gsd.path(), Some(FileFormat::Gsd));
    assert_eq!((found.entries.len(), found.notes.len()), (1, 0), "{:?}", found.notes);
}

#[test]
fn a_folder_of_rules_is_recognized_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join(".cursor/rules");
    let copilot = folder.path().join(".github/instructions");
    fs::create_dir_all(&rules).unwrap();
    fs::create_dir_all(&copilot).unwrap();
    fs::write(rules.join("style.mdc"), "---\nglobs: *.ts\n---\nPrefer named exports.\n").unwrap();
    fs::write(rules.join("more.md"), "Sort imports.\n").unwrap();
    fs::write(copilot.join("api.instructions.md"), "Version every route.\n").unwrap();
    for (path, count) in [(&rules, 2), (&copilot, 1), (&folder.path().to_owned(), 3)] {
        let (format, found) = read(path, None);
        assert_eq!(format, FileFormat::Instructions, "{}", path.display());
        assert_eq!((found.entries.len(), found.problems.len()), (count, 0), "{}", path.display());
    }
    let (format, found) = read(&rules.join("more.md"), None);
    assert_eq!((format, found.entries.len()), (FileFormat::Instructions, 1));
}

#[test]
fn json_with_a_byte_order_mark_is_read_and_search_answers_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("\u{feff}{text}")).unwrap();
        path
    };
    let memory = r#"{"results": [{"id": "1", "memory": "Cache for an hour."}]}"#;
    let answer = r#"{"results": [{"id": "m", "entry_type": "skill", "title": "Retry", "content": "c"}], "total": 1}"#;
    for (name, text, format) in [
        ("a.json", memory, FileFormat::Mem0),
        ("b.json", answer, FileFormat::Formicos),
        ("c.json", &memory.replace("[{", "[\n{"), FileFormat::Mem0),
        ("d.json", &answer.replace("[{", "[\n{"), FileFormat::Formicos),
    ] {
        let (recognized, found) = read(&write(name, text), None);
        assert_eq!(recognized, format, "{name}");
        assert_eq!((found.entries.len(), found.problems.len()), (1, 0), "{:?}", found.problems);
    }
}

#[test]
fn one_file_of_a_folder_has_the_identities_that_the_folder_gives() {
    let place = |root: &Path, entry: &NeutralEntry| match &entry.key {
        ImportKey::Place { path, within } => format!("{}/{path}#{within}", root.display()),
        other => panic!("{other:?}"),
    };
    let keys = |path: &Path, format: FileFormat| -> Vec<(String, bool)> {
        let corpus = SourceCorpus::open(path, Some(format)).unwrap();
        let (_, found) = read(path, Some(format));
        let of = found.entries.iter().map(|of| (place(&corpus.root, of), of.is_archived));
        of.collect()
    };
    for (format, folder, parts) in [
        (FileFormat::Wfc, "wfc", &["security/KNOWLEDGE.md", "security", "global/reliability"][..]),
        (
            FileFormat::FluxDrive,
            "flux-drive",
            &["archive/feature-flags.md", "archive", "batch-size.md"],
        ),
    ] {
        let all: BTreeMap<String, bool> = keys(&fixture(folder), format).into_iter().collect();
        for part in parts {
            let found = keys(&fixture(folder).join(part), format);
            assert!(!found.is_empty(), "{part}");
            for (key, is_archived) in found {
                assert_eq!(all.get(&key), Some(&is_archived), "{part}: {key}: {all:#?}");
            }
        }
    }
}

#[test]
fn the_progress_of_one_large_file_is_reported_before_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let relation = |n: u32| {
        format!(
            "{{\"type\":\"entity\",\"name\":\"e{n}\",\"entityType\":\"t\",\"observations\":[\"{}\"]}}\n",
            "x".repeat(400)
        )
    };
    let lines: String = (0..500).map(relation).collect();
    let memory = |n: u32| format!("{{\"memory\":\"m{n} {}\"}}", "x".repeat(400));
    let elements: Vec<String> = (0..500).map(memory).collect();
    let section = |n: u32| format!("## Part {n}\n\n{}\n\n", "word ".repeat(80));
    let note: String = (0..500).map(section).collect();
    for (name, text) in [
        ("memory.jsonl", lines),
        ("export.json", format!("[{}]", elements.join(",\n"))),
        ("note.md", note),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &text).unwrap();
        let (_, found) = read(&path, None);
        assert_eq!(found.entries.len(), 500, "{name}: {:?}", found.problems);
        assert!(found.reported.len() > 5, "{name}: {:?}", found.reported);
        assert_eq!(found.reported.iter().sum::<u64>(), text.len() as u64, "{name}");
    }
    let path = folder.path().join("knowledge.db");
    let owner = rusqlite::Connection::open(&path).unwrap();
    owner.execute_batch("CREATE TABLE knowledge (id TEXT, title TEXT, content TEXT)").unwrap();
    for n in 0..500 {
        let words = [format!("id{n}"), format!("title {n}"), "x".repeat(400)];
        owner.execute("INSERT INTO knowledge VALUES (?1, ?2, ?3)", words).unwrap();
    }
    drop(owner);
    let (_, found) = read(&path, None);
    assert_eq!(found.entries.len(), 500, "{:?}", found.problems);
    assert!(found.reported.len() > 5, "{:?}", found.reported);
}

/// The entries of a fixture, then some of their titles again with other texts, as a node exports
/// them.
fn with_equal_titles(name: &str) -> Vec<NeutralEntry> {
    let (_, found) = read(&fixture(name), None);
    let mut entries = found.entries;
    let mut again: Vec<NeutralEntry> = entries.iter().take(3).cloned().collect();
    for entry in &mut again {
        entry.content = format!("Another text. {}", entry.content);
        (entry.source.id, entry.source.path) = (None, None);
        entry.source.format = FileFormat::Klnode.name().into();
        entry.source.extra.clear();
    }
    entries.extend(again);
    for (at, entry) in entries.iter_mut().enumerate() {
        entry.klnode_id = Some(format!("{at:032x}"));
    }
    entries
}

#[test]
fn entries_of_every_format_are_written_in_every_format_and_read_back() {
    for (name, from, ..) in FIXTURES {
        for format in FileFormat::WRITTEN {
            for has_ids in [true, false] {
                let mut entries = with_equal_titles(name);
                if !has_ids {
                    entries.iter_mut().for_each(|of| of.klnode_id = None);
                }
                let files = written(format, &entries);
                let folder = tempfile::tempdir().unwrap();
                store(folder.path(), &files);
                let (_, found) = read(folder.path(), Some(format));
                assert_eq!(found.problems, [], "{from} as {format}");
                assert_eq!(found.duplicates, [], "{from} as {format}");
                assert_eq!(found.notes, [], "{from} as {format}");
                assert_eq!(found.entries.len(), entries.len(), "{from} as {format}");
                let has_titles = !matches!(format, FileFormat::FluxDrive | FileFormat::Wfc);
                let texts = |of: &[NeutralEntry]| -> BTreeSet<String> {
                    of.iter().map(|of| format!("{}\n{}", of.title, of.content)).collect()
                };
                if has_titles {
                    let (before, after) = (texts(&entries), texts(&found.entries));
                    let lost: Vec<_> = before.difference(&after).collect();
                    assert_eq!(lost, Vec::<&String>::new(), "{from} as {format}");
                }
            }
        }
    }
}

#[test]
fn evidence_and_fields_of_a_database_are_kept_in_the_written_format() {
    let (_, events) = read(&fixture("formicos-db/events.db"), None);
    let first = events.entries.iter().find(|of| of.title == "Retry budgets").unwrap();
    let text = &written(FileFormat::Formicos, &events.entries)["knowledge.json"];
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    let items = file["items"].as_array().unwrap();
    let item = items.iter().find(|of| of["title"] == "Retry budgets").unwrap();
    assert!(!first.source.extra.is_empty());
    for (field, value) in &first.source.extra {
        assert_eq!(&item[field], value, "{field}");
    }
    let (_, decapod) = read(&fixture("decapod-db/knowledge.db"), None);
    let first = decapod.entries.iter().find(|of| of.title == "Retry budgets").unwrap();
    let all: String = written(FileFormat::Decapod, &decapod.entries).into_values().collect();
    let line = all.lines().find(|line| line.contains("\"title\":\"Retry budgets\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    for (field, value) in first.source.extra.iter().filter(|(field, _)| *field != "promotions") {
        assert_eq!(&line[field], value, "{field}");
    }
    // What klnode observed of its own entries.
    let mut own = with_equal_titles("gsd").pop().unwrap();
    own.observed = Some(klnode_formats::Observed { successes: 3.0, failures: 1.0 });
    own.kind = Some("lesson".into());
    let text = &written(FileFormat::Formicos, &[own.clone()])["knowledge.json"];
    assert!(text.contains("\"conf_alpha\": 8.0") && text.contains("\"conf_beta\": 6.0"), "{text}");
    let all: String = written(FileFormat::Gsd, &[own]).into_values().collect();
    assert!(all.contains("evidence_count: 3\n"), "{all}");
}

#[test]
fn a_reviewer_may_have_a_name_in_any_alphabet_and_a_global_tier() {
    let folder = tempfile::tempdir().unwrap();
    let reviewer = folder.path().join("évaluation");
    fs::create_dir(&reviewer).unwrap();
    fs::write(reviewer.join("KNOWLEDGE.md"), "## Patterns Found\n\n- [2026-01-02] One.\n").unwrap();
    let (_, found) = read(folder.path(), None);
    let files = written(FileFormat::Wfc, &found.entries);
    let text = &files["évaluation/KNOWLEDGE.md"];
    assert!(text.starts_with("# Évaluation Reviewer Knowledge\n"), "{text}");
    let (_, found) = read(&fixture("wfc"), None);
    let is_global = |of: &&NeutralEntry| of.source.extra.contains_key("tier");
    assert_eq!(found.entries.iter().filter(is_global).count(), 2);
    let files = written(FileFormat::Wfc, &found.entries);
    assert!(files.contains_key("global/reliability/KNOWLEDGE.md"), "{:?}", files.keys());
    assert!(files.contains_key("reliability/KNOWLEDGE.md"), "{:?}", files.keys());
}

#[test]
fn an_id_of_a_file_names_no_file_elsewhere() {
    let mut entries = with_equal_titles("gsd");
    entries.truncate(2);
    for entry in &mut entries {
        entry.source.id = Some("../../../etc/evil".into());
        entry.source.path = Some("lessons/a.md".into());
    }
    for path in written(FileFormat::Gsd, &entries).keys() {
        assert!(!path.contains(".."), "{path}");
    }
}

#[test]
fn a_renamed_entry_keeps_its_note_and_notes_without_entries_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = with_equal_titles("gsd");
    let first = written(FileFormat::Markdown, &entries);
    store(folder.path(), &first);
    fs::write(folder.path().join("mine.md"), "A note of a person.\n").unwrap();
    entries[0].title = "Quite another title".into();
    let gone = entries.pop().unwrap();
    let left = klnode_formats::EarlierNotes::read(folder.path()).unwrap().assign(&mut entries);
    let second = written(FileFormat::Markdown, &entries);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(first[&left[0]].contains(gone.klnode_id.as_ref().unwrap()), "{left:?}");
    let names: Vec<&String> = first.keys().filter(|path| **path != left[0]).collect();
    assert_eq!(second.keys().collect::<Vec<_>>(), names);
    assert!(second.values().any(|text| text.contains("title: Quite another title\n")));
    let nothing = folder.path().join("nothing");
    let left = klnode_formats::EarlierNotes::read(&nothing).unwrap().assign(&mut entries);
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_finding_that_was_archived_names_its_earlier_file() {
    let (_, found) = read(&fixture("flux-drive"), None);
    let mut entry = found.entries.into_iter().find(|of| !of.is_archived).unwrap();
    let path = entry.source.path.clone().unwrap();
    entry.is_archived = true;
    let mut files = Vec::new();
    let mut put = |file| {
        files.push(file);
        Ok(())
    };
    write(FileFormat::FluxDrive, &mut [entry].into_iter(), &mut put).unwrap();
    assert_eq!(files[0].path, format!("archive/{path}"));
    assert_eq!(files[0].moved_from.as_ref(), Some(&path));
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
