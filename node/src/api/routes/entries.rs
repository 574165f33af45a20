//! An entry's life: written, read, observed, changed, taken back, forgotten.

use super::tasks::{open_task, task_named};
use super::{anchors, named, not_held, promotion, resolve, resolve_for_change};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Params, Path};
use crate::api::person::Approval;
use crate::api::places::{Settled, predicates};
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{
    Added, ConfirmQuery, Confirmed, Done, Edit, Edited, Entry, ForgetQuery, Named, NewEntry,
    Observe, Observed, Outcome, Overlay, ShareFlag, ShowQuery,
};
use crate::engine::{Command, Confirmation, Marks, Receipt, Rejection, TaskAct, TaskDone, edited};
use crate::query::{Found, Gate, Reading, complaint, shell};
use crate::store::Error;
use axum::extract::State;
use klnode_crdt::claims::Claims;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind;
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::view;
use klnode_crdt::writer::Claim;
use klnode_scoring::outcome;
use klnode_scoring::status::Status;
use std::time::Duration;
use tokio::time::timeout;

/// How long an index with a fault may stand still: of some faults, as an embedder that is away, words
/// know nothing.
const FAULT_TIME_MAX: Duration = Duration::from_secs(5);
/// Why an observation does not count.
const NOTED: &str = "noted, not counted: you said the same of it today; in a task each counts, and \
                     `klnode task begin` begins one";

/// What to do where a confirmation needs a person's key and there is none.
const NO_PERSON_HINT: &str = "run that in a terminal, where it asks you for a passphrase; then confirm \
                              again with --as-person";

/// Writes an entry; a procedural one only where this node has no person's key.
#[utoipa::path(post, path = "/v1/entries", request_body = NewEntry,
    responses((status = 200, body = Added)))]
pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewEntry>,
) -> Answered<Added> {
    let approval = service.person.unsigned();
    created(service, caller, new, approval).await
}

/// Writes an entry as the person behind this node; a procedural one, too.
#[utoipa::path(post, path = "/v1/entries/person", request_body = NewEntry,
    responses((status = 200, body = Added)))]
pub(super) async fn create_as_person(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewEntry>,
) -> Answered<Added> {
    created(service, caller, new, Approval::Given).await
}

async fn created(
    service: Service,
    caller: Caller,
    new: NewEntry,
    approval: Approval,
) -> Answered<Added> {
    let folder = anchors::permitted(caller, new.checkout.as_deref())?;
    let task = new.task.as_deref().map(|name| open_task(&service, name)).transpose()?;
    let working = service.clone();
    let settled = apart(move |_| {
        let settled = working.settle(new, folder.as_deref(), task)?;
        promotion::may_be_written(&working, &settled.new, approval)?;
        Ok(settled)
    });
    let settled = settled.await?;
    let Settled { new, workspace, is_current, thread, cited, offered, repository } = settled;
    let is_unanchored = repository.is_none() && predicates(&new.claims).next().is_some();
    let repository = repository.map(|identity| identity.in_words());
    let is_shared = !new.workspace.is_personal();
    let (kind, new) = (new.kind, Box::new(new));
    let command = match task {
        None => Command::Create(new),
        Some(task) => Command::Task(Box::new(TaskAct::Create(task, new))),
    };
    let receipt = service.submit(caller, command).await?;
    let Receipt::Created(entry) = receipt else {
        return Err(ApiError::new(Kind::Failed, "tell which entry was created", None));
    };
    let Beside { flags, same } = beside(service.clone(), entry, is_shared).await;
    // Whoever is told of an entry has not found it out: their confirmation is no evidence.
    service.note_read(caller, same.iter().map(|(other, _)| *other).collect()).await;
    let same = same.map(|(other, code)| Named { id: other.to_string(), code });
    let (id, code) = (entry.to_string(), kind.code(entry));
    Ok(Answer(Added {
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
        same,
    }))
}

/// What there is to say beside an entry that was just written.
#[derive(Default)]
struct Beside {
    /// What to look at before others have it.
    flags: Vec<ShareFlag>,
    /// Where the same is written already, and its code.
    same: Option<(EntryId, String)>,
}

/// It is written, whatever can be told of it.
async fn beside(service: Service, entry: EntryId, is_shared: bool) -> Beside {
    let told = apart(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let same = reading.written_before(&service.index, entry).ok().flatten();
        let flags = if is_shared { flags(&reading, entry).unwrap_or_default() } else { Vec::new() };
        Ok(Beside { flags, same })
    });
    told.await.unwrap_or_default()
}

