//! The socket and the command line, as people and programs use them: real processes.

use crate::support::node_process::{PROGRAM, Running, klnode, signal, start, started, told};
use hyper::Method;
use klnode_api_types::search::{Search, SearchResponse};
use klnode_api_types::{
    Edit, Entry, EntryIdentity, EntryPage, History, MarkUpdate, NewEntry, NewObservation, NewTask,
    NodeStatus, Outcome, Task,
};
use klnode_client::{Client, ClientError};
use klnode_tests::{documented_sessions, test_server};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

#[test]
fn the_session_in_the_readme_prints_the_documented_output() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"));
    let steps = documented_sessions::sessions(&readme.expect("the README is there"));
    assert!(steps.len() >= 5, "the README has a session");
    let folder = tempfile::tempdir().unwrap();
    let (home, programs) = (folder.path().join("home"), folder.path().join("bin"));
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(PROGRAM, programs.join("klnode")).unwrap();
    let (_node, _) = start(&home);
    let _others = ["second", "third"].map(|name| start(&folder.path().join(name)));
    documented_sessions::run(&steps, &programs, &home);
}

fn answer(home: &Path, arguments: &[&str]) -> (i32, String, String) {
    // In a checkout, a new entry would cite the commit.
    let output = klnode(home).args(arguments).current_dir(home).output().unwrap();
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code().expect("an exit code"), printed, told(&output))
}

