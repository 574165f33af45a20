//! Vectors for what merges, what is asked and what is left alone.

use super::*;
use klnode_crdt::time::WallTime;

const MEASURED: Option<Thresholds> = Some(Thresholds { merge: 0.9, propose: 0.7 });

fn text<'a>(title: &'a str, content: &'a str) -> Text<'a> {
    Text { title, content, kind: "lesson", thread: "", polarity: Polarity::Neutral }
}

#[test]
fn a_pair_merges_only_above_the_threshold_and_where_nothing_else_differs() {
    let plain = text("Bound the queue", "It ate all memory.");
    let of = |content| text("Bound the queue", content);
    for (other, cosine, expect) in [
        (plain, 0.95, Verdict::Merge),
        (plain, 0.9, Verdict::Merge),
        (plain, 0.89, Verdict::Propose(Doubt::Nearness)),
        (plain, 0.7, Verdict::Propose(Doubt::Nearness)),
        (plain, 0.69, Verdict::Different),
        (plain, f64::NAN, Verdict::Different),
        (of("It ate 5 GB."), 0.99, Verdict::Propose(Doubt::Names)),
        (of("It ate all of ctx.Err()."), 0.99, Verdict::Propose(Doubt::Names)),
        (of("It never ate all memory."), 0.99, Verdict::Propose(Doubt::Negation)),
        (Text { kind: "norm", ..plain }, 0.99, Verdict::Propose(Doubt::Nature)),
        (Text { thread: "a", ..plain }, 0.99, Verdict::Propose(Doubt::Nature)),
        (Text { polarity: Polarity::Negative, ..plain }, 0.99, Verdict::Propose(Doubt::Nature)),
    ] {
        assert_eq!(compare(&plain, &other, Whose::Own, cosine, MEASURED), expect, "{other:?}");
        assert_eq!(compare(&other, &plain, Whose::Own, cosine, MEASURED), expect, "{other:?}");
    }
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
fn a_model_that_was_never_measured_proposes_equal_words_alone() {
    let one = text("Bound the queue", "It ate all memory.");
    let same = text("bound the Queue", "It  ate\nall memory");
    let near = text("Bound the queue", "It ate all the memory.");
    let expect = Verdict::Propose(Doubt::Unmeasured);
    assert_eq!(compare(&one, &same, Whose::Own, 0.2, None), expect);
    assert_eq!(compare(&one, &near, Whose::Own, 1.0, None), Verdict::Different);
}

#[test]
fn thresholds_follow_from_labelled_pairs_and_a_model_that_tells_nothing_apart_has_none() {
    let same = [0.9, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0].map(|cosine| (cosine, Label::Same));
    let other = [0.1, 0.5, 0.6].map(|cosine| (cosine, Label::Other));
    let found = calibrate(&[&same[..], &other[..]].concat()).unwrap();
    assert!((found.merge - 0.95).abs() < 1e-9 && (found.propose - 0.75).abs() < 1e-9, "{found:?}");
    assert_eq!(calibrate(&[(0.9, Label::Same), (0.9, Label::Other)]), None);
    assert_eq!(calibrate(&same), None);
    assert_eq!(calibrate(&other), None);
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
