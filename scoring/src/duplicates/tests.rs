//! Vectors for what merges, what is asked and what is left alone.

use super::*;
use klnode_crdt::time::WallTime;

const MEASURED: Option<Thresholds> = Some(Thresholds { reworded: 0.4, propose: 0.7 });

fn text<'a>(title: &'a str, content: &'a str) -> Text<'a> {
    Text { title, content, kind: "lesson", thread: "", polarity: Polarity::Neutral }
}

#[test]
fn only_equal_texts_merge_whatever_their_nearness() {
    let plain = text("Bound the queue", "It ate all memory of the host.");
    let of = |content| text("Bound the queue", content);
    for (other, cosine, expect) in [
        (plain, 1.0, Verdict::Merge),
        (plain, 0.0, Verdict::Merge),
        (text("Bound  the queue", "It ate\tall memory of the host"), 0.9, Verdict::Merge),
        (of("All memory of the host was eaten."), 0.99, Verdict::Propose(Doubt::Wording)),
        (of("It ate all MEMORY of the host."), 1.0, Verdict::Propose(Doubt::Wording)),
        (of("All memory of the host was eaten."), 0.39, Verdict::Different),
        (of("All memory of the host was eaten."), f64::NAN, Verdict::Different),
        (of("It never ate all memory of the host."), 0.99, Verdict::Different),
        (Text { kind: "norm", ..plain }, 0.99, Verdict::Propose(Doubt::Nature)),
        (Text { thread: "a", ..plain }, 0.99, Verdict::Propose(Doubt::Nature)),
        (Text { polarity: Polarity::Negative, ..plain }, 0.99, Verdict::Propose(Doubt::Nature)),
    ] {
        assert_eq!(compare(&plain, &other, Whose::Own, cosine, MEASURED), expect, "{other:?}");
        assert_eq!(compare(&other, &plain, Whose::Own, cosine, MEASURED), expect, "{other:?}");
    }
}

#[test]
fn titles_contradict_each_other_whatever_the_contents_give_as_reasons() {
    let one = text("Always squash commits", "A linear history is easier to read.");
    let two = text("Never squash commits", "Single commits help when you bisect a fault.");
    assert!(matches!(relate(&one, &two), Comparison::Contradiction(_)));
    assert_eq!(compare(&one, &two, Whose::Own, 0.99, MEASURED), Verdict::Different);
}

#[test]
fn nothing_of_others_merges_unasked_however_near_it_is() {
    let one = text("Bound the queue", "It ate all memory.");
    let verdict = compare(&one, &one, Whose::Foreign, 1.0, MEASURED);
    assert_eq!(verdict, Verdict::Propose(Doubt::Foreign));
}

#[test]
fn what_speaks_the_opposite_way_is_not_the_same_however_near_it_is() {
    let one = Text { polarity: Polarity::Positive, ..text("Tabs in Makefiles", "Tabs indent.") };
    let two = Text { polarity: Polarity::Negative, ..one };
    for whose in [Whose::Own, Whose::Foreign] {
        for thresholds in [MEASURED, None] {
            assert_eq!(compare(&one, &two, whose, 1.0, thresholds), Verdict::Different);
            assert_eq!(compare(&two, &one, whose, 1.0, thresholds), Verdict::Different);
        }
    }
}

#[test]
fn without_a_measured_model_only_texts_of_nearly_the_same_words_are_proposed() {
    let one = text("Bound the queue", "It ate all memory of the host.");
    let near = text("Bound the queue", "All memory of the host was eaten, it ate it.");
    let far = text("Bound the queue", "Otherwise a slow consumer fills the disk.");
    assert_eq!(compare(&one, &near, Whose::Own, 0.2, None), Verdict::Propose(Doubt::Wording));
    assert_eq!(compare(&one, &far, Whose::Own, 1.0, None), Verdict::Different);
}

#[test]
fn a_threshold_follows_from_labelled_pairs_and_a_model_that_tells_nothing_apart_has_none() {
    let same = [0.9, 0.94, 1.0].map(|cosine| (cosine, Label::Same));
    let other = [0.1, 0.5, 0.6].map(|cosine| (cosine, Label::Other));
    let found = propose_min(&[&same[..], &other[..]].concat()).unwrap();
    assert!((found - 0.75).abs() < 1e-9, "{found:?}");
    assert_eq!(propose_min(&[(0.9, Label::Same), (0.9, Label::Other)]), None);
    assert_eq!(propose_min(&same), None);
    assert_eq!(propose_min(&other), None);
}

fn equal(id: u8, at_ms: u64, is_own: bool, length: usize) -> Equal {
    let created = Hlc::new(WallTime::from_millis(at_ms), 0);
    Equal { entry: EntryId::from_bytes([id; 16]), created, is_imported: false, is_own, length }
}

fn imported(id: u8, at_ms: u64, is_own: bool, length: usize) -> Equal {
    Equal { is_imported: true, ..equal(id, at_ms, is_own, length) }
}

#[test]
fn the_survivor_is_the_first_created_and_a_longer_text_is_shown() {
    for (group, entry, text) in [
        (vec![equal(9, 1, true, 100), equal(1, 2, true, 100)], 9, 9),
        (vec![equal(9, 1, true, 100), equal(1, 1, true, 100)], 1, 1),
        (vec![equal(9, 1, true, 100), equal(1, 2, true, 119)], 9, 9),
        (vec![equal(9, 1, true, 100), equal(1, 2, true, 120)], 9, 1),
        // Somebody else's stamp and length count for nothing against one's own.
        (vec![equal(9, 5, true, 100), equal(1, 1, false, 900)], 9, 9),
        (vec![equal(9, 5, false, 100), equal(1, 1, false, 900)], 1, 1),
        // An import stands for other imports alone, however early it came and however long it is.
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
