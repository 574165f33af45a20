//! Promotion: creates a new entry from an existing one, in another workspace or memory.
//!
//! It is the only way from episodic to semantic and procedural. The observations of the source stay
//! with it; the new entry links to it.

use super::resolve_for_change;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::convert::peers::find_workspace;
use crate::disclosure_check;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path};
use crate::new_entry_defaults::predicates;
use crate::norm_check::{check_norm, check_opposing, dry_run_record};
use crate::person_auth::PersonApproval;
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{Promote, PromotionResult};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::{self, EntryType as EntryKind};
use klnode_crdt::entry_view::State as Shown;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::limits::SET_ELEMENTS_MAX;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::{self, Command, NewEntry, Receipt, Rejection};
use klnode_git::RepositoryIdentity;
use klnode_query::{AssessedEntry, Bindings, complaint, recorded, tellable};

/// Sets and registers that are copied with the text.
const SETS: [TextSet; 4] =
    [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS, TextSet::DEPENDS_ON];
const REGISTERS: [Register; 4] =
    [Register::SUMMARY, Register::POLARITY, Register::DECAY_CLASS, Register::FAILED_WORK];

/// Maximum length of the reason for an approval, in bytes.
const REASON_BYTES_MAX: usize = 500;

/// Promotes an entry out of its thread, or to another workspace or memory. If this node has a
/// person's key, promotion to procedural is rejected.
#[utoipa::path(post, path = "/v1/entries/{entry}/promote", request_body = Promote,
    responses((status = 200, body = PromotionResult)))]
pub(super) async fn promote(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Promote>,
) -> ApiResult<PromotionResult> {
    let approval = service.person.unsigned_approval();
    promote_entry(service, caller, &entry, ask, approval).await
}

/// Promotes an entry, as the person behind this node approves. Episodic entries need it if there is
/// a person's key.
#[utoipa::path(post, path = "/v1/entries/{entry}/promote/approved", request_body = Promote,
    responses((status = 200, body = PromotionResult)))]
pub(super) async fn promote_approved(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Promote>,
) -> ApiResult<PromotionResult> {
    promote_entry(service, caller, &entry, ask, PersonApproval::Given).await
}

/// Promotes an entry to procedural. The person signs for this entry and its target.
#[utoipa::path(post, path = "/v1/entries/{entry}/promote/procedural", request_body = Promote,
    responses((status = 200, body = PromotionResult)))]
