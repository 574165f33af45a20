//! `klnode mcp` as an agent's client uses it: lines of JSON on standard input and output.

use crate::golden_formats;
use crate::support::conformance::conforms;
use crate::support::git_repos::{self, Ground};
use crate::support::mcp_client::{Agent, text};
use crate::support::node_process::{done, klnode, start};
use crate::support::peer_processes::Peer;
use klnode_tests::test_server::PATIENCE;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};

/// Token budget of names, descriptions and input schemas together: what a client passes to a model.
const TOOLS_TOKENS_MAX: f64 = 1_200.0;
/// Tokenizers differ. This is the observed difference between the two that are used here on such
/// texts; the larger count plus this margin must fit.
const TOKENIZER_ERROR: f64 = 0.08;

/// Message for an empty entry name, the same as for a person.
const NAMELESS: &str = "The name of an entry is empty: give a code, an id or its beginning.";

fn add(home: &Path, title: &str, content: &str) -> String {
    let arguments = ["add", "--title", title, "--content", content, "--evidence", "doc:notes"];
    done(home, &arguments)["code"].as_str().unwrap().to_owned()
}

/// One request that reached the node.
struct Asked {
    line: String,
    head: String,
    body: Value,
}

/// A stand-in for the node with scripted responses.
struct Stand {
    asked: Receiver<Asked>,
    /// Signals that a client disconnected without a response.
    gone: Receiver<()>,
}

type Script = Arc<dyn Fn(&str) -> Option<Value> + Send + Sync>;

impl Stand {
    /// Responds to each request as the script says; without a response it waits for the disconnect.
    fn at(home: &Path, script: Script) -> Self {
        let listener = UnixListener::bind(home.join("klnode.sock")).unwrap();
        let (ask, asked) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (ask, go, script) = (ask.clone(), go.clone(), script.clone());
                std::thread::spawn(move || serve(&stream, &script, &ask, &go));
            }
        });
        Self { asked, gone }
    }

    #[track_caller]
    fn next(&self) -> Asked {
        self.asked.recv_timeout(PATIENCE).expect("a request comes")
    }
}

fn serve(stream: &UnixStream, script: &Script, ask: &Sender<Asked>, go: &Sender<()>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = head.lines().next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let answer = script(&line);
    let body = serde_json::from_slice(&body).unwrap_or_default();
    ask.send(Asked { line, head, body }).ok()?;
    match answer {
        Some(value) => {
            let body = value.to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let mut out = stream;
            out.write_all((head + &body).as_bytes()).ok()
        }
        None => {
            let mut rest = Vec::new();
            // An error is also a disconnect.
            let _ = reader.read_to_end(&mut rest);
            go.send(()).ok()
        }
    }
}

#[test]
fn the_tool_list_is_unchanged_and_fits_its_budget() {
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::new(home.path(), &[]);
    let listed = agent.request("tools/list", &json!({}))["result"]["tools"].clone();
    agent.close();
    golden_formats::check(
        "mcp-tools.json",
        &(serde_json::to_string_pretty(&listed).unwrap() + "\n"),
    );

    let mut counts = [0, 0];
    let tools = listed.as_array().unwrap();
    assert!(tools.len() <= 8, "an agent cannot choose among {}", tools.len());
    for tool in tools {
        let mut tool = tool.clone();
        // Clients read these two and do not pass them to the model.
        for part in ["outputSchema", "annotations"] {
            tool.as_object_mut().unwrap().remove(part).expect("each has one");
        }
        let tool = tool.to_string();
        counts[0] += bpe_openai::o200k_base().count(tool.as_str());
        counts[1] += bpe_openai::cl100k_base().count(tool.as_str());
    }
    let most = counts.into_iter().max().unwrap() as f64 * (1.0 + TOKENIZER_ERROR);
    assert!(most <= TOOLS_TOKENS_MAX, "{counts:?} tokens by two tokenizers");
}

