//! Vectors of the budget: tiers, overflow by category, one line before dropping.

use super::Form::{Full, Line, Standard, Summary};
use super::Reason::{TooLong, TooMany};
use super::{Coverage, Fitted, Form, Item, Params, Reason, Shown, Tier, fit, form, lengthen};
use crate::thompson::SplitMix64;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::Kind;
use quickcheck::QuickCheck;

fn tokens(_: EntryId, form: Form) -> u32 {
    match form {
        Line => 10,
        Summary => 15,
        Standard => 75,
        Form::Longer(steps) => 75 + 20 * u32::from(steps),
        Full => 200,
    }
}

fn item(name: u8, kind: Kind, relevance: f64) -> Item {
    Item { entry: EntryId::from_bytes([name; 16]), kind, relevance, is_untried: false }
}

fn untried(name: u8, kind: Kind, relevance: f64) -> Item {
    Item { is_untried: true, ..item(name, kind, relevance) }
}

fn lessons(relevances: &[f64]) -> Vec<Item> {
    (1..).zip(relevances).map(|(name, &relevance)| item(name, Kind::Lesson, relevance)).collect()
}

fn check(
    items: &[Item],
    form: Form,
    tokens_max: u32,
    shown: &[(u8, Form)],
    left_out: &[(u8, Reason)],
) -> Fitted {
    let given = fit(items, &[], (form, tokens_max), &Params::default(), tokens);
    let id = |name| EntryId::from_bytes([name; 16]);
    let shown: Vec<Shown> =
        shown.iter().map(|&(name, form)| Shown { entry: id(name), form }).collect();
    let left_out: Vec<(EntryId, Reason)> =
        left_out.iter().map(|&(name, reason)| (id(name), reason)).collect();
    assert_eq!((&given.shown, &given.left_out), (&shown, &left_out));
    given
}

