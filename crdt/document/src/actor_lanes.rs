//! Lanes: the chains of changes that one actor made, and the search for an element in them.
//!
//! An honest actor has one lane: each of its changes follows the one before. If two changes of an
//! actor have the same sequence number, each continues in a lane of its own, which branches off from
//! the common beginning. The numbers of the lanes depend on the order of arrival, and no result of the
//! crate depends on the numbers.

use crate::causal_clock::CausalClock;
use crate::edit_identity::Actor;
use std::collections::BTreeMap;

/// Lanes of all actors of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    by_actor: BTreeMap<Actor, Vec<usize>>,
    /// Actors with more than one lane.
    branching: Vec<Actor>,
}

#[derive(Clone, Debug)]
struct Lane {
    /// The lane from which this one branches off, before `first_sequence`.
    parent: Option<usize>,
    first_sequence: u32,
    /// Start operation and index of each change, ascending.
    changes: Vec<(u32, usize)>,
}

/// The last change of an actor in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneEnd {
    lane: usize,
    /// Sequence number of the change.
    pub(crate) sequence: u32,
}

impl Lanes {
    /// The last change of the actor in the history, if it has any there.
    pub(crate) fn end(&self, actor: Actor, history: &CausalClock) -> Option<LaneEnd> {
        let lanes = self.by_actor.get(&actor)?.iter();
        let ends = lanes.map(|lane| LaneEnd { lane: *lane, sequence: history.get(*lane) });
        // A lane that branches off has greater sequence numbers than its parent has in the history.
        ends.filter(|end| end.sequence > 0).max_by_key(|end| end.sequence)
    }

    /// Whether the history contains all changes of the actor.
    pub(crate) fn contains_all(&self, actor: Actor, history: &CausalClock) -> bool {
        let lanes = self.by_actor.get(&actor).map_or(&[][..], Vec::as_slice);
        match lanes {
            [] => true,
            [lane] => history.get(*lane) == self.last_sequence(*lane),
            _ => false,
        }
    }

    /// Whether the history contains two changes of one actor with the same sequence number.
    pub(crate) fn has_duplicates(&self, history: &CausalClock) -> bool {
        self.branching.iter().any(|actor| self.has_duplicates_of(*actor, history))
    }

    fn has_duplicates_of(&self, actor: Actor, history: &CausalClock) -> bool {
        let Some(end) = self.end(actor, history) else { return false };
        // The chain that leads to the end: each lane up to the point where the next branches off.
        let mut chain = vec![end];
        while let Some(last) = chain.last()
            && let Some(parent) = self.lanes[last.lane].parent
        {
            let sequence = self.lanes[last.lane].first_sequence - 1;
            chain.push(LaneEnd { lane: parent, sequence });
        }
        let mut lanes = self.by_actor.get(&actor).into_iter().flatten();
        lanes.any(|lane| {
            let expected = chain.iter().find(|end| end.lane == *lane);
            history.get(*lane) > expected.map_or(0, |end| end.sequence)
        })
    }

    /// Adds a change after `previous`, which is the actor's end in the history of the change, and
    /// returns the lane of the change.
    pub(crate) fn append(
        &mut self,
        actor: Actor,
        previous: Option<LaneEnd>,
        start_operation: u32,
        index: usize,
    ) -> usize {
        if let Some(end) = previous
            && self.last_sequence(end.lane) == end.sequence
        {
            self.lanes[end.lane].changes.push((start_operation, index));
            return end.lane;
        }
        let lane = self.lanes.len();
        self.lanes.push(Lane {
            parent: previous.map(|end| end.lane),
            first_sequence: previous.map_or(0, |end| end.sequence) + 1,
            changes: vec![(start_operation, index)],
        });
        let lanes = self.by_actor.entry(actor).or_default();
        lanes.push(lane);
        if lanes.len() == 2 {
            self.branching.push(actor);
        }
        lane
    }

    /// The change that would contain the operation with this counter: the last one of the chain that
    /// ends at `end` and starts at or before the counter.
    pub(crate) fn change_at(&self, end: LaneEnd, counter: u32) -> Option<usize> {
        let (mut lane, mut sequence) = (end.lane, end.sequence);
        loop {
            let chain = &self.lanes[lane];
            let known = &chain.changes[..(sequence + 1 - chain.first_sequence) as usize];
            let after = known.partition_point(|(start, _)| *start <= counter);
            if after > 0 {
                return Some(known[after - 1].1);
            }
            sequence = chain.first_sequence - 1;
            lane = chain.parent?;
        }
    }

    fn last_sequence(&self, lane: usize) -> u32 {
        let lane = &self.lanes[lane];
        lane.first_sequence + lane.changes.len() as u32 - 1
    }
}
