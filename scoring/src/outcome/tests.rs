//! Vectors of outcomes: amounts by quality and rank, who shares in them, restoration and reset.

use super::Verdict::{Failure, Success};
use super::{
    Outcome, Params, Reason, Reset, Served, Verdict, amount, credits, feedback, reset, restoration,
};
use crate::decay::Class;
use crate::posterior::Posterior;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;

fn entry(name: u8) -> EntryId {
    EntryId::from_bytes([name; 16])
}

/// Checks the credits of a success of quality 0.5, whose whole amount is 1.0.
fn check(served: &[(u8, u32)], named: &[u8], expect: &[(u8, u64, Reason)]) {
    check_without(&[], served, named, expect);
}

/// The same where something was dismissed.
fn check_without(
    dismissed: &[u8],
    served: &[(u8, u32)],
    named: &[u8],
    expect: &[(u8, u64, Reason)],
) {
    let served: Vec<Served> =
        served.iter().map(|&(name, rank)| Served { entry: entry(name), rank }).collect();
    let [named, dismissed] = [named, dismissed]
        .map(|names| names.iter().map(|&name| entry(name)).collect::<Vec<EntryId>>());
    let outcome = Outcome { verdict: Success, quality: 0.5 };
    let given: Vec<(EntryId, Thousandths, Reason)> =
        credits(outcome, &served, &named, &dismissed, &Params::default())
            .into_iter()
            .map(|credit| (credit.entry, credit.amount, credit.reason))
            .collect();
    let expect: Vec<(EntryId, Thousandths, Reason)> = expect
        .iter()
        .map(|&(name, amount, reason)| (entry(name), Thousandths(amount), reason))
        .collect();
    assert_eq!(given, expect, "served {served:?}, named {named:?}");
}

#[test]
fn quality_moves_an_outcome_between_a_half_and_one_and_a_half() {
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
        let given = amount(Outcome { verdict, quality }, &Params::default());
        assert!((given - expect).abs() < 1e-9, "{verdict:?} of quality {quality}: {given}");
    }
}

#[test]
fn named_entries_share_by_the_place_at_which_they_were_served() {
    let served = [(1, 0), (2, 1), (3, 2), (4, 3)];
    check(&served, &[1], &[(1, 1000, Reason::Named)]);
    check(&served, &[4, 2], &[(2, 700, Reason::Named), (4, 343, Reason::Named)]);
}

#[test]
fn where_none_is_named_the_first_three_share_at_half_weight() {
    let expect =
        [(1, 500, Reason::AmongFirst), (2, 350, Reason::AmongFirst), (3, 245, Reason::AmongFirst)];
    check(&[(1, 0), (2, 1), (3, 2), (4, 3)], &[], &expect);
    check(&[(1, 0)], &[], &expect[..1]);
    check(&[], &[], &[]);
}

#[test]
fn an_entry_served_twice_is_credited_once_at_its_best_place() {
    check(&[(1, 3), (2, 0), (1, 1)], &[1], &[(1, 700, Reason::Named)]);
    check(&[(1, 1), (2, 0), (1, 3)], &[1], &[(1, 700, Reason::Named)]);
    check(
        &[(1, 0), (1, 0), (2, 1), (3, 2)],
        &[],
        &[(1, 500, Reason::AmongFirst), (2, 350, Reason::AmongFirst), (3, 245, Reason::AmongFirst)],
    );
}

#[test]
fn naming_what_was_not_served_credits_nothing() {
    check(&[(1, 0), (2, 1)], &[9], &[]);
    check(&[(1, 0), (2, 1)], &[9, 2], &[(2, 700, Reason::Named)]);
}

#[test]
fn what_was_dismissed_shares_in_nothing_and_takes_no_place_among_the_first() {
    let served = [(1, 0), (2, 1), (3, 2), (4, 4)];
    let rest =
        [(2, 350, Reason::AmongFirst), (3, 245, Reason::AmongFirst), (4, 120, Reason::AmongFirst)];
    check_without(&[1], &served, &[], &rest);
    check_without(&[1, 2, 3, 4], &served, &[], &[]);
    check_without(&[1], &served, &[1, 2], &[(2, 700, Reason::Named)]);
}

#[test]
fn a_failure_is_blamed_by_the_same_shares() {
    let outcome = Outcome { verdict: Failure, quality: 0.2 };
    let served = [Served { entry: entry(1), rank: 1 }];
    let given = credits(outcome, &served, &[entry(1)], &[], &Params::default());
    assert_eq!(given[0].amount, Thousandths(910)); // 1.3 · 0.7
}

#[test]
fn explicit_feedback_is_one_observation() {
    assert_eq!(feedback(&Params::default()), Thousandths(1000));
}

#[test]
fn a_success_restores_a_fifth_of_what_a_lasting_entry_has_lost() {
    for (class, alpha, peak, expect) in [
        (Class::Stable, 8.0, 28.0, 4_000),
        (Class::Permanent, 5.0, 11.0, 1_200),
        (Class::Ephemeral, 8.0, 28.0, 0),
        (Class::Stable, 14.0, 28.0, 0),
        (Class::Stable, 13.999, 28.0, 2_800),
        (Class::Stable, 30.0, 28.0, 0),
    ] {
        let given = restoration(class, alpha, peak, &Params::default());
        assert_eq!(given, Thousandths(expect), "{class:?}, α {alpha}, peak {peak}");
    }
}

#[test]
fn only_an_entry_with_many_observations_that_say_nothing_may_be_reset() {
    for (alpha, beta, expect) in [
        (30.0, 30.0, Reset::Allowed),
        (21.0, 39.0, Reset::Allowed),
        (39.0, 21.0, Reset::Allowed),
        (29.9, 30.0, Reset::TooFewObservations),
        (20.0, 40.0, Reset::Decided),
        (40.0, 20.0, Reset::Decided),
    ] {
        let posterior = Posterior::new(alpha, beta);
        let given = reset(&posterior, alpha + beta - 10.0, &Params::default());
        assert_eq!(given, expect, "Beta({alpha}, {beta})");
    }
}

#[test]
fn the_two_verdicts_mirror_each_other() {
    let of = |verdict: Verdict, quality| amount(Outcome { verdict, quality }, &Params::default());
    for quality in [0.0, 0.1, 0.5, 0.9, 1.0] {
        assert!((of(Success, quality) - of(Failure, 1.0 - quality)).abs() < 1e-12);
    }
}
