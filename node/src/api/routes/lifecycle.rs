//! What becomes of entries beside each other: one takes another's place, a proposal is accepted, a
//! thread is put away.

use super::entries::check_edit;
use super::{not_held, resolve_for_change};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Path};
use crate::api::places::predicates;
use crate::api::server::Service;
use crate::api::sharing::{find_peer, find_workspace};
use crate::api::translate;
use crate::api::types::{
    Accept, Accepted, ArchiveThread, ArchivedThread, Proposed, Supersede, Superseded,
};
use crate::engine::Command;
use crate::query::{Cancel, Found, ProposedCitation, Reading, SuccessionError, recorded};
use axum::extract::State;
use futures_util::future::try_join_all;
use klnode_crdt::charter;
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww::Register;
use klnode_crdt::time::Hlc;
use klnode_crdt::writer::Claim;
use std::collections::BTreeMap;

/// Entries of a thread that are put away at once, so that the writer commits them together.
const ARCHIVED_AT_ONCE: usize = 64;
/// Sets of which an element can be accepted.
const SETS: [TextSet; 4] =
    [TextSet::TAGS, TextSet::ANCHORS, TextSet::VERIFY_STEPS, TextSet::DEPENDS_ON];

impl From<SuccessionError> for ApiError {
    fn from(error: SuccessionError) -> Self {
        match error {
            SuccessionError::Store(error) => error.into(),
            error => Self::new(Kind::Invalid, error.to_string(), None),
        }
    }
}

/// Says that another entry takes an entry's place, or takes that back.
#[utoipa::path(post, path = "/v1/entries/{entry}/supersede", request_body = Supersede,
    responses((status = 200, body = Superseded)))]
pub(super) async fn supersede(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Supersede>,
) -> Answered<Superseded> {
    let old = resolve_for_change(&service, &entry).await?;
    let new = resolve_for_change(&service, &ask.by).await?;
    let link = Link { relation: Relation::SUPERSEDES, to: old };
    let working = service.clone();
    let (code, by_code) = apart(move |_| {
        let snapshot = working.snapshot()?;
        let reading = working.reader.at(&snapshot, (working.now)())?;
        let (given, taking) = (present(&reading, old)?, present(&reading, new)?);
        let (code, by_code) = (given.code(), taking.code());
        if old == new {
            let message = format!("supersede entry {code} by itself: it is the same entry");
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
        let drawn_by = taking.view.links.get(&link);
        if !ask.undo {
            reading.may_supersede(old, new)?;
        } else if drawn_by.is_none_or(|by| !by.contains(&working.author)) {
            let message = format!(
                "take that back: this node has not said that {by_code} takes the place of {code}"
            );
            return Err(ApiError::new(Kind::NotFound, message, None));
        }
        Ok((code, by_code))
    })
    .await?;
    let claim = if ask.undo { Claim::Unlink(link) } else { Claim::Link(link) };
    service.submit(caller, Command::Claim { entry: new, claims: vec![claim] }).await?;
    Ok(Answer(Superseded { id: old.to_string(), code, by: new.to_string(), by_code }))
}

/// An entry that is there.
fn present(reading: &Reading<'_>, entry: EntryId) -> Result<Found, ApiError> {
    reading.read(entry)?.ok_or_else(|| not_held(entry))
}

/// Takes what somebody whose word is not shown says about an entry as this node's own word.
#[utoipa::path(post, path = "/v1/entries/{entry}/accept", request_body = Accept,
    responses((status = 200, body = Accepted)))]
pub(super) async fn accept(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Accept>,
) -> Answered<Accepted> {
    let entry = resolve_for_change(&service, &entry).await?;
    let working = service.clone();
    let approval = service.person.unsigned();
    let taken = apart(move |_| {
        let taken = taken(&working, entry, &ask)?;
        check_edit(&working, entry, &taken.2, approval)?;
        Ok(taken)
    });
    let (code, accepted, claims) = taken.await?;
    service.submit(caller, Command::Claim { entry, claims }).await?;
    Ok(Answer(Accepted { id: entry.to_string(), code, accepted }))
}

/// A field that somebody would have otherwise.
struct Offer {
    author: AuthorId,
    field: &'static str,
    text: String,
    stamp: Hlc,
    claim: Claim,
}

/// Everything that is proposed for an entry and could be accepted: of each author the newest text
/// of a register, every element of a set, and the evidence.
fn offers(service: &Service, reading: &Reading<'_>, found: &Found) -> Result<Vec<Offer>, ApiError> {
    let mut newest: BTreeMap<(AuthorId, Register), Offer> = BTreeMap::new();
    for proposal in found.proposals() {
        let Some(field) = proposal.register.name() else { continue };
        let (author, text) = (proposal.author, proposal.text.clone());
        let claim = Claim::Set(proposal.register, text.clone());
        let offer = Offer { author, field, text, stamp: proposal.stamp, claim };
        let at = (author, proposal.register);
        if newest.get(&at).is_none_or(|known| known.stamp < offer.stamp) {
            newest.insert(at, offer);
        }
    }
    let mut offers: Vec<Offer> = newest.into_values().collect();
    for element in reading.proposed_elements(found)? {
        let Some(field) = element.set.name().filter(|_| SETS.contains(&element.set)) else {
            continue;
        };
        let claim = Claim::Add(element.set, element.text.clone());
        let (author, text, stamp) = (element.author, element.text, element.stamp);
        offers.push(Offer { author, field, text, stamp, claim });
    }
    for ProposedCitation { author, citation, stamp } in reading.proposed_citations(found)? {
        let (field, text) = (translate::EVIDENCE, translate::cited(&citation));
        // Whoever accepts it cites it.
        let (cited_by, cited_at) = (service.author.to_string(), (service.now)());
        let claim = Claim::Cite(Citation { cited_by, cited_at, ..citation });
        offers.push(Offer { author, field, text, stamp, claim });
    }
    Ok(offers)
}

