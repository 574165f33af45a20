//! Protocol state of one peer: open requests, received pages, pending comparison and timers.

use super::limits::{FETCH_MAX, HELD_BYTES_MAX};
use super::message::{ErasureReceipt, Greeting, OutboxCursor, OutboxItem};
use super::peer_budget::{Budget, PeerCosts};
use super::reconciliation::Reconciliation;
use super::store_view::{ComparedRecord, Offerer, StoreAccess, StoreUnavailable};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, StoreId};
use klnode_crdt::record::{RawRecord, Record, RecordError};
use klnode_crdt::time::WallTime;
use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, VecDeque};

/// Wait after a failure, and after a deferred record, before the next request.
pub(super) const RETRY_MS: u64 = 1_000;
pub(super) const DEFERRED_RETRY_MS: u64 = 30_000;
/// Maximum rest after a comparison before newly read records are compared.
pub(super) const REST_MS_MAX: u64 = 30_000;
/// Time in milliseconds for which a comparison's records are kept for the peer's next message.
pub(super) const KEPT_MS: u64 = 10_000;

/// Whether the record sets of a peer and this node were equal, and when. Never claims more than a
/// comparison has shown.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SyncState {
    /// Not compared yet.
    #[default]
    Unknown,
    /// Records are being transferred.
    Reading,
    /// Both held the same records at that time.
    Equal(WallTime),
    /// This many records were known to differ at that time.
    Differs(usize, WallTime),
    /// The peer refuses to talk, for this reason.
    Refused(String),
}

/// The purpose of an open request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    Hello,
    /// A page after this cursor.
    Page(Option<OutboxCursor>),
    /// Missing records of a page or of a comparison.
    Records,
    Compare,
    Heard,
    Receipts(Vec<ErasureReceipt>),
}

/// A received record, in the order of the sender's outbox.
#[derive(Clone, Debug)]
pub struct ReceivedRecord {
    /// The sender's stated distance to the author; `None` if it stated none.
    pub hop: Option<u8>,
    /// The verified record, or the raw record with the reason why it cannot be read here yet.
    pub record: Result<Record, (RawRecord, RecordError)>,
}

/// Records and notices from a peer, to be judged, applied and answered with
/// [`super::ProtocolInput::Applied`].
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Identifies the delivery in [`super::ProtocolInput::Applied`].
    pub id: u64,
    /// The peer that sent it.
    pub peer: AuthorId,
    /// The store the peer read it from.
    pub store: StoreId,
    /// True if a comparison found the records, possibly ahead of their position in the peer's
    /// outbox: the cursor does not cover them.
    pub is_found: bool,
    /// Records in the order of the outbox.
    pub arrived: Vec<ReceivedRecord>,
    /// Entries that are released to this node from now on (`true`) or no longer (`false`).
    pub releases: Vec<(EntryId, bool)>,
    /// Proofs that an author equivocated; not verified yet.
    pub proofs: Vec<RawProof>,
    /// The sender's stated distances of authors whose records are already held.
    pub distances: Vec<(Digest, u8)>,
}

enum DeliverySlot {
    /// Still in flight, or already delivered.
    Missing(Option<u8>),
    Here(Box<ReceivedRecord>),
    Notice(EntryId, bool),
    Proof(Box<RawProof>),
}

impl DeliverySlot {
    /// True if the record can be applied before the rest. A record without its payload waits,
    /// because the missing records may explain it.
    fn goes_ahead(&self) -> bool {
        let is_bare = |record: &Record| record.payload().is_none();
        matches!(self, Self::Here(arrived) if !arrived.record.as_ref().is_ok_and(is_bare))
    }
}

/// A page of rows on its way into the store.
pub(super) struct InboundPage {
    /// Start and end in the peer's outbox; `None` for records that a comparison found.
    pub(super) span: Option<(Option<OutboxCursor>, OutboxCursor)>,
    slots: Vec<DeliverySlot>,
    missing: BTreeMap<Digest, usize>,
    distances: Vec<(Digest, u8)>,
    /// Bytes of records that were fetched and not delivered yet.
    held_bytes: usize,
    pub(super) is_fetching: bool,
    /// Id of the delivery the page is part of.
    pub(super) delivered: Option<u64>,
}

