//! Fits the ranked entries into the token budget of an answer.
//!
//! Breadth before depth: every entry is cut to one line before any is dropped. Untried entries are
//! cut first at any relevance, since their author chose the words. Separate from ranking,
//! whose order is an input here. It never counts tokens: the caller passes the cost of each form of
//! an entry.

use std::collections::BTreeSet;

use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::EntryId;

/// Parameters of the budget; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Maximum number of entries in one answer.
    pub entries_max: usize,
    /// Token budget of one answer.
    pub tokens_max: u32,
    /// Token budget of one answer to an executor, which is in the middle of its work.
    pub tokens_max_executor: u32,
    /// Number of sources from which summaries are enough, given a score above
    /// `summary_score_above`.
    pub summary_sources_min: usize,
    /// Score above which summaries are enough, given `summary_sources_min` sources.
    pub summary_score_above: f64,
    /// Number of sources from which previews are enough, given a score above
    /// `standard_score_above`.
    pub standard_sources_min: usize,
    /// Score above which previews are enough, given `standard_sources_min` sources.
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

/// Amount of detail that the caller requests for each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Title and summary.
    Summary,
    /// Title, summary and the matching passage of the content.
    Standard,
    /// The whole entry.
    Full,
    /// Depends on how well the answer covers the query.
    Auto,
}

/// Form in which one entry is shown, shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryForm {
    /// The title alone, on one line.
    Line,
    /// Title and summary.
    Summary,
    /// Title, summary and the matching passage of the content.
    Standard,
    /// As `Standard`, with more context around the passage: twice as much for each step.
    Longer(u8),
    /// The whole entry.
    Full,
}

impl EntryForm {
    /// Number of steps from the matching passage to the whole content.
    const LONGER_MAX: u8 = 6;

    /// The next longer form; `None` after the whole entry.
    fn next(self) -> Option<EntryForm> {
        match self {
            EntryForm::Line => Some(EntryForm::Summary),
            EntryForm::Summary => Some(EntryForm::Standard),
            EntryForm::Standard => Some(EntryForm::Longer(1)),
            EntryForm::Longer(steps) if steps < EntryForm::LONGER_MAX => {
                Some(EntryForm::Longer(steps + 1))
            }
            EntryForm::Longer(_) => Some(EntryForm::Full),
            EntryForm::Full => None,
        }
    }
}

/// How well an answer covers its query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Number of different sources of its entries.
    pub sources: usize,
    /// Score of its first entry.
    pub score: f64,
}

/// The form for `tier`: with `Auto`, lower coverage gives a longer form.
#[must_use]
pub fn form(tier: Tier, coverage: Coverage, params: &Params) -> EntryForm {
    let covered = |sources_min, above| coverage.sources >= sources_min && coverage.score > above;
    match tier {
        Tier::Summary => EntryForm::Summary,
        Tier::Standard => EntryForm::Standard,
        Tier::Full => EntryForm::Full,
        Tier::Auto if covered(params.summary_sources_min, params.summary_score_above) => {
            EntryForm::Summary
        }
        Tier::Auto if covered(params.standard_sources_min, params.standard_score_above) => {
            EntryForm::Standard
        }
        Tier::Auto => EntryForm::Full,
    }
}

/// A ranked entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetItem {
    /// Id of the entry.
    pub entry: EntryId,
    /// Entry type; each type is represented before any is repeated.
    pub kind: EntryType,
    /// Relevance to the query; less relevant entries are shortened first.
    pub relevance: f64,
    /// Whether no author with weight has observed a success of the entry.
    pub is_untried: bool,
}

/// An entry of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetedEntry {
    /// Id of the entry.
    pub entry: EntryId,
    /// Form in which it is shown.
    pub form: EntryForm,
}

/// Reason why an entry is not in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OmissionReason {
    /// The answer already has the maximum number of entries.
    TooMany,
    /// The budget is too small, even with one line for each entry.
    TooLong,
    /// The entry is untried, and other untried entries took the places for such entries.
    Untried,
}

/// An answer that fits its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedAnswer {
    /// Shown entries, in ranking order.
    pub shown: Vec<BudgetedEntry>,
    /// Omitted entries, in the order in which they were dropped.
    pub left_out: Vec<(EntryId, OmissionReason)>,
    /// Token cost of the shown entries.
    pub tokens: u64,
}

/// Two contradicting entries: an answer that shows one should show the other.
pub type ContradictingEntries = (EntryId, EntryId);

