//! A last-writer-wins element set (LWW element set) of one author.
//!
//! The design calls this type a G-set (`GSet`). A G-set only grows; this set also lets the author
//! who added an element withdraw it. As long as no author withdraws anything, it behaves exactly as
//! a G-set: the join is the union of the elements. For each element the set keeps the author's
//! latest operation, add or withdraw, with a stamp. The operation with the greater stamp wins, and
//! a withdrawal wins a tie. The map of operations itself only grows, which makes the join well
//! defined, with one exception: at the size limit the author drops old withdrawals
//! ([`LwwSet::drop_oldest_withdrawn`]).
//!
//! Each author has a set of its own, and [`crate::entry_view`] shows the union. An author can
//! therefore withdraw only its own additions.

use crate::ids::RetractionId;
use crate::lattice::Lattice;
use crate::time::Hlc;
use std::collections::{BTreeMap, BTreeSet};

/// The state of an element in one author's set. Ordered, so that withdrawal wins between equal
/// stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// The author added the element.
    Present,
    /// The author withdrew the element.
    Withdrawn,
}

/// The latest operation of one author on one element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ElementState {
    /// Time of the operation, by the author's clock. The greater stamp wins.
    pub stamp: Hlc,
    /// Whether the operation added or withdrew the element.
    pub presence: Presence,
    /// The author's retractions at the time of writing. A retraction that is missing here
    /// suppresses the operation.
    pub after: BTreeSet<RetractionId>,
}

impl Lattice for ElementState {
    // The greatest by stamp, then withdrawal over addition, then `after`: a total order.
    fn join(&mut self, other: Self) {
        if other > *self {
            *self = other;
        }
    }
}

/// The set of one author: for each element the latest operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LwwSet<E: Ord> {
    words: BTreeMap<E, ElementState>,
}

impl<E: Ord> Default for LwwSet<E> {
    fn default() -> Self {
        Self { words: BTreeMap::new() }
    }
}

impl<E: Ord> Lattice for LwwSet<E> {
    fn join(&mut self, other: Self) {
        self.words.join(other.words);
    }
}

impl<E: Ord> LwwSet<E> {
    /// Records an operation on an element. An operation older than the held one changes nothing.
    pub fn say(&mut self, element: E, word: ElementState) {
        match self.words.get_mut(&element) {
            Some(held) => held.join(word),
            None => {
                self.words.insert(element, word);
            }
        }
    }

    /// The elements that were added and not withdrawn.
    pub fn present(&self) -> impl Iterator<Item = &E> {
        self.words.iter().filter(|(_, word)| word.presence == Presence::Present).map(|(e, _)| e)
    }

    /// Every element with its latest operation, including withdrawn elements.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&E, &ElementState)> {
        self.words.iter()
    }

    /// The latest operation on one element.
    pub fn word(&self, element: &E) -> Option<&ElementState> {
        self.words.get(element)
    }

    /// Drops the elements for whose latest operation `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&ElementState) -> bool) {
        self.words.retain(|_, word| keep(word));
    }

    /// Drops the element with the oldest withdrawal. Returns false if no element is withdrawn.
    pub fn drop_oldest_withdrawn(&mut self) -> bool
    where
        E: Clone,
    {
        let withdrawn = self.words.iter().filter(|(_, word)| word.presence == Presence::Withdrawn);
        let oldest =
            withdrawn.min_by_key(|(_, word)| word.stamp).map(|(element, _)| element.clone());
        oldest.is_some_and(|element| self.words.remove(&element).is_some())
    }

    /// The number of elements, including withdrawn ones. This is the number that the limit applies
    /// to.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// True if the set has no elements, not even withdrawn ones.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::WallTime;

    fn word(at_ms: u64, presence: Presence) -> ElementState {
        let stamp = Hlc::new(WallTime::from_millis(at_ms), 0);
        ElementState { stamp, presence, after: BTreeSet::new() }
    }

    #[test]
    fn the_newest_state_of_an_element_counts_and_withdrawal_wins_a_tie() {
        let mut tags = LwwSet::default();
        tags.say("auth", word(1, Presence::Present));
        tags.say("auth", word(1, Presence::Withdrawn));
        tags.say("db", word(2, Presence::Withdrawn));
        tags.say("db", word(3, Presence::Present));
        assert_eq!(tags.present().collect::<Vec<_>>(), [&"db"]);
    }
    #[test]
    fn a_join_has_the_newest_state_of_every_element() {
        let (mut ours, mut theirs) = (LwwSet::default(), LwwSet::default());
        ours.say("auth", word(1, Presence::Present));
        ours.say("db", word(2, Presence::Present));
        theirs.say("db", word(3, Presence::Withdrawn));
        theirs.say("web", word(1, Presence::Present));
        let both = ours.clone().joined(theirs.clone());
        assert_eq!(both, theirs.joined(ours));
        assert_eq!(both.present().collect::<Vec<_>>(), [&"auth", &"web"]);
        assert_eq!(both.word(&"db"), Some(&word(3, Presence::Withdrawn)));
        assert_eq!((both.len(), both.is_empty(), both.word(&"other")), (3, false, None));
    }

    #[test]
    fn only_the_oldest_withdrawn_element_is_dropped_for_space() {
        let mut tags = LwwSet::default();
        tags.say("kept", word(1, Presence::Present));
        tags.say("late", word(3, Presence::Withdrawn));
        tags.say("soon", word(2, Presence::Withdrawn));
        assert!(tags.drop_oldest_withdrawn());
        assert_eq!(tags.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), ["kept", "late"]);
        assert!(tags.drop_oldest_withdrawn());
        assert!(!tags.drop_oldest_withdrawn());
        assert_eq!(tags.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), ["kept"]);
    }

    #[test]
    fn retain_keeps_only_the_accepted_states() {
        let mut tags = LwwSet::default();
        tags.say("old", word(1, Presence::Present));
        tags.say("new", word(2, Presence::Present));
        tags.retain(|word| word.stamp.wall().as_millis() > 1);
        assert_eq!(tags.present().collect::<Vec<_>>(), [&"new"]);
        tags.retain(|_| false);
        assert!(tags.is_empty());
    }
}