/// Why a peer's record was dropped.
pub(super) struct RecordFault(pub(super) String);

impl InboundPage {
    pub(super) fn new(
        items: Vec<OutboxItem>,
        peer: AuthorId,
        span: (Option<OutboxCursor>, OutboxCursor),
        view: &dyn StoreAccess,
        faults: &mut Vec<RecordFault>,
    ) -> Result<Self, StoreUnavailable> {
        let offer = Offerer { peer, store: span.1.store };
        let mut page = Self::empty(Some(span));
        for item in items {
            match item {
                OutboxItem::Named(hop, digest) if view.knows(digest, offer)? => {
                    page.distances.push((digest, hop));
                }
                OutboxItem::Named(hop, digest) => page.want(Some(hop), digest),
                OutboxItem::Whole(hop, raw) => page.take(hop, raw, (view, offer), faults)?,
                OutboxItem::First(hop, raw) => {
                    // The header of a later version names no entry that this version can read.
                    if let Ok(signed) = SignedHeader::read_back(&raw.header, raw.signature) {
                        page.slots.push(DeliverySlot::Notice(signed.header().entry, true));
                    }
                    page.take(hop, raw, (view, offer), faults)?;
                }
                OutboxItem::Opened(entries) => page.notice(entries, true),
                OutboxItem::Ended(entries) => page.notice(entries, false),
                OutboxItem::Proof(proof) => page.slots.push(DeliverySlot::Proof(proof)),
            }
        }
        Ok(page)
    }

    fn take(
        &mut self,
        hop: u8,
        raw: RawRecord,
        (view, offer): (&dyn StoreAccess, Offerer),
        faults: &mut Vec<RecordFault>,
    ) -> Result<(), StoreUnavailable> {
        let digest = SignedHeader::digest_of(&raw.header);
        if view.knows(digest, offer)? {
            self.distances.push((digest, hop));
        } else if let Some(arrived) = verified(Some(hop), raw, faults) {
            self.slots.push(DeliverySlot::Here(Box::new(arrived)));
        }
        Ok(())
    }

    fn notice(&mut self, entries: Vec<EntryId>, is_open: bool) {
        self.slots.extend(entries.into_iter().map(|entry| DeliverySlot::Notice(entry, is_open)));
    }

    /// A page of records that, according to a comparison, the peer has and this node lacks.
    pub(super) fn of_missing(digests: &[Digest]) -> Self {
        let mut page = Self::empty(None);
        for digest in digests {
            page.want(None, *digest);
        }
        page
    }

    fn empty(span: Option<(Option<OutboxCursor>, OutboxCursor)>) -> Self {
        let (slots, missing, distances) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (held_bytes, is_fetching, delivered) = (0, false, None);
        Self { span, slots, missing, distances, held_bytes, is_fetching, delivered }
    }