/// Shows an entry.
#[utoipa::path(get, path = "/v1/entries/{entry}", params(ShowQuery),
    responses((status = 200, body = Entry)))]
pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Params(query): Params<ShowQuery>,
) -> Answered<Entry> {
    let checkout = anchors::permitted(caller, query.checkout.as_deref())?;
    let working = service.clone();
    let (entry, shown, looks) = apart(move |_| {
        let snapshot = working.snapshot()?;
        let entry = resolve(&snapshot, &entry)?;
        let mut looks = working.looks();
        let read = working.read(&snapshot, entry, checkout.as_deref(), &mut looks)?;
        Ok((entry, read, looks))
    })
    .await?;
    service.note_looks(looks);
    service.note_read(caller, vec![entry]).await;
    Ok(Answer(shown))
}

/// Changes an entry; what a procedural one says only where this node has no person's key.
#[utoipa::path(patch, path = "/v1/entries/{entry}", request_body = Edit,
    responses((status = 200, body = Edited)))]
pub(super) async fn edit(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(edit): Body<Edit>,
) -> Answered<Edited> {
    let approval = service.person.unsigned();
    changed(service, caller, &entry, edit, approval).await
}

/// Changes an entry as the person behind this node; what a procedural one says, too.
#[utoipa::path(patch, path = "/v1/entries/{entry}/person", request_body = Edit,
    responses((status = 200, body = Edited)))]
pub(super) async fn edit_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(edit): Body<Edit>,
) -> Answered<Edited> {
    changed(service, caller, &entry, edit, Approval::Given).await
}

async fn changed(
    service: Service,
    caller: Caller,
    entry: &str,
    edit: Edit,
    approval: Approval,
) -> Answered<Edited> {
    let folder = anchors::permitted(caller, edit.checkout.as_deref())?;
    let claims = translate::edit(edit, &service.author.to_string(), (service.now)())?;
    let entry = resolve_for_change(&service, entry).await?;
    let working = service.clone();
    let claims = apart(move |_| {
        let mut claims = claims;
        check_edit(&working, entry, &claims, approval)?;
        let (more, is_unanchored) = anchors::rebound(&working, entry, &claims, folder.as_deref())?;
        claims.extend(more);
        Ok((claims, is_unanchored))
    });
    let (claims, unanchored) = claims.await?;
    service.submit(caller, Command::Claim { entry, claims }).await?;
    let Answer(Named { id, code }) = named(&service, entry).await?;
    Ok(Answer(Edited { id, code, unanchored, flags: flagged(service, entry).await }))
}

/// What to look at before others have an entry.
fn flags(reading: &Reading<'_>, entry: EntryId) -> Result<Vec<ShareFlag>, Error> {
    let flags = reading.read(entry)?.map(|found| reading.share_flags(&found)).transpose()?;
    Ok(translate::flags(flags.unwrap_or_default()))
}

/// The same of one that was changed. It is, whatever can be told of it.
pub(super) async fn flagged(service: Service, entry: EntryId) -> Vec<ShareFlag> {
    let told = apart(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        Ok(flags(&reading, entry)?)
    });
    told.await.unwrap_or_default()
}

/// Whoever takes back what this node never added would change nothing, and is told; so is whoever
/// changes what nobody says any more, or makes a norm that another opposes, or has a procedural entry
/// say something else without the person.
pub(super) fn check_edit(
    service: &Service,
    entry: EntryId,
    claims: &[Claim],
    approval: Approval,
) -> Result<(), ApiError> {
    let snapshot = service.snapshot()?;
    if snapshot.tombstone(entry)?.is_some() {
        return Err(Rejection::Forgotten(kind::code_digits(entry)).into());
    }
    let held = snapshot.entry(entry)?.to_entry();
    let own = held.claims.get(&service.author);
    if held.claims.values().all(Claims::is_empty) {
        let message = format!("edit entry {}: what it said was taken back", held.code(entry));
        return Err(ApiError::new(Kind::Invalid, message, Some("`klnode add` says it anew")));
    }
    for claim in claims {
        let Claim::Withdraw(set, text) = claim else { continue };
        let said = own.and_then(|own| own.texts.get(set));
        if said.is_some_and(|said| said.present().any(|one| one == text)) {
            continue;
        }
        let (code, set) = (held.code(entry), set.name().unwrap_or_default());
        let message = format!("edit entry {code}: this node added no `{text}` to its {set}");
        let hint = "`klnode show` lists what it has; what others added is theirs to withdraw";
        return Err(ApiError::new(Kind::Invalid, message, Some(hint)));
    }
    let needs_person = held.origin.as_ref().is_some_and(|of| !approval.covers(of.memory()));
    if needs_person && claims.iter().any(is_reworded) {
        let code = held.code(entry);
        let message = format!(
            "change what entry {code} says without the person behind this node: it is procedural"
        );
        let hint = "`klnode edit --as-person` asks for the passphrase";
        return Err(ApiError::new(Kind::Refused, message, Some(hint)));
    }
    let takes_side =
        |claim: &Claim| matches!(claim, Claim::Set(Register::TYPE | Register::POLARITY, _));
    if !claims.iter().any(takes_side) {
        return Ok(());
    }
    let found = service.reader.read(&snapshot, entry, (service.now)())?;
    match found.and_then(|found| edited(&found.view, claims)) {
        Some(after) => promotion::may_be_norm(service, Some(entry), &after),
        None => Ok(()),
    }
}

