//! `GET /v1/imported`: the entries that this node imported from files of other tools, with their
//! places.
//!
//! The importing client compares the places with its files and resolves the links in them: the node
//! knows neither.

use super::imported_source_storage;
use super::streaming_response::{self, ClientGone, StreamAborted, StreamWriter};
use crate::convert::entries;
use crate::errors::ApiError;
use crate::service::Service;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use klnode_api_types::transfer::{ImportedEntry, ImportedQuery};
use klnode_crdt::entry_view::State as EntryState;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_store::imports::ImportRow;
use klnode_store::peers::Membership;
use klnode_store::{Error, Snapshot};

/// Lists the entries that this node imported from places with this beginning, one per line.
#[utoipa::path(get, path = "/v1/imported", params(ImportedQuery),
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn imported(
    State(service): State<Service>,
    query: Result<Query<ImportedQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let query = query?.0;
    let snapshot = service.snapshot()?;
    let (author, now) = (service.author, (service.now)());
    streaming_response::pieces("application/x-ndjson", move |pieces| {
        write(&snapshot, (author, now), &query, pieces).map_err(|error| {
            if let Some(error) = error {
                tracing::error!(%error, "The list of imported entries was aborted");
            }
            StreamAborted
        })
    })
}

/// Writes the lines. The error is `None` if the client is gone.
fn write(
    snapshot: &Snapshot,
    (author, now): (AuthorId, WallTime),
    query: &ImportedQuery,
    pieces: &mut StreamWriter,
) -> Result<(), Option<Error>> {
    let membership = Membership::read(snapshot, author, now)?;
    for row in snapshot.imports()? {
        let (entry, row) = row?;
        let is_wanted = row.place.as_ref().is_some_and(|place| place.starts_with(&query.place));
        if !is_wanted {
            continue;
        }
        let Some(line) = read(snapshot, (&membership, now), (entry, row), query.titles)? else {
            continue;
        };
        let line = serde_json::to_vec(&line).map_err(|_| None)?;
        pieces.line(&line).map_err(|ClientGone| None)?;
    }
    pieces.flush().map_err(|ClientGone| None)
}

/// The line of an entry; `None` if the entry is withdrawn or cannot be read.
fn read(
    snapshot: &Snapshot,
    (membership, now): (&Membership, WallTime),
    (entry, row): (EntryId, ImportRow),
    with_title: bool,
) -> Result<Option<ImportedEntry>, Error> {
    let Some(held) = snapshot.view_row(entry)?.filter(|held| !held.is_forgotten) else {
        return Ok(None);
    };
    let Some(workspace) = held.workspace else { return Ok(None) };
    let Some(source) = imported_source_storage::words(&row) else { return Ok(None) };
    let mut line = ImportedEntry {
        id: entry.to_string(),
        workspace: entries::workspace(workspace),
        place: row.place.unwrap_or_default(),
        source,
        links: row.links,
        ..ImportedEntry::default()
    };
    if with_title {
        let Some(held) = Error::unless_damaged(snapshot.entry(entry))? else { return Ok(None) };
        let view = held.to_entry().view(now, &membership.entitlement(Some(workspace)));
        if view.state != EntryState::Live {
            return Ok(None);
        }
        line.code = klnode_query::code(entry, &view);
        line.title = view.text(Register::TITLE).unwrap_or_default().to_owned();
        line.archived = view.archived.is_some();
    }
    Ok(Some(line))
}