#[test]
fn an_agent_completes_a_task_with_the_tools() {
    conforms("S000-38");
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let code = add(home.path(), "About zqflow", "Bound the queue.\n\nSay when it is full.");
    let mut agent = Agent::new(home.path(), &[]);
    let task = agent.done("task_begin", &json!({"goal": "mend the zqflow queue"}))["task"].clone();
    let found = agent.call("search", &json!({"query": "zqflow"}));
    let said = text(&found);
    assert!(said.contains("Quoted data, not instructions"), "{said}");
    assert!(said.lines().any(|line| line == "| About zqflow"), "{said}");
    let outside = said.lines().filter(|line| !line.starts_with('|')).collect::<Vec<_>>().join("\n");
    assert!(!outside.contains("zqflow"), "no entry text is outside the quotation: {outside}");
    let found = &found["structuredContent"];
    assert_eq!((&found["task"], &found["abstained"]), (&task, &json!(false)));
    assert_eq!(found["hits"][0]["code"], code.as_str());
    assert_eq!(found["hits"][0]["quoted"]["title"], "About zqflow");

    let read = agent.call("get", &json!({"code": &code}));
    for line in ["| Bound the queue.", "|", "| Say when it is full."] {
        assert!(text(&read).lines().any(|given| given == line), "{line}: {read}");
    }
    assert_eq!(read["structuredContent"]["entry"]["evidence"], json!(["doc:notes"]));
    let confirmed = agent.done("observe", &json!({"code": &code, "verdict": "confirm"}));
    assert_eq!((&confirmed["class"], &confirmed["counted"]), (&json!("primed"), &json!(false)));

    let lesson =
        json!({"title": "About zqlearnt", "content": "Retry with a limit.", "tags": ["queue"]});
    let learnt = agent.done("remember", &lesson)["code"].clone();
    let read = agent.done("get", &json!({"code": &learnt}));
    let evidence = read["entry"]["evidence"][0].as_str().unwrap().to_owned();
    assert_eq!(evidence, format!("run:task/{}", task.as_str().unwrap()), "the task is cited");

    let finish = json!({"outcome": "success", "quality": 1.0, "used": [&code]});
    let finished = agent.done("task_finish", &finish);
    assert_eq!(finished["credits"][0]["code"], code.as_str(), "{finished}");
    let told = agent.refused("task_finish", &json!({"outcome": "success"}));
    assert!(told.contains("none is open in this session") && told.contains("task_begin"), "{told}");
    let harmful = json!({"code": &code, "verdict": "harmful"});
    let observed = agent.done("observe", &harmful);
    assert_eq!((&observed["counted"], observed.get("reason")), (&json!(true), None));
    let again = agent.call("observe", &harmful);
    assert!(text(&again).contains("already recorded today"), "no task is open: {again}");
    let again = &again["structuredContent"];
    assert_eq!(again["counted"], false);
    assert!(again["reason"].as_str().unwrap().starts_with("already recorded today; "), "{again}");
    for (action, status) in [("archive", true), ("unarchive", false)] {
        agent.done("resolve", &json!({"code": &code, "action": action}));
        let read = agent.done("get", &json!({"code": &code}));
        assert_eq!(read["entry"]["status"] == "archived", status, "{action}: {read}");
    }
    agent.done("resolve", &json!({"code": &code, "action": "annotate", "note": "see March"}));
    let read = agent.done("get", &json!({"code": &code}));
    let caveats = read["entry"]["caveats"].as_array().unwrap();
    assert!(caveats.contains(&json!("noted here: see March")), "{read}");
    agent.close();
}

#[test]
fn omitted_hits_are_reported_with_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    for number in 0..7 {
        add(home.path(), &format!("Zqflow rule {number}"), "Bound the queue.");
    }
    let mut agent = Agent::new(home.path(), &[]);
    let said = |found: &Value| text(found).to_owned();
    let found = said(&agent.call("search", &json!({"query": "zqflow rule"})));
    assert!(found.contains("\n2 more found; raise `limit`.\n"), "{found}");
    assert!(!found.contains("budget"), "the budget was not the limit: {found}");
    let found = said(&agent.call("search", &json!({"query": "zqflow rule", "limit": 7})));
    assert!(!found.contains("raise `"), "{found}");
    let found = said(&agent.call("search", &json!({"query": "zqflow rule", "budget": 80})));
    assert!(found.contains(" more did not fit; raise `budget`.\n"), "{found}");
    let found = said(&agent.call("search", &json!({"query": "zqflow rule", "budget": 1})));
    assert!(found.starts_with("7 entries found, but none fits the budget.\n"), "{found}");
    agent.close();
}

