//! Finds hits that contradict each other, orders them, and adds caveats that name the other.
//!
//! Both are always shown. The order does not say which is true: the one with clearly more support
//! comes first, and the caveat says why.

use super::AssessedEntry;
use super::candidates::{Candidates, dot};
use super::endorsements::Endorsements;
use super::entry_forms;
use super::read_candidate::ReadCandidate;
use super::scoring_params::ScoringParams;
use super::search_types::HitCaveat;
use klnode_crdt::entry_type;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_embed::Embedder;
use klnode_scoring::contradiction::{
    self, Contradiction, ContradictionSubject, Criterion, PairSide, Polarity, Resolution,
};
use klnode_scoring::rank::{self, RankedEntry};
use klnode_scoring::recency::recency;
use klnode_scoring::relevance::Calibration;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Number of hits, from the first on, that are compared with each other.
const COMPARED_MAX: usize = 40;
/// Minimum similarity of two texts about the same subject.
pub(super) const RELATED_MIN: f64 = 0.45;

/// Two hits that contradict each other.
pub(super) struct ContradictingPair {
    pub(super) one: EntryId,
    pub(super) two: EntryId,
    pub(super) resolution: Resolution,
}

/// The side from whose view a contradiction is explained.
#[derive(Clone, Copy)]
enum NamedSide {
    /// The entry with more support.
    Winner,
    /// The entry with less support, comparing with the other.
    Other,
    /// The entry with less support, by itself.
    Loser,
}

/// The data by which a caveat names a contradicting entry.
pub(super) struct ContradictingEntry {
    code: String,
    title: String,
    /// The mean of the entry's confidence, in [0, 1].
    mean: f64,
    /// True if the text of the entry has succeeded on this node.
    is_tried: bool,
}

impl ContradictingEntry {
    pub(super) fn of(found: &AssessedEntry) -> Self {
        Self {
            code: found.code(),
            title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
            mean: found.assessment.confidence.posterior.mean(),
            is_tried: found.assessment.local_successes > 0,
        }
    }
}

impl ContradictingPair {
    /// The winner and the loser, if one entry clearly has more support.
    pub(super) fn winner_and_loser(&self) -> Option<(EntryId, EntryId)> {
        let winner = match &self.resolution {
            Resolution::Dominates { winner, .. } | Resolution::Outweighs { winner, .. } => *winner,
            Resolution::Competing { .. } => return None,
        };
        Some(match winner {
            PairSide::A => (self.one, self.two),
            PairSide::B => (self.two, self.one),
        })
    }

    /// The criteria that decide between the two, or that none does.
    fn grounds(&self, perspective: NamedSide) -> String {
        match &self.resolution {
            Resolution::Dominates { better_on, .. } => {
                let name = |criterion: &Criterion| match criterion {
                    Criterion::Evidence => "evidence",
                    Criterion::Recency => "recency",
                    Criterion::Provenance => "citations",
                };
                let names = better_on.iter().map(name).collect::<Vec<&str>>().join(" and ");
                match perspective {
                    NamedSide::Winner => format!("better on {names}"),
                    NamedSide::Other => format!("the other is better on {names}"),
                    NamedSide::Loser => format!("worse on {names}"),
                }
            }
            Resolution::Outweighs { difference, threshold, .. } => {
                let by = format!("by {difference:.2} (threshold {threshold:.2})");
                match perspective {
                    NamedSide::Winner => format!("better supported {by}"),
                    NamedSide::Other => format!("the other is better supported {by}"),
                    NamedSide::Loser => format!("less supported {by}"),
                }
            }
            Resolution::Competing { difference, threshold } => {
                format!(
                    "neither is clearly better: difference {difference:.2}, threshold {threshold:.2}"
                )
            }
        }
    }

