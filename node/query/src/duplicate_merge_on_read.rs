//! Merges duplicates on read: applies this node's `same_as` links.
//!
//! Observations of all entries in a group count for the one that is shown. Only links of this node
//! and of the owner's other nodes apply, never across workspaces or memories. A text by another
//! author never replaces one of the owner's: if another author rewrites the survivor, the next own
//! entry becomes the survivor. If the operator hides the shown entry, its duplicates are hidden
//! with it, because they have the same text.

use super::entry_rows::EntryRows;
use super::{AssessedEntry, ReadContext};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::ids::EntryId;
use klnode_crdt::register::Register;
use klnode_crdt::time::Hlc;
use klnode_scoring::duplicates::{GroupEntry, Survivor, survivor};
use klnode_store::Error;
use klnode_store::row_types::{UseRow, ViewRow};

/// Registers that are taken from the entry whose text is shown.
const SHOWN: [Register; 3] = [Register::CONTENT, Register::TITLE, Register::SUMMARY];

struct GroupMember {
    entry: EntryId,
    row: ViewRow,
    view: EntryView,
    hidden: Visibility,
}

/// Whether an entry is archived or hidden; then its text is not shown for its duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    No,
    /// Archived by maintenance because it was not used.
    ByRule,
    /// Archived, muted or invalidated by the operator.
    ByHand,
}

impl AssessedEntry {
    /// The entry and all duplicates merged into it; none of them needs to be read again.
    pub(super) fn read_with(&self) -> impl Iterator<Item = EntryId> {
        self.merged.iter().copied().chain([self.entry])
    }
}

