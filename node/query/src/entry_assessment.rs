//! Assesses an entry: collects the inputs of `scoring` from a view and the store.

use super::author_standing::AuthorStanding;
use super::entry_rows::EntryRows;
use super::foreign_gate::{self, Corroboration, GateDecision};
use super::{AssessedEntry, ReadContext, content_scan};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::{AuthorCounts, EntryView, State};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::register::Register;
use klnode_crdt::time::{Day, WallTime};
use klnode_scoring::admission::{self, AdmissionResult};
use klnode_scoring::confidence::{self, Author, Cell, Confidence};
use klnode_scoring::content_scan::Severity;
use klnode_scoring::decay::DecayInputs;
use klnode_scoring::posterior::Posterior;
use klnode_scoring::rank::signals::AnchorState;
use klnode_scoring::recent_failures;
use klnode_scoring::status::{self, SourceTask, StatusFacts, TextAuthor, Withdrawal};
use klnode_scoring::weak_answers::WeakAnswer;
use klnode_store::Error;
use klnode_store::row_types::{MarksRow, PriorRow, ProvenRow, UseRow, ViewRow};
use klnode_store::tasks::TaskState;
use std::collections::BTreeMap;

/// The assessment of an entry: confidence, status and gate.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// The confidence, with the shares of each author and of prior evidence from an import. Status,
    /// admission and gate follow from `facts`, without the prior evidence.
    pub confidence: Confidence,
    /// The status, with its reason.
    pub standing: status::StatusDecision,
    /// Whether the shown text is the owner's or foreign.
    pub writer: TextAuthor,
    /// Number of observations on this node in which the shown text helped.
    pub local_successes: u32,
    /// Failures of the shown text on this node since it last helped here, in observations.
    pub recent_failures: f64,
    /// True if answers warn of these failures.
    pub warns_of_failures: bool,
    /// Number of confirmations by callers who may have read the entry here, which is no evidence.
    pub primed_confirmations: u32,
    /// The authors who confirmed that the text works.
    pub corroboration: Corroboration,
    /// The gate decision for answers that no person reviews.
    pub gate: GateDecision,
    /// True if the operator has to decide about the entry before peers and agents get it: its text
    /// names a host, a path, a customer or a weakness.
    pub is_held: bool,
    /// The facts from which the status follows.
    pub facts: StatusFacts,
    /// The admission decision: whether the entry may be retrieved at all, with all inputs.
    pub admission: AdmissionResult,
    /// True if the task in which the entry was written was abandoned.
    pub is_abandoned: bool,
    /// The task on this node in which the entry was written.
    pub source_task: Option<TaskId>,
    /// Answers in which the entry came first but hardly matched, since its last success.
    pub weak_answers: Vec<WeakAnswer>,
    /// How often the entry ranked first while hardly relevant since its last success.
    pub prediction_errors: u32,
}

impl Assessment {
    /// Sets the result of the predicates and recomputes the status.
    pub(super) fn apply_check(&mut self, check: AnchorState, today: Day, params: &status::Params) {
        self.facts.predicates = check;
        self.standing = status::status(&self.facts, today, params);
    }
}

impl AssessedEntry {
    /// The severity that the scan finds in the shown texts, even if the operator released the
    /// entry, and the matching rules.
    pub fn scan(&self) -> (Severity, Vec<&'static str>) {
        content_scan::scan_shown(&self.view)
    }
}

impl ReadContext<'_> {
    /// The score from which an entry is accepted, and the score below which it is rejected.
    pub fn admission_bounds(&self, found: &AssessedEntry) -> (f64, f64) {
        let params = &self.reader.numbers.admission;
        let accepted_from = match found.is_foreign() {
            true => params.candidate_below.max(params.foreign_candidate_below),
            false => params.candidate_below,
        };
        (accepted_from, params.reject_below)
    }

    /// True if the task in which an entry was written has expired. This follows from the task's
    /// age, so nothing has to be undone if the task continues later.
    fn is_abandoned(&self, uses: &UseRow) -> Result<bool, Error> {
        let Some(task) = uses.made_in.filter(|_| !uses.is_from_success) else { return Ok(false) };
        // A damaged task hides no entry.
        let row = Error::unless_damaged(self.snapshot.task(task))?.flatten();
        Ok(row.is_some_and(|row| self.task_state(&row) == TaskState::Expired))
    }
}

/// Observations by this node of the shown text.
struct LocalObservations {
    successes: u32,
    posterior: Posterior,
}

