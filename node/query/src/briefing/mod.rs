//! Builds a briefing: the entries of a workspace that matter now, assessed, cut to a token budget
//! and rendered as text.
//!
//! The rules are in `scoring::briefing`. This module selects and reads at most 640 entries, however
//! many there are. It selects them by a cached digest of all view rows: the entries of the
//! workspace that changed last, have the most records, have not changed for longest, arrived last
//! from other authors, or were last written by the owner. Entries without a claim by the owner or a
//! member take no place. Merged duplicates appear as one entry. The same store at the same time
//! gives the same bytes.

mod cache;
mod insights;
mod render;
mod select;

use super::anchor_check::{self, AnchorCheck};
use super::audit::is_audited;
use super::caveats::{conflicting_registers, own_caveats};
use super::contradictions::{self, ContradictingEntry, ContradictingPair, StanceEntry};
use super::endorsements::Endorsements;
use super::foreign_gate::GateDecision;
use super::search_types::HitCaveat;
use super::{AssessedEntry, Cancel, ReadContext, Reader, SearchError, entry_forms};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_index::document::FilterFields;
use klnode_scoring::briefing::{self, Access, BriefingFacts, PlannedEntry, Section};
use klnode_scoring::predicate;
use klnode_scoring::rank::signals::Freshness;
use klnode_scoring::relevance::Calibration;
use klnode_scoring::token_budget::{self, BudgetItem, EntryForm};
use klnode_store::tasks::{TaskRow, TaskState};
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(super) use cache::RowCache;
pub use insights::{FoundInsight, OUTCOME_DAYS};

/// Maximum number of entries whose predicates are evaluated in the caller's checkout.
const LOOKED_MAX: usize = 100;
/// Maximum number of entries compared for contradictions, in order of id.
const COMPARED_MAX: usize = 40;
/// Maximum number of open tasks listed.
const TASKS_MAX: usize = 5;
/// Number of newest tasks that are checked for being open.
const TASKS_READ_MAX: usize = 200;

/// A briefing request.
#[derive(Clone, Debug)]
pub struct BriefingQuestion {
    /// The workspace to brief on.
    pub workspace: WorkspaceId,
    /// The caller's thread: its entries come first, and only its tasks are listed.
    pub thread: Option<String>,
    /// The thread of the caller's task or branch; its entries are included too.
    pub task_thread: Option<String>,
    /// The token budget; `None` means the configured one.
    pub tokens_max: Option<u32>,
    /// A folder in the caller's checkout, in which predicates are evaluated.
    pub checkout: Option<PathBuf>,
}

impl BriefingQuestion {
    /// True if the caller works in this thread.
    fn is_in(&self, thread: &str) -> bool {
        [&self.thread, &self.task_thread].iter().any(|own| own.as_deref() == Some(thread))
    }

    /// True if the entry belongs to no thread or to the caller's.
    pub(super) fn shows(&self, found: &AssessedEntry) -> bool {
        found.thread().is_none_or(|thread| self.is_in(thread))
    }
}

/// The result: entries by section, open tasks, and the rendered text.
#[derive(Clone, Debug)]
pub struct Briefing {
    /// The time at which the store was read.
    pub as_of: WallTime,
    /// The local name of the workspace.
    pub workspace: String,
    /// The sections that have entries.
    pub sections: Vec<BriefedSection>,
    /// Insights, the most severe first.
    pub insights: Vec<FoundInsight>,
    /// Open tasks, newest first.
    pub tasks: Vec<(TaskId, TaskRow)>,
    /// Number of entries that qualified but did not fit into the token budget.
    pub left_out: usize,
    /// The size of the text in tokens.
    pub tokens: u32,
    /// The rendered text: quoted entries with their provenance.
    pub text: String,
}

/// The entries below one heading.
#[derive(Clone, Debug)]
pub struct BriefedSection {
    /// The kind of section, which gives the heading.
    pub section: Section,
    /// The entries in this section, most important first.
    pub entries: Vec<BriefedEntry>,
}

/// One entry of a briefing.
#[derive(Clone, Debug)]
pub struct BriefedEntry {
    /// The entry, read and assessed.
    pub found: AssessedEntry,
    pub code: String,
    /// One sentence of the entry's content; empty if only the title fits.
    pub line: String,
    /// Warnings to show with the entry.
    pub caveats: Vec<HitCaveat>,
    /// The size of the entry's line in the rendered text, in tokens.
    pub tokens: u32,
}

