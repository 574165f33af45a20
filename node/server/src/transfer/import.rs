//! `POST /v1/import`: imports some lines of a file in one transaction.
//!
//! All lines are parsed and verified before anything is written. A wrong line is reported and does
//! not stop the others. Importing is idempotent: a file can be imported again as a whole after any
//! failure. Anyone can write a file, so no statement in it is trusted without a signature.

use super::import_line_reader::{LineCommands, LineReader, is_proposal};
use super::line_outcome::conclude;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::person_auth::PersonApproval;
use crate::service::Service;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use klnode_api_types::ErrorKind;
use klnode_api_types::transfer::{ImportQuery, ImportResult};
use klnode_crdt::ids::EntryId;
use klnode_engine::Command;
use klnode_store::Error;
use klnode_store::peers::Membership;
use klnode_store::row_types::CallerRow;
use std::collections::BTreeMap;

/// Imports lines of JSON, exported or plain. If this node has a person's key, plain procedural
/// lines are rejected.
#[utoipa::path(post, path = "/v1/import", params(ImportQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = ImportResult)))]
pub(super) async fn import(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(query): QueryParams<ImportQuery>,
    body: Result<Bytes, BytesRejection>,
) -> ApiResult<ImportResult> {
    let approval = service.person.unsigned_approval();
    import_lines(service, caller, (query, approval), body).await
}

/// Imports lines of JSON as the person behind this node; plain procedural lines are accepted.
#[utoipa::path(post, path = "/v1/import/person", params(ImportQuery),
    request_body(content = String, content_type = "application/x-ndjson"),
    responses((status = 200, body = ImportResult)))]
pub(super) async fn import_as_person(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(query): QueryParams<ImportQuery>,
    body: Result<Bytes, BytesRejection>,
) -> ApiResult<ImportResult> {
    import_lines(service, caller, (query, PersonApproval::Given), body).await
}

async fn import_lines(
    service: Service,
    caller: Caller,
    (query, approval): (ImportQuery, PersonApproval),
    body: Result<Bytes, BytesRejection>,
) -> ApiResult<ImportResult> {
    let body = body.map_err(|rejection| unreadable_lines(&rejection))?;
    let (engine, author, now) = (service.engine.clone(), service.author, (service.now)());
    let (snapshot, key) = (service.snapshot()?, service.marks.clone());
    let working = service.clone();
    let reading = run_blocking(move |_| {
        let membership = Membership::read(&snapshot, author, now)?;
        let (earlier, service) = (BTreeMap::new(), working);
        let mut lines = LineReader {
            snapshot,
            membership,
            author,
            key,
            now,
            query,
            approval,
            earlier,
            service,
        };
        lines.read(&body)
    });
    let (mut imported, lines) = reading.await?;
    let mut commands = Vec::new();
    let mut counts = Vec::new();
    for LineCommands { number, commands: of_line, forgets, entry, count } in lines {
        counts.push(((number, count), of_line.len(), forgets, entry));
        let caller = CallerRow::from(caller);
        commands.extend(
            of_line.into_iter().map(|command| Command::As { caller, command: Box::new(command) }),
        );
    }
    let answers =
        if commands.is_empty() { Vec::new() } else { engine.submit_all(commands).await? };
    let (mut answers, mut taken) = (answers.into_iter(), Vec::new());
    for (line, commands, forgets, entry) in counts {
        let taken_before = imported.taken;
        conclude(&mut imported, line, answers.by_ref().take(commands).collect())?;
        let is_taken = imported.taken > taken_before;
        imported.forgotten += u64::from(forgets && is_taken);
        taken.extend(entry.filter(|_| is_taken));
    }
    if !taken.is_empty() {
        // The entries are stored, so a failure to count proposals is ignored.
        let proposed = run_blocking(move |_| only_proposed(&service, &taken)).await;
        imported.proposed += proposed.unwrap_or_default();
    }
    imported.problems.sort_by_key(|problem| problem.line);
    Ok(ApiReply(imported))
}

fn unreadable_lines(rejection: &BytesRejection) -> ApiError {
    let message = format!("The lines could not be read: {}.", rejection.body_text());
    ApiError::new(
        ErrorKind::Invalid,
        message,
        Some("Send fewer lines, or raise tuning.api.body_bytes_max."),
    )
}

/// The number of entries that consist only of proposals on this node.
fn only_proposed(service: &Service, entries: &[EntryId]) -> Result<u64, ApiError> {
    let (snapshot, now) = (service.snapshot()?, (service.now)());
    let membership = Membership::read(&snapshot, service.author, now)?;
    let mut proposed = 0;
    for entry in entries {
        let held = Error::unless_damaged(snapshot.entry(*entry))?;
        let held = held.map(|held| held.to_entry());
        proposed += u64::from(held.is_some_and(|held| is_proposal(&membership, &held, now)));
    }
    Ok(proposed)
}