    /// Reserves a slot for a record; a digest that is named twice has one slot.
    fn want(&mut self, hop: Option<u8>, digest: Digest) {
        if let Vacant(place) = self.missing.entry(digest) {
            place.insert(self.slots.len());
            self.slots.push(DeliverySlot::Missing(hop));
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// True if the page should be delivered: it is complete, or a part of it takes too much memory.
    pub(super) fn is_ready(&self) -> bool {
        let is_heavy = self.held_bytes > HELD_BYTES_MAX && !self.is_fetching;
        self.delivered.is_none() && (self.is_complete() || is_heavy)
    }

    pub(super) fn missing(&self) -> Vec<Digest> {
        self.missing.keys().take(FETCH_MAX).copied().collect()
    }

    /// Stores fetched records. If the fetch returned nothing, the rest no longer exists at the
    /// sender, and its replacements follow later in the outbox.
    pub(super) fn fetched(&mut self, records: Vec<RawRecord>, faults: &mut Vec<RecordFault>) {
        self.is_fetching = false;
        let before = self.missing.len();
        for raw in records {
            let digest = SignedHeader::digest_of(&raw.header);
            let Some(at) = self.missing.remove(&digest) else {
                faults.push(RecordFault("a record that was not asked for".into()));
                continue;
            };
            let DeliverySlot::Missing(hop) = self.slots[at] else { continue };
            let bytes = raw.payload.as_ref().map_or(0, |payload| raw.header.len() + payload.len());
            self.held_bytes += bytes;
            if let Some(arrived) = verified(hop, raw, faults) {
                self.slots[at] = DeliverySlot::Here(Box::new(arrived));
            }
        }
        if self.missing.len() == before {
            self.missing.clear();
        }
    }

    /// Delivers the whole page or, while records are missing, those that can go ahead.
    pub(super) fn deliver(&mut self, id: u64, peer: AuthorId, store: StoreId) -> Delivery {
        (self.delivered, self.held_bytes) = (Some(id), 0);
        let is_complete = self.is_complete();
        let mut delivery = Delivery {
            id,
            peer,
            store,
            is_found: self.span.is_none(),
            arrived: Vec::new(),
            releases: Vec::new(),
            proofs: Vec::new(),
            distances: std::mem::take(&mut self.distances),
        };
        for slot in self.slots.iter_mut().filter(|slot| is_complete || slot.goes_ahead()) {
            match std::mem::replace(slot, DeliverySlot::Missing(None)) {
                DeliverySlot::Here(arrived) => delivery.arrived.push(*arrived),
                DeliverySlot::Notice(entry, is_open) => delivery.releases.push((entry, is_open)),
                DeliverySlot::Proof(proof) => delivery.proofs.push(*proof),
                DeliverySlot::Missing(_) => {}
            }
        }
        delivery
    }
}

/// Verifies a record. A failure counts as the sender's fault, unless the record has a newer format.
fn verified(
    hop: Option<u8>,
    raw: RawRecord,
    faults: &mut Vec<RecordFault>,
) -> Option<ReceivedRecord> {
    match Record::verify(&raw) {
        Ok(record) => Some(ReceivedRecord { hop, record: Ok(record) }),
        Err(refusal) if refusal.blames_sender() => {
            faults.push(RecordFault(refusal.to_string()));
            None
        }
        Err(refusal) => Some(ReceivedRecord { hop, record: Err((raw, refusal)) }),
    }
}

/// The first connections in a window are compared at once. A peer that reconnects more often waits
/// for the rest period after the previous comparison.
const CONNECTIONS_FREE: u64 = 3;

/// The records of a comparison that the peer began, kept for its next messages.
pub(super) struct ReconcileServer {
    /// Time of the peer's last message.
    pub(super) since: u64,
    /// Number of messages answered from these records.
    pub(super) rounds: u32,
    pub(super) items: Vec<ComparedRecord>,
}

#[derive(Default)]
pub(super) struct PeerSession {
    pub(super) is_connected: bool,
    pub(super) expected: BTreeMap<u64, RequestPurpose>,
    pub(super) theirs: Option<Greeting>,
    /// How far the peer's outbox was requested, ahead of the applied position.
    pub(super) asked: Option<OutboxCursor>,
    pub(super) is_asking: bool,
    pub(super) is_at_end: bool,
    /// True if the peer's outbox has grown since the last page request.
    pub(super) has_grown: bool,
    pub(super) pages: VecDeque<InboundPage>,
    /// How far the peer has requested this node's outbox.
    pub(super) their_position: u64,
    /// The last position announced to the peer.
    pub(super) announced: u64,
    pub(super) announce_at: Option<u64>,
    /// Receipts are not sent before this time, because recording their delivery failed.
    pub(super) tell_at: Option<u64>,
    /// No request is sent before this time.
    pub(super) wait_until: u64,
    pub(super) wants_compare: bool,
    /// The operator asked for a comparison now, even if the peer has not read everything.
    pub(super) is_urgent: bool,
    pub(super) compare: Option<Reconciliation>,
    pub(super) answering: Option<ReconcileServer>,
    /// True if the peer's outbox must be read from the start.
    pub(super) must_reread: bool,
    /// True while the peer's outbox is read from the start and no page was applied yet. If the session
    /// ends in that state, the next one reads from the start again.
    pub(super) is_rereading: bool,
    /// Number of recent reads from the start.
    rereads: u32,
    /// No further read from the start before this time.
    pub(super) reread_at: u64,
    /// Comparisons since the last one without differences.
    pub(super) repeats: u32,
    pub(super) compared_at: u64,
    /// When this node's last comparison began.
    pub(super) began_at: u64,
    /// The same as wall time. The result of the comparison applies to this time.
    pub(super) began: WallTime,
    /// Newly read records are not compared before this time.
    pub(super) rest_until: u64,
    /// When the session last tried to do all work that is due.
    pub(super) driven_at: u64,
    pub(super) clock_ahead_ms: i64,
    pub(super) state: SyncState,
    pub(super) spent: PeerCosts,
}

impl PeerSession {
    /// Handles a new connection. Also called to restart the session on an open connection, for
    /// example after the operator changed the filter; then there is no wait.
    pub(super) fn connected(&mut self, at: u64, budget: &Budget) {
        let connections = match self.is_connected {
            true => {
                self.reread_at = 0;
                0
            }
            false => self.spent.connection(at, budget),
        };
        self.renew(at);
        self.is_connected = true;
        // A peer that returns after a while is compared at once. A peer that reconnects constantly
        // would otherwise cause constant comparisons.
        if connections <= CONNECTIONS_FREE {
            self.rest_until = 0;
        }
    }

    /// Restarts all work in progress but keeps the peer's pacing. Also keeps the need to read from
    /// the start, because the store may have been restored to a cursor that the peer knows.
    pub(super) fn renew(&mut self, at: u64) {
        *self = Self {
            wants_compare: true,
            compared_at: at,
            // The peer may have asked for a wait of any length, so it is capped.
            rest_until: self.rest_until.min(at + REST_MS_MAX),
            tell_at: self.tell_at,
            must_reread: self.must_reread || self.is_rereading,
            rereads: self.rereads,
            reread_at: self.reread_at,
            state: std::mem::take(&mut self.state),
            spent: self.spent,
            ..Self::default()
        };
    }

    /// Starts reading the peer's outbox from the beginning. The first time is free; a peer that
    /// causes it repeatedly, on one connection or several, waits longer each time, because each
    /// time costs many writes.
    pub(super) fn reread(&mut self, at: u64, budget: &Budget) {
        if at >= self.reread_at.saturating_add(budget.window_ms) {
            self.rereads = 0;
        }
        self.rereads += 1;
        self.reread_at = at + (RETRY_MS << self.rereads.min(8)).min(DEFERRED_RETRY_MS);
        (self.asked, self.must_reread, self.is_rereading) = (None, false, true);
        self.want_compare();
    }

    /// Requests a comparison without a rest period.
    pub(super) fn want_compare(&mut self) {
        (self.wants_compare, self.rest_until) = (true, 0);
    }

    /// The next time at which the session has work due to time alone. Work that was due and could
    /// not be done waits for another input or for the store to become readable.
    pub(super) fn next_at(&self, scrub_ms: u64) -> Option<u64> {
        let is_ahead = |due: &u64| *due > self.driven_at;
        let or_again = |due: u64| if is_ahead(&due) { due } else { self.driven_at + RETRY_MS };
        let scrub = self.compared_at.saturating_add(scrub_ms).max(self.wait_until);
        let rest = self.wants_compare.then_some(self.rest_until);
        let due = [
            self.announce_at.map(or_again),
            self.tell_at.map(or_again),
            self.theirs.map(|_| or_again(scrub)),
            Some(self.wait_until).filter(is_ahead),
            rest.filter(is_ahead),
        ];
        due.into_iter().flatten().min()
    }

    pub(super) fn expects(&self, what: &RequestPurpose) -> bool {
        self.expected.values().any(|expected| expected == what)
    }
}
