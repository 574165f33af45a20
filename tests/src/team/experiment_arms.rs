//! The arms of the experiment: klnode with its defaults, with one mechanism switched off, and the
//! baselines.

use klnode_config::{Config, Layers};

/// The order in which an agent reads the hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitOrder {
    /// As klnode ranks them, through its gate and with its warnings.
    Judged,
    /// By relevance alone: plain hybrid search.
    Relevance,
    /// Relevant entries, the newest first.
    Newest,
    /// Relevant entries, the most used on this node first.
    MostUsed,
}

/// A mechanism that is not a setting, but a part of how nodes are run or asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Practice {
    /// A question draws a Thompson sample; without it, the mean ranks.
    Sampling,
    /// A question names the caller's checkout, in which anchors are evaluated.
    Anchors,
    /// An answer passes the gate; without it, the question asks for all entries.
    Gate,
    /// The maintenance services run.
    Maintenance,
    /// A confirmation without an earlier reading counts as independent.
    Confirmation,
    /// An agent that was misled says that its own lesson replaces the misleading one.
    Supersession,
    /// The hostile node is hostile; without it, it is silent.
    Hostility,
}

#[derive(Clone, Debug)]
pub struct Arm {
    /// Name in the table.
    pub name: &'static str,
    /// The order of the hits.
    pub order: HitOrder,
    /// Settings that differ from the defaults.
    pub settings: Vec<(&'static str, &'static str)>,
    /// The practices that are off.
    pub without: Vec<Practice>,
}

type Settings = &'static [(&'static str, &'static str)];

const DECAY: Settings = &[
    ("tuning.confidence.decay_per_day.ephemeral", "1.0"),
    ("tuning.confidence.decay_per_day.stable", "1.0"),
    ("tuning.trust.decay_per_day", "1.0"),
];
const TRUST: Settings = &[("tuning.trust.prior_alpha", "1000000.0")];
const HOP: Settings = &[("tuning.confidence.weight.hop_discount", "1.0")];
const FOREIGN: Settings = &[
    ("tuning.retrieval.foreign.factor_min", "1.0"),
    ("tuning.retrieval.foreign.factor_max", "1.0"),
];
const STATUS: Settings = &[
    ("tuning.retrieval.status_bonus.active", "1.0"),
    ("tuning.retrieval.status_bonus.candidate", "1.0"),
    ("tuning.retrieval.foreign.floor_active", "0.8"),
    ("tuning.retrieval.foreign.floor_candidate", "0.8"),
    ("tuning.admission.reject_below", "0.0"),
    ("tuning.admission.candidate_below", "0.0"),
    ("tuning.admission.foreign_candidate_below", "0.0"),
    ("status.stale_after", "36500 days"),
];
const ARCHIVE: Settings = &[("tuning.tasks.archive_after_root_tasks", "1000000")];
const COOCCURRENCE: Settings = &[
    ("tuning.retrieval.weights.semantic", "0.43"),
    ("tuning.retrieval.weights.cooccurrence", "0.0"),
];
/// The other weights keep their proportions.
const FRESHNESS: Settings = &[
    ("tuning.retrieval.weights.semantic", "0.447"),
    ("tuning.retrieval.weights.thompson", "0.294"),
    ("tuning.retrieval.weights.freshness", "0.0"),
    ("tuning.retrieval.weights.status", "0.118"),
    ("tuning.retrieval.weights.thread", "0.082"),
    ("tuning.retrieval.weights.cooccurrence", "0.059"),
];
const CONFIDENCE: Settings = &[
    ("tuning.retrieval.weights.semantic", "0.5"),
    ("tuning.retrieval.weights.thompson", "0.0"),
    ("tuning.retrieval.weights.freshness", "0.203"),
    ("tuning.retrieval.weights.status", "0.135"),
    ("tuning.retrieval.weights.thread", "0.095"),
    ("tuning.retrieval.weights.cooccurrence", "0.067"),
];
/// No entry has the thread of a caller, so only relevance ranks.
const RELEVANCE_ONLY: Settings = &[
    ("tuning.retrieval.weights.semantic", "0.5"),
    ("tuning.retrieval.weights.thompson", "0.0"),
    ("tuning.retrieval.weights.freshness", "0.0"),
    ("tuning.retrieval.weights.status", "0.0"),
    ("tuning.retrieval.weights.thread", "0.5"),
    ("tuning.retrieval.weights.cooccurrence", "0.0"),
];

