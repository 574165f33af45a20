//! Converts the configuration to the parameters of `scoring`.

use super::foreign_gate;
use klnode_config::Config;
use klnode_config::sections as of;
use klnode_config::units::{DecayClass, DisclosureRule, ScopeName, ThreadDefault};
use klnode_engine::TaskParams;
use klnode_scoring::caller_role::CallerRole;
use klnode_scoring::hop::Hop;
use klnode_scoring::rank::signals;
use klnode_scoring::rank::{PerSignal, Weights};
use klnode_scoring::{
    admission, audit, briefing, confidence, contradiction, cooccurrence, credit, decay,
    lone_finding, rank, status, token_budget, trust,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The parameters of assessment and ranking, from the configuration.
#[derive(Clone, Debug)]
pub struct ScoringParams {
    pub(super) confidence: confidence::Params,
    pub(super) status: status::Params,
    /// Step sizes of outcomes, and the conditions for a reset.
    outcome: credit::Params,
    /// True if evaluating an entry's predicates counts as an observation.
    are_looks_counted: bool,
    pub(super) admission: admission::Params,
    pub(super) signals: signals::Params,
    pub(super) rank: rank::Params,
    /// Deduction for each failure on this node since the last success here.
    pub(super) recent_failure_penalty: f64,
    pub(super) budget: token_budget::Params,
    pub(super) cooccurrence: cooccurrence::Params,
    pub(super) conflict: contradiction::Params,
    pub(super) trust: trust::Params,
    pub(super) gate: foreign_gate::Params,
    /// Sections and token budget of a briefing.
    pub(super) briefing: briefing::Params,
    pub(super) briefing_tokens: u32,
    pub(super) audit: audit::Params,
    /// Default weights of the ranking signals.
    pub(super) weights: Weights,
    /// The operator's overrides of the weights, by workspace name.
    pub(super) workspace_weights: BTreeMap<String, Weights>,
    /// Length limits of one-liners and previews, in characters.
    pub(super) summary_characters_max: usize,
    pub(super) preview_characters_max: usize,
    /// Of two duplicates, the longer text is shown if its length exceeds the survivor's by this
    /// factor.
    pub(super) longer_text_factor: f64,
    /// The time after which an unfinished task counts as abandoned.
    task_expires_after: Duration,
    /// Number of root tasks in which an entry is served without evidence before it is archived.
    archive_after: u32,
    /// Names of customers and organisations that must not be shared.
    pub(super) organisation_names: Vec<String>,
    /// The treatment of entries with flagged passages in shared workspaces.
    pub(super) disclosure: DisclosureRule,
    /// The rule for the thread of callers who name none.
    thread_default: ThreadDefault,
    /// Delay between the end of a task and the comparison of its findings.
    findings_compared_after: Duration,
}

impl ScoringParams {
    /// Reads all parameters from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            confidence: confidence(&config.confidence),
            outcome: outcome(&config.confidence),
            are_looks_counted: config.anchors.count_as_observation.is_on(),
            status: status::Params {
                active_successes_min: config.status.active_successes_min.get(),
                verified_alpha_min: config.status.verified_alpha_min.get(),
                verified_mean_min: config.status.verified_mean_min.get(),
                prior_mean: prior_mean(&config.confidence),
                stale_after_days: config.status.stale_after.get(),
            },
            admission: admission(&config.admission, &config.confidence.weight),
            signals: signals(&config.retrieval, &config.cooccurrence),
            rank: rank(&config.retrieval),
            recent_failure_penalty: config.retrieval.recent_failure_penalty.get(),
            budget: budget(&config.retrieval),
            cooccurrence: cooccurrence(&config.cooccurrence),
            conflict: conflict(&config.contradiction),
            trust: trust(&config.trust, &config.confidence.weight),
            gate: gate(&config.gate),
            briefing: briefing(&config.retrieval.briefing, &config.gate),
            briefing_tokens: config.retrieval.briefing.budget_tokens.get(),
            audit: audit(&config.audit),
            weights: weights(&config.retrieval.weights),
            workspace_weights: config
                .retrieval
                .workspace_weights
                .iter()
                .map(|(name, of)| (name.as_str().to_owned(), weights(of)))
                .collect(),
            summary_characters_max: config.retrieval.tiers.summary_characters_max.as_usize(),
            preview_characters_max: config.retrieval.tiers.preview_characters_max.as_usize(),
            longer_text_factor: config.duplicates.longer_text_factor.get(),
            task_expires_after: config.tasks.expire_after.get(),
            archive_after: config.tasks.archive_after_root_tasks.get(),
            organisation_names: {
                let names = config.scan.organisation_names.as_slice().iter();
                names.map(|name| name.as_str().to_owned()).collect()
            },
            disclosure: config.scan.disclosure,
            thread_default: config.threads.default,
            findings_compared_after: config.tasks.findings_comparison_delay.get(),
        }
    }
}

