//! Decides whether two entries contradict each other, and which of them is listed first.
//!
//! Both entries are always shown and named; a winner is only listed first, with the reason.
//! Separate from ranking: this compares two entries with each other, independent of any query. It
//! never removes an entry.

use std::collections::BTreeSet;

use crate::clamp_to_unit::unit;
use crate::posterior::Posterior;

/// Parameters of the contradiction rule; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Two entries share a subject only if the Jaccard index of their tags exceeds this value.
    pub overlap_above: f64,
    /// Lead in the mean that counts as a clear advantage.
    pub mean_margin: f64,
    /// Lead in recency that counts as a clear advantage.
    pub recency_margin: f64,
    /// Lead in independent citations that counts as a clear advantage.
    pub citations_margin: u32,
    /// Number of criteria on which one entry needs a clear advantage to dominate.
    pub criteria_min: usize,
    /// Weight of the mean in the composite.
    pub mean_weight: f64,
    /// Weight of recency in the composite.
    pub recency_weight: f64,
    /// Weight of citations in the composite.
    pub citations_weight: f64,
    /// Number of citations at which the citation term reaches half of its weight.
    pub citations_half: f64,
    /// Smallest difference of the composites that decides, for unlimited evidence.
    pub threshold_base: f64,
    /// Added to the threshold after division by the average mass: little evidence needs a larger
    /// difference.
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

/// Whether an entry recommends or advises against its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarity {
    /// The entry recommends the subject or reports that it works.
    Positive,
    /// The entry does neither.
    Neutral,
    /// The entry advises against the subject or reports that it fails.
    Negative,
}

impl Polarity {
    /// Whether one of the two is positive and the other negative.
    #[must_use]
    pub fn opposes(self, other: Self) -> bool {
        matches!((self, other), (Self::Positive, Self::Negative) | (Self::Negative, Self::Positive))
    }
}

/// Properties of an entry by which a contradiction is detected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContradictionSubject<'a> {
    /// Whether the entry recommends or advises against its subject.
    pub polarity: Polarity,
    /// Tags of the entry.
    pub tags: &'a BTreeSet<String>,
}

/// Result of a check for a contradiction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contradiction {
    /// The two entries contradict each other.
    Found {
        /// Jaccard index of their tags, in [0, 1].
        overlap: f64,
        /// Similarity of their texts as the embedding model measures it.
        similarity: f64,
    },
    /// The entries have the same polarity, or one of them is neutral.
    SamePolarity,
    /// The tags of the entries overlap too little.
    OtherTags,
    /// The texts of the entries are not related.
    OtherTopic,
}

/// Checks whether `a` and `b` contradict each other. `similarity` is the similarity of their texts;
/// the embedding model calls texts related above `related`.
#[must_use]
pub fn contradiction(
    a: ContradictionSubject<'_>,
    b: ContradictionSubject<'_>,
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

/// Jaccard index of two tag sets; 0 if both are empty.
fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let both = a.intersection(b).count();
    let all = a.union(b).count();
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

/// Evidence for one of two contradicting entries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntryWeight {
    /// Confidence in the entry, prior included.
    pub posterior: Posterior,
    /// Recency of the entry, in [0, 1].
    pub recency: f64,
    /// Number of independent citations.
    pub citations: u32,
}

/// One of the two compared entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairSide {
    /// The entry passed first.
    A,
    /// The entry passed second.
    B,
}

/// Criterion by which contradicting entries are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Mean of the confidence.
    Evidence,
    /// Recency of the entry.
    Recency,
    /// Number of independent citations.
    Provenance,
}

/// Which of two contradicting entries is listed first, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// One entry has a clear advantage on enough criteria and is behind on none.
    Dominates {
        /// Entry that is listed first.
        winner: PairSide,
        /// Criteria on which it has a clear advantage.
        better_on: Vec<Criterion>,
    },
    /// One entry has a clearly higher composite.
    Outweighs {
        /// Entry that is listed first.
        winner: PairSide,
        /// Difference of the composites.
        difference: f64,
        /// Threshold that the difference exceeded.
        threshold: f64,
    },
    /// Neither entry wins; both are shown as competing.
    Competing {
        /// Difference of the composites.
        difference: f64,
        /// Threshold that the difference did not exceed.
        threshold: f64,
    },
}

/// Tolerance for comparisons at a margin, so that floating-point rounding does not decide.
const EPSILON: f64 = 1e-9;

/// Decides which of two contradicting entries is listed first.
#[must_use]
pub fn resolve(a: &EntryWeight, b: &EntryWeight, params: &Params) -> Resolution {
    for (winner, one, other) in [(PairSide::A, a, b), (PairSide::B, b, a)] {
        if let Some(better_on) = dominates(one, other, params) {
            return Resolution::Dominates { winner, better_on };
        }
    }
    let (of_a, of_b) = (composite(a, params), composite(b, params));
    let difference = (of_a - of_b).abs();
    let mass = f64::midpoint(a.posterior.mass(), b.posterior.mass());
    let threshold = params.threshold_base + params.threshold_over_mass / mass;
    if difference > threshold + EPSILON {
        let winner = if of_a > of_b { PairSide::A } else { PairSide::B };
        Resolution::Outweighs { winner, difference, threshold }
    } else {
        Resolution::Competing { difference, threshold }
    }
}

/// The criteria on which `one` has a clear advantage; `None` if they are too few or it is behind on
/// any criterion.
fn dominates(one: &EntryWeight, other: &EntryWeight, params: &Params) -> Option<Vec<Criterion>> {
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

fn composite(claim: &EntryWeight, params: &Params) -> f64 {
    let citations = f64::from(claim.citations);
    params.mean_weight * claim.posterior.mean()
        + params.recency_weight * unit(claim.recency)
        + params.citations_weight * citations / (citations + params.citations_half)
}

#[cfg(test)]
mod tests;
