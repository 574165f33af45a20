//! Routes for one entry: create, show, edit, observe, confirm, reset, retract, forget and mark.

use super::entry_links::link_claims;
use super::task_lookup::{open_task, task_named};
use super::{anchors, named, not_held, promotion, resolve, resolve_for_change, resolve_shown};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::edit_check::check_edit;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::new_entry_defaults::{ResolvedEntry, predicates};
use crate::person_auth::PersonApproval;
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{
    AddResult, ChangeResult, ConfirmQuery, ConfirmationResult, Edit, EditResult, Entry,
    EntryIdentity, ErrorKind, ForgetQuery, MarkUpdate, NewEntry, NewObservation, ObservationResult,
    Outcome, ShareFlag, ShowQuery,
};
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::{entry_type, entry_view};
use klnode_engine::{Command, Confirmation, MarkChange, Receipt, TaskCommand, TaskReceipt};
use klnode_query::{AssessedEntry, GateDecision, ReadContext, complaint};
use klnode_scoring::credit;
use klnode_scoring::status::Status;
use klnode_store::Error;
use klnode_text::shell_quote;
use std::time::Duration;
use tokio::time::timeout;

/// How long a stalled index may block `forget --now`. Some faults, such as an unreachable embedder,
/// stop only the vectors, so the keyword index still advances.
const FAULT_TIME_MAX: Duration = Duration::from_secs(5);
/// Why an observation outside tasks was not counted.
const NOTED: &str = "already recorded today; in a task each observation counts, and `klnode task \
                     begin` starts one";
const NO_CLASS: &str = "The confirmation has no class.";
/// Hint for a confirmation as person on a node without a person's key.
const NO_PERSON_HINT: &str = "Run that command in a terminal, where it asks for a passphrase; then \
                              confirm again with --as-person.";

/// Creates an entry. If this node has a person's key, a procedural entry is rejected.
#[utoipa::path(post, path = "/v1/entries", request_body = NewEntry,
    responses((status = 200, body = AddResult)))]
pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewEntry>,
) -> ApiResult<AddResult> {
    let approval = service.person.unsigned_approval();
    create_entry(service, caller, new, approval).await
}

/// Creates an entry as the person behind this node; a procedural entry is accepted.
#[utoipa::path(post, path = "/v1/entries/person", request_body = NewEntry,
    responses((status = 200, body = AddResult)))]
pub(super) async fn create_as_person(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewEntry>,
) -> ApiResult<AddResult> {
    create_entry(service, caller, new, PersonApproval::Given).await
}

async fn create_entry(
    service: Service,
    caller: Caller,
    new: NewEntry,
    approval: PersonApproval,
) -> ApiResult<AddResult> {
    let folder = anchors::permitted_checkout(caller, new.checkout.as_deref())?;
    let task = new.task.as_deref().map(|name| open_task(&service, name)).transpose()?;
    let working = service.clone();
    let resolved = run_blocking(move |_| {
        let resolved = working.resolve_defaults(new, folder.as_deref(), task)?;
        promotion::check_new_entry(&working, &resolved.new, approval)?;
        Ok(resolved)
    });
    let resolved = resolved.await?;
    let ResolvedEntry { new, workspace, is_current, thread, cited, offered, repository } = resolved;
    let is_unanchored = repository.is_none() && predicates(&new.claims).next().is_some();
    let repository = repository.map(|identity| identity.in_words());
    let is_shared = !new.workspace.is_personal();
    let (kind, new) = (new.kind, Box::new(new));
    let command = match task {
        None => Command::Create(new),
        Some(task) => Command::Task(Box::new(TaskCommand::Create(task, new))),
    };
    let receipt = service.submit(caller, command).await?;
    let Receipt::Created(entry) = receipt else {
        return Err(ApiError::new(ErrorKind::Failed, "The id of the new entry is unknown.", None));
    };
    let WriteNotes { flagged, same } = write_notes(service.clone(), entry, is_shared).await;
    let FlaggedEntry { flags, held } = flagged;
    // A caller that is told of a duplicate has read it, so its confirmation of it is no evidence.
    service.note_read(caller, same.iter().map(|(other, _)| *other).collect()).await;
    let same = same.map(|(other, code)| EntryIdentity { id: other.to_string(), code });
    let (id, code) = (entry.to_string(), kind.code(entry));
    Ok(ApiReply(AddResult {
        id,
        code,
        workspace,
        current: is_current,
        thread,
        cited,
        offered,
        repository,
        unanchored: is_unanchored,
        flags,
        held,
        same,
    }))
}

