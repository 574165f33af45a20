//! Resolves a finding after it was compared with others, or by the operator's decision. The
//! decision and all writes that follow from it share one transaction.
//!
//! Separate from the other finding commands because only these create entries and count
//! observations.

use super::caller_priming::Speaker;
use super::command::{ComparedFinding, FindingReceipt, Receipt, Rejection, was_written};
use super::confirmation::is_confirmed;
use super::finding_entries;
use super::record_intake::Transaction;
use super::tasks::{chain, root};
use klnode_crdt::entry_view::State;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_scoring::finding_resolution::{
    self, EchoReason, Finder, MatchedEntry, PrimedReason, Settlement,
};
use klnode_scoring::lone_finding::KnowledgeSection;
use klnode_store::findings::{FateRow, FindingKey, FindingResolution, FindingRow};
use klnode_store::tasks::PartRow;
use klnode_store::{Batch, Error};
use std::collections::BTreeSet;

/// Reason stored when the operator decided.
const OPERATORS_WORD: &str = "decided by the operator";
/// Reason stored when another agent of the user confirmed the entry today, so the finding adds
/// nothing.
const USER_AGAIN: &str = "an agent of the same user confirmed the entry earlier today";

/// A matching finding.
struct MatchingFinding {
    at: FindingKey,
    row: FindingRow,
    finder: Finder,
}

