//! The configuration as the rest of the node reads it: plain structs of validated values.
//!
//! Separate from how it came about (layers, origins, problems), which no reader needs. A struct here
//! has a field for every key of `default.toml` and a key for every field: the embedded text could not
//! be read otherwise. No field is optional and none has a default of its own, since there would then
//! be two places to look.

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

/// Every setting of a node. `Config::default()` is what `default.toml` says.
///
/// Each value is within its own limits, whichever way it came in. That values go together is checked
/// by [`Layers::resolve`](crate::Layers::resolve) alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What is logged.
    pub log: Log,
    /// The local API.
    pub api: Api,
    /// The server that agents speak to.
    pub mcp: Mcp,
    /// Connections with peers.
    pub network: Network,
    /// The one writer.
    pub engine: Engine,
    /// The vector index.
    pub index: Index,
    /// What turns texts into vectors.
    pub embedder: Embedder,
    /// What clients run at certain moments.
    pub hooks: Hooks,
    /// What observations say about an entry.
    pub confidence: Confidence,
    /// When an entry that nothing confirms is put away.
    pub provenance: Provenance,
    /// What follows from a look at what entries depend on.
    pub anchors: Anchors,
    /// When an entry becomes active, verified or stale.
    pub status: StatusThresholds,
    /// Which entries may be retrieved at all.
    pub admission: Admission,
    /// Which entries may be served to a program.
    pub gate: Gate,
    /// What the scanner looks for beside its own rules.
    pub scan: Scan,
    /// How far authors are believed.
    pub trust: Trust,
    /// In which thread things are said.
    pub threads: Threads,
    /// How answers are ranked and cut.
    pub retrieval: Retrieval,
    /// Pairs of entries that are served together.
    pub cooccurrence: Cooccurrence,
    /// Entries that contradict each other.
    pub conflict: Conflict,
    /// Entries that say the same.
    pub duplicates: Duplicates,
    /// What the node does by itself.
    pub upkeep: Upkeep,
    /// When what the node holds is out of order.
    pub survey: Survey,
    /// What may leave and what may enter.
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
