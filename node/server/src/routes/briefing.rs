//! `GET /v1/briefing`: a summary of a workspace without a question.

use super::anchors;
use super::task_lookup::task_named;
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::insights;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use crate::serving_log::{ServedEntry, log_row, served_entry};
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{BRIEFING_TOKENS, Briefing, BriefingEntry, BriefingQuery, BriefingSection};
use klnode_crdt::ids::TaskId;
use klnode_query::{self, BriefedEntry, BriefingQuestion, HitCaveat};
use klnode_store::row_types::ServedRow;
use klnode_store::tasks::TaskRow;
use std::time::Instant;

/// Returns a summary of a workspace: entries and open tasks that matter now.
#[utoipa::path(get, path = "/v1/briefing", params(BriefingQuery),
    responses((status = 200, body = Briefing)))]
pub(super) async fn briefing(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(asked): QueryParams<BriefingQuery>,
) -> ApiResult<Briefing> {
    let BriefingQuery { workspace, thread, task, budget_tokens: tokens_max, checkout } = asked;
    if let Some(tokens) = tokens_max.filter(|tokens| !BRIEFING_TOKENS.contains(tokens)) {
        let (least, most) = (BRIEFING_TOKENS.start(), BRIEFING_TOKENS.end());
        let message = format!("`budget_tokens` is {tokens}; it must be {least} to {most}.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let is_named = workspace.is_some();
    let workspace = service.workspace_for(workspace.as_deref())?;
    let checkout = anchors::permitted_checkout(caller, checkout.as_deref())?;
    let task = task.as_deref().map(task_named).transpose()?;
    let task_thread = None;
    let mut question = BriefingQuestion { workspace, thread, task_thread, tokens_max, checkout };
    let (start, working) = (Instant::now(), service.clone());
    let briefed = run_blocking(move |cancel| {
        let (snapshot, now) = (working.snapshot()?, (working.now)());
        if question.checkout.is_some() || task.is_some() {
            let membership = working.membership(&snapshot)?;
            let here = working.reader.here(&snapshot, &membership, question.checkout.as_deref())?;
            question.task_thread = working.served_thread(&snapshot, task, &here)?;
            if !is_named && question.checkout.is_some() {
                question.workspace = here.workspace.unwrap_or(question.workspace);
            }
        }
        Ok(working.reader.briefing(&snapshot, &question, now, cancel)?)
    })
    .await?;
    let entries = briefed.sections.iter().flat_map(|section| &section.entries);
    let given: Vec<ServedEntry> = entries.map(|one| served_entry(&one.found, one.tokens)).collect();
    let row = log_row(caller, &given, start.elapsed());
    // The caller did not ask for these entries: they prime the caller and do not count as used.
    let row = ServedRow { query: "briefing".into(), is_unasked: true, ..row };
    if !given.is_empty() {
        service.note_served(caller, row).await?;
    }
    Ok(ApiReply(reply(&briefed)))
}

fn reply(briefed: &klnode_query::Briefing) -> Briefing {
    let section = |section: &klnode_query::BriefedSection| BriefingSection {
        kind: section.section.name().to_owned(),
        title: section.section.title().to_owned(),
        entries: section.entries.iter().map(entry).collect(),
    };
    let mut sections: Vec<BriefingSection> = briefed.sections.iter().map(section).collect();
    if !briefed.tasks.is_empty() {
        sections.push(BriefingSection {
            kind: "tasks".to_owned(),
            title: "Open tasks".to_owned(),
            entries: briefed.tasks.iter().map(task).collect(),
        });
    }
    Briefing {
        as_of: briefed.as_of.as_millis(),
        workspace: briefed.workspace.clone(),
        tokens: briefed.tokens,
        sections,
        insights: briefed.insights.iter().map(insights::insight).collect(),
        left_out: briefed.left_out,
        text: briefed.text.clone(),
    }
}

fn entry(one: &BriefedEntry) -> BriefingEntry {
    let (found, author) = (&one.found, one.found.author.as_deref());
    let confidence = &found.assessment.confidence;
    BriefingEntry {
        code: one.code.clone(),
        id: found.entry.to_string(),
        version: found.version(),
        title: one.title().to_owned(),
        line: one.line.clone(),
        status: found.assessment.standing.status.name().to_owned(),
        mean: Some(confidence.posterior.mean()),
        evidence: Some(confidence.effective_observations),
        author: author.map(|by| by.name.clone()).unwrap_or_default(),
        hop: author.and_then(|by| by.hop).map(|hop| hop.0),
        trust: author.map(|by| by.trust),
        caveats: one.caveats.iter().map(HitCaveat::to_string).collect(),
    }
}

fn task((name, row): &(TaskId, TaskRow)) -> BriefingEntry {
    BriefingEntry {
        code: name.to_string(),
        id: name.to_string(),
        version: String::new(),
        title: row.goal.clone(),
        line: String::new(),
        status: "open".to_owned(),
        mean: None,
        evidence: None,
        author: row.agent.clone(),
        hop: None,
        trust: None,
        caveats: Vec::new(),
    }
}
