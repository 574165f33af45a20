//! Findings: recorded in a task, shown in other tasks, dismissed or kept, and resolved once the
//! task is finished or has expired.
//!
//! The query crate (`finding_matches`) compares texts and says which are alike.
//! `finding_resolution` decides whether they are evidence for each other, in the same transaction
//! that writes the consequences, so a finding is resolved exactly once even if the process is
//! interrupted in between.

use super::command::{FindingCommand, FindingReceipt, NewFinding, Receipt, Rejection};
use super::record_intake::Transaction;
use super::tasks::{chain, invalid};
use klnode_crdt::ids::TaskId;
use klnode_scoring::finding_validation::{FindingDraft, check, grade};
use klnode_scoring::strict_entry_form;
use klnode_store::client_process::SpeakerRow;
use klnode_store::findings::{DismissalRow, FindingKey, FindingResolution, FindingRow};
use klnode_store::{Batch, Error};

/// Most findings per task.
const TASK_FINDINGS_MAX: usize = 64;
/// Most tasks whose findings may be shown in one task.
const HANDED_TASKS_MAX: usize = 256;
/// Most bytes of the reason for a dismissal.
const REASON_BYTES_MAX: usize = 1024;

/// Tag of every entry that was created from findings.
pub const FINDING_TAG: &str = "finding";
/// Tag of entries that warn of a false positive.
pub const FALSE_POSITIVE_TAG: &str = "false-positive";
/// Separates text and reason of dismissal in a false-positive entry.
pub(super) const DISMISSED: &str = "\n\nDismissed: ";
/// Separates several reasons of dismissal.
pub(super) const BETWEEN_REASONS: &str = " / ";

