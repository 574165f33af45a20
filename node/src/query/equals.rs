//! Entries that this node holds to be the same, read as one: own `same_as` edges, applied.
//!
//! What was observed of any of them counts for the one that is shown. Only edges of this node and
//! of *mine* apply, never across workspaces or memories, and words of others never stand over one's
//! own: whoever rewrites a survivor loses its place to the next of one's own. What the operator hides
//! under the id that is shown is hidden with all its equals: they say the same.

use super::reading::Seen;
use super::{Found, Reading};
use crate::store::Error;
use crate::store::rows::{UseRow, ViewRow};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Origin;
use klnode_crdt::time::Hlc;
use klnode_crdt::view::{State, View};
use klnode_scoring::duplicates::{Equal, Survivor, survivor};

/// What is shown of the one whose text is shown.
const SHOWN: [Register; 3] = [Register::CONTENT, Register::TITLE, Register::SUMMARY];

struct Member {
    entry: EntryId,
    row: ViewRow,
    view: View,
    hidden: Hidden,
}

/// Whether an entry is put away, or out of sight: then its text answers for no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    No,
    /// By the rule, because nobody needed it.
    ByRule,
    /// By the person.
    ByHand,
}

impl Found {
    /// Every entry that was read as this one: whoever has this one needs none of them again.
    pub(super) fn read_with(&self) -> impl Iterator<Item = EntryId> {
        self.merged.iter().copied().chain([self.entry])
    }
}

impl Reading<'_> {
    /// Reads an entry with all that this node holds to be the same: it comes back under the
    /// survivor's id.
    pub fn read_whole(&self, entry: EntryId) -> Result<Option<Found>, Error> {
        let group = self.snapshot.group(entry)?;
        if group.len() < 2 {
            return self.read(entry);
        }
        let Some(asked) = self.member(entry)? else { return Ok(None) };
        let is_hidden = asked.hidden != Hidden::No;
        if asked.hidden == Hidden::ByRule {
            return self.read(entry);
        }
        let mut members: Vec<Member> = Vec::with_capacity(group.len());
        for other in group.into_iter().filter(|other| *other != entry) {
            // What is damaged of another hides nothing that is whole.
            let other = Error::unless_damaged(self.member(other))?.flatten();
            let is_one = |other: &Member| {
                other.hidden != Hidden::ByRule && is_equal(&asked.view, &other.view)
            };
            members.extend(other.filter(is_one));
        }
        members.push(asked);
        // Whichever is asked for, the same comes of them.
        members.sort_by_key(|of| of.entry);
        let first = self.chosen(&members).entry;
        if is_hidden && first != entry {
            return self.read(entry);
        }
        // What the person hides takes its equals with it if it stands for them; any other goes alone.
        members.retain(|of| of.entry == first || of.hidden == Hidden::No);
        if members.len() < 2 {
            return self.read(entry);
        }
        self.join(members).map(Some)
    }

    /// Reads an entry as it is shown by name: with its equals if it is the one shown for them, else
    /// alone, with the one under which it is shown.
    pub fn read_shown(&self, entry: EntryId) -> Result<Option<Found>, Error> {
        let whole = self.read_whole(entry)?;
        let Some(other) = whole.as_ref().map(|found| found.entry).filter(|one| *one != entry)
        else {
            return Ok(whole);
        };
        let alone = self.read(entry)?;
        Ok(alone.map(|found| Found { merged_into: Some(other), ..found }))
    }

    fn member(&self, entry: EntryId) -> Result<Option<Member>, Error> {
        let Some((row, view)) = self.view(entry)? else { return Ok(None) };
        let hidden = self.hidden(entry, &view)?;
        Ok(Some(Member { entry, row, view, hidden }))
    }

    pub(super) fn hidden(&self, entry: EntryId, view: &View) -> Result<Hidden, Error> {
        let overlay = self.snapshot.overlay(entry)?;
        if overlay.is_muted || overlay.is_invalidated {
            return Ok(Hidden::ByHand);
        }
        let uses = Error::unless_damaged(self.snapshot.uses(entry))?.unwrap_or_default();
        Ok(match (view.archived.is_some(), uses.is_put_away) {
            (false, _) => Hidden::No,
            (true, true) => Hidden::ByRule,
            (true, false) => Hidden::ByHand,
        })
    }

    /// Whether the words that are shown are this node's own, or *mine*.
    pub(super) fn is_own_text(&self, view: &View) -> bool {
        let mine = &self.society.mine;
        view.author(mine).is_some_and(|author| mine.contains(&author))
    }

    /// Which of them stands for all, and whose text is shown.
    fn chosen(&self, members: &[Member]) -> Survivor {
        let equals: Vec<Equal> = members
            .iter()
            .map(|of| Equal {
                entry: of.entry,
                created: created(&of.row, &of.view),
                is_imported: !is_created(&of.view),
                is_own: self.is_own_text(&of.view),
                length: of.view.text(Register::CONTENT).unwrap_or_default().chars().count(),
            })
            .collect();
        survivor(&equals, self.reader.numbers.longer_text_factor).expect("a group is not empty")
    }

    fn join(&self, mut members: Vec<Member>) -> Result<Found, Error> {
        let chosen = self.chosen(&members);
        let (mut uses, mut made_in, mut proven) = (UseRow::default(), None, Vec::new());
        for of in &members {
            let row = Error::unless_damaged(self.snapshot.uses(of.entry))?.unwrap_or_default();
            if of.entry == chosen.entry {
                made_in = row.made_in;
            }
            proven.extend(row.proven.map(|proven| (of.entry, proven)));
            uses = added(uses, row);
        }
        uses.made_in = made_in;
        let parts = members.iter().map(|of| (of.entry, of.view.counts.clone())).collect();
        let at = |entry| members.iter().position(|of| of.entry == entry);
        let text = at(chosen.text).map(|at| members[at].view.registers.clone());
        let first = at(chosen.entry).expect("the survivor is one of the group");
        let Member { entry, row, mut view, .. } = members.remove(first);
        for other in &members {
            take_in(&mut view, &other.view);
        }
        if let Some(text) = text.filter(|_| chosen.text != entry) {
            for register in SHOWN {
                match text.get(&register) {
                    Some(shown) => view.registers.insert(register, shown.clone()),
                    None => view.registers.remove(&register),
                };
            }
        }
        let found = self.judged(Seen { entry, row, view, uses, proven, parts })?;
        let merged = members.iter().map(|of| of.entry).collect();
        Ok(Found { merged, text_of: chosen.text, ..found })
    }
}

