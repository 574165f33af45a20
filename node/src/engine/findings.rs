//! Findings: recorded in a task, handed on, dismissed, and settled once the task is over.
//!
//! Whoever compares texts says which are alike (`query::findings`); whether they are evidence for
//! each other is decided here, in the transaction that writes what follows from it. So a finding is
//! settled once, whatever is interrupted in between.

use super::command::{NewEntry, Receipt, Rejection};
use super::ingest::Ingest;
use super::tasks::{chain, invalid, root, served_in_chain, taken};
use crate::store::findings::{Became, DismissalRow, FateRow, FindingKey, FindingRow};
use crate::store::tasks::PartRow;
use crate::store::{Batch, Error};
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::limits::TITLE_CHARS_MAX;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;
use klnode_scoring::compounding::{self, Echo, Finder, Known, Primed, Settlement};
use klnode_scoring::finding::{ANCHORS_MAX, Draft, VERIFY_STEPS_MAX, check, headline};
use std::collections::BTreeSet;

/// Findings of one task.
const TASK_FINDINGS_MAX: usize = 64;
/// Tasks whose findings may be shown in one.
const HANDED_TASKS_MAX: usize = 256;
/// Bytes of the reason why a finding is dismissed.
const REASON_BYTES_MAX: usize = 1024;

/// The topic of every entry that is made of findings.
pub const FINDING_TAG: &str = "finding";
/// The topic of entries that warn of a false positive.
pub const FALSE_POSITIVE_TAG: &str = "false-positive";

/// One thing to do about findings.
#[derive(Clone, Debug)]
pub enum FindingAct {
    /// Records what was found in a task.
    Record(TaskId, NewFinding),
    /// Notes that the operator holds a finding to be a false positive.
    Dismiss(FindingKey, String),
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

/// Another finding that says the same.
struct Other {
    at: FindingKey,
    row: FindingRow,
    finder: Finder,
}

impl Ingest<'_> {
    pub(super) fn about_finding(
        &mut self,
        batch: &Batch,
        act: &FindingAct,
    ) -> Result<Receipt, Rejection> {
        let done = match act {
            FindingAct::Record(task, new) => self.record_finding(batch, *task, new)?,
            FindingAct::Dismiss(at, reason) => self.dismiss(batch, *at, reason)?,
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
        let agent = self.open_task(batch, task)?.agent;
        let NewFinding { text, severity, confidence, anchors, verify, dismissal, workspace } = new;
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
            agent,
            text: text.trim().to_owned(),
            severity: severity.clone(),
            confidence: *confidence,
            anchors: anchors.clone(),
            verify: verify.clone(),
            dismissal: dismissal.as_ref().map(reason),
            workspace: *workspace,
            at: self.now,
            echoes: 0,
            fate: None,
            entries: Vec::new(),
        };
        batch.put_finding(at, &row)?;
        Ok(FindingDone::Recorded(at))
    }

    /// The operator's word needs no second: the finding is to be settled whatever its task does.
    fn dismiss(
        &mut self,
        batch: &Batch,
        at: FindingKey,
        reason: &str,
    ) -> Result<FindingDone, Rejection> {
        let missing = Rejection::NoSuchFinding { task: at.task, number: at.number };
        let row = batch.finding(at)?.filter(|row| !row.is_forgotten()).ok_or(missing)?;
        reasoned(reason)?;
        let was_told = |fate: &FateRow| fate.became == Became::FalsePositive;
        if !row.fate.as_ref().is_some_and(was_told) {
            let dismissal = DismissalRow { reason: reason.to_owned(), is_operators: true };
            batch.put_finding(at, &FindingRow { dismissal: Some(dismissal), fate: None, ..row })?;
            batch.put_unsettled(at, self.now)?;
        }
        Ok(FindingDone::Noted)
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
        for (at, row) in batch.findings_of(task)? {
            if row.fate.is_none() {
                batch.put_unsettled(at, self.now)?;
            }
        }
        Ok(())
    }

