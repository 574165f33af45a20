//! What the client tells a hook: JSON on standard input, of which only a few fields are looked at.
//!
//! Read loosely: a field that is missing or of another kind is as good as absent, because clients
//! change and a hook must not fail for it.

use serde_json::Value;
use std::path::PathBuf;

/// Lines of an error that are searched for: the last ones say what went wrong.
const ERROR_LINES_MAX: usize = 8;
/// Bytes of them.
const ERROR_BYTES_MAX: usize = 1_000;

/// What a hook is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// The session.
    pub session: Option<String>,
    /// Where the agent works, as an absolute path.
    pub cwd: Option<PathBuf>,
    /// What the client calls the moment.
    pub event_name: Option<String>,
    /// Why a session begins: `startup`, `resume`, `clear` or `compact`.
    pub source: Option<String>,
    /// The agent within the session, where it is not the one that the user talks to.
    pub agent: Option<String>,
    /// What a person has written.
    pub prompt: Option<String>,
    error: Option<Value>,
    response: Option<Value>,
    is_interrupt: bool,
}

impl Input {
    /// Reads it; nothing if it is no JSON object.
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

    /// Whether the context of the session holds nothing of what was given before.
    pub fn is_context_new(&self) -> bool {
        matches!(self.source.as_deref(), Some("startup" | "clear" | "compact"))
    }

    /// The end of the message of a tool that failed, if one did. What a person broke off did not.
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

/// What an answer says that went wrong; clients before `PostToolUseFailure` tell it this way.
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

    fn input(value: &Value) -> Input {
        Input::read(value.to_string().as_bytes()).expect("an object")
    }

    #[test]
    fn fields_of_another_kind_are_absent_and_what_is_no_object_is_nothing() {
        let read = input(&json!({
            "session_id": "s1", "cwd": "relative", "prompt": 7, "hook_event_name": "Stop",
        }));
        assert_eq!(read.session.as_deref(), Some("s1"));
        assert_eq!((read.cwd, read.prompt), (None, None));
        assert_eq!(read.event_name.as_deref(), Some("Stop"));
        for bytes in [&b""[..], b"[]", b"{", b"\xFF", b"null"] {
            assert_eq!(Input::read(bytes), None);
        }
    }

    #[test]
    fn the_end_of_an_error_is_what_is_looked_up() {
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
    fn an_answer_is_an_error_only_if_it_says_so() {
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
