//! Promoting: a new entry is made of one that is there, in another place or another memory.
//!
//! It is the only way from episodic to semantic and procedural. What was observed of the source stays
//! with it; the new entry leads there by a link.

use super::resolve_for_change;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Path};
use crate::api::person::Approval;
use crate::api::places::predicates;
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::api::translate;
use crate::api::types::{Promote, Promoted};
use crate::engine::{self, Command, NewEntry, Receipt, Rejection, SourceKey};
use crate::query::{Bindings, Found, Identity, Reading, recorded, tellable};
use axum::extract::State;
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::entry::Entry;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::{self, Kind as EntryKind};
use klnode_crdt::limits::SET_ELEMENTS_MAX;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::Record;
use klnode_crdt::view::{Entitlement, State as Shown, View};
use klnode_crdt::writer::Claim;
use std::collections::BTreeSet;

/// What goes along with the text.
const SETS: [TextSet; 4] =
    [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS, TextSet::DEPENDS_ON];
const REGISTERS: [Register; 4] =
    [Register::SUMMARY, Register::POLARITY, Register::DECAY_CLASS, Register::FAILED_WORK];

/// Promotes an entry: to its workspace out of a thread, or to another workspace. To procedural only
/// where this node has no person's key.
#[utoipa::path(post, path = "/v1/entries/{entry}/promote", request_body = Promote,
    responses((status = 200, body = Promoted)))]
pub(super) async fn promote(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Promote>,
) -> Answered<Promoted> {
    let approval = service.person.unsigned();
    promoted(service, caller, &entry, ask, approval).await
}

/// Promotes an entry to procedural: the person signs for this entry and this place.
#[utoipa::path(post, path = "/v1/entries/{entry}/promote/procedural", request_body = Promote,
    responses((status = 200, body = Promoted)))]
pub(super) async fn promote_to_procedural(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Promote>,
) -> Answered<Promoted> {
    if let Some(memory) = ask.memory.as_deref().filter(|memory| *memory != "procedural") {
        let message = format!("promote to procedural: the memory asked for is `{memory}`");
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let ask = Promote { memory: Some("procedural".into()), ..ask };
    promoted(service, caller, &entry, ask, Approval::Given).await
}

async fn promoted(
    service: Service,
    caller: Caller,
    entry: &str,
    ask: Promote,
    approval: Approval,
) -> Answered<Promoted> {
    let source = resolve_for_change(&service, entry).await?;
    let working = service.clone();
    let (new, workspace) = apart(move |_| plan(&working, source, &ask, approval)).await?;
    let (kind, memory) = (new.kind, new.memory);
    let is_signed = memory == Memory::Procedural && approval == Approval::Given;
    let approved_by = if is_signed { service.person.author()? } else { None };
    let promotion = engine::Promotion { new, source, approved_by };
    let receipt = service.submit(caller, Command::Promote(Box::new(promotion))).await?;
    let (entry, known) = match receipt {
        Receipt::Created(entry) => (entry, false),
        Receipt::Known(entry) => (entry, true),
        _ => return Err(ApiError::new(Kind::Failed, "tell which entry was created", None)),
    };
    Ok(Answer(Promoted {
        id: entry.to_string(),
        code: kind.code(entry),
        source: source.to_string(),
        workspace,
        memory: memory.to_string(),
        approved_by: approved_by.map(|key| key.to_string()),
        known,
    }))
}

fn invalid(message: String) -> ApiError {
    ApiError::new(Kind::Invalid, message, None)
}

/// The entry that an entry is promoted to, and the name of its workspace.
fn plan(
    service: &Service,
    source: EntryId,
    ask: &Promote,
    approval: Approval,
) -> Result<(NewEntry, String), ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let found = reading.read(source)?;
    let code = found.as_ref().map_or_else(|| kind::code_digits(source), Found::code);
    let found = found.filter(|found| found.view.state == Shown::Live);
    let origin = found.as_ref().and_then(|found| found.view.origin.clone());
    let (Some(found), Some(origin)) = (found, origin) else {
        return Err(invalid(format!("promote entry {code}: it has no text that stands")));
    };
    let target = match ask.to.as_deref() {
        Some(name) => find_workspace(&reading.society, name)?,
        None => origin.workspace(),
    };
    let (memory, kind) = becomes(&found, origin.memory(), ask)?;
    let is_threaded = found.view.text(Register::THREAD).is_some_and(|name| !name.is_empty());
    if target == origin.workspace() && memory == origin.memory() && !is_threaded {
        let name = reading.society.name(target);
        let message = format!("promote entry {code}: it is in `{name}` already, and in no thread");
        let hint = "name another workspace with --to, or another memory with --memory";
        return Err(ApiError::new(Kind::Invalid, message, Some(hint)));
    }
    if !approval.covers(memory) {
        let message = "promote to procedural without the person behind this node";
        let hint = "`klnode promote ID --memory procedural` asks for the passphrase";
        return Err(ApiError::new(Kind::Refused, message, Some(hint)));
    }
    let new = remade(service, &found, (target, memory, kind), ask)?;
    let needs_proof = origin.memory() == Memory::Episodic || memory == Memory::Procedural;
    if needs_proof && new.citations.iter().all(|citation| citation.is_context) {
        let message = format!("promote entry {code}: citations are missing; it needs evidence");
        let hint = "say what it rests on, such as --evidence commit:1a2b3c";
        return Err(ApiError::new(Kind::Invalid, message, Some(hint)));
    }
    if kind == EntryKind::Finding {
        may_be_finding(&new)?;
    }
    if kind == EntryKind::Norm {
        let opposing = reading.opposing_norms(&service.index, &found.view, target)?;
        pass_gate("promote", &reading, &opposing, (Some(source), target))?;
    }
    Ok((new, reading.society.name(target)))
}

