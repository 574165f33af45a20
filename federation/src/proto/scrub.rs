//! The comparing part of the machine: when two sides look whether they hold the same, and what
//! follows from it.

use super::budget::Work;
use super::compare::{Comparison, Next};
use super::limits::FETCH_MAX;
use super::message::{Ask, Greeting};
use super::replicator::{Output, RETRY_MS, Step};
use super::session::{Expected, Page, SyncState};
use super::view::{Offerer, Unreadable};
use klnode_crdt::ids::Digest;

/// Comparisons in a row that find something, before the peer is left alone until the next scrub.
const REPEATS_MAX: u32 = 4;
/// Comparing reads everything. After one that took so long what is read is not compared at once,
const LONG_MS: u64 = 250;
/// but after so many times what it took,
const REST_FACTOR: u64 = 20;
/// or after so long.
pub(super) const REST_MS_MAX: u64 = 30_000;
/// Records that are put into an outbox again in one piece.
const REQUEUED_AT_ONCE: usize = 2_000;
/// Rows that each of them is counted as: it is written.
const REQUEUED_ROWS: u64 = 4;

impl Step<'_> {
    pub(super) fn compare_if_due(&mut self, theirs: Greeting) -> Result<(), Unreadable> {
        let session = &mut *self.session;
        let is_scrub = self.at.saturating_sub(session.compared_at) >= self.settings.scrub_ms;
        if is_scrub {
            (session.wants_compare, session.repeats) = (true, 0);
        }
        let is_idle = session.is_at_end && session.pages.is_empty() && !session.is_asking;
        let is_resting = self.at < session.rest_until && !session.is_urgent;
        if !session.wants_compare || !is_idle || is_resting || session.compare.is_some() {
            return Ok(());
        }
        // What the peer has not read yet would be found to differ.
        let has_read = session.their_position >= self.view.outbox_head(self.peer)?;
        if !has_read && !session.is_urgent {
            return Ok(());
        }
        // Whoever comes back again and again would have everything read each time.
        let rest = self.rest_for(Work::Begun);
        if rest > 0 && !self.session.is_urgent {
            self.session.rest_until = self.at + rest;
            return Ok(());
        }
        let offer = Offerer { peer: self.peer, store: theirs.store };
        let (items, rows) = self.view.comparable(offer)?;
        self.go_through_for(Work::Begun, rows.max(items.len() as u64));
        let session = &mut *self.session;
        (session.wants_compare, session.is_urgent) = (false, false);
        (session.compared_at, session.began_at) = (self.at, self.at);
        session.began = self.view.now();
        if let Some((comparison, message)) = Comparison::begin(&items) {
            session.compare = Some(comparison);
            self.ask(&Ask::Compare(true, message), Expected::Compare);
        }
        Ok(())
    }

    pub(super) fn compared(&mut self, message: &[u8]) -> Result<(), Unreadable> {
        let Some(mut comparison) = self.session.compare.take() else { return Ok(()) };
        let took = self.at.saturating_sub(self.session.began_at);
        let rest = if took < LONG_MS { 0 } else { took.saturating_mul(REST_FACTOR) };
        self.session.rest_until = self.at + rest.min(REST_MS_MAX);
        match comparison.answered(message) {
            Next::Ask(message) => {
                self.session.compare = Some(comparison);
                self.ask(&Ask::Compare(false, message), Expected::Compare);
            }
            Next::Broken => self.fault("a comparison that makes no sense"),
            Next::Over => self.compare_over(comparison)?,
        }
        Ok(())
    }

    fn compare_over(&mut self, comparison: Comparison) -> Result<(), Unreadable> {
        let Comparison { have, need, .. } = comparison;
        let (mut have, mut need) = (Vec::from_iter(have), Vec::from_iter(need));
        let session = &mut *self.session;
        if have.is_empty() && need.is_empty() {
            session.repeats = 0;
            // What was written since was not compared.
            session.state = SyncState::Equal(session.began);
            return Ok(());
        }
        session.state = SyncState::Differs(have.len() + need.len(), self.view.now());
        session.repeats += 1;
        let mut gone = Vec::new();
        if let Some(Greeting { store, .. }) = session.theirs {
            let offer = Offerer { peer: self.peer, store };
            // What was refused and cannot be placed, as a newer version's, would be refused again.
            need = self.unless_refused(need, offer, &mut Vec::new())?;
            // What was refused stands for what the peer holds. It holds it no longer, as after an
            // older copy of its store was put back.
            have = self.unless_refused(have, offer, &mut gone)?;
            if !gone.is_empty() {
                self.out.push(Output::Withdrawn(offer, gone.clone()));
            }
        }
        let session = &mut *self.session;
        let is_nothing = have.is_empty() && need.is_empty() && gone.is_empty();
        if session.repeats >= REPEATS_MAX || is_nothing {
            return Ok(());
        }
        // Whoever claims to lack everything, again and again, is believed a few times a minute.
        let rest = self.rest_of_rows();
        let session = &mut *self.session;
        session.want_compare();
        if rest > 0 && !have.is_empty() {
            have.clear();
            (session.repeats, session.rest_until) = (session.repeats - 1, self.at + rest);
        }
        self.go_through(have.len() as u64 * REQUEUED_ROWS);
        let session = &mut *self.session;
        for part in need.chunks(FETCH_MAX) {
            session.pages.push_back(Page::of_missing(part));
        }
        // Whatever a peer claims to lack, whoever writes here waits for a piece of it at most.
        for part in have.chunks(REQUEUED_AT_ONCE) {
            self.out.push(Output::Requeue(self.peer, part.to_vec()));
        }
        if need.is_empty() {
            self.session.wait_until = self.at + RETRY_MS;
        }
        Ok(())
    }

    /// Those of these records that were not refused where they are offered; the others are put aside.
    fn unless_refused(
        &self,
        digests: Vec<Digest>,
        offer: Offerer,
        refused: &mut Vec<Digest>,
    ) -> Result<Vec<Digest>, Unreadable> {
        let mut others = Vec::with_capacity(digests.len());
        for digest in digests {
            match self.view.is_refused(digest, offer)? {
                true => refused.push(digest),
                false => others.push(digest),
            }
        }
        Ok(others)
    }
}
