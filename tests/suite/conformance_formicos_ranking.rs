//! Statements of the seed FormicOS about ranking, co-occurrence and conflicts, typed into a real
//! process.

use crate::support::conformance::conforms;
use crate::support::node_process::text;
use crate::support::node_with_home::{Scene, days_ago, near};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::{Command, NewEntry};
use klnode_store::row_types::ServedRow;
use klnode_tests::test_engine::{Node, lesson};
use serde_json::{Value, json};

const SIGNALS: [(&str, f64); 6] = [
    ("semantic", 0.38),
    ("thompson", 0.25),
    ("freshness", 0.15),
    ("status", 0.10),
    ("thread", 0.07),
    ("cooccurrence", 0.05),
];

#[test]
fn an_entry_shows_its_percentage_and_a_bar_of_certainty() {
    conforms("S004-67");
    let scene = Scene::new();
    let code = scene.add("Retry the zqbar gateway", "On 503.", &[]);
    let shown = || scene.said(&["show", &code]);
    assert!(shown().contains("50 % from 0.0 observations"), "{}", shown());
    assert!(shown().contains("certainty [----------]"), "{}", shown());
    scene.succeed(&code, 3);
    assert!(shown().contains("certainty [##--------]"), "{}", shown());
}

#[test]
fn a_score_is_the_weighted_sum_of_six_signals() {
    conforms("S004-30");
    conforms("S004-44");
    let scene = Scene::new();
    let code = scene.add("Retry the zqscore gateway", "On 503.", &["--thread", "fix"]);
    scene.succeed(&code, 2);
    let words = ["search", "retry zqscore", "--thread", "fix", "--explain", "--deterministic"];
    let answer = scene.done(&words);
    let hit = &answer["hits"][0];
    let mut score = 0.0;
    for (name, weight) in SIGNALS {
        near(&answer["weights"][name], weight, 1e-9);
        let signal = hit["explain"]["signals"][name].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&signal), "{name}: {signal}");
        near(&hit["explain"]["adds"][name], weight * signal, 1e-9);
        score += weight * signal;
    }
    assert_eq!(hit["explain"]["signals"].as_object().map(serde_json::Map::len), Some(6));
    near(&hit["score"], score, 1e-9);
    near(&hit["explain"]["signals"]["thompson"], 7.0 / 12.0, 1e-6);
}

#[test]
fn the_callers_thread_adds_its_whole_weight_or_nothing() {
    conforms("S004-26");
    conforms("S004-27");
    conforms("S004-35");
    let scene = Scene::new();
    let inside = scene.add("Rotate the zqthread logs", "By size.", &["--thread", "ops"]);
    let outside = scene.add("Rotate the zqthread keys", "By age.", &[]);
    assert_eq!(scene.show(&outside)["registers"].get("thread"), None, "it has no thread");
    let hits = scene.hits("rotate zqthread", &["--thread", "ops"]);
    for (code, signal) in [(&inside, 1.0), (&outside, 0.0)] {
        let hit = hits.iter().find(|hit| hit["code"] == code.as_str()).expect("it is found");
        near(&hit["explain"]["signals"]["thread"], signal, 1e-9);
        near(&hit["explain"]["adds"]["thread"], 0.07 * signal, 1e-9);
    }
}

#[test]
fn the_status_signal_follows_the_status() {
    conforms("S004-34");
    let mut node = days_ago(100);
    node.create("about zqstatus");
    let scene = Scene::of(node);
    scene.add("About zqstatus, too", "A candidate.", &[]);
    let active = scene.add("About zqstatus, again", "It was seen to work.", &[]);
    scene.succeed(&active, 1);
    let task = scene.begin();
    scene.add("About zqstatus, at last", "Of work that succeeded.", &["--task", &task]);
    scene.done(&["task", "finish", &task, "--success"]);
    let hits = scene.hits("zqstatus", &["--stale", "-n", "10"]);
    let mut found: Vec<(String, Value)> = hits
        .iter()
        .map(|hit| (text(&hit["status"]), hit["explain"]["signals"]["status"].clone()))
        .collect();
    found.sort_by(|one, two| one.0.cmp(&two.0));
    let expected = [("active", 0.8), ("candidate", 0.5), ("stale", 0.0), ("verified", 1.0)];
    assert_eq!(found, expected.map(|(status, signal)| (status.to_owned(), json!(signal))));
}

