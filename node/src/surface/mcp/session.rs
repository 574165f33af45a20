//! One conversation of one client: what it is called, which task it works on, what it has been
//! served. Knows no protocol; a test can hold one in its hand.

use super::answer::Answer;
use super::arguments::Call;
use super::calls::Asking;
use super::node::{Behalf, Node};
use super::trouble::Trouble;
use hyper::Method;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Entries that a session remembers to have been served.
const SERVED_MAX: usize = 8_192;

/// One conversation.
pub struct Session {
    node: Arc<Node>,
    /// Random, drawn when the session begins.
    id: String,
    /// The checkout it works in, if it is this process's.
    checkout: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The open tasks, the innermost last.
    tasks: Vec<String>,
    /// Ids of what was served, and the digits of their codes, in upper case.
    served: BTreeSet<String>,
    /// Whether more was served than is remembered.
    is_overflown: bool,
}

impl Session {
    /// Begins a conversation.
    pub fn new(node: Arc<Node>, id: String, checkout: Option<String>) -> Self {
        Self { node, id, checkout, state: Mutex::default() }
    }

    /// Answers a call of a client that calls itself so.
    pub async fn call(&self, client: &str, call: Call) -> Result<Answer, Trouble> {
        Asking { session: self, client }.answer(call).await
    }

    /// An entry, if it may be read out.
    pub async fn entry(&self, client: &str, code: &str) -> Result<Answer, Trouble> {
        Asking { session: self, client }.get(code).await
    }

    /// Reads something of the node, as it answers.
    pub async fn read(&self, client: &str, path: &str) -> Result<Value, Trouble> {
        self.node.get(&Behalf { client, session: &self.id }, path).await
    }

    pub(super) async fn send(
        &self,
        client: &str,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, Trouble> {
        self.node.send(&Behalf { client, session: &self.id }, method, path, body).await
    }

    /// The checkout it works in.
    pub(super) fn checkout(&self) -> Option<&String> {
        self.checkout.as_ref()
    }

    /// The task it works on.
    pub fn task(&self) -> Option<String> {
        self.with(|state| state.tasks.last().cloned())
    }

    /// How many tasks are open.
    pub(super) fn task_count(&self) -> usize {
        self.with(|state| state.tasks.len())
    }

    /// A task was begun.
    pub(super) fn enter_task(&self, task: &str) {
        self.with(|state| state.tasks.push(task.to_owned()));
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // Nothing panics while it is held; if something did, the state is still what it was.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what the agent has read, by code and id.
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

    /// Whether something that may be meant by this name was served here.
    pub(super) fn was_served(&self, name: &str) -> bool {
        let name = digits(name);
        self.with(|state| {
            let begins = |known: &String| known.starts_with(&name);
            state.is_overflown || state.served.range(name.clone()..).next().is_some_and(begins)
        })
    }

    /// A task is over, and with it those that are a part of it.
    pub(super) fn leave_task(&self, task: &str) {
        self.with(|state| {
            if let Some(at) = state.tasks.iter().position(|open| open == task) {
                state.tasks.truncate(at);
            }
        });
    }
}

/// What names an entry in its code or id: the letter in front of a code says only what it is.
fn digits(name: &str) -> String {
    let name = name.trim();
    let digits = name.split_once('-').filter(|(letter, _)| letter.chars().count() == 1);
    digits.map_or(name, |(_, digits)| digits).to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Client;
    use crate::surface::mcp::arguments::Briefing;
    use std::path::Path;

    fn session() -> Session {
        let client = Client::new(Path::new("/nonexistent/klnode.sock"));
        Session::new(Arc::new(Node::new(client, None, "klnode".into())), "s1".into(), None)
    }

    #[test]
    fn what_was_served_is_known_by_any_beginning_of_its_name() {
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
        assert!(session.was_served("L-8"), "where too much was served, everything counts as such");
    }

    #[test]
    fn ending_a_task_ends_those_begun_within_it() {
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
        let briefing = Call::Briefing(Briefing::default());
        let told = runtime.block_on(session().call("test", briefing)).unwrap_err().to_string();
        assert!(told.contains("no node is running: start one with `klnode`"), "{told}");
    }
}
