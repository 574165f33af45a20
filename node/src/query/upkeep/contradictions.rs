//! Entries that may contradict each other, found before a question is asked.
//!
//! Two rules: opposite polarities on shared tags, as in an answer, and the texts themselves, compared
//! word by word. Texts are compared within one workspace only, because a statement about one
//! repository says nothing about another. Neither of the two entries is hidden.

use super::Work;
use crate::engine::Note;
use crate::index::document::Scope;
use crate::index::meaning::Meaning;
use crate::index::vectors::Filter;
use crate::query::rivals::{RELATED_MIN, polarity};
use crate::query::statement::contradiction as textual;
use crate::store::Error;
use crate::store::rows::Seq;
use crate::store::upkeep::{Matter, ServiceRow, Stage};
use klnode_crdt::ids::EntryId;
use klnode_crdt::view::{State, View};
use klnode_scoring::conflict::{self, Contradiction, Polarity, Subject};
use std::collections::BTreeSet;

/// The nearest that an entry is compared with.
const NEIGHBOURS: usize = 20;
/// Among how many those are looked for that are not shut, where strangers crowd around an entry.
const CROWDED_MAX: usize = 1_600;

/// An entry that is compared.
struct Sided {
    view: View,
    polarity: Polarity,
    tags: BTreeSet<String>,
    seq: Seq,
    is_own: bool,
}

impl Work<'_> {
    pub(super) fn contradictions(&mut self, from: ServiceRow) -> Result<ServiceRow, Error> {
        self.follow(from, |work, meaning, entry| work.find_opposites(meaning, entry))
    }

    fn sided(&self, entry: EntryId) -> Result<Option<Sided>, Error> {
        let read = Error::unless_damaged(self.reading.view(entry))?.flatten();
        let Some((_, view)) = read else { return Ok(None) };
        let Some(scope) = Scope::of(&view).filter(|_| view.state == State::Live) else {
            return Ok(None);
        };
        let (polarity, is_own) = (polarity(&view), self.is_own(&view));
        let tags = scope.tags.into_iter().collect();
        let seq = self.reading.snapshot.text_seq(entry)?;
        Ok(Some(Sided { view, polarity, tags, seq, is_own }))
    }

    /// What is about the same as an entry, the nearest first, each with how alike the two are. What is
    /// shut takes no place of what is not: nobody keeps two from being compared by writing a lot that
    /// lies between them.
    fn neighbours(
        &self,
        meaning: &Meaning,
        entry: EntryId,
    ) -> Result<Option<Vec<(EntryId, f64)>>, Error> {
        let related = |count| {
            let near = meaning.vectors.nearest_to(entry, count, &Filter::all())?.into_iter();
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

    fn find_opposites(&mut self, meaning: &Meaning, entry: EntryId) -> Result<(), Error> {
        let Some(one) = self.sided(entry)? else { return Ok(()) };
        let Some(near) = self.neighbours(meaning, entry)? else { return Ok(()) };
        let mut met = BTreeSet::new();
        for (other, similarity) in near {
            met.insert(other);
            let noted = self.reading.snapshot.noted(Matter::Contradiction, &[entry, other])?;
            let Some(two) = self.sided(other)? else { continue };
            match (self.contradiction(&one, &two, similarity), noted) {
                (Some(why), None) if !self.is_noted_now(entry, other) => {
                    let entries = vec![(entry, one.seq), (other, two.seq)];
                    let is_foreign = !(one.is_own && two.is_own);
                    let (matter, stage) = (Matter::Contradiction, Stage::Open);
                    self.note(Note { matter, stage, entries, why, is_foreign })?;
                }
                (None, Some((Stage::Open, number))) => self.found.over.push(number),
                _ => {}
            }
        }
        // Where there are more neighbours than were looked at, the other may be one of them.
        if met.len() < NEIGHBOURS { self.end_what_is_far(entry, &met) } else { Ok(()) }
    }

    /// Why two entries contradict each other, if they do.
    fn contradiction(&self, one: &Sided, two: &Sided, similarity: f64) -> Option<String> {
        let a = Subject { polarity: one.polarity, tags: &one.tags };
        let b = Subject { polarity: two.polarity, tags: &two.tags };
        let params = &self.reading.reader.numbers.conflict;
        match conflict::contradiction(a, b, similarity, RELATED_MIN, params) {
            Contradiction::Found { overlap, similarity } => {
                Some(format!("opposite, tags shared {overlap:.2}, alike {similarity:.2}"))
            }
            _ => textual(&one.view, &two.view)
                .map(|reason| format!("possible contradiction: {reason}, alike {similarity:.2}")),
        }
    }

    /// What was noted against an entry that is about something else by now is over.
    fn end_what_is_far(&mut self, entry: EntryId, near: &BTreeSet<EntryId>) -> Result<(), Error> {
        let noted = self.reading.opposites(|one| one == entry)?;
        for other in noted.against(entry).filter(|other| !near.contains(other)) {
            let noted = self.reading.snapshot.noted(Matter::Contradiction, &[entry, other])?;
            if let Some((Stage::Open, number)) = noted {
                self.found.over.push(number);
            }
        }
        Ok(())
    }
}
