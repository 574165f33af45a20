//! The approved peers: their addresses and the time of the next dial.
//!
//! Pure bookkeeping; the time is an argument. After a failed dial the wait doubles up to a limit. A
//! lost peer is redialled soon, unless it keeps disconnecting. Waits vary by up to a quarter,
//! derived from both keys and the number of failures, so that nodes which lost the same peer at the
//! same moment do not all return at once, without randomness.

use super::Limits;
use libp2p::{Multiaddr, PeerId};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of addresses tried per peer, configured and announced ones together.
pub(super) const ADDRESSES_MAX: usize = 16;

/// A connection that lasted this long resets the back-off.
const STEADY_AFTER: Duration = Duration::from_secs(60);

/// When and where approved peers are dialled.
pub(super) struct AddressBook {
    own: PeerId,
    redial_after: Duration,
    redial_after_max: Duration,
    dials_max: usize,
    peers: BTreeMap<PeerId, PeerAddresses>,
}

struct PeerAddresses {
    given: Vec<Multiaddr>,
    learned: Vec<Multiaddr>,
    state: State,
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting { until: Instant },
    Dialling,
    Connected { since: Instant },
}

impl PeerAddresses {
    fn addresses(&self) -> Vec<Multiaddr> {
        let mut all = self.given.clone();
        all.extend(self.learned.iter().filter(|new| !self.given.contains(new)).cloned());
        all.truncate(ADDRESSES_MAX);
        all
    }

    /// Time of the next dial, if one is planned.
    fn due(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until } if !(self.given.is_empty() && self.learned.is_empty()) => {
                Some(until)
            }
            _ => None,
        }
    }
}

impl AddressBook {
    /// An empty book. It may use half of the pending connections; the other half is for one-off
    /// dials.
    pub(super) fn new(own: PeerId, limits: &Limits) -> Self {
        Self {
            own,
            redial_after: limits.redial_after,
            redial_after_max: limits.redial_after_max,
            dials_max: (limits.pending_connections_max / 2).max(1),
            peers: BTreeMap::new(),
        }
    }

    /// Approves a peer, or replaces the addresses of an approved one; new addresses are tried at
    /// once.
    pub(super) fn allow(&mut self, peer: PeerId, mut addresses: Vec<Multiaddr>, now: Instant) {
        addresses.truncate(ADDRESSES_MAX);
        let known = self.peers.entry(peer).or_insert(PeerAddresses {
            given: Vec::new(),
            learned: Vec::new(),
            state: State::Waiting { until: now },
            failures: 0,
        });
        let has_new = addresses.iter().any(|new| !known.given.contains(new));
        known.given = addresses;
        if has_new && let State::Waiting { until } = &mut known.state {
            *until = now;
            known.failures = 0;
        }
    }

    pub(super) fn forbid(&mut self, peer: &PeerId) {
        self.peers.remove(peer);
    }

    /// Stores addresses that a peer announced. Returns true if they are new.
    pub(super) fn learn(&mut self, peer: &PeerId, mut addresses: Vec<Multiaddr>) -> bool {
        let Some(known) = self.peers.get_mut(peer) else { return false };
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(ADDRESSES_MAX);
        let is_news = known.learned != addresses;
        known.learned = addresses;
        is_news
    }

    pub(super) fn connected(&mut self, peer: &PeerId, now: Instant) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.state = State::Connected { since: now };
        }
    }

    /// The last connection with a peer has closed.
    pub(super) fn lost(&mut self, peer: &PeerId, now: Instant) {
        let Some(known) = self.peers.get_mut(peer) else { return };
        let State::Connected { since } = known.state else { return };
        if now.duration_since(since) >= STEADY_AFTER {
            known.failures = 0;
        }
        self.wait(peer, now);
    }

    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        if self.peers.get(peer).is_some_and(|known| known.state == State::Dialling) {
            self.wait(peer, now);
        }
    }

    /// Suspends dials to a peer until a given time. Does not close open connections.
    pub(super) fn stay_away(&mut self, peer: &PeerId, until: Instant) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.state = State::Waiting { until };
        }
    }

    /// The peers to dial now, limited by the number of free dials. They are marked as being
    /// dialled.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let room = self.room();
        let is_due = |peer: &PeerAddresses| peer.due().is_some_and(|due| due <= now);
        let due = self.peers.iter_mut().filter(|(_, peer)| is_due(peer));
        due.take(room)
            .map(|(id, peer)| {
                peer.state = State::Dialling;
                (*id, peer.addresses())
            })
            .collect()
    }

    /// Time of the next dial. `None` while the maximum number of dials runs; a dial that ends frees
    /// a slot.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.peers.values().filter_map(PeerAddresses::due).min();
        due.filter(|_| self.room() > 0)
    }

    fn room(&self) -> usize {
        let dialling = self.peers.values().filter(|peer| peer.state == State::Dialling).count();
        self.dials_max.saturating_sub(dialling)
    }

    fn wait(&mut self, peer: &PeerId, now: Instant) {
        let Some(known) = self.peers.get_mut(peer) else { return };
        let doubled = 2_u32.saturating_pow(known.failures);
        let wait = self.redial_after.saturating_mul(doubled).min(self.redial_after_max);
        let quarters = f64::from(jitter(&self.own, peer, known.failures)) / f64::from(u32::MAX);
        known.failures = known.failures.saturating_add(1);
        known.state = State::Waiting { until: now + wait.mul_f64(0.75 + quarters / 2.0) };
    }
}

