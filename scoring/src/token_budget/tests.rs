//! Test vectors of the budget: tiers, overflow by entry type, one line before dropping.

use super::EntryForm::{Full, Line, Standard, Summary};
use super::OmissionReason::{TooLong, TooMany};
use super::{
    BudgetItem, BudgetedEntry, Coverage, EntryForm, FittedAnswer, OmissionReason, Params, Tier,
    fit, form, lengthen,
};
use crate::thompson::SplitMix64;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::EntryId;
use quickcheck::QuickCheck;

fn tokens(_: EntryId, form: EntryForm) -> u32 {
    match form {
        Line => 10,
        Summary => 15,
        Standard => 75,
        EntryForm::Longer(steps) => 75 + 20 * u32::from(steps),
        Full => 200,
    }
}

fn item(name: u8, kind: EntryType, relevance: f64) -> BudgetItem {
    BudgetItem { entry: EntryId::from_bytes([name; 16]), kind, relevance, is_untried: false }
}

fn untried(name: u8, kind: EntryType, relevance: f64) -> BudgetItem {
    BudgetItem { is_untried: true, ..item(name, kind, relevance) }
}

fn lessons(relevances: &[f64]) -> Vec<BudgetItem> {
    (1..)
        .zip(relevances)
        .map(|(name, &relevance)| item(name, EntryType::Lesson, relevance))
        .collect()
}

fn check(
    items: &[BudgetItem],
    form: EntryForm,
    tokens_max: u32,
    shown: &[(u8, EntryForm)],
    left_out: &[(u8, OmissionReason)],
) -> FittedAnswer {
    let given = fit(items, &[], (form, tokens_max), &Params::default(), tokens);
    let id = |name| EntryId::from_bytes([name; 16]);
    let shown: Vec<BudgetedEntry> =
        shown.iter().map(|&(name, form)| BudgetedEntry { entry: id(name), form }).collect();
    let left_out: Vec<(EntryId, OmissionReason)> =
        left_out.iter().map(|&(name, reason)| (id(name), reason)).collect();
    assert_eq!((&given.shown, &given.left_out), (&shown, &left_out));
    given
}

#[test]
fn auto_shows_longer_forms_at_lower_coverage() {
    for (tier, sources, score, expect) in [
        (Tier::Auto, 2, 0.51, Summary),
        (Tier::Auto, 2, 0.50, Standard),
        (Tier::Auto, 1, 0.90, Standard),
        (Tier::Auto, 1, 0.36, Standard),
        (Tier::Auto, 1, 0.35, Full),
        (Tier::Auto, 0, 0.90, Full),
        (Tier::Summary, 0, 0.0, Summary),
        (Tier::Standard, 9, 0.9, Standard),
        (Tier::Full, 9, 0.9, Full),
    ] {
        let given = form(tier, Coverage { sources, score }, &Params::default());
        assert_eq!(given, expect, "{tier:?} with {sources} sources and score {score}");
    }
}

#[test]
fn entries_that_fit_are_shown_in_the_requested_form() {
    let items = lessons(&[0.9, 0.8]);
    let given = check(&items, Full, 400, &[(1, Full), (2, Full)], &[]);
    assert_eq!(given.tokens, 400);
    check(&[], Full, 400, &[], &[]);
}

#[test]
fn an_overflowing_answer_takes_the_best_of_each_type_first() {
    let mut items = lessons(&[0.9, 0.8, 0.7, 0.6, 0.5]);
    items.extend([
        item(6, EntryType::Spike, 0.4),
        item(7, EntryType::Norm, 0.3),
        item(8, EntryType::Norm, 0.2),
    ]);
    let kept = [(1, Summary), (2, Summary), (3, Summary), (6, Summary), (7, Summary)];
    check(&items, Summary, 500, &kept, &[(4, TooMany), (5, TooMany), (8, TooMany)]);
    // Without overflow no balancing happens.
    let all = [(1, Summary), (2, Summary), (3, Summary), (4, Summary), (5, Summary)];
    check(&items[..5], Summary, 500, &all, &[]);
}

#[test]
fn with_more_types_than_places_the_best_are_kept() {
    let kinds = [
        EntryType::Skill,
        EntryType::Lesson,
        EntryType::Spike,
        EntryType::Norm,
        EntryType::Finding,
        EntryType::Experience,
    ];
    let items: Vec<BudgetItem> =
        (1..).zip(kinds).map(|(name, kind)| item(name, kind, 0.5)).collect();
    let kept = [(1, Line), (2, Line), (3, Line), (4, Line), (5, Line)];
    check(&items, Line, 500, &kept, &[(6, TooMany)]);
}

