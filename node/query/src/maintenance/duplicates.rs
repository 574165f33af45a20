//! Finds duplicates: merges entries with equal texts, and proposes near-equal ones that no rule
//! distinguishes.
//!
//! Only entries written on this node are merged automatically; a person decides about all others.
//! An automatic merge is withdrawn if its texts are no longer equal: after an edit, or if an older
//! version merged by similarity.

use super::PassState;
use crate::contradictions::polarity;
use crate::duplicate_merge_on_read::Visibility;
use klnode_crdt::claims::Relation;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::EntryId;
use klnode_engine::MaintenanceNote;
use klnode_index::document::Document;
use klnode_index::entry_vectors::VectorGeneration;
use klnode_index::vectors::RowFilter;
use klnode_scoring::duplicates::{
    Doubt, DuplicateDecision, DuplicateText, PairOwners, Thresholds, are_equal, compare,
};
use klnode_store::Error;
use klnode_store::maintenance_journal::{Matter, ServiceRow, Stage};
use klnode_store::row_types::Seq;
use std::collections::BTreeSet;

/// Number of nearest entries that an entry is compared with.
const NEIGHBOURS: usize = 8;

/// An entry that is compared.
struct DuplicateSubject {
    document: Document,
    view: EntryView,
    seq: Seq,
}

impl DuplicateSubject {
    fn text(&self) -> DuplicateText<'_> {
        let scope = &self.document.scope;
        DuplicateText {
            title: &self.document.title,
            content: &self.document.content,
            kind: scope.kind.map_or("", |kind| kind.name()),
            thread: scope.thread.as_deref().unwrap_or_default(),
            polarity: polarity(&self.view),
        }
    }
}

/// The cosines from which texts of a model may be duplicates; `None` for a model that was not
/// calibrated.
fn thresholds(meaning: &VectorGeneration) -> Option<Thresholds> {
    meaning.embedder.weights().map(|_| Thresholds::BUILT_IN)
}