/// Mistakes of a new user, with their messages and exit codes.
#[test]
fn every_mistake_gets_a_message_a_hint_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (code, _, told) = answer(home, &["status"]);
    assert_eq!(code, 3);
    let socket = home.join("klnode.sock");
    let expected = format!(
        "error: The node is not reachable: no node is running on {}.\n  \
         hint: Start one with `klnode --home {}`.\n",
        socket.display(),
        home.display()
    );
    assert_eq!(told, expected);

    let (_node, _) = start(home);
    let long = "x".repeat(201);
    let list = home.join("list.json");
    std::fs::write(&list, r#"[{"title": "t", "content": "c"}]"#).unwrap();
    let list = list.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 26] = [
        (&["show", "L-ZZZZZZZZ"], 1, "Entry L-ZZZZZZZZ not found on this node."),
        (&["show", "what is this"], 2, "it is neither an id (hex) nor a code such as L-7F3KQ2MX"),
        (&["show", ""], 2, "give a code, an id or its beginning"),
        (&["edit", " ", "--title", "t"], 2, "give a code, an id or its beginning"),
        (&["task", "show", ""], 2, "give its name, as `klnode task begin` printed it"),
        (&["task", "show", "what"], 2, "is not the name of a task, which has 32 hex digits"),
        (&["task", "finish", "what", "--success"], 2, "is not the name of a task"),
        (&["search", "x", "--task", "L-7F3KQ2MX"], 2, "is not the name of a task"),
        (&["peer", "show", ""], 2, "give its name, or the beginning of its key"),
        (&["workspace", "show", ""], 2, "give its name; `klnode workspace list`"),
        (&["list", "-n", "0"], 2, "The limit is 0 entries; it must be 1 to 1000."),
        (&["task", "list", "-n", "0"], 2, "The limit is 0 tasks; it must be 1 to 1000."),
        (&["add", "--title", "t", "--content", "c"], 2, "a semantic entry needs evidence"),
        (&["add", "--content", "c"], 2, "The entry was not written: title is empty"),
        (&["add", "--title", "", "--content", "c", "--evidence", "run:1"], 2, "title is empty"),
        (&["add", "--title", "t", "--content", "c", "--evidence", "1"], 2, "write it as KIND:REF"),
        (&["add", "--title", "t", "--content", "c", "--evidence", "x:1"], 2, "one of commit, pr"),
        (
            &["add", "--title", &long, "--content", "c", "--evidence", "run:1"],
            2,
            "title has 201 characters; 200 are allowed",
        ),
        (&["add", "--type", "note", "--title", "t"], 2, "type is `note`; it must be one of skill"),
        (&["add", "/nowhere.json"], 2, "Cannot read /nowhere.json: No such file"),
        (&["workspace", "use", "local"], 2, "klnode add --workspace local"),
        (&["add", "--title", "a\nb", "--content", "c"], 2, "title has more than one line"),
        (&["add", list], 2, "it is a list; `klnode import` reads many entries, one per line"),
        (&["add", "-"], 2, "The entry was not written: title is empty"),
        (&["edit", "AAAA", "--field", "colour=red"], 2, "The field `colour` does not exist"),
        (&["feedback", "AAAA"], 2, "--success|--failure"),
    ];
    for (arguments, expected, part) in cases {
        let (code, _, told) = answer(home, arguments);
        assert_eq!(code, expected, "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
    assert_eq!(
        answer(home, &["list"]).1,
        "No entries yet. `klnode add --help` shows how to write the first one.\n"
    );
}

#[test]
fn commands_without_effect_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let add = ["add", "--title", "t", "--content", "c", "--evidence", "run:1", "--tag", "a"];
    let code = answer(home, &add).1.split_whitespace().next().unwrap().to_owned();
    let steps: [(&[&str], i32, &str); 9] = [
        (&["edit", &code, "--untag", "b"], 2, "this node added no `b` to its tags"),
        (&["edit", &code, "--untag", "a"], 0, "edited"),
        (&["edit", &code, "--untag", "a"], 2, "this node added no `a` to its tags"),
        (&["edit", &code, "--title", "u", "--remove-anchor", "x"], 2, "no `x` to its anchors"),
        (&["mark", &code, "--note", "see the incident"], 0, "  note saved here"),
        (&["mark", &code, "--note", ""], 0, "  note removed here"),
        (&["show", &code, "--json"], 0, r#""title": "t""#),
        (&["forget", "--retract", &code], 0, ""),
        (&["edit", &code, "--title", "v"], 2, "its text was retracted"),
    ];
    for (arguments, expected, part) in steps {
        let (ended, said, told) = answer(home, arguments);
        assert_eq!(ended, expected, "{arguments:?}: {told}");
        assert!(said.contains(part) || told.contains(part), "{arguments:?}: {said}{told}");
    }
}

/// An unknown name always exits with 1, for every verb.
#[test]
fn an_unknown_name_exits_with_1_in_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let add = ["add", "--title", "t", "--content", "c", "--evidence", "run:1"];
    let code = answer(home, &add).1.split_whitespace().next().unwrap().to_owned();
    let (task, nowhere) =
        ("00".repeat(16), "Workspace `nowhere` not found. Run `klnode workspace list`");
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    let workspaces: [&[&str]; 13] = [
        &[&add[..], &["--workspace", "nowhere"]].concat(),
        &["search", "x", "--workspace", "nowhere"],
        &["briefing", "nowhere"],
        &["check", "anchors", "--workspace", "nowhere"],
        &["add", "--from", &code, "--workspace", "nowhere"],
        &["archive", "--thread", "t", "--workspace", "nowhere"],
        &["export", "--workspace", "nowhere"],
        &["workspace", "show", "nowhere"],
        &["workspace", "use", "nowhere"],
        &["workspace", "map", "nowhere"],
        &["workspace", "members", "nowhere"],
        &["workspace", "settings", "nowhere", file],
        &["workspace", "unmap", "nowhere"],
    ];
    let peers: [&[&str]; 5] = [
        &["peer", "show", "nobody"],
        &["peer", "approve", "nobody"],
        &["peer", "preview", "nobody"],
        &["peer", "filter", "nobody", "--deny-tag", "x"],
        &["peer", "sync", "nobody"],
    ];
    let tasks: [&[&str]; 6] = [
        &["task", "show", &task],
        &["task", "findings", &task],
        &["task", "finish", &task, "--success"],
        &["search", "x", "--task", &task],
        &["feedback", &code, "--success", "--task", &task],
        &[&add[..], &["--task", &task]].concat(),
    ];
    let entries: [&[&str]; 9] = [
        &["show", "L-ZZZZZZZZ"],
        &["show", "--history", "L-ZZZZZZZZ"],
        &["feedback", "L-ZZZZZZZZ", "--success"],
        &["feedback", "--confirm", "L-ZZZZZZZZ"],
        &["edit", "L-ZZZZZZZZ", "--tag", "x"],
        &["forget", "L-ZZZZZZZZ"],
        &["mark", "--pin", "L-ZZZZZZZZ"],
        &["edit", &code, "--superseded-by", "L-ZZZZZZZZ"],
        &["list", "--after", "L-ZZZZZZZZ"],
    ];
    let all = [
        (&workspaces[..], nowhere),
        (&peers[..], "Peer `nobody` not found. Run `klnode peer list`"),
        (&tasks[..], "not found on this node"),
        (&entries[..], "Entry L-ZZZZZZZZ not found on this node."),
    ];
    for (verbs, part) in all {
        for arguments in verbs {
            let (code, _, told) = answer(home, arguments);
            assert_eq!(code, 1, "{arguments:?}: {told}");
            assert!(told.contains(part), "{arguments:?}: {told}");
        }
    }
}

