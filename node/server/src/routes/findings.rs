//! Routes for findings: record, list, dismiss and keep.

use super::anchors::permitted_checkout;
use super::task_lookup::{find, open_task, task_named};
use crate::blocking_pool::run_blocking;
use crate::caller::Caller;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Body, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{DismissRequest, Findings, FindingsQuery, NewFinding, TaskFinding};
use klnode_crdt::entry_view::State as Shown;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::time::WallTime;
use klnode_engine::{self, CHAIN_TASKS_MAX, Command, FindingCommand, FindingReceipt, Receipt};
use klnode_query::{AssessedEntry, ReadContext, bind, complaint, entry_like};
use klnode_store::Snapshot;
use klnode_store::findings::{FindingKey, FindingResolution, FindingRow};
use klnode_store::tasks::TaskState;

/// Why a one-time issue waits.
const ONE_TIME: &str = "it is a one-time issue, which becomes no entry by itself";

/// Records a finding in a task. It is compared with others after the task has ended.
#[utoipa::path(post, path = "/v1/tasks/{task}/findings", request_body = NewFinding,
    responses((status = 200, body = TaskFinding)))]
pub(super) async fn record(
    State(service): State<Service>,
    caller: Caller,
    Path(task): Path<String>,
    Body(new): Body<NewFinding>,
) -> ApiResult<TaskFinding> {
    let task = task_named(&task)?;
    let folder = permitted_checkout(caller, new.checkout.as_deref())?;
    let NewFinding {
        text, severity, confidence, anchors, verify, dismiss, workspace, once, ..
    } = new;
    check_text("text", &text)?;
    for anchor in &anchors {
        check_text("anchors", anchor)?;
    }
    for step in &verify {
        check_text("verify", step)?;
    }
    check_text("dismiss", dismiss.as_deref().unwrap_or_default())?;
    let workspace = service.workspace_for(workspace.as_deref())?;
    let working = service.clone();
    let written_in = run_blocking(move |_| {
        let snapshot = working.snapshot()?;
        let membership = working.membership(&snapshot)?;
        Ok(working.reader.written_in(&snapshot, &membership, folder.as_deref(), workspace)?)
    });
    let identity = written_in.await?.unwrap_or_default();
    let repositories = bind(&identity, anchors.iter().map(String::as_str));
    let new = klnode_engine::NewFinding {
        text,
        severity,
        confidence,
        anchors,
        repositories,
        verify,
        dismissal: dismiss,
        workspace,
        is_once: once,
    };
    let FindingReceipt::Recorded(at) =
        service.about_finding(caller, FindingCommand::Record(task, new)).await?
    else {
        return Err(ApiError::new(
            ErrorKind::Failed,
            "The number of the new finding is unknown.",
            None,
        ));
    };
    finding_reply(service, at).await
}

/// Lists the findings of a task and, with `inherited`, those of its parent tasks.
#[utoipa::path(get, path = "/v1/tasks/{task}/findings", params(FindingsQuery),
    responses((status = 200, body = Findings)))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Path(task): Path<String>,
    QueryParams(FindingsQuery { inherited, reader }): QueryParams<FindingsQuery>,
) -> ApiResult<Findings> {
    let task = task_named(&task)?;
    find(&service, task)?;
    let above = if inherited { above(&service.snapshot()?, task)? } else { Vec::new() };
    if let Some(reader) = reader {
        let to = open_task(&service, &reader)?;
        // The read is recorded before the findings are returned, so the reader is always primed by
        // them.
        for of in [task].iter().chain(&above).filter(|of| **of != to) {
            service.about_finding(caller, FindingCommand::Show { of: *of, to }).await?;
        }
    }
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let mut findings = findings_of(&snapshot, &reading, task)?;
        let own = findings.len();
        for task in above {
            findings.extend(findings_of(&snapshot, &reading, task)?);
        }
        let handed_down = u32::try_from(findings.len() - own).unwrap_or(u32::MAX);
        Ok(Findings { findings, handed_down })
    })
    .await
    .map(ApiReply)
}

/// Dismisses a finding as a false positive, by decision of the operator. It takes effect shortly
/// after, even if the task is still open. A finding that was kept, or dismissed for another reason,
/// is not changed.
#[utoipa::path(post, path = "/v1/tasks/{task}/findings/{number}/dismiss",
    request_body = DismissRequest,
    responses((status = 200, body = TaskFinding)))]
