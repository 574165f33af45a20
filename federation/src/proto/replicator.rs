//! The state machine: what comes in, what goes out. Knows no clock, no socket and no store.
//!
//! Every node runs the same one against each of its peers. Here is what its halves share: greeting,
//! asking, telling what is new, and what a peer does wrong. The own outbox is served in `serve`, the
//! peer's is read in `reading`, and what both hold is compared in `scrub`. See the
//! [module documentation](super) for the protocol.

use super::budget::{Allowance, Budget, Work};
use super::limits::{RECEIPTS_MAX, ROW_BYTES, VERSION};
use super::message::{Answer, Ask, Cursor, Greeting, Receipt, reason};
use super::serve::KEPT_MS;
use super::session::{Delivery, Expected, Fault, Session, SyncState};
use super::view::{Offerer, Unreadable, View};
use klnode_crdt::ids::{AuthorId, Digest};
use klnode_crdt::time::WallTime;
use std::collections::BTreeMap;

/// What happened. Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub enum Input<'a> {
    /// A peer is reachable.
    Connected(AuthorId),
    /// It is not any more.
    Disconnected(AuthorId),
    /// A peer asks; the answer names the exchange.
    Asked(AuthorId, u64, &'a [u8]),
    /// The answer to an ask of this side.
    Answered(AuthorId, u64, &'a [u8]),
    /// No answer came.
    Lost(AuthorId, u64),
    /// Nor will one: the peer does not offer this protocol to whom it has not approved.
    Unoffered(AuthorId, u64),
    /// The peer's outbox has grown, or what is to be told to it.
    Queued(AuthorId),
    /// What became of a delivery, record by record.
    Applied(AuthorId, u64, Vec<Outcome>),
    /// So many bytes of the store were gone through for what the peer brought.
    GoneThrough(AuthorId, u64),
    /// What [`Output::Reread`] says could not be written.
    NotReread(AuthorId),
    /// What [`Output::Told`] says could not be written.
    NotTold(AuthorId),
    /// The operator wants the peer compared now.
    Sync(AuthorId),
    /// Time has passed.
    Tick,
}

/// What became of one record of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Held, known, put aside, or refused for a reason that is kept: the cursor may pass.
    Settled,
    /// Held, and the first that is known here of its entry. The cursor may pass.
    New,
    /// Cannot be taken yet: the cursor waits.
    Deferred,
    /// Proves nothing, though it was to prove something: the peer's fault. The cursor may pass.
    Faulty,
}

/// What is to be done.
#[derive(Debug)]
pub enum Output {
    /// Ask a peer; its answer, or that there is none, comes back with the number.
    Ask(AuthorId, u64, Vec<u8>),
    /// Answer an exchange.
    Answer(u64, Vec<u8>),
    /// So many records are in the answer just before, for this peer.
    Served(AuthorId, u64),
    /// Judge and apply what a peer brought.
    Deliver(Delivery),
    /// Everything up to here of the peer's outbox is settled.
    Advance(AuthorId, Cursor),
    /// The peer lacks these: put them at the end of its outbox, even if they were there before.
    Requeue(AuthorId, Vec<Digest>),
    /// The peer's store holds these no longer, which were refused from it.
    Withdrawn(Offerer, Vec<Digest>),
    /// The peer has begun to read from the start: it may lack what it once brought itself.
    Restart(AuthorId),
    /// The peer's outbox is read from the start, perhaps because its store is an older copy of
    /// itself: what it has told about releases holds no longer until it says so again, and it may
    /// lack what it once brought itself.
    Reread(AuthorId),
    /// The peer says how far entries are erased.
    Received(AuthorId, Vec<Receipt>),
    /// The peer has heard how far entries are erased here.
    Told(AuthorId, Vec<Receipt>),
    /// The peer did something wrong.
    Penalise(AuthorId, String),
    /// Send the peer away for so many milliseconds.
    Disconnect(AuthorId, u64),
}

/// How the machine behaves. Times are milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What a peer may cost.
    pub budget: Budget,
    /// Commits this close together are announced once.
    pub debounce_ms: u64,
    /// How often peers are compared when nothing seems to differ.
    pub scrub_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Budget::default(), debounce_ms: 200, scrub_ms: 3_600_000 }
    }
}

/// What a node says to one that it has not approved.
pub(super) const NOT_PAIRED: &str = "this node is not paired with yours";

