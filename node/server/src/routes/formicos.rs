//! `/api/v1/`: the routes and shapes of `FormicOS`.
//!
//! Each handler calls the handler of `/v1/` for the same data and translates its answer, so caller,
//! gate, serving log and limits are the same. A colony is a task, a domain is a tag.

use super::{briefing, entries, history, list_entries, outcomes, promotion, search};
use crate::caller::Caller;
use crate::convert::formicos::{self as shapes, moment};
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::formicos::{
    ColonyOutcomes, ColonyOutcomesQuery, KnowledgeActed, KnowledgeAction, KnowledgeAnnotated,
    KnowledgeAnnotation, KnowledgeItem, KnowledgeItems, KnowledgeOverlay, KnowledgePromoted,
    KnowledgePromotion, KnowledgeProvenance, KnowledgeQuery, KnowledgeResult, KnowledgeResults,
    KnowledgeSearchQuery, WorkspaceBriefing,
};
use klnode_api_types::search::{Hit, Search};
use klnode_api_types::{
    BriefingQuery, ErrorKind, ListQuery, MarkUpdate, OutcomesQuery, Promote, ShowQuery,
};
use klnode_crdt::ids::EntryId;
use klnode_query::maintenance::HeavyCluster;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Default number of listed items.
const ITEMS_DEFAULT: usize = 50;
/// Maximum number of listed items.
const ITEMS_MAX: usize = 200;
/// Default number of results.
const RESULTS_DEFAULT: usize = 10;
/// Maximum number of results.
const RESULTS_MAX: usize = 50;
/// The actions on an item.
const ACTIONS: [&str; 6] = ["pin", "unpin", "mute", "unmute", "invalidate", "reinstate"];

pub(super) fn aliases() -> OpenApiRouter<Service> {
    OpenApiRouter::default()
        .routes(routes!(knowledge))
        .routes(routes!(knowledge_search))
        .routes(routes!(knowledge_item))
        .routes(routes!(knowledge_promote))
        .routes(routes!(knowledge_action))
        .routes(routes!(knowledge_annotate))
        .routes(routes!(knowledge_overlay))
        .routes(routes!(knowledge_provenance))
        .routes(routes!(seed_briefing))
        .routes(routes!(workspace_briefing))
        .routes(routes!(workspace_outcomes))
}

/// Lists entries as knowledge items. Items whose text is shown count as read by the caller.
#[utoipa::path(get, path = "/api/v1/knowledge", params(KnowledgeQuery),
    responses((status = 200, body = KnowledgeItems)))]
async fn knowledge(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(query): QueryParams<KnowledgeQuery>,
) -> ApiResult<KnowledgeItems> {
    let KnowledgeQuery { kind, sub_type, workspace, limit } = query;
    let limit = checked_limit(limit, ITEMS_DEFAULT, ITEMS_MAX)?;
    let query = ListQuery { kind, sub_type, workspace, limit: Some(limit), ..<_>::default() };
    let (entries, total) = list_entries::list_and_count(service.clone(), query).await?;
    let shown = entries.iter().filter(|entry| !shapes::is_withheld(entry));
    let read = shown.filter_map(|entry| EntryId::from_hex(&entry.id)).collect();
    service.note_read(caller, read).await;
    Ok(ApiReply(KnowledgeItems { items: entries.iter().map(shapes::entry_item).collect(), total }))
}

/// Answers a question with knowledge items. The answer passes the gate, and the items count as
/// served.
#[utoipa::path(get, path = "/api/v1/knowledge/search", params(KnowledgeSearchQuery),
    responses((status = 200, body = KnowledgeResults)))]
