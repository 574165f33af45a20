//! Thresholds for judging entries and authors: tasks, anchors, status, admission, gate,
//! scanner and trust.
//!
//! Each node judges for itself, and none of these values is ever replicated. The rules are in the
//! crate `scoring`.

use serde::Deserialize;

use crate::units::{
    BoundedInteger, BoundedList, Days, DisclosureRule, Fraction, Interval, IntervalFrom, Positive,
    ScopeName, Switch,
};

/// `[tasks]` and `[tuning.tasks]`: archiving of unconfirmed entries, expiry of tasks, and evidence
/// outside tasks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRules {
    /// Number of root tasks with an entry, but without evidence for it, after which it is archived.
    pub archive_after_root_tasks: BoundedInteger<1, 1_000_000>,
    /// Time after which an unfinished task expires.
    pub expire_after: Interval,
    /// Maximum number of successes, and of failures, that count per entry, caller and day outside
    /// tasks.
    pub outside_observations_per_day_max: BoundedInteger<1, 1_000_000>,
    /// Time for which an entry that a user was served primes that user's indistinguishable callers.
    pub user_priming_lifetime: IntervalFrom<10>,
    /// Delay between the end of a task and the comparison of its findings.
    pub findings_comparison_delay: Interval,
    /// Whether the finding of a single agent may become an entry.
    pub accept_lone_findings: Switch,
    /// Agents whose tasks succeed only after a search.
    pub search_required: BoundedList<ScopeName>,
    /// Severity from which such a finding is an incident that was prevented.
    pub lone_incident_severity_min: Positive,
    /// Severity from which such a finding is a pattern, if the finder is sure enough.
    pub lone_pattern_severity_min: Positive,
    /// Confidence that a pattern needs.
    pub lone_pattern_confidence_min: Positive,
}

/// `[entries]`: the form of new entries.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryRules {
    /// Workspaces in which every entry must have the strict form.
    pub strict_workspaces: BoundedList<ScopeName>,
}

/// `[anchors]`: effects of checking the predicates that entries depend on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchors {
    /// Whether a check counts as an observation of this node.
    pub count_as_observation: Switch,
}

/// `[status]` and `[tuning.status]`: thresholds for the statuses active, verified and stale.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusThresholds {
    /// Number of local successes after which a candidate becomes active. For texts of the reader's
    /// own nodes, all successes of one day and one boot count as one.
    pub active_successes_min: BoundedInteger<1, 1_000>,
    /// Minimum α of a verified entry.
    pub verified_alpha_min: Positive,
    /// Minimum mean confidence of a verified entry.
    pub verified_mean_min: Fraction,
    /// Time without being served after which an entry becomes stale.
    pub stale_after: Days,
}

/// `[tuning.admission]`: the score that decides which entries can be retrieved.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// An entry with a lower score is rejected.
    pub reject_below: Fraction,
    /// An entry with a lower score stays a candidate.
    pub candidate_below: Fraction,
    /// Like `candidate_below`, for entries of other authors.
    pub foreign_candidate_below: Fraction,
    /// Rate at which successes saturate their component of the score.
    pub observation_mass_rate: Positive,
    /// Weights of the components. They sum to 1.
    pub weights: AdmissionWeights,
}

/// `[tuning.admission.weights]`: weights of the components of the admission score.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmissionWeights {
    /// Mean confidence of the entry.
    pub confidence: Fraction,
    /// Author and citations.
    pub provenance: Fraction,
    /// Result of the content scanner.
    pub scanner: Fraction,
    /// Hop distance and trust of the author.
    pub federation: Fraction,
    /// Amount of observed successes.
    pub observation_mass: Fraction,
    /// Value of the entry's type.
    pub entry_type: Fraction,
    /// Age of the entry.
    pub recency: Fraction,
}

/// `[tuning.gate]`: the filter for answers to programs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Maximum number of uncorroborated entries of members in an answer.
    pub uncorroborated_entries_max: BoundedInteger<0, 1_000>,
    /// Number of local successes that corroborate an entry.
    pub corroborating_successes_min: BoundedInteger<1, 1_000>,
    /// Number of members whose independent successes corroborate an entry instead.
    pub corroborating_members_min: BoundedInteger<1, 1_000>,
    /// Minimum trust of each of these members.
    pub corroborating_trust_min: Fraction,
    /// Minimum earned trust of a member whose uncorroborated entries rank like corroborated ones.
    pub author_trust_min: Fraction,
    /// Minimum number of successes here of such a member's texts.
    pub author_successes_min: BoundedInteger<1, 1_000>,
}

/// `[scan]`: additional patterns of the content scanner, and the treatment of flagged entries.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// Names that are flagged in entries that will be shared.
    pub organisation_names: BoundedList<ScopeName>,
    /// The treatment of own entries with flagged passages in shared workspaces.
    pub disclosure: DisclosureRule,
}

/// `[trust]` and `[tuning.trust]`: trust in authors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// Prior good outcomes of every author.
    pub prior_alpha: Positive,
    /// Prior bad outcomes of every author.
    pub prior_beta: Positive,
    /// Quantile of Beta(α, β) that serves as trust.
    pub quantile: Fraction,
    /// Amount that a success adds to α.
    pub success_step: Positive,
    /// Amount that a failure adds to β.
    pub failure_step: Positive,
    /// Maximum number of successes that count per author and day.
    pub successes_per_day_max: BoundedInteger<1, 1_000_000>,
    /// Age from which evidence decays.
    pub decay_after: Days,
    /// Decay factor per further day.
    pub decay_per_day: Fraction,
    /// Number of latest outcomes that limit the trust.
    pub recent_outcomes: BoundedInteger<1, 1_000>,
    /// Maximum hop distance. Authors further away have no weight.
    pub hop_max: BoundedInteger<1, 16>,
}