/// After a failure or a deferral the next ask waits so long.
pub(super) const RETRY_MS: u64 = 1_000;
pub(super) const DEFERRED_RETRY_MS: u64 = 30_000;

/// The machine.
pub struct Replicator {
    settings: Settings,
    sessions: BTreeMap<AuthorId, Session>,
    next_id: u64,
}

impl Replicator {
    /// With nobody in sight.
    pub fn new(settings: Settings) -> Self {
        Self { settings, sessions: BTreeMap::new(), next_id: 1 }
    }

    /// What is known of a peer.
    pub fn state(&self, peer: AuthorId) -> SyncState {
        self.sessions.get(&peer).map(|session| session.state.clone()).unwrap_or_default()
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.sessions.len()
    }

    /// Whether a peer is connected and greeted.
    #[cfg(test)]
    pub(super) fn is_in_session(&self, peer: AuthorId) -> bool {
        self.sessions.get(&peer).is_some_and(|session| session.theirs.is_some())
    }

    /// How far a connected peer's clock was ahead of this one's, in milliseconds, when it greeted.
    pub fn clock_ahead_ms(&self, peer: AuthorId) -> Option<i64> {
        let session = self.sessions.get(&peer).filter(|session| session.theirs.is_some())?;
        Some(session.clock_ahead_ms)
    }

    /// When time alone, without anything else happening, next gives the machine something to do.
    pub fn next_at(&self, at: u64) -> Option<u64> {
        let sessions = self.sessions.values().filter(|session| session.is_connected);
        let due = sessions.filter_map(|session| session.next_at(self.settings.scrub_ms)).min();
        due.map(|due| due.max(at))
    }

    /// Takes in what happened at a moment; returns what is to be done.
    pub fn handle(&mut self, input: Input<'_>, view: &dyn View, at: u64) -> Vec<Output> {
        let mut out = Vec::new();
        let peer = match &input {
            Input::Connected(peer)
            | Input::Disconnected(peer)
            | Input::Asked(peer, ..)
            | Input::Answered(peer, ..)
            | Input::Lost(peer, _)
            | Input::Unoffered(peer, _)
            | Input::Queued(peer)
            | Input::Applied(peer, ..)
            | Input::GoneThrough(peer, _)
            | Input::NotReread(peer)
            | Input::NotTold(peer)
            | Input::Sync(peer) => *peer,
            Input::Tick => {
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
        // What cannot be read now is taken up again by the next tick.
        let _ = step.take(input);
        step.drive();
        out.append(&mut step.out);
        // A stranger costs the machine nothing once it has gone; what a peer has cost is kept.
        let has_gone = !step.session.is_connected;
        if has_gone && !view.is_approved(peer) {
            self.sessions.remove(&peer);
        }
        out
    }

    fn step<'a>(&'a mut self, peer: AuthorId, view: &'a dyn View, at: u64) -> Step<'a> {
        let session = self.sessions.entry(peer).or_default();
        let (settings, next_id, out) = (&self.settings, &mut self.next_id, Vec::new());
        Step { peer, session, settings, next_id, view, at, out }
    }
}

/// One input, for one peer.
pub(super) struct Step<'a> {
    pub(super) peer: AuthorId,
    pub(super) session: &'a mut Session,
    pub(super) settings: &'a Settings,
    pub(super) next_id: &'a mut u64,
    pub(super) view: &'a dyn View,
    pub(super) at: u64,
    pub(super) out: Vec<Output>,
}

impl Step<'_> {
    fn take(&mut self, input: Input<'_>) -> Result<(), Unreadable> {
        match input {
            Input::Connected(_) => {
                self.session.connected(self.at, &self.settings.budget);
                if self.view.is_approved(self.peer) {
                    self.greet()?;
                }
            }
            Input::Disconnected(_) => self.session.renew(self.at),
            Input::Asked(_, exchange, frame) => self.asked(exchange, frame),
            Input::Answered(_, id, _) if self.session.spent.is_away(self.at) => self.lost(id),
            Input::Answered(_, id, frame) => self.answered(id, frame)?,
            Input::Lost(_, id) => self.lost(id),
            Input::Unoffered(_, id) => {
                let is_open = self.session.expected.contains_key(&id);
                self.lost(id);
                // Whoever has greeted on this connection has approved this node meanwhile.
                if is_open && self.session.theirs.is_none() {
                    self.session.state = SyncState::Refused(NOT_PAIRED.into());
                }
            }
            Input::Queued(_) => self.queued()?,
            Input::Applied(_, id, outcomes) => self.applied(id, &outcomes)?,
            Input::GoneThrough(_, bytes) => {
                self.go_through_for(Work::Brought, bytes / ROW_BYTES as u64);
            }
            Input::NotReread(_) => self.not_reread(),
            // The peer has heard it, and writes it down each time.
            Input::NotTold(_) => self.session.tell_at = Some(self.at + DEFERRED_RETRY_MS),
            Input::Sync(_) => {
                // What the peer said before is no answer to this.
                self.session.state = match std::mem::take(&mut self.session.state) {
                    SyncState::Refused(_) => SyncState::Unknown,
                    state => state,
                };
                (self.session.wants_compare, self.session.is_urgent) = (true, true);
                (self.session.repeats, self.session.wait_until) = (0, self.at);
            }
            Input::Tick => {}
        }
        Ok(())
    }

