//! Taking back what one said.
//!
//! Each act of retraction is a mark. A mark suppresses every claim of its author on the entry
//! that does not name it in `after`: stamps play no part, so no clock, clone or old copy brings a
//! retracted text back. Marks only accumulate. Tallies are not claims and stay.

use crate::digest::{Context, Fields};
use crate::ids::{AuthorId, Boot, EntryId, MarkId};
use crate::lattice::Lattice;
use crate::time::Hlc;
use std::collections::BTreeSet;

/// All marks of one author on one entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Marks {
    ids: BTreeSet<MarkId>,
}

impl Lattice for Marks {
    fn join(&mut self, other: Self) {
        self.ids.join(other.ids);
    }
}

impl Marks {
    /// The name of an act: unique, since a boot never stamps twice alike.
    pub fn id(entry: EntryId, author: AuthorId, boot: Boot, stamp: Hlc) -> MarkId {
        MarkId::from_bytes(
            Fields::new(Context::Mark)
                .field(entry.as_bytes())
                .field(author.as_bytes())
                .field(&boot.0.to_be_bytes())
                .field(&stamp.bits().to_be_bytes())
                .finish_short(),
        )
    }

    /// Adds a mark.
    pub fn insert(&mut self, mark: MarkId) {
        self.ids.insert(mark);
    }

    /// The marks a new claim of this author comes after.
    pub fn ids(&self) -> &BTreeSet<MarkId> {
        &self.ids
    }

    /// Whether a claim that comes after `after` is taken back.
    pub fn suppress(&self, after: &BTreeSet<MarkId>) -> bool {
        !self.ids.is_subset(after)
    }

    /// Whether nothing was retracted.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_survives_only_if_it_names_every_mark() {
        let (one, two) = (MarkId::from_bytes([1; 16]), MarkId::from_bytes([2; 16]));
        let mut marks = Marks::default();
        assert!(!marks.suppress(&BTreeSet::new()));
        marks.insert(one);
        assert!(marks.suppress(&BTreeSet::new()));
        let after = BTreeSet::from([one]);
        assert!(!marks.suppress(&after));
        marks.insert(two);
        assert!(marks.suppress(&after));
    }
}
