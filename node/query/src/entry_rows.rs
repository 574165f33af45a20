//! The rows of an entry that an assessment reads.
//!
//! Separate from `reader`, because the assessment and the groups of duplicates fill and use them too.

use klnode_crdt::entry_view::{AuthorCounts, EntryView};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_store::row_types::{ProvenRow, UseRow, ViewRow};
use std::collections::BTreeMap;

/// The input of an assessment.
pub(super) struct EntryRows {
    pub(super) entry: EntryId,
    pub(super) row: ViewRow,
    pub(super) view: EntryView,
    pub(super) uses: UseRow,
    /// Totals of outcomes whose rows have been pruned: of the entry, and of its merged duplicates.
    pub(super) proven: Vec<(EntryId, ProvenRow)>,
    /// The counts of each entry in a group of merged duplicates; empty for a single entry.
    pub(super) parts: Vec<(EntryId, BTreeMap<AuthorId, AuthorCounts>)>,
}

impl EntryRows {
    /// The counts by the entry they were made for.
    pub(super) fn counts_by_entry(&self) -> Vec<(EntryId, &BTreeMap<AuthorId, AuthorCounts>)> {
        match self.parts.is_empty() {
            true => vec![(self.entry, &self.view.counts)],
            false => self.parts.iter().map(|(entry, counts)| (*entry, counts)).collect(),
        }
    }
}
