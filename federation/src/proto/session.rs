//! One peer, as the replicator remembers it while both run: what was asked, what came, what waits.

use super::budget::{Budget, Spent};
use super::compare::Comparison;
use super::limits::{FETCH_MAX, HELD_BYTES_MAX};
use super::message::{Cursor, Greeting, Item, Receipt};
use super::replicator::{DEFERRED_RETRY_MS, RETRY_MS};
use super::scrub::REST_MS_MAX;
use super::view::{Comparable, Offerer, Unreadable, View};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, StoreId};
use klnode_crdt::record::{RawRecord, Record, Refusal};
use klnode_crdt::time::WallTime;
use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, VecDeque};

/// What is known of a peer's and this node's sets, and when it was so. Never more than was seen.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SyncState {
    /// Not compared yet.
    #[default]
    Unknown,
    /// Records are on their way.
    Reading,
    /// Both held the same at that moment.
    Equal(WallTime),
    /// So many records were known to differ at that moment.
    Differs(usize, WallTime),
    /// The peer does not want to talk.
    Refused(String),
}

/// What an open request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Hello,
    /// A page after this cursor.
    Page(Option<Cursor>),
    /// What a page lacks, or a comparison found.
    Records,
    Compare,
    Heard,
    Receipts(Vec<Receipt>),
}

/// A record that came, in the order of the sender's outbox.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// How far the sender says its author is from it; none if it did not say.
    pub hop: Option<u8>,
    /// The record, verified; or as it came, with the reason why it is not one here yet.
    pub record: Result<Record, (RawRecord, Refusal)>,
}

/// Something a peer brought, to be judged, applied and answered with
/// [`super::Input::Applied`].
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Names it in the answer.
    pub id: u64,
    /// Who brought it.
    pub peer: AuthorId,
    /// From which store.
    pub store: StoreId,
    /// Whether a comparison found it, perhaps before it was reached in the peer's outbox: the cursor
    /// does not cover it.
    pub is_found: bool,
    /// The records.
    pub arrived: Vec<Arrived>,
    /// Entries that are released to this node from now on, or no longer.
    pub releases: Vec<(EntryId, bool)>,
    /// Proofs that an author equivocated; not yet checked.
    pub proofs: Vec<RawProof>,
    /// Distances of authors whose records are held already, as the sender states them.
    pub distances: Vec<(Digest, u8)>,
}

enum Slot {
    /// On its way, or delivered already.
    Missing(Option<u8>),
    Here(Box<Arrived>),
    Notice(EntryId, bool),
    Proof(Box<RawProof>),
}

impl Slot {
    /// A record without its payload waits: what explains that may be among what is missing.
    fn goes_ahead(&self) -> bool {
        let is_bare = |record: &Record| record.payload().is_none();
        matches!(self, Self::Here(arrived) if !arrived.record.as_ref().is_ok_and(is_bare))
    }
}

/// Rows on their way into the store.
pub(super) struct Page {
    /// Where it begins and ends in the peer's outbox; none for what a comparison found.
    pub(super) span: Option<(Option<Cursor>, Cursor)>,
    slots: Vec<Slot>,
    missing: BTreeMap<Digest, usize>,
    distances: Vec<(Digest, u8)>,
    /// Bytes of what was fetched and not delivered.
    held_bytes: usize,
    pub(super) is_fetching: bool,
    /// The delivery it is in.
    pub(super) delivered: Option<u64>,
}

/// Why a record of a peer was dropped.
pub(super) struct Fault(pub(super) String);

impl Page {
    pub(super) fn new(
        items: Vec<Item>,
        peer: AuthorId,
        span: (Option<Cursor>, Cursor),
        view: &dyn View,
        faults: &mut Vec<Fault>,
    ) -> Result<Self, Unreadable> {
        let offer = Offerer { peer, store: span.1.store };
        let mut page = Self::empty(Some(span));
        for item in items {
            match item {
                Item::Named(hop, digest) if view.knows(digest, offer)? => {
                    page.distances.push((digest, hop));
                }
                Item::Named(hop, digest) => page.want(Some(hop), digest),
                Item::Whole(hop, raw) => page.take(hop, raw, (view, offer), faults)?,
                Item::First(hop, raw) => {
                    // A later version's header names no entry that this one can read.
                    if let Ok(signed) = SignedHeader::read_back(&raw.header, raw.signature) {
                        page.slots.push(Slot::Notice(signed.header().entry, true));
                    }
                    page.take(hop, raw, (view, offer), faults)?;
                }
                Item::Opened(entries) => page.notice(entries, true),
                Item::Ended(entries) => page.notice(entries, false),
                Item::Proof(proof) => page.slots.push(Slot::Proof(proof)),
            }
        }
        Ok(page)
    }

