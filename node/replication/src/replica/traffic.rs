//! Counts records received from and sent to peers. The counters are in memory only; a caller
//! compares two snapshots to get the numbers of a period.

use klnode_crdt::ids::AuthorId;
use klnode_engine::IngestOutcome;
use std::collections::BTreeMap;

/// Record counts by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Records received and merged. Records that were known, refused or quarantined do not count.
    pub received: u64,
    /// Records sent. A record that is requested twice counts twice, because only the peer knows
    /// whether it had it.
    pub sent: u64,
}

/// Counts per approved peer since the process started. Other nodes can neither send nor receive
/// records.
#[derive(Clone, Debug, Default)]
pub struct Traffic(BTreeMap<AuthorId, TrafficCounts>);

impl Traffic {
    /// The counts for one peer.
    pub fn with(&self, peer: AuthorId) -> TrafficCounts {
        self.0.get(&peer).copied().unwrap_or_default()
    }

    /// The sum for these peers since an earlier snapshot.
    pub fn since(&self, before: &Self, peers: &[AuthorId]) -> TrafficCounts {
        peers.iter().fold(TrafficCounts::default(), |sum, peer| {
            let (now, then) = (self.with(*peer), before.with(*peer));
            TrafficCounts {
                received: sum.received + now.received.saturating_sub(then.received),
                sent: sum.sent + now.sent.saturating_sub(then.sent),
            }
        })
    }

    /// Counts the results of a delivery.
    pub(super) fn receive<'a>(
        &mut self,
        peer: AuthorId,
        became: impl Iterator<Item = &'a IngestOutcome>,
    ) {
        let merged = became.filter(|one| matches!(one, IngestOutcome::Merged(_))).count();
        self.0.entry(peer).or_default().received += merged as u64;
    }

    /// Counts records sent to a peer.
    pub(super) fn send(&mut self, peer: AuthorId, records: u64) {
        self.0.entry(peer).or_default().sent += records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_store::row_types::Seq;

    const PEERS: [AuthorId; 3] = [
        AuthorId::from_bytes([1; 32]),
        AuthorId::from_bytes([2; 32]),
        AuthorId::from_bytes([3; 32]),
    ];

    #[test]
    fn only_merged_records_count_as_received() {
        let mut traffic = Traffic::default();
        let became = [
            IngestOutcome::Merged(Seq(1)),
            IngestOutcome::Known,
            IngestOutcome::Quarantined("a key".into()),
            IngestOutcome::Refused("the entry is full".into()),
            IngestOutcome::Deferred("its payload is missing".into()),
            IngestOutcome::Forgotten,
            IngestOutcome::Merged(Seq(2)),
        ];
        traffic.receive(PEERS[0], became.iter());
        assert_eq!(traffic.with(PEERS[0]), TrafficCounts { received: 2, sent: 0 });
        assert_eq!(traffic.with(PEERS[1]), TrafficCounts::default());
    }

    #[test]
    fn since_counts_only_the_given_peers_after_the_snapshot() {
        let [one, two, other] = PEERS;
        let merged =
            |count: u64| (0..count).map(|at| IngestOutcome::Merged(Seq(at))).collect::<Vec<_>>();
        let mut traffic = Traffic::default();
        traffic.receive(one, merged(5).iter());
        traffic.send(one, 7);
        let before = traffic.clone();
        assert_eq!(traffic.since(&before, &PEERS), TrafficCounts::default());
        traffic.receive(one, merged(2).iter());
        traffic.send(one, 1);
        traffic.receive(two, merged(1).iter());
        traffic.receive(other, merged(9).iter());
        traffic.send(other, 9);
        assert_eq!(traffic.since(&before, &[one, two]), TrafficCounts { received: 3, sent: 1 });
        assert_eq!(traffic.since(&before, &[]), TrafficCounts::default());
    }
}
