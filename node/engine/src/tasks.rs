//! Tasks: beginning, working in and finishing them, and the credit that the end of a task gives.
//!
//! Each entry counts once per task, together with its duplicates.

use super::auto_archive::SupportingEvidence;
use super::command::{
    Adoption, Finish, FinishEffects, NewTask, Receipt, Rejection, TaskCommand, TaskReceipt,
    unless_damaged, was_written,
};
use super::record_intake::Transaction;
use klnode_crdt::entry_type::{EntryType, code_digits};
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_scoring::cooccurrence::PairingCause;
use klnode_scoring::credit::{self, Credit, NamedEntries, ServedRank, TaskVerdict};
use klnode_store::row_types::ServedRow;
use klnode_store::tasks::{EndRow, EntryFeedback, PartRow, TaskRow, TaskState, TextRow};
use klnode_store::{Batch, Error};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of tasks in a chain from a task to its root.
pub const CHAIN_TASKS_MAX: usize = 32;
/// Most parts of a task whose conclusions later parts read.
const CONCLUDED_PARTS_MAX: usize = 64;
/// Most bytes of a gap, or of a reason for adopting an entry.
const NOTE_BYTES_MAX: usize = 1024;
/// Most bytes of an agent's name, a goal, a thread or a strategy.
const TEXT_BYTES_MAX: usize = 4 * 1024;

