//! Messages in flight between simulated nodes, and their fate.

use super::clock::SimClock;
use super::faults::{ClockFault, FaultCounts, Knobs};
use super::rng::Random;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes, the links between them, and everything that has not arrived yet.
///
/// Nodes are numbered from 0. A number beyond the last node is a bug in the caller and panics.
#[derive(Clone, Debug)]
pub struct SimNetwork<M> {
    random: Random,
    knobs: Knobs,
    now_ms: u64,
    nodes: Vec<SimNode>,
    /// Links that are cut, in both directions.
    cuts: BTreeSet<(usize, usize)>,
    /// Arrival time of the last in-order message on each link.
    last_arrivals_ms: BTreeMap<(usize, usize), u64>,
    /// Deliveries by arrival time; the second number orders those of the same millisecond.
    queue: BTreeMap<(u64, u64), Arrival<M>>,
    next_number: u64,
    counts: FaultCounts,
    trace: u64,
}

#[derive(Clone, Copy, Debug)]
struct SimNode {
    is_up: bool,
    clock: SimClock,
}

/// Something that arrives at a node or at the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival<M> {
    /// A message from one node to another.
    Message {
        /// Number of the sending node.
        from: usize,
        /// Number of the receiving node.
        to: usize,
        /// The message as it was sent.
        message: M,
    },
    /// A timer that a node set for itself.
    Timer {
        /// Number of the node.
        node: usize,
        /// The value passed to [`SimNetwork::timer`].
        message: M,
    },
    /// An event that the test scheduled for this time.
    Script {
        /// The value passed to [`SimNetwork::at`].
        message: M,
    },
}

