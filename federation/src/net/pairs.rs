//! How often peers may ask to pair: it is all that a stranger can say, and each time somebody has to
//! look into the store.
//!
//! Pure bookkeeping, with the time as an argument. Nothing is kept for longer than a minute, and of no
//! more peers than may ask in one.

use libp2p::PeerId;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// So long the asking is counted.
const WINDOW: Duration = Duration::from_secs(60);

/// How often one peer may ask in that time, and all strangers together. An attempt to join by address
/// takes four questions and three more in each minute; a few attempts in a row fit.
pub(super) const ASKS_PER_PEER_MAX: usize = 30;
const ASKS_MAX: usize = 120;

/// How long a peer stays away that asked too often.
pub(super) const AWAY: Duration = Duration::from_secs(60);

/// What to do with a peer that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Hear it.
    Fine,
    /// It has asked too often itself.
    TooOften,
    /// Too many strangers have asked.
    TooMany,
}

/// Who has asked to pair lately.
pub(super) struct Pairs {
    since: Instant,
    asks: BTreeMap<PeerId, usize>,
}

impl Pairs {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, asks: BTreeMap::new() }
    }

    /// A peer asks, or a stranger: no number of these keeps an approved peer from being heard.
    pub(super) fn ask(&mut self, peer: PeerId, is_approved: bool, now: Instant) -> Asked {
        if now.duration_since(self.since) >= WINDOW {
            *self = Self::new(now);
        }
        if self.asks.get(&peer).is_some_and(|asks| *asks >= ASKS_PER_PEER_MAX) {
            return Asked::TooOften;
        }
        if !is_approved && self.asks.values().sum::<usize>() >= ASKS_MAX {
            return Asked::TooMany;
        }
        *self.asks.entry(peer).or_default() += 1;
        Asked::Fine
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
    fn one_peer_asks_so_often_in_a_minute_and_all_together_too() {
        let start = Instant::now();
        let mut pairs = Pairs::new(start);
        for number in 0..ASKS_MAX / ASKS_PER_PEER_MAX {
            for _ in 0..ASKS_PER_PEER_MAX {
                assert_eq!(pairs.ask(peer(number), false, start), Asked::Fine);
            }
            assert_eq!(pairs.ask(peer(number), false, start), Asked::TooOften);
        }
        assert_eq!(pairs.ask(peer(200), false, start), Asked::TooMany);
        assert_eq!(pairs.asks.len(), ASKS_MAX / ASKS_PER_PEER_MAX);
        assert_eq!(pairs.ask(peer(201), true, start), Asked::Fine, "it is approved");
        assert_eq!(pairs.ask(peer(200), false, start + WINDOW), Asked::Fine);
        assert_eq!(pairs.asks.len(), 1);
    }
}
