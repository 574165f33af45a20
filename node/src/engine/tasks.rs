//! Tasks: begun, worked in and finished, and what the end of one counts.
//!
//! Each entry counts once in a task, together with those that this node holds to be the same.

use super::archive::By;
use super::command::{NewEntry, Receipt, Rejection};
use super::confirm::Confirmation;
use super::ingest::Ingest;
use crate::store::rows::ServedRow;
use crate::store::tasks::{EndRow, PartRow, Said, TaskRow, TaskState, TextRow};
use crate::store::{Batch, Error};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::kind::{Kind, code_digits};
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::view::View;
use klnode_scoring::confidence;
use klnode_scoring::cooccurrence::Meeting;
use klnode_scoring::outcome::{self, Credit, Outcome, Served, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Tasks in a chain, from one to the first that it is a part of.
pub(crate) const CHAIN_TASKS_MAX: usize = 32;
/// Bytes of an agent's name, a goal, a thread or a strategy.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// The numbers of tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskParams {
    /// What an outcome adds.
    pub outcome: outcome::Params,
    /// A task that is not finished by then never is.
    pub expires_after: Duration,
    /// An entry that was served in so many root tasks, with nothing that speaks for it, is archived.
    pub archive_after: u32,
    /// Outside any task so many successes, and so many failures, of one entry count for a caller and
    /// a day.
    pub outside_per_day_max: u32,
    /// An entry served to a user primes that user's callers that are not told apart for this long.
    pub user_primed_for: Duration,
    /// How α is computed, for what a success restores.
    pub confidence: confidence::Params,
}

impl Default for TaskParams {
    fn default() -> Self {
        Self {
            outcome: outcome::Params::default(),
            expires_after: Duration::from_secs(7 * 24 * 3_600),
            archive_after: 10,
            outside_per_day_max: 1,
            user_primed_for: Duration::from_secs(3_600),
            confidence: confidence::Params::default(),
        }
    }
}

/// One thing to do about a task.
#[derive(Clone, Debug)]
pub enum TaskAct {
    /// Begins one.
    Begin(NewTask),
    /// Finishes one.
    Finish(TaskId, Finish),
    /// Writes an entry in one: it is verified if the task succeeds.
    Create(TaskId, Box<NewEntry>),
    /// Counts a success or a failure that was seen in one, once for each entry.
    Observe {
        /// In which.
        task: TaskId,
        /// Of which entry.
        entry: EntryId,
        /// What was observed.
        of: Observation,
        /// How much.
        amount: Thousandths,
    },
    /// Confirms an entry in one.
    Confirm {
        /// In which.
        task: TaskId,
        /// Which entry.
        entry: EntryId,
        /// The caller says itself that it is primed.
        is_lowered: bool,
    },
}

/// What a new task holds.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Who works on it.
    pub agent: String,
    /// What for.
    pub goal: String,
    /// In which thread.
    pub thread: Option<String>,
    /// The task it is a part of.
    pub parent: Option<TaskId>,
}

/// How a task ends.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Whether it worked, and how well.
    pub outcome: Outcome,
    /// The entries that were of use.
    pub used: Vec<EntryId>,
    /// Those that were set aside, because they contradicted what was seen.
    pub dismissed: Vec<EntryId>,
    /// Spikes that made an experiment needless: they were of use.
    pub avoided: Vec<EntryId>,
    /// What it cost, in whatever the agent counts.
    pub cost: Option<f64>,
    /// How many rounds it took.
    pub rounds: Option<u32>,
    /// How it was gone about.
    pub strategy: Option<String>,
}

impl Finish {
    /// An end of which no more is said.
    pub fn new(outcome: Outcome, used: Vec<EntryId>) -> Self {
        Self {
            outcome,
            used,
            dismissed: Vec::new(),
            avoided: Vec::new(),
            cost: None,
            rounds: None,
            strategy: None,
        }
    }