/// One answer with both entries.
fn answered(node: &mut Node, one: EntryId, two: EntryId) {
    let row = ServedRow {
        caller: "agent".into(),
        query: "what".into(),
        entries: vec![one, two],
        ..ServedRow::default()
    };
    node.run(Command::Served(row)).unwrap();
}

/// Two entries that were served together some times, so many days ago.
fn paired(days: u64, times: usize) -> Node {
    let mut node = days_ago(days);
    let [one, two] = ["at night", "by hand"].map(|way| node.create(&format!("retry zqpair {way}")));
    for _ in 0..times {
        answered(&mut node, one, two);
    }
    node
}

#[test]
fn entries_served_together_support_each_other_for_a_time() {
    conforms("S004-74");
    conforms("S004-75");
    conforms("S004-76");
    let signal = |weight: f64| 1.0 - (-0.6 * weight).exp();
    for (days, times, weight) in
        [(0, 1, 1.0), (0, 3, 1.05 * 1.05), (30, 1, 0.995_f64.powi(30)), (0, 100, 10.0)]
    {
        let scene = Scene::of(paired(days, times));
        let hits = scene.hits("retry zqpair", &[]);
        assert_eq!(hits.len(), 2, "{hits:?}");
        for hit in &hits {
            near(&hit["explain"]["signals"]["cooccurrence"], signal(weight), 0.0015);
        }
    }
    // Below 0.1 the pair is dropped by the next pass, and above it is kept.
    for (days, faded) in [(455, 0), (465, 1)] {
        let scene = Scene::of(paired(days, 1));
        assert_eq!(scene.done(&["maintain", "pairs"])["services"][0]["faded"], faded, "{days}");
    }
}

#[test]
fn a_workspace_chooses_its_weights_within_the_rules() {
    conforms("S004-148");
    conforms("S004-149");
    let scene = Scene::new();
    scene.done(&["workspace", "new", "team"]);
    let file = scene.folder().join("team.toml");
    let set = |settings: &str| {
        std::fs::write(&file, settings).unwrap();
        ["workspace", "settings", "team", file.to_str().unwrap()].map(str::to_owned)
    };
    let words = set("[weights]\nsemantic = 0.33\n");
    let told = scene.refused(&words.each_ref().map(String::as_str), 2);
    assert!(told.contains("The weights sum to 0.95") && told.contains("must sum to 1"), "{told}");
    for way in ["at night", "by hand"] {
        let title = format!("Retry zqweight {way}");
        scene.add(&title, "It helps.", &["--workspace", "team"]);
    }
    let ask = |scene: &Scene| {
        let words = ["search", "retry zqweight", "--workspace", "team", "--explain"];
        scene.done(&[&words[..], &["--deterministic"]].concat())
    };
    let task = scene.begin();
    scene.found("retry zqweight", &["--task", &task]);
    let before = ask(&scene)["hits"][0]["explain"]["adds"]["cooccurrence"].clone();
    assert!(before.as_f64().unwrap() > 0.0, "they were served together: {before}");
    let words = set("[weights]\nsemantic = 0.43\ncooccurrence = 0.0\n");
    scene.done(&words.each_ref().map(String::as_str));
    let after = ask(&scene);
    assert_eq!(after["weights_from"], "the workspace's settings");
    assert_eq!(after["hits"][0]["explain"]["adds"]["cooccurrence"], json!(0.0), "{after}");
    let sum: f64 =
        after["weights"].as_object().unwrap().values().map(|one| one.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9 && after["weights"]["cooccurrence"] == 0.0, "{after}");
}