/// Whether an entry says something else after a claim.
fn is_reworded(claim: &Claim) -> bool {
    let Claim::Set(at, _) = claim else { return false };
    let said =
        [Register::TITLE, Register::CONTENT, Register::SUMMARY, Register::TYPE, Register::POLARITY];
    said.contains(at)
}

/// Counts an observation; in a task once for each entry, outside any task once for each entry, caller
/// and day.
#[utoipa::path(post, path = "/v1/entries/{entry}/observations", request_body = Observe,
    responses((status = 200, body = Observed)))]
pub(super) async fn observe(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(observe): Body<Observe>,
) -> Answered<Observed> {
    let of = match observe.outcome {
        Outcome::Success => Observation::Success,
        Outcome::Failure => Observation::Failure,
    };
    let entry = resolve(&service.snapshot()?, &entry)?;
    let amount = outcome::feedback(service.reader.numbers.outcome());
    let command = match observe.task.as_deref().map(task_named).transpose()? {
        None => Command::Observe { entry: worded(&service, entry)?, of, amount },
        Some(task) => Command::Task(Box::new(TaskAct::Observe { task, entry, of, amount })),
    };
    let receipt = service.submit(caller, command).await?;
    let reason = match receipt {
        Receipt::Task(TaskDone::CountedBefore) => Some("was counted in this task before"),
        Receipt::Noted => Some(NOTED),
        _ => None,
    };
    let (counted, reason) = (reason.is_none(), reason.map(str::to_owned));
    let Answer(Named { id, code }) = named(&service, entry).await?;
    Ok(Answer(Observed { id, code, counted, reason }))
}

/// The entry in whose words one is shown. Where they are somebody else's, they are what was observed
/// outside any task: their author has the credit, or the blame.
fn worded(service: &Service, entry: EntryId) -> Result<EntryId, ApiError> {
    let snapshot = service.snapshot()?;
    if snapshot.group(entry)?.len() < 2 {
        return Ok(entry);
    }
    let reading = service.reader.at(&snapshot, (service.now)())?;
    // What is damaged is told by whoever writes.
    let found = Error::unless_damaged(reading.read_shown(entry))?.flatten();
    Ok(found.filter(Found::is_foreign).map_or(entry, |found| found.text_of))
}

/// Confirms an entry: evidence where the node knows that the caller has it from elsewhere, else
/// counted apart.
#[utoipa::path(post, path = "/v1/entries/{entry}/confirm", params(ConfirmQuery),
    responses((status = 200, body = Confirmed)))]
pub(super) async fn confirm(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Params(ConfirmQuery { task, primed }): Params<ConfirmQuery>,
) -> Answered<Confirmed> {
    let entry = resolve(&service.snapshot()?, &entry)?;
    let confirmation = match task.as_deref().map(task_named).transpose()? {
        None => {
            service.submit(caller, Command::ConfirmPrimed { entry }).await?;
            None
        }
        Some(task) => {
            let act = TaskAct::Confirm { task, entry, is_lowered: primed };
            let TaskDone::Confirmed(as_what) = service.about_task(caller, act).await? else {
                return Err(ApiError::new(Kind::Failed, "tell what it counts as", None));
            };
            Some(as_what)
        }
    };
    confirmed(&service, entry, confirmation).await
}

/// Confirms an entry as the person behind this node: evidence whatever was served, once for each
/// entry and day.
#[utoipa::path(post, path = "/v1/entries/{entry}/confirm/person",
    responses((status = 200, body = Confirmed)))]
