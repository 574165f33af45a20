//! Version vectors: the partial order between records of one author.
//!
//! A record states its slot, its counter in that slot, and the older slots that its payload
//! includes, each up to a counter. That list, together with the record's own slot and counter, is a
//! version vector. A record *covers* another if its vector is greater or equal at every slot. A
//! node drops covered records.
//!
//! The comparison uses whole vectors. Looking up only the other record's slot would not be
//! transitive if an author lies. With whole vectors, a record that leaves out a slot which its
//! predecessor included does not cover that predecessor, and both stay. The set of uncovered
//! records is therefore a lattice, and nodes converge for any order of arrival and any signed
//! content.
//!
//! A vector lists at most [`ABSORBS_MAX`] slots. A record covers every slot that is more
//! generations back than that, so a home that started thousands of times still leaves one live
//! record. An author that finds a record of its own covered by age alone
//! ([`VersionVector::covers_by_age_alone`]) first signs the content of both records again.

use crate::ids::{Boot, Digest, Generation};
use crate::limits::ABSORBS_MAX;
use std::collections::BTreeMap;

/// A slot of one author on one entry and facet. Records in one slot replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The first field, so that the derived order sorts slots by age.
    pub generation: Generation,
    /// The process start that writes into the slot.
    pub boot: Boot,
}

/// The version vector of a record, with its digest as tie-break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionVector {
    /// The slot that the record is in.
    pub place: Slot,
    /// The record's counter in its slot. The highest counter wins.
    pub counter: u64,
    /// The older slots that the payload includes, each up to this counter.
    pub absorbs: BTreeMap<Slot, u64>,
    /// The record's digest. Between equal vectors the greater digest wins.
    pub digest: Digest,
}

impl VersionVector {
    /// The oldest generation that has to be listed. Older slots are covered by age.
    fn floor(&self) -> Generation {
        Generation(self.place.generation.0.saturating_sub(ABSORBS_MAX as u32))
    }

    fn includes(&self, place: Slot, counter: u64) -> bool {
        place.generation < self.floor() || self.names(place, counter)
    }

    /// True if the vector lists this slot with at least this counter.
    fn names(&self, place: Slot, counter: u64) -> bool {
        let named = if place == self.place {
            Some(self.counter)
        } else {
            self.absorbs.get(&place).copied()
        };
        named.is_some_and(|named| named >= counter)
    }

    fn vector_covers(&self, other: &Self) -> bool {
        self.floor() >= other.floor()
            && self.includes(other.place, other.counter)
            && other.absorbs.iter().all(|(place, counter)| self.includes(*place, *counter))
    }

    /// True if this record makes `other` redundant, so that a node may drop `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.vector_covers(other) && (!other.vector_covers(self) || self.digest >= other.digest)
    }

    /// True if this record covers `other` only because of its age, without listing its slot. The
    /// payload need not include the content of `other` then.
    pub fn covers_by_age_alone(&self, other: &Self) -> bool {
        self.covers(other) && !self.names(other.place, other.counter)
    }

    /// The vector for a new slot of an author that holds `own` and includes all of it: the
    /// generation and the absorbed slots. Over the limit the newest slots are listed.
    pub fn opening<'a>(own: impl Iterator<Item = &'a Self>) -> (Generation, BTreeMap<Slot, u64>) {
        let mut generation = Generation(0);
        let mut absorbs = BTreeMap::new();
        for version in own {
            generation = generation.max(version.place.generation);
            let named = version.absorbs.iter().map(|(place, counter)| (*place, *counter));
            for (place, counter) in named.chain([(version.place, version.counter)]) {
                let slot: &mut u64 = absorbs.entry(place).or_default();
                *slot = (*slot).max(counter);
            }
        }
        // Slots that are not listed must be covered by age, so raise the generation until they are.
        while absorbs.len() > ABSORBS_MAX {
            if let Some((unnamed, _)) = absorbs.pop_first() {
                let beyond = unnamed.generation.0.saturating_add(ABSORBS_MAX as u32);
                generation = generation.max(Generation(beyond));
            }
        }
        (generation.next(), absorbs)
    }
}