/// Remarks about an entry that was just written.
#[derive(Default)]
struct WriteNotes {
    flagged: FlaggedEntry,
    /// A duplicate and its code.
    same: Option<(EntryId, String)>,
}

/// The flags of an entry that was just written.
#[derive(Default)]
pub(super) struct FlaggedEntry {
    /// Passages to review before peers receive the entry.
    pub(super) flags: Vec<ShareFlag>,
    /// True if the operator has to decide about the entry first.
    pub(super) held: bool,
}

/// Collects the remarks. The entry is already written, so errors are ignored.
async fn write_notes(service: Service, entry: EntryId, is_shared: bool) -> WriteNotes {
    let notes = run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let same = reading.written_before(&service.index, entry).ok().flatten();
        let flagged = is_shared.then(|| flags(&reading, entry).unwrap_or_default());
        Ok(WriteNotes { flagged: flagged.unwrap_or_default(), same })
    });
    notes.await.unwrap_or_default()
}

/// Shows an entry.
#[utoipa::path(get, path = "/v1/entries/{entry}", params(ShowQuery),
    responses((status = 200, body = Entry)))]
pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    QueryParams(query): QueryParams<ShowQuery>,
) -> ApiResult<Entry> {
    let checkout = anchors::permitted_checkout(caller, query.checkout.as_deref())?;
    let working = service.clone();
    let (entry, shown, looks) = run_blocking(move |_| {
        let snapshot = working.snapshot()?;
        let entry = resolve_shown(&snapshot, &entry)?;
        let mut looks = working.looks();
        let read = working.read(&snapshot, entry, checkout.as_deref(), &mut looks)?;
        Ok((entry, read, looks))
    })
    .await?;
    service.note_looks(looks);
    service.note_read(caller, vec![entry]).await;
    Ok(ApiReply(shown))
}

/// Edits an entry. If this node has a person's key, the text of a procedural entry cannot be
/// changed here.
#[utoipa::path(patch, path = "/v1/entries/{entry}", request_body = Edit,
    responses((status = 200, body = EditResult)))]
pub(super) async fn edit(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(edit): Body<Edit>,
) -> ApiResult<EditResult> {
    let approval = service.person.unsigned_approval();
    apply_edit(service, caller, &entry, edit, approval).await
}

/// Edits an entry as the person behind this node, including the text of a procedural entry.
#[utoipa::path(patch, path = "/v1/entries/{entry}/person", request_body = Edit,
    responses((status = 200, body = EditResult)))]
pub(super) async fn edit_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(edit): Body<Edit>,
) -> ApiResult<EditResult> {
    apply_edit(service, caller, &entry, edit, PersonApproval::Given).await
}

async fn apply_edit(
    service: Service,
    caller: Caller,
    entry: &str,
    edit: Edit,
    approval: PersonApproval,
) -> ApiResult<EditResult> {
    let folder = anchors::permitted_checkout(caller, edit.checkout.as_deref())?;
    let (added, removed) = (edit.add_links.clone(), edit.remove_links.clone());
    let claims = entries::edit(edit, &service.author.to_string(), (service.now)())?;
    let entry = resolve_for_change(&service, entry).await?;
    let working = service.clone();
    let claims = run_blocking(move |_| {
        let mut claims = claims;
        claims.extend(link_claims(&working.snapshot()?, entry, &added, &removed)?);
        check_edit(&working, entry, &claims, approval)?;
        let (more, is_unanchored) =
            anchors::repository_claims(&working, entry, &claims, folder.as_deref())?;
        claims.extend(more);
        Ok((claims, is_unanchored))
    });
    let (claims, unanchored) = claims.await?;
    service.submit(caller, Command::Claim { entry, claims }).await?;
    let ApiReply(EntryIdentity { id, code }) = named(&service, entry).await?;
    let FlaggedEntry { flags, held } = share_flags(service, entry).await;
    Ok(ApiReply(EditResult { id, code, unanchored, flags, held }))
}

/// The passages to review before peers receive an entry.
fn flags(reading: &ReadContext<'_>, entry: EntryId) -> Result<FlaggedEntry, Error> {
    let Some(found) = reading.read(entry)? else { return Ok(FlaggedEntry::default()) };
    let flags = entries::flags(reading.share_flags(&found)?);
    Ok(FlaggedEntry { flags, held: found.assessment.is_held })
}

