//! Set reconciliation: finds the differences between two stores' records of the same entries, at a
//! cost proportional to the differences.
//!
//! Both sides sort their records by stamp and digest, exchange fingerprints of ranges, and descend
//! into ranges that differ. Equal sets are recognised after one round trip. The side that began
//! learns the records each side lacks.

use super::limits::{COMPARE_BYTES_MAX, COMPARE_NEED_MAX, COMPARE_ROUNDS_MAX};
use super::store_view::ComparedRecord;
use klnode_crdt::ids::Digest;
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use std::collections::BTreeSet;

/// A comparison that this node began.
pub(super) struct Reconciliation {
    state: Negentropy<'static, NegentropyStorageVector>,
    rounds: u32,
    /// Digests held only here, as far as known. A peer may report the same digest in every round.
    pub(super) have: BTreeSet<Digest>,
    /// Digests held only there, as far as known.
    pub(super) need: BTreeSet<Digest>,
}

/// The next step of a comparison.
pub(super) enum ReconcileStep {
    /// Send this message.
    Ask(Vec<u8>),
    /// Finished: all differences are known, or as many as are repaired at once.
    Over,
    /// The peer's message is malformed, or the comparison does not end.
    Broken,
}

fn sealed(items: &[ComparedRecord]) -> Option<NegentropyStorageVector> {
    let mut storage = NegentropyStorageVector::with_capacity(items.len());
    for item in items {
        // The maximum stamp is reserved for the end of all ranges.
        let stamp = item.stamp.min(u64::MAX - 1);
        storage.insert(stamp, Id::from_byte_array(*item.digest.as_bytes())).ok()?;
    }
    storage.seal().ok()?;
    Some(storage)
}

impl Reconciliation {
    /// Begins a comparison and returns it with its first message.
    pub(super) fn begin(items: &[ComparedRecord]) -> Option<(Self, Vec<u8>)> {
        let mut state = Negentropy::owned(sealed(items)?, COMPARE_BYTES_MAX as u64).ok()?;
        let first = state.initiate().ok()?;
        let (have, need) = (BTreeSet::new(), BTreeSet::new());
        Some((Self { state, rounds: 1, have, need }, first))
    }

    /// Processes the peer's answer. An empty one means that nothing more differs.
    pub(super) fn answered(&mut self, message: &[u8]) -> ReconcileStep {
        if message.is_empty() {
            return ReconcileStep::Over;
        }
        self.rounds += 1;
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let next = self.state.reconcile_with_ids(message, &mut have, &mut need);
        let digests = |ids: Vec<Id>| ids.into_iter().map(|id| Digest::from_bytes(*id.as_bytes()));
        self.have.extend(digests(have));
        self.need.extend(digests(need));
        match next {
            Ok(None) => ReconcileStep::Over,
            // The records a peer claims to have are fetched before it can claim more.
            Ok(Some(_)) if self.need.len() >= COMPARE_NEED_MAX => ReconcileStep::Over,
            Ok(Some(message)) if self.rounds <= COMPARE_ROUNDS_MAX => ReconcileStep::Ask(message),
            _ => ReconcileStep::Broken,
        }
    }
}

/// Version byte of the messages. The library answers another version with its own version byte
/// only, which must not be taken for "equal".
const VERSION: u8 = 0x61;

/// Answers a message of the peer's comparison; `None` if it is malformed.
pub(super) fn answer(items: &[ComparedRecord], message: &[u8]) -> Option<Vec<u8>> {
    if message.first() != Some(&VERSION) {
        return None;
    }
    let mut state = Negentropy::owned(sealed(items)?, COMPARE_BYTES_MAX as u64).ok()?;
    let answer = state.reconcile(message).ok()?;
    // The version byte alone means that no range differs.
    Some(if answer.len() == 1 { Vec::new() } else { answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(numbers: impl Iterator<Item = u64>) -> Vec<ComparedRecord> {
        let item = |number: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
            ComparedRecord { stamp: number, digest: Digest::from_bytes(bytes) }
        };
        numbers.map(item).collect()
    }

    fn run(one: &[ComparedRecord], two: &[ComparedRecord]) -> (usize, usize, u32, usize) {
        let (mut comparison, mut message) = Reconciliation::begin(one).unwrap();
        let mut bytes = message.len();
        loop {
            let back = answer(two, &message).unwrap();
            bytes += back.len();
            match comparison.answered(&back) {
                ReconcileStep::Ask(next) => message = next,
                ReconcileStep::Over => break,
                ReconcileStep::Broken => panic!("two honest sides finish"),
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
    fn different_sets_of_equal_size_are_not_equal() {
        let (one, two) = (items(0..1_000), items(1..1_001));
        let (have, need, ..) = run(&one, &two);
        assert_eq!((have, need), (1, 1));
    }

    #[test]
    fn a_comparison_ends_at_the_maximum_of_missing_records() {
        let (_, need, ..) = run(&[], &items(0..(COMPARE_NEED_MAX as u64 * 3 / 2)));
        assert!((COMPARE_NEED_MAX..COMPARE_NEED_MAX * 5 / 4).contains(&need), "{need}");
    }

    #[test]
    fn malformed_messages_are_detected() {
        let all = items(0..100);
        assert!(answer(&all, b"nonsense").is_none());
        assert!(answer(&all, b"").is_none());
        let (mut comparison, _) = Reconciliation::begin(&all).unwrap();
        assert!(matches!(comparison.answered(b"nonsense"), ReconcileStep::Broken));
    }
}
