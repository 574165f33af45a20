//! From a view to a judgement: gathers what `scoring` asks for.

use super::gate::{self, Corroboration, Gate};
use super::reading::Seen;
use super::standing::Standing;
use super::{Found, Reading, border};
use crate::store::Error;
use crate::store::rows::{OverlayRow, PriorRow, ProvenRow, UseRow, ViewRow};
use crate::store::tasks::TaskState;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::view::{Counts, State, View};
use klnode_scoring::admission::{self, Assessment};
use klnode_scoring::confidence::{self, Author, Cell, Confidence};
use klnode_scoring::decay::Ageing;
use klnode_scoring::posterior::Posterior;
use klnode_scoring::rank::signals::Check;
use klnode_scoring::scan::Severity;
use klnode_scoring::status::{self, Facts, SourceTask, Withdrawal, Writer};
use klnode_scoring::weakness::WeakAnswer;
use std::collections::BTreeMap;

/// How far an entry is believed, and where it stands.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The confidence, with what each author and prior evidence from an import add. Status, admission and
    /// gate follow from `facts`, without the latter.
    pub confidence: Confidence,
    /// The status, with its reason.
    pub standing: status::Standing,
    /// Whose text is shown.
    pub writer: Writer,
    /// How often the text that is shown has helped here.
    pub local_successes: u32,
    /// How often it was confirmed by whoever may have it from here, which is no evidence.
    pub primed_confirmations: u32,
    /// Who has seen it work.
    pub corroboration: Corroboration,
    /// Whether it may enter a gated answer.
    pub gate: Gate,
    /// What the status follows from.
    pub facts: Facts,
    /// Whether it may be retrieved at all, with every number that led to it.
    pub admission: Assessment,
    /// Whether nobody finished the task in which it was written.
    pub is_abandoned: bool,
    /// The task on this node in which it was written.
    pub source_task: Option<TaskId>,
    /// Answers in which it came first and hardly matched, since it last helped.
    pub weak_answers: Vec<WeakAnswer>,
    /// Number of prediction errors since it last helped.
    pub prediction_errors: u32,
}

impl Judged {
    /// Takes note of what a look at an entry's predicates said: its status may follow.
    pub(super) fn note(&mut self, check: Check, today: Day, params: &status::Params) {
        self.facts.predicates = check;
        self.standing = status::status(&self.facts, today, params);
    }
}

impl Found {
    /// How grave the scan finds what is shown, whatever the operator let in, and the rules that
    /// matched.
    pub fn scan(&self) -> (Severity, Vec<&'static str>) {
        border::scan_shown(&self.view)
    }
}

impl Reading<'_> {
    /// The score from which an entry is accepted, and the one below which it is rejected.
    pub fn admission_bounds(&self, found: &Found) -> (f64, f64) {
        let params = &self.reader.numbers.admission;
        let accepted_from = match found.is_foreign() {
            true => params.candidate_below.max(params.foreign_candidate_below),
            false => params.candidate_below,
        };
        (accepted_from, params.reject_below)
    }

    /// Whether nobody finished the task in which an entry was written. It follows from the task's age:
    /// where the task goes on after all, nothing has to be undone.
    fn is_abandoned(&self, uses: &UseRow) -> Result<bool, Error> {
        let Some(task) = uses.made_in.filter(|_| !uses.is_from_success) else { return Ok(false) };
        // What is damaged of a task hides no entry.
        let row = Error::unless_damaged(self.snapshot.task(task))?.flatten();
        Ok(row.is_some_and(|row| self.task_state(&row) == TaskState::Expired))
    }
}

/// What this node itself has seen of the text that is shown.
struct Local {
    successes: u32,
    posterior: Posterior,
}

