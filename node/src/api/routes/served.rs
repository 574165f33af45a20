//! What was served lately, and to whom.

use super::{check_not_forgotten, how_many, resolve};
use crate::api::apart::apart;
use crate::api::errors::ApiError;
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{Served, ServedAnswer, ServedQuery};
use crate::query::{Reading, defused};
use crate::store::Error;
use crate::store::rows::ServedRow;
use axum::extract::State;
use klnode_crdt::time::WallTime;

/// Answers, unless the caller says how many.
const LIMIT_DEFAULT: usize = 20;
/// Characters of a caller's name that are told.
const CALLER_CHARACTERS_MAX: usize = 64;

/// Lists what was served, the newest first: to whom, in which task, to which question.
#[utoipa::path(get, path = "/v1/served", params(ServedQuery),
    responses((status = 200, body = Served)))]
pub(super) async fn list(
    State(service): State<Service>,
    Params(query): Params<ServedQuery>,
) -> Answered<Served> {
    apart(move |cancel| {
        let ServedQuery { entry, limit } = query;
        let limit = how_many(limit, LIMIT_DEFAULT, "answers", None)?;
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let entry = entry.map(|name| resolve(&snapshot, &name)).transpose()?;
        if let Some(entry) = entry {
            // Who was given it is forgotten with it. To say that nobody was would be wrong.
            check_not_forgotten(&snapshot, entry, |code| {
                format!("list answers with {code}: it was forgotten, and who was given it, too")
            })?;
        }
        let reading = service.reader.at(&snapshot, now)?;
        let mut served = Served { as_of: now.as_millis(), answers: Vec::new(), more: false };
        for row in snapshot.served()? {
            if cancel.is_cancelled() {
                break;
            }
            // One that is damaged, or was, costs nobody the others.
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
    .map(Answer)
}

/// What others asked, and called themselves, is quoted: a program may read it, and is not to obey it.
fn answer(reading: &Reading<'_>, at: WallTime, row: ServedRow) -> ServedAnswer {
    let caller = row.client.map_or(row.caller, |client| client.to_string());
    let caller = defused(&caller).chars().take(CALLER_CHARACTERS_MAX).collect();
    ServedAnswer {
        at: at.as_millis(),
        caller,
        session: row.session.map(|session| session.to_string()),
        task: row.task,
        query: Some(defused(&row.query)).filter(|query| !query.is_empty()),
        unasked: row.is_unasked,
        weak: row.is_weak,
        entries: row.entries.iter().map(|one| translate::named(Some(reading), *one)).collect(),
    }
}
