//! The row type of every table, by the name of the table.
//!
//! Separate from `row_types`, because this module names the rows of all other files of the store.

use super::checkouts::{CheckoutRow, PromotionRow};
use super::daily_usage::UsageRow;
use super::dismissed_insights::DismissedInsightRow;
use super::documents::DocumentRow;
use super::findings::FindingRow;
use super::imports::ImportRow;
use super::maintenance_journal::{MaintenanceRow, ServiceRow};
use super::peers::RemovalRow;
use super::peers::row_types::{
    OutcomeRow, PeerRow, ReceiptRow, RefusalRow, ReleaseRow, WorkspaceRow,
};
use super::row_types::{
    CallerRow, MarksRow, PairRow, QuarantineRow, RecordRow, ServedRow, UseRow, ViewRow, decode,
    encode,
};
use super::served_sessions::SessionRow;
use super::tasks::{PartRow, TaskRow};
use klnode_crdt::equivocation::RawProof;
use klnode_federation::proto::pairing::Invitation;
use serde::{Serialize, de::DeserializeOwned};

/// Decodes and re-encodes a value of a table; tests use it to check the formats. `None` if the
/// bytes are invalid, or if the table has values of fixed width.
pub fn rewritten(table: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    fn again<T: Serialize + DeserializeOwned>(table: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        decode::<T>(table, bytes).ok().map(|row| encode(&row))
    }
    match table {
        "records" => {
            let row = decode::<RecordRow>(table, bytes).ok()?;
            Some(encode(&row.rewritten()?))
        }
        "views" => again::<ViewRow>(table, bytes),
        "equivocations" => again::<RawProof>(table, bytes),
        "quarantine" => again::<QuarantineRow>(table, bytes),
        "releases" => again::<ReleaseRow>(table, bytes),
        "refusals" => again::<RefusalRow>(table, bytes),
        "peers" => again::<PeerRow>(table, bytes),
        "workspaces" => again::<WorkspaceRow>(table, bytes),
        "invitations" => again::<Invitation>(table, bytes),
        "outcomes" => again::<OutcomeRow>(table, bytes),
        "receipts" => again::<ReceiptRow>(table, bytes),
        "overlays" => again::<MarksRow>(table, bytes),
        "ledger" => again::<ServedRow>(table, bytes),
        "uses" => again::<UseRow>(table, bytes),
        "pairs" => again::<PairRow>(table, bytes),
        "callers" => again::<CallerRow>(table, bytes),
        "tasks" => again::<TaskRow>(table, bytes),
        "parts" => again::<PartRow>(table, bytes),
        "sessions" => again::<SessionRow>(table, bytes),
        "usage" => again::<UsageRow>(table, bytes),
        "checkouts" => again::<CheckoutRow>(table, bytes),
        "promotions" => again::<PromotionRow>(table, bytes),
        "findings" => again::<FindingRow>(table, bytes),
        "upkeep" => again::<MaintenanceRow>(table, bytes),
        "services" => again::<ServiceRow>(table, bytes),
        "documents" => again::<DocumentRow>(table, bytes),
        "imports" => again::<ImportRow>(table, bytes),
        "dismissed" => again::<DismissedInsightRow>(table, bytes),
        "removals" => again::<RemovalRow>(table, bytes),
        _ => None,
    }
}