/// Without the penalty, and without the warning that comes with it.
const FAILURES: Settings = &[("tuning.retrieval.recent_failure_penalty", "0.0")];

fn arm(name: &'static str, settings: &[Settings], without: &[Practice]) -> Arm {
    let settings = settings.iter().flat_map(|of| of.iter().copied()).collect();
    Arm { name, order: HitOrder::Judged, settings, without: without.to_vec() }
}

fn baseline(name: &'static str, order: HitOrder) -> Arm {
    let without = [
        Practice::Maintenance,
        Practice::Anchors,
        Practice::Gate,
        Practice::Sampling,
        Practice::Supersession,
    ];
    Arm { order, ..arm(name, &[ARCHIVE], &without) }
}

impl Arm {
    /// Name of the arm whose hostile node is silent.
    pub const SILENT: &'static str = "hostile node silent";

    /// klnode with its defaults.
    pub fn defaults() -> Self {
        arm("klnode", &[], &[])
    }

    /// Plain hybrid search.
    pub fn plain() -> Self {
        baseline("plain hybrid search", HitOrder::Relevance)
    }

    /// All arms, in the order of the table.
    pub fn all() -> Vec<Self> {
        use Practice::{
            Anchors, Confirmation, Gate, Hostility, Maintenance, Sampling, Supersession,
        };
        let every = [Anchors, Confirmation, Gate, Maintenance, Sampling, Supersession];
        let off = [DECAY, TRUST, HOP, FOREIGN, STATUS, ARCHIVE, FAILURES, RELEVANCE_ONLY];
        vec![
            Self::defaults(),
            arm(Self::SILENT, &[], &[Hostility]),
            arm("no decay", &[DECAY], &[]),
            arm("no freshness in the ranking", &[FRESHNESS], &[]),
            arm("no trust percentiles", &[TRUST], &[]),
            arm("no hop discount", &[HOP], &[]),
            arm("no discount of foreign entries", &[FOREIGN], &[]),
            arm("no Thompson sampling", &[], &[Sampling]),
            arm("no confidence in the ranking", &[CONFIDENCE], &[]),
            arm("no status and admission", &[STATUS], &[]),
            arm("no archive rule", &[ARCHIVE], &[]),
            arm("no anchors", &[], &[Anchors]),
            arm("no co-occurrence", &[COOCCURRENCE], &[]),
            arm("no injection gate", &[], &[Gate]),
            arm("no maintenance", &[], &[Maintenance]),
            arm("no independent confirmation", &[], &[Confirmation]),
            arm("no supersession", &[], &[Supersession]),
            arm("no recent failures", &[FAILURES], &[]),
            arm("all off", &off, &every),
            Self::plain(),
            baseline("newest first", HitOrder::Newest),
            baseline("most used first", HitOrder::MostUsed),
        ]
    }

    /// klnode with other settings than the defaults, for tuning.
    pub fn tuned(name: &'static str, settings: Vec<(&'static str, &'static str)>) -> Self {
        Self { settings, ..arm(name, &[], &[]) }
    }

    /// The configuration of its nodes.
    ///
    /// # Panics
    /// If a setting does not exist or has a value out of range.
    pub fn config(&self) -> Config {
        let assignment = |(key, value): &(&str, &str)| ("--set", format!("{key}={value}"));
        let layers = Layers::new().flags(self.settings.iter().map(assignment));
        let resolved = layers.resolve();
        resolved.unwrap_or_else(|error| panic!("{}: {error}", self.name)).config().clone()
    }

    /// Whether a practice is on.
    pub fn has(&self, practice: Practice) -> bool {
        !self.without.contains(&practice)
    }
}
