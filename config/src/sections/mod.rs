//! The typed configuration that the rest of the node uses.
//!
//! Each struct has exactly one field per key of its section in `default.toml`; otherwise the
//! embedded text would not parse. A section below `tuning` fills the same struct as the section of
//! that name at the top level: `trust.hop_max` and `tuning.trust.quantile` are both in [`Trust`].
//! No field is optional and none has a default of its own, so `default.toml` stays the only source
//! of defaults. These modules hold no logic: layers, origins and errors are elsewhere.

mod confidence;
mod embedder;
mod maintenance;
mod process;
mod replication;
mod retrieval;
mod scoring;

use serde::Deserialize;
use toml::{Table, Value};

pub use confidence::{
    Confidence, DecayPerDay, ForeignEvidence, OutcomeWeights, Reset, Restoration, Weight,
};
pub use embedder::Embedder;
pub use maintenance::{Audit, MaintenanceSchedule};
pub use process::{Api, Engine, Hooks, Index, Log, Mcp, Network, Threads};
pub use replication::{Budget, Egress, Federation, Filters, Ingress};
pub use retrieval::{
    Briefing, Composite, ContradictionRules, Cooccurrence, Duplicates, Foreign, Retrieval,
    RetrievalWeights, StatusBonus, Tiers,
};
pub use scoring::{
    Admission, AdmissionWeights, Anchors, EntryRules, Gate, Scan, StatusThresholds, TaskRules,
    Trust,
};

/// The section of a file that holds the keys few operators need.
pub(crate) const TUNING: &str = "tuning";

/// All settings of a node. `Config::default()` parses `default.toml`.
///
/// A field has the path of its key without `tuning`: the key `tuning.confidence.floor` fills the
/// field `confidence.floor`. [`Config::from_table`] reads a table with the layout of a file; the
/// derived `Deserialize` expects the layout of the fields.
///
/// Every value is within the limits of its type. Constraints between several values are checked
/// only by [`Layers::resolve`](crate::Layers::resolve).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Log level and format.
    pub log: Log,
    /// The local API.
    pub api: Api,
    /// The MCP server, which connects agents to the node.
    pub mcp: Mcp,
    /// Connections to peers.
    pub network: Network,
    /// The single writer thread and the store's cache.
    pub engine: Engine,
    /// The vector index.
    pub index: Index,
    /// The embedder, which computes vectors of texts.
    pub embedder: Embedder,
    /// Hooks that agent clients run on their events.
    pub hooks: Hooks,
    /// Computation of an entry's confidence from observations.
    pub confidence: Confidence,
    /// Archiving of unconfirmed entries, expiry of tasks, and evidence outside tasks.
    pub tasks: TaskRules,
    /// The form of new entries.
    pub entries: EntryRules,
    /// Effects of checking the predicates that entries depend on.
    pub anchors: Anchors,
    /// Thresholds for the statuses active, verified and stale.
    pub status: StatusThresholds,
    /// Admission: the score that decides which entries can be retrieved.
    pub admission: Admission,
    /// The gate: the filter for answers to programs.
    pub gate: Gate,
    /// Additional patterns of the content scanner.
    pub scan: Scan,
    /// Trust in authors.
    pub trust: Trust,
    /// Default thread of entries and questions.
    pub threads: Threads,
    /// Ranking and size of answers.
    pub retrieval: Retrieval,
    /// Co-occurrence: pairs of entries that were served together.
    pub cooccurrence: Cooccurrence,
    /// Resolution of contradictions.
    pub contradiction: ContradictionRules,
    /// Display of duplicates.
    pub duplicates: Duplicates,
    /// Background maintenance: duplicates, contradictions, co-occurrence pairs and stale entries.
    pub maintenance: MaintenanceSchedule,
    /// Thresholds of the audit reports.
    pub audit: Audit,
    /// Filters for records sent to and received from new peers.
    pub filter: Filters,
    /// Replication with peers.
    pub federation: Federation,
}

impl Config {
    /// Reads a complete table with the layout of `default.toml`.
    ///
    /// # Errors
    ///
    /// If a key is missing or unknown, or if a value has the wrong type or is out of range.
    pub fn from_table(mut table: Table) -> Result<Self, toml::de::Error> {
        if let Some(Value::Table(tuning)) = table.remove(TUNING) {
            merge(&mut table, tuning);
        }
        Self::deserialize(table)
    }
}

/// Adds the values of one table to another. Tables that are in both are merged.
fn merge(into: &mut Table, from: Table) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        let table = crate::DEFAULT_TOML.parse::<Table>();
        table
            .and_then(Self::from_table)
            .expect("the embedded default.toml is valid and complete, as a test shows")
    }
}
