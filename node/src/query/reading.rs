//! Who reads, by which numbers, and one reading: a snapshot, a moment, and who is who in it.

use super::bindings::Bindings;
use super::border::Scanned;
use super::briefing::KeptRows;
use super::checkout::Roots;
use super::excerpt;
use super::gate::{Corroboration, Gate};
use super::judge::{self, Judged};
use super::numbers::Numbers;
use super::standing::{Kept, Standing};
use super::twice::Latest;
use crate::store::peers::Society;
use crate::store::peers::rows::OutcomeRow;
use crate::store::rows::{OverlayRow, ProvenRow, UseRow, ViewRow};
use crate::store::tasks::{TaskRow, TaskState};
use crate::store::{Error, Snapshot};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Origin;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{Counts, Entitlement, ProposedElement, View};
use klnode_scoring::scan::share::Border;
use klnode_scoring::status::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Hexadecimal digits that name the version of a text.
const VERSION_DIGITS: usize = 16;

/// Who reads, and by which numbers.
#[derive(Debug)]
pub struct Reader {
    /// This node.
    pub own: AuthorId,
    /// The numbers of judgement.
    pub numbers: Numbers,
    pub(super) kept: Kept,
    pub(super) scanned: Scanned,
    pub(super) roots: Roots,
    pub(super) rows: KeptRows,
    pub(super) latest: Latest,
    pub(super) border: OnceLock<Border>,
}

/// One reading of the store: everything in it is judged by one state of affairs.
pub struct Reading<'a> {
    /// Who is who.
    pub society: Arc<Society>,
    pub(super) reader: &'a Reader,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) now: WallTime,
    pub(super) standings: Known<Standing>,
    pub(super) outcomes: Known<Vec<OutcomeRow>>,
}

/// What was found of authors so far: several threads may read for one answer.
pub(super) struct Known<T>(Mutex<BTreeMap<AuthorId, Arc<T>>>);

impl<T> Known<T> {
    fn nothing() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What was found of an author.
    pub(super) fn get(&self, author: AuthorId) -> Option<Arc<T>> {
        // A map is whole whoever panics beside it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&author).cloned()
    }

    /// Keeps what was found. Where two have found it at once, it is the same.
    pub(super) fn keep(&self, author: AuthorId, found: impl Into<Arc<T>>) -> Arc<T> {
        let found: Arc<T> = found.into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(author, Arc::clone(&found));
        found
    }
}

/// What is judged.
pub(super) struct Seen {
    pub(super) entry: EntryId,
    pub(super) row: ViewRow,
    pub(super) view: View,
    pub(super) uses: UseRow,
    /// What outcomes that are kept no longer said of it, and of all that are read as it.
    pub(super) proven: Vec<(EntryId, ProvenRow)>,
    /// What was counted of each of those that are read as one; nothing where one is read alone.
    pub(super) parts: Vec<(EntryId, BTreeMap<AuthorId, Counts>)>,
}

impl Seen {
    /// What was counted, by the entry of which it was.
    pub(super) fn counted(&self) -> Vec<(EntryId, &BTreeMap<AuthorId, Counts>)> {
        match self.parts.is_empty() {
            true => vec![(self.entry, &self.view.counts)],
            false => self.parts.iter().map(|(entry, counts)| (*entry, counts)).collect(),
        }
    }
}

/// An entry as it is answered.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub entry: EntryId,
    /// What it says.
    pub view: View,
    /// What its workspace is called here; empty where that is not known.
    pub workspace: String,
    /// How far it is believed.
    pub judged: Judged,
    /// Who answers for the text that is shown; nobody where there is none.
    pub author: Option<Arc<Standing>>,
    /// Whose tags, citations and predicates are shown as the text's own: those of whoever answers for
    /// it, and of this person's nodes.
    pub voices: BTreeSet<AuthorId>,
    /// The operator's marks on it.
    pub overlay: OverlayRow,
    /// When it was first seen here.
    pub first_seen: WallTime,
    /// Entries that this node holds to be the same, and that are counted with this one.
    pub merged: Vec<EntryId>,
    /// The entry whose text is shown: this one, or one of those that says it at greater length.
    pub text_of: EntryId,
    /// The entry under which this one is shown, where it is shown under another.
    pub merged_into: Option<EntryId>,
}

