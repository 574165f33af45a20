//! Contradictions that maintenance recorded, shown with an entry wherever it appears, whether or
//! not the other entry is in the same answer.
//!
//! This module compares no entries. It names only entries that pass the gate, and only by their
//! codes: an outsider must not be able to add text, or doubt, to an entry by writing against it.

use super::contradictions::polarity;
use super::foreign_gate::GateDecision;
use super::search_types::HitCaveat;
use super::supersession::is_standing;
use super::text_contradiction::contradiction;
use super::{AssessedEntry, ReadContext};
use klnode_crdt::entry_view::State;
use klnode_crdt::ids::EntryId;
use klnode_store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of contradicting entries read for one entry.
const READ_MAX: usize = 16;
/// Maximum number of contradicting entries that are named; the rest is counted.
const NAMED_MAX: usize = 3;

/// The recorded contradictions, by entry.
#[derive(Debug, Default)]
pub(super) struct ContradictionIndex(BTreeMap<EntryId, BTreeSet<EntryId>>);

impl ContradictionIndex {
    /// The entries recorded against an entry or one of its merged duplicates.
    pub(super) fn of(&self, found: &AssessedEntry) -> BTreeSet<EntryId> {
        found.read_with().flat_map(|entry| self.against(entry)).collect()
    }

    /// The entries recorded against this entry alone.
    pub(super) fn against(&self, entry: EntryId) -> impl Iterator<Item = EntryId> {
        self.0.get(&entry).into_iter().flatten().copied()
    }
}

/// The contradicting entries to name beside each shown entry, with their codes.
#[derive(Debug, Default)]
pub(super) struct Contradictions(BTreeMap<EntryId, Vec<(EntryId, String)>>);

impl Contradictions {
    /// The caveats for an entry, without contradictions that `told` names already.
    pub(super) fn caveats_for(&self, entry: EntryId, told: &[HitCaveat]) -> Vec<HitCaveat> {
        let rival = |caveat: &HitCaveat| match caveat {
            HitCaveat::CompetesWith { entry, .. } => Some(*entry),
            _ => None,
        };
        let told: BTreeSet<EntryId> = told.iter().filter_map(rival).collect();
        let against = self.0.get(&entry).into_iter().flatten();
        let mut against = against.filter(|(one, _)| !told.contains(one));
        let named = against.by_ref().take(NAMED_MAX);
        let named = named.map(|(entry, code)| {
            let (entry, code) = (*entry, code.clone());
            HitCaveat::ContradictedBy { entry, code }
        });
        let mut caveats: Vec<HitCaveat> = named.collect();
        let more = against.count();
        caveats.extend((more > 0).then_some(HitCaveat::MoreContradict(more)));
        caveats
    }
}

impl ReadContext<'_> {
    /// The recorded contradictions of some entries. One scan reads all records; there are few,
    /// because the number of unresolved notes about foreign entries is limited.
    pub(super) fn recorded_contradictions(
        &self,
        is_meant: impl Fn(EntryId) -> bool,
    ) -> Result<ContradictionIndex, Error> {
        let mut recorded = ContradictionIndex::default();
        for ends in self.snapshot.opposites()? {
            let [one, two] = ends?;
            for (of, other) in [(one, two), (two, one)] {
                if is_meant(of) {
                    recorded.0.entry(of).or_default().insert(other);
                }
            }
        }
        Ok(recorded)
    }

    /// The contradictions to name beside the shown entries. The number of shown entries is bounded,
    /// and other entries are read only where a contradiction is recorded.
    pub(super) fn contradictions(&self, shown: &[&AssessedEntry]) -> Result<Contradictions, Error> {
        let meant: BTreeSet<EntryId> = shown.iter().flat_map(|found| found.read_with()).collect();
        let recorded = self.recorded_contradictions(|entry| meant.contains(&entry))?;
        let mut contradictions = Contradictions::default();
        for found in shown {
            let against = self.named_against(found, &recorded)?;
            if !against.is_empty() {
                contradictions.0.insert(found.entry, against);
            }
        }
        Ok(contradictions)
    }

    /// The contradicting entries that may be named, the owner's first.
    fn named_against(
        &self,
        found: &AssessedEntry,
        recorded: &ContradictionIndex,
    ) -> Result<Vec<(EntryId, String)>, Error> {
        // A retracted entry states nothing, so nothing contradicts it.
        if found.view.state != State::Live {
            return Ok(Vec::new());
        }
        let mut others = Vec::new();
        for other in recorded.of(found) {
            // Entries that the gate excludes are not read, and unconfirmed entries come last, so
            // that an author who writes a lot cannot displace confirmed ones.
            if !self.is_surely_shut(other)? {
                others.push((self.is_surely_untried(other)?, other));
            }
        }
        others.sort_unstable();
        let mut against = BTreeMap::new();
        for (_, other) in others.into_iter().take(READ_MAX) {
            let other = Error::unless_damaged(self.read_whole(other))?.flatten();
            let other = other.filter(|other| {
                other.entry != found.entry
                    && other.gate() != GateDecision::Shut
                    && is_standing(other)
            });
            let Some(other) = other else { continue };
            if self.is_unresolved(found, &other)? {
                against.insert((other.is_foreign(), other.entry), other.code());
            }
        }
        Ok(against.into_iter().map(|((_, entry), code)| (entry, code)).collect())
    }

    /// True if a recorded contradiction still holds, by polarity or by text, and neither entry
    /// supersedes the other.
    fn is_unresolved(&self, one: &AssessedEntry, other: &AssessedEntry) -> Result<bool, Error> {
        let is_opposed = polarity(&one.view).opposes(polarity(&other.view));
        if !is_opposed && contradiction(&one.view, &other.view).is_none() {
            return Ok(false);
        }
        let takes = |old: &AssessedEntry, new: &AssessedEntry| -> Result<bool, Error> {
            let mut successors = self.successors(old)?.into_iter();
            Ok(successors.any(|one| one.is_believed && one.found.entry == new.entry))
        };
        Ok(!takes(one, other)? && !takes(other, one)?)
    }
}
