//! Checks that every key of assessment reaches its field: the defaults equal those of `scoring`,
//! and a configured value arrives in the field of its key.

use super::super::maintenance;
use super::*;
use klnode_config::Layers;

/// All parameters that this module makes of a configuration.
struct Read {
    numbers: ScoringParams,
    tasks: TaskParams,
    maintenance: maintenance::Params,
    weights: PerSignal,
    /// The weights in the workspace "team"; the default ones if it has no override.
    team: PerSignal,
}

impl Read {
    fn new(config: &Config) -> Self {
        let numbers = ScoringParams::new(config);
        let weights = *numbers.weights.per_signal();
        let team = numbers.workspace_weights.get("team").map_or(weights, |of| *of.per_signal());
        let (tasks, maintenance) = (tasks(config), maintenance::Params::new(&config.maintenance));
        Self { numbers, tasks, maintenance, weights, team }
    }
}

/// A `--set` argument, and a function that reads the field it must reach.
type Row = (&'static str, fn(&Read) -> String);

/// A row whose field holds the value unchanged.
macro_rules! row {
    ($typed:literal, $($field:ident).+) => {
        ($typed, |read: &Read| read.$($field).+.to_string())
    };
}

/// A key that sets several fields has a row for each. No two keys have the same value and none has
/// its default, so that a misdirected or ignored key is detected. Together the values pass the
/// rules of the configuration, such as sums and upper bounds.
const ROWS: &[Row] = &[
    row!("tuning.confidence.prior_alpha=6.1", numbers.confidence.prior_alpha),
    row!("tuning.confidence.prior_beta=6.2", numbers.confidence.prior_beta),
    row!("tuning.confidence.floor=1.3", numbers.confidence.floor),
    row!("tuning.confidence.decay_age_max=181 days", numbers.confidence.decay.age_days_max),
    ("confidence.decay_class=stable", |read| {
        format!("{:?}", read.numbers.confidence.decay.class_unnamed).to_lowercase()
    }),
    row!("tuning.confidence.lower_quantile=0.11", numbers.confidence.lower_quantile),
    row!(
        "tuning.confidence.decay_per_day.ephemeral=0.971",
        numbers.confidence.decay.ephemeral_gamma
    ),
    row!("tuning.confidence.decay_per_day.stable=0.981", numbers.confidence.decay.stable_gamma),
    row!(
        "tuning.confidence.decay_per_day.permanent=0.991",
        numbers.confidence.decay.permanent_gamma
    ),
    row!("tuning.confidence.decay_per_day.archived=0.86", numbers.confidence.decay.archived_gamma),
    row!("tuning.confidence.weight.hop_discount=0.71", numbers.trust.hop_factor),
    row!("tuning.confidence.weight.foreign_max=0.51", numbers.trust.weight_max),
    row!("tuning.confidence.weight.foreign_max=0.51", numbers.admission.foreign_weight_max),
    row!("tuning.confidence.foreign_evidence.member_max=21.5", numbers.confidence.member_mass_max),
    row!(
        "tuning.confidence.foreign_evidence.non_members_max=11.5",
        numbers.confidence.non_members_mass_max
    ),
    row!("tuning.confidence.foreign_evidence.peer_max=22.5", numbers.confidence.peer_mass_max),
    row!("tuning.confidence.outcome.quality_offset=0.52", numbers.outcome.base),
    row!("tuning.confidence.outcome.step_min=0.53", numbers.outcome.amount_min),
    row!("tuning.confidence.outcome.step_max=1.6", numbers.outcome.amount_max),
    row!("tuning.confidence.outcome.rank_decay=0.72", numbers.outcome.rank_factor),
    row!("tuning.confidence.outcome.guessed_entries_max=4", numbers.outcome.unnamed_max),
    row!("tuning.confidence.outcome.guessed_weight=0.54", numbers.outcome.unnamed_factor),
    row!("tuning.confidence.outcome.incidental_weight=0.535", numbers.outcome.incidental_factor),
    row!("tuning.confidence.outcome.feedback_step=1.7", numbers.outcome.feedback),
    row!(
        "tuning.confidence.restoration.below_peak_fraction=0.55",
        numbers.outcome.restoration_below
    ),
    row!("tuning.confidence.restoration.step_fraction=0.21", numbers.outcome.restoration_share),
    row!(
        "tuning.confidence.reset.effective_observations_min=52.5",
        numbers.outcome.reset_observations_min
    ),
    row!("tuning.confidence.reset.mean_min=0.36", numbers.outcome.reset_mean_min),
    row!("tuning.confidence.reset.mean_max=0.66", numbers.outcome.reset_mean_max),
    row!("tuning.tasks.archive_after_root_tasks=12", tasks.archive_after),
    row!("tuning.tasks.archive_after_root_tasks=12", numbers.archive_after),
    ("tasks.expire_after=700001 s", |read| read.tasks.expires_after.as_secs().to_string()),
    ("tasks.expire_after=700001 s", |read| read.numbers.task_expires_after().as_secs().to_string()),
    row!("tuning.tasks.outside_observations_per_day_max=2", tasks.outside_per_day_max),
    ("tuning.tasks.user_priming_lifetime=1803 s", |read| {
        read.tasks.user_primed_for.as_secs().to_string()
    }),
    ("tuning.tasks.findings_comparison_delay=33 s", |read| {
        read.numbers.findings_compared_after().as_secs().to_string()
    }),
    ("entries.strict_workspaces=[\"team\"]", |read| {
        format!("{:?}", read.tasks.strict_workspaces.iter().collect::<Vec<_>>())
    }),
    ("tasks.search_required=[\"researcher\"]", |read| {
        format!("{:?}", read.tasks.search_required.iter().collect::<Vec<_>>())
    }),
    row!("tasks.accept_lone_findings=true", tasks.lone.is_on),
    row!("tuning.tasks.lone_incident_severity_min=9.1", tasks.lone.incident_severity_min),
    row!("tuning.tasks.lone_pattern_severity_min=7.1", tasks.lone.pattern_severity_min),
    row!("tuning.tasks.lone_pattern_confidence_min=8.1", tasks.lone.pattern_confidence_min),
    row!("anchors.count_as_observation=true", numbers.are_looks_counted),
    row!("tuning.status.active_successes_min=6", numbers.status.active_successes_min),
    row!("tuning.status.verified_alpha_min=9.5", numbers.status.verified_alpha_min),
    row!("tuning.status.verified_mean_min=0.61", numbers.status.verified_mean_min),
    row!("status.stale_after=91 days", numbers.status.stale_after_days),
    row!("tuning.admission.reject_below=0.26", numbers.admission.reject_below),
    row!("tuning.admission.candidate_below=0.37", numbers.admission.candidate_below),
    row!(
        "tuning.admission.foreign_candidate_below=0.41",
        numbers.admission.foreign_candidate_below
    ),
    row!("tuning.admission.observation_mass_rate=0.06", numbers.admission.mass_rate),
    row!("tuning.admission.weights.confidence=0.19", numbers.admission.confidence),
    row!("tuning.admission.weights.provenance=0.16", numbers.admission.provenance),
    row!("tuning.admission.weights.scanner=0.24", numbers.admission.scanner),
    row!("tuning.admission.weights.federation=0.13", numbers.admission.federation),
    row!("tuning.admission.weights.observation_mass=0.12", numbers.admission.observation_mass),
    row!("tuning.admission.weights.entry_type=0.09", numbers.admission.kind),
    row!("tuning.admission.weights.recency=0.07", numbers.admission.recency),
    row!("tuning.gate.uncorroborated_entries_max=9", numbers.gate.last_places_max),
    row!("tuning.gate.uncorroborated_entries_max=9", numbers.briefing.untried_max),
    row!("tuning.gate.corroborating_successes_min=10", numbers.gate.successes_min),
    row!("tuning.gate.corroborating_members_min=11", numbers.gate.members_min),
    row!("tuning.gate.corroborating_trust_min=0.31", numbers.gate.trust_min),
    row!("tuning.gate.author_trust_min=0.2222", numbers.gate.author_trust_min),
    row!("tuning.gate.author_successes_min=222", numbers.gate.author_successes_min),
    ("scan.organisation_names=Acme", |read| read.numbers.organisation_names.join(", ")),
    ("scan.disclosure=warn", |read| read.numbers.disclosure.as_str().to_owned()),
    row!("tuning.trust.prior_alpha=1.1", numbers.trust.prior_alpha),
    row!("tuning.trust.prior_beta=1.2", numbers.trust.prior_beta),
    row!("tuning.trust.quantile=0.14", numbers.trust.quantile),
    row!("tuning.trust.success_step=1.4", numbers.trust.success),
    row!("tuning.trust.failure_step=2.1", numbers.trust.failure),
    row!("tuning.trust.successes_per_day_max=13", numbers.trust.successes_per_day_max),
    row!("tuning.trust.decay_after=31 days", numbers.trust.fade_after_days),
    row!("tuning.trust.decay_per_day=0.97", numbers.trust.fade_gamma),
    row!("tuning.trust.recent_outcomes=14", numbers.trust.window),
    ("trust.hop_max=5", |read| read.numbers.trust.hop_max.0.to_string()),
    ("threads.default=branch", |read| read.numbers.thread_default.as_str().to_owned()),
    row!("retrieval.entries_max=15", numbers.budget.entries_max),
    row!("retrieval.budget_tokens=501", numbers.budget.tokens_max),
    row!("tuning.retrieval.executor_budget_tokens=201", numbers.budget.tokens_max_executor),
    row!("tuning.retrieval.freshness_half_life=92 days", numbers.signals.freshness_half_life_days),
    row!("tuning.retrieval.pin_bonus=0.17", numbers.rank.pin_bonus),
    row!("tuning.retrieval.recent_failure_penalty=0.042", numbers.recent_failure_penalty),
    row!("tuning.retrieval.weights.semantic=0.35", weights.semantic),
    row!("tuning.retrieval.weights.thompson=0.23", weights.thompson),
    row!("tuning.retrieval.weights.freshness=0.18", weights.freshness),
    row!("tuning.retrieval.weights.status=0.08", weights.status),
    row!("tuning.retrieval.weights.thread=0.105", weights.thread),
    row!("tuning.retrieval.weights.cooccurrence=0.055", weights.cooccurrence),
    row!("tuning.retrieval.workspace_weights.team.semantic=0.34", team.semantic),
    row!("tuning.retrieval.workspace_weights.team.thompson=0.22", team.thompson),
    row!("tuning.retrieval.workspace_weights.team.freshness=0.2", team.freshness),
    row!("tuning.retrieval.workspace_weights.team.status=0.115", team.status),
    row!("tuning.retrieval.workspace_weights.team.thread=0.085", team.thread),
    row!("tuning.retrieval.workspace_weights.team.cooccurrence=0.04", team.cooccurrence),
    row!("tuning.retrieval.status_bonus.verified=0.95", numbers.signals.status_verified),
    row!("tuning.retrieval.status_bonus.active=0.81", numbers.signals.status_active),
    row!("tuning.retrieval.status_bonus.candidate=0.56", numbers.signals.status_candidate),
    row!("tuning.retrieval.foreign.quantile_share=0.58", numbers.rank.foreign_evidence),
    row!("tuning.retrieval.foreign.floor_share=0.42", numbers.rank.foreign_status),
    row!("tuning.retrieval.foreign.floor_verified=0.82", numbers.rank.floor_verified),
    row!("tuning.retrieval.foreign.floor_active=0.57", numbers.rank.floor_active),
    row!("tuning.retrieval.foreign.floor_candidate=0.38", numbers.rank.floor_candidate),
    row!(
        "tuning.retrieval.foreign.author_weight_margin=0.15",
        numbers.rank.foreign_over_weight_max
    ),
    row!("tuning.retrieval.foreign.factor_min=0.125", numbers.rank.foreign_min),
    row!("tuning.retrieval.foreign.factor_max=0.91", numbers.rank.foreign_max),
    row!("tuning.retrieval.tiers.summary_sources_min=17", numbers.budget.summary_sources_min),
    row!("tuning.retrieval.tiers.summary_score_above=0.59", numbers.budget.summary_score_above),
    row!("tuning.retrieval.tiers.standard_sources_min=16", numbers.budget.standard_sources_min),
    row!("tuning.retrieval.tiers.standard_score_above=0.39", numbers.budget.standard_score_above),
    row!("tuning.retrieval.tiers.summary_characters_max=101", numbers.summary_characters_max),
    row!("tuning.retrieval.tiers.preview_characters_max=202", numbers.preview_characters_max),
    row!("tuning.retrieval.briefing.budget_tokens=601", numbers.briefing_tokens),
    row!("tuning.retrieval.briefing.section_entries_max=18", numbers.briefing.section_entries_max),
    row!("tuning.retrieval.briefing.freshness_min=0.27", numbers.briefing.fresh_min),
    row!("tuning.retrieval.briefing.recent_within=19 days", numbers.briefing.recent_days),
    row!("tuning.cooccurrence.weight_initial=1.5", numbers.cooccurrence.weight_initial),
    row!("tuning.cooccurrence.query_factor=1.07", numbers.cooccurrence.query_factor),
    row!("tuning.cooccurrence.success_factor=1.13", numbers.cooccurrence.success_factor),
    row!("tuning.cooccurrence.decay_per_day=0.99", numbers.cooccurrence.decay_per_day),
    row!("tuning.cooccurrence.prune_below=0.175", numbers.cooccurrence.prune_below),
    row!("tuning.cooccurrence.weight_max=12.5", numbers.cooccurrence.weight_max),
    row!("tuning.cooccurrence.saturation_rate=0.62", numbers.signals.cooccurrence_rate),
    row!("tuning.contradiction.tag_overlap_above=0.32", numbers.conflict.overlap_above),
    row!("tuning.contradiction.mean_margin=0.165", numbers.conflict.mean_margin),
    row!("tuning.contradiction.recency_margin=0.25", numbers.conflict.recency_margin),
    row!("tuning.contradiction.citations_margin=20", numbers.conflict.citations_margin),
    row!("tuning.contradiction.leading_criteria_min=3", numbers.conflict.criteria_min),
    row!("tuning.contradiction.composite.mean_weight=0.465", numbers.conflict.mean_weight),
    row!("tuning.contradiction.composite.recency_weight=0.33", numbers.conflict.recency_weight),
    row!(
        "tuning.contradiction.composite.provenance_weight=0.205",
        numbers.conflict.citations_weight
    ),
    row!(
        "tuning.contradiction.composite.provenance_half_citations=11.1",
        numbers.conflict.citations_half
    ),
    row!("tuning.contradiction.composite.threshold_base=0.065", numbers.conflict.threshold_base),
    row!(
        "tuning.contradiction.composite.threshold_spread=2.2",
        numbers.conflict.threshold_over_mass
    ),
    row!("tuning.duplicates.longer_text_factor=1.25", numbers.longer_text_factor),
    row!("tuning.maintenance.changed_entries_min=51", maintenance.changed_entries_min),
    row!("tuning.maintenance.changed_fraction_min=0.03", maintenance.changed_fraction_min),
    row!(
        "tuning.maintenance.changed_fraction_entries_min=21",
        maintenance.changed_fraction_entries_min
    ),
    ("maintenance.interval=90001 s", |read| read.maintenance.interval.as_secs().to_string()),
    row!("tuning.maintenance.pass_entries_max=203", maintenance.entries_max),
    ("tuning.maintenance.pass_time_max=44 s", |read| {
        read.maintenance.time_max.unwrap_or_default().as_secs().to_string()
    }),
    row!("tuning.audit.norm_confirmed_within=93 days", numbers.audit.norm_days_max),
    row!("tuning.audit.tag_entries_max=204", numbers.audit.tag_entries_max),
    row!("tuning.audit.review_confirmed_within=94 days", numbers.audit.review_days_max),
    row!("tuning.audit.review_entries_max=54", numbers.audit.review_entries_max),
    row!("tuning.audit.recent_within=22 days", numbers.audit.recent_days),
    row!("tuning.audit.sample_size_min=23", numbers.audit.sample_min),
    row!("tuning.audit.stale_fraction_max=0.305", numbers.audit.stale_fraction_max),
    row!("tuning.audit.disputed_fraction_max=0.075", numbers.audit.disputed_fraction_max),
    row!("tuning.audit.friction_max=24", numbers.audit.friction_max),
    row!("tuning.audit.waiting_max=53", numbers.audit.waiting_max),
    row!("tuning.audit.failed_fraction_max=0.515", numbers.audit.failed_fraction_max),
];

/// Prefixes of keys that other modules read, without `tuning`.
const ELSEWHERE: [&str; 12] = [
    // Resources and addresses of the process.
    "log.",
    "api.",
    "mcp.",
    "network.",
    "engine.",
    "index.",
    "embedder.",
    "hooks.",
    // Exchange with peers.
    "filter.",
    "federation.",
    // Scheduling of maintenance; the limits of a pass are checked above.
    "maintenance.pause",
    "maintenance.check_interval",
];

/// The key of a row, and its value without a unit.
fn parts(typed: &str) -> (&str, &str) {
    let (key, value) = typed.split_once('=').expect("a key is given a value");
    (key, value.split_once(' ').map_or(value, |(amount, _)| amount))
}

#[test]
fn the_defaults_of_the_configuration_are_those_of_scoring() {
    let config = Config::default();
    let numbers = ScoringParams::new(&config);
    assert_eq!(numbers.confidence, confidence::Params::default());
    assert_eq!(numbers.status, status::Params::default());
    assert_eq!(numbers.outcome, credit::Params::default());
    assert_eq!(numbers.admission, admission::Params::default());
    assert_eq!(numbers.signals, signals::Params::default());
    assert_eq!(numbers.rank, rank::Params::default());
    assert_eq!(numbers.budget, token_budget::Params::default());
    assert_eq!(numbers.cooccurrence, cooccurrence::Params::default());
    assert_eq!(numbers.conflict, contradiction::Params::default());
    assert_eq!(numbers.trust, trust::Params::default());
    assert_eq!(numbers.briefing, briefing::Params::default());
    assert_eq!(numbers.audit, audit::Params::default());
    assert_eq!(numbers.weights, Weights::default());
    assert!(numbers.workspace_weights.is_empty());
    // The parameters of the writer. The remaining ones (gate, lengths, durations) have their only
    // default in the configuration.
    assert_eq!(tasks(&config), TaskParams::default());
    assert_eq!(cooccurrence(&config.cooccurrence), cooccurrence::Params::default());
}

#[test]
fn a_configured_value_reaches_the_field_of_its_key() {
    let typed = ROWS.iter().map(|(typed, _)| ("--set", *typed));
    let layered = Layers::new().flags(typed).resolve();
    let layered = layered.unwrap_or_else(|error| panic!("{error}"));
    let (given, left) = (Read::new(layered.config()), Read::new(&Config::default()));
    for (typed, find) in ROWS {
        let (_, value) = parts(typed);
        assert_eq!(find(&given), value, "{typed}");
        assert_ne!(find(&left), value, "{typed} is the default and proves nothing");
    }
    let prior = &given.numbers.confidence;
    let prior_mean = prior.prior_alpha / (prior.prior_alpha + prior.prior_beta);
    assert_eq!(given.numbers.status.prior_mean, prior_mean);
    assert_ne!(prior_mean, left.numbers.status.prior_mean);
    // The writer and the readers use the same values.
    assert_eq!(given.tasks.outcome, given.numbers.outcome);
    assert_eq!(given.tasks.confidence, given.numbers.confidence);
    let pairs = cooccurrence(&layered.config().cooccurrence);
    assert_eq!(pairs, given.numbers.cooccurrence);
}

#[test]
fn no_two_keys_have_the_same_value() {
    let mut keys = BTreeMap::new();
    for (typed, _) in ROWS {
        let (key, value) = parts(typed);
        // There are more switches than values of a switch.
        if value == "true" {
            continue;
        }
        let before = keys.insert(value, key).unwrap_or(key);
        assert_eq!(before, key, "both are {value}");
    }
}

#[test]
fn every_key_is_checked_here_or_read_elsewhere() {
    let defaults = Layers::new().resolve().expect("the defaults are valid");
    for setting in defaults.explain() {
        let is_here = ROWS.iter().any(|(typed, _)| parts(typed).0 == setting.key);
        let field = setting.key.strip_prefix("tuning.").unwrap_or(&setting.key);
        let is_elsewhere = ELSEWHERE.iter().any(|begin| field.starts_with(*begin));
        assert_ne!(is_here, is_elsewhere, "{} has no row, or one too many", setting.key);
    }
}
