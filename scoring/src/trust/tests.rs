//! Test vectors of trust and weight, and the property that evidence never acts against its
//! direction.

use super::{
    Params, TextObservation, Trust, TrustStanding, WeightReason, trust, trust_vouched,
    vouched_successes, weight,
};
use crate::credit::TaskVerdict::{Failure, Success};
use crate::hop::Hop;
use crate::posterior::Posterior;
use crate::thompson::SplitMix64;
use klnode_crdt::time::Day;

const NOW: u32 = 20_000;

/// `+` is a success and `-` a failure, each `age` days ago, in order of arrival.
fn observed(history: &[(u32, &str)]) -> Vec<TextObservation> {
    let of = |&(age, verdicts): &(u32, &str)| {
        let day = Day(NOW - age);
        let each = move |sign| TextObservation {
            day,
            verdict: if sign == '+' { Success } else { Failure },
        };
        verdicts.chars().map(each).collect::<Vec<_>>()
    };
    history.iter().flat_map(of).collect()
}

/// The 10 % quantile of Beta(`alpha`, `beta`).
fn q10(alpha: f64, beta: f64) -> f64 {
    Posterior::new(alpha, beta).lower_bound()
}

fn judge(history: &[(u32, &str)]) -> Trust {
    trust(&observed(history), Day(NOW), &Params::default())
}

fn check(history: &[(u32, &str)], expect: f64) {
    let given = judge(history);
    assert!((given.value - expect).abs() < 5e-5, "{history:?}: {given:?}, not {expect}");
}

#[test]
fn trust_is_the_lower_of_all_evidence_and_the_last_six_outcomes() {
    check(&[], 0.1000);
    check(&[(0, "+")], 0.3162);
    check(&[(0, "+++")], 0.5623);
    check(&[(0, "-")], 0.0345);
    // Ten successes: all evidence gives 0.8111, the last six, Beta(7,1), only 0.1^(1/7).
    check(&[(1, "+++++"), (0, "+++++")], 0.7197);
    // A failure long before six successes: all evidence, Beta(7,3), is the lower one.
    check(&[(2, "-"), (1, "+++"), (0, "+++")], q10(7.0, 3.0));
}

#[test]
fn the_trust_quantile_is_configurable() {
    let median = Params { quantile: 0.5, ..Params::default() };
    assert!((trust(&[], Day(0), &median).value - 0.5).abs() < 1e-9, "half of Beta(1, 1)");
    assert!((trust(&[], Day(0), &Params::default()).value - 0.1).abs() < 1e-9);
}

#[test]
fn five_bad_entries_after_a_hundred_good_ones_put_an_author_below_a_stranger() {
    let good: Vec<(u32, &str)> = (1..=20).rev().map(|age| (age, "+++++")).collect();
    let stranger = judge(&[]).value;
    assert!(judge(&good).value > 0.7);
    let after = |bad| judge(&[good.as_slice(), &[(0, bad)]].concat()).value;
    assert!(after("-----") < stranger, "{}", after("-----"));
    assert!(after("----") > stranger, "{}", after("----"));
    assert!(after("-") < judge(&good).value);
}

#[test]
fn at_most_five_successes_a_day_count() {
    let six = judge(&[(1, "++++++")]);
    assert_eq!(six.value, judge(&[(1, "+++++")]).value);
    assert_eq!(six.successes_ignored, 1);
    assert!(judge(&[(1, "+++++"), (0, "+")]).value > six.value);
    // Failures have no daily limit.
    assert!(judge(&[(0, "----------")]).value < judge(&[(0, "---------")]).value + 1e-12);
    assert_eq!(judge(&[(0, "----------")]).all.beta(), 21.0);
}

#[test]
fn a_success_beyond_the_daily_limit_takes_no_place_in_the_window() {
    let history = [(1, "-----+"), (0, "+++++")];
    let more = [(1, "-----+"), (0, "+++++++++")];
    assert_eq!(judge(&history).recent, judge(&more).recent);
}

#[test]
fn evidence_decays_after_thirty_days_towards_the_prior() {
    check(&[(30, "+")], 0.3162);
    check(&[(31, "+")], q10(1.98, 1.0));
    check(&[(64, "+")], q10(1.0 + 0.98_f64.powi(34), 1.0));
    check(&[(3_000, "------")], 0.1000);
    // Decay applies to failures as well: an old failure weighs less than a new one.
    assert!(judge(&[(90, "-")]).value > judge(&[(0, "-")]).value);
}

#[test]
fn evidence_dated_in_the_future_counts_and_does_not_block_the_window() {
    let mut history = observed(&[(0, "+++++")]);
    for one in &mut history {
        one.day = Day(NOW + 400);
    }
    history.extend(observed(&[(0, "------")]));
    let given = trust(&history, Day(NOW), &Params::default());
    assert_eq!((given.recent.alpha(), given.recent.beta()), (1.0, 13.0));
    assert_eq!((given.all.alpha(), given.all.beta()), (6.0, 13.0));
}

