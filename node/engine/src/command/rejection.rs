//! The reasons why a command is rejected.
//!
//! Separate from the commands: every part of the engine may reject one, and a rejection names no
//! command.

use super::Receipt;
use klnode_crdt::ids::{Digest, TaskId, WorkspaceId};
use klnode_crdt::record::RecordError;
use std::sync::Arc;

/// Why a command was rejected. Nothing of it was written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Rejection {
    /// An input field is invalid.
    #[error("The entry was not written: {field} {problem}.")]
    Invalid {
        /// The name of the field as callers write it.
        field: &'static str,
        /// The fault of the field, and the limit if there is one. The text follows the field's name
        /// in the message.
        problem: String,
    },
    /// The record breaks a limit or rule of the record format.
    #[error("The record was not written: {0}.")]
    Refused(#[from] RecordError),
    /// This node has no record of the entry.
    #[error("Entry {0} not found on this node.")]
    NoSuchEntry(String),
    /// The entry has a tombstone.
    #[error("Entry {0} was not changed: it was forgotten.")]
    Forgotten(String),
    /// This node has no standing claims on the entry.
    #[error("Entry {0} was not retracted: this node has no claims about it that still stand.")]
    NothingToRetract(String),
    /// No quarantined record has this digest.
    #[error("Record {0} not found in quarantine.")]
    NotQuarantined(Digest),
    /// This node has no task with this id.
    #[error("Task {0} not found on this node.")]
    NoSuchTask(TaskId),
    /// The task no longer accepts changes.
    #[error("Task {task} was not changed: it is {state}.")]
    TaskEnded {
        /// The task that has ended.
        task: TaskId,
        /// `finished` or `expired`.
        state: &'static str,
    },
    /// An input field of a task is invalid.
    #[error("The task was not written: {field} {problem}.")]
    InvalidTask {
        /// The name of the field as callers write it.
        field: &'static str,
        /// The fault of the field, and the limit if there is one. The text follows the field's name
        /// in the message.
        problem: String,
    },
    /// An input field of a finding is invalid.
    #[error("The finding was not written: {field} {problem}.")]
    InvalidFinding {
        /// The name of the field as callers write it.
        field: &'static str,
        /// The fault of the field, and the limit if there is one. The text follows the field's name
        /// in the message.
        problem: String,
    },
    /// The task has no finding with this number.
    #[error("Finding {number} of task {task} not found; it may have been forgotten.")]
    NoSuchFinding {
        /// The task that was searched.
        task: TaskId,
        /// The number of the finding within the task.
        number: u32,
    },
    /// The state of the finding does not allow the command.
    #[error("Cannot {verb} finding {number} of task {task}: {problem}.")]
    UnfitFinding {
        /// The requested action, as an infinitive.
        verb: &'static str,
        /// The task that contains the finding.
        task: TaskId,
        /// The number of the finding within the task.
        number: u32,
        /// The reason, as a clause.
        problem: String,
    },
    /// The maintenance journal has no row with this number.
    #[error("Row {0} not found in the maintenance journal.")]
    NoSuchMaintenanceRow(u64),
    /// The state of the journal row does not allow the command.
    #[error("Cannot {verb} row {number} of the maintenance journal: {problem}.")]
    UnfitMaintenanceRow {
        /// The requested action, as an infinitive.
        verb: &'static str,
        /// The row's number in the journal.
        number: u64,
        /// The reason, as a clause.
        problem: String,
    },
    /// This node's key may not forget the entry.
    #[error(
        "Entry {0} was not forgotten: only the node that wrote it, or the owner or an admin of its \
         workspace, may forget it."
    )]
    NotEntitled(String),
    /// The entry has no document.
    #[error(
        "Entry {0} was not changed: it is no playbook with a shared text. `klnode edit` changes a plain \
         entry."
    )]
    NoDocument(String),
    /// The text of the entry is a document.
    #[error("The content of {0} was not changed: it is a playbook.")]
    IsDocument(String),
    /// The document was not changed.
    #[error("The playbook was not changed. {0}")]
    NotEdited(String),
    /// This node was removed from the workspace of the entry.
    #[error("The entry was not written: this node was removed from its workspace.")]
    RemovedHere(WorkspaceId),
    /// This node is no member of the workspace of the playbook.
    #[error(
        "The playbook was not written: this node is no member of its workspace, so no other node would \
         show the text."
    )]
    NotMember(WorkspaceId),
    /// This node's key may not remove the member.
    #[error(
        "The member was not removed: only the owner may remove an admin, and only the owner or an \
         admin a member."
    )]
    MayNotRemove,
    /// This node states no removal of the key.
    #[error("Nothing was taken back: this node did not remove that member.")]
    NoRemoval,
    /// The removed key has more records than a cut can name.
    #[error("The member was not removed: it has {found} records in the workspace; {max} fit.")]
    CutTooLong {
        /// Number of records of the key that this node holds.
        found: usize,
        /// Maximum number of digests in a cut.
        max: usize,
    },
    /// The judge did not admit the record; carries its reason.
    #[error("The entry was not written: {0}")]
    Judged(String),
    /// The store failed. The command may be retried.
    #[error("{0}")]
    Store(Arc<klnode_store::Error>),
    /// The store could not be reopened after a fault.
    #[error("{0}")]
    Reopen(Arc<klnode_store::OpenError>),
    /// The node is stopping.
    #[error("Nothing was written: the node is stopping.")]
    Stopping,
}

impl Rejection {
    /// Whether a damaged row of the store is the cause. Damage affects only the data in that row.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Store(error) if matches!(**error, klnode_store::Error::Damaged { .. }))
    }
}

impl From<klnode_store::Error> for Rejection {
    fn from(error: klnode_store::Error) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// The result for one entry of several, or `None` if a row of it is damaged, so that damage to one
/// entry does not stop the others.
pub(crate) fn unless_damaged<T>(done: Result<T, Rejection>) -> Result<Option<T>, Rejection> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(rejection) if rejection.is_damage() => Ok(None),
        Err(rejection) => Err(rejection),
    }
}

/// Whether a write succeeded. A rejection concerns one entry and is no error; a store fault is.
pub(crate) fn was_written(written: Result<Receipt, Rejection>) -> Result<bool, Rejection> {
    match unless_damaged(written) {
        Ok(written) => Ok(written.is_some()),
        Err(fault @ Rejection::Store(_)) => Err(fault),
        Err(_) => Ok(false),
    }
}
