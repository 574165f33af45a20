//! What an entry must hold before anything is written.
//!
//! Limits of the record format are checked where records are made; here are the rules about
//! meaning: a title, evidence, types that fit their memory.

use super::command::{NewEntry, Rejection};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;

const EVIDENCE_TYPES: [&str; 8] =
    ["commit", "pr", "doc", "test", "transcript", "file", "url", "run"];
const POLARITIES: [&str; 3] = ["positive", "negative", "neutral"];
const DECAY_CLASSES: [&str; 3] = ["ephemeral", "stable", "permanent"];
const OUTCOMES: [&str; 4] = ["confirmed", "rejected", "partial", "inconclusive"];

fn invalid(field: &'static str, problem: impl Into<String>) -> Rejection {
    Rejection::Invalid { field, problem: problem.into() }
}

fn one_of(field: &'static str, value: &str, known: &[&str]) -> Result<(), Rejection> {
    if known.contains(&value) {
        return Ok(());
    }
    Err(invalid(field, format!("is `{value}`; it must be one of {}", known.join(", "))))
}

pub(super) fn new_entry(new: &NewEntry) -> Result<(), Rejection> {
    if new.title.trim().is_empty() {
        return Err(invalid("title", "is empty; give it one line that says what it is about"));
    }
    if new.content.trim().is_empty() {
        return Err(invalid("content", "is empty"));
    }
    let is_raw = matches!(new.kind, Kind::Signal | Kind::Friction | Kind::Calibration);
    if is_raw != (new.memory == Memory::Episodic) {
        let fits = if is_raw { "episodic" } else { "semantic or procedural" };
        return Err(invalid(
            "memory",
            format!("is {}, but {} entries are {fits}", new.memory, new.kind.name()),
        ));
    }
    for (register, text) in &new.registers {
        match *register {
            Register::SUB_TYPE => one_of("sub_type", text, new.kind.sub_types())?,
            Register::POLARITY => one_of("polarity", text, &POLARITIES)?,
            Register::DECAY_CLASS => one_of("decay_class", text, &DECAY_CLASSES)?,
            Register::OUTCOME => one_of("outcome", text, &OUTCOMES)?,
            _ => {}
        }
    }
    citations(new)
}

fn citations(new: &NewEntry) -> Result<(), Rejection> {
    for citation in &new.citations {
        one_of("evidence_type", &citation.evidence_type, &EVIDENCE_TYPES)?;
        if citation.evidence_ref.trim().is_empty() {
            return Err(invalid("evidence_ref", "is empty; name the commit, file or run"));
        }
    }
    let needs_evidence = new.memory != Memory::Episodic;
    let has_evidence = match new.kind {
        Kind::Norm => new.citations.iter().any(|citation| !citation.is_context),
        _ => !new.citations.is_empty(),
    };
    if needs_evidence && !has_evidence {
        return Err(invalid(
            "citations",
            format!("are missing; a {} entry needs evidence, such as commit:1a2b3c", new.memory),
        ));
    }
    Ok(())
}