    fn settle(&mut self, batch: &Batch, compared: &Compared) -> Result<FindingDone, Rejection> {
        let at = compared.finding;
        if !batch.is_unsettled(at)? {
            return Ok(FindingDone::Unchanged);
        }
        let Some(row) = batch.finding(at)?.filter(|row| !row.is_forgotten()) else {
            batch.drop_unsettled(at)?;
            return Ok(FindingDone::Unchanged);
        };
        if row.is_dismissed() != compared.is_dismissed {
            // It was dismissed since, and is to be compared as that.
            return Ok(FindingDone::Unchanged);
        }
        let finder = finder(batch, at.task, &row)?;
        let others = self.others(batch, &row, compared)?;
        let known = self.known_entry(batch, compared, &others)?;
        let fate = if is_operators(&row) {
            self.tell(batch, (at, &row), known, &others)?
        } else {
            let facts = match known {
                None => None,
                Some(entry) => Some(facts(batch, (at, &finder), entry, compared, &others)?),
            };
            let finders: Vec<Finder> = others.iter().map(|one| one.finder.clone()).collect();
            let settlement = compounding::settle(&finder, facts, &finders);
            self.carry_out(batch, (at, &row), settlement, known, &others)?
        };
        batch.put_finding(at, &with_fate(row, fate.clone()))?;
        batch.drop_unsettled(at)?;
        Ok(FindingDone::Settled(fate))
    }

    /// What the operator dismissed is told as a false positive: by the entry that does so, else by a
    /// new one.
    fn tell(
        &mut self,
        batch: &Batch,
        (at, row): (FindingKey, &FindingRow),
        known: Option<EntryId>,
        others: &[Other],
    ) -> Result<Option<FateRow>, Rejection> {
        if known.is_none() {
            return self.compound(batch, (at, row), None, others);
        }
        let reason = "the operator says so".to_owned();
        Ok(Some(FateRow { became: Became::FalsePositive, entry: known, of: None, reason }))
    }

    /// The others that say the same and may speak: those of tasks that are over.
    fn others(
        &self,
        batch: &Batch,
        row: &FindingRow,
        compared: &Compared,
    ) -> Result<Vec<Other>, Error> {
        let mut others = Vec::new();
        for at in compared.others.iter().filter(|at| **at != compared.finding) {
            let Some(other) = batch.finding(*at)? else { continue };
            let is_over = batch.task(at.task)?.is_some_and(|task| task.end.is_some());
            let fits = other.is_dismissed() == row.is_dismissed()
                && other.workspace == row.workspace
                && !other.is_forgotten();
            if fits && is_over {
                let finder = finder(batch, at.task, &other)?;
                others.push(Other { at: *at, row: other, finder });
            }
        }
        Ok(others)
    }

