//! The reading half of the state machine: requests pages of the peer's outbox, tracks those in
//! flight, and decides when the cursor moves.

use super::limits::PAGE_ITEMS_MAX;
use super::message::{OutboxCursor, OutboxItem, SyncRequest};
use super::peer_budget::ReadPurpose;
use super::peer_session::{DEFERRED_RETRY_MS, InboundPage, RETRY_MS, RequestPurpose, SyncState};
use super::replicator::{Output, PeerStep, RecordOutcome};
use super::store_view::StoreUnavailable;
use klnode_crdt::ids::StoreId;
use klnode_crdt::record::RawRecord;

/// Pages requested ahead while one is being applied.
const PAGES_AHEAD: usize = 2;

impl PeerStep<'_> {
    /// Continues after the stored cursor, if it refers to the peer's current store.
    pub(super) fn begin_reading(&mut self, store: StoreId) -> Result<(), StoreUnavailable> {
        self.session.asked = self.view.cursor(self.peer)?;
        self.session.must_reread |= self.session.asked.is_none_or(|cursor| cursor.store != store);
        Ok(())
    }

    /// The peer does not know the cursor, so its outbox is read from the start.
    pub(super) fn cursor_is_unknown(&mut self) {
        (self.session.is_asking, self.session.must_reread) = (false, true);
    }

    /// Starts reading from the beginning if that is due, or waits until it is allowed. Returns
    /// whether reading can continue now.
    pub(super) fn reread_if_due(&mut self) -> Result<bool, StoreUnavailable> {
        if !self.session.must_reread {
            return Ok(true);
        }
        let due = self.session.reread_at.max(self.at + self.rows_wait_for(ReadPurpose::Begun));
        if self.at < due {
            self.session.wait_until = self.session.wait_until.max(due);
            return Ok(false);
        }
        self.charge_rows_for(ReadPurpose::Begun, self.view.outbox_head(self.peer)?);
        self.session.reread(self.at, &self.settings.budget);
        self.out.push(Output::Reread(self.peer));
        Ok(true)
    }

    /// Recording the new start of reading failed. If a page were applied now, the cursor would
    /// move, and the node would lose the information that the peer may lack records it once sent.
    pub(super) fn not_reread(&mut self) {
        let session = &mut *self.session;
        session.expected.retain(|_, expected| !matches!(expected, RequestPurpose::Page(_)));
        session.pages.clear();
        (session.is_asking, session.is_at_end, session.must_reread) = (false, false, true);
    }

    /// Requests the missing records of a page, and the next page while there is room for one.
    pub(super) fn read_on(&mut self) {
        // Checked each time: neither a new connection nor a peer's "later" shortens this wait.
        let rest = self.intake_wait().max(self.rows_wait_for(ReadPurpose::Brought));
        if rest > 0 {
            self.session.wait_until = self.session.wait_until.max(self.at + rest);
            return;
        }
        let is_fetching = self.session.expects(&RequestPurpose::Records);
        let fetch = self
            .session
            .pages
            .iter_mut()
            .find(|page| page.delivered.is_none() && !page.is_complete() && !page.is_fetching);
        if let (Some(page), false) = (fetch, is_fetching) {
            page.is_fetching = true;
            let missing = page.missing();
            self.ask(&SyncRequest::Fetch(missing), RequestPurpose::Records);
        }
        let session = &mut *self.session;
        if !session.is_at_end && !session.is_asking && session.pages.len() < PAGES_AHEAD {
            session.is_asking = true;
            let cursor = session.asked;
            let ask = SyncRequest::Changes(cursor, PAGE_ITEMS_MAX as u32);
            self.ask(&ask, RequestPurpose::Page(cursor));
        }
    }

    /// Handles a page.
    pub(super) fn page(
        &mut self,
        items: Vec<OutboxItem>,
        from: Option<OutboxCursor>,
        end: OutboxCursor,
        more: bool,
    ) -> Result<(), StoreUnavailable> {
        self.session.is_asking = false;
        let has_grown = std::mem::take(&mut self.session.has_grown);
        let Some(theirs) = self.session.theirs else { return Ok(()) };
        if from != self.session.asked {
            // The page was requested before an earlier page was deferred.
            return Ok(());
        }
        let begin = from.map_or(0, |cursor| cursor.position);
        let count = items.iter().map(OutboxItem::rows).sum();
        let is_sound = end.store == theirs.store
            && end.position >= begin
            && (end.position > begin || !more)
            && count <= PAGE_ITEMS_MAX;
        if !is_sound {
            self.fault("a page that does not follow its cursor");
            self.session.wait_until = self.at + RETRY_MS;
            return Ok(());
        }
        let mut faults = Vec::new();
        let is_empty = items.is_empty();
        let page = InboundPage::new(items, self.peer, (from, end), self.view, &mut faults)?;
        self.session.asked = Some(end);
        self.session.is_at_end = !more && !has_grown;
        // A page that moves nothing needs no commit.
        if !is_empty || end.position > begin {
            self.session.pages.push_back(page);
            self.session.state = SyncState::Reading;
            self.session.wants_compare = true;
        }
        self.count_intake(count, 0);
        self.faults(faults);
        Ok(())
    }

    /// Handles fetched records.
    pub(super) fn fetched(&mut self, records: Vec<RawRecord>) {
        let mut faults = Vec::new();
        if let Some(page) = self.session.pages.iter_mut().find(|page| page.is_fetching) {
            // Records named in an outbox page were counted with that page.
            let uncounted = if page.span.is_none() { records.len() } else { 0 };
            page.fetched(records, &mut faults);
            self.count_intake(uncounted, 0);
        }
        self.faults(faults);
    }

    /// Delivers the first page, or the part of it that can go ahead. The next page waits for the
    /// outcome.
    pub(super) fn deliver_if_ready(&mut self, store: StoreId) {
        if let Some(page) = self.session.pages.front_mut().filter(|page| page.is_ready()) {
            let id = *self.next_id;
            *self.next_id += 1;
            let delivery = page.deliver(id, self.peer, store);
            self.out.push(Output::Deliver(delivery));
        }
    }

    /// Handles the outcome of a delivery: the cursor passes the page, or the reader reads
    /// everything after it again.
    pub(super) fn applied(
        &mut self,
        id: u64,
        outcomes: &[RecordOutcome],
    ) -> Result<(), StoreUnavailable> {
        let new = outcomes.iter().filter(|outcome| **outcome == RecordOutcome::New).count();
        self.count_intake(0, new);
        if self.session.pages.front().and_then(|page| page.delivered) != Some(id) {
            return Ok(());
        }
        let Some(mut page) = self.session.pages.pop_front() else { return Ok(()) };
        for _ in outcomes.iter().filter(|outcome| **outcome == RecordOutcome::Faulty) {
            self.fault("a proof that proves nothing");
        }
        let is_settled = !outcomes.contains(&RecordOutcome::Deferred);
        if is_settled && !page.is_complete() {
            // This was a part of a page; the cursor moves at the end of the page.
            page.delivered = None;
            self.session.pages.push_front(page);
            return self.tell_receipts();
        }
        match (page.span, is_settled) {
            (Some((_, end)), true) => {
                self.session.is_rereading = false;
                self.out.push(Output::Advance(self.peer, end));
            }
            (Some((begin, _)), false) => {
                // Everything after the page is read again too.
                self.session.pages.clear();
                (self.session.asked, self.session.is_at_end) = (begin, false);
                self.session.wait_until = self.at + DEFERRED_RETRY_MS;
            }
            (None, _) => {}
        }
        self.tell_receipts()
    }
}