/// The passages to review of an edited entry. The edit is already written, so errors are ignored.
pub(super) async fn share_flags(service: Service, entry: EntryId) -> FlaggedEntry {
    let flags = run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        Ok(flags(&reading, entry)?)
    });
    flags.await.unwrap_or_default()
}

/// Records an observation. It counts once per entry in a task, and outside tasks once per entry,
/// caller and day.
#[utoipa::path(post, path = "/v1/entries/{entry}/observations", request_body = NewObservation,
    responses((status = 200, body = ObservationResult)))]
pub(super) async fn observe(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(observe): Body<NewObservation>,
) -> ApiResult<ObservationResult> {
    let of = match observe.outcome {
        Outcome::Success => Observation::Success,
        Outcome::Failure => Observation::Failure,
    };
    let entry = resolve(&service.snapshot()?, &entry)?;
    let amount = credit::feedback(service.reader.numbers.outcome());
    let command = match observe.task.as_deref().map(task_named).transpose()? {
        None => Command::Observe { entry: entry_to_credit(&service, entry)?, of, amount },
        Some(task) => Command::Task(Box::new(TaskCommand::Observe { task, entry, of, amount })),
    };
    let receipt = service.submit(caller, command).await?;
    let reason = match receipt {
        Receipt::Task(TaskReceipt::CountedBefore) => Some("already counted in this task"),
        Receipt::Noted => Some(NOTED),
        _ => None,
    };
    let (counted, reason) = (reason.is_none(), reason.map(str::to_owned));
    let ApiReply(EntryIdentity { id, code }) = named(&service, entry).await?;
    Ok(ApiReply(ObservationResult { id, code, counted, reason }))
}

/// The entry whose text is displayed for this one. If another author wrote that text, the
/// observation outside tasks goes to their entry, so that this author gets the credit or the blame.
fn entry_to_credit(service: &Service, entry: EntryId) -> Result<EntryId, ApiError> {
    let snapshot = service.snapshot()?;
    if snapshot.group(entry)?.len() < 2 {
        return Ok(entry);
    }
    let reading = service.reader.at(&snapshot, (service.now)())?;
    // The writer reports damage.
    let found = Error::unless_damaged(reading.read_shown(entry))?.flatten();
    Ok(found.filter(AssessedEntry::is_foreign).map_or(entry, |found| found.text_of))
}

/// Confirms an entry. It counts as evidence if the node knows that the caller did not learn it from
/// this node, else as primed.
#[utoipa::path(post, path = "/v1/entries/{entry}/confirm", params(ConfirmQuery),
    responses((status = 200, body = ConfirmationResult)))]
pub(super) async fn confirm(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    QueryParams(ConfirmQuery { task, primed }): QueryParams<ConfirmQuery>,
) -> ApiResult<ConfirmationResult> {
    let entry = resolve(&service.snapshot()?, &entry)?;
    let confirmation = match task.as_deref().map(task_named).transpose()? {
        None => {
            service.submit(caller, Command::ConfirmPrimed { entry }).await?;
            None
        }
        Some(task) => {
            let act = TaskCommand::Confirm { task, entry, is_lowered: primed || caller.is_page };
            let TaskReceipt::Confirmed(as_what) = service.about_task(caller, act).await? else {
                return Err(ApiError::new(ErrorKind::Failed, NO_CLASS, None));
            };
            Some(as_what)
        }
    };
    confirmation_reply(&service, entry, confirmation).await
}

/// Confirms an entry as the person behind this node. It counts as evidence even if the entry was
/// served, once per entry and day.
#[utoipa::path(post, path = "/v1/entries/{entry}/confirm/person",
    responses((status = 200, body = ConfirmationResult)))]
pub(super) async fn confirm_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<ConfirmationResult> {
    let entry = resolve(&service.snapshot()?, &entry)?;
    if service.person.is_absent() {
        let message = format!(
            "This node has no person's key; run `klnode --home {} identity new` to create one.",
            shell_quote::path(&service.home)
        );
        return Err(ApiError::new(ErrorKind::Refused, message, Some(NO_PERSON_HINT)));
    }
    match service.submit(caller, Command::ConfirmAsPerson { entry }).await? {
        Receipt::Task(TaskReceipt::Confirmed(as_what)) => {
            confirmation_reply(&service, entry, Some(as_what)).await
        }
        _ => Err(ApiError::new(ErrorKind::Failed, NO_CLASS, None)),
    }
}

