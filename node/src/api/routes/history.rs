//! What was said about an entry: by whom, when, and on whose behalf.

use super::resolve;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::ApiError;
use crate::api::exchange::{Answer, Answered, Path};
use crate::api::history;
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{Entry, History, HistoryRecord};
use crate::query::name_of;
use axum::extract::State;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind;
use klnode_crdt::origin::Origin;

/// Shows what was said about an entry, newest last.
#[utoipa::path(get, path = "/v1/entries/{entry}/history",
    responses((status = 200, body = History)))]
pub(super) async fn history(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> Answered<History> {
    let working = service.clone();
    let (entry, told) = apart(move |_| told(&working, &entry)).await?;
    service.note_read(caller, vec![entry]).await;
    Ok(Answer(told))
}

fn told(service: &Service, name: &str) -> Result<(EntryId, History), ApiError> {
    let snapshot = service.snapshot()?;
    let entry = resolve(&snapshot, name)?;
    let mut places = snapshot.places(entry)?;
    places.sort_by_key(|(seq, record)| (record.header().stamp, *seq));
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let found = reading.read_sound(entry)?;
    let origin = found.as_ref().and_then(|found| found.view.origin.as_ref());
    let entitlement = reading.society.entitlement(origin.map(Origin::workspace));
    let is_heard = |author| match origin {
        Some(origin) => entitlement.includes(author, origin),
        None => entitlement.mine.contains(&author),
    };
    let mut records = Vec::with_capacity(places.len());
    for (seq, record) in &places {
        let told = history::record(*seq, record, snapshot.caller(*seq)?, service.author);
        let author = record.header().author;
        let author_name = name_of(&reading.society, author);
        records.push(HistoryRecord { heard: is_heard(author), author_name, ..told });
    }
    let id = entry.to_string();
    let Some(shown) = found.as_ref().map(translate::entry) else {
        let code = kind::code_digits(entry);
        return Ok((entry, History { id, code, records, ..History::default() }));
    };
    let Entry { code, author, author_name, foreign, status, gate, .. } = shown;
    Ok((entry, History { id, code, author, author_name, foreign, status, gate, records }))
}
