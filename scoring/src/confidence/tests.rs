//! Test vectors of confidence: the formula, the bounds on other authors, and their consequences.

use super::{
    Author, AuthorRelation, Cell, Confidence, ContributionBound, Params, cells, confidence,
};
use crate::decay::{DecayClass, DecayInputs};
use klnode_crdt::entry_view::AuthorCounts;
use klnode_crdt::gcounter::{CountedAmount, Thousandths};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;

const NOW: u32 = 20_000;
const OWN: AuthorRelation = AuthorRelation::Own;

fn cell(age: u32, successes: u64, failures: u64) -> Cell {
    let (successes, failures) = (Thousandths(successes * 1000), Thousandths(failures * 1000));
    Cell { day: Day(NOW - age), successes, failures }
}

fn id(name: u8) -> AuthorId {
    AuthorId::from_bytes([name; 32])
}

fn member(weight: f64) -> AuthorRelation {
    AuthorRelation::Member { weight }
}

fn non_member(weight: f64, via: u8, via_weight: f64) -> AuthorRelation {
    AuthorRelation::NonMember { weight, via: id(via), via_weight }
}

fn judge(
    class: DecayClass,
    archived_ago: Option<u32>,
    authors: &[(AuthorRelation, &[Cell])],
) -> Confidence {
    let authors: Vec<Author<'_>> = (0_u8..=u8::MAX)
        .cycle()
        .zip(authors)
        .map(|(name, &(standing, cells))| Author { id: id(name), standing, cells })
        .collect();
    let archived = archived_ago.map(|ago| Day(NOW - ago));
    confidence(&authors, DecayInputs { class, archived, now: Day(NOW) }, &Params::default())
}

/// Checks α and β of a permanent entry, for which only weights and bounds matter.
fn check(authors: &[(AuthorRelation, &[Cell])], alpha: f64, beta: f64) -> Confidence {
    let given = judge(DecayClass::Permanent, None, authors);
    expect(&given, alpha, beta);
    given
}

fn expect(given: &Confidence, alpha: f64, beta: f64) {
    let (a, b) = (given.posterior.alpha(), given.posterior.beta());
    assert!((a - alpha).abs() < 1e-4 && (b - beta).abs() < 1e-4, "Beta({a}, {b})");
    assert!((given.effective_observations - (alpha + beta - 10.0)).abs() < 1e-4);
}

#[test]
fn counts_of_a_view_become_dated_cells() {
    let counted = |age_days, amount| {
        let (amount, is_folded) = (Thousandths(amount), false);
        CountedAmount { age_days, amount, is_folded }
    };
    let counts = AuthorCounts {
        successes: vec![counted(0, 1_000), counted(3, 500)],
        failures: vec![counted(200, 2_000)],
        confirmations: vec![counted(1, 1_000)],
    };
    let of = |day, successes, failures| Cell {
        day: Day(day),
        successes: Thousandths(successes),
        failures: Thousandths(failures),
    };
    let expected = [of(NOW, 1_000, 0), of(NOW - 3, 500, 0), of(NOW - 200, 0, 2_000)];
    assert_eq!(cells(&counts, Day(NOW)), expected);
}

#[test]
fn an_unobserved_entry_has_the_prior() {
    let given = check(&[], 5.0, 5.0);
    assert_eq!(given.posterior.mean(), 0.5);
    assert_eq!(given.effective_observations, 0.0);
    assert!((given.posterior.lower_bound() - 0.300_969).abs() < 1e-6);
}

#[test]
fn own_cells_count_fully_and_without_a_bound() {
    check(&[(OWN, &[cell(0, 30, 4), cell(9, 70, 1)])], 105.0, 10.0);
}

#[test]
fn each_observation_decays_from_its_own_day() {
    // 0.98^10 = 0.817073: a failure today does not change the successes of ten days ago.
    let given = judge(DecayClass::Ephemeral, None, &[(OWN, &[cell(10, 4, 0), cell(0, 0, 1)])]);
    expect(&given, 5.0 + 4.0 * 0.817_073, 6.0);
}

#[test]
fn a_cell_dated_in_the_future_counts_from_its_day_on() {
    let ahead = Cell { day: Day(NOW + 1), ..cell(0, 3, 0) };
    check(&[(OWN, &[ahead])], 5.0, 5.0);
    check(&[(OWN, &[Cell { day: Day(NOW), ..ahead }])], 8.0, 5.0);
}

#[test]
fn an_archived_entry_decays_to_its_prior_and_no_further() {
    let cells = [cell(2, 40, 10)];
    let given = judge(DecayClass::Ephemeral, Some(2), &[(OWN, &cells)]);
    expect(&given, 5.0 + 40.0 * 0.7225, 5.0 + 10.0 * 0.7225);
    let given = judge(DecayClass::Ephemeral, Some(400), &[(OWN, &[cell(500, 40, 10)])]);
    expect(&given, 5.0, 5.0);
    assert!(given.posterior.alpha() >= 5.0 && given.posterior.beta() >= 5.0);
}

