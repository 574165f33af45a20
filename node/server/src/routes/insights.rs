//! Routes for insights: list, show, dismiss and restore.

use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::insights;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{ErrorKind, InsightDismissal, InsightList, InsightsQuery, ListedInsight};
use klnode_engine::{Command, InsightCommand};
use klnode_query::FoundInsight;
use klnode_store::dismissed_insights::DismissedInsightRow;

/// Minimum number of digits by which an insight can be named.
const DIGITS_MIN: usize = 4;

/// Lists the insights of a workspace, the most severe first.
#[utoipa::path(get, path = "/v1/insights", params(InsightsQuery),
    responses((status = 200, body = InsightList)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(InsightsQuery { workspace, dismissed }): QueryParams<InsightsQuery>,
) -> ApiResult<InsightList> {
    let (name, found) = find_all(&service, workspace).await?;
    let hidden = found.iter().filter(|one| one.dismissed.is_some()).count();
    let shown = found.iter().filter(|one| dismissed || one.dismissed.is_none());
    Ok(ApiReply(InsightList {
        as_of: (service.now)().as_millis(),
        workspace: name,
        insights: shown.map(insights::insight).collect(),
        dismissed: if dismissed { 0 } else { hidden },
    }))
}

/// Shows an insight with its evidence.
#[utoipa::path(get, path = "/v1/insights/{insight}", params(InsightsQuery),
    responses((status = 200, body = ListedInsight)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(insight): Path<String>,
    QueryParams(query): QueryParams<InsightsQuery>,
) -> ApiResult<ListedInsight> {
    let found = find(&service, query.workspace, &insight).await?;
    Ok(ApiReply(insights::insight(&found)))
}

/// Dismisses an insight on this node, until it has evidence that it does not have now.
#[utoipa::path(post, path = "/v1/insights/{insight}/dismiss", params(InsightsQuery),
    responses((status = 200, body = InsightDismissal)))]
pub(super) async fn dismiss(
    State(service): State<Service>,
    caller: Caller,
    Path(insight): Path<String>,
    QueryParams(query): QueryParams<InsightsQuery>,
) -> ApiResult<InsightDismissal> {
    let found = find(&service, query.workspace, &insight).await?;
    let already = found.dismissed.is_some();
    let at = found.dismissed.unwrap_or_else(service.now);
    if !already {
        let (rule, evidence) = (found.insight.rule.number(), found.evidence.clone());
        let row = DismissedInsightRow { rule, at, evidence };
        let command = Command::Insight(InsightCommand::Dismiss(found.key, row));
        service.submit(caller, command).await?;
    }
    let insight = insights::insight(&FoundInsight { dismissed: Some(at), ..found });
    Ok(ApiReply(InsightDismissal { insight, already }))
}

/// Takes the dismissal of an insight back.
#[utoipa::path(post, path = "/v1/insights/{insight}/restore", params(InsightsQuery),
    responses((status = 200, body = InsightDismissal)))]
pub(super) async fn restore(
    State(service): State<Service>,
    caller: Caller,
    Path(insight): Path<String>,
    QueryParams(query): QueryParams<InsightsQuery>,
) -> ApiResult<InsightDismissal> {
    let found = find(&service, query.workspace, &insight).await?;
    let already = found.dismissed.is_none();
    service.submit(caller, Command::Insight(InsightCommand::Restore(found.key))).await?;
    let insight = insights::insight(&FoundInsight { dismissed: None, ..found });
    Ok(ApiReply(InsightDismissal { insight, already }))
}

/// The name of the workspace, and all its insights.
async fn find_all(
    service: &Service,
    workspace: Option<String>,
) -> Result<(String, Vec<FoundInsight>), ApiError> {
    let workspace = service.workspace_for(workspace.as_deref())?;
    let service = service.clone();
    run_blocking(move |cancel| {
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let reading = service.reader.at(&snapshot, now)?;
        Ok((reading.membership.name(workspace), reading.insights(workspace, cancel)?))
    })
    .await
}

/// The insight with an id, or with an unambiguous beginning of it.
async fn find(
    service: &Service,
    workspace: Option<String>,
    id: &str,
) -> Result<FoundInsight, ApiError> {
    let hint = Some("Run `klnode insights list` to see the ids.");
    let is_hex = id.len() >= DIGITS_MIN && id.chars().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex {
        let message =
            format!("`{id}` is no id of an insight: it has {DIGITS_MIN} to 8 hex digits.");
        return Err(ApiError::new(ErrorKind::Invalid, message, hint));
    }
    let (workspace, all) = find_all(service, workspace).await?;
    let wanted = id.to_ascii_lowercase();
    let mut found = all.into_iter().filter(|one| one.id().starts_with(&wanted));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            let message = format!("Several insights begin with {id}.");
            Err(ApiError::new(ErrorKind::Ambiguous, message, hint))
        }
        (None, _) => {
            let message = format!("Insight {id} does not exist in workspace `{workspace}` now.");
            Err(ApiError::new(ErrorKind::NotFound, message, hint))
        }
    }
}
