//! Workspace mappings of checkouts, sources of promoted entries, and supersession hints.
//!
//! All of this is local: it is never sent and contains no text of entries. A successor is only a
//! hint where to look; the records of both entries decide whether one supersedes the other.

use super::batch::Batch;
use super::error::Error;
use super::row_types;
use super::shared_reads;
use super::snapshot::Snapshot;
use super::tables::{CHECKOUTS, PROMOTIONS, SUCCESSORS, key, part, span};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Most supersession hints per entry that are stored, except this person's own, and that are read.
pub const HINTS_MAX: usize = 1_024;
/// Most mapped checkouts.
pub const CHECKOUTS_MAX: u64 = 4_096;

/// The mapping of a checkout to a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutRow {
    /// The workspace it is mapped to.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// The repository's identity: root commits and remote, in one line.
    #[serde(rename = "i")]
    pub identity: String,
    /// The folder at the time of mapping, for display.
    #[serde(rename = "f")]
    pub folder: String,
    /// The time of mapping.
    #[serde(rename = "t")]
    pub since: WallTime,
}

/// The source of a promoted entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotionRow {
    /// The entry that was promoted.
    #[serde(rename = "e")]
    pub source: EntryId,
    /// The time of the promotion.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// The person's key that approved the promotion, if any.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<AuthorId>,
    /// The reason that the approver gave.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Snapshot {
    /// All mapped checkouts, by the hash of their identity.
    pub fn checkouts(&self) -> Result<Vec<([u8; 16], CheckoutRow)>, Error> {
        let table = self.transaction.open_table(CHECKOUTS)?;
        let rows = table.iter()?.map(|row| {
            let (at, row) = row?;
            Ok((*at.value(), row_types::decode("checkouts", row.value())?))
        });
        rows.collect()
    }

    /// The source of a promoted entry; `None` if it was not promoted.
    pub fn promotion(&self, entry: EntryId) -> Result<Option<PromotionRow>, Error> {
        shared_reads::row("promotions", &self.transaction.open_table(PROMOTIONS)?, entry.as_bytes())
    }

    /// Promotions made on this node, by the new entry, after this one; at most `limit`. A damaged
    /// row is left out.
    pub fn promotions(
        &self,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<(EntryId, PromotionRow)>, Error> {
        let table = self.transaction.open_table(PROMOTIONS)?;
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(*after.as_bytes()));
        let from = from.as_ref();
        let mut found = Vec::new();
        for row in table.range::<&[u8; 16]>((from, Bound::Unbounded))? {
            if found.len() == limit {
                break;
            }
            let (entry, row) = row?;
            let read = row_types::decode::<PromotionRow>("promotions", row.value());
            let row = Error::unless_damaged(read)?;
            found.extend(row.map(|row| (EntryId::from_bytes(*entry.value()), row)));
        }
        Ok(found)
    }

    /// Entries that some record claims to supersede this one, at most `limit`.
    pub fn successors(&self, entry: EntryId, limit: usize) -> Result<Vec<EntryId>, Error> {
        successors(&self.transaction.open_table(SUCCESSORS)?, entry, limit)
    }
}

fn successors(
    table: &impl ReadableTable<&'static [u8; 32], u8>,
    entry: EntryId,
    limit: usize,
) -> Result<Vec<EntryId>, Error> {
    let (first, last) = span::<32>(entry.as_bytes());
    let rows = table.range::<&[u8; 32]>(&first..=&last)?.take(limit);
    rows.map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 16)))).collect()
}

impl Batch {
    /// Maps a checkout. Returns false if the limit is reached.
    pub fn put_checkout(&self, at: [u8; 16], row: &CheckoutRow) -> Result<bool, Error> {
        let mut table = self.transaction.open_table(CHECKOUTS)?;
        if table.len()? >= CHECKOUTS_MAX && table.get(&at)?.is_none() {
            return Ok(false);
        }
        table.insert(&at, row_types::encode(row).as_slice())?;
        Ok(true)
    }

    pub fn drop_checkout(&self, at: [u8; 16]) -> Result<(), Error> {
        self.transaction.open_table(CHECKOUTS)?.remove(&at)?;
        Ok(())
    }

    pub fn put_promotion(&self, entry: EntryId, row: &PromotionRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PROMOTIONS)?;
        table.insert(entry.as_bytes(), row_types::encode(row).as_slice())?;
        Ok(())
    }

    /// The entries promoted from a source. Promotions are rare, so all of them are scanned.
    pub fn promotions_of(&self, source: EntryId) -> Result<Vec<(EntryId, PromotionRow)>, Error> {
        let (table, mut made) = (self.transaction.open_table(PROMOTIONS)?, Vec::new());
        for row in table.iter()? {
            let (entry, row) = row?;
            let read = row_types::decode::<PromotionRow>("promotions", row.value());
            // Skip a damaged row.
            let row = Error::unless_damaged(read)?.filter(|row| row.source == source);
            made.extend(row.map(|row| (EntryId::from_bytes(*entry.value()), row)));
        }
        Ok(made)
    }

    /// Entries that some record claims to supersede this one.
    pub fn successors(&self, entry: EntryId) -> Result<Vec<EntryId>, Error> {
        successors(&self.transaction.open_table(SUCCESSORS)?, entry, usize::MAX)
    }

    /// Whether the hint is stored that `new` supersedes `old`.
    pub fn is_successor(&self, old: EntryId, new: EntryId) -> Result<bool, Error> {
        let table = self.transaction.open_table(SUCCESSORS)?;
        Ok(table.get(&key::<32>(&[old.as_bytes(), new.as_bytes()]))?.is_some())
    }

    /// Stores the hint that `new` supersedes `old`.
    pub fn put_successor(&self, old: EntryId, new: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SUCCESSORS)?;
        table.insert(&key::<32>(&[old.as_bytes(), new.as_bytes()]), 0)?;
        Ok(())
    }

    /// Removes the hint that `new` supersedes `old`.
    pub fn drop_successor(&self, old: EntryId, new: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SUCCESSORS)?;
        table.remove(&key::<32>(&[old.as_bytes(), new.as_bytes()]))?;
        Ok(())
    }

    /// Removes the hints that forgotten entries supersede others. Returns the number of scanned
    /// rows.
    pub(super) fn forget_succession(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let (mut table, mut looked) = (self.transaction.open_table(SUCCESSORS)?, 0);
        table.retain(|at, _| {
            looked += 1;
            !gone.contains(&EntryId::from_bytes(part(at, 16)))
        })?;
        Ok(looked)
    }

    /// Removes a forgotten entry's promotion source and the hints at its successors.
    pub(super) fn forget_places(&self, entry: EntryId) -> Result<(), Error> {
        self.transaction.open_table(PROMOTIONS)?.remove(entry.as_bytes())?;
        let (first, last) = span::<32>(entry.as_bytes());
        let mut table = self.transaction.open_table(SUCCESSORS)?;
        table.retain_in::<&[u8; 32], _>(&first..=&last, |_, _| false)?;
        Ok(())
    }
}
