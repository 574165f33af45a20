//! Routes for maintenance: status, run, undo, accept and dismiss.

use super::how_many;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::maintenance_pass::{PassMode, PassReport, one_pass};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{
    EntryCluster, JournalItem, MainProposal, MaintenanceDecision, MaintenancePosition,
    MaintenanceQuery, MaintenanceResult, MaintenanceRun, MaintenanceService, MaintenanceStatus,
};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, MaintenanceCommand, MaintenanceNote, MaintenanceReceipt, Receipt};
use klnode_query::ReadContext;
use klnode_store::Snapshot;
use klnode_store::maintenance_journal::{self, MaintenanceRow, Matter, ServiceRow, Stage};
use klnode_store::row_types::Seq;
use std::time::Duration;

/// How long a run waits for the vectors of records written before it.
const VECTORS_WAIT_MAX: Duration = Duration::from_secs(5);
/// Default number of items per list. The journal that is searched for them has its own limit.
const LIST_LIMIT_DEFAULT: usize = 500;
/// The lists of the journal.
const LISTS: [&str; 4] = ["changes", "proposals", "contradictions", "stale"];

/// Returns the progress of maintenance and the items of its journal.
#[utoipa::path(get, path = "/v1/maintenance", params(MaintenanceQuery),
    responses((status = 200, body = MaintenanceStatus)))]
pub(super) async fn show(
    State(service): State<Service>,
    QueryParams(query): QueryParams<MaintenanceQuery>,
) -> ApiResult<MaintenanceStatus> {
    run_blocking(move |_| {
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let reading = service.reader.at(&snapshot, now)?;
        let mut services = Vec::new();
        for of in maintenance_journal::Service::ALL {
            let row = snapshot.service(*of)?;
            services.push(MaintenanceService {
                name: of.name().into(),
                due: service.maintenance.is_due(&snapshot, now, *of)?,
                behind: snapshot.head().0.saturating_sub(row.position.0),
                through: (row.through > WallTime::default()).then(|| row.through.as_millis()),
                examined: row.examined,
                noted: row.noted,
            });
        }
        let mut status = MaintenanceStatus {
            services,
            changes: Vec::new(),
            proposals: Vec::new(),
            contradictions: Vec::new(),
            stale: Vec::new(),
            clusters: Vec::new(),
            for_main: Vec::new(),
            more: false,
            more_of: Vec::new(),
        };
        put_lists(&mut status, &query, &snapshot, &reading)?;
        status.for_main = for_main(&reading)?;
        for cluster in service.maintenance.clusters() {
            let (mean_weight, dense) = (cluster.mean_weight, cluster.is_dense());
            let entries = cluster
                .entries
                .into_iter()
                .map(|entry| entries::entry_identity(Some(&reading), entry))
                .collect();
            status.clusters.push(EntryCluster { entries, mean_weight, dense });
        }
        Ok(status)
    })
    .await
    .map(ApiReply)
}

/// Entries that two projects found independently.
fn for_main(reading: &ReadContext<'_>) -> Result<Vec<MainProposal>, ApiError> {
    let proposed = reading.global_candidates()?.into_iter().map(|one| {
        let entry = entries::entry(&one.found);
        let projects = one.projects.into_iter().map(|id| reading.membership.name(id)).collect();
        MainProposal { id: entry.id, code: entry.code, title: entry.title, projects }
    });
    Ok(proposed.collect())
}

/// Fills the lists with items of the journal, newest first.
fn put_lists(
    status: &mut MaintenanceStatus,
    query: &MaintenanceQuery,
    snapshot: &Snapshot,
    reading: &ReadContext<'_>,
) -> Result<(), ApiError> {
    let hint = "Get older items with `--before`, or `before` in the API.";
    let limit = how_many(query.limit, LIST_LIMIT_DEFAULT, "items per list", Some(hint))?;
    let only = query.only.as_deref();
    if let Some(only) = only.filter(|only| !LISTS.contains(only)) {
        let message =
            format!("The list `{only}` does not exist; it must be one of {}.", LISTS.join(", "));
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    for row in snapshot.maintenance_rows()? {
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

/// Runs one step of a maintenance service. Repeat the request until `through` is true to run a
/// whole pass.
#[utoipa::path(post, path = "/v1/maintenance/run", request_body = MaintenanceRun,
    responses((status = 200, body = MaintenanceResult)))]
pub(super) async fn run(
    State(service): State<Service>,
    Body(order): Body<MaintenanceRun>,
) -> ApiResult<MaintenanceResult> {
    let of = maintenance_journal::Service::parse(&order.service).ok_or_else(|| {
        let known: Vec<&str> =
            maintenance_journal::Service::ALL.iter().map(|one| one.name()).collect();
        let message = format!(
            "The service `{}` does not exist; it must be one of {}.",
            order.service,
            known.join(", ")
        );
        ApiError::new(ErrorKind::Invalid, message, None)
    })?;
    let from = order.from.as_ref().map(place).transpose()?;
    wait_for_vectors(&service).await;
    let mode = if order.dry_run { PassMode::Rehearse } else { PassMode::Do };
    run_blocking(move |_| {
        let now = (service.now)();
        let (engine, index) = (&service.engine, &service.index);
        let ran = one_pass(engine, index, &service.maintenance, (of, from), now, mode)?;
        answer(&service, of, &ran, mode)
    })
    .await
    .map(ApiReply)
}

/// Waits a short time until the vectors include all acknowledged records.
async fn wait_for_vectors(service: &Service) {
    let head = *service.engine.head().borrow();
    let mut index = service.index.watch();
    let near = index.wait_for(|state| {
        state.fault.is_some() || state.vectors.is_some_and(|vectors| vectors >= head)
    });
    // A timeout is fine: the response contains the position from which to continue.
    let _ = tokio::time::timeout(VECTORS_WAIT_MAX, near).await;
}

/// Undoes a change that maintenance made. Maintenance does not make it again.
#[utoipa::path(post, path = "/v1/maintenance/{number}/undo",
    responses((status = 200, body = MaintenanceDecision)))]