/// Fits `items`, best first, into the token budget, each in `form` if there is room. Both entries
/// of a contradiction are shown as long as there is room for two. The cost of a form is requested
/// only for entries that may be shown.
#[must_use]
pub fn fit(
    items: &[BudgetItem],
    rivals: &[ContradictingEntries],
    (form, tokens_max): (EntryForm, u32),
    params: &Params,
    tokens: impl Fn(EntryId, EntryForm) -> u32,
) -> FittedAnswer {
    let chosen = choose(items, rivals, params.entries_max);
    let mut left_out: Vec<(EntryId, OmissionReason)> = (0..items.len())
        .filter(|place| !chosen.contains(place))
        .map(|place| (items[place].entry, OmissionReason::TooMany))
        .collect();

    let mut shown: Vec<FittingEntry<'_>> = chosen
        .into_iter()
        .map(|place| &items[place])
        .map(|item| FittingEntry { item, form, tokens: tokens(item.entry, form) })
        .collect();
    let cost =
        |shown: &[FittingEntry<'_>]| -> u64 { shown.iter().map(|of| u64::from(of.tokens)).sum() };
    // Every entry is cut to one line before any is dropped: untried ones first, then the least
    // relevant.
    for place in first_to_go(&shown) {
        if cost(&shown) <= u64::from(tokens_max) {
            break;
        }
        let item = shown[place].item;
        shown[place] = FittingEntry {
            item,
            form: EntryForm::Line,
            tokens: tokens(item.entry, EntryForm::Line),
        };
    }
    while cost(&shown) > u64::from(tokens_max) {
        let least = first_to_go(&shown);
        let goes_alone = |place: &&usize| {
            let item = shown[**place].item;
            item.is_untried || !is_rival(item.entry, rivals)
        };
        let Some(&place) = least.iter().find(goes_alone).or(least.first()) else { break };
        left_out.push((shown.remove(place).item.entry, OmissionReason::TooLong));
    }
    let tokens = cost(&shown);
    let shown =
        shown.iter().map(|of| BudgetedEntry { entry: of.item.entry, form: of.form }).collect();
    FittedAnswer { shown, left_out, tokens }
}

/// Spends the remaining tokens on the first entries: each grows to the longest form that fits
/// before the next one is considered. Entries for which `may_grow` is false stay as they are.
#[must_use]
pub fn lengthen(
    mut fitted: FittedAnswer,
    tokens_max: u32,
    may_grow: impl Fn(EntryId) -> bool,
    tokens: impl Fn(EntryId, EntryForm) -> u32,
) -> FittedAnswer {
    for shown in &mut fitted.shown {
        if !may_grow(shown.entry) {
            continue;
        }
        let mut cost = u64::from(tokens(shown.entry, shown.form));
        let others = fitted.tokens.saturating_sub(cost);
        let mut form = shown.form;
        // Longer forms are tried only while they fit: counting the tokens of a long text is slow.
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

/// An entry in its present form, with its cost.
#[derive(Clone, Copy)]
struct FittingEntry<'a> {
    item: &'a BudgetItem,
    form: EntryForm,
    tokens: u32,
}

/// Chooses at most `entries_max` entries: the first of each type, then the best of the rest, then
/// untried ones. An entry brings the entries it contradicts along, in place of the last ones
/// without a contradiction.
fn choose(
    items: &[BudgetItem],
    rivals: &[ContradictingEntries],
    entries_max: usize,
) -> BTreeSet<usize> {
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

fn are(one: BudgetItem, two: BudgetItem, rivals: &[ContradictingEntries]) -> bool {
    rivals.contains(&(one.entry, two.entry)) || rivals.contains(&(two.entry, one.entry))
}

fn is_rival(entry: EntryId, rivals: &[ContradictingEntries]) -> bool {
    rivals.iter().any(|(one, two)| *one == entry || *two == entry)
}

/// Indices in the order in which entries are cut: untried ones first, then by ascending relevance;
/// on a tie the lower ranked one first.
fn first_to_go(shown: &[FittingEntry<'_>]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..shown.len()).rev().collect();
    places.sort_by(|&a, &b| {
        let (a, b) = (shown[a].item, shown[b].item);
        b.is_untried.cmp(&a.is_untried).then(a.relevance.total_cmp(&b.relevance))
    });
    places
}

#[cfg(test)]
mod tests;
