//! What can go wrong, how likely it is, and how often it did.

use super::random::Random;
use std::ops::RangeInclusive;

/// A month: how far clocks jump at most.
const JUMP_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

/// How a simulated network treats messages and nodes. Likelihoods are in thousandths.
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
    /// How likely [`super::Network::shake`] does something at all.
    pub shaking: u32,
    /// How far a clock jumps at most, in either direction.
    pub jump_ms_max: u64,
}

impl Knobs {
    /// A network that does nothing wrong.
    pub fn calm() -> Self {
        Self {
            latency_ms: 1..=1,
            loss: 0,
            duplication: 0,
            reordering: 0,
            reordering_ms_max: 0,
            shaking: 0,
            jump_ms_max: 0,
        }
    }

    /// Faults as bad as chance will have it: up to 30 % lost, 50 % repeated, 50 % reordered.
    pub fn drawn(random: &mut Random) -> Self {
        let fastest = random.within(0..=50);
        Self {
            latency_ms: fastest..=fastest + random.within(0..=500),
            loss: random.below(301) as u32,
            duplication: random.below(501) as u32,
            reordering: random.below(501) as u32,
            reordering_ms_max: random.within(1..=5_000),
            shaking: random.below(501) as u32,
            jump_ms_max: random.within(1..=JUMP_MS_MAX),
        }
    }
}

/// Something that happened to nodes, links or clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// These nodes and all others no longer reach each other.
    Parted {
        /// One side.
        nodes: Vec<usize>,
    },
    /// All links work again.
    Healed,
    /// A node stopped. What it had not made durable is gone, and so are its timers.
    Crashed {
        /// Which.
        node: usize,
    },
    /// A node came back.
    Restarted {
        /// Which.
        node: usize,
    },
    /// A clock was moved.
    Jumped {
        /// Whose.
        node: usize,
        /// How far.
        by_ms: i64,
    },
    /// A clock stopped.
    Froze {
        /// Whose.
        node: usize,
    },
    /// A clock goes on, from where it stood.
    Thawed {
        /// Whose.
        node: usize,
    },
}

/// How often each thing happened. A test looks here whether what it meant to try was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages handed in.
    pub sent: u64,
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
    /// Timers and script messages handed out.
    pub timers: u64,
    /// Partitions and single cuts.
    pub parted: u64,
    /// Times at which links were mended.
    pub healed: u64,
    /// Crashes.
    pub crashed: u64,
    /// Restarts.
    pub restarted: u64,
    /// Jumps of clocks.
    pub jumped: u64,
    /// Clocks that stopped.
    pub frozen: u64,
}
