//! The tools, as a client lists them. Every agent pays for these words in every conversation: names
//! and schemas are written by hand, and a test holds their size.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// Hits of one answer that an agent may ask for: fewer than a person may, since it pays for each.
pub(super) const LIMIT_MAX: usize = 20;
/// What an agent may say that it is doing. An executor is answered only when it says that it
/// deviates, which no agent can say here.
pub(super) const ROLES: [&str; 4] = ["researcher", "planner", "debugger", "reviewer"];

/// What a tool does to the node, for whoever asks before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// Adds; each call adds again.
    Adds,
    /// Adds; a second call adds nothing.
    AddsOnce,
    /// Changes what others are shown; a second call changes nothing.
    Changes,
}

/// Every tool, in the order in which they are listed.
pub fn tools() -> Vec<Tool> {
    vec![search(), get(), remember(), observe(), task_begin(), task_finish(), resolve(), briefing()]
}

fn search() -> Tool {
    let input = json!({
        "query": text("Plain words, symbols, paths or an error message"),
        "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX},
        "budget": {"type": "integer", "description": "Tokens"},
        "role": one_of(&ROLES),
        "type": {"type": "string"},
        "tag": {"type": "string"},
        "workspace": {"type": "string"},
        "thread": text("* for all"),
        "task": {"type": "string"},
    });
    let output = json!({
        "notice": string(),
        "hits": {"type": "array", "items": entry_schema()},
        "abstained": {"type": "boolean"},
        "reason": string(),
        "task": string(),
        "tokens": {"type": "integer"},
    });
    tool(
        "search",
        "Find what is known about a problem before working on it. Answers are quoted data with \
         author, confidence and evidence, cut to limit and budget.",
        Effect::Reads,
        (&input, &["query"]),
        (&output, &["notice", "hits", "abstained"]),
    )
}

fn get() -> Tool {
    let input = json!({"code": code()});
    let output = json!({"notice": string(), "entry": entry_schema()});
    tool(
        "get",
        "Read one entry in full.",
        Effect::Reads,
        (&input, &["code"]),
        (&output, &["notice", "entry"]),
    )
}

fn remember() -> Tool {
    let input = json!({
        "title": text("One line"),
        "content": text("What was learned, and when it applies"),
        "type": one_of(&["lesson", "skill", "experience", "spike", "norm", "signal"]),
        "evidence": list("KIND:REF, as commit:1a2b3c4; or pr doc test file url run"),
        "tags": list("As auth/jwt"),
        "depends_on": list("What must hold, as dep:cargo:tokio>=1.40 or path:src/lib.rs"),
        "outcome": text("spike: confirmed, rejected, partial or inconclusive"),
        "polarity": polarity(),
        "workspace": {"type": "string"},
    });
    let output = json!({"id": string(), "code": string(), "same": string()});
    tool(
        "remember",
        "Keep a reusable lesson. Search first; needs evidence or an open task.",
        Effect::Adds,
        (&input, &["title", "content"]),
        (&output, &["id", "code"]),
    )
}

fn observe() -> Tool {
    let input = json!({
        "code": code(),
        "verdict": one_of(&["helpful", "harmful", "success", "failure", "confirm"]),
        "task": {"type": "string"},
    });
    let output = json!({
        "id": string(),
        "code": string(),
        "counted": {"type": "boolean"},
        "class": string(),
        "reason": string(),
    });
    tool(
        "observe",
        "Say how an entry fared. confirm: you found by yourself that it still holds.",
        Effect::Adds,
        (&input, &["code", "verdict"]),
        (&output, &["id", "code", "counted"]),
    )
}

fn task_begin() -> Tool {
    let input = json!({
        "goal": {"type": "string"},
        "thread": {"type": "string"},
        "parent": text("Default: an open task"),
    });
    let output = json!({"task": string(), "parent": string()});
    tool(
        "task_begin",
        "Begin work. Later calls belong to it until task_finish.",
        Effect::Adds,
        (&input, &["goal"]),
        (&output, &["task"]),
    )
}

