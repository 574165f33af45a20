//! Tasks: servings in a task decide the class of a confirmation, and its end gives credit.

use crate::findings::{CACHE, SQL};
use crate::support::node_process::{self, klnode, start, started, text, told};
use klnode_crdt::entry_type::code_digits;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_engine::{
    Command, ComparedFinding, Confirmation, FindingCommand, FindingReceipt, Finish, NewFinding,
    NewTask, Receipt, Rejection, TaskCommand, TaskReceipt,
};
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_server::Limits;
use klnode_store::findings::{FindingKey, FindingResolution};
use klnode_store::row_types::{CallerRow, ServedRow};
use klnode_tests::test_engine::{Node, START};
use klnode_tests::test_server::{Answer, Doors, Served, TOKEN, ask};
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

    /// Response of a request that must succeed.
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

    /// Ids of the entries served to a query in a task.
    fn search(&self, query: &str, task: &str, limit: usize) -> Vec<String> {
        let search = json!({
            "query": query, "task": task, "limit": limit, "all": true, "deterministic": true,
        });
        let answer = self.done("/v1/search", &search);
        answer["hits"].as_array().unwrap().iter().map(|hit| text(&hit["id"])).collect()
    }

    /// Class of a confirmation.
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
fn an_entry_only_confirmed_by_a_served_agent_in_ten_tasks_is_archived() {
    let node = Workplace::new();
    let entry = node.add("About zqecho", "Words that occur nowhere else.");
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
    assert_eq!(last["unserved"], json!([other]), "an unserved entry gets no credit");
    let code = |entry: &str| node.shown(entry)["code"].clone();
    assert_eq!(last["codes"], json!({&entry: code(&entry), &other: code(&other)}));
    assert_eq!(node.shown(&entry)["status"], "archived");
    assert_eq!(node.counts(&entry), before);
    assert_eq!(node.primed(&entry), 10, "counted separately");

    let restore = json!({"archived": false});
    let restored = node.0.json("PATCH", &format!("/v1/entries/{entry}"), &restore);
    assert_eq!(restored.status, 200, "{}", restored.text());
    assert_ne!(node.shown(&entry)["status"], "archived");
    assert_eq!(work()["archived"], json!([]), "a restored entry starts again");
}

#[test]
fn a_credited_use_keeps_an_entry_out_of_the_archive() {
    let node = Workplace::new();
    let entry = node.add("About zquse", "Words that occur nowhere else.");
    for number in 1..=12 {
        let task = node.begin("builder", None);
        assert_eq!(node.search("zquse", &task, 1), [entry.as_str()]);
        // Credit counts as a use; blame does not.
        let finish = match number {
            5 => json!({"outcome": "success", "used": [entry.as_str()]}),
            _ => json!({"outcome": "failure"}),
        };
        assert_eq!(node.finish(&task, &finish)["archived"], json!([]), "{number}");
    }
}

#[test]
fn an_agent_that_was_not_served_an_entry_confirms_it_once() {
    let node = Workplace::new();
    let entry = node.add("About zqfresh", "Words that occur nowhere else.");
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
    let entry = node.add("About zqoutside", "Words that occur nowhere else.");
    let before = node.counts(&entry);
    assert_eq!(node.confirm(&entry, ""), "primed");
    let task = node.begin("reviewer", None);
    assert_eq!(node.confirm(&entry, &format!("?task={task}&primed=true")), "primed");
    assert_eq!(node.counts(&entry), before);
    let path = format!("/v1/entries/{entry}/confirm?task={task}&class=independent");
    assert_eq!(node.post(&path, &json!(null)).status, 400, "a caller cannot raise the class");
    assert_eq!(node.confirm(&entry, &format!("?task={task}&primed=false")), "primed", "was read");
    let unread = node.add("About zqunread", "Words that no caller has read.");
    assert_eq!(node.confirm(&unread, &format!("?task={task}&primed=false")), "independent");
}

