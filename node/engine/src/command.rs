//! Commands to the engine, and its answers.

mod document_command;
mod finding_command;
mod insight_command;
mod maintenance_command;
mod member_removal_command;
mod peer_command;
mod prior_evidence;
mod rejection;
mod task_command;

pub use document_command::DocumentCommand;
pub use finding_command::{ComparedFinding, FindingCommand, FindingReceipt, NewFinding};
pub use insight_command::InsightCommand;
pub use maintenance_command::{MaintenanceCommand, MaintenanceNote, MaintenanceReceipt};
pub use member_removal_command::RemovalCommand;
pub use peer_command::PeerCommand;
pub use prior_evidence::PriorEvidence;
pub use rejection::Rejection;
pub(super) use rejection::{unless_damaged, was_written};
pub use task_command::{
    Adoption, Confirmation, Finish, FinishEffects, NewTask, TaskCommand, TaskReceipt,
};

use klnode_crdt::claims::Citation;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::WallTime;
use klnode_store::checkouts::CheckoutRow;
use klnode_store::imports::ImportRow;
use klnode_store::row_types::{CallerRow, MarksRow, Seq, ServedRow};

/// A command to the engine.
#[derive(Clone, Debug)]
pub enum Command {
    /// Creates an entry with the claims of this node.
    Create(Box<NewEntry>),
    /// Writes an entry derived from another one.
    Promote(Box<Promotion>),
    /// Maps a checkout to a workspace, or removes the mapping.
    Checkout(CheckoutCommand),
    /// Adds claims about an entry.
    Claim {
        /// The entry that the claims are about.
        entry: EntryId,
        /// The claims, which are signed together as one record.
        claims: Vec<ClaimEdit>,
    },
    /// Adds an observation to this node's counter on an entry.
    Observe {
        /// The observed entry.
        entry: EntryId,
        /// The kind of observation: success, failure or confirmation.
        of: Observation,
        /// The size of the observation, in thousandths of one observation.
        amount: Thousandths,
    },
    /// Declares this node's observations of an entry void.
    Reset {
        /// The entry whose counters restart at zero.
        entry: EntryId,
    },
    /// Retracts all claims of this node about an entry.
    Retract {
        /// The entry whose claims are retracted.
        entry: EntryId,
    },
    /// Forgets an entry: erases it here and on every node that the tombstone reaches.
    Forget {
        /// The entry to erase.
        entry: EntryId,
    },
    /// Merges records delivered by a peer.
    Ingest(Vec<DeliveredRecord>),
    /// Merges a quarantined record, by the operator's decision.
    Release(Digest),
    /// Deletes a quarantined record, by the operator's decision.
    Reject(Digest),
    /// Changes the operator's marks on an entry.
    Mark {
        /// The marked entry.
        entry: EntryId,
        /// The marks to change.
        marks: MarkChange,
    },
    /// Notes that the operator released flagged passages of an entry for peers and agents.
    ReleasePassages {
        /// The entry that contains the passages.
        entry: EntryId,
        /// The numbers of the passages, as the disclosure rules compute them.
        numbers: Vec<u64>,
    },
    /// Stores prior evidence that an import carries for an entry.
    NotePrior {
        /// The imported entry.
        entry: EntryId,
        /// Observations made in the other system.
        prior: PriorEvidence,
    },
    /// Stores the words of the file that an entry was imported from, in place of earlier ones.
    NoteSource {
        /// The imported entry.
        entry: EntryId,
        /// The words, and the id that the file gave the entry.
        row: Box<ImportRow>,
        /// The newest date that the file states for the entry; `None` keeps the earlier one.
        dated: Option<WallTime>,
    },
    /// Adds a row to the log of entries served to callers.
    Served(ServedRow),
    /// Records a confirmation by a caller that may have received the entry from this node. Such
    /// confirmations have their own counter and are no evidence.
    ConfirmPrimed {
        /// The confirmed entry.
        entry: EntryId,
    },
    /// Records a confirmation by the person who owns this node. The sender of this command has
    /// verified the person's identity.
    ConfirmAsPerson {
        /// The confirmed entry.
        entry: EntryId,
    },
    /// Applies the results of checking anchors in a caller's checkout.
    Looked(AnchorResults),
    /// Begins, changes or finishes a task.
    Task(Box<TaskCommand>),
    /// Records or resolves a finding of a task.
    Finding(Box<FindingCommand>),
    /// Writes to the maintenance journal, or acts on one of its rows.
    Maintenance(Box<MaintenanceCommand>),
    /// Dismisses an insight, or takes the dismissal back.
    Insight(InsightCommand),
    /// Removes a key from a workspace, or takes the removal back.
    Removal(RemovalCommand),
    /// Writes a document, or changes its text.
    Document(DocumentCommand),
    /// Applies changes about peers, all of them or none.
    Peers(Vec<PeerCommand>),
    /// Copies the store into a new file after the rest of the group is committed, so that no erased
    /// bytes remain on disk.
    Rewrite,
    /// Runs a command for a caller, and stores the caller's label with the records it writes.
    As {
        /// The label of the caller.
        caller: CallerRow,
        /// The command to run for the caller.
        command: Box<Command>,
    },
}