/// The operations of one of many clients.
async fn mixed(client: Client, number: usize, shared: String) -> Result<(), ClientError> {
    let (post, patch, put) = (Method::POST, Method::PATCH, Method::PUT);
    let mut own = Vec::<(String, String)>::new();
    for request in 0..REQUESTS {
        let path = own.last().map(|(path, _)| path.clone()).unwrap_or_default();
        match request % VERBS {
            0 => {
                let entry = new(format!("{number} {request}"));
                let made: EntryIdentity =
                    client.send_json(post.clone(), "/v1/entries", &entry).await?;
                own.push((format!("/v1/entries/{}", made.id), entry.title));
            }
            1 => {
                // Each observation is in its own task: outside of tasks a repeated one would count
                // once.
                let begun: Task =
                    client.send_json(post.clone(), "/v1/tasks", &task(number)).await?;
                let observe = NewObservation { outcome: Outcome::Success, task: Some(begun.task) };
                let path = format!("{shared}/observations");
                let _: EntryIdentity = client.send_json(post.clone(), &path, &observe).await?;
            }
            // An acknowledged write can be read.
            2 => {
                let read: Entry = client.get(&path).await?;
                assert_eq!(Some(&read.title), own.last().map(|(_, title)| title));
            }
            3 => {
                let list: EntryPage = client.get("/v1/entries?limit=3").await?;
                assert!(!list.entries.is_empty());
            }
            4 => {
                let edit = Edit { add_tags: vec!["edited".into()], ..Edit::default() };
                let _: EntryIdentity = client.send_json(patch.clone(), &path, &edit).await?;
            }
            5 => {
                let overlay = MarkUpdate { pinned: Some(true), ..MarkUpdate::default() };
                let path = format!("{path}/overlay");
                let _: EntryIdentity = client.send_json(put.clone(), &path, &overlay).await?;
            }
            6 => {
                let history: History = client.get(&format!("{path}/history")).await?;
                assert_eq!(history.records.len(), 1);
                assert_eq!(history.records[0].counter, 2, "written and edited");
            }
            _ => {
                let status: NodeStatus = client.get("/v1/status").await?;
                assert!(status.entries as usize > own.len());
                let query = own.last().map(|(_, title)| title.clone()).unwrap_or_default();
                let search = Search { query, all: true, ..Search::default() };
                let answer: SearchResponse =
                    client.send_json(post.clone(), "/v1/search", &search).await?;
                assert!(!answer.hits.is_empty(), "written entries are found");
            }
        }
    }
    for (path, title) in own {
        let read: Entry = client.get(&path).await?;
        assert_eq!((read.title, read.tags, read.pinned), (title, vec!["edited".into()], true));
    }
    Ok(())
}

const CLIENTS: usize = 64;
const REQUESTS: usize = 200;
const VERBS: usize = 8;

fn new(title: String) -> NewEntry {
    NewEntry {
        title,
        content: "A short lesson.".into(),
        evidence: vec!["run:1".into()],
        ..NewEntry::default()
    }
}

fn task(number: usize) -> NewTask {
    let (agent, goal) = (format!("agent {number}"), "try the shared entry".to_owned());
    NewTask { agent, goal, thread: None, parent: None, ..NewTask::default() }
}

#[test]
fn sixty_four_clients_at_once_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let client = Client::new(&home.path().join("klnode.sock"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let shared: EntryIdentity =
            client.send_json(Method::POST, "/v1/entries", &new("shared".into())).await.unwrap();
        let path = format!("/v1/entries/{}", shared.id);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| tokio::spawn(mixed(client.clone(), number, path.clone())))
            .collect();
        for client in clients {
            client.await.expect("no client panics").expect("every request is answered");
        }
        let status: NodeStatus = client.get("/v1/status").await.unwrap();
        assert_eq!(status.entries as usize, 1 + CLIENTS * REQUESTS / VERBS);
        let read: Entry = client.get(&path).await.unwrap();
        let expected = (CLIENTS * REQUESTS / VERBS) as f64;
        assert!((read.observations - expected).abs() < 1e-6, "{}", read.observations);
        assert_eq!(read.status, "verified");
    });
}

