//! Co-occurrence and roles: entries that were served in one answer, or used in one successful task,
//! support each other until that has decayed; and of equal entries the caller's role decides the
//! order.

use crate::support::conformance::conforms;
use crate::support::node_process::{done, printed, run, text};
use crate::support::node_with_home::near;
use crate::tasks::{begin, end, serve};
use klnode_config::Config;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_engine::{Command, Finish, MaintenanceCommand, TaskCommand};
use klnode_query::Audience;
use klnode_query::maintenance::{Maintenance, MaintenancePass, Params};
use klnode_scoring::caller_role::BONUS;
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_server::Limits;
use klnode_store::maintenance_journal::Service;
use klnode_store::row_types::ServedRow;
use klnode_tests::test_engine::Node;
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::Indexed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ways to do one thing: a question about it finds all of them.
const WAYS: [&str; 5] = ["at night", "by hand", "in the queue", "on mondays", "with care"];
/// Rate at which the weight of a pair saturates the signal.
const RATE: f64 = 0.6;
/// Number of servings after which two entries form a cluster: 1.05^15 is over 2.
const SERVED_TIMES: usize = 16;

fn ways(node: &mut Node) -> [EntryId; 5] {
    WAYS.map(|way| node.create(&format!("retry the zqbilling gateway {way}")))
}

/// Command that logs one answer with these entries.
fn answered(entries: &[EntryId], task: Option<TaskId>) -> Command {
    Command::Served(ServedRow {
        caller: "agent".into(),
        task: task.map(|task| task.to_string()),
        query: "what".into(),
        entries: entries.to_vec(),
        ..ServedRow::default()
    })
}

/// Asks for all the ways, and checks the co-occurrence signal of some of them against the weight of
/// their pair.
#[track_caller]
fn are_tied(index: &Indexed, node: &Node, weights: &[(EntryId, f64)]) {
    let answer = index.ask(node, "retry zqbilling gateway", Audience::All);
    let hits = answer.hits.iter();
    let tied: BTreeMap<EntryId, f64> =
        hits.map(|hit| (hit.found.entry, hit.placed.candidate.signals.cooccurrence)).collect();
    assert_eq!(tied.len(), WAYS.len(), "all of them answer");
    for (entry, weight) in weights {
        let (signal, expected) = (tied[entry], 1.0 - (-RATE * weight).exp());
        assert!((signal - expected).abs() < 1e-9, "{entry}: {signal}, not {expected}");
    }
}

#[test]
fn entries_co_occur_through_an_answer_and_through_a_success() {
    let mut node = Node::start(1, 1);
    let [one, two, three, four, alone] = ways(&mut node);
    let index = Indexed::start(&node);
    are_tied(&index, &node, &[one, two, three, four, alone].map(|entry| (entry, 0.0)));
    node.run(answered(&[one, two], None)).unwrap();
    let served = [(one, 1.0), (two, 1.0), (three, 0.0), (four, 0.0), (alone, 0.0)];
    are_tied(&index, &node, &served);
    // Each was in its own answer: only the common success makes them co-occur.
    let task = begin(&mut node);
    for entry in [three, four] {
        serve(&mut node, task, entry);
    }
    are_tied(&index, &node, &served);
    end(&mut node, task, vec![three, four]).unwrap();
    let used = [(one, 1.0), (two, 1.0), (three, 1.0), (four, 1.0), (alone, 0.0)];
    are_tied(&index, &node, &used);
}

#[test]
fn co_occurrence_survives_a_restart_and_decays_daily() {
    let mut node = Node::start(1, 1);
    let [one, two, ..] = ways(&mut node);
    let index = Indexed::start(&node);
    let task = begin(&mut node);
    node.run(answered(&[one, two], Some(task))).unwrap();
    end(&mut node, task, vec![one, two]).unwrap();
    are_tied(&index, &node, &[(one, 1.1), (two, 1.1)]);
    let task = begin(&mut node);
    node.run(answered(&[one, two], Some(task))).unwrap();
    let outcome = TaskOutcome { verdict: TaskVerdict::Failure, quality: 0.5 };
    let finish = Finish::new(outcome, vec![one, two]);
    node.run(Command::Task(Box::new(TaskCommand::Finish(task, finish)))).unwrap();
    // The answer counts, and the failure does not.
    let grown = 1.1 * 1.05;
    are_tied(&index, &node, &[(one, grown), (two, grown)]);
    drop(index);
    let mut node = node.restart(2);
    let index = Indexed::start(&node);
    are_tied(&index, &node, &[(one, grown), (two, grown)]);
    node.wait_days(30);
    let faded = grown * 0.995_f64.powi(30);
    are_tied(&index, &node, &[(one, faded), (two, faded)]);
}

/// A node in this process for the command line.
fn typed_at() -> Served {
    Served::start(Limits::default(), Doors::Socket)
}