pub(super) fn judge(
    reading: &Reading<'_>,
    seen: &Seen,
    overlay: &OverlayRow,
    author: Option<&Standing>,
) -> Result<Judged, Error> {
    let Seen { row, view, uses, .. } = seen;
    let (today, numbers) = (reading.now.day(), &reading.reader.numbers);
    let archived = view.archived.map(|stamp| stamp.wall().day());
    let class = numbers.confidence.decay.class(view.text(Register::DECAY_CLASS));
    let ageing = Ageing { class, archived, now: today };
    let cells: Vec<(AuthorId, Vec<Cell>)> = view
        .counts
        .iter()
        .map(|(author, counts)| (*author, confidence::cells(counts, today)))
        .collect();
    let workspace = view.origin.as_ref().map(|origin| origin.workspace());
    let mut authors: Vec<Author<'_>> = Vec::with_capacity(cells.len());
    for (id, cells) in &cells {
        authors.push(Author { id: *id, standing: reading.voice(*id, workspace)?, cells });
    }
    let confidence = confidence::confidence(&authors, ageing, &numbers.confidence);
    let local = match author.is_some_and(|author| !author.is_own()) {
        true => of_foreign_text(reading, seen, &authors, ageing)?,
        false => of_own_text(view, &confidence, reading),
    };
    let scan = severity(reading, view, overlay);
    let admission = assessed(reading, (view, row), author, &confidence, scan);
    let facts = Facts {
        writer: match author {
            Some(author) if !author.is_own() => Writer::Foreign,
            _ => Writer::Own,
        },
        withdrawal: match view.state {
            State::Retracted | State::Forgotten => Withdrawal::Retracted,
            _ if archived.is_some() => Withdrawal::Archived,
            _ => Withdrawal::None,
        },
        scan,
        admission: admission.decision,
        source_task: match uses.is_from_success {
            true => SourceTask::Succeeded,
            false => SourceTask::NotSucceeded,
        },
        local_successes: local.successes,
        posterior: confidence.posterior,
        own_posterior: local.posterior,
        predicates: Check::Nothing,
        created: row.first_seen.day(),
        served: (uses.last_served > WallTime::default()).then(|| uses.last_served.day()),
        // What held in a caller's checkout was verified again; what was taken out of the archive is new.
        revived: last_success(reading, view).max(uses.held.map(WallTime::day)).max(uses.unarchived),
    };
    let standing = status::status(&facts, today, &numbers.status);
    let (writer, local_successes) = (facts.writer, facts.local_successes);
    // Only after all that follows from evidence was decided.
    let confidence = match &uses.prior {
        Some(prior) => confidence.with_imported(&prior_cell(prior), ageing, &numbers.confidence),
        None => confidence,
    };
    let corroboration = gate::corroboration(reading, view, row, local_successes)?;
    let gate = gate::gate(reading, view, author, corroboration);
    Ok(Judged {
        confidence,
        standing,
        writer,
        local_successes,
        primed_confirmations: uses.primed_confirmations,
        corroboration,
        gate,
        facts,
        admission,
        is_abandoned: reading.is_abandoned(uses)?,
        source_task: uses.made_in,
        weak_answers: uses.weak_answers().collect(),
        prediction_errors: uses.prediction_errors,
    })
}

/// Prior evidence as scoring takes it.
fn prior_cell(prior: &PriorRow) -> Cell {
    let (successes, failures) = (Thousandths(prior.successes), Thousandths(prior.failures));
    Cell { day: prior.day, successes, failures }
}

/// The day on which an entry last helped here.
fn last_success(reading: &Reading<'_>, view: &View) -> Option<Day> {
    let today = reading.now.day();
    let newest = |counts: &Counts| counts.successes.iter().filter_map(|cell| cell.day(today)).max();
    let own = view.counts.iter().filter(|(author, _)| reading.society.mine.contains(author));
    own.filter_map(|(_, counts)| newest(counts)).max()
}

/// How grave the scan of what is shown is. What the operator let in against the scan is no longer
/// kept out for it, and keeps a label.
fn severity(reading: &Reading<'_>, view: &View, overlay: &OverlayRow) -> Severity {
    let found = reading.reader.scanned.severity(view);
    if overlay.is_cleared { found.min(Severity::Low) } else { found }
}

