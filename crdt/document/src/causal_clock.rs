//! The history of a change, as a vector clock over lanes.
//!
//! A **lane** is a chain of changes of one actor, each made on the one before. The history of a change
//! contains a beginning of each lane, so one number per lane describes the whole history. An actor has
//! one lane unless two changes of it have the same sequence number.
//!
//! A document with 5,000 changes and 500 lanes would need 10 MB for full vectors. Most changes advance
//! one lane only, so the vector is cut into blocks that changes share.

use std::sync::Arc;

/// Lanes per block. A change that advances one lane copies one block, and one pointer per block.
const BLOCK_LANES: usize = 32;

type ClockBlock = [u32; BLOCK_LANES];

/// For each lane the sequence number of its last change in a history; 0 for a lane outside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CausalClock {
    blocks: Vec<Option<Arc<ClockBlock>>>,
}

impl CausalClock {
    /// The last sequence number of the lane in this history, or 0.
    pub(crate) fn get(&self, lane: usize) -> u32 {
        let block = self.blocks.get(lane / BLOCK_LANES).and_then(Option::as_ref);
        block.map_or(0, |block| block[lane % BLOCK_LANES])
    }

    /// Advances a lane.
    pub(crate) fn set(&mut self, lane: usize, sequence: u32) {
        let index = lane / BLOCK_LANES;
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, None);
        }
        let block = self.blocks[index].get_or_insert_with(|| Arc::new([0; BLOCK_LANES]));
        Arc::make_mut(block)[lane % BLOCK_LANES] = sequence;
    }

    /// Joins another history to this one.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.blocks.len() < other.blocks.len() {
            self.blocks.resize(other.blocks.len(), None);
        }
        for (own, other) in self.blocks.iter_mut().zip(&other.blocks) {
            match (own.as_mut(), other) {
                (_, None) => {}
                (None, Some(_)) => own.clone_from(other),
                (Some(mine), Some(other)) => join_block(mine, other),
            }
        }
    }
}

fn join_block(own: &mut Arc<ClockBlock>, other: &Arc<ClockBlock>) {
    if Arc::ptr_eq(own, other) || own.iter().zip(other.iter()).all(|(own, other)| own >= other) {
        return;
    }
    if own.iter().zip(other.iter()).all(|(own, other)| own <= other) {
        own.clone_from(other);
        return;
    }
    for (own, other) in Arc::make_mut(own).iter_mut().zip(other.iter()) {
        *own = (*own).max(*other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_takes_the_greater_number_of_each_lane() {
        let mut left = CausalClock::default();
        let mut right = CausalClock::default();
        left.set(0, 3);
        left.set(40, 1);
        right.set(0, 2);
        right.set(1, 7);
        right.set(100, 5);
        left.join(&right);
        let of = |lane| left.get(lane);
        assert_eq!([of(0), of(1), of(40), of(100), of(2), of(999)], [3, 7, 1, 5, 0, 0]);
        assert_eq!(right.get(0), 2);
        assert_eq!(right.get(40), 0);
    }

    #[test]
    fn histories_share_the_blocks_that_do_not_differ() {
        let mut base = CausalClock::default();
        (0..64).for_each(|lane| base.set(lane, 1));
        let mut next = base.clone();
        next.set(0, 2);
        let shared = |index: usize| {
            let pair = (base.blocks[index].as_ref(), next.blocks[index].as_ref());
            pair.0.zip(pair.1).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
        };
        assert!(!shared(0) && shared(1));
    }
}
