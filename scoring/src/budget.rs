//! How much of which entries fits into an answer.
//!
//! Breadth before depth: every entry is cut to one line before any is dropped. What nobody has tried
//! makes way first, however well it fits: its author chose its words. Separate from ranking, whose
//! order it takes as given. It never counts tokens: what each form of an entry costs comes in as a
//! number.

use std::collections::BTreeSet;

use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::Kind;

/// The numbers of the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The most entries in one answer.
    pub entries_max: usize,
    /// The tokens of one answer.
    pub tokens_max: u32,
    /// The tokens of one answer to an executor, who is in the middle of something.
    pub tokens_max_executor: u32,
    /// From so many sources and above this score, summaries are enough.
    pub summary_sources_min: usize,
    /// The score above which summaries are enough.
    pub summary_score_above: f64,
    /// From so many sources and above the next score, previews are enough.
    pub standard_sources_min: usize,
    /// The score above which previews are enough.
    pub standard_score_above: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            entries_max: 5,
            tokens_max: 500,
            tokens_max_executor: 200,
            summary_sources_min: 2,
            summary_score_above: 0.5,
            standard_sources_min: 1,
            standard_score_above: 0.35,
        }
    }
}

/// How much of each entry the caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Title and summary.
    Summary,
    /// The passage of the content that answers as well.
    Standard,
    /// Everything.
    Full,
    /// As much as the coverage calls for.
    Auto,
}

/// How much of one entry is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// One line.
    Line,
    /// Title and summary.
    Summary,
    /// The passage of the content that answers as well.
    Standard,
    /// The same with more of what surrounds it: twice as much for each step.
    Longer(u8),
    /// Everything.
    Full,
}

impl Form {
    /// Steps from the passage that answers to the whole content.
    const LONGER_MAX: u8 = 6;

    /// The form that shows the next more; none after the whole.
    fn next(self) -> Option<Form> {
        match self {
            Form::Line => Some(Form::Summary),
            Form::Summary => Some(Form::Standard),
            Form::Standard => Some(Form::Longer(1)),
            Form::Longer(steps) if steps < Form::LONGER_MAX => Some(Form::Longer(steps + 1)),
            Form::Longer(_) => Some(Form::Full),
            Form::Full => None,
        }
    }
}

/// How well an answer covers its query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// How many different sources its entries come from.
    pub sources: usize,
    /// The score of its first entry.
    pub score: f64,
}

/// The form that `tier` asks for: with `auto`, the thinner the coverage, the more of each entry.
#[must_use]
pub fn form(tier: Tier, coverage: Coverage, params: &Params) -> Form {
    let covered = |sources_min, above| coverage.sources >= sources_min && coverage.score > above;
    match tier {
        Tier::Summary => Form::Summary,
        Tier::Standard => Form::Standard,
        Tier::Full => Form::Full,
        Tier::Auto if covered(params.summary_sources_min, params.summary_score_above) => {
            Form::Summary
        }
        Tier::Auto if covered(params.standard_sources_min, params.standard_score_above) => {
            Form::Standard
        }
        Tier::Auto => Form::Full,
    }
}

/// An entry that ranking placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// The entry.
    pub entry: EntryId,
    /// Its category.
    pub kind: Kind,
    /// How relevant it is to the query.
    pub relevance: f64,
    /// Whether nobody who counts has seen it work.
    pub is_untried: bool,
}

/// An entry of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The entry.
    pub entry: EntryId,
    /// How much of it is shown.
    pub form: Form,
}

/// Why an entry is not in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There were too many entries.
    TooMany,
    /// There were too few tokens, even at one line each.
    TooLong,
    /// Nobody who counts has tried it, and others of that kind have the places there are for them.
    Untried,
}

/// An answer that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// What is shown, in the order of ranking.
    pub shown: Vec<Shown>,
    /// What is not, in the order in which it was left out.
    pub left_out: Vec<(EntryId, Reason)>,
    /// What is shown costs this much.
    pub tokens: u64,
}

/// Two entries that say opposite things: whoever sees one is to see the other.
pub type Rivals = (EntryId, EntryId);