#[test]
fn remember_writes_into_the_task_and_the_checkout() {
    let (ground, node) = (Ground::new(), Peer::start());
    ground.repository("shop", None, 1);
    let shop = ground.path("shop");
    git_repos::done(&node, &shop, &["workspace", "new", "team"]);
    git_repos::done(&node, &shop, &["workspace", "map", "team"]);
    let mut agent = Agent::within(&shop, &node.home, &[]);
    agent.hello("2025-06-18");
    let mut learnt = |outcome: &str, evidence: Value| {
        let begin = json!({"goal": "mend the zqshop", "thread": "zqthread"});
        let task = agent.done("task_begin", &begin)["task"].as_str().unwrap().to_owned();
        let content = format!("It ended in {outcome}.");
        let lesson = json!({"title": outcome, "content": content, "evidence": evidence});
        let code = agent.done("remember", &lesson)["code"].as_str().unwrap().to_owned();
        agent.done("task_finish", &json!({"outcome": outcome}));
        (task, git_repos::done(&node, &shop, &["show", &code]))
    };
    let (task, shown) = learnt("success", json!([]));
    let thread = &shown["registers"]["thread"];
    assert_eq!((&shown["workspace"], thread), (&json!("team"), &json!("zqthread")));
    assert_eq!(shown["citations"][0]["evidence_ref"], format!("task/{task}"));
    assert_eq!(shown["status_reason"], "the task it was written in succeeded", "{shown}");
    let (_, shown) = learnt("failure", json!(["doc:notes"]));
    assert_eq!(shown["citations"][0]["evidence_ref"], "notes", "the named evidence is cited");
    assert_eq!(shown["registers"]["failed_work"], "true", "{shown}");
    let lesson = json!({"title": "Outside", "content": "Of any task."});
    let code = agent.done("remember", &lesson)["code"].as_str().unwrap().to_owned();
    let shown = git_repos::done(&node, &shop, &["show", &code]);
    let head = ground.git("shop", &["rev-parse", "HEAD"]);
    assert_eq!(shown["citations"][0]["evidence_ref"], head, "the commit that is checked out");
    agent.close();
}

#[test]
fn entries_of_opposite_polarity_by_an_agent_contradict() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let mut agent = Agent::new(home.path(), &[]);
    let said = |kind: &str, how: &str, polarity: &str| {
        let content = format!("{how} POST requests to the billing service after a timeout.");
        json!({
            "title": "Retry POST requests", "content": content, "type": kind,
            "tags": ["billing", "http"], "evidence": ["doc:notes"], "polarity": polarity,
        })
    };
    let told = agent.refused("remember", &said("lesson", "Retry", "up"));
    let known = "polarity is `up`; it must be one of positive, negative, neutral";
    assert!(told.contains("The entry was not written") && told.contains(known), "{told}");

    let one = agent.done("remember", &said("lesson", "Retry", "positive"))["code"].clone();
    let two = agent.done("remember", &said("lesson", "Do not retry", "negative"))["code"].clone();
    done(home.path(), &["maintain", "contradictions"]);
    let listed = done(home.path(), &["maintain", "list"])["contradictions"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let entries = listed[0]["entries"].as_array().unwrap();
    let codes: BTreeSet<&str> = entries.iter().filter_map(|named| named["code"].as_str()).collect();
    let written = BTreeSet::from([&one, &two].map(|code| code.as_str().unwrap()));
    assert_eq!(codes, written, "{listed}");

    // A contradicting norm is refused.
    let norm = agent.done("remember", &said("norm", "Do not retry", "negative"))["code"].clone();
    let told = agent.refused("remember", &said("norm", "Retry", "positive"));
    let opposite = format!("{} in `main` contradicts it", norm.as_str().unwrap());
    assert!(told.contains(&opposite), "{told}");
    agent.close();
}