impl ScoringParams {
    /// Default number of hits in one answer.
    pub fn hits_default(&self) -> usize {
        self.budget.entries_max
    }

    /// Default token budget of one gated answer; smaller for executors.
    pub fn tokens_default(&self, role: Option<CallerRole>) -> u32 {
        match role {
            Some(CallerRole::Executor) => self.budget.tokens_max_executor,
            _ => self.budget.tokens_max,
        }
    }

    /// Step sizes of outcomes, and the conditions for a reset.
    pub fn outcome(&self) -> &credit::Params {
        &self.outcome
    }

    /// True if entries with flagged passages are not written.
    pub fn refuses_disclosure(&self) -> bool {
        self.disclosure == DisclosureRule::Refuse
    }

    /// True if evaluating an entry's predicates counts as an observation.
    pub fn are_looks_counted(&self) -> bool {
        self.are_looks_counted
    }

    /// The time after which an unfinished task counts as abandoned.
    pub fn task_expires_after(&self) -> Duration {
        self.task_expires_after
    }

    /// The number of root tasks in which an entry is served without evidence before it is archived.
    pub fn archive_after(&self) -> u32 {
        self.archive_after
    }

    /// The thread of a caller who names none, given the checked-out branch.
    pub fn thread_on(&self, branch: Option<&str>) -> Option<String> {
        match self.thread_default {
            ThreadDefault::None => None,
            ThreadDefault::Branch => branch.map(str::to_owned),
        }
    }

    /// The delay between the end of a task and the comparison of its findings.
    pub fn findings_compared_after(&self) -> Duration {
        self.findings_compared_after
    }

    /// The length limit of a one-liner, in characters.
    pub fn one_liner_characters_max(&self) -> usize {
        self.summary_characters_max
    }
}

/// The mean of an entry without observations.
fn prior_mean(of: &of::Confidence) -> f64 {
    of.prior_alpha.get() / (of.prior_alpha.get() + of.prior_beta.get())
}

fn confidence(of: &of::Confidence) -> confidence::Params {
    confidence::Params {
        prior_alpha: of.prior_alpha.get(),
        prior_beta: of.prior_beta.get(),
        floor: of.floor.get(),
        member_mass_max: of.foreign_evidence.member_max.get(),
        peer_mass_max: of.foreign_evidence.peer_max.get(),
        non_members_mass_max: of.foreign_evidence.non_members_max.get(),
        lower_quantile: of.lower_quantile.get(),
        decay: decay::Params {
            ephemeral_gamma: of.decay_per_day.ephemeral.get(),
            stable_gamma: of.decay_per_day.stable.get(),
            permanent_gamma: of.decay_per_day.permanent.get(),
            archived_gamma: of.decay_per_day.archived.get(),
            class_unnamed: match of.decay_class {
                DecayClass::Ephemeral => decay::DecayClass::Ephemeral,
                DecayClass::Stable => decay::DecayClass::Stable,
                DecayClass::Permanent => decay::DecayClass::Permanent,
            },
            age_days_max: of.decay_age_max.get(),
        },
    }
}

