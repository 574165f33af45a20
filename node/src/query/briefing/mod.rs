//! A briefing: what of a workspace matters now, gathered, judged, cut to a budget and put in words.
//!
//! The rules are in `scoring::briefing`. Here entries are chosen and read, at most 640 of them
//! however many there are: by what is kept of the view rows of all, those of the workspace are read
//! that changed last, that have most records, that have not changed for longest, that others brought
//! last, and that this person wrote last. What nobody inside has said a word about takes no place of
//! theirs. Those that this node holds to be the same are told as one. The same store at the same moment
//! gives the same bytes.

mod gather;
mod rows;
mod words;

use super::anchors::{self, Looked};
use super::caveats::{contested, own_caveats};
use super::gate::Gate;
use super::question::Caveat;
use super::rivals::{self, Named, Rivalry, Sided};
use super::survey::is_surveyed;
use super::vouched::Vouched;
use super::{Cancel, Found, Reader, Reading, SearchError, excerpt};
use crate::index::document::Scope;
use crate::index::embed;
use crate::store::tasks::{TaskRow, TaskState};
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::State;
use klnode_scoring::briefing::{self, Access, Facts, Placed, Section};
use klnode_scoring::budget::{self, Form, Item};
use klnode_scoring::predicate;
use klnode_scoring::rank::signals::Freshness;
use klnode_scoring::relevance::Calibration;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(super) use rows::KeptRows;
pub use words::FIRST_LINE;

/// Entries whose predicates are looked at in the caller's checkout.
const LOOKED_MAX: usize = 100;
/// Entries that are compared with each other for contradictions, by id.
const COMPARED_MAX: usize = 40;
/// Open tasks that are told.
const TASKS_MAX: usize = 5;
/// Of so many of the newest tasks it is looked at whether they are open.
const TASKS_READ_MAX: usize = 200;

/// What is asked of a briefing.
#[derive(Clone, Debug)]
pub struct BriefingQuestion {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// The caller's thread: its entries come first, and of tasks only its own are told.
    pub thread: Option<String>,
    /// The thread of the caller's task or branch: its entries are told, too.
    pub task_thread: Option<String>,
    /// Tokens it may take; as many as the configuration says unless given.
    pub tokens_max: Option<u32>,
    /// Where the caller is: what entries depend on is looked at in the checkout there.
    pub checkout: Option<PathBuf>,
}

impl BriefingQuestion {
    /// Whether the caller is in this thread.
    fn is_in(&self, thread: &str) -> bool {
        [&self.thread, &self.task_thread].iter().any(|own| own.as_deref() == Some(thread))
    }
}

/// What matters now.
#[derive(Clone, Debug)]
pub struct Briefing {
    /// When.
    pub as_of: WallTime,
    /// What the workspace is called here.
    pub workspace: String,
    /// What is told, by heading; headings without an entry are left out.
    pub sections: Vec<BriefedSection>,
    /// Open tasks, the newest first.
    pub tasks: Vec<(TaskId, TaskRow)>,
    /// How many entries would have been told, and were too much.
    pub left_out: usize,
    /// What the text costs, in tokens.
    pub tokens: u32,
    /// All of it as text: quoted, with where it comes from.
    pub text: String,
}

/// What stands under one heading.
#[derive(Clone, Debug)]
pub struct BriefedSection {
    /// The heading.
    pub section: Section,
    /// The entries.
    pub entries: Vec<Briefed>,
}

/// One entry of a briefing.
#[derive(Clone, Debug)]
pub struct Briefed {
    /// The entry, read and judged.
    pub found: Found,
    /// Its citation code.
    pub code: String,
    /// One sentence of it; empty where there was room for its title alone.
    pub line: String,
    /// What must be said along with it.
    pub caveats: Vec<Caveat>,
    /// What it costs, in tokens.
    pub tokens: u32,
}

/// An entry that may be told.
struct Read {
    found: Found,
    scope: Scope,
    looked: Looked,
    freshness: Freshness,
    vouched: Vouched,
    caveats: Vec<Caveat>,
}

