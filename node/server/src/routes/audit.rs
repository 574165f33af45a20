//! `GET /v1/audit`: audits entries, one page at a time.

use super::anchors::{page_after, permitted_checkout};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::peers::find_workspace;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{AuditCounts, AuditItem, AuditLimits, AuditQuery, AuditReportPage};
use klnode_query::audit;

/// Audits entries: rule violations, signs of drift and health numbers.
#[utoipa::path(get, path = "/v1/audit", params(AuditQuery),
    responses((status = 200, body = AuditReportPage)))]
pub(super) async fn audit(
    State(service): State<Service>,
    caller: Caller,
    QueryParams(asked): QueryParams<AuditQuery>,
) -> ApiResult<AuditReportPage> {
    let after = page_after(asked.after.as_deref())?;
    let folder = permitted_checkout(caller, asked.checkout.as_deref())?;
    let page = run_blocking(move |cancel| {
        let open = |folder| service.reader.open_checkout(folder);
        let opened = folder.as_deref().map(open).transpose();
        let (checkout, unlooked) = match (opened, &asked.checkout) {
            (Err(error), _) => (None, Some(error.to_string())),
            (Ok(None), Some(path)) => (
                None,
                Some(format!("The node may not read the checkout `{path}` for another user.")),
            ),
            (Ok(checkout), _) => (checkout, None),
        };
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let named = asked.workspace.as_deref();
        let workspace = named.map(|name| find_workspace(&reading.membership, name)).transpose()?;
        let here = checkout.is_some().then_some(folder.as_deref()).flatten();
        let here = service.reader.here(&snapshot, &reading.membership, here)?.workspace;
        let asked = audit::AuditScope { workspace, after, here };
        let found = reading.audit(asked, checkout.as_ref(), cancel)?;
        Ok(page_reply(found, reading.audit_params(), unlooked))
    });
    page.await.map(ApiReply)
}

fn page_reply(
    found: audit::AuditPage,
    params: &klnode_scoring::audit::Params,
    unlooked: Option<String>,
) -> AuditReportPage {
    let tally = found.tally;
    let marked = found.marked.into_iter().map(|one| AuditItem {
        id: one.entry.to_string(),
        code: one.code,
        title: one.title,
        by: one.by,
        corroborated: one.is_tried,
        mark: one.mark.name().to_owned(),
        blocks: one.blocks,
        why: one.why,
    });
    AuditReportPage {
        counts: AuditCounts {
            entries: tally.entries,
            stale: tally.stale,
            disputed: tally.disputed,
            friction: tally.friction,
            waiting: tally.waiting,
            tasks: tally.tasks,
            failed: tally.failed,
        },
        tags: found.tags,
        reviewers: found.reviewers,
        marked: marked.collect(),
        limits: AuditLimits {
            tag_entries: params.tag_entries_max,
            reviewer_entries: params.review_entries_max,
            recent_days: params.recent_days,
            sample_min: params.sample_min,
            stale: params.stale_fraction_max,
            disputed: params.disputed_fraction_max,
            friction: params.friction_max,
            waiting: params.waiting_max,
            failed: params.failed_fraction_max,
        },
        unlooked,
        next: found.next.map(|entry| entry.to_string()),
    }
}