    // Asking.

    pub(super) fn ask(&mut self, ask: &Ask, expected: Expected) {
        let id = *self.next_id;
        *self.next_id += 1;
        self.session.expected.insert(id, expected);
        self.out.push(Output::Ask(self.peer, id, ask.encode()));
    }

    pub(super) fn greeting(&self) -> Result<Greeting, Unreadable> {
        Ok(Greeting {
            version: VERSION,
            store: self.view.store(),
            epoch: self.view.epoch(),
            head: self.view.outbox_head(self.peer)?,
            time: self.view.now(),
        })
    }

    fn greet(&mut self) -> Result<(), Unreadable> {
        if !self.session.expects(&Expected::Hello) {
            let greeting = self.greeting()?;
            self.session.announced = greeting.head;
            self.ask(&Ask::Hello(greeting), Expected::Hello);
        }
        Ok(())
    }

    pub(super) fn greeted(&mut self, theirs: Greeting) -> Result<(), Unreadable> {
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

    /// Does what can be done next. A store that cannot be read leaves it for the next tick.
    fn drive(&mut self) {
        self.session.driven_at = self.at;
        let _ = self.try_drive();
    }

    fn try_drive(&mut self) -> Result<(), Unreadable> {
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

    /// Tells the peer that there is more, a moment after the first of several commits; and what it
    /// has not heard.
    fn announce(&mut self) -> Result<(), Unreadable> {
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
                self.ask(&Ask::Notify(head), Expected::Heard);
            }
        }
        Ok(())
    }

    fn queued(&mut self) -> Result<(), Unreadable> {
        if self.session.theirs.is_some() {
            let due = self.at + self.settings.debounce_ms;
            self.session.announce_at.get_or_insert(due);
            self.tell_receipts()?;
        }
        Ok(())
    }

    pub(super) fn tell_receipts(&mut self) -> Result<(), Unreadable> {
        if self.session.tell_at.is_some() {
            return Ok(());
        }
        let mut receipts = self.view.receipts(self.peer)?;
        receipts.truncate(RECEIPTS_MAX);
        let is_telling = |expected: &Expected| matches!(expected, Expected::Receipts(_));
        if !receipts.is_empty() && !self.session.expected.values().any(is_telling) {
            self.ask(&Ask::Acknowledge(receipts.clone()), Expected::Receipts(receipts));
        }
        Ok(())
    }

    // Answers to what was asked.

    fn answered(&mut self, id: u64, frame: &[u8]) -> Result<(), Unreadable> {
        let Some(expected) = self.session.expected.remove(&id) else { return Ok(()) };
        let heard = self.heard(frame, expected);
        if !self.view.is_mine(self.peer) {
            let wait = self.session.spent.answer(frame.len(), self.at, &self.settings.budget);
            self.session.wait_until = self.session.wait_until.max(self.at + wait);
        }
        heard
    }