pub(super) async fn undo(
    State(service): State<Service>,
    caller: Caller,
    Path(number): Path<String>,
) -> ApiResult<MaintenanceDecision> {
    decide(&service, caller, &number, MaintenanceCommand::Undo).await
}

/// Accepts a proposal and makes the change.
#[utoipa::path(post, path = "/v1/maintenance/{number}/accept",
    responses((status = 200, body = MaintenanceDecision)))]
pub(super) async fn accept(
    State(service): State<Service>,
    caller: Caller,
    Path(number): Path<String>,
) -> ApiResult<MaintenanceDecision> {
    decide(&service, caller, &number, MaintenanceCommand::Accept).await
}

/// Dismisses a proposal or a finding. Maintenance does not report it again.
#[utoipa::path(post, path = "/v1/maintenance/{number}/dismiss",
    responses((status = 200, body = MaintenanceDecision)))]
pub(super) async fn dismiss(
    State(service): State<Service>,
    caller: Caller,
    Path(number): Path<String>,
) -> ApiResult<MaintenanceDecision> {
    decide(&service, caller, &number, MaintenanceCommand::Dismiss).await
}

async fn decide(
    service: &Service,
    caller: Caller,
    number: &str,
    act: fn(u64) -> MaintenanceCommand,
) -> ApiResult<MaintenanceDecision> {
    let number: u64 = number.parse().map_err(|_| {
        let message = format!("`{number}` is not the number of a journal item.");
        ApiError::new(
            ErrorKind::Invalid,
            message,
            Some("Run `klnode maintain list` to see the numbers."),
        )
    })?;
    let receipt = service.submit(caller, Command::Maintenance(Box::new(act(number)))).await?;
    let Receipt::Maintenance(MaintenanceReceipt::Decided(number, row)) = receipt else {
        return Err(ApiError::new(
            ErrorKind::Failed,
            "The state of the journal item is unknown.",
            None,
        ));
    };
    let service = service.clone();
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        Ok(MaintenanceDecision { noted: noted(&reading, Some(number), &row) })
    })
    .await
    .map(ApiReply)
}

fn place(place: &MaintenancePosition) -> Result<ServiceRow, ApiError> {
    let walk = place.walk.as_deref().map(|text| {
        EntryId::from_hex(text).ok_or_else(|| {
            ApiError::new(ErrorKind::Invalid, format!("`{text}` is not the id of an entry."), None)
        })
    });
    let (position, walk) = (Seq(place.position), walk.transpose()?);
    Ok(ServiceRow { position, walk, ..ServiceRow::default() })
}

fn answer(
    service: &Service,
    of: maintenance_journal::Service,
    ran: &PassReport,
    mode: PassMode,
) -> Result<MaintenanceResult, ApiError> {
    let (snapshot, now) = (service.snapshot()?, (service.now)());
    let reading = service.reader.at(&snapshot, now)?;
    let pass = &ran.pass;
    let MaintenanceCommand::Pass { notes, over, faded, .. } = &pass.act else {
        return Err(ApiError::new(ErrorKind::Failed, "The result of the pass is unknown.", None));
    };
    let mut listed = Vec::new();
    if mode == PassMode::Rehearse {
        for note in notes {
            listed.push(noted(&reading, None, &rehearsed(of, note, now)));
        }
    } else {
        let oldest = ran.numbers.iter().min().copied().unwrap_or(u64::MAX);
        for row in snapshot.maintenance_rows()? {
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
    Ok(MaintenanceResult {
        service: of.name().into(),
        examined: pass.examined,
        noted: listed,
        over: over.len() as u64,
        faded: faded.len() as u64,
        through: pass.is_through,
        done: pass.done,
        total: pass.total,
        waits_for: pass.waits_for.map(str::to_owned),
        next: MaintenancePosition {
            position: pass.row.position.0,
            walk: pass.row.walk.map(|entry| entry.to_string()),
        },
    })
}

fn rehearsed(
    service: maintenance_journal::Service,
    note: &MaintenanceNote,
    at: WallTime,
) -> MaintenanceRow {
    MaintenanceRow {
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

/// An item of the journal for the response.
pub(super) fn noted(
    reading: &ReadContext<'_>,
    number: Option<u64>,
    row: &MaintenanceRow,
) -> JournalItem {
    let entries = row.entries.iter().map(|entry| entries::identity_and_title(reading, *entry));
    let (entries, titles) = entries.unzip();
    JournalItem {
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
