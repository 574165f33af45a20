//! Finds norms that contradict a new norm in the workspace that it would enter.

use super::candidates::{self, SearchError, dot};
use super::contradictions::{RELATED_MIN, polarity};
use super::question_vectors::QueryVectors;
use super::search_types::SearchQuery;
use super::{AssessedEntry, ReadContext, entry_forms};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::ids::WorkspaceId;
use klnode_index::Index;
use klnode_index::document::{DocumentFilter, FilterFields};
use klnode_scoring::contradiction::{self, Contradiction, ContradictionSubject, Polarity};
use klnode_store::Error;
use klnode_store::row_types::Seq;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Maximum number of norms compared, most similar first.
const COMPARED_MAX: usize = 40;

impl ReadContext<'_> {
    /// The norms of a workspace that contradict an entry. If similarity cannot be computed, norms
    /// with opposite polarity and the same tags count as contradictions: the gate stays closed when
    /// in doubt.
    pub fn opposing_norms(
        &self,
        index: &Index,
        of: &EntryView,
        workspace: WorkspaceId,
    ) -> Result<Vec<AssessedEntry>, SearchError> {
        let side = polarity(of);
        let Some(scope) = FilterFields::of(of).filter(|_| side != Polarity::Neutral) else {
            return Ok(Vec::new());
        };
        let text = entry_forms::whole(of);
        let filter = DocumentFilter {
            workspaces: vec![workspace],
            kinds: vec![EntryType::Norm],
            ..DocumentFilter::default()
        };
        let question = SearchQuery { filter, ..SearchQuery::new(text.clone(), COMPARED_MAX) };
        // Read this before the search: the vectors then hold at least the records up to here.
        let upto = index.state().vectors;
        let found = candidates::find(
            index,
            (self.snapshot, &self.membership),
            (&question, &OnceLock::new()),
            self.now,
            &|_| Ok(false),
        )?;
        let tags: BTreeSet<String> = scope.tags.into_iter().collect();
        let mut opposing = Vec::new();
        for candidate in found.best_first.iter().take(COMPARED_MAX) {
            let Some(other) = self.read_sound(candidate.entry)? else { continue };
            let Some(theirs) = FilterFields::of(&other.view) else { continue };
            let is_norm = theirs.kind == Some(EntryType::Norm) && theirs.workspace == workspace;
            if !is_norm || !other.assessment.standing.status.is_retrieved() {
                continue;
            }
            let near = match &found.meaning {
                Some(meant) => self.near(meant, (&text, &other), upto)?,
                None => None,
            };
            let their_tags: BTreeSet<String> = theirs.tags.into_iter().collect();
            let ours = ContradictionSubject { polarity: side, tags: &tags };
            let against =
                ContradictionSubject { polarity: polarity(&other.view), tags: &their_tags };
            let params = &self.reader.numbers.conflict;
            let said = contradiction::contradiction(
                ours,
                against,
                near.unwrap_or(1.0),
                RELATED_MIN,
                params,
            );
            if matches!(said, Contradiction::Found { .. }) {
                opposing.push(other);
            }
        }
        Ok(opposing)
    }

    /// The similarity of a text to an entry, if known. This does not wait for a slow embedder: in
    /// that case it takes the stored vector, provided the vector is of the entry's current text.
    fn near(
        &self,
        (meaning, vector): &QueryVectors,
        (text, other): (&str, &AssessedEntry),
        upto: Option<Seq>,
    ) -> Result<Option<f64>, Error> {
        let cosine = if meaning.embedder.is_instant() {
            let vectors = meaning.embedder.embed(&[text, &entry_forms::whole(&other.view)]);
            vectors.ok().and_then(|vectors| Some(dot(vectors.first()?, vectors.get(1)?)))
        } else if Some(self.snapshot.text_seq(other.entry)?) <= upto {
            let cosines = meaning.vectors.cosines_of(&[other.entry], vector);
            cosines.ok().and_then(|cosines| cosines.into_iter().next().flatten()).map(f64::from)
        } else {
            None
        };
        Ok(cosine.map(|cosine| meaning.calibration.meaning(cosine)))
    }
}
