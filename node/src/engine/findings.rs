//! Findings: recorded in a task, handed on, dismissed or kept, and settled once the task is over,
//! whether somebody finished it or it expired.
//!
//! Whoever compares texts says which are alike (`query::findings`); whether they are evidence for
//! each other is decided in `settle`, in the transaction that writes what follows from it. So a finding is
//! settled once, whatever is interrupted in between.

use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use super::tasks::{chain, invalid};
use crate::store::client_process::SpeakerRow;
use crate::store::findings::{Became, DismissalRow, FateRow, FindingKey, FindingRow};
use crate::store::{Batch, Error};
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_scoring::finding::{Draft, check};
use std::collections::BTreeSet;

/// Findings of one task.
const TASK_FINDINGS_MAX: usize = 64;
/// Tasks whose findings may be shown in one.
const HANDED_TASKS_MAX: usize = 256;
/// Bytes of the reason why a finding is dismissed.
const REASON_BYTES_MAX: usize = 1024;

/// The tag of every entry that is made of findings.
pub const FINDING_TAG: &str = "finding";
/// The tag of entries that warn of a false positive.
pub const FALSE_POSITIVE_TAG: &str = "false-positive";
/// What stands in such an entry between what was found and why it is none.
pub(super) const DISMISSED: &str = "\n\nDismissed: ";
/// What stands between the reasons of several.
pub(super) const BETWEEN_REASONS: &str = " / ";

/// One thing to do about findings.
#[derive(Clone, Debug)]
pub enum FindingAct {
    /// Records what was found in a task.
    Record(TaskId, NewFinding),
    /// Notes that the operator holds a finding to be a false positive.
    Dismiss(FindingKey, String),
    /// Makes an entry of a finding that waits, by the operator's word.
    Keep {
        /// Which.
        finding: FindingKey,
        /// The entry that says the same, if there is one: then there is nothing to make.
        same: Option<EntryId>,
    },
    /// Notes that the findings of one task were shown in another.
    Show {
        /// Whose findings.
        of: TaskId,
        /// Where they were shown.
        to: TaskId,
    },
    /// Decides what becomes of a finding that was compared.
    Settle(Compared),
}

/// What a new finding holds.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFinding {
    /// What was found, in one to three sentences.
    pub text: String,
    /// How grave it is, by name.
    pub severity: String,
    /// How sure the finder is, in [0, 1].
    pub confidence: f64,
    /// Where it is seen: predicates.
    pub anchors: Vec<String>,
    /// The repositories of those predicates: elements of `TextSet::ANCHOR_REPOSITORIES`.
    pub repositories: Vec<String>,
    /// How to check that it still holds.
    pub verify: Vec<String>,
    /// Why it is a false positive, if the finder says that it is one.
    pub dismissal: Option<String>,
    /// Where an entry made of it goes.
    pub workspace: WorkspaceId,
}

/// A finding with what says the same, the nearest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Which.
    pub finding: FindingKey,
    /// Whether it was dismissed when it was compared.
    pub is_dismissed: bool,
    /// The entry that says the same, with the agents that are cited for it.
    pub entry: Option<(EntryId, BTreeSet<String>)>,
    /// Findings that do.
    pub others: Vec<FindingKey>,
}

/// What was done about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingDone {
    /// It is recorded.
    Recorded(FindingKey),
    /// It is noted, or was before.
    Noted,
    /// It is settled; it waits where there is no fate.
    Settled(Option<FateRow>),
    /// There was nothing to settle.
    Unchanged,
}