impl ReadContext<'_> {
    /// Reads an entry together with its duplicates and returns it under the survivor's id.
    pub fn read_whole(&self, entry: EntryId) -> Result<Option<AssessedEntry>, Error> {
        let group = self.snapshot.group(entry)?;
        if group.len() < 2 {
            return self.read(entry);
        }
        let Some(asked) = self.member(entry)? else { return Ok(None) };
        let is_hidden = asked.hidden != Visibility::No;
        if asked.hidden == Visibility::ByRule {
            return self.read(entry);
        }
        let mut members: Vec<GroupMember> = Vec::with_capacity(group.len());
        for other in group.into_iter().filter(|other| *other != entry) {
            // A damaged duplicate does not prevent reading the others.
            let other = Error::unless_damaged(self.member(other))?.flatten();
            let is_one = |other: &GroupMember| {
                other.hidden != Visibility::ByRule && is_equal(&asked.view, &other.view)
            };
            members.extend(other.filter(is_one));
        }
        members.push(asked);
        // Sort, so that the result does not depend on which entry was asked for.
        members.sort_by_key(|of| of.entry);
        let first = self.select_survivor(&members).entry;
        if is_hidden && first != entry {
            return self.read(entry);
        }
        // A hidden survivor hides its duplicates; a hidden duplicate is dropped alone.
        members.retain(|of| of.entry == first || of.hidden == Visibility::No);
        if members.len() < 2 {
            return self.read(entry);
        }
        self.merge(members).map(Some)
    }

    /// Reads an entry that the caller named: with its duplicates if it is the survivor, otherwise
    /// alone, with the survivor in `merged_into`.
    pub fn read_shown(&self, entry: EntryId) -> Result<Option<AssessedEntry>, Error> {
        let whole = self.read_whole(entry)?;
        let Some(other) = whole.as_ref().map(|found| found.entry).filter(|one| *one != entry)
        else {
            return Ok(whole);
        };
        let alone = self.read(entry)?;
        Ok(alone.map(|found| AssessedEntry { merged_into: Some(other), ..found }))
    }

    fn member(&self, entry: EntryId) -> Result<Option<GroupMember>, Error> {
        let Some((row, view)) = self.view(entry)? else { return Ok(None) };
        let hidden = self.hidden(entry, &view)?;
        Ok(Some(GroupMember { entry, row, view, hidden }))
    }

    pub(super) fn hidden(&self, entry: EntryId, view: &EntryView) -> Result<Visibility, Error> {
        let overlay = self.snapshot.overlay(entry)?;
        if overlay.is_muted || overlay.is_invalidated {
            return Ok(Visibility::ByHand);
        }
        let uses = Error::unless_damaged(self.snapshot.uses(entry))?.unwrap_or_default();
        Ok(match (view.archived.is_some(), uses.is_put_away) {
            (false, _) => Visibility::No,
            (true, true) => Visibility::ByRule,
            (true, false) => Visibility::ByHand,
        })
    }

    /// True if the shown text was written on one of the owner's nodes.
    pub(super) fn is_own_text(&self, view: &EntryView) -> bool {
        let mine = &self.membership.mine;
        view.author(mine).is_some_and(|author| mine.contains(&author))
    }

    /// Selects the survivor, and the entry whose text is shown.
    fn select_survivor(&self, members: &[GroupMember]) -> Survivor {
        let equals: Vec<GroupEntry> = members
            .iter()
            .map(|of| GroupEntry {
                entry: of.entry,
                created: created(&of.row, &of.view),
                is_imported: !is_created(&of.view),
                is_own: self.is_own_text(&of.view),
                length: of.view.text(Register::CONTENT).unwrap_or_default().chars().count(),
            })
            .collect();
        survivor(&equals, self.reader.numbers.longer_text_factor).expect("a group is not empty")
    }

    fn merge(&self, mut members: Vec<GroupMember>) -> Result<AssessedEntry, Error> {
        let chosen = self.select_survivor(&members);
        let (mut uses, mut made_in, mut proven) = (UseRow::default(), None, Vec::new());
        for of in &members {
            let row = Error::unless_damaged(self.snapshot.uses(of.entry))?.unwrap_or_default();
            if of.entry == chosen.entry {
                made_in = row.made_in;
            }
            proven.extend(row.proven.map(|proven| (of.entry, proven)));
            uses = merged_uses(uses, row);
        }
        uses.made_in = made_in;
        let parts = members.iter().map(|of| (of.entry, of.view.counts.clone())).collect();
        let at = |entry| members.iter().position(|of| of.entry == entry);
        let text = at(chosen.text).map(|at| members[at].view.registers.clone());
        let first = at(chosen.entry).expect("the survivor is one of the group");
        let GroupMember { entry, row, mut view, .. } = members.remove(first);
        for other in &members {
            merge_counts_and_tags(&mut view, &other.view);
        }
        if let Some(text) = text.filter(|_| chosen.text != entry) {
            for register in SHOWN {
                match text.get(&register) {
                    Some(shown) => view.registers.insert(register, shown.clone()),
                    None => view.registers.remove(&register),
                };
            }
        }
        let found = self.assess(EntryRows { entry, row, view, uses, proven, parts })?;
        let merged = members.iter().map(|of| of.entry).collect();
        Ok(AssessedEntry { merged, text_of: chosen.text, ..found })
    }
}

/// True if two views may be merged: both are live, in one workspace and memory.
fn is_equal(one: &EntryView, other: &EntryView) -> bool {
    let place = |view: &EntryView| view.origin.as_ref().map(|of| (of.workspace(), of.memory()));
    let is_live = |view: &EntryView| view.state == State::Live;
    is_live(one) && is_live(other) && place(one) == place(other)
}

/// Adds the counts and tags of a duplicate.
fn merge_counts_and_tags(view: &mut EntryView, other: &EntryView) {
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

fn merged_uses(one: UseRow, other: UseRow) -> UseRow {
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
        // Duplicates may come from the same import, so their prior evidence counts once.
        // A member that arrived without a date makes the group as young as itself.
        dated: one.dated.zip(other.dated).map(|(one, other)| one.max(other)),
        prior: one.prior.or(other.prior),
        // These fields apply to one entry alone and are not merged: the task it was written in,
        // whether maintenance archived it, the authors who observed it that day, its readers, and
        // the results of its text.
        made_in: None,
        is_put_away: false,
        voices: None,
        readers: None,
        proven: None,
    }
}

/// True if an author created the entry; false if it was imported.
fn is_created(view: &EntryView) -> bool {
    matches!(view.origin, Some(Origin::Created { .. }))
}

/// The creation time by the creator's clock; for an import, the time this node first stored it.
fn created(row: &ViewRow, view: &EntryView) -> Hlc {
    match &view.origin {
        Some(Origin::Created { stamp, .. }) => *stamp,
        _ => Hlc::new(row.first_seen, 0),
    }
}
