//! Everything is examined again, piece by piece: for whom, how far that has come, and who waits for its
//! end.

use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};

/// One time through all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sweep {
    peers: BTreeSet<AuthorId>,
    /// Those of them who may have less than before: they are served nothing until it is over.
    held: BTreeSet<AuthorId>,
    /// Those who were struck off, with the workspaces of which they are served nothing until then.
    lost: BTreeMap<AuthorId, BTreeSet<WorkspaceId>>,
    after: Option<EntryId>,
}

/// The sweep under way, and the one after it.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    current: Option<Sweep>,
    next: Option<Sweep>,
}

/// What is examined in one go, and for whom.
pub(super) struct Piece {
    pub(super) entries: BTreeSet<EntryId>,
    pub(super) peers: BTreeSet<AuthorId>,
    rest: Option<Sweep>,
}

impl Sweeps {
    /// Examines everything again for these peers. A sweep under way is finished first: whoever makes
    /// many of them necessary does not keep those from being served who wait for its end.
    pub(super) fn add(&mut self, peers: BTreeSet<AuthorId>) {
        self.slot().peers.extend(peers);
    }

    /// The same, where something may end: a peer that reads on would be given what is not reached yet.
    pub(super) fn add_before_serving(&mut self, peers: BTreeSet<AuthorId>) {
        let sweep = self.slot();
        sweep.held.extend(&peers);
        sweep.peers.extend(peers);
    }

    /// The same for one who was struck off. Somebody else decides who belongs to a workspace, as often
    /// as it likes: nothing but that workspace waits.
    pub(super) fn add_without(&mut self, peer: AuthorId, lost: BTreeSet<WorkspaceId>) {
        let sweep = self.slot();
        sweep.peers.insert(peer);
        sweep.lost.entry(peer).or_default().extend(lost);
    }

    fn slot(&mut self) -> &mut Sweep {
        let has_begun = self.current.as_ref().is_some_and(|sweep| sweep.after.is_some());
        let slot = if has_begun { &mut self.next } else { &mut self.current };
        slot.get_or_insert_default()
    }

    /// Whether there is anything left to examine.
    pub(super) fn is_under_way(&self) -> bool {
        self.current.is_some()
    }

    /// Who is served nothing for now.
    pub(super) fn held(&self) -> BTreeSet<AuthorId> {
        let sweeps = self.current.iter().chain(&self.next);
        sweeps.flat_map(|sweep| &sweep.held).copied().collect()
    }

    /// Of which workspaces somebody is served nothing for now.
    pub(super) fn lost(&self) -> BTreeMap<AuthorId, BTreeSet<WorkspaceId>> {
        let mut all = BTreeMap::<_, BTreeSet<_>>::new();
        for (peer, lost) in self.current.iter().chain(&self.next).flat_map(|sweep| &sweep.lost) {
            all.entry(*peer).or_default().extend(lost);
        }
        all
    }

    /// What comes next, at most so many entries.
    pub(super) fn piece(&self, snapshot: &Snapshot, max: usize) -> Result<Option<Piece>, Error> {
        let Some(mut rest) = self.current.clone() else { return Ok(None) };
        let first = rest.after.map_or([0; 16], |after| *after.as_bytes());
        let mut entries = BTreeSet::new();
        for row in snapshot.entries_between(first, [0xFF; 16])?.take(max + 1) {
            entries.insert(row?.0);
        }
        let is_last = entries.len() <= max;
        if let Some(after) = rest.after {
            entries.remove(&after);
        }
        let peers = rest.peers.clone();
        rest.after = entries.last().copied();
        Ok(Some(Piece { entries, peers, rest: (!is_last).then_some(rest) }))
    }

    /// What the last piece came to is written down. Says who is served again of which workspaces, where
    /// that was the last.
    pub(super) fn pass(
        &mut self,
        piece: Option<Piece>,
    ) -> BTreeMap<AuthorId, BTreeSet<WorkspaceId>> {
        if let Some(rest) = piece.and_then(|piece| piece.rest) {
            self.current = Some(rest);
            return BTreeMap::new();
        }
        let over = std::mem::replace(&mut self.current, self.next.take());
        over.map(|over| over.lost).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers<const N: usize>(numbers: [u8; N]) -> BTreeSet<AuthorId> {
        numbers.map(|number| AuthorId::from_bytes([number; 32])).into()
    }

    /// Takes one piece of the sweep under way, as if entries were left after it, or none.
    fn go_on(sweeps: &mut Sweeps, has_more: bool) -> BTreeSet<AuthorId> {
        let mut rest = sweeps.current.clone().expect("a sweep under way");
        rest.after = Some(EntryId::from_bytes([9; 16]));
        let (entries, peers) = (BTreeSet::new(), rest.peers.clone());
        let rest = has_more.then_some(rest);
        let _ = sweeps.pass(Some(Piece { entries, peers: peers.clone(), rest }));
        peers
    }

    #[test]
    fn a_sweep_under_way_is_finished_before_the_next_begins() {
        let mut sweeps = Sweeps::default();
        sweeps.add_before_serving(peers([1]));
        assert_eq!(go_on(&mut sweeps, true), peers([1]));
        sweeps.add(peers([2]));
        sweeps.add_before_serving(peers([3]));
        assert_eq!(sweeps.held(), peers([1, 3]), "all who wait, whichever sweep they wait for");
        assert_eq!(go_on(&mut sweeps, false), peers([1]));
        assert_eq!(sweeps.held(), peers([3]), "whose sweep is over is served again");
        assert_eq!(go_on(&mut sweeps, true), peers([2, 3]), "the others, from the first entry");
        assert_eq!(go_on(&mut sweeps, false), peers([2, 3]));
        assert!(!sweeps.is_under_way() && sweeps.held().is_empty());
    }

    #[test]
    fn who_was_struck_off_is_served_of_all_else_until_the_sweep_is_over() {
        let [one, two] = [1, 2].map(|number| WorkspaceId::from_bytes([number; 16]));
        let peer = AuthorId::from_bytes([7; 32]);
        let mut sweeps = Sweeps::default();
        sweeps.add_without(peer, [one].into());
        go_on(&mut sweeps, true);
        sweeps.add_without(peer, [two].into());
        assert!(sweeps.held().is_empty());
        assert_eq!(sweeps.lost(), [(peer, [one, two].into())].into());
        go_on(&mut sweeps, false);
        assert_eq!(sweeps.lost(), [(peer, [two].into())].into());
        assert_eq!(go_on(&mut sweeps, false), [peer].into());
        assert!(sweeps.lost().is_empty());
    }

    #[test]
    fn a_sweep_that_has_not_begun_takes_more_peers() {
        let mut sweeps = Sweeps::default();
        sweeps.add(peers([1]));
        sweeps.add_before_serving(peers([2]));
        assert_eq!(sweeps.held(), peers([2]));
        assert_eq!(go_on(&mut sweeps, false), peers([1, 2]), "one time through is enough");
        assert!(!sweeps.is_under_way());
    }
}