impl Ingest<'_> {
    pub(super) fn about_finding(
        &mut self,
        batch: &Batch,
        act: &FindingAct,
    ) -> Result<Receipt, Rejection> {
        let done = match act {
            FindingAct::Record(task, new) => self.record_finding(batch, *task, new)?,
            FindingAct::Dismiss(at, reason) => self.dismiss_finding(batch, *at, reason)?,
            FindingAct::Keep { finding, same } => self.keep_finding(batch, *finding, *same)?,
            FindingAct::Show { of, to } => self.show_findings(batch, *of, *to)?,
            FindingAct::Settle(compared) => self.settle(batch, compared)?,
        };
        Ok(Receipt::Finding(done))
    }

    fn record_finding(
        &mut self,
        batch: &Batch,
        task: TaskId,
        new: &NewFinding,
    ) -> Result<FindingDone, Rejection> {
        let of = self.open_task(batch, task)?;
        let NewFinding { text, severity, confidence, anchors, verify, dismissal, .. } = new;
        let draft = Draft { text, severity, confidence: *confidence, anchors, verify };
        check(&draft).map_err(|problem| bad(problem.field, problem.problem))?;
        if let Some(reason) = dismissal {
            reasoned(reason)?;
        }
        let held = batch.findings_of(task)?;
        if held.len() >= TASK_FINDINGS_MAX {
            let problem =
                format!("of this task are {}; {TASK_FINDINGS_MAX} are allowed", held.len());
            return Err(bad("findings", problem));
        }
        let number = held.last().map_or(0, |(at, _)| at.number).saturating_add(1);
        let at = FindingKey { task, number };
        let reason = |reason: &String| DismissalRow { reason: reason.clone(), is_operators: false };
        let row = FindingRow {
            agent: of.agent,
            text: text.trim().to_owned(),
            severity: severity.clone(),
            confidence: *confidence,
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
        };
        // If nobody finishes the task, what was found in it is compared when it expires.
        batch.put_unsettled(at, of.begun.plus(self.writer.tasks.expires_after))?;
        batch.put_finding(at, &row)?;
        Ok(FindingDone::Recorded(at))
    }

    /// The operator's word needs no second: the finding is to be settled whatever its task does. It
    /// is one word: to say the opposite, or the same for another reason, the entry that was made of
    /// it is taken back first.
    fn dismiss_finding(
        &mut self,
        batch: &Batch,
        at: FindingKey,
        reason: &str,
    ) -> Result<FindingDone, Rejection> {
        let missing = Rejection::NoSuchFinding { task: at.task, number: at.number };
        let row = batch.finding(at)?.filter(|row| !row.is_forgotten()).ok_or(missing)?;
        reasoned(reason)?;
        if let Some(problem) = self.said_before(batch, &row)? {
            if row.dismissal.as_ref().is_some_and(|said| is_among(reason, said)) {
                return Ok(FindingDone::Noted);
            }
            let FindingKey { task, number } = at;
            return Err(Rejection::UnfitFinding { verb: "dismiss", task, number, problem });
        }
        let reason = match &row.dismissal {
            // What its agent found out stays.
            Some(said) if is_among(reason, said) => said.reason.clone(),
            Some(said) if !said.is_operators => {
                format!("{}{BETWEEN_REASONS}{reason}", said.reason)
            }
            _ => reason.to_owned(),
        };
        let dismissal = Some(DismissalRow { reason, is_operators: true });
        batch.put_finding(at, &FindingRow { dismissal, fate: None, ..row })?;
        batch.put_unsettled(at, self.now)?;
        Ok(FindingDone::Noted)
    }

    /// What was said of a finding that leaves the operator nothing to dismiss, if so.
    fn said_before(&self, batch: &Batch, row: &FindingRow) -> Result<Option<String>, Error> {
        let Some(fate) = &row.fate else {
            let is_operators = row.dismissal.as_ref().is_some_and(|said| said.is_operators);
            return Ok(is_operators.then(|| "it was dismissed before".to_owned()));
        };
        let code = fate.entry.map(|entry| self.speaking(batch, entry)).transpose()?.flatten();
        Ok(code.and_then(|code| match fate.became {
            Became::Kept => Some(format!("it was kept as entry {code}; `klnode retract` it first")),
            Became::FalsePositive => Some(format!(
                "entry {code} tells it as a false positive; `klnode edit` or `klnode retract` that"
            )),
            _ => None,
        }))
    }

    /// What is shown in a task primes it. What stands above it does so anyway.
    fn show_findings(
        &mut self,
        batch: &Batch,
        of: TaskId,
        to: TaskId,
    ) -> Result<FindingDone, Rejection> {
        let mut row = self.open_task(batch, to)?;
        batch.task(of)?.ok_or(Rejection::NoSuchTask(of))?;
        if row.handed.contains(&of) || chain(batch, to)?.contains(&of) {
            return Ok(FindingDone::Noted);
        }
        if row.handed.len() >= HANDED_TASKS_MAX {
            let problem =
                format!("has seen the findings of {HANDED_TASKS_MAX} others; no more fit");
            return Err(invalid("reader", problem));
        }
        row.handed.push(of);
        batch.put_task(to, &row)?;
        Ok(FindingDone::Noted)
    }

    /// Has everything compared that was found in a task which is over.
    pub(super) fn release_findings(&self, batch: &Batch, task: TaskId) -> Result<(), Error> {
        // Where one is damaged the others are compared when the task would have expired.
        let findings = Error::unless_damaged(batch.findings_of(task))?.unwrap_or_default();
        for (at, row) in findings {
            if row.fate.is_none() {
                batch.put_unsettled(at, self.now)?;
            }
        }
        Ok(())
    }
}

/// Whether a reason was given for a dismissal, alone or after that of another.
fn is_among(reason: &str, said: &DismissalRow) -> bool {
    let before = said.reason.strip_suffix(reason);
    before.is_some_and(|before| before.is_empty() || before.ends_with(BETWEEN_REASONS))
}

fn bad(field: &'static str, problem: impl Into<String>) -> Rejection {
    Rejection::InvalidFinding { field, problem: problem.into() }
}

fn reasoned(reason: &str) -> Result<(), Rejection> {
    if reason.trim().is_empty() {
        return Err(bad("reason", "is empty; say why it is a false positive"));
    }
    if reason.len() > REASON_BYTES_MAX {
        let problem = format!("has {} bytes; {REASON_BYTES_MAX} are allowed", reason.len());
        return Err(bad("reason", problem));
    }
    Ok(())
}
