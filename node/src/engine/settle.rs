//! What becomes of a finding that was compared or that the operator keeps, decided and written in one
//! transaction.
//!
//! Separate from the other acts on findings because these alone lead to entries and counts.

use super::command::{NewEntry, Receipt, Rejection};
use super::confirm::is_confirmed;
use super::findings::{
    BETWEEN_REASONS, Compared, DISMISSED, FALSE_POSITIVE_TAG, FINDING_TAG, FindingDone,
};
use super::ingest::Ingest;
use super::priming::Speaker;
use super::tasks::{chain, root, taken};
use crate::store::findings::{Became, FateRow, FindingKey, FindingRow};
use crate::store::tasks::PartRow;
use crate::store::{Batch, Error};
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::limits::{SET_ELEMENTS_MAX, TITLE_CHARS_MAX};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::tally::Observation;
use klnode_crdt::view::State;
use klnode_crdt::writer::Claim;
use klnode_scoring::compounding::{self, Echo, Finder, Known, Primed, Settlement};
use klnode_scoring::finding::{ANCHORS_MAX, VERIFY_STEPS_MAX, headline};
use std::collections::BTreeSet;

/// Why a finding became what it did, where the operator decided.
const OPERATORS_WORD: &str = "the operator says so";
/// Why a finding adds nothing to an entry that another agent of the user confirmed today.
const USER_AGAIN: &str = "an agent of the same user confirmed the entry earlier today";

/// Another finding that says the same.
struct Other {
    at: FindingKey,
    row: FindingRow,
    finder: Finder,
}