impl Command {
    /// Whether a power cut may lose the command without breaking a promise to any caller.
    pub fn is_incidental(&self) -> bool {
        match self.act() {
            Self::Served(_) => true,
            Self::Looked(looks) => !looks.is_counted,
            Self::Maintenance(act) => act.is_incidental(),
            Self::Peers(acts) => acts.iter().all(PeerCommand::is_incidental),
            _ => false,
        }
    }

    /// Whether the command only logs a read.
    pub(super) fn only_logs_reads(&self) -> bool {
        matches!(self.act(), Self::Served(_) | Self::Looked(_))
    }

    /// The command itself, without any `As` wrapper.
    pub fn act(&self) -> &Self {
        match self {
            Self::As { command, .. } => command.act(),
            act => act,
        }
    }

    /// Whether the command may read usage data. Commands that only move records do not.
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

    /// Whether the command leaves findings to compare, now or later.
    pub fn leaves_comparisons(&self) -> bool {
        match self.act() {
            Self::Task(act) => matches!(**act, TaskCommand::Finish(..)),
            Self::Finding(act) => {
                use FindingCommand::{Dismiss, Keep, Record};
                matches!(**act, Record(..) | Dismiss(..) | Keep { .. })
            }
            _ => false,
        }
    }

    /// Approximate number of bytes the command adds to the store.
    pub fn payload_bytes(&self) -> usize {
        match self.act() {
            Self::Create(new) => new.title.len() + new.content.len(),
            Self::Promote(of) => of.new.title.len() + of.new.content.len(),
            Self::Task(act) => match &**act {
                TaskCommand::Create(_, new) => new.title.len() + new.content.len(),
                _ => 0,
            },
            Self::Document(
                DocumentCommand::Create { text, .. } | DocumentCommand::Edit { text, .. },
            ) => text.len(),
            Self::Claim { claims, .. } => {
                let text = |claim: &ClaimEdit| match claim {
                    ClaimEdit::Set(_, text)
                    | ClaimEdit::Add(_, text)
                    | ClaimEdit::Withdraw(_, text) => text.len(),
                    _ => 0,
                };
                claims.iter().map(text).sum()
            }
            Self::Ingest(arrivals) => {
                let bytes =
                    |arrival: &DeliveredRecord| arrival.record.header().payload_bytes as usize;
                arrivals.iter().map(bytes).sum()
            }
            _ => 0,
        }
    }
}

/// A change of the operator's marks on an entry. `None` keeps the value the mark has when the
/// command is applied, so two concurrent changes of different marks do not undo each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkChange {
    /// Whether the entry ranks higher on this node.
    pub pinned: Option<bool>,
    /// Whether the entry is hidden on this node.
    pub muted: Option<bool>,
    /// Whether the entry counts as wrong on this node.
    pub invalidated: Option<bool>,
    /// The operator's note; an empty text removes the note.
    pub note: Option<String>,
}

impl MarkChange {
    /// Returns `row` with this change applied.
    pub(super) fn on(&self, row: MarksRow) -> MarksRow {
        MarksRow {
            is_pinned: self.pinned.unwrap_or(row.is_pinned),
            is_muted: self.muted.unwrap_or(row.is_muted),
            is_invalidated: self.invalidated.unwrap_or(row.is_invalidated),
            note: self.note.clone().or(row.note).filter(|note| !note.is_empty()),
            is_cleared: row.is_cleared,
            released: row.released,
        }
    }
}

