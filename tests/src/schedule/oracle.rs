//! What must be so in the end, by a model that keeps only what the nodes have acknowledged.
//!
//! It shares no code with the merge: an entry is its creator, the titles that were ever given to
//! it, and a list of observations. Where a home was replaced by an older copy before anyone else
//! held what it had written, or the power went before the answer came, an observation may be there
//! or not; otherwise it must be there, once.

use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// What was said about one entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Who wrote it.
    pub(super) creator: usize,
    /// Whether it must be held by its creator.
    pub(super) is_certain: bool,
    /// The creator has taken it back, or may have.
    pub(super) is_retracted: bool,
    /// Somebody has forgotten it, or may have.
    pub(super) is_forgotten: bool,
    /// Who has said that it did, and has not become an older copy of itself since.
    pub(super) forgotten_by: BTreeSet<usize>,
    pub(super) titles: BTreeSet<String>,
    /// Titles, with those that were written by somebody who held them.
    pub(super) replaced: BTreeMap<String, BTreeSet<String>>,
    /// Observations: by whom, and whether they must be there.
    pub(super) observed: Vec<Observed>,
}

/// One observation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) by: usize,
    pub(super) is_certain: bool,
}

/// Everything that was said.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    pub(super) entries: BTreeMap<EntryId, Told>,
    pub(super) order: Vec<EntryId>,
    /// The number of the step under way.
    pub(super) number: usize,
}

impl Oracle {
    pub(super) fn created(&mut self, entry: EntryId, creator: usize, title: String) {
        let titles = BTreeSet::from([title]);
        let told = Told { creator, is_certain: true, titles, ..Told::default() };
        self.entries.insert(entry, told);
        self.order.push(entry);
    }

    pub(super) fn observed(&mut self, entry: EntryId, by: usize, is_certain: bool) {
        if let Some(told) = self.entries.get_mut(&entry) {
            told.observed.push(Observed { by, is_certain });
        }
    }

    /// Somebody who held some titles wrote another.
    pub(super) fn edited(&mut self, entry: EntryId, title: &str, held: &BTreeSet<String>) {
        let Some(told) = self.entries.get_mut(&entry) else { return };
        told.titles.insert(title.to_owned());
        for old in held {
            told.replaced.entry(old.clone()).or_default().insert(title.to_owned());
        }
    }

    /// What nobody else held of these entries went with a home that was replaced by an older copy:
    /// it may come back, by another copy, or not.
    pub(super) fn lost(&mut self, entries: &BTreeSet<EntryId>) {
        for entry in entries {
            let Some(told) = self.entries.get_mut(entry) else { continue };
            told.is_certain = false;
            for one in &mut told.observed {
                one.is_certain = false;
            }
        }
    }

    /// A home was replaced by an older copy: what it has forgotten since it may hold again.
    pub(super) fn went_back(&mut self, at: usize) {
        for told in self.entries.values_mut() {
            told.forgotten_by.remove(&at);
        }
    }

    /// The least and the most observations of a node about an entry that may be held.
    pub(super) fn bounds(&self, entry: EntryId, by: usize) -> (u64, u64) {
        let Some(told) = self.entries.get(&entry) else { return (0, 0) };
        let own = told.observed.iter().filter(|one| one.by == by);
        own.fold((0, 0), |(least, most), one| (least + u64::from(one.is_certain), most + 1))
    }
}
