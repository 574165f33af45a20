//! Upkeep: looked at, run, undone, decided.

use super::how_many;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Params, Path};
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{
    Noted, UpkeepCluster, UpkeepDecided, UpkeepPlace, UpkeepQuery, UpkeepRan, UpkeepRun,
    UpkeepService, UpkeepStatus,
};
use crate::api::upkeep::{Mode, Ran, one_pass};
use crate::engine::{Command, Note, Receipt, UpkeepAct, UpkeepDone};
use crate::query::Reading;
use crate::store::Snapshot;
use crate::store::rows::Seq;
use crate::store::upkeep::{self, Matter, ServiceRow, Stage, UpkeepRow};
use axum::extract::State;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use std::time::Duration;

/// How long an order waits for the vectors of what was written before it.
const VECTORS_WAIT_MAX: Duration = Duration::from_secs(5);
/// Rows of each list in one answer, unless another number is asked for. The journal, which is looked
/// through for them, has a limit of its own.
const LIST_LIMIT_DEFAULT: usize = 500;
/// What of the journal is listed.
const LISTS: [&str; 4] = ["changes", "proposals", "contradictions", "stale"];

/// Says how far upkeep is, what it did, and what waits for a word.
#[utoipa::path(get, path = "/v1/upkeep", params(UpkeepQuery),
    responses((status = 200, body = UpkeepStatus)))]
pub(super) async fn show(
    State(service): State<Service>,
    Params(query): Params<UpkeepQuery>,
) -> Answered<UpkeepStatus> {
    apart(move |_| {
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let reading = service.reader.at(&snapshot, now)?;
        let mut services = Vec::new();
        for of in upkeep::Service::ALL {
            let row = snapshot.service(*of)?;
            services.push(UpkeepService {
                name: of.name().into(),
                due: service.upkeep.is_due(&snapshot, now, *of)?,
                behind: snapshot.head().0.saturating_sub(row.position.0),
                through: (row.through > WallTime::default()).then(|| row.through.as_millis()),
                examined: row.examined,
                noted: row.noted,
            });
        }
        let mut status = UpkeepStatus {
            services,
            changes: Vec::new(),
            proposals: Vec::new(),
            contradictions: Vec::new(),
            stale: Vec::new(),
            clusters: Vec::new(),
            more: false,
            more_of: Vec::new(),
        };
        put_lists(&mut status, &query, &snapshot, &reading)?;
        for cluster in service.upkeep.clusters() {
            let entries =
                cluster.into_iter().map(|entry| translate::named(Some(&reading), entry)).collect();
            status.clusters.push(UpkeepCluster { entries });
        }
        Ok(status)
    })
    .await
    .map(Answer)
}

/// Fills the lists with rows of the journal, the newest first.
fn put_lists(
    status: &mut UpkeepStatus,
    query: &UpkeepQuery,
    snapshot: &Snapshot,
    reading: &Reading<'_>,
) -> Result<(), ApiError> {
    let hint = "older ones come with `--before`, or `before` over the API";
    let limit = how_many(query.limit, LIST_LIMIT_DEFAULT, "of each", Some(hint))?;
    let only = query.only.as_deref();
    if let Some(only) = only.filter(|only| !LISTS.contains(only)) {
        let message = format!("list `{only}`: it must be one of {}", LISTS.join(", "));
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    for row in snapshot.upkeep()? {
        let (number, row) = row?;
        let (name, list) = match (row.matter, row.stage) {
            (_, Stage::Made | Stage::Undone) => ("changes", &mut status.changes),
            (_, Stage::Proposed) => ("proposals", &mut status.proposals),
            (Matter::Contradiction, Stage::Open) => ("contradictions", &mut status.contradictions),
            (Matter::Staleness, Stage::Open) => ("stale", &mut status.stale),
            _ => continue,
        };
        let is_newer = query.before.is_some_and(|before| number >= before);
        if is_newer || only.is_some_and(|only| only != name) {
            continue;
        }
        if list.len() < limit {
            list.push(noted(reading, Some(number), &row));
        } else if !status.more_of.iter().any(|of| of == name) {
            status.more = true;
            status.more_of.push(name.into());
        }
    }
    Ok(())
}

/// Looks after the store now: one pass of a service. Whoever wants all of it asks until it is
/// through.
#[utoipa::path(post, path = "/v1/upkeep/run", request_body = UpkeepRun,
    responses((status = 200, body = UpkeepRan)))]
pub(super) async fn run(
    State(service): State<Service>,
    Body(order): Body<UpkeepRun>,
) -> Answered<UpkeepRan> {
    let of = upkeep::Service::parse(&order.service).ok_or_else(|| {
        let known: Vec<&str> = upkeep::Service::ALL.iter().map(|one| one.name()).collect();
        let message = format!("run `{}`: it must be one of {}", order.service, known.join(", "));
        ApiError::new(Kind::Invalid, message, None)
    })?;
    let from = order.from.as_ref().map(place).transpose()?;
    wait_for_vectors(&service).await;
    let mode = if order.dry_run { Mode::Rehearse } else { Mode::Do };
    apart(move |_| {
        let now = (service.now)();
        let (engine, index) = (&service.engine, &service.index);
        let ran = one_pass(engine, index, &service.upkeep, (of, from), now, mode)?;
        answer(&service, of, &ran, mode)
    })
    .await
    .map(Answer)
}

