//! The one trait every replicated thing has.
//!
//! A join takes two states and gives the least one that contains both. It is commutative,
//! associative and idempotent, and it only grows: so records may arrive in any order, any number
//! of times, over any path, and all holders end up equal. `assert_laws` (feature `testing`) checks
//! each implementation.

use std::collections::{BTreeMap, BTreeSet};

/// A state that merges with others of its kind.
pub trait Lattice {
    /// Takes in what `other` knows.
    fn join(&mut self, other: Self);

    /// The join as a value.
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

/// The greatest value seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Max<T>(pub T);

impl<T: Ord> Lattice for Max<T> {
    fn join(&mut self, other: Self) {
        if other.0 > self.0 {
            self.0 = other.0;
        }
    }
}
