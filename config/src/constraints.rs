//! Constraints between several settings: sums and orderings.
//!
//! A type can only validate its own value. A [`Constraint`] is data and names its keys, so a problem can
//! list the values involved and their origins. `layers` decides how to report a broken rule.

use std::time::Duration;

use crate::schema::Schema;
use crate::sections::{Config, Embedder, RetrievalWeights};
use crate::setting_path::Key;
use crate::units::{EmbedderKind, SignalWeight};

/// Maximum deviation of a sum of weights from 1. Users round weights to two or three digits.
const SUM_TOLERANCE: f64 = 0.001;

/// A constraint between values.
#[derive(Debug)]
pub(crate) enum Constraint {
    /// The terms sum to 1. `inherited` lists the keys from which missing terms were taken.
    SumToOne { terms: Vec<ConstraintTerm>, inherited: Vec<Key> },
    /// The first value is at most the second.
    AtMost(ConstraintTerm, ConstraintTerm),
    /// The first value is less than the second.
    Below(ConstraintTerm, ConstraintTerm),
    /// The choice in the first key requires a certain value of the second. `must` follows "must
    /// be".
    Fits { chosen: Key, with: Key, holds: ConstraintResult, must: &'static str },
}

/// Result of a constraint that does not compare numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConstraintResult {
    Yes,
    No,
}

/// A setting as a number, with its key.
#[derive(Debug)]
pub(crate) struct ConstraintTerm {
    key: Key,
    value: f64,
}

impl Constraint {
    /// A description of the violation; `None` if the constraint holds.
    pub(crate) fn broken(&self) -> Option<String> {
        match self {
            Self::SumToOne { terms, .. } => {
                let sum: f64 = terms.iter().map(|term| term.value).sum();
                // Allow for rounding in the last bit, so that a deviation of exactly the tolerance
                // is accepted.
                let holds = (sum - 1.0).abs() <= SUM_TOLERANCE + f64::EPSILON;
                let names: Vec<&str> = terms.iter().map(|term| term.key.name()).collect();
                let names = names.join(" + ");
                (!holds)
                    .then(|| format!("the sum {names} must be 1 (within 0.001), but is {sum:.4}"))
            }
            Self::AtMost(lower, upper) => (lower.value > upper.value)
                .then(|| format!("`{}` must be at most `{}`", lower.key, upper.key)),
            Self::Below(lower, upper) => (lower.value >= upper.value)
                .then(|| format!("`{}` must be below `{}`", lower.key, upper.key)),
            Self::Fits { chosen, with, holds, must } => (*holds == ConstraintResult::No)
                .then(|| format!("with this `{chosen}`, `{with}` must be {must}")),
        }
    }

    /// True if the message should also list values that are defaults. Sums have too many terms for
    /// that.
    pub(crate) fn shows_defaults(&self) -> bool {
        !matches!(self, Self::SumToOne { .. })
    }

    /// The keys of all values in the constraint.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let keys: Vec<&Key> = match self {
            Self::SumToOne { terms, inherited } => {
                terms.iter().map(|term| &term.key).chain(inherited).collect()
            }
            Self::AtMost(lower, upper) | Self::Below(lower, upper) => vec![&lower.key, &upper.key],
            Self::Fits { chosen, with, .. } => vec![chosen, with],
        };
        keys.into_iter()
    }
}

/// A setting as a [`ConstraintTerm`]. The key is derived from the field path, so it cannot be misspelt.
macro_rules! term {
    ($config:ident . $($part:ident).+) => {
        ConstraintTerm {
            key: key_of([$(stringify!($part)),+]),
            value: Magnitude::magnitude($config.$($part).+.get()),
        }
    };
}

/// The key that fills this field of [`Config`].
fn key_of<'a>(field: impl IntoIterator<Item = &'a str>) -> Key {
    let key = Schema::embedded().key_of(&Key::new(field));
    key.expect("every field has a key in default.toml, as a test shows")
}

/// Conversion of a setting to a number for comparison.
trait Magnitude {
    fn magnitude(self) -> f64;
}

impl Magnitude for f64 {
    fn magnitude(self) -> f64 {
        self
    }
}

impl Magnitude for u32 {
    fn magnitude(self) -> f64 {
        f64::from(self)
    }
}

impl Magnitude for u64 {
    fn magnitude(self) -> f64 {
        // Exact: sizes are at most 2^40, and f64 is exact up to 2^53.
        self as f64
    }
}

impl Magnitude for Duration {
    fn magnitude(self) -> f64 {
        self.as_secs_f64()
    }
}