impl Found {
    /// The thread of the entry, if its creator or an author of its text set it. A thread set by
    /// another member has no effect: it would hide the entry from every other caller.
    pub(super) fn thread(&self) -> Option<&str> {
        let shown = &self.view.registers.get(&Register::THREAD)?.value;
        let creator = self.view.origin.as_ref().and_then(Origin::creator);
        let is_entitled = self.voices.contains(&shown.author) || creator == Some(shown.author);
        Some(shown.text.as_str()).filter(|thread| is_entitled && !thread.is_empty())
    }

    /// What people call it.
    pub fn code(&self) -> String {
        excerpt::code(self.entry, &self.view)
    }

    /// Names the text that is shown: another one as soon as title, content or summary is another.
    pub fn version(&self) -> String {
        let mut digits = self.view.text_digest().to_string();
        digits.truncate(VERSION_DIGITS);
        digits
    }

    /// Whether somebody else wrote the text that is shown.
    pub fn is_foreign(&self) -> bool {
        self.judged.writer == Writer::Foreign
    }

    /// Whether it has been seen to work, here or by members who are trusted.
    pub fn is_corroborated(&self) -> bool {
        self.judged.corroboration != Corroboration::None
    }

    /// Whether something that these authors have put beside the text is shown as its own.
    pub fn speaks(&self, by: &BTreeSet<AuthorId>) -> bool {
        !self.voices.is_disjoint(by)
    }

    /// Whether it may enter an answer that nobody looks at first.
    pub fn gate(&self) -> Gate {
        self.judged.gate
    }
}

impl Reader {
    /// A node that reads.
    pub fn new(own: AuthorId, numbers: Numbers) -> Self {
        let kept = Kept::new(numbers.confidence.lower_quantile);
        let (scanned, roots, rows) = (Scanned::default(), Roots::default(), KeptRows::default());
        let (latest, border) = (Latest::default(), OnceLock::new());
        Self { own, numbers, kept, scanned, roots, rows, latest, border }
    }

    /// Begins a reading.
    pub fn at<'a>(&'a self, snapshot: &'a Snapshot, now: WallTime) -> Result<Reading<'a>, Error> {
        let society = Society::read(snapshot, self.own, now)?;
        Ok(self.among(snapshot, Arc::new(society), now))
    }

    /// The same, where it is known already who is who.
    pub(crate) fn among<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        society: Arc<Society>,
        now: WallTime,
    ) -> Reading<'a> {
        let (standings, outcomes) = (Known::nothing(), Known::nothing());
        Reading { society, reader: self, snapshot, now, standings, outcomes }
    }

    /// Reads one entry; nothing if this node has never heard of it.
    pub fn read(
        &self,
        snapshot: &Snapshot,
        entry: EntryId,
        now: WallTime,
    ) -> Result<Option<Found>, Error> {
        self.at(snapshot, now)?.read(entry)
    }
}

