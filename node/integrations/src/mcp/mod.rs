//! An MCP server for coding agents: a thin client of the running node, over standard input and
//! output or over HTTP.
//!
//! It offers eight tools, three kinds of resources and two prompts. Answers have passed the gate,
//! and text of entries is always quoted ([`quoted_entry_text`]). Each session is a separate caller. The server
//! never opens a store; all access goes through [`node_client`].

pub mod arguments;
pub mod http;
pub mod node_client;
mod prompts;
pub mod quoted_entry_text;
mod resource_list_changes;
mod resources;
mod server;
mod session;
mod task_tool_results;
pub mod tool_error;
mod tool_handlers;
pub mod tool_result;
pub mod tool_schemas;

pub use server::Server;
pub use session::McpSession;

use node_client::NodeClient;
use rmcp::serve_server;
use rmcp::service::ServerInitializeError;
use std::sync::Arc;

/// Random bytes in a session id.
const SESSION_ID_BYTES: usize = 12;

/// Settings shared by every session.
#[derive(Clone)]
pub struct Settings {
    /// Connection to the node.
    pub node: Arc<NodeClient>,
    /// The checkout of the agent on standard input; `None` outside a checkout.
    pub checkout: Option<String>,
    /// Fills a buffer with random bytes.
    pub entropy: fn(&mut [u8]),
}

impl Settings {
    /// Creates a session with a random id.
    fn session(&self, checkout: Option<String>) -> McpSession {
        let mut bytes = [0; SESSION_ID_BYTES];
        (self.entropy)(&mut bytes);
        let id = data_encoding::HEXLOWER.encode(&bytes);
        McpSession::new(self.node.clone(), id, checkout)
    }
}

/// Why MCP over standard input ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum SpeakError {
    /// The client's handshake was invalid.
    #[error("The MCP handshake on standard input failed: {0}.")]
    Begin(String),
    /// The server task failed.
    #[error("The MCP server stopped: {0}.")]
    Broken(String),
}

/// Serves standard input and output until the client closes them.
pub async fn stdio(settings: &Settings) -> Result<(), SpeakError> {
    let session = settings.session(settings.checkout.clone());
    // The node can tell this client process from others only if it learns of it before serving
    // entries.
    settings.node.announce().await;
    let running = serve_server(Server::new(session), rmcp::transport::stdio_pipes()).await;
    match running {
        Ok(running) => {
            let ended = running.waiting().await;
            ended.map(|_| ()).map_err(|error| SpeakError::Broken(error.to_string()))
        }
        // The client closed the connection before the handshake; this is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(SpeakError::Begin(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_client::Client;
    use serde_json::{Value, json};
    use std::path::Path;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    fn settings() -> Settings {
        let client = Client::new(Path::new("/nonexistent/klnode.sock"));
        let node = Arc::new(NodeClient::new(client, None, "klnode --home /k".into()));
        Settings { node, checkout: None, entropy: |bytes| bytes.fill(7) }
    }

    /// Sends lines over an in-memory pipe and returns the responses in order.
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
    fn without_a_node_calls_say_how_to_start_one() {
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
        let message = answers[1]["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            message.contains("No node is running. Start one with `klnode --home /k`."),
            "{message}"
        );
        assert_eq!(answers[1]["result"]["isError"], true);
        assert_eq!(answers[2]["result"]["isError"], true);
        assert_eq!(answers[3]["error"]["code"], -32602);
        assert_eq!(answers[4]["result"]["resources"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn an_unknown_version_is_answered_with_a_supported_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers = runtime.block_on(converse(&[hello("1999-01-01")]));
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    }
}