#[test]
fn a_member_counts_by_its_weight_up_to_twenty_times_that_weight() {
    check(&[(member(0.5), &[cell(0, 8, 2)])], 9.0, 6.0);
    // 100 observations at 0.5 are 50, of which 10 count, still in the ratio 4 : 1.
    let given = check(&[(member(0.5), &[cell(0, 80, 20)])], 13.0, 7.0);
    assert_eq!(given.contributions[0].bounds, [ContributionBound::Member]);
    assert_eq!(given.contributions[0].mass_offered, 50.0);
    // Members are bounded one by one.
    let flood: &[Cell] = &[cell(0, 1_000, 0)];
    check(&[(member(0.5), flood), (member(0.07), flood)], 5.0 + 10.0 + 1.4, 5.0);
}

#[test]
fn a_counter_at_its_limit_moves_confidence_by_no_more_than_the_bound() {
    let most = Cell { day: Day(NOW), successes: Thousandths(u64::MAX), failures: Thousandths(0) };
    check(&[(member(0.5), &[most; 40])], 15.0, 5.0);
}

#[test]
fn records_through_one_peer_weigh_no_more_than_that_peer() {
    let flood: &[Cell] = &[cell(0, 0, 50)];
    let sybil = (non_member(0.05, 9, 0.07), flood);
    // A thousand identities through a peer of weight 0.07 have a mass of 1.4 in total.
    let given = check(&vec![sybil; 1_000], 5.0, 5.0 + 1.4);
    assert_eq!(given.contributions[0].bounds, [ContributionBound::Peer(id(9))]);
    // A peer that is not a member is bounded together with the records it delivers.
    check(&[(non_member(0.07, 9, 0.07), flood), sybil], 5.0, 5.0 + 1.4);
    // Records through a peer without weight do not count.
    check(&[(non_member(0.05, 9, 0.0), flood)], 5.0, 5.0);
}

#[test]
fn all_non_members_together_weigh_no_more_than_the_prior() {
    let good: &[Cell] = &[cell(0, 100, 0)];
    let bad: &[Cell] = &[cell(0, 0, 100)];
    // Each of two peers lets 8 (0.4 · 20) pass; of these 16, in equal parts, 10 count.
    let authors = [(non_member(0.3, 8, 0.4), good), (non_member(0.3, 9, 0.4), bad)];
    let given = check(&authors, 10.0, 10.0);
    assert_eq!(
        given.contributions[0].bounds,
        [ContributionBound::Peer(id(8)), ContributionBound::NonMembers]
    );
    // Members are outside this bound.
    let authors = [authors[0], authors[1], (member(0.5), good)];
    check(&authors, 20.0, 10.0);
}

#[test]
fn an_author_without_weight_adds_nothing() {
    let cells: &[Cell] = &[cell(0, 9, 9)];
    check(&[(member(0.0), cells), (member(f64::NAN), cells)], 5.0, 5.0);
}

#[test]
fn contributions_name_their_authors_and_sum_to_the_posterior() {
    let cells: &[Cell] = &[cell(0, 60, 30)];
    let given = judge(
        DecayClass::Stable,
        None,
        &[(OWN, &[cell(3, 2, 1)]), (member(0.4), cells), (non_member(0.2, 9, 0.3), cells)],
    );
    let alpha: f64 = given.contributions.iter().map(|one| one.alpha).sum();
    let names: Vec<AuthorId> = given.contributions.iter().map(|one| one.author).collect();
    assert_eq!(names, [id(0), id(1), id(2)]);
    assert!((5.0 + alpha - given.posterior.alpha()).abs() < 1e-9);
    assert!((given.own.alpha() - (5.0 + 2.0 * 0.995_f64.powi(3))).abs() < 1e-9);
}

#[test]
fn neither_parameter_falls_below_the_floor() {
    let params = Params { prior_alpha: 0.2, prior_beta: 0.0, ..Params::default() };
    let ageing = DecayInputs { class: DecayClass::Permanent, archived: None, now: Day(NOW) };
    let given = confidence(&[], ageing, &params);
    assert_eq!((given.posterior.alpha(), given.posterior.beta()), (1.0, 1.0));
}

#[test]
fn prior_evidence_adds_two_observations_at_most_and_leaves_the_own_posterior() {
    let own = [cell(0, 1, 0)];
    let (params, now) = (Params::default(), Day(NOW));
    for (class, prior, alpha, beta) in [
        (DecayClass::Permanent, cell(0, 1, 1), 7.0, 6.0),
        (DecayClass::Permanent, cell(0, 40, 0), 8.0, 5.0),
        (DecayClass::Permanent, cell(0, 30, 10), 7.5, 5.5),
        (DecayClass::Permanent, cell(0, 0, 0), 6.0, 5.0),
        (DecayClass::Ephemeral, cell(34, 40, 0), 6.0 + 2.0 * 0.98_f64.powi(34), 5.0),
    ] {
        let ageing = DecayInputs { class, archived: None, now };
        let given = judge(class, None, &[(OWN, &own)]).with_imported(&prior, ageing, &params);
        expect(&given, alpha, beta);
        assert!((given.own.alpha() - 6.0).abs() < 1e-9 && (given.own.beta() - 5.0).abs() < 1e-9);
    }
}