#[test]
fn the_least_relevant_entries_become_one_line_first() {
    // The ranking uses more than relevance: the second is the least relevant.
    let items = lessons(&[0.9, 0.3, 0.6]);
    check(&items, Full, 600, &[(1, Full), (2, Full), (3, Full)], &[]);
    check(&items, Full, 599, &[(1, Full), (2, Line), (3, Full)], &[]);
    check(&items, Full, 409, &[(1, Full), (2, Line), (3, Line)], &[]);
    check(&items, Full, 219, &[(1, Line), (2, Line), (3, Line)], &[]);
    check(&items, Standard, 94, &[(1, Line), (2, Line), (3, Line)], &[]);
}

#[test]
fn entries_are_dropped_only_after_all_are_one_line() {
    let items = lessons(&[0.9, 0.3, 0.6]);
    check(&items, Full, 30, &[(1, Line), (2, Line), (3, Line)], &[]);
    check(&items, Full, 29, &[(1, Line), (3, Line)], &[(2, TooLong)]);
    check(&items, Full, 19, &[(1, Line)], &[(2, TooLong), (3, TooLong)]);
    check(&items, Full, 9, &[], &[(2, TooLong), (3, TooLong), (1, TooLong)]);
}

#[test]
fn of_equally_relevant_entries_the_lower_ranked_is_cut() {
    check(&lessons(&[0.5, 0.5]), Full, 210, &[(1, Full), (2, Line)], &[]);
    check(&lessons(&[0.5, 0.5]), Full, 10, &[(1, Line)], &[(2, TooLong)]);
}

#[test]
fn untried_entries_are_cut_first_at_any_relevance() {
    let tried = item(1, EntryType::Lesson, 0.4);
    let items = [tried, untried(2, EntryType::Lesson, 0.9), untried(3, EntryType::Lesson, 0.8)];
    check(&items, Full, 410, &[(1, Full), (2, Full), (3, Line)], &[]);
    check(&items, Full, 220, &[(1, Full), (2, Line), (3, Line)], &[]);
    check(&items, Full, 219, &[(1, Line), (2, Line), (3, Line)], &[]);
    check(&items, Full, 20, &[(1, Line), (2, Line)], &[(3, TooLong)]);
    check(&items, Full, 10, &[(1, Line)], &[(3, TooLong), (2, TooLong)]);
    // An entry type of its own does not give an untried entry the place of a tried one.
    let mut items = lessons(&[0.9, 0.8, 0.7, 0.6, 0.5]);
    items.push(untried(6, EntryType::Norm, 0.9));
    let kept = [(1, Line), (2, Line), (3, Line), (4, Line), (5, Line)];
    check(&items, Line, 500, &kept, &[(6, TooMany)]);
    // A contradiction with another entry does not keep an untried entry in place of a tried one.
    let items = [tried, item(4, EntryType::Lesson, 0.3), untried(2, EntryType::Lesson, 0.9)];
    let rivals = [(items[0].entry, items[2].entry)];
    let given = fit(&items, &rivals, (Line, 20), &Params::default(), tokens);
    let shown: Vec<EntryId> = given.shown.iter().map(|shown| shown.entry).collect();
    assert_eq!(shown, [items[0].entry, items[1].entry]);
}

#[test]
fn any_answer_fits_its_budget_and_accounts_for_every_entry() {
    let kinds = [EntryType::Lesson, EntryType::Spike, EntryType::Norm, EntryType::Skill];
    for seed in 0..500 {
        let mut random = SplitMix64(seed);
        let count = random.below(9) as u8;
        let mut prices = Vec::new();
        let items: Vec<BudgetItem> = (0..count)
            .map(|name| {
                let line = 5 + random.below(20);
                let full = line + random.below(400);
                prices.push((line, full));
                item(name, kinds[random.below(4) as usize], random.share())
            })
            .collect();
        let tokens = |entry: EntryId, form: EntryForm| {
            let (line, full) = prices[usize::from(entry.as_bytes()[0])];
            if form == Line { line } else { full }
        };
        let tokens_max = random.below(600);
        let mut any = || EntryId::from_bytes([random.below(9) as u8; 16]);
        let rivals = [(any(), any()), (any(), any())];
        let given = fit(&items, &rivals, (Full, tokens_max), &Params::default(), tokens);
        assert!(given.tokens <= u64::from(tokens_max), "seed {seed}");
        assert!(given.shown.len() <= 5, "seed {seed}");
        assert_eq!(given.shown.len() + given.left_out.len(), items.len(), "seed {seed}");
        let dropped = given.left_out.iter().any(|(_, reason)| *reason == TooLong);
        let all_lines = given.shown.iter().all(|shown| shown.form == Line);
        assert!(!dropped || all_lines, "seed {seed}: dropped one while another was long");
    }
}

