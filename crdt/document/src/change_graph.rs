//! The changes of a document that are held, and the checks that need their dependencies.
//!
//! A held change is in one of three places:
//!
//! - **admitted**: all its dependencies are admitted, and it passed the checks of this file;
//! - **waiting**: a dependency is not admitted yet;
//! - **refused**: it broke a rule, or depends on a change that did.
//!
//! The place depends on the change and its ancestors, never on the order of arrival: a change names
//! its dependencies by hash, so its ancestors are fixed when it is written. Whether an admitted change
//! is applied is a second question, which [`change_selection`](crate::change_selection) answers.
//!
//! The rules protect automerge, which trusts its input: it panics if an operation names an element
//! that is missing, or if a counter comes near 2^32.

use crate::actor_lanes::Lanes;
use crate::causal_clock::CausalClock;
use crate::change::CheckedChange;
use crate::change_hash::ChangeHash;
use crate::change_parser::TargetRun;
use crate::edit_identity::Actor;
use crate::root_change::{ROOT_HASH, TEXT_COUNTER};
use klnode_crdt::ids::AuthorId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A change, and whether its author may write: it is a member, or the change is in a cut.
#[derive(Clone, Debug)]
pub(crate) struct HeldChange {
    pub(crate) change: CheckedChange,
    pub(crate) is_entitled: bool,
}

/// A change whose dependencies are admitted.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedChange {
    pub(crate) change: CheckedChange,
    pub(crate) is_entitled: bool,
    /// Indices of the dependencies, without the root change.
    pub(crate) dependencies: Vec<usize>,
    /// Indices of the changes that depend on this one.
    pub(crate) dependants: Vec<usize>,
    lane: usize,
    history: CausalClock,
}

/// Why a change is refused although its bytes are valid. The reason depends on the change and its
/// ancestors alone, so it holds on every node and for ever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The first operation does not follow the last operation of the dependencies.
    #[error("The change starts at operation {found}; its dependencies end before {expected}.")]
    WrongStartOperation {
        /// One more than the greatest counter of the dependencies.
        expected: u32,
        /// The counter in the change.
        found: u32,
    },
    /// The sequence number does not follow the actor's last change among the ancestors.
    #[error("The change has sequence number {found}; its actor's next number is {expected}.")]
    WrongSequence {
        /// One more than the sequence number of the actor's last change among the ancestors.
        expected: u32,
        /// The number in the change.
        found: u32,
    },
    /// An operation names an element that no ancestor inserted.
    #[error("The change names an element of actor {0} that its dependencies do not contain.")]
    UnknownElement(Actor),
    /// Two ancestors have the same actor and sequence number. No node applies both.
    #[error("The dependencies of the change contain two changes with one sequence number.")]
    MergesDuplicates,
    /// A dependency is refused.
    #[error("The change depends on the refused change {0}.")]
    DependsOnRefused(ChangeHash),
}

#[derive(Clone, Copy, Debug)]
enum ChangePlace {
    Admitted(usize),
    Waiting,
    Refused,
}

/// The effect of one insertion.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphUpdate {
    /// Indices of the changes that are newly admitted, dependencies first.
    pub(crate) admitted: Vec<usize>,
    /// An admitted change now has another number or entitlement.
    pub(crate) is_revised: bool,
}

/// All changes that are held for one document.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeGraph {
    admitted: Vec<AdmittedChange>,
    places: BTreeMap<ChangeHash, ChangePlace>,
    waiting: BTreeMap<ChangeHash, HeldChange>,
    /// For a change that is not admitted: waiting changes that depend on it.
    dependants_of_missing: BTreeMap<ChangeHash, Vec<ChangeHash>>,
    refused: BTreeMap<ChangeHash, HistoryError>,
    lanes: Lanes,
    /// Admitted changes by actor and sequence number. A list of two or more holds duplicates.
    by_sequence: BTreeMap<(Actor, u32), Vec<usize>>,
    /// Number of waiting or refused changes of each actor.
    not_admitted: BTreeMap<Actor, usize>,
}

impl ChangeGraph {
    /// Holds a change, and admits it and the changes that waited for it.
    pub(crate) fn insert(&mut self, held: HeldChange) -> GraphUpdate {
        let hash = held.change.hash();
        if let Some(place) = self.places.get(&hash).copied() {
            return GraphUpdate { is_revised: self.revise(place, held), ..GraphUpdate::default() };
        }
        *self.not_admitted.entry(held.change.actor()).or_default() += 1;
        self.places.insert(hash, ChangePlace::Waiting);
        self.waiting.insert(hash, held);
        let mut update = GraphUpdate::default();
        let mut ready = VecDeque::from([hash]);
        while let Some(hash) = ready.pop_front() {
            if self.settle(hash, &mut update.admitted) {
                ready.extend(self.dependants_of_missing.remove(&hash).unwrap_or_default());
            }
        }
        update
    }

