//! What says the opposite of an entry, as far as upkeep has noticed: named beside the entry wherever
//! it is shown, whether or not the other is in the same answer.
//!
//! Nothing is compared here. Only what could stand in an answer to a program is named, and by its code
//! alone: nobody from outside puts a word, or a doubt, beside an entry by writing against it.

use super::gate::Gate;
use super::question::Caveat;
use super::rivals::polarity;
use super::statement::contradiction;
use super::succession::is_standing;
use super::{Found, Reading};
use crate::store::Error;
use klnode_crdt::ids::EntryId;
use klnode_crdt::view::State;
use std::collections::{BTreeMap, BTreeSet};

/// Entries against one that are read.
const READ_MAX: usize = 16;
/// Those of them that are named; the rest is counted.
const NAMED_MAX: usize = 3;

/// Which entries say the opposite of which.
#[derive(Debug, Default)]
pub(super) struct Opposites(BTreeMap<EntryId, BTreeSet<EntryId>>);

impl Opposites {
    /// What is noted against an entry, or against what is the same.
    pub(super) fn of(&self, found: &Found) -> BTreeSet<EntryId> {
        found.read_with().flat_map(|entry| self.against(entry)).collect()
    }

    /// What is noted against an entry by itself.
    pub(super) fn against(&self, entry: EntryId) -> impl Iterator<Item = EntryId> {
        self.0.get(&entry).into_iter().flatten().copied()
    }
}

/// What is named against the entries that are shown, each with its code.
#[derive(Debug, Default)]
pub(super) struct Contradictions(BTreeMap<EntryId, Vec<(EntryId, String)>>);

impl Contradictions {
    /// What must be said of it beside an entry, without what is told there as a rival already.
    pub(super) fn beside(&self, entry: EntryId, told: &[Caveat]) -> Vec<Caveat> {
        let rival = |caveat: &Caveat| match caveat {
            Caveat::CompetesWith { entry, .. } => Some(*entry),
            _ => None,
        };
        let told: BTreeSet<EntryId> = told.iter().filter_map(rival).collect();
        let against = self.0.get(&entry).into_iter().flatten();
        let mut against = against.filter(|(one, _)| !told.contains(one));
        let named = against.by_ref().take(NAMED_MAX);
        let named = named.map(|(entry, code)| {
            let (entry, code) = (*entry, code.clone());
            Caveat::ContradictedBy { entry, code }
        });
        let mut caveats: Vec<Caveat> = named.collect();
        let more = against.count();
        caveats.extend((more > 0).then_some(Caveat::MoreContradict(more)));
        caveats
    }
}

impl Reading<'_> {
    /// What says the opposite of some entries. All that is noted is looked through once, by name;
    /// mostly that is nothing, and others can add no more to it than may wait for a word.
    pub(super) fn opposites(&self, is_meant: impl Fn(EntryId) -> bool) -> Result<Opposites, Error> {
        let mut opposites = Opposites::default();
        for ends in self.snapshot.opposites()? {
            let [one, two] = ends?;
            for (of, other) in [(one, two), (two, one)] {
                if is_meant(of) {
                    opposites.0.entry(of).or_default().insert(other);
                }
            }
        }
        Ok(opposites)
    }

    /// What is named against entries that are shown. It is looked up for each: an answer has no more of
    /// them than were read for it, and only where something is noted anything else is read.
    pub(super) fn contradictions(&self, shown: &[&Found]) -> Result<Contradictions, Error> {
        let meant: BTreeSet<EntryId> = shown.iter().flat_map(|found| found.read_with()).collect();
        let opposites = self.opposites(|entry| meant.contains(&entry))?;
        let mut contradictions = Contradictions::default();
        for found in shown {
            let against = self.named_against(found, &opposites)?;
            if !against.is_empty() {
                contradictions.0.insert(found.entry, against);
            }
        }
        Ok(contradictions)
    }

    /// What says the opposite of an entry and may be named: what is own comes first.
    fn named_against(
        &self,
        found: &Found,
        opposites: &Opposites,
    ) -> Result<Vec<(EntryId, String)>, Error> {
        // What was taken back says nothing any more.
        if found.view.state != State::Live {
            return Ok(Vec::new());
        }
        let mut others = Vec::new();
        for other in opposites.of(found) {
            // Whoever may not be named costs no reading, and whoever writes a lot takes no place of
            // what was tried.
            if !self.is_surely_shut(other)? {
                others.push((self.is_surely_untried(other)?, other));
            }
        }
        others.sort_unstable();
        let mut against = BTreeMap::new();
        for (_, other) in others.into_iter().take(READ_MAX) {
            let other = Error::unless_damaged(self.read_whole(other))?.flatten();
            let other = other.filter(|other| {
                other.entry != found.entry && other.gate() != Gate::Shut && is_standing(other)
            });
            let Some(other) = other else { continue };
            if self.is_open_between(found, &other)? {
                against.insert((other.is_foreign(), other.entry), other.code());
            }
        }
        Ok(against.into_iter().map(|((_, entry), code)| (entry, code)).collect())
    }

    /// Whether two entries that were noted to contradict still do, by polarity or by their texts, and
    /// neither supersedes the other.
    fn is_open_between(&self, one: &Found, other: &Found) -> Result<bool, Error> {
        let is_opposed = polarity(&one.view).opposes(polarity(&other.view));
        if !is_opposed && contradiction(&one.view, &other.view).is_none() {
            return Ok(false);
        }
        let takes = |old: &Found, new: &Found| -> Result<bool, Error> {
            Ok(self.successors(old)?.iter().any(|successor| successor.entry == new.entry))
        };
        Ok(!takes(one, other)? && !takes(other, one)?)
    }
}
