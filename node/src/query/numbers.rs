//! The numbers of judgement, from the configuration to what `scoring` asks for.

use super::gate;
use crate::engine::TaskParams;
use klnode_config::Config;
use klnode_config::sections as of;
use klnode_config::units::{DecayClass, ThreadDefault};
use klnode_scoring::decay::Class;
use klnode_scoring::hop::Hop;
use klnode_scoring::rank::signals;
use klnode_scoring::rank::{PerSignal, Weights};
use klnode_scoring::role::Role;
use klnode_scoring::{
    admission, briefing, budget, confidence, conflict, cooccurrence, decay, outcome, rank, status,
    survey, trust,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The numbers of judgement, from the configuration.
#[derive(Clone, Debug)]
pub struct Numbers {
    pub(super) confidence: confidence::Params,
    pub(super) status: status::Params,
    /// What outcomes add, and when a reset is open.
    outcome: outcome::Params,
    /// Whether a look at what an entry depends on counts as an observation.
    are_looks_counted: bool,
    /// What may be retrieved at all.
    pub(super) admission: admission::Params,
    /// How signals are made.
    pub(super) signals: signals::Params,
    /// How candidates are ordered.
    pub(super) rank: rank::Params,
    /// How much of them is shown.
    pub(super) budget: budget::Params,
    /// How strongly entries belong together.
    pub(super) cooccurrence: cooccurrence::Params,
    /// When two entries contradict.
    pub(super) conflict: conflict::Params,
    /// How far authors are trusted, and what they weigh.
    pub(super) trust: trust::Params,
    /// What may enter an answer unasked.
    pub(super) gate: gate::Params,
    /// What a briefing holds, and its tokens.
    pub(super) briefing: briefing::Params,
    pub(super) briefing_tokens: u32,
    /// When something is out of order.
    pub(super) survey: survey::Params,
    /// What each signal weighs.
    pub(super) weights: Weights,
    /// The same in single workspaces, by their names, where the operator says so.
    pub(super) workspace_weights: BTreeMap<String, Weights>,
    /// How long one-liners and previews are, in characters.
    pub(super) summary_characters_max: usize,
    pub(super) preview_characters_max: usize,
    /// The longer text of equals is shown if it exceeds the survivor's by this factor.
    pub(super) longer_text_factor: f64,
    /// A task that is not finished by then never is.
    task_expires_after: Duration,
    /// Root tasks after which what nothing speaks for is archived.
    archive_after: u32,
    /// Names of customers and organisations that are not to be shared.
    pub(super) organisation_names: Vec<String>,
    /// The thread where none is named.
    thread_default: ThreadDefault,
    /// Findings are compared so long after their task was finished.
    findings_compared_after: Duration,
}

impl Numbers {
    /// Takes them from the configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            confidence: confidence(&config.confidence),
            outcome: outcome(&config.confidence),
            are_looks_counted: config.anchors.count_as_observation.is_on(),
            status: status::Params {
                active_successes_min: config.status.active_successes_min.get(),
                verified_alpha_min: config.status.verified_alpha_min.get(),
                verified_mean_min: config.status.verified_mean_min.get(),
                stale_after_days: config.status.stale_after.get(),
            },
            admission: admission(&config.admission, &config.confidence.weight),
            signals: signals(&config.retrieval, &config.cooccurrence),
            rank: rank(&config.retrieval),
            budget: budget(&config.retrieval),
            cooccurrence: cooccurrence(&config.cooccurrence),
            conflict: conflict(&config.conflict),
            trust: trust(&config.trust, &config.confidence.weight),
            gate: gate(&config.gate),
            briefing: briefing(&config.retrieval.briefing, &config.gate),
            briefing_tokens: config.retrieval.briefing.budget_tokens.get(),
            survey: survey(&config.survey),
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
            task_expires_after: config.provenance.task_expires_after.get(),
            archive_after: config.provenance.archive_after_root_tasks.get(),
            organisation_names: {
                let names = config.scan.organisation_names.as_slice().iter();
                names.map(|name| name.as_str().to_owned()).collect()
            },
            thread_default: config.threads.default,
            findings_compared_after: config.provenance.findings_compared_after.get(),
        }
    }
}

impl Numbers {
    /// Hits in one answer, unless the caller says otherwise.
    pub fn hits_default(&self) -> usize {
        self.budget.entries_max
    }

    /// Tokens of one gated answer, unless the caller says otherwise.
    pub fn tokens_default(&self, role: Option<Role>) -> u32 {
        match role {
            Some(Role::Executor) => self.budget.tokens_max_executor,
            _ => self.budget.tokens_max,
        }
    }

    /// What outcomes add, and when a reset is open.
    pub fn outcome(&self) -> &outcome::Params {
        &self.outcome
    }

    /// Whether a look at what an entry depends on counts as an observation.
    pub fn are_looks_counted(&self) -> bool {
        self.are_looks_counted
    }

    /// How long a task may go unfinished.
    pub fn task_expires_after(&self) -> Duration {
        self.task_expires_after
    }

    /// In how many root tasks an entry is served with nothing that speaks for it before it is archived.
    pub fn archive_after(&self) -> u32 {
        self.archive_after
    }

