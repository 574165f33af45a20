//! What is under way between simulated nodes, and what becomes of it.

use super::clock::Clock;
use super::fault::{Counts, Fault, Knobs};
use super::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes, the links between them, and everything that has not arrived yet.
///
/// Nodes are numbered from 0; a number beyond the last is a mistake of the caller and panics.
#[derive(Clone, Debug)]
pub struct Network<M> {
    random: Random,
    knobs: Knobs,
    now_ms: u64,
    nodes: Vec<Node>,
    /// Links that do not work, each both ways.
    cuts: BTreeSet<(usize, usize)>,
    /// When the last message in order arrives on each link.
    last_arrivals_ms: BTreeMap<(usize, usize), u64>,
    /// What arrives when; the second number keeps those of the same moment in order.
    queue: BTreeMap<(u64, u64), Delivery<M>>,
    next_number: u64,
    counts: Counts,
    trace: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    is_up: bool,
    clock: Clock,
}

/// What arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery<M> {
    /// A message from one node to another.
    Message {
        /// Who sent it.
        from: usize,
        /// Whom it reaches.
        to: usize,
        /// The message.
        message: M,
    },
    /// A node's own timer.
    Timer {
        /// Whose.
        node: usize,
        /// What it set it for.
        message: M,
    },
    /// Something the test had planned for this time.
    Script {
        /// What.
        message: M,
    },
}

impl<M: Clone> Network<M> {
    /// So many nodes, all up, all linked, at time 0.
    pub fn new(seed: u64, nodes: usize, knobs: Knobs) -> Self {
        let node = Node { is_up: true, clock: Clock::default() };
        Self {
            random: Random::new(seed),
            knobs,
            now_ms: 0,
            nodes: vec![node; nodes],
            cuts: BTreeSet::new(),
            last_arrivals_ms: BTreeMap::new(),
            queue: BTreeMap::new(),
            next_number: 0,
            counts: Counts::default(),
            trace: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Sends a message, which may be lost, late, or arrive twice.
    pub fn send(&mut self, from: usize, to: usize, message: M) {
        self.mix(&[4, from as u64, to as u64]);
        // All dice are thrown for every message: what becomes of one does not shift the others.
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
            self.post(late, Delivery::Message { from, to, message: message.clone() });
        }
        if is_reordered {
            self.counts.reordered += 1;
            self.post(late, Delivery::Message { from, to, message });
        } else {
            let last = self.last_arrivals_ms.entry((from, to)).or_default();
            *last = self.now_ms.saturating_add(usual).max(*last);
            let arrival = *last;
            self.post(arrival, Delivery::Message { from, to, message });
        }
    }

    /// Sets a node's timer. A time that has passed is now; a crash clears it.
    pub fn timer(&mut self, node: usize, time_ms: u64, message: M) {
        if self.nodes[node].is_up {
            self.post(time_ms, Delivery::Timer { node, message });
        } else {
            self.counts.down += 1;
        }
    }

    /// Plans something of the test's own, which no fault touches.
    pub fn at(&mut self, time_ms: u64, message: M) {
        self.post(time_ms, Delivery::Script { message });
    }

    fn post(&mut self, time_ms: u64, delivery: Delivery<M>) {
        self.queue.insert((time_ms.max(self.now_ms), self.next_number), delivery);
        self.next_number += 1;
    }

    /// Takes away what is under way and will not arrive; how much that was.
    fn lose(&mut self, is_lost: impl Fn(&Delivery<M>) -> bool) -> u64 {
        let before = self.queue.len();
        self.queue.retain(|_, delivery| !is_lost(delivery));
        (before - self.queue.len()) as u64
    }

    /// Lets time pass until something arrives; none if nothing is under way.
    pub fn advance(&mut self) -> Option<(u64, Delivery<M>)> {
        let ((time_ms, number), delivery) = self.queue.pop_first()?;
        self.now_ms = time_ms;
        let (kind, from, to) = match &delivery {
            Delivery::Message { from, to, .. } => (1, *from, *to),
            Delivery::Timer { node, .. } => (2, *node, *node),
            Delivery::Script { .. } => (3, 0, 0),
        };
        self.counts.delivered += u64::from(matches!(delivery, Delivery::Message { .. }));
        self.mix(&[kind, time_ms, number, from as u64, to as u64]);
        Some((time_ms, delivery))
    }

    /// Lets something happen to a clock.
    pub fn cause(&mut self, fault: &Fault) {
        match fault {
            Fault::Jumped { node, by_ms } => self.jump(*node, *by_ms),
            Fault::Froze { node } => self.freeze(*node),
            Fault::Thawed { node } => self.thaw(*node),
        }
    }

    /// Cuts every link between these nodes and all others, both ways. What is under way is lost.
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
            Delivery::Message { from, to, .. } => cuts.contains(&(*from, *to)),
            Delivery::Timer { .. } | Delivery::Script { .. } => false,
        });
    }

    /// Mends all links.
    pub fn heal(&mut self) {
        self.mix(&[7]);
        self.cuts.clear();
    }

    /// Stops a node: what is under way to and from it is lost, and its timers are gone.
    pub fn crash(&mut self, crashed: usize) {
        if self.nodes[crashed].is_up {
            self.counts.crashed += 1;
            self.mix(&[8, crashed as u64]);
            self.nodes[crashed].is_up = false;
            self.counts.down += self.lose(|delivery| match delivery {
                Delivery::Message { from, to, .. } => *from == crashed || *to == crashed,
                Delivery::Timer { node, .. } => *node == crashed,
                Delivery::Script { .. } => false,
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

    /// Lets a node's clock go on from where it stands.
    pub fn thaw(&mut self, node: usize) {
        self.mix(&[12, node as u64]);
        self.nodes[node].clock.thaw(self.now_ms);
    }

    /// Sets a node's clock off from the simulation's time by so much.
    pub fn set_clock_offset(&mut self, node: usize, offset_ms: i64) {
        self.mix(&[13, node as u64, offset_ms.cast_unsigned()]);
        self.nodes[node].clock.set_offset(offset_ms);
    }

    /// Changes how messages are treated from now on.
    pub fn set_knobs(&mut self, knobs: Knobs) {
        self.knobs = knobs;
    }

    /// The time of the simulation, in milliseconds from its start.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// What a node's clock shows, in milliseconds since 1970.
    pub fn wall_ms(&self, node: usize) -> u64 {
        self.nodes[node].clock.read(self.now_ms)
    }

    /// Whether a node runs.
    pub(super) fn is_up(&self, node: usize) -> bool {
        self.nodes[node].is_up
    }

    /// Whether two nodes run and reach each other: a connection between them would hold.
    pub fn is_linked(&self, a: usize, b: usize) -> bool {
        self.is_up(a) && self.is_up(b) && !self.cuts.contains(&(a, b))
    }

    /// How often each thing has happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// One number for everything that was delivered, went wrong or was noted, in its order.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// Takes something into the trace that must be the same in every run of a seed.
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