/// The memory and the type that an entry is promoted to.
fn becomes(found: &Found, memory: Memory, ask: &Promote) -> Result<(Memory, EntryKind), ApiError> {
    let is_raw = memory == Memory::Episodic;
    let into = match ask.memory.as_deref() {
        None if is_raw => Memory::Semantic,
        None => memory,
        Some(name) => {
            Memory::parse(name).filter(|memory| *memory != Memory::Episodic).ok_or_else(|| {
                invalid(format!("promote to `{name}`: it must be one of semantic, procedural"))
            })?
        }
    };
    let of_entry = || found.view.kind();
    let kind = match ask.kind.as_deref() {
        Some(name) => Some(EntryKind::parse(name).ok_or_else(|| {
            let known: Vec<&str> = EntryKind::ALL.iter().map(|row| row.1).collect();
            invalid(format!("promote to type `{name}`: it must be one of {}", known.join(", ")))
        })?),
        None if is_raw => None,
        None => of_entry(),
    };
    Ok((into, kind.unwrap_or(EntryKind::Lesson)))
}

/// The text of an entry and what goes along with it, as this node's own new entry. Out of any thread.
fn remade(
    service: &Service,
    found: &Found,
    (workspace, memory, kind): (WorkspaceId, Memory, EntryKind),
    ask: &Promote,
) -> Result<NewEntry, ApiError> {
    let (view, by, now) = (&found.view, service.author.to_string(), (service.now)());
    let text = |register| view.text(register).map(str::to_owned);
    let mut registers: Vec<(Register, String)> =
        REGISTERS.iter().filter_map(|at| Some((*at, text(*at)?))).collect();
    // A finer type is one of the type.
    let sub_type = text(Register::SUB_TYPE);
    let sub_type = sub_type.filter(|name| kind.sub_types().contains(&name.as_str()));
    registers.extend(sub_type.map(|name| (Register::SUB_TYPE, name)));
    // So is an outcome that of a spike.
    let outcome = text(Register::OUTCOME);
    let outcome = outcome.filter(|name| kind == EntryKind::Spike && !name.is_empty());
    registers.extend(outcome.map(|name| (Register::OUTCOME, name)));
    let mut claims = Vec::new();
    for set in SETS {
        let elements = view.texts.get(&set).into_iter().flat_map(|of| of.keys());
        let elements = elements.take(SET_ELEMENTS_MAX);
        claims.extend(elements.map(|element| Claim::Add(set, element.clone())));
    }
    // Predicates keep their repositories, as far as the target workspace may learn of them.
    let (snapshot, texts) = (service.snapshot()?, predicates(&claims));
    let society = service.society(&snapshot)?;
    let carried = |identity: &Identity| tellable(&snapshot, &society, identity, workspace).ok()?;
    let elements = Bindings::of(view).carried_over(texts, carried);
    claims.extend(elements.into_iter().take(SET_ELEMENTS_MAX).map(recorded));
    claims.push(Claim::Link(Link { relation: Relation::DERIVED_FROM, to: found.entry }));
    let given = translate::citations(&ask.evidence, &by, now)?;
    let held = view.citations.keys().cloned();
    let held = held.map(|of| Citation { cited_by: by.clone(), cited_at: now, ..of });
    let mut citations: Vec<Citation> = Vec::new();
    for citation in given.into_iter().chain(held) {
        if !citations.contains(&citation) && citations.len() < SET_ELEMENTS_MAX {
            citations.push(citation);
        }
    }
    Ok(NewEntry {
        workspace,
        memory,
        kind,
        title: text(Register::TITLE).unwrap_or_default(),
        content: text(Register::CONTENT).unwrap_or_default(),
        registers,
        claims,
        citations,
        source: None,
    })
}

