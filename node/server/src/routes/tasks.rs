//! Routes for tasks: begin, list, show and finish.

use super::task_lookup::{find, task_named};
use super::{anchors, findings, how_many, resolve};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::convert::entries;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{
    EntryIdentity, FinishTask, FinishedTask, NewTask, Outcome, Task, TaskConclusion, TaskCredit,
    TaskEntry, Tasks, TasksQuery,
};
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_engine::{self, Adoption, Command, Finish, Receipt, TaskCommand, TaskReceipt};
use klnode_query::{ReadContext, complaint};
use klnode_scoring::credit::{self, Credit, CreditReason, TaskVerdict};
use klnode_store::Snapshot;
use klnode_store::peers::Membership;
use klnode_store::tasks::{EntryFeedback, TaskRow, TaskState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Default number of tasks in one response.
const LIST_LIMIT_DEFAULT: usize = 50;
/// Maximum number of entries that one field may name when a task is finished.
const NAMED_MAX: usize = 1_000;
/// The quality of a task's result, from 0 to 1, if the caller gives none: neither good nor bad.
const QUALITY_DEFAULT: f64 = 0.5;

/// Begins a task.
#[utoipa::path(post, path = "/v1/tasks", request_body = NewTask,
    responses((status = 200, body = Task)))]
pub(super) async fn begin(
    State(service): State<Service>,
    caller: Caller,
    Body(new): Body<NewTask>,
) -> ApiResult<Task> {
    let NewTask { agent, goal, thread, parent, workspace, checkout } = new;
    check_text("agent", &agent)?;
    check_text("goal", &goal)?;
    check_text("thread", thread.as_deref().unwrap_or_default())?;
    let parent = parent.as_deref().map(task_named).transpose()?;
    let checkout = anchors::permitted_checkout(caller, checkout.as_deref())?;
    let workspace = service.task_workspace(workspace, checkout, parent.is_some()).await?;
    let new = klnode_engine::NewTask { agent, goal, thread, parent, workspace };
    let act = TaskCommand::Begin(new);
    let TaskReceipt::Began(task) = service.about_task(caller, act).await? else {
        return Err(ApiError::new(ErrorKind::Failed, "The name of the new task is unknown.", None));
    };
    let row = find(&service, task)?;
    let snapshot = service.snapshot()?;
    let handed_down = match parent {
        Some(_) => Some(findings::handed_down(&snapshot, task)?),
        None => None,
    };
    let reading = service.reader.at(&snapshot, (service.now)())?;
    let upstream = upstream(&snapshot, &reading, task)?;
    Ok(ApiReply(Task { handed_down, upstream, ..service.task(task, &row, &reading.membership) }))
}

/// Lists tasks, newest first.
#[utoipa::path(get, path = "/v1/tasks", params(TasksQuery),
    responses((status = 200, body = Tasks)))]
pub(super) async fn list(
    State(service): State<Service>,
    QueryParams(TasksQuery { limit, open }): QueryParams<TasksQuery>,
) -> ApiResult<Tasks> {
    let limit = how_many(limit, LIST_LIMIT_DEFAULT, "tasks", None)?;
    run_blocking(move |cancel| {
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let membership = service.membership(&snapshot)?;
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
            tasks.push(service.task(task, &row, &membership));
        }
        Ok(Tasks { tasks, more })
    })
    .await
    .map(ApiReply)
}

/// Shows a task with the entries served in it and its findings.
#[utoipa::path(get, path = "/v1/tasks/{task}", responses((status = 200, body = Task)))]
pub(super) async fn show(
    State(service): State<Service>,
    Path(task): Path<String>,
) -> ApiResult<Task> {
    let task = task_named(&task)?;
    run_blocking(move |_| {
        let row = find(&service, task)?;
        let (snapshot, now) = (service.snapshot()?, (service.now)());
        let reading = service.reader.at(&snapshot, now)?;
        let mut parts = snapshot.task_parts(task)?;
        parts.retain(|(_, part)| part.order.is_some());
        parts.sort_by_key(|(_, part)| part.order);
        let mut entries = Vec::with_capacity(parts.len());
        for (entry, part) in parts {
            let Some(found) = reading.read_sound(entry)? else { continue };
            let read = entries::entry(&found);
            entries.push(TaskEntry {
                id: read.id,
                code: read.code,
                title: read.title,
                rank: part.rank,
                observed: part.is_observed,
                said: part.said.map(|said| said.name().to_owned()),
                note: part.note,
            });
        }
        let handed_down = match row.parent {
            Some(_) => Some(findings::handed_down(&snapshot, task)?),
            None => None,
        };
        let findings = findings::findings_of(&snapshot, &reading, task)?;
        let upstream = upstream(&snapshot, &reading, task)?;
        let shown = service.task(task, &row, &reading.membership);
        Ok(Task { entries, findings, handed_down, upstream, ..shown })
    })
    .await
    .map(ApiReply)
}

