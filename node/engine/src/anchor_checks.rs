//! Results of checking entries' anchors and predicates against a caller's checkout.
//!
//! The caller's side runs the checks; this module decides which results count. A check that holds
//! is evidence for the entry. It counts as an observation of this node only if this person wrote
//! both the entry's text and its predicates.

use super::auto_archive::SupportingEvidence;
use super::command::{AnchorResults, Rejection, was_written};
use super::record_intake::Transaction;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::tally::Observation;
use klnode_scoring::predicate::Predicate;
use klnode_store::row_types::UseRow;
use klnode_store::{Batch, Error};

impl Transaction<'_> {
    /// Applies the results of a check. Each entry counts at most once a day.
    pub(super) fn note_looks(
        &mut self,
        batch: &Batch,
        looks: &AnchorResults,
    ) -> Result<(), Rejection> {
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
                self.note_support(batch, entry, SupportingEvidence::Anchor)?;
            }
            let uses = batch.uses(entry)?;
            let is_due = looks.is_counted && uses.look_counted != Some(today);
            if is_due && self.is_own_look(batch, entry)? {
                batch.put_uses(entry, UseRow { look_counted: Some(today), ..uses })?;
                was_written(self.observe(batch, entry, (of, Thousandths::ONE), None))?;
            }
        }
        Ok(())
    }

    /// Whether this person wrote the entry's text and all of its predicates. Otherwise another
    /// author, by writing the text or adding a predicate, could make this node record observations
    /// of that author's choice.
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
