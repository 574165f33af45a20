//! What the engine is asked, and what it answers.

use super::findings::{FindingAct, FindingDone};
use super::looks::Looks;
use super::made::Promotion;
use super::peers::PeerAct;
use super::places::CheckoutAct;
use super::prior::PriorEvidence;
use super::tasks::{TaskAct, TaskDone};
use super::upkeep::{UpkeepAct, UpkeepDone};
use crate::store;
use crate::store::rows::{CallerRow, OverlayRow, Seq, ServedRow};
use klnode_crdt::claims::Citation;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::{Record, Refusal};
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;
use std::sync::Arc;

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Writes a new entry.
    Create(Box<NewEntry>),
    /// Writes an entry that is made of another.
    Promote(Box<Promotion>),
    /// Maps a checkout to a workspace, or no longer.
    Checkout(CheckoutAct),
    /// Claims something about an entry.
    Claim {
        /// Which.
        entry: EntryId,
        /// What.
        claims: Vec<Claim>,
    },
    /// Counts an observation.
    Observe {
        /// Of which entry.
        entry: EntryId,
        /// What was observed.
        of: Observation,
        /// How much.
        amount: Thousandths,
    },
    /// Declares this node's counts on an entry void.
    Reset {
        /// Which.
        entry: EntryId,
    },
    /// Takes back what this node claimed about an entry.
    Retract {
        /// Which.
        entry: EntryId,
    },
    /// Forgets an entry, here and wherever the tombstone arrives.
    Forget {
        /// Which.
        entry: EntryId,
    },
    /// Takes in records from a peer.
    Ingest(Vec<Arrival>),
    /// Merges a record that waited in quarantine.
    Release(Digest),
    /// Throws a quarantined record away.
    Reject(Digest),
    /// Changes the operator's marks on an entry.
    Mark {
        /// Which.
        entry: EntryId,
        /// What changes.
        marks: Marks,
    },
    /// Keeps prior evidence that an import brings for an entry.
    NotePrior {
        /// Of which entry.
        entry: EntryId,
        /// What another system observed.
        prior: PriorEvidence,
    },
    /// Notes what was served.
    Served(ServedRow),
    /// Notes that an entry was confirmed by somebody who may have had it from this node: counted
    /// apart, and no evidence.
    ConfirmPrimed {
        /// Which.
        entry: EntryId,
    },
    /// Notes that the person behind this node confirms an entry; that it is they, the caller of this
    /// has made sure.
    ConfirmAsPerson {
        /// Which.
        entry: EntryId,
    },
    /// Notes what a look into a caller's checkout said.
    Looked(Looks),
    /// Does something about a task.
    Task(Box<TaskAct>),
    /// Does something about what was found in a task.
    Finding(Box<FindingAct>),
    /// Does something about upkeep.
    Upkeep(Box<UpkeepAct>),
    /// Notes what concerns peers, all of it or nothing.
    Peers(Vec<PeerAct>),
    /// Writes the store anew, once the rest of its group is committed: nothing that was erased is
    /// left in it.
    Rewrite,
    /// Does something on behalf of a caller, and notes who it was with the records it writes.
    As {
        /// Who asks.
        caller: CallerRow,
        /// For what.
        command: Box<Command>,
    },
}

impl Command {
    /// Whether losing it in a power cut loses nothing that anyone was promised.
    pub fn is_incidental(&self) -> bool {
        match self.act() {
            Self::Served(_) => true,
            Self::Looked(looks) => !looks.is_counted,
            Self::Upkeep(act) => act.is_incidental(),
            Self::Peers(acts) => acts.iter().all(PeerAct::is_incidental),
            _ => false,
        }
    }

    /// Whether it notes only what somebody has read.
    pub(super) fn is_of_reading(&self) -> bool {
        matches!(self.act(), Self::Served(_) | Self::Looked(_))
    }

    /// What is to be done, whoever asks.
    pub fn act(&self) -> &Self {
        match self {
            Self::As { command, .. } => command.act(),
            act => act,
        }
    }

