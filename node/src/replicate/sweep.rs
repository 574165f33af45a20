//! Everything is examined again, piece by piece: for whom, how far that has come, and who waits for its
//! end. Where nobody does, it takes its time: what else the machine does goes first.

use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};

/// A sweep for which nobody waits rests so many times as long as its last piece took: it has a fifth of
/// one core.
const REST_TIMES: u64 = 4;

/// It rests no longer than this, in milliseconds, whatever held that piece up.
const REST_MAX_MS: u64 = 60_000;

/// One time through all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sweep {
    peers: BTreeSet<AuthorId>,
    /// Those of them who may have less than before: they are served nothing until it is over.
    held: BTreeSet<AuthorId>,
    /// Those who were struck off, with the workspaces of which they are served nothing until then.
    lost: BTreeMap<AuthorId, BTreeSet<WorkspaceId>>,
    /// Somebody may have more or less than before: it is not put off.
    is_urgent: bool,
    after: Option<EntryId>,
}

/// The sweep under way, and the one after it.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    current: Option<Sweep>,
    next: Option<Sweep>,
    /// A piece was taken, and it was not told yet how long that took.
    has_gone_on: bool,
    /// The next one for which nobody waits comes no earlier, in milliseconds.
    rest_until: u64,
}

/// What is examined in one go, and for whom.
pub(super) struct Piece {
    pub(super) entries: BTreeSet<EntryId>,
    pub(super) peers: BTreeSet<AuthorId>,
    rest: Option<Sweep>,
}

impl Sweeps {
    /// Examines everything again for these peers. A sweep under way is finished first: whoever makes
    /// many of them necessary does not keep those from being served who wait for its end. One that nobody
    /// waits for begins anew, with these.
    pub(super) fn add(&mut self, peers: BTreeSet<AuthorId>) {
        self.urgent().peers.extend(peers);
    }

    /// The same, where nobody waits for it: time has passed, or an author is nearer than was known.
    pub(super) fn add_at_leisure(&mut self, peers: BTreeSet<AuthorId>) {
        self.slot().peers.extend(peers);
    }

    /// The same, where something may end: a peer that reads on would be given what is not reached yet.
    pub(super) fn add_before_serving(&mut self, peers: BTreeSet<AuthorId>) {
        self.urgent().held.extend(&peers);
        self.add(peers);
    }

    /// The same for one who was struck off. Somebody else decides who belongs to a workspace, as often
    /// as it likes: nothing but that workspace waits.
    pub(super) fn add_without(&mut self, peer: AuthorId, lost: BTreeSet<WorkspaceId>) {
        self.urgent().lost.entry(peer).or_default().extend(lost);
        self.add([peer].into());
    }

    fn urgent(&mut self) -> &mut Sweep {
        if let Some(sweep) = self.current.as_mut().filter(|sweep| !sweep.is_urgent) {
            sweep.after = None;
        }
        let sweep = self.slot();
        sweep.is_urgent = true;
        sweep
    }

    fn slot(&mut self) -> &mut Sweep {
        let has_begun = self.current.as_ref().is_some_and(|sweep| sweep.after.is_some());
        let slot = if has_begun { &mut self.next } else { &mut self.current };
        slot.get_or_insert_default()
    }

    /// When there is something to examine, if there is anything left. Whoever waits for the next sweep
    /// waits for the one under way.
    pub(super) fn next_at(&self, at: u64) -> Option<u64> {
        let is_urgent = self.current.iter().chain(&self.next).any(|sweep| sweep.is_urgent);
        let next_at = if is_urgent { at } else { at.max(self.rest_until) };
        self.current.is_some().then_some(next_at)
    }

    /// What was done last took from one moment to another. If a piece was among it, the next one for
    /// which nobody waits is put off.
    pub(super) fn rest(&mut self, begun: u64, ended: u64) {
        if std::mem::take(&mut self.has_gone_on) {
            let rest = ended.saturating_sub(begun).saturating_mul(REST_TIMES);
            self.rest_until = ended.saturating_add(rest.min(REST_MAX_MS));
        }
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

    /// What comes next, at most so many entries; nothing while it rests.
    pub(super) fn piece(
        &mut self,
        snapshot: &Snapshot,
        max: usize,
        at: u64,
    ) -> Result<Option<Piece>, Error> {
        let is_due = self.next_at(at) == Some(at);
        let Some(mut rest) = self.current.clone().filter(|_| is_due) else { return Ok(None) };
        self.has_gone_on = true;
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
        let Some(Piece { rest, .. }) = piece else { return BTreeMap::new() };
        if rest.is_some() {
            self.current = rest;
            return BTreeMap::new();
        }
        let over = std::mem::replace(&mut self.current, self.next.take());
        over.map(|over| over.lost).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing;

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
        assert!(sweeps.current.is_none() && sweeps.held().is_empty());
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
        assert!(sweeps.current.is_none());
    }

    #[test]
    fn only_where_nobody_waits_is_the_next_piece_put_off() {
        let store = testing::store();
        let snapshot = store.snapshot().unwrap();
        let mut sweeps = Sweeps::default();
        assert_eq!(sweeps.next_at(90), None);
        sweeps.add_at_leisure(peers([1]));
        assert_eq!(sweeps.next_at(90), Some(90));
        sweeps.rest(90, 99);
        assert_eq!(sweeps.next_at(99), Some(99), "no piece was among it");
        let piece = sweeps.piece(&snapshot, 1, 100).unwrap();
        assert!(piece.is_some());
        let _ = sweeps.pass(piece);
        sweeps.rest(100, 110);
        sweeps.add_at_leisure(peers([1]));
        assert_eq!([110, 149, 150].map(|at| sweeps.next_at(at)), [150, 150, 150].map(Some));
        assert!(sweeps.piece(&snapshot, 1, 149).unwrap().is_none());
        let _ = sweeps.pass(None);
        assert_eq!(sweeps.next_at(149), Some(150), "what rests is not over");
        go_on(&mut sweeps, true);
        sweeps.add(peers([2]));
        assert_eq!(sweeps.next_at(120), Some(120), "nor rests what another waits for");
        assert!(sweeps.piece(&snapshot, 1, 120).unwrap().is_some());
        sweeps.rest(120, u64::MAX / 2);
        assert_eq!(go_on(&mut sweeps, false), peers([1, 2]), "it has begun anew, for both");
        sweeps.add_at_leisure(peers([1]));
        assert_eq!(sweeps.next_at(0), Some(u64::MAX / 2 + REST_MAX_MS), "and none for ever");
    }
}