/// Whether two views may be one: both shown, in one workspace and memory.
fn is_equal(one: &View, other: &View) -> bool {
    let place = |view: &View| view.origin.as_ref().map(|of| (of.workspace(), of.memory()));
    let is_live = |view: &View| view.state == State::Live;
    is_live(one) && is_live(other) && place(one) == place(other)
}

/// Adds what was observed of another, and its tags.
fn take_in(view: &mut View, other: &View) {
    for (author, counts) in &other.counts {
        let sum = view.counts.entry(*author).or_default();
        sum.successes.extend_from_slice(&counts.successes);
        sum.failures.extend_from_slice(&counts.failures);
        sum.confirmations.extend_from_slice(&counts.confirmations);
    }
    let tags = view.texts.entry(TextSet::TAGS).or_default();
    for (tag, authors) in other.texts.get(&TextSet::TAGS).into_iter().flatten() {
        tags.entry(tag.clone()).or_default().extend(authors);
    }
}

fn added(one: UseRow, other: UseRow) -> UseRow {
    UseRow {
        served: one.served.saturating_add(other.served),
        last_served: one.last_served.max(other.last_served),
        prediction_errors: one.prediction_errors.saturating_add(other.prediction_errors),
        weak: one.weak_of_both(&other),
        primed_confirmations: one.primed_confirmations.saturating_add(other.primed_confirmations),
        idle_tasks: one.idle_tasks.max(other.idle_tasks),
        is_from_success: one.is_from_success || other.is_from_success,
        used: one.used.saturating_add(other.used),
        alpha_peak: one.alpha_peak.max(other.alpha_peak),
        held: one.held.max(other.held),
        look_counted: one.look_counted.max(other.look_counted),
        person_confirmed: one.person_confirmed.max(other.person_confirmed),
        unarchived: one.unarchived.max(other.unarchived),
        // Entries that are the same say the same: their imports are counted once.
        prior: one.prior.or(other.prior),
        // Of one entry alone: in which task it was written, what the rule put away it brings back, who
        // spoke of it that day, who has read it, and how its text did.
        made_in: None,
        is_put_away: false,
        voices: None,
        readers: None,
        proven: None,
    }
}

/// Whether somebody created an entry, rather than imported it.
fn is_created(view: &View) -> bool {
    matches!(view.origin, Some(Origin::Created { .. }))
}

/// When an entry was created, by its creator's clock; an import when it was first seen here.
fn created(row: &ViewRow, view: &View) -> Hlc {
    match &view.origin {
        Some(Origin::Created { stamp, .. }) => *stamp,
        _ => Hlc::new(row.first_seen, 0),
    }
}
