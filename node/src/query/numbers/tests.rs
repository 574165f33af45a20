//! Every key of judgement goes where it belongs: the defaults are those of `scoring`, and a value that
//! is typed is found in the field that its key is for.

use super::super::upkeep;
use super::*;
use klnode_config::Layers;

/// All that is made of a configuration here.
struct Read {
    numbers: Numbers,
    tasks: TaskParams,
    upkeep: upkeep::Params,
    weights: PerSignal,
    /// What the signals weigh in the workspace "team"; as anywhere, where nothing is said of it.
    team: PerSignal,
}

impl Read {
    fn new(config: &Config) -> Self {
        let numbers = Numbers::new(config);
        let weights = *numbers.weights.per_signal();
        let team = numbers.workspace_weights.get("team").map_or(weights, |of| *of.per_signal());
        let (tasks, upkeep) = (tasks(config), upkeep::Params::new(&config.upkeep));
        Self { numbers, tasks, upkeep, weights, team }
    }
}

/// What is typed after `--set`, and how it is read where it must be found.
type Row = (&'static str, fn(&Read) -> String);

/// A value that is found as it is in one field.
macro_rules! row {
    ($typed:literal, $($field:ident).+) => {
        ($typed, |read: &Read| read.$($field).+.to_string())
    };
}

/// A key of which several fields are made has a row for each. No two keys have the same value and none
/// its default, so that a key in the place of another, or in none, is seen. All of them together pass
/// the rules of the configuration: what must sum to one does, and what must not exceed another does
/// not.
const ROWS: &[Row] = &[
    row!("confidence.prior_alpha=6.1", numbers.confidence.prior_alpha),
    row!("confidence.prior_beta=6.2", numbers.confidence.prior_beta),
    row!("confidence.floor=1.3", numbers.confidence.floor),
    row!("confidence.decay_age_max=181 days", numbers.confidence.decay.age_days_max),
    ("confidence.decay_class=stable", |read| {
        format!("{:?}", read.numbers.confidence.decay.class_unnamed).to_lowercase()
    }),
    row!("confidence.lower_quantile=0.11", numbers.confidence.lower_quantile),
    row!("confidence.gamma_per_day.ephemeral=0.971", numbers.confidence.decay.ephemeral_gamma),
    row!("confidence.gamma_per_day.stable=0.981", numbers.confidence.decay.stable_gamma),
    row!("confidence.gamma_per_day.permanent=0.991", numbers.confidence.decay.permanent_gamma),
    row!("confidence.gamma_per_day.archived=0.86", numbers.confidence.decay.archived_gamma),
    row!("confidence.weight.hop_discount=0.71", numbers.trust.hop_factor),
    row!("confidence.weight.foreign_max=0.51", numbers.trust.weight_max),
    row!("confidence.weight.foreign_max=0.51", numbers.admission.foreign_weight_max),
    row!("confidence.mass.member_max=21.5", numbers.confidence.member_mass_max),
    row!("confidence.mass.non_members_max=11.5", numbers.confidence.non_members_mass_max),
    row!("confidence.mass.peer_max=22.5", numbers.confidence.peer_mass_max),
    row!("confidence.outcome.quality_offset=0.52", numbers.outcome.base),
    row!("confidence.outcome.step_min=0.53", numbers.outcome.amount_min),
    row!("confidence.outcome.step_max=1.6", numbers.outcome.amount_max),
    row!("confidence.outcome.rank_decay=0.72", numbers.outcome.rank_factor),
    row!("confidence.outcome.unnamed_entries_max=4", numbers.outcome.unnamed_max),
    row!("confidence.outcome.unnamed_weight=0.54", numbers.outcome.unnamed_factor),
    row!("confidence.outcome.feedback_step=1.7", numbers.outcome.feedback),
    row!("confidence.restoration.below_peak_fraction=0.55", numbers.outcome.restoration_below),
    row!("confidence.restoration.step_fraction=0.21", numbers.outcome.restoration_share),
    row!(
        "confidence.reset.effective_observations_min=52.5",
        numbers.outcome.reset_observations_min
    ),
    row!("confidence.reset.mean_min=0.36", numbers.outcome.reset_mean_min),
    row!("confidence.reset.mean_max=0.66", numbers.outcome.reset_mean_max),
    row!("provenance.archive_after_root_tasks=12", tasks.archive_after),
    row!("provenance.archive_after_root_tasks=12", numbers.archive_after),
    ("provenance.task_expires_after=700001 s", |read| {
        read.tasks.expires_after.as_secs().to_string()
    }),
    ("provenance.task_expires_after=700001 s", |read| {
        read.numbers.task_expires_after().as_secs().to_string()
    }),
    row!("provenance.outside_observations_per_day_max=2", tasks.outside_per_day_max),
    ("provenance.user_primed_for=1803 s", |read| read.tasks.user_primed_for.as_secs().to_string()),
    ("provenance.findings_compared_after=33 s", |read| {
        read.numbers.findings_compared_after().as_secs().to_string()
    }),
    row!("anchors.count_as_observation=true", numbers.are_looks_counted),
    row!("status.active_successes_min=6", numbers.status.active_successes_min),
    row!("status.verified_alpha_min=9.5", numbers.status.verified_alpha_min),
    row!("status.verified_mean_min=0.61", numbers.status.verified_mean_min),
    row!("status.stale_after=91 days", numbers.status.stale_after_days),
    row!("admission.reject_below=0.26", numbers.admission.reject_below),
    row!("admission.candidate_below=0.37", numbers.admission.candidate_below),
    row!("admission.foreign_candidate_below=0.41", numbers.admission.foreign_candidate_below),
    row!("admission.observation_mass_rate=0.06", numbers.admission.mass_rate),
    row!("admission.weights.confidence=0.19", numbers.admission.confidence),
    row!("admission.weights.provenance=0.16", numbers.admission.provenance),
    row!("admission.weights.scanner=0.24", numbers.admission.scanner),
    row!("admission.weights.federation=0.13", numbers.admission.federation),
    row!("admission.weights.observation_mass=0.12", numbers.admission.observation_mass),
    row!("admission.weights.entry_type=0.09", numbers.admission.kind),
    row!("admission.weights.recency=0.07", numbers.admission.recency),
    row!("gate.uncorroborated_places_max=9", numbers.gate.last_places_max),
    row!("gate.uncorroborated_places_max=9", numbers.briefing.untried_max),
    row!("gate.corroborating_successes_min=10", numbers.gate.successes_min),
    row!("gate.corroborating_members_min=11", numbers.gate.members_min),
    row!("gate.corroborating_trust_min=0.31", numbers.gate.trust_min),
    ("scan.organisation_names=Acme", |read| read.numbers.organisation_names.join(", ")),
    row!("trust.prior_alpha=1.1", numbers.trust.prior_alpha),
    row!("trust.prior_beta=1.2", numbers.trust.prior_beta),
    row!("trust.quantile=0.14", numbers.trust.quantile),
    row!("trust.success_step=1.4", numbers.trust.success),
    row!("trust.failure_step=2.1", numbers.trust.failure),
    row!("trust.successes_per_day_max=13", numbers.trust.successes_per_day_max),
    row!("trust.fade_after=31 days", numbers.trust.fade_after_days),
    row!("trust.fade_per_day=0.97", numbers.trust.fade_gamma),
    row!("trust.recent_outcomes=14", numbers.trust.window),
    ("trust.hop_max=5", |read| read.numbers.trust.hop_max.0.to_string()),
    ("threads.default=branch", |read| read.numbers.thread_default.as_str().to_owned()),
    row!("retrieval.entries_max=15", numbers.budget.entries_max),
    row!("retrieval.budget_tokens=501", numbers.budget.tokens_max),
    row!("retrieval.executor_budget_tokens=201", numbers.budget.tokens_max_executor),
    row!("retrieval.freshness_half_life=92 days", numbers.signals.freshness_half_life_days),
    row!("retrieval.pin_bonus=0.17", numbers.rank.pin_bonus),
    row!("retrieval.weights.semantic=0.35", weights.semantic),
    row!("retrieval.weights.thompson=0.23", weights.thompson),
    row!("retrieval.weights.freshness=0.18", weights.freshness),
    row!("retrieval.weights.status=0.08", weights.status),
    row!("retrieval.weights.thread=0.105", weights.thread),
    row!("retrieval.weights.cooccurrence=0.055", weights.cooccurrence),
    row!("retrieval.workspace_weights.team.semantic=0.34", team.semantic),
    row!("retrieval.workspace_weights.team.thompson=0.22", team.thompson),
    row!("retrieval.workspace_weights.team.freshness=0.2", team.freshness),
    row!("retrieval.workspace_weights.team.status=0.115", team.status),
    row!("retrieval.workspace_weights.team.thread=0.085", team.thread),
    row!("retrieval.workspace_weights.team.cooccurrence=0.04", team.cooccurrence),
    row!("retrieval.status_bonus.verified=0.95", numbers.signals.status_verified),
    row!("retrieval.status_bonus.active=0.81", numbers.signals.status_active),
    row!("retrieval.status_bonus.candidate=0.56", numbers.signals.status_candidate),
    row!("retrieval.foreign.quantile_share=0.58", numbers.rank.foreign_evidence),
    row!("retrieval.foreign.floor_share=0.42", numbers.rank.foreign_status),
    row!("retrieval.foreign.floor_verified=0.82", numbers.rank.floor_verified),
    row!("retrieval.foreign.floor_active=0.57", numbers.rank.floor_active),
    row!("retrieval.foreign.floor_candidate=0.38", numbers.rank.floor_candidate),
    row!("retrieval.foreign.above_weight_max=0.15", numbers.rank.foreign_over_weight_max),
    row!("retrieval.foreign.factor_min=0.125", numbers.rank.foreign_min),
    row!("retrieval.foreign.factor_max=0.91", numbers.rank.foreign_max),
    row!("retrieval.tiers.summary_sources_min=17", numbers.budget.summary_sources_min),
    row!("retrieval.tiers.summary_score_above=0.59", numbers.budget.summary_score_above),
    row!("retrieval.tiers.standard_sources_min=16", numbers.budget.standard_sources_min),
    row!("retrieval.tiers.standard_score_above=0.39", numbers.budget.standard_score_above),
    row!("retrieval.tiers.summary_characters_max=101", numbers.summary_characters_max),
    row!("retrieval.tiers.preview_characters_max=202", numbers.preview_characters_max),
    row!("retrieval.briefing.budget_tokens=601", numbers.briefing_tokens),
    row!("retrieval.briefing.section_entries_max=18", numbers.briefing.section_entries_max),
    row!("retrieval.briefing.fresh_min=0.27", numbers.briefing.fresh_min),
    row!("retrieval.briefing.recent=19 days", numbers.briefing.recent_days),
    row!("cooccurrence.weight_initial=1.5", numbers.cooccurrence.weight_initial),
    row!("cooccurrence.query_factor=1.07", numbers.cooccurrence.query_factor),
    row!("cooccurrence.success_factor=1.13", numbers.cooccurrence.success_factor),
    row!("cooccurrence.decay_per_day=0.99", numbers.cooccurrence.decay_per_day),
    row!("cooccurrence.prune_below=0.175", numbers.cooccurrence.prune_below),
    row!("cooccurrence.weight_max=12.5", numbers.cooccurrence.weight_max),
    row!("cooccurrence.saturation_rate=0.62", numbers.signals.cooccurrence_rate),
    row!("conflict.tag_overlap_above=0.32", numbers.conflict.overlap_above),
    row!("conflict.mean_margin=0.165", numbers.conflict.mean_margin),
    row!("conflict.recency_margin=0.25", numbers.conflict.recency_margin),
    row!("conflict.citations_margin=20", numbers.conflict.citations_margin),
    row!("conflict.better_on_min=3", numbers.conflict.criteria_min),
    row!("conflict.composite.mean_weight=0.465", numbers.conflict.mean_weight),
    row!("conflict.composite.recency_weight=0.33", numbers.conflict.recency_weight),
    row!("conflict.composite.provenance_weight=0.205", numbers.conflict.citations_weight),
    row!("conflict.composite.provenance_half=11.1", numbers.conflict.citations_half),
    row!("conflict.composite.threshold_base=0.065", numbers.conflict.threshold_base),
    row!("conflict.composite.threshold_spread=2.2", numbers.conflict.threshold_over_mass),
    row!("duplicates.longer_text_factor=1.25", numbers.longer_text_factor),
    row!("upkeep.changed_entries_min=51", upkeep.changed_entries_min),
    row!("upkeep.changed_fraction_min=0.03", upkeep.changed_fraction_min),
    row!("upkeep.changed_fraction_entries_min=21", upkeep.changed_fraction_entries_min),
    ("upkeep.interval=90001 s", |read| read.upkeep.interval.as_secs().to_string()),
    row!("upkeep.pass_entries_max=203", upkeep.entries_max),
    ("upkeep.pass_time_max=44 s", |read| {
        read.upkeep.time_max.unwrap_or_default().as_secs().to_string()
    }),
    row!("survey.norm_confirmed_within=93 days", numbers.survey.norm_days_max),
    row!("survey.tag_entries_max=204", numbers.survey.tag_entries_max),
    row!("survey.recent=22 days", numbers.survey.recent_days),
    row!("survey.sample_min=23", numbers.survey.sample_min),
    row!("survey.stale_fraction_max=0.305", numbers.survey.stale_fraction_max),
    row!("survey.disputed_fraction_max=0.075", numbers.survey.disputed_fraction_max),
    row!("survey.friction_max=24", numbers.survey.friction_max),
    row!("survey.waiting_max=53", numbers.survey.waiting_max),
    row!("survey.failed_fraction_max=0.515", numbers.survey.failed_fraction_max),
];

/// What the keys begin with of which nothing is made here.
const ELSEWHERE: [&str; 12] = [
    // What the process costs and where it is found: the program's own.
    "log.",
    "api.",
    "mcp.",
    "network.",
    "engine.",
    "index.",
    "embedder.",
    "hooks.",
    // What is exchanged with peers.
    "filter.",
    "federation.",
    // How upkeep is driven; what one pass of it does is looked for above.
    "upkeep.pause",
    "upkeep.look_interval",
];

/// The key that is typed in a row, and its value without a unit.
fn parts(typed: &str) -> (&str, &str) {
    let (key, value) = typed.split_once('=').expect("a key is given a value");
    (key, value.split_once(' ').map_or(value, |(amount, _)| amount))
}

#[test]
fn the_defaults_of_the_configuration_are_those_of_scoring() {
    let config = Config::default();
    let numbers = Numbers::new(&config);
    assert_eq!(numbers.confidence, confidence::Params::default());
    assert_eq!(numbers.status, status::Params::default());
    assert_eq!(numbers.outcome, outcome::Params::default());
    assert_eq!(numbers.admission, admission::Params::default());
    assert_eq!(numbers.signals, signals::Params::default());
    assert_eq!(numbers.rank, rank::Params::default());
    assert_eq!(numbers.budget, budget::Params::default());
    assert_eq!(numbers.cooccurrence, cooccurrence::Params::default());
    assert_eq!(numbers.conflict, conflict::Params::default());
    assert_eq!(numbers.trust, trust::Params::default());
    assert_eq!(numbers.briefing, briefing::Params::default());
    assert_eq!(numbers.survey, survey::Params::default());
    assert_eq!(numbers.weights, Weights::default());
    assert!(numbers.workspace_weights.is_empty());
    // The writer's. Of the rest (the gate, lengths, spans of time) the configuration has the only
    // default there is.
    assert_eq!(tasks(&config), TaskParams::default());
    assert_eq!(cooccurrence(&config.cooccurrence), cooccurrence::Params::default());
}

#[test]
fn a_value_is_found_in_the_field_that_its_key_is_for() {
    let typed = ROWS.iter().map(|(typed, _)| ("--set", *typed));
    let layered = Layers::new().flags(typed).resolve();
    let layered = layered.unwrap_or_else(|error| panic!("cannot {error}"));
    let (given, left) = (Read::new(layered.config()), Read::new(&Config::default()));
    for (typed, find) in ROWS {
        let (_, value) = parts(typed);
        assert_eq!(find(&given), value, "{typed}");
        assert_ne!(find(&left), value, "{typed} is the default: it tells nothing");
    }
    // The writer and the readers go by the same.
    assert_eq!(given.tasks.outcome, given.numbers.outcome);
    assert_eq!(given.tasks.confidence, given.numbers.confidence);
    let pairs = cooccurrence(&layered.config().cooccurrence);
    assert_eq!(pairs, given.numbers.cooccurrence);
}

#[test]
fn no_two_keys_are_given_the_same_value() {
    let mut keys = BTreeMap::new();
    for (typed, _) in ROWS {
        let (key, value) = parts(typed);
        let before = keys.insert(value, key).unwrap_or(key);
        assert_eq!(before, key, "both are {value}");
    }
}

#[test]
fn every_key_is_looked_for_here_or_read_elsewhere() {
    let defaults = Layers::new().resolve().expect("the defaults are valid");
    for setting in defaults.explain() {
        let is_here = ROWS.iter().any(|(typed, _)| parts(typed).0 == setting.key);
        let is_elsewhere = ELSEWHERE.iter().any(|begin| setting.key.starts_with(*begin));
        assert_ne!(is_here, is_elsewhere, "{} has no row, or one too many", setting.key);
    }
}
