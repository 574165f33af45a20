//! Routes that supersede an entry, accept proposals and archive a thread.

use super::{not_held, resolve_for_change};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::convert::peers::{find_peer, find_workspace};
use crate::edit_check::check_edit;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path};
use crate::new_entry_defaults::predicates;
use crate::service::Service;
use axum::extract::State;
use futures_util::future::try_join_all;
use klnode_api_types::ErrorKind;
use klnode_api_types::{
    Accept, AcceptResult, ArchiveThread, ArchivedThread, ProposedClaim, Supersede, SupersedeResult,
};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::entry_type;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::{MvRegister, Register};
use klnode_crdt::time::Hlc;
use klnode_engine::{Command, REMOVED, Receipt, RemovalCommand};
use klnode_query::{
    AssessedEntry, Cancel, ProposedCitation, ReadContext, SuccessionError, name_of, recorded,
};
use std::collections::BTreeMap;

/// Entries of a thread that are archived concurrently, so that the writer commits them together.
const ARCHIVED_AT_ONCE: usize = 64;
/// Sets whose proposed elements can be accepted.
const SETS: [TextSet; 4] =
    [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS, TextSet::DEPENDS_ON];

impl From<SuccessionError> for ApiError {
    fn from(error: SuccessionError) -> Self {
        match error {
            SuccessionError::Store(error) => error.into(),
            error => Self::new(ErrorKind::Invalid, error.to_string(), None),
        }
    }
}

/// Supersedes an entry by another one, or undoes that.
#[utoipa::path(post, path = "/v1/entries/{entry}/supersede", request_body = Supersede,
    responses((status = 200, body = SupersedeResult)))]
pub(super) async fn supersede(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Supersede>,
) -> ApiResult<SupersedeResult> {
    let old = resolve_for_change(&service, &entry).await?;
    let new = resolve_for_change(&service, &ask.by).await?;
    let link = Link { relation: Relation::SUPERSEDES, to: old };
    let working = service.clone();
    let (code, by_code) = run_blocking(move |_| {
        let snapshot = working.snapshot()?;
        let reading = working.reader.at(&snapshot, (working.now)())?;
        let (given, taking) = (held_entry(&reading, old)?, held_entry(&reading, new)?);
        let (code, by_code) = (given.code(), taking.code());
        if old == new {
            let message = format!("Entry {code} cannot supersede itself.");
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
        let drawn_by = taking.view.links.get(&link);
        if !ask.undo {
            reading.may_supersede(old, new)?;
        } else if drawn_by.is_none_or(|by| !by.contains(&working.author)) {
            let message = format!(
                "Nothing to undo: this node has not claimed that {by_code} supersedes {code}."
            );
            return Err(ApiError::new(ErrorKind::NotFound, message, None));
        }
        Ok((code, by_code))
    })
    .await?;
    let claim = if ask.undo { ClaimEdit::Unlink(link) } else { ClaimEdit::Link(link) };
    service.submit(caller, Command::Claim { entry: new, claims: vec![claim] }).await?;
    Ok(ApiReply(SupersedeResult { id: old.to_string(), code, by: new.to_string(), by_code }))
}

/// The entry, or an error if this node does not hold it.
fn held_entry(reading: &ReadContext<'_>, entry: EntryId) -> Result<AssessedEntry, ApiError> {
    reading.read(entry)?.ok_or_else(|| not_held(entry))
}

/// Accepts proposals, claims of an author whose claims are not displayed, as claims of this node.
#[utoipa::path(post, path = "/v1/entries/{entry}/accept", request_body = Accept,
    responses((status = 200, body = AcceptResult)))]
pub(super) async fn accept(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Accept>,
) -> ApiResult<AcceptResult> {
    let entry = resolve_for_change(&service, &entry).await?;
    // A single field is accepted from a proposal only; a record that was set aside counts as a whole.
    if ask.what.is_none() {
        let (working, author) = (service.clone(), ask.author.clone());
        let aside = run_blocking(move |_| set_aside(&working, entry, author.as_deref())).await?;
        if !aside.is_empty() {
            return adopt(&service, caller, entry, aside).await;
        }
    }
    let working = service.clone();
    let approval = service.person.unsigned_approval();
    let taken = run_blocking(move |_| {
        let taken = accept_proposals(&working, entry, &ask)?;
        check_edit(&working, entry, &taken.2, approval)?;
        Ok(taken)
    });
    let (code, accepted, claims) = taken.await?;
    service.submit(caller, Command::Claim { entry, claims }).await?;
    Ok(ApiReply(AcceptResult { id: entry.to_string(), code, accepted }))
}

