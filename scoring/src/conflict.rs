//! Whether two entries contradict each other, and which of them comes first.
//!
//! Both are always shown and named; a winner is only listed first, with the reason. Separate from
//! ranking: this compares two entries with each other, whatever the query. It never removes one.

use std::collections::BTreeSet;

use crate::posterior::Posterior;
use crate::unit::unit;

/// The numbers of conflict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Two entries are about one thing only if their tags overlap by more than this.
    pub overlap_above: f64,
    /// The margin by which a mean is better.
    pub mean_margin: f64,
    /// The margin by which recency is better.
    pub recency_margin: f64,
    /// The margin by which independent citations are better.
    pub citations_margin: u32,
    /// On how many criteria the better one must be better by a margin.
    pub criteria_min: usize,
    /// The weight of the mean in the composite.
    pub mean_weight: f64,
    /// The weight of recency in the composite.
    pub recency_weight: f64,
    /// The weight of citations in the composite.
    pub citations_weight: f64,
    /// The number of citations that counts half.
    pub citations_half: f64,
    /// The least difference of composites that decides.
    pub threshold_base: f64,
    /// Added to it, divided by the average mass: the less is known, the more is needed.
    pub threshold_over_mass: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            overlap_above: 0.3,
            mean_margin: 0.15,
            recency_margin: 0.2,
            citations_margin: 2,
            criteria_min: 2,
            mean_weight: 0.5,
            recency_weight: 0.3,
            citations_weight: 0.2,
            citations_half: 10.0,
            threshold_base: 0.05,
            threshold_over_mass: 2.0,
        }
    }
}

/// Which way an entry speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarity {
    /// Do, or it works.
    Positive,
    /// Neither.
    Neutral,
    /// Do not, or it fails.
    Negative,
}

impl Polarity {
    /// Whether the one is for what the other is against.
    #[must_use]
    pub fn opposes(self, other: Self) -> bool {
        matches!((self, other), (Self::Positive, Self::Negative) | (Self::Negative, Self::Positive))
    }
}

/// What a contradiction is recognised by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject<'a> {
    /// Which way the entry speaks.
    pub polarity: Polarity,
    /// Its tags.
    pub tags: &'a BTreeSet<String>,
}

/// Whether two entries contradict each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contradiction {
    /// They do.
    Found {
        /// The overlap of their tags.
        overlap: f64,
        /// How alike their texts are.
        similarity: f64,
    },
    /// They speak the same way, or one of them neither way.
    SamePolarity,
    /// Their tags hardly overlap.
    OtherTags,
    /// Their texts are about different things.
    OtherTopic,
}

/// Whether `a` and `b` contradict, where the texts are alike by `similarity` and the model calls
/// texts related above `related`.
#[must_use]
pub fn contradiction(
    a: Subject<'_>,
    b: Subject<'_>,
    similarity: f64,
    related: f64,
    params: &Params,
) -> Contradiction {
    let overlap = jaccard(a.tags, b.tags);
    if !a.polarity.opposes(b.polarity) {
        Contradiction::SamePolarity
    } else if overlap <= params.overlap_above {
        Contradiction::OtherTags
    } else if similarity > related {
        Contradiction::Found { overlap, similarity }
    } else {
        Contradiction::OtherTopic
    }
}

/// The share of all tags that both have; 0 where there are none.
fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let both = a.intersection(b).count();
    let all = a.union(b).count();
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

/// What speaks for one of two contradicting entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// The confidence in it.
    pub posterior: Posterior,
    /// How recent it is, in [0, 1].
    pub recency: f64,
    /// Its independent citations.
    pub citations: u32,
}

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// What entries are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The mean of the confidence.
    Evidence,
    /// How recent it is.
    Recency,
    /// How many independent citations it has.
    Provenance,
}

/// Which of two contradicting entries is listed first, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// One is better by a margin on most criteria and worse on none.
    Dominates {
        /// The one listed first.
        winner: Side,
        /// On what it is better by a margin.
        better_on: Vec<Criterion>,
    },
    /// One has the clearly higher composite.
    Outweighs {
        /// The one listed first.
        winner: Side,
        /// By how much its composite is higher.
        difference: f64,
        /// What the difference had to exceed.
        threshold: f64,
    },
    /// Neither: both stand as competing.
    Competing {
        /// By how much the composites differ.
        difference: f64,
        /// What the difference would have had to exceed.
        threshold: f64,
    },
}

/// Rounding in sums of fractions must not decide at a margin.
const EPSILON: f64 = 1e-9;

/// Which of two contradicting entries comes first.
#[must_use]
pub fn resolve(a: &Claim, b: &Claim, params: &Params) -> Resolution {
    for (winner, one, other) in [(Side::A, a, b), (Side::B, b, a)] {
        if let Some(better_on) = dominates(one, other, params) {
            return Resolution::Dominates { winner, better_on };
        }
    }
    let (of_a, of_b) = (composite(a, params), composite(b, params));
    let difference = (of_a - of_b).abs();
    let mass = f64::midpoint(a.posterior.mass(), b.posterior.mass());
    let threshold = params.threshold_base + params.threshold_over_mass / mass;
    if difference > threshold + EPSILON {
        let winner = if of_a > of_b { Side::A } else { Side::B };
        Resolution::Outweighs { winner, difference, threshold }
    } else {
        Resolution::Competing { difference, threshold }
    }
}

/// What `one` is better on by a margin, if that is enough and it is worse on nothing.
fn dominates(one: &Claim, other: &Claim, params: &Params) -> Option<Vec<Criterion>> {
    let leads = [
        (Criterion::Evidence, one.posterior.mean() - other.posterior.mean(), params.mean_margin),
        (Criterion::Recency, unit(one.recency) - unit(other.recency), params.recency_margin),
        (
            Criterion::Provenance,
            f64::from(one.citations) - f64::from(other.citations),
            f64::from(params.citations_margin),
        ),
    ];
    if leads.iter().any(|(_, lead, _)| *lead < -EPSILON) {
        return None;
    }
    let better = leads.iter().filter(|(_, lead, margin)| *lead >= margin - EPSILON);
    let better_on: Vec<Criterion> = better.map(|(criterion, _, _)| *criterion).collect();
    (better_on.len() >= params.criteria_min).then_some(better_on)
}

fn composite(claim: &Claim, params: &Params) -> f64 {
    let citations = f64::from(claim.citations);
    params.mean_weight * claim.posterior.mean()
        + params.recency_weight * unit(claim.recency)
        + params.citations_weight * citations / (citations + params.citations_half)
}

#[cfg(test)]
mod tests;
