//! Collects the caveats of an entry: stale, in conflict, broken, foreign or unconfirmed.

use super::anchor_check::{AnchorCheck, FailedAtom};
use super::search_types::HitCaveat;
use super::supersession::Successor;
use super::{AssessedEntry, ReadContext};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::register::{Register, ShownValue};
use klnode_scoring::rank::signals;
use klnode_scoring::status::Status;
use klnode_store::Error;

/// Maximum number of broken or unknown atoms of one entry that an answer names.
const FINDINGS_MAX: usize = 3;

impl ReadContext<'_> {
    /// The caveats of an entry that the caller named. `looked` is the result of its predicates, if
    /// they were evaluated.
    pub fn caveats(
        &self,
        found: &AssessedEntry,
        looked: Option<&AnchorCheck>,
    ) -> Result<Vec<HitCaveat>, Error> {
        let unchecked = AnchorCheck::unchecked(&found.view);
        let looked = looked.unwrap_or(&unchecked);
        let freshness = self.freshness(looked.check, self.endorsements(found)?, found);
        let mut caveats = own_caveats(found, &freshness, looked, &self.successors(found)?);
        caveats.extend(self.contradictions(&[found])?.caveats_for(found.entry, &[]));
        Ok(caveats)
    }
}

/// The caveats that do not depend on the other entries of the answer; the same for all answers.
pub(super) fn own_caveats(
    found: &AssessedEntry,
    freshness: &signals::Freshness,
    looked: &AnchorCheck,
    successors: &[Successor],
) -> Vec<HitCaveat> {
    let mut caveats = Vec::new();
    match found.assessment.standing.status {
        Status::Stale => caveats.push(HitCaveat::Stale),
        Status::Archived => caveats.push(HitCaveat::Archived),
        _ => {}
    }
    let view = &found.view;
    caveats.extend(successors.iter().map(superseded_by));
    if found.assessment.warns_of_failures {
        caveats.push(HitCaveat::FailedLately);
    }
    let contested = conflicting_registers(view);
    if !contested.is_empty() {
        caveats.push(HitCaveat::Contested(contested));
    }
    let early = names(view, |shown| shown.is_early);
    if !early.is_empty() {
        caveats.push(HitCaveat::Early(early));
    }
    caveats.extend(predicate_caveats(found, freshness, looked));
    match view.text(Register::FAILED_WORK) {
        Some("true") => caveats.push(HitCaveat::FailedWork),
        // An author has set the register to another value.
        Some(_) => {}
        None => caveats.extend(found.assessment.is_abandoned.then_some(HitCaveat::AbandonedWork)),
    }
    if !found.merged.is_empty() {
        caveats.push(HitCaveat::Merged(found.merged.len()));
    }
    let proposals = found.proposals().count();
    if proposals > 0 {
        caveats.push(HitCaveat::Proposals(proposals));
    }
    caveats.extend(caveat_of_others(found));
    if let Some(author) = found.author.as_ref().filter(|author| !author.is_own()) {
        caveats.push(HitCaveat::Foreign { by: author.name.clone() });
        if !found.is_corroborated() {
            caveats.push(HitCaveat::Uncorroborated);
        }
    }
    caveats
}

fn superseded_by(successor: &Successor) -> HitCaveat {
    let (entry, code) = (successor.found.entry, successor.found.code());
    match successor.is_believed {
        true => HitCaveat::SupersededBy { entry, code },
        false => HitCaveat::ReplacementClaimed { entry, code },
    }
}

/// The registers with an edit conflict between authors.
pub(super) fn conflicting_registers(view: &EntryView) -> Vec<&'static str> {
    names(view, |shown| !shown.rivals.is_empty())
}

fn names(view: &EntryView, is_meant: impl Fn(&ShownValue) -> bool) -> Vec<&'static str> {
    let meant = view.registers.iter().filter(|(_, shown)| is_meant(shown));
    meant.filter_map(|(register, _)| register.name()).collect()
}

/// The number of tags and citations by authors outside `voices`, which an answer must not show as
/// the text's own.
fn caveat_of_others(found: &AssessedEntry) -> Option<HitCaveat> {
    let tags = found.view.texts.get(&TextSet::TAGS);
    let tags = tags.map_or(0, |tags| tags.values().filter(|by| !found.is_own_voice(by)).count());
    let citations = found.view.citations.values().filter(|by| !found.is_own_voice(by)).count();
    (tags + citations > 0).then_some(HitCaveat::OfOthers { tags, citations })
}

/// The caveats from evaluated predicates. Predicates that other authors added are counted but not
/// quoted.
fn predicate_caveats(
    found: &AssessedEntry,
    freshness: &signals::Freshness,
    looked: &AnchorCheck,
) -> Vec<HitCaveat> {
    let (own, others): (Vec<&FailedAtom>, Vec<&FailedAtom>) =
        looked.findings.iter().partition(|flagged| found.is_own_voice(&flagged.by));
    let of = own.into_iter().take(FINDINGS_MAX).map(|flagged| &flagged.finding);
    let of = of.map(|finding| (finding.atom.clone(), finding.reason.to_string()));
    let others = Some(others.len()).filter(|count| *count > 0);
    match freshness.caveat {
        None => Vec::new(),
        Some(signals::FreshnessCaveat::Broken) => {
            let broken = of.map(|(atom, reason)| HitCaveat::Broken { atom, reason });
            broken.chain(others.map(HitCaveat::OthersBroken)).collect()
        }
        Some(signals::FreshnessCaveat::Unchecked) if looked.findings.is_empty() => {
            vec![HitCaveat::Unchecked]
        }
        Some(signals::FreshnessCaveat::Unchecked) => {
            let unknown = of.map(|(atom, reason)| HitCaveat::Unknown { atom, reason });
            unknown.chain(others.map(HitCaveat::OthersUnknown)).collect()
        }
    }
}
