//! The person's key: the routes it protects, how it is shown, and that no other key opens the node.

use crate::support::conformance::conforms;
use crate::support::node_process::{Running, checks, klnode, printed, started, told};
use crate::support::person_key::{PASSPHRASE, header, write_key};
use klnode_crdt::ids::WorkspaceId;
use klnode_server::{Limits, document, person_auth};
use klnode_tests::test_server::{Answer, Doors, PATIENCE, Served, ask};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Writing routes that need no person's key. A route that is neither listed here nor an operator's
/// fails a test, so that the author of a new route has to decide.
const EVERYBODYS: [&str; 39] = [
    "patch /v1/entries/{entry}",
    "patch /v1/playbooks/{entry}",
    "post /api/v1/knowledge/{entry}/action",
    "post /api/v1/knowledge/{entry}/annotate",
    "post /api/v1/knowledge/{entry}/promote",
    "post /v1/anchors/check",
    "post /v1/backup",
    "post /v1/entries",
    "post /v1/entries/{entry}/accept",
    "post /v1/entries/{entry}/confirm",
    "post /v1/entries/{entry}/forget",
    "post /v1/entries/{entry}/observations",
    "post /v1/entries/{entry}/promote",
    "post /v1/entries/{entry}/reset",
    "post /v1/entries/{entry}/resolve",
    "post /v1/entries/{entry}/retract",
    "post /v1/entries/{entry}/supersede",
    "post /v1/import",
    "post /v1/import/links",
    "post /v1/insights/{insight}/dismiss",
    "post /v1/insights/{insight}/restore",
    "post /v1/maintenance/run",
    "post /v1/maintenance/{number}/accept",
    "post /v1/maintenance/{number}/dismiss",
    "post /v1/maintenance/{number}/undo",
    "post /v1/page",
    "post /v1/peers/{peer}/preview",
    "post /v1/playbooks",
    "post /v1/playbooks/{entry}/purge",
    "post /v1/search",
    "post /v1/stop",
    "post /v1/sync",
    "post /v1/tasks",
    "post /v1/tasks/{task}/findings",
    "post /v1/tasks/{task}/finish",
    "post /v1/threads/archive",
    "post /v1/workspaces/{name}/checkouts",
    "post /v1/workspaces/{name}/use",
    "put /v1/entries/{entry}/overlay",
];

const OPERATORS: [&str; 23] = [
    "patch /v1/entries/{entry}/person",
    "patch /v1/playbooks/{entry}/person",
    "patch /v1/workspaces/{name}",
    "post /v1/entries/person",
    "post /v1/entries/{entry}/confirm/person",
    "post /v1/entries/{entry}/promote/approved",
    "post /v1/entries/{entry}/promote/procedural",
    "post /v1/entries/{entry}/resolve/person",
    "post /v1/held/{entry}/release",
    "post /v1/import/person",
    "post /v1/invitations",
    "post /v1/join",
    "post /v1/offers/decision",
    "post /v1/peers/{peer}/decision",
    "post /v1/peers/{peer}/filter",
    "post /v1/playbooks/person",
    "post /v1/playbooks/{entry}/purge/person",
    "post /v1/quarantine/reject",
    "post /v1/quarantine/{digest}/reject",
    "post /v1/quarantine/{digest}/release",
    "post /v1/tasks/{task}/findings/{number}/dismiss",
    "post /v1/tasks/{task}/findings/{number}/keep",
    "post /v1/workspaces",
];

fn problem(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Every writing route, and whether it is described as the operator's.
fn routes() -> Vec<(String, bool)> {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let named = |one: &Value| one["name"] == person_auth::HEADER && one["in"] == "header";
            let is_operators =
                operation["parameters"].as_array().is_some_and(|all| all.iter().any(named));
            if is_operators || method != "get" {
                routes.push((format!("{method} {path}"), is_operators));
            }
        }
    }
    routes.sort();
    routes
}

#[test]
fn every_writing_route_is_classified() {
    let of = |wanted: bool| {
        let routes = routes().into_iter().filter(|(_, is_operators)| *is_operators == wanted);
        routes.map(|(route, _)| route).collect::<Vec<_>>()
    };
    assert_eq!(of(true), OPERATORS);
    assert_eq!(of(false), EVERYBODYS);
}

