//! Proposals: claims about an entry by authors who are not entitled to make them.

use super::{AssessedEntry, ReadContext};
use klnode_crdt::claims::Citation;
use klnode_crdt::entry_view::{EntryView, Proposal, State};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::lww_set::Presence;
use klnode_crdt::time::Hlc;
use klnode_store::Error;

/// A citation by a non-entitled author.
#[derive(Clone, Debug)]
pub struct ProposedCitation {
    pub author: AuthorId,
    /// The proposed evidence.
    pub citation: Citation,
    /// The time of the proposal by its author's clock.
    pub stamp: Hlc,
}

/// Proposed texts that differ from the shown text.
fn proposals(view: &EntryView) -> impl Iterator<Item = &Proposal> {
    let differs = move |of: &&Proposal| view.text(of.register) != Some(of.text.as_str());
    view.proposals.iter().filter(differs)
}

/// True if only non-entitled authors made claims about the entry.
pub fn is_only_proposed(view: &EntryView) -> bool {
    view.state == State::Retracted && proposals(view).next().is_some()
}

impl AssessedEntry {
    /// Proposed texts that differ from the shown text.
    pub fn proposals(&self) -> impl Iterator<Item = &Proposal> {
        proposals(&self.view)
    }

    /// True if only non-entitled authors made claims about the entry.
    pub fn is_only_proposed(&self) -> bool {
        is_only_proposed(&self.view)
    }
}

impl ReadContext<'_> {
    /// Citations by non-entitled authors, without those that an entitled author cites too.
    pub fn proposed_citations(&self, of: &AssessedEntry) -> Result<Vec<ProposedCitation>, Error> {
        let Some(origin) = &of.view.origin else { return Ok(Vec::new()) };
        let entitlement = self.membership.entitlement(Some(origin.workspace()));
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

/// True if two citations refer to the same evidence, regardless of author and time.
fn is_same(one: &Citation, other: &Citation) -> bool {
    (&one.evidence_type, &one.evidence_ref, one.is_context)
        == (&other.evidence_type, &other.evidence_ref, other.is_context)
}
