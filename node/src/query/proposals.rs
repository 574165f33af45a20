//! What authors whose word is not shown would have an entry say.

use super::{Found, Reading};
use crate::store::Error;
use klnode_crdt::claims::Citation;
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Hlc;
use klnode_crdt::view::{Proposal, State, View};

/// Evidence that somebody whose word is not shown brings.
#[derive(Clone, Debug)]
pub struct ProposedCitation {
    /// By whom.
    pub author: AuthorId,
    /// The evidence.
    pub citation: Citation,
    /// When, by its author's clock.
    pub stamp: Hlc,
}

/// Texts of others that are not what is shown: who says the same proposes nothing.
fn proposals(view: &View) -> impl Iterator<Item = &Proposal> {
    let differs = move |of: &&Proposal| view.text(of.register) != Some(of.text.as_str());
    view.proposals.iter().filter(differs)
}

/// Whether nobody whose word is shown says anything of an entry, and somebody else does.
pub fn is_only_proposed(view: &View) -> bool {
    view.state == State::Retracted && proposals(view).next().is_some()
}

impl Found {
    /// Texts of others that are not what is shown: who says the same proposes nothing.
    pub fn proposals(&self) -> impl Iterator<Item = &Proposal> {
        proposals(&self.view)
    }

    /// Whether nobody whose word is shown says anything of it, and somebody else does.
    pub fn is_only_proposed(&self) -> bool {
        is_only_proposed(&self.view)
    }
}

impl Reading<'_> {
    /// Evidence by authors whose word is not shown, as far as nobody whose word is shown cites it too.
    pub fn proposed_citations(&self, of: &Found) -> Result<Vec<ProposedCitation>, Error> {
        let Some(origin) = &of.view.origin else { return Ok(Vec::new()) };
        let entitlement = self.society.entitlement(Some(origin.workspace()));
        let held = self.snapshot.entry(of.entry)?.to_entry();
        let mut proposed: Vec<ProposedCitation> = Vec::new();
        for (author, claims) in held.claims {
            if entitlement.includes(author, origin) {
                continue;
            }
            let claims = match held.marks.get(&author) {
                Some(marks) => claims.without_suppressed(marks),
                None => claims,
            };
            for (citation, word) in claims.citations.iter() {
                let is_said = of.view.citations.keys().any(|known| is_same(known, citation));
                let is_known = |known: &ProposedCitation| {
                    known.author == author && is_same(&known.citation, citation)
                };
                let is_new = !is_said && !proposed.iter().any(is_known);
                if word.presence == Presence::Present && is_new {
                    let (citation, stamp) = (citation.clone(), word.stamp);
                    proposed.push(ProposedCitation { author, citation, stamp });
                }
            }
        }
        Ok(proposed)
    }
}

/// Whether two citations lead to the same, whoever cites it and when.
fn is_same(one: &Citation, other: &Citation) -> bool {
    (&one.evidence_type, &one.evidence_ref, one.is_context)
        == (&other.evidence_type, &other.evidence_ref, other.is_context)
}
