//! Finds the task that a request names, for the routes of tasks and of everything written in a task.

use crate::errors::{ApiError, TASKS_HINT};
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_crdt::ids::TaskId;
use klnode_crdt::time::WallTime;
use klnode_store::tasks::{TaskRow, TaskState};

/// Parses the name of a task.
pub(super) fn task_named(name: &str) -> Result<TaskId, ApiError> {
    TaskId::from_hex(name).ok_or_else(|| {
        let digits = 2 * TaskId::LEN;
        let message = format!("`{name}` is not the name of a task, which has {digits} hex digits.");
        ApiError::new(ErrorKind::Invalid, message, Some(TASKS_HINT))
    })
}

/// Finds an open task by its name.
pub(super) fn open_task(service: &Service, name: &str) -> Result<TaskId, ApiError> {
    let task = task_named(name)?;
    match service.state(&find(service, task)?, (service.now)()) {
        TaskState::Open => Ok(task),
        state => Err(klnode_engine::Rejection::TaskEnded { task, state: state.name() }.into()),
    }
}

pub(super) fn find(service: &Service, task: TaskId) -> Result<TaskRow, ApiError> {
    let row = service.snapshot()?.task(task)?;
    Ok(row.ok_or(klnode_engine::Rejection::NoSuchTask(task))?)
}

impl Service {
    /// The state of a task at this time.
    pub(super) fn state(&self, row: &TaskRow, now: WallTime) -> TaskState {
        row.state(now, self.reader.numbers.task_expires_after())
    }
}