impl Transaction<'_> {
    pub(super) fn about_finding(
        &mut self,
        batch: &Batch,
        act: &FindingCommand,
    ) -> Result<Receipt, Rejection> {
        let done = match act {
            FindingCommand::Record(task, new) => self.record_finding(batch, *task, new)?,
            FindingCommand::Dismiss(at, reason) => self.dismiss_finding(batch, *at, reason)?,
            FindingCommand::Keep { finding, same } => self.keep_finding(batch, *finding, *same)?,
            FindingCommand::Show { of, to } => self.show_findings(batch, *of, *to)?,
            FindingCommand::Settle(compared) => self.resolve_finding(batch, compared)?,
        };
        Ok(Receipt::Finding(done))
    }

    fn record_finding(
        &mut self,
        batch: &Batch,
        task: TaskId,
        new: &NewFinding,
    ) -> Result<FindingReceipt, Rejection> {
        let of = self.open_task(batch, task)?;
        let NewFinding { text, severity, confidence, anchors, verify, dismissal, .. } = new;
        let draft = FindingDraft { text, severity, confidence: *confidence, anchors, verify };
        let graded = check(&draft).and_then(|()| grade(severity, *confidence));
        let graded = graded.map_err(|problem| invalid_finding(problem.field, problem.problem))?;
        if let Some(reason) = dismissal {
            check_reason(reason)?;
        }
        if self.is_strict(batch, new.workspace)? {
            strict_entry_form::check(text, anchors.len(), verify.len())
                .map_err(|problem| invalid_finding(problem.field, problem.problem))?;
        }
        let held = batch.findings_of(task)?;
        if held.len() >= TASK_FINDINGS_MAX {
            let problem = format!(
                "are too many: this task has {}, and {TASK_FINDINGS_MAX} are allowed",
                held.len()
            );
            return Err(invalid_finding("findings", problem));
        }
        let number = held.last().map_or(0, |(at, _)| at.number).saturating_add(1);
        let at = FindingKey { task, number };
        let reason = |reason: &String| DismissalRow { reason: reason.clone(), is_operators: false };
        let row = FindingRow {
            agent: of.agent,
            text: text.trim().to_owned(),
            severity: graded.severity.name().to_owned(),
            confidence: graded.confidence,
            anchors: anchors.clone(),
            repositories: new.repositories.clone(),
            verify: verify.clone(),
            dismissal: dismissal.as_ref().map(reason),
            workspace: new.workspace,
            at: self.now,
            echoes: 0,
            fate: None,
            session: self.session(),
            speaker: self.caller.as_ref().map(SpeakerRow::from),
            entries: Vec::new(),
            score: graded.score,
            is_once: new.is_once,
        };
        // If the task is never finished, its findings are compared when it expires.
        batch.put_unsettled(at, of.begun.plus(self.writer.tasks.expires_after))?;
        batch.put_finding(at, &row)?;
        Ok(FindingReceipt::Recorded(at))
    }

    /// Notes that the operator dismissed a finding. The operator needs no confirmation, so the
    /// finding is resolved even if its task is open. The decision is final: to reverse it or change
    /// its reason, the operator first retracts the entry created from it.
    fn dismiss_finding(
        &mut self,
        batch: &Batch,
        at: FindingKey,
        reason: &str,
    ) -> Result<FindingReceipt, Rejection> {
        let missing = Rejection::NoSuchFinding { task: at.task, number: at.number };
        let row = batch.finding(at)?.filter(|row| !row.is_forgotten()).ok_or(missing)?;
        check_reason(reason)?;
        if let Some(problem) = self.dismissal_obstacle(batch, &row)? {
            if row.dismissal.as_ref().is_some_and(|said| is_among(reason, said)) {
                return Ok(FindingReceipt::Noted);
            }
            let FindingKey { task, number } = at;
            return Err(Rejection::UnfitFinding { verb: "dismiss", task, number, problem });
        }
        let reason = match &row.dismissal {
            // Keep the reason given by the agent.
            Some(said) if is_among(reason, said) => said.reason.clone(),
            Some(said) if !said.is_operators => {
                format!("{}{BETWEEN_REASONS}{reason}", said.reason)
            }
            _ => reason.to_owned(),
        };
        let dismissal = Some(DismissalRow { reason, is_operators: true });
        batch.put_finding(at, &FindingRow { dismissal, fate: None, ..row })?;
        batch.put_unsettled(at, self.now)?;
        Ok(FindingReceipt::Noted)
    }

    /// Returns the reason if the finding leaves the operator nothing to dismiss.
    fn dismissal_obstacle(&self, batch: &Batch, row: &FindingRow) -> Result<Option<String>, Error> {
        let Some(fate) = &row.fate else {
            let is_operators = row.dismissal.as_ref().is_some_and(|said| said.is_operators);
            return Ok(is_operators.then(|| "it was dismissed before".to_owned()));
        };
        let code = fate.entry.map(|entry| self.live_code(batch, entry)).transpose()?.flatten();
        Ok(code.and_then(|code| match fate.became {
            FindingResolution::Kept => {
                Some(format!("it was kept as entry {code}; retract that entry first"))
            }
            FindingResolution::FalsePositive => Some(format!(
                "entry {code} records it as a false positive; edit or retract that entry"
            )),
            _ => None,
        }))
    }

    /// Notes that findings were shown in a task, which primes it. Parent tasks prime it in any
    /// case.
    fn show_findings(
        &mut self,
        batch: &Batch,
        of: TaskId,
        to: TaskId,
    ) -> Result<FindingReceipt, Rejection> {
        let mut row = self.open_task(batch, to)?;
        batch.task(of)?.ok_or(Rejection::NoSuchTask(of))?;
        if row.handed.contains(&of) || chain(batch, to)?.contains(&of) {
            return Ok(FindingReceipt::Noted);
        }
        if row.handed.len() >= HANDED_TASKS_MAX {
            let problem = format!(
                "has seen the findings of {HANDED_TASKS_MAX} other tasks, which is the limit"
            );
            return Err(invalid("reader", problem));
        }
        row.handed.push(of);
        batch.put_task(to, &row)?;
        Ok(FindingReceipt::Noted)
    }

    /// Queues the findings of a finished task for comparison.
    pub(super) fn release_findings(&self, batch: &Batch, task: TaskId) -> Result<(), Error> {
        // If one is damaged, the others are compared at the time the task would have expired.
        let findings = Error::unless_damaged(batch.findings_of(task))?.unwrap_or_default();
        for (at, row) in findings {
            if row.fate.is_none() {
                batch.put_unsettled(at, self.now)?;
            }
        }
        Ok(())
    }
}

/// Whether this reason was given for the dismissal, alone or appended to another.
fn is_among(reason: &str, said: &DismissalRow) -> bool {
    let before = said.reason.strip_suffix(reason);
    before.is_some_and(|before| before.is_empty() || before.ends_with(BETWEEN_REASONS))
}

fn invalid_finding(field: &'static str, problem: impl Into<String>) -> Rejection {
    Rejection::InvalidFinding { field, problem: problem.into() }
}

fn check_reason(reason: &str) -> Result<(), Rejection> {
    if reason.trim().is_empty() {
        return Err(invalid_finding("reason", "is empty; say why it is a false positive"));
    }
    if reason.len() > REASON_BYTES_MAX {
        let problem = format!("has {} bytes; {REASON_BYTES_MAX} are allowed", reason.len());
        return Err(invalid_finding("reason", problem));
    }
    Ok(())
}