/// The records of an entry that a removal set aside, of one author if it is given. An error if the
/// entry is procedural and needs the person.
fn set_aside(
    service: &Service,
    entry: EntryId,
    author: Option<&str>,
) -> Result<Vec<Record>, ApiError> {
    let snapshot = service.snapshot()?;
    let membership = service.membership(&snapshot)?;
    let is_meant = |by: AuthorId| {
        let is_key = |name: &str| name.len() >= 4 && by.to_string().starts_with(name);
        author.is_none_or(|name| is_key(name) || name_of(&membership, by) == name)
    };
    let mut found = Vec::new();
    for row in snapshot.quarantine()? {
        let (_, row) = row?;
        if row.reason == REMOVED
            && let Ok(record) = Record::read_back(&row.record, Absence::Stripped)
            && record.entry() == entry
            && is_meant(record.author())
        {
            found.push(record);
        }
    }
    let memory = snapshot.view_row(entry)?.and_then(|row| row.memory());
    let approval = service.person.unsigned_approval();
    if !found.is_empty() && memory.is_none_or(|memory| !approval.covers(memory)) {
        let code = entry_type::code_digits(entry);
        let message =
            format!("Entry {code} is procedural: accepting it needs the person behind this node.");
        let hint = "Run `klnode add --memory procedural` with that text and enter the passphrase.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some(hint)));
    }
    Ok(found)
}

/// States records of a removed member as claims of this node.
async fn adopt(
    service: &Service,
    caller: Caller,
    entry: EntryId,
    records: Vec<Record>,
) -> ApiResult<AcceptResult> {
    let (mut accepted, mut id) = (Vec::new(), entry);
    let membership = service.membership(&service.snapshot()?)?;
    for record in records {
        let command = Command::Removal(RemovalCommand::Adopt(record.digest()));
        if let Receipt::Created(new) = service.submit(caller, command).await? {
            id = new;
        }
        let claims = record.to_entry().claims.remove(&record.author()).unwrap_or_default();
        for (register, values) in &claims.registers {
            let shown = MvRegister::shown_of(values.iter().collect(), (service.now)());
            let (Some(name), Some(shown)) = (register.name(), shown) else { continue };
            accepted.push(ProposedClaim {
                author: record.author().to_string(),
                author_name: name_of(&membership, record.author()),
                register: name.to_owned(),
                text: shown.value.text.clone(),
                at: shown.value.stamp.wall().as_millis(),
            });
        }
    }
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let code = held_entry(&reading, id)?.code();
    Ok(ApiReply(AcceptResult { id: id.to_string(), code, accepted }))
}

/// A proposal that can be accepted.
struct ProposedField {
    author: AuthorId,
    field: &'static str,
    text: String,
    stamp: Hlc,
    claim: ClaimEdit,
}

/// All proposals for an entry: for each author the newest text of each register, every element of a
/// set, and the evidence.
fn offers(
    service: &Service,
    reading: &ReadContext<'_>,
    found: &AssessedEntry,
) -> Result<Vec<ProposedField>, ApiError> {
    let mut newest: BTreeMap<(AuthorId, Register), ProposedField> = BTreeMap::new();
    for proposal in found.proposals() {
        let Some(field) = proposal.register.name() else { continue };
        let (author, text) = (proposal.author, proposal.text.clone());
        let claim = ClaimEdit::Set(proposal.register, text.clone());
        let offer = ProposedField { author, field, text, stamp: proposal.stamp, claim };
        let at = (author, proposal.register);
        if newest.get(&at).is_none_or(|known| known.stamp < offer.stamp) {
            newest.insert(at, offer);
        }
    }
    let mut offers: Vec<ProposedField> = newest.into_values().collect();
    for element in reading.proposed_elements(found)? {
        let Some(field) = element.set.name().filter(|_| SETS.contains(&element.set)) else {
            continue;
        };
        let claim = ClaimEdit::Add(element.set, element.text.clone());
        let (author, text, stamp) = (element.author, element.text, element.stamp);
        offers.push(ProposedField { author, field, text, stamp, claim });
    }
    for ProposedCitation { author, citation, stamp } in reading.proposed_citations(found)? {
        let (field, text) = (entries::EVIDENCE, entries::evidence_text(&citation));
        // The accepting node becomes the citing author.
        let (cited_by, cited_at) = (service.author.to_string(), (service.now)());
        let claim = ClaimEdit::Cite(Citation { cited_by, cited_at, ..citation });
        offers.push(ProposedField { author, field, text, stamp, claim });
    }
    Ok(offers)
}

