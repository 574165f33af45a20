//! Settings of answers: ranking, size, co-occurrence, contradictions and duplicates.
//!
//! They decide the content and order of answers and change nothing in the store. The formulas are
//! in the crate `scoring`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::units::{BoundedInteger, Days, Factor, Fraction, Positive, ScopeName, SignalWeight};

/// `[retrieval]` and `[tuning.retrieval]`: ranking and size of answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    /// Default number of entries in one answer. A caller may ask for at most 100.
    pub entries_max: BoundedInteger<1, 100>,
    /// Default token budget of an answer to a program.
    pub budget_tokens: BoundedInteger<1, 1_000_000>,
    /// Default token budget of an answer to an executor.
    pub executor_budget_tokens: BoundedInteger<1, 1_000_000>,
    /// Half-life of freshness.
    pub freshness_half_life: Days,
    /// Bonus of a pinned entry, added to the score.
    pub pin_bonus: Fraction,
    /// Deduction for each failure on this node since the last success here.
    pub recent_failure_penalty: Fraction,
    /// Weights of the ranking signals.
    pub weights: RetrievalWeights,
    /// Weights of the ranking signals for single workspaces, by workspace name.
    pub workspace_weights: BTreeMap<ScopeName, RetrievalWeights>,
    /// Value of the status signal, by status.
    pub status_bonus: StatusBonus,
    /// Discount on the score of entries by other authors.
    pub foreign: Foreign,
    /// Thresholds for the tier that `auto` chooses.
    pub tiers: Tiers,
    /// The briefing: a summary of a workspace without a question.
    pub briefing: Briefing,
}

/// `[tuning.retrieval.briefing]`: the summary of a workspace without a question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Briefing {
    /// Token budget of a briefing.
    pub budget_tokens: BoundedInteger<100, 20_000>,
    /// Maximum number of entries in one section.
    pub section_entries_max: BoundedInteger<1, 100>,
    /// Verified entries with a lower freshness are listed as stale.
    pub freshness_min: Fraction,
    /// Time for which entries of peers are listed as recent.
    pub recent_within: Days,
}

/// `[tuning.retrieval.weights]`: weights of the ranking signals. They sum to 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievalWeights {
    /// Relevance of the entry to the question.
    pub semantic: SignalWeight,
    /// Thompson sample of the entry's confidence.
    pub thompson: SignalWeight,
    /// Freshness: whether the entry still holds.
    pub freshness: SignalWeight,
    /// Status of the entry.
    pub status: SignalWeight,
    /// Whether the entry belongs to the caller's thread.
    pub thread: SignalWeight,
    /// Co-occurrence with another result.
    pub cooccurrence: SignalWeight,
}

/// `[tuning.retrieval.status_bonus]`: value of the status signal.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusBonus {
    /// For a verified entry.
    pub verified: Fraction,
    /// For an active entry.
    pub active: Fraction,
    /// For a candidate.
    pub candidate: Fraction,
}

/// `[tuning.retrieval.foreign]`: discount on the score of entries by other authors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// Share of the lower quantile of the entry's confidence.
    pub quantile_share: Fraction,
    /// Share of the floor of the entry's status.
    pub floor_share: Fraction,
    /// Floor of a verified entry.
    pub floor_verified: Fraction,
    /// Floor of an active entry.
    pub floor_active: Fraction,
    /// Floor of a candidate.
    pub floor_candidate: Fraction,
    /// Maximum difference between the factor and the author's weight.
    pub author_weight_margin: Fraction,
    /// Minimum of the factor.
    pub factor_min: Fraction,
    /// Maximum of the factor.
    pub factor_max: Fraction,
}

/// `[tuning.retrieval.tiers]`: thresholds for the tier that `auto` chooses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    /// Number of different sources from which summaries suffice.
    pub summary_sources_min: BoundedInteger<0, 1_000>,
    /// Best score above which summaries suffice.
    pub summary_score_above: Fraction,
    /// Number of different sources from which standard detail suffices.
    pub standard_sources_min: BoundedInteger<0, 1_000>,
    /// Best score above which standard detail suffices.
    pub standard_score_above: Fraction,
    /// Maximum length of a summary line, in characters.
    pub summary_characters_max: BoundedInteger<1, 65_536>,
    /// Maximum length of a preview, in characters.
    pub preview_characters_max: BoundedInteger<1, 65_536>,
}

/// `[tuning.cooccurrence]`: pairs of entries that were served together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cooccurrence {
    /// Weight of a new pair.
    pub weight_initial: Positive,
    /// Factor on the weight when both are in one answer.
    pub query_factor: Factor,
    /// Factor on the weight when both are in one successful task.
    pub success_factor: Factor,
    /// Decay factor of the weight per day.
    pub decay_per_day: Fraction,
    /// Pairs with a lower weight are dropped.
    pub prune_below: Positive,
    /// Maximum weight of a pair.
    pub weight_max: Positive,
    /// Rate at which the weight saturates the signal.
    pub saturation_rate: Positive,
}

/// `[tuning.contradiction]`: resolution of contradictions between entries.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContradictionRules {
    /// Minimum tag overlap (exclusive) for a contradiction.
    pub tag_overlap_above: Fraction,
    /// Margin of the mean confidence.
    pub mean_margin: Fraction,
    /// Margin of recency.
    pub recency_margin: Fraction,
    /// Margin of provenance, in independent citations.
    pub citations_margin: BoundedInteger<1, 1_000>,
    /// Number of the three criteria that the winner must lead.
    pub leading_criteria_min: BoundedInteger<1, 3>,
    /// Composite score, used if no entry wins outright.
    pub composite: Composite,
}

/// `[tuning.contradiction.composite]`: composite score, used if no entry wins outright.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composite {
    /// Weight of the mean confidence.
    pub mean_weight: Fraction,
    /// Weight of recency.
    pub recency_weight: Fraction,
    /// Weight of provenance.
    pub provenance_weight: Fraction,
    /// Number of citations at which the provenance part is 0.5.
    pub provenance_half_citations: Positive,
    /// Minimum difference, independent of the amount of evidence.
    pub threshold_base: Fraction,
    /// Additional difference, divided by the amount of evidence.
    pub threshold_spread: Positive,
}

/// `[tuning.duplicates]`: display of duplicates.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duplicates {
    /// Factor by which a text must be longer to be shown instead of the survivor's.
    pub longer_text_factor: Factor,
}
