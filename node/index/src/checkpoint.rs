//! A checkpoint of the index: its feed position, bound to one history of one store.
//!
//! A store may be replaced by an older copy of itself, which then continues differently. So a
//! checkpoint names the store and the process starts that wrote the feed; an index whose checkpoint
//! belongs to another history is rebuilt.

use klnode_crdt::ids::StoreId;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::fmt;
use std::str::FromStr;

/// A position in the feed, bound to one history of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The id of the store.
    store: StoreId,
    /// A hash of the last process start at or before the position.
    lineage: u64,
    /// The index contains all records up to here.
    pub seq: Seq,
}

impl Checkpoint {
    /// The checkpoint of a feed position that this snapshot contains.
    pub fn at(store: StoreId, snapshot: &Snapshot, seq: Seq) -> Result<Self, Error> {
        Ok(Self { store, lineage: lineage(snapshot, seq)?, seq })
    }

    /// True if the checkpoint belongs to the history of this snapshot.
    pub fn is_of(&self, store: StoreId, snapshot: &Snapshot) -> Result<bool, Error> {
        let is_there = self.store == store && self.seq <= snapshot.head();
        Ok(is_there && self.lineage == lineage(snapshot, self.seq)?)
    }
}

/// The process starts up to a position determine its records: later starts begin after it.
fn lineage(snapshot: &Snapshot, seq: Seq) -> Result<u64, Error> {
    let (mut newest, mut boots) = (Seq(0), 0);
    for epoch in snapshot.epochs()? {
        let (first, boot) = epoch?;
        if first > seq {
            break;
        }
        // Boots are random bits; several at one position have no order, so they are combined by
        // XOR.
        boots = if first > newest { boot.0 } else { boots ^ boot.0 };
        newest = first;
    }
    Ok(newest.0 ^ boots)
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:016x} {}", self.store, self.lineage, self.seq.0)
    }
}

/// The text is not a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("The feed position of the index cannot be read.")]
pub struct InvalidCheckpoint;

impl FromStr for Checkpoint {
    type Err = InvalidCheckpoint;

    fn from_str(text: &str) -> Result<Self, InvalidCheckpoint> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().ok_or(InvalidCheckpoint);
        let store = StoreId::from_hex(next()?).ok_or(InvalidCheckpoint)?;
        let lineage = u64::from_str_radix(next()?, 16).map_err(|_| InvalidCheckpoint)?;
        let seq = Seq(next()?.parse().map_err(|_| InvalidCheckpoint)?);
        Ok(Self { store, lineage, seq })
    }
}
