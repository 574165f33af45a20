//! What stands against a new norm: norms where it would go that say the opposite.

use super::candidates::{self, SearchError, dot};
use super::question::Question;
use super::rivals::{RELATED_MIN, polarity};
use super::{Found, Reading, excerpt};
use crate::index::Index;
use crate::index::document::{Filter, Scope};
use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::kind::Kind;
use klnode_crdt::view::View;
use klnode_scoring::conflict::{self, Contradiction, Polarity, Subject};
use std::collections::BTreeSet;

/// Norms that are compared, the nearest first.
const COMPARED_MAX: usize = 40;

impl Reading<'_> {
    /// Norms of a workspace that say the opposite of an entry. Where no embedder can tell how near
    /// two texts are, opposite norms on the same topics count: a gate that cannot see stays shut.
    pub fn opposing_norms(
        &self,
        index: &Index,
        of: &View,
        workspace: WorkspaceId,
    ) -> Result<Vec<Found>, SearchError> {
        let side = polarity(of);
        let Some(scope) = Scope::of(of).filter(|_| side != Polarity::Neutral) else {
            return Ok(Vec::new());
        };
        let text = excerpt::whole(of);
        let filter =
            Filter { workspaces: vec![workspace], kinds: vec![Kind::Norm], ..Filter::default() };
        let question = Question { filter, ..Question::new(text.clone(), COMPARED_MAX) };
        let found =
            candidates::find(index, (self.snapshot, &self.society), &question, self.now, &|_| {
                Ok(false)
            })?;
        let tags: BTreeSet<String> = scope.tags.into_iter().collect();
        let mut opposing = Vec::new();
        for candidate in found.best_first.iter().take(COMPARED_MAX) {
            let Some(other) = self.read_sound(candidate.entry)? else { continue };
            let Some(theirs) = Scope::of(&other.view) else { continue };
            let is_norm = theirs.kind == Some(Kind::Norm) && theirs.workspace == workspace;
            if !is_norm || !other.judged.standing.status.is_retrieved() {
                continue;
            }
            let near = found.meaning.as_ref().and_then(|meaning| {
                let texts = [text.as_str(), &excerpt::whole(&other.view)];
                let vectors = meaning.embedder.embed(&texts).ok()?;
                Some(meaning.calibration.meaning(dot(vectors.first()?, vectors.get(1)?)))
            });
            let their_tags: BTreeSet<String> = theirs.tags.into_iter().collect();
            let ours = Subject { polarity: side, tags: &tags };
            let against = Subject { polarity: polarity(&other.view), tags: &their_tags };
            let params = &self.reader.numbers.conflict;
            let said =
                conflict::contradiction(ours, against, near.unwrap_or(1.0), RELATED_MIN, params);
            if matches!(said, Contradiction::Found { .. }) {
                opposing.push(other);
            }
        }
        Ok(opposing)
    }
}
