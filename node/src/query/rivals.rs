//! Hits that say opposite things about the same: found, put in order, and named to each other.
//!
//! Both are always shown. Which is listed first says nothing about which is true: it is the one for
//! which clearly more speaks, and the caveat says what.

use super::Found;
use super::candidates::{Candidates, dot};
use super::excerpt;
use super::numbers::Numbers;
use super::question::Caveat;
use super::search::Read;
use super::vouched::Vouched;
use crate::index::embed::Embedder;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind;
use klnode_crdt::lww::Register;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::View;
use klnode_scoring::conflict::{
    self, Contradiction, Criterion, Polarity, Resolution, Side, Subject,
};
use klnode_scoring::rank::{self, Placed};
use klnode_scoring::recency::recency;
use klnode_scoring::relevance::Calibration;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Hits that are compared with each other, from the first on.
const COMPARED_MAX: usize = 40;
/// How near in meaning two texts are that are about the same thing.
pub(super) const RELATED_MIN: f64 = 0.45;

/// Two hits that say opposite things.
pub(super) struct Rivalry {
    pub(super) one: EntryId,
    pub(super) two: EntryId,
    pub(super) resolution: Resolution,
}

/// Of whom it is told what decides between two.
#[derive(Clone, Copy)]
enum Told {
    /// Of the one that has more for it, as what is spoken of.
    Winner,
    /// Of the same, as the other one.
    Other,
    /// Of the one that has less for it.
    Loser,
}

/// What is known of a rival where the two are named to each other.
pub(super) struct Named {
    code: String,
    title: String,
    /// The mean of its confidence.
    mean: f64,
    /// Whether its text was seen to work here.
    is_tried: bool,
}

impl Named {
    pub(super) fn of(found: &Found) -> Self {
        Self {
            code: found.code(),
            title: found.view.text(Register::TITLE).unwrap_or_default().to_owned(),
            mean: found.judged.confidence.posterior.mean(),
            is_tried: found.judged.local_successes > 0,
        }
    }
}

impl Rivalry {
    /// The one for which clearly more speaks, and the other.
    pub(super) fn decided(&self) -> Option<(EntryId, EntryId)> {
        let winner = match &self.resolution {
            Resolution::Dominates { winner, .. } | Resolution::Outweighs { winner, .. } => *winner,
            Resolution::Competing { .. } => return None,
        };
        Some(match winner {
            Side::A => (self.one, self.two),
            Side::B => (self.two, self.one),
        })
    }

    /// What decides between the two, or that nothing does.
    fn grounds(&self, told: Told) -> String {
        match &self.resolution {
            Resolution::Dominates { better_on, .. } => {
                let name = |criterion: &Criterion| match criterion {
                    Criterion::Evidence => "evidence",
                    Criterion::Recency => "recency",
                    Criterion::Provenance => "citations",
                };
                let names = better_on.iter().map(name).collect::<Vec<&str>>().join(" and ");
                match told {
                    Told::Winner => format!("better on {names}"),
                    Told::Other => format!("the other is better on {names}"),
                    Told::Loser => format!("worse on {names}"),
                }
            }
            Resolution::Outweighs { difference, threshold, .. } => {
                let by = format!("by {difference:.2} where {threshold:.2} decide");
                match told {
                    Told::Winner => format!("more speaks for it, {by}"),
                    Told::Other => format!("more speaks for the other, {by}"),
                    Told::Loser => format!("less speaks for it, {by}"),
                }
            }
            Resolution::Competing { difference, threshold } => {
                format!("neither is clearly better, by {difference:.2} where {threshold:.2} decide")
            }
        }
    }

    /// Why the two are listed as they are, told beside one of them: the other stands before or after
    /// it, or nowhere.
    fn why(&self, entry: EntryId, other: Option<Ordering>, is_by_trial: bool) -> String {
        let Some((winner, _)) = self.decided() else { return self.grounds(Told::Winner) };
        let grounds = |told| self.grounds(told);
        match (winner == entry, other) {
            (true, Some(Ordering::Greater)) => format!("listed first: {}", grounds(Told::Winner)),
            (false, Some(Ordering::Greater)) if is_by_trial => {
                format!("tried here; but {}", grounds(Told::Other))
            }
            (false, Some(Ordering::Greater)) => {
                format!("listed first, but {}", grounds(Told::Other))
            }
            (true, Some(_)) if is_by_trial => {
                format!("{}; what was tried here is listed first", grounds(Told::Winner))
            }
            (true, Some(_)) => format!("{}, though listed after it", grounds(Told::Winner)),
            (false, Some(_)) => format!("listed after it: {}", grounds(Told::Other)),
            // Then it is told of the other.
            (true, None) => format!("not listed; {}", grounds(Told::Loser)),
            (false, None) => format!("not listed; {}", grounds(Told::Winner)),
        }
    }
}

