//! Comparing what two stores hold of the same entries, at the cost of the difference.
//!
//! Range-based set reconciliation: both sides sort their records by stamp and digest, exchange
//! fingerprints of ranges, and go into those that differ. Equal sets are known equal after one round
//! trip. The side that began learns what each side lacks.

use super::limits::{COMPARE_BYTES_MAX, COMPARE_NEED_MAX, COMPARE_ROUNDS_MAX};
use super::view::Comparable;
use klnode_crdt::ids::Digest;
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use std::collections::BTreeSet;

/// A comparison this side has begun.
pub(super) struct Comparison {
    state: Negentropy<'static, NegentropyStorageVector>,
    rounds: u32,
    /// Held here alone, as far as it is known. A peer may say the same in every round.
    pub(super) have: BTreeSet<Digest>,
    /// Held there alone, as far as it is known.
    pub(super) need: BTreeSet<Digest>,
}

/// How a comparison goes on.
pub(super) enum Next {
    /// With this message.
    Ask(Vec<u8>),
    /// It is over: all differences are known, or as many as are mended at once.
    Over,
    /// The other side's bytes make no sense, or never come to an end.
    Broken,
}

fn sealed(items: &[Comparable]) -> Option<NegentropyStorageVector> {
    let mut storage = NegentropyStorageVector::with_capacity(items.len());
    for item in items {
        // The greatest number is kept for the end of all ranges.
        let stamp = item.stamp.min(u64::MAX - 1);
        storage.insert(stamp, Id::from_byte_array(*item.digest.as_bytes())).ok()?;
    }
    storage.seal().ok()?;
    Some(storage)
}

impl Comparison {
    /// Begins one; returns it with its first message.
    pub(super) fn begin(items: &[Comparable]) -> Option<(Self, Vec<u8>)> {
        let mut state = Negentropy::owned(sealed(items)?, COMPARE_BYTES_MAX as u64).ok()?;
        let first = state.initiate().ok()?;
        let (have, need) = (BTreeSet::new(), BTreeSet::new());
        Some((Self { state, rounds: 1, have, need }, first))
    }

    /// Takes in the other side's answer. An empty one says that nothing differs any more.
    pub(super) fn answered(&mut self, message: &[u8]) -> Next {
        if message.is_empty() {
            return Next::Over;
        }
        self.rounds += 1;
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let next = self.state.reconcile_with_ids(message, &mut have, &mut need);
        let digests = |ids: Vec<Id>| ids.into_iter().map(|id| Digest::from_bytes(*id.as_bytes()));
        self.have.extend(digests(have));
        self.need.extend(digests(need));
        match next {
            Ok(None) => Next::Over,
            // What a peer claims to have is asked for before it can claim more.
            Ok(Some(_)) if self.need.len() >= COMPARE_NEED_MAX => Next::Over,
            Ok(Some(message)) if self.rounds <= COMPARE_ROUNDS_MAX => Next::Ask(message),
            _ => Next::Broken,
        }
    }
}

/// The version of the comparison's bytes. The library answers another one with its own alone, which
/// must not be taken for "equal".
const VERSION: u8 = 0x61;

/// The other side's part: the answer to a message; none if its bytes make no sense.
pub(super) fn answer(items: &[Comparable], message: &[u8]) -> Option<Vec<u8>> {
    if message.first() != Some(&VERSION) {
        return None;
    }
    let mut state = Negentropy::owned(sealed(items)?, COMPARE_BYTES_MAX as u64).ok()?;
    let answer = state.reconcile(message).ok()?;
    // The version alone: no range differs.
    Some(if answer.len() == 1 { Vec::new() } else { answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(numbers: impl Iterator<Item = u64>) -> Vec<Comparable> {
        let item = |number: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            Comparable { stamp: number, digest: Digest::from_bytes(bytes) }
        };
        numbers.map(item).collect()
    }

    fn run(one: &[Comparable], two: &[Comparable]) -> (usize, usize, u32, usize) {
        let (mut comparison, mut message) = Comparison::begin(one).unwrap();
        let mut bytes = message.len();
        loop {
            let back = answer(two, &message).unwrap();
            bytes += back.len();
            match comparison.answered(&back) {
                Next::Ask(next) => message = next,
                Next::Over => break,
                Next::Broken => panic!("two honest sides come to an end"),
            }
            bytes += message.len();
        }
        (comparison.have.len(), comparison.need.len(), comparison.rounds, bytes)
    }

    #[test]
    fn equal_sets_take_one_round_trip_and_few_bytes() {
        let all = items(0..20_000);
        let (have, need, rounds, bytes) = run(&all, &all);
        assert_eq!((have, need, rounds), (0, 0, 1));
        assert!(bytes <= 600, "{bytes}");
    }

    #[test]
    fn every_difference_is_found() {
        let (one, two) = (items((0..9_000).filter(|n| n % 10 != 3)), items(0..9_500));
        let (have, need, ..) = run(&one, &two);
        assert_eq!((have, need), (0, 900 + 500));
        assert_eq!(run(&[], &two).1, 9_500);
        assert_eq!(run(&two, &[]).0, 9_500);
    }

    #[test]
    fn sets_of_one_size_that_differ_are_not_taken_for_equal() {
        let (one, two) = (items(0..1_000), items(1..1_001));
        let (have, need, ..) = run(&one, &two);
        assert_eq!((have, need), (1, 1));
    }

    #[test]
    fn a_comparison_ends_where_more_is_lacking_than_is_asked_for_at_once() {
        let (_, need, ..) = run(&[], &items(0..(COMPARE_NEED_MAX as u64 * 3 / 2)));
        assert!((COMPARE_NEED_MAX..COMPARE_NEED_MAX * 5 / 4).contains(&need), "{need}");
    }

    #[test]
    fn nonsense_is_noticed() {
        let all = items(0..100);
        assert!(answer(&all, b"nonsense").is_none());
        assert!(answer(&all, b"").is_none());
        let (mut comparison, _) = Comparison::begin(&all).unwrap();
        assert!(matches!(comparison.answered(b"nonsense"), Next::Broken));
    }
}