/// Fits `items`, best first, into so many tokens, each in a form where there is room. Of `rivals`
/// both are shown, as long as there is room for two. What a form of an entry costs is asked only of
/// those that may be shown.
#[must_use]
pub fn fit(
    items: &[Item],
    rivals: &[Rivals],
    (form, tokens_max): (Form, u32),
    params: &Params,
    tokens: impl Fn(EntryId, Form) -> u32,
) -> Fitted {
    let chosen = choose(items, rivals, params.entries_max);
    let mut left_out: Vec<(EntryId, Reason)> = (0..items.len())
        .filter(|place| !chosen.contains(place))
        .map(|place| (items[place].entry, Reason::TooMany))
        .collect();

    let mut shown: Vec<Fitting<'_>> = chosen
        .into_iter()
        .map(|place| &items[place])
        .map(|item| Fitting { item, form, tokens: tokens(item.entry, form) })
        .collect();
    let cost = |shown: &[Fitting<'_>]| -> u64 { shown.iter().map(|of| u64::from(of.tokens)).sum() };
    // Every entry to one line before dropping any, the untried and the least relevant first.
    for place in first_to_go(&shown) {
        if cost(&shown) <= u64::from(tokens_max) {
            break;
        }
        let item = shown[place].item;
        shown[place] = Fitting { item, form: Form::Line, tokens: tokens(item.entry, Form::Line) };
    }
    while cost(&shown) > u64::from(tokens_max) {
        let least = first_to_go(&shown);
        let goes_alone = |place: &&usize| {
            let item = shown[**place].item;
            item.is_untried || !is_rival(item.entry, rivals)
        };
        let Some(&place) = least.iter().find(goes_alone).or(least.first()) else { break };
        left_out.push((shown.remove(place).item.entry, Reason::TooLong));
    }
    let tokens = cost(&shown);
    let shown = shown.iter().map(|of| Shown { entry: of.item.entry, form: of.form }).collect();
    Fitted { shown, left_out, tokens }
}

/// Spends what an answer leaves of its tokens on the first entries: each is shown in the longest form
/// that fits before the next one has its turn. Entries of which `may_grow` is false stay as they are.
#[must_use]
pub fn lengthen(
    mut fitted: Fitted,
    tokens_max: u32,
    may_grow: impl Fn(EntryId) -> bool,
    tokens: impl Fn(EntryId, Form) -> u32,
) -> Fitted {
    for shown in &mut fitted.shown {
        if !may_grow(shown.entry) {
            continue;
        }
        let mut cost = u64::from(tokens(shown.entry, shown.form));
        let others = fitted.tokens.saturating_sub(cost);
        let mut form = shown.form;
        // Longer forms are tried only as long as they fit: counting the tokens of a long text is slow.
        while let Some(longer) = form.next() {
            let cost_longer = u64::from(tokens(shown.entry, longer));
            if others + cost_longer > u64::from(tokens_max) {
                break;
            }
            (form, cost) = (longer, cost_longer);
        }
        if form != shown.form {
            (shown.form, fitted.tokens) = (form, others + cost);
        }
    }
    fitted
}

/// An entry that may be shown, in a form and at its price.
#[derive(Clone, Copy)]
struct Fitting<'a> {
    item: &'a Item,
    form: Form,
    tokens: u32,
}

/// At most `entries_max` places: the first of each category, then the best of the rest, then what is
/// untried. An entry takes its rivals along, in the places of the last that have none.
fn choose(items: &[Item], rivals: &[Rivals], entries_max: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let (untried, tried): (Vec<usize>, Vec<usize>) =
        (0..items.len()).partition(|&place| items[place].is_untried);
    let (firsts, others): (Vec<usize>, Vec<usize>) =
        tried.into_iter().partition(|&place| seen.insert(items[place].kind));
    let mut chosen: Vec<usize> = Vec::new();
    for place in firsts.into_iter().chain(others).chain(untried) {
        if chosen.len() >= entries_max {
            break;
        }
        if chosen.contains(&place) {
            continue;
        }
        chosen.push(place);
        for other in (0..items.len()).filter(|&at| are(items[place], items[at], rivals)) {
            if chosen.contains(&other) {
                continue;
            }
            if chosen.len() >= entries_max {
                let single = chosen.iter().rposition(|&at| !is_rival(items[at].entry, rivals));
                let Some(single) = single else { break };
                chosen.remove(single);
            }
            chosen.push(other);
        }
    }
    chosen.into_iter().collect()
}

fn are(one: Item, two: Item, rivals: &[Rivals]) -> bool {
    rivals.contains(&(one.entry, two.entry)) || rivals.contains(&(two.entry, one.entry))
}

fn is_rival(entry: EntryId, rivals: &[Rivals]) -> bool {
    rivals.iter().any(|(one, two)| *one == entry || *two == entry)
}

/// The places of what is shown, in the order in which it makes way: what is untried, then from the
/// least relevant on; of equals the lower placed comes first.
fn first_to_go(shown: &[Fitting<'_>]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..shown.len()).rev().collect();
    places.sort_by(|&a, &b| {
        let (a, b) = (shown[a].item, shown[b].item);
        b.is_untried.cmp(&a.is_untried).then(a.relevance.total_cmp(&b.relevance))
    });
    places
}

#[cfg(test)]
mod tests;
