//! What an answer of one node to another holds.

use klnode_federation::proto::message::{Answer, Item};

/// How many records an answer holds.
pub(super) fn records_of(answer: &[u8]) -> u64 {
    let is_record =
        |item: &&Item| matches!(item, Item::Named(..) | Item::Whole(..) | Item::First(..));
    match Answer::decode(answer) {
        Ok(Answer::Page(items, ..)) => items.iter().filter(is_record).count() as u64,
        Ok(Answer::Records(records)) => records.len() as u64,
        _ => 0,
    }
}

/// Whether an answer is a part of a comparison.
pub(super) fn is_comparison(answer: &[u8]) -> bool {
    matches!(Answer::decode(answer), Ok(Answer::Compare(_)))
}
