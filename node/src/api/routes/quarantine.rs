//! What peers brought and the scan holds back: looked at, released, rejected.

use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Params, Path};
use crate::api::server::Service;
use crate::api::sharing::find_peer;
use crate::api::types::{
    Decided, Quarantine, QuarantineQuery, Quarantined, QuarantinedText, RejectFrom, RejectedFrom,
};
use crate::engine::{Command, Ingested, Receipt, Rejection};
use crate::query::{Reading, said};
use crate::replicate::PairError;
use crate::store;
use crate::store::Snapshot;
use crate::store::rows::QuarantineRow;
use axum::extract::State;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use std::collections::BTreeSet;

/// Records that one answer lists.
const LISTED_MAX: usize = 1_000;
/// Records that one request throws away: the writer looks for each among all that wait.
const REJECTED_MAX: usize = 100;
/// Shorter beginnings of a digest or a key name nothing.
const DIGITS_MIN: usize = 4;

/// Lists what waits, oldest first.
#[utoipa::path(get, path = "/v1/quarantine", params(QuarantineQuery),
    responses((status = 200, body = Quarantine)))]
pub(super) async fn list(
    State(service): State<Service>,
    Params(QuarantineQuery { from }): Params<QuarantineQuery>,
) -> Answered<Quarantine> {
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let mut rows = oldest_first(&snapshot)?;
        if let Some(name) = from {
            let from = bringer(&service, &snapshot, &rows, &name)?;
            rows.retain(|(_, row)| row.from == from);
        }
        let total = rows.len() as u64;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let listed = rows.iter().take(LISTED_MAX);
        let records = listed.map(|(digest, row)| waiting(&reading, *digest, row).map(|it| it.0));
        Ok(Quarantine { total, records: records.collect::<Result<_, ApiError>>()? })
    })
    .await
    .map(Answer)
}

/// Shows a record that waits: without secrets, and without what would instruct a reader.
#[utoipa::path(get, path = "/v1/quarantine/{digest}",
    responses((status = 200, body = Quarantined)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(digest): Path<String>,
) -> Answered<Quarantined> {
    apart(move |_| {
        let (digest, row) = find(&service, &digest)?;
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let (shown, record) = waiting(&reading, digest, &row)?;
        let texts = said(&record).into_iter();
        let texts = texts.map(|(field, text)| QuarantinedText { field: field.into(), text });
        Ok(Quarantined { texts: texts.collect(), ..shown })
    })
    .await
    .map(Answer)
}

/// Takes in a record that waits, whatever the scan says.
#[utoipa::path(post, path = "/v1/quarantine/{digest}/release",
    responses((status = 200, body = Decided)))]
pub(super) async fn release(
    State(service): State<Service>,
    caller: Caller,
    Path(digest): Path<String>,
) -> Answered<Decided> {
    let (digest, entry) = named(&service, digest).await?;
    let receipt = service.submit(caller, Command::Release(digest)).await?;
    let ingested = match receipt {
        Receipt::Ingested(ingested) => ingested.into_iter().next(),
        _ => None,
    };
    let outcome = match ingested {
        Some(Ingested::Merged(_)) => "merged",
        Some(Ingested::Known) => "known",
        Some(Ingested::Forgotten) => "forgotten",
        Some(Ingested::Refused(why) | Ingested::Deferred(why) | Ingested::Quarantined(why)) => {
            let message = format!("release record {digest}: {why}");
            return Err(ApiError::new(Kind::Refused, message, Some("it goes on waiting")));
        }
        None => return Err(ApiError::new(Kind::Failed, "tell what became of the record", None)),
    };
    Ok(Answer(decided(digest, entry, outcome)))
}

/// Throws a record away that waits. Where it was offered it is not asked for again.
#[utoipa::path(post, path = "/v1/quarantine/{digest}/reject",
    responses((status = 200, body = Decided)))]
pub(super) async fn reject(
    State(service): State<Service>,
    caller: Caller,
    Path(digest): Path<String>,
) -> Answered<Decided> {
    let (digest, entry) = named(&service, digest).await?;
    service.submit(caller, Command::Reject(digest)).await?;
    Ok(Answer(decided(digest, entry, "rejected")))
}

/// Throws away what one node has brought, as much of it as one request may; what is left is told.
#[utoipa::path(post, path = "/v1/quarantine/reject", request_body = RejectFrom,
    responses((status = 200, body = RejectedFrom)))]
