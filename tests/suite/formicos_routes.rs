//! The routes and shapes of `FormicOS` under `/api/v1/`: the same data, gate and marks as `/v1/`.

use crate::support::conformance::conforms;
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, Served};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
        "workspace_id": "main", "created_at": item["created_at"],
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
    let served = get(&node, "/v1/served");
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