fn task_finish() -> Tool {
    let input = json!({
        "outcome": one_of(&["success", "failure"]),
        "used": list("Codes of entries that mattered"),
        "dismissed": list("Codes contradicted by what you saw"),
        "avoided": list("Codes of spikes that spared an experiment"),
        "quality": {"type": "number", "minimum": 0, "maximum": 1},
        "task": {"type": "string"},
    });
    let output = json!({
        "task": string(),
        "already": {"type": "boolean"},
        "credits": {"type": "array", "items": {"type": "object"}},
    });
    tool(
        "task_finish",
        "End the open task; its outcome counts for entries it used.",
        Effect::AddsOnce,
        (&input, &["outcome"]),
        (&output, &["task", "already", "credits"]),
    )
}

fn resolve() -> Tool {
    let input = json!({
        "code": code(),
        "action": one_of(&["archive", "unarchive", "supersede", "promote", "annotate"]),
        "by": text("supersede: code of the better entry"),
        "to": text("promote: the workspace"),
        "note": text("annotate: the note"),
    });
    let output = json!({"action": string(), "code": string()});
    tool(
        "resolve",
        "Settle an outdated, replaced or contested entry.",
        Effect::Changes,
        (&input, &["code", "action"]),
        (&output, &["action", "code"]),
    )
}

fn briefing() -> Tool {
    let input = json!({
        "workspace": {"type": "string"},
        "budget": {"type": "integer", "description": "Tokens"},
    });
    let output = json!({
        "notice": string(),
        "workspace": string(),
        "tokens": {"type": "integer"},
        "quoted": {"type": "object", "properties": {"text": string()}},
    });
    tool(
        "briefing",
        "What matters now in a workspace: verified, contested, stale, new from peers.",
        Effect::Reads,
        (&input, &[]),
        (&output, &["notice", "quoted"]),
    )
}

/// An entry in a structured answer.
fn entry_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "code": string(),
            "id": string(),
            "type": string(),
            "sub_type": string(),
            "outcome": string(),
            "decay_class": string(),
            "status": string(),
            "confidence": {"type": "number"},
            "observations": {"type": "number"},
            "author": string(),
            "hop": {"type": "integer"},
            "trust": {"type": "number"},
            "foreign": {"type": "boolean"},
            "corroborated": {"type": "boolean"},
            "workspace": string(),
            "evidence": {"type": "array", "items": string()},
            "caveats": {"type": "array", "items": string()},
            "competing_with": {"type": "array", "items": {"type": "object"}},
            "quoted": {
                "type": "object",
                "properties": {
                    "title": string(),
                    "text": string(),
                    "tags": {"type": "array", "items": string()},
                },
                "required": ["title", "text"],
            },
        },
        "required": ["code", "status", "confidence", "author", "quoted"],
    })
}

fn string() -> Value {
    json!({"type": "string"})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn list(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// Without common tags nothing is compared, and no agent would guess that.
fn polarity() -> Value {
    let mut schema = one_of(&["positive", "negative", "neutral"]);
    schema["description"] = "For or against; opposites that share tags contradict".into();
    schema
}

fn code() -> Value {
    text("As L-7F3KQ2MX or its start")
}

/// Properties, and those that must be there.
type Fields<'a> = (&'a Value, &'a [&'a str]);

fn tool(
    name: &'static str,
    description: &'static str,
    effect: Effect,
    input: Fields<'_>,
    output: Fields<'_>,
) -> Tool {
    let annotations = ToolAnnotations::new().open_world(false);
    let annotations = match effect {
        Effect::Reads => annotations.read_only(true),
        Effect::Adds => annotations.read_only(false).destructive(false),
        Effect::AddsOnce => annotations.read_only(false).destructive(false).idempotent(true),
        Effect::Changes => annotations.read_only(false).destructive(true).idempotent(true),
    };
    Tool::new(name, description, Arc::new(object(input)))
        .with_raw_output_schema(Arc::new(object(output)))
        .with_annotations(annotations)
}

fn object((properties, required): Fields<'_>) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.clone());
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema
}
