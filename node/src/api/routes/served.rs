//! What was served lately, and to whom.

use super::resolve;
use crate::api::apart::apart;
use crate::api::errors::ApiError;
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{Served, ServedAnswer, ServedQuery};
use crate::query::Reading;
use crate::store::Error;
use crate::store::rows::ServedRow;
use axum::extract::State;
use klnode_crdt::time::WallTime;

/// Answers, unless the caller says how many.
const LIMIT_DEFAULT: usize = 20;
/// Answers at most.
const LIMIT_MAX: usize = 1_000;

/// Lists what was served, the newest first: to whom, in which task, to which question.
#[utoipa::path(get, path = "/v1/served", params(ServedQuery),
    responses((status = 200, body = Served)))]
pub(super) async fn list(
    State(service): State<Service>,
    Params(query): Params<ServedQuery>,
) -> Answered<Served> {
    apart(move |cancel| {
        let ServedQuery { entry, limit } = query;
        let limit = limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let entry = entry.map(|name| resolve(&snapshot, &name)).transpose()?;
        let reading = service.reader.at(&snapshot, now)?;
        let mut served = Served { as_of: now.as_millis(), answers: Vec::new(), more: false };
        for row in snapshot.served()? {
            // One that is damaged costs nobody the others.
            let Some((at, row)) = Error::unless_damaged(row)? else { continue };
            if entry.is_some_and(|entry| !row.entries.contains(&entry)) {
                continue;
            }
            if served.answers.len() == limit || cancel.is_cancelled() {
                served.more = true;
                break;
            }
            served.answers.push(answer(&reading, at, row));
        }
        Ok::<_, ApiError>(served)
    })
    .await
    .map(Answer)
}

fn answer(reading: &Reading<'_>, at: WallTime, row: ServedRow) -> ServedAnswer {
    ServedAnswer {
        at: at.as_millis(),
        caller: row.client.map_or(row.caller, |client| client.to_string()),
        session: row.session.map(|session| session.to_string()),
        task: row.task,
        query: Some(row.query).filter(|query| !query.is_empty()),
        unasked: row.is_unasked,
        weak: row.is_weak,
        entries: row.entries.iter().map(|one| translate::named(Some(reading), *one)).collect(),
    }
}
