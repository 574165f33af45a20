//! Rate limit for pairing requests. A stranger can send nothing else, and each request costs a read
//! of the store.
//!
//! Pure bookkeeping; the time is an argument. Counts are kept for one minute at most, and for no
//! more peers than may ask in one minute.

use libp2p::PeerId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Length of the counting window.
const WINDOW: Duration = Duration::from_secs(60);

/// Requests per window: for one peer, and for all strangers together. Joining by address takes four
/// requests and three more per minute, so a few attempts in a row are possible.
pub(super) const ASKS_PER_PEER_MAX: usize = 30;
const ASKS_MAX: usize = 120;

/// Ban time of a peer that asked too often.
pub(super) const AWAY: Duration = Duration::from_secs(60);

/// Outcome of the rate limit for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateDecision {
    /// The request is within the limits.
    Fine,
    /// The peer itself has asked too often.
    TooOften,
    /// All strangers together have asked too often.
    TooMany,
}

/// Counts the pairing requests of the current window.
pub(super) struct PairingRateLimit {
    since: Instant,
    asks: BTreeMap<PeerId, usize>,
}

impl PairingRateLimit {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, asks: BTreeMap::new() }
    }

    /// Counts a request and checks the limits. The limit for strangers does not apply to approved
    /// peers.
    pub(super) fn ask(&mut self, peer: PeerId, is_approved: bool, now: Instant) -> RateDecision {
        if now.duration_since(self.since) >= WINDOW {
            *self = Self::new(now);
        }
        if self.asks.get(&peer).is_some_and(|asks| *asks >= ASKS_PER_PEER_MAX) {
            return RateDecision::TooOften;
        }
        if !is_approved && self.asks.values().sum::<usize>() >= ASKS_MAX {
            return RateDecision::TooMany;
        }
        *self.asks.entry(peer).or_default() += 1;
        RateDecision::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::address::peer_id;
    use klnode_crdt::ids::AuthorId;

    fn peer(number: usize) -> PeerId {
        peer_id(&AuthorId::from_bytes([number as u8; 32]))
    }

    #[test]
    fn requests_per_peer_and_in_total_are_limited() {
        let start = Instant::now();
        let mut pairs = PairingRateLimit::new(start);
        for number in 0..ASKS_MAX / ASKS_PER_PEER_MAX {
            for _ in 0..ASKS_PER_PEER_MAX {
                assert_eq!(pairs.ask(peer(number), false, start), RateDecision::Fine);
            }
            assert_eq!(pairs.ask(peer(number), false, start), RateDecision::TooOften);
        }
        assert_eq!(pairs.ask(peer(200), false, start), RateDecision::TooMany);
        assert_eq!(pairs.asks.len(), ASKS_MAX / ASKS_PER_PEER_MAX);
        assert_eq!(pairs.ask(peer(201), true, start), RateDecision::Fine, "it is approved");
        assert_eq!(pairs.ask(peer(200), false, start + WINDOW), RateDecision::Fine);
        assert_eq!(pairs.asks.len(), 1);
    }
}