#[expect(clippy::too_many_lines, reason = "each judgement needs those before it")]
pub(super) fn judge(
    reading: &ReadContext<'_>,
    seen: &EntryRows,
    overlay: &MarksRow,
    author: Option<&AuthorStanding>,
) -> Result<Assessment, Error> {
    let EntryRows { row, view, uses, .. } = seen;
    let (today, numbers) = (reading.now.day(), &reading.reader.numbers);
    let archived = view.archived.map(|stamp| stamp.wall().day());
    let class = numbers.confidence.decay.class(view.text(Register::DECAY_CLASS));
    let ageing = DecayInputs { class, archived, now: today };
    let cells: Vec<(AuthorId, Vec<Cell>)> = view
        .counts
        .iter()
        .map(|(author, counts)| (*author, confidence::cells(counts, today)))
        .collect();
    let workspace = view.origin.as_ref().map(|origin| origin.workspace());
    let mut authors: Vec<Author<'_>> = Vec::with_capacity(cells.len());
    for (id, cells) in &cells {
        authors.push(Author {
            id: *id,
            standing: reading.confidence_standing(*id, workspace)?,
            cells,
        });
    }
    let confidence = confidence::confidence(&authors, ageing, &numbers.confidence);
    let local = match author.is_some_and(|author| !author.is_own()) {
        true => of_foreign_text(reading, seen, &authors, ageing)?,
        false => of_own_text(view, &confidence, reading),
    };
    let scan = severity(reading, view, overlay);
    let admission = assessed(reading, (view, first_day(row, uses)), author, &confidence, scan);
    let facts = StatusFacts {
        writer: match author {
            Some(author) if !author.is_own() => TextAuthor::Foreign,
            _ => TextAuthor::Own,
        },
        withdrawal: withdrawal_of(view),
        scan,
        admission: admission.decision,
        source_task: match uses.is_from_success {
            true => SourceTask::Succeeded,
            false => SourceTask::NotSucceeded,
        },
        local_successes: local.successes,
        posterior: confidence.posterior,
        own_posterior: local.posterior,
        predicates: AnchorState::Nothing,
        created: first_day(row, uses),
        served: (uses.last_served > WallTime::default()).then(|| uses.last_served.day()),
        // Predicates that held in a checkout verified the entry again; an unarchived entry counts
        // as new.
        revived: last_success(reading, view).max(uses.held.map(WallTime::day)).max(uses.unarchived),
    };
    let standing = status::status(&facts, today, &numbers.status);
    let (writer, local_successes) = (facts.writer, facts.local_successes);
    // Prior evidence counts only after all decisions that need real evidence.
    let confidence = match &uses.prior {
        Some(prior) => confidence.with_imported(&prior_cell(prior), ageing, &numbers.confidence),
        None => confidence,
    };
    let recent_failures = recent_failures_of(reading, (view, row), &authors)?;
    let corroboration = foreign_gate::corroboration(reading, view, row, local_successes)?;
    let is_held = reading.is_held(seen.entry, view, author, overlay)?;
    let gate = match is_held {
        true => GateDecision::Shut,
        false => foreign_gate::gate(reading, view, author, corroboration),
    };
    Ok(Assessment {
        confidence,
        standing,
        writer,
        local_successes,
        recent_failures,
        warns_of_failures: numbers.recent_failure_penalty > 0.0
            && recent_failures >= recent_failures::WARNED_FROM,
        primed_confirmations: uses.primed_confirmations,
        corroboration,
        gate,
        is_held,
        facts,
        admission,
        is_abandoned: reading.is_abandoned(uses)?,
        source_task: uses.made_in,
        weak_answers: uses.weak_answers().collect(),
        prediction_errors: uses.prediction_errors,
    })
}

/// The day from which the age of an entry counts: the date that the file of its import states, else its
/// arrival here.
fn first_day(row: &ViewRow, uses: &UseRow) -> Day {
    uses.dated.unwrap_or_else(|| row.first_seen.day())
}

/// Whether an entry is retracted or archived.
fn withdrawal_of(view: &EntryView) -> Withdrawal {
    match view.state {
        State::Retracted | State::Forgotten => Withdrawal::Retracted,
        _ if view.archived.is_some() => Withdrawal::Archived,
        _ => Withdrawal::None,
    }
}

/// Converts prior evidence to the input of scoring.
fn prior_cell(prior: &PriorRow) -> Cell {
    let (successes, failures) = (Thousandths(prior.successes), Thousandths(prior.failures));
    Cell { day: prior.day, successes, failures }
}

/// The day of the last success on this node.
fn last_success(reading: &ReadContext<'_>, view: &EntryView) -> Option<Day> {
    let today = reading.now.day();
    let newest =
        |counts: &AuthorCounts| counts.successes.iter().filter_map(|cell| cell.day(today)).max();
    let own = view.counts.iter().filter(|(author, _)| reading.membership.mine.contains(author));
    own.filter_map(|(_, counts)| newest(counts)).max()
}