pub(super) async fn confirm_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> Answered<Confirmed> {
    let entry = resolve(&service.snapshot()?, &entry)?;
    if service.person.is_absent() {
        let message = format!(
            "confirm as the person behind this node: there is no person's key; `klnode --home {} \
             person new` makes one",
            shell::path(&service.home)
        );
        return Err(ApiError::new(Kind::Refused, message, Some(NO_PERSON_HINT)));
    }
    match service.submit(caller, Command::ConfirmAsPerson { entry }).await? {
        Receipt::Task(TaskDone::Confirmed(as_what)) => {
            confirmed(&service, entry, Some(as_what)).await
        }
        _ => Err(ApiError::new(Kind::Failed, "tell what it counts as", None)),
    }
}

async fn confirmed(
    service: &Service,
    entry: EntryId,
    of: Option<Confirmation>,
) -> Answered<Confirmed> {
    let (class, reason) = match of {
        None => ("primed", "it came outside any task".to_owned()),
        Some(Confirmation::Independent) => {
            ("independent", "it was served nowhere in the task or above it".to_owned())
        }
        Some(Confirmation::Person) => ("independent", "it is by the person's key".to_owned()),
        Some(Confirmation::Served(by)) => ("primed", format!("it was served in task {by}")),
        Some(Confirmation::ServedToSession) => {
            let reason = "it was served to this session, or to one that began a task of the chain";
            ("primed", reason.to_owned())
        }
        Some(Confirmation::ServedToClient) => {
            let reason = "it was served to the same client: to this caller, or to another below the \
                          same client process";
            ("primed", reason.to_owned())
        }
        Some(Confirmation::ServedToUser) => {
            let reason = "the same user was served it lately, and nothing tells that caller from \
                          this one";
            ("primed", reason.to_owned())
        }
        Some(Confirmation::UserAgain) => {
            let reason =
                "an agent of the same user confirmed it earlier today, and one a day counts";
            ("primed", reason.to_owned())
        }
        Some(Confirmation::Written(by)) => ("primed", format!("it was written in task {by}")),
        Some(Confirmation::Again) => {
            ("primed", "it was confirmed in this task, or in one beside it, before".to_owned())
        }
        Some(Confirmation::PersonAgain) => {
            ("primed", "the person confirmed it earlier today".to_owned())
        }
        Some(Confirmation::Lowered) => ("primed", "the caller says so".to_owned()),
    };
    let Answer(Named { id, code }) = named(service, entry).await?;
    Ok(Answer(Confirmed { id, code, class: class.into(), reason }))
}

/// Declares what this node has counted of an entry void, where much was counted and says nothing.
#[utoipa::path(post, path = "/v1/entries/{entry}/reset", responses((status = 200, body = Named)))]
pub(super) async fn reset(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> Answered<Named> {
    let entry = resolve_for_change(&service, &entry).await?;
    let working = service.clone();
    apart(move |_| may_be_reset(&working, entry)).await?;
    service.submit(caller, Command::Reset { entry }).await?;
    named(&service, entry).await
}

/// Says no to a reset of what moves by itself, with the numbers.
fn may_be_reset(service: &Service, entry: EntryId) -> Result<(), ApiError> {
    let snapshot = service.snapshot()?;
    let found = service.reader.read(&snapshot, entry, (service.now)())?;
    let found = found.ok_or_else(|| not_held(entry))?;
    let (of, params) = (&found.judged.confidence, service.reader.numbers.outcome());
    if outcome::reset(&of.posterior, of.effective_observations, params) == outcome::Reset::Allowed {
        return Ok(());
    }
    let message = format!(
        "reset entry {}: it has {:.1} effective observations and a mean of {:.2}; a reset needs at \
         least {} and a mean from {} to {}",
        found.code(),
        of.effective_observations,
        of.posterior.mean(),
        params.reset_observations_min,
        params.reset_mean_min,
        params.reset_mean_max,
    );
    let hint = "with fewer observations it moves by itself, and with another mean it is decided";
    Err(ApiError::new(Kind::Refused, message, Some(hint)))
}

/// Takes back what this node said about an entry.
#[utoipa::path(post, path = "/v1/entries/{entry}/retract", responses((status = 200, body = Done)))]
pub(super) async fn retract(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> Answered<Done> {
    let entry = resolve_for_change(&service, &entry).await?;
    let Answer(done) = done(&service, caller, entry, Command::Retract { entry }).await?;
    Ok(Answer(Done { remains_by: remaining_author(service, entry).await, ..done }))
}

/// The author of the text that is still shown after this node withdrew its own statements.
async fn remaining_author(service: Service, entry: EntryId) -> Option<String> {
    let read = apart(move |_| {
        let snapshot = service.snapshot()?;
        let found = service.reader.read(&snapshot, entry, (service.now)())?;
        let live = found.filter(|found| found.view.state == view::State::Live);
        Ok(live.and_then(|found| found.author.map(|by| by.name.clone())))
    });
    // The statements are withdrawn, whether or not the rest can be read.
    read.await.unwrap_or_default()
}

/// Forgets an entry for good.
#[utoipa::path(post, path = "/v1/entries/{entry}/forget", params(ForgetQuery),
    responses((status = 200, body = Done)))]
