//! The error of a tool call, worded so that an agent can act on it. It becomes the text of the
//! failed call.

use klnode_client::ClientError;
use std::fmt;

/// Why a call failed, and how to proceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// A whole sentence with the failure and its cause.
    message: String,
    hint: Option<String>,
    reason: ToolErrorKind,
}

/// The class of an error, for callers that react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// No node is running.
    NoNode,
    /// The named entry, task or workspace does not exist.
    NotFound,
    /// Any other error.
    Other,
}

impl ToolError {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, reason: ToolErrorKind::Other }
    }

    /// Adds a hint that says what to do.
    pub fn hinting(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// No node is running and none may be started. `start` is the command that starts one.
    pub fn no_node(start: &str) -> Self {
        let message = format!("No node is running. Start one with `{start}`.");
        let hint = format!(
            "`{start} generate service` prints a service definition that keeps one running. With \
             `start_node = true` under `[mcp]` in klnode.toml this server starts one itself."
        );
        Self { reason: ToolErrorKind::NoNode, ..Self::new(message).hinting(hint) }
    }

    /// The class of the error.
    pub fn reason(&self) -> ToolErrorKind {
        self.reason
    }

    /// True if the message contains `name`, such as the id of a task.
    pub(super) fn names(&self, name: &str) -> bool {
        self.message.contains(name)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<ClientError> for ToolError {
    fn from(error: ClientError) -> Self {
        use klnode_api_types::ErrorKind;
        let message = error.to_string();
        match error {
            ClientError::NoNode { .. } => Self::no_node("klnode"),
            // The request may have been carried out, so it is not retried automatically.
            ClientError::Ended | ClientError::Stopped | ClientError::Silent { .. } => {
                Self::new(message).hinting("Check whether it was done; if not, try again.")
            }
            ClientError::Refused(detail) => {
                let reason = match detail.kind {
                    ErrorKind::NotFound | ErrorKind::Forgotten => ToolErrorKind::NotFound,
                    _ => ToolErrorKind::Other,
                };
                Self { message, hint: detail.hint, reason }
            }
            ClientError::Closed { .. } | ClientError::Garbled(_) | ClientError::BrokenOff => {
                Self::new(message).hinting("Run `klnode check` to find the cause.")
            }
        }
    }
}
