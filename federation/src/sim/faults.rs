//! The faults of a simulated network: their probabilities and their counters.

use std::ops::RangeInclusive;

/// Behaviour of a simulated network. Probabilities are in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Range of a message's travel time.
    pub latency_ms: RangeInclusive<u64>,
    /// Probability that a message is lost.
    pub loss: u32,
    /// Probability that a message arrives twice; the copy is as late as a reordered message.
    pub duplication: u32,
    /// Probability that later messages may overtake a message. Others keep their order on a link.
    pub reordering: u32,
    /// Maximum extra delay of a reordered or duplicated message.
    pub reordering_ms_max: u64,
}

impl Knobs {
    /// A network without faults.
    pub fn calm() -> Self {
        let (loss, duplication, reordering, reordering_ms_max) = (0, 0, 0, 0);
        Self { latency_ms: 1..=1, loss, duplication, reordering, reordering_ms_max }
    }
}

/// A fault of a node's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockFault {
    /// The clock was moved.
    Jumped {
        /// Number of the node.
        node: usize,
        /// Distance in milliseconds; negative moves it back.
        by_ms: i64,
    },
    /// The clock stopped.
    Froze {
        /// Number of the node.
        node: usize,
    },
    /// The clock runs again from the time it showed.
    Thawed {
        /// Number of the node.
        node: usize,
    },
}

/// How often each event occurred. A test checks here whether the fault it is about occurred at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Messages delivered, duplicates included.
    pub delivered: u64,
    /// Messages lost at random.
    pub lost: u64,
    /// Messages lost because their link was cut when they were sent or in flight.
    pub cut: u64,
    /// Messages and timers lost because a node was down or crashed before they arrived.
    pub down: u64,
    /// Messages that were sent once and delivered twice.
    pub duplicated: u64,
    /// Messages that later ones may overtake.
    pub reordered: u64,
    /// Number of partitions.
    pub parted: u64,
    /// Number of crashes.
    pub crashed: u64,
    /// Number of clock jumps.
    pub jumped: u64,
    /// Number of stopped clocks.
    pub frozen: u64,
}
