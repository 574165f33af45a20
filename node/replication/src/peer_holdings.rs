//! Computes the records that a peer holds of an entry from those that this node refused or
//! quarantined.
//!
//! An entry may have thousands of them, so records are not compared pairwise.

use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::version_vector::{Slot, VersionVector};
use std::collections::BTreeMap;

/// Records of one author and facet, indexed to find those that cover another record.
#[derive(Default)]
struct CoverageIndex<'a> {
    records: Vec<(&'a SignedHeader, VersionVector)>,
    /// Records by the slots they name, their own or absorbed ones.
    naming: BTreeMap<Slot, Vec<usize>>,
    /// The record of the highest generation: it covers every record that any of them covers by age
    /// alone.
    newest: Option<usize>,
}

impl<'a> CoverageIndex<'a> {
    fn add(&mut self, one: &'a SignedHeader) {
        let (at, version) = (self.records.len(), one.version());
        for place in version.absorbs.keys().chain([&version.place]) {
            self.naming.entry(*place).or_default().push(at);
        }
        let is_newer =
            |newest: usize| self.records[newest].1.place.generation < version.place.generation;
        if self.newest.is_none_or(is_newer) {
            self.newest = Some(at);
        }
        self.records.push((one, version));
    }

    /// True if one of the records covers another record of the same author and facet.
    fn cover(&self, old: &VersionVector) -> bool {
        let naming = self.naming.get(&old.place).into_iter().flatten();
        let mut others = naming.chain(&self.newest).map(|at| &self.records[*at].1);
        others.any(|new| new.digest != old.digest && new.covers(old))
    }
}

/// Whether a newer record of the facet replaces an older one. Edits of a document all stay.
fn has_coverage(one: &SignedHeader) -> bool {
    one.header().facet != Facet::Edit
}

/// The stored records, replaced by refused or quarantined ones where those cover them, without
/// records that are covered themselves. The peer holds the newest records it offered and none that
/// these cover.
pub(super) fn in_place<'a>(
    held: &[&'a SignedHeader],
    aside: &[&'a SignedHeader],
) -> Vec<&'a SignedHeader> {
    let mut groups = BTreeMap::<(AuthorId, Facet), (CoverageIndex<'_>, CoverageIndex<'_>)>::new();
    for one in aside.iter().copied().filter(|one| has_coverage(one)) {
        let at = (one.header().author, one.header().facet);
        groups.entry(at).or_default().1.add(one);
    }
    let mut placed = Vec::with_capacity(held.len());
    for one in held.iter().copied() {
        match groups.get_mut(&(one.header().author, one.header().facet)) {
            // An edit never has a group.
            Some((here, _)) => here.add(one),
            None => placed.push(one),
        }
    }
    placed.extend(aside.iter().copied().filter(|one| !has_coverage(one)));
    for (here, put) in groups.values() {
        let kept = here.records.iter().filter(|(_, old)| !put.cover(old));
        let new = put.records.iter().filter(|(_, old)| !put.cover(old) && !here.cover(old));
        placed.extend(kept.chain(new).map(|(one, _)| *one));
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::header::Header;
    use klnode_crdt::ids::{Boot, Digest, EntryId, Generation};
    use klnode_crdt::signing_key::SecretKey;
    use klnode_crdt::time::Hlc;

    /// A deterministic pseudo-random generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }
    }

    /// A header in one of a few slots, near or far apart, that absorbs some of the older ones.
    fn header(random: &mut Random) -> SignedHeader {
        let key = SecretKey::from_bytes(&[1 + random.below(2) as u8; 32]);
        let facet = if random.below(2) == 0 { Facet::Claims } else { Facet::Tally };
        let ages = [1, 2, 3, 1_026, 1_027, 2_500];
        let place = |random: &mut Random| Slot {
            generation: Generation(ages[random.below(6) as usize]),
            boot: Boot(random.below(3)),
        };
        let own = place(random);
        let mut absorbs = BTreeMap::new();
        for _ in 0..random.below(4) {
            let older = place(random);
            if older.generation < own.generation {
                absorbs.insert(older, random.below(3));
            }
        }
        let header = Header {
            entry: EntryId::from_bytes([1; 16]),
            author: key.author(),
            facet,
            place: own,
            counter: random.below(3),
            stamp: Hlc::from_bits(random.below(4)),
            absorbs: absorbs.into_iter().collect(),
            payload_bytes: 1,
            payload_digest: Digest::from_bytes([2; 32]),
        };
        SignedHeader::seal(header, &key)
    }

    /// The same result by pairwise comparison.
    fn by_pairs<'a>(
        held: &[&'a SignedHeader],
        aside: &[&'a SignedHeader],
    ) -> Vec<&'a SignedHeader> {
        let covers = |one: &SignedHeader, other: &SignedHeader| {
            let (new, old) = (one.header(), other.header());
            (new.author, new.facet) == (old.author, old.facet)
                && one.digest() != other.digest()
                && one.version().covers(&other.version())
        };
        let kept = held.iter().filter(|one| !aside.iter().any(|new| covers(new, one)));
        let is_over = |one: &&&SignedHeader| held.iter().chain(aside).any(|new| covers(new, one));
        kept.chain(aside.iter().filter(|one| !is_over(one))).copied().collect()
    }

    #[test]
    fn edits_do_not_replace_each_other() {
        let key = SecretKey::from_bytes(&[1; 32]);
        let edit = |number: u64| {
            let header = Header {
                entry: EntryId::from_bytes([1; 16]),
                author: key.author(),
                facet: Facet::Edit,
                place: Slot { generation: Generation(0), boot: Boot(1) },
                counter: number,
                stamp: Hlc::from_bits(number),
                absorbs: Vec::new(),
                payload_bytes: 1,
                payload_digest: Digest::from_bytes([2; 32]),
            };
            SignedHeader::seal(header, &key)
        };
        let all: Vec<SignedHeader> = (1..=4).map(edit).collect();
        let all: Vec<&SignedHeader> = all.iter().collect();
        for split in 0..=4 {
            let (held, aside) = all.split_at(split);
            for (held, aside) in [(held, aside), (aside, held)] {
                let mut placed: Vec<Digest> =
                    in_place(held, aside).iter().map(|one| one.digest()).collect();
                placed.sort();
                let mut expected: Vec<Digest> = all.iter().map(|one| one.digest()).collect();
                expected.sort();
                assert_eq!(placed, expected, "{split}");
            }
        }
    }

    #[test]
    fn holdings_equal_those_of_a_pairwise_comparison() {
        let mut random = Random(7);
        let mut replaced = 0;
        for _ in 0..500 {
            let all: Vec<SignedHeader> = (0..12).map(|_| header(&mut random)).collect();
            let all: Vec<&SignedHeader> = all.iter().collect();
            let (held, aside) = all.split_at(random.below(12) as usize);
            let names = |placed: Vec<&SignedHeader>| {
                let mut names: Vec<Digest> = placed.iter().map(|one| one.digest()).collect();
                names.sort();
                names
            };
            let expected = names(by_pairs(held, aside));
            replaced += all.len() - expected.len();
            assert_eq!(names(in_place(held, aside)), expected);
        }
        assert!(replaced > 500, "{replaced} records were replaced");
    }
}
