//! Constraints between several settings: sums and orderings.
//!
//! A type can only validate its own value. A [`Rule`] is data and names its keys, so a problem can
//! list the values involved and their origins. `layers` decides how to report a broken rule.

use std::time::Duration;

use crate::key::Key;
use crate::sections::{Config, Embedder, RetrievalWeights};
use crate::units::EmbedderKind;

/// Maximum deviation of a sum of weights from 1. Users round weights to two or three digits.
const SUM_TOLERANCE: f64 = 0.001;

/// A constraint between values.
#[derive(Debug)]
pub(crate) enum Rule {
    /// The terms sum to 1. `inherited` lists the keys from which missing terms were taken.
    SumToOne { terms: Vec<Term>, inherited: Vec<Key> },
    /// The first value is at most the second.
    AtMost(Term, Term),
    /// The first value is less than the second.
    Below(Term, Term),
    /// The choice in the first key requires a certain value of the second. `must` follows "must
    /// be".
    Fits { chosen: Key, with: Key, holds: Holds, must: &'static str },
}

/// Result of a constraint that does not compare numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
}

/// A setting as a number, with its key.
#[derive(Debug)]
pub(crate) struct Term {
    key: Key,
    value: f64,
}

impl Rule {
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
                (!holds).then(|| format!("{names} must be 1 (within 0.001), and is {sum:.4}"))
            }
            Self::AtMost(lower, upper) => (lower.value > upper.value)
                .then(|| format!("`{}` must be at most `{}`", lower.key, upper.key)),
            Self::Below(lower, upper) => (lower.value >= upper.value)
                .then(|| format!("`{}` must be below `{}`", lower.key, upper.key)),
            Self::Fits { chosen, with, holds, must } => (*holds == Holds::No)
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

/// A setting as a [`Term`]. The key is derived from the field path, so it cannot be misspelt.
macro_rules! term {
    ($config:ident . $($part:ident).+) => {
        Term {
            key: Key::new([$(stringify!($part)),+]),
            value: Magnitude::magnitude($config.$($part).+.get()),
        }
    };
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
pub(crate) fn rules(config: &Config) -> Vec<Rule> {
    let mut rules = Vec::new();
    rules.extend(running(config));
    rules.extend(embedder(config));
    rules.extend(confidence(config));
    rules.extend(admission(config));
    rules.extend(retrieval(config));
    rules.extend(retrieval_weights(config));
    rules.extend(conflict(config));
    rules.extend(upkeep(config));
    rules
}

fn running(c: &Config) -> Vec<Rule> {
    vec![
        Rule::AtMost(term!(c.network.redial_after), term!(c.network.redial_after_max)),
        Rule::AtMost(
            term!(c.network.peer_connections_max),
            term!(c.network.established_connections_max),
        ),
        Rule::AtMost(term!(c.federation.budget.back_off), term!(c.federation.budget.back_off_max)),
        // Each new entry arrives as a record, so a higher limit would have no effect.
        Rule::AtMost(
            term!(c.federation.budget.new_entries_max),
            term!(c.federation.budget.records_max),
        ),
    ]
}

fn embedder(c: &Config) -> Vec<Rule> {
    let key = |name| Key::new(["embedder", name]);
    let fits = |chosen, with, holds, must| {
        let holds = if holds { Holds::Yes } else { Holds::No };
        Rule::Fits { chosen: key(chosen), with: key(with), holds, must }
    };
    let Embedder { kind, folder, url, model, key_variable, .. } = &c.embedder;
    let is_server = matches!(kind, EmbedderKind::OpenAi | EmbedderKind::Ollama);
    let has_folder = *kind != EmbedderKind::Folder || folder.get().is_some();
    let has_url = !is_server || url.get().is_some();
    let has_model = !is_server || model.get().is_some();
    let hides_key = key_variable.get().is_none() || !url.is_exposed();
    vec![
        fits("kind", "folder", has_folder, "the absolute path of the model's folder"),
        fits("kind", "url", has_url, "the address of the server"),
        fits("kind", "model", has_model, "the name of the server's model"),
        // Plain HTTP would expose the API key to the network.
        fits("key_variable", "url", hides_key, "an https address, or one of this machine"),
        Rule::AtMost(term!(c.embedder.query_timeout), term!(c.embedder.request_timeout)),
        Rule::AtMost(term!(c.embedder.text_bytes_max), term!(c.embedder.batch_bytes_max)),
    ]
}

fn confidence(c: &Config) -> Vec<Rule> {
    vec![
        Rule::AtMost(term!(c.confidence.floor), term!(c.confidence.prior_alpha)),
        Rule::AtMost(term!(c.confidence.floor), term!(c.confidence.prior_beta)),
        Rule::AtMost(
            term!(c.confidence.gamma_per_day.archived),
            term!(c.confidence.gamma_per_day.ephemeral),
        ),
        Rule::AtMost(
            term!(c.confidence.gamma_per_day.ephemeral),
            term!(c.confidence.gamma_per_day.stable),
        ),
        Rule::AtMost(
            term!(c.confidence.gamma_per_day.stable),
            term!(c.confidence.gamma_per_day.permanent),
        ),
        Rule::AtMost(term!(c.confidence.outcome.step_min), term!(c.confidence.outcome.step_max)),
        Rule::Below(term!(c.confidence.reset.mean_min), term!(c.confidence.reset.mean_max)),
        // Otherwise a new entry would count as verified without any observation.
        Rule::Below(term!(c.confidence.prior_alpha), term!(c.status.verified_alpha_min)),
    ]
}

fn admission(c: &Config) -> Vec<Rule> {
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
        Rule::SumToOne { terms: weights, inherited: Vec::new() },
        Rule::AtMost(term!(c.admission.reject_below), term!(c.admission.candidate_below)),
        Rule::AtMost(
            term!(c.admission.candidate_below),
            term!(c.admission.foreign_candidate_below),
        ),
        Rule::AtMost(term!(c.gate.uncorroborated_places_max), term!(c.retrieval.entries_max)),
    ]
}

