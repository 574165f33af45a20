//! Briefings: what of a workspace matters now, without a question.

use super::anchors;
use super::tasks::task_named;
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::served::{Given, given, served};
use crate::api::server::Service;
use crate::api::types::{BRIEFING_TOKENS, Briefing, BriefingEntry, BriefingQuery, BriefingSection};
use crate::query::{self, Briefed, BriefingQuestion, Caveat};
use crate::store::rows::ServedRow;
use crate::store::tasks::TaskRow;
use axum::extract::State;
use klnode_crdt::ids::TaskId;
use std::time::Instant;

/// Tells what of a workspace matters now.
#[utoipa::path(get, path = "/v1/briefing", params(BriefingQuery),
    responses((status = 200, body = Briefing)))]
pub(super) async fn briefing(
    State(service): State<Service>,
    caller: Caller,
    Params(asked): Params<BriefingQuery>,
) -> Answered<Briefing> {
    let BriefingQuery { workspace, thread, task, budget_tokens: tokens_max, checkout } = asked;
    if let Some(tokens) = tokens_max.filter(|tokens| !BRIEFING_TOKENS.contains(tokens)) {
        let (least, most) = (BRIEFING_TOKENS.start(), BRIEFING_TOKENS.end());
        let message =
            format!("brief in {tokens} tokens: budget_tokens must be from {least} to {most}");
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let is_named = workspace.is_some();
    let workspace = service.workspace_for(workspace.as_deref())?;
    let checkout = anchors::permitted(caller, checkout.as_deref())?;
    let task = task.as_deref().map(task_named).transpose()?;
    let task_thread = None;
    let mut question = BriefingQuestion { workspace, thread, task_thread, tokens_max, checkout };
    let (start, working) = (Instant::now(), service.clone());
    let told = apart(move |cancel| {
        let (snapshot, now) = (working.snapshot()?, (working.now)());
        if question.checkout.is_some() || task.is_some() {
            let society = working.society(&snapshot)?;
            let here = working.reader.here(&snapshot, &society, question.checkout.as_deref())?;
            question.task_thread = working.served_thread(&snapshot, task, &here)?;
            if !is_named && question.checkout.is_some() {
                question.workspace = here.workspace.unwrap_or(question.workspace);
            }
        }
        Ok(working.reader.briefing(&snapshot, &question, now, cancel)?)
    })
    .await?;
    let entries = told.sections.iter().flat_map(|section| &section.entries);
    let given: Vec<Given> = entries.map(|one| given(&one.found, one.tokens)).collect();
    let row = served(caller, &given, start.elapsed());
    // Nobody asked for these in particular: they prime whoever was told, and are no use of them.
    let row = ServedRow { query: "briefing".into(), is_unasked: true, ..row };
    if !given.is_empty() {
        service.note_served(caller, row).await?;
    }
    Ok(Answer(travelling(&told)))
}

fn travelling(told: &query::Briefing) -> Briefing {
    let section = |section: &query::BriefedSection| BriefingSection {
        kind: section.section.name().to_owned(),
        title: section.section.title().to_owned(),
        entries: section.entries.iter().map(entry).collect(),
    };
    let mut sections: Vec<BriefingSection> = told.sections.iter().map(section).collect();
    if !told.tasks.is_empty() {
        sections.push(BriefingSection {
            kind: "tasks".to_owned(),
            title: "Open tasks".to_owned(),
            entries: told.tasks.iter().map(task).collect(),
        });
    }
    Briefing {
        as_of: told.as_of.as_millis(),
        workspace: told.workspace.clone(),
        tokens: told.tokens,
        sections,
        left_out: told.left_out,
        text: told.text.clone(),
    }
}

fn entry(one: &Briefed) -> BriefingEntry {
    let (found, author) = (&one.found, one.found.author.as_deref());
    let confidence = &found.judged.confidence;
    BriefingEntry {
        code: one.code.clone(),
        id: found.entry.to_string(),
        version: found.version(),
        title: one.title().to_owned(),
        line: one.line.clone(),
        status: found.judged.standing.status.name().to_owned(),
        mean: Some(confidence.posterior.mean()),
        evidence: Some(confidence.effective_observations),
        author: author.map(|by| by.name.clone()).unwrap_or_default(),
        hop: author.and_then(|by| by.hop).map(|hop| hop.0),
        trust: author.map(|by| by.trust),
        caveats: one.caveats.iter().map(Caveat::to_string).collect(),
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