/// All pairs of the best hits that contradict each other.
pub(super) fn find(
    placed: &[Placed],
    read: &BTreeMap<EntryId, Read>,
    found: &Candidates,
    numbers: &Numbers,
    now: WallTime,
) -> Vec<Rivalry> {
    let Some((meaning, _)) = found.meaning.as_ref() else { return Vec::new() };
    let sided = placed.iter().take(COMPARED_MAX).filter_map(|placed| {
        let read = read.get(&placed.candidate.entry)?;
        Sided::of(&read.found, &read.scope.tags, read.vouched)
    });
    let sided: Vec<Sided<'_>> = sided.collect();
    let (embedder, calibration) = (&*meaning.embedder, &meaning.calibration);
    if embedder.is_instant() {
        return among(&sided, embedder, calibration, numbers, now);
    }
    // Whoever asks does not wait for an embedder to read the hits: the index has what it said of them.
    let near = |one: EntryId, two: EntryId| {
        let cosine = meaning.vectors.cosine_between(one, two);
        cosine.map(|cosine| calibration.meaning(f64::from(cosine)))
    };
    rivalries(opposed(&sided, numbers), near, numbers, now)
}

/// All pairs of these that contradict each other.
pub(super) fn among(
    sided: &[Sided<'_>],
    embedder: &dyn Embedder,
    calibration: &Calibration,
    numbers: &Numbers,
    now: WallTime,
) -> Vec<Rivalry> {
    let pairs = opposed(sided, numbers);
    let texts: BTreeMap<EntryId, String> = pairs
        .iter()
        .flat_map(|(one, two)| [one, two])
        .map(|one| (one.entry(), excerpt::whole(&one.found.view)))
        .collect();
    if texts.is_empty() {
        return Vec::new();
    }
    let whole: Vec<&str> = texts.values().map(String::as_str).collect();
    // An embedder that is away says nothing about what is alike: then nothing is known to compete.
    let Ok(vectors) = embedder.embed(&whole) else { return Vec::new() };
    let vectors: BTreeMap<EntryId, Vec<f32>> = texts.keys().copied().zip(vectors).collect();
    let near = |one: EntryId, two: EntryId| {
        Some(calibration.meaning(dot(vectors.get(&one)?, vectors.get(&two)?)))
    };
    rivalries(pairs, near, numbers, now)
}

/// Two that contradict if their texts are about the same thing.
type Opposed<'s, 'f> = (&'s Sided<'f>, &'s Sided<'f>);

fn opposed<'s, 'f>(sided: &'s [Sided<'f>], numbers: &Numbers) -> Vec<Opposed<'s, 'f>> {
    let pairs = sided.iter().enumerate().flat_map(|(at, one)| {
        let others = sided[at + 1..].iter().filter(|two| one.may_contradict(two, numbers));
        others.map(move |two| (one, two))
    });
    pairs.collect()
}

/// Those of the pairs that contradict, by how near their texts are. What is not known to be near does
/// not compete.
fn rivalries(
    pairs: Vec<Opposed<'_, '_>>,
    near: impl Fn(EntryId, EntryId) -> Option<f64>,
    numbers: &Numbers,
    now: WallTime,
) -> Vec<Rivalry> {
    let rivals = pairs.into_iter().filter_map(|(one, two)| {
        let near = near(one.entry(), two.entry())?;
        let is_found = matches!(one.against(two, near, numbers), Contradiction::Found { .. });
        let (a, b) = (one.claim(numbers, now), two.claim(numbers, now));
        let resolution = conflict::resolve(&a, &b, &numbers.conflict);
        is_found.then(|| Rivalry { one: one.entry(), two: two.entry(), resolution })
    });
    rivals.collect()
}

