//! The reader of a node (its identity, parameters and caches), and one reading: a snapshot of the
//! store, a time, and the membership at that time.

use super::anchor_repositories::Bindings;
use super::author_standing::{AuthorStanding, StandingCache};
use super::briefing::RowCache;
use super::content_scan::redact_text;
use super::duplicate_check::RecentTexts;
use super::entry_assessment::{self, Assessment};
use super::entry_forms;
use super::entry_rows::EntryRows;
use super::foreign_gate::{Corroboration, GateDecision};
use super::scoring_params::ScoringParams;
use super::text_scan_cache::ShownTextCache;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_view::{Entitlement, EntryView, ProposedElement};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_git::Roots;
use klnode_scoring::content_scan::Severity;
use klnode_scoring::content_scan::disclosure::Border;
use klnode_scoring::status::TextAuthor;
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::OutcomeRow;
use klnode_store::row_types::{MarksRow, ViewRow};
use klnode_store::tasks::{TaskRow, TaskState};
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Length of a text version in hexadecimal digits.
const VERSION_DIGITS: usize = 16;

/// Reads and assesses entries on behalf of one node. It holds the parameters and the caches that
/// outlive a single reading.
#[derive(Debug)]
pub struct Reader {
    /// The author id of this node.
    pub own: AuthorId,
    /// The parameters of assessment and ranking.
    pub numbers: ScoringParams,
    pub(super) kept: StandingCache,
    pub(super) scanned: ShownTextCache<Severity>,
    /// Whether an entry has a passage that the disclosure rules flag.
    pub(super) disclosing: ShownTextCache<bool>,
    pub(super) roots: Roots,
    pub(super) rows: RowCache,
    pub(super) latest: RecentTexts,
    pub(super) border: OnceLock<Border>,
}

/// One reading of the store: all its results come from the same snapshot, time and membership.
pub struct ReadContext<'a> {
    /// The members, owners and names known at the time of the reading.
    pub membership: Arc<Membership>,
    pub(super) reader: &'a Reader,
    pub snapshot: &'a Snapshot,
    pub now: WallTime,
    pub(super) standings: AuthorCache<AuthorStanding>,
    pub(super) outcomes: AuthorCache<Vec<OutcomeRow>>,
}

/// A cache by author, shared by the threads that read for one answer.
pub(super) struct AuthorCache<T>(Mutex<BTreeMap<AuthorId, Arc<T>>>);

impl<T> AuthorCache<T> {
    fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The cached value for an author.
    pub(super) fn get(&self, author: AuthorId) -> Option<Arc<T>> {
        // A panic in another thread cannot leave the map half-written, so a poisoned lock is safe.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&author).cloned()
    }

    /// Stores a value. Two threads may compute it concurrently; both get the same result.
    pub(super) fn keep(&self, author: AuthorId, found: impl Into<Arc<T>>) -> Arc<T> {
        let found: Arc<T> = found.into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(author, Arc::clone(&found));
        found
    }
}

/// An entry, read and assessed.
#[derive(Clone, Debug)]
pub struct AssessedEntry {
    /// The id under which the entry is shown.
    pub entry: EntryId,
    /// The merged state of the entry, as entitled authors wrote it.
    pub view: EntryView,
    /// The local name of the entry's workspace; empty if unknown.
    pub workspace: String,
    /// Confidence, status and gate of the entry.
    pub assessment: Assessment,
    /// The standing of the author who answers for the shown text; `None` if the entry has no text.
    pub author: Option<Arc<AuthorStanding>>,
    /// The authors whose tags, citations and predicates count as the text's own: the author who
    /// answers for the text, and the owner's nodes.
    pub voices: BTreeSet<AuthorId>,
    /// The operator's marks on the entry, on this node only: pinned, muted, invalidated, note.
    pub overlay: MarksRow,
    /// The time at which this node first stored the entry.
    pub first_seen: WallTime,
    /// Duplicates that are merged into this entry and counted with it.
    pub merged: Vec<EntryId>,
    /// The entry whose text is shown: this entry, or a merged duplicate with a longer text.
    pub text_of: EntryId,
    /// The entry under which this one is shown, if it is a merged duplicate of another.
    pub merged_into: Option<EntryId>,
}

impl AssessedEntry {
    /// The thread of the entry, if its creator or an author of its text set it. A thread set by
    /// another member has no effect: it would hide the entry from every other caller.
    pub(super) fn thread(&self) -> Option<&str> {
        let shown = &self.view.registers.get(&Register::THREAD)?.value;
        let creator = self.view.origin.as_ref().and_then(Origin::creator);
        let is_entitled = self.voices.contains(&shown.author) || creator == Some(shown.author);
        Some(shown.text.as_str()).filter(|thread| is_entitled && !thread.is_empty())
    }