async fn confirmation_reply(
    service: &Service,
    entry: EntryId,
    of: Option<Confirmation>,
) -> ApiResult<ConfirmationResult> {
    let (class, reason) = match of {
        None => ("primed", "it was made outside tasks".to_owned()),
        Some(Confirmation::Independent) => {
            ("independent", "it was served neither in the task nor above it".to_owned())
        }
        Some(Confirmation::Person) => ("independent", "the person's key signed it".to_owned()),
        Some(Confirmation::Served(by)) => ("primed", format!("it was served in task {by}")),
        Some(Confirmation::ServedToSession) => {
            ("primed", "it was served to this session, or to that of a parent task".to_owned())
        }
        Some(Confirmation::ServedToClient) => {
            ("primed", "it was served to the same client process".to_owned())
        }
        Some(Confirmation::ServedToUser) => {
            ("primed", "it was served to the same user recently, perhaps to this caller".to_owned())
        }
        Some(Confirmation::UserAgain) => {
            let reason =
                "an agent of the same user already confirmed it today, and only one a day counts";
            ("primed", reason.to_owned())
        }
        Some(Confirmation::Written(by)) => ("primed", format!("it was written in task {by}")),
        Some(Confirmation::Again) => {
            ("primed", "it was already confirmed in this task or in a sibling task".to_owned())
        }
        Some(Confirmation::PersonAgain) => {
            ("primed", "the person already confirmed it today".to_owned())
        }
        Some(Confirmation::Lowered) => ("primed", "the caller asked for it".to_owned()),
    };
    let ApiReply(EntryIdentity { id, code }) = named(service, entry).await?;
    Ok(ApiReply(ConfirmationResult { id, code, class: class.into(), reason }))
}

/// Resets the observations that this node has counted for an entry. Allowed only if there are many
/// and they are balanced.
#[utoipa::path(post, path = "/v1/entries/{entry}/reset",
    responses((status = 200, body = EntryIdentity)))]
pub(super) async fn reset(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<EntryIdentity> {
    let entry = resolve_for_change(&service, &entry).await?;
    let working = service.clone();
    run_blocking(move |_| check_reset(&working, entry)).await?;
    service.submit(caller, Command::Reset { entry }).await?;
    named(&service, entry).await
}

/// Rejects a reset if the confidence of the entry still moves; the message gives the numbers.
fn check_reset(service: &Service, entry: EntryId) -> Result<(), ApiError> {
    let snapshot = service.snapshot()?;
    let found = service.reader.read(&snapshot, entry, (service.now)())?;
    let found = found.ok_or_else(|| not_held(entry))?;
    let (of, params) = (&found.assessment.confidence, service.reader.numbers.outcome());
    if credit::reset(&of.posterior, of.effective_observations, params)
        == credit::ResetDecision::Allowed
    {
        return Ok(());
    }
    let message = format!(
        "Entry {} was not reset: it has {:.1} effective observations and a mean of {:.2}; a reset \
         needs at least {} and a mean from {} to {}.",
        found.code(),
        of.effective_observations,
        of.posterior.mean(),
        params.reset_observations_min,
        params.reset_mean_min,
        params.reset_mean_max,
    );
    let hint = "New observations still change its confidence.";
    Err(ApiError::new(ErrorKind::Refused, message, Some(hint)))
}

/// Retracts this node's claims about an entry.
#[utoipa::path(post, path = "/v1/entries/{entry}/retract",
    responses((status = 200, body = ChangeResult)))]
pub(super) async fn retract(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<ChangeResult> {
    let entry = resolve_for_change(&service, &entry).await?;
    let ApiReply(done) =
        submit_and_reply(&service, caller, entry, Command::Retract { entry }).await?;
    Ok(ApiReply(ChangeResult { remains_by: remaining_author(service, entry).await, ..done }))
}

/// The author of the text that is still displayed after this node retracted its own claims.
async fn remaining_author(service: Service, entry: EntryId) -> Option<String> {
    let read = run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let found = service.reader.read(&snapshot, entry, (service.now)())?;
        let live = found.filter(|found| found.view.state == entry_view::State::Live);
        Ok(live.and_then(|found| found.author.map(|by| by.name.clone())))
    });
    // The claims are already retracted, so errors are ignored.
    read.await.unwrap_or_default()
}

