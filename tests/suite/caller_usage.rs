//! Callers by name and session, servings of a session, and statistics of cost and use.

use crate::support::node_process::{klnode, start, text, told};
use klnode_crdt::ids::EntryId;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::wire;
use klnode_engine::{Command, Confirmation, NewTask, Receipt, TaskCommand, TaskReceipt};
use klnode_home::CallerLabel;
use klnode_scoring::status::{Status, StatusReason};
use klnode_server::Limits;
use klnode_store::daily_usage::{Amount, UsageAxis, UsageRow};
use klnode_store::row_reencoding::rewritten;
use klnode_store::row_types::{AnswerCost, CallerRow, HitCost, ServedRow};
use klnode_tests::test_engine::{Node, created, lesson};
use klnode_tests::test_server::{Answer, Doors, PATIENCE, Served};
use klnode_tests::workspace_fixture::Team;
use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A node, queried by clients that may have a name and a session.
struct Asked(Served);

impl Asked {
    fn new() -> Self {
        Self(Served::start(Limits::default(), Doors::Socket))
    }

    fn send(&self, method: &str, path: &str, who: &[(&str, &str)], body: &Value) -> Answer {
        let headers = [&[("Content-Type", "application/json")], who].concat();
        self.0.ask(method, path, &headers, body.to_string().as_bytes())
    }

