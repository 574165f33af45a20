//! Validation of entries and edits before anything is written.
//!
//! The record builder checks the limits of the record format. This module checks meaning: title,
//! evidence, a type that fits the memory, and the anchors of a finding. An edit must satisfy the
//! same rules as a new entry.

use super::command::{NewEntry, Rejection};
use super::findings::{DISMISSED, FALSE_POSITIVE_TAG};
use klnode_crdt::claims::{Citation, Relation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::limits::SET_ELEMENTS_MAX;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_scoring::finding_validation::{FindingDraft, FindingSeverity, check};

const EVIDENCE_TYPES: [&str; 8] =
    ["commit", "pr", "doc", "test", "transcript", "file", "url", "run"];
/// Evidence type for a bare statement of the entry's author. It tells where the entry comes from
/// and never counts as evidence.
const OWN_WORD: &str = "word";
const POLARITIES: [&str; 3] = ["positive", "negative", "neutral"];
const DECAY_CLASSES: [&str; 3] = ["ephemeral", "stable", "permanent"];
/// Other values would be displayed but have no effect.
const FLAGS: [&str; 2] = ["true", "false"];

fn invalid(field: &'static str, problem: impl Into<String>) -> Rejection {
    Rejection::Invalid { field, problem: problem.into() }
}

fn one_of(field: &'static str, value: &str, known: &[&str]) -> Result<(), Rejection> {
    if known.contains(&value) {
        return Ok(());
    }
    Err(invalid(field, format!("is `{value}`; it must be one of {}", known.join(", "))))
}

/// Refuses a text that would be displayed on more than one line.
fn one_line(field: &'static str, text: &str) -> Result<(), Rejection> {
    match text.contains(['\n', '\r', '\u{B}', '\u{C}', '\u{85}', '\u{2028}', '\u{2029}']) {
        true => Err(invalid(field, "has more than one line; the rest belongs into the content")),
        false => Ok(()),
    }
}

/// Refuses an empty title or content.
fn check_texts(title: &str, content: &str) -> Result<(), Rejection> {
    if title.trim().is_empty() {
        return Err(invalid("title", "is empty; give it one line that says what it is about"));
    }
    one_line("title", title)?;
    if content.trim().is_empty() {
        return Err(invalid("content", "is empty; say what was learned"));
    }
    Ok(())
}

/// Checks the fields of a new entry except for its evidence, so that a caller hears about a
/// mistyped value before it is asked for evidence.
pub fn check_fields(new: &NewEntry) -> Result<(), Rejection> {
    check_texts(&new.title, &new.content)?;
    for (at, text) in &new.registers {
        match *at {
            Register::TITLE | Register::CONTENT | Register::TYPE => {
                return Err(invalid(
                    "registers",
                    "must not set title, content or type; these have their own fields",
                ));
            }
            _ => register(*at, text)?,
        }
    }
    check_type(new)
}

/// Checks the entry and the first text of a new document.
pub(super) fn new_document(new: &NewEntry, text: &str) -> Result<(), Rejection> {
    if new.kind != EntryType::Playbook {
        return Err(invalid("type", "must be playbook"));
    }
    check_fields(&NewEntry { content: text.to_owned(), ..new.clone() })?;
    citations(&new.citations)
}

pub(super) fn new_entry(new: &NewEntry) -> Result<(), Rejection> {
    check_fields(new)?;
    citations(&new.citations)?;
    evidence(new)?;
    match new.kind {
        EntryType::Finding => finding(new),
        _ => Ok(()),
    }
}

/// Checks memory, sub-type and outcome against the entry type.
fn check_type(new: &NewEntry) -> Result<(), Rejection> {
    if new.kind.is_raw() != (new.memory == Memory::Episodic) {
        let fits = if new.kind.is_raw() { "episodic" } else { "semantic or procedural" };
        return Err(invalid(
            "memory",
            format!("is {}, but {} entries are {fits}", new.memory, new.kind.name()),
        ));
    }
    for (at, text) in &new.registers {
        match *at {
            Register::SUB_TYPE if new.kind.sub_types().is_empty() => {
                let problem = format!("is `{text}`; {} entries have none", new.kind.name());
                return Err(invalid("sub_type", problem));
            }
            Register::SUB_TYPE => one_of("sub_type", text, new.kind.sub_types())?,
            Register::OUTCOME if new.kind != EntryType::Spike => {
                let problem = format!("is `{text}`; only a spike has one");
                return Err(invalid("outcome", problem));
            }
            Register::OUTCOME => one_of("outcome", text, &EntryType::OUTCOMES)?,
            _ => {}
        }
    }
    Ok(())
}

/// Checks a finding, whichever command creates it. A false-positive warning carries the reason for
/// the dismissal below the text; that part is not checked.
fn finding(new: &NewEntry) -> Result<(), Rejection> {
    let set = |of: TextSet| -> Vec<String> {
        let added = new.claims.iter().filter_map(|claim| match claim {
            ClaimEdit::Add(set, text) if *set == of => Some(text.clone()),
            _ => None,
        });
        added.collect()
    };
    let is_false_positive = set(TextSet::TAGS).iter().any(|tag| tag == FALSE_POSITIVE_TAG);
    let text = match new.content.split_once(DISMISSED) {
        Some((text, _)) if is_false_positive => text,
        _ => new.content.as_str(),
    };
    let (anchors, verify) = (set(TextSet::ANCHORS), set(TextSet::VERIFY_STEPS));
    // An entry has neither severity nor confidence, so valid defaults stand in.
    let (severity, confidence) = (FindingSeverity::Info.name(), 1.0);
    let draft = FindingDraft { text, severity, confidence, anchors: &anchors, verify: &verify };
    check(&draft).map_err(|problem| {
        let field = if problem.field == "text" { "content" } else { problem.field };
        invalid(field, problem.problem)
    })
}

/// Refuses links that hide other entries. An import may declare relatedness or derivation, but not
/// that it duplicates or supersedes another entry.
pub(super) fn check_imported_links(new: &NewEntry) -> Result<(), Rejection> {
    for claim in &new.claims {
        let ClaimEdit::Link(link) = claim else { continue };
        if link.relation == Relation::SAME_AS || link.relation == Relation::SUPERSEDES {
            return Err(invalid(
                "links",
                "contain same_as or supersedes; an import may only link with related or \
                 derived_from, so supersede the other entry after the import",
            ));
        }
    }
    Ok(())
}

/// Checks the values that an edit sets.
pub(super) fn claims(claims: &[ClaimEdit]) -> Result<(), Rejection> {
    for claim in claims {
        match claim {
            ClaimEdit::Set(at, text) => register(*at, text)?,
            ClaimEdit::Cite(citation) => citations(std::slice::from_ref(citation))?,
            _ => {}
        }
    }
    Ok(())
}

/// Whether an edit may change which rules apply to the entry, or break those for findings.
pub(super) fn may_break_rules(claims: &[ClaimEdit]) -> bool {
    let of_findings = |claim: &ClaimEdit| {
        matches!(
            claim,
            ClaimEdit::Set(Register::CONTENT, _)
                | ClaimEdit::Add(TextSet::ANCHORS | TextSet::VERIFY_STEPS, _)
                | ClaimEdit::Withdraw(TextSet::ANCHORS | TextSet::VERIFY_STEPS, _)
        )
    };
    is_retyping(claims) || claims.iter().any(of_findings)
}

fn is_retyping(claims: &[ClaimEdit]) -> bool {
    let is_of_type = |claim: &ClaimEdit| {
        matches!(claim, ClaimEdit::Set(Register::TYPE | Register::SUB_TYPE | Register::OUTCOME, _))
    };
    claims.iter().any(is_of_type)
}

/// Refuses an edit whose result could not be written as a new entry. A finding that already broke
/// the rule, for example because it is older than the rule, may be repaired in several edits.
pub(super) fn edit(view: &EntryView, claims: &[ClaimEdit]) -> Result<(), Rejection> {
    let Some(after) = edited_entry(view, claims) else { return Ok(()) };
    if is_retyping(claims) {
        check_type(&after)?;
        evidence(&after)?;
    }
    let is_unfit =
        |before: NewEntry| before.kind == EntryType::Finding && finding(&before).is_err();
    match after.kind {
        EntryType::Finding if !edited_entry(view, &[]).is_some_and(is_unfit) => finding(&after),
        _ => Ok(()),
    }
}

/// The entry after an edit, as if it were new. `None` if the entry has no visible text or an
/// unknown type.
pub fn edited_entry(view: &EntryView, claims: &[ClaimEdit]) -> Option<NewEntry> {
    let origin = view.origin.as_ref().filter(|_| view.state == State::Live)?;
    let text = |of: Register| {
        let set = claims.iter().rev().find_map(|claim| match claim {
            ClaimEdit::Set(at, text) if *at == of => Some(text.as_str()),
            _ => None,
        });
        set.or_else(|| view.text(of)).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let kind = EntryType::parse(&text(Register::TYPE)?)?;
    let registers = [Register::SUMMARY, Register::SUB_TYPE, Register::POLARITY, Register::OUTCOME];
    let sets = [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS];
    let cited = claims.iter().filter_map(|claim| match claim {
        ClaimEdit::Cite(citation) => Some(citation),
        _ => None,
    });
    Some(NewEntry {
        workspace: origin.workspace(),
        memory: origin.memory(),
        kind,
        title: text(Register::TITLE).unwrap_or_default(),
        content: text(Register::CONTENT).unwrap_or_default(),
        registers: registers.into_iter().filter_map(|at| Some((at, text(at)?))).collect(),
        claims: sets.into_iter().flat_map(|set| elements(view, claims, set)).collect(),
        citations: cited.chain(view.citations.keys()).take(SET_ELEMENTS_MAX).cloned().collect(),
        source: None,
    })
}

/// A set after an edit. An element that other authors added too stays when this author withdraws
/// it.
fn elements(view: &EntryView, claims: &[ClaimEdit], set: TextSet) -> Vec<ClaimEdit> {
    let is_withdrawn = |text: &str| claims.contains(&ClaimEdit::Withdraw(set, text.to_owned()));
    let held = view.texts.get(&set).into_iter().flatten();
    let held = held.filter(|(text, by)| by.len() > 1 || !is_withdrawn(text));
    let mut texts: Vec<&String> = held.map(|(text, _)| text).collect();
    for claim in claims {
        if let ClaimEdit::Add(at, text) = claim
            && *at == set
            && !texts.contains(&text)
        {
            texts.push(text);
        }
    }
    texts.into_iter().take(SET_ELEMENTS_MAX).map(|text| ClaimEdit::Add(set, text.clone())).collect()
}

/// Most bytes of a note, a query or a label.
const SHORT_BYTES_MAX: usize = 4 * 1024;

/// Refuses a note, query or label that is too long.
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
            let known: Vec<&str> = EntryType::ALL.iter().map(|row| row.1).collect();
            one_of("type", text, &known)
        }
        Register::POLARITY => one_of("polarity", text, &POLARITIES),
        Register::DECAY_CLASS => one_of("decay_class", text, &DECAY_CLASSES),
        // An empty text clears the register.
        Register::OUTCOME if !text.is_empty() => one_of("outcome", text, &EntryType::OUTCOMES),
        Register::FAILED_WORK if !text.is_empty() => one_of("failed_work", text, &FLAGS),
        Register::THREAD => one_line("thread", text),
        _ => Ok(()),
    }
}

fn citations(citations: &[Citation]) -> Result<(), Rejection> {
    for citation in citations {
        if !(citation.is_context && citation.evidence_type == OWN_WORD) {
            one_of("evidence_type", &citation.evidence_type, &EVIDENCE_TYPES)?;
        }
        if citation.evidence_ref.trim().is_empty() {
            return Err(invalid("evidence_ref", "is empty; name the commit, file or run"));
        }
    }
    Ok(())
}

fn evidence(new: &NewEntry) -> Result<(), Rejection> {
    let needs_evidence = new.memory != Memory::Episodic;
    let has_evidence = match new.kind {
        EntryType::Norm => new.citations.iter().any(|citation| !citation.is_context),
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
