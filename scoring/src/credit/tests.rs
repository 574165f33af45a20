//! Test vectors of credit: amounts by quality and rank, shares, restoration and reset.

use super::TaskVerdict::{Failure, Success};
use super::{
    CreditReason, NamedEntries, Params, ResetDecision, ServedRank, TaskOutcome, TaskVerdict,
    amount, credits, feedback, reset, restoration,
};
use crate::decay::DecayClass;
use crate::posterior::Posterior;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;

fn entry(name: u8) -> EntryId {
    EntryId::from_bytes([name; 16])
}

/// Checks the credits of a success of quality 0.5, whose full amount is 1.0.
fn check(served: &[(u8, u32)], named: &[u8], expect: &[(u8, u64, CreditReason)]) {
    check_without(&[], served, named, expect);
}

/// As `check`, with dismissed entries.
fn check_without(
    dismissed: &[u8],
    served: &[(u8, u32)],
    named: &[u8],
    expect: &[(u8, u64, CreditReason)],
) {
    let served: Vec<ServedRank> =
        served.iter().map(|&(name, rank)| ServedRank { entry: entry(name), rank }).collect();
    let [named, dismissed] = [named, dismissed]
        .map(|names| names.iter().map(|&name| entry(name)).collect::<Vec<EntryId>>());
    let outcome = TaskOutcome { verdict: Success, quality: 0.5 };
    let named = NamedEntries { used: &named, incidental: &[] };
    let given: Vec<(EntryId, Thousandths, CreditReason)> =
        credits(outcome, &served, named, &dismissed, &Params::default())
            .into_iter()
            .map(|credit| (credit.entry, credit.amount, credit.reason))
            .collect();
    let expect: Vec<(EntryId, Thousandths, CreditReason)> = expect
        .iter()
        .map(|&(name, amount, reason)| (entry(name), Thousandths(amount), reason))
        .collect();
    assert_eq!(given, expect, "served {served:?}, named {named:?}");
}

#[test]
fn the_amount_is_between_0_5_and_1_5_depending_on_quality() {
    for (verdict, quality, expect) in [
        (Success, 0.0, 0.5),
        (Success, 0.4, 0.9),
        (Success, 1.0, 1.5),
        (Success, 3.0, 1.5),
        (Success, -1.0, 0.5),
        (Failure, 0.0, 1.5),
        (Failure, 0.4, 1.1),
        (Failure, 1.0, 0.5),
        (Failure, f64::NAN, 1.0),
    ] {
        let given = amount(TaskOutcome { verdict, quality }, &Params::default());
        assert!((given - expect).abs() < 1e-9, "{verdict:?} of quality {quality}: {given}");
    }
}

#[test]
fn named_entries_are_credited_by_their_rank() {
    let served = [(1, 0), (2, 1), (3, 2), (4, 3)];
    check(&served, &[1], &[(1, 1000, CreditReason::Named)]);
    check(&served, &[4, 2], &[(2, 700, CreditReason::Named), (4, 343, CreditReason::Named)]);
}

#[test]
fn without_named_entries_the_first_three_share_at_half_weight() {
    let expect = [
        (1, 500, CreditReason::AmongFirst),
        (2, 350, CreditReason::AmongFirst),
        (3, 245, CreditReason::AmongFirst),
    ];
    check(&[(1, 0), (2, 1), (3, 2), (4, 3)], &[], &expect);
    check(&[(1, 0)], &[], &expect[..1]);
    check(&[], &[], &[]);
}

#[test]
fn an_entry_served_twice_is_credited_once_at_its_best_rank() {
    check(&[(1, 3), (2, 0), (1, 1)], &[1], &[(1, 700, CreditReason::Named)]);
    check(&[(1, 1), (2, 0), (1, 3)], &[1], &[(1, 700, CreditReason::Named)]);
    check(
        &[(1, 0), (1, 0), (2, 1), (3, 2)],
        &[],
        &[
            (1, 500, CreditReason::AmongFirst),
            (2, 350, CreditReason::AmongFirst),
            (3, 245, CreditReason::AmongFirst),
        ],
    );
}

