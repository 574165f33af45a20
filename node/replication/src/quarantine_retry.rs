//! Requests records again that were refused because the quarantine was full, once it has room.
//!
//! Decisions about quarantined records go to the writer only. So this module watches the number of
//! waiting records: if it has fallen, and after a start, there may be room.

use klnode_engine::{PeerCommand, TOO_MANY_WAIT};
use klnode_federation::proto::Offerer;
use klnode_store::peers::Membership;
use klnode_store::{Error, Snapshot};

/// Minimum time between two retries, in milliseconds. A retry reads outboxes from the start, and
/// records leave the quarantine one by one. The pause doubles while retries continue, because a
/// long outbox must be read to its end.
const PAUSE_MS: u64 = 60_000;
const PAUSE_MAX_MS: u64 = 3_600_000;

/// Tracks whether the quarantine may have room.
pub(super) struct QuarantineRoom {
    /// The number of waiting records at the last check.
    waiting: u64,
    /// True if records left the quarantine since the last retry.
    pub(super) is_freed: bool,
    /// No retry before this time, in milliseconds.
    wait_until: u64,
    pause_ms: u64,
}

impl QuarantineRoom {
    /// After a start, earlier decisions are unknown, so a retry is due.
    pub(super) fn new() -> Self {
        Self { waiting: 0, is_freed: true, wait_until: 0, pause_ms: PAUSE_MS }
    }

    /// The changes for a retry; empty if there is no new room or no record was refused for lack of
    /// it.
    pub(super) fn acts(
        &mut self,
        snapshot: &Snapshot,
        membership: &Membership,
        at: u64,
    ) -> Result<Vec<PeerCommand>, Error> {
        let waiting = snapshot.quarantined_count()?;
        self.is_freed |= waiting < self.waiting;
        self.waiting = waiting;
        let mut acts = Vec::new();
        if !self.is_freed || at < self.wait_until {
            return Ok(acts);
        }
        for peer in membership.peers.keys().copied() {
            for offer in snapshot.offers_of(peer)? {
                if was_crowded_out(snapshot, offer)? {
                    acts.extend([PeerCommand::ReadmitWaiting(offer), PeerCommand::Rewind(peer)]);
                }
            }
        }
        self.is_freed = false;
        if acts.is_empty() {
            self.pause_ms = PAUSE_MS;
        } else {
            self.wait_until = at.saturating_add(self.pause_ms);
            self.pause_ms = (2 * self.pause_ms).min(PAUSE_MAX_MS);
        }
        Ok(acts)
    }
}

/// True if a record of a store was refused because the quarantine was full.
fn was_crowded_out(snapshot: &Snapshot, offer: Offerer) -> Result<bool, Error> {
    for row in snapshot.refusals(offer)? {
        if Error::unless_damaged(row)?.is_some_and(|row| row.reason == TOO_MANY_WAIT) {
            return Ok(true);
        }
    }
    Ok(false)
}