/// The set of uncovered versions of one (entry, author, facet), without records. Law tests use it
/// to check the order alone; [`crate::live_records::LiveRecords`] applies the same rule to records.
#[cfg(any(test, feature = "testing"))]
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct UncoveredVersions {
    live: BTreeMap<Digest, VersionVector>,
}

#[cfg(any(test, feature = "testing"))]
impl crate::lattice::Lattice for UncoveredVersions {
    fn join(&mut self, other: Self) {
        for (_, version) in other.live {
            self.insert(version);
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl UncoveredVersions {
    /// Adds a version unless a held one covers it, and drops the versions it covers.
    pub fn insert(&mut self, version: VersionVector) {
        if self.live.values().any(|held| held.covers(&version)) {
            return;
        }
        self.live.retain(|_, held| !version.covers(held));
        self.live.insert(version.digest, version);
    }

    /// The uncovered versions, ordered by digest.
    pub fn live(&self) -> impl ExactSizeIterator<Item = &VersionVector> {
        self.live.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(boot: u64, generation: u32) -> Slot {
        Slot { generation: Generation(generation), boot: Boot(boot) }
    }

    fn version(at: Slot, counter: u64, absorbs: &[(Slot, u64)], digest: u8) -> VersionVector {
        let digest = Digest::from_bytes([digest; 32]);
        VersionVector { place: at, counter, absorbs: absorbs.iter().copied().collect(), digest }
    }

    fn held(versions: &[&VersionVector]) -> Vec<u8> {
        let mut slots = UncoveredVersions::default();
        for version in versions {
            slots.insert((*version).clone());
        }
        slots.live().map(|version| version.digest.as_bytes()[0]).collect()
    }

    #[test]
    fn within_a_slot_the_higher_counter_wins_and_then_the_higher_digest() {
        let first = version(place(1, 1), 1, &[], 9);
        let second = version(place(1, 1), 2, &[], 3);
        let twin = version(place(1, 1), 2, &[], 4);
        assert_eq!(held(&[&first, &second, &twin]), [4]);
        assert_eq!(held(&[&twin, &second, &first]), [4]);
    }

    #[test]
    fn three_slots_of_one_author_give_the_same_in_every_order() {
        let old = version(place(1, 1), 3, &[], 1);
        let mid = version(place(2, 2), 1, &[(place(1, 1), 3)], 2);
        let new = version(place(3, 3), 1, &[(place(1, 1), 3), (place(2, 2), 1)], 3);
        for order in [
            [&old, &mid, &new],
            [&old, &new, &mid],
            [&mid, &old, &new],
            [&mid, &new, &old],
            [&new, &old, &mid],
            [&new, &mid, &old],
        ] {
            assert_eq!(held(&order), [3]);
        }
    }

    #[test]
    fn a_slot_that_went_on_after_it_was_absorbed_stays() {
        let went_on = version(place(1, 1), 5, &[], 1);
        let absorber = version(place(2, 2), 1, &[(place(1, 1), 4)], 2);
        assert_eq!(held(&[&went_on, &absorber]), [1, 2]);
    }

    #[test]
    fn a_version_without_a_part_of_its_list_covers_no_additional_version() {
        let old = version(place(1, 1), 1, &[], 1);
        let honest = version(place(2, 2), 1, &[(place(1, 1), 1)], 2);
        let liar = version(place(2, 2), 2, &[], 3);
        for order in [[&old, &honest, &liar], [&liar, &old, &honest], [&honest, &liar, &old]] {
            assert_eq!(held(&order), [2, 3]);
        }
    }

    #[test]
    fn two_clones_that_absorb_each_other_both_stay() {
        let one = version(place(1, 1), 2, &[], 1);
        let left = version(place(2, 2), 2, &[(place(1, 1), 2), (place(3, 1), 1)], 2);
        let right = version(place(3, 2), 2, &[(place(1, 1), 2), (place(2, 1), 1)], 3);
        assert_eq!(held(&[&one, &left, &right]), [2, 3]);
    }

    #[test]
    fn a_thousand_starts_leave_one_live_record() {
        let mut slots = UncoveredVersions::default();
        for start in 1..=3_000_u64 {
            let (generation, absorbs) = VersionVector::opening(slots.live());
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&start.to_be_bytes());
            let place = Slot { generation, boot: Boot(start) };
            slots.insert(VersionVector {
                place,
                counter: 1,
                absorbs,
                digest: Digest::from_bytes(digest),
            });
            assert_eq!(slots.live().len(), 1);
        }
        assert_eq!(slots.live().next().expect("one").absorbs.len(), ABSORBS_MAX);
    }

    #[test]
    fn occasional_clones_leave_at_most_two_live_records() {
        let mut slots = UncoveredVersions::default();
        let mut boot = 0;
        let mut open = |from: &UncoveredVersions| {
            boot += 1;
            let (generation, absorbs) = VersionVector::opening(from.live());
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&u64::to_be_bytes(boot));
            let place = Slot { generation, boot: Boot(boot) };
            VersionVector { place, counter: 1, absorbs, digest: Digest::from_bytes(digest) }
        };
        for start in 1..=3_000 {
            let (one, two) = (open(&slots), open(&slots));
            slots.insert(one);
            if start % 97 == 0 {
                slots.insert(two);
            }
            assert!(slots.live().len() <= 2, "{} live at start {start}", slots.live().len());
        }
    }

    #[test]
    fn coverage_by_age_differs_from_coverage_by_the_list() {
        let old = version(place(7, 3), 4, &[], 1);
        let new = version(place(8, 2_000), 1, &[], 2);
        assert!(new.covers_by_age_alone(&old));
        let named = version(place(8, 4), 1, &[(place(7, 3), 4)], 3);
        assert!(named.covers(&old) && !named.covers_by_age_alone(&old));
    }
    #[test]
    fn a_version_covers_all_older_than_the_window_of_generations() {
        let window = ABSORBS_MAX as u32;
        let new = version(place(8, window + 10), 1, &[], 2);
        assert!(new.covers(&version(place(7, 9), 4, &[], 1)));
        assert!(!new.covers(&version(place(7, 10), 4, &[], 1)));
        // The covering vector must also include every slot that the older vector lists.
        let old = version(place(7, 9), 4, &[(place(6, 8), 1)], 1);
        assert!(new.covers(&old) && !old.covers(&new));
        let reaches_back = version(place(6, window + 9), 1, &[(place(5, 9), 1)], 3);
        let names_it = version(place(8, window + 10), 1, &[(place(6, window + 9), 1)], 2);
        assert!(names_it.covers(&reaches_back), "9 is under the line");
        let reaches_less = version(place(6, window + 9), 1, &[(place(5, 10), 1)], 3);
        assert!(!names_it.covers(&reaches_less), "10 is not");
    }

    #[test]
    fn a_new_slot_lists_the_newest_versions_and_covers_the_rest_by_age() {
        let window = ABSORBS_MAX as u64;
        let homes: Vec<VersionVector> =
            (1..=window + 2).map(|boot| version(place(boot, 1), boot, &[], 1)).collect();
        let (generation, absorbs) = VersionVector::opening(homes[..ABSORBS_MAX].iter());
        assert_eq!((generation, absorbs.len()), (Generation(2), ABSORBS_MAX));
        let (generation, absorbs) = VersionVector::opening(homes.iter());
        assert_eq!((generation, absorbs.len()), (Generation(2 + ABSORBS_MAX as u32), ABSORBS_MAX));
        let digest = Digest::from_bytes([2; 32]);
        let new = VersionVector {
            place: Slot { generation, boot: Boot(0) },
            counter: 1,
            absorbs,
            digest,
        };
        assert!(homes.iter().all(|old| new.covers(old)));
        assert_eq!(VersionVector::opening([].into_iter()), (Generation(1), BTreeMap::new()));
    }
    #[test]
    fn a_join_equals_the_union_of_all_inserted_versions() {
        use crate::lattice::Lattice;
        let old = version(place(1, 1), 3, &[], 1);
        let apart = version(place(2, 1), 1, &[], 2);
        let new = version(place(3, 2), 1, &[(place(1, 1), 3)], 3);
        let holder = |versions: &[&VersionVector]| {
            let mut slots = UncoveredVersions::default();
            versions.iter().for_each(|version| slots.insert((*version).clone()));
            slots
        };
        let joined = holder(&[&old, &apart]).joined(holder(&[&new]));
        assert_eq!(joined, holder(&[&apart, &new]));
        assert_eq!(joined, holder(&[&new]).joined(holder(&[&old, &apart])));
    }
}