#[test]
fn naming_an_unserved_entry_credits_nothing() {
    check(&[(1, 0), (2, 1)], &[9], &[]);
    check(&[(1, 0), (2, 1)], &[9, 2], &[(2, 700, CreditReason::Named)]);
}

#[test]
fn dismissed_entries_get_no_credit_and_take_no_place_among_the_first() {
    let served = [(1, 0), (2, 1), (3, 2), (4, 4)];
    let rest = [
        (2, 350, CreditReason::AmongFirst),
        (3, 245, CreditReason::AmongFirst),
        (4, 120, CreditReason::AmongFirst),
    ];
    check_without(&[1], &served, &[], &rest);
    check_without(&[1, 2, 3, 4], &served, &[], &[]);
    check_without(&[1], &served, &[1, 2], &[(2, 700, CreditReason::Named)]);
}

#[test]
fn an_answer_by_the_way_counts_half() {
    let outcome = TaskOutcome { verdict: Success, quality: 0.5 };
    let served = [1, 2, 3].map(|name| ServedRank { entry: entry(name), rank: 0 });
    let named = NamedEntries { used: &[entry(1), entry(2)], incidental: &[entry(2)] };
    let given = credits(outcome, &served, named, &[], &Params::default());
    let amounts: Vec<_> = given.iter().map(|of| (of.amount.0, of.reason)).collect();
    assert_eq!(amounts, [(1_000, CreditReason::Named), (500, CreditReason::Incidental)]);
}

#[test]
fn a_failure_uses_the_same_shares_as_a_success() {
    let outcome = TaskOutcome { verdict: Failure, quality: 0.2 };
    let served = [ServedRank { entry: entry(1), rank: 1 }];
    let named = NamedEntries { used: &[entry(1)], incidental: &[] };
    let given = credits(outcome, &served, named, &[], &Params::default());
    assert_eq!(given[0].amount, Thousandths(910)); // 1.3 · 0.7
}

#[test]
fn explicit_feedback_is_one_observation() {
    assert_eq!(feedback(&Params::default()), Thousandths(1000));
}

#[test]
fn a_success_restores_a_fifth_of_the_alpha_a_lasting_entry_has_lost() {
    for (class, alpha, peak, expect) in [
        (DecayClass::Stable, 8.0, 28.0, 4_000),
        (DecayClass::Permanent, 5.0, 11.0, 1_200),
        (DecayClass::Ephemeral, 8.0, 28.0, 0),
        (DecayClass::Stable, 14.0, 28.0, 0),
        (DecayClass::Stable, 13.999, 28.0, 2_800),
        (DecayClass::Stable, 30.0, 28.0, 0),
    ] {
        let given = restoration(class, alpha, peak, &Params::default());
        assert_eq!(given, Thousandths(expect), "{class:?}, α {alpha}, peak {peak}");
    }
}

#[test]
fn only_an_entry_with_many_inconclusive_observations_may_be_reset() {
    for (alpha, beta, expect) in [
        (30.0, 30.0, ResetDecision::Allowed),
        (21.0, 39.0, ResetDecision::Allowed),
        (39.0, 21.0, ResetDecision::Allowed),
        (29.9, 30.0, ResetDecision::TooFewObservations),
        (20.0, 40.0, ResetDecision::Decided),
        (40.0, 20.0, ResetDecision::Decided),
    ] {
        let posterior = Posterior::new(alpha, beta);
        let given = reset(&posterior, alpha + beta - 10.0, &Params::default());
        assert_eq!(given, expect, "Beta({alpha}, {beta})");
    }
}

#[test]
fn the_two_verdicts_mirror_each_other() {
    let of = |verdict: TaskVerdict, quality| {
        amount(TaskOutcome { verdict, quality }, &Params::default())
    };
    for quality in [0.0, 0.1, 0.5, 0.9, 1.0] {
        assert!((of(Success, quality) - of(Failure, 1.0 - quality)).abs() < 1e-12);
    }
}