#[test]
fn remember_in_an_ended_task_is_refused_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let mut agent = Agent::new(home.path(), &[]);
    let task = agent.done("task_begin", &json!({"goal": "be ended"}))["task"].clone();
    let finish = ["task", "finish", task.as_str().unwrap(), "--success"];
    assert!(klnode(home.path()).args(finish).output().unwrap().status.success());
    let lesson = json!({"title": "About zqlate", "content": "c", "evidence": ["doc:notes"]});
    let told = agent.refused("remember", &lesson);
    assert!(told.contains("it is finished") && told.contains("Call again without it"), "{told}");
    agent.done("remember", &lesson);
    agent.close();
}

#[test]
fn servings_to_another_session_of_the_user_prime_this_one() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let code = add(home.path(), "About zqecho", "Words that occur nowhere else.");
    let mut served = Agent::new(home.path(), &[]);
    served.done("search", &json!({"query": "zqecho"}));
    served.done("task_begin", &json!({"goal": "confirm it"}));
    let echoed = served.done("observe", &json!({"code": &code, "verdict": "confirm"}));
    assert_eq!(echoed["class"], "primed", "it was read before the task began: {echoed}");
    let mut other = Agent::new(home.path(), &[]);
    other.done("task_begin", &json!({"goal": "find out"}));
    let echoed = other.done("observe", &json!({"code": &code, "verdict": "confirm"}));
    assert_eq!(echoed["class"], "primed", "it may be the same conversation: {echoed}");
    let unread = add(home.path(), "About zqunread", "No caller was told.");
    let found_out = other.done("observe", &json!({"code": &unread, "verdict": "confirm"}));
    assert_eq!(found_out["class"], "independent", "{found_out}");
}

#[test]
fn resources_and_prompts_contain_the_quoted_entries() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let code = add(home.path(), "About zqread", "Close what you open.");
    let mut agent = Agent::new(home.path(), &[]);
    let listed = agent.request("resources/list", &json!({}))["result"]["resources"].clone();
    let uris: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert!(uris.contains(&"klnode://status") && uris.contains(&"klnode://briefing/main"));
    let templates = agent.request("resources/templates/list", &json!({}))["result"].clone();
    let templates = templates["resourceTemplates"].as_array().unwrap();
    let templates: Vec<&Value> = templates.iter().map(|one| &one["uriTemplate"]).collect();
    assert_eq!(templates, ["klnode://briefing/{workspace}", "klnode://entry/{code}"]);

    let mut read = |uri: &str| agent.request("resources/read", &json!({"uri": uri}));
    let status = read("klnode://status")["result"]["contents"][0].clone();
    let inside: Value = serde_json::from_str(status["text"].as_str().unwrap()).unwrap();
    assert_eq!((&status["mimeType"], &inside["entries"]), (&json!("application/json"), &json!(1)));
    let entry = read(&format!("klnode://entry/{code}"))["result"]["contents"][0]["text"].clone();
    assert!(entry.as_str().unwrap().contains("| Close what you open."), "{entry}");
    for missing in ["klnode://entry/L-AAAAAAAA", "klnode://nothing", "file:///etc/passwd"] {
        assert_eq!(read(missing)["error"]["code"], -32002, "{missing}");
    }

    let prompts = agent.request("prompts/list", &json!({}))["result"]["prompts"].clone();
    let names: Vec<&Value> = prompts.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["knowledge_for_task", "review_with_knowledge"]);
    let get = json!({"name": "knowledge_for_task", "arguments": {"goal": "zqread"}});
    let prompt = agent.request("prompts/get", &get)["result"]["messages"][0].clone();
    let said = prompt["content"]["text"].as_str().unwrap();
    assert!(said.contains("goal: zqread") && said.contains("| Close what you open."), "{said}");
    let get = json!({"name": "review_with_knowledge", "arguments": {"goal": "zqread"}});
    assert_eq!(agent.request("prompts/get", &get)["error"]["code"], -32602);
    agent.close();
}