/// What was acknowledged before is looked at, if the vectors take it in soon.
async fn wait_for_vectors(service: &Service) {
    let head = *service.engine.head().borrow();
    let mut index = service.index.watch();
    let near = index.wait_for(|state| {
        state.fault.is_some() || state.vectors.is_some_and(|vectors| vectors >= head)
    });
    // Late or not, the answer says where it goes on.
    let _ = tokio::time::timeout(VECTORS_WAIT_MAX, near).await;
}

/// Undoes what upkeep did. The same is not done again.
#[utoipa::path(post, path = "/v1/upkeep/{number}/undo",
    responses((status = 200, body = UpkeepDecided)))]
pub(super) async fn undo(
    State(service): State<Service>,
    caller: Caller,
    Path(number): Path<String>,
) -> Answered<UpkeepDecided> {
    decide(&service, caller, &number, UpkeepAct::Undo).await
}

/// Does what was proposed.
#[utoipa::path(post, path = "/v1/upkeep/{number}/accept",
    responses((status = 200, body = UpkeepDecided)))]
pub(super) async fn accept(
    State(service): State<Service>,
    caller: Caller,
    Path(number): Path<String>,
) -> Answered<UpkeepDecided> {
    decide(&service, caller, &number, UpkeepAct::Accept).await
}

/// Drops what was proposed or found. It does not come again.
#[utoipa::path(post, path = "/v1/upkeep/{number}/dismiss",
    responses((status = 200, body = UpkeepDecided)))]
pub(super) async fn dismiss(
    State(service): State<Service>,
    caller: Caller,
    Path(number): Path<String>,
) -> Answered<UpkeepDecided> {
    decide(&service, caller, &number, UpkeepAct::Dismiss).await
}

async fn decide(
    service: &Service,
    caller: Caller,
    number: &str,
    act: fn(u64) -> UpkeepAct,
) -> Answered<UpkeepDecided> {
    let number: u64 = number.parse().map_err(|_| {
        let message = format!("read `{number}` as a number of upkeep");
        ApiError::new(Kind::Invalid, message, Some("`klnode maintain list` shows the numbers"))
    })?;
    let receipt = service.submit(caller, Command::Upkeep(Box::new(act(number)))).await?;
    let Receipt::Upkeep(UpkeepDone::Decided(number, row)) = receipt else {
        return Err(ApiError::new(Kind::Failed, "tell what became of the number", None));
    };
    let service = service.clone();
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        Ok(UpkeepDecided { noted: noted(&reading, Some(number), &row) })
    })
    .await
    .map(Answer)
}

fn place(place: &UpkeepPlace) -> Result<ServiceRow, ApiError> {
    let walk = place.walk.as_deref().map(|text| {
        EntryId::from_hex(text).ok_or_else(|| {
            ApiError::new(Kind::Invalid, format!("read `{text}` as the id of an entry"), None)
        })
    });
    let (position, walk) = (Seq(place.position), walk.transpose()?);
    Ok(ServiceRow { position, walk, ..ServiceRow::default() })
}

fn answer(
    service: &Service,
    of: upkeep::Service,
    ran: &Ran,
    mode: Mode,
) -> Result<UpkeepRan, ApiError> {
    let (snapshot, now) = (service.snapshot()?, (service.now)());
    let reading = service.reader.at(&snapshot, now)?;
    let pass = &ran.pass;
    let UpkeepAct::Pass { notes, over, faded, .. } = &pass.act else {
        return Err(ApiError::new(Kind::Failed, "tell what a pass found", None));
    };
    let mut listed = Vec::new();
    if mode == Mode::Rehearse {
        for note in notes {
            listed.push(noted(&reading, None, &rehearsed(of, note, now)));
        }
    } else {
        let oldest = ran.numbers.iter().min().copied().unwrap_or(u64::MAX);
        for row in snapshot.upkeep()? {
            let (number, row) = row?;
            if number < oldest {
                break;
            }
            if ran.numbers.contains(&number) {
                listed.push(noted(&reading, Some(number), &row));
            }
        }
        listed.reverse();
    }
    Ok(UpkeepRan {
        service: of.name().into(),
        examined: pass.examined,
        noted: listed,
        over: over.len() as u64,
        faded: faded.len() as u64,
        through: pass.is_through,
        done: pass.done,
        total: pass.total,
        waits_for: pass.waits_for.map(str::to_owned),
        next: UpkeepPlace {
            position: pass.row.position.0,
            walk: pass.row.walk.map(|entry| entry.to_string()),
        },
    })
}

fn rehearsed(service: upkeep::Service, note: &Note, at: WallTime) -> UpkeepRow {
    UpkeepRow {
        service,
        matter: note.matter,
        stage: note.stage,
        at,
        entries: note.entries.iter().map(|(entry, _)| *entry).collect(),
        why: note.why.clone(),
        is_foreign: note.is_foreign,
        decided: None,
    }
}

/// A row of the journal, as it travels.
pub(super) fn noted(reading: &Reading<'_>, number: Option<u64>, row: &UpkeepRow) -> Noted {
    let entries = row.entries.iter().map(|entry| translate::titled(reading, *entry));
    let (entries, titles) = entries.unzip();
    Noted {
        number,
        service: row.service.name().into(),
        matter: row.matter.name().into(),
        stage: row.stage.name().into(),
        at: row.at.as_millis(),
        entries,
        titles,
        why: row.why.clone(),
        foreign: row.is_foreign,
        decided: row.decided.map(WallTime::as_millis),
    }
}
