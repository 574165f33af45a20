//! How far an index has read the feed, and of which life of which store.
//!
//! A store may be replaced by an older copy of itself, which then goes on differently. So a place
//! in the feed names the store and the process start that wrote there; an index whose mark is not
//! of this feed is built anew.

use crate::store::rows::Seq;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::StoreId;
use std::fmt;
use std::str::FromStr;

/// A place in the feed of one life of one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which store.
    store: StoreId,
    /// A mix of the process starts that took over last before the place.
    lineage: u64,
    /// Everything up to here is in the index.
    pub seq: Seq,
}

impl Mark {
    /// The mark of a place in the feed that this snapshot shows.
    pub fn at(store: StoreId, snapshot: &Snapshot, seq: Seq) -> Result<Self, Error> {
        Ok(Self { store, lineage: lineage(snapshot, seq)?, seq })
    }

    /// Whether the mark is of this feed.
    pub fn is_of(&self, store: StoreId, snapshot: &Snapshot) -> Result<bool, Error> {
        let is_there = self.store == store && self.seq <= snapshot.head();
        Ok(is_there && self.lineage == lineage(snapshot, self.seq)?)
    }
}

/// What is written at a place is fixed by the starts up to it: later starts begin behind it.
fn lineage(snapshot: &Snapshot, seq: Seq) -> Result<u64, Error> {
    let (mut newest, mut boots) = (Seq(0), 0);
    for epoch in snapshot.epochs()? {
        let (first, boot) = epoch?;
        if first > seq {
            break;
        }
        // Boots are random bits, and those that begin at one place have no order.
        boots = if first > newest { boot.0 } else { boots ^ boot.0 };
        newest = first;
    }
    Ok(newest.0 ^ boots)
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {:016x} {}", self.store, self.lineage, self.seq.0)
    }
}

/// What stands where a mark should is none.
#[derive(Debug, thiserror::Error)]
#[error("read the index's place in the feed")]
pub struct NoMark;

impl FromStr for Mark {
    type Err = NoMark;

    fn from_str(text: &str) -> Result<Self, NoMark> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().ok_or(NoMark);
        let store = StoreId::from_hex(next()?).ok_or(NoMark)?;
        let lineage = u64::from_str_radix(next()?, 16).map_err(|_| NoMark)?;
        let seq = Seq(next()?.parse().map_err(|_| NoMark)?);
        Ok(Self { store, lineage, seq })
    }
}
