//! The law of the crate: the document is a function of the set of changes and their entitlement.
//!
//! A [`Schedule`] simulates authors who edit old and new versions, exchange changes, and work in two
//! copies of one home, which write two changes with one sequence number. Some changes are then lost and
//! some authors removed. Every order and every division into batches must give the same document.

use super::{TestAuthor, TestRandom};
use crate::change::CheckedChange;
use crate::change_hash::ChangeHash;
use crate::change_selection::ChangeState;
use crate::document::{TextDocument, WaitingChange};
use crate::limits::AuthorQuota;
use crate::root_change::ROOT_HASH;
use quickcheck::{Arbitrary, Gen, QuickCheck};
use std::collections::{BTreeMap, BTreeSet};

/// A quota that schedules reach.
const SMALL_QUOTA: AuthorQuota =
    AuthorQuota { edits_max: 20_000, bytes_max: 1_500, operations_max: 200 };

#[derive(Clone, Copy, Debug)]
struct Schedule {
    seed: u64,
    steps: u8,
}

impl Arbitrary for Schedule {
    fn arbitrary(g: &mut Gen) -> Self {
        Self { seed: u64::arbitrary(g) | 1, steps: u8::arbitrary(g) % 24 }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let seed = self.seed;
        Box::new((0..self.steps).rev().map(move |steps| Self { seed, steps }))
    }
}

impl Schedule {
    /// Runs the schedule and returns every change that was made.
    fn changes(&self, random: &mut TestRandom) -> Vec<CheckedChange> {
        let mut replicas: Vec<TestAuthor> = (1..=3).map(TestAuthor::new).collect();
        // A second copy of the first home, with the same boot: the cause of duplicates.
        replicas.push(TestAuthor::new(1));
        let mut all = Vec::new();
        for step in 0..self.steps {
            let at = random.below(replicas.len());
            match random.below(7) {
                0 => {
                    let other = replicas[random.below(replicas.len())].clone();
                    replicas[at].pull(&other);
                }
                // The second copy starts again from the present state of the first.
                1 => replicas[3] = replicas[0].clone(),
                2 => {
                    let versions: Vec<ChangeHash> =
                        replicas[at].document.history().map(CheckedChange::hash).collect();
                    let base: Vec<ChangeHash> =
                        versions.get(random.below(versions.len())).copied().into_iter().collect();
                    let text = replicas[at].document.text_at(&base).unwrap();
                    let text = modified(&text, step, random);
                    all.extend(replicas[at].edit_at(&base, &text));
                }
                _ => {
                    let text = modified(&replicas[at].document.text(), step, random);
                    all.extend(replicas[at].edit(&text));
                }
            }
        }
        all
    }
}

/// Inserts a few characters somewhere, and sometimes deletes some.
fn modified(text: &str, step: u8, random: &mut TestRandom) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    if random.below(3) == 0 && !characters.is_empty() {
        let start = random.below(characters.len());
        let end = (start + 1 + random.below(4)).min(characters.len());
        characters.drain(start..end);
    }
    let at = random.below(characters.len() + 1);
    let word = ["one ", "zwei\n", "ä", "🦀 "][random.below(4)];
    let inserted: Vec<char> = word.chars().chain(format!("{step}").chars()).collect();
    characters.splice(at..at, inserted);
    characters.into_iter().collect()
}

/// Everything that a document shows.
#[derive(Debug, PartialEq)]
struct Shown {
    text: String,
    heads: Vec<ChangeHash>,
    history: Vec<ChangeHash>,
    waiting: Vec<WaitingChange>,
    refused: Vec<ChangeHash>,
    states: BTreeMap<ChangeHash, Option<ChangeState>>,
    blame: Vec<ChangeHash>,
}

impl Shown {
    fn of(document: &TextDocument, all: &[CheckedChange]) -> Self {
        Self {
            text: document.text(),
            heads: document.heads(),
            history: document.history().map(CheckedChange::hash).collect(),
            waiting: document.waiting().collect(),
            refused: document.refused().map(|(hash, _)| hash).collect(),
            states: all.iter().map(|c| (c.hash(), document.state(c.hash()))).collect(),
            blame: document.blame().into_iter().map(|line| line.change).collect(),
        }
    }
}

/// Inserts changes in a random order and in random batches.
fn build_in_batches(
    quota: AuthorQuota,
    changes: &[CheckedChange],
    random: &mut TestRandom,
    is_entitled: impl Fn(&CheckedChange) -> bool,
) -> TextDocument {
    let mut changes = changes.to_vec();
    random.shuffle(&mut changes);
    let mut document = TextDocument::new(quota);
    let mut rest = &changes[..];
    while !rest.is_empty() {
        let (batch, tail) = rest.split_at(1 + random.below(rest.len().min(5)));
        document.insert(batch.iter().cloned(), &is_entitled);
        rest = tail;
    }
    document
}