/// What is accepted of an entry's proposals: its code, what it is, and how this node says it.
fn taken(
    service: &Service,
    entry: EntryId,
    ask: &Accept,
) -> Result<(String, Vec<Proposed>, Vec<Claim>), ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let found = present(&reading, entry)?;
    let author = ask.author.as_deref().map(|name| find_author(&reading, &found, name));
    let author = author.transpose()?;
    let mut offers = offers(service, &reading, &found)?;
    offers.retain(|offer| author.is_none_or(|author| offer.author == author));
    offers.retain(|offer| ask.what.as_deref().is_none_or(|what| offer.field == what));
    let code = found.code();
    let Some(first) = offers.first().map(|offer| offer.author) else {
        let message = format!("accept anything for entry {code}: nothing like that is proposed");
        let hint = "`klnode show` lists what is proposed, and by whom";
        return Err(ApiError::new(Kind::NotFound, message, Some(hint)));
    };
    if offers.iter().any(|offer| offer.author != first) {
        let message = format!("tell whose proposal for entry {code} is meant: several make one");
        let hint = "name the author with --from; `klnode show` lists them";
        return Err(ApiError::new(Kind::Ambiguous, message, Some(hint)));
    }
    let (mut accepted, mut claims) = (Vec::new(), Vec::new());
    for offer in offers {
        if matches!(offer.claim, Claim::Add(TextSet::ANCHORS | TextSet::DEPENDS_ON, _)) {
            translate::well_formed(&offer.text)?;
        }
        let by = reading.standing(offer.author)?;
        accepted.push(Proposed {
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

/// The author that somebody means: one who proposes something, by the beginning of a key, or a peer.
fn find_author(reading: &Reading<'_>, found: &Found, name: &str) -> Result<AuthorId, ApiError> {
    let elements = reading.proposed_elements(found)?;
    let elements = elements.iter().map(|element| element.author);
    let cited = reading.proposed_citations(found)?;
    let others = elements.chain(cited.iter().map(|of| of.author));
    let mut proposing = found.view.proposals.iter().map(|one| one.author).chain(others);
    let is_meant = |author: &AuthorId| name.len() >= 4 && author.to_string().starts_with(name);
    match proposing.find(is_meant) {
        Some(author) => Ok(author),
        None => Ok(find_peer(&reading.society, name)?),
    }
}

/// Archives every entry of a thread, or brings back what is archived of it.
#[utoipa::path(post, path = "/v1/threads/archive", request_body = ArchiveThread,
    responses((status = 200, body = ArchivedThread)))]
pub(super) async fn archive_thread(
    State(service): State<Service>,
    caller: Caller,
    Body(ask): Body<ArchiveThread>,
) -> Answered<ArchivedThread> {
    if ask.thread.is_empty() {
        let message = "archive a thread: its name is empty";
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let presence = if ask.undo { Presence::Withdrawn } else { Presence::Present };
    let thread = ask.thread.clone();
    let working = service.clone();
    let entries = apart(move |cancel| of_thread(&working, &ask, cancel)).await?;
    for some in entries.chunks(ARCHIVED_AT_ONCE) {
        let claims = vec![Claim::Archive(presence)];
        let commands =
            some.iter().map(|entry| Command::Claim { entry: *entry, claims: claims.clone() });
        try_join_all(commands.map(|command| service.submit(caller, command))).await?;
    }
    let entries = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    Ok(Answer(ArchivedThread { thread, entries }))
}

/// The entries of a thread that are to be put away, or brought back.
fn of_thread(
    service: &Service,
    ask: &ArchiveThread,
    cancel: &Cancel,
) -> Result<Vec<EntryId>, ApiError> {
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let workspace = ask.workspace.as_deref();
    let workspace = workspace.map(|name| find_workspace(&reading.society, name)).transpose()?;
    let mut entries = Vec::new();
    for row in snapshot.entries()? {
        let (entry, row) = row?;
        if cancel.is_cancelled() {
            return Err(ApiError::new(Kind::Busy, "archive the thread: it was given up", None));
        }
        let is_elsewhere = workspace.is_some_and(|id| row.workspace != Some(id));
        let is_charter = row.workspace.is_some_and(|id| charter::entry(id) == entry);
        if row.is_forgotten || row.is_parked() || is_charter || is_elsewhere {
            continue;
        }
        let entitlement = reading.society.entitlement(row.workspace);
        let Some(held) = crate::store::Error::unless_damaged(snapshot.entry(entry))? else {
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
