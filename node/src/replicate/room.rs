//! What was refused because too much waits for the operator comes again once less does.
//!
//! Whoever decides about what waits talks to the writer alone. So this looks how much waits: where that
//! is less than before, and after a start, there may be room.

use crate::engine::{PeerAct, TOO_MANY_WAIT};
use crate::store::peers::Society;
use crate::store::{Error, Snapshot};
use klnode_federation::proto::Offerer;

/// Between two times that it is asked for, in milliseconds: what many refused records leave room for is
/// decided one by one, and outboxes are read from the start for it. It doubles while that goes on: a
/// long outbox must be read to its end.
const PAUSE_MS: u64 = 60_000;
const PAUSE_MAX_MS: u64 = 3_600_000;

/// Whether there may be room.
pub(super) struct Room {
    /// How many records waited at the last look.
    waiting: u64,
    /// Some went since what was refused was last asked for.
    pub(super) is_freed: bool,
    /// Nothing is asked for before, in milliseconds.
    wait_until: u64,
    pause_ms: u64,
}

impl Room {
    /// Nobody knows what was decided before the start.
    pub(super) fn new() -> Self {
        Self { waiting: 0, is_freed: true, wait_until: 0, pause_ms: PAUSE_MS }
    }

    /// What has to be noted for it to come again; nothing if there is no more room than before, or
    /// nothing was refused for it.
    pub(super) fn acts(
        &mut self,
        snapshot: &Snapshot,
        society: &Society,
        at: u64,
    ) -> Result<Vec<PeerAct>, Error> {
        let waiting = snapshot.quarantined_count()?;
        self.is_freed |= waiting < self.waiting;
        self.waiting = waiting;
        let mut acts = Vec::new();
        if !self.is_freed || at < self.wait_until {
            return Ok(acts);
        }
        for peer in society.peers.keys().copied() {
            for offer in snapshot.offers_of(peer)? {
                if was_crowded_out(snapshot, offer)? {
                    acts.extend([PeerAct::ReadmitWaiting(offer), PeerAct::Rewind(peer)]);
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

/// Whether anything of a store was refused for want of room.
fn was_crowded_out(snapshot: &Snapshot, offer: Offerer) -> Result<bool, Error> {
    for row in snapshot.refusals(offer)? {
        if Error::unless_damaged(row)?.is_some_and(|row| row.reason == TOO_MANY_WAIT) {
            return Ok(true);
        }
    }
    Ok(false)
}
