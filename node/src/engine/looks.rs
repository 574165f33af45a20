//! Looks into a caller's checkout: what entries depend on was seen to hold there, or to be broken.
//!
//! It was looked elsewhere; here it is decided what of that counts. What holds speaks for an entry; an
//! observation of this node is only a look at this person's own.

use super::archive::By;
use super::command::Rejection;
use super::ingest::Ingest;
use super::tasks::taken;
use crate::store::rows::UseRow;
use crate::store::{Batch, Error};
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::tally::Observation;
use klnode_scoring::predicate::Predicate;

/// What a look into a caller's checkout said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Entries of which all that they depend on holds.
    pub held: Vec<EntryId>,
    /// Entries of which something is broken.
    pub broken: Vec<EntryId>,
    /// Whether the operator lets it count as an observation of this node.
    pub is_counted: bool,
}

impl Ingest<'_> {
    /// Notes what a look into a caller's checkout said. Each entry counts once a day, if at all.
    pub(super) fn note_looks(&mut self, batch: &Batch, looks: &Looks) -> Result<(), Rejection> {
        let today = self.now.day();
        let held = looks.held.iter().map(|entry| (*entry, Observation::Success));
        let broken = looks.broken.iter().map(|entry| (*entry, Observation::Failure));
        for (entry, of) in held.chain(broken) {
            if batch.view_row(entry)?.is_none_or(|row| row.is_forgotten) {
                continue;
            }
            if of == Observation::Success {
                let uses = batch.uses(entry)?;
                batch.put_uses(entry, UseRow { held: Some(self.now), ..uses })?;
                self.speak_for(batch, entry, By::Anchor)?;
            }
            let uses = batch.uses(entry)?;
            let is_due = looks.is_counted && uses.look_counted != Some(today);
            if is_due && self.is_own_look(batch, entry)? {
                batch.put_uses(entry, UseRow { look_counted: Some(today), ..uses })?;
                taken(self.observe(batch, entry, (of, Thousandths::ONE), None))?;
            }
        }
        Ok(())
    }

    /// Whether a look was at this person's own alone: at a text of theirs, by what they say that it
    /// depends on. Whoever else writes a text, or adds to what it depends on, would have this node
    /// observe as they please.
    fn is_own_look(&self, batch: &Batch, entry: EntryId) -> Result<bool, Error> {
        let mine = &self.writer.mine;
        let Some(view) = self.view(batch, entry)? else { return Ok(false) };
        let is_own_text = view.author(mine).is_some_and(|author| mine.contains(&author));
        let sets = [TextSet::DEPENDS_ON, TextSet::ANCHORS];
        let elements = sets.iter().filter_map(|set| view.texts.get(set)).flatten();
        let mut predicates = elements.filter(|(text, _)| Predicate::read(text).is_ok());
        Ok(is_own_text && predicates.all(|(_, by)| !by.is_disjoint(mine)))
    }
}
