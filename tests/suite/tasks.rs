//! Tasks: what was served in one decides what a confirmation in it is worth, and its end counts.

use crate::findings::{CACHE, SQL};
use crate::program::{self, klnode, start, started, text, told};
use klnode::api::Limits;
use klnode::engine::{
    Command, Compared, Confirmation, FindingAct, FindingDone, Finish, NewFinding, NewTask, Receipt,
    Rejection, TaskAct, TaskDone,
};
use klnode::store::findings::{Became, FindingKey};
use klnode::store::rows::{CallerRow, ServedRow};
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::kind::code_digits;
use klnode_scoring::outcome::{Outcome, Verdict};
use klnode_tests::node::{Node, START};
use klnode_tests::served::{Answer, Doors, Served, TOKEN, ask};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

/// A node whose agents work.
struct Workplace(Served);

impl Workplace {
    fn new() -> Self {
        Self(Served::start(Limits::default(), Doors::Socket))
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.0.json("POST", path, body)
    }

    /// What came of a request that must succeed.
    #[track_caller]
    fn done(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    fn add(&self, title: &str, content: &str) -> String {
        let new = json!({"title": title, "content": content, "evidence": ["doc:notes"]});
        text(&self.done("/v1/entries", &new)["id"])
    }

    fn begin(&self, agent: &str, parent: Option<&str>) -> String {
        let new = json!({"agent": agent, "goal": "mend the build", "parent": parent});
        text(&self.done("/v1/tasks", &new)["task"])
    }

    /// Ids of what is served to a question in a task.
    fn search(&self, query: &str, task: &str, limit: usize) -> Vec<String> {
        let search = json!({
            "query": query, "task": task, "limit": limit, "all": true, "deterministic": true,
        });
        let answer = self.done("/v1/search", &search);
        answer["hits"].as_array().unwrap().iter().map(|hit| text(&hit["id"])).collect()
    }

    /// As what a confirmation counts.
    fn confirm(&self, entry: &str, query: &str) -> String {
        text(&self.done(&format!("/v1/entries/{entry}/confirm{query}"), &json!(null))["class"])
    }

    fn finish(&self, task: &str, body: &Value) -> Value {
        self.done(&format!("/v1/tasks/{task}/finish"), body)
    }

    fn shown(&self, entry: &str) -> Value {
        self.0.json("GET", &format!("/v1/entries/{entry}"), &json!(null)).json()
    }

    /// α and β of an entry.
    fn counts(&self, entry: &str) -> (f64, f64) {
        let shown = self.shown(entry);
        (shown["alpha"].as_f64().unwrap(), shown["beta"].as_f64().unwrap())
    }

    fn primed(&self, entry: &str) -> u32 {
        let snapshot = self.0.engine.store().snapshot().unwrap();
        snapshot.uses(EntryId::from_hex(entry).unwrap()).unwrap().primed_confirmations
    }
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6
}

#[test]
fn an_entry_served_to_and_confirmed_by_the_same_agent_in_ten_tasks_is_archived_not_strengthened() {
    let node = Workplace::new();
    let entry = node.add("About zqecho", "Words that nobody else uses.");
    let other = node.add("Something else", "Of no interest here.");
    let before = node.counts(&entry);
    let work = || {
        let task = node.begin("builder", None);
        assert_eq!(node.search("zqecho", &task, 1), [entry.as_str()]);
        assert_eq!(node.confirm(&entry, &format!("?task={task}")), "primed");
        node.finish(&task, &json!({"outcome": "success", "used": [other.as_str()]}))
    };
    for number in 1..=9 {
        assert_eq!(work()["archived"], json!([]), "{number}");
    }
    let last = work();
    assert_eq!(last["archived"], json!([entry]));
    assert_eq!(last["unserved"], json!([other]), "what was not served earns nothing");
    let code = |entry: &str| node.shown(entry)["code"].clone();
    assert_eq!(last["codes"], json!({&entry: code(&entry), &other: code(&other)}));
    assert_eq!(node.shown(&entry)["status"], "archived");
    assert_eq!(node.counts(&entry), before);
    assert_eq!(node.primed(&entry), 10, "counted apart");

    let restore = json!({"archived": false});
    let restored = node.0.json("PATCH", &format!("/v1/entries/{entry}"), &restore);
    assert_eq!(restored.status, 200, "{}", restored.text());
    assert_ne!(node.shown(&entry)["status"], "archived");
    assert_eq!(work()["archived"], json!([]), "what was restored has its chances again");
}

#[test]
fn a_credited_use_keeps_an_entry_out_of_the_archive() {
    let node = Workplace::new();
    let entry = node.add("About zquse", "Words that nobody else uses.");
    for number in 1..=12 {
        let task = node.begin("builder", None);
        assert_eq!(node.search("zquse", &task, 1), [entry.as_str()]);
        // What it is credited with speaks for it; what it is blamed for does not.
        let finish = match number {
            5 => json!({"outcome": "success", "used": [entry.as_str()]}),
            _ => json!({"outcome": "failure"}),
        };
        assert_eq!(node.finish(&task, &finish)["archived"], json!([]), "{number}");
    }
}

#[test]
fn a_second_agent_whose_task_was_never_served_it_confirms_it_once_and_it_is_fresh() {
    let node = Workplace::new();
    let entry = node.add("About zqfresh", "Words that nobody else uses.");
    let first = node.begin("builder", None);
    assert_eq!(node.search("zqfresh", &first, 1), [entry.as_str()]);
    assert_eq!(node.confirm(&entry, &format!("?task={first}")), "primed");
    let (alpha, beta) = node.counts(&entry);
    let second = node.begin("reviewer", None);
    assert_eq!(node.confirm(&entry, &format!("?task={second}")), "primed", "of the same user");
    assert_eq!(node.0.confirm_as_another(&entry, &second), Confirmation::Independent);
    let after = node.counts(&entry);
    assert!(near(after.0, alpha + 1.0) && near(after.1, beta), "a success is added: {after:?}");
    assert_eq!(node.0.confirm_as_another(&entry, &second), Confirmation::Again);
    assert_eq!(node.counts(&entry), after, "once in a task");
    assert_eq!(node.primed(&entry), 3);
    let search = json!({"query": "zqfresh", "all": true, "limit": 1});
    let answer = node.done("/v1/search", &search);
    assert_eq!(answer["hits"][0]["confirmed_days_ago"], 0, "{answer}");
    assert_eq!(node.shown(&entry)["status"], "active");
}

#[test]
fn a_confirmation_outside_any_task_counts_as_primed_and_a_caller_may_only_lower_it() {
    let node = Workplace::new();
    let entry = node.add("About zqoutside", "Words that nobody else uses.");
    let before = node.counts(&entry);
    assert_eq!(node.confirm(&entry, ""), "primed");
    let task = node.begin("reviewer", None);
    assert_eq!(node.confirm(&entry, &format!("?task={task}&primed=true")), "primed");
    assert_eq!(node.counts(&entry), before);
    let path = format!("/v1/entries/{entry}/confirm?task={task}&class=independent");
    assert_eq!(node.post(&path, &json!(null)).status, 400, "nobody can ask for more");
    assert_eq!(node.confirm(&entry, &format!("?task={task}&primed=false")), "primed", "was read");
    let unread = node.add("About zqunread", "Words that nobody has read.");
    assert_eq!(node.confirm(&unread, &format!("?task={task}&primed=false")), "independent");
}

#[test]
fn finish_is_idempotent() {
    let node = Workplace::new();
    let entry = node.add("About zqtwice", "Words that nobody else uses.");
    let task = node.begin("builder", None);
    assert_eq!(node.search("zqtwice", &task, 1), [entry.as_str()]);
    let finish = json!({"outcome": "success", "quality": 0.5, "used": [entry.as_str()]});
    let first = node.finish(&task, &finish);
    assert_eq!((&first["already"], &first["credits"][0]["amount"]), (&json!(false), &json!(1.0)));
    let after = node.counts(&entry);
    for again in [finish, json!({"outcome": "failure"})] {
        let said = node.finish(&task, &again);
        assert_eq!((&said["already"], &said["credits"]), (&json!(true), &json!([])));
    }
    assert_eq!(node.counts(&entry), after);
    let shown = node.0.json("GET", &format!("/v1/tasks/{task}"), &json!(null)).json();
    assert_eq!((&shown["state"], &shown["outcome"]), (&json!("finished"), &json!("success")));
}

#[test]
fn an_outcome_is_credited_by_rank_and_at_half_weight_where_none_is_named() {
    let node = Workplace::new();
    for (title, content) in [
        ("Zqrank in parsers", "Recursion needs a limit."),
        ("Zqrank in caches", "Evict before you insert."),
        ("Zqrank in queues", "Bound them, and say when they are full."),
        ("Zqrank in clocks", "They go backwards."),
    ] {
        node.add(title, content);
    }
    let amounts = |finished: &Value| -> Vec<f64> {
        let credits = finished["credits"].as_array().unwrap().iter();
        credits.map(|credit| credit["amount"].as_f64().unwrap()).collect()
    };
    let task = node.begin("builder", None);
    let hits = node.search("zqrank", &task, 4);
    assert_eq!(hits.len(), 4, "all of them are served");
    let named = json!({"outcome": "success", "quality": 1.0, "used": &hits[..3]});
    assert_eq!(amounts(&node.finish(&task, &named)), [1.5, 1.05, 0.735]);
    assert!(near(node.counts(&hits[1]).0, 5.0 + 1.05));
    assert!(near(node.counts(&hits[3]).0, 5.0), "what was not named earns nothing");

    let task = node.begin("builder", None);
    let hits = node.search("zqrank", &task, 4);
    let before = node.counts(&hits[2]).1;
    let unnamed = node.finish(&task, &json!({"outcome": "failure"}));
    assert_eq!(amounts(&unnamed), [0.5, 0.35, 0.245]);
    assert!(near(node.counts(&hits[2]).1, before + 0.245));
}

#[test]
fn what_was_dismissed_shares_in_no_outcome_and_an_avoided_spike_counts_as_used() {
    let node = Workplace::new();
    node.add("Zqaside in parsers", "Recursion needs a limit.");
    node.add("Zqaside in caches", "Evict before you insert.");
    let spike = json!({
        "title": "Zqaside in queues", "content": "A bound of ten was fast enough.",
        "type": "spike", "outcome": "confirmed", "evidence": ["run:bench"],
    });
    let spike = text(&node.done("/v1/entries", &spike)["id"]);
    let first = node.begin("builder", None);
    let (aside, rest): (Vec<String>, Vec<String>) =
        node.search("zqaside", &first, 3).into_iter().partition(|hit| *hit != spike);
    assert_eq!((aside.len(), rest.len()), (2, 1), "all of them are served");
    let before = node.counts(&aside[0]);
    let done = node.finish(&first, &json!({"outcome": "failure", "dismissed": aside}));
    assert_eq!(done["dismissed"].as_array().unwrap().len(), 2);
    let credits = done["credits"].as_array().unwrap();
    assert_eq!((credits.len(), &credits[0]["id"]), (1, &json!(spike)), "{done}");
    assert_eq!(node.counts(&aside[0]), before);

    let second = node.begin("researcher", None);
    assert!(node.search("zqaside", &second, 3).contains(&spike));
    let finish = json!({"outcome": "success", "avoided": [&spike]});
    let done = node.finish(&second, &finish);
    assert_eq!((&done["avoided"], &done["credits"][0]["named"]), (&json!([spike]), &json!(true)));
    assert_eq!(node.finish(&second, &finish)["already"], true);
    for (task, entry, expect) in [(&first, &aside[0], "dismissed"), (&second, &spike, "avoided")] {
        let shown = node.0.json("GET", &format!("/v1/tasks/{task}"), &json!(null)).json();
        let entries = shown["entries"].as_array().unwrap();
        let found = entries.iter().find(|one| one["id"] == entry.as_str()).unwrap();
        assert_eq!(found["said"], expect, "{shown}");
    }
    let usage = node.0.json("GET", "/v1/usage", &json!(null)).json();
    let total = ["dismissed", "avoided"].map(|name| usage["total"][name].as_u64());
    assert_eq!(total, [Some(2), Some(1)], "once, however often it is finished");
}

#[test]
fn what_is_said_at_the_end_of_a_task_cannot_contradict_itself() {
    let node = Workplace::new();
    let entry = node.add("About zqboth", "Words that nobody else uses.");
    let unserved = node.add("Something else", "Of no interest here.");
    let code = text(&node.shown(&entry)["code"]);
    let task = node.begin("builder", None);
    assert_eq!(node.search("zqboth", &task, 1), [entry.as_str()]);
    let many: Vec<String> = (0..1_001).map(|number| format!("L-{number}")).collect();
    let both = format!("dismissed and used both name {code}; it was one or the other");
    for (mut said, problem) in [
        (json!({"used": [&entry], "dismissed": [&code]}), both),
        (json!({"avoided": [&entry]}), format!("avoided names {code}; it must name spikes alone")),
        (json!({"dismissed": many}), "dismissed names 1001; 1000 are allowed".to_owned()),
    ] {
        said["outcome"] = json!("success");
        let answer = node.post(&format!("/v1/tasks/{task}/finish"), &said);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(&problem), "{}", answer.text());
    }
    let said = json!({"outcome": "failure", "dismissed": [&entry, &unserved]});
    let done = node.finish(&task, &said);
    assert_eq!((&done["dismissed"], &done["unserved"]), (&json!([entry]), &json!([unserved])));
}

