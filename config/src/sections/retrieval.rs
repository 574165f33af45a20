//! How answers are made: ranking, cutting, co-occurrence, conflict and duplicates.
//!
//! Together because all of them decide what a reader sees and in which order, and none of them
//! changes what is stored. The formulas are in `scoring`; nothing is computed here.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::units::{Days, Factor, Fraction, Name, Positive, SignalWeight, Whole};

/// `[retrieval]`: how answers are ranked and cut.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrieval {
    /// Entries in one answer; no question may ask for more than a hundred.
    pub entries_max: Whole<1, 100>,
    /// Tokens in one answer that is served to a program.
    pub budget_tokens: Whole<1, 1_000_000>,
    /// Tokens in one answer to an executor.
    pub executor_budget_tokens: Whole<1, 1_000_000>,
    /// The time in which freshness halves.
    pub freshness_half_life: Days,
    /// What a pin adds to the score.
    pub pin_bonus: Fraction,
    /// What each signal weighs.
    pub weights: RetrievalWeights,
    /// What each signal weighs in single workspaces, by their names.
    pub workspace_weights: BTreeMap<Name, RetrievalWeights>,
    /// The status signal.
    pub status_bonus: StatusBonus,
    /// How the score of a foreign entry is discounted.
    pub foreign: Foreign,
    /// Which tier `auto` chooses.
    pub tiers: Tiers,
    /// What is told of a workspace without a question.
    pub briefing: Briefing,
}

/// `[retrieval.briefing]`: what is told of a workspace without a question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Briefing {
    /// Tokens in one briefing.
    pub budget_tokens: Whole<100, 20_000>,
    /// Entries under one heading.
    pub section_entries_max: Whole<1, 100>,
    /// The least freshness of what is told as verified.
    pub fresh_min: Fraction,
    /// How long what peers brought is news.
    pub recent: Days,
}

/// `[retrieval.weights]`: what each signal of the score weighs; they sum to 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrievalWeights {
    /// How well the entry fits the question.
    pub semantic: SignalWeight,
    /// A sample of the entry's confidence.
    pub thompson: SignalWeight,
    /// Whether it still holds.
    pub freshness: SignalWeight,
    /// How far it has come.
    pub status: SignalWeight,
    /// Whether it belongs to the caller's thread.
    pub thread: SignalWeight,
    /// Whether it has been useful together with another result.
    pub cooccurrence: SignalWeight,
}

/// `[retrieval.status_bonus]`: the status signal.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusBonus {
    /// Of a verified entry.
    pub verified: Fraction,
    /// Of an active entry.
    pub active: Fraction,
    /// Of a candidate.
    pub candidate: Fraction,
}

/// `[retrieval.foreign]`: how the score of a foreign entry is discounted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// The share of the lower quantile of its confidence.
    pub quantile_share: Fraction,
    /// The share of the floor of its status.
    pub floor_share: Fraction,
    /// The floor of a verified entry.
    pub floor_verified: Fraction,
    /// The floor of an active entry.
    pub floor_active: Fraction,
    /// The floor of a candidate.
    pub floor_candidate: Fraction,
    /// How far the factor may lie above the author's weight.
    pub above_weight_max: Fraction,
    /// The least factor.
    pub factor_min: Fraction,
    /// The greatest factor.
    pub factor_max: Fraction,
}

/// `[retrieval.tiers]`: which tier `auto` chooses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    /// Different sources with which summaries are enough.
    pub summary_sources_min: Whole<0, 1_000>,
    /// The best score above which summaries are enough.
    pub summary_score_above: Fraction,
    /// Different sources with which standard detail is enough.
    pub standard_sources_min: Whole<0, 1_000>,
    /// The best score above which standard detail is enough.
    pub standard_score_above: Fraction,
    /// The length of a one-liner.
    pub summary_characters_max: Whole<1, 65_536>,
    /// The length of a preview.
    pub preview_characters_max: Whole<1, 65_536>,
}

/// `[cooccurrence]`: pairs of entries that are served together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cooccurrence {
    /// The weight of a pair that meets for the first time.
    pub weight_initial: Positive,
    /// What being in one answer does to the weight.
    pub query_factor: Factor,
    /// What being in one task that succeeded does to it.
    pub success_factor: Factor,
    /// What is left of it after one day.
    pub decay_per_day: Fraction,
    /// The weight below which a pair is dropped.
    pub prune_below: Positive,
    /// The greatest weight.
    pub weight_max: Positive,
    /// How fast weight fills the signal.
    pub saturation_rate: Positive,
}

/// `[conflict]`: entries that contradict each other.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conflict {
    /// The tag overlap above which opposite entries contradict.
    pub tag_overlap_above: Fraction,
    /// The margin of evidence.
    pub mean_margin: Fraction,
    /// The margin of recency.
    pub recency_margin: Fraction,
    /// The margin of provenance, in independent citations.
    pub citations_margin: Whole<1, 1_000>,
    /// On how many of the three the better one must win.
    pub better_on_min: Whole<1, 3>,
    /// What decides where neither wins outright.
    pub composite: Composite,
}

/// `[conflict.composite]`: what decides where neither wins outright.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composite {
    /// The weight of the mean.
    pub mean_weight: Fraction,
    /// The weight of recency.
    pub recency_weight: Fraction,
    /// The weight of provenance.
    pub provenance_weight: Fraction,
    /// The number of citations that fills half of the provenance part.
    pub provenance_half: Positive,
    /// The difference that is needed with any amount of evidence.
    pub threshold_base: Fraction,
    /// What little evidence adds to it.
    pub threshold_spread: Positive,
}

/// `[duplicates]`: entries that say the same.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duplicates {
    /// How much longer a text must be to be shown in place of the survivor's.
    pub longer_text_factor: Factor,
}
