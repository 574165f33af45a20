//! `POST /v1/search`: answers a question on the blocking pool and stops if the client disconnects.

use super::anchors;
use super::task_lookup::{find, open_task};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::peers::find_workspace;
use crate::convert::search;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body};
use crate::sampling_seed::{SampleScope, root_task};
use crate::service::Service;
use crate::serving_log::{ServedEntry, log_row, served_entry};
use axum::extract::State;
use klnode_api_types::search::{Search, SearchResponse};
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_engine::Command;
use klnode_query::{self, AgentPlaces, HitCaveat, TAIL_RECORDS_MAX};
use klnode_scoring::content_scan::redact_secrets;
use klnode_scoring::relevance::answer_grade::Grade;
use klnode_store::row_types::{Seq, ServedRow};
use std::time::{Duration, Instant};

/// How long a search waits for an index with a larger lag than the search reads itself. After that
/// it answers from the current index.
const TAIL_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum number of characters of the query, and of the caller's name, that the serving log keeps.
const LEDGER_CHARACTERS_MAX: usize = 200;

/// Answers a question.
#[utoipa::path(post, path = "/v1/search", request_body = Search,
    responses((status = 200, body = SearchResponse)))]
#[expect(clippy::too_many_lines, reason = "the steps of one request, in their order")]
pub(super) async fn search(
    State(service): State<Service>,
    caller: Caller,
    Body(mut search): Body<Search>,
) -> ApiResult<SearchResponse> {
    if !search.workspaces.is_empty() {
        let membership = service.membership(&service.snapshot()?)?;
        for name in &mut search.workspaces {
            *name = find_workspace(&membership, name)?.to_string();
        }
        // A workspace given several times counts once.
        search.workspaces.sort();
        search.workspaces.dedup();
    }
    let task = search.task.as_deref().map(|name| open_task(&service, name)).transpose()?;
    let agent = task.map(|task| find(&service, task)).transpose()?.map(|row| row.agent);
    let scope = match task {
        Some(task) => SampleScope::Task(root_task(&service.snapshot()?, task)?),
        None => SampleScope::Outside(caller, (service.now)().day()),
    };
    let mut question =
        search::question(&search, service.samples.seed(&scope), &service.reader.numbers)?;
    question.namespace = search::reviewer(&search, agent.as_deref())?;
    if let Some(reviewer) = &question.namespace {
        question.text = format!("{} {}", question.text, reviewer.keywords());
    }
    if let Some(task) = task.filter(|_| search.context) {
        question.places = Some(places(&service, task)?);
    }
    question.checkout = anchors::permitted_checkout(caller, search.checkout.as_deref())?;
    let start = Instant::now();
    wait_for_index(&service).await;
    let working = service.clone();
    let answered = run_blocking(move |cancel| {
        let (snapshot, now) = (working.snapshot()?, (working.now)());
        if question.checkout.is_some() || task.is_some() {
            let membership = working.membership(&snapshot)?;
            let folder = question.checkout.as_deref();
            let here = working.reader.here(&snapshot, &membership, folder)?;
            question.workspace = here.workspace;
            if question.thread.is_none() {
                question.thread = working.served_thread(&snapshot, task, &here)?;
            }
        }
        Ok(working.reader.search(&working.index, &snapshot, &question, now, cancel)?)
    })
    .await?;
    service.metrics.searches.count(answered.hits.len(), answered.grade, start.elapsed());
    let is_weak = answered.grade == Grade::Weak;
    let is_recorded = task.is_some() || !search.unrecorded;
    if is_recorded {
        let mut looks = service.looks();
        for found in answered.hits.iter().map(|hit| &hit.found) {
            anchors::add_look(&mut looks, found.entry, found.assessment.facts.predicates);
        }
        match task {
            None => service.note_looks(looks),
            // Archival at the end of the task depends on these results, so they must not be
            // dropped.
            Some(_) if anchors::has_any(&looks) => {
                service.engine.submit(Command::Looked(looks)).await?;
            }
            Some(_) => {}
        }
        // The titles of a weak answer are read, but no text is served.
        let hits = answered.hits.iter().filter(|_| !is_weak);
        let given: Vec<ServedEntry> =
            hits.map(|hit| served_entry(&hit.found, hit.tokens)).collect();
        let row = log_row(caller, &given, start.elapsed());
        let row = ServedRow {
            caller: search.caller.as_deref().map_or(row.caller, log_text),
            task: task.map(|task| task.to_string()),
            query: log_text(&search.query),
            is_weak: answered.is_weak,
            question: answered.sketch,
            first_title: answered.first_title,
            ..row
        };
        service.note_served(caller, row).await?;
    }
    let hits = answered.hits.iter().filter(|_| is_weak || !is_recorded);
    let read = hits.chain(answered.nearest.iter().filter(|_| search.nearest));
    let titles =
        answered.considered.iter().filter(|one| one.title.is_some() && one.place.is_none());
    let read = read.map(|hit| hit.found.entry).chain(unlisted_rivals(&answered));
    let read = read.chain(titles.map(|one| one.entry));
    service.note_read(caller, read.collect()).await;
    Ok(ApiReply(search::answer(&search, &answered, &service.reader.numbers)))
}

