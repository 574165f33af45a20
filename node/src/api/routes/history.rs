//! What was said about an entry: by whom, when, and on whose behalf.

use super::resolve;
use crate::api::errors::ApiError;
use crate::api::exchange::{Answer, Answered};
use crate::api::history;
use crate::api::server::Service;
use crate::api::types::History;
use crate::store::{Error, Snapshot};
use axum::extract::{Path, State};
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::{self, Kind};
use klnode_crdt::lww::Register;

/// Shows what was said about an entry, newest last.
#[utoipa::path(get, path = "/v1/entries/{entry}/history",
    responses((status = 200, body = History)))]
pub(super) async fn history(
    State(service): State<Service>,
    Path(entry): Path<String>,
) -> Answered<History> {
    let snapshot = service.snapshot()?;
    let entry = resolve(&snapshot, &entry)?;
    let mut places = snapshot.places(entry)?;
    places.sort_by_key(|(seq, record)| (record.header().stamp, *seq));
    let mut records = Vec::with_capacity(places.len());
    for (seq, record) in &places {
        records.push(history::record(*seq, record, snapshot.caller(*seq)?, service.author));
    }
    let code = service.code(&snapshot, entry)?;
    let code = code.unwrap_or_else(|| kind::code_digits(entry));
    Ok(Answer(History { id: entry.to_string(), code, records }))
}

impl Service {
    /// An entry's citation code, if its type is known: of what is damaged it is not.
    pub(super) fn code(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
    ) -> Result<Option<String>, ApiError> {
        let found = self.reader.read(snapshot, entry, (self.now)());
        let found = Error::unless_damaged(found)?.flatten();
        let kind = found.and_then(|found| found.view.text(Register::TYPE).and_then(Kind::parse));
        Ok(kind.map(|kind| kind.code(entry)))
    }
}