impl PassState<'_> {
    pub(super) fn duplicates(&mut self, from: ServiceRow) -> Result<ServiceRow, Error> {
        self.follow(from, |work, meaning, entry| work.find_duplicates(meaning, entry))
    }

    fn subject(&self, entry: EntryId) -> Result<Option<DuplicateSubject>, Error> {
        let read = Error::unless_damaged(self.reading.view(entry))?.flatten();
        let Some((_, view)) = read else { return Ok(None) };
        let seq = self.reading.snapshot.text_seq(entry)?;
        let document = Document::of(entry, &view, &self.reading.membership);
        Ok(document.map(|document| DuplicateSubject { document, view, seq }))
    }

    fn find_duplicates(&mut self, meaning: &VectorGeneration, entry: EntryId) -> Result<(), Error> {
        let Some(one) = self.subject(entry)? else { return Ok(()) };
        if self.is_hidden(entry, &one)? {
            return Ok(());
        }
        let scope = &one.document.scope;
        let filter = RowFilter::all().workspaces([scope.workspace]).memories([scope.memory]);
        let mut near = meaning.vectors.nearest_to(entry, NEIGHBOURS, &filter).unwrap_or_default();
        near.extend(self.passage_neighbours(meaning, entry, &filter, &near));
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
            let place =
                |of: &DuplicateSubject| (of.document.scope.workspace, of.document.scope.memory);
            if place(&one) != place(&two) || self.is_hidden(other, &two)? {
                continue;
            }
            self.judge_pair(&one, &two, cosine, thresholds, proposal)?;
        }
        Ok(())
    }

    /// Further entries that are near by the transformer, with their cosines by the model whose
    /// thresholds were measured: the transformer finds candidates, and the rules decide.
    fn passage_neighbours(
        &self,
        meaning: &VectorGeneration,
        entry: EntryId,
        filter: &RowFilter,
        known: &[(EntryId, f32)],
    ) -> Vec<(EntryId, f32)> {
        let Some(passages) = self.index.passages() else { return Vec::new() };
        let near = passages.nearest_to(entry, NEIGHBOURS, filter).into_iter();
        let others = near.map(|(other, _)| other);
        let others = others.filter(|other| known.iter().all(|(known, _)| known != other));
        let cosine = |other| Some((other, meaning.vectors.cosine_between(entry, other)?));
        others.filter_map(cosine).collect()
    }

    /// Withdraws the automatic merges of an entry whose texts are not equal; returns the other
    /// entry of each.
    fn withdraw_unequal(
        &mut self,
        one: &DuplicateSubject,
        group: &BTreeSet<EntryId>,
    ) -> Result<BTreeSet<EntryId>, Error> {
        let (mut withdrawn, entry) = (BTreeSet::new(), one.document.entry);
        for other in group.iter().copied().filter(|other| *other != entry) {
            let noted = self.reading.snapshot.noted(Matter::Sameness, &[entry, other])?;
            let Some((Stage::Made, number)) = noted else { continue };
            let row = self.reading.snapshot.maintenance_row(number)?;
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

    /// True if an entry is hidden; a hidden entry is not merged with a new one.
    fn is_hidden(&self, entry: EntryId, of: &DuplicateSubject) -> Result<bool, Error> {
        let hidden = Error::unless_damaged(self.reading.hidden(entry, &of.view))?;
        Ok(hidden.is_none_or(|hidden| hidden != Visibility::No))
    }

    /// The targets of the `same_as` links that the owner's nodes put on an entry.
    fn own_edges<'v>(&'v self, view: &'v EntryView) -> impl Iterator<Item = EntryId> + 'v {
        let mine = &self.reading.membership.mine;
        let own = view.links.iter().filter(|(_, authors)| !authors.is_disjoint(mine));
        own.filter(|(link, _)| link.relation == Relation::SAME_AS).map(|(link, _)| link.to)
    }

    /// Notes the result for a pair, or closes its proposal if the texts no longer allow it.
    fn judge_pair(
        &mut self,
        one: &DuplicateSubject,
        two: &DuplicateSubject,
        cosine: f64,
        of: Option<Thresholds>,
        proposal: Option<u64>,
    ) -> Result<(), Error> {
        let is_own = self.is_own(&one.view) && self.is_own(&two.view);
        let whose = if is_own { PairOwners::Own } else { PairOwners::Foreign };
        let verdict = compare(&one.text(), &two.text(), whose, cosine, of);
        if let Some(number) = proposal {
            if verdict == DuplicateDecision::Different {
                self.found.over.push(number);
            }
            return Ok(());
        }
        let (stage, why) = match verdict {
            DuplicateDecision::Different => return Ok(()),
            DuplicateDecision::Merge => (Stage::Made, "the texts are equal".to_owned()),
            DuplicateDecision::Propose(doubt @ Doubt::Wording) => {
                (Stage::Proposed, format!("nearness {cosine:.3}: {}", doubt.words()))
            }
            DuplicateDecision::Propose(doubt) => (Stage::Proposed, doubt.words().to_owned()),
        };
        let entries = [one, two].map(|of| (of.document.entry, of.seq)).to_vec();
        let matter = Matter::Sameness;
        self.add_note(MaintenanceNote { matter, stage, entries, why, is_foreign: !is_own })
    }

    /// True if the pair was noted in this pass, from its other entry.
    pub(super) fn is_noted_now(&self, one: EntryId, two: EntryId) -> bool {
        let has = |note: &MaintenanceNote, entry| note.entries.iter().any(|(of, _)| *of == entry);
        self.found.notes.iter().any(|note| has(note, one) && has(note, two))
    }

    /// True if an entry was created by the owner, and shows the owner's text.
    pub(super) fn is_own(&self, view: &EntryView) -> bool {
        let mine = &self.reading.membership.mine;
        let creator = view.origin.as_ref().and_then(klnode_crdt::entry_origin::Origin::creator);
        creator.is_none_or(|creator| mine.contains(&creator)) && self.reading.is_own_text(view)
    }
}
