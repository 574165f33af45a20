//! What an entry must hold before anything is written.
//!
//! Limits of the record format are checked where records are made; here are the rules about
//! meaning: a title, evidence, types that fit their memory, what a finding rests on. An edit is held
//! to those that a new entry is held to.

use super::command::{NewEntry, Rejection};
use super::findings::{DISMISSED, FALSE_POSITIVE_TAG};
use klnode_crdt::claims::{Citation, Relation, TextSet};
use klnode_crdt::kind::Kind;
use klnode_crdt::limits::SET_ELEMENTS_MAX;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::view::{State, View};
use klnode_crdt::writer::Claim;
use klnode_scoring::finding::{Draft, Severity, check};

const EVIDENCE_TYPES: [&str; 8] =
    ["commit", "pr", "doc", "test", "transcript", "file", "url", "run"];
/// The word of whoever wrote the entry: it says where the entry comes from and is never evidence.
const OWN_WORD: &str = "word";
const POLARITIES: [&str; 3] = ["positive", "negative", "neutral"];
const DECAY_CLASSES: [&str; 3] = ["ephemeral", "stable", "permanent"];
/// Any other word would be shown and mean nothing.
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

/// Refuses a text that would be shown as more than one line.
fn one_line(field: &'static str, text: &str) -> Result<(), Rejection> {
    match text.contains(['\n', '\r', '\u{B}', '\u{C}', '\u{85}', '\u{2028}', '\u{2029}']) {
        true => Err(invalid(field, "has more than one line; the rest belongs into the content")),
        false => Ok(()),
    }
}

/// Refuses an entry that says nothing.
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

/// Refuses what an entry says of itself and cannot be so, whatever it rests on: a word that is
/// mistyped is named before evidence is asked for.
pub fn check_said(new: &NewEntry) -> Result<(), Rejection> {
    check_texts(&new.title, &new.content)?;
    for (at, text) in &new.registers {
        match *at {
            Register::TITLE | Register::CONTENT | Register::TYPE => {
                return Err(invalid("registers", "name what has a field of its own"));
            }
            _ => register(*at, text)?,
        }
    }
    of_type(new)
}

pub(super) fn new_entry(new: &NewEntry) -> Result<(), Rejection> {
    check_said(new)?;
    citations(&new.citations)?;
    evidence(new)?;
    match new.kind {
        Kind::Finding => finding(new),
        _ => Ok(()),
    }
}

/// What the type of an entry asks for: the memory, the finer type, the outcome.
fn of_type(new: &NewEntry) -> Result<(), Rejection> {
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
            Register::OUTCOME if new.kind != Kind::Spike => {
                let problem = format!("is `{text}`; only a spike has one");
                return Err(invalid("outcome", problem));
            }
            Register::OUTCOME => one_of("outcome", text, &Kind::OUTCOMES)?,
            _ => {}
        }
    }
    Ok(())
}

/// What a finding must hold, by whatever door it comes. A warning of a false positive says below its
/// text why that was dismissed.
fn finding(new: &NewEntry) -> Result<(), Rejection> {
    let set = |of: TextSet| -> Vec<String> {
        let added = new.claims.iter().filter_map(|claim| match claim {
            Claim::Add(set, text) if *set == of => Some(text.clone()),
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
    // An entry says neither how grave it is nor how sure somebody was.
    let (severity, confidence) = (Severity::Info.name(), 1.0);
    let draft = Draft { text, severity, confidence, anchors: &anchors, verify: &verify };
    check(&draft).map_err(|problem| {
        let field = if problem.field == "text" { "content" } else { problem.field };
        invalid(field, problem.problem)
    })
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

/// Whether an edit may bring an entry under other rules, or break those of findings.
pub(super) fn may_misfit(claims: &[Claim]) -> bool {
    let of_findings = |claim: &Claim| {
        matches!(
            claim,
            Claim::Set(Register::CONTENT, _)
                | Claim::Add(TextSet::ANCHORS | TextSet::VERIFY_STEPS, _)
                | Claim::Withdraw(TextSet::ANCHORS | TextSet::VERIFY_STEPS, _)
        )
    };
    is_retyping(claims) || claims.iter().any(of_findings)
}

fn is_retyping(claims: &[Claim]) -> bool {
    let is_of_type = |claim: &Claim| {
        matches!(claim, Claim::Set(Register::TYPE | Register::SUB_TYPE | Register::OUTCOME, _))
    };
    claims.iter().any(is_of_type)
}

/// Refuses an edit that makes of an entry what could not be written anew. A finding that did not keep
/// the rule before, as one that is older than the rule, is mended one edit after the other.
pub(super) fn edit(view: &View, claims: &[Claim]) -> Result<(), Rejection> {
    let Some(after) = edited(view, claims) else { return Ok(()) };
    if is_retyping(claims) {
        of_type(&after)?;
        evidence(&after)?;
    }
    let is_unfit = |before: NewEntry| before.kind == Kind::Finding && finding(&before).is_err();
    match after.kind {
        Kind::Finding if !edited(view, &[]).is_some_and(is_unfit) => finding(&after),
        _ => Ok(()),
    }
}

/// An entry as it would be written anew after an edit; nothing where it shows no text, or is of a type
/// that is not known here.
pub fn edited(view: &View, claims: &[Claim]) -> Option<NewEntry> {
    let origin = view.origin.as_ref().filter(|_| view.state == State::Live)?;
    let text = |of: Register| {
        let set = claims.iter().rev().find_map(|claim| match claim {
            Claim::Set(at, text) if *at == of => Some(text.as_str()),
            _ => None,
        });
        set.or_else(|| view.text(of)).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let kind = Kind::parse(&text(Register::TYPE)?)?;
    let registers = [Register::SUMMARY, Register::SUB_TYPE, Register::POLARITY, Register::OUTCOME];
    let sets = [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS];
    let cited = claims.iter().filter_map(|claim| match claim {
        Claim::Cite(citation) => Some(citation),
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

/// A set as it would be after an edit. What others say too, nobody withdraws for them.
fn elements(view: &View, claims: &[Claim], set: TextSet) -> Vec<Claim> {
    let is_withdrawn = |text: &str| claims.contains(&Claim::Withdraw(set, text.to_owned()));
    let held = view.texts.get(&set).into_iter().flatten();
    let held = held.filter(|(text, by)| by.len() > 1 || !is_withdrawn(text));
    let mut texts: Vec<&String> = held.map(|(text, _)| text).collect();
    for claim in claims {
        if let Claim::Add(at, text) = claim
            && *at == set
            && !texts.contains(&text)
        {
            texts.push(text);
        }
    }
    texts.into_iter().take(SET_ELEMENTS_MAX).map(|text| Claim::Add(set, text.clone())).collect()
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
        // An empty one takes it away.
        Register::OUTCOME if !text.is_empty() => one_of("outcome", text, &Kind::OUTCOMES),
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
