//! `klnode list --promoted`: the ledger of promotions, oldest first. The same rows go into the file
//! `knowledge.promotions.jsonl` of an export in the layout of Decapod.

use super::sanitize::printable;
use super::timestamp::moment;
use super::{Reply, VerbError};
use klnode_api_types::{LedgerPromotion, PromotionLedger};
use klnode_client::Client;
use serde_json::{Value, json};
use std::fmt::Write;

/// Milliseconds in a second: the exported ledger counts in seconds.
const MILLIS_PER_SECOND: u64 = 1_000;

/// All rows, oldest first.
pub(super) async fn fetch(client: &Client) -> Result<Vec<LedgerPromotion>, VerbError> {
    let mut page: PromotionLedger = client.get("/v1/promotions").await?;
    let mut rows = std::mem::take(&mut page.promotions);
    while let Some(after) = page.next.take() {
        page = client.get(&format!("/v1/promotions?after={after}")).await?;
        rows.append(&mut page.promotions);
    }
    rows.sort_by(|one, other| (one.at, &one.target).cmp(&(other.at, &other.target)));
    Ok(rows)
}

/// Prints the ledger.
pub(super) async fn list(client: &Client) -> Result<Reply, VerbError> {
    let promotions = fetch(client).await?;
    let mut text = String::new();
    for row in &promotions {
        let memory = row.target_memory.as_deref().unwrap_or("forgotten");
        let (at, source, target) = (moment(row.at), &row.source_code, &row.target_code);
        let _ = writeln!(text, "{at}  {source} -> {target}  ({memory})");
        let reason = row.reason.as_ref().map(|reason| format!(": {}", printable(reason)));
        let reason = reason.unwrap_or_default();
        let _ = match (row.approver.as_str(), &row.approved_by) {
            (_, Some(key)) => writeln!(text, "    approved by {key}{reason}"),
            ("caller", None) => writeln!(text, "    approved without a key{reason}"),
            _ => writeln!(text, "    needed no approval"),
        };
        if !row.evidence.is_empty() {
            let _ = writeln!(text, "    evidence {}", printable(&row.evidence.join(", ")));
        }
    }
    if promotions.is_empty() {
        text.push_str("No entry was promoted. `klnode add --from ENTRY` promotes one.\n");
    }
    Ok(Reply::new(&json!({"promotions": promotions}), text))
}

/// A row as the layout of Decapod has it.
pub(super) fn exported(row: &LedgerPromotion) -> Value {
    json!({
        "event_id": format!("{}.{}", row.source, row.target),
        "ts": row.at / MILLIS_PER_SECOND,
        "source_entry_id": row.source,
        "target_entry_id": row.target,
        "target_class": row.target_memory,
        "evidence_refs": row.evidence,
        "approved_by": row.approved_by.as_deref().unwrap_or(&row.approver),
        "actor": "klnode",
        "reason": row.reason,
    })
}
