//! Outcomes of finished tasks, by workspace and period.
//!
//! An outcome is derived from the rows of its task whenever it is read: the numbers that the agent
//! gave at the end, the time between beginning and end, and the entries that were served, used and
//! written in the task. No outcome is stored apart from its task, and none can be edited.

use crate::ReadContext;
use klnode_crdt::ids::{TaskId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_store::Error;
use klnode_store::findings::FindingResolution;
use klnode_store::tasks::{EndRow, EntryFeedback, TaskRow};
use std::time::Duration;

/// Maximum number of outcomes in one report; older ones are left out.
pub const OUTCOMES_MAX: usize = 1_000;
/// Maximum number of tasks that are read for a report.
const TASKS_READ_MAX: usize = 10_000;

/// The outcome of a finished task.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedOutcome {
    /// The id of the finished task.
    pub task: TaskId,
    pub row: TaskRow,
    pub end: EndRow,
    /// The time from the beginning of the task to its end.
    pub duration: Duration,
    /// The number of entries served in the task.
    pub served: u32,
    /// The number of entries that the agent named as used, or as a spike that it avoided.
    pub used: u32,
    /// The number of entries written in the task, or made from its findings.
    pub made: u32,
}

/// The outcomes of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutcomePeriod {
    /// The outcomes, the task that began last first.
    pub outcomes: Vec<DerivedOutcome>,
    /// True if outcomes were left out because there are more than [`OUTCOMES_MAX`].
    pub is_cut: bool,
}

impl ReadContext<'_> {
    /// The outcomes of tasks in a workspace that finished within the last days.
    pub fn task_outcomes(&self, workspace: WorkspaceId, days: u32) -> Result<OutcomePeriod, Error> {
        let today = self.now.day();
        let mut period = OutcomePeriod::default();
        let mut count = 0;
        for row in self.snapshot.tasks()? {
            let Some((task, row)) = Error::unless_damaged(row)? else { continue };
            count += 1;
            // A task that began before could not finish within the period without expiring first.
            let expiry = row.begun.plus(self.reader.numbers.task_expires_after());
            if today.days_since(expiry.day()) >= days && expiry < self.now {
                break;
            }
            if period.outcomes.len() == OUTCOMES_MAX || count == TASKS_READ_MAX {
                period.is_cut = true;
                break;
            }
            let Some(end) = row.end.clone().filter(|_| row.workspace() == workspace) else {
                continue;
            };
            if today.days_since(end.at.day()) < days {
                period.outcomes.push(self.derive_outcome(task, row, end)?);
            }
        }
        Ok(period)
    }

    fn derive_outcome(
        &self,
        task: TaskId,
        row: TaskRow,
        end: EndRow,
    ) -> Result<DerivedOutcome, Error> {
        let parts = Error::unless_damaged(self.snapshot.task_parts(task))?.unwrap_or_default();
        let count = |of: &dyn Fn(&klnode_store::tasks::PartRow) -> bool| {
            u32::try_from(parts.iter().filter(|(_, part)| of(part)).count()).unwrap_or(u32::MAX)
        };
        let helped = |said: EntryFeedback| said != EntryFeedback::Dismissed;
        let findings = Error::unless_damaged(self.snapshot.findings_of(task))?.unwrap_or_default();
        let is_entry = |resolution: FindingResolution| {
            use FindingResolution::{FalsePositive, Kept, New};
            matches!(resolution, New | FalsePositive | Kept)
        };
        let of_findings = findings.iter().filter_map(|(_, row)| row.fate.as_ref());
        let of_findings = of_findings.filter(|fate| is_entry(fate.became)).count();
        let made = count(&|part| part.is_made);
        Ok(DerivedOutcome {
            task,
            duration: millis_between(row.begun, end.at),
            served: count(&|part| part.order.is_some()),
            used: count(&|part| part.said.is_some_and(helped)),
            made: made.saturating_add(u32::try_from(of_findings).unwrap_or(u32::MAX)),
            row,
            end,
        })
    }
}

/// The time between two moments; zero if the clock was set back between them.
fn millis_between(from: WallTime, to: WallTime) -> Duration {
    Duration::from_millis(to.as_millis().saturating_sub(from.as_millis()))
}
