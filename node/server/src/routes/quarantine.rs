//! Routes for quarantine: list, show, release and reject records that the content scan holds back.

use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::peers::find_peer;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{
    Quarantine, QuarantineDecision, QuarantineQuery, QuarantinedRecord, QuarantinedText,
    RejectRequest, RejectResult,
};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_engine::{Command, IngestOutcome, Receipt, Rejection};
use klnode_query::{ReadContext, record_texts};
use klnode_replication::PairError;
use klnode_store::Snapshot;
use klnode_store::row_types::QuarantineRow;
use std::collections::BTreeSet;

/// Maximum number of records in one response.
const LISTED_MAX: usize = 1_000;
/// Maximum number of records that one request can reject: the writer searches all waiting records
/// for each.
const REJECTED_MAX: usize = 100;
/// Minimum number of digits of a prefix that names a digest or a key.
const DIGITS_MIN: usize = 4;

/// Lists records in quarantine, oldest first.
#[utoipa::path(get, path = "/v1/quarantine", params(QuarantineQuery),
    responses((status = 200, body = Quarantine)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(QuarantineQuery { from }): QueryParams<QuarantineQuery>,
) -> ApiResult<Quarantine> {
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let mut rows = oldest_first(&snapshot)?;
        if let Some(name) = from {
            let from = find_sender(&service, &snapshot, &rows, &name)?;
            rows.retain(|(_, row)| row.from == from);
        }
        let total = rows.len() as u64;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let listed = rows.iter().take(LISTED_MAX);
        let records =
            listed.map(|(digest, row)| record_reply(&reading, *digest, row).map(|it| it.0));
        Ok(Quarantine { total, records: records.collect::<Result<_, ApiError>>()? })
    })
    .await
    .map(ApiReply)
}

/// Shows a record in quarantine, without secrets and without instructions to a reader.
#[utoipa::path(get, path = "/v1/quarantine/{digest}",
    responses((status = 200, body = QuarantinedRecord)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(digest): Path<String>,
) -> ApiResult<QuarantinedRecord> {
    run_blocking(move |_| {
        let (digest, row) = find(&service, &digest)?;
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let (shown, record) = record_reply(&reading, digest, &row)?;
        let texts = record_texts(&record).into_iter();
        let texts = texts.map(|(field, text)| QuarantinedText { field: field.into(), text });
        Ok(QuarantinedRecord { texts: texts.collect(), ..shown })
    })
    .await
    .map(ApiReply)
}

/// Releases a record from quarantine and merges it, regardless of the content scan.
#[utoipa::path(post, path = "/v1/quarantine/{digest}/release",
    responses((status = 200, body = QuarantineDecision)))]
pub(super) async fn release(
    State(service): State<Service>,
    caller: Caller,
    Path(digest): Path<String>,
) -> ApiResult<QuarantineDecision> {
    let (digest, entry) = named(&service, digest).await?;
    let receipt = service.submit(caller, Command::Release(digest)).await?;
    let ingested = match receipt {
        Receipt::Ingested(ingested) => ingested.into_iter().next(),
        _ => None,
    };
    let outcome = match ingested {
        Some(IngestOutcome::Merged(_)) => "merged",
        Some(IngestOutcome::Known) => "known",
        Some(IngestOutcome::Forgotten) => "forgotten",
        Some(
            IngestOutcome::Refused(why)
            | IngestOutcome::Deferred(why)
            | IngestOutcome::Quarantined(why),
        ) => {
            let message = format!("Record {digest} was not released: {why}.");
            return Err(ApiError::new(
                ErrorKind::Refused,
                message,
                Some("It stays in quarantine."),
            ));
        }
        None => {
            return Err(ApiError::new(
                ErrorKind::Failed,
                "The state of the record is unknown.",
                None,
            ));
        }
    };
    Ok(ApiReply(decided(digest, entry, outcome)))
}

/// Rejects a record in quarantine and deletes it. This node does not request it again from the
/// peers that offered it.
#[utoipa::path(post, path = "/v1/quarantine/{digest}/reject",
    responses((status = 200, body = QuarantineDecision)))]
pub(super) async fn reject(
    State(service): State<Service>,
    caller: Caller,
    Path(digest): Path<String>,
) -> ApiResult<QuarantineDecision> {
    let (digest, entry) = named(&service, digest).await?;
    service.submit(caller, Command::Reject(digest)).await?;
    Ok(ApiReply(decided(digest, entry, "rejected")))
}