/// Says no to a new entry that promoting would not make: a procedural one without the person's word,
/// a norm beside one that says the opposite.
pub(super) fn may_be_written(
    service: &Service,
    new: &NewEntry,
    approval: Approval,
) -> Result<(), ApiError> {
    if !approval.covers(new.memory) {
        let message = "write a procedural entry without the person behind this node";
        let hint = "`klnode add --memory procedural` asks for the passphrase";
        return Err(ApiError::new(Kind::Refused, message, Some(hint)));
    }
    may_be_norm(service, None, new)
}

/// Says no to a norm beside one that says the opposite; `source` is the entry that is edited into it.
pub(super) fn may_be_norm(
    service: &Service,
    source: Option<EntryId>,
    new: &NewEntry,
) -> Result<(), ApiError> {
    if new.kind != EntryKind::Norm {
        return Ok(());
    }
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let shown = as_shown(service, new)?;
    let opposing = reading.opposing_norms(&service.index, &shown, new.workspace)?;
    pass_gate("write", &reading, &opposing, (source, new.workspace))
}

/// Says what a finding lacks, and what mends it: it may be older than the rule.
fn may_be_finding(new: &NewEntry) -> Result<(), ApiError> {
    match rehearsed(new) {
        Err(wrong @ Rejection::Invalid { .. }) => {
            let hint = "`klnode edit` mends it: --content, --anchor, --verify";
            Err(ApiError::new(Kind::Invalid, wrong.to_string(), Some(hint)))
        }
        // Anything else the writer tells.
        _ => Ok(()),
    }
}

/// The record of a new entry, under a name that is nobody's, like the key it is signed with.
fn rehearsed(new: &NewEntry) -> Result<Record, Rejection> {
    engine::rehearse(new, &SourceKey { format: "new".into(), key: "new".into() })
}

/// A new entry as it would be shown.
fn as_shown(service: &Service, new: &NewEntry) -> Result<View, ApiError> {
    let record = rehearsed(new)?;
    let entitlement = Entitlement { mine: [record.author()].into(), members: BTreeSet::new() };
    Ok(Entry::assemble([&record].into_iter()).view((service.now)(), &entitlement))
}

/// A norm does not come in beside one that says the opposite.
fn pass_gate(
    verb: &str,
    reading: &Reading<'_>,
    opposing: &[Found],
    (source, target): (Option<EntryId>, WorkspaceId),
) -> Result<(), ApiError> {
    let others = opposing.iter().filter(|other| Some(other.entry) != source);
    let codes: Vec<String> = others.map(Found::code).collect();
    if codes.is_empty() {
        return Ok(());
    }
    let name = reading.society.name(target);
    let message = format!("{verb} to `{name}`: {} there says the opposite", codes.join(", "));
    let hint = "settle which of them holds: edit, archive or supersede the other first";
    Err(ApiError::new(Kind::Refused, message, Some(hint)))
}
