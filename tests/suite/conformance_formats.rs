//! Statements of the seeds about files: layouts and fields, through an import and an export.

use crate::support::conformance::conforms;
use crate::support::node_process::{eventually, text as text_of, told};
use crate::support::peer_processes::Peer;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Imports the fixture of a format and exports it again.
fn round_trip(format: &str) -> (Peer, tempfile::TempDir) {
    let node = Peer::start();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let fixture = root.join("node/formats/fixtures").join(format);
    node.type_in(&["import", fixture.to_str().unwrap(), "--yes"]);
    let out = tempfile::tempdir().unwrap();
    let written = node.type_in(&["export", "--format", format, out.path().to_str().unwrap()]);
    assert!(written.status.success(), "{}", told(&written));
    (node, out)
}

/// All files below a folder, relative to it.
fn files(folder: &Path) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().into()),
            }
        }
    }
    found.sort();
    found
}

fn read(folder: &tempfile::TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn flux_drive_entries_are_files_with_front_matter_and_an_archive() {
    conforms("S000-01");
    conforms("S000-02");
    conforms("S000-03");
    conforms("S000-12");
    conforms("S000-37");
    let (_node, out) = round_trip("flux-drive");
    let listed = files(out.path());
    assert!(listed.iter().all(|name| name.ends_with(".md")), "{listed:?}");
    assert!(listed.contains(&"batch-size.md".to_owned()), "{listed:?}");
    assert!(listed.contains(&"archive/feature-flags.md".to_owned()), "{listed:?}");
    let text = read(&out, "batch-size.md");
    let (head, _) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let field = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name} in {head}")).to_owned()
    };
    let date = field("lastConfirmed");
    assert!(date.len() >= 10 && date[..10].matches('-').count() == 2, "{date}");
    assert!(["independent", "primed"].contains(&field("provenance").as_str()), "{head}");
}

#[test]
fn decapod_entries_are_json_lines_in_its_layout() {
    conforms("S001-03");
    conforms("S001-12");
    conforms("S001-63");
    let (_node, out) = round_trip("decapod");
    let listed = files(out.path());
    let entities = "semantic/v1/entities/entity.all.jsonl";
    for name in [entities, "episodic/v1/friction_ledger.jsonl"] {
        assert!(listed.contains(&name.to_owned()), "{listed:?}");
    }
    for line in read(&out, entities).lines() {
        let entity: Value = serde_json::from_str(line).unwrap();
        for field in ["id", "type", "schema_version", "name", "description", "provenance"] {
            assert!(!entity[field].is_null(), "no {field} in {line}");
        }
    }
}

#[test]
fn gsd_entries_have_their_folders_and_an_index() {
    conforms("S002-35");
    conforms("S002-41");
    conforms("S002-64");
    let (_node, out) = round_trip("gsd");
    let listed = files(out.path());
    for folder in ["signals/", "spikes/", "lessons/"] {
        assert!(listed.iter().any(|name| name.starts_with(folder)), "{folder}: {listed:?}");
    }
    let index = read(&out, "index.md");
    let rows: Vec<&str> = index.lines().filter(|line| line.contains(".md |")).collect();
    let in_folders = listed.iter().filter(|name| *name != "index.md").count();
    assert_eq!(rows.len(), in_folders, "one row per file:\n{index}");
    let row = rows.iter().find(|row| row.contains("connection-pools.md")).unwrap();
    assert!(row.contains("performance/connection-pools"), "its tags: {row}");
    assert!(row.trim_end_matches([' ', '|']).ends_with("Connection pools"), "one line: {row}");
}

#[test]
fn wfc_reviewers_have_a_file_each_with_its_sections() {
    conforms("S003-02");
    conforms("S003-27");
    let (_node, out) = round_trip("wfc");
    let listed = files(out.path());
    for reviewer in ["security", "correctness", "performance", "maintainability", "reliability"] {
        assert!(listed.contains(&format!("{reviewer}/KNOWLEDGE.md")), "{listed:?}");
    }
    let all: String = listed.iter().map(|name| read(&out, name)).collect();
    for section in ["Patterns Found", "Repository-Specific Rules", "Codebase Context"] {
        assert!(all.contains(&format!("## {section}\n")), "no section {section}");
    }
}

/// Exports all entries of a node in a format.
fn exported(node: &Peer, format: &str) -> tempfile::TempDir {
    let out = tempfile::tempdir().unwrap();
    let written = node.type_in(&["export", "--format", format, out.path().to_str().unwrap()]);
    assert!(written.status.success(), "{}", told(&written));
    out
}

