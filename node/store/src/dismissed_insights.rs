//! Dismissed insights.
//!
//! Local: no peer receives them. A row contains hashes of the evidence and no text, so forgetting
//! an entry leaves no text of it here. A dismissal holds while the insight has no evidence beyond
//! the dismissed one; it is kept until then, at most [`DISMISSALS_MAX`] of them.

use super::batch::Batch;
use super::error::Error;
use super::row_types;
use super::snapshot::Snapshot;
use super::tables::{DISMISSED, part};
use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most dismissed insights; above that the oldest is removed.
pub const DISMISSALS_MAX: u64 = 10_000;

/// The key of an insight.
pub type InsightKey = [u8; 16];

/// A dismissed insight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissedInsightRow {
    /// The number of the rule that found it.
    #[serde(rename = "r")]
    pub rule: u8,
    /// When it was dismissed.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// Hashes of its evidence, sorted.
    #[serde(rename = "e")]
    pub evidence: Vec<u64>,
}

impl DismissedInsightRow {
    /// Whether the dismissal covers all of this evidence.
    pub fn covers(&self, evidence: &[u64]) -> bool {
        evidence.iter().all(|hash| self.evidence.binary_search(hash).is_ok())
    }
}

/// The key of an insight: of its workspace, its rule and its subject. It does not depend on the
/// evidence.
pub fn insight_key(workspace: WorkspaceId, rule: u8, subject: &str) -> InsightKey {
    let bytes = [workspace.as_bytes(), &[rule][..], subject.as_bytes()].concat();
    part(&blake3::derive_key("klnode v1 insight", &bytes), 0)
}

/// The hash by which a dismissal remembers a piece of evidence.
pub fn evidence_hash(key: &str) -> u64 {
    let hash = blake3::derive_key("klnode v1 insight evidence", key.as_bytes());
    u64::from_be_bytes(part(&hash, 0))
}

impl Snapshot {
    /// All dismissed insights; a damaged row is skipped.
    pub fn dismissed_insights(&self) -> Result<BTreeMap<InsightKey, DismissedInsightRow>, Error> {
        let mut found = BTreeMap::new();
        for row in self.transaction.open_table(DISMISSED)?.iter()? {
            let (at, row) = row?;
            let row = row_types::decode::<DismissedInsightRow>("dismissed", row.value());
            found.extend(Error::unless_damaged(row)?.map(|row| (*at.value(), row)));
        }
        Ok(found)
    }
}

impl Batch {
    /// Stores the dismissal of an insight. Above the limit the oldest one is removed.
    pub fn put_dismissal(&self, at: InsightKey, row: &DismissedInsightRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(DISMISSED)?;
        table.insert(&at, row_types::encode(row).as_slice())?;
        while table.len()? > DISMISSALS_MAX {
            let mut oldest: Option<(WallTime, InsightKey)> = None;
            for row in table.iter()? {
                let (at, row) = row?;
                let row = row_types::decode::<DismissedInsightRow>("dismissed", row.value());
                // A damaged row is the first to go.
                let since = Error::unless_damaged(row)?.map_or(WallTime::default(), |row| row.at);
                let this = (since, *at.value());
                oldest = Some(oldest.map_or(this, |held| held.min(this)));
            }
            let Some((_, oldest)) = oldest else { break };
            table.remove(&oldest)?;
        }
        Ok(())
    }

    /// Removes the dismissal of an insight. Returns whether there was one.
    pub fn drop_dismissal(&self, at: InsightKey) -> Result<bool, Error> {
        Ok(self.transaction.open_table(DISMISSED)?.remove(&at)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};

    fn row(evidence: &[u64], at: u64) -> DismissedInsightRow {
        DismissedInsightRow { rule: 1, at: WallTime::from_millis(at), evidence: evidence.to_vec() }
    }

    #[test]
    fn a_dismissal_covers_its_evidence_and_any_part_of_it() {
        let dismissed = row(&[1, 5, 9], 0);
        assert!(dismissed.covers(&[9, 1]) && dismissed.covers(&[]));
        assert!(!dismissed.covers(&[1, 6]));
    }

    #[test]
    fn a_key_depends_on_workspace_rule_and_subject() {
        let key = |workspace, rule, subject| insight_key(workspace, rule, subject);
        let main = key(WorkspaceId::MAIN, 4, "auth");
        assert_eq!(main, key(WorkspaceId::MAIN, 4, "auth"));
        let others = [
            key(WorkspaceId::LOCAL, 4, "auth"),
            key(WorkspaceId::MAIN, 7, "auth"),
            key(WorkspaceId::MAIN, 4, "queues"),
        ];
        assert!(!others.contains(&main));
    }

    #[test]
    fn the_oldest_dismissal_makes_room_above_the_limit() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let key = |number: u64| insight_key(WorkspaceId::MAIN, 1, &number.to_string());
        let table = || row(&[1], 0);
        for number in 0..DISMISSALS_MAX {
            let at = WallTime::from_millis(if number == 7 { 1 } else { number + 10 });
            batch.put_dismissal(key(number), &DismissedInsightRow { at, ..table() }).unwrap();
        }
        let newest = WallTime::from_millis(DISMISSALS_MAX + 10);
        let last = DismissedInsightRow { at: newest, ..table() };
        batch.put_dismissal(key(DISMISSALS_MAX), &last).unwrap();
        assert!(!batch.drop_dismissal(key(7)).unwrap());
        assert!(batch.drop_dismissal(key(8)).unwrap());
        batch.commit().unwrap();
        let left = store.snapshot().unwrap().dismissed_insights().unwrap();
        assert_eq!(left.len() as u64, DISMISSALS_MAX - 1);
        assert_eq!(left.get(&key(DISMISSALS_MAX)), Some(&last));
    }
}