/// Finishes a task. Its outcome credits the entries served in it. Finishing a task again changes
/// nothing.
#[utoipa::path(post, path = "/v1/tasks/{task}/finish", request_body = FinishTask,
    responses((status = 200, body = FinishedTask)))]
pub(super) async fn finish(
    State(service): State<Service>,
    caller: Caller,
    Path(task): Path<String>,
    Body(finish): Body<FinishTask>,
) -> ApiResult<FinishedTask> {
    let task = task_named(&task)?;
    let FinishTask { outcome, quality, used, dismissed, avoided, cost, rounds, strategy, .. } =
        finish.clone();
    check_text("strategy", strategy.as_deref().unwrap_or_default())?;
    let used = service.entries_named("used", used).await?;
    let dismissed = service.entries_named("dismissed", dismissed).await?;
    let avoided = service.entries_named("avoided", avoided).await?;
    let adoption = service.adoption(finish).await?;
    let composite = adoption.composite.clone();
    let verdict = match outcome {
        Outcome::Success => TaskVerdict::Success,
        Outcome::Failure => TaskVerdict::Failure,
    };
    let quality = quality.unwrap_or(QUALITY_DEFAULT);
    let task_outcome = credit::TaskOutcome { verdict, quality };
    let finish = Finish {
        outcome: task_outcome,
        used,
        dismissed,
        avoided,
        cost,
        rounds,
        strategy,
        adoption,
    };
    let act = TaskCommand::Finish(task, finish);
    let (before, done) = match service.about_task(caller, act).await? {
        TaskReceipt::Finished(done) => (None, done),
        TaskReceipt::FinishedBefore { is_success } => {
            (Some(outcome_of(is_success)), klnode_engine::FinishEffects::default())
        }
        _ => {
            return Err(ApiError::new(
                ErrorKind::Failed,
                "The state of the task is unknown.",
                None,
            ));
        }
    };
    let ids = |entries: &[EntryId]| entries.iter().map(EntryId::to_string).collect();
    let row = find(&service, task)?;
    let listed = [&done.unserved, &done.dismissed, &done.avoided, &done.archived, &composite];
    let codes = service.names(listed.into_iter().flatten().copied().collect()).await?;
    let names = service.names(done.credits.iter().map(|credit| credit.entry).collect()).await?;
    let credits = done.credits.iter().zip(names);
    Ok(ApiReply(FinishedTask {
        task: task.to_string(),
        already: before.is_some(),
        outcome: Some(before.unwrap_or(outcome)),
        credits: credits.map(|(credit, name)| credited(credit, name)).collect(),
        unserved: ids(&done.unserved),
        dismissed: ids(&done.dismissed),
        avoided: ids(&done.avoided),
        archived: ids(&done.archived),
        codes: codes.into_iter().map(|name| (name.id, name.code)).collect(),
        unsearched: row.searches == 0 && row.served == 0,
        composite: ids(&composite),
    }))
}

fn credited(credit: &Credit, EntryIdentity { id, code }: EntryIdentity) -> TaskCredit {
    TaskCredit {
        id,
        code,
        amount: credit.amount.observations(),
        rank: credit.rank,
        named: credit.reason != CreditReason::AmongFirst,
        incidental: credit.reason == CreditReason::Incidental,
    }
}

fn outcome_of(is_success: bool) -> Outcome {
    if is_success { Outcome::Success } else { Outcome::Failure }
}

/// The conclusions of earlier parts of the same work: of the parts of each task above.
fn upstream(
    snapshot: &Snapshot,
    reading: &ReadContext<'_>,
    task: TaskId,
) -> Result<Vec<TaskConclusion>, ApiError> {
    let mut found = Vec::new();
    for above in findings::above(snapshot, task)? {
        let Some(row) = snapshot.task(above)? else { continue };
        for part in row.concluded.into_iter().filter(|part| *part != task) {
            let Some(of) = snapshot.task(part)? else { continue };
            let Some(conclusion) = of.end.and_then(|end| end.conclusion) else { continue };
            let mut cites = Vec::new();
            for (entry, role) in snapshot.task_parts(part)? {
                let is_adopted = role.said.is_some_and(|said| said != EntryFeedback::Dismissed);
                let entry = is_adopted.then(|| reading.read_sound(entry)).transpose()?.flatten();
                cites.extend(entry.map(|found| found.code()));
            }
            let (task, agent) = (part.to_string(), of.agent);
            found.push(TaskConclusion { task, agent, conclusion, cites });
        }
    }
    Ok(found)
}