pub(super) async fn dismiss(
    State(service): State<Service>,
    caller: Caller,
    Path((task, number)): Path<(String, String)>,
    Body(DismissRequest { reason }): Body<DismissRequest>,
) -> ApiResult<TaskFinding> {
    let task = task_named(&task)?;
    check_text("reason", &reason)?;
    let at = FindingKey { task, number: numbered(&number)? };
    service.about_finding(caller, FindingCommand::Dismiss(at, reason)).await?;
    finding_reply(service, at).await
}

/// Makes an entry of a waiting finding, by decision of the operator. The entry is a candidate
/// because only one agent has found it. Keeping a finding again changes nothing.
#[utoipa::path(post, path = "/v1/tasks/{task}/findings/{number}/keep",
    responses((status = 200, body = TaskFinding)))]
pub(super) async fn keep(
    State(service): State<Service>,
    caller: Caller,
    Path((task, number)): Path<(String, String)>,
) -> ApiResult<TaskFinding> {
    let finding = FindingKey { task: task_named(&task)?, number: numbered(&number)? };
    let same = service.entry_like(finding).await?;
    service.about_finding(caller, FindingCommand::Keep { finding, same }).await?;
    finding_reply(service, finding).await
}

fn numbered(number: &str) -> Result<u32, ApiError> {
    number.parse().map_err(|_| {
        let message = format!("`{number}` is not the number of a finding.");
        ApiError::new(ErrorKind::Invalid, message, Some("Findings are numbered from 1."))
    })
}

/// Scans a text of a finding like that of an entry.
fn check_text(field: &'static str, text: &str) -> Result<(), ApiError> {
    match complaint(field, text) {
        None => Ok(()),
        Some(why) => Err(ApiError::new(
            ErrorKind::Invalid,
            format!("The finding was not written: {why}"),
            None,
        )),
    }
}

/// One finding in its current state.
async fn finding_reply(service: Service, at: FindingKey) -> ApiResult<TaskFinding> {
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let missing = klnode_engine::Rejection::NoSuchFinding { task: at.task, number: at.number };
        let row = snapshot.finding(at)?.ok_or(missing)?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        finding(&snapshot, &reading, at, row)
    })
    .await
    .map(ApiReply)
}

/// The parent tasks of a task, nearest first.
pub(super) fn above(snapshot: &Snapshot, task: TaskId) -> Result<Vec<TaskId>, ApiError> {
    let (mut above, mut last) = (Vec::new(), task);
    while let Some(parent) = snapshot.task(last)?.and_then(|row| row.parent) {
        if above.len() >= CHAIN_TASKS_MAX {
            break;
        }
        above.push(parent);
        last = parent;
    }
    Ok(above)
}

/// The number of findings in the parent tasks of a task.
pub(super) fn handed_down(snapshot: &Snapshot, task: TaskId) -> Result<u32, ApiError> {
    let mut count = 0;
    for task in above(snapshot, task)? {
        count += snapshot.findings_of(task)?.len();
    }
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The findings of a task for the response.
pub(super) fn findings_of(
    snapshot: &Snapshot,
    reading: &ReadContext<'_>,
    task: TaskId,
) -> Result<Vec<TaskFinding>, ApiError> {
    let rows = snapshot.findings_of(task)?.into_iter();
    rows.map(|(at, row)| finding(snapshot, reading, at, row)).collect()
}

fn finding(
    snapshot: &Snapshot,
    reading: &ReadContext<'_>,
    at: FindingKey,
    row: FindingRow,
) -> Result<TaskFinding, ApiError> {
    let (became, reason) = match &row.fate {
        Some(fate) => {
            let of = fate.of.map(|of| format!(" (finding {} of task {})", of.number, of.task));
            (name(fate.became), format!("{}{}", fate.reason, of.unwrap_or_default()))
        }
        None if row.is_once => ("waiting", ONE_TIME.to_owned()),
        None => ("waiting", waiting_reason(snapshot, reading, at)?.to_owned()),
    };
    let entry = row.fate.as_ref().and_then(|fate| fate.entry);
    let found = entry.map(|entry| reading.read_sound(entry)).transpose()?.flatten();
    Ok(TaskFinding {
        task: at.task.to_string(),
        number: at.number,
        agent: row.agent,
        text: row.text,
        severity: row.severity,
        score: row.score,
        confidence: row.confidence,
        anchors: row.anchors,
        verify: row.verify,
        dismissed: row.dismissal.map(|dismissal| dismissal.reason),
        at: row.at.as_millis(),
        became: became.to_owned(),
        reason,
        entry: entry.map(|entry| entry.to_string()),
        code: found.as_ref().map(AssessedEntry::code),
        echoes: row.echoes,
        once: row.is_once,
    })
}

/// Why a finding is waiting.
fn waiting_reason(
    snapshot: &Snapshot,
    reading: &ReadContext<'_>,
    at: FindingKey,
) -> Result<&'static str, ApiError> {
    let task = snapshot.task(at.task)?.map(|task| reading.task_state(&task));
    Ok(waiting_reason_for(snapshot.unsettled_since(at)?, task, reading.now))
}