    /// Whether it may read what is kept of use: what only moves records does not.
    pub(super) fn reads_use(&self) -> bool {
        let moves_records = matches!(
            self.act(),
            Self::Ingest(_)
                | Self::Peers(_)
                | Self::Forget { .. }
                | Self::Retract { .. }
                | Self::Release(_)
                | Self::Reject(_)
                | Self::Rewrite
        );
        !moves_records
    }

    /// Whether findings have to be compared after it, at once or one day.
    pub fn unsettles(&self) -> bool {
        match self.act() {
            Self::Task(act) => matches!(**act, TaskAct::Finish(..)),
            Self::Finding(act) => {
                use FindingAct::{Dismiss, Keep, Record};
                matches!(**act, Record(..) | Dismiss(..) | Keep { .. })
            }
            _ => false,
        }
    }

    /// About how many bytes it brings into the store.
    pub fn payload_bytes(&self) -> usize {
        match self.act() {
            Self::Create(new) => new.title.len() + new.content.len(),
            Self::Promote(of) => of.new.title.len() + of.new.content.len(),
            Self::Task(act) => match &**act {
                TaskAct::Create(_, new) => new.title.len() + new.content.len(),
                _ => 0,
            },
            Self::Claim { claims, .. } => {
                let text = |claim: &Claim| match claim {
                    Claim::Set(_, text) | Claim::Add(_, text) | Claim::Withdraw(_, text) => {
                        text.len()
                    }
                    _ => 0,
                };
                claims.iter().map(text).sum()
            }
            Self::Ingest(arrivals) => {
                let bytes = |arrival: &Arrival| arrival.record.header().payload_bytes as usize;
                arrivals.iter().map(bytes).sum()
            }
            _ => 0,
        }
    }
}

/// What changes of the operator's marks on an entry. What is absent stays as it is when the change
/// comes to its turn: two who mark different things at once undo nothing of each other's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Ranked up here, or no longer.
    pub pinned: Option<bool>,
    /// Not shown here, or shown again.
    pub muted: Option<bool>,
    /// Held to be wrong here, or no longer.
    pub invalidated: Option<bool>,
    /// The operator's note; empty removes it.
    pub note: Option<String>,
}

impl Marks {
    /// The marks with the change.
    pub(super) fn on(&self, row: OverlayRow) -> OverlayRow {
        OverlayRow {
            is_pinned: self.pinned.unwrap_or(row.is_pinned),
            is_muted: self.muted.unwrap_or(row.is_muted),
            is_invalidated: self.invalidated.unwrap_or(row.is_invalidated),
            note: self.note.clone().or(row.note).filter(|note| !note.is_empty()),
            is_cleared: row.is_cleared,
        }
    }
}

/// What a new entry holds.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Where.
    pub workspace: WorkspaceId,
    /// As what.
    pub memory: Memory,
    /// Its type.
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// The knowledge.
    pub content: String,
    /// Other registers.
    pub registers: Vec<(Register, String)>,
    /// Tags, anchors, links and the like.
    pub claims: Vec<Claim>,
    /// Evidence.
    pub citations: Vec<Citation>,
    /// What an imported entry is called where it comes from.
    pub source: Option<SourceKey>,
}

/// The name of an imported entry in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceKey {
    /// The source's format.
    pub format: String,
    /// The key there.
    pub key: String,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Written here.
    Local,
    /// Brought by a peer.
    Peer(AuthorId),
}

/// A verified record from a peer.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The record.
    pub record: Record,
    /// Who brought it.
    pub from: AuthorId,
}

/// What the judge says of a record before it is merged. Judged before merging: a merged record
/// cannot be taken back, a quarantined one can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Merge it.
    Admit,
    /// Keep it apart until the operator decides.
    Quarantine(String),
    /// Do not keep it.
    Refuse(String),
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingested {
    /// Held already, or covered by what is held.
    Known,
    /// Held from now on.
    Merged(Seq),
    /// Waits for the operator.
    Quarantined(String),
    /// Not kept.
    Refused(String),
    /// Cannot be taken yet: the sender keeps it.
    Deferred(String),
    /// Its entry was forgotten.
    Forgotten,
}