#[test]
fn entries_of_every_memory_have_their_folder_and_file_name_in_the_layout_of_decapod() {
    conforms("S001-04");
    conforms("S001-05");
    conforms("S001-08");
    conforms("S001-13");
    let node = Peer::start();
    let write = |kind: &str, sub_type: Option<&str>| {
        let title = format!("About {}", sub_type.unwrap_or(kind));
        let more =
            ["--type", kind].into_iter().chain(sub_type.iter().flat_map(|of| ["--sub-type", of]));
        node.add(&title, &more.collect::<Vec<&str>>())
    };
    let norms = [
        ("commit", "commit_norms"),
        ("pr", "pr_expectations"),
        ("expectation", "user_expectations"),
        ("risk", "risk_tiers"),
    ];
    let mut expected: Vec<String> = norms
        .iter()
        .map(|(of, folder)| {
            format!("procedural/v1/{folder}/norm.{}.jsonl", write("norm", Some(of)))
        })
        .collect();
    expected
        .push(format!("episodic/v1/calibration/calibration.{}.jsonl", write("calibration", None)));
    expected.push(format!("semantic/v1/relationships/relation.{}.jsonl", write("relation", None)));
    write("friction", None);
    write("friction", Some("redo"));
    expected.push("episodic/v1/friction_ledger.jsonl".into());
    let out = exported(&node, "decapod");
    let listed = files(out.path());
    for name in &expected {
        assert!(listed.contains(name), "{name}: {listed:?}");
    }
    assert_eq!(read(&out, "episodic/v1/friction_ledger.jsonl").lines().count(), 2);
    assert_eq!(read(&out, "VERSION"), "1.0.0\n");
    // The ledger of a memory has one row per citation, in a file named after its time.
    let ledger = listed.iter().find(|name| name.starts_with("procedural/v1/provenance/")).unwrap();
    let time = ledger.rsplit('/').next().unwrap().trim_end_matches(".jsonl");
    let row: Value = serde_json::from_str(read(&out, ledger).lines().next().unwrap()).unwrap();
    assert_eq!(row["cited_at"].to_string(), time);
    for field in ["entry_id", "evidence_type", "evidence_ref", "cited_by"] {
        assert!(row[field].is_string(), "no {field} in {row}");
    }
    // Another node reads the kinds back, and writes the same files.
    let other = Peer::start();
    other.type_in(&["import", out.path().to_str().unwrap(), "--yes"]);
    for (of, _) in norms {
        let list = other.json(&["list", "--memory", "procedural", "--sub-type", of]);
        assert_eq!(list["entries"].as_array().map(Vec::len), Some(1), "{of}: {list}");
    }
    let again = exported(&other, "decapod");
    assert_eq!(files(again.path()), listed);
    for name in &listed {
        assert_eq!(read(&again, name), read(&out, name), "{name}");
    }
}

#[test]
fn an_entry_made_from_findings_becomes_a_knowledge_file() {
    conforms("S000-20");
    let node = Peer::start_with("[tuning.tasks]\nfindings_comparison_delay = \"10 ms\"\n");
    let find = |agent: &str| {
        let begun = node.json(&["task", "begin", "--agent", agent, "--goal", "review"]);
        let task = text_of(&begun["task"]);
        let said = "Queries are built by joining strings, so a name with a quote breaks them.";
        let words = ["task", "finding", &task, "--severity", "high", "--confidence", "0.9"];
        let more = ["--anchor", "path:src/query.go", "--verify", "read the function"];
        node.json(&[&words[..], &more, &["--text", said]].concat());
        node.json(&["task", "finish", &task, "--success"]);
    };
    find("reviewer");
    find("auditor");
    eventually("the finding became an entry", || {
        let list = node.json(&["list", "--type", "finding"]);
        (list["entries"].as_array().map(Vec::len) == Some(1)).then_some(())
    });
    let out = exported(&node, "flux-drive");
    let listed = files(out.path());
    assert_eq!(listed.len(), 1, "{listed:?}");
    let text = read(&out, &listed[0]);
    assert!(text.starts_with("---\nlastConfirmed: "), "{text}");
    assert!(text.contains("Evidence: src/query.go"), "{text}");
    assert!(text.contains("Verify: read the function"), "{text}");
}
