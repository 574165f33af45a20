//! Renders the begin and the end of a task for an agent: earlier conclusions, credits, and remarks on
//! the entries that the agent adopted.

use super::quoted_entry_text::{NOTICE, clean, inline, quote};
use super::tool_result::{self, ToolResult};
use klnode_api_types::{FinishedTask, Task};
use serde_json::{Value, json};
use std::fmt::Write;

/// Renders a new task. Conclusions of earlier parts of the work are quoted.
pub(super) fn begun(task: &Task, parent: Option<&str>) -> ToolResult {
    let mut text = format!("Task {} is open; `task_finish` ends it.\n", task.task);
    if let Some(parent) = parent {
        let _ = writeln!(text, "It is a part of {}.", inline(parent));
    }
    let mut structured = json!({"task": task.task});
    tool_result::set(&mut structured, "parent", parent);
    if !task.upstream.is_empty() {
        let _ = writeln!(text, "Earlier parts of the work concluded. {NOTICE}");
        let concluded = task.upstream.iter().map(|of| {
            let cited = if of.cites.is_empty() { "no entry".into() } else { of.cites.join(", ") };
            let _ = writeln!(text, "\n\"{}\", from {cited}", inline(&of.agent));
            quote(&mut text, &of.conclusion);
            json!({
                "agent": inline(&of.agent),
                "cites": of.cites,
                "quoted": {"text": clean(&of.conclusion)},
            })
        });
        structured["upstream"] = concluded.collect::<Vec<Value>>().into();
        structured["notice"] = NOTICE.into();
    }
    ToolResult { text, structured }
}

/// Renders the end of a task, with the conclusion that the agent stated.
pub(super) fn finished(done: &FinishedTask, conclusion: Option<&str>) -> ToolResult {
    let mut text = match done.already {
        true => format!("Task {} was finished before; nothing was added.\n", done.task),
        false => format!("Task {} is finished.\n", done.task),
    };
    for credit in &done.credits {
        let _ = writeln!(text, "{}: {:.3} observations were added.", credit.code, credit.amount);
    }
    let codes = |ids: &[String]| -> Vec<String> {
        ids.iter().map(|id| done.codes.get(id).unwrap_or(id).clone()).collect()
    };
    for (what, ids) in [("Dismissed", &done.dismissed), ("Spikes avoided", &done.avoided)] {
        if !ids.is_empty() {
            let _ = writeln!(text, "{what}: {} ({}).", ids.len(), codes(ids).join(", "));
        }
    }
    if !done.unserved.is_empty() {
        let count = done.unserved.len();
        let _ =
            writeln!(text, "{count} of the named entries were not served in it and do not count.");
    }
    let composite = codes(&done.composite);
    if !composite.is_empty() {
        let of = composite.join(", ");
        let _ = writeln!(text, "Composite answer from {of}: say that it is untested as a unit.");
    }
    let uncited: Vec<&str> = conclusion.into_iter().flat_map(|of| done.uncited(of)).collect();
    if !uncited.is_empty() {
        let uncited = uncited.join(", ");
        let _ = writeln!(text, "The conclusion does not cite {uncited}; write [L-7F3KQ2MX].");
    }
    if done.unsearched {
        text.push_str("No search was made in it, so its result rests on no knowledge.\n");
    }
    let structured = json!({
        "task": done.task,
        "already": done.already,
        "credits": done.credits,
        "unsearched": done.unsearched,
        "composite": composite,
    });
    ToolResult { text, structured }
}
