//! The reading side: find an entry, read it, judge it. Nothing here writes.

mod cancel;
mod judge;
mod reference;

pub use cancel::{Cancel, CancelOnDrop};
pub use judge::{Judged, Numbers};
pub use reference::{Reference, ReferenceError};

use crate::store::rows::OverlayRow;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{Entitlement, View};
use std::collections::BTreeSet;

/// Who reads, and by which numbers.
#[derive(Clone, Debug)]
pub struct Reader {
    /// This node and the same person's others.
    pub mine: BTreeSet<AuthorId>,
    /// The numbers of judgement.
    pub numbers: Numbers,
}

/// An entry as it is answered.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub entry: EntryId,
    /// What it says.
    pub view: View,
    /// How far it is believed.
    pub judged: Judged,
    /// The operator's marks on it.
    pub overlay: OverlayRow,
}

impl Reader {
    /// Reads one entry; nothing if this node has never heard of it.
    pub fn read(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
        now: WallTime,
    ) -> Result<Option<Found>, Error> {
        let Some(row) = snapshot.view_row(entry)? else { return Ok(None) };
        let entitlement = Entitlement { mine: self.mine.clone(), members: BTreeSet::new() };
        let view = snapshot.entry(entry)?.to_entry().view(now, &entitlement);
        let judged = judge::judge(&view, &row, &self.mine, now, &self.numbers);
        Ok(Some(Found { entry, view, judged, overlay: snapshot.overlay(entry)? }))
    }
}