#[test]
fn an_observation_in_a_task_counts_once_and_its_end_adds_nothing_to_it() {
    let node = Workplace::new();
    let entry = node.add("About zqonce", "Words that nobody else uses.");
    let task = node.begin("builder", None);
    assert_eq!(node.search("zqonce", &task, 1), [entry.as_str()]);
    let observe = json!({"outcome": "success", "task": task});
    for _ in 0..3 {
        node.done(&format!("/v1/entries/{entry}/observations"), &observe);
    }
    assert!(near(node.counts(&entry).0, 6.0));
    let finish = json!({"outcome": "success", "used": [entry.as_str()]});
    assert_eq!(node.finish(&task, &finish)["credits"], json!([]));
    assert!(near(node.counts(&entry).0, 6.0));
}

#[test]
fn the_chain_of_parents_primes_and_a_root_confirms_once() {
    let node = Workplace::new();
    let entry = node.add("About zqchain", "Words that nobody else uses.");
    let root = node.begin("planner", None);
    assert_eq!(node.search("zqchain", &root, 1), [entry.as_str()]);
    let child = node.begin("builder", Some(&root));
    let grandchild = node.begin("tester", Some(&child));
    let path = format!("/v1/entries/{entry}/confirm?task={grandchild}");
    let confirmed = node.done(&path, &json!(null));
    assert_eq!(confirmed["class"], "primed");
    assert_eq!(confirmed["reason"], format!("it was served in task {root}"));

    let root = node.begin("planner", None);
    let children = [node.begin("builder", Some(&root)), node.begin("tester", Some(&root))];
    let classes = children.map(|child| node.0.confirm_as_another(&entry, &child));
    let expected = [Confirmation::Independent, Confirmation::Again];
    assert_eq!(classes, expected, "at most one for each root task");
}

