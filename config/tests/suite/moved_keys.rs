//! Tests that every key of an earlier version is answered with its present key, in each layer.

use klnode_config::{ConfigProblem, Layers};

/// Every key that has moved or was renamed, with its present key.
const MOVED: &[(&str, &str)] = &[
    ("api.connections_max", "tuning.api.connections_max"),
    ("api.event_streams_max", "tuning.api.event_streams_max"),
    ("api.body_bytes_max", "tuning.api.body_bytes_max"),
    ("network.pending_connections_max", "tuning.network.pending_connections_max"),
    ("network.peer_connections_max", "tuning.network.peer_connections_max"),
    ("network.progress_bytes_per_second_min", "tuning.network.stream_bytes_per_second_min"),
    ("network.request_timeout", "tuning.network.request_timeout"),
    ("network.redial_after", "tuning.network.redial_after"),
    ("network.redial_after_max", "tuning.network.redial_after_max"),
    ("engine.queue_commands_max", "tuning.engine.queue_commands_max"),
    ("engine.group_commands_max", "tuning.engine.commit_commands_max"),
    ("engine.group_bytes_max", "tuning.engine.commit_bytes_max"),
    ("index.hnsw_entries_min", "tuning.index.hnsw_entries_min"),
    ("index.hnsw_dead_fraction_max", "tuning.index.hnsw_deleted_fraction_max"),
    ("embedder.request_timeout", "tuning.embedder.request_timeout"),
    ("embedder.batch_texts_max", "tuning.embedder.batch_texts_max"),
    ("embedder.batch_bytes_max", "tuning.embedder.batch_bytes_max"),
    ("embedder.text_bytes_max", "tuning.embedder.text_bytes_max"),
    ("embedder.retries_max", "tuning.embedder.retries_max"),
    ("embedder.back_off", "tuning.embedder.back_off"),
    ("hooks.deadline", "hooks.timeout"),
    ("confidence.prior_alpha", "tuning.confidence.prior_alpha"),
    ("confidence.prior_beta", "tuning.confidence.prior_beta"),
    ("confidence.floor", "tuning.confidence.floor"),
    ("confidence.decay_age_max", "tuning.confidence.decay_age_max"),
    ("confidence.lower_quantile", "tuning.confidence.lower_quantile"),
    ("confidence.gamma_per_day.ephemeral", "tuning.confidence.decay_per_day.ephemeral"),
    ("confidence.gamma_per_day.stable", "tuning.confidence.decay_per_day.stable"),
    ("confidence.gamma_per_day.permanent", "tuning.confidence.decay_per_day.permanent"),
    ("confidence.gamma_per_day.archived", "tuning.confidence.decay_per_day.archived"),
    ("confidence.weight.hop_discount", "tuning.confidence.weight.hop_discount"),
    ("confidence.weight.foreign_max", "tuning.confidence.weight.foreign_max"),
    ("confidence.mass.member_max", "tuning.confidence.foreign_evidence.member_max"),
    ("confidence.mass.non_members_max", "tuning.confidence.foreign_evidence.non_members_max"),
    ("confidence.mass.peer_max", "tuning.confidence.foreign_evidence.peer_max"),
    ("confidence.outcome.quality_offset", "tuning.confidence.outcome.quality_offset"),
    ("confidence.outcome.step_min", "tuning.confidence.outcome.step_min"),
    ("confidence.outcome.step_max", "tuning.confidence.outcome.step_max"),
    ("confidence.outcome.rank_decay", "tuning.confidence.outcome.rank_decay"),
    ("confidence.outcome.unnamed_entries_max", "tuning.confidence.outcome.guessed_entries_max"),
    ("confidence.outcome.unnamed_weight", "tuning.confidence.outcome.guessed_weight"),
    ("confidence.outcome.feedback_step", "tuning.confidence.outcome.feedback_step"),
    (
        "confidence.restoration.below_peak_fraction",
        "tuning.confidence.restoration.below_peak_fraction",
    ),
    ("confidence.restoration.step_fraction", "tuning.confidence.restoration.step_fraction"),
    (
        "confidence.reset.effective_observations_min",
        "tuning.confidence.reset.effective_observations_min",
    ),
    ("confidence.reset.mean_min", "tuning.confidence.reset.mean_min"),
    ("confidence.reset.mean_max", "tuning.confidence.reset.mean_max"),
    ("provenance.archive_after_root_tasks", "tuning.tasks.archive_after_root_tasks"),
    ("provenance.task_expires_after", "tasks.expire_after"),
    (
        "provenance.outside_observations_per_day_max",
        "tuning.tasks.outside_observations_per_day_max",
    ),
    ("provenance.user_primed_for", "tuning.tasks.user_priming_lifetime"),
    ("provenance.findings_compared_after", "tuning.tasks.findings_comparison_delay"),
    ("status.active_successes_min", "tuning.status.active_successes_min"),
    ("status.verified_alpha_min", "tuning.status.verified_alpha_min"),
    ("status.verified_mean_min", "tuning.status.verified_mean_min"),
    ("admission.reject_below", "tuning.admission.reject_below"),
    ("admission.candidate_below", "tuning.admission.candidate_below"),
    ("admission.foreign_candidate_below", "tuning.admission.foreign_candidate_below"),
    ("admission.observation_mass_rate", "tuning.admission.observation_mass_rate"),
    ("admission.weights.confidence", "tuning.admission.weights.confidence"),
    ("admission.weights.provenance", "tuning.admission.weights.provenance"),
    ("admission.weights.scanner", "tuning.admission.weights.scanner"),
    ("admission.weights.federation", "tuning.admission.weights.federation"),
    ("admission.weights.observation_mass", "tuning.admission.weights.observation_mass"),
    ("admission.weights.entry_type", "tuning.admission.weights.entry_type"),
    ("admission.weights.recency", "tuning.admission.weights.recency"),
    ("gate.uncorroborated_places_max", "tuning.gate.uncorroborated_entries_max"),
    ("gate.corroborating_successes_min", "tuning.gate.corroborating_successes_min"),
    ("gate.corroborating_members_min", "tuning.gate.corroborating_members_min"),
    ("gate.corroborating_trust_min", "tuning.gate.corroborating_trust_min"),
    ("trust.prior_alpha", "tuning.trust.prior_alpha"),
    ("trust.prior_beta", "tuning.trust.prior_beta"),
    ("trust.quantile", "tuning.trust.quantile"),
    ("trust.success_step", "tuning.trust.success_step"),
    ("trust.failure_step", "tuning.trust.failure_step"),
    ("trust.successes_per_day_max", "tuning.trust.successes_per_day_max"),
    ("trust.fade_after", "tuning.trust.decay_after"),
    ("trust.fade_per_day", "tuning.trust.decay_per_day"),
    ("trust.recent_outcomes", "tuning.trust.recent_outcomes"),
    ("retrieval.executor_budget_tokens", "tuning.retrieval.executor_budget_tokens"),
    ("retrieval.freshness_half_life", "tuning.retrieval.freshness_half_life"),
    ("retrieval.pin_bonus", "tuning.retrieval.pin_bonus"),
    ("retrieval.weights.semantic", "tuning.retrieval.weights.semantic"),
    ("retrieval.weights.thompson", "tuning.retrieval.weights.thompson"),
    ("retrieval.weights.freshness", "tuning.retrieval.weights.freshness"),
    ("retrieval.weights.status", "tuning.retrieval.weights.status"),
    ("retrieval.weights.thread", "tuning.retrieval.weights.thread"),
    ("retrieval.weights.cooccurrence", "tuning.retrieval.weights.cooccurrence"),
    ("retrieval.status_bonus.verified", "tuning.retrieval.status_bonus.verified"),
    ("retrieval.status_bonus.active", "tuning.retrieval.status_bonus.active"),
    ("retrieval.status_bonus.candidate", "tuning.retrieval.status_bonus.candidate"),
    ("retrieval.foreign.quantile_share", "tuning.retrieval.foreign.quantile_share"),
    ("retrieval.foreign.floor_share", "tuning.retrieval.foreign.floor_share"),
    ("retrieval.foreign.floor_verified", "tuning.retrieval.foreign.floor_verified"),
    ("retrieval.foreign.floor_active", "tuning.retrieval.foreign.floor_active"),
    ("retrieval.foreign.floor_candidate", "tuning.retrieval.foreign.floor_candidate"),
    ("retrieval.foreign.above_weight_max", "tuning.retrieval.foreign.author_weight_margin"),
    ("retrieval.foreign.factor_min", "tuning.retrieval.foreign.factor_min"),
    ("retrieval.foreign.factor_max", "tuning.retrieval.foreign.factor_max"),
    ("retrieval.tiers.summary_sources_min", "tuning.retrieval.tiers.summary_sources_min"),
    ("retrieval.tiers.summary_score_above", "tuning.retrieval.tiers.summary_score_above"),
    ("retrieval.tiers.standard_sources_min", "tuning.retrieval.tiers.standard_sources_min"),
    ("retrieval.tiers.standard_score_above", "tuning.retrieval.tiers.standard_score_above"),
    ("retrieval.tiers.summary_characters_max", "tuning.retrieval.tiers.summary_characters_max"),
    ("retrieval.tiers.preview_characters_max", "tuning.retrieval.tiers.preview_characters_max"),
    ("retrieval.briefing.budget_tokens", "tuning.retrieval.briefing.budget_tokens"),
    ("retrieval.briefing.section_entries_max", "tuning.retrieval.briefing.section_entries_max"),
    ("retrieval.briefing.fresh_min", "tuning.retrieval.briefing.freshness_min"),
    ("retrieval.briefing.recent", "tuning.retrieval.briefing.recent_within"),
    ("cooccurrence.weight_initial", "tuning.cooccurrence.weight_initial"),
    ("cooccurrence.query_factor", "tuning.cooccurrence.query_factor"),
    ("cooccurrence.success_factor", "tuning.cooccurrence.success_factor"),
    ("cooccurrence.decay_per_day", "tuning.cooccurrence.decay_per_day"),
    ("cooccurrence.prune_below", "tuning.cooccurrence.prune_below"),
    ("cooccurrence.weight_max", "tuning.cooccurrence.weight_max"),
    ("cooccurrence.saturation_rate", "tuning.cooccurrence.saturation_rate"),
    ("conflict.tag_overlap_above", "tuning.contradiction.tag_overlap_above"),
    ("conflict.mean_margin", "tuning.contradiction.mean_margin"),
    ("conflict.recency_margin", "tuning.contradiction.recency_margin"),
    ("conflict.citations_margin", "tuning.contradiction.citations_margin"),
    ("conflict.better_on_min", "tuning.contradiction.leading_criteria_min"),
    ("conflict.composite.mean_weight", "tuning.contradiction.composite.mean_weight"),
    ("conflict.composite.recency_weight", "tuning.contradiction.composite.recency_weight"),
    ("conflict.composite.provenance_weight", "tuning.contradiction.composite.provenance_weight"),
    (
        "conflict.composite.provenance_half",
        "tuning.contradiction.composite.provenance_half_citations",
    ),
    ("conflict.composite.threshold_base", "tuning.contradiction.composite.threshold_base"),
    ("conflict.composite.threshold_spread", "tuning.contradiction.composite.threshold_spread"),
    ("duplicates.longer_text_factor", "tuning.duplicates.longer_text_factor"),
    ("upkeep.changed_entries_min", "tuning.maintenance.changed_entries_min"),
    ("upkeep.changed_fraction_min", "tuning.maintenance.changed_fraction_min"),
    ("upkeep.changed_fraction_entries_min", "tuning.maintenance.changed_fraction_entries_min"),
    ("upkeep.interval", "maintenance.interval"),
    ("upkeep.pass_entries_max", "tuning.maintenance.pass_entries_max"),
    ("upkeep.pass_time_max", "tuning.maintenance.pass_time_max"),
    ("upkeep.pause", "tuning.maintenance.pause"),
    ("upkeep.look_interval", "tuning.maintenance.check_interval"),
    ("survey.norm_confirmed_within", "tuning.audit.norm_confirmed_within"),
    ("survey.tag_entries_max", "tuning.audit.tag_entries_max"),
    ("survey.recent", "tuning.audit.recent_within"),
    ("survey.sample_min", "tuning.audit.sample_size_min"),
    ("survey.stale_fraction_max", "tuning.audit.stale_fraction_max"),
    ("survey.disputed_fraction_max", "tuning.audit.disputed_fraction_max"),
    ("survey.friction_max", "tuning.audit.friction_max"),
    ("survey.waiting_max", "tuning.audit.waiting_max"),
    ("survey.failed_fraction_max", "tuning.audit.failed_fraction_max"),
    ("federation.join_lifetime", "tuning.federation.join_lifetime"),
    ("federation.notify_debounce", "tuning.federation.notify_debounce"),
    ("federation.scrub_interval", "tuning.federation.set_comparison_interval"),
    ("federation.release_sweep_interval", "tuning.federation.release_sweep_interval"),
    ("federation.budget.window", "tuning.federation.budget.window"),
    ("federation.budget.frames_max", "tuning.federation.budget.frames_max"),
    ("federation.budget.bytes_max", "tuning.federation.budget.bytes_max"),
    ("federation.budget.records_max", "tuning.federation.budget.records_max"),
    ("federation.budget.failed_signatures_max", "tuning.federation.budget.failed_signatures_max"),
    ("federation.budget.new_entries_max", "tuning.federation.budget.new_entries_max"),
    ("federation.budget.rows_max", "tuning.federation.budget.rows_max"),
    ("federation.budget.back_off", "tuning.federation.budget.back_off"),
    ("federation.budget.back_off_max", "tuning.federation.budget.back_off_max"),
];

