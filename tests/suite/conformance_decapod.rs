//! Statements of the seed Decapod, typed into a real process: provenance, memories, gates, archive.

use crate::support::conformance::conforms;
use crate::support::node_process::{printed, text};
use crate::support::node_with_home::{Scene, days_ago};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::NewEntry;
use klnode_tests::test_engine::{lesson, newest_schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

fn norm(title: &str) -> NewEntry {
    NewEntry { kind: EntryType::Norm, memory: Memory::Procedural, ..lesson(title) }
}

fn link(relation: Relation, to: EntryId) -> ClaimEdit {
    ClaimEdit::Link(Link { relation, to })
}

#[test]
fn every_kind_of_evidence_is_kept_with_its_reference_and_time() {
    conforms("S001-14");
    conforms("S001-15");
    conforms("S001-17");
    let scene = Scene::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    for kind in ["commit", "pr", "doc", "test", "transcript"] {
        let before = now();
        let cited = format!("{kind}:{kind}-7");
        let words = ["add", "--title", kind, "--content", kind, "--evidence", &cited];
        let code = text(&scene.done(&words)["code"]);
        let citations = scene.show(&code)["citations"].clone();
        assert_eq!(citations.as_array().map(Vec::len), Some(1), "{citations}");
        assert_eq!(citations[0]["evidence_type"], kind);
        assert_eq!(citations[0]["evidence_ref"], format!("{kind}-7"));
        let at = citations[0]["cited_at"].as_u64().unwrap();
        assert!((before - 1..=now()).contains(&at), "{at}");
    }
    let words = ["add", "--title", "t", "--content", "c", "--evidence"];
    let told = scene.refused(&[&words[..], &["rumour:9"]].concat(), 2);
    assert!(told.contains("must be one of commit, pr, doc, test, transcript"), "{told}");
    assert!(scene.refused(&[&words[..], &["commit:"]].concat(), 2).contains("is empty"));
}

#[test]
fn evidence_is_only_added() {
    conforms("S001-19");
    conforms("S001-30");
    conforms("S001-58");
    let scene = Scene::new();
    let code = scene.add("Flush the queue", "Before the exit.", &[]);
    let first = scene.show(&code)["citations"][0].clone();
    scene.done(&["edit", &code, "--evidence", "commit:1a2b3c"]);
    scene.done(&["edit", &code, "--title", "Flush every queue", "--content", "Always."]);
    let citations = scene.show(&code)["citations"].as_array().cloned().unwrap();
    assert_eq!(citations.len(), 2, "{citations:?}");
    assert!(citations.contains(&first), "the first is unchanged: {citations:?}");
    assert!(citations.iter().any(|one| one["evidence_ref"] == "1a2b3c"), "{citations:?}");
    let told = scene.refused(&["edit", &code, "--remove-evidence", "doc:notes"], 2);
    assert!(told.contains("unexpected argument"), "there is no way to remove it: {told}");
}

#[test]
fn knowledge_without_evidence_is_refused() {
    conforms("S001-18");
    conforms("S001-40");
    conforms("S001-48");
    conforms("S001-55");
    let scene = Scene::new();
    let words = ["add", "--title", "Use conventional commits", "--content", "Always."];
    for kind in ["lesson", "norm", "entity", "relation"] {
        let told = scene.refused(&[&words[..], &["--type", kind]].concat(), 2);
        assert!(told.contains("provenance required"), "{kind}: {told}");
        assert!(told.contains("needs evidence and cites none"), "{kind}: {told}");
    }
    assert_eq!(scene.json(&["list"])["entries"], json!([]), "nothing was written");
    scene.done(&[&words[..], &["--type", "signal"]].concat());
}

#[test]
fn an_entry_that_breaks_the_schema_is_not_written() {
    conforms("S001-39");
    conforms("S001-56");
    let scene = Scene::new();
    let words = ["add", "--title", "t", "--content", "c", "--evidence", "doc:d"];
    for (more, part) in [
        (&["--type", "poem"][..], "poem"),
        (&["--type", "norm", "--sub-type", "bug"], "sub_type is `bug`"),
        (&["--outcome", "confirmed"], "only a spike has one"),
        (&["--polarity", "up"], "polarity is `up`"),
        (&["--decay", "weekly"], "decay_class is `weekly`"),
        (&["--memory", "episodic"], "memory is episodic"),
        (&["--title", " "], "title"),
    ] {
        let words: Vec<&str> = match more[0] {
            "--title" => [&["add"], more, &words[3..]].concat(),
            _ => [&words[..], more].concat(),
        };
        let told = scene.refused(&words, 2);
        assert!(told.contains(part), "{more:?}: {told}");
    }
    assert_eq!(scene.json(&["list"])["entries"], json!([]));
}

#[test]
fn the_three_memories_stay_apart() {
    conforms("S001-01");
    conforms("S001-25");
    conforms("S001-26");
    conforms("S001-62");
    let scene = Scene::new();
    let fact = scene.add("The zqmemory cache is warm", "It is.", &[]);
    scene.add("The zqmemory queue is bounded", "It is.", &[]);
    let add_norm = |title: &str, sub_type: &str| {
        scene.add(title, "Always.", &["--type", "norm", "--sub-type", sub_type])
    };
    let commit = add_norm("Name the zqmemory area in a commit", "commit");
    let pr = add_norm("Link the zqmemory issue in a request", "pr");
    let habit =
        scene.add("The agent retries zqmemory tests", "Thrice.", &["--type", "calibration"]);
    let listed = |words: &[&str]| {
        let list = scene.json(&[&["list"], words].concat());
        let entries = list["entries"].as_array().cloned().unwrap();
        let mut codes: Vec<String> = entries.iter().map(|one| text(&one["code"])).collect();
        codes.sort();
        codes
    };
    let mut norms = vec![commit.clone(), pr];
    norms.sort();
    assert_eq!(listed(&["--memory", "procedural"]), norms);
    assert_eq!(listed(&["--memory", "procedural", "--sub-type", "commit"]), [commit]);
    assert_eq!(listed(&["--memory", "semantic"]).len(), 2);
    assert_eq!(listed(&["--memory", "semantic", "-n", "1"]).len(), 1);
    assert_eq!(listed(&["--memory", "episodic"]), std::slice::from_ref(&habit));
    assert_eq!(listed(&["--type", "calibration"]), std::slice::from_ref(&habit));
    assert_eq!(scene.show(&habit)["content"], "Thrice.");
    let found = scene.found("zqmemory", &["--all", "-n", "10"]);
    assert!(
        found.contains(&fact) && !found.contains(&habit),
        "raw memory is not served: {found:?}"
    );
    let moved = scene.refused(&["edit", &fact, "--field", "type=calibration"], 2);
    assert!(moved.contains("memory is semantic"), "{moved}");
}

#[test]
fn a_norm_is_written_with_its_kind() {
    conforms("S001-24");
    let scene = Scene::new();
    for kind in ["commit", "pr", "expectation"] {
        let code = scene.add(
            &format!("A norm of {kind}"),
            "Always.",
            &["--type", "norm", "--sub-type", kind],
        );
        let shown = scene.show(&code);
        assert_eq!(
            (&shown["memory"], &shown["registers"]["sub_type"]),
            (&json!("procedural"), &json!(kind))
        );
        // The command of Decapod gives the kind to an object that names none.
        let object = json!({"id": format!("norm.{kind}.001"), "rule": format!("Rule of {kind}")});
        let object = object.to_string();
        let words = ["knowledge", "add", "--type", "procedural", "--norm-type", kind];
        let more = ["--evidence", "doc:team", "--content", &object];
        scene.done(&[&words[..], &more].concat());
        let list = ["knowledge", "list", "--type", "procedural", "--norm-type", kind];
        let listed = scene.done(&list);
        let titles = listed["entries"].as_array().unwrap().iter().map(|one| text(&one["title"]));
        let titles: BTreeSet<String> = titles.collect();
        assert_eq!(titles, [format!("A norm of {kind}"), format!("Rule of {kind}")].into());
    }
}

#[test]
fn only_procedural_entries_block_and_the_report_names_each_error() {
    conforms("S001-20");
    conforms("S001-21");
    conforms("S001-31");
    conforms("S001-41");
    conforms("S001-46");
    let mut node = days_ago(1);
    let fact = node.create("a fact");
    node.claim(fact, link(Relation::RELATED, EntryId::from_bytes([9; 16])));
    let scene = Scene::of(node);
    let output = scene.run(&["check", "rules", "--json"]);
    assert!(output.status.success(), "a fact is advisory");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |report: &Value| {
        let rules = &report["rules"];
        (rules["blocking"].clone(), rules["warnings"].clone(), rules["marked"][0]["mark"].clone())
    };
    assert_eq!(of(&report), (json!(0), json!(1), json!("links")), "{report}");

    let mut node = days_ago(1);
    let friction =
        NewEntry { kind: EntryType::Friction, memory: Memory::Episodic, ..lesson("raw") };
    let raw = node.create_new(friction);
    let made = node.create_new(norm("made of something raw"));
    let fact = node.create("a fact that is made of it");
    for entry in [made, fact] {
        node.claim(entry, link(Relation::DERIVED_FROM, raw));
    }
    let scene = Scene::of(node);
    let output = scene.run(&["check", "rules", "--json"]);
    assert_eq!(output.status.code(), Some(1), "a norm blocks");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(of(&report), (json!(1), json!(1), json!("backflow")), "{report}");
    let marked = report["rules"]["marked"].as_array().unwrap();
    let blocking: Vec<&Value> = marked.iter().filter(|one| one["blocks"] == true).collect();
    assert_eq!(blocking.len(), 1, "{report}");
    assert_eq!(blocking[0]["id"], made.to_string(), "the fact of the same origin only warns");
}

#[test]
fn a_norm_that_was_not_confirmed_for_90_days_is_reported() {
    conforms("S001-42");
    let mut node = days_ago(91);
    let old = node.create_new(norm("sign every release"));
    node.create("a fact of the same day");
    node.wait_days(2);
    node.create_new(norm("review every change"));
    let scene = Scene::of(node);
    let output = scene.run(&["check", "rules", "--json"]);
    assert!(output.status.success(), "it warns and does not block");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let marked = report["rules"]["marked"].as_array().unwrap();
    assert_eq!(marked.len(), 1, "{report}");
    assert_eq!(
        (&marked[0]["mark"], &marked[0]["id"]),
        (&json!("outdated"), &json!(old.to_string()))
    );
}

#[test]
fn a_gate_is_chosen_by_name_and_sets_the_exit_code() {
    conforms("S001-45");
    let mut node = days_ago(91);
    let raw = node.create_new(NewEntry {
        kind: EntryType::Friction,
        memory: Memory::Episodic,
        ..lesson("raw")
    });
    let made = node.create_new(norm("made of something raw"));
    node.claim(made, link(Relation::DERIVED_FROM, raw));
    node.claim(made, link(Relation::RELATED, EntryId::from_bytes([9; 16])));
    let scene = Scene::of(node);
    for (gate, code, counts) in [
        ("knowledge.schema", 0, [0, 0]),
        ("knowledge.provenance", 0, [0, 0]),
        ("knowledge.links", 0, [0, 1]),
        ("knowledge.staleness", 0, [0, 1]),
        ("knowledge.contradictions", 0, [0, 0]),
        ("episodic.no_backflow", 1, [1, 0]),
    ] {
        let output = scene.run(&["check", "--gate", gate, "--json"]);
        assert_eq!(output.status.code(), Some(code), "{gate}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let report = &report[gate];
        assert_eq!(report["passed"], code == 0, "{gate}: {report}");
        assert_eq!(
            [&report["blocking"], &report["warnings"]],
            [&json!(counts[0]), &json!(counts[1])]
        );
    }
    let both = scene.run(&["check", "--gate", "knowledge.links", "--gate", "episodic.no_backflow"]);
    assert_eq!(both.status.code(), Some(1));
    let said = String::from_utf8(both.stdout).unwrap();
    assert!(said.contains("knowledge.links  passed: 0 block, 1 warn\n"), "{said}");
    assert!(said.ends_with("episodic.no_backflow  failed: 1 block, 0 warn\n"), "{said}");
    let told = scene.refused(&["check", "--gate", "knowledge.poems"], 2);
    assert!(told.contains("knowledge.schema"), "{told}");
}

#[test]
fn old_entries_are_archived_together_and_keep_their_evidence() {
    conforms("S001-32");
    let mut node = days_ago(100);
    let old = node.create("an old lesson about zqarchive").to_string();
    let gone = node.create("an archived lesson").to_string();
    node.wait_days(95);
    let young = node.create("a young lesson about zqarchive").to_string();
    let scene = Scene::of(node);
    scene.done(&["archive", &gone]);
    let ids = |report: &Value| {
        let entries = report["entries"].as_array().unwrap();
        entries.iter().map(|one| text(&one["id"])).collect::<Vec<String>>()
    };
    let before = scene.show(&old)["citations"].clone();
    assert_eq!(
        ids(&scene.done(&["archive", "--older-than", "30", "--dry-run"])),
        std::slice::from_ref(&old)
    );
    assert_ne!(scene.show(&old)["status"], "archived", "a dry run changes nothing");
    assert_eq!(ids(&scene.done(&["archive", "--older-than", "30"])), std::slice::from_ref(&old));
    let shown = scene.show(&old);
    assert_eq!((&shown["status"], &shown["citations"]), (&json!("archived"), &before));
    assert_eq!(scene.show(&young)["status"], "candidate");
    let none = scene.run(&["archive", "--older-than", "30"]);
    assert_eq!(none.status.code(), Some(1), "there are no more");
    scene.done(&["archive", &old, "--undo"]);
    assert_ne!(scene.show(&old)["status"], "archived");
}

#[test]
fn friction_does_not_become_a_norm_by_itself() {
    conforms("S001-49");
    let scene = Scene::new();
    let words = ["task", "friction", "record", "--type", "validation_fail", "--context"];
    let code = text(&scene.done(&[&words[..], &[r#"{"test":"fail"}"#]].concat())["code"]);
    let told = scene.refused(&["add", "--from", &code, "--memory", "procedural"], 2);
    assert!(told.contains("directional flow violation"), "{told}");
    assert_eq!(scene.json(&["list", "--memory", "procedural"])["entries"], json!([]));
}

#[test]
fn friction_is_recorded_with_its_kind_and_the_context_of_the_tool() {
    conforms("S001-33");
    let scene = Scene::new();
    for kind in ["tool_error", "redo", "validation_fail"] {
        let words = ["task", "friction", "record", "--type", kind, "--context"];
        let code = text(&scene.done(&[&words[..], &[r#"{ "exit": 7 }"#]].concat())["code"]);
        let shown = scene.show(&code);
        assert_eq!(
            (&shown["type"], &shown["registers"]["sub_type"]),
            (&json!("friction"), &json!(kind))
        );
        assert_eq!(shown["content"], format!("{kind}\n\n{{\"exit\":7}}"));
    }
    let words = ["task", "friction", "record", "It hangs", "--context"];
    let told = scene.refused(&[&words[..], &["{not json"]].concat(), 2);
    assert!(told.contains("--context is no JSON"), "{told}");
    let told =
        scene.refused(&["task", "friction", "record", "--type", "poem", "--context", "1"], 2);
    assert!(told.contains("validation_fail"), "{told}");
}

#[test]
fn the_example_norms_can_be_added_and_keep_every_rule() {
    conforms("S001-51");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/norms");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|of| of == "md")).collect();
    assert!((5..=10).contains(&files.len()), "{files:?}");
    let scene = Scene::new();
    for file in &files {
        printed(&scene.run(&["add", file.to_str().unwrap()]));
    }
    let listed = scene.json(&["list", "--memory", "procedural", "--type", "norm"]);
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(files.len()), "{listed}");
    printed(&scene.run(&["check", "rules"]));
}

#[test]
fn a_home_of_an_older_schema_is_read_and_written() {
    conforms("S001-57");
    for schema in 1..newest_schema() {
        let mut node = days_ago(1);
        let old = node.create("about zqschema").to_string();
        let scene = Scene::of_schema(node, schema);
        assert_eq!(scene.show(&old)["title"], "about zqschema", "schema {schema}");
        let new = scene.add("About zqschema as well", "Written today.", &[]);
        assert!(scene.found("zqschema", &[]).contains(&new), "schema {schema}");
    }
}

#[test]
fn a_citation_names_the_agent_of_the_task() {
    conforms("S001-16");
    let scene = Scene::new();
    let begin = ["task", "begin", "--agent", "reviewer", "--goal", "look at it"];
    let task = text(&scene.done(&begin)["task"]);
    let add = |more: &[&str]| {
        let code = scene.add("Flush the queue", "Before the exit.", more);
        text(&scene.show(&code)["citations"][0]["cited_by"])
    };
    assert_eq!(add(&["--task", &task]), "reviewer");
    assert_eq!(add(&[]), text(&scene.done(&["status"])["node"]), "outside a task the node cites");
}

#[test]
fn a_schema_of_a_norm_describes_the_entries_that_are_accepted() {
    conforms("S001-50");
    let scene = Scene::new();
    for kind in ["commit", "pr", "expectation"] {
        let schema = scene.done(&["generate", "schema", &format!("norm/{kind}")]);
        assert_eq!(schema["additionalProperties"], false);
        let mut entry = json!({"title": format!("A norm of {kind}"), "content": "Always."});
        entry["evidence"] = json!(["doc:notes"]);
        for field in ["type", "sub_type"] {
            entry[field] = schema["properties"][field]["const"].clone();
        }
        let file = scene.folder().join("norm.json");
        let add = |entry: &Value| {
            std::fs::write(&file, entry.to_string()).unwrap();
            scene.run(&["add", file.to_str().unwrap()]).status.code()
        };
        for field in schema["required"].as_array().unwrap() {
            let mut less = entry.clone();
            less.as_object_mut().unwrap().remove(field.as_str().unwrap()).expect("a field");
            // Without its type or sub-type an entry is another one.
            if field != "type" && field != "sub_type" {
                assert_eq!(add(&less), Some(2), "{kind} without {field}");
            }
        }
        assert_eq!(add(&entry), Some(0), "{kind}: {entry}");
        entry["rule"] = json!("unknown");
        assert_eq!(add(&entry), Some(2), "{kind} with an unknown field");
    }
    let all = scene.done(&["generate", "schema"]);
    assert_eq!(all["$defs"]["norm/commit"]["properties"]["sub_type"]["const"], "commit");
    assert_eq!(scene.done(&["schema"]), all);
    let commit = scene.done(&["schema", "norm/commit"]);
    assert_eq!(commit, scene.done(&["generate", "schema", "norm/commit"]));
    assert!(scene.refused(&["generate", "schema", "poem"], 2).contains("norm/commit"));
    assert!(scene.refused(&["schema", "poem"], 2).contains("norm/commit"));
}

#[test]
fn the_health_report_is_written_to_a_file_in_any_case() {
    conforms("S001-35");
    let scene = Scene::with(&["tuning.audit.friction_max=1"]);
    let file = scene.folder().join("latest.json");
    let words = ["check", "limits", "--report", file.to_str().unwrap()];
    let report = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let printed = scene.done(&words);
    assert_eq!(report(), printed["limits"]);
    assert_eq!(
        (&report()["well"], report()["measures"].as_array().unwrap().len()),
        (&json!(true), 6)
    );
    for text in ["CI is slow", "The linter hangs"] {
        scene.done(&["task", "friction", "record", text, "--kind", "tool_error"]);
    }
    let output = scene.run(&words);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report()["well"], false, "the report is replaced");
    let missing = scene.folder().join("nowhere/latest.json");
    let told = scene.refused(&["check", "limits", "--report", missing.to_str().unwrap()], 1);
    assert!(told.contains("Cannot write the report to"), "{told}");
}

#[test]
fn a_number_over_its_limit_writes_a_proposal_for_a_review() {
    conforms("S001-36");
    let scene = Scene::with(&["tuning.audit.friction_max=1"]);
    let file = scene.folder().join("proposal.json");
    let words = ["check", "limits", "--proposal", file.to_str().unwrap()];
    assert!(scene.run(&words).status.success());
    assert!(!file.exists(), "nothing is over its limit");
    for text in ["CI is slow", "The linter hangs"] {
        scene.done(&["task", "friction", "record", text, "--kind", "tool_error"]);
    }
    assert_eq!(scene.run(&words).status.code(), Some(1));
    let proposal: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let findings = proposal["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{proposal}");
    assert_eq!((&findings[0]["measure"], &findings[0]["value"]), (&json!("friction"), &json!(2.0)));
    assert_eq!(findings[0]["review"], "klnode task friction report");
}
