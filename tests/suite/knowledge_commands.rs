//! `klnode knowledge`: the commands of Decapod, with the three tests of its description.

use crate::support::conformance::conforms;
use crate::support::node_process::{eventually, printed, text, told};
use crate::support::node_with_home::{Scene, days_ago};
use klnode_engine::Command;
use klnode_store::row_types::ServedRow;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn entity(id: &str) -> Value {
    json!({
        "id": id,
        "type": "entity",
        "schema_version": "1.0.0",
        "name": "TestEntity",
        "description": "A test entity",
        "provenance": [{
            "evidence_type": "commit",
            "evidence_ref": "abc123",
            "cited_by": "agent-test",
            "cited_at": 1_700_000_000
        }]
    })
}

#[test]
fn an_entity_is_added_by_its_id_and_read_back_unchanged() {
    conforms("S001-23");
    conforms("S001-27");
    conforms("S001-47");
    let scene = Scene::new();
    let entry = entity("entity.test.001");
    let words = ["knowledge", "add", "--type", "semantic", "--content"];
    printed(&scene.run(&[&words[..], &[&entry.to_string()]].concat()));
    let read = printed(&scene.run(&["knowledge", "show", "entity.test.001"]));
    let parsed: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(parsed, entry);
    // The ordinary verb finds it by that id too, and a second time changes nothing.
    assert_eq!(scene.show("entity.test.001")["title"], "TestEntity");
    let again = scene.done(&[&words[..], &[&entry.to_string()]].concat());
    assert_eq!(again["added"], false);
    scene.done(&["knowledge", "reweave", "--entry", "entity.test.001", "--evidence", "pr:77"]);
    let citations = scene.show("entity.test.001")["citations"].clone();
    let cited: Vec<&Value> =
        citations.as_array().unwrap().iter().map(|of| &of["evidence_ref"]).collect();
    assert!(cited.contains(&&json!("77")) && cited.contains(&&json!("abc123")), "{cited:?}");
    let bare = json!({"id": "entity.test.002", "name": "Other", "description": "Bare."});
    let bare = bare.to_string();
    printed(&scene.run(&[&words[..], &[&bare, "--evidence", "commit:abc123"]].concat()));
    let listed = scene.done(&["knowledge", "list", "--type", "semantic", "--limit", "9"]);
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(2));
    let told = scene.refused(&["knowledge", "show", "entity.test.009"], 2);
    assert!(told.contains("entity.test.009"), "{told}");
}

#[test]
fn a_norm_without_evidence_is_refused_and_one_with_evidence_is_kept() {
    let scene = Scene::new();
    let norm = json!({
        "id": "norm.commit.001",
        "type": "commit_norm",
        "rule": "Use conventional commits",
    });
    let norm = norm.to_string();
    let words = ["knowledge", "add", "--type", "procedural", "--norm-type", "commit"];
    let words = [&words[..], &["--content", &norm]].concat();
    let told = scene.refused(&words, 2);
    assert!(told.contains("provenance required"), "{told}");
    assert_eq!(scene.json(&["list"])["entries"], json!([]));
    printed(&scene.run(&[&words[..], &["--evidence", "doc:CONTRIBUTING.md"]].concat()));
    let list = ["knowledge", "list", "--type", "procedural", "--norm-type", "commit"];
    assert_eq!(scene.done(&list)["entries"][0]["title"], "Use conventional commits");
    let verified = scene.done(&["knowledge", "verify"]);
    assert_eq!(verified.as_object().map(serde_json::Map::len), Some(6), "{verified}");
    for wrong in ["{not json", "[1]", r#"{"id": "x", "type": "friction", "message": "slow"}"#] {
        let words = ["knowledge", "add", "--type", "semantic", "--content", wrong];
        scene.refused(&words, 2);
    }
}

#[test]
fn reflect_reports_duplicates_contradictions_and_proposed_links() {
    conforms("S001-29");
    let mut node = days_ago(1);
    let titles = ["Drain the queue", "Key the cache", "Count the threads"];
    let served = titles.map(|title| node.create(title));
    for _ in 0..20 {
        let entries = served.to_vec();
        let row = ServedRow { query: "what".into(), entries, ..ServedRow::default() };
        node.run(Command::Served(row)).unwrap();
    }
    let scene = Scene::of(node);
    let same = [(); 2].map(|()| scene.add("Pin the linker version", "Builds differ.", &[]));
    for (title, polarity) in
        [("Retry POST requests", "positive"), ("Do not retry POST requests", "negative")]
    {
        let more = ["--tag", "billing", "--tag", "http", "--polarity", polarity];
        scene.add(title, &format!("{title} to the billing service after a timeout."), &more);
    }
    // The index may be behind the last entries, which are examined by the next run.
    let report = eventually("both pairs are found", || {
        let report = scene.done(&["knowledge", "reflect"]);
        let count = |part: &str| report[part].as_array().unwrap().len();
        (count("merged") == 1 && count("contradictions") == 1).then_some(report)
    });
    let merged = report["merged"][0]["entries"].as_array().unwrap();
    let merged: BTreeSet<String> = merged.iter().map(|entry| text(&entry["code"])).collect();
    assert_eq!(merged, same.into());
    let links = report["links"].as_array().unwrap();
    assert_eq!(links.len(), 2, "{report}");
    for link in links {
        let command = text(&link["command"]);
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        scene.done(&words);
    }
    assert_eq!(scene.done(&["knowledge", "reflect"])["links"], json!([]), "they are linked");
    let said = scene.said(&["knowledge", "reflect"]);
    assert!(said.contains("     1 contradictions"), "{said}");
}

