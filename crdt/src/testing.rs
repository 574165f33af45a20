//! Generators and laws for property tests of this and other crates (feature `testing`).
//!
//! The generators draw from small domains, so that values collide: few authors, few boots, few
//! texts and equal stamps. [`RecordHistory`] simulates several instances of the same author that write,
//! clone, restore, retract and delete. It also adds validly signed records that contradict earlier
//! ones.

use crate::claims::{Claims, TextSet};
use crate::digest::{self, Context};
use crate::document_edit::DocumentEdit;
use crate::entry::Entry;
use crate::entry_origin::{Memory, Origin};
use crate::gcounter::{GCounter, Thousandths};
use crate::header::Header;
use crate::ids::{AuthorId, Boot, Digest, EntryId, Generation, Nonce, RetractionId, WorkspaceId};
use crate::lattice::Lattice;
use crate::live_records::{EntryRecords, LiveRecords};
use crate::lww_set::{ElementState, LwwSet, Presence};
use crate::record::{Position, Record};
use crate::record_builder::{ClaimEdit, RecordBuilder};
use crate::register::{MvRegister, Register, RegisterValue};
use crate::retraction::RetractionSet;
use crate::signed_edit::EditPosition;
use crate::signing_key::SecretKey;
use crate::tally::{Observation, Tally};
use crate::time::{Day, Hlc, WallTime};
use crate::tombstone::{Grounds, Tombstone, TombstoneRank};
use crate::version_vector::{Slot, UncoveredVersions, VersionVector};
use quickcheck::{Arbitrary, Gen};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Checks the laws of a join on three states.
///
/// # Panics If a law does not hold; the message names it.
pub fn assert_laws<T: Lattice + Clone + PartialEq + Debug>(a: &T, b: &T, c: &T) {
    let join = |x: &T, y: &T| x.clone().joined(y.clone());
    assert_eq!(join(a, b), join(b, a), "the join is commutative");
    assert_eq!(join(&join(a, b), c), join(a, &join(b, c)), "the join is associative");
    assert_eq!(join(a, a), *a, "the join is idempotent");
    assert_eq!(join(&join(a, b), a), join(a, b), "the join contains both its parts");
}

/// A deterministic key for a seed.
pub fn key(seed: u8) -> SecretKey {
    SecretKey::from_bytes(&[seed; 32])
}

fn below(g: &mut Gen, bound: u64) -> u64 {
    u64::arbitrary(g) % bound
}

fn stamp(g: &mut Gen) -> Hlc {
    Hlc::new(WallTime::from_millis(1_000 + below(g, 5)), 0)
}

fn author(g: &mut Gen) -> AuthorId {
    AuthorId::from_bytes([below(g, 3) as u8; 32])
}

fn some<T>(g: &mut Gen, max: u64, mut draw: impl FnMut(&mut Gen) -> T) -> Vec<T> {
    let count = below(g, max + 1);
    (0..count).map(|_| draw(g)).collect()
}

const ENTRY: EntryId = EntryId::from_bytes([1; 16]);

impl Arbitrary for MvRegister {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut register = Self::default();
        for _ in 0..below(g, 5) {
            let known: Vec<Digest> = register.iter().map(|(digest, _)| *digest).collect();
            let value = RegisterValue {
                text: format!("text {}", below(g, 3)),
                stamp: stamp(g),
                author: author(g),
                replaces: known.into_iter().filter(|_| bool::arbitrary(g)).collect(),
                after: some(g, 1, RetractionId::arbitrary).into_iter().collect(),
            };
            register.insert(ENTRY, Register::TITLE, value);
        }
        register
    }
}

impl Arbitrary for RetractionId {
    fn arbitrary(g: &mut Gen) -> Self {
        Self::from_bytes([below(g, 3) as u8; 16])
    }
}

impl Arbitrary for ElementState {
    fn arbitrary(g: &mut Gen) -> Self {
        let presence = if bool::arbitrary(g) { Presence::Present } else { Presence::Withdrawn };
        Self {
            stamp: stamp(g),
            presence,
            after: some(g, 1, RetractionId::arbitrary).into_iter().collect(),
        }
    }
}

impl Arbitrary for LwwSet<String> {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut set = Self::default();
        for _ in 0..below(g, 5) {
            set.say(format!("element {}", below(g, 3)), ElementState::arbitrary(g));
        }
        set
    }
}

