//! Routes for held entries: own entries of a shared workspace that name a host, a path, a customer or
//! a weakness, and wait for the operator.
//!
//! The store keeps no list of them: whether an entry is held follows from its text, the members of
//! its workspace and the passages that the operator released.

use super::{LISTED_MAX, named, resolve};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries::flags;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Path};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{EntryIdentity, ErrorKind, HeldDecision, HeldEntries, HeldEntry};
use klnode_crdt::register::Register;
use klnode_engine::Command;
use klnode_query::{AssessedEntry, RELEASED_FLAGS_MAX, ReadContext, ShareFlag};
use klnode_store::Error;

/// Lists held entries, at most 1000.
#[utoipa::path(get, path = "/v1/held", responses((status = 200, body = HeldEntries)))]
pub(super) async fn list(State(service): State<Service>) -> ApiResult<HeldEntries> {
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let (mut entries, mut has_more) = (Vec::new(), false);
        for row in snapshot.entries()? {
            let (entry, row) = row?;
            let is_shared = row.workspace.is_some_and(|id| !id.is_personal());
            if !is_shared || row.is_forgotten || row.is_internal(entry) {
                continue;
            }
            let Some(found) = reading.read_sound(entry)?.filter(|of| of.assessment.is_held) else {
                continue;
            };
            if entries.len() == LISTED_MAX {
                has_more = true;
                break;
            }
            entries.push(held_entry(&reading, &found)?);
        }
        Ok(HeldEntries { entries, has_more })
    })
    .await
    .map(ApiReply)
}

fn held_entry(reading: &ReadContext<'_>, found: &AssessedEntry) -> Result<HeldEntry, Error> {
    Ok(HeldEntry {
        id: found.entry.to_string(),
        code: found.code(),
        title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
        workspace: found.workspace.clone(),
        since: found.first_seen.as_millis(),
        flags: flags(reading.unreleased(found)?),
    })
}

/// Releases the flagged passages of an entry: from then on peers and agents get it. A passage that a
/// later edit adds holds the entry again.
#[utoipa::path(post, path = "/v1/held/{entry}/release",
    responses((status = 200, body = HeldDecision)))]
pub(super) async fn release(
    State(service): State<Service>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<HeldDecision> {
    let entry = resolve(&service.snapshot()?, &name)?;
    let working = service.clone();
    let waiting = run_blocking(move |_| {
        let snapshot = working.snapshot()?;
        let reading = working.reader.at(&snapshot, (working.now)())?;
        let found = reading.read(entry)?.filter(|found| found.assessment.is_held);
        Ok(found.map(|found| reading.unreleased(&found)).transpose()?)
    });
    let ApiReply(EntryIdentity { id, code }) = named(&service, entry).await?;
    let Some(waiting) = waiting.await? else {
        let message = format!("Entry {code} is not held.");
        let hint = "Run `klnode inbox list` to see held entries.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    };
    let mut numbers: Vec<u64> = waiting.iter().map(ShareFlag::number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > RELEASED_FLAGS_MAX {
        let message = format!(
            "Entry {code} was not released: it has {} flagged passages, more than \
             {RELEASED_FLAGS_MAX}.",
            numbers.len()
        );
        return Err(ApiError::new(ErrorKind::Invalid, message, Some("Rephrase it instead.")));
    }
    service.submit(caller, Command::ReleasePassages { entry, numbers }).await?;
    // A node without a network has no peer to release the entry to.
    if let Ok(peers) = service.replication() {
        peers.call(klnode_replication::ReplicationActor::examine_again).await?;
    }
    Ok(ApiReply(HeldDecision { id, code, flags: flags(waiting) }))
}
