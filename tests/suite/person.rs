//! The person's key: what it guards, how it is shown, and that nothing else opens the node.

use crate::person_key::{PASSPHRASE, header, write_key};
use crate::program::{Running, klnode, printed, started, told};
use klnode::api::{Limits, document, person};
use klnode_crdt::ids::WorkspaceId;
use klnode_tests::served::{Answer, Doors, PATIENCE, Served, ask};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// What changes something and is everybody's. A route that is neither here nor an operator's fails
/// a test: whoever adds one decides.
const EVERYBODYS: [&str; 29] = [
    "patch /v1/entries/{entry}",
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
    "post /v1/peers/{peer}/preview",
    "post /v1/search",
    "post /v1/stop",
    "post /v1/sync",
    "post /v1/tasks",
    "post /v1/tasks/{task}/findings",
    "post /v1/tasks/{task}/finish",
    "post /v1/threads/archive",
    "post /v1/upkeep/run",
    "post /v1/upkeep/{number}/accept",
    "post /v1/upkeep/{number}/dismiss",
    "post /v1/upkeep/{number}/undo",
    "post /v1/workspaces/{name}/checkouts",
    "post /v1/workspaces/{name}/use",
    "put /v1/entries/{entry}/overlay",
];

const OPERATORS: [&str; 18] = [
    "patch /v1/entries/{entry}/person",
    "patch /v1/workspaces/{name}",
    "post /v1/entries/person",
    "post /v1/entries/{entry}/confirm/person",
    "post /v1/entries/{entry}/promote/procedural",
    "post /v1/entries/{entry}/resolve/person",
    "post /v1/import/person",
    "post /v1/invitations",
    "post /v1/join",
    "post /v1/offers/decision",
    "post /v1/peers/{peer}/decision",
    "post /v1/peers/{peer}/filter",
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

/// Every route that changes something, and whether it is described as the operator's.
fn routes() -> Vec<(String, bool)> {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let named = |one: &Value| one["name"] == person::HEADER && one["in"] == "header";
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
fn every_route_that_changes_something_is_the_operators_or_everybodys() {
    let of = |wanted: bool| {
        let routes = routes().into_iter().filter(|(_, is_operators)| *is_operators == wanted);
        routes.map(|(route, _)| route).collect::<Vec<_>>()
    };
    assert_eq!(of(true), OPERATORS);
    assert_eq!(of(false), EVERYBODYS);
}

#[test]
fn every_operators_route_refuses_what_is_not_signed_and_no_other_does() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let home = node.socket.parent().unwrap();
    let refused = |route: &str, headers: &[(&str, &str)]| {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("{peer}", "ab").replace("{name}", "x").replace("{entry}", "L-AAAA");
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        let answer = node.ask(&method.to_uppercase(), &path, &headers, b"{}");
        let unsigned = answer.status == 403 && problem(&answer).contains("without the person");
        (unsigned, answer)
    };
    for (route, _) in routes() {
        assert!(!refused(&route, &[]).0, "{route}: there is no key yet");
    }
    write_key(home);
    for (route, is_operators) in routes() {
        let (unsigned, answer) = refused(&route, &[]);
        assert_eq!(unsigned, is_operators, "{route}: {answer:?}");
        let (unsigned, answer) = refused(&route, &[(person::HEADER, "1:00")]);
        assert_eq!(unsigned, is_operators, "{route}: {answer:?}");
    }
    // A signature gets past the guard, and what comes next is another matter.
    let (path, body) = ("/v1/workspaces", b"{}");
    let (unsigned, answer) =
        refused("post /v1/workspaces", &[(person::HEADER, &header("POST", path, body))]);
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

    /// Types something where no terminal is, whatever the tests are started from.
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
        headers.extend(header.map(|header| (person::HEADER, header)));
        ask(stream, "POST", path, &headers, body.to_string().as_bytes())
    }
}

#[track_caller]
fn refused(output: &Output, part: &str) {
    assert_eq!(output.status.code(), Some(4), "{}", told(output));
    let said = told(output);
    assert!(said.starts_with("klnode: cannot ") && said.contains(part), "{said}");
}

