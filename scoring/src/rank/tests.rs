//! Test vectors of ranking: the foreign factor, pins, the gate, the last pass, and evidence.

use super::{
    CandidateOwner, MarkEffect, Params, PerSignal, RankCandidate, Ranking, Weights, foreign_factor,
    rank,
};
use crate::posterior::Posterior;
use crate::status::Status;
use crate::thompson::{Sampling, SplitMix64, sample};
use klnode_crdt::ids::EntryId;

const GATE: f64 = 0.2;
const TRUSTED: CandidateOwner = CandidateOwner::Foreign { weight: 0.5, lower_bound: 0.9 };

fn candidate(name: u8, semantic: f64, status: Status, origin: CandidateOwner) -> RankCandidate {
    let signals = PerSignal {
        semantic,
        thompson: 0.5,
        freshness: 1.0,
        status: 0.5,
        thread: 0.0,
        cooccurrence: 0.0,
    };
    let entry = EntryId::from_bytes([name; 16]);
    let (confidence_mean, bonus) = (signals.thompson, 0.0);
    RankCandidate {
        entry,
        signals,
        confidence_mean,
        bonus,
        status,
        origin,
        overlay: MarkEffect::None,
    }
}

/// A candidate whose sample equals its mean.
fn certain(thompson: f64, one: RankCandidate) -> RankCandidate {
    let signals = PerSignal { thompson, ..one.signals };
    RankCandidate { signals, confidence_mean: thompson, ..one }
}

fn local(name: u8, semantic: f64, status: Status) -> RankCandidate {
    candidate(name, semantic, status, CandidateOwner::Local)
}

fn order(candidates: &[RankCandidate]) -> Ranking {
    rank(candidates, GATE, &Weights::default(), &Params::default())
}

fn check(candidates: &[RankCandidate], expect: &[u8]) -> Ranking {
    let ranking = order(candidates);
    let names: Vec<u8> =
        ranking.placed.iter().map(|one| one.candidate.entry.as_bytes()[0]).collect();
    assert_eq!(names, expect, "{:#?}", ranking.placed);
    ranking
}

#[test]
fn the_foreign_factor_joins_evidence_and_status_below_the_authors_weight() {
    for (status, lower_bound, weight, expect) in [
        (Status::Candidate, 0.3, 0.5, 0.32),
        (Status::Active, 0.5, 0.5, 0.52),
        (Status::Verified, 0.5, 0.5, 0.60), // 0.62, capped by 0.5 + 0.1
        (Status::Verified, 0.9, 1.0, 0.86),
        (Status::Verified, 1.0, 1.0, 0.90), // 0.92, capped
        (Status::Candidate, 0.3, 0.07, 0.17),
        (Status::Candidate, 0.3, 0.0, 0.10),
        (Status::Stale, 0.0, 0.5, 0.10),
    ] {
        let given = foreign_factor(status, lower_bound, weight, &Params::default());
        assert!((given - expect).abs() < 1e-9, "{status:?} {lower_bound} {weight}: {given}");
    }
}

#[test]
fn a_hit_explains_each_step_from_signals_to_score() {
    let ranking = check(&[candidate(1, 0.8, Status::Active, TRUSTED)], &[1]);
    let placed = ranking.placed[0];
    // 0.38·0.8 + 0.25·0.5 + 0.15 + 0.10·0.5 = 0.629; factor min(0.54 + 0.22, 0.6).
    assert!((placed.composite - 0.629).abs() < 1e-9);
    assert!((placed.foreign_factor.unwrap() - 0.6).abs() < 1e-9);
    assert!((placed.score - 0.3774).abs() < 1e-9);
    assert_eq!(ranking.weights, Weights::default());
}

#[test]
fn irrelevant_candidates_are_left_out_and_an_empty_answer_abstains() {
    let far = local(1, 0.19, Status::Verified);
    let farther = local(2, 0.05, Status::Verified);
    let ranking = check(&[farther, far], &[]);
    let nearest: Vec<u8> = ranking.nearest.iter().map(|one| one.entry.as_bytes()[0]).collect();
    assert_eq!(nearest, [1, 2]);
    check(&[far, local(3, GATE, Status::Candidate)], &[3]);
}

#[test]
fn a_pin_lifts_relevant_entries_and_does_not_open_the_gate() {
    let pinned = |name, semantic| RankCandidate {
        overlay: MarkEffect::Pinned,
        ..local(name, semantic, Status::Active)
    };
    let ranking = check(&[local(1, 0.8, Status::Active), pinned(2, 0.5), pinned(3, 0.1)], &[2, 1]);
    assert!((ranking.placed[0].score - ranking.placed[0].composite - 0.15).abs() < 1e-9);
}

