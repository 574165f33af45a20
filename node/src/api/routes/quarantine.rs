//! What peers brought and the scan holds back: looked at, released, rejected.

use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered};
use crate::api::server::Service;
use crate::api::types::{Decided, Quarantine, Quarantined, QuarantinedText};
use crate::engine::{Command, Ingested, Receipt};
use crate::query::{Reading, said};
use crate::store;
use crate::store::rows::QuarantineRow;
use axum::extract::{Path, State};
use klnode_crdt::ids::{Digest, EntryId};
use klnode_crdt::record::Record;

/// Records that one answer lists.
const LISTED_MAX: usize = 1_000;
/// Shorter beginnings of a digest name nothing.
const DIGITS_MIN: usize = 4;

/// Lists what waits, oldest first.
#[utoipa::path(get, path = "/v1/quarantine", responses((status = 200, body = Quarantine)))]
pub(super) async fn list(State(service): State<Service>) -> Answered<Quarantine> {
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let rows: Result<Vec<_>, store::Error> = snapshot.quarantine()?.collect();
        let mut rows = rows?;
        rows.sort_by_key(|(digest, row)| (row.at, *digest));
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