async fn knowledge_search(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(query): QueryParams<KnowledgeSearchQuery>,
) -> ApiResult<KnowledgeResults> {
    let KnowledgeSearchQuery { q, kind, sub_type, workspace, thread, limit, tier } = query;
    if q.trim().is_empty() {
        let message = "The query parameter `q` is missing or empty.";
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let limit = checked_limit(limit, RESULTS_DEFAULT, RESULTS_MAX)?;
    let question = Search {
        query: q,
        limit: Some(limit),
        tier: tier.clone(),
        kinds: kind.into_iter().collect(),
        sub_types: sub_type.into_iter().collect(),
        workspaces: workspace.into_iter().collect(),
        thread,
        // The shape has no place for a grade, so a weak answer has no results.
        strong_only: true,
        ..Search::default()
    };
    let ApiReply(answer) = search::search(State(service.clone()), caller, Body(question)).await?;
    let clusters = service.maintenance.clusters();
    let result = |hit: &Hit| match shapes::search_result(hit, tier.as_deref()) {
        KnowledgeResult::Item(item) => {
            let cooccurrence_cluster = served_with(&item.id, &clusters);
            KnowledgeResult::Item(Box::new(KnowledgeItem { cooccurrence_cluster, ..*item }))
        }
        brief @ KnowledgeResult::Brief(_) => brief,
    };
    let results: Vec<KnowledgeResult> = answer.hits.iter().map(result).collect();
    Ok(ApiReply(KnowledgeResults { total: results.len(), results }))
}

/// Shows an entry as a knowledge item, without its texts if the gate is shut.
#[utoipa::path(get, path = "/api/v1/knowledge/{entry}",
    responses((status = 200, body = KnowledgeItem)))]
async fn knowledge_item(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<KnowledgeItem> {
    let shown = QueryParams(ShowQuery::default());
    let ApiReply(shown) = entries::show(State(service.clone()), caller, Path(entry), shown).await?;
    let cooccurrence_cluster = served_with(&shown.id, &service.maintenance.clusters());
    Ok(ApiReply(KnowledgeItem { cooccurrence_cluster, ..shapes::entry_item(&shown) }))
}

/// Ids of the other entries of an entry's cluster.
fn served_with(id: &str, clusters: &[HeavyCluster]) -> Vec<String> {
    let found = EntryId::from_hex(id)
        .and_then(|id| clusters.iter().find(|cluster| cluster.entries.contains(&id)));
    let others = found.into_iter().flat_map(|cluster| &cluster.entries).map(EntryId::to_string);
    others.filter(|other| other != id).collect()
}

/// Promotes an entry out of its thread, or to the workspace `main`.
#[utoipa::path(post, path = "/api/v1/knowledge/{entry}/promote", request_body = KnowledgePromotion,
    responses((status = 200, body = KnowledgePromoted)))]
async fn knowledge_promote(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(asked): Body<KnowledgePromotion>,
) -> ApiResult<KnowledgePromoted> {
    let scope = asked.target_scope.unwrap_or_else(|| "workspace".to_owned());
    let to = match scope.as_str() {
        "workspace" => None,
        "global" => Some("main".to_owned()),
        other => {
            let message = format!("`target_scope` is `{other}`; it must be workspace or global.");
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
    };
    let ask = Body(Promote { to, ..Promote::default() });
    let ApiReply(made) = promotion::promote(State(service), caller, Path(entry), ask).await?;
    Ok(ApiReply(KnowledgePromoted { promoted: true, entry_id: made.id, scope }))
}

/// Pins, mutes or invalidates an entry on this node, or takes that back.
#[utoipa::path(post, path = "/api/v1/knowledge/{entry}/action", request_body = KnowledgeAction,
    responses((status = 200, body = KnowledgeActed)))]
async fn knowledge_action(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(KnowledgeAction { action, reason, .. }): Body<KnowledgeAction>,
) -> ApiResult<KnowledgeActed> {
    let none = MarkUpdate { note: reason.filter(|note| !note.is_empty()), ..<_>::default() };
    let marks = match action.as_str() {
        "pin" => MarkUpdate { pinned: Some(true), ..none },
        "unpin" => MarkUpdate { pinned: Some(false), ..none },
        "mute" => MarkUpdate { muted: Some(true), ..none },
        "unmute" => MarkUpdate { muted: Some(false), ..none },
        "invalidate" => MarkUpdate { invalidated: Some(true), ..none },
        "reinstate" => MarkUpdate { invalidated: Some(false), ..none },
        other => {
            let known = ACTIONS.join(", ");
            let message = format!("`action` is `{other}`; it must be one of {known}.");
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
    };
    let ApiReply(marked) =
        entries::overlay(State(service), caller, Path(entry), Body(marks)).await?;
    Ok(ApiReply(KnowledgeActed { ok: true, entry_id: marked.id, action }))
}

/// Sets the operator's note on an entry, on this node only.
#[utoipa::path(post, path = "/api/v1/knowledge/{entry}/annotate",
    request_body = KnowledgeAnnotation, responses((status = 200, body = KnowledgeAnnotated)))]