/// The places in the prompt of the agent of a task, with the entries that it was served.
fn places(service: &Service, task: TaskId) -> Result<AgentPlaces, ApiError> {
    let parts = service.snapshot()?.task_parts(task)?.into_iter();
    let given = parts.filter(|(_, part)| part.order.is_some()).map(|(entry, _)| entry);
    let entries_max = service.reader.numbers.hits_default();
    Ok(AgentPlaces { entries_max, given: given.collect() })
}

/// Entries that contradict a hit and are not hits themselves. The caller reads their titles in the
/// caveats.
fn unlisted_rivals(answer: &klnode_query::SearchAnswer) -> Vec<EntryId> {
    let caveats = answer.hits.iter().flat_map(|hit| &hit.caveats);
    let rivals = caveats.filter_map(|caveat| match caveat {
        HitCaveat::CompetesWith { entry, .. } => Some(*entry),
        _ => None,
    });
    let is_hit = |entry: &EntryId| answer.hits.iter().any(|hit| hit.found.entry == *entry);
    rivals.filter(|entry| !is_hit(entry)).collect()
}

/// The text for the serving log. Secrets are redacted before truncation, because half a secret
/// would not be recognised.
fn log_text(text: &str) -> String {
    redact_secrets(text).chars().take(LEDGER_CHARACTERS_MAX).collect()
}

/// Waits until the search can find all records acknowledged before it.
async fn wait_for_index(service: &Service) {
    let head = *service.engine.head().borrow();
    let mut states = service.index.watch();
    let ready = states.wait_for(|state| is_ready(state, head));
    // After a timeout, the answer shows the lag of the index.
    let _ = tokio::time::timeout(TAIL_WAIT_MAX, ready).await;
}

/// True if a search need not wait for the index: it can read the rest itself, or the index is
/// stalled.
fn is_ready(state: &klnode_index::State, head: Seq) -> bool {
    let is_near = head.0.saturating_sub(state.keyword.0) <= TAIL_RECORDS_MAX;
    // The keyword index also advances without an embedder.
    is_near || (state.fault.is_some() && state.embedder_fault.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_embed::EmbedError;

    #[test]
    fn a_search_waits_for_a_lagging_index_unless_it_is_stalled() {
        let head = Seq(TAIL_RECORDS_MAX + 1);
        let (damaged, away) = (|| Some("damaged".to_owned()), || Some(EmbedError::Stopped));
        for (keyword, fault, embedder_fault, expect) in [
            (Seq(0), None, None, false),
            (Seq(1), None, None, true),
            (Seq(0), damaged(), None, true),
            (Seq(0), damaged(), away(), false),
            (Seq(1), damaged(), away(), true),
            (head, None, None, true),
        ] {
            let state =
                klnode_index::State { keyword, fault, embedder_fault, ..Default::default() };
            assert_eq!(is_ready(&state, head), expect, "{state:?}");
        }
    }
}