impl Reader {
    /// What of a workspace matters now, from one state of the store. It is given up when cancelled.
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

impl Reading<'_> {
    fn briefing(
        &self,
        question: &BriefingQuestion,
        cancel: &Cancel,
    ) -> Result<Briefing, SearchError> {
        let chosen = gather::choose(self, question.workspace)?;
        let mut read = self.read_chosen(&chosen.into_iter().collect::<Vec<_>>(), cancel)?;
        read.retain(|_, read| read.found.thread().is_none_or(|thread| question.is_in(thread)));
        self.look_for_briefing(&mut read, question);
        let rivalries = self.rivalries(&read);
        let disputed: BTreeSet<EntryId> =
            rivalries.iter().flat_map(|rivalry| [rivalry.one, rivalry.two]).collect();
        let facts: Vec<Facts> = read.values().map(|read| self.facts(read, &disputed)).collect();
        let mut briefing = briefing::brief(&facts, &self.reader.numbers.briefing);
        put_winners_first(&mut briefing.placed, &rivalries, &read);
        let order: Vec<EntryId> = briefing.placed.iter().map(|placed| placed.entry).collect();
        let told = order.iter().filter_map(|entry| read.get(entry)).map(|read| &read.found);
        let successions = self.successions(told)?;
        for (entry, read) in &mut read {
            let successors = successions.of(*entry);
            read.caveats = own_caveats(&read.found, &read.freshness, &read.looked, successors);
        }
        name_rivals(&mut read, &order, &rivalries);
        let tasks = self.open_tasks(question)?;
        Ok(self.fit(question, &briefing, &mut read, &rivalries, tasks))
    }

    /// Reads entries, one half of them beside the other: reading takes most of the time there is.
    fn read_chosen(
        &self,
        chosen: &[EntryId],
        cancel: &Cancel,
    ) -> Result<BTreeMap<EntryId, Read>, SearchError> {
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
    ) -> Result<BTreeMap<EntryId, Read>, SearchError> {
        let (mut read, mut joined) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries {
            if cancel.is_cancelled() {
                return Err(SearchError::GivenUp);
            }
            if joined.contains(entry) {
                continue;
            }
            // What is damaged is not told; the rest is.
            let found = Error::unless_damaged(self.read_whole(*entry))?.flatten();
            let Some(found) = found else { continue };
            joined.extend(found.read_with());
            // By the id it is shown under: one that is the same may be read beside these.
            read.extend(self.take_up(found)?.map(|read| (read.found.entry, read)));
        }
        Ok(read)
    }

    /// An entry that was read; nothing if nobody is to be told of it: then it also disputes nothing.
    fn take_up(&self, found: Found) -> Result<Option<Read>, SearchError> {
        let Some(scope) = Scope::of(&found.view).filter(|scope| scope.memory != Memory::Episodic)
        else {
            return Ok(None);
        };
        if !is_surveyed(&found) || found.view.state != State::Live {
            return Ok(None);
        }
        let vouched = self.vouched(&found)?;
        let looked = Looked::unseen(&found.view);
        let freshness = self.freshness(looked.check, vouched, &found);
        Ok(Some(Read { found, scope, looked, freshness, vouched, caveats: Vec::new() }))
    }

    /// Looks at what entries depend on, in the caller's checkout.
    fn look_for_briefing(&self, read: &mut BTreeMap<EntryId, Read>, question: &BriefingQuestion) {
        let Some(folder) = question.checkout.as_deref() else { return };
        let unchecked = read.values_mut().filter(|read| read.looked.may_be_checked());
        let mut unchecked: Vec<&mut Read> = unchecked.take(LOOKED_MAX).collect();
        if unchecked.is_empty() {
            return;
        }
        let Some(checkout) = self.reader.caller_checkout(folder) else { return };
        let views: Vec<_> = unchecked.iter().map(|read| &read.found.view).collect();
        let looked = anchors::look(&views, &checkout, &predicate::Params::default());
        for (read, looked) in unchecked.iter_mut().zip(looked) {
            self.note(&mut read.found, looked.check);
            read.freshness = self.freshness(looked.check, read.vouched, &read.found);
            read.looked = looked;
        }
    }

    /// Entries that say opposite things. The embedder that is compiled in compares them, so that a
    /// briefing depends on nothing but the store.
    fn rivalries(&self, read: &BTreeMap<EntryId, Read>) -> Vec<Rivalry> {
        let Some(embedder) = embed::compiled_in() else { return Vec::new() };
        let sided =
            read.values().filter_map(|read| Sided::of(&read.found, &read.scope.tags, read.vouched));
        let sided: Vec<Sided<'_>> = sided.take(COMPARED_MAX).collect();
        let numbers = &self.reader.numbers;
        rivals::among(&sided, embedder, &Calibration::BUILT_IN, numbers, self.now)
    }

    fn facts(&self, read: &Read, disputed: &BTreeSet<EntryId>) -> Facts {
        let found = &read.found;
        let confidence = &found.judged.confidence;
        Facts {
            entry: found.entry,
            status: found.judged.standing.status,
            check: read.looked.check,
            freshness: read.freshness.value,
            mean: confidence.posterior.mean(),
            observations: confidence.effective_observations,
            is_disputed: !contested(&found.view).is_empty() || disputed.contains(&found.entry),
            is_in_thread: read.scope.thread.is_some(),
            is_pinned: found.overlay.is_pinned,
            access: match found.gate() {
                Gate::Open => Access::Open,
                Gate::LastPlaces => Access::Untried,
                Gate::Shut => Access::Shut,
            },
            brought_days: found
                .is_foreign()
                .then(|| self.now.day().days_since(found.first_seen.day())),
        }
    }

