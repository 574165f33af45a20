//! Faults of a cluster: partitions, crashes, power cuts, replaced disks, wrong clocks.

use super::{Cluster, replica};
use crate::disk::{self, Disk, PowerCut};
use crate::test_engine::{DiskMedium, Node};
use klnode_crdt::ids::StoreId;
use klnode_crdt::time::WallTime;
use klnode_engine::Command;
use klnode_federation::sim::{ClockFault, FaultCounts, Knobs};
use klnode_replication::{EngineWriter as _, ReplicaEvent};

impl Cluster {
    /// Disconnects a node from all others.
    pub fn part(&mut self, at: usize) {
        self.part_side(&[at]);
    }

    /// Disconnects these nodes from all others, until the network heals.
    pub fn part_side(&mut self, side: &[usize]) {
        self.network.part(side);
        for (one, two) in self.links.clone() {
            if side.contains(&one) != side.contains(&two) {
                let (a, b) = (self.author(one), self.author(two));
                self.happen(one, ReplicaEvent::Disconnected(b));
                self.happen(two, ReplicaEvent::Disconnected(a));
            }
        }
    }

    /// Restores all links and reconnects the peers.
    pub fn heal(&mut self) {
        self.network.heal();
        for (one, two) in self.links.clone() {
            self.connect(one, two);
        }
    }

    /// Sets the loss, duplication and delay of messages from now on.
    pub fn set_knobs(&mut self, knobs: Knobs) {
        self.network.set_knobs(knobs);
    }

    /// Applies a fault to a node's clock.
    pub fn disturb_clock(&mut self, fault: &ClockFault) {
        self.network.cause(fault);
    }

    /// Moves the clocks of all nodes to this many milliseconds ahead of the network's time, as if
    /// the nodes had been suspended meanwhile.
    pub fn set_clocks_ahead(&mut self, ms: u64) {
        let offset = i64::try_from(ms).expect("a few years");
        for at in 0..self.count() {
            self.network.set_clock_offset(at, offset);
        }
    }

    /// Events of the network, by kind.
    pub fn counts(&self) -> FaultCounts {
        self.network.counts()
    }

    /// Ends all faults: every node runs and is connected.
    pub fn calm(&mut self) {
        for at in 0..self.count() {
            self.mend(at);
            if self.members[at].replica.is_none() && self.members[at].puppet.is_none() {
                self.restart(at);
            }
        }
        self.network.set_knobs(Knobs::calm());
        for at in 0..self.count() {
            self.network.thaw(at);
            self.network.set_clock_offset(at, 0);
        }
        self.heal();
    }

    /// Kills a node.
    pub fn crash(&mut self, at: usize) {
        self.members[at].replica = None;
        self.members[at].exchanges.clear();
        self.network.crash(at);
        for other in 0..self.count() {
            if self.links.contains(&(at.min(other), at.max(other))) {
                let author = self.author(at);
                self.happen(other, ReplicaEvent::Disconnected(author));
            }
        }
    }

    /// Cuts the power after `calls` more disk calls of a node.
    pub fn dim(&mut self, at: usize, calls: u64) {
        self.members[at].medium.disk().crash_at_call(calls);
    }

    /// Cuts a node's power: its disk keeps all synced writes and a random part of the others.
    pub fn lose_power(&mut self, at: usize, cut: PowerCut, seed: u64) {
        let image = self.members[at].medium.disk().crash_image(cut, seed);
        self.crash(at);
        self.members[at].medium = DiskMedium::new(image);
    }

    /// Restarts a killed node on its disk.
    pub fn restart(&mut self, at: usize) {
        let disk = self.members[at].medium.disk().fork();
        self.restart_on(at, disk);
    }

    /// Makes every `period`th writing call of a node's disk fail.
    pub fn fail(&mut self, at: usize, period: u64, fault: disk::Fault) {
        self.members[at].medium.disk().fail_every(period, fault);
    }

    /// Makes a node's disk fail once, after `calls` writing calls.
    pub fn fail_once(&mut self, at: usize, calls: u64, fault: disk::Fault) {
        self.members[at].medium.disk().fail_at_call(calls, fault);
    }

    /// Ends the disk faults of a node. A store that was closed meanwhile opens with the next write.
    pub fn mend(&mut self, at: usize) {
        self.members[at].medium.disk().heal();
        if self.is_up(at) && !self.is_readable(at) {
            let _ = self.run(at, Command::Peers(Vec::new()));
        }
    }

    /// Whether a node runs and can read its store: a failing disk may have closed it.
    pub fn is_readable(&mut self, at: usize) -> bool {
        self.is_up(at) && self.replica(at).writer().store().snapshot().is_ok()
    }

    /// A copy of a node's disk as it is now.
    pub fn disk(&self, at: usize) -> Disk {
        self.members[at].medium.disk().fork()
    }

    /// Starts a killed node on a disk.
    pub fn restart_on(&mut self, at: usize, disk: Disk) {
        self.members[at].boots += 1;
        self.resume_on(at, disk);
    }

    /// Starts a killed node on a disk with its last boot number, as a resumed machine would.
    pub fn resume_on(&mut self, at: usize, disk: Disk) {
        let (key_seed, boot, now) = self.next_life(at);
        let node = Node::start_on(disk, key_seed, boot, now).expect("the disk opens");
        self.live_on(at, node);
    }

    /// Starts a killed node on a fresh disk: it keeps only its key and gets another store id.
    pub fn restart_anew(&mut self, at: usize, store: StoreId) {
        self.members[at].boots += 1;
        self.members[at].store = store;
        let (key_seed, boot, now) = self.next_life(at);
        self.live_on(at, Node::start_anew(key_seed, boot, store, now));
    }

    fn next_life(&self, at: usize) -> (u8, u64, WallTime) {
        let member = &self.members[at];
        assert!(member.replica.is_none(), "kill it first");
        let boot = (self.seed << 16) + (member.boots << 8) + at as u64;
        (member.key_seed, boot, self.now(at))
    }

    fn live_on(&mut self, at: usize, node: Node) {
        let member = &mut self.members[at];
        member.medium = node.medium.clone();
        member.replica = Some(replica(node));
        member.tick_at = u64::MAX;
        self.network.restart(at);
        self.happen(at, ReplicaEvent::Tick);
        for other in 0..self.count() {
            if self.links.contains(&(at.min(other), at.max(other))) {
                self.connect(at, other);
            }
        }
    }

    /// Whether a node runs.
    pub fn is_up(&self, at: usize) -> bool {
        self.members[at].replica.is_some()
    }
}
