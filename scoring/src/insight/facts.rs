//! The facts of a workspace that the rules read. The node collects them from one snapshot.

use crate::contradiction::Polarity;
use crate::decay::DecayClass;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use std::collections::BTreeSet;

/// Facts about one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryInsightFacts {
    /// Id of the entry.
    pub entry: EntryId,
    /// Its citation code.
    pub code: String,
    /// The version of its text.
    pub version: String,
    /// Title of the entry.
    pub title: String,
    /// Tags of the entry.
    pub tags: BTreeSet<String>,
    /// Whether it speaks for or against its subject.
    pub polarity: Polarity,
    /// Its decay class.
    pub class: DecayClass,
    /// Whether its status is verified.
    pub is_verified: bool,
    /// Whether another person wrote its text.
    pub is_foreign: bool,
    /// Whether the operator muted or invalidated it.
    pub is_demoted: bool,
    /// Mean of the confidence.
    pub mean: f64,
    /// Observations beyond the prior.
    pub observations: f64,
    /// α from this person's observations, now.
    pub alpha: f64,
    /// The highest α of the last days, from the same observations.
    pub alpha_recent: f64,
    /// The highest α ever stored.
    pub alpha_peak: f64,
    /// Its prediction errors since its last success.
    pub prediction_errors: u32,
}

/// Facts about one paired peer of another person.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerInsightFacts {
    /// The peer's key.
    pub author: AuthorId,
    /// The name shown to people.
    pub name: String,
    /// Trust in it, in [0, 1].
    pub trust: f64,
    /// Successes of its texts on this node.
    pub successes: u32,
    /// Failures of its texts on this node.
    pub failures: u32,
}

/// Facts about one finished task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskInsightFacts {
    /// The name of the task.
    pub task: TaskId,
    /// The agent that worked on it.
    pub agent: String,
    /// The agent of its parent task.
    pub parent_agent: Option<String>,
    /// Whether it succeeded.
    pub is_success: bool,
    /// The quality of the work, in [0, 1].
    pub quality: f64,
    /// The strategy of the agent.
    pub strategy: Option<String>,
    /// The number of rounds.
    pub rounds: Option<u32>,
    /// The cost, in the agent's unit.
    pub cost: Option<f64>,
    /// The number of entries written in it.
    pub made: u32,
}

/// Two entries, the lesser id first.
pub type EntryPair = (EntryId, EntryId);

/// The facts of one workspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InsightFacts {
    /// Its entries, sorted by id.
    pub entries: Vec<EntryInsightFacts>,
    /// Pairs of entries about the same subject.
    pub related: BTreeSet<EntryPair>,
    /// Pairs of entries that the operator declared different.
    pub different: BTreeSet<EntryPair>,
    /// Groups of entries that are served together.
    pub clusters: Vec<Vec<EntryId>>,
    /// Paired peers of other people.
    pub peers: Vec<PeerInsightFacts>,
    /// Finished tasks, newest first.
    pub tasks: Vec<TaskInsightFacts>,
}
