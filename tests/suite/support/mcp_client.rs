//! A client of `klnode mcp`: a real process, spoken to in lines of JSON.

use crate::support::node_process::{Running, klnode};
use klnode_tests::test_server::PATIENCE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};

/// A client that speaks the protocol by hand.
pub(crate) struct Agent {
    pub(crate) process: Running,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) lines: Receiver<Value>,
    /// Messages that are no responses.
    pub(crate) notifications: Vec<Value>,
    next_id: u64,
}

impl Agent {
    /// Starts a server without a handshake. It runs in the home, which is not a checkout.
    pub(crate) fn silent(home: &Path, flags: &[&str]) -> Self {
        Self::within(home, home, flags)
    }

    /// Starts a server in a folder.
    pub(crate) fn within(folder: &Path, home: &Path, flags: &[&str]) -> Self {
        let mut command = klnode(home);
        command.arg("mcp").args(flags).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Running(command.spawn().unwrap());
        let (stdin, stdout) = (process.0.stdin.take(), process.0.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("nothing but JSON is printed");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, stdin, lines, notifications: Vec::new(), next_id: 1 }
    }

    /// Starts a server and performs the handshake.
    pub(crate) fn new(home: &Path, flags: &[&str]) -> Self {
        let mut agent = Self::silent(home, flags);
        agent.hello("2025-06-18");
        agent
    }

    pub(crate) fn hello(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "suite", "version": "1"},
        });
        let answer = self.request("initialize", &params);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer["result"].clone()
    }

    pub(crate) fn say(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a request, and returns its number.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the response to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("an answer comes");
            if line["id"] == id {
                return line;
            }
            self.notifications.push(line);
        }
    }

    /// Waits for a notification.
    #[track_caller]
    pub(crate) fn notified(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notifications.iter().position(|one| one["method"] == method) {
                return self.notifications.remove(at);
            }
            self.notifications.push(self.lines.recv_timeout(PATIENCE).expect("news come"));
        }
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Result of a tool call.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// Structured result of a tool call that must succeed.
    #[track_caller]
    pub(crate) fn done(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Message of a tool call that must fail.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        text(&result).to_owned()
    }

    /// Closes the input, and waits until the process has ended by itself.
    pub(crate) fn close(mut self) {
        drop(self.stdin.take());
        let status = self.process.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// Text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}
