//! What an entry must hold before anything is written.
//!
//! Limits of the record format are checked where records are made; here are the rules about
//! meaning: a title, evidence, types that fit their memory.

use super::command::{NewEntry, Rejection};
use klnode_crdt::claims::{Citation, Relation};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::writer::Claim;

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

/// Refuses a text that would be shown as more than one line.
fn one_line(field: &'static str, text: &str) -> Result<(), Rejection> {
    match text.contains(['\n', '\r', '\u{B}', '\u{C}', '\u{85}', '\u{2028}', '\u{2029}']) {
        true => Err(invalid(field, "has more than one line; the rest belongs into the content")),
        false => Ok(()),
    }
}

/// Refuses an entry that says nothing.
pub fn check_texts(title: &str, content: &str) -> Result<(), Rejection> {
    if title.trim().is_empty() {
        return Err(invalid("title", "is empty; give it one line that says what it is about"));
    }
    one_line("title", title)?;
    if content.trim().is_empty() {
        return Err(invalid("content", "is empty; say what was learned"));
    }
    Ok(())
}

pub(super) fn new_entry(new: &NewEntry) -> Result<(), Rejection> {
    check_texts(&new.title, &new.content)?;
    let is_raw = matches!(new.kind, Kind::Signal | Kind::Friction | Kind::Calibration);
    if is_raw != (new.memory == Memory::Episodic) {
        let fits = if is_raw { "episodic" } else { "semantic or procedural" };
        return Err(invalid(
            "memory",
            format!("is {}, but {} entries are {fits}", new.memory, new.kind.name()),
        ));
    }
    for (at, text) in &new.registers {
        match *at {
            Register::SUB_TYPE => one_of("sub_type", text, new.kind.sub_types())?,
            Register::TITLE | Register::CONTENT | Register::TYPE => {
                return Err(invalid("registers", "name what has a field of its own"));
            }
            _ => register(*at, text)?,
        }
    }
    citations(&new.citations)?;
    evidence(new)
}

/// What an import may say of other entries: that it has to do with them, or comes from them. That it
/// is the same as another, or takes its place, hides the other: that is not for a file to say.
pub(super) fn imported(new: &NewEntry) -> Result<(), Rejection> {
    for claim in &new.claims {
        let Claim::Link(link) = claim else { continue };
        if link.relation == Relation::SAME_AS || link.relation == Relation::SUPERSEDES {
            return Err(invalid(
                "links",
                "say that it is the same as another, or takes its place; an import is related to \
                 others or derived_from them, and `klnode supersede` says the rest",
            ));
        }
    }
    Ok(())
}

/// What an edit must hold.
pub(super) fn claims(claims: &[Claim]) -> Result<(), Rejection> {
    for claim in claims {
        match claim {
            Claim::Set(at, text) => register(*at, text)?,
            Claim::Cite(citation) => citations(std::slice::from_ref(citation))?,
            _ => {}
        }
    }
    Ok(())
}

/// Bytes of a text that is kept beside entries.
const SHORT_BYTES_MAX: usize = 4 * 1024;

/// A note, a query, a name.
pub(super) fn short(field: &'static str, text: &str) -> Result<(), Rejection> {
    if text.len() <= SHORT_BYTES_MAX {
        return Ok(());
    }
    Err(invalid(field, format!("has {} bytes; {SHORT_BYTES_MAX} are allowed", text.len())))
}

fn register(register: Register, text: &str) -> Result<(), Rejection> {
    match register {
        Register::TITLE if text.trim().is_empty() => Err(invalid("title", "is empty")),
        Register::TITLE => one_line("title", text),
        Register::CONTENT if text.trim().is_empty() => Err(invalid("content", "is empty")),
        Register::TYPE => {
            let known: Vec<&str> = Kind::ALL.iter().map(|row| row.1).collect();
            one_of("type", text, &known)
        }
        Register::POLARITY => one_of("polarity", text, &POLARITIES),
        Register::DECAY_CLASS => one_of("decay_class", text, &DECAY_CLASSES),
        Register::OUTCOME => one_of("outcome", text, &OUTCOMES),
        _ => Ok(()),
    }
}

fn citations(citations: &[Citation]) -> Result<(), Rejection> {
    for citation in citations {
        one_of("evidence_type", &citation.evidence_type, &EVIDENCE_TYPES)?;
        if citation.evidence_ref.trim().is_empty() {
            return Err(invalid("evidence_ref", "is empty; name the commit, file or run"));
        }
    }
    Ok(())
}

fn evidence(new: &NewEntry) -> Result<(), Rejection> {
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
