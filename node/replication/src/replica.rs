//! Replication of one node, without threads, clocks or sockets.

mod arriving_edits;
mod engine_writer;
mod protocol_writes;
mod traffic;

pub use engine_writer::EngineWriter;
pub use traffic::{Traffic, TrafficCounts};

use super::delivery_classification;
use super::quarantine_retry::QuarantineRoom;
use super::release_policy::{ReleaseChange, ReleasePolicy};
use super::release_sweep::{Sweeps, entries_changed_since};
use super::store_view::StoreView;
use super::workspace_adoption::{own_workspaces, proven_owners};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, PeerCommand, Rejection};
use klnode_federation::proto::{
    self, Delivery, Offerer, Output, ProtocolInput, Replicator, SyncState,
};
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::{FeedCursor, PeerApproval};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The configuration of a replica.
pub struct Setup {
    /// The key of this node.
    pub own: AuthorId,
    /// The release policy.
    pub policy: ReleasePolicy,
    /// The settings of the protocol.
    pub settings: proto::Settings,
    /// The interval at which all releases are examined again, in milliseconds.
    pub sweep_ms: u64,
}

/// An input event.
#[derive(Debug)]
pub enum ReplicaEvent<'a> {
    /// A peer is connected.
    Connected(AuthorId),
    /// A peer is disconnected.
    Disconnected(AuthorId),
    /// A request of a peer: the exchange and the frame.
    Asked(AuthorId, u64, &'a [u8]),
    /// A response of a peer: the request id and the frame.
    Answered(AuthorId, u64, &'a [u8]),
    /// The response to a request was lost.
    Lost(AuthorId, u64),
    /// The peer does not offer the protocol: this node is not approved there.
    Unoffered(AuthorId, u64),
    /// The operator asks for a comparison with a peer now.
    Sync(AuthorId),
    /// Peers, filters or memberships have changed: all entries are examined again for these peers.
    Changed(BTreeSet<AuthorId>),
    /// A commit was made, or time has passed.
    Tick,
}

/// An action for the network.
#[derive(Debug)]
pub enum ReplicaAction {
    /// Send a request: the peer, the request id and the frame.
    Ask(AuthorId, u64, Vec<u8>),
    /// Send a response: the exchange and the frame.
    Answer(u64, Vec<u8>),
    /// Disconnect a peer for this many milliseconds.
    Disconnect(AuthorId, u64),
}

/// Entries examined in one batch.
const EXAMINED_AT_ONCE: usize = 256;

/// After an author turns out to be nearer, all entries are examined again within this time, in
/// milliseconds, because its entries may pass now. The delay bounds the work, since peers may
/// report distances as often as they like.
const NEARER_MS: u64 = 60_000;

/// Time without further work after a failed write, in milliseconds.
const RETRY_MS: u64 = 5_000;

/// Replication of one node.
pub struct Replica<W> {
    writer: W,
    own: AuthorId,
    policy: ReleasePolicy,
    machine: Replicator,
    /// The last known end of each peer's outbox, and when it was reached.
    heads: BTreeMap<AuthorId, (u64, WallTime)>,
    /// All changes up to this position were examined for release.
    examined: Option<Seq>,
    sweeps: Sweeps,
    sweep_ms: u64,
    /// The next periodic examination of all entries.
    sweep_at: u64,
    is_behind: bool,
    /// No work before this time, because a write failed.
    wait_until: u64,
    /// The peers and workspaces at the last examination of releases.
    before: Arc<Membership>,
    known: Option<(Seq, u64, Arc<Membership>)>,
    /// Revision that grows when membership or peers change without a feed record.
    changes: u64,
    /// For each peer, when the latest comparison that found its set equal to this node's started.
    equal: BTreeMap<AuthorId, WallTime>,
    /// Peers to compare with, because they were removed from a workspace and added again.
    back: BTreeSet<AuthorId>,
    connected: BTreeSet<AuthorId>,
    /// An input or an output of the protocol was lost because the store could not be read.
    has_missed: bool,
    room: QuarantineRoom,
    traffic: Traffic,
}

impl<W: EngineWriter> Replica<W> {
    /// Creates the replication of a node.
    pub fn new(writer: W, setup: Setup) -> Self {
        let Setup { own, policy, settings, sweep_ms } = setup;
        Self {
            writer,
            own,
            policy,
            machine: Replicator::new(settings),
            heads: BTreeMap::new(),
            examined: None,
            sweeps: Sweeps::default(),
            sweep_ms,
            sweep_at: sweep_ms,
            is_behind: true,
            wait_until: 0,
            before: Arc::default(),
            known: None,
            changes: 0,
            equal: BTreeMap::new(),
            back: BTreeSet::new(),
            connected: BTreeSet::new(),
            has_missed: false,
            room: QuarantineRoom::new(),
            traffic: Traffic::default(),
        }
    }

    pub fn writer(&mut self) -> &mut W {
        &mut self.writer
    }

    /// The protocol state machine.
    pub fn machine(&self) -> &Replicator {
        &self.machine
    }

    /// The release policy.
    pub fn policy(&self) -> &ReleasePolicy {
        &self.policy
    }

    /// The record counters per peer.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// True if a peer's outbox has grown since the start of the comparison by which both sets were
    /// last equal.
    pub fn has_news_for(&self, peer: AuthorId) -> bool {
        let risen = self.heads.get(&peer).map(|(_, risen)| *risen);
        self.equal.get(&peer).is_some_and(|equal| risen.is_some_and(|risen| risen > *equal))
    }

    /// When the next work is due if no event occurs.
    pub fn next_at(&self, at: u64) -> u64 {
        let sweep = self.sweeps.next_at(at);
        if self.is_behind || self.has_missed || sweep == Some(at) {
            return at.max(self.wait_until);
        }
        let sweep_at = sweep.map_or(self.sweep_at, |due| due.max(self.wait_until));
        self.machine.next_at(at).map_or(sweep_at, |due| due.min(sweep_at))
    }

    /// Reports the duration of the last call, so that a background sweep can rest. If this is never
    /// called, sweeps do not rest.
    pub fn report_duration(&mut self, begun: u64, ended: u64) {
        self.sweeps.rest(begun, ended);
    }

    /// The peers and workspaces as of now.
    pub fn membership(&mut self, now: WallTime) -> Result<Arc<Membership>, Error> {
        let snapshot = self.writer.store().snapshot()?;
        self.membership_in(&snapshot, now)
    }

    fn membership_in(
        &mut self,
        snapshot: &Snapshot,
        now: WallTime,
    ) -> Result<Arc<Membership>, Error> {
        match &self.known {
            Some((head, changes, membership))
                if (*head, *changes) == (snapshot.head(), self.changes) =>
            {
                Ok(membership.clone())
            }
            _ => {
                let membership = Arc::new(Membership::read(snapshot, self.own, now)?);
                self.known = Some((snapshot.head(), self.changes, membership.clone()));
                Ok(membership)
            }
        }
    }

    fn view(&mut self, now: WallTime) -> Result<StoreView, Error> {
        let snapshot = self.writer.store().snapshot()?;
        let membership = self.membership_in(&snapshot, now)?;
        let store = self.writer.store().id();
        Ok(StoreView {
            snapshot,
            membership,
            store,
            now,
            held: self.sweeps.held_peers(),
            lost: self.sweeps.lost(),
            refused: OnceCell::new(),
            waiting: OnceCell::new(),
        })
    }

    /// Writes changes to peer data.
    pub fn note(&mut self, acts: Vec<PeerCommand>) -> Result<(), Rejection> {
        let is_social = |act: &PeerCommand| {
            matches!(
                act,
                PeerCommand::Put(..) | PeerCommand::Equal(..) | PeerCommand::NameWorkspace(..)
            )
        };
        self.changes += u64::from(acts.iter().any(is_social));
        let answers = self.writer.write(vec![Command::Peers(acts)]);
        answers.into_iter().try_for_each(|answer| answer.map(|_| ()))
    }

    /// Handles an event and returns the actions to take. `at` is a monotonic time in milliseconds.
    pub fn handle(
        &mut self,
        event: ReplicaEvent<'_>,
        now: WallTime,
        at: u64,
    ) -> Vec<ReplicaAction> {
        match self.try_handle(event, now, at) {
            Ok(actions) => actions,
            Err(error) => {
                tracing::warn!(%error, "Reading the store for replication failed; retrying in 5 s");
                self.miss(at);
                Vec::new()
            }
        }
    }

    /// Records that an event was lost: after the back-off, new sessions start with all peers.
    pub(super) fn miss(&mut self, at: u64) {
        (self.has_missed, self.wait_until) = (true, at.saturating_add(RETRY_MS));
    }

    /// Requests records again that were refused and would be accepted now: the quarantine has room
    /// again, or the writer asks for it. Peers whose outbox is read from the start get a new session.
    fn use_room(&mut self, now: WallTime, at: u64) -> Result<(), Error> {
        let snapshot = self.writer.store().snapshot()?;
        let membership = self.membership_in(&snapshot, now)?;
        let mut acts = self.room.acts(&snapshot, &membership, at)?;
        acts.extend(snapshot.peers_to_reread()?.into_iter().map(PeerCommand::Rewind));
        drop(snapshot);
        if !acts.is_empty() {
            let is_noted = self.note(acts).is_ok();
            self.has_missed |= is_noted;
            self.room.is_freed |= !is_noted;
        }
        Ok(())
    }

    fn try_handle(
        &mut self,
        event: ReplicaEvent<'_>,
        now: WallTime,
        at: u64,
    ) -> Result<Vec<ReplicaAction>, Error> {
        let mut actions = Vec::new();
        let input = match event {
            ReplicaEvent::Connected(peer) => {
                self.connected.insert(peer);
                ProtocolInput::Connected(peer)
            }
            ReplicaEvent::Disconnected(peer) => {
                self.connected.remove(&peer);
                ProtocolInput::Disconnected(peer)
            }
            ReplicaEvent::Asked(peer, exchange, frame) => {
                ProtocolInput::Asked(peer, exchange, frame)
            }
            ReplicaEvent::Answered(peer, id, frame) => ProtocolInput::Answered(peer, id, frame),
            ReplicaEvent::Lost(peer, id) => ProtocolInput::Lost(peer, id),
            ReplicaEvent::Unoffered(peer, id) => ProtocolInput::Unoffered(peer, id),
            ReplicaEvent::Sync(peer) => {
                // Records written before a sync belong to its result.
                self.examine(now, at)?;
                while self.is_behind && self.wait_until <= at {
                    self.examine(now, at)?;
                }
                ProtocolInput::Sync(peer)
            }
            ReplicaEvent::Tick => ProtocolInput::Tick,
            ReplicaEvent::Changed(peers) => {
                self.changes += 1;
                self.sweeps.add_before_serving(peers);
                ProtocolInput::Tick
            }
        };
        self.use_room(now, at)?;
        let view = self.view(now)?;
        let mut outputs = Vec::new();
        if std::mem::take(&mut self.has_missed) {
            // Lost requests get no response, so new sessions start with all connected peers.
            for peer in &self.connected {
                outputs.extend(self.machine.handle(ProtocolInput::Connected(*peer), &view, at));
            }
        }
        for peer in std::mem::take(&mut self.back) {
            outputs.extend(self.machine.handle(ProtocolInput::Sync(peer), &view, at));
        }
        outputs.extend(self.machine.handle(input, &view, at));
        drop(view);
        self.carry_out(outputs, now, at, &mut actions)?;
        self.examine(now, at)?;
        self.announce(now, at, &mut actions)?;
        Ok(actions)
    }

    fn carry_out(
        &mut self,
        outputs: Vec<Output>,
        now: WallTime,
        at: u64,
        actions: &mut Vec<ReplicaAction>,
    ) -> Result<(), Error> {
        let mut outputs = VecDeque::from(outputs);
        while let Some(output) = outputs.pop_front() {
            let act = match output {
                Output::Ask(peer, id, frame) => {
                    actions.push(ReplicaAction::Ask(peer, id, frame));
                    continue;
                }
                Output::Answer(exchange, frame) => {
                    actions.push(ReplicaAction::Answer(exchange, frame));
                    continue;
                }
                Output::Served(peer, records) => {
                    self.traffic.send(peer, records);
                    continue;
                }
                Output::Disconnect(peer, ms) => {
                    tracing::warn!(%peer, ms, "A peer violated the protocol and was disconnected for a while");
                    actions.push(ReplicaAction::Disconnect(peer, ms));
                    continue;
                }
                Output::Penalise(peer, what) => {
                    tracing::debug!(%peer, what, "A peer violated the protocol");
                    continue;
                }
                Output::Deliver(delivery) => {
                    let (peer, id) = (delivery.peer, delivery.id);
                    let (outcomes, bytes) = self.deliver(delivery, now, at)?;
                    let view = self.view(now)?;
                    let cost = ProtocolInput::GoneThrough(peer, bytes);
                    for input in [cost, ProtocolInput::Applied(peer, id, outcomes)] {
                        outputs.extend(self.machine.handle(input, &view, at));
                    }
                    continue;
                }
                Output::Advance(peer, cursor) => PeerCommand::Advance(peer, cursor.into()),
                Output::Requeue(peer, digests) => PeerCommand::Requeue(peer, digests),
                Output::Withdrawn(offer, digests) => {
                    PeerCommand::Withdrawn(offer, digests.into_iter().collect())
                }
                Output::Restart(peer) => PeerCommand::Restart(peer),
                Output::Reread(peer) => PeerCommand::Reread(peer),
                Output::Received(peer, receipts) => PeerCommand::Received(peer, receipts),
                Output::Told(peer, receipts) => PeerCommand::Told(peer, receipts),
            };
            self.write_act(act, &mut outputs, now, at)?;
        }
        self.note_equal();
        Ok(())
    }

    /// Writes a delivery. Returns the outcome of each record and the bytes of the store that were
    /// read for them.
    fn deliver(
        &mut self,
        delivery: Delivery,
        now: WallTime,
        at: u64,
    ) -> Result<(Vec<proto::RecordOutcome>, u64), Error> {
        let (peer, store) = (delivery.peer, delivery.store);
        let view = self.view(now)?;
        let mut sorted = delivery_classification::classify(delivery, &view, &self.policy)?;
        drop(view);
        if sorted.is_nearer {
            self.sweep_at = self.sweep_at.min(at.saturating_add(NEARER_MS));
        }
        self.changes += 1;
        let mut answers = Vec::new();
        // Batch by batch, so that other writers can commit in between.
        for commands in std::mem::take(&mut sorted.groups) {
            self.prepare_documents(&commands, now)?;
            answers.extend(self.writer.write(commands));
            if answers.iter().any(Result::is_err) {
                break;
            }
        }
        self.traffic.receive(peer, delivery_classification::ingest_outcomes(&answers));
        let (mut outcomes, acts) = sorted.outcomes(Offerer { peer, store }, &answers);
        if !acts.is_empty() && self.note(acts).is_err() {
            outcomes.push(proto::RecordOutcome::Deferred);
        }
        Ok((outcomes, sorted.bytes))
    }

    /// Stores when a peer's set and this node's set were last equal.
    fn note_equal(&mut self) {
        let peers: Vec<AuthorId> = self.heads.keys().copied().collect();
        for peer in peers {
            if let SyncState::Equal(when) = self.machine.state(peer)
                && self.equal.insert(peer, when) != Some(when)
            {
                // If a power cut loses this, the sets are only compared again.
                let _ = self.note(vec![PeerCommand::Equal(peer, when)]);
            }
        }
    }

    // Releases.

    /// Adds sweeps for the peers that are affected by a change of membership.
    fn add_sweeps(&mut self, membership: &Arc<Membership>, approved: &BTreeSet<AuthorId>) {
        let before = std::mem::replace(&mut self.before, membership.clone());
        let is_same = before.mine == membership.mine && before.unheard == membership.unheard;
        if !is_same || !before.has_members_of(membership) {
            // Claims of members on other authors' entries are displayed or no longer displayed, and
            // entries of a person's own node count as created elsewhere. Both can affect every
            // peer.
            self.sweeps.add(approved.clone());
        }
        let shared = |among: &Arc<Membership>, peer: AuthorId| among.acquaintance(peer).shared;
        for peer in approved {
            let mut lost = &shared(&before, *peer) - &shared(membership, *peer);
            // The members are unknown while a charter is damaged, so its releases stay unchanged.
            lost.retain(|workspace| !membership.is_damaged(*workspace));
            if !lost.is_empty() {
                self.sweeps.add_without(*peer, lost);
            }
        }
    }

    /// Examines the changes since the last call and one batch of the current sweep, unless it
    /// rests.
    fn examine(&mut self, now: WallTime, at: u64) -> Result<(), Error> {
        let snapshot = self.writer.store().snapshot()?;
        let membership = self.membership_in(&snapshot, now)?;
        let approved: BTreeSet<AuthorId> =
            membership.peers.keys().copied().filter(|peer| membership.is_approved(*peer)).collect();
        let consumer = self.own;
        let from = match self.examined {
            Some(from) => from,
            None => {
                let cursor = snapshot.cursor(consumer)?;
                let cursor = cursor.filter(|cursor| cursor.store == self.writer.store().id());
                // The examination before the last stop may be incomplete, and the configuration may
                // have changed.
                self.sweeps.add_before_serving(approved.clone());
                cursor.map_or(Seq(0), |cursor| cursor.position).min(snapshot.head())
            }
        };
        let (entries, end) = entries_changed_since(&snapshot, from, EXAMINED_AT_ONCE)?;
        self.is_behind = end < snapshot.head();
        let mut acts = own_workspaces(&snapshot, &membership, &entries, now)?;
        if !Arc::ptr_eq(&self.before, &membership) {
            acts.extend(proven_owners(&snapshot, &membership)?);
            self.add_sweeps(&membership, &approved);
        }
        if at >= self.sweep_at {
            self.sweep_at = at.saturating_add(self.sweep_ms);
            self.sweeps.add_at_leisure(approved.clone());
        }
        acts.extend(self.decide(&snapshot, &membership, &entries, &approved, now)?);
        let piece = self.sweeps.piece(&snapshot, EXAMINED_AT_ONCE, at)?;
        if let Some(piece) = &piece {
            let peers = piece.peers.intersection(&approved).copied().collect();
            acts.extend(self.decide(&snapshot, &membership, &piece.entries, &peers, now)?);
        }
        drop(snapshot);
        let is_new = self.examined != Some(end);
        if !acts.is_empty() || (is_new && !approved.is_empty()) {
            let position = FeedCursor { store: self.writer.store().id(), epoch: 0, position: end };
            acts.push(PeerCommand::Advance(consumer, position));
            if self.note(acts).is_err() {
                // Nothing was written, so all of it is examined again.
                self.wait_until = at.saturating_add(RETRY_MS);
                return Ok(());
            }
        }
        self.examined = Some(end);
        // A peer that was added again missed changes in between; a comparison finds them.
        for (peer, lost) in self.sweeps.pass(piece) {
            if !membership.acquaintance(peer).shared.is_disjoint(&lost) {
                self.back.insert(peer);
            }
        }
        Ok(())
    }

    fn decide(
        &self,
        snapshot: &Snapshot,
        membership: &Arc<Membership>,
        entries: &BTreeSet<EntryId>,
        peers: &BTreeSet<AuthorId>,
        now: WallTime,
    ) -> Result<Vec<PeerCommand>, Error> {
        let mut acts = Vec::new();
        if peers.is_empty() {
            return Ok(acts);
        }
        let filters = peers.iter().filter_map(|peer| {
            let row =
                membership.peers.get(peer).filter(|row| row.approval == PeerApproval::Approved)?;
            let filter = self.policy.egress(row, membership);
            Some((*peer, filter, membership.acquaintance(*peer)))
        });
        let filters: Vec<_> = filters.collect();
        let reading = self.policy.reading(snapshot, membership, now);
        for entry in entries {
            let subject = self.policy.subject(&reading, *entry);
            // The release of an unreadable entry stays unchanged.
            let Some(subject) = Error::unless_damaged(subject)? else { continue };
            for (peer, filter, acquaintance) in &filters {
                let out = snapshot.release(*peer, *entry)?.out;
                match self.policy.turn(subject.as_ref(), filter, membership, acquaintance, out) {
                    ReleaseChange::Open => acts.push(PeerCommand::Release(*peer, *entry, true)),
                    ReleaseChange::End => acts.push(PeerCommand::Release(*peer, *entry, false)),
                    ReleaseChange::Stay(_) => {}
                }
            }
        }
        Ok(acts)
    }

    /// Tells the protocol whose outbox has grown.
    fn announce(
        &mut self,
        now: WallTime,
        at: u64,
        actions: &mut Vec<ReplicaAction>,
    ) -> Result<(), Error> {
        let view = self.view(now)?;
        let mut grown = Vec::new();
        for peer in view.membership.peers.keys().copied() {
            let head = view.snapshot.outbox_head(peer)?;
            if self.heads.get(&peer).is_none_or(|(known, _)| *known != head) {
                self.heads.insert(peer, (head, now));
                grown.push(peer);
            }
        }
        let mut outputs = Vec::new();
        for peer in grown {
            outputs.extend(self.machine.handle(ProtocolInput::Queued(peer), &view, at));
        }
        drop(view);
        self.carry_out(outputs, now, at, actions)
    }
}