/// Forgets an entry permanently.
#[utoipa::path(post, path = "/v1/entries/{entry}/forget", params(ForgetQuery),
    responses((status = 200, body = ChangeResult)))]
pub(super) async fn forget(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    QueryParams(ForgetQuery { now }): QueryParams<ForgetQuery>,
) -> ApiResult<ChangeResult> {
    let entry = resolve_for_change(&service, &entry).await?;
    let is_forgotten = service.snapshot()?.tombstone(entry)?.is_some();
    let forgotten = if is_forgotten {
        // The entry is already forgotten, so nothing is left to do.
        let ApiReply(done) = done_reply(&service, entry, entry_type::code_digits(entry), None)?;
        ApiReply(ChangeResult { before: true, ..done })
    } else {
        submit_and_reply(&service, caller, entry, Command::Forget { entry }).await?
    };
    if now {
        wait_for_erasure(&service, &forgotten.0).await?;
    }
    Ok(forgotten)
}

/// Waits until no file contains the forgotten text. If the index is stalled, returns an error with
/// the reason; the entry is forgotten all the same.
async fn wait_for_erasure(service: &Service, forgotten: &ChangeResult) -> Result<(), ApiError> {
    let (mut watch, head) = (service.index.watch(), forgotten.head);
    let fault = loop {
        let wiped = watch.wait_for(|state| state.keyword.0 >= head && state.wiped.0 >= head);
        // The index stops only together with the node, when no request is answered any more.
        if timeout(FAULT_TIME_MAX, wiped).await.is_ok() {
            break None;
        }
        if let fault @ Some(_) = service.index.state().fault {
            break fault;
        }
    };
    service.engine.submit(Command::Rewrite).await?;
    match fault {
        None => Ok(()),
        Some(fault) => {
            let message = format!(
                "Entry {} is forgotten, but its text is still in the stalled index: {fault}",
                forgotten.code
            );
            let hint =
                "The index retries by itself; run `klnode forget --now` again to wait for it.";
            Err(ApiError::new(ErrorKind::Failed, message, Some(hint)))
        }
    }
}

/// Sets the operator's marks on an entry, on this node only.
#[utoipa::path(put, path = "/v1/entries/{entry}/overlay", request_body = MarkUpdate,
    responses((status = 200, body = EntryIdentity)))]
pub(super) async fn overlay(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(marks): Body<MarkUpdate>,
) -> ApiResult<EntryIdentity> {
    let entry = resolve(&service.snapshot()?, &entry)?;
    if let Some(why) = marks.note.as_ref().and_then(|note| complaint("note", note)) {
        let message = format!("The note was not saved: {why}");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let MarkUpdate { pinned, muted, invalidated, note } = marks;
    let marks = MarkChange { pinned, muted, invalidated, note };
    service.submit(caller, Command::Mark { entry, marks }).await?;
    named(&service, entry).await
}

async fn submit_and_reply(
    service: &Service,
    caller: Caller,
    entry: EntryId,
    command: Command,
) -> ApiResult<ChangeResult> {
    // Afterwards the entry may have no text from which its code is computed.
    let ApiReply(EntryIdentity { code, .. }) = named(service, entry).await?;
    let title = title(service.clone(), entry).await;
    service.submit(caller, command).await?;
    done_reply(service, entry, code, title)
}

/// The title of an entry, if it is readable and its gate is not shut: the caller may be an agent.
async fn title(service: Service, entry: EntryId) -> Option<String> {
    let may_be_shown = |found: &AssessedEntry| {
        let is_rejected = found.assessment.standing.status == Status::Rejected;
        let is_own = !found.is_foreign() && !found.assessment.is_held;
        is_own || (found.gate() != GateDecision::Shut && !is_rejected)
    };
    let title = run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let found = service.reader.read(&snapshot, entry, (service.now)())?.filter(may_be_shown);
        Ok(found.and_then(|found| found.view.text(Register::TITLE).map(str::to_owned)))
    });
    title.await.unwrap_or_default()
}

fn done_reply(
    service: &Service,
    entry: EntryId,
    code: String,
    title: Option<String>,
) -> ApiResult<ChangeResult> {
    let (id, head) = (entry.to_string(), service.snapshot()?.head().0);
    Ok(ApiReply(ChangeResult { id, code, title, head, before: false, remains_by: None }))
}
