//! Many sessions of `klnode mcp`, with a node that it starts, and over HTTP: they leave no
//! resources behind.
//!
//! `KLNODE_MCP_SESSIONS` sets the number of sessions.

use crate::support::mcp_client::Agent;
use crate::support::node_process::{Running, eventually, klnode, resident_bytes, start, told};
use klnode_tests::test_server::{self, Answer};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

/// Number of concurrent sessions.
const AT_ONCE: usize = 20;
/// Allowed memory growth of the node after all sessions: caches and allocator slack, not sessions.
const GROWTH_BYTES_MAX: u64 = 48 * 1024 * 1024;

fn sessions() -> usize {
    let set = std::env::var("KLNODE_MCP_SESSIONS").ok();
    set.map_or(500, |set| set.parse().expect("KLNODE_MCP_SESSIONS is a number"))
}

fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Processes that any of its threads has started.
fn children(process: u32) -> String {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children"));
    threads.filter_map(|thread| of(thread.ok()?).ok()).collect()
}

/// Some concurrent sessions, each with a task that is left open.
fn round(home: &Path, count: usize) {
    let mut agents: Vec<Agent> = (0..count).map(|_| Agent::new(home, &[])).collect();
    for agent in &mut agents {
        agent.done("task_begin", &json!({"goal": "come and go"}));
        agent.done("search", &json!({"query": "anything at all"}));
    }
    for agent in agents {
        agent.close();
    }
}

#[test]
fn sessions_that_come_and_go_leave_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let (node, _) = start(home.path());
    let node = node.0.id();
    round(home.path(), AT_ONCE);
    let (files, bytes) = (open_files(node), resident_bytes(node));
    let mut left = sessions();
    while left > 0 {
        let count = left.min(AT_ONCE);
        round(home.path(), count);
        left -= count;
    }
    eventually("as many files are open as before", || (open_files(node) <= files).then_some(()));
    assert_eq!(children(node), "", "the node has no processes of its own");
    let grown = resident_bytes(node).saturating_sub(bytes);
    assert!(grown <= GROWTH_BYTES_MAX, "it grew by {grown} bytes over {} sessions", sessions());
}

/// Process id of the node that runs on a home, by its command line.
fn node_on(home: &Path) -> Option<u32> {
    let home = home.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|process: &u32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let parts: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        parts.contains(&home.as_bytes()) && parts.contains(&b"serve".as_slice())
    })
}

/// Kills a process that is not a child of this one.
struct Ended(u32);

impl Drop for Ended {
    fn drop(&mut self) {
        let kill = format!("kill {}", self.0);
        // It may have ended already.
        let _ = std::process::Command::new("sh").arg("-c").arg(kill).status();
    }
}

#[test]
fn a_node_started_by_a_session_outlives_it() {
    let home = tempfile::tempdir().unwrap();
    // Several sessions request a node at once; one is enough.
    let mut agents: Vec<Agent> = (0..3).map(|_| Agent::new(home.path(), &["--start"])).collect();
    let lesson = json!({"title": "About zqstart", "content": "Kept.", "evidence": ["doc:notes"]});
    let call = json!({"name": "remember", "arguments": lesson});
    let sent: Vec<u64> = agents.iter_mut().map(|agent| agent.send("tools/call", &call)).collect();
    for (agent, id) in agents.iter_mut().zip(sent) {
        let answer = agent.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let node = node_on(home.path()).expect("it runs");
    let _ended = Ended(node);
    for agent in agents {
        agent.close();
    }
    let status = klnode(home.path()).args(["status", "--json"]).output().unwrap();
    assert!(status.status.success(), "{}", told(&status));
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["entries"], 3, "one node took all of them");

    let allowed = tempfile::tempdir().unwrap();
    std::fs::write(allowed.path().join("klnode.toml"), "[mcp]\nstart_node = true\n").unwrap();
    let mut agent = Agent::new(allowed.path(), &[]);
    agent.done("search", &json!({"query": "anything"}));
    drop(Ended(node_on(allowed.path()).expect("it runs")));
    agent.close();
}

/// An HTTP server, with its address and token.
struct Web {
    process: Running,
    address: String,
    token: String,
}