#[test]
fn the_history_of_an_entry_shows_dates_and_callers() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let content = format!("First line.\n{}", "x".repeat(200));
    let add = ["add", "--title", "Told", "--content", &content, "--evidence", "run:1"];
    let (_, added, _) = answer(home.path(), &add);
    let code = added.split_whitespace().next().unwrap();
    answer(home.path(), &["edit", code, "--tag", "go"]);
    answer(home.path(), &["edit", code, "--untag", "go"]);
    answer(home.path(), &["feedback", code, "--success"]);
    let (status, text, told) = answer(home.path(), &["show", "--history", code]);
    assert_eq!(status, 0, "{told}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with(&format!("{code}  (")), "{text}");
    assert!(lines[1].contains("  this node stated, for user "), "{text}");
    assert!(lines[1].ends_with("  (1.3)"), "{text}");
    assert!(lines[1].starts_with("20") && &lines[1][10..11] == " ", "{text}");
    for part in
        ["    title        Told\n", "    content      First line. ...\n", "  - tags         go\n"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(text.contains("  + evidence     run:1\n"), "{text}");
    assert!(text.trim_end().ends_with("successes 1"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&answer(home.path(), &["show", "--history", code, "--json"]).1)
            .unwrap();
    assert_eq!(json["records"][1]["facet"], "tally");
}

#[test]
fn a_watcher_prints_new_records_and_ends_at_its_limit() {
    let home = tempfile::tempdir().unwrap();
    let (node, _) = start(home.path());
    let add = ["add", "--title", "Seen", "--content", "c", "--evidence", "run:1"];
    let code = answer(home.path(), &add).1.split_whitespace().next().unwrap().to_owned();
    let watch = |arguments: &[&str]| {
        let mut command = klnode(home.path());
        command
            .args(["list", "--follow"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = Running(command.spawn().unwrap());
        let lines = BufReader::new(child.0.stdout.take().expect("piped")).lines();
        (child, lines.map(|line| line.expect("text")))
    };
    let (mut text, mut lines) = watch(&["--since", "0"]);
    let first = lines.next().expect("a line");
    assert!(
        first.starts_with("       1  20") && first.contains(&format!("  entry        {code}  by "))
    );
    let (mut json, mut objects) = watch(&["--since", "0", "--json"]);
    objects.next().expect("the earlier records");
    answer(home.path(), &["feedback", &code, "--success"]);
    // Changed values are listed below their event.
    let mut events = lines.by_ref().filter(|line| !line.starts_with("          "));
    assert!(events.next().expect("a line").contains("  observation  "));
    let object: serde_json::Value = serde_json::from_str(&objects.next().unwrap()).unwrap();
    assert_eq!(object["seq"], 2);
    assert_eq!(object["code"], code.as_str());

    signal(&text.0, "INT");
    assert!(text.0.wait().unwrap().success(), "enough was seen");
    // A stopping node closes its streams and does not wait for the readers.
    node.stop();
    assert_eq!(json.0.wait().unwrap().code(), Some(3));
    let mut told = String::new();
    json.0.stderr.take().expect("piped").read_to_string(&mut told).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let stopped = "The event stream ended because the node stopped.";
    assert_eq!(told["error"]["message"], stopped, "{told}");
}

#[test]
fn the_json_log_is_parsable_and_contains_no_request_text() {
    let folder = tempfile::tempdir().unwrap();
    let (home, log) = (folder.path().join("home"), folder.path().join("log"));
    let mut command = klnode(&home);
    command.args(["--set", "log.format=json", "--log", "klnode=debug"]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
    let node = started(command).0;
    answer(&home, &["add", "--title", "Sesame", "--content", "c", "--evidence", "run:1"]);
    answer(&home, &["show", "SESAME22"]);
    node.stop();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.to_lowercase().contains("sesame"), "{text}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let answered: Vec<_> =
        lines.iter().filter(|line| line["message"] == "A request was answered").collect();
    assert_eq!(answered.len(), 2, "{text}");
    assert_eq!(answered[0]["method"], "POST");
    assert_eq!(answered[0]["route"], "/v1/entries");
    assert_eq!(answered[0]["status"], 200);
    assert!(answered[0]["ms"].is_f64() && answered[0]["uid"].is_u64(), "{text}");
    assert!(answered[0]["pid"].is_u64());
    assert_eq!(answered[1]["route"], "/v1/entries/{entry}");
    assert_eq!(answered[1]["status"], 404);
}

#[test]
fn a_node_on_tcp_prints_its_address_and_protects_its_token() {
    let home = tempfile::tempdir().unwrap();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut command = klnode(home.path());
        command.args(["--set", "api.tcp=127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let (_node, banner) = started(command);
        let line = banner.iter().find_map(|line| line.strip_prefix("  tcp    http://"));
        let address: SocketAddr = line.expect("named").parse().unwrap();
        let path = home.path().join("token");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let token = std::fs::read_to_string(&path).unwrap();
        assert_eq!(token.trim().len(), 64);
        let header = format!("Bearer {}", token.trim());
        let asked = |headers: &[(&str, &str)]| {
            test_server::ask(
                TcpStream::connect(address).unwrap(),
                "GET",
                "/v1/status",
                headers,
                b"",
            )
        };
        assert_eq!(asked(&[("Authorization", &header)]).status, 200);
        let lower = header.replace("Bearer", "bearer");
        assert_eq!(asked(&[("authorization", &lower)]).status, 200);
        assert_eq!(asked(&[]).status, 401);
        tokens.push(token);
    }
    assert_eq!(tokens[0], tokens[1], "the token is generated once");
    std::fs::write(home.path().join("token"), "guess me").unwrap();
    let output = klnode(home.path()).args(["--set", "api.tcp=127.0.0.1:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("it is not 64 hex digits"), "{}", told(&output));
}

#[test]
fn a_stale_socket_of_a_killed_node_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (mut node, _) = start(home.path());
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    assert!(home.path().join("klnode.sock").exists());
    let (_node, _) = start(home.path());
    assert_eq!(answer(home.path(), &["status"]).0, 0);
}

/// The code of the new entry, or the id of the new task.
fn made(home: &Path, arguments: &[&str]) -> String {
    let (code, said, told) = answer(home, arguments);
    assert_eq!(code, 0, "{arguments:?}: {told}");
    said.split_whitespace().next().expect("it is named").to_owned()
}

#[test]
fn lenient_input_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let file = home.join("marked.json");
    let entry = r#"{"title": "Marked", "content": "c", "evidence": ["run:1"]}"#;
    std::fs::write(&file, format!("\u{feff}{entry}")).unwrap();
    let marked = made(home, &["add", file.to_str().unwrap()]);
    let texts = ["add", "--title", "-Wall finds it", "--content", "- one\n- two"];
    let dashed = made(home, &[&texts[..], &["--evidence", "run:1"]].concat());
    made(home, &["feedback", &dashed, "--failure"]);
    made(home, &["edit", &dashed, "--summary", "- in short"]);
    made(home, &["mark", &dashed, "--note", "- see the incident", "--json"]);
    let shown = answer(home, &["show", &dashed]).1;
    let content = "| - one\n| - two\n";
    for part in ["-Wall finds it\n", content, " - in short\n", " - see the incident\n"] {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert!(shown.contains("candidate: no success observed yet\n"), "{shown}");
    let task = made(home, &["task", "begin", "--agent", "a", "--goal", "--fix the build"]);
    let used = format!("{dashed}, {marked} ,");
    let finished = answer(home, &["task", "finish", &task, "--success", "--used", &used]);
    assert!(finished.1.contains(&dashed) && finished.1.contains(&marked), "{finished:?}");
    let unmap = answer(home, &["workspace", "unmap", "--help"]).1;
    assert!(unmap.contains("Also withdraw") && !unmap.contains("Also send"), "{unmap}");
    let none = answer(home, &["search", "Wall finds it", "--all", "--budget", "1"]);
    assert!(
        none.0 == 1 && none.1.contains(" found, but none fits the budget; --budget N, now 1.\n")
    );
}

#[test]
fn invalid_input_is_refused_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let add = ["add", "--title", "t", "--content", "c", "--evidence", "run:1"];
    let code = made(home, &add);
    let task = made(home, &["task", "begin", "--agent", "a", "--goal", "g"]);
    let finish = ["task", "finish", &task, "--success"];
    let (tagged, number) = ([&add[..], &["--tag", "/a//b/"]].concat(), "it must be a number");
    let (good, cost) = (["--quality", "nan"], ["--cost", "inf"]);
    let (good, cost) = ([&finish[..], &good].concat(), [&finish[..], &cost].concat());
    let promoted = format!("Entry {code} is already in `main` and in no thread.");
    let taken = ["peer", "filter", "nobody", "--from-peer", "--status", "active"];
    let anchored = [&add[..], &["--anchor", ""]].concat();
    let cases: [(&[&str], &str); 13] = [
        (&taken, "cannot be used with"),
        (&["search", "anything", "--budget", "0"], "0 is not in 1.."),
        (&["archive", &code, "--workspace", "main"], "cannot be used with"),
        (&["archive", "--undo", &code, "--workspace", "main"], "cannot be used with"),
        (&good, number),
        (&cost, number),
        (&["peer", "filter", "nobody", "--min-confidence", "NaN"], number),
        (&tagged, "has an empty level; write it as a/b"),
        (&["edit", &code, "--tag", "/"], "has an empty level; leave it out"),
        (&anchored, "An anchor or a predicate is empty; leave it out."),
        (&["edit", &code, "--depends-on", " "], "An anchor or a predicate is empty; leave it out."),
        (&["workspace", "new", "--", "-x"], "the first a letter or digit"),
        (&["add", "--from", &code], &promoted),
    ];
    for (arguments, part) in cases {
        let (code, _, told) = answer(home, arguments);
        assert_eq!(code, 2, "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
    let short = answer(home, &["show", "L-7"]).2;
    assert!(short.contains("The first 2 digits of a code are enough"), "{short}");
}

#[test]
fn a_setting_equal_to_its_default_is_unchanged_and_an_empty_file_resets() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let rows: serde_json::Value =
        serde_json::from_str(&answer(home, &["config", "trust.hop_max", "--json"]).1).unwrap();
    let set = format!("trust.hop_max={}", rows[0]["default"].as_str().unwrap());
    let changed = answer(home, &["--set", &set, "config", "--changed"]).1;
    assert_eq!(changed, "Every setting has its default.\n");
    let doctor = answer(home, &["--set", &set, "check", "home", "store"]).1;
    assert!(doctor.contains("Every setting has its default."), "{doctor}");
    made(home, &["workspace", "new", "team"]);
    let file = home.join("weights.toml");
    let weights = "[weights]\nsemantic = 0.48\nthompson = 0.15\n";
    for (text, from) in [(weights, "by the workspace's settings"), ("", "by the configuration")] {
        std::fs::write(&file, text).unwrap();
        made(home, &["workspace", "settings", "team", file.to_str().unwrap()]);
        let shown = answer(home, &["workspace", "show", "team"]).1;
        assert!(shown.contains(from), "{shown}");
    }
}

#[test]
fn a_restored_node_without_the_persons_key_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let [home, other] = ["home", "other"].map(|name| folder.path().join(name));
    let file = folder.path().join("backup");
    let file = file.to_str().unwrap();
    let (_node, _) = start(&home);
    made(&home, &["backup", "create", file]);
    let restore = || klnode(&other).args(["backup", "restore", file, "--yes"]).output().unwrap();
    let said = String::from_utf8(restore().stdout).unwrap();
    assert!(said.contains("the node is unprotected"), "{said}");
    std::fs::write(other.join("person.key"), "kept elsewhere").unwrap();
    let said = String::from_utf8(restore().stdout).unwrap();
    assert!(said.contains("restored from") && !said.contains("unprotected"), "{said}");
}

#[test]
fn the_shell_loop_passes_nothing_on_without_hits() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/agent_loop.sh");
    let mut shell = std::process::Command::new("sh");
    shell.args([script, "cut a release", "--", "sh", "-c", "echo \"told: [$KLNODE_KNOWN]\""]);
    shell.env("KLNODE", format!("{PROGRAM} --home {}", home.path().display()));
    let output = shell.output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("told: []\n"), "{text}{}", told(&output));
    assert!(!text.contains("known before"), "{text}");
}