/// An entry that qualifies for the briefing.
pub(super) struct ReadEntry {
    pub(super) found: AssessedEntry,
    scope: FilterFields,
    looked: AnchorCheck,
    freshness: Freshness,
    endorsements: Endorsements,
    caveats: Vec<HitCaveat>,
}

impl Reader {
    /// Builds a briefing from one snapshot; stops with an error when cancelled.
    pub fn briefing(
        &self,
        snapshot: &Snapshot,
        question: &BriefingQuestion,
        now: WallTime,
        cancel: &Cancel,
    ) -> Result<Briefing, SearchError> {
        self.at(snapshot, now)?.briefing(question, cancel)
    }
}

impl ReadContext<'_> {
    fn briefing(
        &self,
        question: &BriefingQuestion,
        cancel: &Cancel,
    ) -> Result<Briefing, SearchError> {
        let chosen = select::choose(self, question.workspace)?;
        let chosen: Vec<EntryId> = chosen.into_iter().collect();
        let mut read = self.read_chosen(&chosen, cancel)?;
        read.retain(|_, read| question.shows(&read.found));
        self.evaluate_for_briefing(&mut read, question);
        let insights = self.insights_for(question, &chosen, &read)?;
        let contradicting_pairs = self.contradicting_pairs(&read);
        let disputed: BTreeSet<EntryId> =
            contradicting_pairs.iter().flat_map(|pair| [pair.one, pair.two]).collect();
        let facts: Vec<BriefingFacts> =
            read.values().map(|read| self.facts(read, &disputed)).collect();
        let mut briefing = briefing::brief(&facts, &self.reader.numbers.briefing);
        put_winners_first(&mut briefing.placed, &contradicting_pairs, &read);
        let order: Vec<EntryId> = briefing.placed.iter().map(|placed| placed.entry).collect();
        let told = order.iter().filter_map(|entry| read.get(entry)).map(|read| &read.found);
        let successions = self.successions(told)?;
        for (entry, read) in &mut read {
            let successors = successions.of(*entry);
            read.caveats = own_caveats(&read.found, &read.freshness, &read.looked, successors);
        }
        name_contradictions(&mut read, &order, &contradicting_pairs);
        let tasks = self.open_tasks(question)?;
        Ok(self.fit(question, &briefing, &mut read, &contradicting_pairs, (insights, tasks)))
    }

    /// Reads the entries in two threads, because reading takes most of the time of a briefing.
    pub(super) fn read_chosen(
        &self,
        chosen: &[EntryId],
        cancel: &Cancel,
    ) -> Result<BTreeMap<EntryId, ReadEntry>, SearchError> {
        let (ours, theirs) = chosen.split_at(chosen.len().div_ceil(2));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.read_some(theirs, cancel));
            let read = self.read_some(ours, cancel);
            let others = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let mut read = read?;
            read.append(&mut others?);
            Ok(read)
        })
    }

    fn read_some(
        &self,
        entries: &[EntryId],
        cancel: &Cancel,
    ) -> Result<BTreeMap<EntryId, ReadEntry>, SearchError> {
        let (mut read, mut joined) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries {
            if cancel.is_cancelled() {
                return Err(SearchError::GivenUp);
            }
            if joined.contains(entry) {
                continue;
            }
            // A damaged entry is skipped.
            let found = Error::unless_damaged(self.read_whole(*entry))?.flatten();
            let Some(found) = found else { continue };
            joined.extend(found.read_with());
            // Keyed by the survivor's id: a duplicate of it may be read in the other thread.
            read.extend(self.qualify(found)?.map(|read| (read.found.entry, read)));
        }
        Ok(read)
    }

    /// Turns an entry that was read into a `ReadEntry`; `None` if it does not qualify. An entry that
    /// does not qualify contradicts nothing either.
    fn qualify(&self, found: AssessedEntry) -> Result<Option<ReadEntry>, SearchError> {
        let Some(scope) =
            FilterFields::of(&found.view).filter(|scope| scope.memory != Memory::Episodic)
        else {
            return Ok(None);
        };
        if !is_audited(&found) || found.view.state != State::Live {
            return Ok(None);
        }
        let endorsements = self.endorsements(&found)?;
        let looked = AnchorCheck::unchecked(&found.view);
        let freshness = self.freshness(looked.check, endorsements, &found);
        Ok(Some(ReadEntry { found, scope, looked, freshness, endorsements, caveats: Vec::new() }))
    }

    /// Evaluates predicates in the caller's checkout and updates status and freshness.
    fn evaluate_for_briefing(
        &self,
        read: &mut BTreeMap<EntryId, ReadEntry>,
        question: &BriefingQuestion,
    ) {
        let Some(folder) = question.checkout.as_deref() else { return };
        let unchecked = read.values_mut().filter(|read| read.looked.may_be_checked());
        let mut unchecked: Vec<&mut ReadEntry> = unchecked.take(LOOKED_MAX).collect();
        if unchecked.is_empty() {
            return;
        }
        let Some(checkout) = self.reader.caller_checkout(folder) else { return };
        let views: Vec<_> = unchecked.iter().map(|read| &read.found.view).collect();
        let looked = anchor_check::evaluate(&views, &checkout, &predicate::Params::default());
        for (read, looked) in unchecked.iter_mut().zip(looked) {
            self.apply_check(&mut read.found, looked.check);
            read.freshness = self.freshness(looked.check, read.endorsements, &read.found);
            read.looked = looked;
        }
    }

    /// Finds contradictions among the entries. The compiled-in embedder compares them, so that a
    /// briefing depends on the store alone.
    fn contradicting_pairs(&self, read: &BTreeMap<EntryId, ReadEntry>) -> Vec<ContradictingPair> {
        let Some(embedder) = klnode_embed::compiled_in() else { return Vec::new() };
        let sided = read.values().filter_map(ReadEntry::stance);
        let sided: Vec<StanceEntry<'_>> = sided.take(COMPARED_MAX).collect();
        let numbers = &self.reader.numbers;
        contradictions::pairs_among(&sided, embedder, &Calibration::BUILT_IN, numbers, self.now)
    }

    fn facts(&self, read: &ReadEntry, disputed: &BTreeSet<EntryId>) -> BriefingFacts {
        let found = &read.found;
        let confidence = &found.assessment.confidence;
        BriefingFacts {
            entry: found.entry,
            status: found.assessment.standing.status,
            check: read.looked.check,
            freshness: read.freshness.value,
            mean: confidence.posterior.mean(),
            observations: confidence.effective_observations,
            is_disputed: !conflicting_registers(&found.view).is_empty()
                || disputed.contains(&found.entry),
            is_in_thread: read.scope.thread.is_some(),
            is_pinned: found.overlay.is_pinned,
            access: match found.gate() {
                GateDecision::Open => Access::Open,
                GateDecision::LastPlaces => Access::Untried,
                GateDecision::Shut => Access::Shut,
            },
            brought_days: found
                .is_foreign()
                .then(|| self.now.day().days_since(found.first_seen.day())),
        }
    }

    /// Open tasks, newest first; with a thread, only the tasks of that thread.
    fn open_tasks(
        &self,
        question: &BriefingQuestion,
    ) -> Result<Vec<(TaskId, TaskRow)>, SearchError> {
        let mut open = Vec::new();
        for row in self.snapshot.tasks()?.take(TASKS_READ_MAX) {
            let Some((task, row)) = Error::unless_damaged(row)? else { continue };
            let is_elsewhere = question.thread.is_some() && row.thread != question.thread;
            let state = row.state(self.now, self.reader.numbers.task_expires_after());
            if state == TaskState::Open && !is_elsewhere {
                open.push((task, row));
            }
            if open.len() == TASKS_MAX {
                break;
            }
        }
        Ok(open)
    }

    /// Cuts a briefing to its budget: all entries are reduced to their titles before any is
    /// dropped.
    fn fit(
        &self,
        question: &BriefingQuestion,
        placed: &briefing::BriefingPlan,
        read: &mut BTreeMap<EntryId, ReadEntry>,
        contradicting_pairs: &[ContradictingPair],
        (insights, mut tasks): (Vec<FoundInsight>, Vec<(TaskId, TaskRow)>),
    ) -> Briefing {
        let numbers = &self.reader.numbers;
        let tokens_whole = question.tokens_max.unwrap_or(numbers.briefing_tokens);
        let insights = render::fitting_insights(insights, tokens_whole);
        let tokens_max = tokens_whole.saturating_sub(render::insights_tokens(&insights));
        let headings: BTreeSet<Section> = placed.placed.iter().map(|one| one.section).collect();
        let frame = render::frame_tokens(&headings);
        while !tasks.is_empty() && frame + render::tasks_tokens(&tasks) > tokens_max {
            tasks.pop();
        }
        let room = tokens_max.saturating_sub(frame + render::tasks_tokens(&tasks));
        // A briefing has no mandatory categories, so all items have the same type.
        let item = |one: &PlannedEntry| BudgetItem {
            entry: one.entry,
            kind: EntryType::Lesson,
            relevance: one.relevance,
            is_untried: is_untried(read, one.entry),
        };
        let items: Vec<BudgetItem> = placed.placed.iter().map(item).collect();
        let rivals: Vec<token_budget::ContradictingEntries> =
            contradicting_pairs.iter().map(|pair| (pair.one, pair.two)).collect();
        let params = token_budget::Params { entries_max: items.len(), ..numbers.budget };
        let line_max = numbers.one_liner_characters_max();
        let tokens = |entry: EntryId, form: EntryForm| {
            read.get(&entry).map_or(0, |read| render::tokens(&read.rendered(form, line_max).1))
        };
        let fitted =
            token_budget::fit(&items, &rivals, (EntryForm::Summary, room), &params, tokens);
        // Only now it is known which entries are listed; the caveat is equally long either way.
        let order: Vec<EntryId> = fitted.shown.iter().map(|shown| shown.entry).collect();
        name_contradictions(read, &order, contradicting_pairs);
        let mut briefing = Briefing {
            as_of: self.now,
            workspace: self.membership.name(question.workspace),
            sections: Vec::new(),
            insights,
            left_out: placed.left_out.len() + fitted.left_out.len(),
            tasks,
            tokens: 0,
            text: String::new(),
        };
        for section in Section::ALL {
            let under = placed.placed.iter().filter(|one| one.section == section);
            let shown = under.filter_map(|one| {
                let shown = fitted.shown.iter().find(|shown| shown.entry == one.entry)?;
                let (line, words) = read.get(&one.entry)?.rendered(shown.form, line_max);
                let tokens = render::tokens(&words);
                let ReadEntry { found, caveats, .. } = read.remove(&one.entry)?;
                Some(BriefedEntry { code: found.code(), found, line, caveats, tokens })
            });
            let entries: Vec<BriefedEntry> = shown.collect();
            if !entries.is_empty() {
                briefing.sections.push(BriefedSection { section, entries });
            }
        }
        (briefing.text, briefing.tokens) = render::text(&briefing);
        briefing
    }
}

