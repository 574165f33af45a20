//! Entries that say the same: equal texts are merged, and near ones that no rule tells apart are
//! proposed.
//!
//! Only entries that this node wrote itself are merged unasked; a person decides about all others. A
//! merge that was made unasked is withdrawn when its texts are not equal: those of an older version,
//! which merged by nearness, and those of which a text was edited.

use super::Work;
use crate::engine::Note;
use crate::index::document::Document;
use crate::index::meaning::Meaning;
use crate::index::vectors::Filter;
use crate::query::equals::Hidden;
use crate::query::rivals::polarity;
use crate::store::Error;
use crate::store::rows::Seq;
use crate::store::upkeep::{Matter, ServiceRow, Stage};
use klnode_crdt::claims::Relation;
use klnode_crdt::ids::EntryId;
use klnode_crdt::view::View;
use klnode_scoring::duplicates::{Doubt, Text, Thresholds, Verdict, Whose, are_equal, compare};
use std::collections::BTreeSet;

/// The nearest that an entry is compared with.
const NEIGHBOURS: usize = 8;

/// An entry that is compared.
struct Subject {
    document: Document,
    view: View,
    seq: Seq,
}

impl Subject {
    fn text(&self) -> Text<'_> {
        let scope = &self.document.scope;
        Text {
            title: &self.document.title,
            content: &self.document.content,
            kind: scope.kind.map_or("", |kind| kind.name()),
            thread: scope.thread.as_deref().unwrap_or_default(),
            polarity: polarity(&self.view),
        }
    }
}

/// From which cosines on a model's texts may say the same; none for a model that was not measured.
fn thresholds(meaning: &Meaning) -> Option<Thresholds> {
    meaning.embedder.weights().map(|_| Thresholds::BUILT_IN)
}