#[test]
fn a_workspace_may_order_its_answers_by_relevance_alone() {
    conforms("S002-24");
    let scene = Scene::new();
    scene.done(&["workspace", "new", "team"]);
    let add = |title: &str, content: &str| scene.add(title, content, &["--workspace", "team"]);
    let near_it = add("Retry the zqorder gateway", "Retry the zqorder gateway after a timeout.");
    let proven = add("About the zqorder gateway", "It has two instances in the zqorder cluster.");
    scene.succeed(&proven, 9);
    let order = || {
        let hits = scene.hits("retry the zqorder gateway", &["--workspace", "team"]);
        let relevance: Vec<f64> =
            hits.iter().map(|hit| hit["relevance"].as_f64().unwrap()).collect();
        (hits.iter().map(|hit| text(&hit["code"])).collect::<Vec<_>>(), relevance)
    };
    assert_eq!(order().0, [proven.as_str(), &near_it], "six signals decide: {:?}", order().1);
    let file = scene.folder().join("team.toml");
    // No entry is in the caller's thread, so relevance alone is left.
    let rest = "thread = 0.5\nthompson = 0.0\nfreshness = 0.0\nstatus = 0.0\ncooccurrence = 0.0\n";
    std::fs::write(&file, format!("[weights]\nsemantic = 0.5\n{rest}")).unwrap();
    scene.done(&["workspace", "settings", "team", file.to_str().unwrap()]);
    let (codes, relevance) = order();
    assert_eq!(codes, [near_it, proven], "{relevance:?}");
    assert!(relevance[0] > relevance[1], "{relevance:?}");
}

/// The reasons of two contradicting entries, in the order of the answer.
fn reasons(scene: &Scene) -> Vec<(String, String)> {
    let hits = scene.hits("warm the zqcache before a zqdeploy", &[]);
    let rivals = hits.iter().filter(|hit| hit["competing_with"][0].is_object());
    rivals.map(|hit| (text(&hit["code"]), text(&hit["competing_with"][0]["why"]))).collect()
}

fn sided(scene: &Scene, how: &str, polarity: &str) -> String {
    let title = format!("{how} the zqcache before a zqdeploy");
    let more = ["--tag", "zqcache", "--tag", "deploy", "--polarity", polarity];
    scene.add(&title, "The zqcache decides how a zqdeploy goes.", &more)
}

#[test]
fn equal_rivals_compete_and_more_evidence_narrows_the_margin() {
    conforms("S004-116");
    conforms("S004-117");
    let scene = Scene::new();
    let yes = sided(&scene, "Warm", "positive");
    let no = sided(&scene, "Never warm", "negative");
    let first = reasons(&scene);
    let codes: Vec<&String> = first.iter().map(|(code, _)| code).collect();
    assert!(codes.contains(&&yes) && codes.contains(&&no), "both are kept: {first:?}");
    let margin = |why: &str| -> f64 {
        assert!(why.starts_with("neither is clearly better: difference 0."), "{why}");
        why.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let wide = margin(&first[0].1);
    scene.succeed(&yes, 5);
    scene.succeed(&no, 5);
    let narrow = margin(&reasons(&scene)[0].1);
    assert!(narrow < wide, "{narrow} {wide}");
}

#[test]
fn a_rival_that_leads_by_two_criteria_comes_first() {
    conforms("S004-115");
    let mut node = days_ago(80);
    let tags = ["zqcache", "deploy"].map(|tag| ClaimEdit::Add(TextSet::TAGS, tag.into()));
    node.create_new(NewEntry {
        content: "The zqcache decides how a zqdeploy goes.".into(),
        registers: vec![(Register::POLARITY, "negative".into())],
        claims: tags.to_vec(),
        ..lesson("Never warm the zqcache before a zqdeploy")
    });
    let scene = Scene::of(node);
    let new = sided(&scene, "Warm", "positive");
    scene.succeed(&new, 10);
    let told = reasons(&scene);
    assert_eq!(told.len(), 2, "both are shown: {told:?}");
    assert_eq!(told[0].0, new);
    assert_eq!(told[0].1, "listed first: better on evidence and recency");
    assert_eq!(told[1].1, "listed after it: the other is better on evidence and recency");
}
