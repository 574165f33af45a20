//! Parses the JSON that a client writes to a hook's standard input. Only a few fields are used.
//!
//! Parsing is lenient: a field that is missing or has another type counts as absent, because
//! clients change their format and a hook must not fail for that reason.

use serde_json::Value;
use std::path::PathBuf;

/// Lines of an error message used as the query, taken from the end, where the cause usually is.
const ERROR_LINES_MAX: usize = 8;
/// Maximum length of that query in bytes.
const ERROR_BYTES_MAX: usize = 1_000;

/// The fields of a hook's input that klnode uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookInput {
    /// Identifier of the client's session.
    pub session: Option<String>,
    /// Working directory of the agent, as an absolute path.
    pub cwd: Option<PathBuf>,
    /// The client's name for the event.
    pub event_name: Option<String>,
    /// Why a session begins: `startup`, `resume`, `clear` or `compact`.
    pub source: Option<String>,
    /// Identifier of a sub-agent within the session; `None` for the main agent.
    pub agent: Option<String>,
    /// The text a person submitted, for the prompt event.
    pub prompt: Option<String>,
    error: Option<Value>,
    response: Option<Value>,
    is_interrupt: bool,
}

impl HookInput {
    /// Parses the input. Returns `None` if it is not a JSON object.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(bytes) else { return None };
        let is_interrupt = fields.get("is_interrupt") == Some(&Value::Bool(true));
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
            _ => None,
        };
        let (session, event_name) = (text("session_id"), text("hook_event_name"));
        let (source, agent) = (text("source"), text("agent_id"));
        let (cwd, prompt) = (text("cwd").map(PathBuf::from), text("prompt"));
        let cwd = cwd.filter(|path| path.is_absolute());
        let (error, response) = (fields.remove("error"), fields.remove("tool_response"));
        Some(Self {
            session,
            cwd,
            event_name,
            source,
            agent,
            prompt,
            error,
            response,
            is_interrupt,
        })
    }

    /// True if the session's context no longer contains earlier quotations.
    pub fn is_context_new(&self) -> bool {
        matches!(self.source.as_deref(), Some("startup" | "clear" | "compact"))
    }

    /// The last lines of a failed tool's error message. `None` if no tool failed or a person
    /// interrupted it.
    pub fn error(&self) -> Option<String> {
        if self.is_interrupt {
            return None;
        }
        let text = match (&self.error, &self.response) {
            (Some(Value::Null) | None, Some(response)) => failed_response(response)?,
            (Some(Value::String(text)), _) => text.clone(),
            (Some(Value::Null) | None, None) => return None,
            (Some(other), _) => other.to_string(),
        };
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(ERROR_LINES_MAX)..];
        let text = last.join("\n");
        let start = text.ceil_char_boundary(text.len().saturating_sub(ERROR_BYTES_MAX));
        (!text.is_empty()).then(|| text[start..].to_owned())
    }
}

/// The error message in a tool response, for clients that lack the `PostToolUseFailure` event.
fn failed_response(response: &Value) -> Option<String> {
    let text = |name: &str| {
        response[name].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
    };
    let is_error = response["is_error"] == true || response["isError"] == true;
    let code = ["exit_code", "exitCode", "code"].iter().find_map(|name| response[*name].as_i64());
    let has_failed = is_error || code.is_some_and(|code| code != 0);
    text("error").or_else(|| {
        has_failed.then(|| text("stderr").or_else(|| text("content")).or_else(|| text("stdout")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input(value: &Value) -> HookInput {
        HookInput::read(value.to_string().as_bytes()).expect("an object")
    }

    #[test]
    fn fields_of_another_type_are_absent_and_only_objects_are_accepted() {
        let read = input(&json!({
            "session_id": "s1", "cwd": "relative", "prompt": 7, "hook_event_name": "Stop",
        }));
        assert_eq!(read.session.as_deref(), Some("s1"));
        assert_eq!((read.cwd, read.prompt), (None, None));
        assert_eq!(read.event_name.as_deref(), Some("Stop"));
        for bytes in [&b""[..], b"[]", b"{", b"\xFF", b"null"] {
            assert_eq!(HookInput::read(bytes), None);
        }
    }

    #[test]
    fn only_the_end_of_an_error_is_used() {
        let long = (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let error = input(&json!({ "error": long })).error().unwrap();
        assert!(error.starts_with("line 92\n") && error.ends_with("line 99"), "{error}");
        let wide = input(&json!({ "error": "\u{e9}".repeat(2_000) })).error().unwrap();
        assert_eq!(wide.chars().count(), 500);
        assert_eq!(input(&json!({"error": {"code": 1}})).error().unwrap(), "{\"code\":1}");
        assert_eq!(input(&json!({"error": "x", "is_interrupt": true})).error(), None);
        assert_eq!(input(&json!({"error": "  "})).error(), None);
    }

    #[test]
    fn a_response_is_an_error_only_if_marked_as_one() {
        for (response, expected) in [
            (json!({"stdout": "fine", "stderr": "a warning"}), None),
            (json!({"stderr": "no such file", "exit_code": 2}), Some("no such file")),
            (json!({"is_error": true, "content": "denied"}), Some("denied")),
            (json!({"error": "gone"}), Some("gone")),
            (json!("just text"), None),
        ] {
            let read = input(&json!({ "tool_response": response }));
            assert_eq!(read.error().as_deref(), expected, "{response}");
        }
    }
}