#[test]
fn exactly_the_operators_routes_refuse_unsigned_requests() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let home = node.socket.parent().unwrap();
    let refused = |route: &str, headers: &[(&str, &str)]| {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("{peer}", "ab").replace("{name}", "x").replace("{entry}", "L-AAAA");
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        let answer = node.ask(&method.to_uppercase(), &path, &headers, b"{}");
        let unsigned = answer.status == 403 && problem(&answer).contains("needs the person");
        (unsigned, answer)
    };
    for (route, _) in routes() {
        assert!(!refused(&route, &[]).0, "{route}: there is no key yet");
    }
    write_key(home);
    for (route, is_operators) in routes() {
        let (unsigned, answer) = refused(&route, &[]);
        assert_eq!(unsigned, is_operators, "{route}: {answer:?}");
        let (unsigned, answer) = refused(&route, &[(person_auth::HEADER, "1:00")]);
        assert_eq!(unsigned, is_operators, "{route}: {answer:?}");
    }
    // A signature passes the guard; later checks may still refuse.
    let (path, body) = ("/v1/workspaces", b"{}");
    let (unsigned, answer) =
        refused("post /v1/workspaces", &[(person_auth::HEADER, &header("POST", path, body))]);
    assert!(!unsigned && answer.status != 200, "{answer:?}");
}

/// A running node and a file with a passphrase.
struct Home {
    folder: TempDir,
    path: PathBuf,
    _node: Running,
}