/// Scans a text of a task like that of an entry.
fn check_text(field: &'static str, text: &str) -> Result<(), ApiError> {
    match complaint(field, text) {
        None => Ok(()),
        Some(why) => {
            Err(ApiError::new(ErrorKind::Invalid, format!("The task was not written: {why}"), None))
        }
    }
}

impl Service {
    /// Submits a command about a task.
    pub(super) async fn about_task(
        &self,
        caller: Caller,
        act: TaskCommand,
    ) -> Result<TaskReceipt, ApiError> {
        match self.submit(caller, Command::Task(Box::new(act))).await? {
            Receipt::Task(done) => Ok(done),
            _ => Err(ApiError::new(ErrorKind::Failed, "The state of the task is unknown.", None)),
        }
    }

    /// How a task adopted entries other than as a whole.
    async fn adoption(&self, finish: FinishTask) -> Result<Adoption, ApiError> {
        let FinishTask { partial, composite, incidental, reasons, conclusion, .. } = finish;
        check_text("conclusion", conclusion.as_deref().unwrap_or_default())?;
        let gaps = partial.iter().map(|one| ("gap", &one.entry, &one.gap));
        let reasons = reasons.iter().map(|one| ("reason", &one.entry, &one.reason));
        let mut notes = BTreeMap::new();
        for (field, entry, text) in reasons.chain(gaps) {
            check_text(field, text)?;
            let named = self.entries_named(field, vec![entry.clone()]).await?;
            notes.extend(named.into_iter().map(|entry| (entry, text.clone())));
        }
        let partial = partial.into_iter().map(|one| one.entry).collect();
        Ok(Adoption {
            partial: self.entries_named("partial", partial).await?,
            composite: self.entries_named("composite", composite).await?,
            incidental: self.entries_named("incidental", incidental).await?,
            notes,
            conclusion,
        })
    }

    /// The entries named in a field, without duplicates.
    async fn entries_named(
        &self,
        field: &str,
        names: Vec<String>,
    ) -> Result<Vec<EntryId>, ApiError> {
        let names: BTreeSet<String> = names.into_iter().collect();
        if names.len() > NAMED_MAX {
            let message = format!(
                "`{field}` names {} entries; at most {NAMED_MAX} are allowed.",
                names.len()
            );
            return Err(ApiError::new(ErrorKind::Invalid, message, None));
        }
        let service = self.clone();
        run_blocking(move |_| {
            let snapshot = service.snapshot()?;
            let found = names.iter().map(|name| resolve(&snapshot, name));
            let found = found.collect::<Result<BTreeSet<EntryId>, ApiError>>()?;
            Ok(found.into_iter().collect())
        })
        .await
    }

    /// The workspace of a new task: the named one, that of the checkout, or the current one. A task
    /// with a parent keeps the parent's unless one is named.
    async fn task_workspace(
        &self,
        named: Option<String>,
        checkout: Option<PathBuf>,
        has_parent: bool,
    ) -> Result<Option<WorkspaceId>, ApiError> {
        if named.is_some() || (checkout.is_none() && !has_parent) {
            return self.workspace_for(named.as_deref()).map(Some);
        }
        let Some(folder) = checkout.filter(|_| !has_parent) else { return Ok(None) };
        let service = self.clone();
        run_blocking(move |_| {
            let snapshot = service.snapshot()?;
            let membership = service.membership(&snapshot)?;
            let here = service.reader.here(&snapshot, &membership, Some(folder.as_path()))?;
            Ok(Some(here.workspace.unwrap_or_else(|| membership.current())))
        })
        .await
    }

    fn task(&self, task: TaskId, row: &TaskRow, membership: &Membership) -> Task {
        let (end, now) = (row.end.as_ref(), (self.now)());
        Task {
            task: task.to_string(),
            agent: row.agent.clone(),
            goal: row.goal.clone(),
            thread: row.thread.clone(),
            parent: row.parent.map(|parent| parent.to_string()),
            workspace: membership.name(row.workspace()),
            state: self.state(row, now).name().to_owned(),
            begun: row.begun.as_millis(),
            finished: end.map(|end| end.at.as_millis()),
            outcome: end.map(|end| outcome_of(end.is_success)),
            quality: end.map(|end| end.quality),
            cost: end.and_then(|end| end.cost),
            rounds: end.and_then(|end| end.rounds),
            strategy: end.and_then(|end| end.strategy.clone()),
            served: row.served,
            entries: Vec::new(),
            findings: Vec::new(),
            handed_down: None,
            searches: row.searches,
            conclusion: end.and_then(|end| end.conclusion.clone()),
            upstream: Vec::new(),
        }
    }
}
