//! Norms of one workspace do not contradict each other: the check before a norm is written.

use crate::errors::ApiError;
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_type::EntryType as EntryKind;
use klnode_crdt::entry_view::{Entitlement, EntryView};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_engine::{NewEntry, Rejection, SourceKey};
use klnode_query::{AssessedEntry, ReadContext};
use std::collections::BTreeSet;

/// Rejects a norm that contradicts another norm; `source` is the entry that an edit turns into this
/// norm.
pub(super) fn check_norm(
    service: &Service,
    source: Option<EntryId>,
    new: &NewEntry,
) -> Result<(), ApiError> {
    if new.kind != EntryKind::Norm {
        return Ok(());
    }
    let snapshot = service.snapshot()?;
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let shown = view_of_new(service, new)?;
    let opposing = reading.opposing_norms(&service.index, &shown, new.workspace)?;
    check_opposing("The norm was not written", &reading, &opposing, (source, new.workspace))
}

/// Rejects a norm if the target workspace has a norm that contradicts it.
pub(super) fn check_opposing(
    problem: &str,
    reading: &ReadContext<'_>,
    opposing: &[AssessedEntry],
    (source, target): (Option<EntryId>, WorkspaceId),
) -> Result<(), ApiError> {
    let others = opposing.iter().filter(|other| Some(other.entry) != source);
    let codes: Vec<String> = others.map(AssessedEntry::code).collect();
    if codes.is_empty() {
        return Ok(());
    }
    let name = reading.membership.name(target);
    let message = format!("{problem}: {} in `{name}` contradicts it.", codes.join(", "));
    let hint = "Edit, archive or supersede the other entry first.";
    Err(ApiError::new(ErrorKind::Refused, message, Some(hint)))
}

/// The record of a new entry, under a placeholder source key and signed with a placeholder key.
pub(super) fn dry_run_record(new: &NewEntry) -> Result<Record, Rejection> {
    klnode_engine::dry_run_import(new, &SourceKey { format: "new".into(), key: "new".into() })
}

/// The view of a new entry.
fn view_of_new(service: &Service, new: &NewEntry) -> Result<EntryView, ApiError> {
    let record = dry_run_record(new)?;
    let entitlement = Entitlement { mine: [record.author()].into(), members: BTreeSet::new() };
    Ok(Entry::assemble([&record].into_iter()).view((service.now)(), &entitlement))
}
