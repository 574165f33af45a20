//! `GET /v1/entries/{entry}/history`: all records of an entry with author, time and caller.

use super::resolve;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::convert::history;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Path};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{Entry, History, HistoryRecord};
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_type;
use klnode_crdt::ids::EntryId;
use klnode_query::name_of;

/// Shows the records of an entry, newest last.
#[utoipa::path(get, path = "/v1/entries/{entry}/history",
    responses((status = 200, body = History)))]
pub(super) async fn history(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<History> {
    let working = service.clone();
    let (entry, history) = run_blocking(move |_| read_history(&working, &entry)).await?;
    service.note_read(caller, vec![entry]).await;
    Ok(ApiReply(history))
}

fn read_history(service: &Service, name: &str) -> Result<(EntryId, History), ApiError> {
    let snapshot = service.snapshot()?;
    let entry = resolve(&snapshot, name)?;
    let mut places = snapshot.places(entry)?;
    places.sort_by_key(|(seq, record)| (record.header().stamp, *seq));
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let found = reading.read_sound(entry)?;
    let origin = found.as_ref().and_then(|found| found.view.origin.as_ref());
    let entitlement = reading.membership.entitlement(origin.map(Origin::workspace));
    let is_heard = |author| match origin {
        Some(origin) => entitlement.includes(author, origin),
        None => entitlement.mine.contains(&author),
    };
    let mut records = Vec::with_capacity(places.len());
    for (seq, record) in &places {
        let line = history::record(*seq, record, snapshot.caller(*seq)?, service.author);
        let author = record.header().author;
        let author_name = name_of(&reading.membership, author);
        records.push(HistoryRecord { heard: is_heard(author), author_name, ..line });
    }
    let id = entry.to_string();
    let Some(shown) = found.as_ref().map(entries::entry) else {
        let code = entry_type::code_digits(entry);
        return Ok((entry, History { id, code, records, ..History::default() }));
    };
    let Entry { code, author, author_name, foreign, status, gate, .. } = shown;
    Ok((entry, History { id, code, author, author_name, foreign, status, gate, records }))
}
