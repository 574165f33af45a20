//! How many records have passed between this node and its peers. That is kept in memory alone: whoever
//! wants to know what moved meanwhile looks before and after.

use crate::engine::Ingested;
use klnode_crdt::ids::AuthorId;
use std::collections::BTreeMap;

/// How many records have passed, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Came, and are held here since. What was here already, was refused, or waits for the operator does
    /// not count.
    pub received: u64,
    /// Were handed over. What was asked for twice counts twice: only the other side knows what it had.
    pub sent: u64,
}

/// What has passed between this node and each peer since the process started. It only grows, and tells of
/// approved peers alone: nobody else is read, or handed a record.
#[derive(Clone, Debug, Default)]
pub struct Traffic(BTreeMap<AuthorId, Moved>);

impl Traffic {
    /// With one peer.
    pub fn with(&self, peer: AuthorId) -> Moved {
        self.0.get(&peer).copied().unwrap_or_default()
    }

    /// With these peers together, since an earlier look.
    pub fn since(&self, before: &Self, peers: &[AuthorId]) -> Moved {
        peers.iter().fold(Moved::default(), |sum, peer| {
            let (now, then) = (self.with(*peer), before.with(*peer));
            Moved {
                received: sum.received + now.received.saturating_sub(then.received),
                sent: sum.sent + now.sent.saturating_sub(then.sent),
            }
        })
    }

    /// A peer brought something, of which this became.
    pub(super) fn receive<'a>(
        &mut self,
        peer: AuthorId,
        became: impl Iterator<Item = &'a Ingested>,
    ) {
        let merged = became.filter(|one| matches!(one, Ingested::Merged(_))).count();
        self.0.entry(peer).or_default().received += merged as u64;
    }

    /// So many records go to a peer.
    pub(super) fn send(&mut self, peer: AuthorId, records: u64) {
        self.0.entry(peer).or_default().sent += records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rows::Seq;

    const PEERS: [AuthorId; 3] = [
        AuthorId::from_bytes([1; 32]),
        AuthorId::from_bytes([2; 32]),
        AuthorId::from_bytes([3; 32]),
    ];

    #[test]
    fn only_what_is_held_from_now_on_has_come_in() {
        let mut traffic = Traffic::default();
        let became = [
            Ingested::Merged(Seq(1)),
            Ingested::Known,
            Ingested::Quarantined("a key".into()),
            Ingested::Refused("the entry is full".into()),
            Ingested::Deferred("its payload is missing".into()),
            Ingested::Forgotten,
            Ingested::Merged(Seq(2)),
        ];
        traffic.receive(PEERS[0], became.iter());
        assert_eq!(traffic.with(PEERS[0]), Moved { received: 2, sent: 0 });
        assert_eq!(traffic.with(PEERS[1]), Moved::default());
    }

    #[test]
    fn what_moved_since_is_told_of_those_who_are_meant_and_not_of_what_was_before() {
        let [one, two, other] = PEERS;
        let merged =
            |count: u64| (0..count).map(|at| Ingested::Merged(Seq(at))).collect::<Vec<_>>();
        let mut traffic = Traffic::default();
        traffic.receive(one, merged(5).iter());
        traffic.send(one, 7);
        let before = traffic.clone();
        assert_eq!(traffic.since(&before, &PEERS), Moved::default());
        traffic.receive(one, merged(2).iter());
        traffic.send(one, 1);
        traffic.receive(two, merged(1).iter());
        traffic.receive(other, merged(9).iter());
        traffic.send(other, 9);
        assert_eq!(traffic.since(&before, &[one, two]), Moved { received: 3, sent: 1 });
        assert_eq!(traffic.since(&before, &[]), Moved::default());
    }
}
