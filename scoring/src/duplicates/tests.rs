//! Test vectors for merged, proposed and separate entries.

use super::*;
use klnode_crdt::time::WallTime;

const MEASURED: Option<Thresholds> = Some(Thresholds { reworded: 0.4, propose: 0.7 });

fn text<'a>(title: &'a str, content: &'a str) -> DuplicateText<'a> {
    DuplicateText { title, content, kind: "lesson", thread: "", polarity: Polarity::Neutral }
}

#[test]
fn only_equal_texts_merge_at_any_similarity() {
    let plain = text("Bound the queue", "It ate all memory of the host.");
    let of = |content| text("Bound the queue", content);
    for (other, cosine, expect) in [
        (plain, 1.0, DuplicateDecision::Merge),
        (plain, 0.0, DuplicateDecision::Merge),
        (text("Bound  the queue", "It ate\tall memory of the host"), 0.9, DuplicateDecision::Merge),
        (of("All memory of the host was eaten."), 0.99, DuplicateDecision::Propose(Doubt::Wording)),
        (of("It ate all MEMORY of the host."), 1.0, DuplicateDecision::Propose(Doubt::Wording)),
        (of("All memory of the host was eaten."), 0.39, DuplicateDecision::Different),
        (of("All memory of the host was eaten."), f64::NAN, DuplicateDecision::Different),
        (of("It never ate all memory of the host."), 0.99, DuplicateDecision::Different),
        (DuplicateText { kind: "norm", ..plain }, 0.99, DuplicateDecision::Propose(Doubt::Nature)),
        (DuplicateText { thread: "a", ..plain }, 0.99, DuplicateDecision::Propose(Doubt::Nature)),
        (
            DuplicateText { polarity: Polarity::Negative, ..plain },
            0.99,
            DuplicateDecision::Propose(Doubt::Nature),
        ),
    ] {
        assert_eq!(compare(&plain, &other, PairOwners::Own, cosine, MEASURED), expect, "{other:?}");
        assert_eq!(compare(&other, &plain, PairOwners::Own, cosine, MEASURED), expect, "{other:?}");
    }
}

#[test]
fn titles_can_contradict_each_other_with_any_contents() {
    let one = text("Always squash commits", "A linear history is easier to read.");
    let two = text("Never squash commits", "Single commits help when you bisect a fault.");
    assert!(matches!(relate(&one, &two), StatementRelation::Contradiction(_)));
    assert_eq!(compare(&one, &two, PairOwners::Own, 0.99, MEASURED), DuplicateDecision::Different);
}

#[test]
fn foreign_entries_are_never_merged_automatically() {
    let one = text("Bound the queue", "It ate all memory.");
    let verdict = compare(&one, &one, PairOwners::Foreign, 1.0, MEASURED);
    assert_eq!(verdict, DuplicateDecision::Propose(Doubt::Foreign));
}

#[test]
fn entries_of_opposite_polarity_are_never_duplicates() {
    let one =
        DuplicateText { polarity: Polarity::Positive, ..text("Tabs in Makefiles", "Tabs indent.") };
    let two = DuplicateText { polarity: Polarity::Negative, ..one };
    for whose in [PairOwners::Own, PairOwners::Foreign] {
        for thresholds in [MEASURED, None] {
            assert_eq!(compare(&one, &two, whose, 1.0, thresholds), DuplicateDecision::Different);
            assert_eq!(compare(&two, &one, whose, 1.0, thresholds), DuplicateDecision::Different);
        }
    }
}

#[test]
fn without_a_measured_model_only_texts_with_nearly_the_same_words_are_proposed() {
    let one = text("Bound the queue", "It ate all memory of the host.");
    let near = text("Bound the queue", "All memory of the host was eaten, it ate it.");
    let far = text("Bound the queue", "Otherwise a slow consumer fills the disk.");
    assert_eq!(
        compare(&one, &near, PairOwners::Own, 0.2, None),
        DuplicateDecision::Propose(Doubt::Wording)
    );
    assert_eq!(compare(&one, &far, PairOwners::Own, 1.0, None), DuplicateDecision::Different);
}

#[test]
fn a_threshold_follows_from_labelled_pairs_unless_they_overlap() {
    let same = [0.9, 0.94, 1.0].map(|cosine| (cosine, PairLabel::Same));
    let other = [0.1, 0.5, 0.6].map(|cosine| (cosine, PairLabel::Other));
    let found = propose_min(&[&same[..], &other[..]].concat()).unwrap();
    assert!((found - 0.75).abs() < 1e-9, "{found:?}");
    assert_eq!(propose_min(&[(0.9, PairLabel::Same), (0.9, PairLabel::Other)]), None);
    assert_eq!(propose_min(&same), None);
    assert_eq!(propose_min(&other), None);
}

fn equal(id: u8, at_ms: u64, is_own: bool, length: usize) -> GroupEntry {
    let created = Hlc::new(WallTime::from_millis(at_ms), 0);
    GroupEntry { entry: EntryId::from_bytes([id; 16]), created, is_imported: false, is_own, length }
}

fn imported(id: u8, at_ms: u64, is_own: bool, length: usize) -> GroupEntry {
    GroupEntry { is_imported: true, ..equal(id, at_ms, is_own, length) }
}

#[test]
fn the_survivor_is_the_first_created_and_a_longer_text_is_shown() {
    for (group, entry, text) in [
        (vec![equal(9, 1, true, 100), equal(1, 2, true, 100)], 9, 9),
        (vec![equal(9, 1, true, 100), equal(1, 1, true, 100)], 1, 1),
        (vec![equal(9, 1, true, 100), equal(1, 2, true, 119)], 9, 9),
        (vec![equal(9, 1, true, 100), equal(1, 2, true, 120)], 9, 1),
        // Another author's creation stamp and text length do not count against this node's own.
        (vec![equal(9, 5, true, 100), equal(1, 1, false, 900)], 9, 9),
        (vec![equal(9, 5, false, 100), equal(1, 1, false, 900)], 1, 1),
        // An import represents only other imports, however early it came and however long it is.
        (vec![equal(9, 5, true, 100), imported(1, 1, true, 900)], 9, 9),
        (vec![imported(9, 5, true, 100), imported(1, 6, true, 900)], 9, 1),
        (vec![equal(9, 5, false, 100), imported(1, 1, true, 900)], 1, 1),
    ] {
        let found = survivor(&group, 1.2).unwrap();
        let expect = [entry, text].map(|id| EntryId::from_bytes([id; 16]));
        assert_eq!([found.entry, found.text], expect, "{group:?}");
    }
    assert_eq!(survivor(&[], 1.2), None);
}
