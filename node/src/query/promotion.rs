//! What stands against a new norm: norms where it would go that say the opposite.

use super::candidates::{self, Meant, SearchError, dot};
use super::question::Question;
use super::rivals::{RELATED_MIN, polarity};
use super::{Found, Reading, excerpt};
use crate::index::Index;
use crate::index::document::{Filter, Scope};
use crate::store::Error;
use crate::store::rows::Seq;
use klnode_crdt::ids::WorkspaceId;
use klnode_crdt::kind::Kind;
use klnode_crdt::view::View;
use klnode_scoring::conflict::{self, Contradiction, Polarity, Subject};
use std::collections::BTreeSet;

/// Norms that are compared, the nearest first.
const COMPARED_MAX: usize = 40;

impl Reading<'_> {
    /// Norms of a workspace that say the opposite of an entry. Where it cannot be told how near two
    /// texts are, opposite norms with the same tags count: a gate that cannot see stays shut.
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
        // Before the vectors are looked at: they hold at least what they held then.
        let upto = index.state().vectors;
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
            let near = match &found.meaning {
                Some(meant) => self.near(meant, (&text, &other), upto)?,
                None => None,
            };
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

    /// How near a text is to an entry, where that is known. Nobody waits for an embedder to read the
    /// entry: where that takes its time, the vectors know, if they hold the entry as it is now.
    fn near(
        &self,
        (meaning, vector): &Meant,
        (text, other): (&str, &Found),
        upto: Option<Seq>,
    ) -> Result<Option<f64>, Error> {
        let cosine = if meaning.embedder.is_instant() {
            let vectors = meaning.embedder.embed(&[text, &excerpt::whole(&other.view)]);
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