#[test]
fn a_search_explains_the_co_occurrence_signal() {
    conforms("S004-36");
    conforms("S004-73");
    let node = typed_at();
    let home = node.socket.parent().unwrap();
    for (title, content) in [
        ("Zqpair in parsers", "Recursion needs a limit."),
        ("Zqpair in caches", "Evict before you insert."),
    ] {
        done(home, &["add", "--title", title, "--content", content, "--evidence", "doc:notes"]);
    }
    let begin = ["task", "begin", "--agent", "builder", "--goal", "mend it"];
    let task = text(&done(home, &begin)["task"]);
    let search = |more: &[&str]| -> Vec<Value> {
        let words = ["search", "zqpair", "--all", "--deterministic", "--explain"];
        let answer = done(home, &[&words[..], more].concat());
        assert_eq!(answer["hits"].as_array().map(Vec::len), Some(2), "{answer}");
        answer["hits"].as_array().unwrap().clone()
    };
    let first = search(&["--task", &task]);
    for hit in &first {
        assert_eq!(hit["explain"]["signals"]["cooccurrence"], json!(0.0), "{hit}");
    }
    let used = first.iter().map(|hit| text(&hit["code"])).collect::<Vec<_>>().join(",");
    done(home, &["task", "finish", &task, "--success", "--used", &used]);
    for hit in search(&[]) {
        let of = |part: &str| hit["explain"][part]["cooccurrence"].as_f64().unwrap();
        let (signal, adds) = (of("signals"), of("adds"));
        // A midnight in between changes less than the tolerance; the answer or the success alone
        // would add much less.
        assert!((signal - (1.0 - (-RATE * 1.1).exp())).abs() < 0.01, "{hit}");
        assert!((adds - signal * 0.05).abs() < 1e-9, "{hit}");
    }
}

#[test]
fn a_pass_over_the_pairs_removes_decayed_ones_and_finds_clusters() {
    let mut node = Node::start(1, 1);
    let [old, gone, kept] = ["old", "gone", "kept"].map(|title| node.create(title));
    let mut often = ["first", "second", "third"].map(|title| node.create(title));
    often.sort();
    node.run(answered(&[old, gone], None)).unwrap();
    node.wait_days(460);
    node.run(answered(&[old, kept], None)).unwrap();
    for _ in 0..SERVED_TIMES {
        node.run(answered(&often, None)).unwrap();
    }
    let index = Indexed::start(&node);
    let params = Params { time_max: None, ..Params::new(&Config::default().maintenance) };
    let maintenance = Maintenance::new(Arc::new(node.reader()), params);
    let pass = |node: &Node| -> MaintenancePass {
        let snapshot = node.engine.store().snapshot().unwrap();
        let from = snapshot.service(Service::Pairs).unwrap();
        maintenance.pass(&index.index(), &snapshot, node.now, Service::Pairs, from).unwrap()
    };
    let faded = |pass: &MaintenancePass| match &pass.act {
        MaintenanceCommand::Pass { faded, .. } => faded.clone(),
        other => panic!("no pass: {other:?}"),
    };
    let is_paired = |node: &Node, one: EntryId, two: EntryId| {
        let snapshot = node.engine.store().snapshot().unwrap();
        [(one, two), (two, one)].map(|(one, two)| snapshot.pair(one, two).unwrap().is_some())
    };
    let first = pass(&node);
    // Five pairs, each in both directions.
    assert_eq!((first.examined, first.is_through), (10, true));
    assert_eq!(faded(&first), [(old.min(gone), old.max(gone))]);
    let clusters = maintenance.clusters();
    assert_eq!(clusters.len(), 1, "two that co-occurred once are no cluster: {clusters:?}");
    assert_eq!((&clusters[0].entries, clusters[0].is_dense()), (&often.to_vec(), false));
    assert_eq!(is_paired(&node, old, gone), [true, true], "a pass itself writes nothing");
    node.run(Command::Maintenance(Box::new(first.act))).unwrap();
    assert_eq!(is_paired(&node, old, gone), [false, false]);
    for (one, two) in [(old, kept), (often[0], often[1]), (often[1], often[2])] {
        assert_eq!(is_paired(&node, one, two), [true, true]);
    }
    let second = pass(&node);
    assert_eq!((second.examined, faded(&second)), (8, Vec::new()));
    node.wait_days(200);
    assert!(faded(&pass(&node)).is_empty(), "lower, but above the minimum");
    assert!(maintenance.clusters().is_empty(), "entries that are no longer served form no cluster");
}

