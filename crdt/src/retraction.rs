//! The retraction facet: an author withdraws all its claims on an entry.
//!
//! Each retraction has an id, its **mark**. A mark suppresses every claim of its author on the
//! entry that does not list the mark in `after`. Stamps play no part, so neither a wrong clock nor
//! a clone nor an old backup can bring a retracted text back. Marks form a G-set: they are only
//! ever added. Tallies are not claims and remain.

use crate::digest::{Context, FieldHasher};
use crate::ids::{AuthorId, Boot, EntryId, RetractionId};
use crate::lattice::Lattice;
use crate::time::Hlc;
use std::collections::BTreeSet;

/// All marks of one author on one entry (a G-set).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RetractionSet {
    ids: BTreeSet<RetractionId>,
}

impl Lattice for RetractionSet {
    fn join(&mut self, other: Self) {
        self.ids.join(other.ids);
    }
}

impl RetractionSet {
    /// The id of a retraction. It is unique because a boot never uses a stamp twice.
    pub fn id(entry: EntryId, author: AuthorId, boot: Boot, stamp: Hlc) -> RetractionId {
        RetractionId::from_bytes(
            FieldHasher::new(Context::Mark)
                .field(entry.as_bytes())
                .field(author.as_bytes())
                .field(&boot.0.to_be_bytes())
                .field(&stamp.bits().to_be_bytes())
                .finish_short(),
        )
    }

    /// Adds a mark to the set.
    pub fn insert(&mut self, mark: RetractionId) {
        self.ids.insert(mark);
    }

    /// All marks. A new claim of the author must list them in `after`.
    pub fn ids(&self) -> &BTreeSet<RetractionId> {
        &self.ids
    }

    /// True if these marks suppress a claim with this `after` list: at least one mark is missing
    /// there.
    pub fn suppress(&self, after: &BTreeSet<RetractionId>) -> bool {
        !self.ids.is_subset(after)
    }

    /// True if the author never retracted.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_survives_only_if_it_names_every_mark() {
        let (one, two) = (RetractionId::from_bytes([1; 16]), RetractionId::from_bytes([2; 16]));
        let mut marks = RetractionSet::default();
        assert!(!marks.suppress(&BTreeSet::new()));
        marks.insert(one);
        assert!(marks.suppress(&BTreeSet::new()));
        let after = BTreeSet::from([one]);
        assert!(!marks.suppress(&after));
        marks.insert(two);
        assert!(marks.suppress(&after));
    }
}