impl Reading<'_> {
    /// Reads one entry; nothing if this node has never heard of it.
    pub fn read(&self, entry: EntryId) -> Result<Option<Found>, Error> {
        let Some((row, view)) = self.view(entry)? else { return Ok(None) };
        let uses = self.snapshot.uses(entry)?;
        let proven = uses.proven.map(|of| (entry, of)).into_iter().collect();
        self.judged(Seen { entry, row, view, uses, proven, parts: Vec::new() }).map(Some)
    }

    /// The same, where many are read: what is damaged is passed over. The doctor tells of it.
    pub fn read_sound(&self, entry: EntryId) -> Result<Option<Found>, Error> {
        Ok(Error::unless_damaged(self.read(entry))?.flatten())
    }

    /// Reads an entry from some of its records, as if these were all; nothing where there are none. What
    /// is kept of its use is that of now.
    pub(crate) fn read_from(
        &self,
        entry: EntryId,
        records: &[Record],
    ) -> Result<Option<Found>, Error> {
        let Some(row) = self.snapshot.view_row(entry)?.filter(|_| !records.is_empty()) else {
            return Ok(None);
        };
        let entitlement = self.society.entitlement(row.workspace);
        let view = Entry::assemble(records.iter()).view(self.now, &entitlement);
        let uses = self.snapshot.uses(entry)?;
        let proven = uses.proven.map(|of| (entry, of)).into_iter().collect();
        self.judged(Seen { entry, row, view, uses, proven, parts: Vec::new() }).map(Some)
    }

    /// How far a task is.
    pub(crate) fn task_state(&self, task: &TaskRow) -> TaskState {
        task.state(self.now, self.reader.numbers.task_expires_after())
    }

    /// An entry as it is shown, before anything is judged.
    pub(super) fn view(&self, entry: EntryId) -> Result<Option<(ViewRow, View)>, Error> {
        let Some(row) = self.snapshot.view_row(entry)? else { return Ok(None) };
        let entitlement = self.society.entitlement(row.workspace);
        let view = self.snapshot.entry(entry)?.to_entry().view(self.now, &entitlement);
        Ok(Some((row, view)))
    }

    /// When an entry last changed, by its authors' clocks; none where nobody entitled says anything.
    pub fn updated(
        &self,
        entry: EntryId,
        workspace: Option<WorkspaceId>,
    ) -> Result<Option<WallTime>, Error> {
        let entitlement = self.society.entitlement(workspace);
        let view = self.snapshot.entry(entry)?.to_entry().view(self.now, &entitlement);
        Ok(view.dates.map(|dates| dates.updated))
    }

    /// An entry as this person has it, whatever fellow members say.
    pub fn placed(&self, entry: EntryId) -> Result<View, Error> {
        let entitlement = Entitlement { mine: self.society.mine.clone(), members: BTreeSet::new() };
        Ok(self.snapshot.entry(entry)?.to_entry().view(self.now, &entitlement))
    }

    /// Who answers for the text that is shown. Of several others who wrote parts of it, whoever counts
    /// least here: nobody's words get in by standing beside another's.
    fn answering(&self, view: &View) -> Result<Option<Arc<Standing>>, Error> {
        let mut least: Option<Arc<Standing>> = None;
        let workspace = view.origin.as_ref().map(|origin| origin.workspace());
        let others = view.text_authors().filter(|author| !self.society.mine.contains(author));
        for author in others {
            let of = self.standing(author)?;
            let rank = |of: &Standing| {
                (workspace.is_some_and(|id| self.is_fellow_in(of.author, id)), of.weight.value)
            };
            if least.as_ref().is_none_or(|held| rank(&of) < rank(held)) {
                least = Some(of);
            }
        }
        match (least, view.author(&self.society.mine)) {
            (None, Some(author)) => Ok(Some(self.standing(author)?)),
            (least, _) => Ok(least),
        }
    }

    pub(super) fn judged(&self, seen: Seen) -> Result<Found, Error> {
        let author = self.answering(&seen.view)?;
        let overlay = self.snapshot.overlay(seen.entry)?;
        let judged = judge::judge(self, &seen, &overlay, author.as_deref())?;
        let Seen { entry, row, view, .. } = seen;
        let workspace = row.workspace.map(|id| self.society.name(id)).unwrap_or_default();
        let mine = self.society.mine.iter().copied();
        let voices = mine.chain(author.as_ref().map(|by| by.author)).collect();
        Ok(Found {
            entry,
            view,
            workspace,
            judged,
            author,
            voices,
            overlay,
            first_seen: row.first_seen,
            merged: Vec::new(),
            text_of: entry,
            merged_into: None,
        })
    }

    /// Elements that authors whose word is not shown would have in an entry's sets.
    pub fn proposed_elements(&self, of: &Found) -> Result<Vec<ProposedElement>, Error> {
        let workspace = of.view.origin.as_ref().map(|origin| origin.workspace());
        let entitlement = self.society.entitlement(workspace);
        let held = self.snapshot.entry(of.entry)?.to_entry();
        let mut proposed = held.proposed_elements(&of.view, &entitlement);
        // Accepting an anchor accepts its repository with it.
        proposed.retain(|element| element.set != TextSet::ANCHOR_REPOSITORIES);
        Ok(proposed)
    }

    /// The repositories that one such author recorded for the predicates it proposes.
    pub fn proposed_bindings(&self, of: &Found, author: AuthorId) -> Result<Bindings, Error> {
        let workspace = of.view.origin.as_ref().map(|origin| origin.workspace());
        let entitlement = self.society.entitlement(workspace);
        let held = self.snapshot.entry(of.entry)?.to_entry();
        let proposed = held.proposed_elements(&of.view, &entitlement);
        let is_meant = |element: &&ProposedElement| {
            element.author == author && element.set == TextSet::ANCHOR_REPOSITORIES
        };
        let elements = proposed.iter().filter(is_meant).map(|element| element.text.as_str());
        Ok(Bindings::read(elements))
    }
}
