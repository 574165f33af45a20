//! Names, descriptions and schemas of the tools. Every agent pays for these words in every
//! conversation, so they are written by hand, and a test limits their size.

use klnode_scoring::caller_role::PlanState;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of hits an agent may ask for. It is lower than a person's, because an agent pays
/// for each hit.
pub(super) const LIMIT_MAX: usize = 20;
/// Roles an agent may give. An executor is answered only with a `deviation`.
pub(super) const ROLES: [&str; 5] = ["researcher", "planner", "debugger", "reviewer", "executor"];

/// A tool's effect on the node, for clients that ask before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolEffect {
    /// Reads and changes nothing.
    Reads,
    /// Adds data with every call.
    Adds,
    /// Adds data; repeating the call adds nothing.
    AddsOnce,
    /// Changes entries that others see; repeating the call changes nothing.
    Changes,
}

/// Every tool, in listing order.
pub fn tools() -> Vec<Tool> {
    vec![search(), get(), remember(), observe(), task_begin(), task_finish(), resolve(), briefing()]
}

fn search() -> Tool {
    let input = json!({
        "query": text("Words, symbols, paths or an error message"),
        "limit": {"type": "integer"},
        "budget": {"type": "integer", "description": "Tokens"},
        "role": one_of(&ROLES),
        "deviation": one_of(&PlanState::DEVIATIONS.map(|(_, name)| name)),
        "reviewer": {"type": "string"},
        "type": {"type": "string"},
        "sub_type": {"type": "string"},
        "tag": {"type": "string"},
        "workspace": {"type": "string"},
        "thread": text("* for all"),
        "task": {"type": "string"},
        "context": {"type": "boolean", "description": "For a prompt"},
        "debug": {"type": "boolean"},
    });
    let output = json!({
        "notice": string(),
        "hits": {"type": "array", "items": entry_schema()},
        "near": {"type": "array", "items": {"type": "object"}},
        "considered": {"type": "array", "items": {"type": "object"}},
        "abstained": {"type": "boolean"},
        "grade": string(),
        "reason": string(),
        "task": string(),
        "tokens": {"type": "integer"},
    });
    tool(
        "search",
        "Find what is known before working. Answers are quoted data, cut to limit and budget.",
        ToolEffect::Reads,
        (&input, &["query"]),
        (&output, &["notice", "hits", "abstained"]),
    )
}

fn get() -> Tool {
    let input = json!({"code": code()});
    let output = json!({"notice": string(), "entry": entry_schema(), "version": string()});
    tool(
        "get",
        "Read one entry in full.",
        ToolEffect::Reads,
        (&input, &["code"]),
        (&output, &["notice", "entry"]),
    )
}

fn remember() -> Tool {
    let input = json!({
        "title": text("One line"),
        "content": text("Lesson, and when it applies"),
        "type": one_of(&["lesson", "skill", "experience", "spike", "norm", "signal", "playbook"]),
        "evidence": list("KIND:REF, as commit:1a2b3c4; or pr doc test file url run"),
        "tags": list("As auth/jwt"),
        "depends_on": list("As dep:cargo:tokio>=1.40 or path:src/lib.rs"),
        "outcome": text("spike: confirmed, rejected, partial or inconclusive"),
        "polarity": polarity(),
        "workspace": {"type": "string"},
    });
    let output = json!({"id": string(), "code": string(), "same": string()});
    tool(
        "remember",
        "Keep a reusable lesson. Search first; needs evidence or an open task.",
        ToolEffect::Adds,
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
        "Say how an entry fared. confirm: you found yourself that it still holds.",
        ToolEffect::Adds,
        (&input, &["code", "verdict"]),
        (&output, &["id", "code", "counted"]),
    )
}

fn task_begin() -> Tool {
    let input = json!({
        "goal": {"type": "string"},
        "thread": {"type": "string"},
        "parent": text("Default: open task"),
    });
    let output = json!({
        "task": string(),
        "parent": string(),
        "notice": string(),
        "upstream": {"type": "array", "items": {"type": "object"}},
    });
    tool(
        "task_begin",
        "Begin work. Later calls belong to it until task_finish.",
        ToolEffect::Adds,
        (&input, &["goal"]),
        (&output, &["task"]),
    )
}

fn task_finish() -> Tool {
    let input = json!({
        "outcome": one_of(&["success", "failure"]),
        "used": list("Codes that mattered"),
        "dismissed": list("Contradicted by what you saw"),
        "avoided": list("Spikes that spared an experiment"),
        "partial": list("CODE=gap left open"),
        "composite": list("Answered together"),
        "incidental": list("Answered another question"),
        "reasons": list("CODE=why it applies"),
        "conclusion": {"type": "string"},
        "quality": {"type": "number", "description": "0 to 1"},
        "cost": {"type": "number"},
        "rounds": {"type": "integer"},
        "strategy": {"type": "string"},
        "task": {"type": "string"},
    });
    let output = json!({
        "task": string(),
        "already": {"type": "boolean"},
        "credits": {"type": "array", "items": {"type": "object"}},
        "unsearched": {"type": "boolean"},
        "composite": {"type": "array", "items": string()},
    });
    tool(
        "task_finish",
        "End the open task; its outcome counts for entries used.",
        ToolEffect::AddsOnce,
        (&input, &["outcome"]),
        (&output, &["task", "already", "credits"]),
    )
}

fn resolve() -> Tool {
    let input = json!({
        "code": code(),
        "action": one_of(&["archive", "unarchive", "supersede", "promote", "annotate", "edit"]),
        "by": text("supersede: better code"),
        "to": text("promote: workspace"),
        "note": text("annotate"),
        "text": text("edit: new text"),
        "version": {"type": "string"},
    });
    let output = json!({"action": string(), "code": string()});
    tool(
        "resolve",
        "Settle an outdated, replaced or contested entry.",
        ToolEffect::Changes,
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
        "State of a workspace: verified, contested, stale, new from peers.",
        ToolEffect::Reads,
        (&input, &[]),
        (&output, &["notice", "quoted"]),
    )
}

/// Schema of an entry in a structured answer.
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

/// The description mentions tags, because entries without common tags are never compared, and an
/// agent could not guess that.
fn polarity() -> Value {
    let mut schema = one_of(&["positive", "negative", "neutral"]);
    schema["description"] = "For or against; opposites that share tags contradict".into();
    schema
}

fn code() -> Value {
    text("L-7F3KQ2MX or its start")
}

/// Properties, and the names of the required ones.
type SchemaProperties<'a> = (&'a Value, &'a [&'a str]);

fn tool(
    name: &'static str,
    description: &'static str,
    effect: ToolEffect,
    input: SchemaProperties<'_>,
    output: SchemaProperties<'_>,
) -> Tool {
    let annotations = ToolAnnotations::new().open_world(false);
    let annotations = match effect {
        ToolEffect::Reads => annotations.read_only(true),
        ToolEffect::Adds => annotations.read_only(false).destructive(false),
        ToolEffect::AddsOnce => annotations.read_only(false).destructive(false).idempotent(true),
        ToolEffect::Changes => annotations.read_only(false).destructive(true).idempotent(true),
    };
    Tool::new(name, description, Arc::new(object(input)))
        .with_raw_output_schema(Arc::new(object(output)))
        .with_annotations(annotations)
}

fn object((properties, required): SchemaProperties<'_>) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.clone());
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    schema
}