    /// Two records may contain one change. The least number and an entitlement of either count, so
    /// that the order of the records does not matter.
    fn revise(&mut self, place: ChangePlace, held: HeldChange) -> bool {
        let (change, is_entitled) = match place {
            ChangePlace::Admitted(index) => {
                let admitted = &mut self.admitted[index];
                (&mut admitted.change, &mut admitted.is_entitled)
            }
            ChangePlace::Waiting => match self.waiting.get_mut(&held.change.hash()) {
                Some(waiting) => (&mut waiting.change, &mut waiting.is_entitled),
                None => return false,
            },
            ChangePlace::Refused => return false,
        };
        let is_lower = held.change.identity().number < change.identity().number;
        let is_newly_entitled = held.is_entitled && !*is_entitled;
        if is_lower {
            *change = held.change;
        }
        *is_entitled |= held.is_entitled;
        (is_lower || is_newly_entitled) && matches!(place, ChangePlace::Admitted(_))
    }

    /// Admits or refuses a waiting change if its dependencies are decided. Returns whether it did.
    fn settle(&mut self, hash: ChangeHash, admitted: &mut Vec<usize>) -> bool {
        let Some(held) = self.waiting.get(&hash).cloned() else { return false };
        let mut dependencies = Vec::new();
        for dependency in held.change.dependencies().iter().filter(|hash| **hash != ROOT_HASH) {
            match self.places.get(dependency) {
                Some(ChangePlace::Admitted(index)) => dependencies.push(*index),
                Some(ChangePlace::Refused) => {
                    self.refuse(hash, HistoryError::DependsOnRefused(*dependency));
                    return true;
                }
                Some(ChangePlace::Waiting) | None => {
                    self.dependants_of_missing.entry(*dependency).or_default().push(hash);
                    return false;
                }
            }
        }
        match self.admit(&held, dependencies) {
            Ok(index) => admitted.push(index),
            Err(reason) => self.refuse(hash, reason),
        }
        true
    }

    fn refuse(&mut self, hash: ChangeHash, reason: HistoryError) {
        self.waiting.remove(&hash);
        self.places.insert(hash, ChangePlace::Refused);
        self.refused.insert(hash, reason);
    }

    fn admit(
        &mut self,
        held: &HeldChange,
        dependencies: Vec<usize>,
    ) -> Result<usize, HistoryError> {
        let change = &held.change;
        let (history, last) = self.merged_history(&dependencies);
        let (expected, found) = (last + 1, change.start_operation());
        if expected != found {
            return Err(HistoryError::WrongStartOperation { expected, found });
        }
        // A single dependency was checked when it was admitted.
        if dependencies.len() > 1 && self.lanes.has_duplicates(&history) {
            return Err(HistoryError::MergesDuplicates);
        }
        let previous = self.lanes.end(change.actor(), &history);
        let expected = previous.map_or(0, |end| end.sequence) + 1;
        let found = change.sequence();
        if expected != found {
            return Err(HistoryError::WrongSequence { expected, found });
        }
        for run in change.targets() {
            self.check_elements(run, &history)?;
        }
        let index = self.admitted.len();
        let lane = self.lanes.append(change.actor(), previous, change.start_operation(), index);
        let mut history = history;
        history.set(lane, found);
        for dependency in &dependencies {
            self.admitted[*dependency].dependants.push(index);
        }
        self.by_sequence.entry((change.actor(), found)).or_default().push(index);
        self.waiting.remove(&change.hash());
        self.places.insert(change.hash(), ChangePlace::Admitted(index));
        if let Some(count) = self.not_admitted.get_mut(&change.actor()) {
            *count -= 1;
        }
        self.admitted.push(AdmittedChange {
            change: change.clone(),
            is_entitled: held.is_entitled,
            dependencies,
            dependants: Vec::new(),
            lane,
            history,
        });
        Ok(index)
    }

    /// The joined history of some admitted changes, and the greatest operation counter in it.
    pub(crate) fn merged_history(&self, changes: &[usize]) -> (CausalClock, u32) {
        let mut history = CausalClock::default();
        let mut last = TEXT_COUNTER;
        for index in changes {
            let change = &self.admitted[*index];
            history.join(&change.history);
            last = last.max(change.change.last_operation());
        }
        (history, last)
    }

