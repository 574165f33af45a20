//! How an entry looks on a terminal.

use crate::api::types::Entry;
use std::fmt::Write;

/// One line: code, status, confidence, title.
pub(super) fn line(entry: &Entry) -> String {
    format!(
        "{}  {:<9}  {:>3.0} %  {}{}\n",
        entry.code,
        entry.status,
        entry.mean * 100.0,
        entry.title,
        if entry.pinned { "  (pinned)" } else { "" },
    )
}

/// Everything.
pub(super) fn whole(entry: &Entry) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<13} {value}");
        }
    };
    put("code", format!("{}  ({})", entry.code, entry.id));
    put("title", entry.title.clone());
    let kind = if entry.kind.is_empty() { "entry" } else { &entry.kind };
    put("type", format!("{kind} in {} ({})", entry.workspace, entry.memory));
    put("tags", entry.tags.join(", "));
    for (name, value) in &entry.registers {
        put(name, value.clone());
    }
    for (name, values) in &entry.sets {
        put(name, values.join("; "));
    }
    for citation in &entry.citations {
        put("evidence", format!("{}:{}", citation.evidence_type, citation.evidence_ref));
    }
    put(
        "confidence",
        format!(
            "{:.0} % from {:.1} observations (alpha {:.2}, beta {:.2})",
            entry.mean * 100.0,
            entry.observations,
            entry.alpha,
            entry.beta,
        ),
    );
    put("status", format!("{}: {}", entry.status, entry.status_reason));
    let distance = match entry.hop {
        Some(0) => "this node".to_owned(),
        Some(hop) => format!("{hop} away"),
        None => "distance unknown".to_owned(),
    };
    if !entry.author.is_empty() {
        put("author", format!("{} ({distance})", entry.author));
    }
    put("contested", entry.contested.join(", "));
    if entry.proposals > 0 {
        put("proposals", entry.proposals.to_string());
    }
    let marks =
        [(entry.pinned, "pinned"), (entry.muted, "muted"), (entry.invalidated, "invalidated")];
    let marks: Vec<&str> = marks.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    put("here", marks.join(", "));
    put("note", entry.note.clone().unwrap_or_default());
    if !entry.content.is_empty() {
        let _ = write!(text, "\n{}\n", entry.content.trim_end());
    }
    text
}