    /// What is said of each entry. Of a spike that was used and avoided, that it was avoided.
    fn said(&self) -> BTreeMap<EntryId, Said> {
        let lists = [
            (&self.used, Said::Used),
            (&self.avoided, Said::Avoided),
            (&self.dismissed, Said::Dismissed),
        ];
        let all = lists.into_iter().flat_map(|(list, said)| list.iter().map(move |id| (*id, said)));
        all.collect()
    }
}

/// What was done about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskDone {
    /// It has begun.
    Began(TaskId),
    /// It is finished.
    Finished(Finished),
    /// It was finished before: nothing was added.
    FinishedBefore {
        /// Whether as a success: that stands, whatever was said now.
        is_success: bool,
    },
    /// The observation is counted.
    Counted,
    /// One of this entry was counted in this task before: nothing was added.
    CountedBefore,
    /// The entry was confirmed.
    Confirmed(Confirmation),
}

/// What the end of a task led to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Finished {
    /// What was added to which entry.
    pub credits: Vec<Credit>,
    /// What was named and not served in the task: it earns nothing.
    pub unserved: Vec<EntryId>,
    /// What was dismissed: neither credited nor blamed.
    pub dismissed: Vec<EntryId>,
    /// The spikes that made an experiment needless.
    pub avoided: Vec<EntryId>,
    /// What was served in too many tasks for nothing, and is put away.
    pub archived: Vec<EntryId>,
}