fn retrieval(c: &Config) -> Vec<Rule> {
    let shares =
        vec![term!(c.retrieval.foreign.quantile_share), term!(c.retrieval.foreign.floor_share)];
    vec![
        Rule::AtMost(term!(c.retrieval.executor_budget_tokens), term!(c.retrieval.budget_tokens)),
        Rule::AtMost(
            term!(c.retrieval.status_bonus.candidate),
            term!(c.retrieval.status_bonus.active),
        ),
        Rule::AtMost(
            term!(c.retrieval.status_bonus.active),
            term!(c.retrieval.status_bonus.verified),
        ),
        Rule::SumToOne { terms: shares, inherited: Vec::new() },
        Rule::AtMost(
            term!(c.retrieval.foreign.floor_candidate),
            term!(c.retrieval.foreign.floor_active),
        ),
        Rule::AtMost(
            term!(c.retrieval.foreign.floor_active),
            term!(c.retrieval.foreign.floor_verified),
        ),
        Rule::AtMost(term!(c.retrieval.foreign.factor_min), term!(c.retrieval.foreign.factor_max)),
        Rule::AtMost(
            term!(c.retrieval.tiers.standard_score_above),
            term!(c.retrieval.tiers.summary_score_above),
        ),
        Rule::AtMost(
            term!(c.retrieval.tiers.standard_sources_min),
            term!(c.retrieval.tiers.summary_sources_min),
        ),
        Rule::Below(term!(c.cooccurrence.prune_below), term!(c.cooccurrence.weight_initial)),
        Rule::AtMost(term!(c.cooccurrence.weight_initial), term!(c.cooccurrence.weight_max)),
    ]
}

fn upkeep(c: &Config) -> Vec<Rule> {
    let floor = term!(c.upkeep.changed_fraction_entries_min);
    vec![
        Rule::AtMost(floor, term!(c.upkeep.changed_entries_min)),
        Rule::AtMost(term!(c.upkeep.look_interval), term!(c.upkeep.interval)),
    ]
}

fn conflict(c: &Config) -> Vec<Rule> {
    let weights = vec![
        term!(c.conflict.composite.mean_weight),
        term!(c.conflict.composite.recency_weight),
        term!(c.conflict.composite.provenance_weight),
    ];
    vec![Rule::SumToOne { terms: weights, inherited: Vec::new() }]
}

/// One rule for the common weights, and one for each workspace with weights of its own.
fn retrieval_weights(config: &Config) -> Vec<Rule> {
    let common = Key::new(["retrieval", "weights"]);
    let named = Key::new(["retrieval", "workspace_weights"]);
    let inherited = terms_of(&config.retrieval.weights, &common);
    let inherited: Vec<Key> = inherited.into_iter().map(|term| term.key).collect();
    let own = config.retrieval.workspace_weights.iter().map(|(name, weights)| Rule::SumToOne {
        terms: terms_of(weights, &named.child(name.as_str())),
        inherited: inherited.clone(),
    });
    let terms = terms_of(&config.retrieval.weights, &common);
    std::iter::once(Rule::SumToOne { terms, inherited: Vec::new() }).chain(own).collect()
}

fn terms_of(weights: &RetrievalWeights, section: &Key) -> Vec<Term> {
    let terms = vec![
        term!(weights.semantic),
        term!(weights.thompson),
        term!(weights.freshness),
        term!(weights.status),
        term!(weights.thread),
        term!(weights.cooccurrence),
    ];
    let placed = |term: Term| Term { key: section.child(term.key.name()), value: term.value };
    terms.into_iter().map(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

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
        let term = |value: &f64| Term { key: Key::new(["a", "b"]), value: *value };
        Rule::SumToOne { terms: values.iter().map(term).collect(), inherited: vec![] }.broken()
    }

    #[test]
    fn a_sum_may_miss_one_by_a_thousandth_and_no_more() {
        assert_eq!(sum_of(&[0.5, 0.5]), None);
        assert_eq!(sum_of(&[0.5, 0.501]), None);
        assert_eq!(sum_of(&[0.5, 0.499]), None);
        assert!(sum_of(&[0.5, 0.502]).is_some());
        assert!(sum_of(&[0.5, 0.498]).is_some());
    }

    #[test]
    fn equal_values_are_at_most_and_not_below() {
        let term = || Term { key: Key::new(["a"]), value: 1.0 };
        assert_eq!(Rule::AtMost(term(), term()).broken(), None);
        assert!(Rule::Below(term(), term()).broken().is_some());
    }
}