impl Work<'_> {
    pub(super) fn duplicates(&mut self, from: ServiceRow) -> Result<ServiceRow, Error> {
        self.follow(from, |work, meaning, entry| work.find_equals(meaning, entry))
    }

    fn subject(&self, entry: EntryId) -> Result<Option<Subject>, Error> {
        let read = Error::unless_damaged(self.reading.view(entry))?.flatten();
        let Some((_, view)) = read else { return Ok(None) };
        let seq = self.reading.snapshot.text_seq(entry)?;
        let document = Document::of(entry, &view, &self.reading.society);
        Ok(document.map(|document| Subject { document, view, seq }))
    }

    fn find_equals(&mut self, meaning: &Meaning, entry: EntryId) -> Result<(), Error> {
        let Some(one) = self.subject(entry)? else { return Ok(()) };
        if self.is_hidden(entry, &one)? {
            return Ok(());
        }
        let scope = &one.document.scope;
        let filter = Filter::all().workspaces([scope.workspace]).memories([scope.memory]);
        let near = meaning.vectors.nearest_to(entry, NEIGHBOURS, &filter).unwrap_or_default();
        let group = self.reading.snapshot.group(entry)?;
        if self.own_edges(&one.view).any(|to| !group.contains(&to)) {
            self.found.edges.push(entry);
        }
        let withdrawn = self.withdraw_unequal(&one, &group)?;
        let thresholds = thresholds(meaning);
        for (other, cosine) in near {
            let cosine = f64::from(cosine);
            let is_held = group.contains(&other) && !withdrawn.contains(&other);
            if is_held || self.is_noted_now(entry, other) {
                continue;
            }
            let noted = self.reading.snapshot.noted(Matter::Sameness, &[entry, other])?;
            let proposal = match noted {
                None => None,
                Some(_) if withdrawn.contains(&other) => None,
                Some((Stage::Proposed, number)) => Some(number),
                Some(_) => continue,
            };
            let Some(two) = self.subject(other)? else { continue };
            let place = |of: &Subject| (of.document.scope.workspace, of.document.scope.memory);
            if place(&one) != place(&two) || self.is_hidden(other, &two)? {
                continue;
            }
            self.judge_pair(&one, &two, cosine, thresholds, proposal)?;
        }
        Ok(())
    }

    /// Ends the merges of an entry that were made unasked and whose texts are not equal; returns the
    /// other entry of each.
    fn withdraw_unequal(
        &mut self,
        one: &Subject,
        group: &BTreeSet<EntryId>,
    ) -> Result<BTreeSet<EntryId>, Error> {
        let (mut withdrawn, entry) = (BTreeSet::new(), one.document.entry);
        for other in group.iter().copied().filter(|other| *other != entry) {
            let noted = self.reading.snapshot.noted(Matter::Sameness, &[entry, other])?;
            let Some((Stage::Made, number)) = noted else { continue };
            let row = self.reading.snapshot.upkeep_row(number)?;
            let is_unasked = row.is_some_and(|row| row.decided.is_none());
            let Some(two) = self.subject(other)?.filter(|_| is_unasked) else { continue };
            if !are_equal(&one.text(), &two.text()) {
                withdrawn.insert(other);
                if !self.found.over.contains(&number) {
                    self.found.over.push(number);
                }
            }
        }
        Ok(withdrawn)
    }

    /// What is hidden stands for nothing that is written anew.
    fn is_hidden(&self, entry: EntryId, of: &Subject) -> Result<bool, Error> {
        let hidden = Error::unless_damaged(self.reading.hidden(entry, &of.view))?;
        Ok(hidden.is_none_or(|hidden| hidden != Hidden::No))
    }

    /// Where the `same_as` edges lead that this node or *mine* have drawn on an entry.
    fn own_edges<'v>(&'v self, view: &'v View) -> impl Iterator<Item = EntryId> + 'v {
        let mine = &self.reading.society.mine;
        let own = view.links.iter().filter(|(_, authors)| !authors.is_disjoint(mine));
        own.filter(|(link, _)| link.relation == Relation::SAME_AS).map(|(link, _)| link.to)
    }

    /// Notes what becomes of a pair, or ends its proposal where the texts no longer allow it.
    fn judge_pair(
        &mut self,
        one: &Subject,
        two: &Subject,
        cosine: f64,
        of: Option<Thresholds>,
        proposal: Option<u64>,
    ) -> Result<(), Error> {
        let is_own = self.is_own(&one.view) && self.is_own(&two.view);
        let whose = if is_own { Whose::Own } else { Whose::Foreign };
        let verdict = compare(&one.text(), &two.text(), whose, cosine, of);
        if let Some(number) = proposal {
            if verdict == Verdict::Different {
                self.found.over.push(number);
            }
            return Ok(());
        }
        let (stage, why) = match verdict {
            Verdict::Different => return Ok(()),
            Verdict::Merge => (Stage::Made, "the texts are equal".to_owned()),
            Verdict::Propose(doubt @ Doubt::Wording) => {
                (Stage::Proposed, format!("nearness {cosine:.3}: {}", doubt.words()))
            }
            Verdict::Propose(doubt) => (Stage::Proposed, doubt.words().to_owned()),
        };
        let entries = [one, two].map(|of| (of.document.entry, of.seq)).to_vec();
        let matter = Matter::Sameness;
        self.note(Note { matter, stage, entries, why, is_foreign: !is_own })
    }

    /// Whether a pair was noted in this very pass, from its other end.
    pub(super) fn is_noted_now(&self, one: EntryId, two: EntryId) -> bool {
        let has = |note: &Note, entry| note.entries.iter().any(|(of, _)| *of == entry);
        self.found.notes.iter().any(|note| has(note, one) && has(note, two))
    }

    /// Whether an entry was created here, and is shown in this node's words.
    pub(super) fn is_own(&self, view: &View) -> bool {
        let mine = &self.reading.society.mine;
        let creator = view.origin.as_ref().and_then(klnode_crdt::origin::Origin::creator);
        creator.is_none_or(|creator| mine.contains(&creator)) && self.reading.is_own_text(view)
    }
}