#[test]
fn a_task_that_is_unknown_or_over_is_named_with_a_way_out() {
    let node = Workplace::new();
    let entry = node.add("About zqover", "Words that nobody else uses.");
    let task = node.begin("builder", None);
    node.finish(&task, &json!({"outcome": "success"}));
    let unknown = "00".repeat(16);
    for (name, status, message, hint) in [
        (unknown.as_str(), 404, "this node knows none of that name", "klnode task list"),
        ("nonsense", 400, "it is no name of a task, 32 hex digits", "klnode task list"),
        (task.as_str(), 400, "it is finished", "klnode task begin"),
    ] {
        let observe = json!({"outcome": "success", "task": name});
        for (path, body) in [
            ("/v1/search".to_owned(), json!({"query": "zqover", "task": name})),
            (format!("/v1/entries/{entry}/observations"), observe),
            (format!("/v1/entries/{entry}/confirm?task={name}"), json!(null)),
            ("/v1/tasks".to_owned(), json!({"agent": "a", "goal": "g", "parent": name})),
        ] {
            let answer = node.post(&path, &body);
            let told = answer.text();
            assert_eq!(answer.status, status, "{path}: {told}");
            assert!(told.contains(message) && told.contains(hint), "{path}: {told}");
        }
    }
    let bad = json!({"outcome": "success", "quality": 2.0});
    let task = node.begin("builder", None);
    let answer = node.post(&format!("/v1/tasks/{task}/finish"), &bad);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("quality is 2; it must be from 0 to 1"), "{}", answer.text());
}