/// All constraints, with the values of this configuration.
pub(crate) fn rules(config: &Config) -> Vec<Constraint> {
    let mut rules = Vec::new();
    rules.extend(running(config));
    rules.extend(embedder(config));
    rules.extend(confidence(config));
    rules.extend(admission(config));
    rules.extend(retrieval(config));
    rules.extend(retrieval_weights(config));
    rules.extend(contradiction(config));
    rules.extend(maintenance(config));
    rules
}

fn running(c: &Config) -> Vec<Constraint> {
    vec![
        Constraint::AtMost(term!(c.network.redial_after), term!(c.network.redial_after_max)),
        Constraint::AtMost(
            term!(c.network.peer_connections_max),
            term!(c.network.established_connections_max),
        ),
        Constraint::AtMost(
            term!(c.federation.budget.back_off),
            term!(c.federation.budget.back_off_max),
        ),
        // Each new entry arrives as a record, so a higher limit would have no effect.
        Constraint::AtMost(
            term!(c.federation.budget.new_entries_max),
            term!(c.federation.budget.records_max),
        ),
    ]
}

fn embedder(c: &Config) -> Vec<Constraint> {
    let key = |name| key_of(["embedder", name]);
    let fits = |chosen, with, holds, must| {
        let holds = if holds { ConstraintResult::Yes } else { ConstraintResult::No };
        Constraint::Fits { chosen: key(chosen), with: key(with), holds, must }
    };
    let Embedder { kind, url, model, key_variable, .. } = &c.embedder;
    let is_server = matches!(kind, EmbedderKind::OpenAi | EmbedderKind::Ollama);
    let has_url = !is_server || url.get().is_some();
    let has_model = !is_server || model.get().is_some();
    let hides_key = key_variable.get().is_none() || !url.is_exposed();
    vec![
        fits("kind", "url", has_url, "the address of the server"),
        fits("kind", "model", has_model, "the name of the server's model"),
        // Plain HTTP would expose the API key to the network.
        fits("key_variable", "url", hides_key, "an https address, or one of this machine"),
        Constraint::AtMost(term!(c.embedder.query_timeout), term!(c.embedder.request_timeout)),
        Constraint::AtMost(term!(c.embedder.text_bytes_max), term!(c.embedder.batch_bytes_max)),
    ]
}

fn confidence(c: &Config) -> Vec<Constraint> {
    vec![
        Constraint::AtMost(term!(c.confidence.floor), term!(c.confidence.prior_alpha)),
        Constraint::AtMost(term!(c.confidence.floor), term!(c.confidence.prior_beta)),
        Constraint::AtMost(
            term!(c.confidence.decay_per_day.archived),
            term!(c.confidence.decay_per_day.ephemeral),
        ),
        Constraint::AtMost(
            term!(c.confidence.decay_per_day.ephemeral),
            term!(c.confidence.decay_per_day.stable),
        ),
        Constraint::AtMost(
            term!(c.confidence.decay_per_day.stable),
            term!(c.confidence.decay_per_day.permanent),
        ),
        Constraint::AtMost(
            term!(c.confidence.outcome.step_min),
            term!(c.confidence.outcome.step_max),
        ),
        Constraint::Below(term!(c.confidence.reset.mean_min), term!(c.confidence.reset.mean_max)),
        // Otherwise a new entry would count as verified without any observation.
        Constraint::Below(term!(c.confidence.prior_alpha), term!(c.status.verified_alpha_min)),
    ]
}

fn admission(c: &Config) -> Vec<Constraint> {
    let weights = vec![
        term!(c.admission.weights.confidence),
        term!(c.admission.weights.provenance),
        term!(c.admission.weights.scanner),
        term!(c.admission.weights.federation),
        term!(c.admission.weights.observation_mass),
        term!(c.admission.weights.entry_type),
        term!(c.admission.weights.recency),
    ];
    vec![
        Constraint::SumToOne { terms: weights, inherited: Vec::new() },
        Constraint::AtMost(term!(c.admission.reject_below), term!(c.admission.candidate_below)),
        Constraint::AtMost(
            term!(c.admission.candidate_below),
            term!(c.admission.foreign_candidate_below),
        ),
        Constraint::AtMost(
            term!(c.gate.uncorroborated_entries_max),
            term!(c.retrieval.entries_max),
        ),
    ]
}

