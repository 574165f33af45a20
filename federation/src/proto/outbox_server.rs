//! The serving half of the state machine: answers a peer's requests for this node's outbox and
//! records.

use super::limits::{
    COMPARE_ROUNDS_MAX, FETCH_MAX, INLINE_BYTES_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, RECEIPTS_MAX,
    ROW_BYTES,
};
use super::message::{OutboxCursor, OutboxItem, SyncRequest, SyncResponse};
use super::peer_budget::{Allowance, ReadPurpose};
use super::peer_session::{RETRY_MS, ReconcileServer, SyncState};
use super::reconciliation;
use super::replicator::{NOT_PAIRED, Output, PeerStep};
use super::store_view::{Offerer, OutboxTarget, StoreUnavailable};
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::Digest;
use klnode_crdt::record::RawRecord;

/// Records loaded at once for a fetch; each may be large.
const READ_AT_ONCE: usize = 16;

/// Maximum bytes of records loaded for one page, even if the page only names them, because other
/// peers wait meanwhile.
const PAGE_READ_MAX: usize = 8 * 1024 * 1024;

/// This many kept records count as one row.
const KEPT_ROWS: u64 = 8;

/// Rows charged for loading a record, in addition to those for its bytes, because it is decoded.
const RECORD_ROWS: u64 = 2;

/// Rows charged for a proof, because two signatures are verified.
const PROOF_ROWS: u64 = 64;

/// Rows charged for one receipt, because it is written and compared with those of all other peers.
const RECEIPT_ROWS: u64 = 16;

/// An outbox row, encoded for a page.
struct PageItem {
    item: OutboxItem,
    /// Approximate size in the page, in bytes.
    bytes: usize,
    /// Bytes loaded from the store for it.
    read: usize,
    /// Rows charged for these bytes.
    rows: u64,
}

impl PageItem {
    /// An item for which no record was loaded.
    fn notice(item: OutboxItem) -> Self {
        Self { item, bytes: 18, read: 0, rows: 0 }
    }

    /// An item for which a record was loaded, even if only its name is sent.
    fn record(item: OutboxItem, bytes: usize, read: usize) -> Self {
        Self { item, bytes, read, rows: (read / ROW_BYTES) as u64 }
    }
}