    /// The entry that says the same: the one that was found so, or one that a finding went into that
    /// says the same.
    fn known_entry(
        &self,
        batch: &Batch,
        compared: &Compared,
        others: &[Other],
    ) -> Result<Option<EntryId>, Error> {
        let found = compared.entry.as_ref().map(|(entry, _)| *entry);
        let through = others.iter().filter_map(|other| other.row.fate.as_ref()?.entry);
        for entry in found.into_iter().chain(through) {
            if batch.view_row(entry)?.is_some_and(|row| !row.is_forgotten) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Writes what follows from a settlement, and says what the finding became.
    fn carry_out(
        &mut self,
        batch: &Batch,
        (at, row): (FindingKey, &FindingRow),
        settlement: Settlement,
        known: Option<EntryId>,
        others: &[Other],
    ) -> Result<Option<FateRow>, Rejection> {
        let fate = |became, entry, reason: &str| {
            Some(FateRow { became, entry, of: None, reason: reason.to_owned() })
        };
        let with = |became| if row.is_dismissed() { Became::FalsePositive } else { became };
        Ok(match (settlement, known) {
            (Settlement::Confirm, Some(entry)) => {
                let root = root(batch, at.task)?;
                match self.count_confirmation(batch, at.task, root, entry) {
                    Ok(()) => fate(with(Became::Confirmed), known, "it was found independently"),
                    Err(refusal) => Some(refused(refusal)?),
                }
            }
            (Settlement::Echo(why), Some(entry)) => {
                self.confirm_primed(batch, entry)?;
                fate(with(Became::Reinforced), known, primed(why))
            }
            (Settlement::Create(with_other), _) => {
                return self.compound(batch, (at, row), others.get(with_other), others);
            }
            (Settlement::Reinforce(of, why), _) => match others.get(of) {
                Some(Other { at, row, .. }) => {
                    let echoes = row.echoes.saturating_add(1);
                    batch.put_finding(*at, &FindingRow { echoes, ..row.clone() })?;
                    let reason = echoed(why).to_owned();
                    let became = Became::Reinforced;
                    Some(FateRow { became, entry: None, of: Some(*at), reason })
                }
                None => None,
            },
            (Settlement::Wait | Settlement::Confirm | Settlement::Echo(_), _) => None,
        })
    }

    /// Makes an entry of a finding and the independent one that says the same; the operator's word
    /// needs no other.
    fn compound(
        &mut self,
        batch: &Batch,
        (at, row): (FindingKey, &FindingRow),
        with: Option<&Other>,
        others: &[Other],
    ) -> Result<Option<FateRow>, Rejection> {
        let mut sources = vec![(at, row)];
        sources.extend(with.map(|other| (other.at, &other.row)));
        let entry = match self.create(batch, &new_entry(&sources)) {
            Ok(Receipt::Created(entry)) => entry,
            Ok(_) => return Ok(None),
            Err(refusal) => return refused(refusal).map(Some),
        };
        let became = if row.is_dismissed() { Became::FalsePositive } else { Became::New };
        let fate = FateRow { became, entry: Some(entry), of: None, reason: String::new() };
        for (source, _) in &sources {
            // Each root task has had its say about the entry.
            let root = root(batch, source.task)?;
            let part = batch.task_part(root, entry)?;
            let part = PartRow { is_confirmed: true, is_counted: true, ..part };
            batch.put_task_part(root, entry, part)?;
        }
        if let Some(other) = with {
            for of in [Observation::Confirmation, Observation::Success] {
                let observed = self.observe(batch, entry, (of, Thousandths::ONE), Some(at.task));
                taken(observed)?;
            }
            let part = batch.task_part(at.task, entry)?;
            batch.put_task_part(at.task, entry, PartRow { is_observed: true, ..part })?;
            let told = with_fate(other.row.clone(), Some(fate.clone()));
            batch.put_finding(other.at, &told)?;
            batch.drop_unsettled(other.at)?;
        }
        // Others that waited have an entry to speak for now.
        let is_with = |other: &Other| with.is_some_and(|with| with.at == other.at);
        for other in others.iter().filter(|other| !is_with(other)) {
            batch.put_unsettled(other.at, self.now)?;
        }
        Ok(Some(fate))
    }
}

/// What is known of an entry that says the same as a finding.
fn facts(
    batch: &Batch,
    (at, finder): (FindingKey, &Finder),
    entry: EntryId,
    compared: &Compared,
    others: &[Other],
) -> Result<Known, Error> {
    let root = root(batch, at.task)?;
    let cited = compared.entry.as_ref().filter(|(found, _)| *found == entry);
    let own = finder.agent.trim().to_lowercase();
    let is_cited =
        cited.is_some_and(|(_, agents)| agents.iter().any(|by| by.trim().to_lowercase() == own));
    let sources = others.iter().filter(|other| other.row.entries.contains(&entry));
    let echoes: Vec<Echo> =
        sources.filter_map(|other| compounding::echo(finder, &other.finder)).collect();
    Ok(Known {
        is_served: served_in_chain(batch, at.task, entry)?.is_some(),
        is_confirmed: batch.task_part(root, entry)?.is_confirmed,
        is_own: is_cited || echoes.contains(&Echo::Agent),
        is_handed: echoes.contains(&Echo::Handed),
    })
}

fn finder(batch: &Batch, task: TaskId, row: &FindingRow) -> Result<Finder, Error> {
    let chain = chain(batch, task)?;
    let mut handed = BTreeSet::new();
    for link in &chain {
        handed.extend(batch.task(*link)?.map(|task| task.handed).unwrap_or_default());
    }
    Ok(Finder { agent: row.agent.clone(), chain, handed })
}

fn is_operators(row: &FindingRow) -> bool {
    row.dismissal.as_ref().is_some_and(|dismissal| dismissal.is_operators)
}

fn with_fate(mut row: FindingRow, fate: Option<FateRow>) -> FindingRow {
    let entry = fate.as_ref().and_then(|fate| fate.entry);
    if let Some(entry) = entry.filter(|entry| !row.entries.contains(entry)) {
        row.entries.push(entry);
    }
    FindingRow { fate, ..row }
}

/// What an entry cannot take is told with the finding; a fault of the store stops everything.
fn refused(refusal: Rejection) -> Result<FateRow, Rejection> {
    if let fault @ Rejection::Store(_) = refusal {
        return Err(fault);
    }
    let reason = format!("cannot {refusal}");
    Ok(FateRow { became: Became::Refused, entry: None, of: None, reason })
}

/// The entry that findings make, in the words of the finder who is surest.
fn new_entry(sources: &[(FindingKey, &FindingRow)]) -> NewEntry {
    let mut best: Vec<&FindingRow> = sources.iter().map(|(_, row)| *row).collect();
    best.sort_by(|a, b| {
        b.confidence.total_cmp(&a.confidence).then(b.text.len().cmp(&a.text.len()))
    });
    let said = best.first().copied();
    let text = said.map(|row| row.text.as_str()).unwrap_or_default();
    let reasons: Vec<&str> =
        best.iter().filter_map(|row| row.dismissal.as_ref()).map(|of| of.reason.as_str()).collect();
    let (title, content, polarity) = if reasons.is_empty() {
        (headline(text, TITLE_CHARS_MAX), text.to_owned(), "positive")
    } else {
        let before = "False positive: ";
        let title = format!("{before}{}", headline(text, TITLE_CHARS_MAX - before.len()));
        (title, format!("{text}\n\nDismissed: {}", reasons.join(" / ")), "negative")
    };
    let tag = match reasons.is_empty() {
        true => format!("severity/{}", said.map(|row| row.severity.as_str()).unwrap_or_default()),
        false => FALSE_POSITIVE_TAG.to_owned(),
    };
    let anchors: BTreeSet<&String> = best.iter().flat_map(|row| &row.anchors).collect();
    let steps = said.map(|row| row.verify.as_slice()).unwrap_or_default();
    let sets = [FINDING_TAG.to_owned(), tag].map(|tag| (TextSet::TAGS, tag)).into_iter();
    let sets = sets.chain(
        anchors.into_iter().take(ANCHORS_MAX).map(|anchor| (TextSet::ANCHORS, anchor.clone())),
    );
    let sets = sets.chain(
        steps.iter().take(VERIFY_STEPS_MAX).map(|step| (TextSet::VERIFY_STEPS, step.clone())),
    );
    NewEntry {
        workspace: said.map_or(WorkspaceId::MAIN, |row| row.workspace),
        memory: Memory::Semantic,
        kind: Kind::Finding,
        title,
        content,
        registers: vec![(Register::POLARITY, polarity.to_owned())],
        claims: sets.map(|(set, text)| Claim::Add(set, text)).collect(),
        citations: sources.iter().map(|(at, row)| citation(*at, row)).collect(),
        source: None,
    }
}

/// The task in which something was found is the evidence for it.
fn citation(at: FindingKey, row: &FindingRow) -> Citation {
    Citation {
        evidence_type: "run".into(),
        evidence_ref: format!("task {}, finding {}", at.task, at.number),
        cited_by: row.agent.clone(),
        cited_at: row.at,
        is_context: false,
    }
}

fn primed(why: Primed) -> &'static str {
    match why {
        Primed::Served => "the entry was served in its task or above it",
        Primed::Again => "its root task has confirmed the entry before",
        Primed::Agent => "the same agent has found it before",
        Primed::Handed => "a finding that the entry is made of was shown in its task",
    }
}

fn echoed(why: Echo) -> &'static str {
    match why {
        Echo::Root => "both were found in one root task",
        Echo::Handed => "one was shown in the other's task",
        Echo::Agent => "the same agent found both",
    }
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
