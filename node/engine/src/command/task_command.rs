//! Commands about tasks, and their results.
//!
//! Separate from `tasks`, which carries them out.

use super::NewEntry;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::tally::Observation;
use klnode_scoring::credit::{Credit, TaskOutcome};
use klnode_store::tasks::EntryFeedback;
use std::collections::BTreeMap;

/// A command about a task.
#[derive(Clone, Debug)]
pub enum TaskCommand {
    /// Begins a task.
    Begin(NewTask),
    /// Finishes a task.
    Finish(TaskId, Finish),
    /// Creates an entry in a task; it counts as verified if the task succeeds.
    Create(TaskId, Box<NewEntry>),
    /// Counts a success or failure observed in a task, once per entry.
    Observe {
        /// The open task.
        task: TaskId,
        /// The observed entry.
        entry: EntryId,
        /// The kind of observation: success or failure.
        of: Observation,
        /// The size of the observation, in thousandths of one observation.
        amount: Thousandths,
    },
    /// Confirms an entry in a task.
    Confirm {
        /// The open task.
        task: TaskId,
        /// The confirmed entry.
        entry: EntryId,
        /// Whether the caller itself declares its confirmation primed.
        is_lowered: bool,
    },
}

/// The fields of a new task.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    /// The name of the agent that works on the task.
    pub agent: String,
    /// The purpose of the task, in free text.
    pub goal: String,
    /// The name of the thread that the task belongs to.
    pub thread: Option<String>,
    /// The task of which this one is a part; `None` for a root task.
    pub parent: Option<TaskId>,
    /// The workspace of the work; `None` means that of the parent, else `main`.
    pub workspace: Option<WorkspaceId>,
}

/// The result with which a task ends.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Success or failure, with a quality from 0 to 1.
    pub outcome: TaskOutcome,
    /// Entries that helped.
    pub used: Vec<EntryId>,
    /// Entries that were dismissed because they contradicted what the agent observed.
    pub dismissed: Vec<EntryId>,
    /// Spikes that made an experiment unnecessary; they count as helpful.
    pub avoided: Vec<EntryId>,
    /// Cost of the task, in a unit that the agent chooses.
    pub cost: Option<f64>,
    /// Number of rounds that the task took, as the agent counts them.
    pub rounds: Option<u32>,
    /// The approach the agent took, in free text.
    pub strategy: Option<String>,
    /// How entries were adopted other than as a whole, and the conclusion for later parts.
    pub adoption: Adoption,
}

/// How entries were adopted other than as a whole, and what was concluded from them.
#[derive(Clone, Debug, Default)]
pub struct Adoption {
    /// Entries that answered a part of the question; the notes name the gaps.
    pub partial: Vec<EntryId>,
    /// Entries that answered together and were never tested together.
    pub composite: Vec<EntryId>,
    /// Entries that answered another question than the one asked; they count less.
    pub incidental: Vec<EntryId>,
    /// Gaps and reasons, by entry.
    pub notes: BTreeMap<EntryId, String>,
    /// The conclusion for later parts of the work.
    pub conclusion: Option<String>,
}

impl Finish {
    /// A result without further details.
    pub fn new(outcome: TaskOutcome, used: Vec<EntryId>) -> Self {
        Self {
            outcome,
            used,
            dismissed: Vec::new(),
            avoided: Vec::new(),
            cost: None,
            rounds: None,
            strategy: None,
            adoption: Adoption::default(),
        }
    }

    /// Feedback per entry; the last list that names an entry decides.
    pub(crate) fn said(&self) -> BTreeMap<EntryId, EntryFeedback> {
        let lists = [
            (&self.used, EntryFeedback::Used),
            (&self.adoption.composite, EntryFeedback::Composite),
            (&self.adoption.incidental, EntryFeedback::Incidental),
            (&self.adoption.partial, EntryFeedback::Partial),
            (&self.avoided, EntryFeedback::Avoided),
            (&self.dismissed, EntryFeedback::Dismissed),
        ];
        let all = lists.into_iter().flat_map(|(list, said)| list.iter().map(move |id| (*id, said)));
        all.collect()
    }
}

/// The result of a task command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskReceipt {
    /// The task has begun.
    Began(TaskId),
    /// The task is finished.
    Finished(FinishEffects),
    /// The task was finished before; nothing changed.
    FinishedBefore {
        /// The stored outcome, which stays regardless of the new one.
        is_success: bool,
    },
    /// The observation was counted.
    Counted,
    /// An observation of this entry was already counted in this task; nothing changed.
    CountedBefore,
    /// The entry was confirmed.
    Confirmed(Confirmation),
}

/// The consequences of finishing a task.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FinishEffects {
    /// The credit given to each entry.
    pub credits: Vec<Credit>,
    /// Entries that were named but not served in the task; they get no credit.
    pub unserved: Vec<EntryId>,
    /// Dismissed entries, which get neither credit nor blame.
    pub dismissed: Vec<EntryId>,
    /// Spikes that made an experiment unnecessary.
    pub avoided: Vec<EntryId>,
    /// Entries archived because they were served in too many tasks without support.
    pub archived: Vec<EntryId>,
}

/// The class of a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// No task of the chain was served the entry: evidence.
    Independent,
    /// Primed: the entry was served in this task of the chain.
    Served(TaskId),
    /// Primed: the entry was written in this task of the chain.
    Written(TaskId),
    /// Primed: the entry was confirmed independently in the same root task before.
    Again,
    /// Primed: the entry was served to the confirming session, or to a session that began a task of
    /// the chain.
    ServedToSession,
    /// Primed: the entry was served to a caller below the same client process.
    ServedToClient,
    /// Primed: the entry was recently served to the same user, and the two callers cannot be told
    /// apart.
    ServedToUser,
    /// Primed: another agent of the same user confirmed it independently on the same day.
    UserAgain,
    /// By the person who owns this node, authenticated by their key: evidence.
    Person,
    /// Primed: the person confirmed the entry earlier on the same day.
    PersonAgain,
    /// Primed: the caller itself declared its confirmation primed.
    Lowered,
}
