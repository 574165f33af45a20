//! Debounces address announcements of peers: each update is a commit, so at most one per minute and
//! peer is written, with the latest addresses.

use klnode_crdt::ids::AuthorId;
use std::collections::BTreeMap;

/// Minimum time between two writes for one peer, in milliseconds.
const KEPT_MS: u64 = 60_000;

/// The time of the last write for each peer, and its latest unwritten addresses.
#[derive(Default)]
pub(super) struct PendingAddresses(BTreeMap<AuthorId, (Option<u64>, Option<Vec<String>>)>);

impl PendingAddresses {
    /// Records an announcement.
    pub(super) fn hear(&mut self, peer: AuthorId, addresses: Vec<String>) {
        self.0.entry(peer).or_default().1 = Some(addresses);
    }

    /// The updates to write now. Peers without recent announcements are dropped from the map.
    pub(super) fn take_due(&mut self, at: u64) -> Vec<(AuthorId, Vec<String>)> {
        let is_due = |taken: Option<u64>| taken.is_none_or(|taken| at >= taken + KEPT_MS);
        self.0.retain(|_, (taken, said)| said.is_some() || !is_due(*taken));
        let mut due = Vec::new();
        for (peer, (taken, said)) in &mut self.0 {
            if is_due(*taken)
                && let Some(addresses) = said.take()
            {
                *taken = Some(at);
                due.push((*peer, addresses));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_updates_of_one_peer_are_debounced() {
        let (fickle, steady) = (AuthorId::from_bytes([1; 32]), AuthorId::from_bytes([2; 32]));
        let mut learned = PendingAddresses::default();
        let places = |number: u64| vec![format!("/ip4/10.0.0.1/tcp/{number}")];
        learned.hear(fickle, places(0));
        assert_eq!(learned.take_due(5), [(fickle, places(0))]);
        for number in 1..1_000 {
            learned.hear(fickle, places(number));
            assert_eq!(learned.take_due(5 + number), []);
        }
        learned.hear(steady, places(7));
        assert_eq!(learned.take_due(2_000), [(steady, places(7))]);
        assert_eq!(learned.take_due(5 + KEPT_MS), [(fickle, places(999))]);
        assert_eq!(learned.take_due(2_000 + 3 * KEPT_MS), []);
        assert!(learned.0.is_empty(), "silent peers are dropped");
    }
}
