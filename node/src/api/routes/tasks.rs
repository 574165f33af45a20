//! Tasks: begun, looked at, finished.

use super::{findings, how_many, resolve};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind, TASKS_HINT};
use crate::api::exchange::{Answer, Answered, Body, Params, Path};
use crate::api::server::Service;
use crate::api::translate;
use crate::api::types::{
    Credited, FinishTask, FinishedTask, Named, NewTask, Outcome, Task, TaskEntry, Tasks, TasksQuery,
};
use crate::engine::{self, Command, Finish, Receipt, TaskAct, TaskDone};
use crate::query::complaint;
use crate::store::tasks::{TaskRow, TaskState};
use axum::extract::State;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::time::WallTime;
use klnode_scoring::outcome::{self, Credit, Reason, Verdict};
use std::collections::BTreeSet;

/// Tasks in one answer.
const LIST_LIMIT_DEFAULT: usize = 50;
/// Entries that one task can have used, and as many of whatever else is said of them at its end.
const NAMED_MAX: usize = 1_000;
/// The quality of work of which nobody says how good it was: neither good nor bad.
const QUALITY_DEFAULT: f64 = 0.5;

/// Begins a task.
#[utoipa::path(post, path = "/v1/tasks", request_body = NewTask,
    responses((status = 200, body = Task)))]
pub(super) async fn begin(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewTask>,
) -> Answered<Task> {
    let NewTask { agent, goal, thread, parent } = new;
    clean("agent", &agent)?;
    clean("goal", &goal)?;
    clean("thread", thread.as_deref().unwrap_or_default())?;
    let parent = parent.as_deref().map(task_named).transpose()?;
    let act = TaskAct::Begin(engine::NewTask { agent, goal, thread, parent });
    let TaskDone::Began(task) = service.about_task(caller, act).await? else {
        return Err(ApiError::new(Kind::Failed, "tell which task was begun", None));
    };
    let row = find(&service, task)?;
    let handed_down = match parent {
        Some(_) => Some(findings::handed_down(&service.snapshot()?, task)?),
        None => None,
    };
    Ok(Answer(Task { handed_down, ..service.task(task, &row, (service.now)()) }))
}

/// Lists tasks, the newest first.
#[utoipa::path(get, path = "/v1/tasks", params(TasksQuery),
    responses((status = 200, body = Tasks)))]
pub(super) async fn list(
    State(service): State<Service>,
    Params(TasksQuery { limit, open }): Params<TasksQuery>,
) -> Answered<Tasks> {
    let limit = how_many(limit, LIST_LIMIT_DEFAULT, "tasks", None)?;
    apart(move |cancel| {
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let (mut tasks, mut more) = (Vec::new(), false);
        for row in snapshot.tasks()? {
            let (task, row) = row?;
            if open && service.state(&row, now) != TaskState::Open {
                continue;
            }
            if tasks.len() == limit || cancel.is_cancelled() {
                more = true;
                break;
            }
            tasks.push(service.task(task, &row, now));
        }
        Ok(Tasks { tasks, more })
    })
    .await
    .map(Answer)
}

/// Shows a task, with what was served in it.
#[utoipa::path(get, path = "/v1/tasks/{task}", responses((status = 200, body = Task)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(task): Path<String>,
) -> Answered<Task> {
    let task = task_named(&task)?;
    apart(move |_| {
        let row = find(&service, task)?;
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let reading = service.reader.at(&snapshot, now)?;
        let mut parts = snapshot.task_parts(task)?;
        parts.retain(|(_, part)| part.order.is_some());
        parts.sort_by_key(|(_, part)| part.order);
        let mut entries = Vec::with_capacity(parts.len());
        for (entry, part) in parts {
            let Some(found) = reading.read_sound(entry)? else { continue };
            let read = translate::entry(&found);
            entries.push(TaskEntry {
                id: read.id,
                code: read.code,
                title: read.title,
                rank: part.rank,
                observed: part.is_observed,
                said: part.said.map(|said| said.name().to_owned()),
            });
        }
        let handed_down = match row.parent {
            Some(_) => Some(findings::handed_down(&snapshot, task)?),
            None => None,
        };
        let findings = findings::findings_of(&snapshot, &reading, task)?;
        Ok(Task { entries, findings, handed_down, ..service.task(task, &row, now) })
    })
    .await
    .map(Answer)
}

/// Finishes a task: its outcome feeds what was served in it. Finishing again adds nothing.
#[utoipa::path(post, path = "/v1/tasks/{task}/finish", request_body = FinishTask,
    responses((status = 200, body = FinishedTask)))]
