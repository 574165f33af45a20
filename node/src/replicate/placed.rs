//! What the other side holds of an entry, by what was put aside here: refused, or waiting.
//!
//! Of one entry there may be thousands of them, so none is compared with all others.

use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::version::{Place, Version};
use std::collections::BTreeMap;

/// Records of one author in one facet, to ask whether one of them covers another.
#[derive(Default)]
struct Slots<'a> {
    records: Vec<(&'a SignedHeader, Version)>,
    /// Which of them name a slot, as their own or as one that they include.
    naming: BTreeMap<Place, Vec<usize>>,
    /// The one of the highest generation: whatever one of them covers for its age alone, this one does.
    newest: Option<usize>,
}

impl<'a> Slots<'a> {
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

    /// Whether one of them covers another record of the author and facet.
    fn cover(&self, old: &Version) -> bool {
        let naming = self.naming.get(&old.place).into_iter().flatten();
        let mut others = naming.chain(&self.newest).map(|at| &self.records[*at].1);
        others.any(|new| new.digest != old.digest && new.covers(old))
    }
}

/// What is held, with headers of what was put aside in the place of what they cover; less those that
/// are covered themselves. The other side holds what it offered last, and nothing that this covers.
pub(super) fn in_place<'a>(
    held: &[&'a SignedHeader],
    aside: &[&'a SignedHeader],
) -> Vec<&'a SignedHeader> {
    let mut groups = BTreeMap::<(AuthorId, Facet), (Slots<'_>, Slots<'_>)>::new();
    for one in aside.iter().copied() {
        let at = (one.header().author, one.header().facet);
        groups.entry(at).or_default().1.add(one);
    }
    let mut placed = Vec::with_capacity(held.len());
    for one in held.iter().copied() {
        match groups.get_mut(&(one.header().author, one.header().facet)) {
            Some((here, _)) => here.add(one),
            None => placed.push(one),
        }
    }
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
    use klnode_crdt::key::SecretKey;
    use klnode_crdt::time::Hlc;

    /// Numbers that look random, the same each time.
    struct Drawn(u64);

    impl Drawn {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }
    }

    /// A header somewhere among a few slots, far apart or near, that includes some of the older ones.
    fn header(drawn: &mut Drawn) -> SignedHeader {
        let key = SecretKey::from_bytes(&[1 + drawn.below(2) as u8; 32]);
        let facet = if drawn.below(2) == 0 { Facet::Claims } else { Facet::Tally };
        let ages = [1, 2, 3, 1_026, 1_027, 2_500];
        let place = |drawn: &mut Drawn| Place {
            generation: Generation(ages[drawn.below(6) as usize]),
            boot: Boot(drawn.below(3)),
        };
        let own = place(drawn);
        let mut absorbs = BTreeMap::new();
        for _ in 0..drawn.below(4) {
            let older = place(drawn);
            if older.generation < own.generation {
                absorbs.insert(older, drawn.below(3));
            }
        }
        let header = Header {
            entry: EntryId::from_bytes([1; 16]),
            author: key.author(),
            facet,
            place: own,
            counter: drawn.below(3),
            stamp: Hlc::from_bits(drawn.below(4)),
            absorbs: absorbs.into_iter().collect(),
            payload_bytes: 1,
            payload_digest: Digest::from_bytes([2; 32]),
        };
        SignedHeader::seal(header, &key)
    }

    /// The same, each compared with each.
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
    fn what_stands_in_the_place_of_what_is_told_as_if_each_were_compared_with_each() {
        let mut drawn = Drawn(7);
        let mut given_way = 0;
        for _ in 0..500 {
            let all: Vec<SignedHeader> = (0..12).map(|_| header(&mut drawn)).collect();
            let all: Vec<&SignedHeader> = all.iter().collect();
            let (held, aside) = all.split_at(drawn.below(12) as usize);
            let names = |placed: Vec<&SignedHeader>| {
                let mut names: Vec<Digest> = placed.iter().map(|one| one.digest()).collect();
                names.sort();
                names
            };
            let expected = names(by_pairs(held, aside));
            given_way += all.len() - expected.len();
            assert_eq!(names(in_place(held, aside)), expected);
        }
        assert!(given_way > 500, "{given_way} of them gave way");
    }
}