fn problem(layers: &Layers) -> ConfigProblem {
    let error = layers.resolve().expect_err("an old key is an error");
    assert_eq!(error.problems().len(), 1, "{error}");
    error.problems()[0].clone()
}

fn present_key(layers: &Layers) -> String {
    match problem(layers) {
        ConfigProblem::Moved { present, .. } => present,
        other => panic!("{other}"),
    }
}

fn variable(key: &str) -> String {
    format!("KLNODE__{}", key.replace('.', "__").to_uppercase())
}

#[test]
fn every_old_key_is_answered_with_its_present_key_in_each_layer() {
    let settings = Layers::new().resolve().unwrap().explain();
    for (old, present) in MOVED {
        let setting = settings.iter().find(|setting| setting.key == *present);
        let value = &setting.unwrap_or_else(|| panic!("{present} is no setting")).default;
        let file = Layers::new().file("klnode.toml", format!("{old} = {value}"));
        assert_eq!(present_key(&file), *present);
        let environment = Layers::new().environment([(variable(old), value)]);
        assert_eq!(present_key(&environment), variable(present));
        let flag = Layers::new().flags([("--set", format!("{old}={value}"))]);
        assert_eq!(present_key(&flag), *present);
        let present = Layers::new().file("klnode.toml", format!("{present} = {value}"));
        assert!(present.resolve().is_ok(), "{old}");
    }
}