    fn heard(&mut self, frame: &[u8], expected: Expected) -> Result<(), Unreadable> {
        let answer = match Answer::decode(frame) {
            Ok(answer) => answer,
            Err(refusal) => {
                self.fault(&format!("an answer that cannot be read: {refusal}"));
                self.undo(&expected);
                return Ok(());
            }
        };
        match (answer, expected) {
            (Answer::Hello(theirs), Expected::Hello) => self.greeted(theirs)?,
            (Answer::Page(items, end, more), Expected::Page(from)) => {
                self.page(items, from, end, more)?;
            }
            (Answer::UnknownCursor, Expected::Page(Some(_))) => self.cursor_is_unknown(),
            (Answer::Records(records), Expected::Records) => self.fetched(records),
            (Answer::Compare(message), Expected::Compare) => self.compared(&message)?,
            (Answer::Done, Expected::Heard) => {}
            (Answer::Done, Expected::Receipts(receipts)) => {
                self.out.push(Output::Told(self.peer, receipts));
                // Once that is noted, what did not fit is due.
                let due = self.at + self.settings.debounce_ms.max(1);
                self.session.announce_at.get_or_insert(due);
            }
            (Answer::Later(ms), Expected::Compare) => {
                self.undo(&Expected::Compare);
                // Reading goes on meanwhile.
                self.session.rest_until = self.at + u64::from(ms).max(1);
            }
            (Answer::Later(ms), expected) => {
                self.undo(&expected);
                let until = self.at + u64::from(ms).max(1);
                self.session.wait_until = until;
                self.session.announce_at = self.session.announce_at.map(|due| due.max(until));
            }
            (Answer::Refused(why), expected) => {
                self.undo(&expected);
                self.session.state = SyncState::Refused(reason(&why));
                self.session.wait_until = self.at + DEFERRED_RETRY_MS;
            }
            (_, expected) => {
                self.undo(&expected);
                self.fault("an answer to something else");
            }
        }
        Ok(())
    }

    fn lost(&mut self, id: u64) {
        if let Some(expected) = self.session.expected.remove(&id) {
            self.undo(&expected);
            self.session.wait_until = self.session.wait_until.max(self.at + RETRY_MS);
        }
    }

    /// What was asked for did not come: it may be asked for again.
    fn undo(&mut self, expected: &Expected) {
        match expected {
            Expected::Page(_) => self.session.is_asking = false,
            Expected::Records => {
                for page in &mut self.session.pages {
                    page.is_fetching = false;
                }
            }
            Expected::Compare => {
                self.session.compare = None;
                self.session.want_compare();
            }
            Expected::Heard => {
                self.session.announced = 0;
                self.session.announce_at.get_or_insert(self.at + RETRY_MS);
            }
            Expected::Receipts(_) => {
                self.session.announce_at.get_or_insert(self.at + RETRY_MS);
            }
            Expected::Hello => {}
        }
    }

    // What a peer does wrong.

    pub(super) fn pay(&mut self, bytes: usize) -> Allowance {
        if self.view.is_mine(self.peer) {
            return Allowance::Fine;
        }
        let allowance = self.session.spent.frame(bytes, self.at, &self.settings.budget);
        self.enforce(allowance);
        allowance
    }

    /// Counts rows of the store that are gone through because the peer asks for it.
    pub(super) fn go_through(&mut self, rows: u64) {
        self.go_through_for(Work::Asked, rows);
    }

    /// Counts rows of the store that are gone through for the peer's sake.
    pub(super) fn go_through_for(&mut self, work: Work, rows: u64) {
        if !self.view.is_mine(self.peer) {
            self.session.spent.rows(work, rows, self.at, &self.settings.budget);
        }
    }

    /// Counts records that came, and entries that turned out to be new: what a peer calls new is its
    /// own word.
    pub(super) fn take_in(&mut self, records: usize, new_entries: usize) {
        if !self.view.is_mine(self.peer) {
            let taken = (records, new_entries);
            self.session.spent.take_in(taken, self.at, &self.settings.budget);
        }
    }

    /// How long it is waited before more is asked for.
    pub(super) fn rest_of_intake(&mut self) -> u64 {
        match self.view.is_mine(self.peer) {
            true => 0,
            false => self.session.spent.rest_of_intake(self.at, &self.settings.budget),
        }
    }

    /// How long it has to wait before more is gone through because it asks for it.
    pub(super) fn rest_of_rows(&mut self) -> u64 {
        self.rest_for(Work::Asked)
    }

    /// How long it has to wait before more is gone through for its sake.
    pub(super) fn rest_for(&mut self, work: Work) -> u64 {
        self.session.spent.rest_of_rows(work, self.at, &self.settings.budget)
    }

    /// Whether twice as much was gone through as may be because it asks for it.
    pub(super) fn is_far_over(&self) -> bool {
        self.session.spent.is_far_over_rows(Work::Asked, &self.settings.budget)
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

    pub(super) fn faults(&mut self, faults: Vec<Fault>) {
        for Fault(what) in faults {
            self.fault(&what);
        }
    }
}
