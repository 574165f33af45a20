//! The replication state machine: inputs in, outputs out. It uses no clock, no socket and no store.
//!
//! Every node runs the same machine against each of its peers. This file holds the shared parts:
//! greeting, sending requests, announcing new rows, and faults. `outbox_server` serves this node's
//! outbox, `outbox_reader` reads the peer's, and `anti_entropy` compares the two record sets. The
//! [module documentation](super) describes the protocol.

use super::limits::{RECEIPTS_MAX, ROW_BYTES, VERSION};
use super::message::{ErasureReceipt, Greeting, OutboxCursor, SyncRequest, SyncResponse, reason};
use super::peer_budget::{Allowance, Budget, ReadPurpose};
use super::peer_session::{
    DEFERRED_RETRY_MS, Delivery, KEPT_MS, PeerSession, RETRY_MS, RecordFault, RequestPurpose,
    SyncState,
};
use super::store_view::{Offerer, StoreAccess, StoreUnavailable};
use klnode_crdt::ids::{AuthorId, Digest};
use klnode_crdt::time::WallTime;
use std::collections::BTreeMap;

/// An input. Times are in milliseconds of a monotonic clock.
#[derive(Debug)]
pub enum ProtocolInput<'a> {
    /// A connection to the peer was established.
    Connected(AuthorId),
    /// The last connection to the peer was closed.
    Disconnected(AuthorId),
    /// A request from a peer, with the exchange to answer and the frame.
    Asked(AuthorId, u64, &'a [u8]),
    /// The answer to this node's request with that id.
    Answered(AuthorId, u64, &'a [u8]),
    /// The request with that id failed.
    Lost(AuthorId, u64),
    /// The request failed because the peer does not offer this protocol: it has not approved this
    /// node.
    Unoffered(AuthorId, u64),
    /// The peer's outbox has grown, or there are new receipts for it.
    Queued(AuthorId),
    /// The outcome of a delivery, record by record.
    Applied(AuthorId, u64, Vec<RecordOutcome>),
    /// This many bytes of the store were read to judge the peer's records.
    GoneThrough(AuthorId, u64),
    /// Writing [`Output::Reread`] failed.
    NotReread(AuthorId),
    /// Writing [`Output::Told`] failed.
    NotTold(AuthorId),
    /// The operator requests a comparison with the peer now.
    Sync(AuthorId),
    /// Time has passed.
    Tick,
}

/// The outcome of one record of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOutcome {
    /// Held, already known, quarantined, or refused for a recorded reason. The cursor may pass.
    Settled,
    /// Held, and the first known record of its entry. The cursor may pass.
    New,
    /// The record cannot be applied yet. The cursor waits.
    Deferred,
    /// A proof that proves nothing, which is the peer's fault. The cursor may pass.
    Faulty,
}

/// An action for the driver.
#[derive(Debug)]
pub enum Output {
    /// Send a request to a peer. Its answer or failure comes back with this id.
    Ask(AuthorId, u64, Vec<u8>),
    /// Send the answer of an exchange.
    Answer(u64, Vec<u8>),
    /// The preceding answer contains this many records for this peer.
    Served(AuthorId, u64),
    /// Judge and apply a peer's records.
    Deliver(Delivery),
    /// Every row up to this cursor of the peer's outbox is settled.
    Advance(AuthorId, OutboxCursor),
    /// The peer lacks these records: append them to its outbox, even if they were there before.
    Requeue(AuthorId, Vec<Digest>),
    /// The peer's store no longer holds these records, which were refused from it.
    Withdrawn(Offerer, Vec<Digest>),
    /// The peer has begun to read from the start, so it may lack records it once sent.
    Restart(AuthorId),
    /// This node reads the peer's outbox from the start, possibly because the peer's store is an
    /// older copy of itself. The peer's earlier notices of releases no longer hold until it repeats
    /// them, and it may lack records it once sent.
    Reread(AuthorId),
    /// The peer reported how far entries are erased.
    Received(AuthorId, Vec<ErasureReceipt>),
    /// The peer received this node's receipts.
    Told(AuthorId, Vec<ErasureReceipt>),
    /// The peer committed a fault, described for the log.
    Penalise(AuthorId, String),
    /// Ban the peer for this many milliseconds.
    Disconnect(AuthorId, u64),
}

