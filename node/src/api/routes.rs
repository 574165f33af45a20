//! What each path does.

use super::errors::{ApiError, Kind};
use super::portable;
use super::server::Service;
use super::translate;
use super::types::{
    Done, Edit, Entry, List, ListQuery, Named, NewEntry, Observe, Outcome, Overlay, Status,
};
use crate::engine::{Command, Receipt};
use crate::query::Reference;
use crate::store::Snapshot;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::{self, Kind as EntryKind};
use klnode_crdt::tally::Observation;

/// Entries in one page of a listing.
const LIST_LIMIT_DEFAULT: usize = 50;
const LIST_LIMIT_MAX: usize = 1_000;

type Answer<T> = Result<Json<T>, ApiError>;
type Body<T> = Result<Json<T>, JsonRejection>;

pub(super) fn router(service: Service) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/entries", get(list).post(create))
        .route("/v1/entries/{entry}", get(show).patch(edit))
        .route("/v1/entries/{entry}/observations", post(observe))
        .route("/v1/entries/{entry}/retract", post(retract))
        .route("/v1/entries/{entry}/forget", post(forget))
        .route("/v1/entries/{entry}/overlay", axum::routing::put(overlay))
        .merge(portable::router())
        .fallback(async || {
            ApiError::new(Kind::NotFound, "find that path", Some("paths begin with /v1"))
        })
        .with_state(service)
}

async fn status(State(service): State<Service>) -> Answer<Status> {
    let snapshot = service.snapshot()?;
    Ok(Json(Status {
        node: service.author.to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        home: service.home.display().to_string(),
        entries: snapshot.entry_count()?,
        head: snapshot.head().0,
        quarantined: snapshot.quarantine()?.count() as u64,
        as_of: (service.now)().as_millis(),
    }))
}

async fn create(State(service): State<Service>, new: Body<NewEntry>) -> Answer<Named> {
    let new = translate::new_entry(new?.0, &service.author.to_string(), (service.now)())?;
    let kind = new.kind;
    let receipt = service.engine.submit(Command::Create(Box::new(new))).await?;
    let Receipt::Created(entry) = receipt else {
        return Err(ApiError::new(Kind::Failed, "tell which entry was created", None));
    };
    Ok(Json(Named { id: entry.to_string(), code: kind.code(entry) }))
}

async fn list(
    State(service): State<Service>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Answer<List> {
    let ListQuery { limit, after } = query?.0;
    let limit = limit.unwrap_or(LIST_LIMIT_DEFAULT).clamp(1, LIST_LIMIT_MAX);
    let snapshot = service.snapshot()?;
    let first = match after {
        None => [0; 16],
        Some(after) => {
            let resolved = after.parse::<Reference>()?.resolve(&snapshot)?;
            (u128::from_be_bytes(*resolved.as_bytes()).saturating_add(1)).to_be_bytes()
        }
    };
    let mut entries = Vec::new();
    let mut next = None;
    for row in snapshot.entries_between(first, [0xFF; 16])? {
        let (entry, row) = row?;
        if row.is_forgotten || row.is_parked() {
            continue;
        }
        if entries.len() == limit {
            next = entries.last().map(|last: &Entry| last.id.clone());
            break;
        }
        entries.push(service.read(&snapshot, entry)?);
    }
    Ok(Json(List { entries, next }))
}

async fn show(State(service): State<Service>, Path(name): Path<String>) -> Answer<Entry> {
    let snapshot = service.snapshot()?;
    let entry = resolve(&snapshot, &name)?;
    service.read(&snapshot, entry).map(Json)
}

async fn edit(
    State(service): State<Service>,
    Path(name): Path<String>,
    edit: Body<Edit>,
) -> Answer<Named> {
    let claims = translate::edit(edit?.0, &service.author.to_string(), (service.now)())?;
    let entry = resolve(&service.snapshot()?, &name)?;
    service.engine.submit(Command::Claim { entry, claims }).await?;
    named(&service, entry)
}

async fn observe(
    State(service): State<Service>,
    Path(name): Path<String>,
    observe: Body<Observe>,
) -> Answer<Named> {
    let of = match observe?.0.outcome {
        Outcome::Success => Observation::Success,
        Outcome::Failure => Observation::Failure,
    };
    let entry = resolve(&service.snapshot()?, &name)?;
    let command = Command::Observe { entry, of, amount: Thousandths::ONE };
    service.engine.submit(command).await?;
    named(&service, entry)
}

async fn retract(State(service): State<Service>, Path(name): Path<String>) -> Answer<Done> {
    let entry = resolve(&service.snapshot()?, &name)?;
    done(&service, Command::Retract { entry }).await
}

async fn forget(State(service): State<Service>, Path(name): Path<String>) -> Answer<Done> {
    let entry = resolve(&service.snapshot()?, &name)?;
    done(&service, Command::Forget { entry, grounds: None }).await
}

async fn overlay(
    State(service): State<Service>,
    Path(name): Path<String>,
    marks: Body<Overlay>,
) -> Answer<Named> {
    let marks = marks?.0;
    let snapshot = service.snapshot()?;
    let entry = resolve(&snapshot, &name)?;
    let mut overlay = snapshot.overlay(entry)?;
    drop(snapshot);
    overlay.is_pinned = marks.pinned.unwrap_or(overlay.is_pinned);
    overlay.is_muted = marks.muted.unwrap_or(overlay.is_muted);
    overlay.is_invalidated = marks.invalidated.unwrap_or(overlay.is_invalidated);
    if let Some(note) = marks.note {
        overlay.note = Some(note).filter(|note| !note.is_empty());
    }
    service.engine.submit(Command::Overlay { entry, overlay }).await?;
    named(&service, entry)
}

async fn done(service: &Service, command: Command) -> Answer<Done> {
    service.engine.submit(command).await?;
    Ok(Json(Done { head: service.snapshot()?.head().0 }))
}

fn named(service: &Service, entry: EntryId) -> Answer<Named> {
    let read = service.read(&service.snapshot()?, entry)?;
    let code = EntryKind::parse(&read.kind)
        .map_or_else(|| kind::code_digits(entry), |kind| kind.code(entry));
    Ok(Json(Named { id: entry.to_string(), code }))
}

fn resolve(snapshot: &Snapshot, name: &str) -> Result<EntryId, ApiError> {
    Ok(name.parse::<Reference>()?.resolve(snapshot)?)
}

impl Service {
    fn read(&self, snapshot: &Snapshot, entry: EntryId) -> Result<Entry, ApiError> {
        let found = self.reader.read(snapshot, entry, (self.now)())?;
        let found = found
            .ok_or_else(|| ApiError::new(Kind::NotFound, format!("find entry {entry}"), None))?;
        if snapshot.tombstone(entry)?.is_some() {
            let message = format!("show entry {entry}: it was forgotten");
            return Err(ApiError::new(Kind::Forgotten, message, None));
        }
        Ok(translate::entry(&found, &self.reader.mine))
    }
}