    fn take(
        &mut self,
        hop: u8,
        raw: RawRecord,
        (view, offer): (&dyn View, Offerer),
        faults: &mut Vec<Fault>,
    ) -> Result<(), Unreadable> {
        let digest = SignedHeader::digest_of(&raw.header);
        if view.knows(digest, offer)? {
            self.distances.push((digest, hop));
        } else if let Some(arrived) = verified(Some(hop), raw, faults) {
            self.slots.push(Slot::Here(Box::new(arrived)));
        }
        Ok(())
    }

    fn notice(&mut self, entries: Vec<EntryId>, is_open: bool) {
        self.slots.extend(entries.into_iter().map(|entry| Slot::Notice(entry, is_open)));
    }

    /// What a comparison found that the peer has and this node lacks.
    pub(super) fn of_missing(digests: &[Digest]) -> Self {
        let mut page = Self::empty(None);
        for digest in digests {
            page.want(None, *digest);
        }
        page
    }

    fn empty(span: Option<(Option<Cursor>, Cursor)>) -> Self {
        let (slots, missing, distances) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (held_bytes, is_fetching, delivered) = (0, false, None);
        Self { span, slots, missing, distances, held_bytes, is_fetching, delivered }
    }

    /// Keeps a place for a record; what is named again has one.
    fn want(&mut self, hop: Option<u8>, digest: Digest) {
        if let Vacant(place) = self.missing.entry(digest) {
            place.insert(self.slots.len());
            self.slots.push(Slot::Missing(hop));
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether it is to be delivered: all of it, or a part where the whole takes too much room.
    pub(super) fn is_ready(&self) -> bool {
        let is_heavy = self.held_bytes > HELD_BYTES_MAX && !self.is_fetching;
        self.delivered.is_none() && (self.is_complete() || is_heavy)
    }

    pub(super) fn missing(&self) -> Vec<Digest> {
        self.missing.keys().take(FETCH_MAX).copied().collect()
    }

    /// Takes in what a fetch brought. When it brought nothing, the rest is gone at the sender, and
    /// what took its place comes later in the outbox.
    pub(super) fn fetched(&mut self, records: Vec<RawRecord>, faults: &mut Vec<Fault>) {
        self.is_fetching = false;
        let before = self.missing.len();
        for raw in records {
            let digest = SignedHeader::digest_of(&raw.header);
            let Some(at) = self.missing.remove(&digest) else {
                faults.push(Fault("a record that was not asked for".into()));
                continue;
            };
            let Slot::Missing(hop) = self.slots[at] else { continue };
            let bytes = raw.payload.as_ref().map_or(0, |payload| raw.header.len() + payload.len());
            self.held_bytes += bytes;
            if let Some(arrived) = verified(hop, raw, faults) {
                self.slots[at] = Slot::Here(Box::new(arrived));
            }
        }
        if self.missing.len() == before {
            self.missing.clear();
        }
    }

    /// All of it; or, as long as something is missing, the records that can go ahead.
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
            match std::mem::replace(slot, Slot::Missing(None)) {
                Slot::Here(arrived) => delivery.arrived.push(*arrived),
                Slot::Notice(entry, is_open) => delivery.releases.push((entry, is_open)),
                Slot::Proof(proof) => delivery.proofs.push(*proof),
                Slot::Missing(_) => {}
            }
        }
        delivery
    }
}

/// Checks a record; what is wrong with it is the sender's fault unless it is merely newer.
fn verified(hop: Option<u8>, raw: RawRecord, faults: &mut Vec<Fault>) -> Option<Arrived> {
    match Record::verify(&raw) {
        Ok(record) => Some(Arrived { hop, record: Ok(record) }),
        Err(refusal) if refusal.blames_sender() => {
            faults.push(Fault(refusal.to_string()));
            None
        }
        Err(refusal) => Some(Arrived { hop, record: Err((raw, refusal)) }),
    }
}