fn is_untried(read: &BTreeMap<EntryId, ReadEntry>, entry: EntryId) -> bool {
    read.get(&entry).is_some_and(|read| read.found.gate() != GateDecision::Open)
}

/// Ranks the winner of a decided contradiction above the loser if both are in one section;
/// confirmed entries stay above unconfirmed ones. Relevance values stay with the places.
fn put_winners_first(
    placed: &mut [PlannedEntry],
    contradicting_pairs: &[ContradictingPair],
    read: &BTreeMap<EntryId, ReadEntry>,
) {
    for (winner, loser) in
        contradicting_pairs.iter().filter_map(ContradictingPair::winner_and_loser)
    {
        let place = |entry| placed.iter().position(|one| one.entry == entry);
        let (Some(from), Some(to)) = (place(winner), place(loser)) else { continue };
        let is_behind = from > to && placed[from].section == placed[to].section;
        if is_behind && (is_untried(read, loser) || !is_untried(read, winner)) {
            let between = &mut placed[to..=from];
            let relevances: Vec<f64> = between.iter().map(|one| one.relevance).collect();
            between.rotate_right(1);
            for (one, relevance) in between.iter_mut().zip(relevances) {
                one.relevance = relevance;
            }
        }
    }
}

/// Adds caveats that name contradicting entries, given the order of listing.
fn name_contradictions(
    read: &mut BTreeMap<EntryId, ReadEntry>,
    order: &[EntryId],
    contradicting_pairs: &[ContradictingPair],
) {
    let named = |entry| read.get(&entry).map(|read| ContradictingEntry::of(&read.found));
    let mut competing = contradictions::caveats(order, contradicting_pairs, &named);
    for (entry, read) in read {
        read.caveats.retain(|caveat| !matches!(caveat, HitCaveat::CompetesWith { .. }));
        read.caveats.extend(competing.remove(entry).unwrap_or_default());
    }
}

impl ReadEntry {
    /// The entry as one side of a contradiction; `None` if it has no polarity.
    pub(super) fn stance(&self) -> Option<StanceEntry<'_>> {
        StanceEntry::of(&self.found, &self.scope.tags, self.endorsements)
    }

    /// The sentence shown in this form, and the complete line.
    fn rendered(&self, form: EntryForm, characters_max: usize) -> (String, String) {
        let line = match form {
            EntryForm::Line => String::new(),
            _ => entry_forms::one_liner(&self.found.view, characters_max),
        };
        let words = render::entry(&self.found, &self.found.code(), &line, &self.caveats);
        (line, words)
    }
}

impl BriefedEntry {
    pub fn title(&self) -> &str {
        self.found.view.text(Register::TITLE).unwrap_or_default()
    }
}
