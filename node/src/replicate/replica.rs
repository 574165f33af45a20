//! A node's side of replication, whole, without threads, clocks or sockets.

mod traffic;
mod written;

pub use traffic::{Moved, Traffic};

use super::deliver;
use super::release::{Examiner, Turn};
use super::room::Room;
use super::sweep::Sweeps;
use super::view::StoreView;
use super::workspaces::{own_workspaces, proven_owners};
use crate::engine::{self, Command, PeerAct, Receipt, Rejection};
use crate::store::peers::Society;
use crate::store::peers::rows::{Approval, Cursor};
use crate::store::rows::Seq;
use crate::store::{Error, Snapshot, Store};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::{self, Delivery, Input, Offerer, Output, Replicator, SyncState};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The way to the one writer.
pub trait Writer {
    /// Hands commands over and waits for what became of each.
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>>;
    /// The store, to read.
    fn store(&self) -> &Store;
}

impl Writer for engine::Handle {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        let count = commands.len();
        self.submit_all_blocking(commands).unwrap_or_else(|rejection| vec![Err(rejection); count])
    }

    fn store(&self) -> &Store {
        engine::Handle::store(self)
    }
}

/// How a replica is made.
pub struct Setup {
    /// This node.
    pub own: AuthorId,
    /// Decides what passes.
    pub examiner: Examiner,
    /// How the protocol behaves.
    pub settings: proto::Settings,
    /// How often releases are examined again, in milliseconds.
    pub sweep_ms: u64,
}

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A peer is reachable.
    Connected(AuthorId),
    /// It is not any more.
    Disconnected(AuthorId),
    /// A peer asks.
    Asked(AuthorId, u64, &'a [u8]),
    /// A peer answers.
    Answered(AuthorId, u64, &'a [u8]),
    /// No answer came.
    Lost(AuthorId, u64),
    /// Nor will one: this node is not approved there.
    Unoffered(AuthorId, u64),
    /// The operator wants a peer compared now.
    Sync(AuthorId),
    /// Peers, filters or memberships were changed: everything is examined again for these.
    Changed(BTreeSet<AuthorId>),
    /// Something was committed, or time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// Ask a peer.
    Ask(AuthorId, u64, Vec<u8>),
    /// Answer an exchange.
    Answer(u64, Vec<u8>),
    /// Send a peer away for so many milliseconds.
    Disconnect(AuthorId, u64),
}

/// Entries that are examined at once.
const EXAMINED_AT_ONCE: usize = 256;

/// After it turned out that an author is nearer, it is begun within so long to examine everything again,
/// in milliseconds: what it created may pass now. Peers say how near others are as often as they like.
const NEARER_MS: u64 = 60_000;

/// What could not be written is tried again after so long, in milliseconds.
const RETRY_MS: u64 = 5_000;

/// A node's side of replication.
pub struct Replica<W> {
    writer: W,
    own: AuthorId,
    examiner: Examiner,
    machine: Replicator,
    /// The last known end of each peer's outbox, and since when it is.
    heads: BTreeMap<AuthorId, (u64, WallTime)>,
    /// Everything up to here was examined for release.
    examined: Option<Seq>,
    sweeps: Sweeps,
    sweep_ms: u64,
    /// When everything is examined again at the latest.
    sweep_at: u64,
    is_behind: bool,
    /// Time alone gives it nothing to do before: what it examined could not be written.
    wait_until: u64,
    /// Who was who when releases were last examined.
    before: Arc<Society>,
    known: Option<(Seq, u64, Arc<Society>)>,
    /// Grows whenever what is known about peers may have changed.
    changes: u64,
    /// When the comparison began by which each peer and this node were last seen to hold the same.
    equal: BTreeMap<AuthorId, WallTime>,
    /// Who has to be compared: it was struck off and listed again.
    back: BTreeSet<AuthorId>,
    /// Who is reachable.
    connected: BTreeSet<AuthorId>,
    /// The machine was not told of something, or what it said was lost: the store could not be read.
    has_missed: bool,
    room: Room,
    traffic: Traffic,
}

impl<W: Writer> Replica<W> {
    /// Takes over a node's replication.
    pub fn new(writer: W, setup: Setup) -> Self {
        let Setup { own, examiner, settings, sweep_ms } = setup;
        Self {
            writer,
            own,
            examiner,
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
            room: Room::new(),
            traffic: Traffic::default(),
        }
    }

    /// The writer.
    pub fn writer(&mut self) -> &mut W {
        &mut self.writer
    }

    /// The machine, to look at.
    pub fn machine(&self) -> &Replicator {
        &self.machine
    }

    /// Decides what passes.
    pub fn examiner(&self) -> &Examiner {
        &self.examiner
    }

    /// What has passed between this node and its peers.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Whether something was put out for a peer since the comparison began by which both were last
    /// seen to hold the same.
    pub fn has_news_for(&self, peer: AuthorId) -> bool {
        let risen = self.heads.get(&peer).map(|(_, risen)| *risen);
        self.equal.get(&peer).is_some_and(|equal| risen.is_some_and(|risen| risen > *equal))
    }

    /// When time alone, without anything else happening, next gives it something to do.
    pub fn next_at(&self, at: u64) -> u64 {
        let sweep = self.sweeps.next_at(at);
        if self.is_behind || self.has_missed || sweep == Some(at) {
            return at.max(self.wait_until);
        }
        let sweep_at = sweep.map_or(self.sweep_at, |due| due.max(self.wait_until));
        self.machine.next_at(at).map_or(sweep_at, |due| due.min(sweep_at))
    }

    /// What it did last took from one moment to another: a sweep for which nobody waits rests now. Where
    /// that is never told, everything is done at once.
    pub fn took(&mut self, begun: u64, ended: u64) {
        self.sweeps.rest(begun, ended);
    }

    /// Who is who now.
    pub fn society(&mut self, now: WallTime) -> Result<Arc<Society>, Error> {
        let snapshot = self.writer.store().snapshot()?;
        self.society_in(&snapshot, now)
    }

    fn society_in(&mut self, snapshot: &Snapshot, now: WallTime) -> Result<Arc<Society>, Error> {
        match &self.known {
            Some((head, changes, society))
                if (*head, *changes) == (snapshot.head(), self.changes) =>
            {
                Ok(society.clone())
            }
            _ => {
                let society = Arc::new(Society::read(snapshot, self.own, now)?);
                self.known = Some((snapshot.head(), self.changes, society.clone()));
                Ok(society)
            }
        }
    }

    fn view(&mut self, now: WallTime) -> Result<StoreView, Error> {
        let snapshot = self.writer.store().snapshot()?;
        let society = self.society_in(&snapshot, now)?;
        let store = self.writer.store().id();
        Ok(StoreView {
            snapshot,
            society,
            store,
            now,
            held: self.sweeps.held(),
            lost: self.sweeps.lost(),
            refused: OnceCell::new(),
            waiting: OnceCell::new(),
        })
    }

    /// Writes what concerns peers.
    pub fn note(&mut self, acts: Vec<PeerAct>) -> Result<(), Rejection> {
        let is_social = |act: &PeerAct| {
            matches!(act, PeerAct::Put(..) | PeerAct::Equal(..) | PeerAct::NameWorkspace(..))
        };
        self.changes += u64::from(acts.iter().any(is_social));
        let answers = self.writer.write(vec![Command::Peers(acts)]);
        answers.into_iter().try_for_each(|answer| answer.map(|_| ()))
    }

    /// Takes in what happened; returns what is to be done. `at` are milliseconds of a clock that
    /// never goes back.
    pub fn handle(&mut self, event: Event<'_>, now: WallTime, at: u64) -> Vec<Action> {
        match self.try_handle(event, now, at) {
            Ok(actions) => actions,
            Err(error) => {
                tracing::warn!(%error, "replication could not read the store");
                self.miss(at);
                Vec::new()
            }
        }
    }

    /// Something that happened was lost: after a while everybody is met anew.
    pub(super) fn miss(&mut self, at: u64) {
        (self.has_missed, self.wait_until) = (true, at.saturating_add(RETRY_MS));
    }

    /// Asks again for what was refused for want of room, once there may be some. Whose outbox is read
    /// from the start is met anew.
    fn use_room(&mut self, now: WallTime, at: u64) -> Result<(), Error> {
        let snapshot = self.writer.store().snapshot()?;
        let society = self.society_in(&snapshot, now)?;
        let acts = self.room.acts(&snapshot, &society, at)?;
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
        event: Event<'_>,
        now: WallTime,
        at: u64,
    ) -> Result<Vec<Action>, Error> {
        let mut actions = Vec::new();
        let input = match event {
            Event::Connected(peer) => {
                self.connected.insert(peer);
                Input::Connected(peer)
            }
            Event::Disconnected(peer) => {
                self.connected.remove(&peer);
                Input::Disconnected(peer)
            }
            Event::Asked(peer, exchange, frame) => Input::Asked(peer, exchange, frame),
            Event::Answered(peer, id, frame) => Input::Answered(peer, id, frame),
            Event::Lost(peer, id) => Input::Lost(peer, id),
            Event::Unoffered(peer, id) => Input::Unoffered(peer, id),
            Event::Sync(peer) => {
                // What was written before somebody asks belongs to the answer.
                self.examine(now, at)?;
                while self.is_behind && self.wait_until <= at {
                    self.examine(now, at)?;
                }
                Input::Sync(peer)
            }
            Event::Tick => Input::Tick,
            Event::Changed(peers) => {
                self.changes += 1;
                self.sweeps.add_before_serving(peers);
                Input::Tick
            }
        };
        self.use_room(now, at)?;
        let view = self.view(now)?;
        let mut outputs = Vec::new();
        if std::mem::take(&mut self.has_missed) {
            // Nobody would answer what was never asked: all are met anew.
            for peer in &self.connected {
                outputs.extend(self.machine.handle(Input::Connected(*peer), &view, at));
            }
        }
        for peer in std::mem::take(&mut self.back) {
            outputs.extend(self.machine.handle(Input::Sync(peer), &view, at));
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
        actions: &mut Vec<Action>,
    ) -> Result<(), Error> {
        let mut outputs = VecDeque::from(outputs);
        while let Some(output) = outputs.pop_front() {
            let act = match output {
                Output::Ask(peer, id, frame) => {
                    actions.push(Action::Ask(peer, id, frame));
                    continue;
                }
                Output::Answer(exchange, frame) => {
                    actions.push(Action::Answer(exchange, frame));
                    continue;
                }
                Output::Served(peer, records) => {
                    self.traffic.send(peer, records);
                    continue;
                }
                Output::Disconnect(peer, ms) => {
                    tracing::warn!(%peer, ms, "a peer is sent away");
                    actions.push(Action::Disconnect(peer, ms));
                    continue;
                }
                Output::Penalise(peer, what) => {
                    tracing::debug!(%peer, what, "a peer made a mistake");
                    continue;
                }
                Output::Deliver(delivery) => {
                    let (peer, id) = (delivery.peer, delivery.id);
                    let (outcomes, bytes) = self.deliver(delivery, now, at)?;
                    let view = self.view(now)?;
                    let cost = Input::GoneThrough(peer, bytes);
                    for input in [cost, Input::Applied(peer, id, outcomes)] {
                        outputs.extend(self.machine.handle(input, &view, at));
                    }
                    continue;
                }
                Output::Advance(peer, cursor) => PeerAct::Advance(peer, cursor.into()),
                Output::Requeue(peer, digests) => PeerAct::Requeue(peer, digests),
                Output::Withdrawn(offer, digests) => {
                    PeerAct::Withdrawn(offer, digests.into_iter().collect())
                }
                Output::Restart(peer) => PeerAct::Restart(peer),
                Output::Reread(peer) => PeerAct::Reread(peer),
                Output::Received(peer, receipts) => PeerAct::Received(peer, receipts),
                Output::Told(peer, receipts) => PeerAct::Told(peer, receipts),
            };
            self.write_down(act, &mut outputs, now, at)?;
        }
        self.note_equal();
        Ok(())
    }

    /// What became of each record, and how many bytes of the store were gone through for them.
    fn deliver(
        &mut self,
        delivery: Delivery,
        now: WallTime,
        at: u64,
    ) -> Result<(Vec<proto::Outcome>, u64), Error> {
        let (peer, store) = (delivery.peer, delivery.store);
        let view = self.view(now)?;
        let mut sorted = deliver::sort(delivery, &view, &self.examiner)?;
        drop(view);
        if sorted.is_nearer {
            self.sweep_at = self.sweep_at.min(at.saturating_add(NEARER_MS));
        }
        self.changes += 1;
        let mut answers = Vec::new();
        // One after the other, so that whoever else writes comes between.
        for commands in std::mem::take(&mut sorted.groups) {
            answers.extend(self.writer.write(commands));
            if answers.iter().any(Result::is_err) {
                break;
            }
        }
        self.traffic.receive(peer, deliver::ingested(&answers));
        let (mut outcomes, acts) = sorted.outcomes(Offerer { peer, store }, &answers);
        if !acts.is_empty() && self.note(acts).is_err() {
            outcomes.push(proto::Outcome::Deferred);
        }
        Ok((outcomes, sorted.bytes))
    }

    /// Keeps when a peer and this node were last seen to hold the same.
    fn note_equal(&mut self) {
        let peers: Vec<AuthorId> = self.heads.keys().copied().collect();
        for peer in peers {
            if let SyncState::Equal(when) = self.machine.state(peer)
                && self.equal.insert(peer, when) != Some(when)
            {
                // Losing it in a power cut only means comparing again.
                let _ = self.note(vec![PeerAct::Equal(peer, when)]);
            }
        }
    }

    // Releases.

    /// Sweeps for those whom it concerns that somebody is not who it was.
    fn notice(&mut self, society: &Arc<Society>, approved: &BTreeSet<AuthorId>) {
        let before = std::mem::replace(&mut self.before, society.clone());
        let is_same = before.mine == society.mine && before.unheard == society.unheard;
        if !is_same || !before.has_members_of(society) {
            // What a member said on entries of others is shown, or no longer, and what one's own machine
            // created was created elsewhere: that concerns what anyone gets.
            self.sweeps.add(approved.clone());
        }
        let shared = |among: &Arc<Society>, peer: AuthorId| among.acquaintance(peer).shared;
        for peer in approved {
            let mut lost = &shared(&before, *peer) - &shared(society, *peer);
            // Of a charter that is damaged nobody knows; what passes stays as it was.
            lost.retain(|workspace| !society.is_damaged(*workspace));
            if !lost.is_empty() {
                self.sweeps.add_without(*peer, lost);
            }
        }
    }

    /// Examines what was committed since, and a piece of the sweep under way, unless that rests.
    fn examine(&mut self, now: WallTime, at: u64) -> Result<(), Error> {
        let snapshot = self.writer.store().snapshot()?;
        let society = self.society_in(&snapshot, now)?;
        let approved: BTreeSet<AuthorId> =
            society.peers.keys().copied().filter(|peer| society.is_approved(*peer)).collect();
        let consumer = self.own;
        let from = match self.examined {
            Some(from) => from,
            None => {
                let cursor = snapshot.cursor(consumer)?;
                let cursor = cursor.filter(|cursor| cursor.store == self.writer.store().id());
                // What was examined before the last stop may have been cut short, and the
                // configuration may say something else.
                self.sweeps.add_before_serving(approved.clone());
                cursor.map_or(Seq(0), |cursor| cursor.position).min(snapshot.head())
            }
        };
        let (entries, end) = changed(&snapshot, from)?;
        self.is_behind = end < snapshot.head();
        let mut acts = own_workspaces(&snapshot, &society, &entries, now)?;
        if !Arc::ptr_eq(&self.before, &society) {
            acts.extend(proven_owners(&snapshot, &society)?);
            self.notice(&society, &approved);
        }
        if at >= self.sweep_at {
            self.sweep_at = at.saturating_add(self.sweep_ms);
            self.sweeps.add_at_leisure(approved.clone());
        }
        acts.extend(self.decide(&snapshot, &society, &entries, &approved, now)?);
        let piece = self.sweeps.piece(&snapshot, EXAMINED_AT_ONCE, at)?;
        if let Some(piece) = &piece {
            let peers = piece.peers.intersection(&approved).copied().collect();
            acts.extend(self.decide(&snapshot, &society, &piece.entries, &peers, now)?);
        }
        drop(snapshot);
        let is_new = self.examined != Some(end);
        if !acts.is_empty() || (is_new && !approved.is_empty()) {
            let position = Cursor { store: self.writer.store().id(), epoch: 0, position: end };
            acts.push(PeerAct::Advance(consumer, position));
            if self.note(acts).is_err() {
                // Nothing of it is done: all of it is looked at again.
                self.wait_until = at.saturating_add(RETRY_MS);
                return Ok(());
            }
        }
        self.examined = Some(end);
        // Who belongs there again was not given what it came to in between: comparing finds it.
        for (peer, lost) in self.sweeps.pass(piece) {
            if !society.acquaintance(peer).shared.is_disjoint(&lost) {
                self.back.insert(peer);
            }
        }
        Ok(())
    }

    fn decide(
        &self,
        snapshot: &Snapshot,
        society: &Arc<Society>,
        entries: &BTreeSet<EntryId>,
        peers: &BTreeSet<AuthorId>,
        now: WallTime,
    ) -> Result<Vec<PeerAct>, Error> {
        let mut acts = Vec::new();
        if peers.is_empty() {
            return Ok(acts);
        }
        let filters = peers.iter().filter_map(|peer| {
            let row = society.peers.get(peer).filter(|row| row.approval == Approval::Approved)?;
            let filter = self.examiner.egress(row, society);
            Some((*peer, filter, society.acquaintance(*peer)))
        });
        let filters: Vec<_> = filters.collect();
        let reading = self.examiner.reading(snapshot, society, now);
        for entry in entries {
            let subject = self.examiner.subject(&reading, *entry);
            // What cannot be read passes as it did before.
            let Some(subject) = Error::unless_damaged(subject)? else { continue };
            for (peer, filter, acquaintance) in &filters {
                let out = snapshot.release(*peer, *entry)?.out;
                match self.examiner.turn(subject.as_ref(), filter, society, acquaintance, out) {
                    Turn::Open => acts.push(PeerAct::Release(*peer, *entry, true)),
                    Turn::End => acts.push(PeerAct::Release(*peer, *entry, false)),
                    Turn::Stay(_) => {}
                }
            }
        }
        Ok(acts)
    }

    /// Tells the machine whose outbox has grown.
    fn announce(&mut self, now: WallTime, at: u64, actions: &mut Vec<Action>) -> Result<(), Error> {
        let view = self.view(now)?;
        let mut grown = Vec::new();
        for peer in view.society.peers.keys().copied() {
            let head = view.snapshot.outbox_head(peer)?;
            if self.heads.get(&peer).is_none_or(|(known, _)| *known != head) {
                self.heads.insert(peer, (head, now));
                grown.push(peer);
            }
        }
        let mut outputs = Vec::new();
        for peer in grown {
            outputs.extend(self.machine.handle(Input::Queued(peer), &view, at));
        }
        drop(view);
        self.carry_out(outputs, now, at, actions)
    }
}

/// The entries that were changed after a position, as many as are examined at once, and how far
/// that goes.
fn changed(snapshot: &Snapshot, from: Seq) -> Result<(BTreeSet<EntryId>, Seq), Error> {
    let mut entries = BTreeSet::new();
    for change in snapshot.changes_since(from)? {
        // A record that cannot be read is not sent either.
        let Some(change) = Error::unless_damaged(change)? else { continue };
        entries.insert(change.record.entry());
        if entries.len() == EXAMINED_AT_ONCE {
            return Ok((entries, change.seq));
        }
    }
    Ok((entries, snapshot.head()))
}
