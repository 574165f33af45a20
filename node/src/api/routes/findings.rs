//! Findings: recorded in a task, listed, handed down, dismissed, kept.

use super::anchors::permitted;
use super::tasks::{find, open_task, task_named};
use crate::api::apart::apart;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Body, Params, Path};
use crate::api::server::Service;
use crate::api::types::{Dismiss, Findings, FindingsQuery, NewFinding, TaskFinding};
use crate::engine::{self, CHAIN_TASKS_MAX, Command, FindingAct, FindingDone, Receipt};
use crate::query::{Found, Reading, bind, complaint, entry_like};
use crate::store::Snapshot;
use crate::store::findings::{Became, FindingKey, FindingRow};
use crate::store::tasks::TaskState;
use axum::extract::State;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::time::WallTime;
use klnode_crdt::view::State as Shown;

/// Records what was found in a task. What becomes of it is decided after the task has ended.
#[utoipa::path(post, path = "/v1/tasks/{task}/findings", request_body = NewFinding,
    responses((status = 200, body = TaskFinding)))]
pub(super) async fn record(
    State(service): State<Service>,
    caller: Caller,
    Path(task): Path<String>,
    Body(new): Body<NewFinding>,
) -> Answered<TaskFinding> {
    let task = task_named(&task)?;
    let folder = permitted(caller, new.checkout.as_deref())?;
    let NewFinding { text, severity, confidence, anchors, verify, dismiss, workspace, .. } = new;
    clean("text", &text)?;
    for anchor in &anchors {
        clean("anchors", anchor)?;
    }
    for step in &verify {
        clean("verify", step)?;
    }
    clean("dismiss", dismiss.as_deref().unwrap_or_default())?;
    let workspace = service.workspace_for(workspace.as_deref())?;
    let working = service.clone();
    let written_in = apart(move |_| {
        let snapshot = working.snapshot()?;
        let society = working.society(&snapshot)?;
        Ok(working.reader.written_in(&snapshot, &society, folder.as_deref(), workspace)?)
    });
    let identity = written_in.await?.unwrap_or_default();
    let repositories = bind(&identity, anchors.iter().map(String::as_str));
    let new = engine::NewFinding {
        text,
        severity,
        confidence,
        anchors,
        repositories,
        verify,
        dismissal: dismiss,
        workspace,
    };
    let FindingDone::Recorded(at) =
        service.about_finding(caller, FindingAct::Record(task, new)).await?
    else {
        return Err(ApiError::new(Kind::Failed, "tell which finding was recorded", None));
    };
    told(service, at).await
}

/// Lists the findings of a task, and with `inherited` those of the tasks above it.
#[utoipa::path(get, path = "/v1/tasks/{task}/findings", params(FindingsQuery),
    responses((status = 200, body = Findings)))]
pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    Path(task): Path<String>,
    Params(FindingsQuery { inherited, reader }): Params<FindingsQuery>,
) -> Answered<Findings> {
    let task = task_named(&task)?;
    find(&service, task)?;
    let above = if inherited { above(&service.snapshot()?, task)? } else { Vec::new() };
    if let Some(reader) = reader {
        let to = open_task(&service, &reader)?;
        // Noted before anything is shown: what was seen cannot be unseen.
        for of in [task].iter().chain(&above).filter(|of| **of != to) {
            service.about_finding(caller, FindingAct::Show { of: *of, to }).await?;
        }
    }
    apart(move |_| {
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
    .map(Answer)
}

/// Holds a finding to be a false positive, by the operator's word: it is told as one shortly after,
/// whatever its task does. What was kept, or dismissed for another reason, is not dismissed.
#[utoipa::path(post, path = "/v1/tasks/{task}/findings/{number}/dismiss", request_body = Dismiss,
    responses((status = 200, body = TaskFinding)))]
pub(super) async fn dismiss(
    State(service): State<Service>,
    caller: Caller,
    Path((task, number)): Path<(String, String)>,
    Body(Dismiss { reason }): Body<Dismiss>,
) -> Answered<TaskFinding> {
    let task = task_named(&task)?;
    clean("reason", &reason)?;
    let at = FindingKey { task, number: numbered(&number)? };
    service.about_finding(caller, FindingAct::Dismiss(at, reason)).await?;
    told(service, at).await
}

/// Makes an entry of a finding that waits, by the operator's word: a candidate, since nobody else has
/// found it. Keeping it again changes nothing.
#[utoipa::path(post, path = "/v1/tasks/{task}/findings/{number}/keep",
    responses((status = 200, body = TaskFinding)))]
pub(super) async fn keep(
    State(service): State<Service>,
    caller: Caller,
    Path((task, number)): Path<(String, String)>,
) -> Answered<TaskFinding> {
    let finding = FindingKey { task: task_named(&task)?, number: numbered(&number)? };
    let same = service.entry_like(finding).await?;
    service.about_finding(caller, FindingAct::Keep { finding, same }).await?;
    told(service, finding).await
}

fn numbered(number: &str) -> Result<u32, ApiError> {
    number.parse().map_err(|_| {
        let message = format!("find finding `{number}`: it is no number");
        ApiError::new(Kind::Invalid, message, Some("findings are numbered from 1"))
    })
}

/// A finding passes the same border as an entry: nothing that the scan refuses is kept.
fn clean(field: &'static str, text: &str) -> Result<(), ApiError> {
    match complaint(field, text) {
        None => Ok(()),
        Some(why) => Err(ApiError::new(Kind::Invalid, format!("write the finding: {why}"), None)),
    }
}