    /// Explains the order of the two beside `entry`. `other` is the position of the other entry
    /// relative to it; `None` if it is not listed.
    fn why(&self, entry: EntryId, other: Option<Ordering>, is_by_trial: bool) -> String {
        let Some((winner, _)) = self.winner_and_loser() else {
            return self.grounds(NamedSide::Winner);
        };
        let grounds = |perspective| self.grounds(perspective);
        match (winner == entry, other) {
            (true, Some(Ordering::Greater)) => {
                format!("listed first: {}", grounds(NamedSide::Winner))
            }
            (false, Some(Ordering::Greater)) if is_by_trial => {
                format!("listed first because it helped here, but {}", grounds(NamedSide::Other))
            }
            (false, Some(Ordering::Greater)) => {
                format!("listed first, but {}", grounds(NamedSide::Other))
            }
            (true, Some(_)) if is_by_trial => {
                format!(
                    "{}; the other is listed first because it helped here",
                    grounds(NamedSide::Winner)
                )
            }
            (true, Some(_)) => format!("{}, though listed after it", grounds(NamedSide::Winner)),
            (false, Some(_)) => format!("listed after it: {}", grounds(NamedSide::Other)),
            // The other entry is not listed: describe it.
            (true, None) => format!("not listed; {}", grounds(NamedSide::Loser)),
            (false, None) => format!("not listed; {}", grounds(NamedSide::Winner)),
        }
    }
}

/// All pairs of the best hits that contradict each other.
pub(super) fn find(
    placed: &[RankedEntry],
    read: &BTreeMap<EntryId, ReadCandidate>,
    found: &Candidates,
    numbers: &ScoringParams,
    now: WallTime,
) -> Vec<ContradictingPair> {
    let Some((meaning, _)) = found.meaning.as_ref() else { return Vec::new() };
    let sided = placed.iter().take(COMPARED_MAX).filter_map(|placed| {
        let read = read.get(&placed.candidate.entry)?;
        StanceEntry::of(&read.found, &read.scope.tags, read.endorsements)
    });
    let sided: Vec<StanceEntry<'_>> = sided.collect();
    let (embedder, calibration) = (&*meaning.embedder, &meaning.calibration);
    if embedder.is_instant() {
        return pairs_among(&sided, embedder, calibration, numbers, now);
    }
    // A slow embedder is not called during a search; the index has the vectors of the hits.
    let near = |one: EntryId, two: EntryId| {
        let cosine = meaning.vectors.cosine_between(one, two);
        cosine.map(|cosine| calibration.meaning(f64::from(cosine)))
    };
    contradicting_pairs(opposed(&sided, numbers), near, numbers, now)
}

/// All pairs of these entries that contradict each other.
pub(super) fn pairs_among(
    sided: &[StanceEntry<'_>],
    embedder: &dyn Embedder,
    calibration: &Calibration,
    numbers: &ScoringParams,
    now: WallTime,
) -> Vec<ContradictingPair> {
    let pairs = opposed(sided, numbers);
    let texts: BTreeMap<EntryId, String> = pairs
        .iter()
        .flat_map(|(one, two)| [one, two])
        .map(|one| (one.entry(), entry_forms::whole(&one.found.view)))
        .collect();
    if texts.is_empty() {
        return Vec::new();
    }
    let whole: Vec<&str> = texts.values().map(String::as_str).collect();
    // Without vectors no similarity is known, so no contradiction is reported.
    let Ok(vectors) = embedder.embed(&whole) else { return Vec::new() };
    let vectors: BTreeMap<EntryId, Vec<f32>> = texts.keys().copied().zip(vectors).collect();
    let near = |one: EntryId, two: EntryId| {
        Some(calibration.meaning(dot(vectors.get(&one)?, vectors.get(&two)?)))
    };
    contradicting_pairs(pairs, near, numbers, now)
}

/// Two entries that contradict each other if their texts are about the same subject.
type OpposedPair<'s, 'f> = (&'s StanceEntry<'f>, &'s StanceEntry<'f>);

fn opposed<'s, 'f>(
    sided: &'s [StanceEntry<'f>],
    numbers: &ScoringParams,
) -> Vec<OpposedPair<'s, 'f>> {
    let pairs = sided.iter().enumerate().flat_map(|(at, one)| {
        let others = sided[at + 1..].iter().filter(|two| one.may_contradict(two, numbers));
        others.map(move |two| (one, two))
    });
    pairs.collect()
}