impl Ingest<'_> {
    pub(super) fn about_task(
        &mut self,
        batch: &Batch,
        act: &TaskAct,
    ) -> Result<Receipt, Rejection> {
        let done = match act {
            TaskAct::Begin(new) => self.begin(batch, new)?,
            TaskAct::Finish(task, finish) => self.finish(batch, *task, finish)?,
            TaskAct::Create(task, new) => return self.create_in(batch, *task, new),
            TaskAct::Observe { task, entry, of, amount } => {
                self.observe_in(batch, *task, *entry, (*of, *amount))?
            }
            TaskAct::Confirm { task, entry, is_lowered } => {
                TaskDone::Confirmed(self.confirm_in(batch, *task, *entry, *is_lowered)?)
            }
        };
        Ok(Receipt::Task(done))
    }

    fn begin(&mut self, batch: &Batch, new: &NewTask) -> Result<TaskDone, Rejection> {
        for (field, text) in [("agent", &new.agent), ("goal", &new.goal)] {
            if text.trim().is_empty() {
                return Err(invalid(field, "is empty"));
            }
            short(field, text)?;
        }
        short("thread", new.thread.as_deref().unwrap_or_default())?;
        if let Some(parent) = new.parent {
            self.open_task(batch, parent)?;
            if chain(batch, parent)?.len() >= CHAIN_TASKS_MAX {
                let problem = format!("is the last of {CHAIN_TASKS_MAX} in a chain; no more fit");
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
        };
        batch.put_task(task, &row)?;
        Ok(TaskDone::Began(task))
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

    /// Notes what was served in a task. It is a fact whatever has become of the task meanwhile.
    pub(super) fn note_in_task(&self, batch: &Batch, served: &ServedRow) -> Result<(), Error> {
        let task = served.task.as_deref().and_then(TaskId::from_hex);
        let Some(task) = task else { return Ok(()) };
        let Some(mut row) = batch.task(task)? else { return Ok(()) };
        let hits = served.cost.hits.iter().copied().map(Some).chain(std::iter::repeat(None));
        for ((rank, entry), hit) in (0_u32..).zip(&served.entries).zip(hits) {
            let mut part = batch.task_part(task, *entry)?;
            let shown = self.view(batch, *entry)?.map(|view| self.text_of(&view));
            let text = match hit.filter(|hit| hit.text.is_some()) {
                // It was edited between the answer and now.
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
    ) -> Result<TaskDone, Rejection> {
        self.must_hold(batch, entry)?;
        self.open_task(batch, task)?;
        let part = batch.task_part(task, entry)?;
        if is_observed(batch, task, entry)? {
            return Ok(TaskDone::CountedBefore);
        }
        self.observe(batch, entry, (of, amount), Some(task))?;
        self.count_use(batch, entry, of, Some(task))?;
        self.note_feedback(batch, entry, of, Some(task))?;
        batch.put_task_part(task, entry, &PartRow { is_observed: true, ..part })?;
        if of == Observation::Success {
            self.speak_for_in(batch, root(batch, task)?, entry, By::Use)?;
        }
        Ok(TaskDone::Counted)
    }

    fn finish(
        &mut self,
        batch: &Batch,
        task: TaskId,
        finish: &Finish,
    ) -> Result<TaskDone, Rejection> {
        let known = batch.task(task)?.ok_or(Rejection::NoSuchTask(task))?;
        if let Some(end) = known.end {
            return Ok(TaskDone::FinishedBefore { is_success: end.is_success });
        }
        let row = self.open_task(batch, task)?;
        check(finish)?;
        self.check_avoided(batch, finish)?;
        let aside = self.set_aside(batch, finish)?;
        let served = in_order(&batch.task_parts(task)?);
        let params = self.writer.tasks.outcome;
        let used = [finish.used.as_slice(), &finish.avoided].concat();
        let credits = outcome::credits(finish.outcome, &served, &used, &aside, &params);
        let is_success = finish.outcome.verdict == Verdict::Success;
        let credits = self.credit(batch, task, is_success, credits)?;
        self.judge_made(batch, task, is_success)?;
        let archived = self.count_served(batch, root(batch, task)?, &served)?;
        let end = EndRow {
            at: self.now,
            is_success,
            quality: finish.outcome.quality,
            cost: finish.cost,
            rounds: finish.rounds,
            strategy: finish.strategy.clone(),
        };
        batch.put_task(task, &TaskRow { end: Some(end), ..row })?;
        self.release_findings(batch, task)?;
        let was_served = |entry: &EntryId| served.iter().any(|one| one.entry == *entry);
        let named = finish.said();
        let unserved = named.keys().filter(|entry| !was_served(entry)).copied().collect();
        // What was served in the place of what was dismissed is dismissed.
        let aside = aside.into_iter().map(|entry| (entry, Said::Dismissed));
        let said: BTreeMap<EntryId, Said> =
            named.into_iter().chain(aside).filter(|(entry, _)| was_served(entry)).collect();
        for (entry, said) in &said {
            unless_damaged(self.note_said(batch, task, *entry, *said))?;
        }
        let of = |which: Said| -> Vec<EntryId> {
            said.iter().filter(|(_, said)| **said == which).map(|(entry, _)| *entry).collect()
        };
        Ok(TaskDone::Finished(Finished {
            credits,
            unserved,
            dismissed: of(Said::Dismissed),
            avoided: of(Said::Avoided),
            archived,
        }))
    }

    /// What was dismissed, and all that this node holds to be the same: none of it was of use.
    fn set_aside(&self, batch: &Batch, finish: &Finish) -> Result<Vec<EntryId>, Rejection> {
        let mut aside: BTreeSet<EntryId> = BTreeSet::new();
        for entry in &finish.dismissed {
            aside.extend(batch.group(*entry)?);
        }
        for (field, named) in [("used", &finish.used), ("avoided", &finish.avoided)] {
            if let Some(both) = named.iter().find(|entry| aside.contains(*entry)) {
                let code = code(*both, self.sound_view(batch, *both)?.as_ref());
                let problem = format!("and {field} both name {code}; it was one or the other");
                return Err(invalid("dismissed", problem));
            }
        }
        Ok(aside.into_iter().collect())
    }

    fn check_avoided(&self, batch: &Batch, finish: &Finish) -> Result<(), Rejection> {
        for entry in &finish.avoided {
            // Nobody knows any more what a forgotten entry was: that stops no end of a task.
            let view = self.sound_view(batch, *entry)?;
            let kind = view.as_ref().and_then(|view| view.text(Register::TYPE));
            if kind.is_some_and(|kind| kind != Kind::Spike.name()) {
                let code = code(*entry, view.as_ref());
                return Err(invalid("avoided", format!("names {code}; it must name spikes alone")));
            }
        }
        Ok(())
    }

    /// An entry as it is shown, unless it is damaged.
    fn sound_view(&self, batch: &Batch, entry: EntryId) -> Result<Option<View>, Error> {
        Ok(Error::unless_damaged(self.view(batch, entry))?.flatten())
    }

    /// Remembers what was said of an entry, and counts it.
    fn note_said(
        &self,
        batch: &Batch,
        task: TaskId,
        entry: EntryId,
        said: Said,
    ) -> Result<(), Rejection> {
        let part = batch.task_part(task, entry)?;
        batch.put_task_part(task, entry, &PartRow { said: Some(said), ..part })?;
        Ok(self.count_said(batch, entry, said, task)?)
    }

    /// Adds what an outcome adds, where nothing was observed in the task before; returns what was
    /// added.
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
            self.meet_all(batch, &entries, Meeting::Success)?;
        }
        Ok(counted)
    }

    /// Adds what an outcome adds to one entry; whether anything was added.
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
        if !taken(observed)? {
            return Ok(false);
        }
        batch.put_task_part(task, credit.entry, &PartRow { is_observed: true, ..part })?;
        self.count_use(batch, credit.entry, of, Some(task))?;
        if of == Observation::Success {
            self.speak_for_in(batch, root, credit.entry, By::Use)?;
        }
        Ok(true)
    }
}

