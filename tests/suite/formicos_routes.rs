//! The routes and shapes of `FormicOS` under `/api/v1/`: the same data, gate and marks as `/v1/`.

use crate::support::conformance::conforms;
use crate::support::node_process::{eventually, text};
use crate::support::node_with_home::Scene;
use klnode_crdt::ids::EntryId;
use klnode_engine::Command;
use klnode_server::Limits;
use klnode_store::row_types::ServedRow;
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::Team;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;

/// A node with one tagged entry, and the id of the entry.
fn node() -> (Served, String) {
    let node = Served::start(Limits::default(), Doors::Both);
    let new = json!({
        "title": "About zqroute", "content": "Bound every queue.", "type": "skill",
        "sub_type": "pattern", "polarity": "positive",
        "tags": ["queues"], "evidence": ["doc:notes"], "thread": "fix",
    });
    let made = node.json("POST", "/v1/entries", &new);
    assert_eq!(made.status, 200, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    (node, id)
}

#[track_caller]
fn get(node: &Served, path: &str) -> Value {
    let answer = node.ask("GET", path, &[], b"");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

#[track_caller]
fn post(node: &Served, path: &str, body: &Value) -> Value {
    let answer = node.json("POST", path, body);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

fn names(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn knowledge_is_listed_found_and_shown_in_the_shapes_of_formicos() {
    conforms("S004-163");
    let (node, id) = node();
    let list = get(&node, "/api/v1/knowledge?type=skill&limit=1");
    assert_eq!(names(&list), ["items", "total"].into());
    assert_eq!(list["total"], 1);
    let item = &list["items"][0];
    let golden = json!({
        "id": id, "code": item["code"], "entry_type": "skill", "sub_type": "pattern",
        "status": "candidate", "polarity": "positive", "title": "About zqroute",
        "content": "Bound every queue.", "domains": ["queues"], "conf_alpha": 5.0,
        "conf_beta": 5.0, "confidence": 0.5, "decay_class": "ephemeral", "thread_id": "fix",
        "workspace_id": "main", "created_at": item["created_at"], "gate": "open",
    });
    assert_eq!(*item, golden);
    let created = item["created_at"].as_str().unwrap();
    assert!(created.starts_with("20") && created.ends_with('Z'), "{created}");
    assert_eq!(get(&node, &format!("/api/v1/knowledge/{id}")), golden);
    assert_eq!(get(&node, "/api/v1/knowledge?type=lesson"), json!({"items": [], "total": 0}));

    let found = get(&node, "/api/v1/knowledge/search?q=zqroute&thread=fix");
    assert_eq!(names(&found), ["results", "total"].into());
    let hit = &found["results"][0];
    assert_eq!((&hit["id"], &found["total"]), (&json!(id), &json!(1)));
    assert!(hit["score"].as_f64().unwrap() > 0.0, "{hit}");
    // The answer counts as served, like that of `/v1/search`.
    let served = eventually("the answer is in the log", || {
        let served = get(&node, "/v1/served");
        (!served["answers"].as_array().unwrap().is_empty()).then_some(served)
    });
    assert_eq!(
        (&served["answers"][0]["query"], served["answers"].as_array().unwrap().len()),
        (&json!("zqroute"), 1)
    );
    let outside = get(&node, "/api/v1/knowledge/search?q=zqroute");
    assert_eq!(
        outside,
        json!({"results": [], "total": 0}),
        "the thread limits it, as in `/v1/search`"
    );
    for (path, status) in [
        ("/api/v1/knowledge/search", 400),
        ("/api/v1/knowledge?limit=201", 400),
        ("/api/v1/knowledge/L-ZZZZ", 404),
        ("/api/v1/unknown", 404),
    ] {
        assert_eq!(node.ask("GET", path, &[], b"").status, status, "{path}");
    }
}

#[test]
fn a_search_answers_in_the_requested_detail() {
    conforms("S004-37");
    conforms("S004-38");
    let (node, id) = node();
    let content = "A long reason for it, ".repeat(20);
    let long = json!({
        "title": "About zqtier", "content": content, "tags": ["queues"], "evidence": ["doc:notes"],
    });
    assert_eq!(node.json("POST", "/v1/entries", &long).status, 200);
    let list = get(&node, "/api/v1/knowledge?limit=1");
    assert_eq!((&list["total"], list["items"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    let result = |tier: &str| {
        let found = get(&node, &format!("/api/v1/knowledge/search?q=zqtier&limit=1&tier={tier}"));
        found["results"][0].clone()
    };
    let summary = result("summary");
    assert_eq!(names(&summary), ["id", "title", "summary", "confidence_tier"].into());
    assert_eq!(summary["title"], "About zqtier");
    let characters = |of: &Value| of.as_str().unwrap().chars().count();
    assert!((70..=101).contains(&characters(&summary["summary"])), "{summary}");
    assert_eq!(summary["confidence_tier"], "exploratory");
    let standard = result("standard");
    assert_eq!(
        (&standard["domains"], &standard["decay_class"]),
        (&json!(["queues"]), &json!("ephemeral"))
    );
    assert!((150..=201).contains(&characters(&standard["content_preview"])), "{standard}");
    assert!(result("full")["content"].as_str().unwrap().len() > 400);
    assert!(result("auto")["domains"].is_array(), "one source is no broad coverage");
    let path = "/api/v1/knowledge/search?q=zqtier&tier=tiny";
    assert_eq!(node.ask("GET", path, &[], b"").status, 400);

    // The tier follows mean, observations and status.
    for _ in 0..9 {
        let task = post(&node, "/v1/tasks", &json!({"agent": "builder", "goal": "use it"}));
        let seen = json!({"outcome": "success", "task": task["task"]});
        post(&node, &format!("/v1/entries/{id}/observations"), &seen);
    }
    let path = "/api/v1/knowledge/search?q=zqroute&thread=fix&tier=summary";
    assert_eq!(get(&node, path)["results"][0]["confidence_tier"], "high");
}

#[test]
fn marks_promotion_and_origin_have_the_shapes_of_formicos() {
    conforms("S004-163");
    let (node, id) = node();
    let path = |act: &str| format!("/api/v1/knowledge/{id}/{act}");
    let overlay = |pinned: bool, muted: bool, notes: u32| {
        json!({"entry_id": id, "pinned": pinned, "muted": muted, "invalidated": false,
               "annotation_count": notes})
    };
    assert_eq!(get(&node, &path("overlay")), overlay(false, false, 0));
    for action in ["pin", "mute", "unmute", "invalidate", "reinstate"] {
        let done = post(&node, &path("action"), &json!({"action": action}));
        assert_eq!(done, json!({"ok": true, "entry_id": id, "action": action}));
    }
    let noted = post(
        &node,
        &path("annotate"),
        &json!({"annotation_text": "see the wiki", "tag": "doc", "actor": "me"}),
    );
    assert_eq!(noted, json!({"ok": true, "entry_id": id, "annotated": true}));
    assert_eq!(get(&node, &path("overlay")), overlay(true, false, 1));
    assert_eq!(get(&node, &format!("/v1/entries/{id}"))["note"], "doc: see the wiki");
    let wrong = node.json("POST", &path("action"), &json!({"action": "paint"}));
    assert_eq!(wrong.status, 400, "{}", wrong.text());

    let made = post(&node, &path("promote"), &json!({}));
    assert_eq!((&made["promoted"], &made["scope"]), (&json!(true), &json!("workspace")));
    let copy = get(&node, &format!("/api/v1/knowledge/{}", made["entry_id"].as_str().unwrap()));
    assert!(copy["thread_id"].is_null() && copy["title"] == "About zqroute", "{copy}");

    let origin = get(&node, &path("provenance"));
    let expected =
        ["entry_id", "author", "author_key", "citations", "merged_from", "events"].into();
    assert_eq!(names(&origin), expected);
    assert_eq!((&origin["author"], &origin["citations"]), (&json!("you"), &json!(["doc:notes"])));
    let event = &origin["events"][0];
    assert_eq!(names(event), ["timestamp", "actor", "detail"].into());
}

#[test]
fn briefing_and_outcomes_have_the_shapes_of_formicos() {
    conforms("S004-97");
    conforms("S004-152");
    let (node, _) = node();
    let begun = post(&node, "/v1/tasks", &json!({"agent": "builder", "goal": "mend it"}));
    let task = begun["task"].as_str().unwrap();
    let made = json!({"title": "Learned", "content": "New.", "task": task});
    post(&node, "/v1/entries", &made);
    let end = json!({"outcome": "success", "quality": 0.75, "cost": 2.0, "rounds": 3,
                     "strategy": "bisect"});
    post(&node, &format!("/v1/tasks/{task}/finish"), &end);
    let report = get(&node, "/api/v1/workspaces/main/outcomes?period=7d");
    let duration = report["outcomes"][0]["duration_ms"].clone();
    assert_eq!(
        report,
        json!({
            "workspace_id": "main",
            "period": "7d",
            "summary": {
                "total_colonies": 1, "succeeded": 1, "failed": 0, "total_cost": 2.0,
                "total_extracted": 1, "total_accessed": 0, "avg_quality": 0.75,
                "maintenance_spend": 0.0,
            },
            "outcomes": [{
                "colony_id": task, "workspace_id": "main", "succeeded": true, "total_rounds": 3,
                "total_cost": 2.0, "duration_ms": duration, "entries_extracted": 1,
                "entries_accessed": 0, "quality_score": 0.75, "caste_composition": ["builder"],
                "strategy": "bisect",
            }],
        })
    );
    let briefing = get(&node, "/api/v1/briefing/main");
    let expected = ["workspace_id", "generated_at", "insights", "total_entries", "text"].into();
    assert_eq!(names(&briefing), expected);
    assert_eq!(names(&get(&node, "/api/v1/workspaces/main/briefing")), expected);
    for path in ["/api/v1/briefing/nowhere", "/api/v1/workspaces/nowhere/outcomes"] {
        assert_eq!(node.ask("GET", path, &[], b"").status, 404, "{path}");
    }
}

#[test]
fn a_program_over_tcp_needs_the_token_for_these_routes_too() {
    let (node, _) = node();
    for path in ["/api/v1/knowledge", "/api/v1/briefing/main"] {
        let answer = klnode_tests::test_server::ask(node.connect_tcp(), "GET", path, &[], b"");
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
    }
}

#[test]
fn texts_that_the_gate_excludes_are_not_in_these_answers() {
    let mut team = Team::gather();
    let shut = team.carol.create("About zqshut queues").to_string();
    let untried = team.alice.create_in(team.shared.id, "About zqmember queues").to_string();
    team.exchange();
    let scene = Scene::of(team.node);
    let own = scene.done(&["show", &scene.add("About zqown queues", "Bound them.", &[])]);
    let words = ["add", "--title", "About zqheld pools", "--workspace", "team", "--content"];
    let leak = ["Ask db1.prod.internal first.", "--evidence", "url:https://db1.prod.internal/x"];
    let held = scene.done(&[&words[..], &leak].concat());
    assert_eq!(held["held"], true, "{held}");
    let get = |path: &str| {
        let stream = UnixStream::connect(scene.home().join("klnode.sock")).unwrap();
        let answer = klnode_tests::test_server::ask(stream, "GET", path, &[], b"");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let list = get("/api/v1/knowledge");
    assert_eq!(list["total"], 4, "{list}");
    let listed = |id: &str| {
        let items = list["items"].as_array().unwrap();
        items.iter().find(|item| item["id"] == id).cloned().unwrap_or_else(|| panic!("{list}"))
    };
    let held = text(&held["id"]);
    let own = text(&own["id"]);
    for (id, gate, is_untried) in [
        (&shut, "shut", json!(true)),
        (&held, "held", Value::Null),
        (&untried, "last_places", json!(true)),
        (&own, "open", Value::Null),
    ] {
        let item = get(&format!("/api/v1/knowledge/{id}"));
        assert_eq!(item, listed(id));
        assert_eq!((&item["gate"], &item["untried"]), (&json!(gate), &is_untried), "{item}");
        let is_shown = matches!(gate, "open" | "last_places");
        for field in ["title", "content"] {
            assert_eq!(item[field] != "", is_shown, "{field}: {item}");
        }
        let origin = get(&format!("/api/v1/knowledge/{id}/provenance")).to_string();
        let origin = origin.to_lowercase();
        assert_eq!(origin.contains("queues") || origin.contains("db1.prod"), is_shown, "{origin}");
    }
}

#[test]
fn an_item_that_was_listed_or_shown_is_confirmed_as_primed() {
    let class = |path: &str| {
        let (node, id) = node();
        if !path.is_empty() {
            get(&node, &path.replace("ID", &id));
        }
        let task = post(&node, "/v1/tasks", &json!({"agent": "builder", "goal": "use it"}));
        let task = text(&task["task"]);
        text(&post(&node, &format!("/v1/entries/{id}/confirm?task={task}"), &json!({}))["class"])
    };
    assert_eq!(class(""), "independent");
    assert_eq!(class("/api/v1/knowledge"), "primed");
    assert_eq!(class("/api/v1/knowledge/ID"), "primed");
}

#[test]
fn an_insight_of_the_briefing_suggests_a_colony() {
    conforms("S004-97");
    let (node, _) = node();
    let mut weak = Vec::new();
    for title in ["Drain before shutdown", "One consumer each", "Poll in batches"] {
        let new = json!({"title": title, "content": "It holds.", "tags": ["zqgap"],
                         "evidence": ["doc:notes"]});
        let id = text(&post(&node, "/v1/entries", &new)["id"]);
        for _ in 0..3 {
            let task = post(&node, "/v1/tasks", &json!({"agent": "builder", "goal": "use it"}));
            let harm = json!({"outcome": "failure", "task": task["task"]});
            post(&node, &format!("/v1/entries/{id}/observations"), &harm);
        }
        weak.push(id);
    }
    let briefing = get(&node, "/api/v1/briefing/main");
    let insights = briefing["insights"].as_array().unwrap();
    let gap = insights.iter().find(|one| one["category"] == "coverage");
    let gap = gap.unwrap_or_else(|| panic!("{briefing}"));
    let golden = json!({
        "id": gap["id"], "severity": "attention", "category": "coverage", "title": "coverage_gap",
        "detail": "Coverage gap in tag \"zqgap\": 3 of 3 entries have 3 or more prediction errors.",
        "affected_entries": gap["affected_entries"],
        "suggested_action": "Find out what was asked about \"zqgap\", and write it down.",
        "suggested_colony": {
            "task": "Research the tag \"zqgap\": the entries do not answer questions",
            "caste": "researcher",
        },
    });
    assert_eq!(*gap, golden);
    let affected = gap["affected_entries"].as_array().unwrap();
    let affected: BTreeSet<String> = affected.iter().map(text).collect();
    assert_eq!(affected, weak.into_iter().collect());
}

#[test]
fn the_tier_full_names_merged_entries_and_the_cluster() {
    conforms("S004-39");
    let (node, _) = node();
    let add = |title: &str| {
        let new = json!({"title": title, "content": "Bound it.", "evidence": ["doc:notes"]});
        text(&post(&node, "/v1/entries", &new)["id"])
    };
    let same = [add("About zqfull parsers"), add("About zqfull parsers")];
    let more = [add("About zqfull caches"), add("About zqfull queues")];
    let maintain = |service: &str| {
        let done = post(&node, "/v1/maintenance/run", &json!({"service": service}));
        (done["through"] == true && done["waits_for"].is_null()).then_some(())
    };
    let result = |title: &str| {
        let found = get(&node, "/api/v1/knowledge/search?q=zqfull&tier=full");
        let mut results = found["results"].as_array().unwrap().iter();
        results.find(|one| one["title"] == title).cloned()
    };
    let merged = eventually("the equal entries are merged", || {
        maintain("duplicates");
        let item = result("About zqfull parsers")?;
        (!item["merged_from"].is_null()).then_some(item)
    });
    let survivor = text(&merged["id"]);
    let other = same.iter().find(|id| **id != survivor).unwrap();
    assert_eq!(merged["merged_from"], json!([other]));
    assert!(merged["cooccurrence_cluster"].is_null(), "{merged}");
    let cluster: Vec<EntryId> =
        [&survivor, &more[0], &more[1]].map(|id| EntryId::from_hex(id).unwrap()).to_vec();
    for _ in 0..16 {
        let row = ServedRow { entries: cluster.clone(), query: "what".into(), ..<_>::default() };
        node.engine.submit_blocking(Command::Served(row)).unwrap();
    }
    eventually("the pairs are examined", || maintain("pairs"));
    let item = result("About zqfull parsers").unwrap();
    let found: BTreeSet<String> =
        item["cooccurrence_cluster"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(found, more.clone().into());
    assert_eq!((&item["conf_alpha"], &item["content"]), (&json!(5.0), &json!("Bound it.")));
    let shown = get(&node, &format!("/api/v1/knowledge/{survivor}"));
    for field in ["merged_from", "cooccurrence_cluster"] {
        assert_eq!(shown[field], item[field], "{field}");
    }
}