/// The entry's code, the accepted proposals, and the claims of this node that accept them.
fn accept_proposals(
    service: &Service,
    entry: EntryId,
    ask: &Accept,
) -> Result<(String, Vec<ProposedClaim>, Vec<ClaimEdit>), ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let found = held_entry(&reading, entry)?;
    let author = ask.author.as_deref().map(|name| find_author(&reading, &found, name));
    let author = author.transpose()?;
    let mut offers = offers(service, &reading, &found)?;
    offers.retain(|offer| author.is_none_or(|author| offer.author == author));
    offers.retain(|offer| ask.what.as_deref().is_none_or(|what| offer.field == what));
    let code = found.code();
    let Some(first) = offers.first().map(|offer| offer.author) else {
        let message = format!("Entry {code} has no such proposal.");
        let hint = "Run `klnode show` to see proposals and their authors.";
        return Err(ApiError::new(ErrorKind::NotFound, message, Some(hint)));
    };
    if offers.iter().any(|offer| offer.author != first) {
        let message = format!("Several authors have proposals for entry {code}.");
        let hint = "Name the author with --from; `klnode show` lists them.";
        return Err(ApiError::new(ErrorKind::Ambiguous, message, Some(hint)));
    }
    let (mut accepted, mut claims) = (Vec::new(), Vec::new());
    for offer in offers {
        if matches!(offer.claim, ClaimEdit::Add(TextSet::ANCHORS | TextSet::DEPENDS_ON, _)) {
            entries::well_formed(&offer.text)?;
        }
        let by = reading.standing(offer.author)?;
        accepted.push(ProposedClaim {
            author: offer.author.to_string(),
            author_name: by.name.clone(),
            register: offer.field.to_owned(),
            text: offer.text,
            at: offer.stamp.wall().as_millis(),
        });
        claims.push(offer.claim);
    }
    let bindings = reading.proposed_bindings(&found, first)?;
    let elements = bindings.carried_over(predicates(&claims), |identity| Some(identity.clone()));
    claims.extend(elements.into_iter().map(recorded));
    Ok((code, accepted, claims))
}

/// Finds an author of a proposal by the start of the key, or a peer.
fn find_author(
    reading: &ReadContext<'_>,
    found: &AssessedEntry,
    name: &str,
) -> Result<AuthorId, ApiError> {
    let elements = reading.proposed_elements(found)?;
    let elements = elements.iter().map(|element| element.author);
    let cited = reading.proposed_citations(found)?;
    let others = elements.chain(cited.iter().map(|of| of.author));
    let mut proposing = found.view.proposals.iter().map(|one| one.author).chain(others);
    let is_meant = |author: &AuthorId| name.len() >= 4 && author.to_string().starts_with(name);
    match proposing.find(is_meant) {
        Some(author) => Ok(author),
        None => Ok(find_peer(&reading.membership, name)?),
    }
}

/// Archives every entry of a thread, or brings the archived ones back.
#[utoipa::path(post, path = "/v1/threads/archive", request_body = ArchiveThread,
    responses((status = 200, body = ArchivedThread)))]
pub(super) async fn archive_thread(
    State(service): State<Service>,
    caller: Caller,
    Body(ask): Body<ArchiveThread>,
) -> ApiResult<ArchivedThread> {
    if ask.thread.is_empty() {
        let message = "The name of the thread is empty.";
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let presence = if ask.undo { Presence::Withdrawn } else { Presence::Present };
    let thread = ask.thread.clone();
    let working = service.clone();
    let entries = run_blocking(move |cancel| thread_entries(&working, &ask, cancel)).await?;
    for some in entries.chunks(ARCHIVED_AT_ONCE) {
        let claims = vec![ClaimEdit::Archive(presence)];
        let commands =
            some.iter().map(|entry| Command::Claim { entry: *entry, claims: claims.clone() });
        try_join_all(commands.map(|command| service.submit(caller, command))).await?;
    }
    let entries = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    Ok(ApiReply(ArchivedThread { thread, entries }))
}

/// The entries of a thread to archive or to bring back.
fn thread_entries(
    service: &Service,
    ask: &ArchiveThread,
    cancel: &Cancel,
) -> Result<Vec<EntryId>, ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let workspace = ask.workspace.as_deref();
    let workspace = workspace.map(|name| find_workspace(&reading.membership, name)).transpose()?;
    let mut entries = Vec::new();
    for row in snapshot.entries()? {
        let (entry, row) = row?;
        if cancel.is_cancelled() {
            return Err(ApiError::new(ErrorKind::Busy, "The request was cancelled.", None));
        }
        let is_elsewhere = workspace.is_some_and(|id| row.workspace != Some(id));
        let is_internal = row.is_internal(entry);
        if row.is_forgotten || row.is_parked() || is_internal || is_elsewhere {
            continue;
        }
        let entitlement = reading.membership.entitlement(row.workspace);
        let Some(held) = klnode_store::Error::unless_damaged(snapshot.entry(entry))? else {
            continue;
        };
        let view = held.to_entry().view((service.now)(), &entitlement);
        let is_archived = view.archived.is_some();
        if view.text(Register::THREAD) == Some(&ask.thread) && is_archived == ask.undo {
            entries.push(entry);
        }
    }
    Ok(entries)
}
