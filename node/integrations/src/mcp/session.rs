//! One MCP session: its id, its open tasks and the entries it was served. It does not depend on the
//! protocol, so tests can use it directly.

use super::node_client::{NodeClient, RequestIdentity};
use super::tool_error::ToolError;
use hyper::Method;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of served entries that a session remembers.
const SERVED_MAX: usize = 8_192;

/// The state of one client's MCP session.
pub struct McpSession {
    node: Arc<NodeClient>,
    /// Random, generated when the session begins.
    id: String,
    /// The checkout the agent works in; `None` over HTTP.
    checkout: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Open tasks, innermost last.
    tasks: Vec<String>,
    /// Ids of served entries and the characters after the dash of their codes, in upper case.
    served: BTreeSet<String>,
    /// True if more entries were served than are remembered.
    is_overflown: bool,
}

impl McpSession {
    /// Begins a session.
    pub fn new(node: Arc<NodeClient>, id: String, checkout: Option<String>) -> Self {
        Self { node, id, checkout, state: Mutex::default() }
    }

    /// Sends a GET request to the node and returns its JSON answer.
    pub async fn read(&self, client: &str, path: &str) -> Result<Value, ToolError> {
        self.node.get(&RequestIdentity { client, session: &self.id }, path).await
    }

    pub(super) async fn send(
        &self,
        client: &str,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, ToolError> {
        self.node.send(&RequestIdentity { client, session: &self.id }, method, path, body).await
    }

    pub(super) fn checkout(&self) -> Option<&String> {
        self.checkout.as_ref()
    }

    /// The innermost open task.
    pub fn task(&self) -> Option<String> {
        self.with(|state| state.tasks.last().cloned())
    }

    /// Number of open tasks.
    pub(super) fn task_count(&self) -> usize {
        self.with(|state| state.tasks.len())
    }

    /// Pushes a task that was begun.
    pub(super) fn enter_task(&self, task: &str) {
        self.with(|state| state.tasks.push(task.to_owned()));
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // No code panics while holding the lock; if it did, the state would still be valid.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the codes and ids of entries the agent has read.
    pub(super) fn note_served<'a>(&self, names: impl Iterator<Item = &'a str>) {
        self.with(|state| {
            for name in names {
                if state.served.len() >= SERVED_MAX {
                    state.is_overflown = true;
                    return;
                }
                state.served.insert(digits(name));
            }
        });
    }

    /// True if a served entry matches this code or id, or the beginning of one. True for every name
    /// if more entries were served than are remembered.
    pub(super) fn was_served(&self, name: &str) -> bool {
        let name = digits(name);
        self.with(|state| {
            let begins = |known: &String| known.starts_with(&name);
            state.is_overflown || state.served.range(name.clone()..).next().is_some_and(begins)
        })
    }

    /// Removes a finished task and the tasks begun within it.
    pub(super) fn leave_task(&self, task: &str) {
        self.with(|state| {
            if let Some(at) = state.tasks.iter().position(|open| open == task) {
                state.tasks.truncate(at);
            }
        });
    }
}

/// The identifying part of a code or id, in upper case. The letter of a code is dropped, because it
/// only names the entry type.
fn digits(name: &str) -> String {
    let name = name.trim();
    let digits = name.split_once('-').filter(|(letter, _)| letter.chars().count() == 1);
    digits.map_or(name, |(_, digits)| digits).to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::arguments::{BriefingArgs, ToolCall};
    use klnode_client::Client;
    use std::path::Path;

    fn session() -> McpSession {
        let client = Client::new(Path::new("/nonexistent/klnode.sock"));
        McpSession::new(Arc::new(NodeClient::new(client, None, "klnode".into())), "s1".into(), None)
    }

    #[test]
    fn a_served_entry_matches_any_prefix_of_its_name() {
        let session = session();
        session.note_served(["L-7F3KQ2MX", "00ab"].into_iter());
        for known in ["L-7F3KQ2MX", "l-7f3k", "S-7F3K", "7F3KQ2MX", "00AB", " L-7F "] {
            assert!(session.was_served(known), "{known}");
        }
        for unknown in ["L-8", "L-7F3KQ2MXA", "01"] {
            assert!(!session.was_served(unknown), "{unknown}");
        }
        let many: Vec<String> = (0..=SERVED_MAX).map(|number| format!("{number:08}")).collect();
        session.note_served(many.iter().map(String::as_str));
        assert!(session.was_served("L-8"), "after an overflow every entry counts as served");
    }

    #[test]
    fn ending_a_task_ends_its_subtasks() {
        let session = session();
        session.with(|state| state.tasks = ["a", "b", "c"].map(str::to_owned).to_vec());
        session.leave_task("b");
        assert_eq!(session.task().as_deref(), Some("a"));
        session.leave_task("unknown");
        assert_eq!(session.task().as_deref(), Some("a"));
    }

    #[test]
    fn without_a_node_every_call_says_how_to_start_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let briefing = ToolCall::Briefing(BriefingArgs::default());
        let message = runtime.block_on(session().call("test", briefing)).unwrap_err().to_string();
        assert!(message.contains("No node is running. Start one with `klnode`."), "{message}");
    }
}
