//! Tasks from their beginning to their end, and the role of each entry in them.
//!
//! All of this is local and never sent. A task's id begins with its start time, so the table is in
//! order of beginning and the oldest can be removed first. Servings are looked up by task and
//! entry; a query about a chain of tasks looks up each link.

use super::batch::{Batch, overwrite};
use super::error::Error;
use super::row_types;
use super::shared_reads::{self, Damage};
use super::snapshot::Snapshot;
use super::tables::{PARTS, TASKS, TASKS_MAX, key, part, span};
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_home::CallerLabel;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    /// The name of the agent that works on it.
    #[serde(rename = "a")]
    pub agent: String,
    /// The purpose of the task, in free text.
    #[serde(rename = "g")]
    pub goal: String,
    /// The name of the thread it belongs to.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The task it is a part of; `None` for a root task.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// When it began.
    #[serde(rename = "b")]
    pub begun: WallTime,
    /// How many entries were served in it.
    #[serde(rename = "n", default)]
    pub served: u32,
    /// The result; `None` while it is not finished.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndRow>,
    /// The session in which it began; entries served there prime the task.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub session: Option<CallerLabel>,
    /// Other tasks whose findings were shown in it.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<TaskId>,
    /// The workspace of the work. Rows of earlier versions have none; their tasks belong to `main`.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
    /// How many questions were asked in it, with or without an answer.
    #[serde(rename = "q", default, skip_serializing_if = "is_zero")]
    pub searches: u32,
    /// Parts of it that ended with a conclusion, which later parts read.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub concluded: Vec<TaskId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The result of a finished task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndRow {
    /// When it was finished.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// Whether it succeeded.
    #[serde(rename = "s")]
    pub is_success: bool,
    /// Quality of the work, in [0, 1].
    #[serde(rename = "q")]
    pub quality: f64,
    /// Cost in a unit of the agent's choice.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Number of rounds it took.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The approach the agent took, in free text.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The conclusion for later parts of the work, in free text. Forgetting an entry that was served
    /// in the task erases it.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
}

/// The role of an entry in a task.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartRow {
    /// The serving number of the entry in the task; `None` if it was not served there.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// The best rank it had in an answer, 0 for the first.
    #[serde(rename = "r", default)]
    pub rank: u32,
    /// Whether a success or failure of it was counted in the task; there is no second.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_observed: bool,
    /// Whether it was confirmed independently in the task or below it. Stored at the root of a
    /// chain.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_confirmed: bool,
    /// Whether the task was counted against it by the archive rule. Stored at the root of a chain.
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_counted: bool,
    /// Whether it was created in the task.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_made: bool,
    /// The text that was served. Outcomes concern this text, even if the entry was edited since.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextRow>,
    /// The feedback about it when the task was finished.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub said: Option<EntryFeedback>,
    /// The gap that a partial use left, or the reason for adopting the entry.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Feedback about an entry when a task is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryFeedback {
    /// The agent used the entry, and it helped.
    #[serde(rename = "u")]
    Used,
    /// It was dismissed because it contradicted what the agent observed.
    #[serde(rename = "d")]
    Dismissed,
    /// A spike that made an experiment unnecessary; this counts as helpful too.
    #[serde(rename = "a")]
    Avoided,
    /// It answered a part of the question.
    #[serde(rename = "p")]
    Partial,
    /// It is one of several entries that answer together, untested as a unit.
    #[serde(rename = "c")]
    Composite,
    /// It answered another question than the one asked.
    #[serde(rename = "i")]
    Incidental,
}

impl EntryFeedback {
    /// The name for display and for the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Dismissed => "dismissed",
            Self::Avoided => "avoided",
            Self::Partial => "partial",
            Self::Composite => "composite",
            Self::Incidental => "incidental",
        }
    }
}

/// A text of an entry, with its authors.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextRow {
    /// Its authors; title, content and summary may have different ones.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<AuthorId>,
    /// Digest of the text; `None` if several texts were served.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

impl TextRow {
    /// Merges this text with another one served later: it is unknown which of them helped or
    /// misled.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let more = other.authors.iter().filter(|author| !self.authors.contains(author));
        let more: Vec<AuthorId> = more.copied().collect();
        self.authors.extend(more);
        Self { authors: self.authors, digest: self.digest.filter(|_| self.digest == other.digest) }
    }
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It is in progress.
    Open,
    /// It has ended with a result.
    Finished,
    /// It was not finished in time; it has no result and cannot get one.
    Expired,
}

impl TaskState {
    /// The name for display and for the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Finished => "finished",
            Self::Expired => "expired",
        }
    }
}