#[test]
fn a_foreign_candidate_goes_below_every_local_verified_entry_of_equal_relevance() {
    // The entry is pinned, so that it would otherwise be first.
    let foreign = |semantic| RankCandidate {
        overlay: MarkEffect::Pinned,
        signals: PerSignal { thompson: 1.0, thread: 1.0, cooccurrence: 1.0, ..signals(semantic) },
        confidence_mean: 1.0,
        ..candidate(
            9,
            semantic,
            Status::Candidate,
            CandidateOwner::Foreign { weight: 1.0, lower_bound: 1.0 },
        )
    };
    let weak = RankCandidate {
        signals: PerSignal { thompson: 0.0, freshness: 0.0, status: 0.0, ..signals(0.6) },
        confidence_mean: 0.0,
        ..local(1, 0.6, Status::Verified)
    };
    let ranking = check(&[foreign(0.6), weak], &[1, 9]);
    assert_eq!(ranking.placed[1].put_below, Some(EntryId::from_bytes([1; 16])));
    assert!(ranking.placed[1].score > ranking.placed[0].score);
    // The entry goes below every such entry, not only the first.
    let weaker = RankCandidate { entry: EntryId::from_bytes([2; 16]), ..weak };
    check(&[foreign(0.6), weak, weaker], &[1, 2, 9]);
    // A foreign entry that is more relevant than the local one stays above it.
    check(&[foreign(0.61), weak], &[9, 1]);
    // Neither a local active entry nor a foreign verified one changes its rank.
    check(&[foreign(0.6), RankCandidate { status: Status::Active, ..weak }], &[9, 1]);
    check(&[RankCandidate { status: Status::Verified, ..foreign(0.6) }, weak], &[9, 1]);
}

fn signals(semantic: f64) -> PerSignal {
    local(0, semantic, Status::Active).signals
}

#[test]
fn equal_scores_are_ordered_by_entry() {
    let twins = [local(7, 0.5, Status::Active), local(3, 0.5, Status::Active)];
    check(&twins, &[3, 7]);
}

#[test]
fn evidence_changes_the_order() {
    let with = |name, alpha, beta| {
        let entry = EntryId::from_bytes([name; 16]);
        let thompson = sample(&Posterior::new(alpha, beta), 4.0, entry, Sampling::Mean);
        certain(thompson, local(name, 0.5, Status::Active))
    };
    check(&[with(1, 5.0, 5.0), with(2, 5.0, 5.0)], &[1, 2]);
    check(&[with(1, 5.0, 5.0), with(2, 9.0, 5.0)], &[2, 1]);
    check(&[with(1, 5.0, 9.0), with(2, 5.0, 5.0)], &[2, 1]);
}

#[test]
fn the_last_pass_moves_only_foreign_candidates() {
    for seed in 0..500 {
        let mut random = SplitMix64(seed);
        let candidates: Vec<RankCandidate> = (0..12)
            .map(|name| {
                let statuses = [Status::Verified, Status::Active, Status::Candidate];
                let status = statuses[random.below(3) as usize];
                let weight = random.share() / 2.0;
                let foreign = CandidateOwner::Foreign { weight, lower_bound: random.share() };
                let origin = if random.below(2) == 0 { CandidateOwner::Local } else { foreign };
                let semantic = f64::from(2 + random.below(8)) / 10.0;
                let one = candidate(name, semantic, status, origin);
                let thompson = random.share();
                let overlay = [MarkEffect::None, MarkEffect::Pinned][random.below(2) as usize];
                RankCandidate { overlay, ..certain(thompson, one) }
            })
            .collect();
        let placed = order(&candidates).placed;
        assert_eq!(placed.len(), candidates.len());
        for (place, upper) in placed.iter().enumerate() {
            for lower in &placed[place + 1..] {
                let usurped = super::is_foreign_candidate(&upper.candidate)
                    && super::is_local_verified(&lower.candidate)
                    && lower.candidate.signals.semantic >= upper.candidate.signals.semantic;
                assert!(!usurped, "seed {seed}: {upper:?} before {lower:?}");
                let moved = upper.put_below.is_some() || lower.put_below.is_some();
                assert!(moved || upper.score >= lower.score, "seed {seed}: order changed");
            }
        }
    }
}