pub(super) fn begin(node: &mut Node) -> TaskId {
    let new = NewTask { agent: "agent".into(), goal: "goal".into(), thread: None, parent: None };
    match node.run(Command::Task(Box::new(TaskAct::Begin(new)))) {
        Ok(Receipt::Task(TaskDone::Began(task))) => task,
        other => panic!("the task was not begun: {other:?}"),
    }
}

pub(super) fn end(node: &mut Node, task: TaskId, used: Vec<EntryId>) -> Result<Receipt, Rejection> {
    let outcome = Outcome { verdict: Verdict::Success, quality: 0.5 };
    let finish = Finish::new(outcome, used);
    node.run(Command::Task(Box::new(TaskAct::Finish(task, finish))))
}

pub(super) fn serve(node: &mut Node, task: TaskId, entry: EntryId) {
    let row = ServedRow {
        caller: "agent".into(),
        task: Some(task.to_string()),
        query: "what".into(),
        entries: vec![entry],
        ..ServedRow::default()
    };
    node.run(Command::Served(row)).unwrap();
}

/// Says that a user asks for something.
fn by_user(command: Command) -> Command {
    let caller = CallerRow { uid: Some(7), ..CallerRow::default() };
    Command::As { caller, command: Box::new(command) }
}

fn read(node: &mut Node, entry: EntryId) {
    let row = ServedRow { query: "what".into(), entries: vec![entry], ..ServedRow::default() };
    node.run(by_user(Command::Served(row))).unwrap();
}