/// Puts the one for which clearly more speaks before the other; the last pass of ranking holds.
pub(super) fn order(mut placed: Vec<Placed>, rivalries: &[Rivalry]) -> Vec<Placed> {
    let mut has_moved = false;
    for (winner, loser) in rivalries.iter().filter_map(Rivalry::decided) {
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

/// What is to be said of rivals, by entry, given the order of those that are listed.
pub(super) fn caveats(
    order: &[EntryId],
    rivalries: &[Rivalry],
    named: &dyn Fn(EntryId) -> Option<Named>,
) -> BTreeMap<EntryId, Vec<Caveat>> {
    let mut caveats: BTreeMap<EntryId, Vec<Caveat>> = BTreeMap::new();
    let place = |entry| order.iter().position(|one| *one == entry);
    let is_tried = |entry| named(entry).is_some_and(|one| one.is_tried);
    for rivalry in rivalries {
        let decided = rivalry.decided();
        let is_by_trial =
            decided.is_some_and(|(winner, loser)| is_tried(loser) && !is_tried(winner));
        for (entry, other) in [(rivalry.one, rivalry.two), (rivalry.two, rivalry.one)] {
            let Some(here) = place(entry) else { continue };
            let there = place(other).map(|there| there.cmp(&here));
            let is_first = there == Some(Ordering::Greater);
            let why = rivalry.why(entry, there, is_by_trial);
            let (code, title, mean) = match named(other) {
                Some(Named { code, title, mean, .. }) => (code, title, Some(mean)),
                None => (kind::code_digits(other), String::new(), None),
            };
            let caveat = Caveat::CompetesWith { entry: other, code, title, mean, is_first, why };
            caveats.entry(entry).or_default().push(caveat);
        }
    }
    caveats
}

/// An entry that speaks for or against something.
pub(super) struct Sided<'a> {
    found: &'a Found,
    polarity: Polarity,
    tags: BTreeSet<String>,
    vouched: Vouched,
}

impl<'a> Sided<'a> {
    pub(super) fn of(found: &'a Found, tags: &[String], vouched: Vouched) -> Option<Self> {
        let polarity = polarity(&found.view);
        let tags = tags.iter().cloned().collect();
        let sided = Self { found, polarity, tags, vouched };
        (polarity != Polarity::Neutral).then_some(sided)
    }

    fn entry(&self) -> EntryId {
        self.found.entry
    }

    fn against(&self, other: &Self, near: f64, numbers: &Numbers) -> Contradiction {
        let ours = Subject { polarity: self.polarity, tags: &self.tags };
        let theirs = Subject { polarity: other.polarity, tags: &other.tags };
        conflict::contradiction(ours, theirs, near, RELATED_MIN, &numbers.conflict)
    }

    /// Whether they contradict if their texts are about the same thing.
    fn may_contradict(&self, other: &Self, numbers: &Numbers) -> bool {
        matches!(self.against(other, 1.0, numbers), Contradiction::Found { .. })
    }

    fn claim(&self, numbers: &Numbers, now: WallTime) -> conflict::Claim {
        let found = self.found;
        let day = self.vouched.confirmed.unwrap_or(found.first_seen.day());
        let half_life = numbers.signals.freshness_half_life_days;
        conflict::Claim {
            posterior: found.judged.confidence.posterior,
            recency: recency(day, now.day(), half_life),
            citations: self.vouched.cited,
        }
    }
}

/// Which way an entry speaks.
pub(super) fn polarity(view: &View) -> Polarity {
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

    /// What is said beside each of those that are listed: whether the other comes after it, and why.
    fn said(resolution: &Resolution, order: &[EntryId], tried: &[EntryId]) -> Vec<(bool, String)> {
        let rivalry = Rivalry { one: WINNER, two: LOSER, resolution: resolution.clone() };
        let named = |entry: EntryId| {
            let (code, title) = ("L-7F3KQ2MX".to_owned(), "Other".to_owned());
            Some(Named { code, title, mean: 0.5, is_tried: tried.contains(&entry) })
        };
        let caveats = caveats(order, &[rivalry], &named);
        let of = |entry: &EntryId| match &caveats[entry][..] {
            [Caveat::CompetesWith { is_first, why, .. }] => (*is_first, why.clone()),
            other => panic!("{other:?}"),
        };
        order.iter().map(of).collect()
    }

    #[test]
    fn rivals_are_told_why_they_are_listed_as_they_are() {
        let (difference, threshold) = (0.3, 0.1);
        let outweighs = Resolution::Outweighs { winner: Side::A, difference, threshold };
        let by = "by 0.30 where 0.10 decide";
        let own = format!("more speaks for it, {by}");
        let other = format!("more speaks for the other, {by}");
        let both = |first: String, second: String| [(true, first), (false, second)];
        let said = |order: &[EntryId], tried: &[EntryId]| said(&outweighs, order, tried);
        let expect = both(format!("listed first: {own}"), format!("listed after it: {other}"));
        assert_eq!(said(&[WINNER, LOSER], &[LOSER]), expect);
        // The other way round only what was tried is said to be listed first for that.
        let behind = format!("{own}; what was tried here is listed first");
        let expect = both(format!("tried here; but {other}"), behind);
        assert_eq!(said(&[LOSER, WINNER], &[LOSER]), expect);
        let behind = format!("{own}, though listed after it");
        let expect = both(format!("listed first, but {other}"), behind);
        for tried in [&[WINNER][..], &[WINNER, LOSER], &[]] {
            assert_eq!(said(&[LOSER, WINNER], tried), expect, "{tried:?}");
        }
        // What is not there is listed neither before nor after.
        let less = format!("not listed; less speaks for it, {by}");
        assert_eq!(said(&[WINNER], &[]), [(false, less)]);
        assert_eq!(said(&[LOSER], &[LOSER]), [(false, format!("not listed; {own}"))]);
    }

    #[test]
    fn what_decides_is_told_from_either_side() {
        let better_on = vec![Criterion::Evidence, Criterion::Recency];
        let dominates = Resolution::Dominates { winner: Side::A, better_on };
        let competing = Resolution::Competing { difference: 0.05, threshold: 0.1 };
        let neither = "neither is clearly better, by 0.05 where 0.10 decide";
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
