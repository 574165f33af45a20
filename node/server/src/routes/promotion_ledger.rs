//! `GET /v1/promotions`: the ledger of promotions that this node made.
//!
//! The evidence of a row is read from the new entry: the citations that its creator made no later
//! than the promotion. The store keeps only source, time, approver and reason.

use super::how_many;
use crate::blocking_pool::run_blocking;
use crate::convert::entries::entry_identity;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{ErrorKind, LedgerPromotion, PromotionLedger, PromotionsQuery};
use klnode_crdt::ids::EntryId;
use klnode_query::ReadContext;
use klnode_store::Error;
use klnode_store::checkouts::PromotionRow;

/// Default number of promotions in one response.
const ROWS_DEFAULT: usize = 1_000;

/// Lists the promotions that this node made, with evidence, approver and reason.
#[utoipa::path(get, path = "/v1/promotions", params(PromotionsQuery),
    responses((status = 200, body = PromotionLedger)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(query): QueryParams<PromotionsQuery>,
) -> ApiResult<PromotionLedger> {
    let limit = how_many(query.limit, ROWS_DEFAULT, "promotions", None)?;
    let after = query.after.as_deref().map(|id| {
        EntryId::from_hex(id).ok_or_else(|| {
            let message = format!("`{id}` is no entry id, which has 32 hex digits.");
            ApiError::new(ErrorKind::Invalid, message, None)
        })
    });
    let after = after.transpose()?;
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let rows = snapshot.promotions(after, limit)?;
        let is_full = rows.len() == limit;
        let next = rows.last().filter(|_| is_full).map(|(entry, _)| entry.to_string());
        let promotions = rows.iter().map(|(entry, row)| promotion(&reading, *entry, row));
        Ok(PromotionLedger { promotions: promotions.collect::<Result<_, Error>>()?, next })
    })
    .await
    .map(ApiReply)
}

fn promotion(
    reading: &ReadContext<'_>,
    entry: EntryId,
    row: &PromotionRow,
) -> Result<LedgerPromotion, Error> {
    let code = |of: EntryId| entry_identity(Some(reading), of).code;
    let found = reading.read_sound(entry)?;
    let origin = found.as_ref().and_then(|found| found.view.origin.as_ref());
    let creator = origin.and_then(|origin| origin.creator());
    let cited = found.iter().flat_map(|found| &found.view.citations);
    let cited = cited.filter(|(of, by)| {
        let is_own = creator.is_some_and(|creator| by.contains(&creator));
        is_own && !of.is_context && of.cited_at <= row.at
    });
    let approver = match (&row.approved_by, &row.reason) {
        (Some(_), _) => "person",
        (None, Some(_)) => "caller",
        (None, None) => "none",
    };
    Ok(LedgerPromotion {
        source: row.source.to_string(),
        source_code: code(row.source),
        target: entry.to_string(),
        target_code: code(entry),
        target_memory: origin.map(|origin| origin.memory().to_string()),
        evidence: cited
            .map(|(of, _)| format!("{}:{}", of.evidence_type, of.evidence_ref))
            .collect(),
        approver: approver.to_owned(),
        approved_by: row.approved_by.map(|key| key.to_string()),
        reason: row.reason.clone(),
        at: row.at.as_millis(),
    })
}