/// Parameters of the state machine. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Limits on the resources a peer may use.
    pub budget: Budget,
    /// Commits within this time are announced together.
    pub debounce_ms: u64,
    /// Interval of comparisons while no difference is known.
    pub scrub_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Budget::default(), debounce_ms: 200, scrub_ms: 3_600_000 }
    }
}

/// Reason sent to a peer that this node has not approved.
pub(super) const NOT_PAIRED: &str = "this node is not paired with yours";

/// The replication state machine, with one session per known peer.
pub struct Replicator {
    settings: Settings,
    sessions: BTreeMap<AuthorId, PeerSession>,
    next_id: u64,
}

impl Replicator {
    /// A machine without any sessions.
    pub fn new(settings: Settings) -> Self {
        Self { settings, sessions: BTreeMap::new(), next_id: 1 }
    }

    /// Whether the record sets of this node and a peer are equal, as far as known.
    pub fn state(&self, peer: AuthorId) -> SyncState {
        self.sessions.get(&peer).map(|session| session.state.clone()).unwrap_or_default()
    }

    /// Number of sessions.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.sessions.len()
    }

    /// True if a peer is connected and has greeted.
    #[cfg(test)]
    pub(super) fn is_in_session(&self, peer: AuthorId) -> bool {
        self.sessions.get(&peer).is_some_and(|session| session.theirs.is_some())
    }

    /// How far a connected peer's clock was ahead of this node's when it greeted, in milliseconds.
    pub fn clock_ahead_ms(&self, peer: AuthorId) -> Option<i64> {
        let session = self.sessions.get(&peer).filter(|session| session.theirs.is_some())?;
        Some(session.clock_ahead_ms)
    }

    /// The next time at which the machine has work due to time alone.
    pub fn next_at(&self, at: u64) -> Option<u64> {
        let sessions = self.sessions.values().filter(|session| session.is_connected);
        let due = sessions.filter_map(|session| session.next_at(self.settings.scrub_ms)).min();
        due.map(|due| due.max(at))
    }

    /// Processes an input at a time and returns the actions it causes.
    pub fn handle(
        &mut self,
        input: ProtocolInput<'_>,
        view: &dyn StoreAccess,
        at: u64,
    ) -> Vec<Output> {
        let mut out = Vec::new();
        let peer = match &input {
            ProtocolInput::Connected(peer)
            | ProtocolInput::Disconnected(peer)
            | ProtocolInput::Asked(peer, ..)
            | ProtocolInput::Answered(peer, ..)
            | ProtocolInput::Lost(peer, _)
            | ProtocolInput::Unoffered(peer, _)
            | ProtocolInput::Queued(peer)
            | ProtocolInput::Applied(peer, ..)
            | ProtocolInput::GoneThrough(peer, _)
            | ProtocolInput::NotReread(peer)
            | ProtocolInput::NotTold(peer)
            | ProtocolInput::Sync(peer) => *peer,
            ProtocolInput::Tick => {
                let all: Vec<AuthorId> = self.sessions.keys().copied().collect();
                for peer in all {
                    let mut step = self.step(peer, view, at);
                    step.drive();
                    out.append(&mut step.out);
                }
                return out;
            }
        };
        let mut step = self.step(peer, view, at);
        // If the store is not readable, the next tick retries.
        let _ = step.take(input);
        step.drive();
        out.append(&mut step.out);
        // The state of a stranger is dropped when it disconnects; the budget of a peer is kept.
        let has_gone = !step.session.is_connected;
        if has_gone && !view.is_approved(peer) {
            self.sessions.remove(&peer);
        }
        out
    }

    fn step<'a>(&'a mut self, peer: AuthorId, view: &'a dyn StoreAccess, at: u64) -> PeerStep<'a> {
        let session = self.sessions.entry(peer).or_default();
        let (settings, next_id, out) = (&self.settings, &mut self.next_id, Vec::new());
        PeerStep { peer, session, settings, next_id, view, at, out }
    }
}

/// Processes one input for one peer.
pub(super) struct PeerStep<'a> {
    pub(super) peer: AuthorId,
    pub(super) session: &'a mut PeerSession,
    pub(super) settings: &'a Settings,
    pub(super) next_id: &'a mut u64,
    pub(super) view: &'a dyn StoreAccess,
    pub(super) at: u64,
    pub(super) out: Vec<Output>,
}