/// Why a finding is waiting, from the time of its comparison and the state of its task.
fn waiting_reason_for(
    since: Option<WallTime>,
    task: Option<TaskState>,
    now: WallTime,
) -> &'static str {
    match (since, task) {
        (Some(since), _) if since <= now => "it is queued for comparison",
        (Some(_), _) | (None, Some(TaskState::Open)) => "its task is not finished",
        // An earlier version compared no findings of expired tasks.
        (None, Some(TaskState::Expired)) => "its task expired, and no other agent has reported it",
        (None, Some(TaskState::Finished) | None) => "no other agent has reported it yet",
    }
}

fn name(became: FindingResolution) -> &'static str {
    match became {
        FindingResolution::New => "new_entry",
        FindingResolution::Confirmed => "confirmed",
        FindingResolution::Reinforced => "reinforced",
        FindingResolution::FalsePositive => "false_positive",
        FindingResolution::Refused => "refused",
        FindingResolution::Forgotten => "forgotten",
        FindingResolution::Kept => "kept",
    }
}

impl Service {
    /// An entry with the same statement as a waiting finding, or as one whose entry was retracted.
    /// Other findings are not compared; the writer reports their state.
    async fn entry_like(&self, at: FindingKey) -> Result<Option<EntryId>, ApiError> {
        let service = self.clone();
        run_blocking(move |_| {
            let snapshot = service.snapshot()?;
            let Some(row) = snapshot.finding(at)? else { return Ok(None) };
            let now = (service.now)();
            let entry = row.fate.as_ref().and_then(|fate| fate.entry);
            let reading = service.reader.at(&snapshot, now)?;
            let found = entry.map(|entry| reading.read_sound(entry)).transpose()?.flatten();
            let has_entry = found.is_some_and(|found| found.view.state == Shown::Live);
            if row.is_dismissed() || has_entry {
                return Ok(None);
            }
            Ok(entry_like(&service.reader, &service.index, &snapshot, &row, now)?)
        })
        .await
    }

    /// Submits a command about a finding.
    async fn about_finding(
        &self,
        caller: Caller,
        act: FindingCommand,
    ) -> Result<FindingReceipt, ApiError> {
        match self.submit(caller, Command::Finding(Box::new(act))).await? {
            Receipt::Finding(done) => Ok(done),
            _ => {
                Err(ApiError::new(ErrorKind::Failed, "The state of the finding is unknown.", None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_why_a_finding_waits() {
        let [past, now, later] = [1, 2, 3].map(WallTime::from_millis);
        let (open, finished) = (Some(TaskState::Open), Some(TaskState::Finished));
        let expired = Some(TaskState::Expired);
        for (since, task, expect) in [
            (Some(later), open, "its task is not finished"),
            // Not queued for comparison: recorded by an earlier version in a task that is still
            // open.
            (None, open, "its task is not finished"),
            (Some(now), open, "it is queued for comparison"),
            (Some(past), finished, "it is queued for comparison"),
            (Some(past), expired, "it is queued for comparison"),
            (None, finished, "no other agent has reported it yet"),
            (None, None, "no other agent has reported it yet"),
            (None, expired, "its task expired, and no other agent has reported it"),
        ] {
            assert_eq!(waiting_reason_for(since, task, now), expect, "{since:?} {task:?}");
        }
    }
}
