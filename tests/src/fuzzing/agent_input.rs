//! Targets for input of agents, their clients, and owners of workspaces: JSON of tool calls and
//! hooks, and settings in a charter.

use klnode_config::Config;
use klnode_integrations::hooks::HookInput;
use klnode_integrations::mcp::arguments::{CallError, ToolCall};
use klnode_integrations::mcp::tool_schemas::tools;
use klnode_query::ScoringParams;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

/// Maximum length of an error text that a hook looks up.
const ERROR_BYTES_MAX: usize = 1_000;
const ERROR_LINES_MAX: usize = 8;

pub(super) const HOOK_INPUT: [&str; 6] = [
    r#"{"session_id": "s1", "cwd": "/srv/app", "hook_event_name": "SessionStart"}"#,
    r#"{"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "fix the login"}"#,
    r#"{"hook_event_name": "PostToolUseFailure", "error": "a\n\nb\r\nno such file", "cwd": "x"}"#,
    r#"{"error": {"code": 1, "message": "denied"}, "is_interrupt": false}"#,
    r#"{"tool_response": {"stderr": "no such file", "stdout": "", "exit_code": 2}, "error": null}"#,
    r#"{"tool_response": {"is_error": true, "content": "denied"}, "is_interrupt": true}"#,
];

pub(super) const TOOL_CALLS: [&str; 9] = [
    r#"{"name": "search", "arguments": {"query": "retry storms", "limit": 3, "type": "lesson"}}"#,
    r#"{"name": "get", "arguments": {"code": "L-7f3a"}}"#,
    r#"{"name": "remember", "arguments": {"title": "T", "content": "C", "evidence": ["run:1"]}}"#,
    r#"{"name": "observe", "arguments": {"code": "L-7f3a", "verdict": "helpful", "task": "t"}}"#,
    r#"{"name": "task_begin", "arguments": {"goal": "mend the build", "thread": "fix"}}"#,
    r#"{"name": "task_finish", "arguments": {"outcome": "success", "used": [], "quality": 0.5}}"#,
    r#"{"name": "resolve", "arguments": {"code": "L-7f3a", "action": "supersede", "by": "L-1"}}"#,
    r#"{"name": "briefing", "arguments": {"workspace": "main", "budget": 200}}"#,
    r#"{"name": "forget", "arguments": {}}"#,
];

pub(super) const SETTINGS: [&str; 4] = [
    "[weights]\nsemantic = 0.48\nthompson = 0.15\n",
    "# Nothing.\n",
    "[weights]\nsemantic = 0.5\nthompson = 0.15\nfreshness = 0.1\nstatus = 0.1\nthread = 0.1\n",
    "[thresholds]\nanswer = 1e-3\n",
];

pub(super) fn hook_input(data: &[u8]) {
    let Some(input) = HookInput::read(data) else { return };
    assert_eq!(HookInput::read(data).as_ref(), Some(&input));
    for text in [&input.session, &input.event_name, &input.prompt].into_iter().flatten() {
        assert!(!text.trim().is_empty(), "a blank text is absent");
    }
    assert!(input.cwd.as_deref().is_none_or(Path::is_absolute));
    if let Some(error) = input.error() {
        assert!(!error.is_empty() && error.len() <= ERROR_BYTES_MAX, "{} bytes", error.len());
        assert!(error.lines().count() <= ERROR_LINES_MAX);
    }
}

pub(super) fn tool_calls(data: &[u8]) {
    let Ok(Value::Object(mut call)) = serde_json::from_slice(data) else { return };
    let Some(Value::String(name)) = call.remove("name") else { return };
    let Some(Value::Object(arguments)) = call.remove("arguments") else { return };
    let is_listed = tools().iter().any(|tool| tool.name == name);
    match ToolCall::read(&name, arguments.clone()) {
        Ok(read) => {
            assert!(is_listed, "{name} is no tool");
            assert_eq!(ToolCall::read(&name, arguments.clone()).ok().as_ref(), Some(&read));
            let mut more = arguments;
            more.insert("no_such_field".to_owned(), Value::Null);
            let refused = ToolCall::read(&name, more);
            assert!(matches!(refused, Err(CallError::Arguments(_))), "an unknown field is ignored");
        }
        Err(CallError::Arguments(trouble)) => {
            assert!(is_listed, "{name} is no tool");
            assert!(trouble.to_string().contains(&name), "{trouble}");
        }
        Err(CallError::NoSuchTool) => assert!(!is_listed, "{name} is listed"),
    }
}

static NUMBERS: LazyLock<ScoringParams> = LazyLock::new(|| ScoringParams::new(&Config::default()));

pub(super) fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(Some(weights)) = NUMBERS.weights_by(text) else { return };
    let named = weights.per_signal().named();
    let sum: f64 = named.iter().map(|(_, weight)| weight).sum();
    assert!((sum - 1.0).abs() < 0.01, "the weights sum to {sum}");
    assert!(named.iter().all(|(_, weight)| (0.0..=0.5).contains(weight)), "{named:?}");
}