/// The pairs that contradict each other, given the similarity of their texts. A pair of unknown
/// similarity is left out.
fn contradicting_pairs(
    pairs: Vec<OpposedPair<'_, '_>>,
    near: impl Fn(EntryId, EntryId) -> Option<f64>,
    numbers: &ScoringParams,
    now: WallTime,
) -> Vec<ContradictingPair> {
    let rivals = pairs.into_iter().filter_map(|(one, two)| {
        let near = near(one.entry(), two.entry())?;
        let is_found = matches!(one.against(two, near, numbers), Contradiction::Found { .. });
        let (a, b) = (one.claim(numbers, now), two.claim(numbers, now));
        let resolution = contradiction::resolve(&a, &b, &numbers.conflict);
        is_found.then(|| ContradictingPair { one: one.entry(), two: two.entry(), resolution })
    });
    rivals.collect()
}

/// Ranks the winner of each decided contradiction above the loser, then reapplies the last pass of
/// ranking.
pub(super) fn order(
    mut placed: Vec<RankedEntry>,
    contradicting_pairs: &[ContradictingPair],
) -> Vec<RankedEntry> {
    let mut has_moved = false;
    for (winner, loser) in
        contradicting_pairs.iter().filter_map(ContradictingPair::winner_and_loser)
    {
        let place = |entry| placed.iter().position(|one| one.candidate.entry == entry);
        if let (Some(from), Some(to)) = (place(winner), place(loser))
            && from > to
        {
            let moved = placed.remove(from);
            placed.insert(to, moved);
            has_moved = true;
        }
    }
    if has_moved { rank::local_verified_first(placed) } else { placed }
}

/// The caveats about contradicting entries, by entry, given the order of the listed ones.
pub(super) fn caveats(
    order: &[EntryId],
    contradicting_pairs: &[ContradictingPair],
    named: &dyn Fn(EntryId) -> Option<ContradictingEntry>,
) -> BTreeMap<EntryId, Vec<HitCaveat>> {
    let mut caveats: BTreeMap<EntryId, Vec<HitCaveat>> = BTreeMap::new();
    let place = |entry| order.iter().position(|one| *one == entry);
    let is_tried = |entry| named(entry).is_some_and(|one| one.is_tried);
    for pair in contradicting_pairs {
        let decided = pair.winner_and_loser();
        let is_by_trial =
            decided.is_some_and(|(winner, loser)| is_tried(loser) && !is_tried(winner));
        for (entry, other) in [(pair.one, pair.two), (pair.two, pair.one)] {
            let Some(here) = place(entry) else { continue };
            let there = place(other).map(|there| there.cmp(&here));
            let is_first = there == Some(Ordering::Greater);
            let why = pair.why(entry, there, is_by_trial);
            let (code, title, mean) = match named(other) {
                Some(ContradictingEntry { code, title, mean, .. }) => (code, title, Some(mean)),
                None => (entry_type::code_digits(other), String::new(), None),
            };
            let caveat = HitCaveat::CompetesWith { entry: other, code, title, mean, is_first, why };
            caveats.entry(entry).or_default().push(caveat);
        }
    }
    caveats
}

/// An entry with a polarity: it speaks for or against its subject.
pub(super) struct StanceEntry<'a> {
    found: &'a AssessedEntry,
    polarity: Polarity,
    tags: BTreeSet<String>,
    endorsements: Endorsements,
}

impl<'a> StanceEntry<'a> {
    pub(super) fn of(
        found: &'a AssessedEntry,
        tags: &[String],
        endorsements: Endorsements,
    ) -> Option<Self> {
        let polarity = polarity(&found.view);
        let tags = tags.iter().cloned().collect();
        let sided = Self { found, polarity, tags, endorsements };
        (polarity != Polarity::Neutral).then_some(sided)
    }

    fn entry(&self) -> EntryId {
        self.found.entry
    }

    fn against(&self, other: &Self, near: f64, numbers: &ScoringParams) -> Contradiction {
        let ours = ContradictionSubject { polarity: self.polarity, tags: &self.tags };
        let theirs = ContradictionSubject { polarity: other.polarity, tags: &other.tags };
        contradiction::contradiction(ours, theirs, near, RELATED_MIN, &numbers.conflict)
    }

    /// True if the two contradict each other in case their texts are about the same subject.
    fn may_contradict(&self, other: &Self, numbers: &ScoringParams) -> bool {
        matches!(self.against(other, 1.0, numbers), Contradiction::Found { .. })
    }