impl PeerStep<'_> {
    pub(super) fn asked(&mut self, exchange: u64, frame: &[u8]) {
        if self.session.spent.is_away(self.at) {
            return;
        }
        let answer = self.answer(frame).unwrap_or(SyncResponse::Later(RETRY_MS as u32));
        self.out.push(Output::Answer(exchange, answer.encode()));
        let records = answer.records();
        if records > 0 {
            self.out.push(Output::Served(self.peer, records));
        }
    }

    fn answer(&mut self, frame: &[u8]) -> Result<SyncResponse, StoreUnavailable> {
        if !self.view.is_approved(self.peer) {
            return Ok(SyncResponse::Refused(NOT_PAIRED.into()));
        }
        match self.charge_frame(frame.len()) {
            Allowance::Fine => {}
            Allowance::Wait(ms) | Allowance::Away(ms) => {
                return Ok(SyncResponse::Later(u32::try_from(ms).unwrap_or(u32::MAX)));
            }
        }
        let ask = match SyncRequest::decode(frame) {
            Ok(ask) => ask,
            Err(refusal) => {
                self.fault(&format!("a question that cannot be read: {refusal}"));
                // Wire text: peers recognise the beginning of this reason.
                return Ok(SyncResponse::Refused(format!("that cannot be read: {refusal}")));
            }
        };
        Ok(match ask {
            SyncRequest::Hello(theirs) => {
                let ours = self.greeting()?;
                let is_again = self.session.theirs.is_some();
                self.greeted(theirs)?;
                if is_again {
                    // A peer that starts over does not know how far its outbox was read.
                    let is_asking = self.session.is_asking;
                    (self.session.is_at_end, self.session.has_grown) = (false, is_asking);
                }
                SyncResponse::Hello(ours)
            }
            SyncRequest::Changes(cursor, max) => self.serve_changes(cursor, max)?,
            SyncRequest::Fetch(digests) if digests.len() > FETCH_MAX => {
                SyncResponse::Refused(format!("more than {FETCH_MAX} records at once"))
            }
            SyncRequest::Fetch(digests) => self.serve_records(&digests)?,
            SyncRequest::Notify(_) => {
                (self.session.is_at_end, self.session.has_grown) = (false, self.session.is_asking);
                SyncResponse::Done
            }
            SyncRequest::Compare(is_first, message) => self.serve_compare(is_first, &message)?,
            SyncRequest::Acknowledge(receipts) if receipts.is_empty() => SyncResponse::Done,
            SyncRequest::Acknowledge(receipts) if receipts.len() > RECEIPTS_MAX => {
                SyncResponse::Refused(format!("more than {RECEIPTS_MAX} receipts at once"))
            }
            SyncRequest::Acknowledge(receipts) => {
                if let Some(later) = self.later(ReadPurpose::Asked) {
                    return Ok(later);
                }
                self.charge_rows(receipts.len() as u64 * RECEIPT_ROWS);
                self.out.push(Output::Received(self.peer, receipts));
                SyncResponse::Done
            }
        })
    }

    /// `Later` if the peer's budget for this work is spent.
    fn later(&mut self, work: ReadPurpose) -> Option<SyncResponse> {
        let ms = self.rows_wait_for(work);
        (ms > 0).then(|| SyncResponse::Later(u32::try_from(ms).unwrap_or(u32::MAX)))
    }

    fn serve_changes(
        &mut self,
        cursor: Option<OutboxCursor>,
        max: u32,
    ) -> Result<SyncResponse, StoreUnavailable> {
        if let Some(later) = self.later(ReadPurpose::Read) {
            return Ok(later);
        }
        let after = match cursor {
            None => {
                if let Some(later) = self.later(ReadPurpose::Asked) {
                    return Ok(later);
                }
                self.charge_rows(self.view.outbox_head(self.peer)?);
                self.out.push(Output::Restart(self.peer));
                0
            }
            Some(cursor) => {
                if self.view.cursor_at(self.peer, cursor.position)? != Some(cursor) {
                    return Ok(SyncResponse::UnknownCursor);
                }
                cursor.position
            }
        };
        self.session.their_position = after;
        let max = (max as usize).clamp(1, PAGE_ITEMS_MAX);
        let outgoing = self.view.outbox(self.peer, after, max)?;
        self.charge_rows_for(ReadPurpose::Read, outgoing.len() as u64 * RECORD_ROWS);
        let (mut items, mut end) = (Vec::new(), after);
        let (mut bytes, mut read, mut rows) = (0, 0, 0);
        let mut is_full = outgoing.len() == max;
        for (position, what) in outgoing {
            if let Some(said) = self.item(what)? {
                rows += said.rows;
                if bytes + said.bytes > PAGE_BYTES_MAX {
                    is_full = true;
                    break;
                }
                (bytes, read) = (bytes + said.bytes, read + said.read);
                put(&mut items, said.item);
            }
            end = position;
            if read > PAGE_READ_MAX {
                is_full = true;
                break;
            }
        }
        self.charge_rows_for(ReadPurpose::Read, rows);
        // After a sweep the last row may come before the head.
        let head = self.view.outbox_head(self.peer)?;
        end = if is_full { end } else { head.max(end) };
        let more = is_full && end < head;
        if !more {
            self.session.their_position = head;
        }
        let end = self.view.cursor_at(self.peer, end)?.ok_or(StoreUnavailable)?;
        Ok(SyncResponse::Page(items, end, more))
    }

    /// The item for a row, or `None` if the peer may not have it.
    fn item(&self, what: OutboxTarget) -> Result<Option<PageItem>, StoreUnavailable> {
        Ok(match what {
            OutboxTarget::Opened(entry) => Some(PageItem::notice(OutboxItem::Opened(vec![entry]))),
            OutboxTarget::Ended(entry) => Some(PageItem::notice(OutboxItem::Ended(vec![entry]))),
            OutboxTarget::Proof(author) => {
                let proof = self.view.proof(self.peer, author)?;
                proof.map(|proof| {
                    let bytes = proof.headers.0.len() + proof.headers.1.len() + 256;
                    let item = OutboxItem::Proof(Box::new(proof));
                    PageItem { item, bytes, read: 0, rows: PROOF_ROWS }
                })
            }
            OutboxTarget::Record(digest) => {
                self.view.record(self.peer, digest)?.map(|(hop, raw)| {
                    let read = size(&raw);
                    match read + 96 <= INLINE_BYTES_MAX {
                        true => PageItem::record(OutboxItem::Whole(hop, raw), read + 96, read),
                        false => PageItem::record(OutboxItem::Named(hop, digest), 64, read),
                    }
                })
            }
            OutboxTarget::Returned(digest) => {
                let held = self.view.record(self.peer, digest)?;
                held.map(|(hop, raw)| {
                    PageItem::record(OutboxItem::Named(hop, digest), 64, size(&raw))
                })
            }
        })
    }

    fn serve_records(&mut self, digests: &[Digest]) -> Result<SyncResponse, StoreUnavailable> {
        if let Some(later) = self.later(ReadPurpose::Read) {
            return Ok(later);
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        for part in digests.chunks(READ_AT_ONCE) {
            let found = self.view.records_for(self.peer, part)?;
            let read = found.iter().map(size).sum::<usize>() / ROW_BYTES;
            self.charge_rows_for(ReadPurpose::Read, part.len() as u64 * RECORD_ROWS + read as u64);
            for raw in found {
                bytes += size(&raw) + 96;
                // One record always fits into a frame.
                if bytes > PAGE_BYTES_MAX && !records.is_empty() {
                    return Ok(SyncResponse::Records(records));
                }
                records.push(raw);
            }
        }
        Ok(SyncResponse::Records(records))
    }

    fn serve_compare(
        &mut self,
        is_first: bool,
        message: &[u8],
    ) -> Result<SyncResponse, StoreUnavailable> {
        let Some(theirs) = self.session.theirs else {
            return Ok(SyncResponse::Refused("greet first".into()));
        };
        // A peer that sends more messages than any comparison needs causes a new read, and pays for
        // it.
        let is_kept = |kept: &ReconcileServer| !is_first && kept.rounds < COMPARE_ROUNDS_MAX;
        let (rounds, items) = match self.session.answering.take().filter(is_kept) {
            Some(ReconcileServer { rounds, items, .. }) => {
                self.charge_rows(items.len() as u64 / KEPT_ROWS);
                (rounds + 1, items)
            }
            None => {
                // A comparison that has begun is not interrupted: it would start over and cost as
                // much again.
                let later = self.later(ReadPurpose::Asked);
                if let Some(later) = later.filter(|_| is_first || self.is_far_over()) {
                    return Ok(later);
                }
                let offer = Offerer { peer: self.peer, store: theirs.store };
                let (items, rows) = self.view.comparable(offer)?;
                self.charge_rows(rows.max(items.len() as u64));
                (1, items)
            }
        };
        let Some(answer) = reconciliation::answer(&items, message) else {
            self.fault("a malformed comparison");
            return Ok(SyncResponse::Refused("that is no comparison".into()));
        };
        if !answer.is_empty() {
            self.session.answering = Some(ReconcileServer { since: self.at, rounds, items });
        }
        if is_first && answer.is_empty() {
            (self.session.wants_compare, self.session.compared_at) = (false, self.at);
            self.session.state = SyncState::Equal(self.view.now());
        }
        Ok(SyncResponse::Compare(answer))
    }
}

fn size(raw: &RawRecord) -> usize {
    raw.header.len() + raw.payload.as_ref().map_or(0, Vec::len)
}

/// Appends an item to a page. Adjacent notices are merged, and a record's kind can express that its
/// entry was released just before.
fn put(page: &mut Vec<OutboxItem>, item: OutboxItem) {
    match (page.last_mut(), item) {
        (Some(OutboxItem::Opened(held)), OutboxItem::Opened(more))
        | (Some(OutboxItem::Ended(held)), OutboxItem::Ended(more)) => held.extend(more),
        (Some(OutboxItem::Opened(held)), OutboxItem::Whole(hop, raw)) => {
            let signed = SignedHeader::read_back(&raw.header, raw.signature);
            if !signed.is_ok_and(|signed| held.last() == Some(&signed.header().entry)) {
                return page.push(OutboxItem::Whole(hop, raw));
            }
            held.pop();
            if held.is_empty() {
                page.pop();
            }
            page.push(OutboxItem::First(hop, raw));
        }
        (_, item) => page.push(item),
    }
}