    /// The citation code, such as `L-7F3KQ2MX`.
    pub fn code(&self) -> String {
        entry_forms::code(self.entry, &self.view)
    }

    /// The version of the shown text: it changes when title, content or summary changes.
    pub fn version(&self) -> String {
        let mut digits = self.view.text_digest().to_string();
        digits.truncate(VERSION_DIGITS);
        digits
    }

    /// True if the shown text was written by an author other than the owner of this node.
    pub fn is_foreign(&self) -> bool {
        self.assessment.writer == TextAuthor::Foreign
    }

    /// True if the entry was confirmed to work, on this node or by trusted members.
    pub fn is_corroborated(&self) -> bool {
        self.assessment.corroboration != Corroboration::None
    }

    /// True if one of these authors is in `voices`, so that their addition is shown as the text's
    /// own.
    pub fn is_own_voice(&self, by: &BTreeSet<AuthorId>) -> bool {
        !self.voices.is_disjoint(by)
    }

    /// The gate decision: whether the entry may enter an answer that no person reviews.
    pub fn gate(&self) -> GateDecision {
        self.assessment.gate
    }
}

impl Reader {
    /// Creates a reader with empty caches.
    pub fn new(own: AuthorId, numbers: ScoringParams) -> Self {
        let kept = StandingCache::new(numbers.confidence.lower_quantile);
        let (scanned, disclosing) = (ShownTextCache::default(), ShownTextCache::default());
        let (roots, rows) = (Roots::default(), RowCache::default());
        let (latest, border) = (RecentTexts::default(), OnceLock::new());
        Self { own, numbers, kept, scanned, disclosing, roots, rows, latest, border }
    }

    /// Starts a reading: loads the membership at `now`.
    pub fn at<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        now: WallTime,
    ) -> Result<ReadContext<'a>, Error> {
        let membership = Membership::read(snapshot, self.own, now)?;
        Ok(self.with_membership(snapshot, Arc::new(membership), now))
    }

    /// Starts a reading with membership that is already loaded.
    pub fn with_membership<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        membership: Arc<Membership>,
        now: WallTime,
    ) -> ReadContext<'a> {
        let (standings, outcomes) = (AuthorCache::new(), AuthorCache::new());
        ReadContext { membership, reader: self, snapshot, now, standings, outcomes }
    }

    /// Reads one entry; `None` if this node does not hold it.
    pub fn read(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
        now: WallTime,
    ) -> Result<Option<AssessedEntry>, Error> {
        self.at(snapshot, now)?.read(entry)
    }
}

