//! An MCP server for coding agents: a thin client of the running node, over standard input and
//! output or over HTTP.
//!
//! Eight tools, three kinds of resources, two prompts. Answers are the gated ones, and text of
//! entries is quoted, never spoken ([`quote`]). Each session is a caller of its own. No store is
//! opened here: [`node`] is the only way to anything.

pub mod answer;
pub mod arguments;
mod calls;
mod changes;
pub mod http;
pub mod node;
mod prompts;
pub mod quote;
mod resources;
mod server;
mod session;
pub mod tools;
pub mod trouble;

pub use server::Server;
pub use session::Session;

use node::Node;
use rmcp::serve_server;
use rmcp::service::ServerInitializeError;
use std::sync::Arc;

/// Random bytes of a session's name.
const SESSION_ID_BYTES: usize = 12;

/// What every session has in common.
#[derive(Clone)]
pub struct Settings {
    /// The way to the node.
    pub node: Arc<Node>,
    /// The checkout that an agent on standard input works in.
    pub checkout: Option<String>,
    /// Fills with random bytes.
    pub entropy: fn(&mut [u8]),
}

impl Settings {
    /// A session, with a name that no other has.
    fn session(&self, checkout: Option<String>) -> Session {
        let mut bytes = [0; SESSION_ID_BYTES];
        (self.entropy)(&mut bytes);
        let id = data_encoding::HEXLOWER.encode(&bytes);
        Session::new(self.node.clone(), id, checkout)
    }
}

/// Why the protocol was not spoken to its end.
#[derive(Debug, thiserror::Error)]
pub enum SpeakError {
    /// The other side did not begin as the protocol wants.
    #[error("speak MCP on standard input: {0}")]
    Begin(String),
    /// Something of ours gave way.
    #[error("go on speaking MCP: {0}")]
    Broken(String),
}

/// Speaks on standard input and output until the client closes them.
pub async fn stdio(settings: &Settings) -> Result<(), SpeakError> {
    let session = settings.session(settings.checkout.clone());
    // The node tells this client from others only if it knew it before they were served an entry.
    settings.node.announce().await;
    let running = serve_server(Server::new(session), rmcp::transport::stdio_pipes()).await;
    match running {
        Ok(running) => {
            let ended = running.waiting().await;
            ended.map(|_| ()).map_err(|error| SpeakError::Broken(error.to_string()))
        }
        // A client that goes before it has said anything has changed its mind.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(SpeakError::Begin(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Client;
    use serde_json::{Value, json};
    use std::path::Path;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    fn settings() -> Settings {
        let client = Client::new(Path::new("/nonexistent/klnode.sock"));
        let node = Arc::new(Node::new(client, None, "klnode --home /k".into()));
        Settings { node, checkout: None, entropy: |bytes| bytes.fill(7) }
    }

    /// Speaks the protocol over a pipe in memory, and returns the answers by their ids.
    async fn converse(lines: &[Value]) -> Vec<Value> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let server = Server::new(settings().session(None));
        let serving = tokio::spawn(async move {
            let running = serve_server(server, tokio::io::split(theirs)).await;
            running.map(|running| async move { running.waiting().await }).ok()?.await.ok()
        });
        let (reading, mut writing) = tokio::io::split(ours);
        let mut reading = BufReader::new(reading).lines();
        let mut answers = Vec::new();
        for line in lines {
            writing.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            if line.get("id").is_some() {
                let answer = reading.next_line().await.unwrap().unwrap();
                answers.push(serde_json::from_str(&answer).unwrap());
            }
        }
        drop((reading, writing));
        serving.await.unwrap();
        answers
    }

    fn hello(version: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "unit", "version": "1"},
        }})
    }

    #[test]
    fn without_a_node_the_server_answers_and_says_how_to_start_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = |id: u64, name: &str, arguments: &Value| {
            let params = json!({"name": name, "arguments": arguments});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        };
        let answers = runtime.block_on(converse(&[
            hello("2025-06-18"),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            call(2, "search", &json!({"query": "anything"})),
            call(3, "search", &json!({})),
            call(4, "no_such_tool", &json!({})),
            json!({"jsonrpc": "2.0", "id": 5, "method": "resources/list"}),
        ]));
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        let told = answers[1]["result"]["content"][0]["text"].as_str().unwrap();
        assert!(told.contains("no node is running: start one with `klnode --home /k`"), "{told}");
        assert_eq!(answers[1]["result"]["isError"], true);
        assert_eq!(answers[2]["result"]["isError"], true);
        assert_eq!(answers[3]["error"]["code"], -32602);
        assert_eq!(answers[4]["result"]["resources"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn an_unknown_version_is_answered_with_one_that_is_spoken() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers = runtime.block_on(converse(&[hello("1999-01-01")]));
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    }
}