impl Home {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home");
        std::fs::write(folder.path().join("right"), format!("{PASSPHRASE}\n")).unwrap();
        std::fs::write(folder.path().join("wrong"), "incorrect horse").unwrap();
        let mut command = klnode(&path);
        command.args(["--set", "network.listen=[\"/ip4/127.0.0.1/tcp/0\"]"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let (node, _) = started(command);
        Self { folder, path, _node: node }
    }

    /// Runs a verb without a terminal, even if the tests have one.
    fn type_in(&self, words: &[&str]) -> Output {
        let with_terminal = klnode(&self.path);
        let mut command = Command::new("setsid");
        command.arg(with_terminal.get_program()).args(with_terminal.get_args());
        command.env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command.args(words).output().unwrap()
    }

    fn with(&self, passphrase: &str, words: &[&str]) -> Output {
        let file = self.folder.path().join(passphrase);
        self.type_in(&[words, &["--passphrase-file", file.to_str().unwrap()]].concat())
    }

    fn ask(&self, path: &str, body: &Value, header: Option<&str>) -> Answer {
        let stream = UnixStream::connect(self.path.join("klnode.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(header.map(|header| (person_auth::HEADER, header)));
        ask(stream, "POST", path, &headers, body.to_string().as_bytes())
    }
}

#[track_caller]
fn refused(output: &Output, part: &str) {
    assert_eq!(output.status.code(), Some(4), "{}", told(output));
    let said = told(output);
    assert!(said.starts_with("error: ") && said.contains(part), "{said}");
}

fn says_of_person(home: &Home) -> Value {
    let findings =
        String::from_utf8(home.type_in(&["check", "home", "store", "--json"]).stdout).unwrap();
    let findings: Value = serde_json::from_str(&findings).unwrap();
    checks(&findings).into_iter().find(|one| one["check"] == "person").unwrap()
}

#[test]
fn without_a_key_all_verbs_work_and_the_node_reports_it() {
    let home = Home::start();
    let invited = home.type_in(&["peer", "invite", "--mine"]);
    assert!(printed(&invited).starts_with("klnode1"), "only the ticket");
    assert!(told(&invited).contains("klnode peer join"), "{}", told(&invited));
    assert!(told(&invited).contains("`klnode identity new`"), "{}", told(&invited));
    printed(&home.type_in(&["workspace", "new", "team"]));
    assert!(
        printed(&home.type_in(&["status"])).contains("your user account alone protects this node")
    );
    assert_eq!(says_of_person(&home)["verdict"], "warn");
    let none = home.type_in(&["identity", "show"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(told(&none).contains("hint: `klnode identity new` creates one"), "{}", told(&none));
}

#[test]
fn with_a_key_a_running_node_opens_only_to_its_passphrase() {
    let (home, other) = (Home::start(), Home::start());
    let made = printed(&home.with("right", &["identity", "new"]));
    let shown = printed(&home.type_in(&["identity", "show"]));
    assert_eq!(made.lines().next(), Some(shown.trim()));
    let mode = std::fs::metadata(home.path.join("person.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = home.with("right", &["identity", "new"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(told(&again).contains("already a person's key in"), "{}", told(&again));
    let settings = home.folder.path().join("settings.toml");
    std::fs::write(&settings, "[weights]\nsemantic = 0.48\nthompson = 0.15\n").unwrap();
    let verbs: [&[&str]; 18] = [
        &["peer", "invite", "--mine"],
        &["peer", "join", "klnode1"],
        &["peer", "join", "127.0.0.1:1", "--mine"],
        &["peer", "approve", "ab"],
        &["peer", "approve", "ab", "--code", "123456"],
        &["peer", "refuse", "ab"],
        &["peer", "block", "ab"],
        &["peer", "unblock", "ab"],
        &["peer", "remove", "ab"],
        &["peer", "filter", "ab", "--deny-tag", "x"],
        &["workspace", "new", "team"],
        &["workspace", "members", "team", "--remove", "ab"],
        &["workspace", "members", "team", "--add", "ab"],
        &["workspace", "accept", "team"],
        &["workspace", "decline", "team"],
        &["workspace", "settings", "team", settings.to_str().unwrap()],
        &["task", "dismiss", "ab", "1", "--reason", "x"],
        &["task", "keep", "ab", "1"],
    ];
    for verb in verbs {
        refused(&home.type_in(verb), "there is no terminal to ask for its passphrase");
    }
    refused(&home.with("wrong", &["peer", "invite", "--mine"]), "the passphrase is wrong");
    // Unprotected verbs need no key.
    for verb in [&["peer", "list"][..], &["workspace", "list"], &["status"], &["peer", "sync"]] {
        let said = printed(&home.type_in(verb));
        assert!(!said.contains("unprotected") && !said.contains("alone protects"), "{said}");
    }
    assert_eq!(says_of_person(&home)["verdict"], "ok");
    let invited = home.with("right", &["peer", "invite", "--mine", "--json"]);
    assert!(!told(&invited).contains("klnode identity new"), "nothing is unprotected");
    let invited: Value = serde_json::from_str(&printed(&invited)).unwrap();
    printed(&other.type_in(&["peer", "join", invited["ticket"].as_str().unwrap()]));
    let status: Value =
        serde_json::from_str(&printed(&other.type_in(&["status", "--json"]))).unwrap();
    let key = status["node"].as_str().unwrap();
    refused(&home.type_in(&["peer", "block", key]), "terminal");
    printed(&home.type_in(&["peer", "preview", key]));
    printed(&home.type_in(&["peer", "filter", key, "--deny-tag", "x", "--dry-run"]));
    printed(&home.with("right", &["peer", "filter", key, "--deny-tag", "x"]));
    printed(&home.with("right", &["peer", "block", key]));
    printed(&home.with("right", &["workspace", "new", "team"]));
    printed(&home.type_in(&["workspace", "use", "team"]));
    printed(&home.with("right", &["workspace", "settings", "team", settings.to_str().unwrap()]));
}

#[test]
fn a_signed_request_is_valid_once_and_unchanged() {
    let home = Home::start();
    write_key(&home.path);
    let (path, team) = ("/v1/workspaces", json!({ "name": "team" }));
    let unsigned = home.ask(path, &team, None);
    assert_eq!(unsigned.status, 403, "{unsigned:?}");
    assert!(problem(&unsigned).contains("not signed with the person's key"));
    let header = header("POST", path, team.to_string().as_bytes());
    let other = home.ask(path, &json!({ "name": "gang" }), Some(&header));
    assert_eq!(other.status, 403, "{other:?}");
    let first = home.ask(path, &team, Some(&header));
    assert_eq!(first.status, 200, "{first:?}");
    let replayed = home.ask(path, &team, Some(&header));
    assert_eq!(replayed.status, 403, "{replayed:?}");
    assert!(problem(&replayed).contains("was used before"), "{replayed:?}");
    // Removing the key file while the node runs does not open the node.
    std::fs::remove_file(home.path.join("person.key")).unwrap();
    refused(&home.type_in(&["peer", "invite", "--mine"]), "is gone, or holds another key");
}

#[test]
fn a_charter_is_changed_only_with_the_persons_key() {
    let home = Home::start();
    let made = printed(&home.type_in(&["workspace", "new", "team", "--json"]));
    let made: Value = serde_json::from_str(&made).unwrap();
    let workspace = WorkspaceId::from_hex(made["id"].as_str().unwrap()).unwrap();
    let charter = klnode_crdt::workspace_charter::entry(workspace).to_string();
    printed(&home.type_in(&["show", &charter]));
    let verbs: [&[&str]; 4] = [
        &["edit", &charter, "--title", "gang"],
        &["archive", &charter],
        &["forget", "--retract", &charter],
        &["forget", &charter],
    ];
    for verb in verbs {
        refused(&home.type_in(verb), "is the charter of workspace `team`");
    }
}

#[test]
fn a_confirmation_with_the_persons_key_is_independent_outside_any_task_once_a_day() {
    let home = Home::start();
    let add = ["add", "--title", "About zqperson", "--content", "Rare.", "--evidence", "doc:notes"];
    let added = printed(&home.type_in(&[&add[..], &["--json"]].concat()));
    let added: Value = serde_json::from_str(&added).unwrap();
    let code = added["code"].as_str().unwrap();
    let confirm = ["feedback", "--confirm", code, "--as-person"];
    refused(&home.type_in(&confirm), "This node has no person's key");
    write_key(&home.path);
    refused(&home.type_in(&confirm), "there is no terminal to ask for its passphrase");
    refused(&home.with("wrong", &confirm), "the passphrase is wrong");
    let path = format!("/v1/entries/{code}/confirm/person");
    assert_eq!(home.ask(&path, &json!(null), None).status, 403, "a signature is needed");
    let observations = || {
        let shown = printed(&home.type_in(&["show", code, "--json"]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["observations"].as_f64().unwrap()
    };
    assert!(observations() < 1e-6);
    let first = printed(&home.with("right", &confirm));
    assert!(first.contains("recorded as independent: the person's key signed it"), "{first}");
    let second = printed(&home.with("right", &confirm));
    assert!(
        second.contains("recorded as primed: the person already confirmed it today"),
        "{second}"
    );
    assert!((observations() - 1.0).abs() < 1e-6, "one success");
}

#[test]
fn the_persons_confirmation_restarts_the_count_and_the_person_retracts() {
    conforms("S000-15");
    conforms("S000-50");
    let home = Home::start();
    write_key(&home.path);
    let done = |words: &[&str]| -> Value {
        let said = printed(&home.type_in(&[words, &["--json"]].concat()));
        serde_json::from_str(&said).unwrap()
    };
    let add = ["add", "--title", "About zqkept", "--content", "Rare.", "--evidence", "doc:notes"];
    let code = done(&add)["code"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let begun = done(&["task", "begin", "--agent", "a", "--goal", "g"]);
        let task = begun["task"].as_str().unwrap();
        let found = done(&["search", "zqkept", "--all", "--task", task]);
        assert_eq!(found["hits"][0]["code"], code.as_str(), "{found}");
        done(&["task", "finish", task, "--failure"]);
    }
    let state = || {
        let shown = done(&["show", &code]);
        ["confirmed_days_ago", "idle_tasks"].map(|name| shown[name].clone())
    };
    assert_eq!(state(), [Value::Null, json!(2)]);
    printed(&home.with("right", &["feedback", "--confirm", &code, "--as-person"]));
    assert_eq!(state(), [json!(0), json!(0)]);
    printed(&home.type_in(&["forget", "--retract", &code, "--yes"]));
    assert_eq!(done(&["show", &code])["status"], "retracted");
}

#[test]
fn procedural_entries_need_the_persons_key_by_every_way() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let new = |title: &str, more: Value| {
        let mut new = json!({"title": title, "content": "Always.", "evidence": ["doc:policy"]});
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new
    };
    let procedural = |title: &str| new(title, json!({"memory": "procedural"}));
    let import = |path: &str, line: &Value, signed: Option<&str>| {
        let mut headers = vec![("Content-Type", "application/x-ndjson")];
        headers.push(("Accept", "application/json"));
        headers.extend(signed.map(|signed| (person_auth::HEADER, signed)));
        served.ask("POST", path, &headers, line.to_string().as_bytes()).json()
    };
    let add = |new: &Value| served.json("POST", "/v1/entries", new);
    assert_eq!(add(&procedural("one")).status, 200, "there is no key yet");
    let first = procedural("two");
    assert_eq!(import("/v1/import", &first, None)["taken"], 1, "there is no key yet");
    write_key(served.socket.parent().unwrap());
    for new in [procedural("three"), new("four", json!({"type": "norm"}))] {
        let refused = add(&new);
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(problem(&refused).contains("needs the person"), "{refused:?}");
        let refused = import("/v1/import", &new, None);
        assert_eq!((&refused["taken"], &refused["refused"]), (&json!(0), &json!(1)), "{refused}");
        let why = refused["problems"][0]["message"].as_str().unwrap();
        assert!(why.starts_with("memory: procedural needs the person"), "{why}");
    }
    assert_eq!(add(&new("five", json!({}))).status, 200, "semantic");
    assert_eq!(import("/v1/import", &first, None)["known"], 1, "it is a known line");
    let (path, three) = ("/v1/entries/person", procedural("three"));
    let signed = header("POST", path, three.to_string().as_bytes());
    let headers = [("Content-Type", "application/json"), (person_auth::HEADER, signed.as_str())];
    let added = served.ask("POST", path, &headers, three.to_string().as_bytes());
    assert_eq!(added.status, 200, "{added:?}");
    let path = "/v1/import/person";
    let signed = header("POST", path, three.to_string().as_bytes());
    assert_eq!(import(path, &three, Some(&signed))["taken"], 1);
}

#[test]
fn adding_a_procedural_entry_asks_for_the_passphrase() {
    let home = Home::start();
    write_key(&home.path);
    let words = ["--title", "Sign releases", "--content", "Always.", "--evidence", "doc:policy"];
    for flags in [["--memory", "procedural"], ["--type", "norm"]] {
        let add = [&["add"][..], &words, &flags].concat();
        refused(&home.type_in(&add), "there is no terminal to ask for its passphrase");
        printed(&home.with("right", &add));
    }
    printed(&home.type_in(&[&["add"][..], &words].concat()));
    let entry = json!({"title": "Sign tags", "content": "Always.", "memory": "procedural"});
    let file = home.folder.path().join("notes.jsonl");
    std::fs::write(&file, entry.to_string()).unwrap();
    let import = ["import", file.to_str().unwrap()];
    let without = home.type_in(&import);
    assert_eq!(without.status.code(), Some(1), "{}", told(&without));
    assert!(
        told(&without).contains("use --as-person to enter the passphrase"),
        "{}",
        told(&without)
    );
    let with = home.with("right", &[&import[..], &["--as-person"]].concat());
    assert!(printed(&with).starts_with("1 imported"), "{}", told(&with));
}

#[test]
fn a_procedural_entry_is_changed_only_with_the_persons_key() {
    let home = Home::start();
    let words = ["--title", "Sign releases", "--content", "Always.", "--evidence", "doc:policy"];
    let add = |more: &[&str]| {
        let added = home.type_in(&[&["add", "--json"][..], &words, more].concat());
        let added: Value = serde_json::from_str(&printed(&added)).unwrap();
        added["code"].as_str().unwrap().to_owned()
    };
    let (ours, fact) = (add(&["--memory", "procedural"]), add(&[]));
    printed(&home.type_in(&["edit", &ours, "--title", "Sign every release"]));
    write_key(&home.path);
    let edit = ["edit", &ours, "--content", "Never."];
    refused(&home.type_in(&edit), "is procedural: changing it needs the person behind this node");
    refused(&home.type_in(&["edit", &ours, "--field", "polarity=negative"]), "needs the person");
    printed(&home.type_in(&["edit", &ours, "--tag", "release"]));
    printed(&home.type_in(&["edit", &fact, "--content", "Never."]));
    let signed = [&edit[..], &["--as-person"]].concat();
    refused(&home.type_in(&signed), "there is no terminal to ask for its passphrase");
    printed(&home.with("right", &signed));
}