impl ReadContext<'_> {
    /// Reads one entry; `None` if this node does not hold it.
    pub fn read(&self, entry: EntryId) -> Result<Option<AssessedEntry>, Error> {
        let Some((row, view)) = self.view(entry)? else { return Ok(None) };
        let uses = self.snapshot.uses(entry)?;
        let proven = uses.proven.map(|of| (entry, of)).into_iter().collect();
        self.assess(EntryRows { entry, row, view, uses, proven, parts: Vec::new() }).map(Some)
    }

    /// Reads one entry of many: a damaged entry is skipped. `klnode check` reports it.
    pub fn read_sound(&self, entry: EntryId) -> Result<Option<AssessedEntry>, Error> {
        Ok(Error::unless_damaged(self.read(entry))?.flatten())
    }

    /// Reads an entry from a subset of its records, as if these were all; `None` if there are none.
    /// Use counts and marks are the current ones.
    pub fn read_from(
        &self,
        entry: EntryId,
        records: &[Record],
    ) -> Result<Option<AssessedEntry>, Error> {
        let Some(row) = self.snapshot.view_row(entry)?.filter(|_| !records.is_empty()) else {
            return Ok(None);
        };
        let entitlement = self.membership.entitlement(row.workspace);
        let view = Entry::assemble(records.iter()).view(self.now, &entitlement);
        let uses = self.snapshot.uses(entry)?;
        let proven = uses.proven.map(|of| (entry, of)).into_iter().collect();
        self.assess(EntryRows { entry, row, view, uses, proven, parts: Vec::new() }).map(Some)
    }

    /// The state of a task at the time of this reading.
    pub fn task_state(&self, task: &TaskRow) -> TaskState {
        task.state(self.now, self.reader.numbers.task_expires_after())
    }

    /// The view of an entry before assessment.
    pub(super) fn view(&self, entry: EntryId) -> Result<Option<(ViewRow, EntryView)>, Error> {
        let Some(row) = self.snapshot.view_row(entry)? else { return Ok(None) };
        let entitlement = self.membership.entitlement(row.workspace);
        let view = self.snapshot.entry(entry)?.to_entry().view(self.now, &entitlement);
        let mut view = self.snapshot.with_document(entry, view)?;
        // Edits pass no content scan, so that all members hold the same text.
        view.document = view.document.map(|text| redact_text(&text));
        Ok(Some((row, view)))
    }

    /// The last change of an entry by its authors' clocks; `None` if no entitled author made a
    /// claim.
    pub fn last_change(
        &self,
        entry: EntryId,
        workspace: Option<WorkspaceId>,
    ) -> Result<Option<WallTime>, Error> {
        let entitlement = self.membership.entitlement(workspace);
        let view = self.snapshot.entry(entry)?.to_entry().view(self.now, &entitlement);
        Ok(view.dates.map(|dates| dates.updated))
    }

    /// The view of an entry from the claims of the owner's nodes alone, without fellow members.
    pub fn own_view(&self, entry: EntryId) -> Result<EntryView, Error> {
        let entitlement =
            Entitlement { mine: self.membership.mine.clone(), members: BTreeSet::new() };
        Ok(self.snapshot.entry(entry)?.to_entry().view(self.now, &entitlement))
    }

    /// The author who answers for the shown text. If several other authors wrote parts of it, this
    /// is the one with the lowest standing: an author must not gain trust from a co-author with a
    /// higher one.
    fn answering_author(&self, view: &EntryView) -> Result<Option<Arc<AuthorStanding>>, Error> {
        let mut least: Option<Arc<AuthorStanding>> = None;
        let workspace = view.origin.as_ref().map(|origin| origin.workspace());
        let others = view.text_authors().filter(|author| !self.membership.mine.contains(author));
        for author in others {
            let of = self.standing(author)?;
            let rank = |of: &AuthorStanding| {
                (workspace.is_some_and(|id| self.is_fellow_in(of.author, id)), of.weight.value)
            };
            if least.as_ref().is_none_or(|held| rank(&of) < rank(held)) {
                least = Some(of);
            }
        }
        match (least, view.author(&self.membership.mine)) {
            (None, Some(author)) => Ok(Some(self.standing(author)?)),
            (least, _) => Ok(least),
        }
    }

    pub(super) fn assess(&self, seen: EntryRows) -> Result<AssessedEntry, Error> {
        let author = self.answering_author(&seen.view)?;
        let overlay = self.snapshot.overlay(seen.entry)?;
        let assessment = entry_assessment::judge(self, &seen, &overlay, author.as_deref())?;
        let EntryRows { entry, row, view, .. } = seen;
        let workspace = row.workspace.map(|id| self.membership.name(id)).unwrap_or_default();
        let mine = self.membership.mine.iter().copied();
        let voices = mine.chain(author.as_ref().map(|by| by.author)).collect();
        Ok(AssessedEntry {
            entry,
            view,
            workspace,
            assessment,
            author,
            voices,
            overlay,
            first_seen: row.first_seen,
            merged: Vec::new(),
            text_of: entry,
            merged_into: None,
        })
    }

    /// Set elements that non-entitled authors added to an entry.
    pub fn proposed_elements(&self, of: &AssessedEntry) -> Result<Vec<ProposedElement>, Error> {
        let workspace = of.view.origin.as_ref().map(|origin| origin.workspace());
        let entitlement = self.membership.entitlement(workspace);
        let held = self.snapshot.entry(of.entry)?.to_entry();
        let mut proposed = held.proposed_elements(&of.view, &entitlement);
        // A person who accepts an anchor accepts its repository with it.
        proposed.retain(|element| element.set != TextSet::ANCHOR_REPOSITORIES);
        Ok(proposed)
    }

    /// The repositories that a non-entitled author recorded for the predicates it proposes.
    pub fn proposed_bindings(
        &self,
        of: &AssessedEntry,
        author: AuthorId,
    ) -> Result<Bindings, Error> {
        let workspace = of.view.origin.as_ref().map(|origin| origin.workspace());
        let entitlement = self.membership.entitlement(workspace);
        let held = self.snapshot.entry(of.entry)?.to_entry();
        let proposed = held.proposed_elements(&of.view, &entitlement);
        let is_meant = |element: &&ProposedElement| {
            element.author == author && element.set == TextSet::ANCHOR_REPOSITORIES
        };
        let elements = proposed.iter().filter(is_meant).map(|element| element.text.as_str());
        Ok(Bindings::read(elements))
    }
}