#[test]
fn the_message_names_the_old_key_its_place_and_the_present_key() {
    let cases = [
        (
            Layers::new().file("klnode.toml", "[upkeep]\nlook_interval = \"1 min\"\n"),
            "`upkeep.look_interval` in klnode.toml line 2 is now called \
             `tuning.maintenance.check_interval`. Rename it; its value stays valid.",
        ),
        (
            Layers::new().environment([("KLNODE__HOOKS__DEADLINE", "1 s")]),
            "`hooks.deadline` in environment variable KLNODE__HOOKS__DEADLINE is now called \
             `KLNODE__HOOKS__TIMEOUT`. Rename it; its value stays valid.",
        ),
    ];
    for (layers, expected) in cases {
        assert_eq!(problem(&layers).to_string(), expected);
    }
}

#[test]
fn an_old_section_is_answered_with_its_present_name() {
    for (text, present) in [
        ("[upkeep]", "maintenance"),
        ("survey = 3", "tuning.audit"),
        ("[confidence.mass]", "tuning.confidence.foreign_evidence"),
        ("retrieval.workspace_weights = 3", "tuning.retrieval.workspace_weights"),
    ] {
        assert_eq!(present_key(&Layers::new().file("klnode.toml", text)), present, "{text}");
    }
}

#[test]
fn weights_of_a_workspace_are_answered_with_the_same_workspace() {
    let old = "[retrieval.workspace_weights.\"my team\"]\nthread = 0.07\n";
    let layers = Layers::new().file("klnode.toml", old);
    let present = "tuning.retrieval.workspace_weights.\"my team\".thread";
    assert_eq!(present_key(&layers), present);
}