fn outcome(of: &of::Confidence) -> credit::Params {
    credit::Params {
        base: of.outcome.quality_offset.get(),
        amount_min: of.outcome.step_min.get(),
        amount_max: of.outcome.step_max.get(),
        rank_factor: of.outcome.rank_decay.get(),
        unnamed_max: of.outcome.guessed_entries_max.as_usize(),
        unnamed_factor: of.outcome.guessed_weight.get(),
        incidental_factor: of.outcome.incidental_weight.get(),
        feedback: of.outcome.feedback_step.get(),
        restoration_below: of.restoration.below_peak_fraction.get(),
        restoration_share: of.restoration.step_fraction.get(),
        reset_observations_min: of.reset.effective_observations_min.get(),
        reset_mean_min: of.reset.mean_min.get(),
        reset_mean_max: of.reset.mean_max.get(),
    }
}

fn admission(of: &of::Admission, weight: &of::Weight) -> admission::Params {
    admission::Params {
        confidence: of.weights.confidence.get(),
        provenance: of.weights.provenance.get(),
        scanner: of.weights.scanner.get(),
        federation: of.weights.federation.get(),
        observation_mass: of.weights.observation_mass.get(),
        kind: of.weights.entry_type.get(),
        recency: of.weights.recency.get(),
        reject_below: of.reject_below.get(),
        candidate_below: of.candidate_below.get(),
        foreign_candidate_below: of.foreign_candidate_below.get(),
        mass_rate: of.observation_mass_rate.get(),
        foreign_weight_max: weight.foreign_max.get(),
        ..admission::Params::default()
    }
}

fn signals(retrieval: &of::Retrieval, pairs: &of::Cooccurrence) -> signals::Params {
    signals::Params {
        freshness_half_life_days: f64::from(retrieval.freshness_half_life.get()),
        status_verified: retrieval.status_bonus.verified.get(),
        status_active: retrieval.status_bonus.active.get(),
        status_candidate: retrieval.status_bonus.candidate.get(),
        cooccurrence_rate: pairs.saturation_rate.get(),
    }
}

fn rank(retrieval: &of::Retrieval) -> rank::Params {
    let foreign = &retrieval.foreign;
    rank::Params {
        pin_bonus: retrieval.pin_bonus.get(),
        foreign_evidence: foreign.quantile_share.get(),
        foreign_status: foreign.floor_share.get(),
        floor_verified: foreign.floor_verified.get(),
        floor_active: foreign.floor_active.get(),
        floor_candidate: foreign.floor_candidate.get(),
        foreign_over_weight_max: foreign.author_weight_margin.get(),
        foreign_min: foreign.factor_min.get(),
        foreign_max: foreign.factor_max.get(),
    }
}

fn budget(retrieval: &of::Retrieval) -> token_budget::Params {
    let tiers = &retrieval.tiers;
    token_budget::Params {
        entries_max: retrieval.entries_max.as_usize(),
        tokens_max: retrieval.budget_tokens.get(),
        tokens_max_executor: retrieval.executor_budget_tokens.get(),
        summary_sources_min: tiers.summary_sources_min.as_usize(),
        summary_score_above: tiers.summary_score_above.get(),
        standard_sources_min: tiers.standard_sources_min.as_usize(),
        standard_score_above: tiers.standard_score_above.get(),
    }
}

/// The parameters by which pairs of entries that are served together gain and lose weight.
pub fn cooccurrence(pairs: &of::Cooccurrence) -> cooccurrence::Params {
    cooccurrence::Params {
        weight_initial: pairs.weight_initial.get(),
        query_factor: pairs.query_factor.get(),
        success_factor: pairs.success_factor.get(),
        decay_per_day: pairs.decay_per_day.get(),
        prune_below: pairs.prune_below.get(),
        weight_max: pairs.weight_max.get(),
    }
}

/// The parameters of tasks: credit at their end, expiry and archiving.
pub fn tasks(config: &Config) -> TaskParams {
    TaskParams {
        outcome: outcome(&config.confidence),
        expires_after: config.tasks.expire_after.get(),
        archive_after: config.tasks.archive_after_root_tasks.get(),
        outside_per_day_max: config.tasks.outside_observations_per_day_max.get(),
        user_primed_for: config.tasks.user_priming_lifetime.get(),
        confidence: confidence(&config.confidence),
        lone: lone_finding::Params {
            is_on: config.tasks.accept_lone_findings.is_on(),
            incident_severity_min: config.tasks.lone_incident_severity_min.get(),
            pattern_severity_min: config.tasks.lone_pattern_severity_min.get(),
            pattern_confidence_min: config.tasks.lone_pattern_confidence_min.get(),
        },
        search_required: names(config.tasks.search_required.as_slice()),
        strict_workspaces: names(config.entries.strict_workspaces.as_slice()),
    }
}