fn retrieval(c: &Config) -> Vec<Constraint> {
    let shares =
        vec![term!(c.retrieval.foreign.quantile_share), term!(c.retrieval.foreign.floor_share)];
    vec![
        Constraint::AtMost(
            term!(c.retrieval.executor_budget_tokens),
            term!(c.retrieval.budget_tokens),
        ),
        Constraint::AtMost(
            term!(c.retrieval.status_bonus.candidate),
            term!(c.retrieval.status_bonus.active),
        ),
        Constraint::AtMost(
            term!(c.retrieval.status_bonus.active),
            term!(c.retrieval.status_bonus.verified),
        ),
        Constraint::SumToOne { terms: shares, inherited: Vec::new() },
        Constraint::AtMost(
            term!(c.retrieval.foreign.floor_candidate),
            term!(c.retrieval.foreign.floor_active),
        ),
        Constraint::AtMost(
            term!(c.retrieval.foreign.floor_active),
            term!(c.retrieval.foreign.floor_verified),
        ),
        Constraint::AtMost(
            term!(c.retrieval.foreign.factor_min),
            term!(c.retrieval.foreign.factor_max),
        ),
        Constraint::AtMost(
            term!(c.retrieval.tiers.standard_score_above),
            term!(c.retrieval.tiers.summary_score_above),
        ),
        Constraint::AtMost(
            term!(c.retrieval.tiers.standard_sources_min),
            term!(c.retrieval.tiers.summary_sources_min),
        ),
        Constraint::Below(term!(c.cooccurrence.prune_below), term!(c.cooccurrence.weight_initial)),
        Constraint::AtMost(term!(c.cooccurrence.weight_initial), term!(c.cooccurrence.weight_max)),
    ]
}

fn maintenance(c: &Config) -> Vec<Constraint> {
    let floor = term!(c.maintenance.changed_fraction_entries_min);
    vec![
        Constraint::AtMost(floor, term!(c.maintenance.changed_entries_min)),
        Constraint::AtMost(term!(c.maintenance.check_interval), term!(c.maintenance.interval)),
    ]
}

fn contradiction(c: &Config) -> Vec<Constraint> {
    let weights = vec![
        term!(c.contradiction.composite.mean_weight),
        term!(c.contradiction.composite.recency_weight),
        term!(c.contradiction.composite.provenance_weight),
    ];
    vec![Constraint::SumToOne { terms: weights, inherited: Vec::new() }]
}

/// One rule for the common weights, and one for each workspace with weights of its own.
fn retrieval_weights(config: &Config) -> Vec<Constraint> {
    let common = key_of(["retrieval", "weights"]);
    let named = key_of(["retrieval", "workspace_weights"]);
    let inherited = terms_of(&config.retrieval.weights, &common);
    let inherited: Vec<Key> = inherited.into_iter().map(|term| term.key).collect();
    let own =
        config.retrieval.workspace_weights.iter().map(|(name, weights)| Constraint::SumToOne {
            terms: terms_of(weights, &named.child(name.as_str())),
            inherited: inherited.clone(),
        });
    let terms = terms_of(&config.retrieval.weights, &common);
    std::iter::once(Constraint::SumToOne { terms, inherited: Vec::new() }).chain(own).collect()
}

fn terms_of(weights: &RetrievalWeights, section: &Key) -> Vec<ConstraintTerm> {
    let term = |name, weight: &SignalWeight| ConstraintTerm {
        key: section.child(name),
        value: weight.get(),
    };
    vec![
        term("semantic", &weights.semantic),
        term("thompson", &weights.thompson),
        term("freshness", &weights.freshness),
        term("status", &weights.status),
        term("thread", &weights.thread),
        term("cooccurrence", &weights.cooccurrence),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_holds_for_the_defaults_and_names_settings_that_exist() {
        for rule in rules(&Config::default()) {
            assert_eq!(rule.broken(), None);
            for key in rule.keys() {
                assert!(Schema::embedded().setting(key).is_some(), "{key}");
            }
        }
    }

    fn sum_of(values: &[f64]) -> Option<String> {
        let term = |value: &f64| ConstraintTerm { key: Key::new(["a", "b"]), value: *value };
        Constraint::SumToOne { terms: values.iter().map(term).collect(), inherited: vec![] }
            .broken()
    }

    #[test]
    fn a_sum_may_differ_from_one_by_at_most_a_thousandth() {
        assert_eq!(sum_of(&[0.5, 0.5]), None);
        assert_eq!(sum_of(&[0.5, 0.501]), None);
        assert_eq!(sum_of(&[0.5, 0.499]), None);
        assert!(sum_of(&[0.5, 0.502]).is_some());
        assert!(sum_of(&[0.5, 0.498]).is_some());
    }

    #[test]
    fn equal_values_are_at_most_and_not_below() {
        let term = || ConstraintTerm { key: Key::new(["a"]), value: 1.0 };
        assert_eq!(Constraint::AtMost(term(), term()).broken(), None);
        assert!(Constraint::Below(term(), term()).broken().is_some());
    }
}