impl PeerStep<'_> {
    fn take(&mut self, input: ProtocolInput<'_>) -> Result<(), StoreUnavailable> {
        match input {
            ProtocolInput::Connected(_) => {
                self.session.connected(self.at, &self.settings.budget);
                if self.view.is_approved(self.peer) {
                    self.greet()?;
                }
            }
            ProtocolInput::Disconnected(_) => self.session.renew(self.at),
            ProtocolInput::Asked(_, exchange, frame) => self.asked(exchange, frame),
            ProtocolInput::Answered(_, id, _) if self.session.spent.is_away(self.at) => {
                self.lost(id);
            }
            ProtocolInput::Answered(_, id, frame) => self.answered(id, frame)?,
            ProtocolInput::Lost(_, id) => self.lost(id),
            ProtocolInput::Unoffered(_, id) => {
                let is_open = self.session.expected.contains_key(&id);
                self.lost(id);
                // A peer that has greeted on this connection has approved this node in the
                // meantime.
                if is_open && self.session.theirs.is_none() {
                    self.session.state = SyncState::Refused(NOT_PAIRED.into());
                }
            }
            ProtocolInput::Queued(_) => self.queued()?,
            ProtocolInput::Applied(_, id, outcomes) => self.applied(id, &outcomes)?,
            ProtocolInput::GoneThrough(_, bytes) => {
                self.charge_rows_for(ReadPurpose::Brought, bytes / ROW_BYTES as u64);
            }
            ProtocolInput::NotReread(_) => self.not_reread(),
            // The peer received the receipts and would write them again each time, so wait.
            ProtocolInput::NotTold(_) => self.session.tell_at = Some(self.at + DEFERRED_RETRY_MS),
            ProtocolInput::Sync(_) => {
                // The peer's earlier refusal does not answer this request.
                self.session.state = match std::mem::take(&mut self.session.state) {
                    SyncState::Refused(_) => SyncState::Unknown,
                    state => state,
                };
                (self.session.wants_compare, self.session.is_urgent) = (true, true);
                (self.session.repeats, self.session.wait_until) = (0, self.at);
            }
            ProtocolInput::Tick => {}
        }
        Ok(())
    }

    // Sending requests.

    pub(super) fn ask(&mut self, ask: &SyncRequest, expected: RequestPurpose) {
        let id = *self.next_id;
        *self.next_id += 1;
        self.session.expected.insert(id, expected);
        self.out.push(Output::Ask(self.peer, id, ask.encode()));
    }

    pub(super) fn greeting(&self) -> Result<Greeting, StoreUnavailable> {
        Ok(Greeting {
            version: VERSION,
            store: self.view.store(),
            epoch: self.view.epoch(),
            head: self.view.outbox_head(self.peer)?,
            time: self.view.now(),
        })
    }

    fn greet(&mut self) -> Result<(), StoreUnavailable> {
        if !self.session.expects(&RequestPurpose::Hello) {
            let greeting = self.greeting()?;
            self.session.announced = greeting.head;
            self.ask(&SyncRequest::Hello(greeting), RequestPurpose::Hello);
        }
        Ok(())
    }

    pub(super) fn greeted(&mut self, theirs: Greeting) -> Result<(), StoreUnavailable> {
        if theirs.version != VERSION {
            let why = format!("it speaks version {} of the protocol", theirs.version);
            self.session.state = SyncState::Refused(why);
            self.session.wait_until = self.at + DEFERRED_RETRY_MS;
            return Ok(());
        }
        let is_first = self.session.theirs.is_none();
        self.session.theirs = Some(theirs);
        let millis = |time: WallTime| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.session.clock_ahead_ms = millis(theirs.time) - millis(self.view.now());
        if is_first {
            self.begin_reading(theirs.store)?;
            self.session.state = match std::mem::take(&mut self.session.state) {
                SyncState::Refused(_) => SyncState::Unknown,
                state => state,
            };
            self.tell_receipts()?;
        }
        Ok(())
    }

    /// Does all work that is due. If the store is not readable, the next tick retries.
    fn drive(&mut self) {
        self.session.driven_at = self.at;
        let _ = self.try_drive();
    }

    fn try_drive(&mut self) -> Result<(), StoreUnavailable> {
        self.session.answering.take_if(|kept| self.at.saturating_sub(kept.since) >= KEPT_MS);
        if !self.session.is_connected || !self.view.is_approved(self.peer) {
            return Ok(());
        }
        let Some(theirs) = self.session.theirs else {
            if self.at >= self.session.wait_until {
                self.greet()?;
            }
            return Ok(());
        };
        self.announce()?;
        self.deliver_if_ready(theirs.store);
        if self.at < self.session.wait_until || !self.reread_if_due()? {
            return Ok(());
        }
        self.read_on();
        self.compare_if_due(theirs)
    }

    /// Announces new rows shortly after the first of several commits, and sends pending receipts.
    fn announce(&mut self) -> Result<(), StoreUnavailable> {
        if self.session.tell_at.is_some_and(|due| due <= self.at) {
            self.session.tell_at = None;
            self.session.announce_at.get_or_insert(self.at);
        }
        if self.session.announce_at.is_some_and(|due| due <= self.at) {
            self.session.announce_at = None;
            self.tell_receipts()?;
            let head = self.view.outbox_head(self.peer)?;
            if head > self.session.announced {
                self.session.announced = head;
                self.ask(&SyncRequest::Notify(head), RequestPurpose::Heard);
            }
        }
        Ok(())
    }

    fn queued(&mut self) -> Result<(), StoreUnavailable> {
        if self.session.theirs.is_some() {
            let due = self.at + self.settings.debounce_ms;
            self.session.announce_at.get_or_insert(due);
            self.tell_receipts()?;
        }
        Ok(())
    }

    pub(super) fn tell_receipts(&mut self) -> Result<(), StoreUnavailable> {
        if self.session.tell_at.is_some() {
            return Ok(());
        }
        let mut receipts = self.view.receipts(self.peer)?;
        receipts.truncate(RECEIPTS_MAX);
        let is_telling =
            |expected: &RequestPurpose| matches!(expected, RequestPurpose::Receipts(_));
        if !receipts.is_empty() && !self.session.expected.values().any(is_telling) {
            self.ask(
                &SyncRequest::Acknowledge(receipts.clone()),
                RequestPurpose::Receipts(receipts),
            );
        }
        Ok(())
    }

    // Processing answers.

    fn answered(&mut self, id: u64, frame: &[u8]) -> Result<(), StoreUnavailable> {
        let Some(expected) = self.session.expected.remove(&id) else { return Ok(()) };
        let handled = self.handle_answer(frame, expected);
        if !self.view.is_mine(self.peer) {
            let wait = self.session.spent.answer(frame.len(), self.at, &self.settings.budget);
            self.session.wait_until = self.session.wait_until.max(self.at + wait);
        }
        handled
    }

    fn handle_answer(
        &mut self,
        frame: &[u8],
        expected: RequestPurpose,
    ) -> Result<(), StoreUnavailable> {
        let answer = match SyncResponse::decode(frame) {
            Ok(answer) => answer,
            Err(refusal) => {
                self.fault(&format!("an answer that cannot be read: {refusal}"));
                self.release_request(&expected);
                return Ok(());
            }
        };
        match (answer, expected) {
            (SyncResponse::Hello(theirs), RequestPurpose::Hello) => self.greeted(theirs)?,
            (SyncResponse::Page(items, end, more), RequestPurpose::Page(from)) => {
                self.page(items, from, end, more)?;
            }
            (SyncResponse::UnknownCursor, RequestPurpose::Page(Some(_))) => {
                self.cursor_is_unknown();
            }
            (SyncResponse::Records(records), RequestPurpose::Records) => self.fetched(records),
            (SyncResponse::Compare(message), RequestPurpose::Compare) => {
                self.continue_comparison(&message)?;
            }
            (SyncResponse::Done, RequestPurpose::Heard) => {}
            (SyncResponse::Done, RequestPurpose::Receipts(receipts)) => {
                self.out.push(Output::Told(self.peer, receipts));
                // Once delivery is recorded, the remaining receipts are due.
                let due = self.at + self.settings.debounce_ms.max(1);
                self.session.announce_at.get_or_insert(due);
            }
            (SyncResponse::Later(ms), RequestPurpose::Compare) => {
                self.release_request(&RequestPurpose::Compare);
                // Reading continues meanwhile.
                self.session.rest_until = self.at + u64::from(ms).max(1);
            }
            (SyncResponse::Later(ms), expected) => {
                self.release_request(&expected);
                let until = self.at + u64::from(ms).max(1);
                self.session.wait_until = until;
                self.session.announce_at = self.session.announce_at.map(|due| due.max(until));
            }
            (SyncResponse::Refused(why), expected) => {
                self.release_request(&expected);
                self.session.state = SyncState::Refused(reason(&why));
                self.session.wait_until = self.at + DEFERRED_RETRY_MS;
            }
            (_, expected) => {
                self.release_request(&expected);
                self.fault("an answer of the wrong type");
            }
        }
        Ok(())
    }

    fn lost(&mut self, id: u64) {
        if let Some(expected) = self.session.expected.remove(&id) {
            self.release_request(&expected);
            self.session.wait_until = self.session.wait_until.max(self.at + RETRY_MS);
        }
    }

    /// The request failed, so it may be sent again.
    fn release_request(&mut self, expected: &RequestPurpose) {
        match expected {
            RequestPurpose::Page(_) => self.session.is_asking = false,
            RequestPurpose::Records => {
                for page in &mut self.session.pages {
                    page.is_fetching = false;
                }
            }
            RequestPurpose::Compare => {
                self.session.compare = None;
                self.session.want_compare();
            }
            RequestPurpose::Heard => {
                self.session.announced = 0;
                self.session.announce_at.get_or_insert(self.at + RETRY_MS);
            }
            RequestPurpose::Receipts(_) => {
                self.session.announce_at.get_or_insert(self.at + RETRY_MS);
            }
            RequestPurpose::Hello => {}
        }
    }

    // Budgets and faults.

    pub(super) fn charge_frame(&mut self, bytes: usize) -> Allowance {
        if self.view.is_mine(self.peer) {
            return Allowance::Fine;
        }
        let allowance = self.session.spent.frame(bytes, self.at, &self.settings.budget);
        self.enforce(allowance);
        allowance
    }

    /// Charges store rows read because the peer asked for them.
    pub(super) fn charge_rows(&mut self, rows: u64) {
        self.charge_rows_for(ReadPurpose::Asked, rows);
    }

    /// Charges store rows read on the peer's behalf, by purpose.
    pub(super) fn charge_rows_for(&mut self, work: ReadPurpose, rows: u64) {
        if !self.view.is_mine(self.peer) {
            self.session.spent.rows(work, rows, self.at, &self.settings.budget);
        }
    }

    /// Counts accepted records, and entries that turned out to be new. A peer's own claim that an
    /// entry is new does not count.
    pub(super) fn count_intake(&mut self, records: usize, new_entries: usize) {
        if !self.view.is_mine(self.peer) {
            let taken = (records, new_entries);
            self.session.spent.count_intake(taken, self.at, &self.settings.budget);
        }
    }

    /// How long to wait before more records are requested.
    pub(super) fn intake_wait(&mut self) -> u64 {
        match self.view.is_mine(self.peer) {
            true => 0,
            false => self.session.spent.intake_wait(self.at, &self.settings.budget),
        }
    }

    /// How long the peer has to wait before more rows are read at its request.
    pub(super) fn rows_wait(&mut self) -> u64 {
        self.rows_wait_for(ReadPurpose::Asked)
    }

    /// How long the peer has to wait before more rows are read for this purpose.
    pub(super) fn rows_wait_for(&mut self, work: ReadPurpose) -> u64 {
        self.session.spent.rows_wait(work, self.at, &self.settings.budget)
    }

    /// True if the peer's requests have read twice the allowed rows.
    pub(super) fn is_far_over(&self) -> bool {
        self.session.spent.is_far_over_rows(ReadPurpose::Asked, &self.settings.budget)
    }

    fn enforce(&mut self, allowance: Allowance) {
        if let Allowance::Away(ms) = allowance {
            self.out.push(Output::Disconnect(self.peer, ms));
        }
    }

    pub(super) fn fault(&mut self, what: &str) {
        self.out.push(Output::Penalise(self.peer, what.to_owned()));
        let allowance = self.session.spent.fault(self.at, &self.settings.budget);
        self.enforce(allowance);
    }

    pub(super) fn faults(&mut self, faults: Vec<RecordFault>) {
        for RecordFault(what) in faults {
            self.fault(&what);
        }
    }
}