/// The fields of a new entry.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The workspace that the entry belongs to for good.
    pub workspace: WorkspaceId,
    /// The kind of memory, fixed at creation.
    pub memory: Memory,
    /// The entry type.
    pub kind: EntryType,
    /// The title, on a single line.
    pub title: String,
    /// The text in which the knowledge is written down.
    pub content: String,
    /// Values of further registers.
    pub registers: Vec<(Register, String)>,
    /// Tags, anchors, links and other set elements.
    pub claims: Vec<ClaimEdit>,
    /// Citations of evidence for the entry.
    pub citations: Vec<Citation>,
    /// Identifies an imported entry in the system it comes from; `None` for an entry written here.
    pub source: Option<SourceKey>,
}

/// Identifies an imported entry in its source, so that a second import finds the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceKey {
    /// The format of the source file, for example `jsonl`.
    pub format: String,
    /// The key of the entry within its source.
    pub key: String,
}

/// An entry derived from another one.
#[derive(Clone, Debug)]
pub struct Promotion {
    /// The entry to create.
    pub new: NewEntry,
    /// The entry from which the new one is derived.
    pub source: EntryId,
    /// The person's key that approved the promotion, if any.
    pub approved_by: Option<AuthorId>,
    /// The reason that the approver gave.
    pub reason: Option<String>,
}

/// Results of one check of a caller's checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnchorResults {
    /// Entries whose anchors and predicates all hold.
    pub held: Vec<EntryId>,
    /// Entries with at least one broken anchor or predicate.
    pub broken: Vec<EntryId>,
    /// Whether the configuration lets these results count as observations of this node.
    pub is_counted: bool,
}

/// A change of the checkout mappings.
#[derive(Clone, Debug)]
pub enum CheckoutCommand {
    /// Maps a checkout, given as the hash of its identity, to a workspace.
    Map([u8; 16], CheckoutRow),
    /// Removes the mapping.
    Unmap([u8; 16]),
}

/// The node that a record came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSource {
    /// This node wrote the record.
    Local,
    /// This peer delivered the record, whether or not it is the author.
    Peer(AuthorId),
}

/// A verified record delivered by a peer.
#[derive(Clone, Debug)]
pub struct DeliveredRecord {
    /// The record, with a verified signature.
    pub record: Record,
    /// The delivering peer, which need not be the author.
    pub from: AuthorId,
}

/// The judge's decision about a record. It is made before merging, because a merged record cannot
/// be removed again while a quarantined one can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenDecision {
    /// Merge the record.
    Admit,
    /// Hold the record in quarantine until the operator decides; carries the reason.
    Quarantine(String),
    /// Do not store the record; carries the reason.
    Refuse(String),
}

/// Outcome of ingesting one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngestOutcome {
    /// The record, or one that supersedes it, is stored already.
    Known,
    /// The record is stored from now on, at this feed position.
    Merged(Seq),
    /// The record is in quarantine until the operator decides; carries the reason.
    Quarantined(String),
    /// The record is not stored; carries the reason.
    Refused(String),
    /// The record cannot be merged yet and the sender keeps it; carries the reason.
    Deferred(String),
    /// The record's entry has been forgotten.
    Forgotten,
}

/// The answer to a command. It is sent once the command is durable, except for incidental commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The new entry.
    Created(EntryId),
    /// The entry to import or derive exists already because this node imported or derived it
    /// before; its earlier text stays. The engine wrote nothing, except for evidence that the
    /// stored copy lacked.
    Known(EntryId),
    /// The command is applied; the feed contains its records up to this position.
    Done(Seq),
    /// The outcome for each record, in order.
    Ingested(Vec<IngestOutcome>),
    /// The result of a task command.
    Task(TaskReceipt),
    /// The observation was logged but not counted, because the same caller made the same
    /// observation today.
    Noted,
    /// The result of a finding command.
    Finding(FindingReceipt),
    /// The result of a maintenance command.
    Maintenance(MaintenanceReceipt),
}