impl Arbitrary for GCounter {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut counter = Self::default();
        for _ in 0..below(g, 5) {
            counter.add(Boot(below(g, 3)), Day(below(g, 400) as u32), Thousandths(below(g, 3_000)));
        }
        if bool::arbitrary(g) {
            counter.fold(Boot(0), Day(300));
        }
        counter
    }
}

impl Arbitrary for RetractionSet {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut marks = Self::default();
        for mark in some(g, 3, RetractionId::arbitrary) {
            marks.insert(mark);
        }
        marks
    }
}

impl Arbitrary for Tally {
    fn arbitrary(g: &mut Gen) -> Self {
        Self {
            successes: GCounter::arbitrary(g),
            failures: GCounter::arbitrary(g),
            confirmations: GCounter::arbitrary(g),
            reset: some(g, 1, |g| Boot(below(g, 3))).into_iter().collect(),
        }
    }
}

impl Arbitrary for Claims {
    fn arbitrary(g: &mut Gen) -> Self {
        let registers = [Register::TITLE, Register::CONTENT];
        Self {
            registers: registers.map(|register| (register, MvRegister::arbitrary(g))).into(),
            texts: BTreeMap::from([(TextSet::TAGS, LwwSet::arbitrary(g))]),
            archival: Option::arbitrary(g),
            ..Self::default()
        }
    }
}

impl Arbitrary for Entry {
    fn arbitrary(g: &mut Gen) -> Self {
        if below(g, 10) == 0 {
            let digest = Digest::from_bytes([below(g, 3) as u8; 32]);
            return Self::forgotten(TombstoneRank { is_by_grant: bool::arbitrary(g), digest });
        }
        Self {
            origin: bool::arbitrary(g).then(|| origin(1)),
            claims: some(g, 2, |g| (author(g), Claims::arbitrary(g))).into_iter().collect(),
            tallies: some(g, 2, |g| (author(g), Tally::arbitrary(g))).into_iter().collect(),
            marks: some(g, 2, |g| (author(g), RetractionSet::arbitrary(g))).into_iter().collect(),
            tombstone: None,
        }
    }
}

impl Arbitrary for VersionVector {
    /// Unrestricted: counters that decrease, lists that shrink, mutual absorption, equal versions.
    fn arbitrary(g: &mut Gen) -> Self {
        let mut place = |from: u64, to: u64| {
            let far = if below(g, 8) == 0 { 1_500 } else { 0 };
            let generation = Generation((far + from + below(g, to - from)) as u32);
            Slot { generation, boot: Boot(below(g, 3)) }
        };
        let own = place(1, 4);
        let mut older: Vec<Slot> = (0..3).map(|_| place(0, 3)).collect();
        older.retain(|place| place.generation < own.generation);
        let absorbs = older.into_iter().map(|place| (place, below(g, 3))).collect();
        let mut version =
            Self { place: own, counter: below(g, 3), absorbs, digest: Digest::default() };
        // As in a record, the digest depends on all other fields; `twin` makes equal versions
        // differ.
        let twin = below(g, 2);
        version.digest = digest::of(Context::Record, format!("{version:?} {twin}").as_bytes());
        version
    }
}

impl Arbitrary for UncoveredVersions {
    fn arbitrary(g: &mut Gen) -> Self {
        let mut slots = Self::default();
        for version in some(g, 5, VersionVector::arbitrary) {
            slots.insert(version);
        }
        slots
    }
}

/// The origin of the entry in generated histories, created by `key(seed)`.
pub fn origin(seed: u8) -> Origin {
    Origin::Created {
        creator: key(seed).author(),
        stamp: Hlc::from_bits(1),
        nonce: Nonce::default(),
        workspace: WorkspaceId::MAIN,
        memory: Memory::Semantic,
    }
}

/// Generated records of one entry, from several instances of two authors, honest and dishonest.
#[derive(Clone, Debug)]
pub struct RecordHistory {
    /// All signed records, in the order of writing.
    pub records: Vec<Record>,
}

/// One running instance of a home: its key, its boot and its records.
struct Life {
    key: SecretKey,
    boot: Boot,
    held: EntryRecords,
}

impl Life {
    fn own(&self) -> LiveRecords {
        match &self.held {
            EntryRecords::Live(authors) => {
                authors.get(&self.key.author()).cloned().unwrap_or_default()
            }
            EntryRecords::Forgotten(_) => LiveRecords::default(),
        }
    }