impl Ingest<'_> {
    pub(super) fn settle(
        &mut self,
        batch: &Batch,
        compared: &Compared,
    ) -> Result<FindingDone, Rejection> {
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
        if row.is_kept() {
            self.call_others(batch, &row, compared)?;
            return Ok(FindingDone::Settled(row.fate));
        }
        if let Some(open) = batch.task(at.task)?.filter(|task| self.is_open(task))
            && !is_operators(&row)
        {
            // Tasks expire later than when it was recorded.
            batch.put_unsettled(at, open.begun.plus(self.writer.tasks.expires_after))?;
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
                Some(entry) => {
                    let met = self.met(batch, at.task, entry, &Speaker::of_finding(&row))?;
                    Some(facts(batch, (at, &finder), entry, compared, (&others, met.is_some()))?)
                }
            };
            let finders: Vec<Finder> = others.iter().map(|one| one.finder.clone()).collect();
            let settlement = compounding::settle(&finder, facts, &finders);
            self.carry_out(batch, (at, &row), settlement, known, &others)?
        };
        batch.put_finding(at, &with_fate(row, fate.clone()))?;
        batch.drop_unsettled(at)?;
        Ok(FindingDone::Settled(fate))
    }

    /// Makes an entry of a finding that waits, by the operator's word. It is a candidate: nobody else
    /// has found it, and nothing is counted. The finding stays listed, so that it is compared with
    /// others that wait: they may speak for the entry.
    pub(super) fn keep_finding(
        &mut self,
        batch: &Batch,
        at: FindingKey,
        same: Option<EntryId>,
    ) -> Result<FindingDone, Rejection> {
        let FindingKey { task, number } = at;
        let missing = Rejection::NoSuchFinding { task, number };
        let row = batch.finding(at)?.filter(|row| !row.is_forgotten()).ok_or(missing)?;
        let kept = row.fate.as_ref().filter(|_| row.is_kept()).and_then(|fate| fate.entry);
        if let Some(entry) = kept
            && self.speaking(batch, entry)?.is_some()
        {
            return Ok(FindingDone::Noted);
        }
        if let Some(problem) = self.unfit(batch, &row, same)? {
            return Err(Rejection::UnfitFinding { verb: "keep", task, number, problem });
        }
        let Some(entry) = self.entry_of(batch, &[(at, &row)])? else {
            return Ok(FindingDone::Unchanged);
        };
        let (became, reason) = (Became::Kept, OPERATORS_WORD.to_owned());
        let fate = Some(FateRow { became, entry: Some(entry), of: None, reason });
        batch.put_finding(at, &with_fate(row, fate.clone()))?;
        batch.put_unsettled(at, self.now)?;
        Ok(FindingDone::Settled(fate))
    }

    /// Others that waited, or echoed each other, have an entry to speak for once one is kept.
    fn call_others(
        &self,
        batch: &Batch,
        row: &FindingRow,
        compared: &Compared,
    ) -> Result<(), Error> {
        for other in self.others(batch, row, compared)? {
            if other.row.fate.is_none_or(|fate| fate.entry.is_none()) {
                batch.put_unsettled(other.at, self.now)?;
            }
        }
        batch.drop_unsettled(compared.finding)
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
        let reason = OPERATORS_WORD.to_owned();
        Ok(Some(FateRow { became: Became::FalsePositive, entry: known, of: None, reason }))
    }

    /// The others that say the same and may speak: those of tasks that are over, and what is an entry
    /// already, since the operator's word waits for no task.
    fn others(
        &self,
        batch: &Batch,
        row: &FindingRow,
        compared: &Compared,
    ) -> Result<Vec<Other>, Error> {
        let mut others = Vec::new();
        for at in compared.others.iter().filter(|at| **at != compared.finding) {
            let Some(other) = batch.finding(*at)? else { continue };
            let is_over = batch.task(at.task)?.is_some_and(|task| !self.is_open(&task));
            let fits = other.is_dismissed() == row.is_dismissed()
                && other.workspace == row.workspace
                && !other.is_forgotten();
            let has_spoken = other.fate.as_ref().is_some_and(|fate| fate.entry.is_some());
            if fits && (is_over || has_spoken) {
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
                let speaker = Speaker::of_finding(row);
                if self.is_confirmed_today(batch, entry, &speaker)? {
                    self.confirm_primed(batch, entry)?;
                    return Ok(fate(with(Became::Reinforced), known, USER_AGAIN));
                }
                let root = root(batch, at.task)?;
                match self.count_confirmation(batch, at.task, root, entry) {
                    Ok(()) => {
                        self.note_confirmed_today(batch, entry, &speaker)?;
                        fate(with(Became::Confirmed), known, "it was found independently")
                    }
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
        let entry = match self.entry_of(batch, &sources) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(None),
            Err(refusal) => return refused(refusal).map(Some),
        };
        let became = if row.is_dismissed() { Became::FalsePositive } else { Became::New };
        let fate = FateRow { became, entry: Some(entry), of: None, reason: String::new() };
        if let Some(other) = with {
            for of in [Observation::Confirmation, Observation::Success] {
                let observed = self.observe(batch, entry, (of, Thousandths::ONE), Some(at.task));
                taken(observed)?;
            }
            self.note_confirmed_today(batch, entry, &Speaker::of_finding(row))?;
            let part = batch.task_part(at.task, entry)?;
            batch.put_task_part(at.task, entry, &PartRow { is_observed: true, ..part })?;
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

    /// Writes the entry that findings make, and notes in each root task that it has had its say about
    /// it.
    fn entry_of(
        &mut self,
        batch: &Batch,
        sources: &[(FindingKey, &FindingRow)],
    ) -> Result<Option<EntryId>, Rejection> {
        let mut new = new_entry(sources);
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

    /// Whether every task that something was found in has failed, or was abandoned.
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

    /// Why no entry is to be made of a finding, if so. An entry that there is instead is told by its
    /// code.
    fn unfit(
        &self,
        batch: &Batch,
        row: &FindingRow,
        same: Option<EntryId>,
    ) -> Result<Option<String>, Error> {
        let fate = row.fate.as_ref();
        if let Some((became, entry)) = fate.and_then(|fate| Some((fate.became, fate.entry?)))
            && let Some(code) = self.speaking(batch, entry)?
        {
            return Ok(Some(match became {
                Became::New => format!("it became entry {code}"),
                Became::FalsePositive => format!("entry {code} tells it as a false positive"),
                _ => format!("entry {code} says the same"),
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
            // Of two that were compared at once, each may be an echo of the other: then neither waits.
            if other.fate.is_none() {
                let problem =
                    format!("finding {number} of task {task} says the same; keep that one");
                return Ok(Some(problem));
            }
            through = other.fate.and_then(|fate| fate.entry);
        }
        for entry in through.into_iter().chain(same) {
            if let Some(code) = self.speaking(batch, entry)? {
                return Ok(Some(format!("entry {code} says the same")));
            }
        }
        Ok(None)
    }

    /// The code of an entry that says something. One that was taken back, or forgotten, stands in the
    /// way of no finding.
    pub(super) fn speaking(&self, batch: &Batch, entry: EntryId) -> Result<Option<String>, Error> {
        let is_live = self.view(batch, entry)?.is_some_and(|view| view.state == State::Live);
        if !is_live {
            return Ok(None);
        }
        Ok(Some(batch.entry(entry)?.code(entry)))
    }
}

/// What is known of an entry that says the same as a finding.
fn facts(
    batch: &Batch,
    (at, finder): (FindingKey, &Finder),
    entry: EntryId,
    compared: &Compared,
    (others, is_served): (&[Other], bool),
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
        is_served,
        is_confirmed: is_confirmed(batch, root, entry)?,
        is_own: is_cited || echoes.contains(&Echo::Agent),
        is_handed: echoes.contains(&Echo::Handed),
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
        (title, format!("{text}{DISMISSED}{}", reasons.join(BETWEEN_REASONS)), "negative")
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
    let repositories: BTreeSet<&String> =
        best.iter().flat_map(|row| &row.repositories).take(SET_ELEMENTS_MAX).collect();
    let sets = sets.chain(
        repositories.into_iter().map(|element| (TextSet::ANCHOR_REPOSITORIES, element.clone())),
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
        Primed::Served => {
            "the entry was served in its task, above it, to its client, or lately to the same user"
        }
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
