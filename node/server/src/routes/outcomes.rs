//! `GET /v1/outcomes`: outcomes of the tasks of a workspace in a period, with their totals.

use super::usage::days;
use crate::blocking_pool::run_blocking;
use crate::convert::insights;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{OutcomeReport, OutcomesQuery};

/// Default length of the period in days.
const DAYS_DEFAULT: u32 = 7;

/// Returns the outcomes of finished tasks in a period, with their totals.
#[utoipa::path(get, path = "/v1/outcomes", params(OutcomesQuery),
    responses((status = 200, body = OutcomeReport)))]
pub(super) async fn outcomes(
    State(service): State<Service>,
    QueryParams(OutcomesQuery { workspace, period }): QueryParams<OutcomesQuery>,
) -> ApiResult<OutcomeReport> {
    let days = period.as_deref().map_or(Ok(DAYS_DEFAULT), |text| days("period", text))?;
    let workspace = service.workspace_for(workspace.as_deref())?;
    run_blocking(move |_| {
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let reading = service.reader.at(&snapshot, now)?;
        let found = reading.task_outcomes(workspace, days)?;
        Ok::<_, ApiError>(OutcomeReport {
            as_of: now.as_millis(),
            workspace: reading.membership.name(workspace),
            period: format!("{days}d"),
            summary: insights::totals(found.outcomes.iter()),
            strategies: insights::by_strategy(&found.outcomes),
            outcomes: found.outcomes.iter().map(insights::outcome).collect(),
            more: found.is_cut,
        })
    })
    .await
    .map(ApiReply)
}
