//! Settles conflicting versions of an entry's fields.

use super::entries::{check_edit, flagged};
use super::{not_held, resolve_for_change};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::conflicts::{contested, settled};
use crate::api::errors::ApiError;
use crate::api::exchange::{Answer, Answered, Body, Path};
use crate::api::person::Approval;
use crate::api::server::Service;
use crate::api::types::{Resolve, Resolved};
use crate::engine::Command;
use crate::query::Found;
use axum::extract::State;
use klnode_crdt::ids::EntryId;

/// Settles conflicting versions by an edit that replaces all of them; what a procedural entry says only
/// where this node has no person's key.
#[utoipa::path(post, path = "/v1/entries/{entry}/resolve", request_body = Resolve,
    responses((status = 200, body = Resolved)))]
pub(super) async fn resolve(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Resolve>,
) -> Answered<Resolved> {
    let approval = service.person.unsigned();
    write(service, caller, &entry, ask, approval).await
}

/// Settles conflicting versions as the person behind this node; what a procedural entry says, too.
#[utoipa::path(post, path = "/v1/entries/{entry}/resolve/person", request_body = Resolve,
    responses((status = 200, body = Resolved)))]
pub(super) async fn resolve_as_person(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(ask): Body<Resolve>,
) -> Answered<Resolved> {
    write(service, caller, &entry, ask, Approval::Given).await
}

async fn write(
    service: Service,
    caller: Caller,
    entry: &str,
    ask: Resolve,
    approval: Approval,
) -> Answered<Resolved> {
    let entry = resolve_for_change(&service, entry).await?;
    let working = service.clone();
    let (settled, claims) = apart(move |_| {
        let snapshot = working.snapshot()?;
        let reading = working.reader.at(&snapshot, (working.now)())?;
        let found = reading.read(entry)?.ok_or_else(|| not_held(entry))?;
        let (fields, claims) = settled(&found, &reading, &ask)?;
        check_edit(&working, entry, &claims, approval)?;
        Ok((fields, claims))
    })
    .await?;
    service.submit(caller, Command::Claim { entry, claims }).await?;
    let (code, contested) = after(service.clone(), entry).await?;
    let flags = flagged(service, entry).await;
    Ok(Answer(Resolved { id: entry.to_string(), code, settled, contested, flags }))
}

/// The entry's code and what is still contested.
async fn after(service: Service, entry: EntryId) -> Result<(String, Vec<String>), ApiError> {
    let read = move |found: &Found| (found.code(), contested(found));
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let found = service.reader.read(&snapshot, entry, (service.now)())?;
        found.as_ref().map(read).ok_or_else(|| not_held(entry))
    })
    .await
}
