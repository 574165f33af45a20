//! Anti-entropy: decides when two nodes reconcile their record sets, and acts on the differences
//! found.

use super::limits::FETCH_MAX;
use super::message::{Greeting, SyncRequest};
use super::peer_budget::ReadPurpose;
use super::peer_session::{InboundPage, REST_MS_MAX, RETRY_MS, RequestPurpose, SyncState};
use super::reconciliation::{ReconcileStep, Reconciliation};
use super::replicator::{Output, PeerStep};
use super::store_view::{Offerer, StoreUnavailable};
use klnode_crdt::ids::Digest;

/// Consecutive comparisons that may find differences before the peer is left alone until the next
/// scheduled one.
const REPEATS_MAX: u32 = 4;
/// A comparison reads everything it covers. After one that took at least this long, newly read
/// records are not continue_comparison at once,
const LONG_MS: u64 = 250;
/// but after this multiple of its duration, and at the latest after [`REST_MS_MAX`].
const REST_FACTOR: u64 = 20;
/// Records put back into an outbox per output, so that local writers do not wait for all of them.
const REQUEUED_AT_ONCE: usize = 2_000;
/// Cost of each such record in rows, because it is written.
const REQUEUED_ROWS: u64 = 4;

impl PeerStep<'_> {
    pub(super) fn compare_if_due(&mut self, theirs: Greeting) -> Result<(), StoreUnavailable> {
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
        // Records that the peer has not read yet would show up as differences.
        let has_read = session.their_position >= self.view.outbox_head(self.peer)?;
        if !has_read && !session.is_urgent {
            return Ok(());
        }
        // A peer that reconnects repeatedly must not cause a full read each time.
        let rest = self.rows_wait_for(ReadPurpose::Begun);
        if rest > 0 && !self.session.is_urgent {
            self.session.rest_until = self.at + rest;
            return Ok(());
        }
        let offer = Offerer { peer: self.peer, store: theirs.store };
        let (items, rows) = self.view.comparable(offer)?;
        self.charge_rows_for(ReadPurpose::Begun, rows.max(items.len() as u64));
        let session = &mut *self.session;
        (session.wants_compare, session.is_urgent) = (false, false);
        (session.compared_at, session.began_at) = (self.at, self.at);
        session.began = self.view.now();
        if let Some((comparison, message)) = Reconciliation::begin(&items) {
            session.compare = Some(comparison);
            self.ask(&SyncRequest::Compare(true, message), RequestPurpose::Compare);
        }
        Ok(())
    }

    pub(super) fn continue_comparison(&mut self, message: &[u8]) -> Result<(), StoreUnavailable> {
        let Some(mut comparison) = self.session.compare.take() else { return Ok(()) };
        let took = self.at.saturating_sub(self.session.began_at);
        let rest = if took < LONG_MS { 0 } else { took.saturating_mul(REST_FACTOR) };
        self.session.rest_until = self.at + rest.min(REST_MS_MAX);
        match comparison.answered(message) {
            ReconcileStep::Ask(message) => {
                self.session.compare = Some(comparison);
                self.ask(&SyncRequest::Compare(false, message), RequestPurpose::Compare);
            }
            ReconcileStep::Broken => self.fault("a malformed comparison"),
            ReconcileStep::Over => self.finish_comparison(comparison)?,
        }
        Ok(())
    }

    fn finish_comparison(&mut self, comparison: Reconciliation) -> Result<(), StoreUnavailable> {
        let Reconciliation { have, need, .. } = comparison;
        let (mut have, mut need) = (Vec::from_iter(have), Vec::from_iter(need));
        let session = &mut *self.session;
        if have.is_empty() && need.is_empty() {
            session.repeats = 0;
            // Records written after the start were not continue_comparison.
            session.state = SyncState::Equal(session.began);
            return Ok(());
        }
        session.state = SyncState::Differs(have.len() + need.len(), self.view.now());
        session.repeats += 1;
        let mut gone = Vec::new();
        if let Some(Greeting { store, .. }) = session.theirs {
            let offer = Offerer { peer: self.peer, store };
            // Records that were refused and cannot be placed, such as those of a newer version,
            // would be refused again.
            need = self.partition_refused(need, offer, &mut Vec::new())?;
            // A refusal records that the peer holds the record. Here the peer no longer holds it,
            // for example because an older copy of its store was restored.
            have = self.partition_refused(have, offer, &mut gone)?;
            if !gone.is_empty() {
                self.out.push(Output::Withdrawn(offer, gone.clone()));
            }
        }
        let session = &mut *self.session;
        let is_nothing = have.is_empty() && need.is_empty() && gone.is_empty();
        if session.repeats >= REPEATS_MAX || is_nothing {
            return Ok(());
        }
        // A peer that repeatedly claims to lack everything is served only a few times per minute.
        let rest = self.rows_wait();
        let session = &mut *self.session;
        session.want_compare();
        if rest > 0 && !have.is_empty() {
            have.clear();
            (session.repeats, session.rest_until) = (session.repeats - 1, self.at + rest);
        }
        self.charge_rows(have.len() as u64 * REQUEUED_ROWS);
        let session = &mut *self.session;
        for part in need.chunks(FETCH_MAX) {
            session.pages.push_back(InboundPage::of_missing(part));
        }
        // However much a peer claims to lack, local writers wait for one chunk at most.
        for part in have.chunks(REQUEUED_AT_ONCE) {
            self.out.push(Output::Requeue(self.peer, part.to_vec()));
        }
        if need.is_empty() {
            self.session.wait_until = self.at + RETRY_MS;
        }
        Ok(())
    }

    /// The records that were not refused for this offerer; refused ones are moved to `refused`.
    fn partition_refused(
        &self,
        digests: Vec<Digest>,
        offer: Offerer,
        refused: &mut Vec<Digest>,
    ) -> Result<Vec<Digest>, StoreUnavailable> {
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