/// Whether enough speaks for an entry to be retrieved.
fn assessed(
    reading: &Reading<'_>,
    (view, row): (&View, &ViewRow),
    author: Option<&Standing>,
    confidence: &Confidence,
    scan: Severity,
) -> Assessment {
    let (today, numbers) = (reading.now.day(), &reading.reader.numbers);
    let count = |is_context: bool| {
        let of = view.citations.keys().filter(|citation| citation.is_context == is_context);
        u32::try_from(of.count()).unwrap_or(u32::MAX)
    };
    // Whoever else confirms it may be a friend of its author.
    let own = view.counts.iter().filter(|(author, _)| reading.society.mine.contains(author));
    let confirmed = own.flat_map(|(_, counts)| &counts.confirmations);
    let confirmed = confirmed.filter_map(|counted| counted.day(today)).max();
    let facts = admission::Facts {
        posterior: confidence.posterior,
        success_mass: (confidence.posterior.alpha() - numbers.confidence.prior_alpha).max(0.0),
        citations: count(false),
        contexts: count(true),
        scan,
        origin: match author.filter(|author| !author.is_own()) {
            Some(author) => admission::Origin::Foreign { weight: author.earned.weight },
            None => admission::Origin::Local,
        },
        kind: view.kind().unwrap_or(Kind::Lesson),
        created: row.first_seen.day(),
        confirmed,
    };
    admission::assess(&facts, today, &numbers.admission)
}

fn of_own_text(view: &View, confidence: &Confidence, reading: &Reading<'_>) -> Local {
    let own = view.counts.iter().filter(|(author, _)| reading.society.mine.contains(author));
    let successes = own
        .map(|(_, counts)| u32::try_from(counts.successes.len()).unwrap_or(u32::MAX))
        .fold(0, u32::saturating_add);
    Local { successes, posterior: confidence.own }
}

/// Of somebody else's text only what was observed of this very text counts: whoever has earned a
/// place may not put another text there. Counters do not say of which text they speak, and stamps
/// are their author's word; so it goes by the outcomes that were noted here, and by own cells since
/// the first of them. Of what was folded nobody knows since when it is. A text has one name whichever
/// entry it is shown under, so what was seen of it counts under another that is held to be the same;
/// cells are those of an entry under which it was seen.
fn of_foreign_text(
    reading: &Reading<'_>,
    seen: &Seen,
    authors: &[Author<'_>],
    ageing: Ageing,
) -> Result<Local, Error> {
    let text = seen.view.text_digest();
    let (mut successes, mut since) = (0, BTreeMap::<EntryId, Day>::new());
    // Whoever counts least here is not always among those for whom it was noted. What was noted for
    // several of them was seen once.
    for author in seen.view.text_authors() {
        let outcomes = reading.outcomes(author)?;
        let of_text = outcomes.iter().filter(|row| row.text == Some(text));
        let kept = of_text.clone().filter(|row| row.is_success).count();
        let kept = u32::try_from(kept).unwrap_or(u32::MAX);
        let is_before = |of: &ProvenRow| of.author == author && of.text == text;
        let before = seen.proven.iter().filter(|(_, of)| is_before(of));
        let all = before.clone().map(|(_, of)| of.successes).fold(kept, u32::saturating_add);
        successes = all.max(successes);
        let days = of_text.map(|row| (row.entry, row.day));
        for (entry, day) in days.chain(before.map(|(entry, of)| (*entry, of.since))) {
            since.entry(entry).and_modify(|first| *first = day.min(*first)).or_insert(day);
        }
    }
    let parts = seen.counted();
    let cells = |author: AuthorId| {
        let dated = parts
            .iter()
            .filter_map(|(entry, counts)| Some((since.get(entry)?, counts.get(&author)?.dated())));
        let cells = dated.flat_map(|(since, dated)| {
            let cells = confidence::cells(&dated, ageing.now).into_iter();
            cells.filter(move |cell| cell.day >= *since)
        });
        cells.collect::<Vec<Cell>>()
    };
    let own = authors.iter().filter(|author| author.standing == confidence::Standing::Own);
    let own: Vec<(AuthorId, Vec<Cell>)> = own.map(|author| (author.id, cells(author.id))).collect();
    let own: Vec<Author<'_>> = own
        .iter()
        .map(|(id, cells)| Author { id: *id, standing: confidence::Standing::Own, cells })
        .collect();
    let posterior = confidence::confidence(&own, ageing, &reading.reader.numbers.confidence).own;
    Ok(Local { successes, posterior })
}
