//! What went wrong, in words an agent can act on: it becomes the text of a failed call.

use crate::api::ClientError;
use std::fmt;

/// Why a call has no answer, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What could not be done; fits after "cannot".
    message: String,
    hint: Option<String>,
    reason: Reason,
}

/// What kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No node answers.
    NoNode,
    /// There is no such thing.
    NotFound,
    /// Anything else.
    Other,
}

impl Trouble {
    /// Trouble without a way out but its own words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, reason: Reason::Other }
    }

    /// The same, with a way out.
    pub fn hinting(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// No node runs, and none may be started. `start` is what starts one, as it can be typed.
    pub fn no_node(start: &str) -> Self {
        let message = format!("reach the node: no node is running: start one with `{start}`");
        let hint = format!(
            "`{start} service` prints what keeps one running; with `start_node = true` under `[mcp]` in \
             klnode.toml this server starts one itself"
        );
        Self { reason: Reason::NoNode, ..Self::new(message).hinting(hint) }
    }

    /// What kind it is.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Whether it names something, such as a task by its id.
    pub(super) fn names(&self, name: &str) -> bool {
        self.message.contains(name)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        use crate::api::Kind;
        let message = error.to_string();
        match error {
            ClientError::NoNode { .. } => Self::no_node("klnode"),
            // Not asked again by itself: what was asked may have been done.
            ClientError::Ended | ClientError::Stopped | ClientError::Silent { .. } => {
                Self::new(message).hinting("look whether it was done, and ask again if not")
            }
            ClientError::Refused(detail) => {
                let reason = match detail.kind {
                    Kind::NotFound | Kind::Forgotten => Reason::NotFound,
                    _ => Reason::Other,
                };
                Self { message, hint: detail.hint, reason }
            }
            ClientError::Closed { .. } | ClientError::Garbled(_) | ClientError::BrokenOff => {
                Self::new(message).hinting("`klnode doctor` looks closer")
            }
        }
    }
}