/// A number that differs between pairs of peers and between attempts (FNV-1a).
fn jitter(own: &PeerId, peer: &PeerId, attempt: u32) -> u32 {
    let bytes = [own.to_bytes(), peer.to_bytes(), attempt.to_be_bytes().to_vec()].concat();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::address::peer_id;
    use klnode_crdt::ids::AuthorId;

    const SECOND: Duration = Duration::from_secs(1);

    fn peer(number: u8) -> PeerId {
        peer_id(&AuthorId::from_bytes([number; 32]))
    }

    fn at(port: u16) -> Multiaddr {
        format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap()
    }

    fn book() -> (AddressBook, Instant) {
        let limits = Limits {
            pending_connections_max: 100,
            redial_after: 4 * SECOND,
            redial_after_max: 60 * SECOND,
            ..Limits::for_tests()
        };
        (AddressBook::new(peer(0), &limits), Instant::now())
    }

    #[test]
    fn a_peer_is_dialled_at_once_and_then_with_growing_waits() {
        let (mut book, mut now) = book();
        book.allow(peer(1), vec![at(1)], now);
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert_eq!(book.take_due(now), [(peer(1), vec![at(1)])]);
            assert_eq!((book.take_due(now), book.next_due()), (Vec::new(), None));
            book.failed(&peer(1), now);
            let next = book.next_due().unwrap();
            waits.push(next - now);
            now = next;
        }
        for (wait, whole) in waits.into_iter().zip([4, 8, 16, 32, 60, 60, 60, 60]) {
            let range = whole * SECOND * 3 / 4..=whole * SECOND * 5 / 4;
            assert!(range.contains(&wait), "{wait:?} instead of {whole} s");
        }
    }

    #[test]
    fn waits_differ_between_peers() {
        let (mut book, now) = book();
        for number in 1..=20 {
            book.allow(peer(number), vec![at(1)], now);
        }
        for (peer, _) in book.take_due(now) {
            book.failed(&peer, now);
        }
        let mut times: Vec<Instant> = book.peers.values().filter_map(PeerAddresses::due).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 20);
    }

    #[test]
    fn only_a_new_address_is_tried_at_once() {
        let (mut book, now) = book();
        book.allow(peer(1), vec![at(1)], now);
        book.take_due(now);
        book.failed(&peer(1), now);
        book.allow(peer(1), vec![at(1)], now);
        assert_eq!(book.take_due(now), []);
        book.allow(peer(1), vec![at(2)], now);
        assert_eq!(book.take_due(now), [(peer(1), vec![at(2)])]);
    }

    #[test]
    fn addresses_a_peer_announces_are_tried_too() {
        let (mut book, now) = book();
        book.allow(peer(1), Vec::new(), now);
        assert_eq!((book.take_due(now), book.next_due()), (Vec::new(), None));
        assert!(book.learn(&peer(1), vec![at(3), at(2)]));
        assert!(!book.learn(&peer(1), vec![at(2), at(3)]));
        assert!(!book.learn(&peer(2), vec![at(2)]));
        book.allow(peer(1), vec![at(1), at(2)], now);
        assert_eq!(book.take_due(now), [(peer(1), vec![at(1), at(2), at(3)])]);
        assert!(book.learn(&peer(1), (0..100).map(at).collect()));
        assert_eq!(book.peers[&peer(1)].addresses().len(), ADDRESSES_MAX);
    }

    #[test]
    fn a_long_connection_resets_the_back_off() {
        let (mut book, now) = book();
        book.allow(peer(1), vec![at(1)], now);
        for _ in 0..5 {
            book.take_due(now + 1000 * SECOND);
            book.failed(&peer(1), now);
        }
        book.connected(&peer(1), now);
        assert_eq!(book.next_due(), None);
        book.lost(&peer(1), now + SECOND);
        assert!(book.next_due().unwrap() > now + 40 * SECOND);
        book.connected(&peer(1), now);
        book.lost(&peer(1), now + STEADY_AFTER);
        assert!(book.next_due().unwrap() < now + STEADY_AFTER + 6 * SECOND);
    }

    #[test]
    fn concurrent_dials_are_limited_and_skip_banned_and_forbidden_peers() {
        let (mut book, now) = book();
        for number in 1..=9 {
            book.allow(peer(number), vec![at(1)], now);
        }
        book.stay_away(&peer(1), now + SECOND);
        book.forbid(&peer(2));
        book.dials_max = 3;
        assert_eq!(book.take_due(now).len(), 3);
        assert_eq!((book.take_due(now).len(), book.next_due()), (0, None));
        book.dials_max = 99;
        assert_eq!(book.take_due(now).len(), 4);
        assert_eq!(book.take_due(now + SECOND), [(peer(1), vec![at(1)])]);
    }
}