async fn knowledge_annotate(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
    Body(KnowledgeAnnotation { annotation_text, tag, .. }): Body<KnowledgeAnnotation>,
) -> ApiResult<KnowledgeAnnotated> {
    if annotation_text.trim().is_empty() {
        let message = "`annotation_text` is missing or empty.";
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let note = match tag.filter(|tag| !tag.is_empty()) {
        None => annotation_text,
        Some(tag) => format!("{tag}: {annotation_text}"),
    };
    let marks = Body(MarkUpdate { note: Some(note), ..MarkUpdate::default() });
    let ApiReply(marked) = entries::overlay(State(service), caller, Path(entry), marks).await?;
    Ok(ApiReply(KnowledgeAnnotated { ok: true, entry_id: marked.id, annotated: true }))
}

/// Shows the operator's marks on an entry.
#[utoipa::path(get, path = "/api/v1/knowledge/{entry}/overlay",
    responses((status = 200, body = KnowledgeOverlay)))]
async fn knowledge_overlay(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<KnowledgeOverlay> {
    let shown = QueryParams(ShowQuery::default());
    let ApiReply(shown) = entries::show(State(service), caller, Path(entry), shown).await?;
    Ok(ApiReply(KnowledgeOverlay {
        entry_id: shown.id,
        pinned: shown.pinned,
        muted: shown.muted,
        invalidated: shown.invalidated,
        annotation_count: usize::from(shown.note.is_some()),
    }))
}

/// Shows the origin and the changes of an entry.
#[utoipa::path(get, path = "/api/v1/knowledge/{entry}/provenance",
    responses((status = 200, body = KnowledgeProvenance)))]
async fn knowledge_provenance(
    State(service): State<Service>,
    caller: Caller,
    Path(entry): Path<String>,
) -> ApiResult<KnowledgeProvenance> {
    let query = QueryParams(ShowQuery::default());
    let name = || Path(entry.clone());
    let ApiReply(shown) = entries::show(State(service.clone()), caller, name(), query).await?;
    let ApiReply(records) = history::history(State(service), caller, name()).await?;
    Ok(ApiReply(shapes::provenance(&shown, &records)))
}

/// Briefs on a workspace, at the path that the document of `FormicOS` names.
#[utoipa::path(get, path = "/api/v1/briefing/{name}",
    responses((status = 200, body = WorkspaceBriefing)))]
async fn seed_briefing(
    State(service): State<Service>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<WorkspaceBriefing> {
    brief(service, caller, name).await
}

/// Briefs on a workspace, at the path that `FormicOS` serves.
#[utoipa::path(get, path = "/api/v1/workspaces/{name}/briefing",
    responses((status = 200, body = WorkspaceBriefing)))]
async fn workspace_briefing(
    State(service): State<Service>,
    caller: Caller,
    Path(name): Path<String>,
) -> ApiResult<WorkspaceBriefing> {
    brief(service, caller, name).await
}

async fn brief(service: Service, caller: Caller, name: String) -> ApiResult<WorkspaceBriefing> {
    let query = BriefingQuery { workspace: Some(name), ..BriefingQuery::default() };
    let ApiReply(briefing) = briefing::briefing(State(service), caller, QueryParams(query)).await?;
    Ok(ApiReply(WorkspaceBriefing {
        workspace_id: briefing.workspace,
        generated_at: moment(briefing.as_of),
        insights: briefing.insights.iter().map(shapes::briefing_insight).collect(),
        total_entries: briefing.sections.iter().map(|section| section.entries.len()).sum(),
        text: briefing.text,
    }))
}

/// Returns the outcomes of a workspace's tasks in a period, with their totals.
#[utoipa::path(get, path = "/api/v1/workspaces/{name}/outcomes", params(ColonyOutcomesQuery),
    responses((status = 200, body = ColonyOutcomes)))]
async fn workspace_outcomes(
    State(service): State<Service>,
    Path(name): Path<String>,
    QueryParams(ColonyOutcomesQuery { period }): QueryParams<ColonyOutcomesQuery>,
) -> ApiResult<ColonyOutcomes> {
    let query = OutcomesQuery { workspace: Some(name), period };
    let ApiReply(report) = outcomes::outcomes(State(service), QueryParams(query)).await?;
    Ok(ApiReply(shapes::colony_outcomes(&report)))
}

/// The number of items to return.
fn checked_limit(asked: Option<usize>, default: usize, most: usize) -> Result<usize, ApiError> {
    let limit = asked.unwrap_or(default);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("`limit` is {limit}; it must be 1 to {most}.");
    Err(ApiError::new(ErrorKind::Invalid, message, None))
}