pub(super) async fn finish(
    State(service): State<Service>,
    caller: Caller,
    Path(task): Path<String>,
    Body(finish): Body<FinishTask>,
) -> Answered<FinishedTask> {
    let task = task_named(&task)?;
    let FinishTask { outcome, quality, used, dismissed, avoided, cost, rounds, strategy } = finish;
    clean("strategy", strategy.as_deref().unwrap_or_default())?;
    let used = service.entries_named("used", used).await?;
    let dismissed = service.entries_named("dismissed", dismissed).await?;
    let avoided = service.entries_named("avoided", avoided).await?;
    let verdict = match outcome {
        Outcome::Success => Verdict::Success,
        Outcome::Failure => Verdict::Failure,
    };
    let quality = quality.unwrap_or(QUALITY_DEFAULT);
    let judged = outcome::Outcome { verdict, quality };
    let finish = Finish { outcome: judged, used, dismissed, avoided, cost, rounds, strategy };
    let act = TaskAct::Finish(task, finish);
    let (before, done) = match service.about_task(caller, act).await? {
        TaskDone::Finished(done) => (None, done),
        TaskDone::FinishedBefore { is_success } => {
            (Some(ended(is_success)), engine::Finished::default())
        }
        _ => return Err(ApiError::new(Kind::Failed, "tell what became of the task", None)),
    };
    let ids = |entries: &[EntryId]| entries.iter().map(EntryId::to_string).collect();
    let told = [&done.unserved, &done.dismissed, &done.avoided, &done.archived];
    let codes = service.names(told.into_iter().flatten().copied().collect()).await?;
    let names = service.names(done.credits.iter().map(|credit| credit.entry).collect()).await?;
    let credits = done.credits.iter().zip(names);
    Ok(Answer(FinishedTask {
        task: task.to_string(),
        already: before.is_some(),
        outcome: Some(before.unwrap_or(outcome)),
        credits: credits.map(|(credit, name)| credited(credit, name)).collect(),
        unserved: ids(&done.unserved),
        dismissed: ids(&done.dismissed),
        avoided: ids(&done.avoided),
        archived: ids(&done.archived),
        codes: codes.into_iter().map(|name| (name.id, name.code)).collect(),
    }))
}

fn credited(credit: &Credit, Named { id, code }: Named) -> Credited {
    Credited {
        id,
        code,
        amount: credit.amount.observations(),
        rank: credit.rank,
        named: credit.reason == Reason::Named,
    }
}

fn ended(is_success: bool) -> Outcome {
    if is_success { Outcome::Success } else { Outcome::Failure }
}

/// A task by its name.
pub(super) fn task_named(name: &str) -> Result<TaskId, ApiError> {
    TaskId::from_hex(name).ok_or_else(|| {
        let digits = 2 * TaskId::LEN;
        let message = format!("find task `{name}`: it is no name of a task, {digits} hex digits");
        ApiError::new(Kind::Invalid, message, Some(TASKS_HINT))
    })
}

/// The task in which something is about to be served, if it goes on.
pub(super) fn open_task(service: &Service, name: &str) -> Result<TaskId, ApiError> {
    let task = task_named(name)?;
    match service.state(&find(service, task)?, (service.now)()) {
        TaskState::Open => Ok(task),
        state => Err(engine::Rejection::TaskEnded { task, state: state.name() }.into()),
    }
}

pub(super) fn find(service: &Service, task: TaskId) -> Result<TaskRow, ApiError> {
    let row = service.snapshot()?.task(task)?;
    Ok(row.ok_or(engine::Rejection::NoSuchTask(task))?)
}

/// Nothing that the scan refuses is kept beside entries either.
fn clean(field: &'static str, text: &str) -> Result<(), ApiError> {
    match complaint(field, text) {
        None => Ok(()),
        Some(why) => Err(ApiError::new(Kind::Invalid, format!("write the task: {why}"), None)),
    }
}

impl Service {
    /// Has the writer do something about a task.
    pub(super) async fn about_task(
        &self,
        caller: Caller,
        act: TaskAct,
    ) -> Result<TaskDone, ApiError> {
        match self.submit(caller, Command::Task(Box::new(act))).await? {
            Receipt::Task(done) => Ok(done),
            _ => Err(ApiError::new(Kind::Failed, "tell what became of the task", None)),
        }
    }

    /// The entries that a field names; each counts once, however often it was named.
    async fn entries_named(
        &self,
        field: &str,
        names: Vec<String>,
    ) -> Result<Vec<EntryId>, ApiError> {
        let names: BTreeSet<String> = names.into_iter().collect();
        if names.len() > NAMED_MAX {
            let message =
                format!("finish the task: {field} names {}; {NAMED_MAX} are allowed", names.len());
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
        let service = self.clone();
        apart(move |_| {
            let snapshot = service.snapshot()?;
            let found = names.iter().map(|name| resolve(&snapshot, name));
            let found = found.collect::<Result<BTreeSet<EntryId>, ApiError>>()?;
            Ok(found.into_iter().collect())
        })
        .await
    }

    fn state(&self, row: &TaskRow, now: WallTime) -> TaskState {
        row.state(now, self.reader.numbers.task_expires_after())
    }

    fn task(&self, task: TaskId, row: &TaskRow, now: WallTime) -> Task {
        let end = row.end.as_ref();
        Task {
            task: task.to_string(),
            agent: row.agent.clone(),
            goal: row.goal.clone(),
            thread: row.thread.clone(),
            parent: row.parent.map(|parent| parent.to_string()),
            state: self.state(row, now).name().to_owned(),
            begun: row.begun.as_millis(),
            finished: end.map(|end| end.at.as_millis()),
            outcome: end.map(|end| ended(end.is_success)),
            quality: end.map(|end| end.quality),
            cost: end.and_then(|end| end.cost),
            rounds: end.and_then(|end| end.rounds),
            strategy: end.and_then(|end| end.strategy.clone()),
            served: row.served,
            entries: Vec::new(),
            findings: Vec::new(),
            handed_down: None,
        }
    }
}
