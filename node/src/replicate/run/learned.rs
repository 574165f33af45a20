//! Where peers say that they are, until it is written down. A peer may say something else at any
//! moment, and each writing is a commit: there is one in a minute for each, of its last word.

use klnode_crdt::ids::AuthorId;
use std::collections::BTreeMap;

/// So long after a peer's word was taken the next one waits, in milliseconds.
const KEPT_MS: u64 = 60_000;

/// When each peer's word was last taken, and what it has said since.
#[derive(Default)]
pub(super) struct Learned(BTreeMap<AuthorId, (Option<u64>, Option<Vec<String>>)>);

impl Learned {
    /// Hears where a peer says that it is.
    pub(super) fn hear(&mut self, peer: AuthorId, addresses: Vec<String>) {
        self.0.entry(peer).or_default().1 = Some(addresses);
    }

    /// What is to be written down now. Of whoever has been silent for long nothing is kept.
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
    fn of_a_peer_that_moves_all_the_time_the_last_word_is_kept_once_in_a_while() {
        let (fickle, steady) = (AuthorId::from_bytes([1; 32]), AuthorId::from_bytes([2; 32]));
        let mut learned = Learned::default();
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
        assert!(learned.0.is_empty(), "nothing is kept of whoever is silent");
    }
}