    #[track_caller]
    fn post(&self, path: &str, who: &[(&str, &str)], body: &Value) -> Value {
        let answer = self.send("POST", path, who, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    fn add(&self, title: &str) -> String {
        let new = json!({"title": title, "content": "Rare words.", "evidence": ["doc:notes"]});
        text(&self.post("/v1/entries", &[], &new)["id"])
    }

    /// Ids of the hits of a query.
    fn search(&self, query: &str, who: &[(&str, &str)], task: Option<&str>) -> Vec<String> {
        let search = json!({"query": query, "limit": 1, "all": true, "task": task});
        let answer = self.post("/v1/search", who, &search);
        answer["hits"].as_array().unwrap().iter().map(|hit| text(&hit["id"])).collect()
    }

    fn begin(&self, who: &[(&str, &str)], parent: Option<&str>) -> String {
        let new = json!({"agent": "builder", "goal": "mend the build", "parent": parent});
        text(&self.post("/v1/tasks", who, &new)["task"])
    }

    /// Class and reason of a confirmation.
    fn confirm(&self, entry: &str, task: &str, who: &[(&str, &str)]) -> (String, String) {
        let path = format!("/v1/entries/{entry}/confirm?task={task}");
        let confirmed = self.post(&path, who, &json!(null));
        (text(&confirmed["class"]), text(&confirmed["reason"]))
    }

    fn usage(&self) -> Value {
        self.send("GET", "/v1/usage", &[], &json!(null)).json()
    }

    /// Statistics once a condition holds: answers are counted after they are given.
    fn counted(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let usage = self.usage();
            if holds(&usage) {
                return usage;
            }
            assert!(Instant::now() < deadline, "{usage}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_client_can_state_its_name_and_invalid_names_are_refused() {
    let node = Asked::new();
    let long = "x".repeat(65);
    for (header, value) in [
        ("klnode-client", long.as_str()),
        ("klnode-client", "two words"),
        ("klnode-session", long.as_str()),
        ("klnode-session", "\u{e4}"),
        ("klnode-session", ""),
    ] {
        let answer = node.send("GET", "/v1/status", &[(header, value)], &json!(null));
        let told = answer.text();
        assert_eq!(answer.status, 400, "{header}: {told}");
        assert!(told.contains(header) && told.contains("1 to 64 bytes of visible ASCII"), "{told}");
    }
    let (client, session) = ("y".repeat(64), "z".repeat(64));
    let who = [("klnode-client", client.as_str()), ("klnode-session", session.as_str())];
    let new = json!({"title": "Named", "content": "Words.", "evidence": ["doc:notes"]});
    let entry = text(&node.post("/v1/entries", &who, &new)["id"]);
    let path = format!("/v1/entries/{entry}/history");
    let history = node.send("GET", &path, &[], &json!(null)).json();
    let caller = &history["records"][0]["caller"];
    assert_eq!((&caller["client"], &caller["session"]), (&json!(client), &json!(session)));
}

#[test]
fn servings_to_a_session_prime_its_user_under_any_name() {
    let node = Asked::new();
    let entry = node.add("About zqsession");
    let [one, two] = ["one", "two"].map(|session| [("klnode-session", session)]);
    assert_eq!(node.search("zqsession", &one, None), [entry.as_str()]);
    let begun_by_one = node.begin(&one, None);
    let (class, reason) = node.confirm(&entry, &begun_by_one, &one);
    assert_eq!(class, "primed", "{reason}");
    assert!(reason.starts_with("it was served to this session"), "{reason}");

    // The task chain carries the session that started it, for any caller.
    assert_eq!(node.confirm(&entry, &begun_by_one, &[]).0, "primed");
    let child = node.begin(&two, Some(&begun_by_one));
    assert_eq!(node.confirm(&entry, &child, &two).0, "primed");
    let begun_by_two = node.begin(&two, None);
    assert_eq!(node.confirm(&entry, &begun_by_two, &one).0, "primed", "the caller was served it");
    let (class, reason) = node.confirm(&entry, &begun_by_two, &two);
    assert_eq!(class, "primed", "a name of a session proves nothing: {reason}");
    // If the process tree can be read, both sessions are below this process.
    let reasons = ["it was served to the same client", "it was served to the same user recently"];
    assert!(reasons.iter().any(|known| reason.starts_with(known)), "{reason}");
    assert_eq!(node.0.confirm_as_another(&entry, &begun_by_two), Confirmation::Independent);

    // An entry served in a task is served to its session as well.
    let other = node.add("About zqelsewhere");
    let task = node.begin(&two, None);
    assert_eq!(node.search("zqelsewhere", &two, Some(&task)), [other.as_str()]);
    let next = node.begin(&two, None);
    let (class, reason) = node.confirm(&other, &next, &two);
    assert_eq!(class, "primed");
    assert!(reason.starts_with("it was served to this session"), "{reason}");
}

#[test]
fn reads_by_id_and_unrecorded_queries_prime_and_are_no_use() {
    let node = Asked::new();
    let [one, two] = ["one", "two"].map(|session| [("klnode-session", session)]);
    let [shown, traced, measured, unread] =
        ["shown", "traced", "measured", "unread"].map(|word| node.add(&format!("About zq{word}")));
    node.send("GET", &format!("/v1/entries/{shown}"), &one, &json!(null));
    node.send("GET", &format!("/v1/entries/{traced}/history"), &one, &json!(null));
    let unrecorded = json!({"query": "zqmeasured", "limit": 1, "all": true, "unrecorded": true});
    let answer = node.post("/v1/search", &one, &unrecorded);
    assert_eq!(answer["hits"][0]["id"], measured.as_str(), "{answer}");
    let read = [&shown, &traced, &measured];
    let classes = read.map(|entry| (entry, "primed")).into_iter();
    for (entry, class) in classes {
        for who in [&two, &one] {
            let task = node.begin(who, None);
            assert_eq!(node.confirm(entry, &task, who).0, class, "{entry}");
        }
    }
    // Of one user's agents one confirmation of an entry counts per day.
    for (who, class) in [(&two, "independent"), (&one, "primed")] {
        let task = node.begin(who, None);
        assert_eq!(node.confirm(&unread, &task, who).0, class);
    }
    for entry in read {
        let snapshot = node.0.engine.store().snapshot().unwrap();
        let uses = snapshot.uses(EntryId::from_hex(entry).unwrap()).unwrap();
        assert_eq!((uses.served, uses.last_served), (0, WallTime::default()));
    }
    assert_eq!(node.usage()["total"]["answers"], 0);
}

#[test]
fn caller_names_are_bounded_and_redacted() {
    let node = Asked::new();
    let entry = node.add("About zqcaller");
    let key = ["AKIA", "QX5R", "7TLM", "2WZP", "4VNH"].concat();
    let ask = |caller: &str| {
        let search = json!({"query": "zqcaller", "limit": 1, "all": true, "caller": caller});
        node.send("POST", "/v1/search", &[], &search)
    };
    let refused = ask(&"x".repeat(5_000));
    assert_eq!(refused.status, 400, "{}", refused.text());
    let expected = "The caller has 5000 bytes; at most 4096 are allowed.";
    assert!(refused.text().contains(expected), "{}", refused.text());
    let longest = format!("{key} {}", "x".repeat(4_095 - key.len()));
    let answer = ask(&longest);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["hits"][0]["id"], entry.as_str());
    let task = node.begin(&[], None);
    assert_eq!(node.confirm(&entry, &task, &[]).0, "primed", "the answer was recorded");
    let snapshot = node.0.engine.store().snapshot().unwrap();
    let (_, row) = snapshot.serving_log().unwrap().next().unwrap().unwrap();
    assert!(row.caller.chars().count() <= 200, "{}", row.caller);
    assert!(!row.caller.contains(&key), "{}", row.caller);
}

/// Class of a user's confirmation, in a new task.
fn confirmed(node: &mut Node, uid: u32, entry: EntryId) -> Confirmation {
    let caller = CallerRow { uid: Some(uid), ..CallerRow::default() };
    let (agent, goal) = ("agent".to_owned(), "goal".to_owned());
    let begin = TaskCommand::Begin(NewTask { agent, goal, ..NewTask::default() });
    let mut run = |act: TaskCommand| {
        let command = Box::new(Command::Task(Box::new(act)));
        match node.run(Command::As { caller, command }) {
            Ok(Receipt::Task(done)) => done,
            other => panic!("nothing was done about the task: {other:?}"),
        }
    };
    let TaskReceipt::Began(task) = run(begin) else { panic!("the task was not begun") };
    match run(TaskCommand::Confirm { task, entry, is_lowered: false }) {
        TaskReceipt::Confirmed(of) => of,
        other => panic!("it was not confirmed: {other:?}"),
    }
}

#[test]
fn a_user_that_read_an_entry_is_primed_for_an_hour() {
    let mut node = Node::start(1, 1);
    let entry = node.create("read");
    let read = |node: &mut Node, uid: u32| {
        let caller = CallerRow { uid: Some(uid), ..CallerRow::default() };
        let row = ServedRow { is_unrecorded: true, ..served(entry, HitCost::default()) };
        let command = Box::new(Command::Served(row));
        node.run(Command::As { caller, command }).unwrap();
    };
    read(&mut node, 7);
    assert_eq!(confirmed(&mut node, 7, entry), Confirmation::ServedToUser);
    assert_eq!(confirmed(&mut node, 8, entry), Confirmation::Independent);
    node.now = node.now.plus(Duration::from_secs(30 * 60));
    read(&mut node, 7);
    node.now = node.now.plus(Duration::from_secs(50 * 60));
    assert_eq!(confirmed(&mut node, 7, entry), Confirmation::ServedToUser, "it was read again");
    node.now = node.now.plus(Duration::from_secs(15 * 60));
    assert_eq!(confirmed(&mut node, 7, entry), Confirmation::Independent);
    // If more users have read it than are distinguished, all count as readers.
    for (uid, expected) in (10..14).zip([
        Confirmation::Independent,
        Confirmation::UserAgain,
        Confirmation::UserAgain,
        Confirmation::UserAgain,
    ]) {
        assert_eq!(confirmed(&mut node, 99, entry), expected, "{uid}");
        read(&mut node, uid);
    }
    assert_eq!(confirmed(&mut node, 99, entry), Confirmation::ServedToUser);
    assert!(counted(&node).is_empty(), "reads are no answers");
}

fn rows_of_primed(node: &Node) -> u64 {
    let disk = node.medium.disk().fork();
    let database = Database::builder().create_with_backend(disk).unwrap();
    let table: TableDefinition<'_, &[u8; 32], &[u8; 8]> = TableDefinition::new("primed");
    database.begin_read().unwrap().open_table(table).unwrap().len().unwrap()
}

fn served(entry: EntryId, hit: HitCost) -> ServedRow {
    ServedRow {
        caller: "agent".into(),
        query: "what".into(),
        entries: vec![entry],
        session: CallerLabel::parse("one"),
        cost: AnswerCost { hits: vec![hit], millis: 4 },
        ..ServedRow::default()
    }
}

#[test]
fn a_forgotten_entry_is_removed_from_all_sessions() {
    let mut node = Node::start(1, 1);
    let (gone, kept) = (node.create("gone"), node.create("kept"));
    for entry in [gone, kept] {
        node.run(Command::Served(served(entry, HitCost::default()))).unwrap();
    }
    // The next write makes the serving log durable.
    node.create("another");
    assert_eq!(rows_of_primed(&node), 2);
    node.run(Command::Forget { entry: gone }).unwrap();
    assert_eq!(rows_of_primed(&node), 1);
    assert!(node.engine.store().snapshot().unwrap().check().unwrap().is_empty());
}

/// A row as earlier versions wrote it, before callers had names.
#[derive(serde::Serialize)]
struct OldCaller {
    u: u32,
    p: u32,
}

/// A serving log row of earlier versions.
#[derive(serde::Serialize)]
struct OldServed {
    c: &'static str,
    q: &'static str,
    e: Vec<EntryId>,
}

#[test]
fn rows_without_a_client_name_are_unchanged() {
    let caller = wire::encode(&OldCaller { u: 1_000, p: 4_242 });
    let served = wire::encode(&OldServed { c: "agent", q: "what", e: Vec::new() });
    for (table, row) in [("callers", caller), ("ledger", served)] {
        let row = [vec![1], row].concat();
        assert_eq!(rewritten(table, &row), Some(row), "{table}");
    }
}

#[test]
fn answers_uses_harm_and_abstentions_are_counted_per_caller_and_author() {
    let node = Asked::new();
    assert_eq!(node.usage()["total"]["answers"], 0);
    let entry = node.add("About zqusage");
    let agent = [("klnode-client", "claude-code")];
    let task = node.begin(&agent, None);
    assert_eq!(node.search("zqusage", &agent, Some(&task)), [entry.as_str()]);
    let finish = json!({"outcome": "success", "used": [entry.as_str()]});
    node.post(&format!("/v1/tasks/{task}/finish"), &agent, &finish);
    let observations = format!("/v1/entries/{entry}/observations");
    node.post(&observations, &agent, &json!({"outcome": "failure"}));
    // Another client asks for a missing topic; an unrecorded query counts as nothing.
    let other = [("klnode-client", "script")];
    assert!(node.search("recipe for apple pie", &other, None).is_empty());
    let unrecorded = json!({"query": "zqusage", "unrecorded": true});
    node.post("/v1/search", &other, &unrecorded);
    let usage = node.counted(|usage| usage["total"]["abstentions"] == 1);
    let of = |list: &str, name: &str| -> Value {
        let rows = usage[list].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
    };
    let agent = of("callers", "claude-code");
    let numbers = ["answers", "hits", "used", "harmful", "abstentions"];
    assert_eq!(numbers.map(|name| agent[name].as_u64().unwrap()), [1, 1, 1, 1, 0], "{usage}");
    assert!(agent["tokens"].as_u64().unwrap() > 10, "{usage}");
    let script = of("callers", "script");
    assert_eq!(numbers.map(|name| script[name].as_u64().unwrap()), [0, 0, 0, 0, 1], "{usage}");
    let author = of("authors", "you");
    assert_eq!(numbers.map(|name| author[name].as_u64().unwrap()), [1, 1, 1, 1, 0], "{usage}");
    assert_eq!(author["tokens"], agent["tokens"]);
    assert_eq!(usage["peers"], json!([]), "no peer delivered it");
    let days = usage["days"].as_array().unwrap();
    assert_eq!(days.len(), 7);
    // The day may change during the test; the counts are on one of the days.
    let tokens: u64 = days.iter().map(|day| day["tokens"].as_u64().unwrap()).sum();
    assert_eq!(tokens, agent["tokens"].as_u64().unwrap());
    assert_eq!(usage["total"]["answers"], 1);
}

fn counted(node: &Node) -> Vec<(UsageAxis, UsageRow)> {
    let snapshot = node.engine.store().snapshot().unwrap();
    let rows = snapshot.usage_since(Day(0)).unwrap().map(Result::unwrap);
    rows.map(|(_, axis, row)| (axis, row)).collect()
}

#[test]
fn a_foreign_entry_is_counted_for_its_author_and_its_peer() {
    let mut team = Team::gather();
    let entry = team.alice.create_in(team.shared.id, "from alice");
    // Delivered by bob, not by alice herself.
    klnode_tests::test_engine::exchange(&mut team.alice, &mut team.bob);
    klnode_tests::test_engine::exchange(&mut team.node, &mut team.bob);
    let (node, alice, bob) = (&mut team.node, team.alice.author(), team.bob.author());
    let own = node.create("from here");
    let cost = |author, tokens| HitCost { author: Some(author), tokens, ..HitCost::default() };
    node.run(Command::Served(served(entry, cost(alice, 40)))).unwrap();
    let by = node.author();
    node.run(Command::Served(served(own, cost(by, 2)))).unwrap();
    let caller = CallerRow { uid: Some(7), ..CallerRow::default() };
    let amount = klnode_crdt::gcounter::Thousandths::ONE;
    let observe = Command::Observe { entry, of: Observation::Failure, amount };
    node.run(Command::As { caller, command: Box::new(observe) }).unwrap();
    let rows = counted(node);
    let of = |axis, name: &str| {
        let row = rows.iter().find(|(of, row)| *of == axis && row.name == name);
        row.map(|(_, row)| row.amount).unwrap_or_default()
    };
    let foreign = Amount { answers: 1, tokens: 40, hits: 1, harmful: 1, ..Amount::default() };
    assert_eq!(of(UsageAxis::Author, &alice.to_string()), foreign);
    assert_eq!(of(UsageAxis::Peer, &bob.to_string()), foreign);
    let peers = rows.iter().filter(|(axis, _)| *axis == UsageAxis::Peer).count();
    assert_eq!(peers, 1, "no peer delivered the local entry: {rows:?}");
    let here = Amount { answers: 1, tokens: 2, hits: 1, ..Amount::default() };
    assert_eq!(of(UsageAxis::Author, &by.to_string()), here);
    let asked = Amount { answers: 2, tokens: 42, hits: 2, millis: 8, ..Amount::default() };
    assert_eq!(of(UsageAxis::Caller, "unknown"), asked);
    assert_eq!(of(UsageAxis::Caller, "uid 7"), Amount { harmful: 1, ..Amount::default() });
}

#[test]
fn unasked_servings_prime_and_are_counted_and_are_no_use() {
    let mut node = Node::start(1, 1);
    let entry = node.create("told");
    let row = ServedRow { is_unasked: true, ..served(entry, HitCost::default()) };
    node.run(Command::Served(row)).unwrap();
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.uses(entry).unwrap().served, 0, "its staleness is unchanged");
    assert_eq!(counted(&node)[0].1.amount.hits, 1);
    node.create("another");
    assert_eq!(rows_of_primed(&node), 1);
}

#[test]
fn a_stale_entry_served_on_request_stays_stale() {
    let mut node = Node::start(1, 1);
    let (never, once) = (node.create("never served"), node.create("served once"));
    node.wait_days(1);
    let serve = |node: &mut Node, entry: EntryId, is_stale: bool| {
        let hit = HitCost { is_stale, ..HitCost::default() };
        node.run(Command::Served(served(entry, hit))).unwrap();
    };
    serve(&mut node, once, false);
    node.wait_days(90);
    for (entry, days) in [(never, 91), (once, 90)] {
        let reason = |node: &Node| node.found(entry).assessment.standing.reason;
        assert_eq!(reason(&node), StatusReason::NotServed { days });
        serve(&mut node, entry, true);
        assert_eq!(
            reason(&node),
            StatusReason::NotServed { days },
            "a search for stale entries does not revive"
        );
    }
    let uses = node.engine.store().snapshot().unwrap().uses(never).unwrap();
    assert_eq!(uses.served, 1, "the serving is still counted");
    node.succeed(never);
    assert_eq!(node.found(never).assessment.standing.status, Status::Active);
    node.wait_days(89);
    serve(&mut node, never, false);
    node.wait_days(89);
    assert_eq!(
        node.found(never).assessment.standing.status,
        Status::Active,
        "an ordinary serving counts"
    );
}

#[test]
fn a_search_for_stale_entries_revives_none() {
    let create = Command::Create(Box::new(lesson("About zqdust")));
    let (node, receipts) = Served::start_after(100, &[create]);
    let (node, entry) = (Asked(node), created(&receipts[0]));
    let name = entry.to_string();
    let last_served = || {
        let snapshot = node.0.engine.store().snapshot().unwrap();
        snapshot.uses(entry).unwrap().last_served
    };
    let before = last_served();
    // Later servings have a later timestamp.
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    while now() <= u128::from(before.as_millis()) {
        std::thread::yield_now();
    }
    // In a task, an answer waits until it is recorded.
    let task = node.begin(&[], None);
    let search = json!({"query": "zqdust", "all": true, "also": ["stale"], "task": task});
    let status = || {
        let answer = node.post("/v1/search", &[], &search);
        assert_eq!(answer["hits"][0]["id"], name.as_str(), "{answer}");
        text(&answer["hits"][0]["status"])
    };
    assert_eq!((status().as_str(), last_served()), ("stale", before));
    let success = json!({"outcome": "success"});
    node.post(&format!("/v1/entries/{name}/observations"), &[], &success);
    assert_eq!(status(), "active");
    assert!(last_served() > before, "an ordinary hit counts as a use");
}

#[test]
fn primed_confirmations_are_shown_with_the_entry() {
    let node = Asked::new();
    let entry = node.add("About zqecho");
    let path = format!("/v1/entries/{entry}");
    let shown = || node.send("GET", &path, &[], &json!(null)).json();
    assert_eq!(shown().get("primed_confirmations"), None);
    for _ in 0..2 {
        let confirmed = node.post(&format!("{path}/confirm"), &[], &json!(null));
        assert_eq!(confirmed["class"], "primed", "{confirmed}");
    }
    let shown = shown();
    assert_eq!(shown["primed_confirmations"], 2, "{shown}");
    assert_eq!(shown["observations"], 0.0, "they are no evidence: {shown}");
}

#[test]
fn the_serving_log_lists_queries_until_their_entries_are_forgotten() {
    let node = Asked::new();
    let (one, two) = (node.add("Zqone by the gate"), node.add("Zqtwo by the gate"));
    let who = [("klnode-client", "builder"), ("klnode-session", "s-1")];
    let task = node.begin(&who, None);
    assert_eq!(node.search("zqone", &who, Some(&task)), [one.as_str()]);
    assert_eq!(node.search("zqtwo", &who, Some(&task)), [two.as_str()]);
    let served = |query: &str| {
        let told = node.send("GET", &format!("/v1/served{query}"), &[], &json!(null)).json();
        (told["answers"].as_array().unwrap().clone(), told["more"].clone())
    };
    let (all, more) = served("");
    let asked: Vec<&Value> = all.iter().map(|answer| &answer["query"]).collect();
    assert_eq!((asked, more), (vec![&json!("zqtwo"), &json!("zqone")], json!(false)));
    let (newest, more) = served("?limit=1");
    assert_eq!((newest.len(), more), (1, json!(true)));
    let (of_one, _) = served(&format!("?entry={one}"));
    let [answer] = of_one.as_slice() else { panic!("{of_one:?}") };
    let whom = [&answer["caller"], &answer["session"], &answer["task"]];
    assert_eq!(whom, [&json!("builder"), &json!("s-1"), &json!(task)]);
    assert_eq!(answer["entries"][0]["id"], json!(one));
    node.post(&format!("/v1/entries/{one}/forget"), &[], &json!(null));
    let (left, _) = served("");
    assert_eq!((&left[1]["query"], &left[1]["entries"]), (&json!(null), &json!([])));
    assert_eq!(left[0]["query"], "zqtwo");
    let gone = node.send("GET", &format!("/v1/served?entry={one}"), &[], &json!(null));
    assert_eq!(gone.status, 410, "{}", gone.text());
    assert!(gone.text().contains("was forgotten, and its serving log with it."));
    let answer = node.send("GET", "/v1/served?entry=L-ZZZZZZZZ", &[], &json!(null));
    assert_eq!(answer.status, 404, "{}", answer.text());
}

#[test]
fn usage_prints_a_table_and_a_chart() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let run = |arguments: &[&str]| klnode(home.path()).args(arguments).output().unwrap();
    let printed = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let none = printed(&["status", "usage"]);
    assert!(none.starts_with("No questions since 20"), "{none}");
    let add = ["add", "--title", "About zqtable", "--content", "Rare.", "--evidence", "doc:notes"];
    printed(&add);
    printed(&["search", "zqtable", "--all"]);
    let deadline = Instant::now() + PATIENCE;
    let table = loop {
        let table = printed(&["status", "usage", "--since", "2w"]);
        if table.starts_with("CALLER") {
            break table;
        }
        assert!(Instant::now() < deadline, "{table}");
    };
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].starts_with("cli "), "the command line has a name: {table}");
    assert!(lines[2].starts_with("all "), "{table}");
    assert!(table.contains("Tokens a day") && table.contains('#'), "{table}");
    assert!(!table.contains('\u{1b}'), "a pipe gets no colours: {table}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(lines.len(), 5 + 14, "a row for each day: {table}");
    assert!(printed(&["status", "usage", "--by", "author"]).contains("\nyou "));
    let json: Value = serde_json::from_str(&printed(&["status", "usage", "--json"])).unwrap();
    assert_eq!(json["callers"][0]["name"], "cli");
    let bad = run(&["status", "usage", "--since", "ever"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(told(&bad).contains("it must be 1d to 400d"), "{}", told(&bad));
}