    fn write(&self, g: &mut Gen, entry: EntryId, at: Hlc) -> Option<Record> {
        let own = self.own();
        let writer = RecordBuilder { key: &self.key, boot: self.boot, entry, own: &own };
        let origin = Some(origin(1)).filter(|o| o.creator() == Some(self.key.author()));
        let claim = |claim| writer.claim(&self.held.to_entry(), origin.clone(), &[claim], at);
        let text = format!("text {}", below(g, 4));
        let day = Day(10 + below(g, 3) as u32);
        let written = match below(g, 13) {
            0..=3 => claim(ClaimEdit::Set(Register::TITLE, text)),
            4 => claim(ClaimEdit::Add(TextSet::TAGS, text)),
            5 => claim(ClaimEdit::Withdraw(TextSet::TAGS, text)),
            6 => writer.retract(origin.clone(), at),
            7 if origin.is_some() && below(g, 4) == 0 => {
                let origin = origin.clone()?;
                writer.forget(Tombstone { origin, grounds: Grounds::Origin }, at)
            }
            8 => writer.reset(at),
            9 => {
                let edit = DocumentEdit { branch: 0, change: text.into_bytes() };
                let number = 1 + below(g, 2) as u32;
                edit.seal(&EditPosition { entry, boot: self.boot, number, stamp: at }, &self.key)
            }
            _ => writer.observe(Observation::Success, Thousandths::ONE, day, at),
        };
        Some(written.expect("an honest writer keeps the limits"))
    }
}

impl Arbitrary for RecordHistory {
    fn arbitrary(g: &mut Gen) -> Self {
        let entry = origin(1).id();
        let mut boots = 0;
        let mut start = |key: SecretKey, held: EntryRecords| {
            boots += 1;
            Life { key, boot: Boot(boots), held }
        };
        let mut lives = vec![start(key(1), <_>::default()), start(key(2), <_>::default())];
        let mut records: Vec<Record> = Vec::new();
        for turn in 0..4 + below(g, 8) {
            let at = below(g, lives.len() as u64) as usize;
            match below(g, 8) {
                // A restart, or a clone of a running home.
                0 => lives[at] = start(lives[at].key.clone(), lives[at].held.clone()),
                1 => lives.push(start(lives[at].key.clone(), lives[at].held.clone())),
                // Delivery of an earlier record, out of order.
                2 if !records.is_empty() => {
                    let heard = records[below(g, records.len() as u64) as usize].clone();
                    lives[at].held.merge(heard);
                }
                3 if !records.is_empty() => {
                    let model = &records[below(g, records.len() as u64) as usize];
                    records.push(lie(g, model, &lives[at].key));
                }
                _ => {
                    let skew = below(g, 3) * 1_000_000;
                    let at_ms = WallTime::from_millis(1_000 + turn + skew);
                    if let Some(record) = lives[at].write(g, entry, Hlc::new(at_ms, 0)) {
                        lives[at].held.merge(record.clone());
                        records.push(record);
                    }
                }
            }
        }
        Self { records }
    }
}

/// A validly signed record that contradicts an earlier record of its author.
fn lie(g: &mut Gen, model: &Record, key: &SecretKey) -> Record {
    let header: &Header = model.header();
    let mut absorbs = header.absorbs.clone();
    absorbs.retain(|_| bool::arbitrary(g));
    let payload = match model.payload() {
        Some(payload) if header.author == key.author() => payload.clone(),
        _ => crate::payload::Payload::Tally(Tally::arbitrary(g)),
    };
    let at = Position {
        entry: header.entry,
        place: header.place,
        counter: header.counter + below(g, 2),
        stamp: stamp(g),
        absorbs,
    };
    Record::seal(at, payload, key).expect("a liar keeps the limits")
}

impl RecordHistory {
    /// The state of a node that receives these records in this order.
    pub fn heard(&self, order: impl IntoIterator<Item = usize>) -> EntryRecords {
        let mut held = EntryRecords::default();
        for at in order {
            held.merge(self.records[at].clone());
        }
        held
    }

    /// The states of three nodes that each receive a random subset of the records in random order.
    pub fn three_holders(&self, g: &mut Gen) -> [EntryRecords; 3] {
        std::array::from_fn(|_| {
            let mut order: Vec<usize> = (0..self.records.len()).collect();
            order.retain(|_| bool::arbitrary(g));
            order.sort_by_cached_key(|_| u64::arbitrary(g));
            self.heard(order)
        })
    }
}