#[test]
fn auto_shows_more_of_each_entry_the_thinner_the_coverage() {
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
fn what_fits_is_shown_as_asked() {
    let items = lessons(&[0.9, 0.8]);
    let given = check(&items, Full, 400, &[(1, Full), (2, Full)], &[]);
    assert_eq!(given.tokens, 400);
    check(&[], Full, 400, &[], &[]);
}

#[test]
fn an_overflowing_answer_takes_the_top_of_each_category_first() {
    let mut items = lessons(&[0.9, 0.8, 0.7, 0.6, 0.5]);
    items.extend([item(6, Kind::Spike, 0.4), item(7, Kind::Norm, 0.3), item(8, Kind::Norm, 0.2)]);
    let kept = [(1, Summary), (2, Summary), (3, Summary), (6, Summary), (7, Summary)];
    check(&items, Summary, 500, &kept, &[(4, TooMany), (5, TooMany), (8, TooMany)]);
    // Without overflow nothing is balanced.
    let all = [(1, Summary), (2, Summary), (3, Summary), (4, Summary), (5, Summary)];
    check(&items[..5], Summary, 500, &all, &[]);
}

#[test]
fn more_categories_than_places_keep_the_best_of_them() {
    let kinds =
        [Kind::Skill, Kind::Lesson, Kind::Spike, Kind::Norm, Kind::Finding, Kind::Experience];
    let items: Vec<Item> = (1..).zip(kinds).map(|(name, kind)| item(name, kind, 0.5)).collect();
    let kept = [(1, Line), (2, Line), (3, Line), (4, Line), (5, Line)];
    check(&items, Line, 500, &kept, &[(6, TooMany)]);
}

#[test]
fn the_least_relevant_entries_become_one_line_first() {
    // Ranked by more than relevance: the second is the least relevant.
    let items = lessons(&[0.9, 0.3, 0.6]);
    check(&items, Full, 600, &[(1, Full), (2, Full), (3, Full)], &[]);
    check(&items, Full, 599, &[(1, Full), (2, Line), (3, Full)], &[]);
    check(&items, Full, 409, &[(1, Full), (2, Line), (3, Line)], &[]);
    check(&items, Full, 219, &[(1, Line), (2, Line), (3, Line)], &[]);
    check(&items, Standard, 94, &[(1, Line), (2, Line), (3, Line)], &[]);
}

#[test]
fn only_when_all_are_one_line_is_the_least_relevant_dropped() {
    let items = lessons(&[0.9, 0.3, 0.6]);
    check(&items, Full, 30, &[(1, Line), (2, Line), (3, Line)], &[]);
    check(&items, Full, 29, &[(1, Line), (3, Line)], &[(2, TooLong)]);
    check(&items, Full, 19, &[(1, Line)], &[(2, TooLong), (3, TooLong)]);
    check(&items, Full, 9, &[], &[(2, TooLong), (3, TooLong), (1, TooLong)]);
}

#[test]
fn of_equally_relevant_entries_the_lower_placed_makes_way() {
    check(&lessons(&[0.5, 0.5]), Full, 210, &[(1, Full), (2, Line)], &[]);
    check(&lessons(&[0.5, 0.5]), Full, 10, &[(1, Line)], &[(2, TooLong)]);
}

#[test]
fn what_nobody_has_tried_makes_way_first_however_relevant_it_is() {
    let tried = item(1, Kind::Lesson, 0.4);
    let items = [tried, untried(2, Kind::Lesson, 0.9), untried(3, Kind::Lesson, 0.8)];
    check(&items, Full, 410, &[(1, Full), (2, Full), (3, Line)], &[]);
    check(&items, Full, 220, &[(1, Full), (2, Line), (3, Line)], &[]);
    check(&items, Full, 219, &[(1, Line), (2, Line), (3, Line)], &[]);
    check(&items, Full, 20, &[(1, Line), (2, Line)], &[(3, TooLong)]);
    check(&items, Full, 10, &[(1, Line)], &[(3, TooLong), (2, TooLong)]);
    // A category of its own gives it no place that something tried has.
    let mut items = lessons(&[0.9, 0.8, 0.7, 0.6, 0.5]);
    items.push(untried(6, Kind::Norm, 0.9));
    let kept = [(1, Line), (2, Line), (3, Line), (4, Line), (5, Line)];
    check(&items, Line, 500, &kept, &[(6, TooMany)]);
    // Nor does it stay where something tried goes, by saying the opposite of another.
    let items = [tried, item(4, Kind::Lesson, 0.3), untried(2, Kind::Lesson, 0.9)];
    let rivals = [(items[0].entry, items[2].entry)];
    let given = fit(&items, &rivals, (Line, 20), &Params::default(), tokens);
    let shown: Vec<EntryId> = given.shown.iter().map(|shown| shown.entry).collect();
    assert_eq!(shown, [items[0].entry, items[1].entry]);
}

#[test]
fn any_answer_fits_its_budget_and_accounts_for_every_entry() {
    let kinds = [Kind::Lesson, Kind::Spike, Kind::Norm, Kind::Skill];
    for seed in 0..500 {
        let mut random = SplitMix64(seed);
        let count = random.below(9) as u8;
        let mut prices = Vec::new();
        let items: Vec<Item> = (0..count)
            .map(|name| {
                let line = 5 + random.below(20);
                let full = line + random.below(400);
                prices.push((line, full));
                item(name, kinds[random.below(4) as usize], random.share())
            })
            .collect();
        let tokens = |entry: EntryId, form: Form| {
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
fn who_sees_one_of_two_rivals_sees_the_other() {
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
    // Too few tokens: what stands alone goes first.
    assert_eq!(shown(&[0.9, 0.2, 0.1], &[(2, 3)], 20, 5), [2, 3]);
}

#[test]
fn what_is_left_of_the_budget_lengthens_the_first_entries() {
    let grown = |tokens_max, may_grow: &[u8]| {
        let fitted = fit(&lessons(&[0.9, 0.8]), &[], (Summary, 500), &Params::default(), tokens);
        let may_grow = |entry: EntryId| may_grow.contains(&entry.as_bytes()[0]);
        let given = lengthen(fitted, tokens_max, may_grow, tokens);
        let forms: Vec<Form> = given.shown.iter().map(|shown| shown.form).collect();
        (forms, given.tokens)
    };
    assert_eq!(grown(30, &[1, 2]), (vec![Summary, Summary], 30), "nothing is left");
    assert_eq!(grown(89, &[1, 2]), (vec![Summary, Summary], 30), "too little is left");
    assert_eq!(grown(90, &[1, 2]), (vec![Standard, Summary], 90));
    assert_eq!(grown(130, &[1, 2]), (vec![Form::Longer(2), Summary], 130));
    assert_eq!(grown(275, &[1, 2]), (vec![Full, Standard], 275));
    assert_eq!(grown(1_000, &[1, 2]), (vec![Full, Full], 400));
    assert_eq!(grown(1_000, &[2]), (vec![Summary, Full], 215), "the first may not grow");
}

#[test]
fn a_lengthened_answer_keeps_to_its_budget_and_shows_no_less() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds(prices: Vec<(u8, [u8; 9])>, tokens_max: u16, grows: u8) -> bool {
        let items: Vec<Item> = (0..)
            .zip(&prices)
            .take(9)
            .map(|(name, _)| item(name, Kind::Lesson, 1.0 / f64::from(name + 1)))
            .collect();
        // Longer forms may cost less: the price of a form is whatever it is.
        let tokens = |entry: EntryId, form: Form| {
            let (line, more) = &prices[usize::from(entry.as_bytes()[0])];
            let at = match form {
                Line => return u32::from(*line),
                Summary => 0,
                Standard => 1,
                Form::Longer(steps) => 1 + usize::from(steps),
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