#[test]
fn maintain_pairs_reports_its_count_and_the_list_names_clusters() {
    conforms("S004-138");
    let node = typed_at();
    let home = node.socket.parent().unwrap();
    let mut made = ["parsers", "caches", "queues"].map(|title| {
        let words = ["add", "--title", title, "--content", "Bound it.", "--evidence", "doc:notes"];
        let added = done(home, &words);
        (text(&added["id"]), text(&added["code"]))
    });
    made.sort();
    let entries = made.clone().map(|(id, _)| EntryId::from_hex(&id).unwrap());
    // Three others were served together less often: their pairs have a weight of 1.05^14 = 1.98.
    let fewer = ["threads", "sockets", "timers"].map(|title| {
        let words = ["add", "--title", title, "--content", "Close it.", "--evidence", "doc:notes"];
        EntryId::from_hex(&text(&done(home, &words)["id"])).unwrap()
    });
    for times in 0..SERVED_TIMES {
        node.engine.submit_blocking(answered(&entries, None)).unwrap();
        if times < 15 {
            node.engine.submit_blocking(answered(&fewer, None)).unwrap();
        }
    }
    let clusters = || done(home, &["maintain", "list"])["clusters"].clone();
    assert_eq!(clusters(), json!([]), "no pass has run yet");
    let kept = done(home, &["maintain", "pairs"])["services"].clone();
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "only this service ran: {kept}");
    let counts = ["service", "examined", "faded"].map(|name| kept[0][name].clone());
    assert_eq!(counts, [json!("pairs"), json!(12), json!(0)]);
    let named = made.clone().map(|(id, code)| json!({"id": id, "code": code}));
    let found = clusters();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!((&found[0]["entries"], &found[0]["dense"]), (&json!(named), &json!(false)));
    near(&found[0]["mean_weight"], 1.05_f64.powi(SERVED_TIMES as i32 - 1), 0.02);
    let codes = made.map(|(_, code)| code).join(", ");
    let listed = printed(&run(home, &["maintain", "list"]));
    let line = format!("\nServed together: {codes}  (mean weight 2.1)\n");
    assert!(listed.contains(&line), "{listed}");
}

#[test]
fn a_cluster_of_five_entries_with_a_mean_weight_above_3_is_dense() {
    conforms("S004-77");
    conforms("S004-139");
    let node = typed_at();
    let home = node.socket.parent().unwrap();
    let add = |title: &str| {
        let words = ["add", "--title", title, "--content", "Bound it.", "--evidence", "doc:notes"];
        EntryId::from_hex(&text(&done(home, &words)["id"])).unwrap()
    };
    let five = ["parsers", "caches", "queues", "threads", "sockets"].map(add);
    let four = ["timers", "logs", "pipes", "locks"].map(add);
    let serve = |times: usize| {
        for _ in 0..times {
            node.engine.submit_blocking(answered(&five, None)).unwrap();
            node.engine.submit_blocking(answered(&four, None)).unwrap();
        }
        done(home, &["maintain", "pairs"]);
        let found = done(home, &["maintain", "list"])["clusters"].clone();
        let found = found.as_array().unwrap().iter();
        let of = |cluster: &Value| {
            (cluster["entries"].as_array().unwrap().len(), cluster["dense"].as_bool().unwrap())
        };
        found.map(of).collect::<Vec<(usize, bool)>>()
    };
    // 1.05^19 is 2.5, and 1.05^25 is 3.4.
    assert_eq!(serve(20), [(5, false), (4, false)]);
    assert_eq!(serve(6), [(5, true), (4, false)]);
    let listed = printed(&run(home, &["maintain", "list"]));
    assert!(listed.contains("(mean weight 3.4, dense: one entry could replace them)"), "{listed}");
}

#[test]
fn of_two_equal_entries_the_one_preferred_by_the_role_comes_first() {
    conforms("S002-02");
    conforms("S002-03");
    conforms("S002-42");
    conforms("S002-43");
    conforms("S002-44");
    conforms("S002-50");
    let node = typed_at();
    let home = node.socket.parent().unwrap();
    let add = |more: &[&str]| {
        let words = ["add", "--title", "Bound the zqrole queue", "--content", "Ten were enough."];
        let words = [&words[..], &["--evidence", "run:bench"], more].concat();
        text(&done(home, &words)["id"])
    };
    let lesson = add(&[]);
    let spike = add(&["--type", "spike", "--outcome", "confirmed"]);
    let asked = |role: &str| -> Vec<(String, f64)> {
        let words = ["search", "bound zqrole queue", "--role", role];
        let answer = done(home, &[&words[..], &["--all", "--deterministic", "--explain"]].concat());
        let hits = answer["hits"].as_array().unwrap().iter();
        let bonus = |hit: &Value| hit["explain"]["role_bonus"].as_f64().unwrap();
        hits.map(|hit| (text(&hit["id"]), bonus(hit))).collect()
    };
    assert_eq!(asked("researcher"), [(spike.clone(), BONUS), (lesson.clone(), 0.0)]);
    assert_eq!(asked("planner"), [(lesson, BONUS), (spike, 0.0)]);
    let both = asked("debugger").into_iter().map(|(_, bonus)| bonus);
    assert_eq!(both.collect::<Vec<_>>(), [BONUS, BONUS], "looks for either");
}
