//! What was acknowledged, against what is held.

use super::oracle::{Oracle, Told, Word};
use super::run::Runner;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::gset::{GSet, Presence};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww::{Lww, Register};
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{Entitlement, State};
use std::collections::BTreeSet;

/// Late enough that everything is due.
const FAR: WallTime = WallTime::from_millis(2_500_000_000_000);

impl Runner {
    /// Whatever a node has acknowledged is there, nothing is there that nobody said, and what is
    /// forgotten is forgotten by all.
    pub(super) fn check_told(&mut self) -> Result<(), String> {
        let oracle = self.oracle.clone();
        for (entry, told) in &oracle.entries {
            let mut holders = Vec::new();
            for at in 0..self.nodes.count() {
                let records = self.nodes.snapshot(at).entry(*entry).expect("readable");
                let is_held = !self.nodes.digests(at, *entry).is_empty();
                let tombstone = self.nodes.snapshot(at).tombstone(*entry).expect("readable");
                if is_held {
                    holders.push((at, tombstone.is_some(), records.to_entry()));
                }
            }
            let forgotten = holders.iter().filter(|(_, is_forgotten, _)| *is_forgotten).count();
            if forgotten > 0 && !told.is_forgotten {
                return Err(format!("{entry} is forgotten, and nobody asked for it"));
            }
            for by in &told.forgotten_by {
                if !holders.iter().any(|(at, is_forgotten, _)| at == by && *is_forgotten) {
                    return Err(format!("{by} has forgotten {entry}, and holds no tombstone"));
                }
            }
            if forgotten > 0 && forgotten < holders.len() {
                return Err(format!("{entry} lives on at {} nodes", holders.len() - forgotten));
            }
            if forgotten > 0 {
                continue;
            }
            for by in 0..self.nodes.count() {
                let is_due = told.has_word_of(by) || (told.is_certain && told.creator == by);
                if is_due && !holders.iter().any(|(at, ..)| *at == by) {
                    return Err(format!("{by} lost all it had said of {entry}"));
                }
            }
            for (at, _, held) in &holders {
                self.check_held(&oracle, *entry, *at, held)?;
                self.check_titles(told, *entry, *at, held)?;
                self.check_words(told, *entry, *at, held)?;
            }
        }
        Ok(())
    }

    fn check_held(
        &mut self,
        oracle: &Oracle,
        entry: EntryId,
        at: usize,
        held: &Entry,
    ) -> Result<(), String> {
        for by in 0..self.nodes.count() {
            let counted = successes(held, self.nodes.author(by));
            let (least, most) = oracle.bounds(entry, by);
            let least = if by == at { least } else { 0 };
            if counted < least || counted > most {
                return Err(format!(
                    "{at} counts {counted} successes by {by} of {entry}; {least} to {most} were \
                     acknowledged"
                ));
            }
        }
        let members = (0..self.nodes.count()).map(|node| self.nodes.author(node)).collect();
        let mine = [self.nodes.author(at)].into();
        let view = held.view(FAR, &Entitlement { mine, members });
        let told = &oracle.entries[&entry];
        let is_sure = told.is_certain && !told.is_retracted;
        if is_sure && at == told.creator && view.state == State::Retracted {
            return Err(format!("{at} shows no text of {entry}, and has not taken it back"));
        }
        let Some(title) = view.text(Register::TITLE) else { return Ok(()) };
        if !told.titles.contains(title) {
            return Err(format!("{at} shows `{title}` for {entry}, which nobody wrote"));
        }
        let held = self.titles_held(at, entry);
        let newer = told.replaced.get(title).and_then(|newer| newer.intersection(&held).next());
        match newer {
            Some(newer) => Err(format!("{at} shows `{title}`, which `{newer}` has replaced")),
            None => Ok(()),
        }
    }

    /// Each title that a node was told is there, or one that was written by somebody who had seen it;
    /// of what the node took back not a byte is.
    fn check_titles(
        &mut self,
        told: &Told,
        entry: EntryId,
        at: usize,
        held: &Entry,
    ) -> Result<(), String> {
        // As they were said: a content may name what once was the title.
        let titles = titles(held);
        let lost = told.titles_due(at).into_iter().find(|title| !told.is_kept(title, &titles));
        if let Some(title) = lost {
            return Err(format!("{at} lost `{title}` of {entry}, and nothing has replaced it"));
        }
        let there = self.titles_held(at, entry);
        match told.titles_taken_back(at).into_iter().find(|title| there.contains(*title)) {
            Some(title) => Err(format!("{at} has taken `{title}` of {entry} back, and holds it")),
            None => Ok(()),
        }
    }

    /// Tags and archivals are as whoever said them was told, and nobody has one that was never said.
    /// What is held counts, not what is shown: nothing is shown where it is not known whose entry it
    /// is, and the words of who was struck off are proposals.
    fn check_words(
        &mut self,
        told: &Told,
        entry: EntryId,
        at: usize,
        held: &Entry,
    ) -> Result<(), String> {
        for by in 0..self.nodes.count() {
            let author = self.nodes.author(by);
            let there = tags(held, author);
            for tag in told.tags(by).union(&there) {
                let is_there = there.contains(tag);
                if told.contradicts(by, (by == at, is_there), |word| word.on_tag(tag)) {
                    return Err(format!(
                        "{at} has {entry} tagged `{tag}` by {by}: {is_there}, which is not the last \
                         that was said"
                    ));
                }
            }
            let is_archived = is_archived(held, author);
            if told.contradicts(by, (by == at, is_archived), Word::on_archive) {
                return Err(format!(
                    "{at} has {entry} archived by {by}: {is_archived}, which is not what was said"
                ));
            }
        }
        Ok(())
    }
}

/// All successes of an author, in whole observations: every cell, added up.
fn successes(held: &Entry, author: AuthorId) -> u64 {
    let Some(tally) = held.tallies.get(&author) else { return 0 };
    tally.successes.total(FAR.day(), &BTreeSet::new()).0 / 1_000
}

/// Every title that anybody gives it.
fn titles(held: &Entry) -> BTreeSet<String> {
    let values = held.claims.values().filter_map(|said| said.registers.get(&Register::TITLE));
    values.flat_map(Lww::iter).map(|(_, value)| value.text.clone()).collect()
}

/// The tags that an author gives it.
fn tags(held: &Entry, author: AuthorId) -> BTreeSet<String> {
    let set = held.claims.get(&author).and_then(|said| said.texts.get(&TextSet::TAGS));
    set.into_iter().flat_map(GSet::present).cloned().collect()
}

/// Whether an author wants it archived.
fn is_archived(held: &Entry, author: AuthorId) -> bool {
    let word = held.claims.get(&author).and_then(|said| said.archival.as_ref());
    word.is_some_and(|word| word.presence == Presence::Present)
}
