//! What must be said along with an entry: what is stale, disputed, broken, foreign or untried about it.

use super::anchors::{Flagged, Looked};
use super::question::Caveat;
use super::{Found, Reading};
use crate::store::Error;
use klnode_crdt::claims::TextSet;
use klnode_crdt::lww::{Register, Shown};
use klnode_crdt::view::View;
use klnode_scoring::rank::signals;
use klnode_scoring::status::Status;

/// Atoms of one entry that an answer names as broken or unknown.
const FINDINGS_MAX: usize = 3;

impl Reading<'_> {
    /// What must be said along with an entry that is shown by name, after a look at what it depends on,
    /// if there was one.
    pub fn caveats(&self, found: &Found, looked: Option<&Looked>) -> Result<Vec<Caveat>, Error> {
        let unseen = Looked::unseen(&found.view);
        let looked = looked.unwrap_or(&unseen);
        let freshness = self.freshness(looked.check, self.vouched(found)?, found);
        let mut caveats = own_caveats(found, &freshness, looked, &self.successors(found)?);
        caveats.extend(self.contradictions(&[found])?.beside(found.entry, &[]));
        Ok(caveats)
    }
}

/// What must be said along with an entry, whatever else is shown beside it: one way for every answer.
pub(super) fn own_caveats(
    found: &Found,
    freshness: &signals::Freshness,
    looked: &Looked,
    successors: &[Found],
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    match found.judged.standing.status {
        Status::Stale => caveats.push(Caveat::Stale),
        Status::Archived => caveats.push(Caveat::Archived),
        _ => {}
    }
    let view = &found.view;
    caveats.extend(successors.iter().map(superseded_by));
    let contested = contested(view);
    if !contested.is_empty() {
        caveats.push(Caveat::Contested(contested));
    }
    let early = names(view, |shown| shown.is_early);
    if !early.is_empty() {
        caveats.push(Caveat::Early(early));
    }
    caveats.extend(checked(found, freshness, looked));
    match view.text(Register::FAILED_WORK) {
        Some("true") => caveats.push(Caveat::FailedWork),
        // Somebody has said otherwise.
        Some(_) => {}
        None => caveats.extend(found.judged.is_abandoned.then_some(Caveat::AbandonedWork)),
    }
    if !found.merged.is_empty() {
        caveats.push(Caveat::Merged(found.merged.len()));
    }
    let proposals = found.proposals().count();
    if proposals > 0 {
        caveats.push(Caveat::Proposals(proposals));
    }
    caveats.extend(of_others(found));
    if let Some(author) = found.author.as_ref().filter(|author| !author.is_own()) {
        caveats.push(Caveat::Foreign { by: author.name.clone() });
        if !found.is_corroborated() {
            caveats.push(Caveat::Uncorroborated);
        }
    }
    caveats
}

fn superseded_by(successor: &Found) -> Caveat {
    Caveat::SupersededBy { entry: successor.entry, code: successor.code() }
}

/// The registers on which several authors say different things.
pub(super) fn contested(view: &View) -> Vec<&'static str> {
    names(view, |shown| !shown.rivals.is_empty())
}

fn names(view: &View, is_meant: impl Fn(&Shown) -> bool) -> Vec<&'static str> {
    let meant = view.registers.iter().filter(|(_, shown)| is_meant(shown));
    meant.filter_map(|(register, _)| register.name()).collect()
}

/// How many tags and citations are beside the text that are not its author's: in an answer they would
/// speak with its voice.
fn of_others(found: &Found) -> Option<Caveat> {
    let tags = found.view.texts.get(&TextSet::TAGS);
    let tags = tags.map_or(0, |tags| tags.values().filter(|by| !found.speaks(by)).count());
    let citations = found.view.citations.values().filter(|by| !found.speaks(by)).count();
    (tags + citations > 0).then_some(Caveat::OfOthers { tags, citations })
}

/// What a look at what an entry depends on gives to say. What others say it depends on is looked at as
/// well, and counted, but not quoted.
fn checked(found: &Found, freshness: &signals::Freshness, looked: &Looked) -> Vec<Caveat> {
    let (own, others): (Vec<&Flagged>, Vec<&Flagged>) =
        looked.findings.iter().partition(|flagged| found.speaks(&flagged.by));
    let of = own.into_iter().take(FINDINGS_MAX).map(|flagged| &flagged.finding);
    let of = of.map(|finding| (finding.atom.clone(), finding.reason.to_string()));
    let others = Some(others.len()).filter(|count| *count > 0);
    match freshness.caveat {
        None => Vec::new(),
        Some(signals::Caveat::Broken) => {
            let broken = of.map(|(atom, reason)| Caveat::Broken { atom, reason });
            broken.chain(others.map(Caveat::OthersBroken)).collect()
        }
        Some(signals::Caveat::Unchecked) if looked.findings.is_empty() => {
            vec![Caveat::Unchecked]
        }
        Some(signals::Caveat::Unchecked) => {
            let unknown = of.map(|(atom, reason)| Caveat::Unknown { atom, reason });
            unknown.chain(others.map(Caveat::OthersUnknown)).collect()
        }
    }
}