impl<M: Clone> SimNetwork<M> {
    /// Creates this many nodes, all running and linked, at time 0.
    pub fn new(seed: u64, nodes: usize, knobs: Knobs) -> Self {
        let node = SimNode { is_up: true, clock: SimClock::default() };
        Self {
            random: Random::new(seed),
            knobs,
            now_ms: 0,
            nodes: vec![node; nodes],
            cuts: BTreeSet::new(),
            last_arrivals_ms: BTreeMap::new(),
            queue: BTreeMap::new(),
            next_number: 0,
            counts: FaultCounts::default(),
            trace: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Sends a message, which may be lost, delayed or duplicated.
    pub fn send(&mut self, from: usize, to: usize, message: M) {
        self.mix(&[4, from as u64, to as u64]);
        // Draw all random numbers for every message, so that the fate of one does not shift the
        // others.
        let is_lost = self.random.happens(self.knobs.loss);
        let is_repeated = self.random.happens(self.knobs.duplication);
        let is_reordered = self.random.happens(self.knobs.reordering);
        let usual = self.random.within(self.knobs.latency_ms.clone());
        let extra = self.random.within(0..=self.knobs.reordering_ms_max);
        if !(self.nodes[from].is_up && self.nodes[to].is_up) {
            self.counts.down += 1;
            return;
        }
        if self.cuts.contains(&(from, to)) {
            self.counts.cut += 1;
            return;
        }
        if is_lost {
            self.counts.lost += 1;
            return;
        }
        let late = self.now_ms.saturating_add(usual).saturating_add(extra);
        if is_repeated {
            self.counts.duplicated += 1;
            self.post(late, Arrival::Message { from, to, message: message.clone() });
        }
        if is_reordered {
            self.counts.reordered += 1;
            self.post(late, Arrival::Message { from, to, message });
        } else {
            let last = self.last_arrivals_ms.entry((from, to)).or_default();
            *last = self.now_ms.saturating_add(usual).max(*last);
            let arrival = *last;
            self.post(arrival, Arrival::Message { from, to, message });
        }
    }

    /// Sets a node's timer. A time in the past means now; a crash clears the timer.
    pub fn timer(&mut self, node: usize, time_ms: u64, message: M) {
        if self.nodes[node].is_up {
            self.post(time_ms, Arrival::Timer { node, message });
        } else {
            self.counts.down += 1;
        }
    }

    /// Schedules an event of the test, which no fault affects.
    pub fn at(&mut self, time_ms: u64, message: M) {
        self.post(time_ms, Arrival::Script { message });
    }

    fn post(&mut self, time_ms: u64, delivery: Arrival<M>) {
        self.queue.insert((time_ms.max(self.now_ms), self.next_number), delivery);
        self.next_number += 1;
    }

    /// Drops deliveries that will not arrive, and returns their number.
    fn lose(&mut self, is_lost: impl Fn(&Arrival<M>) -> bool) -> u64 {
        let before = self.queue.len();
        self.queue.retain(|_, delivery| !is_lost(delivery));
        (before - self.queue.len()) as u64
    }

    /// Advances time to the next delivery; `None` if nothing is in flight.
    pub fn advance(&mut self) -> Option<(u64, Arrival<M>)> {
        let ((time_ms, number), delivery) = self.queue.pop_first()?;
        self.now_ms = time_ms;
        let (kind, from, to) = match &delivery {
            Arrival::Message { from, to, .. } => (1, *from, *to),
            Arrival::Timer { node, .. } => (2, *node, *node),
            Arrival::Script { .. } => (3, 0, 0),
        };
        self.counts.delivered += u64::from(matches!(delivery, Arrival::Message { .. }));
        self.mix(&[kind, time_ms, number, from as u64, to as u64]);
        Some((time_ms, delivery))
    }

    /// Applies a fault to a clock.
    pub fn cause(&mut self, fault: &ClockFault) {
        match fault {
            ClockFault::Jumped { node, by_ms } => self.jump(*node, *by_ms),
            ClockFault::Froze { node } => self.freeze(*node),
            ClockFault::Thawed { node } => self.thaw(*node),
        }
    }

    /// Cuts every link between these nodes and all others, in both directions. Messages in flight
    /// are lost.
    pub fn part(&mut self, side: &[usize]) {
        self.counts.parted += 1;
        let others = (0..self.nodes.len()).filter(|node| !side.contains(node));
        let pairs = others.flat_map(|other| side.iter().map(move |node| (*node, other)));
        let links: Vec<(usize, usize)> = pairs.flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        for (from, to) in &links {
            self.mix(&[5, *from as u64, *to as u64]);
        }
        self.cuts.extend(links);
        let cuts = self.cuts.clone();
        self.counts.cut += self.lose(|delivery| match delivery {
            Arrival::Message { from, to, .. } => cuts.contains(&(*from, *to)),
            Arrival::Timer { .. } | Arrival::Script { .. } => false,
        });
    }

    /// Restores all links.
    pub fn heal(&mut self) {
        self.mix(&[7]);
        self.cuts.clear();
    }

    /// Stops a node. Messages in flight to and from it are lost, and its timers are cleared.
    pub fn crash(&mut self, crashed: usize) {
        if self.nodes[crashed].is_up {
            self.counts.crashed += 1;
            self.mix(&[8, crashed as u64]);
            self.nodes[crashed].is_up = false;
            self.counts.down += self.lose(|delivery| match delivery {
                Arrival::Message { from, to, .. } => *from == crashed || *to == crashed,
                Arrival::Timer { node, .. } => *node == crashed,
                Arrival::Script { .. } => false,
            });
        }
    }

    /// Starts a stopped node again.
    pub fn restart(&mut self, node: usize) {
        if !self.nodes[node].is_up {
            self.mix(&[9, node as u64]);
            self.nodes[node].is_up = true;
        }
    }

    fn jump(&mut self, node: usize, by_ms: i64) {
        self.counts.jumped += 1;
        self.mix(&[10, node as u64, by_ms.cast_unsigned()]);
        self.nodes[node].clock.jump(by_ms);
    }

    fn freeze(&mut self, node: usize) {
        self.counts.frozen += 1;
        self.mix(&[11, node as u64]);
        self.nodes[node].clock.freeze(self.now_ms);
    }

    /// Restarts a node's clock from the time it shows.
    pub fn thaw(&mut self, node: usize) {
        self.mix(&[12, node as u64]);
        self.nodes[node].clock.thaw(self.now_ms);
    }

    /// Sets the offset of a node's clock from the simulation's time.
    pub fn set_clock_offset(&mut self, node: usize, offset_ms: i64) {
        self.mix(&[13, node as u64, offset_ms.cast_unsigned()]);
        self.nodes[node].clock.set_offset(offset_ms);
    }

    /// Changes the network's behaviour for messages sent from now on.
    pub fn set_knobs(&mut self, knobs: Knobs) {
        self.knobs = knobs;
    }

    /// Time of the simulation, in milliseconds from its start.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Time on a node's clock, in milliseconds since 1970.
    pub fn wall_ms(&self, node: usize) -> u64 {
        self.nodes[node].clock.read(self.now_ms)
    }

    /// True if a node is running.
    pub(super) fn is_up(&self, node: usize) -> bool {
        self.nodes[node].is_up
    }

    /// True if two nodes are running and linked, so that a connection between them would hold.
    pub fn is_linked(&self, a: usize, b: usize) -> bool {
        self.is_up(a) && self.is_up(b) && !self.cuts.contains(&(a, b))
    }

    /// How often each event has occurred.
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// A hash of all deliveries, faults and notes, in order.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// Adds data to the trace that must be the same in every run of a seed.
    pub fn note(&mut self, bytes: &[u8]) {
        self.mix(&[bytes.len() as u64]);
        for byte in bytes {
            self.trace = (self.trace ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn mix(&mut self, numbers: &[u64]) {
        for byte in numbers.iter().flat_map(|number| number.to_be_bytes()) {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
