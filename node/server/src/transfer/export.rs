//! `GET /v1/export`: every entry as a line of JSON, sorted by id, from one snapshot.
//!
//! The output depends only on the store, not on the time: two exports of the same store are
//! identical.

use super::imported_source_storage;
use super::jsonl_line::{JsonlLine, SignedRecord};
use super::streaming_response::{self, ClientGone, StreamAborted, StreamWriter};
use crate::convert::entries;
use crate::convert::peers::find_workspace;
use crate::errors::ApiError;
use crate::exported_marks::{ExportedMarks, MarksKey};
use crate::service::Service;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use klnode_api_types::export_file::{ExportHeader, FORMAT, VERSION};
use klnode_api_types::transfer::ExportQuery;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_store::peers::Membership;
use klnode_store::row_types::ViewRow;
use klnode_store::{self, Snapshot};
use klnode_text::unicode::harmless_json;
use serde::Serialize;
use std::sync::Arc;

/// Maximum bytes of readable text, and of records, per line. Further records continue in another
/// line.
const PART_BYTES_MAX: usize = 1024 * 1024;

/// Exports treat every value as due, so that the lines do not depend on the time of the export.
const END_OF_TIME: WallTime = WallTime::from_millis(u64::MAX);

/// Exports every entry as a line of JSON, with its signed records.
#[utoipa::path(get, path = "/v1/export", params(ExportQuery),
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn export(
    State(service): State<Service>,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let ExportQuery { workspace, entry, plain } = query?.0;
    let snapshot = service.snapshot()?;
    let membership = Membership::read(&snapshot, service.author, END_OF_TIME)?;
    // By id, also a workspace whose charter this node does not hold.
    let found = |name: String| match entries::workspace_named(&name) {
        Ok(id) => Ok(id),
        Err(_) => find_workspace(&membership, &name),
    };
    let workspace = workspace.map(found).transpose()?;
    let only = entry.map(|name| klnode_query::resolve_shown(&name, &snapshot)).transpose()?;
    let (node, marks) = (service.author, service.marks);
    let export =
        ExportWriter { snapshot, node, marks, membership, workspace, only, is_plain: plain };
    streaming_response::pieces("application/x-ndjson", move |pieces| {
        export.write(pieces).map_err(|stop| {
            if let ExportError::Store(error) = stop {
                tracing::error!(%error, "An export ended early because the store could not be read");
            }
            StreamAborted
        })
    })
}

struct ExportWriter {
    snapshot: Snapshot,
    node: AuthorId,
    marks: Arc<MarksKey>,
    membership: Membership,
    workspace: Option<WorkspaceId>,
    /// The one entry to write.
    only: Option<EntryId>,
    /// Leaves out records and marks.
    is_plain: bool,
}

enum ExportError {
    Gone,
    Store(klnode_store::Error),
}

impl From<ClientGone> for ExportError {
    fn from(_: ClientGone) -> Self {
        Self::Gone
    }
}

impl From<klnode_store::Error> for ExportError {
    fn from(error: klnode_store::Error) -> Self {
        Self::Store(error)
    }
}

impl ExportWriter {
    fn write(&self, pieces: &mut StreamWriter) -> Result<(), ExportError> {
        let entries = match self.workspace {
            _ if self.only.is_some() => 1,
            None => self.snapshot.entry_count()?,
            Some(_) => self.entries()?.filter(Result::is_ok).count() as u64,
        };
        let node = self.node.to_string();
        let head = ExportHeader { klnode: FORMAT.into(), version: VERSION, node, entries };
        pieces.line(&json(&head))?;
        let one = self.only.map(Ok).into_iter();
        let all = self.only.is_none().then(|| self.entries()).transpose()?;
        for entry in one.chain(all.into_iter().flatten()) {
            let entry = entry?;
            match klnode_store::Error::unless_damaged(self.snapshot.entry(entry))? {
                Some(held) => self.write_entry(entry, held, pieces)?,
                // The file names the damaged entry and contains the rest.
                None => pieces.line(&json(&JsonlLine::damaged(entry)))?,
            }
        }
        Ok(pieces.flush()?)
    }