/// As what the user's confirmation counts, in a task of its own.
fn confirmed(node: &mut Node, entry: EntryId) -> Confirmation {
    let act = TaskAct::Confirm { task: begin(node), entry, is_lowered: false };
    match node.run(by_user(Command::Task(Box::new(act)))) {
        Ok(Receipt::Task(TaskDone::Confirmed(of))) => of,
        other => panic!("it was not confirmed: {other:?}"),
    }
}

#[test]
fn what_was_read_under_a_clock_ahead_primes_nobody_once_it_is_set_right() {
    let mut node = Node::start(1, 1);
    let entry = node.create("read");
    let minutes = |count: u64| Duration::from_secs(count * 60);
    node.wait_days(200);
    read(&mut node, entry);
    node.now = START.plus(minutes(10));
    assert_eq!(confirmed(&mut node, entry), Confirmation::Independent);
    read(&mut node, entry);
    let uses = node.engine.store().snapshot().unwrap().uses(entry).unwrap();
    assert_eq!(uses.last_served, node.now);
    assert_eq!(confirmed(&mut node, entry), Confirmation::ServedToUser);
    node.now = node.now.plus(minutes(61));
    assert_eq!(confirmed(&mut node, entry), Confirmation::UserAgain, "by reading no longer");
}

#[test]
fn what_is_read_over_tcp_may_have_been_read_by_anybody() {
    let node = Workplace(Served::start(Limits::default(), Doors::Both));
    let read = node.add("About zqtcp", "Words that nobody else uses.");
    let unread = node.add("About zqclosed", "Other words.");
    let token = format!("Bearer {TOKEN}");
    let headers = [("Authorization", token.as_str())];
    let ask = |method: &str, path: &str| {
        let answer = ask(node.0.connect_tcp(), method, path, &headers, b"");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    ask("GET", &format!("/v1/entries/{read}"));
    for (entry, class) in [(&read, "primed"), (&unread, "independent")] {
        let task = node.begin("reviewer", None);
        let path = format!("/v1/entries/{entry}/confirm?task={task}");
        assert_eq!(ask("POST", &path)["class"], class);
        // The caller over TCP may have been an agent of this user, of whom one a day counts.
        let task = node.begin("reviewer", None);
        assert_eq!(node.confirm(entry, &format!("?task={task}")), "primed");
    }
    let task = node.begin("reviewer", None);
    let other = node.add("About zqopen", "Yet other words.");
    assert_eq!(node.confirm(&other, &format!("?task={task}")), "independent");
}

#[test]
fn whoever_had_read_an_entry_has_not_found_it_however_late_the_task_ends() {
    let mut node = Node::start(1, 1);
    let (shown, unread) = (node.create("shown"), node.create("unread"));
    read(&mut node, shown);
    node.now = node.now.plus(Duration::from_secs(600));
    let task = begin(&mut node);
    for text in [SQL[0], CACHE[0]] {
        let new = NewFinding {
            text: text.into(),
            severity: "low".into(),
            confidence: 0.5,
            anchors: vec!["path:a".into()],
            repositories: Vec::new(),
            verify: vec!["look".into()],
            dismissal: None,
            workspace: WorkspaceId::MAIN,
        };
        node.run(Command::Finding(Box::new(FindingAct::Record(task, new)))).unwrap();
    }
    node.now = node.now.plus(Duration::from_secs(3_600));
    end(&mut node, task, Vec::new()).unwrap();
    for (number, entry, became) in [(1, shown, Became::Reinforced), (2, unread, Became::Confirmed)]
    {
        let (entry, others) = (Some((entry, BTreeSet::new())), Vec::new());
        let finding = FindingKey { task, number };
        let compared = Compared { finding, is_dismissed: false, entry, others };
        match node.run(Command::Finding(Box::new(FindingAct::Settle(compared)))) {
            Ok(Receipt::Finding(FindingDone::Settled(Some(fate)))) => {
                assert_eq!(fate.became, became, "{}", fate.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_task_that_nobody_finishes_expires_without_a_verdict() {
    let mut node = Node::start(1, 1);
    let entry = node.create("served");
    let task = begin(&mut node);
    serve(&mut node, task, entry);
    node.now = START.plus(Duration::from_secs(8 * 24 * 3_600));
    let told = end(&mut node, task, vec![entry]).unwrap_err();
    assert!(matches!(told, Rejection::TaskEnded { state: "expired", .. }), "{told}");
    assert_eq!(node.successes(entry), 0);
}

#[test]
fn an_outcome_is_noted_for_the_author_of_the_text_with_its_task_and_a_forgotten_entry_is_in_none() {
    let (mut node, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let (foreign, own) = (peer.create("from elsewhere"), node.create("from here"));
    peer.send_to(&mut node);
    let task = begin(&mut node);
    serve(&mut node, task, foreign);
    serve(&mut node, task, own);
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.task_parts(task).unwrap().len(), 2);
    drop(snapshot);
    node.run(Command::Forget { entry: own }).unwrap();
    end(&mut node, task, vec![foreign]).unwrap();
    let snapshot = node.engine.store().snapshot().unwrap();
    let outcomes = snapshot.outcomes(peer.author()).unwrap();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0].task, Some(task.to_string()));
    let parts = snapshot.task_parts(task).unwrap();
    assert_eq!(parts.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [foreign]);
}

#[test]
fn a_task_is_finished_though_what_it_used_was_forgotten_meanwhile() {
    let node = Workplace::new();
    let gone = node.add("About zqgone", "Words that nobody else uses.");
    let kept = node.add("About zqkept", "Other words.");
    let task = node.begin("builder", None);
    assert_eq!(node.search("zqkept", &task, 1), [kept.as_str()]);
    node.done(&format!("/v1/entries/{gone}/forget"), &json!(null));
    let used = json!({"outcome": "success", "used": [&gone, &kept]});
    let done = node.finish(&task, &used);
    assert_eq!((&done["already"], &done["unserved"]), (&json!(false), &json!([gone])));
    assert_eq!(done["credits"][0]["code"], node.shown(&kept)["code"]);
    let digits = code_digits(EntryId::from_hex(&gone).unwrap());
    assert_eq!(done["codes"], json!({&gone: digits}), "no letter is left of it");
    assert_eq!(node.finish(&task, &used)["already"], true);
}

#[test]
fn the_operator_says_what_a_word_of_feedback_counts() {
    for (step, expected) in [(None, 1.0), (Some("confidence.outcome.feedback_step=0.25"), 0.25)] {
        let home = tempfile::tempdir().unwrap();
        let mut command = klnode(home.path());
        command.args(step.into_iter().flat_map(|step| ["--set", step]));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let (_node, _) = started(command);
        let add = ["add", "--title", "About zqstep", "--content", "c", "--evidence", "doc:notes"];
        let code = text(&program::json(home.path(), &add)["code"]);
        let alpha = || program::json(home.path(), &["show", &code])["alpha"].as_f64().unwrap();
        let before = alpha();
        program::json(home.path(), &["feedback", &code, "--helpful"]);
        let added = alpha() - before;
        assert!((added - expected).abs() < 1e-3, "{step:?}: {added}");
    }
}

#[test]
fn a_task_is_bracketed_by_verbs() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let run = |arguments: &[&str]| {
        let output = klnode(home.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&run(&[arguments, &["--json"]].concat())).unwrap()
    };
    let none = run(&["task", "list"]);
    assert_eq!(none, "No tasks. `klnode task begin --help` shows how to begin one.\n");
    let add = ["add", "--title", "About zqverb", "--content", "Rare.", "--evidence", "doc:notes"];
    let code = text(&json(&add)["code"]);
    let begin = ["task", "begin", "--agent", "builder", "--goal", "mend the build"];
    let task = text(&json(&begin)["task"]);
    let printed = run(&begin);
    assert_eq!(printed.trim_end().len(), task.len(), "its name alone: {printed}");
    json(&["search", "zqverb", "--task", &task, "--all"]);
    let shown = run(&["task", "show", &task]);
    assert!(shown.contains(&code) && shown.contains("state     open"), "{shown}");
    let confirmed = run(&["confirm", &code, "--task", &task]);
    assert!(confirmed.contains("noted as primed: it was served in task"), "{confirmed}");
    let finish =
        ["task", "finish", task.as_str(), "--success", "--quality", "1", "--used", code.as_str()];
    let finished = run(&finish);
    assert!(finished.contains("+1.500 successes: named as used, in place 1"), "{finished}");
    assert!(run(&finish).ends_with("was finished before; nothing was added\n"));
    let listed = run(&["task", "list"]);
    assert!(
        listed.contains("success") && listed.contains("    builder: mend the build\n"),
        "{listed}"
    );
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    assert_eq!(json(&["task", "list", "--open"])["tasks"].as_array().unwrap().len(), 1);
    let other = printed.trim_end();
    json(&["search", "zqverb", "--task", other, "--all"]);
    let finished = run(&["task", "finish", other, "--failure", "--dismissed", &code]);
    assert!(finished.contains("dismissed: neither credited nor blamed"), "{finished}");
    assert!(run(&["task", "show", other]).contains("  (dismissed)"));
    let both = klnode(home.path()).args(["task", "finish", task.as_str()]).output().unwrap();
    assert_eq!(both.status.code(), Some(2), "a verdict is needed");
}
