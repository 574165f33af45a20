//! Commands about findings, and their results.
//!
//! Separate from `findings`, which carries them out.

use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_store::findings::{FateRow, FindingKey};
use std::collections::BTreeSet;

/// A command about findings.
#[derive(Clone, Debug)]
pub enum FindingCommand {
    /// Records a finding in a task.
    Record(TaskId, NewFinding),
    /// Notes the operator's decision that a finding is a false positive, with the reason.
    Dismiss(FindingKey, String),
    /// Creates an entry from an unresolved finding by the operator's decision.
    Keep {
        /// The finding to keep.
        finding: FindingKey,
        /// The entry that matches the finding, if there is one; then no entry is created.
        same: Option<EntryId>,
    },
    /// Notes that the findings of one task were shown in another.
    Show {
        /// The task whose findings were shown.
        of: TaskId,
        /// The task in which they were shown.
        to: TaskId,
    },
    /// Resolves a finding after it was compared.
    Settle(ComparedFinding),
}

/// The fields of a new finding.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFinding {
    /// The statement of the finding, in one to three sentences.
    pub text: String,
    /// The name of a severity level, or a number from 0 to 10.
    pub severity: String,
    /// The finder's confidence: in [0, 1], or in [0, 10] if the severity is a number.
    pub confidence: f64,
    /// Predicates that locate the finding.
    pub anchors: Vec<String>,
    /// The repositories of those predicates, as elements of `TextSet::ANCHOR_REPOSITORIES`.
    pub repositories: Vec<String>,
    /// Steps to check that the finding still holds.
    pub verify: Vec<String>,
    /// The reason why the finding is a false positive, if the finder says so.
    pub dismissal: Option<String>,
    /// The workspace for an entry that is created from the finding.
    pub workspace: WorkspaceId,
    /// Whether the finding is a one-time issue, which never becomes an entry without the operator.
    pub is_once: bool,
}

/// A finding with its matches, best match first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedFinding {
    /// The compared finding.
    pub finding: FindingKey,
    /// Whether the finding was dismissed at the time of the comparison.
    pub is_dismissed: bool,
    /// The matching entry, with the agents cited in its evidence.
    pub entry: Option<(EntryId, BTreeSet<String>)>,
    /// Other findings with the same statement.
    pub others: Vec<FindingKey>,
}

/// The result of a finding command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingReceipt {
    /// The finding was recorded under this key.
    Recorded(FindingKey),
    /// The command was applied, now or earlier.
    Noted,
    /// The finding was resolved. `None` means that it waits for a match.
    Settled(Option<FateRow>),
    /// There was nothing to resolve.
    Unchanged,
}
