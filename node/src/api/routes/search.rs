//! Questions: answered on a thread of their own, and given up when nobody waits any more.

use super::anchors;
use super::tasks::open_task;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::exchange::{Answer, Answered, Body};
use crate::api::sampling::{Scope, root_task};
use crate::api::search::{self, Search, SearchAnswer};
use crate::api::served::{Given, given, served};
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::engine::Command;
use crate::index;
use crate::query::{self, Caveat, TAIL_RECORDS_MAX, redacted};
use crate::store::rows::{Seq, ServedRow};
use axum::extract::State;
use klnode_crdt::ids::EntryId;
use std::time::{Duration, Instant};

/// A question waits so long for an index that is further behind than it reads itself, and then answers
/// with what there is.
const TAIL_WAIT_MAX: Duration = Duration::from_secs(5);
/// What the ledger keeps of a question, and of what a caller calls itself.
const LEDGER_CHARACTERS_MAX: usize = 200;

/// Answers a question.
#[utoipa::path(post, path = "/v1/search", request_body = Search,
    responses((status = 200, body = SearchAnswer)))]
pub(super) async fn search(
    State(service): State<Service>,
    caller: Caller,
    Body(mut search): Body<Search>,
) -> Answered<SearchAnswer> {
    if !search.workspaces.is_empty() {
        let society = service.society(&service.snapshot()?)?;
        for name in &mut search.workspaces {
            *name = find_workspace(&society, name)?.to_string();
        }
        // Each is looked for once, however often it was named.
        search.workspaces.sort();
        search.workspaces.dedup();
    }
    let task = search.task.as_deref().map(|name| open_task(&service, name)).transpose()?;
    let scope = match task {
        Some(task) => Scope::Task(root_task(&service.snapshot()?, task)?),
        None => Scope::Outside(caller, (service.now)().day()),
    };
    let mut question = search.question(service.samples.seed(&scope), &service.reader.numbers)?;
    question.checkout = anchors::permitted(caller, search.checkout.as_deref())?;
    let start = Instant::now();
    wait_for_index(&service).await;
    let working = service.clone();
    let answered = apart(move |cancel| {
        let (snapshot, now) = (working.snapshot()?, (working.now)());
        if question.checkout.is_some() || task.is_some() {
            let society = working.society(&snapshot)?;
            let folder = question.checkout.as_deref();
            let here = working.reader.here(&snapshot, &society, folder)?;
            question.workspace = here.workspace;
            if question.thread.is_none() {
                question.thread = working.served_thread(&snapshot, task, &here)?;
            }
        }
        Ok(working.reader.search(&working.index, &snapshot, &question, now, cancel)?)
    })
    .await?;
    service.metrics.searches.count(answered.hits.len(), start.elapsed());
    let is_recorded = task.is_some() || !search.unrecorded;
    if is_recorded {
        let mut looks = service.looks();
        for found in answered.hits.iter().map(|hit| &hit.found) {
            anchors::add_look(&mut looks, found.entry, found.judged.facts.predicates);
        }
        match task {
            None => service.note_looks(looks),
            // What is archived at the end of the task depends on it: it must not be dropped.
            Some(_) if anchors::has_any(&looks) => {
                service.engine.submit(Command::Looked(looks)).await?;
            }
            Some(_) => {}
        }
        let hits = answered.hits.iter();
        let given: Vec<Given> = hits.map(|hit| given(&hit.found, hit.tokens)).collect();
        let row = served(caller, &given, start.elapsed());
        let row = ServedRow {
            caller: search.caller.as_deref().map_or(row.caller, kept),
            task: task.map(|task| task.to_string()),
            query: kept(&search.query),
            is_weak: answered.is_weak,
            question: answered.sketch,
            ..row
        };
        service.note_served(caller, row).await?;
    }
    let hits = answered.hits.iter().filter(|_| !is_recorded);
    let read = hits.chain(answered.nearest.iter().filter(|_| search.nearest));
    let read = read.map(|hit| hit.found.entry).chain(unlisted_rivals(&answered));
    service.note_read(caller, read.collect()).await;
    Ok(Answer(search::answer(&search, &answered, &service.reader.numbers)))
}

/// Rivals of hits that are no hits themselves: the caller reads their titles.
fn unlisted_rivals(answer: &query::Answer) -> Vec<EntryId> {
    let caveats = answer.hits.iter().flat_map(|hit| &hit.caveats);
    let rivals = caveats.filter_map(|caveat| match caveat {
        Caveat::CompetesWith { entry, .. } => Some(*entry),
        _ => None,
    });
    let is_hit = |entry: &EntryId| answer.hits.iter().any(|hit| hit.found.entry == *entry);
    rivals.filter(|entry| !is_hit(entry)).collect()
}

/// What the ledger keeps of a text. Secrets go before it is cut: half of one no longer looks like one.
fn kept(text: &str) -> String {
    redacted(text).chars().take(LEDGER_CHARACTERS_MAX).collect()
}

/// What was acknowledged before the question is found by it, however much that is.
async fn wait_for_index(service: &Service) {
    let head = *service.engine.head().borrow();
    let mut states = service.index.watch();
    let ready = states.wait_for(|state| is_ready(state, head));
    // Late or not, the answer says how far behind the index was.
    let _ = tokio::time::timeout(TAIL_WAIT_MAX, ready).await;
}

/// Whether a question need not wait for the index: it reads the rest itself, or nothing more comes.
fn is_ready(state: &index::State, head: Seq) -> bool {
    let is_near = head.0.saturating_sub(state.keyword.0) <= TAIL_RECORDS_MAX;
    // Words go on without an embedder.
    is_near || (state.fault.is_some() && state.embedder_fault.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::embed::EmbedError;

    #[test]
    fn a_question_waits_for_words_that_are_far_behind_unless_they_stand_still() {
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
            let state = index::State { keyword, fault, embedder_fault, ..Default::default() };
            assert_eq!(is_ready(&state, head), expect, "{state:?}");
        }
    }
}