pub(super) async fn promote_to_procedural(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Promote>,
) -> ApiResult<PromotionResult> {
    if let Some(memory) = ask.memory.as_deref().filter(|memory| *memory != "procedural") {
        let message = format!("This path promotes to procedural only, but memory is `{memory}`.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let ask = Promote { memory: Some("procedural".into()), ..ask };
    promote_entry(service, caller, &entry, ask, PersonApproval::Given).await
}

async fn promote_entry(
    service: Service,
    caller: Caller,
    entry: &str,
    ask: Promote,
    approval: PersonApproval,
) -> ApiResult<PromotionResult> {
    let source = resolve_for_change(&service, entry).await?;
    let reason = approval_reason(ask.approve.as_deref())?;
    let working = service.clone();
    let planned = run_blocking(move |_| plan(&working, source, &ask, approval)).await?;
    let PlannedCopy { new, workspace, is_of_raw } = planned;
    let (kind, memory) = (new.kind, new.memory);
    let needs_approval = memory == Memory::Procedural || is_of_raw;
    let is_signed = needs_approval && approval == PersonApproval::Given;
    let approved_by = if is_signed { service.person.author()? } else { None };
    let promotion = klnode_engine::Promotion { new, source, approved_by, reason };
    let receipt = service.submit(caller, Command::Promote(Box::new(promotion))).await?;
    let (entry, known) = match receipt {
        Receipt::Created(entry) => (entry, false),
        Receipt::Known(entry) => (entry, true),
        _ => {
            return Err(ApiError::new(
                ErrorKind::Failed,
                "The id of the new entry is unknown.",
                None,
            ));
        }
    };
    Ok(ApiReply(PromotionResult {
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
    ApiError::new(ErrorKind::Invalid, message, None)
}

/// The reason of an approval, which the ledger keeps.
fn approval_reason(given: Option<&str>) -> Result<Option<String>, ApiError> {
    let Some(reason) = given.map(str::trim) else { return Ok(None) };
    if reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.contains(char::is_control) {
        return Err(invalid(format!(
            "The reason of the approval must have 1 to {REASON_BYTES_MAX} bytes, on one line."
        )));
    }
    match complaint("reason", reason) {
        Some(why) => Err(invalid(why)),
        None => Ok(Some(reason.to_owned())),
    }
}

/// Rejects a promotion out of episodic memory without an approval: the person's signature, or a
/// reason if there is no person's key.
fn check_approval(
    service: &Service,
    code: &str,
    ask: &Promote,
    approval: PersonApproval,
) -> Result<(), ApiError> {
    let (why, hint) = match (service.person.is_absent(), approval) {
        (true, _) if ask.approve.is_some() => return Ok(()),
        (false, PersonApproval::Given) => return Ok(()),
        (true, _) => (
            "needs an approval with a reason",
            "Read the entry, then run the command again with --approve REASON.",
        ),
        (false, PersonApproval::Unasked) => (
            "needs the person behind this node",
            "Run the command again with --approve REASON and enter the passphrase.",
        ),
    };
    let message = format!(
        "Entry {code} was not promoted: directional flow violation: a promotion out of episodic \
         memory {why}."
    );
    Err(ApiError::new(ErrorKind::Refused, message, Some(hint)))
}

/// The new entry of a promotion.
struct PlannedCopy {
    new: NewEntry,
    /// The name of the new entry's workspace.
    workspace: String,
    /// Whether the source is episodic.
    is_of_raw: bool,
}

/// Plans the new entry of a promotion.
fn plan(
    service: &Service,
    source: EntryId,
    ask: &Promote,
    approval: PersonApproval,
) -> Result<PlannedCopy, ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let found = reading.read(source)?;
    let code = found.as_ref().map_or_else(|| entry_type::code_digits(source), AssessedEntry::code);
    let found = found.filter(|found| found.view.state == Shown::Live);
    let origin = found.as_ref().and_then(|found| found.view.origin.clone());
    let (Some(found), Some(origin)) = (found, origin) else {
        return Err(invalid(format!("Entry {code} was not promoted: it has no live text.")));
    };
    let target = match ask.to.as_deref() {
        Some(name) => find_workspace(&reading.membership, name)?,
        None => origin.workspace(),
    };
    let (memory, kind) = target_memory_and_type(&found, origin.memory(), ask)?;
    let is_threaded = found.view.text(Register::THREAD).is_some_and(|name| !name.is_empty());
    if target == origin.workspace() && memory == origin.memory() && !is_threaded {
        let name = reading.membership.name(target);
        let message = format!("Entry {code} is already in `{name}` and in no thread.");
        let hint = "Name another workspace with --workspace, or another memory with --memory.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    if !approval.covers(memory) {
        let message = "Promotion to procedural needs the person behind this node.";
        let hint = "Run `klnode add --from ID --memory procedural` and enter the passphrase.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
    }
    let new = copy_entry(service, &found, (target, memory, kind), ask)?;
    let needs_proof = origin.memory() == Memory::Episodic || memory == Memory::Procedural;
    if needs_proof && new.citations.iter().all(|citation| citation.is_context) {
        let why = match origin.memory() {
            Memory::Episodic => {
                "directional flow violation: an episodic entry becomes knowledge only \
                                 with evidence of its own, and it cites no evidence"
            }
            _ => "it cites no evidence",
        };
        let message = format!("Entry {code} was not promoted: {why}.");
        let hint = "Give evidence, such as --evidence commit:1a2b3c.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    let is_of_raw = origin.memory() == Memory::Episodic;
    if is_of_raw {
        check_approval(service, &code, ask, approval)?;
    }
    if kind == EntryKind::Finding {
        check_finding(&new)?;
    }
    disclosure_check::check_new(&reading, "The entry was not promoted", &new)?;
    if kind == EntryKind::Norm {
        let opposing = reading.opposing_norms(&service.index, &found.view, target)?;
        check_opposing("The entry was not promoted", &reading, &opposing, (Some(source), target))?;
    }
    Ok(PlannedCopy { new, workspace: reading.membership.name(target), is_of_raw })
}

/// The memory and the type of the new entry.
fn target_memory_and_type(
    found: &AssessedEntry,
    memory: Memory,
    ask: &Promote,
) -> Result<(Memory, EntryKind), ApiError> {
    let is_raw = memory == Memory::Episodic;
    let into = match ask.memory.as_deref() {
        None if is_raw => Memory::Semantic,
        None => memory,
        Some(name) => {
            Memory::parse(name).filter(|memory| *memory != Memory::Episodic).ok_or_else(|| {
                invalid(format!("The memory `{name}` is not possible; use semantic or procedural."))
            })?
        }
    };
    let of_entry = || found.view.kind();
    let kind = match ask.kind.as_deref() {
        Some(name) => Some(EntryKind::parse(name).ok_or_else(|| {
            let known: Vec<&str> = EntryKind::ALL.iter().map(|row| row.1).collect();
            invalid(format!(
                "The type `{name}` does not exist; it must be one of {}.",
                known.join(", ")
            ))
        })?),
        None if is_raw => None,
        None => of_entry(),
    };
    Ok((into, kind.unwrap_or(EntryKind::Lesson)))
}

/// Copies the text of an entry and its sets into a new entry of this node, without its thread.
fn copy_entry(
    service: &Service,
    found: &AssessedEntry,
    (workspace, memory, kind): (WorkspaceId, Memory, EntryKind),
    ask: &Promote,
) -> Result<NewEntry, ApiError> {
    let (view, by, now) = (&found.view, service.author.to_string(), (service.now)());
    let text = |register| view.text(register).map(str::to_owned);
    let mut registers: Vec<(Register, String)> =
        REGISTERS.iter().filter_map(|at| Some((*at, text(*at)?))).collect();
    // A sub-type is kept only if the new type has it.
    let sub_type = text(Register::SUB_TYPE);
    let sub_type = sub_type.filter(|name| kind.sub_types().contains(&name.as_str()));
    registers.extend(sub_type.map(|name| (Register::SUB_TYPE, name)));
    // Only a spike has an outcome.
    let outcome = text(Register::OUTCOME);
    let outcome = outcome.filter(|name| kind == EntryKind::Spike && !name.is_empty());
    registers.extend(outcome.map(|name| (Register::OUTCOME, name)));
    let mut claims = Vec::new();
    for set in SETS {
        let elements = view.texts.get(&set).into_iter().flat_map(|of| of.keys());
        let elements = elements.take(SET_ELEMENTS_MAX);
        claims.extend(elements.map(|element| ClaimEdit::Add(set, element.clone())));
    }
    // Predicates keep their repositories, as far as members of the target workspace may know them.
    let (snapshot, texts) = (service.snapshot()?, predicates(&claims));
    let membership = service.membership(&snapshot)?;
    let carried = |identity: &RepositoryIdentity| {
        tellable(&snapshot, &membership, identity, workspace).ok()?
    };
    let elements = Bindings::of(view).carried_over(texts, carried);
    claims.extend(elements.into_iter().take(SET_ELEMENTS_MAX).map(recorded));
    claims.push(ClaimEdit::Link(Link { relation: Relation::DERIVED_FROM, to: found.entry }));
    let given = entries::citations(&ask.evidence, &by, now)?;
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

/// Rejects a new entry that promotion would reject too: a procedural one without the person, or a
/// norm that contradicts another norm.
pub(super) fn check_new_entry(
    service: &Service,
    new: &NewEntry,
    approval: PersonApproval,
) -> Result<(), ApiError> {
    if !approval.covers(new.memory) {
        let message = "Writing a procedural entry needs the person behind this node.";
        let hint = "Run `klnode add --memory procedural` and enter the passphrase.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
    }
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    disclosure_check::check_new(&reading, "The entry was not written", new)?;
    check_norm(service, None, new)
}

/// Reports missing parts of a finding with a hint: the source may be older than the rule.
fn check_finding(new: &NewEntry) -> Result<(), ApiError> {
    match dry_run_record(new) {
        Err(wrong @ Rejection::Invalid { .. }) => {
            let hint = "Complete it with `klnode edit`: --content, --anchor, --verify.";
            Err(ApiError::new(ErrorKind::Invalid, wrong.to_string(), Some(hint)))
        }
        // The writer reports all other problems.
        _ => Ok(()),
    }
}
