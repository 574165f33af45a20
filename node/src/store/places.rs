//! Where entries belong: which workspace a checkout is mapped to, what an entry was promoted from,
//! and what names itself its successor.
//!
//! Local: nothing here is ever sent, and nothing here holds a text. A successor is a hint to where to
//! look: whether one entry takes another's place is read from the records of both.

use super::batch::Batch;
use super::error::Error;
use super::read;
use super::rows;
use super::snapshot::Snapshot;
use super::tables::{CHECKOUTS, PROMOTIONS, SUCCESSORS, key, part, span};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Hints at what takes one entry's place: no more are noted, but for own ones, and no more are read.
pub const HINTS_MAX: usize = 1_024;
/// So many checkouts are mapped.
pub const CHECKOUTS_MAX: u64 = 4_096;

/// A checkout that is mapped to a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutRow {
    /// To which.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// Which repository it is of: roots and remote, in one line.
    #[serde(rename = "i")]
    pub identity: String,
    /// Where it lay when it was mapped, for people.
    #[serde(rename = "f")]
    pub folder: String,
    /// Since when.
    #[serde(rename = "t")]
    pub since: WallTime,
}

/// What an entry was promoted from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotionRow {
    /// Which entry.
    #[serde(rename = "e")]
    pub source: EntryId,
    /// When.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// The person's key that signed for it, where there was one.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<AuthorId>,
}

impl Snapshot {
    /// Every checkout that is mapped, by the hash of its identity.
    pub fn checkouts(&self) -> Result<Vec<([u8; 16], CheckoutRow)>, Error> {
        let table = self.transaction.open_table(CHECKOUTS)?;
        let rows = table.iter()?.map(|row| {
            let (at, row) = row?;
            Ok((*at.value(), rows::decode("checkouts", row.value())?))
        });
        rows.collect()
    }

    /// What an entry was promoted from, if it was.
    pub fn promotion(&self, entry: EntryId) -> Result<Option<PromotionRow>, Error> {
        read::row("promotions", &self.transaction.open_table(PROMOTIONS)?, entry.as_bytes())
    }

    /// Entries that somebody has said take this one's place, up to a limit.
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
    /// Maps a checkout; false if there are too many.
    pub(crate) fn put_checkout(&self, at: [u8; 16], row: &CheckoutRow) -> Result<bool, Error> {
        let mut table = self.transaction.open_table(CHECKOUTS)?;
        if table.len()? >= CHECKOUTS_MAX && table.get(&at)?.is_none() {
            return Ok(false);
        }
        table.insert(&at, rows::encode(row).as_slice())?;
        Ok(true)
    }

    pub(crate) fn drop_checkout(&self, at: [u8; 16]) -> Result<(), Error> {
        self.transaction.open_table(CHECKOUTS)?.remove(&at)?;
        Ok(())
    }

    pub(crate) fn put_promotion(&self, entry: EntryId, row: &PromotionRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PROMOTIONS)?;
        table.insert(entry.as_bytes(), rows::encode(row).as_slice())?;
        Ok(())
    }

    /// What was promoted from an entry. Few entries ever are, so all of them are looked through.
    pub(crate) fn promotions_of(
        &self,
        source: EntryId,
    ) -> Result<Vec<(EntryId, PromotionRow)>, Error> {
        let (table, mut made) = (self.transaction.open_table(PROMOTIONS)?, Vec::new());
        for row in table.iter()? {
            let (entry, row) = row?;
            let read = rows::decode::<PromotionRow>("promotions", row.value());
            // What is damaged holds nothing up.
            let row = Error::unless_damaged(read)?.filter(|row| row.source == source);
            made.extend(row.map(|row| (EntryId::from_bytes(*entry.value()), row)));
        }
        Ok(made)
    }

    /// Entries that somebody has said take this one's place.
    pub(crate) fn successors(&self, entry: EntryId) -> Result<Vec<EntryId>, Error> {
        successors(&self.transaction.open_table(SUCCESSORS)?, entry, usize::MAX)
    }

    /// Whether it is noted that one entry takes another's place.
    pub(crate) fn is_successor(&self, old: EntryId, new: EntryId) -> Result<bool, Error> {
        let table = self.transaction.open_table(SUCCESSORS)?;
        Ok(table.get(&key::<32>(&[old.as_bytes(), new.as_bytes()]))?.is_some())
    }

    /// Notes where to look for what takes an entry's place.
    pub(crate) fn put_successor(&self, old: EntryId, new: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SUCCESSORS)?;
        table.insert(&key::<32>(&[old.as_bytes(), new.as_bytes()]), 0)?;
        Ok(())
    }

    /// Nobody says any longer that one entry takes another's place.
    pub(crate) fn drop_successor(&self, old: EntryId, new: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(SUCCESSORS)?;
        table.remove(&key::<32>(&[old.as_bytes(), new.as_bytes()]))?;
        Ok(())
    }

    /// Forgotten entries take no other's place. Returns how many rows were looked at.
    pub(super) fn forget_succession(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let (mut table, mut looked) = (self.transaction.open_table(SUCCESSORS)?, 0);
        table.retain(|at, _| {
            looked += 1;
            !gone.contains(&EntryId::from_bytes(part(at, 16)))
        })?;
        Ok(looked)
    }

    /// Nothing takes a forgotten entry's place, and none of it is left as a promotion.
    pub(super) fn forget_places(&self, entry: EntryId) -> Result<(), Error> {
        self.transaction.open_table(PROMOTIONS)?.remove(entry.as_bytes())?;
        let (first, last) = span::<32>(entry.as_bytes());
        let mut table = self.transaction.open_table(SUCCESSORS)?;
        table.retain_in::<&[u8; 32], _>(&first..=&last, |_, _| false)?;
        Ok(())
    }
}
