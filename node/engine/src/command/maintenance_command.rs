//! Commands about maintenance, and their results.
//!
//! Separate from `maintenance`, which carries them out.

use klnode_crdt::ids::EntryId;
use klnode_store::maintenance_journal::{MaintenanceRow, Matter, Service, ServiceRow, Stage};
use klnode_store::row_types::Seq;

/// A command about maintenance.
#[derive(Clone, Debug)]
pub enum MaintenanceCommand {
    /// Stores the results of a service's pass together with its new progress.
    Pass {
        /// The service that made the pass.
        service: Service,
        /// The progress of the service after the pass.
        row: ServiceRow,
        /// Journal rows that the pass adds.
        notes: Vec<MaintenanceNote>,
        /// Journal rows that no longer apply; a merge among them is withdrawn.
        over: Vec<u64>,
        /// Co-occurrence pairs whose weight has decayed away.
        faded: Vec<(EntryId, EntryId)>,
        /// Entries with own duplicate links that are not indexed yet, because their author became
        /// one of this person's keys after the links arrived.
        edges: Vec<EntryId>,
    },
    /// Undoes a merge for good.
    Undo(u64),
    /// Carries out a proposal.
    Accept(u64),
    /// Dismisses a proposal or a contradiction for good.
    Dismiss(u64),
}

impl MaintenanceCommand {
    /// Whether losing the command in a power cut only repeats a search.
    pub(super) fn is_incidental(&self) -> bool {
        match self {
            Self::Pass { notes, over, .. } => notes.is_empty() && over.is_empty(),
            _ => false,
        }
    }
}

/// One result of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceNote {
    /// The subject: duplicates, a contradiction or staleness.
    pub matter: Matter,
    /// The stage of the new journal row; [`Stage::Made`] merges the entries.
    pub stage: Stage,
    /// The entries, each with the feed position the pass saw: that of its last text change, or for
    /// staleness that of its last change.
    pub entries: Vec<(EntryId, Seq)>,
    /// The reason. It contains numbers and words from klnode's own lists, but no other text of the
    /// entries.
    pub why: String,
    /// Whether one of the entries was created by another person.
    pub is_foreign: bool,
}

/// The result of a maintenance command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceReceipt {
    /// The results of a maintenance pass were stored. Contains the numbers of the journal rows that it
    /// added.
    Noted(Vec<u64>),
    /// The journal row with this number has a new stage.
    Decided(u64, Box<MaintenanceRow>),
}
