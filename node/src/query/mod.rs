//! The reading side: find entries, read them, judge them, put them in order. Nothing here writes.

mod cancel;
mod candidates;
pub mod doctor;
mod excerpt;
mod judge;
mod numbers;
mod question;
mod reference;
mod search;

pub use cancel::{Cancel, CancelOnDrop};
pub use candidates::SearchError;
pub use excerpt::{body, one_liner};
pub use judge::Judged;
pub use numbers::{Numbers, cooccurrence};
pub use question::{Abstained, Answer, Audience, Caveat, Engine, Fallback, Hit, Question};
pub use reference::{Reference, ReferenceError};

use crate::store::rows::OverlayRow;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww::Register;
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
    /// When it was first seen here.
    pub first_seen: WallTime,
}

impl Found {
    /// Who wrote the text that is shown.
    pub fn author(&self) -> Option<AuthorId> {
        self.view.registers.get(&Register::CONTENT).map(|shown| shown.value.author)
    }

    /// Whether it has been seen to work here.
    pub fn is_corroborated(&self) -> bool {
        self.judged.local_successes > 0
    }
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
        let uses = snapshot.uses(entry)?;
        let entitlement = Entitlement { mine: self.mine.clone(), members: BTreeSet::new() };
        let view = snapshot.entry(entry)?.to_entry().view(now, &entitlement);
        let judged = judge::judge(&view, &row, &uses, &self.mine, now, &self.numbers);
        let overlay = snapshot.overlay(entry)?;
        Ok(Some(Found { entry, view, judged, overlay, first_seen: row.first_seen }))
    }
}