fn says_of_person(home: &Home) -> Value {
    let findings = String::from_utf8(home.type_in(&["doctor", "--json"]).stdout).unwrap();
    let findings: Vec<Value> = serde_json::from_str(&findings).unwrap();
    findings.into_iter().find(|one| one["check"] == "person").unwrap()
}

#[test]
fn without_a_key_all_verbs_work_and_the_node_says_that_it_is_unprotected() {
    let home = Home::start();
    let invited = home.type_in(&["invite", "--mine"]);
    assert!(printed(&invited).starts_with("klnode1"), "the ticket alone");
    assert!(told(&invited).contains("klnode join"), "{}", told(&invited));
    assert!(told(&invited).contains("`klnode person new`"), "{}", told(&invited));
    printed(&home.type_in(&["workspace", "new", "team"]));
    assert!(printed(&home.type_in(&["status"])).contains("unprotected"));
    assert_eq!(says_of_person(&home)["verdict"], "warn");
    let none = home.type_in(&["person", "show"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(told(&none).contains("hint: `klnode person new` makes one"), "{}", told(&none));
}

#[test]
fn with_a_key_a_running_node_opens_only_to_its_passphrase() {
    let (home, other) = (Home::start(), Home::start());
    let made = printed(&home.with("right", &["person", "new"]));
    let shown = printed(&home.type_in(&["person", "show"]));
    assert_eq!(made.lines().next(), Some(shown.trim()));
    let mode = std::fs::metadata(home.path.join("person.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = home.with("right", &["person", "new"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(told(&again).contains("there is one in"), "{}", told(&again));
    let settings = home.folder.path().join("settings.toml");
    std::fs::write(&settings, "[weights]\nsemantic = 0.48\nthompson = 0.15\n").unwrap();
    let verbs: [&[&str]; 18] = [
        &["invite", "--mine"],
        &["join", "klnode1"],
        &["join", "127.0.0.1:1", "--mine"],
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
        refused(&home.type_in(verb), "there is no terminal to ask for its passphrase on");
    }
    refused(&home.with("wrong", &["invite", "--mine"]), "the passphrase is wrong");
    // What is everybody's needs none.
    for verb in [&["peer", "list"][..], &["workspace", "list"], &["status"], &["sync"]] {
        assert!(!printed(&home.type_in(verb)).contains("unprotected"));
    }
    assert_eq!(says_of_person(&home)["verdict"], "ok");
    let invited = home.with("right", &["invite", "--mine", "--json"]);
    assert!(!told(&invited).contains("klnode person new"), "nothing is unprotected");
    let invited: Value = serde_json::from_str(&printed(&invited)).unwrap();
    printed(&other.type_in(&["join", invited["ticket"].as_str().unwrap()]));
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
fn a_request_that_was_signed_is_good_once_and_as_it_was_signed() {
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
    // Who takes the key away while the node runs has not opened it.
    std::fs::remove_file(home.path.join("person.key")).unwrap();
    refused(&home.type_in(&["invite", "--mine"]), "is gone, or holds another key");
}

#[test]
fn a_charter_is_changed_by_what_needs_the_person_alone() {
    let home = Home::start();
    let made = printed(&home.type_in(&["workspace", "new", "team", "--json"]));
    let made: Value = serde_json::from_str(&made).unwrap();
    let workspace = WorkspaceId::from_hex(made["id"].as_str().unwrap()).unwrap();
    let charter = klnode_crdt::charter::entry(workspace).to_string();
    printed(&home.type_in(&["show", &charter]));
    let verbs: [&[&str]; 4] = [
        &["edit", &charter, "--title", "gang"],
        &["archive", &charter],
        &["retract", &charter],
        &["forget", &charter],
    ];
    for verb in verbs {
        refused(&home.type_in(verb), "it is the charter of workspace `team`");
    }
}

#[test]
fn a_confirmation_with_the_persons_key_is_independent_outside_any_task_once_a_day() {
    let home = Home::start();
    let add = ["add", "--title", "About zqperson", "--content", "Rare.", "--evidence", "doc:notes"];
    let added = printed(&home.type_in(&[&add[..], &["--json"]].concat()));
    let added: Value = serde_json::from_str(&added).unwrap();
    let code = added["code"].as_str().unwrap();
    let confirm = ["confirm", code, "--as-person"];
    refused(&home.type_in(&confirm), "there is no person's key");
    write_key(&home.path);
    refused(&home.type_in(&confirm), "there is no terminal to ask for its passphrase on");
    refused(&home.with("wrong", &confirm), "the passphrase is wrong");
    let path = format!("/v1/entries/{code}/confirm/person");
    assert_eq!(home.ask(&path, &json!(null), None).status, 403, "nobody else can");
    let observations = || {
        let shown = printed(&home.type_in(&["show", code, "--json"]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["observations"].as_f64().unwrap()
    };
    assert!(observations() < 1e-6);
    let first = printed(&home.with("right", &confirm));
    assert!(first.contains("noted as independent: it is by the person's key"), "{first}");
    let second = printed(&home.with("right", &confirm));
    assert!(second.contains("noted as primed: the person confirmed it earlier today"), "{second}");
    assert!((observations() - 1.0).abs() < 1e-6, "one success");
}

#[test]
fn what_is_to_be_procedural_needs_the_person_by_whatever_door_it_comes() {
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
        headers.extend(signed.map(|signed| (person::HEADER, signed)));
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
        assert!(problem(&refused).contains("without the person"), "{refused:?}");
        let refused = import("/v1/import", &new, None);
        assert_eq!((&refused["taken"], &refused["refused"]), (&json!(0), &json!(1)), "{refused}");
        let why = refused["problems"][0]["message"].as_str().unwrap();
        assert!(why.starts_with("memory: procedural needs the person"), "{why}");
    }
    assert_eq!(add(&new("five", json!({}))).status, 200, "semantic");
    assert_eq!(import("/v1/import", &first, None)["known"], 1, "it was said before");
    let (path, three) = ("/v1/entries/person", procedural("three"));
    let signed = header("POST", path, three.to_string().as_bytes());
    let headers = [("Content-Type", "application/json"), (person::HEADER, signed.as_str())];
    let added = served.ask("POST", path, &headers, three.to_string().as_bytes());
    assert_eq!(added.status, 200, "{added:?}");
    let path = "/v1/import/person";
    let signed = header("POST", path, three.to_string().as_bytes());
    assert_eq!(import(path, &three, Some(&signed))["taken"], 1);
}

#[test]
fn whoever_types_what_is_to_be_procedural_is_asked_for_the_passphrase() {
    let home = Home::start();
    write_key(&home.path);
    let words = ["--title", "Sign releases", "--content", "Always.", "--evidence", "doc:policy"];
    for flags in [["--memory", "procedural"], ["--type", "norm"]] {
        let add = [&["add"][..], &words, &flags].concat();
        refused(&home.type_in(&add), "there is no terminal to ask for its passphrase on");
        printed(&home.with("right", &add));
    }
    printed(&home.type_in(&[&["add"][..], &words].concat()));
    let entry = json!({"title": "Sign tags", "content": "Always.", "memory": "procedural"});
    let file = home.folder.path().join("notes.jsonl");
    std::fs::write(&file, entry.to_string()).unwrap();
    let import = ["import", file.to_str().unwrap()];
    let without = home.type_in(&import);
    assert_eq!(without.status.code(), Some(1), "{}", told(&without));
    assert!(told(&without).contains("--as-person asks for the passphrase"), "{}", told(&without));
    let with = home.with("right", &[&import[..], &["--as-person"]].concat());
    assert!(printed(&with).starts_with("1 taken"), "{}", told(&with));
}

#[test]
fn what_a_procedural_entry_says_is_changed_by_the_person_alone() {
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
    refused(&home.type_in(&edit), "without the person behind this node: it is procedural");
    refused(&home.type_in(&["edit", &ours, "--field", "polarity=negative"]), "without the person");
    printed(&home.type_in(&["edit", &ours, "--tag", "release"]));
    printed(&home.type_in(&["edit", &fact, "--content", "Never."]));
    let signed = [&edit[..], &["--as-person"]].concat();
    refused(&home.type_in(&signed), "there is no terminal to ask for its passphrase on");
    printed(&home.with("right", &signed));
}