fn law(schedule: Schedule, quota: AuthorQuota) -> bool {
    let random = &mut TestRandom(schedule.seed);
    let mut changes = schedule.changes(random);
    // Some changes never arrive.
    let lost = random.below(3);
    for _ in 0..lost.min(changes.len()) {
        changes.remove(random.below(changes.len()));
    }
    let removed: BTreeSet<u8> = (1..=3).filter(|_| random.below(3) == 0).collect();
    let cut: BTreeSet<ChangeHash> =
        changes.iter().filter(|_| random.below(3) == 0).map(CheckedChange::hash).collect();
    let is_entitled = |change: &CheckedChange| {
        !removed.contains(&change.identity().author.as_bytes()[0]) || cut.contains(&change.hash())
    };
    let whole = TextDocument::build(quota, changes.clone(), is_entitled);
    let expected = Shown::of(&whole, &changes);
    let in_batches = build_in_batches(quota, &changes, random, is_entitled);
    // Members that are removed later give the same document as members that were never there.
    let mut later = build_in_batches(quota, &changes, random, |_| true);
    later.reassess(is_entitled);
    // A snapshot of some changes, which were all entitled at the time.
    let known = changes.iter().filter(|_| random.below(3) > 0).cloned();
    let snapshot = TextDocument::build(quota, known, |_| true).snapshot();
    let opened = TextDocument::open(quota, &snapshot, changes.clone(), is_entitled);
    assert_eq!(expected, Shown::of(&opened, &changes), "from a snapshot");
    assert_eq!(expected, Shown::of(&in_batches, &changes), "in batches");
    assert_eq!(expected, Shown::of(&later, &changes), "after a removal");
    check_selection(&whole, &changes, is_entitled);
    true
}

/// Properties of the selection that no order can show.
fn check_selection(
    document: &TextDocument,
    changes: &[CheckedChange],
    is_entitled: impl Fn(&CheckedChange) -> bool,
) {
    let applied: BTreeMap<ChangeHash, &CheckedChange> =
        document.history().map(|change| (change.hash(), change)).collect();
    let mut numbers = BTreeSet::new();
    for change in applied.values() {
        assert!(numbers.insert((change.actor(), change.sequence())), "one change per number");
        let mut dependencies = change.dependencies().iter().filter(|hash| **hash != ROOT_HASH);
        assert!(dependencies.all(|hash| applied.contains_key(hash)), "dependencies are applied");
    }
    let mut needed: BTreeSet<ChangeHash> = BTreeSet::new();
    for change in document.history().collect::<Vec<_>>().into_iter().rev() {
        assert!(
            is_entitled(change) || needed.contains(&change.hash()),
            "a change is applied without a reason"
        );
        needed.extend(change.dependencies());
    }
    for change in changes.iter().filter(|change| is_entitled(change)) {
        let state = document.state(change.hash());
        assert_ne!(state, Some(ChangeState::NotEntitled), "an entitled change is left out");
    }
}

#[test]
fn every_order_and_every_batch_gives_the_same_document() {
    fn property(schedule: Schedule) -> bool {
        law(schedule, AuthorQuota::FORMAT)
    }
    QuickCheck::new().tests(150).quickcheck(property as fn(Schedule) -> bool);
}

#[test]
fn every_order_gives_the_same_document_when_authors_exceed_their_quota() {
    fn property(schedule: Schedule) -> bool {
        law(schedule, SMALL_QUOTA)
    }
    QuickCheck::new().tests(100).quickcheck(property as fn(Schedule) -> bool);
}

#[test]
fn the_schedules_contain_duplicates_waiting_and_removed_changes() {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for seed in 1..60 {
        let random = &mut TestRandom(seed * 7919);
        let mut changes = Schedule { seed, steps: 20 }.changes(random);
        let all = TextDocument::build(AuthorQuota::FORMAT, changes.clone(), |_| true);
        let states: Vec<_> = changes.iter().map(|c| all.state(c.hash())).collect();
        if states.contains(&Some(ChangeState::Duplicate)) {
            seen.insert("duplicate");
        }
        if states.contains(&Some(ChangeState::DependencyNotApplied)) {
            seen.insert("dependant");
        }
        let small = TextDocument::build(SMALL_QUOTA, changes.clone(), |_| true);
        if changes.iter().any(|c| small.state(c.hash()) == Some(ChangeState::OverQuota)) {
            seen.insert("quota");
        }
        changes.remove(0);
        let document = TextDocument::build(AuthorQuota::FORMAT, changes, |_| true);
        if document.waiting().next().is_some() {
            seen.insert("waiting");
        }
    }
    assert_eq!(seen, BTreeSet::from(["dependant", "duplicate", "quota", "waiting"]));
}