impl Web {
    fn start(home: &Path) -> Self {
        let mut command = klnode(home);
        command.args(["mcp", "--http", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = Running(command.spawn().unwrap());
        let mut lines = BufReader::new(process.0.stdout.as_mut().unwrap()).lines();
        let mut line = || lines.next().expect("it says where it is").unwrap();
        let (first, second) = (line(), line());
        let address = first.strip_prefix("MCP is served on http://").expect("an address");
        let address = address.strip_suffix("/mcp").expect("a path").to_owned();
        let file = second.trim().strip_prefix("token").expect("a token").trim();
        let token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        Self { process, address, token }
    }

    /// Sends a request, with these headers in place of the correct ones.
    fn ask(&self, method: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![
            ("Host", self.address.as_str()),
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(test_server::PATIENCE)).unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        test_server::ask(stream, method, "/mcp", &all, body.as_bytes())
    }

    /// Performs the handshake, and returns the session id.
    fn begin(&self) -> String {
        let answer = self.ask("POST", &[], &hello());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(message(&answer)["result"]["serverInfo"].is_object(), "{}", answer.text());
        let session = answer.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        let session = session.expect("a session");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.ask("POST", &[("Mcp-Session-Id", session.as_str())], &ready).status, 202);
        session
    }

    fn call(&self, session: &str, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let answer = self.ask("POST", &[("Mcp-Session-Id", session)], &call);
        assert_eq!(answer.status, 200, "{}", answer.text());
        message(&answer)["result"].clone()
    }

    fn end(&self, session: &str) -> u16 {
        self.ask("DELETE", &[("Mcp-Session-Id", session)], &Value::Null).status
    }
}

fn hello() -> Value {
    let info = json!({"name": "web suite", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// The message in a response, which arrives as an event.
fn message(answer: &Answer) -> Value {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    messages.next().unwrap_or_else(|| panic!("no message in {text}"))
}

#[test]
fn over_http_only_local_requests_with_the_token_are_served_and_sessions_have_own_tasks() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let web = Web::start(home.path());
    for (headers, status) in [
        (&[("Authorization", "")][..], 401),
        (&[("Authorization", "Bearer 00")][..], 401),
        (&[("Host", "evil.example")][..], 403),
        (&[("Origin", "http://evil.example")][..], 403),
    ] {
        assert_eq!(web.ask("POST", headers, &hello()).status, status, "{headers:?}");
    }
    let (one, two) = (web.begin(), web.begin());
    assert_ne!(one, two);
    let begun = web.call(&one, "task_begin", &json!({"goal": "work"}));
    let task = begun["structuredContent"]["task"].clone();
    assert!(task.is_string(), "{begun}");
    let finish = json!({"outcome": "success"});
    assert_eq!(web.call(&two, "task_finish", &finish)["isError"], true, "it has no task");
    assert_eq!(web.call(&one, "task_finish", &finish)["structuredContent"]["task"], task);
    assert!((200..300).contains(&web.end(&one)));
    let gone = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    assert_eq!(web.ask("POST", &[("Mcp-Session-Id", one.as_str())], &gone).status, 404);
}

#[test]
fn sessions_over_http_leave_no_file_open() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let web = Web::start(home.path());
    let id = web.process.0.id();
    let round = || {
        let session = web.begin();
        web.call(&session, "search", &json!({"query": "anything"}));
        assert!((200..300).contains(&web.end(&session)));
    };
    round();
    let files = open_files(id);
    // More than the limit of concurrent sessions: ended sessions have released their slots.
    for _ in 0..(sessions() / 5).max(300) {
        round();
    }
    eventually("as many files are open as before", || (open_files(id) <= files).then_some(()));
}

#[test]
fn over_http_nothing_is_served_outside_a_session() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let web = Web::start(home.path());
    let session = web.begin();
    let asks = [
        ("tools/call", json!({"name": "search", "arguments": {"query": "anything"}})),
        ("resources/read", json!({"uri": "klnode://status"})),
        ("resources/list", json!({})),
        ("prompts/get", json!({"name": "knowledge_for_task", "arguments": {"goal": "x"}})),
    ];
    for (method, params) in &asks {
        let ask = json!({"jsonrpc": "2.0", "id": 4, "method": method, "params": params});
        assert_eq!(web.ask("POST", &[], &ask).status, 400, "{method}: it names no session");
        let ours = [("Mcp-Session-Id", session.as_str())];
        assert!(message(&web.ask("POST", &ours, &ask))["result"].is_object(), "{method}");
        // A request that states its version itself has no session, regardless of its headers.
        let mut stateless = ask.clone();
        stateless["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2025-06-18",
            "io.modelcontextprotocol/clientInfo": {"name": "web suite", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for headers in [
            &[("Mcp-Protocol-Version", "2025-06-18")][..],
            &[("Mcp-Protocol-Version", "2025-06-18"), ours[0]][..],
        ] {
            let refused = message(&web.ask("POST", headers, &stateless))["error"].clone();
            assert_eq!(refused["code"], -32600, "{method}: {refused}");
            let told = refused["message"].as_str().unwrap();
            assert!(told.contains("Send `initialize` first"), "{method}: {told}");
        }
        // The newest version has no sessions over HTTP, so it is not supported there.
        stateless["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] =
            json!("2026-07-28");
        let name = if *method == "resources/read" { "uri" } else { "name" };
        let name = params[name].as_str().unwrap_or_default();
        let headers =
            [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", *method), ("Mcp-Name", name)];
        let refused = web.ask("POST", &headers, &stateless);
        assert_eq!(refused.status, 400, "{method}: {}", refused.text());
        assert!(refused.text().contains("-32022"), "{method}: {}", refused.text());
    }
}

#[test]
fn over_http_only_loopback_addresses_are_accepted() {
    let home = tempfile::tempdir().unwrap();
    let refused = klnode(home.path()).args(["mcp", "--http", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("it is not a loopback address"), "{}", told(&refused));
}
