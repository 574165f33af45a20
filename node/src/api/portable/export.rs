//! `GET /v1/export`: every entry as a line, by id, from one snapshot.
//!
//! Nothing in it depends on when or how often it is asked for: two exports of the same store are
//! the same bytes.

use super::line::{FORMAT, Head, Line, Overlay, SignedRecord, VERSION};
use super::marks::MarksKey;
use super::stream::{self, CutShort, Gone, Pieces};
use super::types::ExportQuery;
use crate::api::errors::ApiError;
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::api::translate;
use crate::query::characters::harmless_json;
use crate::store::peers::Society;
use crate::store::rows::ViewRow;
use crate::store::{self, Snapshot};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use klnode_crdt::header::Facet;
use klnode_crdt::holding::EntryRecords;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use serde::Serialize;
use std::sync::Arc;

/// Bytes of what is readable in a line, and of records in a line, before another is begun.
const PART_BYTES_MAX: usize = 1024 * 1024;

/// Every value is due at the end of time: so the lines do not depend on when they are written.
const END_OF_TIME: WallTime = WallTime::from_millis(u64::MAX);

/// Writes every entry as a line of JSON, with its signed records.
#[utoipa::path(get, path = "/v1/export", params(ExportQuery),
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn export(
    State(service): State<Service>,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let workspace = query?.0.workspace;
    let snapshot = service.snapshot()?;
    let society = Society::read(&snapshot, service.author, END_OF_TIME)?;
    // By its id also one of which no charter is held.
    let found = |name: String| match translate::workspace_named(&name) {
        Ok(id) => Ok(id),
        Err(_) => find_workspace(&society, &name),
    };
    let workspace = workspace.map(found).transpose()?;
    let (node, marks) = (service.author, service.marks);
    let export = Export { snapshot, node, marks, society, workspace };
    stream::pieces("application/x-ndjson", move |pieces| {
        export.write(pieces).map_err(|stop| {
            if let Stop::Store(error) = stop {
                tracing::error!(%error, "an export was broken off");
            }
            CutShort
        })
    })
}

struct Export {
    snapshot: Snapshot,
    node: AuthorId,
    marks: Arc<MarksKey>,
    society: Society,
    workspace: Option<WorkspaceId>,
}

enum Stop {
    Gone,
    Store(store::Error),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<store::Error> for Stop {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl Export {
    fn write(&self, pieces: &mut Pieces) -> Result<(), Stop> {
        let entries = match self.workspace {
            None => self.snapshot.entry_count()?,
            Some(_) => self.entries()?.filter(Result::is_ok).count() as u64,
        };
        let node = self.node.to_string();
        let head = Head { klnode: FORMAT.into(), version: VERSION, node, entries };
        pieces.line(&json(&head))?;
        for entry in self.entries()? {
            let entry = entry?;
            match store::Error::unless_damaged(self.snapshot.entry(entry))? {
                Some(held) => self.write_entry(entry, held, pieces)?,
                // The file says what it lacks, and has the rest.
                None => pieces.line(&json(&Line::damaged(entry)))?,
            }
        }
        Ok(pieces.flush()?)
    }

    /// Which entries go into the file.
    fn entries(&self) -> Result<impl Iterator<Item = Result<EntryId, store::Error>>, store::Error> {
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

    fn is_wanted(&self, entry: EntryId, row: &ViewRow) -> Result<bool, store::Error> {
        let Some(wanted) = self.workspace else { return Ok(true) };
        // A tombstone that came before anything else is all that knows the workspace.
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
        pieces: &mut Pieces,
    ) -> Result<(), Stop> {
        let whole = held.to_entry();
        let workspace = whole.origin.as_ref().map(|origin| origin.workspace());
        let view = whole.view(END_OF_TIME, &self.society.entitlement(workspace));
        let mut line = Line::of(entry, &view);
        let marks = Overlay::of(self.snapshot.overlay(entry)?);
        line.overlay = marks.map(|marks| self.marks.sealed(entry, marks));
        if json(&line).len() > PART_BYTES_MAX {
            // Only many authors together can say so much; the records say it all.
            let Line { id, code, state, overlay, .. } = line;
            line = Line { id, code, state, overlay, ..Line::default() };
        }
        let (mut part, mut bytes) = (1, 0);
        for record in in_order(held) {
            let record = SignedRecord::of(&record);
            let len = record.header.len() + record.payload.as_ref().map_or(0, String::len);
            if bytes + len > PART_BYTES_MAX && !line.records.is_empty() {
                pieces.line(&json(&line))?;
                part += 1;
                let id = Some(entry.to_string());
                (line, bytes) = (Line { id, part: Some(part), ..Line::default() }, 0);
            }
            bytes += len;
            line.records.push(record);
        }
        Ok(pieces.line(&json(&line))?)
    }
}

/// What takes back comes first, so that what it took the payload of finds its explanation.
fn in_order(held: EntryRecords) -> Vec<Record> {
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

/// A line, in which nothing that others wrote is obeyed by a terminal that shows it.
fn json(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_string(value).expect("texts and numbers are JSON");
    harmless_json(json).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_nothing_that_a_terminal_would_obey_and_reads_as_the_same() {
        let title = Some("a\u{9b}2J\u{202e}b\u{7f}\n\u{1b}]0;c".to_owned());
        let line = Line { title, ..Line::default() };
        let bytes = json(&line);
        let expected = r#"{"title":"a\u009b2J\u202eb\u007f\n\u001b]0;c"}"#;
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        assert_eq!(serde_json::from_slice::<Line>(&bytes).unwrap(), line);
    }
}
