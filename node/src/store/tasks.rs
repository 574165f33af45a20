//! Tasks: pieces of work between their beginning and their end, and what each entry was in them.
//!
//! Local: nothing here is ever sent. A task's id begins with the moment it began, so the table is in
//! the order of beginning and the oldest can go. What was served where is asked by task and entry;
//! whoever asks about a chain of tasks asks about each of its links.

use super::batch::Batch;
use super::error::Error;
use super::label::Label;
use super::read::{self, Damage};
use super::rows;
use super::snapshot::Snapshot;
use super::tables::{PARTS, TASKS, TASKS_MAX, key, part, span};
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId};
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    /// Who works on it.
    #[serde(rename = "a")]
    pub agent: String,
    /// What for.
    #[serde(rename = "g")]
    pub goal: String,
    /// In which thread.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The task it is a part of.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Since when.
    #[serde(rename = "b")]
    pub begun: WallTime,
    /// How many entries were served in it.
    #[serde(rename = "n", default)]
    pub served: u32,
    /// How it was finished, if it was.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndRow>,
    /// The session in which it was begun: what was served there primes it.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Label>,
    /// Other tasks whose findings were shown in it.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<TaskId>,
}

/// How a task was finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndRow {
    /// When.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// Whether it worked.
    #[serde(rename = "s")]
    pub is_success: bool,
    /// How good the work was, in [0, 1].
    #[serde(rename = "q")]
    pub quality: f64,
    /// What it cost, in whatever the agent counts.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How many rounds it took.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// How it was gone about.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
}

/// What an entry was in a task.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartRow {
    /// It was served, as the entry of this number; none if it was not.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// The best place it had in an answer, 0 for the first.
    #[serde(rename = "r", default)]
    pub rank: u32,
    /// A success or a failure of it was counted in the task: there is no second.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_observed: bool,
    /// It was confirmed independently in the task or below it. Kept at the root of a chain.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_confirmed: bool,
    /// The task is counted among those it was served in. Kept at the root of a chain.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_counted: bool,
    /// It was written in the task.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_made: bool,
    /// The text that was served: what comes of it is about that one, whatever is shown by then.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRow>,
    /// What was said of it when the task was finished, if anything was.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
}

/// What is said of an entry when a task is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// It was of use.
    #[serde(rename = "u")]
    Used,
    /// It was set aside, because it contradicted what was seen.
    #[serde(rename = "d")]
    Dismissed,
    /// A spike that made an experiment needless: of use, and more.
    #[serde(rename = "a")]
    Avoided,
}

impl Said {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Dismissed => "dismissed",
            Self::Avoided => "avoided",
        }
    }
}

/// A text of an entry: whose, and which.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextRow {
    /// Who answers for it: title, content and summary may be several authors'.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<AuthorId>,
    /// Which one it is; none where several were served.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl TextRow {
    /// This one and another that was served after it: nobody knows which of them helped or misled.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let more = other.authors.iter().filter(|author| !self.authors.contains(author));
        let more: Vec<AuthorId> = more.copied().collect();
        self.authors.extend(more);
        Self { authors: self.authors, digest: self.digest.filter(|_| self.digest == other.digest) }
    }
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It goes on.
    Open,
    /// It has ended, with a verdict.
    Finished,
    /// Nobody finished it in time: it has no verdict and gets none.
    Expired,
}

impl TaskState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Finished => "finished",
            Self::Expired => "expired",
        }
    }
}

impl TaskRow {
    /// Where it stands now. That it has expired follows from its age, and is written nowhere.
    pub fn state(&self, now: WallTime, expires_after: Duration) -> TaskState {
        match &self.end {
            Some(_) => TaskState::Finished,
            None if self.begun.plus(expires_after) <= now => TaskState::Expired,
            None => TaskState::Open,
        }
    }
}

fn task_parts(
    table: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    task: TaskId,
    damage: Damage,
) -> Result<Vec<(EntryId, PartRow)>, Error> {
    let (first, last) = span::<32>(task.as_bytes());
    let mut found = Vec::new();
    for row in table.range::<&[u8; 32]>(&first..=&last)? {
        let (at, row) = row?;
        let entry = EntryId::from_bytes(part(at.value(), 16));
        let row: Result<PartRow, Error> = rows::decode("parts", row.value());
        match damage {
            Damage::Told => found.push((entry, row?)),
            Damage::PassedOver => found.extend(Error::unless_damaged(row)?.map(|row| (entry, row))),
        }
    }
    Ok(found)
}

impl Snapshot {
    /// A task.
    pub fn task(&self, name: TaskId) -> Result<Option<TaskRow>, Error> {
        read::row("tasks", &self.transaction.open_table(TASKS)?, name.as_bytes())
    }

    /// All tasks, the newest first.
    pub fn tasks(
        &self,
    ) -> Result<impl Iterator<Item = Result<(TaskId, TaskRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(TASKS)?.range::<&[u8; 16]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            Ok((TaskId::from_bytes(*at.value()), rows::decode("tasks", row.value())?))
        }))
    }

    /// What each entry was in a task, by id.
    pub fn task_parts(&self, task: TaskId) -> Result<Vec<(EntryId, PartRow)>, Error> {
        task_parts(&self.transaction.open_table(PARTS)?, task, Damage::Told)
    }
}

impl Batch {
    pub(crate) fn task(&self, name: TaskId) -> Result<Option<TaskRow>, Error> {
        read::row("tasks", &self.transaction.open_table(TASKS)?, name.as_bytes())
    }

    /// Writes a task. When there are too many, the oldest goes, and what was noted in it.
    pub(crate) fn put_task(&self, task: TaskId, row: &TaskRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(TASKS)?;
        table.insert(task.as_bytes(), rows::encode(row).as_slice())?;
        while table.len()? > TASKS_MAX {
            let oldest = table.pop_first()?.map(|(at, _)| *at.value());
            let Some(oldest) = oldest else { break };
            let (first, last) = span::<32>(&oldest);
            let mut parts = self.transaction.open_table(PARTS)?;
            parts.retain_in::<&[u8; 32], _>(&first..=&last, |_, _| false)?;
            self.drop_findings_of(&oldest)?;
        }
        Ok(())
    }

    /// What each entry was in a task; without what is damaged.
    pub(crate) fn task_parts(&self, task: TaskId) -> Result<Vec<(EntryId, PartRow)>, Error> {
        task_parts(&self.transaction.open_table(PARTS)?, task, Damage::PassedOver)
    }

    /// What an entry was in a task; nothing, if the two have not met.
    pub(crate) fn task_part(&self, task: TaskId, entry: EntryId) -> Result<PartRow, Error> {
        let at = key::<32>(&[task.as_bytes(), entry.as_bytes()]);
        Ok(read::row("parts", &self.transaction.open_table(PARTS)?, &at)?.unwrap_or_default())
    }

    pub(crate) fn put_task_part(
        &self,
        task: TaskId,
        entry: EntryId,
        row: &PartRow,
    ) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PARTS)?;
        let at = key::<32>(&[task.as_bytes(), entry.as_bytes()]);
        table.insert(&at, rows::encode(row).as_slice())?;
        Ok(())
    }

    /// No task remembers forgotten entries. Returns how many rows were looked at.
    pub(super) fn forget_parts(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut table = self.transaction.open_table(PARTS)?;
        let looked = table.len()?;
        table.retain(|at, _| !gone.contains(&EntryId::from_bytes(part(at, 16))))?;
        Ok(looked)
    }
}
