//! The reading half of the machine: how far the peer's outbox was asked for, which pages of it are on
//! their way, and when the cursor moves.

use super::budget::Work;
use super::limits::PAGE_ITEMS_MAX;
use super::message::{Ask, Cursor, Item};
use super::replicator::{DEFERRED_RETRY_MS, Outcome, Output, RETRY_MS, Step};
use super::session::{Expected, Page, SyncState};
use super::view::Unreadable;
use klnode_crdt::ids::StoreId;
use klnode_crdt::record::RawRecord;

/// Pages that are read ahead while one is applied.
const PAGES_AHEAD: usize = 2;

impl Step<'_> {
    /// Reads on from where the cursor stands, if that is in the store that the peer has now.
    pub(super) fn begin_reading(&mut self, store: StoreId) -> Result<(), Unreadable> {
        self.session.asked = self.view.cursor(self.peer)?;
        self.session.must_reread |= self.session.asked.is_none_or(|cursor| cursor.store != store);
        Ok(())
    }

    /// The peer does not know the cursor: its outbox is read from its start.
    pub(super) fn cursor_is_unknown(&mut self) {
        (self.session.is_asking, self.session.must_reread) = (false, true);
    }

    /// Has the peer's outbox read from its start where that is due, or waits until it may be; whether
    /// there is something to read on from.
    pub(super) fn reread_if_due(&mut self) -> Result<bool, Unreadable> {
        if !self.session.must_reread {
            return Ok(true);
        }
        let due = self.session.reread_at.max(self.at + self.rest_for(Work::Begun));
        if self.at < due {
            self.session.wait_until = self.session.wait_until.max(due);
            return Ok(false);
        }
        self.go_through_for(Work::Begun, self.view.outbox_head(self.peer)?);
        self.session.reread(self.at, &self.settings.budget);
        self.out.push(Output::Reread(self.peer));
        Ok(true)
    }

    /// It could not be noted that the outbox is read from its start. Were a page taken now, the cursor
    /// would move, and nobody would know any more that the peer may lack what it once brought.
    pub(super) fn not_reread(&mut self) {
        let session = &mut *self.session;
        session.expected.retain(|_, expected| !matches!(expected, Expected::Page(_)));
        session.pages.clear();
        (session.is_asking, session.is_at_end, session.must_reread) = (false, false, true);
    }

    /// Asks for what a page lacks, and for the next page while there is room for one.
    pub(super) fn read_on(&mut self) {
        // Looked at each time: neither a new connection nor a peer's "later" shortens it.
        let rest = self.rest_of_intake().max(self.rest_for(Work::Brought));
        if rest > 0 {
            self.session.wait_until = self.session.wait_until.max(self.at + rest);
            return;
        }
        let is_fetching = self.session.expects(&Expected::Records);
        let fetch = self
            .session
            .pages
            .iter_mut()
            .find(|page| page.delivered.is_none() && !page.is_complete() && !page.is_fetching);
        if let (Some(page), false) = (fetch, is_fetching) {
            page.is_fetching = true;
            let missing = page.missing();
            self.ask(&Ask::Fetch(missing), Expected::Records);
        }
        let session = &mut *self.session;
        if !session.is_at_end && !session.is_asking && session.pages.len() < PAGES_AHEAD {
            session.is_asking = true;
            let cursor = session.asked;
            let ask = Ask::Changes(cursor, PAGE_ITEMS_MAX as u32);
            self.ask(&ask, Expected::Page(cursor));
        }
    }

    /// A page came.
    pub(super) fn page(
        &mut self,
        items: Vec<Item>,
        from: Option<Cursor>,
        end: Cursor,
        more: bool,
    ) -> Result<(), Unreadable> {
        self.session.is_asking = false;
        let has_grown = std::mem::take(&mut self.session.has_grown);
        let Some(theirs) = self.session.theirs else { return Ok(()) };
        if from != self.session.asked {
            // It was asked for before what precedes it was deferred.
            return Ok(());
        }
        let begin = from.map_or(0, |cursor| cursor.position);
        let count = items.iter().map(Item::rows).sum();
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
        let page = Page::new(items, self.peer, (from, end), self.view, &mut faults)?;
        self.session.asked = Some(end);
        self.session.is_at_end = !more && !has_grown;
        // A page that moves nothing needs no commit.
        if !is_empty || end.position > begin {
            self.session.pages.push_back(page);
            self.session.state = SyncState::Reading;
            self.session.wants_compare = true;
        }
        self.take_in(count, 0);
        self.faults(faults);
        Ok(())
    }

    /// What a page lacked came.
    pub(super) fn fetched(&mut self, records: Vec<RawRecord>) {
        let mut faults = Vec::new();
        if let Some(page) = self.session.pages.iter_mut().find(|page| page.is_fetching) {
            // What an outbox names was counted with its page.
            let uncounted = if page.span.is_none() { records.len() } else { 0 };
            page.fetched(records, &mut faults);
            self.take_in(uncounted, 0);
        }
        self.faults(faults);
    }

    /// Hands over the first page, or what can go ahead of it. The next one waits for its outcome.
    pub(super) fn deliver_if_ready(&mut self, store: StoreId) {
        if let Some(page) = self.session.pages.front_mut().filter(|page| page.is_ready()) {
            let id = *self.next_id;
            *self.next_id += 1;
            let delivery = page.deliver(id, self.peer, store);
            self.out.push(Output::Deliver(delivery));
        }
    }

    /// What became of a delivery: the cursor passes its page, or everything after it is read again.
    pub(super) fn applied(&mut self, id: u64, outcomes: &[Outcome]) -> Result<(), Unreadable> {
        let new = outcomes.iter().filter(|outcome| **outcome == Outcome::New).count();
        self.take_in(0, new);
        if self.session.pages.front().and_then(|page| page.delivered) != Some(id) {
            return Ok(());
        }
        let Some(mut page) = self.session.pages.pop_front() else { return Ok(()) };
        for _ in outcomes.iter().filter(|outcome| **outcome == Outcome::Faulty) {
            self.fault("a proof that proves nothing");
        }
        let is_settled = !outcomes.contains(&Outcome::Deferred);
        if is_settled && !page.is_complete() {
            // It was a part: the cursor moves at the end of the page.
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
                // Everything after it is read again, too.
                self.session.pages.clear();
                (self.session.asked, self.session.is_at_end) = (begin, false);
                self.session.wait_until = self.at + DEFERRED_RETRY_MS;
            }
            (None, _) => {}
        }
        self.tell_receipts()
    }
}