    /// Tasks that go on, the newest first; of a thread only its own.
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

    /// Cuts a briefing to its budget: every entry to its title before any is dropped.
    fn fit(
        &self,
        question: &BriefingQuestion,
        placed: &briefing::Briefing,
        read: &mut BTreeMap<EntryId, Read>,
        rivalries: &[Rivalry],
        mut tasks: Vec<(TaskId, TaskRow)>,
    ) -> Briefing {
        let numbers = &self.reader.numbers;
        let tokens_max = question.tokens_max.unwrap_or(numbers.briefing_tokens);
        let headings: BTreeSet<Section> = placed.placed.iter().map(|one| one.section).collect();
        let frame = words::frame_tokens(&headings);
        while !tasks.is_empty() && frame + words::tasks_tokens(&tasks) > tokens_max {
            tasks.pop();
        }
        let room = tokens_max.saturating_sub(frame + words::tasks_tokens(&tasks));
        // No entry is of a category that has to be there.
        let item = |one: &Placed| Item {
            entry: one.entry,
            kind: Kind::Lesson,
            relevance: one.relevance,
            is_untried: is_untried(read, one.entry),
        };
        let items: Vec<Item> = placed.placed.iter().map(item).collect();
        let rivals: Vec<budget::Rivals> =
            rivalries.iter().map(|rivalry| (rivalry.one, rivalry.two)).collect();
        let params = budget::Params { entries_max: items.len(), ..numbers.budget };
        let line_max = numbers.one_liner_characters_max();
        let tokens = |entry: EntryId, form: Form| {
            read.get(&entry).map_or(0, |read| words::tokens(&read.briefed(form, line_max).1))
        };
        let fitted = budget::fit(&items, &rivals, (Form::Summary, room), &params, tokens);
        // Which of them are listed is known only now; to be told so costs no more.
        let order: Vec<EntryId> = fitted.shown.iter().map(|shown| shown.entry).collect();
        name_rivals(read, &order, rivalries);
        let mut briefing = Briefing {
            as_of: self.now,
            workspace: self.society.name(question.workspace),
            sections: Vec::new(),
            left_out: placed.left_out.len() + fitted.left_out.len(),
            tasks,
            tokens: 0,
            text: String::new(),
        };
        for section in Section::ALL {
            let under = placed.placed.iter().filter(|one| one.section == section);
            let shown = under.filter_map(|one| {
                let shown = fitted.shown.iter().find(|shown| shown.entry == one.entry)?;
                let (line, words) = read.get(&one.entry)?.briefed(shown.form, line_max);
                let tokens = words::tokens(&words);
                let Read { found, caveats, .. } = read.remove(&one.entry)?;
                Some(Briefed { code: found.code(), found, line, caveats, tokens })
            });
            let entries: Vec<Briefed> = shown.collect();
            if !entries.is_empty() {
                briefing.sections.push(BriefedSection { section, entries });
            }
        }
        (briefing.text, briefing.tokens) = words::text(&briefing);
        briefing
    }
}

fn is_untried(read: &BTreeMap<EntryId, Read>, entry: EntryId) -> bool {
    read.get(&entry).is_some_and(|read| read.found.gate() != Gate::Open)
}

/// Puts the one for which clearly more speaks before the other, where both stand under one heading; what
/// was tried stays before what was not. How much a place matters goes with the place.
fn put_winners_first(placed: &mut [Placed], rivalries: &[Rivalry], read: &BTreeMap<EntryId, Read>) {
    for (winner, loser) in rivalries.iter().filter_map(Rivalry::decided) {
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

/// Has entries name what says the opposite, given the order in which they are listed.
fn name_rivals(read: &mut BTreeMap<EntryId, Read>, order: &[EntryId], rivalries: &[Rivalry]) {
    let named = |entry| read.get(&entry).map(|read| Named::of(&read.found));
    let mut competing = rivals::caveats(order, rivalries, &named);
    for (entry, read) in read {
        read.caveats.retain(|caveat| !matches!(caveat, Caveat::CompetesWith { .. }));
        read.caveats.extend(competing.remove(entry).unwrap_or_default());
    }
}

impl Read {
    /// The one sentence that is shown in a form, and the whole line.
    fn briefed(&self, form: Form, characters_max: usize) -> (String, String) {
        let line = match form {
            Form::Line => String::new(),
            _ => excerpt::one_liner(&self.found.view, characters_max),
        };
        let words = words::entry(&self.found, &self.found.code(), &line, &self.caveats);
        (line, words)
    }
}

impl Briefed {
    /// Its title.
    pub fn title(&self) -> &str {
        self.found.view.text(Register::TITLE).unwrap_or_default()
    }
}
