//! Cache of results by the hash of the texts that an entry shows.
//!
//! A scan takes about ten microseconds per entry, and a search reads two dozen to several hundred
//! entries. Neither the store nor the index holds the result, because it depends on the rules, and
//! an upgrade changes those. Hashing the shown texts costs a tenth of a scan and needs no
//! invalidation.

use super::content_scan::texts_shown;
use klnode_crdt::entry_view::EntryView;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Capacity of a cache, in entries. Beyond it, the least recently used generation is dropped and
/// computed again on demand.
const KEPT_MAX: usize = 16_384;

/// The results of a function of the shown texts.
#[derive(Debug)]
pub(super) struct ShownTextCache<V>(Mutex<CacheGenerations<V>>);

/// A cache with two generations. A pass over the whole store asks for more entries than fit and
/// must not evict entries that searches use constantly.
#[derive(Debug)]
struct CacheGenerations<V> {
    /// Entries used since the last change of generation.
    young: BTreeMap<[u8; 32], V>,
    /// Entries not used since then; evicted first.
    old: BTreeMap<[u8; 32], V>,
}

impl<V> Default for ShownTextCache<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V> Default for CacheGenerations<V> {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new() }
    }
}

impl<V: Copy> CacheGenerations<V> {
    /// Looks up a text and moves it to the young generation.
    fn of(&mut self, at: &[u8; 32]) -> Option<V> {
        if let Some(known) = self.young.get(at) {
            return Some(*known);
        }
        let known = self.old.remove(at)?;
        self.keep(*at, known);
        Some(known)
    }

    fn keep(&mut self, at: [u8; 32], value: V) {
        // Ageing evicts nothing while the old generation is empty.
        if self.old.is_empty() && self.young.len() >= KEPT_MAX / 2 {
            self.age();
        }
        if self.young.len() + self.old.len() >= KEPT_MAX {
            self.age();
        }
        self.young.insert(at, value);
    }

    /// Drops the old generation and makes the young one old.
    fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }
}

impl<V: Copy> ShownTextCache<V> {
    /// The result for an entry, computed unless it is known.
    pub(super) fn get(&self, view: &EntryView, compute: impl FnOnce(&EntryView) -> V) -> V {
        let mut hasher = blake3::Hasher::new();
        for text in texts_shown(view) {
            hasher.update(&(text.len() as u64).to_be_bytes());
            hasher.update(text.as_bytes());
        }
        let at = *hasher.finalize().as_bytes();
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().of(&at) {
            return known;
        }
        // Compute without holding the lock, so that other threads do not wait.
        let value = compute(view);
        kept().keep(at, value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_scoring::content_scan::Severity;

    fn hash(number: usize) -> [u8; 32] {
        *blake3::hash(&number.to_be_bytes()).as_bytes()
    }

    #[test]
    fn frequently_used_severities_survive_a_full_pass() {
        let (mut kept, often, once) = (CacheGenerations::default(), [1; 32], [2; 32]);
        kept.keep(often, Severity::High);
        kept.keep(once, Severity::High);
        for number in 0..3 * KEPT_MAX {
            kept.keep(hash(number), Severity::Safe);
            assert!(kept.young.len() + kept.old.len() <= KEPT_MAX);
            if number % 1_000 == 0 {
                assert_eq!(kept.of(&often), Some(Severity::High), "after {number}");
            }
        }
        assert_eq!(kept.of(&once), None);
    }

    #[test]
    fn texts_within_capacity_are_scanned_once() {
        let mut kept = CacheGenerations::default();
        for round in 0..4 {
            for number in 0..KEPT_MAX {
                let known = kept.of(&hash(number));
                assert_eq!(known.is_some(), round > 0, "{number} in round {round}");
                if known.is_none() {
                    kept.keep(hash(number), Severity::Safe);
                }
            }
        }
        assert_eq!(kept.young.len() + kept.old.len(), KEPT_MAX);
        // The cache never exceeds its capacity.
        kept.keep(hash(KEPT_MAX), Severity::Safe);
        assert!(kept.young.len() + kept.old.len() <= KEPT_MAX);
    }
}
