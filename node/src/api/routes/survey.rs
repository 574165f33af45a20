//! Whether what is held is in order, a page of entries at a time.

use super::anchors::{page_after, permitted};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::server::Service;
use crate::api::sharing::find_workspace;
use crate::api::types::{Marked, SurveyCounts, SurveyLimits, SurveyPage, SurveyQuery};
use crate::query::survey;
use axum::extract::State;

/// Tells which entries break a rule, which have drifted, and what there is of everything.
#[utoipa::path(get, path = "/v1/survey", params(SurveyQuery),
    responses((status = 200, body = SurveyPage)))]
pub(super) async fn survey(
    State(service): State<Service>,
    caller: Caller,
    Params(asked): Params<SurveyQuery>,
) -> Answered<SurveyPage> {
    let after = page_after(asked.after.as_deref())?;
    let folder = permitted(caller, asked.checkout.as_deref())?;
    let page = apart(move |cancel| {
        let open = |folder| service.reader.open_checkout(folder);
        let opened = folder.as_deref().map(open).transpose();
        let (checkout, unlooked) = match (opened, &asked.checkout) {
            (Err(error), _) => (None, Some(error.to_string())),
            (Ok(None), Some(path)) => {
                (None, Some(format!("look into the checkout `{path}` for another user")))
            }
            (Ok(checkout), _) => (checkout, None),
        };
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let named = asked.workspace.as_deref();
        let workspace = named.map(|name| find_workspace(&reading.society, name)).transpose()?;
        let asked = survey::Asked { workspace, after };
        let found = reading.survey(asked, checkout.as_ref(), cancel)?;
        Ok(travelling(found, reading.survey_params(), unlooked))
    });
    page.await.map(Answer)
}

fn travelling(
    found: survey::Survey,
    params: &klnode_scoring::survey::Params,
    unlooked: Option<String>,
) -> SurveyPage {
    let tally = found.tally;
    let marked = found.marked.into_iter().map(|one| Marked {
        id: one.entry.to_string(),
        code: one.code,
        title: one.title,
        by: one.by,
        corroborated: one.is_tried,
        mark: one.mark.name().to_owned(),
        blocks: one.blocks,
        why: one.why,
    });
    SurveyPage {
        counts: SurveyCounts {
            entries: tally.entries,
            stale: tally.stale,
            disputed: tally.disputed,
            friction: tally.friction,
            waiting: tally.waiting,
            tasks: tally.tasks,
            failed: tally.failed,
        },
        tags: found.tags,
        marked: marked.collect(),
        limits: SurveyLimits {
            tag_entries: params.tag_entries_max,
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