fn names(of: &[ScopeName]) -> BTreeSet<String> {
    of.iter().map(|name| name.as_str().to_owned()).collect()
}

fn conflict(of: &of::ContradictionRules) -> contradiction::Params {
    contradiction::Params {
        overlap_above: of.tag_overlap_above.get(),
        mean_margin: of.mean_margin.get(),
        recency_margin: of.recency_margin.get(),
        citations_margin: of.citations_margin.get(),
        criteria_min: of.leading_criteria_min.as_usize(),
        mean_weight: of.composite.mean_weight.get(),
        recency_weight: of.composite.recency_weight.get(),
        citations_weight: of.composite.provenance_weight.get(),
        citations_half: of.composite.provenance_half_citations.get(),
        threshold_base: of.composite.threshold_base.get(),
        threshold_over_mass: of.composite.threshold_spread.get(),
    }
}

fn trust(of: &of::Trust, weight: &of::Weight) -> trust::Params {
    trust::Params {
        prior_alpha: of.prior_alpha.get(),
        prior_beta: of.prior_beta.get(),
        success: of.success_step.get(),
        failure: of.failure_step.get(),
        successes_per_day_max: of.successes_per_day_max.get(),
        quantile: of.quantile.get(),
        window: of.recent_outcomes.as_usize(),
        fade_after_days: of.decay_after.get(),
        fade_gamma: of.decay_per_day.get(),
        hop_factor: weight.hop_discount.get(),
        weight_max: weight.foreign_max.get(),
        hop_max: Hop(u8::try_from(of.hop_max.get()).unwrap_or(u8::MAX)),
    }
}

fn gate(of: &of::Gate) -> foreign_gate::Params {
    foreign_gate::Params {
        last_places_max: of.uncorroborated_entries_max.as_usize(),
        successes_min: of.corroborating_successes_min.get(),
        members_min: of.corroborating_members_min.get(),
        trust_min: of.corroborating_trust_min.get(),
        author_trust_min: of.author_trust_min.get(),
        author_successes_min: f64::from(of.author_successes_min.get()),
    }
}

fn briefing(of: &of::Briefing, gate: &of::Gate) -> briefing::Params {
    briefing::Params {
        section_entries_max: of.section_entries_max.as_usize(),
        fresh_min: of.freshness_min.get(),
        recent_days: of.recent_within.get(),
        untried_max: gate.uncorroborated_entries_max.as_usize(),
    }
}

fn audit(of: &of::Audit) -> audit::Params {
    audit::Params {
        norm_days_max: of.norm_confirmed_within.get(),
        tag_entries_max: u64::from(of.tag_entries_max.get()),
        review_days_max: of.review_confirmed_within.get(),
        review_entries_max: u64::from(of.review_entries_max.get()),
        recent_days: of.recent_within.get(),
        sample_min: u64::from(of.sample_size_min.get()),
        stale_fraction_max: of.stale_fraction_max.get(),
        disputed_fraction_max: of.disputed_fraction_max.get(),
        friction_max: u64::from(of.friction_max.get()),
        waiting_max: u64::from(of.waiting_max.get()),
        failed_fraction_max: of.failed_fraction_max.get(),
    }
}

fn weights(of: &of::RetrievalWeights) -> Weights {
    let weights = PerSignal {
        semantic: of.semantic.get(),
        thompson: of.thompson.get(),
        freshness: of.freshness.get(),
        status: of.status.get(),
        thread: of.thread.get(),
        cooccurrence: of.cooccurrence.get(),
    };
    Weights::new(weights).expect("the configuration was checked to sum to one")
}

#[cfg(test)]
mod tests;