impl Transaction<'_> {
    pub(super) fn about_task(
        &mut self,
        batch: &Batch,
        act: &TaskCommand,
    ) -> Result<Receipt, Rejection> {
        let done = match act {
            TaskCommand::Begin(new) => self.begin(batch, new)?,
            TaskCommand::Finish(task, finish) => self.finish(batch, *task, finish)?,
            TaskCommand::Create(task, new) => return self.create_in(batch, *task, new),
            TaskCommand::Observe { task, entry, of, amount } => {
                self.observe_in(batch, *task, *entry, (*of, *amount))?
            }
            TaskCommand::Confirm { task, entry, is_lowered } => {
                TaskReceipt::Confirmed(self.confirm_in(batch, *task, *entry, *is_lowered)?)
            }
        };
        Ok(Receipt::Task(done))
    }

    fn begin(&mut self, batch: &Batch, new: &NewTask) -> Result<TaskReceipt, Rejection> {
        for (field, text) in [("agent", &new.agent), ("goal", &new.goal)] {
            if text.trim().is_empty() {
                return Err(invalid(field, "is empty"));
            }
            short(field, text)?;
        }
        short("thread", new.thread.as_deref().unwrap_or_default())?;
        let mut workspace = new.workspace;
        if let Some(parent) = new.parent {
            let above = self.open_task(batch, parent)?;
            workspace = workspace.or(above.workspace);
            if chain(batch, parent)?.len() >= CHAIN_TASKS_MAX {
                let problem = format!(
                    "is the last of {CHAIN_TASKS_MAX} tasks in a chain, which is the limit"
                );
                return Err(invalid("parent", problem));
            }
        }
        let mut bytes = [0; TaskId::LEN];
        (self.writer.entropy)(&mut bytes);
        bytes[..6].copy_from_slice(&self.now.as_millis().to_be_bytes()[2..]);
        let task = TaskId::from_bytes(bytes);
        let row = TaskRow {
            agent: new.agent.clone(),
            goal: new.goal.clone(),
            thread: new.thread.clone(),
            parent: new.parent,
            begun: self.now,
            served: 0,
            end: None,
            session: self.session(),
            handed: Vec::new(),
            workspace,
            searches: 0,
            concluded: Vec::new(),
        };
        batch.put_task(task, &row)?;
        Ok(TaskReceipt::Began(task))
    }

    pub(super) fn open_task(&self, batch: &Batch, task: TaskId) -> Result<TaskRow, Rejection> {
        let row = batch.task(task)?.ok_or(Rejection::NoSuchTask(task))?;
        match self.state(&row) {
            TaskState::Open => Ok(row),
            state => Err(Rejection::TaskEnded { task, state: state.name() }),
        }
    }

    pub(super) fn is_open(&self, task: &TaskRow) -> bool {
        self.state(task) == TaskState::Open
    }

    fn state(&self, task: &TaskRow) -> TaskState {
        task.state(self.now, self.writer.tasks.expires_after)
    }

    /// Counts a question that was asked in a task.
    pub(super) fn note_search(&self, batch: &Batch, served: &ServedRow) -> Result<(), Error> {
        let task = served.task.as_deref().and_then(TaskId::from_hex);
        let Some(task) = task.filter(|_| !served.query.is_empty()) else { return Ok(()) };
        let Some(row) = batch.task(task)? else { return Ok(()) };
        let searches = row.searches.saturating_add(1);
        batch.put_task(task, &TaskRow { searches, ..row })
    }

    /// Records the entries served in a task, even if the task has ended meanwhile.
    pub(super) fn note_in_task(&self, batch: &Batch, served: &ServedRow) -> Result<(), Error> {
        let task = served.task.as_deref().and_then(TaskId::from_hex);
        let Some(task) = task else { return Ok(()) };
        let Some(mut row) = batch.task(task)? else { return Ok(()) };
        let hits = served.cost.hits.iter().copied().map(Some).chain(std::iter::repeat(None));
        for ((rank, entry), hit) in (0_u32..).zip(&served.entries).zip(hits) {
            let mut part = batch.task_part(task, *entry)?;
            let shown = self.view(batch, *entry)?.map(|view| self.text_of(&view));
            let text = match hit.filter(|hit| hit.text.is_some()) {
                // The entry was edited after the answer was made.
                Some(hit) if shown.as_ref().is_none_or(|shown| shown.digest != hit.text) => {
                    Some(TextRow { authors: hit.author.into_iter().collect(), digest: hit.text })
                }
                _ => shown,
            };
            part.text = match (part.text, text) {
                (Some(before), Some(text)) => Some(before.and(&text)),
                (before, text) => before.or(text),
            };
            if part.order.is_some() {
                part.rank = part.rank.min(rank);
            } else {
                (part.order, part.rank) = (Some(row.served), rank);
                row.served = row.served.saturating_add(1);
            }
            batch.put_task_part(task, *entry, &part)?;
        }
        batch.put_task(task, &row)
    }

    fn observe_in(
        &mut self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        (of, amount): (Observation, Thousandths),
    ) -> Result<TaskReceipt, Rejection> {
        self.must_hold(batch, entry)?;
        self.open_task(batch, task)?;
        let part = batch.task_part(task, entry)?;
        if is_observed(batch, task, entry)? {
            return Ok(TaskReceipt::CountedBefore);
        }
        self.observe(batch, entry, (of, amount), Some(task))?;
        self.count_use(batch, entry, of, Some(task))?;
        self.note_feedback(batch, entry, of, Some(task))?;
        batch.put_task_part(task, entry, &PartRow { is_observed: true, ..part })?;
        if of == Observation::Success {
            self.note_support_in(batch, root(batch, task)?, entry, SupportingEvidence::Use)?;
        }
        Ok(TaskReceipt::Counted)
    }

    fn finish(
        &mut self,
        batch: &Batch,
        task: TaskId,
        finish: &Finish,
    ) -> Result<TaskReceipt, Rejection> {
        let known = batch.task(task)?.ok_or(Rejection::NoSuchTask(task))?;
        if let Some(end) = known.end {
            return Ok(TaskReceipt::FinishedBefore { is_success: end.is_success });
        }
        let row = self.open_task(batch, task)?;
        check(finish)?;
        check_adoption(&finish.adoption)?;
        self.check_searched(&row, finish)?;
        self.check_avoided(batch, finish)?;
        let aside = self.with_duplicates(batch, finish)?;
        let served = in_order(&batch.task_parts(task)?);
        let params = self.writer.tasks.outcome;
        let Adoption { partial, composite, incidental, .. } = &finish.adoption;
        let used = [finish.used.as_slice(), &finish.avoided, partial, composite].concat();
        let named = NamedEntries { used: &used, incidental };
        let credits = credit::credits(finish.outcome, &served, named, &aside, &params);
        let is_success = finish.outcome.verdict == TaskVerdict::Success;
        let credits = self.credit(batch, task, is_success, credits)?;
        self.apply_task_outcome(batch, task, is_success)?;
        let archived = self.count_served(batch, root(batch, task)?, &served)?;
        let end = EndRow {
            at: self.now,
            is_success,
            quality: finish.outcome.quality,
            cost: finish.cost,
            rounds: finish.rounds,
            strategy: finish.strategy.clone(),
            conclusion: finish.adoption.conclusion.clone(),
        };
        if let Some(parent) = row.parent.filter(|_| end.conclusion.is_some()) {
            note_conclusion(batch, parent, task)?;
        }
        batch.put_task(task, &TaskRow { end: Some(end), ..row })?;
        self.release_findings(batch, task)?;
        let was_served = |entry: &EntryId| served.iter().any(|one| one.entry == *entry);
        let named = finish.said();
        let unserved = named.keys().filter(|entry| !was_served(entry)).copied().collect();
        // A duplicate of a dismissed entry that was served in its place counts as dismissed.
        let aside = aside.into_iter().map(|entry| (entry, EntryFeedback::Dismissed));
        let said: BTreeMap<EntryId, EntryFeedback> =
            named.into_iter().chain(aside).filter(|(entry, _)| was_served(entry)).collect();
        for (entry, said) in &said {
            let note = finish.adoption.notes.get(entry).cloned();
            unless_damaged(self.note_said(batch, task, *entry, (*said, note)))?;
        }
        let of = |which: EntryFeedback| -> Vec<EntryId> {
            said.iter().filter(|(_, said)| **said == which).map(|(entry, _)| *entry).collect()
        };
        Ok(TaskReceipt::Finished(FinishEffects {
            credits,
            unserved,
            dismissed: of(EntryFeedback::Dismissed),
            avoided: of(EntryFeedback::Avoided),
            archived,
        }))
    }

    /// The dismissed entries and their duplicates, none of which helped.
    fn with_duplicates(&self, batch: &Batch, finish: &Finish) -> Result<Vec<EntryId>, Rejection> {
        let mut aside: BTreeSet<EntryId> = BTreeSet::new();
        for entry in &finish.dismissed {
            aside.extend(batch.group(*entry)?);
        }
        let Adoption { partial, composite, incidental, .. } = &finish.adoption;
        for (field, named) in [
            ("used", &finish.used),
            ("avoided", &finish.avoided),
            ("partial", partial),
            ("composite", composite),
            ("incidental", incidental),
        ] {
            if let Some(both) = named.iter().find(|entry| aside.contains(*entry)) {
                let code = code(*both, self.intact_view(batch, *both)?.as_ref());
                let problem =
                    format!("and {field} both name {code}; an entry can only be one of them");
                return Err(invalid("dismissed", problem));
            }
        }
        Ok(aside.into_iter().collect())
    }

    /// Refuses the success of an agent that must consult knowledge and did not.
    fn check_searched(&self, row: &TaskRow, finish: &Finish) -> Result<(), Rejection> {
        let has_asked = row.searches > 0 || row.served > 0;
        let is_success = finish.outcome.verdict == TaskVerdict::Success;
        if has_asked || !is_success || !self.writer.tasks.search_required.contains(&row.agent) {
            return Ok(());
        }
        let problem = "is a success without a search, and tasks.search_required names its agent; \
                       search in the task first, or finish it as a failure";
        Err(invalid("outcome", problem))
    }

    fn check_avoided(&self, batch: &Batch, finish: &Finish) -> Result<(), Rejection> {
        for entry in &finish.avoided {
            // The type of a forgotten entry is unknown, which must not prevent finishing the task.
            let view = self.intact_view(batch, *entry)?;
            let kind = view.as_ref().and_then(|view| view.text(Register::TYPE));
            if kind.is_some_and(|kind| kind != EntryType::Spike.name()) {
                let code = code(*entry, view.as_ref());
                return Err(invalid("avoided", format!("names {code}; only spikes are allowed")));
            }
        }
        Ok(())
    }

    /// The entry as this node sees it; `None` if it is damaged.
    fn intact_view(&self, batch: &Batch, entry: EntryId) -> Result<Option<EntryView>, Error> {
        Ok(Error::unless_damaged(self.view(batch, entry))?.flatten())
    }

    /// Stores the feedback about an entry and counts it.
    fn note_said(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        (said, note): (EntryFeedback, Option<String>),
    ) -> Result<(), Rejection> {
        let part = batch.task_part(task, entry)?;
        batch.put_task_part(task, entry, &PartRow { said: Some(said), note, ..part })?;
        Ok(self.count_feedback(batch, entry, said, task)?)
    }

    /// Gives the credit of an outcome to entries without an observation in this task, and returns
    /// the credit given.
    fn credit(
        &mut self,
        batch: &Batch,
        task: TaskId,
        is_success: bool,
        credits: Vec<Credit>,
    ) -> Result<Vec<Credit>, Rejection> {
        let of = if is_success { Observation::Success } else { Observation::Failure };
        let root = root(batch, task)?;
        let mut counted = Vec::new();
        for credit in credits {
            let credited = self.credit_one(batch, (task, root), of, &credit);
            if unless_damaged(credited)? == Some(true) {
                counted.push(credit);
            }
        }
        if is_success {
            let entries: Vec<EntryId> = counted.iter().map(|credit| credit.entry).collect();
            self.strengthen_pairs(batch, &entries, PairingCause::Success)?;
        }
        Ok(counted)
    }

    /// Gives the credit of an outcome to one entry. Returns whether any was given.
    fn credit_one(
        &mut self,
        batch: &Batch,
        (task, root): (TaskId, TaskId),
        of: Observation,
        credit: &Credit,
    ) -> Result<bool, Rejection> {
        let part = batch.task_part(task, credit.entry)?;
        if is_observed(batch, task, credit.entry)? || credit.amount == Thousandths(0) {
            return Ok(false);
        }
        let observed = self.observe(batch, credit.entry, (of, credit.amount), Some(task));
        if !was_written(observed)? {
            return Ok(false);
        }
        batch.put_task_part(task, credit.entry, &PartRow { is_observed: true, ..part })?;
        self.count_use(batch, credit.entry, of, Some(task))?;
        if of == Observation::Success {
            self.note_support_in(batch, root, credit.entry, SupportingEvidence::Use)?;
        }
        Ok(true)
    }
}