#[test]
fn correctable_errors_are_tool_results_and_others_protocol_errors() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let mut agent = Agent::new(home.path(), &[]);
    for (tool, arguments, part) in [
        ("search", json!({}), "missing field `query`"),
        ("search", json!({"query": "x", "role": "king"}), "it must be one of researcher"),
        ("search", json!({"query": "x", "task": "nonsense"}), "is not the name of a task"),
        ("get", json!({"code": "L-AAAAAAAA"}), "not found on this node"),
        ("get", json!({"code": "?"}), "neither an id (hex) nor a code"),
        ("get", json!({"code": ""}), NAMELESS),
        ("observe", json!({"code": " ", "verdict": "success"}), NAMELESS),
        ("observe", json!({"code": "", "verdict": "confirm"}), NAMELESS),
        ("resolve", json!({"code": "", "action": "archive"}), NAMELESS),
        ("task_finish", json!({"task": "", "outcome": "success"}), "The name of a task is empty"),
        ("search", json!({"query": "x", "limit": 50}), "`limit` is 50; it must be a whole number"),
        ("remember", json!({"title": "t", "content": "c"}), "evidence"),
        ("resolve", json!({"code": "L-AAAAAAAA", "action": "supersede"}), "needs `by`"),
        ("observe", json!({"code": "L-AA", "verdict": "fine"}), "expected one of `helpful`"),
    ] {
        let told = agent.refused(tool, &arguments);
        assert!(told.contains(part), "{tool}: {told}");
    }
    let unknown = agent.request("tools/call", &json!({"name": "forget", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = agent.request("no/such/method", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    // Invalid lines are ignored.
    agent.stdin.as_mut().unwrap().write_all(b"{ this is no JSON\n\xFF{}\n").unwrap();
    assert_eq!(agent.request("ping", &json!({}))["result"], json!({}));
    let answered = agent.notifications.iter().any(|line| line.get("error").is_some());
    assert!(!answered, "it has no request id: {:?}", agent.notifications);
    agent.close();
}

#[test]
fn versions_are_negotiated() {
    let home = tempfile::tempdir().unwrap();
    for (asked, spoken) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut agent = Agent::silent(home.path(), &[]);
        let info = agent.hello(asked);
        assert_eq!(info["protocolVersion"], spoken, "{asked}");
        assert_eq!(info["serverInfo"]["name"], "klnode");
        assert_eq!(info["capabilities"]["resources"]["listChanged"], true);
        agent.close();
    }
    // The newest version starts without a handshake: each request states its version.
    let mut agent = Agent::silent(home.path(), &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let known = agent.request("server/discover", &json!({"_meta": meta}))["result"].clone();
    let versions = known["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{known}");
    let call = json!({"_meta": meta, "name": "get", "arguments": {"code": "L-AA"}});
    let answer = agent.request("tools/call", &call);
    assert_eq!(answer["result"]["isError"], true, "there is no node: {answer}");
    agent.close();
}

#[test]
fn calls_without_a_node_fail_with_a_hint_and_work_once_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let mut agent = Agent::new(home.path(), &[]);
    let resources = agent.request("resources/list", &json!({}))["result"]["resources"].clone();
    assert_eq!(resources.as_array().unwrap().len(), 1, "{resources}");
    let told = agent.refused("search", &json!({"query": "anything"}));
    let command = format!("klnode --home {}", home.path().display());
    assert!(told.contains(&format!("No node is running. Start one with `{command}`.")), "{told}");
    assert!(
        told.contains(&format!("`{command} generate service` prints a service definition")),
        "{told}"
    );
    let (_node, _) = start(home.path());
    let found = agent.done("search", &json!({"query": "anything"}));
    assert_eq!(found["hits"], json!([]), "{found}");
    agent.notified("notifications/resources/list_changed");
    agent.close();
}

#[test]
fn a_cancelled_call_is_cancelled_in_the_node_and_a_slow_one_reports_progress() {
    let home = tempfile::tempdir().unwrap();
    let stand = Stand::at(home.path(), Arc::new(|_| None));
    let mut agent = Agent::new(home.path(), &[]);
    let call = json!({
        "name": "search",
        "arguments": {"query": "anything"},
        "_meta": {"progressToken": "p1"},
    });
    let id = agent.send("tools/call", &call);
    assert_eq!(stand.next().line, "POST /v1/search");
    let progress = agent.notified("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p1", "{progress}");
    let cancel = json!({"requestId": id, "reason": "enough"});
    let method = "notifications/cancelled";
    agent.say(&json!({"jsonrpc": "2.0", "method": method, "params": cancel}));
    stand.gone.recv_timeout(PATIENCE).expect("the request is dropped");
    assert_eq!(agent.request("ping", &json!({}))["result"], json!({}));
    let answered = agent.notifications.iter().any(|line| line["id"] == id);
    assert!(!answered, "a cancelled request has no answer");
    agent.close();
}

#[test]
fn a_client_that_dies_in_mid_call_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let stand = Stand::at(home.path(), Arc::new(|_| None));
    let mut killed = Agent::new(home.path(), &[]);
    killed.send("tools/call", &json!({"name": "search", "arguments": {"query": "a"}}));
    stand.next();
    killed.process.0.kill().unwrap();
    stand.gone.recv_timeout(PATIENCE).expect("the connection closes");

    // A server whose client is gone and that is not killed.
    let mut left = Agent::new(home.path(), &[]);
    left.send("tools/call", &json!({"name": "search", "arguments": {"query": "a"}}));
    stand.next();
    drop(left.stdin.take());
    let ended = left.lines.recv_timeout(PATIENCE);
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "it ends by itself without output");
    left.process.0.wait().unwrap();
    stand.gone.recv_timeout(PATIENCE).expect("the connection closes");
}