#[test]
fn finish_is_idempotent() {
    let node = Workplace::new();
    let entry = node.add("About zqtwice", "Words that occur nowhere else.");
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
fn an_outcome_is_credited_by_rank_and_at_half_weight_without_names() {
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
    assert!(near(node.counts(&hits[3]).0, 5.0), "an unnamed entry gets no credit");

    let task = node.begin("builder", None);
    let hits = node.search("zqrank", &task, 4);
    let before = node.counts(&hits[2]).1;
    let unnamed = node.finish(&task, &json!({"outcome": "failure"}));
    assert_eq!(amounts(&unnamed), [0.5, 0.35, 0.245]);
    assert!(near(node.counts(&hits[2]).1, before + 0.245));
}

#[test]
fn dismissed_entries_get_no_credit_and_an_avoided_spike_counts_as_used() {
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
    assert_eq!(total, [Some(2), Some(1)], "once, even if finished twice");
}

#[test]
fn a_contradictory_task_report_is_refused() {
    let node = Workplace::new();
    let entry = node.add("About zqboth", "Words that occur nowhere else.");
    let unserved = node.add("Something else", "Of no interest here.");
    let code = text(&node.shown(&entry)["code"]);
    let task = node.begin("builder", None);
    assert_eq!(node.search("zqboth", &task, 1), [entry.as_str()]);
    let many: Vec<String> = (0..1_001).map(|number| format!("L-{number}")).collect();
    let both = format!("dismissed and used both name {code}; an entry can only be one of them");
    for (mut said, problem) in [
        (json!({"used": [&entry], "dismissed": [&code]}), both),
        (json!({"avoided": [&entry]}), format!("avoided names {code}; only spikes are allowed")),
        (json!({"dismissed": many}), "`dismissed` names 1001 entries; at most 1000".to_owned()),
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
    let entry = node.add("About zqonce", "Words that occur nowhere else.");
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
fn parent_tasks_prime_and_a_root_task_confirms_once() {
    let node = Workplace::new();
    let entry = node.add("About zqchain", "Words that occur nowhere else.");
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
fn an_unknown_or_ended_task_is_refused_with_a_hint() {
    let node = Workplace::new();
    let entry = node.add("About zqover", "Words that occur nowhere else.");
    let task = node.begin("builder", None);
    node.finish(&task, &json!({"outcome": "success"}));
    let unknown = "00".repeat(16);
    for (name, status, message, hint) in [
        (unknown.as_str(), 404, "not found on this node", "klnode task list"),
        ("nonsense", 400, "is not the name of a task, which has 32 hex digits", "klnode task list"),
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
    let new = NewTask { agent: "agent".into(), goal: "goal".into(), ..NewTask::default() };
    match node.run(Command::Task(Box::new(TaskCommand::Begin(new)))) {
        Ok(Receipt::Task(TaskReceipt::Began(task))) => task,
        other => panic!("the task was not begun: {other:?}"),
    }
}

pub(super) fn end(node: &mut Node, task: TaskId, used: Vec<EntryId>) -> Result<Receipt, Rejection> {
    let outcome = TaskOutcome { verdict: TaskVerdict::Success, quality: 0.5 };
    let finish = Finish::new(outcome, used);
    node.run(Command::Task(Box::new(TaskCommand::Finish(task, finish))))
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

/// A command with the caller of a user.
fn by_user(command: Command) -> Command {
    let caller = CallerRow { uid: Some(7), ..CallerRow::default() };
    Command::As { caller, command: Box::new(command) }
}

fn read(node: &mut Node, entry: EntryId) {
    let row = ServedRow { query: "what".into(), entries: vec![entry], ..ServedRow::default() };
    node.run(by_user(Command::Served(row))).unwrap();
}

/// Class of the user's confirmation, in a new task.
fn confirmed(node: &mut Node, entry: EntryId) -> Confirmation {
    let act = TaskCommand::Confirm { task: begin(node), entry, is_lowered: false };
    match node.run(by_user(Command::Task(Box::new(act)))) {
        Ok(Receipt::Task(TaskReceipt::Confirmed(of))) => of,
        other => panic!("it was not confirmed: {other:?}"),
    }
}

#[test]
fn a_serving_under_a_fast_clock_primes_no_caller_after_the_correction() {
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
    assert_eq!(
        confirmed(&mut node, entry),
        Confirmation::UserAgain,
        "and no longer primed by reading"
    );
}

#[test]
fn a_serving_over_tcp_primes_every_user() {
    let node = Workplace(Served::start(Limits::default(), Doors::Both));
    let read = node.add("About zqtcp", "Words that occur nowhere else.");
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
        // The caller over TCP may have been an agent of this user, of which one a day counts.
        let task = node.begin("reviewer", None);
        assert_eq!(node.confirm(entry, &format!("?task={task}")), "primed");
    }
    let task = node.begin("reviewer", None);
    let other = node.add("About zqopen", "Yet other words.");
    assert_eq!(node.confirm(&other, &format!("?task={task}")), "independent");
}

#[test]
fn a_finding_of_a_served_entry_is_primed_at_any_task_end() {
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
            is_once: false,
        };
        node.run(Command::Finding(Box::new(FindingCommand::Record(task, new)))).unwrap();
    }
    node.now = node.now.plus(Duration::from_secs(3_600));
    end(&mut node, task, Vec::new()).unwrap();
    for (number, entry, became) in
        [(1, shown, FindingResolution::Reinforced), (2, unread, FindingResolution::Confirmed)]
    {
        let (entry, others) = (Some((entry, BTreeSet::new())), Vec::new());
        let finding = FindingKey { task, number };
        let compared = ComparedFinding { finding, is_dismissed: false, entry, others };
        match node.run(Command::Finding(Box::new(FindingCommand::Settle(compared)))) {
            Ok(Receipt::Finding(FindingReceipt::Settled(Some(fate)))) => {
                assert_eq!(fate.became, became, "{}", fate.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unfinished_task_expires_without_a_verdict() {
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
fn an_outcome_is_recorded_for_the_author_and_removed_with_a_forgotten_entry() {
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
fn a_task_can_be_finished_after_a_used_entry_was_forgotten() {
    let node = Workplace::new();
    let gone = node.add("About zqgone", "Words that occur nowhere else.");
    let kept = node.add("About zqkept", "Other words.");
    let task = node.begin("builder", None);
    assert_eq!(node.search("zqkept", &task, 1), [kept.as_str()]);
    node.done(&format!("/v1/entries/{gone}/forget"), &json!(null));
    let used = json!({"outcome": "success", "used": [&gone, &kept]});
    let done = node.finish(&task, &used);
    assert_eq!((&done["already"], &done["unserved"]), (&json!(false), &json!([gone])));
    assert_eq!(done["credits"][0]["code"], node.shown(&kept)["code"]);
    let digits = code_digits(EntryId::from_hex(&gone).unwrap());
    assert_eq!(done["codes"], json!({&gone: digits}), "its type is forgotten");
    assert_eq!(node.finish(&task, &used)["already"], true);
}

#[test]
fn the_amount_of_feedback_is_configurable() {
    for (step, expected) in
        [(None, 1.0), (Some("tuning.confidence.outcome.feedback_step=0.25"), 0.25)]
    {
        let home = tempfile::tempdir().unwrap();
        let mut command = klnode(home.path());
        command.args(step.into_iter().flat_map(|step| ["--set", step]));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let (_node, _) = started(command);
        let add = ["add", "--title", "About zqstep", "--content", "c", "--evidence", "doc:notes"];
        let code = text(&node_process::json(home.path(), &add)["code"]);
        let alpha = || node_process::json(home.path(), &["show", &code])["alpha"].as_f64().unwrap();
        let before = alpha();
        node_process::json(home.path(), &["feedback", &code, "--helpful"]);
        let added = alpha() - before;
        assert!((added - expected).abs() < 1e-3, "{step:?}: {added}");
    }
}

#[test]
fn the_task_verbs_begin_and_finish_a_task() {
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
    assert_eq!(printed.trim_end().len(), task.len(), "only its id: {printed}");
    json(&["search", "zqverb", "--task", &task, "--all"]);
    let shown = run(&["task", "show", &task]);
    assert!(shown.contains(&code) && shown.contains("state     open"), "{shown}");
    let confirmed = run(&["feedback", "--confirm", &code, "--task", &task]);
    assert!(confirmed.contains("recorded as primed: it was served in task"), "{confirmed}");
    let finish =
        ["task", "finish", task.as_str(), "--success", "--quality", "1", "--used", code.as_str()];
    let finished = run(&finish);
    assert!(finished.contains("+1.500 successes (reported as used; rank 1)"), "{finished}");
    assert!(run(&finish).ends_with("was already finished; nothing was added\n"));
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