#[test]
fn a_success_never_lowers_trust_and_a_failure_never_raises_it() {
    // The quantile is exact to 2e-11; a violation of the law is larger by orders of magnitude.
    const NOISE: f64 = 1e-10;
    let params = Params::default();
    for seed in 0..400 {
        let mut random = SplitMix64(seed);
        let mut day = NOW - 400;
        let mut history = Vec::new();
        for step in 0..24 {
            // The clock mostly moves on, sometimes by months, and occasionally jumps back.
            day = match random.below(10) {
                0..=4 => day,
                5..=6 => day + 1,
                7 => day + random.below(60),
                8 => day.saturating_sub(random.below(90)),
                _ => day + random.below(12),
            };
            let before = trust(&history, Day(day), &params).value;
            let now = Day(day + random.below(3) * 40);
            let later = trust(&history, now, &params).value;
            for verdict in [Success, Failure] {
                let longer =
                    [history.as_slice(), &[TextObservation { day: Day(day), verdict }]].concat();
                for (had, at) in [(before, Day(day)), (later, now)] {
                    let has = trust(&longer, at, &params).value;
                    let holds = match verdict {
                        Success => has >= had - NOISE,
                        Failure => has <= had + NOISE,
                    };
                    assert!(holds, "seed {seed}, step {step}: {verdict:?} made {had} {has}");
                }
            }
            // Mixed outcomes with runs, so that windows of equal outcomes occur as well.
            let lucky = random.below(4) < 1 + (seed % 3) as u32;
            history.push(TextObservation {
                day: Day(day),
                verdict: if lucky { Success } else { Failure },
            });
        }
    }
}

#[test]
fn weight_is_trust_discounted_per_hop_and_at_most_a_half() {
    let at = |hop| TrustStanding::At(Hop(hop));
    for (trust, standing, expect, reason) in [
        (0.10, at(0), 1.0, WeightReason::Own),
        (0.10, at(1), 0.07, WeightReason::Discounted),
        (0.60, at(1), 0.42, WeightReason::Discounted),
        (0.90, at(1), 0.50, WeightReason::Capped),
        (0.90, at(2), 0.441, WeightReason::Discounted),
        (0.90, at(3), 0.3087, WeightReason::Discounted),
        (0.90, at(4), 0.0, WeightReason::TooFar),
        (0.90, TrustStanding::Unknown, 0.0, WeightReason::TooFar),
        (0.90, TrustStanding::Blocked, 0.0, WeightReason::Blocked),
        (0.90, TrustStanding::Equivocating, 0.0, WeightReason::Equivocating),
        (f64::NAN, at(1), 0.0, WeightReason::Discounted),
    ] {
        let given = weight(trust, standing, &Params::default());
        assert!((given.value - expect).abs() < 1e-9, "{trust} {standing:?}: {given:?}");
        assert_eq!(given.reason, reason, "{trust} {standing:?}");
    }
}

#[test]
fn outcome_amounts_are_configurable_and_decay_alike() {
    let params = Params { success: 0.5, failure: 4.0, ..Params::default() };
    let given = trust(&observed(&[(31, "+-")]), Day(NOW), &params);
    let expect = (1.0 + 0.98 * 0.5, 1.0 + 0.98 * 4.0);
    let off = (given.all.alpha() - expect.0).abs() + (given.all.beta() - expect.1).abs();
    assert!(off < 1e-9, "{given:?}, not {expect:?}");
}

#[test]
fn a_weight_equal_to_the_bound_is_not_capped() {
    let params = Params { hop_factor: 0.5, weight_max: 0.5, ..Params::default() };
    let given = weight(1.0, TrustStanding::At(Hop(1)), &params);
    assert_eq!((given.value, given.reason), (0.5, WeightReason::Discounted));
}

fn judge_vouched(history: &[(u32, &str)], vouched_age: u32) -> Trust {
    let vouched = Some(Day(NOW - vouched_age));
    trust_vouched(&observed(history), vouched, Day(NOW), &Params::default())
}

#[test]
fn a_vouch_counts_as_three_decaying_successes() {
    assert!((judge_vouched(&[], 0).value - q10(4.0, 1.0)).abs() < 1e-9);
    assert!((judge_vouched(&[], 30).value - q10(4.0, 1.0)).abs() < 1e-9);
    let left = 3.0 * 0.98_f64.powi(70);
    assert!((judge_vouched(&[], 100).value - q10(1.0 + left, 1.0)).abs() < 1e-9);
    let params = Params::default();
    assert!((vouched_successes(Day(NOW - 100), Day(NOW), &params) - left).abs() < 1e-9);
    assert!((judge_vouched(&[], 5_000).value - judge(&[]).value).abs() < 1e-6);
}

#[test]
fn a_vouch_is_outside_the_daily_limit_and_is_displaced_by_outcomes() {
    let five = judge_vouched(&[(0, "+++++")], 0);
    assert_eq!((five.successes_ignored, five.all.alpha()), (0, 9.0));
    // Six outcomes fill the window, so that the vouch has no place in it.
    let misled = judge_vouched(&[(0, "------")], 0);
    assert_eq!((misled.recent.alpha(), misled.recent.beta()), (1.0, 13.0));
    assert!(misled.value < judge(&[]).value);
}

#[test]
fn a_vouch_never_lowers_trust_and_outcomes_stay_monotonic() {
    const NOISE: f64 = 1e-10;
    let params = Params::default();
    for seed in 0..200 {
        let mut random = SplitMix64(seed);
        let (mut day, mut history) = (NOW - 400, Vec::new());
        for step in 0..20 {
            day += random.below(25);
            // The operator may vouch at any time up to now.
            let vouched = Some(Day(day - random.below(60)));
            let at = |history: &[TextObservation]| {
                trust_vouched(history, vouched, Day(day), &params).value
            };
            let had = at(&history);
            assert!(had >= trust(&history, Day(day), &params).value - NOISE, "{seed}, {step}");
            for verdict in [Success, Failure] {
                let longer =
                    [history.as_slice(), &[TextObservation { day: Day(day), verdict }]].concat();
                let holds = match verdict {
                    Success => at(&longer) >= had - NOISE,
                    Failure => at(&longer) <= had + NOISE,
                };
                assert!(holds, "seed {seed}, step {step}: {verdict:?}");
            }
            let verdict = if random.below(3) == 0 { Failure } else { Success };
            history.push(TextObservation { day: Day(day), verdict });
        }
    }
}