pub(super) async fn forget(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Params(ForgetQuery { now }): Params<ForgetQuery>,
) -> Answered<Done> {
    let entry = resolve_for_change(&service, &entry).await?;
    let is_forgotten = service.snapshot()?.tombstone(entry)?.is_some();
    let forgotten = if is_forgotten {
        // Nothing is left to decide: what is asked for is so.
        let Answer(done) = told(&service, entry, kind::code_digits(entry), None)?;
        Answer(Done { before: true, ..done })
    } else {
        done(&service, caller, entry, Command::Forget { entry }).await?
    };
    if now {
        wipe(&service, &forgotten.0).await?;
    }
    Ok(forgotten)
}

/// Waits until nothing that was forgotten is left in any file. Of an index that stands still it is
/// told why: the entry itself is forgotten all the same.
async fn wipe(service: &Service, forgotten: &Done) -> Result<(), ApiError> {
    let mut watch = service.index.watch();
    let head = forgotten.head;
    let fault = loop {
        let wiped = watch.wait_for(|state| state.keyword.0 >= head && state.wiped.0 >= head);
        // The index ends only with the node, and then nobody is answered.
        if timeout(FAULT_TIME_MAX, wiped).await.is_ok() {
            break None;
        }
        let fault = service.index.state().fault;
        if fault.is_some() {
            break fault;
        }
    };
    service.engine.submit(Command::Rewrite).await?;
    match fault {
        None => Ok(()),
        Some(fault) => {
            let message = format!(
                "wipe entry {} from the index, which stands still: {fault}; the entry itself is \
                 forgotten",
                forgotten.code
            );
            let hint = "the index tries again by itself; `klnode forget --now` waits for it anew";
            Err(ApiError::new(Kind::Failed, message, Some(hint)))
        }
    }
}

/// Sets the operator's marks on an entry, on this node alone.
#[utoipa::path(put, path = "/v1/entries/{entry}/overlay", request_body = Overlay,
    responses((status = 200, body = Named)))]
pub(super) async fn overlay(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(marks): Body<Overlay>,
) -> Answered<Named> {
    let entry = resolve(&service.snapshot()?, &entry)?;
    if let Some(why) = marks.note.as_ref().and_then(|note| complaint("note", note)) {
        return Err(ApiError::new(Kind::Invalid, format!("annotate the entry: {why}"), None));
    }
    let Overlay { pinned, muted, invalidated, note } = marks;
    let marks = Marks { pinned, muted, invalidated, note };
    service.submit(caller, Command::Mark { entry, marks }).await?;
    named(&service, entry).await
}

async fn done(
    service: &Service,
    caller: Caller,
    entry: EntryId,
    command: Command,
) -> Answered<Done> {
    // Afterwards it may have no text to be named by.
    let Answer(Named { code, .. }) = named(service, entry).await?;
    let title = title(service.clone(), entry).await;
    service.submit(caller, command).await?;
    told(service, entry, code, title)
}

/// The title of an entry, where that can be read and may be told: whoever hears it may be an agent.
async fn title(service: Service, entry: EntryId) -> Option<String> {
    let is_told = |found: &Found| {
        let is_rejected = found.judged.standing.status == Status::Rejected;
        !found.is_foreign() || (found.gate() != Gate::Shut && !is_rejected)
    };
    let told = apart(move |_| {
        let snapshot = service.snapshot()?;
        let found = service.reader.read(&snapshot, entry, (service.now)())?.filter(is_told);
        Ok(found.and_then(|found| found.view.text(Register::TITLE).map(str::to_owned)))
    });
    told.await.unwrap_or_default()
}

fn told(service: &Service, entry: EntryId, code: String, title: Option<String>) -> Answered<Done> {
    let (id, head) = (entry.to_string(), service.snapshot()?.head().0);
    Ok(Answer(Done { id, code, title, head, before: false, remains_by: None }))
}
