//! The typed configuration that the rest of the node uses.
//!
//! Each struct has exactly one field per key of its section in `default.toml`; otherwise the
//! embedded text would not parse. No field is optional and none has a default of its own, so
//! `default.toml` stays the only source of defaults. These modules hold no logic: layers, origins
//! and errors are elsewhere.

mod confidence;
mod embedder;
mod judgement;
mod retrieval;
mod running;
mod sharing;
mod upkeep;

use serde::Deserialize;

pub use confidence::{Confidence, GammaPerDay, Mass, Outcome, Reset, Restoration, Weight};
pub use embedder::Embedder;
pub use judgement::{
    Admission, AdmissionWeights, Anchors, Gate, Provenance, Scan, StatusThresholds, Trust,
};
pub use retrieval::{
    Briefing, Composite, Conflict, Cooccurrence, Duplicates, Foreign, Retrieval, RetrievalWeights,
    StatusBonus, Tiers,
};
pub use running::{Api, Engine, Hooks, Index, Log, Mcp, Network, Threads};
pub use sharing::{Budget, Egress, Federation, Filters, Ingress};
pub use upkeep::{Survey, Upkeep};

/// All settings of a node. `Config::default()` parses `default.toml`.
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
    pub provenance: Provenance,
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
    pub conflict: Conflict,
    /// Display of duplicates.
    pub duplicates: Duplicates,
    /// Background maintenance: duplicates, contradictions, co-occurrence pairs and stale entries.
    pub upkeep: Upkeep,
    /// Thresholds of the health reports.
    pub survey: Survey,
    /// Filters for records sent to and received from new peers.
    pub filter: Filters,
    /// Replication with peers.
    pub federation: Federation,
}

impl Default for Config {
    fn default() -> Self {
        toml::from_str(crate::DEFAULT_TOML)
            .expect("the embedded default.toml is valid and complete, as a test shows")
    }
}