pub(super) async fn reject_from(
    State(service): State<Service>,
    caller: Caller,
    Body(RejectFrom { from, limit }): Body<RejectFrom>,
) -> Answered<RejectedFrom> {
    let working = service.clone();
    let (peer, peer_name, brought) = apart(move |_| {
        let snapshot = working.snapshot()?;
        let rows = oldest_first(&snapshot)?;
        let peer = bringer(&working, &snapshot, &rows, &from)?;
        let reading = working.reader.at(&snapshot, (working.now)())?;
        let name = reading.standing(peer)?.name.clone();
        let brought = rows.iter().filter(|(_, row)| row.from == peer).map(|(digest, _)| *digest);
        Ok((peer, name, brought.collect::<Vec<Digest>>()))
    })
    .await?;
    let limit = limit.map_or(REJECTED_MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let reject = |digest: &Digest| {
        let command = Box::new(Command::Reject(*digest));
        Command::As { caller: caller.into(), command }
    };
    let commands: Vec<Command> = brought.iter().take(limit.min(REJECTED_MAX)).map(reject).collect();
    let (mut rejected, mut gone, mut failed) = (0, 0, None);
    for answer in service.engine.submit_all(commands).await? {
        match answer {
            Ok(_) => rejected += 1,
            // Somebody else was quicker.
            Err(Rejection::NotQuarantined(_)) => gone += 1,
            // One that cannot be read keeps no other.
            Err(rejection) => failed = Some(rejection),
        }
    }
    if let Some(rejection) = failed.filter(|_| rejected == 0) {
        return Err(rejection.into());
    }
    let left = (brought.len() as u64).saturating_sub(rejected + gone);
    let peer = peer.to_string();
    Ok(Answer(RejectedFrom { peer, peer_name, rejected, left }))
}

/// Everything that waits.
fn oldest_first(snapshot: &Snapshot) -> Result<Vec<(Digest, QuarantineRow)>, store::Error> {
    let rows: Result<Vec<_>, store::Error> = snapshot.quarantine()?.collect();
    let mut rows = rows?;
    rows.sort_by_key(|(digest, row)| (row.at, *digest));
    Ok(rows)
}

/// The node that a caller means, of those that have brought something: a peer; this node itself, where
/// it came out of a file; or one that is no peer any more, by the beginning of its key.
fn bringer(
    service: &Service,
    snapshot: &Snapshot,
    rows: &[(Digest, QuarantineRow)],
    name: &str,
) -> Result<AuthorId, ApiError> {
    if name == "you" {
        return Ok(service.author);
    }
    match find_peer(&service.society(snapshot)?, name) {
        Err(PairError::NoSuchPeer(_)) if name.len() >= DIGITS_MIN => {}
        found => return Ok(found?),
    }
    let all: BTreeSet<AuthorId> = rows.iter().map(|(_, row)| row.from).collect();
    let mut meant = all.into_iter().filter(|key| key.to_string().starts_with(name));
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(PairError::Ambiguous(name.to_owned()).into()),
        _ => Err(PairError::NoSuchPeer(name.to_owned()).into()),
    }
}

fn decided(digest: Digest, entry: EntryId, outcome: &str) -> Decided {
    Decided { digest: digest.to_string(), entry: entry.to_string(), outcome: outcome.into() }
}

/// The record that a caller names by its digest, or by a beginning of it.
fn find(service: &Service, name: &str) -> Result<(Digest, QuarantineRow), ApiError> {
    let name = name.to_ascii_lowercase();
    let is_hex = name.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || name.len() < DIGITS_MIN {
        let message = format!(
            "read `{name}` as a record in quarantine: it is not the beginning of a digest, {DIGITS_MIN} \
             hex digits or more"
        );
        return Err(ApiError::new(Kind::Invalid, message, Some(LISTS)));
    }
    let mut found = None;
    for row in service.snapshot()?.quarantine()? {
        let (digest, row) = row?;
        if !digest.to_string().starts_with(&name) {
            continue;
        }
        if found.replace((digest, row)).is_some() {
            let message = format!("tell which record `{name}` is: several begin so");
            return Err(ApiError::new(Kind::Ambiguous, message, Some("type one more digit")));
        }
    }
    found.ok_or_else(|| {
        let message = format!("find record {name} in quarantine");
        ApiError::new(Kind::NotFound, message, Some(LISTS))
    })
}

const LISTS: &str = "`klnode quarantine list` shows what waits";

async fn named(service: &Service, name: String) -> Result<(Digest, EntryId), ApiError> {
    let service = service.clone();
    apart(move |_| {
        let (digest, row) = find(&service, &name)?;
        Ok((digest, record(&row)?.entry()))
    })
    .await
}

fn record(row: &QuarantineRow) -> Result<Record, store::Error> {
    Record::verify(&row.record).map_err(|error| store::Error::damaged("quarantine", &error))
}

/// A row as it is answered, without its texts.
fn waiting(
    reading: &Reading<'_>,
    digest: Digest,
    row: &QuarantineRow,
) -> Result<(Quarantined, Record), ApiError> {
    let record = record(row)?;
    let waiting = Quarantined {
        digest: digest.to_string(),
        entry: record.entry().to_string(),
        author: record.author().to_string(),
        author_name: reading.standing(record.author())?.name.clone(),
        peer: row.from.to_string(),
        peer_name: reading.standing(row.from)?.name.clone(),
        since: row.at.as_millis(),
        reason: row.reason.clone(),
        texts: Vec::new(),
    };
    Ok((waiting, record))
}
