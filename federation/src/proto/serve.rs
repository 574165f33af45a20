//! The answering half of the machine: what a peer is told of this node's outbox and records.

use super::budget::{Allowance, Work};
use super::compare;
use super::limits::{
    COMPARE_ROUNDS_MAX, FETCH_MAX, INLINE_BYTES_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, RECEIPTS_MAX,
    ROW_BYTES,
};
use super::message::{Answer, Ask, Cursor, Item};
use super::replicator::{NOT_PAIRED, Output, RETRY_MS, Step};
use super::session::{Answering, SyncState};
use super::view::{Offerer, Outgoing, Unreadable};
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::Digest;
use klnode_crdt::record::RawRecord;

/// Records that are read at once, which may be large.
const READ_AT_ONCE: usize = 16;

/// Bytes of records that are read for one page, though it may only name them: everybody else waits
/// meanwhile.
const PAGE_READ_MAX: usize = 8 * 1024 * 1024;

/// What is compared is kept so long for the next question of the same comparison, in milliseconds.
pub(super) const KEPT_MS: u64 = 10_000;

/// So many of them are counted as one row.
const KEPT_ROWS: u64 = 8;

/// Rows that a record which is read is counted as, beside those for its bytes: it is decoded.
const RECORD_ROWS: u64 = 2;

/// Rows that a proof is counted as, likewise: two signatures are checked.
const PROOF_ROWS: u64 = 64;

/// Rows that one receipt is counted as: it is written, and all other peers' are looked at.
const RECEIPT_ROWS: u64 = 16;

/// A row of an outbox, as it is said.
struct Said {
    item: Item,
    /// About how many bytes it takes.
    bytes: usize,
    /// How many were read for it,
    read: usize,
    /// and as how many rows that counts.
    rows: u64,
}

impl Said {
    /// Nothing was read for it.
    fn notice(item: Item) -> Self {
        Self { item, bytes: 18, read: 0, rows: 0 }
    }

    /// A record was read, whether or not all of it is said.
    fn record(item: Item, bytes: usize, read: usize) -> Self {
        Self { item, bytes, read, rows: (read / ROW_BYTES) as u64 }
    }
}

