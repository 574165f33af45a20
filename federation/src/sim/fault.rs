//! What can go wrong, how likely it is, and how often it did.

use std::ops::RangeInclusive;

/// How a simulated network treats messages. Likelihoods are in thousandths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// How long a message travels.
    pub latency_ms: RangeInclusive<u64>,
    /// How likely a message is lost.
    pub loss: u32,
    /// How likely a message arrives twice: the second time as late as a reordered one.
    pub duplication: u32,
    /// How likely a message may be overtaken by later ones. Others keep their order on a link.
    pub reordering: u32,
    /// How much later than usual a reordered or repeated message may be.
    pub reordering_ms_max: u64,
}

impl Knobs {
    /// A network that does nothing wrong.
    pub fn calm() -> Self {
        let (loss, duplication, reordering, reordering_ms_max) = (0, 0, 0, 0);
        Self { latency_ms: 1..=1, loss, duplication, reordering, reordering_ms_max }
    }
}

/// Something that happened to a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was moved.
    Jumped {
        /// Whose.
        node: usize,
        /// How far.
        by_ms: i64,
    },
    /// It stopped.
    Froze {
        /// Whose.
        node: usize,
    },
    /// It goes on, from where it stood.
    Thawed {
        /// Whose.
        node: usize,
    },
}

/// How often each thing happened. A test looks here whether what it meant to try was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages handed out, with repeated ones.
    pub delivered: u64,
    /// Messages lost by chance.
    pub lost: u64,
    /// Messages lost because their link was cut, when they were sent or under way.
    pub cut: u64,
    /// Messages and timers lost because a node was down, or went down before they came.
    pub down: u64,
    /// Messages that were sent once and travelled twice.
    pub duplicated: u64,
    /// Messages that were let overtake.
    pub reordered: u64,
    /// Partitions.
    pub parted: u64,
    /// Crashes.
    pub crashed: u64,
    /// Jumps of clocks.
    pub jumped: u64,
    /// Clocks that stopped.
    pub frozen: u64,
}