/// The answer to a command, given when it is durable, unless it is incidental.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The entry that was written.
    Created(EntryId),
    /// The entry that was to be imported, or made of another: this node has done so before, and what
    /// it said then stands. Nothing was written, but for evidence that a copy lacked.
    Known(EntryId),
    /// Done; what it committed is in the feed up to here.
    Done(Seq),
    /// What became of each record, in order.
    Ingested(Vec<Ingested>),
    /// What was done about a task.
    Task(TaskDone),
    /// An observation was noted and not counted: the same caller said the same today.
    Noted,
    /// What was done about a finding.
    Finding(FindingDone),
    /// What upkeep did.
    Upkeep(UpkeepDone),
}

/// Why a command was not carried out. Nothing of it was written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Rejection {
    /// Something about the input.
    #[error("write the entry: {field} {problem}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What is wrong, and the limit.
        problem: String,
    },
    /// A limit or rule of the record format.
    #[error("write the record: {0}")]
    Refused(#[from] Refusal),
    /// Never heard of.
    #[error("find entry {0}: this node does not hold it")]
    NoSuchEntry(String),
    /// Heard of, and forgotten.
    #[error("write entry {0}: it was forgotten")]
    Forgotten(String),
    /// There is nothing of this node's to take back.
    #[error("retract entry {0}: this node has claimed nothing about it that stands")]
    NothingToRetract(String),
    /// Not in quarantine.
    #[error("find record {0} in quarantine")]
    NotQuarantined(Digest),
    /// No task of this node.
    #[error("find task {0}: this node knows none of that name")]
    NoSuchTask(TaskId),
    /// Nothing happens in a task that is over.
    #[error("use task {task}: it is {state}")]
    TaskEnded {
        /// Which.
        task: TaskId,
        /// Finished or expired.
        state: &'static str,
    },
    /// Something about a task.
    #[error("write the task: {field} {problem}")]
    InvalidTask {
        /// Which field.
        field: &'static str,
        /// What is wrong, and the limit.
        problem: String,
    },
    /// Something about a finding.
    #[error("write the finding: {field} {problem}")]
    InvalidFinding {
        /// Which field.
        field: &'static str,
        /// What is wrong, and the limit.
        problem: String,
    },
    /// No finding of that number.
    #[error("find finding {number} of task {task}: there is none, or it was forgotten")]
    NoSuchFinding {
        /// In which task.
        task: TaskId,
        /// Which.
        number: u32,
    },
    /// What became of a finding does not allow for it.
    #[error("{verb} finding {number} of task {task}: {problem}")]
    UnfitFinding {
        /// What was asked for.
        verb: &'static str,
        /// In which task.
        task: TaskId,
        /// Which.
        number: u32,
        /// Why not.
        problem: String,
    },
    /// No row of that number.
    #[error("find number {0} of upkeep")]
    NoSuchUpkeep(u64),
    /// What a row of upkeep tells does not allow for it.
    #[error("{verb} number {number} of upkeep: {problem}")]
    UnfitUpkeep {
        /// What was asked for.
        verb: &'static str,
        /// Which row.
        number: u64,
        /// Why not.
        problem: String,
    },
    /// Not this node's to forget.
    #[error(
        "forget entry {0}: only the node that wrote it, or its workspace's owner or admins, may"
    )]
    NotEntitled(String),
    /// The judge did not admit it.
    #[error("write the entry: {0}")]
    Judged(String),
    /// The store failed; it may be tried again.
    #[error("{0}")]
    Store(Arc<store::Error>),
    /// The store could not be opened again after a fault.
    #[error("{0}")]
    Reopen(Arc<store::OpenError>),
    /// The node is stopping.
    #[error("write: the node is stopping")]
    Stopping,
}

impl Rejection {
    /// Whether a row of the store is damaged: that concerns what the row tells of, and nothing else.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(error) if matches!(**error, store::Error::Damaged { .. }))
    }
}

impl From<store::Error> for Rejection {
    fn from(error: store::Error) -> Self {
        Self::Store(Arc::new(error))
    }
}