/// Notes that a part of a task ended with a conclusion.
fn note_conclusion(batch: &Batch, parent: TaskId, part: TaskId) -> Result<(), Error> {
    let Some(mut row) = batch.task(parent)? else { return Ok(()) };
    if row.concluded.len() < CONCLUDED_PARTS_MAX {
        row.concluded.push(part);
        batch.put_task(parent, &row)?;
    }
    Ok(())
}

/// A task and its ancestors, the task itself first.
pub(super) fn chain(batch: &Batch, task: TaskId) -> Result<Vec<TaskId>, Error> {
    let (mut chain, mut last) = (vec![task], task);
    while let Some(parent) = batch.task(last)?.and_then(|row| row.parent) {
        if chain.len() >= CHAIN_TASKS_MAX {
            break;
        }
        chain.push(parent);
        last = parent;
    }
    Ok(chain)
}

/// The root task of a chain.
pub(super) fn root(batch: &Batch, task: TaskId) -> Result<TaskId, Error> {
    Ok(chain(batch, task)?.last().copied().unwrap_or(task))
}

/// Whether the entry or a duplicate of it was observed in a task. The counters of duplicates are
/// summed, so a task counts once for all of them.
pub(super) fn is_observed(batch: &Batch, task: TaskId, entry: EntryId) -> Result<bool, Error> {
    for duplicate in batch.group(entry)? {
        if batch.task_part(task, duplicate)?.is_observed {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The citation code of an entry; without a known type only its digits.
fn code(entry: EntryId, view: Option<&EntryView>) -> String {
    let kind = view.and_then(EntryView::kind);
    kind.map_or_else(|| code_digits(entry), |kind| kind.code(entry))
}

/// The entries served in a task, in serving order.
fn in_order(parts: &[(EntryId, PartRow)]) -> Vec<ServedRank> {
    let served = |(entry, part): &(EntryId, PartRow)| {
        Some((part.order?, ServedRank { entry: *entry, rank: part.rank }))
    };
    let mut served: Vec<(u32, ServedRank)> = parts.iter().filter_map(served).collect();
    served.sort_by_key(|(order, _)| *order);
    served.into_iter().map(|(_, served)| served).collect()
}

pub(super) fn invalid(field: &'static str, problem: impl Into<String>) -> Rejection {
    Rejection::InvalidTask { field, problem: problem.into() }
}

fn short(field: &'static str, text: &str) -> Result<(), Rejection> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(invalid(field, format!("has {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())))
}

fn check(finish: &Finish) -> Result<(), Rejection> {
    let quality = finish.outcome.quality;
    if !(0.0..=1.0).contains(&quality) {
        return Err(invalid("quality", format!("is {quality}; it must be from 0 to 1")));
    }
    if let Some(cost) = finish.cost.filter(|cost| !cost.is_finite() || *cost < 0.0) {
        return Err(invalid("cost", format!("is {cost}; it must be 0 or more")));
    }
    short("strategy", finish.strategy.as_deref().unwrap_or_default())
}

fn check_adoption(adoption: &Adoption) -> Result<(), Rejection> {
    let Adoption { partial, composite, notes, conclusion, .. } = adoption;
    if composite.len() == 1 {
        let problem = "names one entry; a composite answer has at least two";
        return Err(invalid("composite", problem));
    }
    if let Some(text) = notes.values().find(|text| text.len() > NOTE_BYTES_MAX) {
        let problem = format!("has {} bytes; {NOTE_BYTES_MAX} are allowed", text.len());
        return Err(invalid("reason", problem));
    }
    let has_gap = |entry: &EntryId| notes.get(entry).is_some_and(|gap| !gap.trim().is_empty());
    if !partial.iter().all(has_gap) {
        return Err(invalid("partial", "names an entry without its gap; say what it left open"));
    }
    match conclusion {
        Some(text) if text.trim().is_empty() => Err(invalid("conclusion", "is empty")),
        Some(text) => short("conclusion", text),
        None => Ok(()),
    }
}