impl Step<'_> {
    pub(super) fn asked(&mut self, exchange: u64, frame: &[u8]) {
        if self.session.spent.is_away(self.at) {
            return;
        }
        let answer = self.answer(frame).unwrap_or(Answer::Later(RETRY_MS as u32));
        self.out.push(Output::Answer(exchange, answer.encode()));
        let records = answer.records();
        if records > 0 {
            self.out.push(Output::Served(self.peer, records));
        }
    }

    fn answer(&mut self, frame: &[u8]) -> Result<Answer, Unreadable> {
        if !self.view.is_approved(self.peer) {
            return Ok(Answer::Refused(NOT_PAIRED.into()));
        }
        match self.pay(frame.len()) {
            Allowance::Fine => {}
            Allowance::Wait(ms) | Allowance::Away(ms) => {
                return Ok(Answer::Later(u32::try_from(ms).unwrap_or(u32::MAX)));
            }
        }
        let ask = match Ask::decode(frame) {
            Ok(ask) => ask,
            Err(refusal) => {
                self.fault(&format!("a question that cannot be read: {refusal}"));
                return Ok(Answer::Refused(format!("that cannot be read: {refusal}")));
            }
        };
        Ok(match ask {
            Ask::Hello(theirs) => {
                let ours = self.greeting()?;
                let is_again = self.session.theirs.is_some();
                self.greeted(theirs)?;
                if is_again {
                    // Whoever begins anew does not know how far it was read.
                    let is_asking = self.session.is_asking;
                    (self.session.is_at_end, self.session.has_grown) = (false, is_asking);
                }
                Answer::Hello(ours)
            }
            Ask::Changes(cursor, max) => self.serve_changes(cursor, max)?,
            Ask::Fetch(digests) if digests.len() > FETCH_MAX => {
                Answer::Refused(format!("more than {FETCH_MAX} records at once"))
            }
            Ask::Fetch(digests) => self.serve_records(&digests)?,
            Ask::Notify(_) => {
                (self.session.is_at_end, self.session.has_grown) = (false, self.session.is_asking);
                Answer::Done
            }
            Ask::Compare(is_first, message) => self.serve_compare(is_first, &message)?,
            Ask::Acknowledge(receipts) if receipts.is_empty() => Answer::Done,
            Ask::Acknowledge(receipts) if receipts.len() > RECEIPTS_MAX => {
                Answer::Refused(format!("more than {RECEIPTS_MAX} receipts at once"))
            }
            Ask::Acknowledge(receipts) => {
                if let Some(later) = self.later(Work::Asked) {
                    return Ok(later);
                }
                self.go_through(receipts.len() as u64 * RECEIPT_ROWS);
                self.out.push(Output::Received(self.peer, receipts));
                Answer::Done
            }
        })
    }

    /// What a peer is told for whose sake enough was gone through.
    fn later(&mut self, work: Work) -> Option<Answer> {
        let ms = self.rest_for(work);
        (ms > 0).then(|| Answer::Later(u32::try_from(ms).unwrap_or(u32::MAX)))
    }

    fn serve_changes(&mut self, cursor: Option<Cursor>, max: u32) -> Result<Answer, Unreadable> {
        if let Some(later) = self.later(Work::Read) {
            return Ok(later);
        }
        let after = match cursor {
            None => {
                if let Some(later) = self.later(Work::Asked) {
                    return Ok(later);
                }
                self.go_through(self.view.outbox_head(self.peer)?);
                self.out.push(Output::Restart(self.peer));
                0
            }
            Some(cursor) => {
                if self.view.cursor_at(self.peer, cursor.position)? != Some(cursor) {
                    return Ok(Answer::UnknownCursor);
                }
                cursor.position
            }
        };
        self.session.their_position = after;
        let max = (max as usize).clamp(1, PAGE_ITEMS_MAX);
        let outgoing = self.view.outbox(self.peer, after, max)?;
        self.go_through_for(Work::Read, outgoing.len() as u64 * RECORD_ROWS);
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
        self.go_through_for(Work::Read, rows);
        // A swept outbox may end before its head.
        let head = self.view.outbox_head(self.peer)?;
        end = if is_full { end } else { head.max(end) };
        let more = is_full && end < head;
        if !more {
            self.session.their_position = head;
        }
        let end = self.view.cursor_at(self.peer, end)?.ok_or(Unreadable)?;
        Ok(Answer::Page(items, end, more))
    }

    /// What a row says, if the peer may have it.
    fn item(&self, what: Outgoing) -> Result<Option<Said>, Unreadable> {
        Ok(match what {
            Outgoing::Opened(entry) => Some(Said::notice(Item::Opened(vec![entry]))),
            Outgoing::Ended(entry) => Some(Said::notice(Item::Ended(vec![entry]))),
            Outgoing::Proof(author) => {
                let proof = self.view.proof(self.peer, author)?;
                proof.map(|proof| {
                    let bytes = proof.headers.0.len() + proof.headers.1.len() + 256;
                    let item = Item::Proof(Box::new(proof));
                    Said { item, bytes, read: 0, rows: PROOF_ROWS }
                })
            }
            Outgoing::Record(digest) => self.view.record(self.peer, digest)?.map(|(hop, raw)| {
                let read = size(&raw);
                match read + 96 <= INLINE_BYTES_MAX {
                    true => Said::record(Item::Whole(hop, raw), read + 96, read),
                    false => Said::record(Item::Named(hop, digest), 64, read),
                }
            }),
            Outgoing::Returned(digest) => {
                let held = self.view.record(self.peer, digest)?;
                held.map(|(hop, raw)| Said::record(Item::Named(hop, digest), 64, size(&raw)))
            }
        })
    }

    fn serve_records(&mut self, digests: &[Digest]) -> Result<Answer, Unreadable> {
        if let Some(later) = self.later(Work::Read) {
            return Ok(later);
        }
        let (mut records, mut bytes) = (Vec::new(), 0);
        for part in digests.chunks(READ_AT_ONCE) {
            let found = self.view.records_for(self.peer, part)?;
            let read = found.iter().map(size).sum::<usize>() / ROW_BYTES;
            self.go_through_for(Work::Read, part.len() as u64 * RECORD_ROWS + read as u64);
            for raw in found {
                bytes += size(&raw) + 96;
                // One record always fits into a frame.
                if bytes > PAGE_BYTES_MAX && !records.is_empty() {
                    return Ok(Answer::Records(records));
                }
                records.push(raw);
            }
        }
        Ok(Answer::Records(records))
    }

    fn serve_compare(&mut self, is_first: bool, message: &[u8]) -> Result<Answer, Unreadable> {
        let Some(theirs) = self.session.theirs else {
            return Ok(Answer::Refused("greet first".into()));
        };
        // Whoever asks more often than any comparison does has everything read anew, and pays for it.
        let is_kept = |kept: &Answering| !is_first && kept.rounds < COMPARE_ROUNDS_MAX;
        let (rounds, items) = match self.session.answering.take().filter(is_kept) {
            Some(Answering { rounds, items, .. }) => {
                self.go_through(items.len() as u64 / KEPT_ROWS);
                (rounds + 1, items)
            }
            None => {
                // One that has begun is not broken off: it would begin anew, and cost as much again.
                let later = self.later(Work::Asked);
                if let Some(later) = later.filter(|_| is_first || self.is_far_over()) {
                    return Ok(later);
                }
                let offer = Offerer { peer: self.peer, store: theirs.store };
                let (items, rows) = self.view.comparable(offer)?;
                self.go_through(rows.max(items.len() as u64));
                (1, items)
            }
        };
        let Some(answer) = compare::answer(&items, message) else {
            self.fault("a comparison that makes no sense");
            return Ok(Answer::Refused("that is no comparison".into()));
        };
        if !answer.is_empty() {
            self.session.answering = Some(Answering { since: self.at, rounds, items });
        }
        if is_first && answer.is_empty() {
            (self.session.wants_compare, self.session.compared_at) = (false, self.at);
            self.session.state = SyncState::Equal(self.view.now());
        }
        Ok(Answer::Compare(answer))
    }
}

/// How many bytes a record has.
fn size(raw: &RawRecord) -> usize {
    raw.header.len() + raw.payload.as_ref().map_or(0, Vec::len)
}

/// Puts an item at the end of a page. Neighbours that say the same are said at once, and a record
/// says by its kind that its entry was opened just before.
fn put(page: &mut Vec<Item>, item: Item) {
    match (page.last_mut(), item) {
        (Some(Item::Opened(held)), Item::Opened(more))
        | (Some(Item::Ended(held)), Item::Ended(more)) => held.extend(more),
        (Some(Item::Opened(held)), Item::Whole(hop, raw)) => {
            let signed = SignedHeader::read_back(&raw.header, raw.signature);
            if !signed.is_ok_and(|signed| held.last() == Some(&signed.header().entry)) {
                return page.push(Item::Whole(hop, raw));
            }
            held.pop();
            if held.is_empty() {
                page.pop();
            }
            page.push(Item::First(hop, raw));
        }
        (_, item) => page.push(item),
    }
}