impl Transaction<'_> {
    pub(super) fn resolve_finding(
        &mut self,
        batch: &Batch,
        compared: &ComparedFinding,
    ) -> Result<FindingReceipt, Rejection> {
        let at = compared.finding;
        if !batch.is_unsettled(at)? {
            return Ok(FindingReceipt::Unchanged);
        }
        let Some(row) = batch.finding(at)?.filter(|row| !row.is_forgotten()) else {
            batch.drop_unsettled(at)?;
            return Ok(FindingReceipt::Unchanged);
        };
        if row.is_dismissed() != compared.is_dismissed {
            // The finding was dismissed since the comparison; it will be compared again as
            // dismissed.
            return Ok(FindingReceipt::Unchanged);
        }
        if row.is_kept() {
            self.queue_matches(batch, &row, compared)?;
            return Ok(FindingReceipt::Settled(row.fate));
        }
        if let Some(open) = batch.task(at.task)?.filter(|task| self.is_open(task))
            && !is_operators(&row)
        {
            // The task is still open, so its expiry is later than the time stored with the finding.
            batch.put_unsettled(at, open.begun.plus(self.writer.tasks.expires_after))?;
            return Ok(FindingReceipt::Unchanged);
        }
        if row.is_once && !is_operators(&row) {
            batch.drop_unsettled(at)?;
            return Ok(FindingReceipt::Settled(None));
        }
        let finder = finder(batch, at.task, &row)?;
        let others = self.matches(batch, &row, compared)?;
        let known = self.known_entry(batch, compared, &others)?;
        if let Some(entry) = known {
            self.add_to_namespace(batch, entry, &row)?;
        }
        let fate = if is_operators(&row) {
            self.record_false_positive(batch, (at, &row), known, &others)?
        } else {
            let facts = match known {
                None => None,
                Some(entry) => {
                    let met =
                        self.priming_cause(batch, at.task, entry, &Speaker::of_finding(&row))?;
                    Some(facts(batch, (at, &finder), entry, compared, (&others, met.is_some()))?)
                }
            };
            let finders: Vec<Finder> = others.iter().map(|one| one.finder.clone()).collect();
            let settlement = finding_resolution::settle(&finder, facts, &finders);
            match (settlement, finding_entries::accepted(&row, &self.writer.tasks.lone)) {
                (Settlement::Wait | Settlement::Reinforce(..), Some(section)) => {
                    let fate = self.create_alone(batch, (at, &row), section, &others)?;
                    fate.map(|fate| FateRow { reason: finding_entries::reason(&row), ..fate })
                }
                (settlement, _) => {
                    self.apply_settlement(batch, (at, &row), settlement, known, &others)?
                }
            }
        };
        batch.put_finding(at, &with_fate(row, fate.clone()))?;
        batch.drop_unsettled(at)?;
        Ok(FindingReceipt::Settled(fate))
    }

    /// Creates an entry from an unresolved finding by the operator's decision. The entry is a
    /// candidate without any observation, because no second agent has found it. The finding stays
    /// in the queue so that it is compared with other unresolved findings, which may confirm the
    /// entry.
    pub(super) fn keep_finding(
        &mut self,
        batch: &Batch,
        at: FindingKey,
        same: Option<EntryId>,
    ) -> Result<FindingReceipt, Rejection> {
        let FindingKey { task, number } = at;
        let missing = Rejection::NoSuchFinding { task, number };
        let row = batch.finding(at)?.filter(|row| !row.is_forgotten()).ok_or(missing)?;
        let kept = row.fate.as_ref().filter(|_| row.is_kept()).and_then(|fate| fate.entry);
        if let Some(entry) = kept
            && self.live_code(batch, entry)?.is_some()
        {
            return Ok(FindingReceipt::Noted);
        }
        if let Some(problem) = self.obstacle(batch, &row, same)? {
            return Err(Rejection::UnfitFinding { verb: "keep", task, number, problem });
        }
        let Some(entry) = self.create_entry(batch, &[(at, &row)], None)? else {
            return Ok(FindingReceipt::Unchanged);
        };
        let (became, reason) = (FindingResolution::Kept, OPERATORS_WORD.to_owned());
        let fate = Some(FateRow { became, entry: Some(entry), of: None, reason });
        batch.put_finding(at, &with_fate(row, fate.clone()))?;
        batch.put_unsettled(at, self.now)?;
        Ok(FindingReceipt::Settled(fate))
    }

    /// Marks the matching findings without an entry as unsettled, so that they are compared again
    /// and can confirm the entry of the kept finding, which is settled now.
    fn queue_matches(
        &self,
        batch: &Batch,
        row: &FindingRow,
        compared: &ComparedFinding,
    ) -> Result<(), Error> {
        for other in self.matches(batch, row, compared)? {
            if other.row.fate.is_none_or(|fate| fate.entry.is_none()) {
                batch.put_unsettled(other.at, self.now)?;
            }
        }
        batch.drop_unsettled(compared.finding)
    }

    /// Resolves a finding that the operator dismissed: the known false-positive entry covers it, or
    /// a new one is created.
    fn record_false_positive(
        &mut self,
        batch: &Batch,
        (at, row): (FindingKey, &FindingRow),
        known: Option<EntryId>,
        others: &[MatchingFinding],
    ) -> Result<Option<FateRow>, Rejection> {
        if known.is_none() {
            return self.create_alone(batch, (at, row), KnowledgeSection::FalsePositive, others);
        }
        let reason = OPERATORS_WORD.to_owned();
        Ok(Some(FateRow {
            became: FindingResolution::FalsePositive,
            entry: known,
            of: None,
            reason,
        }))
    }

    /// Returns the matching findings that may count: those of finished tasks, and those that
    /// already belong to an entry, since the operator's decision does not wait for the task to end.
    fn matches(
        &self,
        batch: &Batch,
        row: &FindingRow,
        compared: &ComparedFinding,
    ) -> Result<Vec<MatchingFinding>, Error> {
        let mut others = Vec::new();
        for at in compared.others.iter().filter(|at| **at != compared.finding) {
            let Some(other) = batch.finding(*at)? else { continue };
            let is_over = batch.task(at.task)?.is_some_and(|task| !self.is_open(&task));
            let fits = other.is_dismissed() == row.is_dismissed()
                && other.workspace == row.workspace
                && !other.is_once
                && !other.is_forgotten();
            let has_spoken = other.fate.as_ref().is_some_and(|fate| fate.entry.is_some());
            if fits && (is_over || has_spoken) {
                let finder = finder(batch, at.task, &other)?;
                others.push(MatchingFinding { at: *at, row: other, finder });
            }
        }
        Ok(others)
    }

    /// Returns the matching entry: the one from the comparison, or an entry that a matching finding
    /// was resolved into.
    fn known_entry(
        &self,
        batch: &Batch,
        compared: &ComparedFinding,
        others: &[MatchingFinding],
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

    /// Applies a settlement and returns the resulting state of the finding.
    fn apply_settlement(
        &mut self,
        batch: &Batch,
        (at, row): (FindingKey, &FindingRow),
        settlement: Settlement,
        known: Option<EntryId>,
        others: &[MatchingFinding],
    ) -> Result<Option<FateRow>, Rejection> {
        let fate = |became, entry, reason: &str| {
            Some(FateRow { became, entry, of: None, reason: reason.to_owned() })
        };
        let with =
            |became| if row.is_dismissed() { FindingResolution::FalsePositive } else { became };
        Ok(match (settlement, known) {
            (Settlement::Confirm, Some(entry)) => {
                let speaker = Speaker::of_finding(row);
                if self.is_confirmed_today(batch, entry, &speaker)? {
                    self.confirm_primed(batch, entry)?;
                    return Ok(fate(with(FindingResolution::Reinforced), known, USER_AGAIN));
                }
                let root = root(batch, at.task)?;
                match self.count_confirmation(batch, at.task, root, entry) {
                    Ok(()) => {
                        self.note_confirmed_today(batch, entry, &speaker)?;
                        fate(
                            with(FindingResolution::Confirmed),
                            known,
                            "it was found independently",
                        )
                    }
                    Err(refusal) => Some(refused(refusal)?),
                }
            }
            (Settlement::Echo(why), Some(entry)) => {
                self.confirm_primed(batch, entry)?;
                fate(with(FindingResolution::Reinforced), known, primed(why))
            }
            (Settlement::Create(with_other), _) => {
                return self.create_from_match(batch, (at, row), others.get(with_other), others);
            }
            (Settlement::Reinforce(of, why), _) => match others.get(of) {
                Some(MatchingFinding { at, row, .. }) => {
                    let echoes = row.echoes.saturating_add(1);
                    batch.put_finding(*at, &FindingRow { echoes, ..row.clone() })?;
                    let reason = echoed(why).to_owned();
                    let became = FindingResolution::Reinforced;
                    Some(FateRow { became, entry: None, of: Some(*at), reason })
                }
                None => None,
            },
            (Settlement::Wait | Settlement::Confirm | Settlement::Echo(_), _) => None,
        })
    }

    /// Creates an entry from a finding that needs no match: the operator dismissed it, or the node
    /// accepts it alone.
    fn create_alone(
        &mut self,
        batch: &Batch,
        source: (FindingKey, &FindingRow),
        section: KnowledgeSection,
        others: &[MatchingFinding],
    ) -> Result<Option<FateRow>, Rejection> {
        self.create_from(batch, source, (None, Some(section)), others)
    }

    /// Creates an entry from a finding and an independent match.
    fn create_from_match(
        &mut self,
        batch: &Batch,
        source: (FindingKey, &FindingRow),
        with: Option<&MatchingFinding>,
        others: &[MatchingFinding],
    ) -> Result<Option<FateRow>, Rejection> {
        self.create_from(batch, source, (with, None), others)
    }

    fn create_from(
        &mut self,
        batch: &Batch,
        (at, row): (FindingKey, &FindingRow),
        (with, section): (Option<&MatchingFinding>, Option<KnowledgeSection>),
        others: &[MatchingFinding],
    ) -> Result<Option<FateRow>, Rejection> {
        let mut sources = vec![(at, row)];
        sources.extend(with.map(|other| (other.at, &other.row)));
        let entry = match self.create_entry(batch, &sources, section) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(None),
            Err(refusal) => return refused(refusal).map(Some),
        };
        let became = if row.is_dismissed() {
            FindingResolution::FalsePositive
        } else {
            FindingResolution::New
        };
        let fate = FateRow { became, entry: Some(entry), of: None, reason: String::new() };
        if let Some(other) = with {
            for of in [Observation::Confirmation, Observation::Success] {
                let observed = self.observe(batch, entry, (of, Thousandths::ONE), Some(at.task));
                was_written(observed)?;
            }
            self.note_confirmed_today(batch, entry, &Speaker::of_finding(row))?;
            let part = batch.task_part(at.task, entry)?;
            batch.put_task_part(at.task, entry, &PartRow { is_observed: true, ..part })?;
            let told = with_fate(other.row.clone(), Some(fate.clone()));
            batch.put_finding(other.at, &told)?;
            batch.drop_unsettled(other.at)?;
        }
        // The other matching findings have an entry to confirm now.
        let is_with = |other: &MatchingFinding| with.is_some_and(|with| with.at == other.at);
        for other in others.iter().filter(|other| !is_with(other)) {
            batch.put_unsettled(other.at, self.now)?;
        }
        Ok(Some(fate))
    }

    /// Creates the entry from its source findings, and marks it in their root tasks as confirmed
    /// and counted.
    fn create_entry(
        &mut self,
        batch: &Batch,
        sources: &[(FindingKey, &FindingRow)],
        section: Option<KnowledgeSection>,
    ) -> Result<Option<EntryId>, Rejection> {
        let mut new = finding_entries::new_entry(sources, section);
        if self.is_from_failed_work(batch, sources)? {
            new.registers.push((Register::FAILED_WORK, "true".to_owned()));
        }
        let Receipt::Created(entry) = self.create(batch, &new)? else { return Ok(None) };
        for (source, _) in sources {
            let root = root(batch, source.task)?;
            let part = batch.task_part(root, entry)?;
            let part = PartRow { is_confirmed: true, is_counted: true, ..part };
            batch.put_task_part(root, entry, &part)?;
        }
        Ok(Some(entry))
    }

    /// Whether every source task failed or was abandoned.
    fn is_from_failed_work(
        &self,
        batch: &Batch,
        sources: &[(FindingKey, &FindingRow)],
    ) -> Result<bool, Error> {
        for (at, _) in sources {
            let Some(task) = batch.task(at.task)? else { return Ok(false) };
            if self.is_open(&task) || task.end.is_some_and(|end| end.is_success) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the reason if no entry may be created from a finding. An existing entry is named by
    /// its code.
    fn obstacle(
        &self,
        batch: &Batch,
        row: &FindingRow,
        same: Option<EntryId>,
    ) -> Result<Option<String>, Error> {
        let fate = row.fate.as_ref();
        if let Some((became, entry)) = fate.and_then(|fate| Some((fate.became, fate.entry?)))
            && let Some(code) = self.live_code(batch, entry)?
        {
            return Ok(Some(match became {
                FindingResolution::New => format!("it became entry {code}"),
                FindingResolution::FalsePositive => {
                    format!("entry {code} records it as a false positive")
                }
                _ => format!("entry {code} already covers it"),
            }));
        }
        if row.is_dismissed() {
            return Ok(Some("it was dismissed as a false positive".to_owned()));
        }
        let mut through = None;
        if let Some(of) = fate.and_then(|fate| fate.of)
            && let Some(other) = batch.finding(of)?.filter(|other| !other.is_dismissed())
        {
            let FindingKey { task, number } = of;
            // Two findings compared at the same time may each be an echo of the other; then neither
            // is waiting.
            if other.fate.is_none() {
                let problem = format!("finding {number} of task {task} matches it; keep that one");
                return Ok(Some(problem));
            }
            through = other.fate.and_then(|fate| fate.entry);
        }
        for entry in through.into_iter().chain(same) {
            if let Some(code) = self.live_code(batch, entry)? {
                return Ok(Some(format!("entry {code} already covers it")));
            }
        }
        Ok(None)
    }

    /// Returns the code of an entry if it is live. A retracted or forgotten entry blocks no
    /// finding.
    pub(super) fn live_code(&self, batch: &Batch, entry: EntryId) -> Result<Option<String>, Error> {
        let is_live = self.view(batch, entry)?.is_some_and(|view| view.state == State::Live);
        if !is_live {
            return Ok(None);
        }
        Ok(Some(batch.entry(entry)?.code(entry)))
    }
}

/// Facts about the matching entry that decide whether the finding confirms it.
fn facts(
    batch: &Batch,
    (at, finder): (FindingKey, &Finder),
    entry: EntryId,
    compared: &ComparedFinding,
    (others, is_served): (&[MatchingFinding], bool),
) -> Result<MatchedEntry, Error> {
    let root = root(batch, at.task)?;
    let cited = compared.entry.as_ref().filter(|(found, _)| *found == entry);
    let own = finder.agent.trim().to_lowercase();
    let is_cited =
        cited.is_some_and(|(_, agents)| agents.iter().any(|by| by.trim().to_lowercase() == own));
    let sources = others.iter().filter(|other| other.row.entries.contains(&entry));
    let echoes: Vec<EchoReason> =
        sources.filter_map(|other| finding_resolution::echo(finder, &other.finder)).collect();
    Ok(MatchedEntry {
        is_served,
        is_confirmed: is_confirmed(batch, root, entry)?,
        is_own: is_cited || echoes.contains(&EchoReason::Agent),
        is_handed: echoes.contains(&EchoReason::Handed),
    })
}

fn finder(batch: &Batch, task: TaskId, row: &FindingRow) -> Result<Finder, Error> {
    let chain = chain(batch, task)?;
    let (mut handed, mut sessions) = (BTreeSet::new(), BTreeSet::new());
    sessions.extend(row.session.map(|session| session.to_string()));
    for link in &chain {
        let Some(task) = batch.task(*link)? else { continue };
        handed.extend(task.handed);
        sessions.extend(task.session.map(|session| session.to_string()));
    }
    Ok(Finder { agent: row.agent.clone(), chain, handed, sessions })
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

/// Turns a rejection into the state of the finding. A store fault is passed on instead.
fn refused(refusal: Rejection) -> Result<FateRow, Rejection> {
    if let fault @ Rejection::Store(_) = refusal {
        return Err(fault);
    }
    let reason = refusal.to_string();
    Ok(FateRow { became: FindingResolution::Refused, entry: None, of: None, reason })
}

fn primed(why: PrimedReason) -> &'static str {
    match why {
        PrimedReason::Served => {
            "the entry was served in its task, above it, to its client, or recently to the same \
             user"
        }
        PrimedReason::Again => "its root task has confirmed the entry before",
        PrimedReason::Agent => "the same agent has found it before",
        PrimedReason::Handed => "a source finding of the entry was shown in its task",
    }
}

fn echoed(why: EchoReason) -> &'static str {
    match why {
        EchoReason::Root => "both were found in one root task",
        EchoReason::Handed => "one was shown in the other's task",
        EchoReason::Agent => "the same agent found both",
    }
}
