//! Finds entries that may contradict each other, independently of any question.
//!
//! Two rules apply: opposite polarities on shared tags, as in an answer, and a word-by-word
//! comparison of the texts. Texts are compared within one workspace only, because a statement about
//! one repository does not apply to another. Neither of the two entries is hidden.

use super::PassState;
use crate::contradictions::{RELATED_MIN, polarity};
use crate::text_contradiction::contradiction as textual;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::ids::EntryId;
use klnode_engine::MaintenanceNote;
use klnode_index::document::FilterFields;
use klnode_index::entry_vectors::VectorGeneration;
use klnode_index::vectors::RowFilter;
use klnode_scoring::contradiction::{self, Contradiction, ContradictionSubject, Polarity};
use klnode_store::Error;
use klnode_store::maintenance_journal::{Matter, ServiceRow, Stage};
use klnode_store::row_types::Seq;
use std::collections::BTreeSet;

/// Number of nearest entries that an entry is compared with.
const NEIGHBOURS: usize = 20;
/// Number of nearest entries searched for ones that pass the gate, if strangers crowd around an
/// entry.
const CROWDED_MAX: usize = 1_600;

/// An entry that is compared.
struct PolarEntry {
    view: EntryView,
    polarity: Polarity,
    tags: BTreeSet<String>,
    seq: Seq,
    is_own: bool,
}

impl PassState<'_> {
    pub(super) fn contradictions(&mut self, from: ServiceRow) -> Result<ServiceRow, Error> {
        self.follow(from, |work, meaning, entry| work.find_contradictions(meaning, entry))
    }

    fn polar_entry(&self, entry: EntryId) -> Result<Option<PolarEntry>, Error> {
        let read = Error::unless_damaged(self.reading.view(entry))?.flatten();
        let Some((_, view)) = read else { return Ok(None) };
        let Some(scope) = FilterFields::of(&view).filter(|_| view.state == State::Live) else {
            return Ok(None);
        };
        let (polarity, is_own) = (polarity(&view), self.is_own(&view));
        let tags = scope.tags.into_iter().collect();
        let seq = self.reading.snapshot.text_seq(entry)?;
        Ok(Some(PolarEntry { view, polarity, tags, seq, is_own }))
    }

    /// The entries about the same subject, nearest first, with their similarity. Entries that the
    /// gate excludes take no place of others: an author must not be able to prevent a comparison by
    /// writing many texts between two entries.
    fn neighbours(
        &self,
        meaning: &VectorGeneration,
        entry: EntryId,
    ) -> Result<Option<Vec<(EntryId, f64)>>, Error> {
        let related = |count| {
            let near = meaning.vectors.nearest_to(entry, count, &RowFilter::all())?.into_iter();
            let alike = |cosine: f32| meaning.calibration.meaning(f64::from(cosine));
            let near = near.map(|(other, cosine)| (other, alike(cosine)));
            Some(near.take_while(|(_, similarity)| *similarity > RELATED_MIN).collect::<Vec<_>>())
        };
        let Some(mut near) = related(NEIGHBOURS) else { return Ok(None) };
        if near.len() < NEIGHBOURS || self.reading.is_surely_shut(entry)? {
            return Ok(Some(near));
        }
        let mut open = 0;
        for (other, _) in &near {
            open += usize::from(!self.reading.is_surely_shut(*other)?);
        }
        if open == NEIGHBOURS {
            return Ok(Some(near));
        }
        for (other, similarity) in related(CROWDED_MAX).unwrap_or_default() {
            if open == NEIGHBOURS {
                break;
            }
            let is_known = near.iter().any(|(known, _)| *known == other);
            if !is_known && !self.reading.is_surely_shut(other)? {
                near.push((other, similarity));
                open += 1;
            }
        }
        Ok(Some(near))
    }

    fn find_contradictions(
        &mut self,
        meaning: &VectorGeneration,
        entry: EntryId,
    ) -> Result<(), Error> {
        let Some(one) = self.polar_entry(entry)? else { return Ok(()) };
        let Some(near) = self.neighbours(meaning, entry)? else { return Ok(()) };
        let mut met = BTreeSet::new();
        for (other, similarity) in near {
            met.insert(other);
            let noted = self.reading.snapshot.noted(Matter::Contradiction, &[entry, other])?;
            let Some(two) = self.polar_entry(other)? else { continue };
            match (self.contradiction(&one, &two, similarity), noted) {
                (Some(why), None) if !self.is_noted_now(entry, other) => {
                    let entries = vec![(entry, one.seq), (other, two.seq)];
                    let is_foreign = !(one.is_own && two.is_own);
                    let (matter, stage) = (Matter::Contradiction, Stage::Open);
                    self.add_note(MaintenanceNote { matter, stage, entries, why, is_foreign })?;
                }
                (None, Some((Stage::Open, number))) => self.found.over.push(number),
                _ => {}
            }
        }
        // With more neighbours than were examined, the noted entry may be among the rest.
        if met.len() < NEIGHBOURS { self.close_distant_notes(entry, &met) } else { Ok(()) }
    }

    /// The reason why two entries contradict each other, if they do.
    fn contradiction(&self, one: &PolarEntry, two: &PolarEntry, similarity: f64) -> Option<String> {
        let a = ContradictionSubject { polarity: one.polarity, tags: &one.tags };
        let b = ContradictionSubject { polarity: two.polarity, tags: &two.tags };
        let params = &self.reading.reader.numbers.conflict;
        match contradiction::contradiction(a, b, similarity, RELATED_MIN, params) {
            Contradiction::Found { overlap, similarity } => {
                Some(format!("opposite, tags shared {overlap:.2}, alike {similarity:.2}"))
            }
            _ => textual(&one.view, &two.view)
                .map(|reason| format!("possible contradiction: {reason}, alike {similarity:.2}")),
        }
    }

    /// Closes notes about entries that are no longer about the same subject.
    fn close_distant_notes(
        &mut self,
        entry: EntryId,
        near: &BTreeSet<EntryId>,
    ) -> Result<(), Error> {
        let noted = self.reading.recorded_contradictions(|one| one == entry)?;
        for other in noted.against(entry).filter(|other| !near.contains(other)) {
            let noted = self.reading.snapshot.noted(Matter::Contradiction, &[entry, other])?;
            if let Some((Stage::Open, number)) = noted {
                self.found.over.push(number);
            }
        }
        Ok(())
    }
}