/// One finding as it stands.
async fn told(service: Service, at: FindingKey) -> Answered<TaskFinding> {
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let missing = engine::Rejection::NoSuchFinding { task: at.task, number: at.number };
        let row = snapshot.finding(at)?.ok_or(missing)?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        finding(&snapshot, &reading, at, row)
    })
    .await
    .map(Answer)
}

/// The tasks above one, the nearest first.
fn above(snapshot: &Snapshot, task: TaskId) -> Result<Vec<TaskId>, ApiError> {
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

/// How many findings stand above a task.
pub(super) fn handed_down(snapshot: &Snapshot, task: TaskId) -> Result<u32, ApiError> {
    let mut count = 0;
    for task in above(snapshot, task)? {
        count += snapshot.findings_of(task)?.len();
    }
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The findings of a task, as they are answered.
pub(super) fn findings_of(
    snapshot: &Snapshot,
    reading: &Reading<'_>,
    task: TaskId,
) -> Result<Vec<TaskFinding>, ApiError> {
    let rows = snapshot.findings_of(task)?.into_iter();
    rows.map(|(at, row)| finding(snapshot, reading, at, row)).collect()
}

fn finding(
    snapshot: &Snapshot,
    reading: &Reading<'_>,
    at: FindingKey,
    row: FindingRow,
) -> Result<TaskFinding, ApiError> {
    let (became, reason) = match &row.fate {
        Some(fate) => {
            let of = fate.of.map(|of| format!(" (finding {} of task {})", of.number, of.task));
            (name(fate.became), format!("{}{}", fate.reason, of.unwrap_or_default()))
        }
        None => ("waiting", waits(snapshot, reading, at)?.to_owned()),
    };
    let entry = row.fate.as_ref().and_then(|fate| fate.entry);
    let found = entry.map(|entry| reading.read_sound(entry)).transpose()?.flatten();
    Ok(TaskFinding {
        task: at.task.to_string(),
        number: at.number,
        agent: row.agent,
        text: row.text,
        severity: row.severity,
        confidence: row.confidence,
        anchors: row.anchors,
        verify: row.verify,
        dismissed: row.dismissal.map(|dismissal| dismissal.reason),
        at: row.at.as_millis(),
        became: became.to_owned(),
        reason,
        entry: entry.map(|entry| entry.to_string()),
        code: found.as_ref().map(Found::code),
        echoes: row.echoes,
    })
}

/// What a finding waits for.
fn waits(
    snapshot: &Snapshot,
    reading: &Reading<'_>,
    at: FindingKey,
) -> Result<&'static str, ApiError> {
    let task = snapshot.task(at.task)?.map(|task| reading.task_state(&task));
    Ok(waits_for(snapshot.unsettled_since(at)?, task, reading.now))
}

/// The same, by when it is to be compared and how far its task is.
fn waits_for(since: Option<WallTime>, task: Option<TaskState>, now: WallTime) -> &'static str {
    match (since, task) {
        (Some(since), _) if since <= now => "it is about to be compared",
        (Some(_), _) | (None, Some(TaskState::Open)) => "its task is not finished",
        // An earlier version compared nothing of tasks that expired.
        (None, Some(TaskState::Expired)) => {
            "its task expired, and nobody else is known to have found it"
        }
        (None, Some(TaskState::Finished) | None) => "nobody else has found it yet",
    }
}

fn name(became: Became) -> &'static str {
    match became {
        Became::New => "new_entry",
        Became::Confirmed => "confirmed",
        Became::Reinforced => "reinforced",
        Became::FalsePositive => "false_positive",
        Became::Refused => "refused",
        Became::Forgotten => "forgotten",
        Became::Kept => "kept",
    }
}

impl Service {
    /// The entry that says the same as a finding that waits, or whose entry was taken back. Of any
    /// other the writer says what became of it, and nothing is compared.
    async fn entry_like(&self, at: FindingKey) -> Result<Option<EntryId>, ApiError> {
        let service = self.clone();
        apart(move |_| {
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

    /// Has the writer do something about a finding.
    async fn about_finding(
        &self,
        caller: Caller,
        act: FindingAct,
    ) -> Result<FindingDone, ApiError> {
        match self.submit(caller, Command::Finding(Box::new(act))).await? {
            Receipt::Finding(done) => Ok(done),
            _ => Err(ApiError::new(Kind::Failed, "tell what became of the finding", None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_it_waits_for() {
        let [past, now, later] = [1, 2, 3].map(WallTime::from_millis);
        let (open, finished) = (Some(TaskState::Open), Some(TaskState::Finished));
        let expired = Some(TaskState::Expired);
        for (since, task, expect) in [
            (Some(later), open, "its task is not finished"),
            // Listed by nobody: recorded by an earlier version, in a task that goes on.
            (None, open, "its task is not finished"),
            (Some(now), open, "it is about to be compared"),
            (Some(past), finished, "it is about to be compared"),
            (Some(past), expired, "it is about to be compared"),
            (None, finished, "nobody else has found it yet"),
            (None, None, "nobody else has found it yet"),
            (None, expired, "its task expired, and nobody else is known to have found it"),
        ] {
            assert_eq!(waits_for(since, task, now), expect, "{since:?} {task:?}");
        }
    }
}
