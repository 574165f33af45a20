//! Merges, restores, quotas and entitlement, each in one small story.

use super::{TestAuthor, author};
use crate::change::CheckedChange;
use crate::change_hash::ChangeHash;
use crate::change_selection::ChangeState;
use crate::document::{TextDocument, UnknownVersion};
use crate::edit::EditError;
use crate::limits::{AuthorQuota, CHANGE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::root_change::ROOT_HASH;

const PLAYBOOK: &str = "# Releasing\n\nRun the tests, then tag the commit.\n\n# Rollback\n\nRevert \
    the tag.\n";

/// Two authors with the same text.
fn pair(text: &str) -> (TestAuthor, TestAuthor) {
    let (mut ann, mut bob) = (TestAuthor::new(1), TestAuthor::new(2));
    ann.edit(text);
    bob.pull(&ann);
    (ann, bob)
}

fn merge(ann: &mut TestAuthor, bob: &mut TestAuthor) -> String {
    ann.pull(bob);
    bob.pull(ann);
    assert_eq!(ann.document.text(), bob.document.text());
    assert_eq!(ann.document.heads(), bob.document.heads());
    ann.document.text()
}

#[test]
fn edits_in_different_sections_are_both_kept() {
    let (mut ann, mut bob) = pair(PLAYBOOK);
    ann.edit(&PLAYBOOK.replace("tag the commit", "sign and tag the commit"));
    bob.edit(&PLAYBOOK.replace("Revert the tag.", "Delete the tag and publish a note."));
    let merged = merge(&mut ann, &mut bob);
    assert_eq!(
        merged,
        "# Releasing\n\nRun the tests, then sign and tag the commit.\n\n# Rollback\n\nDelete the tag \
         and publish a note.\n"
    );
}

#[test]
fn edits_in_one_sentence_are_both_kept() {
    let (mut ann, mut bob) = pair(PLAYBOOK);
    ann.edit(&PLAYBOOK.replace("Run the tests", "Run all the tests"));
    bob.edit(&PLAYBOOK.replace("tag the commit", "tag the last commit"));
    let merged = merge(&mut ann, &mut bob);
    assert!(merged.contains("Run all the tests, then tag the last commit."), "{merged}");
}

#[test]
fn two_insertions_at_one_place_are_both_kept_and_not_mixed() {
    let (mut ann, mut bob) = pair("Steps:\n");
    ann.edit("Steps:\n- build the archive\n");
    bob.edit("Steps:\n- upload the archive\n");
    let merged = merge(&mut ann, &mut bob);
    assert!(merged.contains("build the archive"), "{merged}");
    assert!(merged.contains("upload the archive"), "{merged}");
}

#[test]
fn a_whole_text_based_on_an_old_version_does_not_revert_later_edits() {
    let (mut ann, mut bob) = pair(PLAYBOOK);
    let read = ann.document.heads();
    bob.edit(&PLAYBOOK.replace("# Releasing", "# Releasing a version"));
    ann.pull(&bob);
    // Ann hands in the text that she read before, with one modification.
    let changes = ann.edit_at(&read, &PLAYBOOK.replace("Revert the tag.", "Delete the tag."));
    assert_eq!(changes[0].dependencies(), read);
    let expected = PLAYBOOK
        .replace("# Releasing", "# Releasing a version")
        .replace("Revert the tag.", "Delete the tag.");
    assert_eq!(ann.document.text(), expected);
}

#[test]
fn an_actor_gets_a_new_branch_if_the_base_lacks_its_last_change() {
    let mut ann = TestAuthor::new(1);
    let first = ann.edit_once("one\n");
    let second = ann.edit_once("one\ntwo\n");
    assert_eq!((second.identity().branch, second.sequence()), (0, 2));
    let fork = ann.edit_at(&[first.hash()], "zero\none\n")[0].clone();
    assert_eq!((fork.identity().branch, fork.sequence()), (1, 1));
    assert_eq!(ann.document.text(), "zero\none\ntwo\n");
    // The merged version contains both branches, so the first one continues.
    let next = ann.edit_once("zero\none\ntwo\nthree\n");
    assert_eq!((next.identity().branch, next.sequence()), (0, 3));
    assert_eq!(ann.document.history().count(), 4);
}

#[test]
fn of_two_changes_with_one_number_the_lesser_hash_applies_with_its_dependants() {
    let (mut ann, mut bob) = pair("base\n");
    // Two copies of one home, with the same boot.
    let mut copy = ann.clone();
    let one = ann.edit_once("base\none\n");
    let other = copy.edit_once("base\nother\n");
    assert_eq!((one.actor(), one.sequence()), (other.actor(), other.sequence()));
    let (winner, loser) = if one.hash() < other.hash() { (&one, &other) } else { (&other, &one) };
    // Bob builds on the loser before the winner arrives.
    bob.receive(std::slice::from_ref(loser));
    let dependant = bob.edit_once(&format!("{}bob\n", bob.document.text()));
    assert!(bob.document.text().contains("bob"));
    bob.receive(std::slice::from_ref(winner));
    assert_eq!(bob.document.state(winner.hash()), Some(ChangeState::Applied));
    assert_eq!(bob.document.state(loser.hash()), Some(ChangeState::Duplicate));
    assert_eq!(bob.document.state(dependant.hash()), Some(ChangeState::DependencyNotApplied));
    assert_eq!(bob.document.heads(), [winner.hash()]);
    // A change on the winner applies.
    let next = bob.edit_once(&format!("{}again\n", bob.document.text()));
    assert_eq!(bob.document.state(next.hash()), Some(ChangeState::Applied));
}

/// Makes changes with different texts until one has a lesser hash than `than`.
fn with_lesser_hash(than: ChangeHash, make: impl Fn(&str) -> CheckedChange) -> CheckedChange {
    let changes = (0..).map(|number| make(&format!("rival {number}\n")));
    changes.into_iter().find(|change| change.hash() < than).unwrap()
}

#[test]
fn a_late_duplicate_displaces_a_change_and_the_dependants_that_precede_it() {
    let (ann, mut bob) = pair("base\n");
    let mut copy = ann.clone();
    let loser = ann.clone().edit_once("base\nloser\n");
    let mut carol = TestAuthor::new(3);
    carol.pull(&ann);
    carol.receive(std::slice::from_ref(&loser));
    let dependant = carol.edit_once("base\nloser\ncarol\n");
    // The winner is made on a longer history, so it comes after the dependant in canonical order.
    bob.edit("base\nmuch longer text, with more operations than the two changes together\n");
    copy.pull(&bob);
    let winner = with_lesser_hash(loser.hash(), |line| {
        copy.clone().edit_once(&format!("{}{line}", copy.document.text()))
    });
    assert!(winner.start_operation() > dependant.start_operation());
    let mut changes: Vec<CheckedChange> = copy.document.history().cloned().collect();
    changes.extend([loser.clone(), dependant.clone(), winner.clone()]);
    let document = TextDocument::build(AuthorQuota::FORMAT, changes, |_| true);
    assert_eq!(document.state(loser.hash()), Some(ChangeState::Duplicate));
    assert_eq!(document.state(dependant.hash()), Some(ChangeState::DependencyNotApplied));
    assert_eq!(document.heads(), [winner.hash()]);
}

#[test]
fn a_duplicate_that_is_not_entitled_does_not_displace_a_change_in_a_cut() {
    let (ann, mut mallory) = pair("base\n");
    let honest = ann.clone().edit_once("base\nhonest\n");
    let forged =
        with_lesser_hash(honest.hash(), |line| ann.clone().edit_once(&format!("base\n{line}")));
    let mut changes: Vec<CheckedChange> = ann.document.history().cloned().collect();
    let cut: Vec<ChangeHash> =
        changes.iter().map(CheckedChange::hash).chain([honest.hash()]).collect();
    changes.extend([forged.clone(), honest]);
    let is_entitled = |change: &CheckedChange| {
        cut.contains(&change.hash()) || change.identity().author == author(2)
    };
    let document = TextDocument::build(AuthorQuota::FORMAT, changes.clone(), is_entitled);
    assert_eq!(document.text(), "base\nhonest\n");
    assert_eq!(document.state(forged.hash()), Some(ChangeState::NotEntitled));
    // A member who builds on the forged change does not help it.
    mallory.receive(std::slice::from_ref(&forged));
    changes.push(mallory.edit_once("base\nmallory\n"));
    let document = TextDocument::build(AuthorQuota::FORMAT, changes, is_entitled);
    assert_eq!(document.text(), "base\nhonest\n");
    assert_eq!(document.state(forged.hash()), Some(ChangeState::Duplicate));
}

#[test]
fn a_removed_authors_change_stays_while_a_members_change_depends_on_it() {
    let (mut ann, mut bob) = pair("base\n");
    let kept = ann.edit_once("base\nkept\n");
    bob.pull(&ann);
    let honest = bob.edit_once("base\nkept\nhonest\n");
    ann.pull(&bob);
    let dropped = ann.edit_once("base\nkept\nhonest\ndropped\n");
    bob.pull(&ann);
    bob.document.reassess(|change| change.identity().author != author(1));
    assert_eq!(bob.document.text(), "base\nkept\nhonest\n");
    assert_eq!(bob.document.state(kept.hash()), Some(ChangeState::Applied));
    assert_eq!(bob.document.state(dropped.hash()), Some(ChangeState::NotEntitled));
    assert_eq!(bob.document.heads(), [honest.hash()]);
    bob.document.reassess(|_| true);
    assert_eq!(bob.document.text(), "base\nkept\nhonest\ndropped\n");
}

#[test]
fn a_change_without_its_dependencies_waits_and_is_listed() {
    let mut ann = TestAuthor::new(1);
    let first = ann.edit_once("one\n");
    let second = ann.edit_once("one\ntwo\n");
    let third = ann.edit_once("one\ntwo\nthree\n");
    let mut bob = TestAuthor::new(2);
    bob.receive(&[third.clone(), second.clone()]);
    assert_eq!(bob.document.text(), "");
    assert_eq!(bob.document.heads(), [ROOT_HASH]);
    let waiting: Vec<_> = bob.document.waiting().map(|w| (w.hash, w.missing)).collect();
    let mut expected = vec![(second.hash(), vec![first.hash()]), (third.hash(), vec![])];
    expected.sort();
    assert_eq!(waiting, expected);
    assert_eq!(bob.document.state(second.hash()), None);
    bob.receive(&[first]);
    assert_eq!(bob.document.text(), "one\ntwo\nthree\n");
    assert_eq!(bob.document.waiting().count(), 0);
}

#[test]
fn an_author_over_quota_keeps_the_edits_with_the_least_numbers() {
    let mut ann = TestAuthor::new(1);
    let texts = ["a", "ab", "abc", "abcd"];
    let changes: Vec<CheckedChange> = texts.iter().map(|text| ann.edit_once(text)).collect();
    let quota = AuthorQuota { edits_max: 4, operations_max: 2, ..AuthorQuota::FORMAT };
    let mut document = TextDocument::new(quota);
    for change in changes.iter().rev() {
        document.insert([change.clone()], |_| true);
    }
    assert_eq!(document.text(), "ab");
    assert_eq!(document.state(changes[2].hash()), Some(ChangeState::OverQuota));
    let small = AuthorQuota { edits_max: 3, ..AuthorQuota::FORMAT };
    assert!(CheckedChange::check(changes[3].bytes(), *changes[3].identity(), &small).is_err());
    let bytes: usize = changes[..3].iter().map(|change| change.bytes().len()).sum();
    let tight = AuthorQuota { bytes_max: bytes as u64, ..AuthorQuota::FORMAT };
    assert_eq!(TextDocument::build(tight, changes, |_| true).text(), "abc");
}

#[test]
fn a_restored_version_is_a_new_change() {
    let (mut ann, mut bob) = pair("first\nsecond\n");
    let version = ann.document.heads();
    bob.edit("first, changed\n");
    ann.pull(&bob);
    let restored = ann.document.restore(&version, &ann.context()).unwrap();
    ann.receive(&restored);
    assert_eq!(ann.document.text(), "first\nsecond\n");
    assert_eq!(ann.document.history().count(), 3);
    assert_eq!(restored[0].identity().author, author(1));
    assert_eq!(ann.document.text_at(&bob.document.heads()).unwrap(), "first, changed\n");
    let lines = ann.document.diff(&bob.document.heads(), &ann.document.heads()).unwrap();
    assert_eq!((lines[0].removed.len(), lines[0].added.len()), (1, 2));
}

#[test]
fn a_large_edit_becomes_several_changes_within_the_limits() {
    let mut ann = TestAuthor::new(1);
    let text: String = (0..12_000).map(|line| format!("{line} größer 🦀\n")).collect();
    let changes = ann.edit(&text);
    assert!(changes.len() > 3 && changes.iter().all(|c| c.bytes().len() <= CHANGE_BYTES_MAX));
    assert!(ann.document.text() == text);
    let numbers: Vec<u32> = changes.iter().map(|change| change.identity().number).collect();
    assert!(numbers.iter().copied().eq(1..=changes.len() as u32));
    // Deleting everything takes few bytes and many operations.
    let deletions = ann.edit("");
    assert!(deletions.len() > 1);
    assert_eq!(ann.document.text(), "");
    assert!(ann.edit("").is_empty());
}

#[test]
fn an_edit_beyond_a_limit_is_refused() {
    let mut ann = TestAuthor::new(1);
    ann.edit("text");
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let heads = ann.document.heads();
    let edit = |ann: &TestAuthor, base: &[ChangeHash], text: &str| {
        ann.document.edit(base, text, &ann.context()).map(|changes| changes.len())
    };
    assert_eq!(edit(&ann, &heads, &long), Err(EditError::TextTooLong(long.len())));
    let unknown = ChangeHash::from_bytes([9; 32]);
    let error = UnknownVersion(unknown);
    assert_eq!(edit(&ann, &[unknown], "x"), Err(EditError::UnknownVersion(error)));
    assert_eq!(ann.document.text_at(&[unknown]), Err(error));
    ann.number = AuthorQuota::FORMAT.edits_max;
    assert_eq!(edit(&ann, &heads, "more"), Ok(1));
    ann.number += 1;
    assert_eq!(edit(&ann, &heads, "more"), Err(EditError::NoEditLeft(20_000)));
}

#[test]
fn a_damaged_snapshot_is_ignored() {
    let mut ann = TestAuthor::new(1);
    let changes = [ann.edit_once("one\n"), ann.edit_once("one\ntwo\n")];
    let snapshot = ann.document.snapshot();
    let open = |snapshot: &[u8]| {
        TextDocument::open(AuthorQuota::FORMAT, snapshot, changes.clone(), |_| true).text()
    };
    assert_eq!(open(&snapshot), "one\ntwo\n");
    assert_eq!(open(&[]), "one\ntwo\n");
    for at in 0..snapshot.len() {
        let mut damaged = snapshot.clone();
        damaged[at] ^= 0x55;
        assert_eq!(open(&damaged), "one\ntwo\n", "{at}");
        assert_eq!(open(&snapshot[..at]), "one\ntwo\n", "{at}");
    }
    // A snapshot of another document.
    let mut bob = TestAuthor::new(2);
    bob.edit("other");
    assert_eq!(open(&bob.document.snapshot()), "one\ntwo\n");
}

#[test]
fn one_change_in_two_records_counts_once_with_the_least_number() {
    let mut ann = TestAuthor::new(1);
    let change = ann.edit_once("text");
    let identity = crate::edit_identity::EditIdentity { number: 9, ..*change.identity() };
    let later = super::check(change.bytes(), &identity).unwrap();
    for order in [[change.clone(), later.clone()], [later, change]] {
        let document = TextDocument::build(AuthorQuota::FORMAT, order, |_| true);
        assert_eq!(document.history().map(|c| c.identity().number).collect::<Vec<_>>(), [1]);
        assert_eq!(document.text(), "text");
    }
}
