//! `GET /v1/served`: the serving log.

use super::{check_not_forgotten, how_many, resolve};
use crate::blocking_pool::run_blocking;
use crate::convert::entries;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{ServedAnswer, ServingLog, ServingLogQuery};
use klnode_crdt::time::WallTime;
use klnode_query::{ReadContext, redact_text};
use klnode_store::Error;
use klnode_store::row_types::ServedRow;

/// Default number of served answers in one response.
const LIMIT_DEFAULT: usize = 20;
/// Maximum number of characters of a caller's name in the response.
const CALLER_CHARACTERS_MAX: usize = 64;

/// Lists served answers, newest first, each with caller, task and query.
#[utoipa::path(get, path = "/v1/served", params(ServingLogQuery),
    responses((status = 200, body = ServingLog)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(query): QueryParams<ServingLogQuery>,
) -> ApiResult<ServingLog> {
    run_blocking(move |cancel| {
        let ServingLogQuery { entry, limit } = query;
        let limit = how_many(limit, LIMIT_DEFAULT, "answers", None)?;
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let entry = entry.map(|name| resolve(&snapshot, &name)).transpose()?;
        if let Some(entry) = entry {
            // Forgetting an entry also removes it from the log, so an empty list would be wrong.
            check_not_forgotten(&snapshot, entry, |code| {
                format!("Entry {code} was forgotten, and its serving log with it.")
            })?;
        }
        let reading = service.reader.at(&snapshot, now)?;
        let mut served = ServingLog { as_of: now.as_millis(), answers: Vec::new(), more: false };
        for row in snapshot.serving_log()? {
            if cancel.is_cancelled() {
                break;
            }
            // A damaged row is skipped.
            let Some((at, row)) = Error::unless_damaged(row)? else { continue };
            let is_asked_for = entry.is_none_or(|entry| row.entries.contains(&entry));
            if !is_asked_for || row == ServedRow::default() {
                continue;
            }
            if served.answers.len() == limit {
                served.more = true;
                break;
            }
            served.answers.push(answer(&reading, at, row));
        }
        Ok::<_, ApiError>(served)
    })
    .await
    .map(ApiReply)
}

/// Converts a row. Query and caller name are sanitised because a program may read them as
/// instructions.
fn answer(reading: &ReadContext<'_>, at: WallTime, row: ServedRow) -> ServedAnswer {
    let caller = row.client.map_or(row.caller, |client| client.to_string());
    let caller = redact_text(&caller).chars().take(CALLER_CHARACTERS_MAX).collect();
    ServedAnswer {
        at: at.as_millis(),
        caller,
        session: row.session.map(|session| session.to_string()),
        task: row.task,
        query: Some(redact_text(&row.query)).filter(|query| !query.is_empty()),
        unasked: row.is_unasked,
        weak: row.is_weak,
        entries: row
            .entries
            .iter()
            .map(|one| entries::entry_identity(Some(reading), *one))
            .collect(),
    }
}