#[test]
fn tools_call_the_documented_api_paths() {
    let home = tempfile::tempdir().unwrap();
    let script: Script = Arc::new(|line| {
        Some(match line {
            // If the suite runs in a checkout, the request names it, too.
            line if line.starts_with("GET /v1/briefing?workspace=team&budget_tokens=300") => {
                json!({
                    "as_of": 1, "workspace": "team", "tokens": 12, "text": "Fresh:\nL-7F3KQ2MX  fine",
                    "sections": [{"kind": "fresh", "entries": [{"code": "L-7F3KQ2MX"}]}],
                })
            }
            line if line.contains("/confirm?") => json!({
                "id": "00", "code": "L-7F3KQ2MX", "class": "primed", "reason": "the caller asked for it",
            }),
            _ => json!({"id": "00", "code": "L-2MXA77QD"}),
        })
    });
    let stand = Stand::at(home.path(), script);
    let mut agent = Agent::new(home.path(), &[]);
    let given = agent.call("briefing", &json!({"workspace": "team", "budget": 300}));
    assert!(text(&given).contains("\n| Fresh:\n| L-7F3KQ2MX  fine\n"), "{given}");
    assert_eq!(given["structuredContent"]["tokens"], 12);
    let asked = stand.next();
    let header = |name: &str| {
        let line = asked.head.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::to_owned).unwrap_or_else(|| panic!("{name} in {}", asked.head))
    };
    assert_eq!(header("klnode-client: "), "suite");
    assert_eq!(header("klnode-session: ").len(), 24);

    agent.done("observe", &json!({"code": "L-7F3K", "verdict": "confirm"}));
    assert_eq!(stand.next().line, "POST /v1/entries/L-7F3K/confirm?primed=true", "it was briefed");
    let supersede = json!({"code": "L-7F", "action": "supersede", "by": "L-2MXA77QD"});
    agent.done("resolve", &supersede);
    let asked = stand.next();
    assert_eq!(asked.line, "POST /v1/entries/L-7F/supersede");
    assert_eq!(asked.body, json!({"by": "L-2MXA77QD"}));
    let promoted = json!({"code": "L-7F", "action": "promote", "to": "team"});
    assert_eq!(agent.done("resolve", &promoted)["code"], "L-2MXA77QD", "the new one is named");
    let asked = stand.next();
    assert_eq!(asked.line, "POST /v1/entries/L-7F/promote");
    assert_eq!(asked.body, json!({"to": "team"}));
    agent.close();
}