    /// Checks that changes in the history inserted all elements of the run.
    fn check_elements(&self, run: &TargetRun, history: &CausalClock) -> Result<(), HistoryError> {
        let unknown = HistoryError::UnknownElement(run.actor);
        let end = self.lanes.end(run.actor, history).ok_or(unknown.clone())?;
        let mut counters = run.counters.clone();
        while !counters.is_empty() {
            let index = self.lanes.change_at(end, counters.start).ok_or(unknown.clone())?;
            let change = &self.admitted[index].change;
            let until = counters.end.min(change.last_operation() + 1);
            if !change.inserts_all(counters.start..until) {
                return Err(unknown);
            }
            counters.start = until;
        }
        Ok(())
    }

    pub(crate) fn admitted(&self) -> &[AdmittedChange] {
        &self.admitted
    }

    pub(crate) fn set_entitlement(&mut self, mut is_entitled: impl FnMut(&CheckedChange) -> bool) {
        for admitted in &mut self.admitted {
            admitted.is_entitled = is_entitled(&admitted.change);
        }
        for waiting in self.waiting.values_mut() {
            waiting.is_entitled = is_entitled(&waiting.change);
        }
    }

    /// The index of an admitted change.
    pub(crate) fn index(&self, hash: ChangeHash) -> Option<usize> {
        match self.places.get(&hash) {
            Some(ChangePlace::Admitted(index)) => Some(*index),
            _ => None,
        }
    }

    /// Admitted changes with this actor and sequence number.
    pub(crate) fn with_sequence(&self, actor: Actor, sequence: u32) -> &[usize] {
        self.by_sequence.get(&(actor, sequence)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &CheckedChange> {
        self.waiting.values().map(|held| &held.change)
    }

    /// The changes on which an entitled change of another author depends, directly or through others,
    /// whether or not they are held.
    pub(crate) fn needed_by_others(&self, author: AuthorId) -> BTreeSet<ChangeHash> {
        let admitted = self.admitted.iter().map(|of| (&of.change, of.is_entitled));
        let waiting = self.waiting.values().map(|of| (&of.change, of.is_entitled));
        let others = admitted
            .chain(waiting)
            .filter(|(change, is_entitled)| *is_entitled && change.identity().author != author);
        let mut open: Vec<ChangeHash> =
            others.flat_map(|(change, _)| change.dependencies()).copied().collect();
        let mut needed = BTreeSet::new();
        while let Some(hash) = open.pop() {
            if needed.insert(hash) {
                open.extend(
                    self.held_change(hash).into_iter().flat_map(CheckedChange::dependencies),
                );
            }
        }
        needed
    }

    /// A change that is admitted or waits.
    fn held_change(&self, hash: ChangeHash) -> Option<&CheckedChange> {
        match self.places.get(&hash)? {
            ChangePlace::Admitted(index) => Some(&self.admitted[*index].change),
            ChangePlace::Waiting => self.waiting.get(&hash).map(|of| &of.change),
            ChangePlace::Refused => None,
        }
    }

    pub(crate) fn refused(&self) -> &BTreeMap<ChangeHash, HistoryError> {
        &self.refused
    }

    /// Whether the change is held in any place.
    pub(crate) fn holds(&self, hash: ChangeHash) -> bool {
        hash == ROOT_HASH || self.places.contains_key(&hash)
    }

    /// Whether the history contains every held change of the actor, so that the actor may continue
    /// there.
    pub(crate) fn may_continue(&self, actor: Actor, history: &CausalClock) -> bool {
        let is_admitted = self.not_admitted.get(&actor).is_none_or(|count| *count == 0);
        is_admitted && self.lanes.contains_all(actor, history)
    }

    /// Whether `ancestor` is `change` itself or in its history.
    pub(crate) fn is_ancestor(&self, ancestor: usize, change: usize) -> bool {
        self.is_in(ancestor, &self.admitted[change].history)
    }

    /// Whether the change is in a history.
    pub(crate) fn is_in(&self, change: usize, history: &CausalClock) -> bool {
        let change = &self.admitted[change];
        history.get(change.lane) >= change.change.sequence()
    }

    /// The change of the actor in this history that contains the operation with this counter.
    pub(crate) fn change_of_operation(
        &self,
        actor: Actor,
        counter: u32,
        history: &CausalClock,
    ) -> Option<usize> {
        self.lanes.change_at(self.lanes.end(actor, history)?, counter)
    }

    /// The last change of the actor in this history.
    pub(crate) fn last_change(&self, actor: Actor, history: &CausalClock) -> Option<usize> {
        self.change_of_operation(actor, u32::MAX, history)
    }

    /// The joined history of some admitted changes.
    pub(crate) fn history_of(&self, heads: &[usize]) -> CausalClock {
        self.merged_history(heads).0
    }
}