    /// The thread of a caller who names none, on this branch.
    pub fn thread_on(&self, branch: Option<&str>) -> Option<String> {
        match self.thread_default {
            ThreadDefault::None => None,
            ThreadDefault::Branch => branch.map(str::to_owned),
        }
    }

    /// How long after the end of their task findings are compared.
    pub fn findings_compared_after(&self) -> Duration {
        self.findings_compared_after
    }

    /// The length of a one-liner.
    pub fn one_liner_characters_max(&self) -> usize {
        self.summary_characters_max
    }
}

fn confidence(of: &of::Confidence) -> confidence::Params {
    confidence::Params {
        prior_alpha: of.prior_alpha.get(),
        prior_beta: of.prior_beta.get(),
        floor: of.floor.get(),
        member_mass_max: of.mass.member_max.get(),
        peer_mass_max: of.mass.peer_max.get(),
        non_members_mass_max: of.mass.non_members_max.get(),
        lower_quantile: of.lower_quantile.get(),
        decay: decay::Params {
            ephemeral_gamma: of.gamma_per_day.ephemeral.get(),
            stable_gamma: of.gamma_per_day.stable.get(),
            permanent_gamma: of.gamma_per_day.permanent.get(),
            archived_gamma: of.gamma_per_day.archived.get(),
            class_unnamed: match of.decay_class {
                DecayClass::Ephemeral => Class::Ephemeral,
                DecayClass::Stable => Class::Stable,
                DecayClass::Permanent => Class::Permanent,
            },
            age_days_max: of.decay_age_max.get(),
        },
    }
}

fn outcome(of: &of::Confidence) -> outcome::Params {
    outcome::Params {
        base: of.outcome.quality_offset.get(),
        amount_min: of.outcome.step_min.get(),
        amount_max: of.outcome.step_max.get(),
        rank_factor: of.outcome.rank_decay.get(),
        unnamed_max: of.outcome.unnamed_entries_max.as_usize(),
        unnamed_factor: of.outcome.unnamed_weight.get(),
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
        foreign_over_weight_max: foreign.above_weight_max.get(),
        foreign_min: foreign.factor_min.get(),
        foreign_max: foreign.factor_max.get(),
    }
}

fn budget(retrieval: &of::Retrieval) -> budget::Params {
    let tiers = &retrieval.tiers;
    budget::Params {
        entries_max: retrieval.entries_max.as_usize(),
        tokens_max: retrieval.budget_tokens.get(),
        tokens_max_executor: retrieval.executor_budget_tokens.get(),
        summary_sources_min: tiers.summary_sources_min.as_usize(),
        summary_score_above: tiers.summary_score_above.get(),
        standard_sources_min: tiers.standard_sources_min.as_usize(),
        standard_score_above: tiers.standard_score_above.get(),
    }
}

/// How entries that are served together grow together.
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

/// What the end of a task counts, and when it comes by itself.
pub fn tasks(config: &Config) -> TaskParams {
    TaskParams {
        outcome: outcome(&config.confidence),
        expires_after: config.provenance.task_expires_after.get(),
        archive_after: config.provenance.archive_after_root_tasks.get(),
        outside_per_day_max: config.provenance.outside_observations_per_day_max.get(),
        user_primed_for: config.provenance.user_primed_for.get(),
        confidence: confidence(&config.confidence),
    }
}

fn conflict(of: &of::Conflict) -> conflict::Params {
    conflict::Params {
        overlap_above: of.tag_overlap_above.get(),
        mean_margin: of.mean_margin.get(),
        recency_margin: of.recency_margin.get(),
        citations_margin: of.citations_margin.get(),
        criteria_min: of.better_on_min.as_usize(),
        mean_weight: of.composite.mean_weight.get(),
        recency_weight: of.composite.recency_weight.get(),
        citations_weight: of.composite.provenance_weight.get(),
        citations_half: of.composite.provenance_half.get(),
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
        fade_after_days: of.fade_after.get(),
        fade_gamma: of.fade_per_day.get(),
        hop_factor: weight.hop_discount.get(),
        weight_max: weight.foreign_max.get(),
        hop_max: Hop(u8::try_from(of.hop_max.get()).unwrap_or(u8::MAX)),
    }
}

fn gate(of: &of::Gate) -> gate::Params {
    gate::Params {
        last_places_max: of.uncorroborated_places_max.as_usize(),
        successes_min: of.corroborating_successes_min.get(),
        members_min: of.corroborating_members_min.get(),
        trust_min: of.corroborating_trust_min.get(),
    }
}

fn briefing(of: &of::Briefing, gate: &of::Gate) -> briefing::Params {
    briefing::Params {
        section_entries_max: of.section_entries_max.as_usize(),
        fresh_min: of.fresh_min.get(),
        recent_days: of.recent.get(),
        untried_max: gate.uncorroborated_places_max.as_usize(),
    }
}

fn survey(of: &of::Survey) -> survey::Params {
    survey::Params {
        norm_days_max: of.norm_confirmed_within.get(),
        tag_entries_max: u64::from(of.tag_entries_max.get()),
        recent_days: of.recent.get(),
        sample_min: u64::from(of.sample_min.get()),
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
