//! Test vectors of contradictions: detection, dominance, composite and competing entries.

use std::collections::BTreeSet;

use super::Criterion::{Evidence, Provenance, Recency};
use super::Polarity::{Negative, Neutral, Positive};
use super::{
    Contradiction, ContradictionSubject, EntryWeight, PairSide, Params, Polarity, Resolution,
    contradiction, resolve,
};
use crate::posterior::Posterior;
use crate::thompson::SplitMix64;

fn tags(words: &str) -> BTreeSet<String> {
    words.split_whitespace().map(String::from).collect()
}

fn claim(alpha: f64, beta: f64, recency: f64, citations: u32) -> EntryWeight {
    EntryWeight { posterior: Posterior::new(alpha, beta), recency, citations }
}

fn judge(a: EntryWeight, b: EntryWeight) -> Resolution {
    resolve(&a, &b, &Params::default())
}

#[test]
fn a_pair_contradicts_only_with_opposite_polarity_shared_tags_and_one_topic() {
    let check = |a: (Polarity, &str), b: (Polarity, &str), similarity, expect: &str| {
        let (a_tags, b_tags) = (tags(a.1), tags(b.1));
        let a = ContradictionSubject { polarity: a.0, tags: &a_tags };
        let b = ContradictionSubject { polarity: b.0, tags: &b_tags };
        let params = Params::default();
        let given = contradiction(a, b, similarity, 0.4, &params);
        assert_eq!(given, contradiction(b, a, similarity, 0.4, &params), "not symmetric");
        assert!(format!("{given:?}").starts_with(expect), "{given:?}, not {expect}");
    };
    check((Positive, "auth jwt"), (Negative, "auth jwt"), 0.5, "Found");
    check((Positive, "auth jwt"), (Positive, "auth jwt"), 0.9, "SamePolarity");
    check((Neutral, "auth jwt"), (Negative, "auth jwt"), 0.9, "SamePolarity");
    check((Positive, "auth jwt"), (Negative, "auth jwt"), 0.4, "OtherTopic");
    check((Positive, "a b c"), (Negative, "a d e"), 0.9, "OtherTags"); // 1 of 5
    check((Positive, "a b c d e f g"), (Negative, "a b c x y z"), 0.9, "OtherTags"); // 3 of 10
    check((Positive, "a b c d e f"), (Negative, "a b c x y z"), 0.9, "Found"); // 3 of 9
    check((Positive, ""), (Negative, ""), 0.9, "OtherTags");
}

#[test]
fn overlap_and_similarity_are_reported() {
    let (a, b) = (tags("auth jwt"), tags("auth jwt web"));
    let one = ContradictionSubject { polarity: Positive, tags: &a };
    let other = ContradictionSubject { polarity: Negative, tags: &b };
    let given = contradiction(one, other, 0.7, 0.4, &Params::default());
    assert_eq!(given, Contradiction::Found { overlap: 2.0 / 3.0, similarity: 0.7 });
}

#[test]
fn an_entry_better_on_two_criteria_and_worse_on_none_dominates() {
    let base = claim(5.0, 5.0, 0.5, 1);
    for (better, expect) in [
        (claim(13.0, 7.0, 0.7, 1), Some(vec![Evidence, Recency])), // mean 0.65: by 0.15 exactly
        (claim(5.0, 5.0, 0.7, 3), Some(vec![Recency, Provenance])),
        (claim(13.0, 7.0, 0.7, 3), Some(vec![Evidence, Recency, Provenance])),
        (claim(13.0, 7.0, 0.6, 2), None), // by a margin on one criterion only
        (claim(13.0, 7.0, 0.7, 0), None), // worse on provenance
        (claim(13.0, 7.0, 0.49, 3), None), // worse on recency, however little
    ] {
        let given = match judge(better, base) {
            Resolution::Dominates { winner: PairSide::A, better_on } => Some(better_on),
            _ => None,
        };
        assert_eq!(given, expect, "{better:?}");
    }
}

#[test]
fn the_composite_decides_beyond_a_threshold_that_shrinks_with_evidence() {
    // Means 0.8 and 0.5, recency 0.5 and 0.6: the composites differ by 0.15 − 0.03 = 0.12.
    let check = |scale: f64, threshold: f64, decides: bool| {
        let a = claim(8.0 * scale, 2.0 * scale, 0.5, 0);
        let b = claim(5.0 * scale, 5.0 * scale, 0.6, 0);
        match judge(a, b) {
            Resolution::Outweighs { winner: PairSide::A, difference, threshold: given }
                if decides =>
            {
                assert!((difference - 0.12).abs() < 1e-9 && (given - threshold).abs() < 1e-9);
            }
            Resolution::Competing { difference, threshold: given } if !decides => {
                assert!((difference - 0.12).abs() < 1e-9 && (given - threshold).abs() < 1e-9);
            }
            other => panic!("mass {}: {other:?}", 10.0 * scale),
        }
    };
    check(1.0, 0.25, false);
    check(2.0, 0.15, false);
    check(4.0, 0.10, true);
    check(10.0, 0.07, true);
}

#[test]
fn citations_count_with_diminishing_returns() {
    // Recency 0.52 against 0.5 prevents dominance; 0.2·(10/20 − 0) − 0.006 = 0.094.
    let (a, b) = (claim(50.0, 50.0, 0.52, 0), claim(50.0, 50.0, 0.5, 10));
    let Resolution::Outweighs { winner, difference, .. } = judge(a, b) else {
        panic!("{:?}", judge(a, b));
    };
    assert_eq!(winner, PairSide::B);
    assert!((difference - 0.094).abs() < 1e-9);
}

#[test]
fn swapping_the_entries_swaps_only_the_winner() {
    let mut random = SplitMix64(5);
    for _ in 0..2_000 {
        let mut any = || {
            let (alpha, beta) = (1.0 + random.share() * 40.0, 1.0 + random.share() * 40.0);
            claim(alpha, beta, random.share(), random.below(6))
        };
        let (a, b) = (any(), any());
        let swapped = match judge(b, a) {
            Resolution::Dominates { winner, better_on } => {
                Resolution::Dominates { winner: other(winner), better_on }
            }
            Resolution::Outweighs { winner, difference, threshold } => {
                Resolution::Outweighs { winner: other(winner), difference, threshold }
            }
            competing @ Resolution::Competing { .. } => competing,
        };
        assert_eq!(judge(a, b), swapped, "{a:?} against {b:?}");
    }
}

fn other(side: PairSide) -> PairSide {
    if side == PairSide::A { PairSide::B } else { PairSide::A }
}