    /// The ids of the exported entries.
    fn entries(
        &self,
    ) -> Result<impl Iterator<Item = Result<EntryId, klnode_store::Error>>, klnode_store::Error>
    {
        let rows = self.snapshot.entries()?;
        Ok(rows.filter_map(|row| match row {
            Ok((entry, row)) => match self.is_wanted(entry, &row) {
                Ok(true) => Some(Ok(entry)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            },
            Err(error) => Some(Err(error)),
        }))
    }

    fn is_wanted(&self, entry: EntryId, row: &ViewRow) -> Result<bool, klnode_store::Error> {
        let Some(wanted) = self.workspace else { return Ok(true) };
        // If a tombstone arrived before any other record, only it contains the workspace.
        let of = match (row.workspace, row.is_forgotten) {
            (None, true) => {
                self.snapshot.tombstone(entry)?.and_then(|tombstone| match tombstone.payload() {
                    Some(Payload::Tombstone(stone)) => Some(stone.origin.workspace()),
                    _ => None,
                })
            }
            (of, _) => of,
        };
        Ok(of == Some(wanted))
    }

    fn write_entry(
        &self,
        entry: EntryId,
        held: EntryRecords,
        pieces: &mut StreamWriter,
    ) -> Result<(), ExportError> {
        let whole = held.to_entry();
        let workspace = whole.origin.as_ref().map(|origin| origin.workspace());
        let view = whole.view(END_OF_TIME, &self.membership.entitlement(workspace));
        let view = self.snapshot.with_document(entry, view)?;
        let mut line = JsonlLine::of(entry, &view);
        line.source = imported_source_storage::read(&self.snapshot, entry)?;
        if self.is_plain {
            let row = self.snapshot.view_row(entry)?;
            if row.is_some_and(|row| row.is_internal(entry)) {
                return Ok(());
            }
            let own = || imported_source_storage::own_dates(&view, END_OF_TIME);
            line.source.get_or_insert_with(own);
            return Ok(pieces.line(&json(&line))?);
        }
        let marks = ExportedMarks::of(self.snapshot.overlay(entry)?);
        line.overlay = marks.map(|marks| self.marks.sealed(entry, marks));
        if json(&line).len() > PART_BYTES_MAX {
            // Only many authors together can exceed this size. The records still contain
            // everything.
            let JsonlLine { id, code, state, source, overlay, .. } = line;
            line = JsonlLine { id, code, state, source, overlay, ..JsonlLine::default() };
        }
        let (mut part, mut bytes) = (1, 0);
        for record in sorted_records(held) {
            let record = SignedRecord::of(&record);
            let len = record.header.len() + record.payload.as_ref().map_or(0, String::len);
            if bytes + len > PART_BYTES_MAX && !line.records.is_empty() {
                pieces.line(&json(&line))?;
                part += 1;
                let id = Some(entry.to_string());
                (line, bytes) = (JsonlLine { id, part: Some(part), ..JsonlLine::default() }, 0);
            }
            bytes += len;
            line.records.push(record);
        }
        Ok(pieces.line(&json(&line))?)
    }
}

/// Sorts retractions first, so that the importer knows why a retracted record has no payload.
fn sorted_records(held: EntryRecords) -> Vec<Record> {
    let mut records: Vec<Record> = match held {
        EntryRecords::Forgotten(tombstone) => vec![*tombstone],
        EntryRecords::Live(authors) => {
            authors.values().flat_map(|held| held.records().cloned()).collect()
        }
    };
    records.sort_by_key(|record| {
        let facet = record.header().facet;
        (facet != Facet::Retraction, record.author(), facet, record.digest())
    });
    records
}

/// Encodes a line with all characters escaped that a terminal would interpret.
fn json(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_string(value).expect("texts and numbers are JSON");
    harmless_json(json).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_in_an_exported_line() {
        let title = Some("a\u{9b}2J\u{202e}b\u{7f}\n\u{1b}]0;c".to_owned());
        let line = JsonlLine { title, ..JsonlLine::default() };
        let bytes = json(&line);
        let expected = r#"{"title":"a\u009b2J\u202eb\u007f\n\u001b]0;c"}"#;
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        assert_eq!(serde_json::from_slice::<JsonlLine>(&bytes).unwrap(), line);
    }
}