/// A task and those it is a part of, itself first.
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

/// The task at the top of a chain.
pub(super) fn root(batch: &Batch, task: TaskId) -> Result<TaskId, Error> {
    Ok(chain(batch, task)?.last().copied().unwrap_or(task))
}

/// Whether an entry, or one that this node holds to be the same, was observed in a task: cells of
/// a group are summed, so a task counts once for all of it.
pub(super) fn is_observed(batch: &Batch, task: TaskId, entry: EntryId) -> Result<bool, Error> {
    for equal in batch.group(entry)? {
        if batch.task_part(task, equal)?.is_observed {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What people call an entry; without a known type, its digits alone.
fn code(entry: EntryId, view: Option<&View>) -> String {
    let kind = view.and_then(View::kind);
    kind.map_or_else(|| code_digits(entry), |kind| kind.code(entry))
}

/// What was served in a task, in the order of serving.
fn in_order(parts: &[(EntryId, PartRow)]) -> Vec<Served> {
    let served = |(entry, part): &(EntryId, PartRow)| {
        Some((part.order?, Served { entry: *entry, rank: part.rank }))
    };
    let mut served: Vec<(u32, Served)> = parts.iter().filter_map(served).collect();
    served.sort_by_key(|(order, _)| *order);
    served.into_iter().map(|(_, served)| served).collect()
}

/// What was done about one entry of several, unless a row of it is damaged: that costs the entry, and
/// stops no other.
pub(super) fn unless_damaged<T>(done: Result<T, Rejection>) -> Result<Option<T>, Rejection> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(rejection) if rejection.is_damage() => Ok(None),
        Err(rejection) => Err(rejection),
    }
}

/// Whether a write went through. What one entry cannot take stops no other; a fault of the store
/// stops all.
pub(super) fn taken(written: Result<Receipt, Rejection>) -> Result<bool, Rejection> {
    match unless_damaged(written) {
        Ok(written) => Ok(written.is_some()),
        Err(fault @ Rejection::Store(_)) => Err(fault),
        Err(_) => Ok(false),
    }
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