#[test]
fn contradicting_entries_are_shown_together() {
    let id = |name: u8| EntryId::from_bytes([name; 16]);
    let shown = |relevances: &[f64], rivals: &[(u8, u8)], tokens_max, entries_max| {
        let rivals: Vec<_> = rivals.iter().map(|&(one, two)| (id(one), id(two))).collect();
        let params = Params { entries_max, ..Params::default() };
        let given = fit(&lessons(relevances), &rivals, (Line, tokens_max), &params, tokens);
        given.shown.iter().map(|shown| shown.entry.as_bytes()[0]).collect::<Vec<u8>>()
    };
    let six = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4];
    assert_eq!(shown(&six, &[], 999, 5), [1, 2, 3, 4, 5]);
    assert_eq!(shown(&six, &[(1, 6)], 999, 5), [1, 2, 3, 4, 6]);
    assert_eq!(shown(&six, &[(6, 5)], 999, 5), [1, 2, 3, 5, 6]);
    assert_eq!(shown(&six, &[(1, 5), (1, 6)], 999, 2), [1, 5], "there is room for two");
    assert_eq!(shown(&six, &[(1, 6)], 999, 1), [1], "there is room for one");
    // With too few tokens, entries without a contradiction are dropped first.
    assert_eq!(shown(&[0.9, 0.2, 0.1], &[(2, 3)], 20, 5), [2, 3]);
}

#[test]
fn the_remaining_budget_lengthens_the_first_entries() {
    let grown = |tokens_max, may_grow: &[u8]| {
        let fitted = fit(&lessons(&[0.9, 0.8]), &[], (Summary, 500), &Params::default(), tokens);
        let may_grow = |entry: EntryId| may_grow.contains(&entry.as_bytes()[0]);
        let given = lengthen(fitted, tokens_max, may_grow, tokens);
        let forms: Vec<EntryForm> = given.shown.iter().map(|shown| shown.form).collect();
        (forms, given.tokens)
    };
    assert_eq!(grown(30, &[1, 2]), (vec![Summary, Summary], 30), "nothing is left");
    assert_eq!(grown(89, &[1, 2]), (vec![Summary, Summary], 30), "too little is left");
    assert_eq!(grown(90, &[1, 2]), (vec![Standard, Summary], 90));
    assert_eq!(grown(130, &[1, 2]), (vec![EntryForm::Longer(2), Summary], 130));
    assert_eq!(grown(275, &[1, 2]), (vec![Full, Standard], 275));
    assert_eq!(grown(1_000, &[1, 2]), (vec![Full, Full], 400));
    assert_eq!(grown(1_000, &[2]), (vec![Summary, Full], 215), "the first may not grow");
}

#[test]
fn a_lengthened_answer_keeps_its_budget_and_all_entries() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(prices: Vec<(u8, [u8; 9])>, tokens_max: u16, grows: u8) -> bool {
        let items: Vec<BudgetItem> = (0..)
            .zip(&prices)
            .take(9)
            .map(|(name, _)| item(name, EntryType::Lesson, 1.0 / f64::from(name + 1)))
            .collect();
        // Longer forms may cost less: the test assigns arbitrary costs.
        let tokens = |entry: EntryId, form: EntryForm| {
            let (line, more) = &prices[usize::from(entry.as_bytes()[0])];
            let at = match form {
                Line => return u32::from(*line),
                Summary => 0,
                Standard => 1,
                EntryForm::Longer(steps) => 1 + usize::from(steps),
                Full => 8,
            };
            u32::from(more[at])
        };
        let (params, tokens_max) = (Params::default(), u32::from(tokens_max % 1_500));
        let fitted = fit(&items, &[], (Summary, tokens_max), &params, tokens);
        let may_grow = |entry: EntryId| grows & (1 << (entry.as_bytes()[0] % 8)) != 0;
        let given = lengthen(fitted.clone(), tokens_max, may_grow, tokens);
        let sum: u64 = given.shown.iter().map(|one| u64::from(tokens(one.entry, one.form))).sum();
        let pairs = given.shown.iter().zip(&fitted.shown);
        let is_no_less = pairs.clone().all(|(one, before)| {
            one.entry == before.entry
                && one.form >= before.form
                && (one.form == before.form || may_grow(one.entry))
        });
        sum == given.tokens && given.tokens <= u64::from(tokens_max) && is_no_less
    }
    QuickCheck::new().tests(3_000).quickcheck(holds as fn(Vec<(u8, [u8; 9])>, u16, u8) -> bool);
}
