//! Routes that resolve edit conflicts of an entry.

use super::entries::{FlaggedEntry, share_flags};
use super::{not_held, resolve_for_change};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::edit_check::check_edit;
use crate::edit_conflicts::{contested, resolve_versions};
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path};
use crate::person_auth::PersonApproval;
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{ResolveRequest, ResolveResult};
use klnode_crdt::ids::EntryId;
use klnode_engine::Command;
use klnode_query::AssessedEntry;

/// Resolves edit conflicts by an edit that replaces all versions. If this node has a person's key,
/// the text of a procedural entry cannot be changed here.
#[utoipa::path(post, path = "/v1/entries/{entry}/resolve", request_body = ResolveRequest,
    responses((status = 200, body = ResolveResult)))]
pub(super) async fn resolve(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<ResolveRequest>,
) -> ApiResult<ResolveResult> {
    let approval = service.person.unsigned_approval();
    write(service, caller, &entry, ask, approval).await
}

/// Resolves edit conflicts as the person behind this node, including the text of a procedural
/// entry.
#[utoipa::path(post, path = "/v1/entries/{entry}/resolve/person", request_body = ResolveRequest,
    responses((status = 200, body = ResolveResult)))]
pub(super) async fn resolve_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<ResolveRequest>,
) -> ApiResult<ResolveResult> {
    write(service, caller, &entry, ask, PersonApproval::Given).await
}

async fn write(
    service: Service,
    caller: Caller,
    entry: &str,
    ask: ResolveRequest,
    approval: PersonApproval,
) -> ApiResult<ResolveResult> {
    let entry = resolve_for_change(&service, entry).await?;
    let working = service.clone();
    let (settled, claims) = run_blocking(move |_| {
        let snapshot = working.snapshot()?;
        let reading = working.reader.at(&snapshot, (working.now)())?;
        let found = reading.read(entry)?.ok_or_else(|| not_held(entry))?;
        let (fields, claims) = resolve_versions(&found, &reading, &ask)?;
        check_edit(&working, entry, &claims, approval)?;
        Ok((fields, claims))
    })
    .await?;
    service.submit(caller, Command::Claim { entry, claims }).await?;
    let (code, contested) = after(service.clone(), entry).await?;
    let FlaggedEntry { flags, held } = share_flags(service, entry).await;
    Ok(ApiReply(ResolveResult { id: entry.to_string(), code, settled, contested, flags, held }))
}

/// The entry's code and the fields that still have a conflict.
async fn after(service: Service, entry: EntryId) -> Result<(String, Vec<String>), ApiError> {
    let read = move |found: &AssessedEntry| (found.code(), contested(found));
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let found = service.reader.read(&snapshot, entry, (service.now)())?;
        found.as_ref().map(read).ok_or_else(|| not_held(entry))
    })
    .await
}
