//! Properties of exploration: how the samples may change the deterministic order.

use crate::rank::{
    CandidateOwner, MarkEffect, Params, PerSignal, RELEVANCE_MARGIN, RankCandidate, Ranking,
    Weights, demote, rank,
};
use crate::status::Status;
use klnode_crdt::ids::EntryId;
use quickcheck::{Arbitrary, Gen, QuickCheck};

/// An answer of random candidates with similar relevance, so that samples reorder them.
#[derive(Clone, Debug)]
struct Answer(Vec<RankCandidate>);

impl Arbitrary for Answer {
    fn arbitrary(g: &mut Gen) -> Self {
        let count = u8::arbitrary(g) % 16;
        Answer((0..count).map(|name| candidate(name, g)).collect())
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let all = self.0.clone();
        let without = move |at: usize| {
            let mut fewer = all.clone();
            fewer.remove(at);
            Answer(fewer)
        };
        Box::new((0..self.0.len()).map(without))
    }
}

fn candidate(name: u8, g: &mut Gen) -> RankCandidate {
    let mut share = || f64::from(u8::arbitrary(g)) / 255.0;
    let signals = PerSignal {
        semantic: 0.4 + (share() * 30.0).round() / 100.0,
        thompson: share(),
        freshness: share(),
        status: share(),
        thread: 0.0,
        cooccurrence: share(),
    };
    let (confidence_mean, bonus) = (share(), 0.05 * share().round());
    let (weight, lower_bound) = (share(), share());
    let origins = [CandidateOwner::Local, CandidateOwner::Foreign { weight, lower_bound }];
    let statuses = [Status::Verified, Status::Active, Status::Candidate];
    RankCandidate {
        entry: EntryId::from_bytes([name; 16]),
        signals,
        confidence_mean,
        bonus,
        status: *g.choose(&statuses).expect("statuses"),
        origin: *g.choose(&origins).expect("origins"),
        overlay: *g.choose(&[MarkEffect::None, MarkEffect::Pinned]).expect("overlays"),
    }
}

fn with_means(candidates: &[RankCandidate]) -> Vec<RankCandidate> {
    let mean = |one: &RankCandidate| {
        let signals = PerSignal { thompson: one.confidence_mean, ..one.signals };
        RankCandidate { signals, ..*one }
    };
    candidates.iter().map(mean).collect()
}

fn ranked(candidates: &[RankCandidate]) -> Ranking {
    rank(candidates, 0.0, &Weights::default(), &Params::default())
}

fn order(candidates: &[RankCandidate]) -> Vec<RankCandidate> {
    ranked(candidates).placed.iter().map(|one| one.candidate).collect()
}

#[test]
fn a_sample_never_changes_the_order_of_entries_of_clearly_different_relevance() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(answer: Answer) -> bool {
        let deterministic: Vec<EntryId> =
            order(&with_means(&answer.0)).iter().map(|one| one.entry).collect();
        let place = |entry| deterministic.iter().position(|other| *other == entry);
        let explored = order(&answer.0);
        let pairs = explored
            .iter()
            .enumerate()
            .flat_map(|(at, upper)| explored[at + 1..].iter().map(move |lower| (upper, lower)));
        let mut pairs = pairs.filter(|(upper, lower)| {
            (lower.signals.semantic - upper.signals.semantic).abs() >= RELEVANCE_MARGIN
        });
        pairs.all(|(upper, lower)| place(upper.entry) < place(lower.entry))
    }
    QuickCheck::new().tests(2_000).quickcheck(holds as fn(Answer) -> bool);
}

#[test]
fn samples_that_equal_the_means_leave_the_deterministic_order() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(answer: Answer) -> bool {
        let candidates = with_means(&answer.0);
        let ranking = ranked(&candidates);
        let by_score: Vec<f64> = ranking.placed.iter().map(|one| one.score_expected).collect();
        let is_moved = ranking.placed.iter().any(|one| one.put_below.is_some());
        let is_same = ranking.placed.iter().all(|one| one.score == one.score_expected);
        is_same && (is_moved || by_score.is_sorted_by(|a, b| a >= b))
    }
    QuickCheck::new().tests(1_000).quickcheck(holds as fn(Answer) -> bool);
}

#[test]
fn no_foreign_candidate_passes_a_local_verified_entry_through_its_sample() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(answer: Answer) -> bool {
        let explored = order(&answer.0);
        let usurps = |upper: &RankCandidate, lower: &RankCandidate| {
            upper.origin != CandidateOwner::Local
                && upper.status == Status::Candidate
                && lower.origin == CandidateOwner::Local
                && lower.status == Status::Verified
                && lower.signals.semantic >= upper.signals.semantic
        };
        let below = |at: usize| &explored[at + 1..];
        let mut places = explored.iter().enumerate();
        places.all(|(at, upper)| below(at).iter().all(|lower| !usurps(upper, lower)))
    }
    QuickCheck::new().tests(2_000).quickcheck(holds as fn(Answer) -> bool);
}

#[test]
fn nearly_equal_entries_are_reordered_by_their_samples() {
    let one = |name: u8, semantic: f64, thompson: f64| {
        let signals = PerSignal {
            semantic,
            thompson,
            freshness: 1.0,
            status: 0.5,
            thread: 0.0,
            cooccurrence: 0.0,
        };
        RankCandidate {
            entry: EntryId::from_bytes([name; 16]),
            signals,
            confidence_mean: 0.5,
            bonus: 0.0,
            status: Status::Active,
            origin: CandidateOwner::Local,
            overlay: MarkEffect::None,
        }
    };
    let names = |candidates: &[RankCandidate]| -> Vec<u8> {
        order(candidates).iter().map(|one| one.entry.as_bytes()[0]).collect()
    };
    assert_eq!(names(&[one(1, 0.54, 0.1), one(2, 0.50, 0.9)]), [2, 1]);
    assert_eq!(names(&[one(1, 0.55, 0.1), one(2, 0.50, 0.9)]), [1, 2], "0.05 is clear");
    // The third may pass the second, but neither may pass the first.
    assert_eq!(names(&[one(1, 0.60, 0.1), one(2, 0.54, 0.1), one(3, 0.50, 0.9)]), [1, 3, 2]);
}

#[test]
fn no_demotion_leaves_the_order_and_any_keeps_answers_above_near_misses() {
    const ANSWER_MIN: f64 = 0.5;
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(answer: Answer, demotions: Vec<u8>) -> bool {
        let ranked = ranked(&answer.0).placed;
        let demotion = |entry: EntryId| {
            let at = usize::from(entry.as_bytes()[0]);
            f64::from(demotions.get(at).copied().unwrap_or_default()) / 1_000.0
        };
        let demoted = demote(&ranked, demotion, ANSWER_MIN);
        let place = |entry| ranked.iter().position(|one| one.candidate.entry == entry);
        let mut pairs = demoted.iter().enumerate().flat_map(|(at, upper)| {
            demoted[at + 1..].iter().map(move |lower| (upper.candidate, lower.candidate))
        });
        let is_kept = pairs.all(|(upper, lower)| {
            let (high, low) = (lower.signals.semantic, upper.signals.semantic);
            let must_not_pass =
                high - low >= RELEVANCE_MARGIN || (high >= ANSWER_MIN && low < ANSWER_MIN);
            !must_not_pass || place(upper.entry) < place(lower.entry)
        });
        is_kept && demote(&ranked, |_| 0.0, ANSWER_MIN) == ranked
    }
    QuickCheck::new().tests(2_000).quickcheck(holds as fn(Answer, Vec<u8>) -> bool);
}