/// The first connections in a window are compared at once; whoever comes back more often waits for
/// the rest after the comparison before.
const CONNECTIONS_FREE: u64 = 3;

/// What is compared with a peer that asks, kept for its next questions.
pub(super) struct Answering {
    /// When it last asked.
    pub(super) since: u64,
    /// How often it has asked about these.
    pub(super) rounds: u32,
    pub(super) items: Vec<Comparable>,
}

/// What is remembered of one peer.
#[derive(Default)]
pub(super) struct Session {
    pub(super) is_connected: bool,
    pub(super) expected: BTreeMap<u64, Expected>,
    pub(super) theirs: Option<Greeting>,
    /// How far the peer's outbox was asked for, ahead of what is applied.
    pub(super) asked: Option<Cursor>,
    pub(super) is_asking: bool,
    pub(super) is_at_end: bool,
    /// The peer's outbox has grown since a page of it was asked for.
    pub(super) has_grown: bool,
    pub(super) pages: VecDeque<Page>,
    /// How far the peer has asked for this node's outbox.
    pub(super) their_position: u64,
    /// The position that was last announced to the peer.
    pub(super) announced: u64,
    pub(super) announce_at: Option<u64>,
    /// What the peer is to hear is not told before, since it could not be noted that it was heard.
    pub(super) tell_at: Option<u64>,
    /// Nothing is asked before.
    pub(super) wait_until: u64,
    pub(super) wants_compare: bool,
    /// The operator wants to know now, whether or not the peer has read everything.
    pub(super) is_urgent: bool,
    pub(super) compare: Option<Comparison>,
    pub(super) answering: Option<Answering>,
    /// The peer's outbox is to be read from its start.
    pub(super) must_reread: bool,
    /// It is, and nothing of it is settled yet: whoever begins anew meanwhile begins there again.
    pub(super) is_rereading: bool,
    /// How often that was done of late.
    rereads: u32,
    /// It is not done again before.
    pub(super) reread_at: u64,
    /// Comparisons since the last one that found nothing.
    pub(super) repeats: u32,
    pub(super) compared_at: u64,
    /// When the last comparison of this side began.
    pub(super) began_at: u64,
    /// The same by the clock: what it finds is so of what was held then.
    pub(super) began: WallTime,
    /// What was read is not compared before.
    pub(super) rest_until: u64,
    /// When it was last tried to do what is due.
    pub(super) driven_at: u64,
    pub(super) clock_ahead_ms: i64,
    pub(super) state: SyncState,
    pub(super) spent: Spent,
}

impl Session {
    /// There is a new connection; or the one there is begins anew because this side wants that, as when
    /// its operator lets more in: then nobody is made to wait.
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
        // Who was away for a while is compared at once; who comes and goes would never let it rest.
        if connections <= CONNECTIONS_FREE {
            self.rest_until = 0;
        }
    }

    /// What was under way is begun again; what paces the peer stays. So does that its outbox is to be
    /// read from the start: the store may have fallen back to a cursor that the peer knows.
    pub(super) fn renew(&mut self, at: u64) {
        *self = Self {
            wants_compare: true,
            compared_at: at,
            // The peer itself may have asked for any patience.
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

    /// The peer's outbox is read from its start. Once is no fault. Whoever brings it about again and
    /// again, on one connection or on many, has much written down each time.
    pub(super) fn reread(&mut self, at: u64, budget: &Budget) {
        if at >= self.reread_at.saturating_add(budget.window_ms) {
            self.rereads = 0;
        }
        self.rereads += 1;
        self.reread_at = at + (RETRY_MS << self.rereads.min(8)).min(DEFERRED_RETRY_MS);
        (self.asked, self.must_reread, self.is_rereading) = (None, false, true);
        self.want_compare();
    }

    /// For a reason that does not bear waiting.
    pub(super) fn want_compare(&mut self) {
        (self.wants_compare, self.rest_until) = (true, 0);
    }

    /// When time alone next gives something to do. What was due and could not be done waits for
    /// something else to happen, or for a store that can be read.
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

    pub(super) fn expects(&self, what: &Expected) -> bool {
        self.expected.values().any(|expected| expected == what)
    }
}
