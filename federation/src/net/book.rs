//! The approved peers: where each may be found, and when it is dialled next.
//!
//! Pure bookkeeping, with the time as an argument. A peer that cannot be reached is tried again
//! after a wait that doubles up to a limit; one that was lost is tried soon, unless it keeps
//! getting lost. Waits vary by up to a quarter, by a number drawn from both keys and the count of
//! failures: so nodes that lost the same peer at the same moment do not all come back at once, and
//! nothing has to be random.

use super::Limits;
use libp2p::{Multiaddr, PeerId};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Addresses of one peer that are tried, those given here and those it told us itself.
pub(super) const ADDRESSES_MAX: usize = 16;

/// A connection that lasted this long was a good one: the next wait starts small again.
const STEADY_AFTER: Duration = Duration::from_secs(60);

/// When an approved peer is dialled, and where.
pub(super) struct Book {
    own: PeerId,
    redial_after: Duration,
    redial_after_max: Duration,
    dials_max: usize,
    peers: BTreeMap<PeerId, Peer>,
}

struct Peer {
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

impl Peer {
    fn addresses(&self) -> Vec<Multiaddr> {
        let mut all = self.given.clone();
        all.extend(self.learned.iter().filter(|new| !self.given.contains(new)).cloned());
        all.truncate(ADDRESSES_MAX);
        all
    }

    /// When it is to be dialled, if it is.
    fn due(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until } if !(self.given.is_empty() && self.learned.is_empty()) => {
                Some(until)
            }
            _ => None,
        }
    }
}

impl Book {
    /// An empty book. Half of the pending connections are for it, the rest for single dials.
    pub(super) fn new(own: PeerId, limits: &Limits) -> Self {
        Self {
            own,
            redial_after: limits.redial_after,
            redial_after_max: limits.redial_after_max,
            dials_max: (limits.pending_connections_max / 2).max(1),
            peers: BTreeMap::new(),
        }
    }

    /// Approves a peer, or gives an approved one other addresses, which are tried at once.
    pub(super) fn allow(&mut self, peer: PeerId, mut addresses: Vec<Multiaddr>, now: Instant) {
        addresses.truncate(ADDRESSES_MAX);
        let known = self.peers.entry(peer).or_insert(Peer {
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

    /// Takes a peer's word about where it is. Whether that was news.
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

    /// The last connection with a peer is gone.
    pub(super) fn lost(&mut self, peer: &PeerId, now: Instant) {
        let Some(known) = self.peers.get_mut(peer) else { return };
        let State::Connected { since } = known.state else { return };
        if now.duration_since(since) >= STEADY_AFTER {
            known.failures = 0;
        }
        self.wait(peer, now);
    }

    /// A dial of a peer failed.
    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        if self.peers.get(peer).is_some_and(|known| known.state == State::Dialling) {
            self.wait(peer, now);
        }
    }

    /// Leaves a peer alone until a time; an open connection is left to the caller.
    pub(super) fn stay_away(&mut self, peer: &PeerId, until: Instant) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.state = State::Waiting { until };
        }
    }

    /// The peers to dial now, at most as many as there is room for; they count as dialled.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let room = self.room();
        let is_due = |peer: &Peer| peer.due().is_some_and(|due| due <= now);
        let due = self.peers.iter_mut().filter(|(_, peer)| is_due(peer));
        due.take(room)
            .map(|(id, peer)| {
                peer.state = State::Dialling;
                (*id, peer.addresses())
            })
            .collect()
    }

    /// When the next peer is due. While there is no room for it, never: a dial that ends makes room.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.peers.values().filter_map(Peer::due).min();
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

    fn book() -> (Book, Instant) {
        let limits = Limits {
            pending_connections_max: 100,
            redial_after: 4 * SECOND,
            redial_after_max: 60 * SECOND,
            ..Limits::for_tests()
        };
        (Book::new(peer(0), &limits), Instant::now())
    }

    #[test]
    fn a_peer_is_dialled_at_once_and_then_ever_more_rarely() {
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
    fn other_peers_wait_for_another_time() {
        let (mut book, now) = book();
        for number in 1..=20 {
            book.allow(peer(number), vec![at(1)], now);
        }
        for (peer, _) in book.take_due(now) {
            book.failed(&peer, now);
        }
        let mut times: Vec<Instant> = book.peers.values().filter_map(Peer::due).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 20);
    }

    #[test]
    fn a_new_address_is_tried_at_once_and_an_old_one_is_not() {
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
    fn what_a_peer_says_of_itself_is_tried_too() {
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
    fn a_steady_connection_that_is_lost_is_tried_soon_again() {
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
    fn only_so_many_are_dialled_at_a_time_and_nobody_who_is_away_or_forbidden() {
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
