//! The `Lattice` trait: the merge operation of every replicated type.
//!
//! A join-semilattice has one operation, the join. It takes two states and returns the least state
//! that contains both. The join is commutative, associative and idempotent, and it never removes
//! information. Records may therefore arrive in any order, any number of times and over any path:
//! all nodes that hold the same records have the same state. `assert_laws` (feature `testing`)
//! checks these laws for each implementation.

use std::collections::{BTreeMap, BTreeSet};

/// A state-based CRDT: a state that merges with other states of the same type.
pub trait Lattice {
    /// Merges `other` into this state. The result contains both.
    fn join(&mut self, other: Self);

    /// Returns the join of both states instead of changing one in place.
    #[must_use]
    fn joined(mut self, other: Self) -> Self
    where
        Self: Sized,
    {
        self.join(other);
        self
    }
}

impl<K: Ord, V: Lattice> Lattice for BTreeMap<K, V> {
    fn join(&mut self, other: Self) {
        for (key, theirs) in other {
            match self.get_mut(&key) {
                Some(ours) => ours.join(theirs),
                None => {
                    self.insert(key, theirs);
                }
            }
        }
    }
}

impl<T: Ord> Lattice for BTreeSet<T> {
    fn join(&mut self, other: Self) {
        self.extend(other);
    }
}

impl<T: Lattice> Lattice for Option<T> {
    fn join(&mut self, other: Self) {
        match (self.as_mut(), other) {
            (Some(ours), Some(theirs)) => ours.join(theirs),
            (None, theirs) => *self = theirs,
            (Some(_), None) => {}
        }
    }
}

/// A lattice over a totally ordered type: the join is the greater of the two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Max<T>(pub T);

impl<T: Ord> Lattice for Max<T> {
    fn join(&mut self, other: Self) {
        if other.0 > self.0 {
            self.0 = other.0;
        }
    }
}
