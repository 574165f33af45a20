//! Decodes the responses between nodes.

use klnode_federation::proto::message::{OutboxItem, SyncResponse};

/// Number of records in a response.
pub(super) fn records_of(answer: &[u8]) -> u64 {
    let is_record = |item: &&OutboxItem| {
        matches!(item, OutboxItem::Named(..) | OutboxItem::Whole(..) | OutboxItem::First(..))
    };
    match SyncResponse::decode(answer) {
        Ok(SyncResponse::Page(items, ..)) => items.iter().filter(is_record).count() as u64,
        Ok(SyncResponse::Records(records)) => records.len() as u64,
        _ => 0,
    }
}

/// Whether a response is part of a comparison.
pub(super) fn is_comparison(answer: &[u8]) -> bool {
    matches!(SyncResponse::decode(answer), Ok(SyncResponse::Compare(_)))
}
