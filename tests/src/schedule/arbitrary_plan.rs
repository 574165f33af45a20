//! Plans for quickcheck: arbitrary ones, and smaller ones of a failing plan.
//!
//! A plan is data, and every part of a plan is a valid plan, so quickcheck can search for a small
//! failing one by itself. The seeded schedules draw the same plans from a range of seeds.

use super::{Plan, Size};
use quickcheck::{Arbitrary, Gen};

impl Arbitrary for Plan {
    fn arbitrary(random: &mut Gen) -> Self {
        let operations = random.size() as u64;
        let size = Size { operations, faults: operations / 4 };
        Self::draw(u64::arbitrary(random), size)
    }

    /// The plan without a part of its steps: first without a half, at last without a single step.
    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let (plan, count) = (self.clone(), self.steps.len());
        let lengths = std::iter::successors(Some(count.div_ceil(2)), |length| match length {
            0 | 1 => None,
            length => Some(length.div_ceil(2)),
        });
        let parts = lengths.filter(|length| *length > 0).flat_map(move |length| {
            (0..count).step_by(length).map(move |from| (from, (from + length).min(count)))
        });
        Box::new(parts.map(move |(from, to)| {
            let mut less = plan.clone();
            less.steps.drain(from..to);
            less
        }))
    }
}