impl TaskRow {
    /// The workspace of the work; `main` if none was recorded.
    pub fn workspace(&self) -> WorkspaceId {
        self.workspace.unwrap_or(WorkspaceId::MAIN)
    }

    /// The current state. Expiry follows from the age and is not stored.
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
        let row: Result<PartRow, Error> = row_types::decode("parts", row.value());
        match damage {
            Damage::Told => found.push((entry, row?)),
            Damage::PassedOver => found.extend(Error::unless_damaged(row)?.map(|row| (entry, row))),
        }
    }
    Ok(found)
}

impl Snapshot {
    /// The task with this id.
    pub fn task(&self, name: TaskId) -> Result<Option<TaskRow>, Error> {
        shared_reads::row("tasks", &self.transaction.open_table(TASKS)?, name.as_bytes())
    }

    /// All tasks, newest first.
    pub fn tasks(
        &self,
    ) -> Result<impl Iterator<Item = Result<(TaskId, TaskRow), Error>> + use<>, Error> {
        let rows = self.transaction.open_table(TASKS)?.range::<&[u8; 16]>(..)?;
        Ok(rows.rev().map(|row| {
            let (at, row) = row?;
            Ok((TaskId::from_bytes(*at.value()), row_types::decode("tasks", row.value())?))
        }))
    }

    /// The role of each entry in a task, by id.
    pub fn task_parts(&self, task: TaskId) -> Result<Vec<(EntryId, PartRow)>, Error> {
        task_parts(&self.transaction.open_table(PARTS)?, task, Damage::Told)
    }
}

impl Batch {
    pub fn task(&self, name: TaskId) -> Result<Option<TaskRow>, Error> {
        shared_reads::row("tasks", &self.transaction.open_table(TASKS)?, name.as_bytes())
    }

    /// Writes a task. Above the limit the oldest task is removed with its parts and findings.
    pub fn put_task(&self, task: TaskId, row: &TaskRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(TASKS)?;
        table.insert(task.as_bytes(), row_types::encode(row).as_slice())?;
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

    /// The role of each entry in a task; damaged rows are skipped.
    pub fn task_parts(&self, task: TaskId) -> Result<Vec<(EntryId, PartRow)>, Error> {
        task_parts(&self.transaction.open_table(PARTS)?, task, Damage::PassedOver)
    }

    /// The role of an entry in a task; the default if it has none.
    pub fn task_part(&self, task: TaskId, entry: EntryId) -> Result<PartRow, Error> {
        let at = key::<32>(&[task.as_bytes(), entry.as_bytes()]);
        Ok(shared_reads::row("parts", &self.transaction.open_table(PARTS)?, &at)?
            .unwrap_or_default())
    }

    pub fn put_task_part(&self, task: TaskId, entry: EntryId, row: &PartRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PARTS)?;
        let at = key::<32>(&[task.as_bytes(), entry.as_bytes()]);
        table.insert(&at, row_types::encode(row).as_slice())?;
        Ok(())
    }

    /// Removes forgotten entries from all tasks. Returns the number of scanned rows.
    pub(super) fn forget_parts(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut table = self.transaction.open_table(PARTS)?;
        let scanned = table.len()?;
        let mut met = BTreeSet::new();
        table.retain(|at, _| {
            let is_gone = gone.contains(&EntryId::from_bytes(part(at, 16)));
            if is_gone {
                met.insert(TaskId::from_bytes(part(at, 0)));
            }
            !is_gone
        })?;
        self.forget_conclusions(&met)?;
        Ok(scanned)
    }

    /// Erases the conclusions of tasks in which a forgotten entry was served, of the tasks above them
    /// and of the other parts of those, which read these conclusions: all of them may quote it.
    fn forget_conclusions(&self, met: &BTreeSet<TaskId>) -> Result<(), Error> {
        let mut table = self.transaction.open_table(TASKS)?;
        let mut rest: Vec<TaskId> = met.iter().copied().collect();
        let mut seen = met.clone();
        while let Some(task) = rest.pop() {
            let row = shared_reads::row::<TaskRow, 16>("tasks", &table, task.as_bytes());
            let Some(mut row) = Error::unless_damaged(row)?.flatten() else { continue };
            let readers = row.parent.into_iter().chain(row.concluded.iter().copied());
            rest.extend(readers.filter(|reader| seen.insert(*reader)));
            if let Some(end) = row.end.as_mut().filter(|end| end.conclusion.is_some()) {
                end.conclusion = None;
                overwrite(&mut table, task.as_bytes())?;
                table.insert(task.as_bytes(), row_types::encode(&row).as_slice())?;
            }
        }
        Ok(())
    }
}