    fn claim(&self, numbers: &ScoringParams, now: WallTime) -> contradiction::EntryWeight {
        let found = self.found;
        let day = self.endorsements.confirmed.unwrap_or(found.first_seen.day());
        let half_life = numbers.signals.freshness_half_life_days;
        contradiction::EntryWeight {
            posterior: found.assessment.confidence.posterior,
            recency: recency(day, now.day(), half_life),
            citations: self.endorsements.cited,
        }
    }
}

/// The polarity of an entry; neutral if unset.
pub(super) fn polarity(view: &EntryView) -> Polarity {
    match view.text(Register::POLARITY) {
        Some("positive") => Polarity::Positive,
        Some("negative") => Polarity::Negative,
        _ => Polarity::Neutral,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINNER: EntryId = EntryId::from_bytes([1; 16]);
    const LOSER: EntryId = EntryId::from_bytes([2; 16]);

    /// The explanations beside the listed entries: whether the other entry comes after it, and why.
    fn said(resolution: &Resolution, order: &[EntryId], tried: &[EntryId]) -> Vec<(bool, String)> {
        let pair = ContradictingPair { one: WINNER, two: LOSER, resolution: resolution.clone() };
        let named = |entry: EntryId| {
            let (code, title) = ("L-7F3KQ2MX".to_owned(), "Other".to_owned());
            Some(ContradictingEntry { code, title, mean: 0.5, is_tried: tried.contains(&entry) })
        };
        let caveats = caveats(order, &[pair], &named);
        let of = |entry: &EntryId| match &caveats[entry][..] {
            [HitCaveat::CompetesWith { is_first, why, .. }] => (*is_first, why.clone()),
            other => panic!("{other:?}"),
        };
        order.iter().map(of).collect()
    }

    #[test]
    fn caveats_explain_the_order_of_contradicting_hits() {
        let (difference, threshold) = (0.3, 0.1);
        let outweighs = Resolution::Outweighs { winner: PairSide::A, difference, threshold };
        let by = "by 0.30 (threshold 0.10)";
        let own = format!("better supported {by}");
        let other = format!("the other is better supported {by}");
        let both = |first: String, second: String| [(true, first), (false, second)];
        let said = |order: &[EntryId], tried: &[EntryId]| said(&outweighs, order, tried);
        let expect = both(format!("listed first: {own}"), format!("listed after it: {other}"));
        assert_eq!(said(&[WINNER, LOSER], &[LOSER]), expect);
        // In reverse order, the explanation mentions a success only if the loser alone succeeded
        // here.
        let behind = format!("{own}; the other is listed first because it helped here");
        let expect = both(format!("listed first because it helped here, but {other}"), behind);
        assert_eq!(said(&[LOSER, WINNER], &[LOSER]), expect);
        let behind = format!("{own}, though listed after it");
        let expect = both(format!("listed first, but {other}"), behind);
        for tried in [&[WINNER][..], &[WINNER, LOSER], &[]] {
            assert_eq!(said(&[LOSER, WINNER], tried), expect, "{tried:?}");
        }
        // An entry that is not listed comes neither before nor after.
        let less = format!("not listed; less supported {by}");
        assert_eq!(said(&[WINNER], &[]), [(false, less)]);
        assert_eq!(said(&[LOSER], &[LOSER]), [(false, format!("not listed; {own}"))]);
    }

    #[test]
    fn the_deciding_criteria_are_explained_from_both_sides() {
        let better_on = vec![Criterion::Evidence, Criterion::Recency];
        let dominates = Resolution::Dominates { winner: PairSide::A, better_on };
        let competing = Resolution::Competing { difference: 0.05, threshold: 0.1 };
        let neither = "neither is clearly better: difference 0.05, threshold 0.10";
        let better = "listed first: better on evidence and recency";
        let worse = "listed after it: the other is better on evidence and recency";
        for (resolution, expect) in [(&dominates, [better, worse]), (&competing, [neither; 2])] {
            let said = said(resolution, &[WINNER, LOSER], &[]);
            assert_eq!(said.iter().map(|(_, why)| why.as_str()).collect::<Vec<_>>(), expect);
        }
        let alone = said(&dominates, &[WINNER], &[]);
        assert_eq!(alone, [(false, "not listed; worse on evidence and recency".to_owned())]);
        assert_eq!(said(&competing, &[LOSER], &[]), [(false, neither.to_owned())]);
    }
}