/// Rejects records of one node, up to the limit per request; the response contains the number left.
#[utoipa::path(post, path = "/v1/quarantine/reject", request_body = RejectRequest,
    responses((status = 200, body = RejectResult)))]
pub(super) async fn reject_from(
    State(service): State<Service>,
    caller: Caller,
    Body(RejectRequest { from, limit }): Body<RejectRequest>,
) -> ApiResult<RejectResult> {
    let working = service.clone();
    let (peer, peer_name, brought) = run_blocking(move |_| {
        let snapshot = working.snapshot()?;
        let rows = oldest_first(&snapshot)?;
        let peer = find_sender(&working, &snapshot, &rows, &from)?;
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
            // Another request has already decided about it.
            Err(Rejection::NotQuarantined(_)) => gone += 1,
            // A record that cannot be read does not stop the others.
            Err(rejection) => failed = Some(rejection),
        }
    }
    if let Some(rejection) = failed.filter(|_| rejected == 0) {
        return Err(rejection.into());
    }
    let left = (brought.len() as u64).saturating_sub(rejected + gone);
    let peer = peer.to_string();
    Ok(ApiReply(RejectResult { peer, peer_name, rejected, left }))
}

/// All records in quarantine, oldest first.
fn oldest_first(snapshot: &Snapshot) -> Result<Vec<(Digest, QuarantineRow)>, klnode_store::Error> {
    let rows: Result<Vec<_>, klnode_store::Error> = snapshot.quarantine()?.collect();
    let mut rows = rows?;
    rows.sort_by_key(|(digest, row)| (row.at, *digest));
    Ok(rows)
}

/// Finds the node that sent records: a peer, this node itself (`you`) for imports, or a former peer
/// by the start of its key.
fn find_sender(
    service: &Service,
    snapshot: &Snapshot,
    rows: &[(Digest, QuarantineRow)],
    name: &str,
) -> Result<AuthorId, ApiError> {
    if name == "you" {
        return Ok(service.author);
    }
    match find_peer(&service.membership(snapshot)?, name) {
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

fn decided(digest: Digest, entry: EntryId, outcome: &str) -> QuarantineDecision {
    QuarantineDecision {
        digest: digest.to_string(),
        entry: entry.to_string(),
        outcome: outcome.into(),
    }
}

/// Finds a record by its digest or a prefix of it.
fn find(service: &Service, name: &str) -> Result<(Digest, QuarantineRow), ApiError> {
    let name = name.to_ascii_lowercase();
    let is_hex = name.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || name.len() < DIGITS_MIN {
        let message = format!(
            "`{name}` is not the start of a digest, which has at least {DIGITS_MIN} hex digits."
        );
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(LISTS)));
    }
    let mut found = None;
    for row in service.snapshot()?.quarantine()? {
        let (digest, row) = row?;
        if !digest.to_string().starts_with(&name) {
            continue;
        }
        if found.replace((digest, row)).is_some() {
            let message = format!("`{name}` is ambiguous: several records start with it.");
            return Err(ApiError::new(ErrorKind::Ambiguous, message, Some("Type one more digit.")));
        }
    }
    found.ok_or_else(|| {
        let message = format!("Record {name} not found in quarantine.");
        ApiError::new(ErrorKind::NotFound, message, Some(LISTS))
    })
}

const LISTS: &str = "Run `klnode inbox list` to see waiting records.";

async fn named(service: &Service, name: String) -> Result<(Digest, EntryId), ApiError> {
    let service = service.clone();
    run_blocking(move |_| {
        let (digest, row) = find(&service, &name)?;
        Ok((digest, record(&row)?.entry()))
    })
    .await
}

fn record(row: &QuarantineRow) -> Result<Record, klnode_store::Error> {
    Record::verify(&row.record).map_err(|error| klnode_store::Error::damaged("quarantine", &error))
}

/// A row for the response, without its texts.
fn record_reply(
    reading: &ReadContext<'_>,
    digest: Digest,
    row: &QuarantineRow,
) -> Result<(QuarantinedRecord, Record), ApiError> {
    let record = record(row)?;
    let waiting = QuarantinedRecord {
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