/// The severity of the shown texts. An entry that the operator released despite the scan is no
/// longer excluded for it, and keeps a label.
fn severity(reading: &ReadContext<'_>, view: &EntryView, overlay: &MarksRow) -> Severity {
    let found = reading.reader.scanned.get(view, content_scan::severity_shown);
    if overlay.is_cleared { found.min(Severity::Low) } else { found }
}

/// The admission decision for an entry.
fn assessed(
    reading: &ReadContext<'_>,
    (view, created): (&EntryView, Day),
    author: Option<&AuthorStanding>,
    confidence: &Confidence,
    scan: Severity,
) -> AdmissionResult {
    let (today, numbers) = (reading.now.day(), &reading.reader.numbers);
    let count = |is_context: bool| {
        let of = view.citations.keys().filter(|citation| citation.is_context == is_context);
        u32::try_from(of.count()).unwrap_or(u32::MAX)
    };
    // Only the owner's confirmations count: others may collude with the author.
    let own = view.counts.iter().filter(|(author, _)| reading.membership.mine.contains(author));
    let confirmed = own.flat_map(|(_, counts)| &counts.confirmations);
    let confirmed = confirmed.filter_map(|counted| counted.day(today)).max();
    let facts = admission::AdmissionFacts {
        posterior: confidence.posterior,
        success_mass: (confidence.posterior.alpha() - numbers.confidence.prior_alpha).max(0.0),
        citations: count(false),
        contexts: count(true),
        scan,
        origin: match author.filter(|author| !author.is_own()) {
            Some(author) => admission::EntryOwner::Foreign { weight: author.earned.weight },
            None => admission::EntryOwner::Local,
        },
        kind: view.kind().unwrap_or(EntryType::Lesson),
        created,
        confirmed,
    };
    admission::assess(&facts, today, &numbers.admission)
}

fn of_own_text(
    view: &EntryView,
    confidence: &Confidence,
    reading: &ReadContext<'_>,
) -> LocalObservations {
    let own = view.counts.iter().filter(|(author, _)| reading.membership.mine.contains(author));
    let successes = own
        .map(|(_, counts)| u32::try_from(counts.successes.len()).unwrap_or(u32::MAX))
        .fold(0, u32::saturating_add);
    LocalObservations { successes, posterior: confidence.own }
}

/// For a foreign text only observations of this exact text count: an author must not be able to
/// replace a proven text by another one. Counters do not name the text, and stamps are the author's
/// claim; so this uses the outcomes recorded on this node, and the owner's counter cells since the
/// first of them. Folded cells have no day and are ignored. A text has the same digest under every
/// entry id, so outcomes under a merged duplicate count; cells count for the entries under which
/// the text was observed.
fn of_foreign_text(
    reading: &ReadContext<'_>,
    seen: &EntryRows,
    authors: &[Author<'_>],
    ageing: DecayInputs,
) -> Result<LocalObservations, Error> {
    let text = seen.view.text_digest();
    let (mut successes, mut since) = (0, BTreeMap::<EntryId, Day>::new());
    // The author with the lowest standing is not always the one for whom an outcome was recorded,
    // so all authors are checked. An outcome recorded for several of them counts once.
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
    let parts = seen.counts_by_entry();
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
    let own = authors.iter().filter(|author| author.standing == confidence::AuthorRelation::Own);
    let own: Vec<(AuthorId, Vec<Cell>)> = own.map(|author| (author.id, cells(author.id))).collect();
    let own: Vec<Author<'_>> = own
        .iter()
        .map(|(id, cells)| Author { id: *id, standing: confidence::AuthorRelation::Own, cells })
        .collect();
    let posterior = confidence::confidence(&own, ageing, &reading.reader.numbers.confidence).own;
    Ok(LocalObservations { successes, posterior })
}

/// Failures of the shown text on this node since it last helped here.
fn recent_failures_of(
    reading: &ReadContext<'_>,
    (view, row): (&EntryView, &ViewRow),
    authors: &[Author<'_>],
) -> Result<f64, Error> {
    let is_own = |author: &&Author<'_>| author.standing == confidence::AuthorRelation::Own;
    let own = authors.iter().filter(is_own).flat_map(|author| author.cells);
    if own.clone().all(|cell| cell.failures.0 == 0) {
        return Ok(0.0);
    }
    let since = foreign_gate::text_known_since(reading, view, row)?;
    Ok(recent_failures::failures_since_success(own, since, reading.now.day()))
}