#[test]
fn friction_leaves_episodic_memory_only_with_evidence_and_an_approval() {
    conforms("S001-44");
    conforms("S001-53");
    conforms("S001-54");
    let scene = Scene::new();
    let record = ["task", "friction", "record", "--type", "validation_fail", "--context"];
    let raw = text(&scene.done(&[&record[..], &[r#"{"test":"fail"}"#]].concat())["code"]);
    for from in ["episodic/friction", "episodic", raw.as_str()] {
        let words = ["knowledge", "promote", "--from", from, "--to", "procedural"];
        let output = scene.run(&words);
        assert!(!output.status.success());
        assert!(told(&output).contains("directional flow violation"), "{}", told(&output));
    }
    assert_eq!(scene.done(&["list", "--promoted"])["promotions"], json!([]));
    let copy = ["add", "--from", &raw, "--evidence", "run:ci-12"];
    let said = scene.refused(&copy, 4);
    assert!(said.contains("directional flow violation") && said.contains("--approve"), "{said}");
    let said = scene.refused(&[&copy[..], &["--approve", " "]].concat(), 2);
    assert!(said.contains("reason"), "{said}");
    let reason = "seen in five builds";
    let made = scene.done(&[&copy[..], &["--approve", reason]].concat());
    let ledger = scene.done(&["list", "--promoted"])["promotions"].clone();
    assert_eq!(ledger.as_array().map(Vec::len), Some(1), "{ledger}");
    let row = &ledger[0];
    assert_eq!((&row["source_code"], &row["target"]), (&json!(raw), &made["id"]));
    assert_eq!(
        (&row["target_memory"], &row["evidence"]),
        (&json!("semantic"), &json!(["run:ci-12"]))
    );
    assert_eq!((&row["approver"], &row["reason"]), (&json!("caller"), &json!(reason)));
    assert!(row["at"].as_u64().unwrap() > 1_700_000_000_000, "{row}");
    assert_eq!(scene.show(&text(&made["code"]))["promotion"]["reason"], reason);
    // Later evidence is no part of the promotion.
    scene.done(&["edit", &text(&made["code"]), "--evidence", "pr:9"]);
    assert_eq!(scene.done(&["list", "--promoted"])["promotions"], ledger);
    let gate = scene.run(&["check", "--gate", "episodic.no_backflow"]);
    assert!(gate.status.success(), "{}", told(&gate));
    let out = scene.folder().join("out");
    scene.done(&["export", "--format", "decapod", out.to_str().unwrap()]);
    let exported = std::fs::read_to_string(out.join("knowledge.promotions.jsonl")).unwrap();
    let exported: Value = serde_json::from_str(exported.trim_end()).unwrap();
    assert_eq!(
        (&exported["target_class"], &exported["reason"]),
        (&json!("semantic"), &json!(reason))
    );
    assert_eq!(exported["evidence_refs"], json!(["run:ci-12"]));
    assert_eq!(exported["source_entry_id"], row["source"]);
}

#[test]
fn typed_links_form_a_graph_that_is_read_in_both_directions() {
    conforms("S001-60");
    let scene = Scene::new();
    let add = |title: &str| scene.add(title, "It exists.", &["--type", "entity"]);
    let (web, auth, store) = (add("The web front end"), add("The auth service"), add("The store"));
    scene.done(&["edit", &web, "--link", &format!("uses:{auth}")]);
    scene.done(&["edit", &auth, "--link", &format!("depends_on:{store}")]);
    let links = |words: &[&str]| {
        let found = scene.done(&[&["show"], words].concat());
        let links = found["links"].as_array().cloned().unwrap();
        let relations: Vec<String> = links.iter().map(|link| text(&link["relation"])).collect();
        (found["entries"].as_array().map(Vec::len), relations)
    };
    assert_eq!(links(&[&web, "--links"]), (Some(2), vec!["uses".to_owned()]));
    let (entries, mut relations) = links(&[&auth, "--links"]);
    relations.sort();
    assert_eq!((entries, relations), (Some(3), vec!["depends_on".to_owned(), "uses".to_owned()]));
    assert_eq!(links(&[&store, "--links", "--depth", "2"]).0, Some(3), "against the direction");
    assert_eq!(links(&[&auth, "--links", "--relation", "uses"]).0, Some(2));
    let by_verb = |words: &[&str]| scene.done(&[&["links"], words].concat());
    let by_show = |words: &[&str]| scene.done(&[&["show", "--links"], words].concat());
    for words in [
        &[web.as_str()][..],
        &[store.as_str(), "--depth", "2"],
        &[auth.as_str(), "--relation", "uses"],
    ] {
        assert_eq!(by_verb(words), by_show(words), "{words:?}");
    }
    let said = printed(&scene.run(&["show", &web, "--links"]));
    assert!(said.starts_with(&format!("{web}  uses  {auth}\n")), "{said}");
    assert_eq!(scene.show(&web)["links"][0]["relation"], "uses");
    scene.done(&["edit", &web, "--unlink", &format!("uses:{auth}")]);
    let none = printed(&scene.run(&["show", &web, "--links"]));
    assert!(none.contains("has no links"), "{none}");
    for (link, part) in [
        (format!("eats:{auth}"), "must be one of"),
        (format!("supersedes:{auth}"), "cannot state `supersedes`"),
        (format!("uses:{web}"), "leads to the entry itself"),
        ("uses".to_owned(), "RELATION:ENTRY"),
    ] {
        let told = scene.refused(&["edit", &web, "--link", &link], 2);
        assert!(told.contains(part), "{link}: {told}");
    }
}
