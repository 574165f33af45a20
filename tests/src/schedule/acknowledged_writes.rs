//! Compares the acknowledged statements with the stored records.

use super::oracle::{Content, History, Oracle};
use super::run::Runner;
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_view::{Entitlement, State};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww_set::{LwwSet, Presence};
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::register::{MvRegister, Register};
use klnode_crdt::time::WallTime;
use klnode_engine::REMOVED;
use std::collections::{BTreeMap, BTreeSet};

/// A time late enough that everything is due.
const FAR: WallTime = WallTime::from_millis(2_500_000_000_000);

impl Runner {
    /// Checks that every acknowledged statement is stored, that nothing is stored that no node
    /// wrote, and that all nodes have forgotten a forgotten entry.
    pub(super) fn check_acknowledged(&mut self) -> Result<(), String> {
        let oracle = self.oracle.clone();
        let set_aside = self.set_aside();
        for (entry, history) in &oracle.entries {
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
            if forgotten > 0 && !history.is_forgotten {
                return Err(format!("{entry} is forgotten, but no node asked for it"));
            }
            for by in &history.forgotten_by {
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
                let is_due = history.has_certain_operation_by(by)
                    || (history.is_certain && history.creator == by);
                let is_held = holders.iter().any(|(at, ..)| *at == by);
                if is_due && !is_held && !set_aside.contains(&(by, *entry)) {
                    return Err(format!("{by} lost all it had said of {entry}"));
                }
            }
            for (at, _, held) in &holders {
                let uncertain = set_aside.contains(&(*at, *entry)).then(|| {
                    let mut uncertain = oracle.clone();
                    uncertain.mark_uncertain(&[*entry].into());
                    uncertain
                });
                let oracle = uncertain.as_ref().unwrap_or(&oracle);
                let history = &oracle.entries[entry];
                self.check_held(oracle, *entry, *at, held)?;
                self.check_titles(history, *entry, *at, held)?;
                self.check_statements(history, *entry, *at, held)?;
            }
        }
        Ok(())
    }

    /// Nodes that may lack own records of an entry: the home was replaced by an older copy, and
    /// other nodes hold the records in quarantine because the node was removed. The node gets them
    /// back when the removal is taken back (seed 601312).
    fn set_aside(&mut self) -> BTreeSet<(usize, EntryId)> {
        let replaced = (0..self.nodes.count()).filter(|at| self.oracle.was_replaced(*at));
        let authors = replaced.map(|at| (self.nodes.author(at), at));
        let authors = authors.collect::<BTreeMap<AuthorId, usize>>();
        let mut set_aside = BTreeSet::new();
        for holder in 0..self.nodes.count() {
            let snapshot = self.nodes.snapshot(holder);
            for row in snapshot.quarantine().expect("readable") {
                let (_, row) = row.expect("readable");
                let record = Record::read_back(&row.record, Absence::Stripped).expect("readable");
                let at = authors.get(&record.author()).filter(|_| row.reason == REMOVED);
                set_aside.extend(at.map(|at| (*at, record.entry())));
            }
        }
        set_aside
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
        let history = &oracle.entries[&entry];
        let is_sure = history.is_certain && !history.is_retracted;
        if is_sure && at == history.creator && view.state == State::Retracted {
            return Err(format!("{at} shows no text of {entry}, and has not taken it back"));
        }
        let Some(title) = view.text(Register::TITLE) else { return Ok(()) };
        if !history.titles.contains(title) {
            return Err(format!("{at} shows `{title}` for {entry}, which no node wrote"));
        }
        let held = self.titles_held(at, entry);
        let newer = history.replaced.get(title).and_then(|newer| newer.intersection(&held).next());
        match newer {
            Some(newer) => Err(format!("{at} shows `{title}`, which `{newer}` has replaced")),
            None => Ok(()),
        }
    }

    /// Checks that each acknowledged title of a node is stored, or a title written by a node that
    /// had seen it, and that no byte of a retracted title is stored.
    fn check_titles(
        &mut self,
        history: &History,
        entry: EntryId,
        at: usize,
        held: &Entry,
    ) -> Result<(), String> {
        // These are the claimed titles: a content may contain a former title.
        let titles = titles(held);
        let lost =
            history.titles_due(at).into_iter().find(|title| !history.is_kept(title, &titles));
        if let Some(title) = lost {
            return Err(format!("{at} lost `{title}` of {entry}, and nothing has replaced it"));
        }
        let there = self.titles_held(at, entry);
        match history.titles_retracted(at).into_iter().find(|title| there.contains(*title)) {
            Some(title) => Err(format!("{at} has taken `{title}` of {entry} back, and holds it")),
            None => Ok(()),
        }
    }

    /// Checks that tags and archivals match the statements of their authors, and that none exist
    /// without a statement. The check uses stored records, not the view: the view hides an entry of
    /// unknown origin, and shows statements of removed members as proposals.
    fn check_statements(
        &mut self,
        history: &History,
        entry: EntryId,
        at: usize,
        held: &Entry,
    ) -> Result<(), String> {
        for by in 0..self.nodes.count() {
            let author = self.nodes.author(by);
            let there = tags(held, author);
            for tag in history.tags(by).union(&there) {
                let is_there = there.contains(tag);
                if history.contradicts(by, (by == at, is_there), |content| content.on_tag(tag)) {
                    return Err(format!(
                        "{at} has {entry} tagged `{tag}` by {by}: {is_there}, which is not its last \
                         statement"
                    ));
                }
            }
            let is_archived = is_archived(held, author);
            if history.contradicts(by, (by == at, is_archived), Content::on_archive) {
                return Err(format!(
                    "{at} has {entry} archived by {by}: {is_archived}, which contradicts its \
                     statements"
                ));
            }
        }
        Ok(())
    }
}

/// Successes of an author, in whole observations, summed over all cells.
fn successes(held: &Entry, author: AuthorId) -> u64 {
    let Some(tally) = held.tallies.get(&author) else { return 0 };
    tally.successes.total(FAR.day(), &BTreeSet::new()).0 / 1_000
}

/// Titles that any author claims.
fn titles(held: &Entry) -> BTreeSet<String> {
    let values = held.claims.values().filter_map(|claims| claims.registers.get(&Register::TITLE));
    values.flat_map(MvRegister::iter).map(|(_, value)| value.text.clone()).collect()
}

/// Titles that an author claims.
pub(super) fn titles_by(held: &Entry, author: AuthorId) -> BTreeSet<String> {
    let values = held.claims.get(&author).and_then(|claims| claims.registers.get(&Register::TITLE));
    values.into_iter().flat_map(MvRegister::iter).map(|(_, value)| value.text.clone()).collect()
}

/// Tags that an author claims.
fn tags(held: &Entry, author: AuthorId) -> BTreeSet<String> {
    let set = held.claims.get(&author).and_then(|claims| claims.texts.get(&TextSet::TAGS));
    set.into_iter().flat_map(LwwSet::present).cloned().collect()
}

/// Whether an author has archived the entry.
fn is_archived(held: &Entry, author: AuthorId) -> bool {
    let archival = held.claims.get(&author).and_then(|claims| claims.archival.as_ref());
    archival.is_some_and(|archival| archival.presence == Presence::Present)
}
