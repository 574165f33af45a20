//! Examines all entries again in batches, for some peers. Peers whose releases may shrink wait for
//! the end; a sweep that no peer waits for runs in the background at low priority.

use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// After a batch, a background sweep rests this many times as long as the batch took. It thus uses
/// a fifth of one core.
const REST_TIMES: u64 = 4;

/// The longest pause between two batches in milliseconds, however long a batch took.
const REST_MAX_MS: u64 = 60_000;

/// One pass over all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sweep {
    peers: BTreeSet<AuthorId>,
    /// Peers that may have less than before: they are served nothing until the pass is over.
    held: BTreeSet<AuthorId>,
    /// Peers that were removed from workspaces: they are served nothing of these until the pass is
    /// over.
    lost: BTreeMap<AuthorId, BTreeSet<WorkspaceId>>,
    /// True if a peer may have more or less than before: the pass does not rest.
    is_urgent: bool,
    after: Option<EntryId>,
}

/// The current sweep and the next one.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    current: Option<Sweep>,
    next: Option<Sweep>,
    /// A batch was taken and its duration is not known yet.
    has_gone_on: bool,
    /// The end of the rest of a background sweep, in milliseconds.
    rest_until: u64,
}

/// One batch of a sweep.
pub(super) struct SweepBatch {
    pub(super) entries: BTreeSet<EntryId>,
    pub(super) peers: BTreeSet<AuthorId>,
    rest: Option<Sweep>,
}

impl Sweeps {
    /// Examines all entries again for these peers. A sweep in progress is finished first, so that
    /// causing many sweeps does not starve the peers that wait for its end. A background sweep
    /// starts over with these peers.
    pub(super) fn add(&mut self, peers: BTreeSet<AuthorId>) {
        self.urgent().peers.extend(peers);
    }

    /// Adds a background sweep: time has passed, or an author is nearer than was known.
    pub(super) fn add_at_leisure(&mut self, peers: BTreeSet<AuthorId>) {
        self.slot().peers.extend(peers);
    }

    /// Adds a sweep that may end releases. The peers wait, because they would otherwise get entries
    /// that are not examined yet.
    pub(super) fn add_before_serving(&mut self, peers: BTreeSet<AuthorId>) {
        self.urgent().held.extend(&peers);
        self.add(peers);
    }

    /// Adds a sweep for a peer that was removed from workspaces. Only these workspaces wait,
    /// because other nodes can change their members as often as they like.
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

    /// When the next batch is due, if entries are left. An urgent next sweep makes the current one
    /// urgent.
    pub(super) fn next_at(&self, at: u64) -> Option<u64> {
        let is_urgent = self.current.iter().chain(&self.next).any(|sweep| sweep.is_urgent);
        let next_at = if is_urgent { at } else { at.max(self.rest_until) };
        self.current.is_some().then_some(next_at)
    }

    /// Reports the duration of the last call. After a batch, the next one of a background sweep
    /// waits.
    pub(super) fn rest(&mut self, begun: u64, ended: u64) {
        if std::mem::take(&mut self.has_gone_on) {
            let rest = ended.saturating_sub(begun).saturating_mul(REST_TIMES);
            self.rest_until = ended.saturating_add(rest.min(REST_MAX_MS));
        }
    }

    /// Peers that are served nothing for now.
    pub(super) fn held_peers(&self) -> BTreeSet<AuthorId> {
        let sweeps = self.current.iter().chain(&self.next);
        sweeps.flat_map(|sweep| &sweep.held).copied().collect()
    }

    /// Workspaces of which peers are served nothing for now.
    pub(super) fn lost(&self) -> BTreeMap<AuthorId, BTreeSet<WorkspaceId>> {
        let mut all = BTreeMap::<_, BTreeSet<_>>::new();
        for (peer, lost) in self.current.iter().chain(&self.next).flat_map(|sweep| &sweep.lost) {
            all.entry(*peer).or_default().extend(lost);
        }
        all
    }

    /// The next batch of at most `max` entries; `None` while the sweep rests.
    pub(super) fn piece(
        &mut self,
        snapshot: &Snapshot,
        max: usize,
        at: u64,
    ) -> Result<Option<SweepBatch>, Error> {
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
        Ok(Some(SweepBatch { entries, peers, rest: (!is_last).then_some(rest) }))
    }

    /// Completes a batch after its results were written. At the end of a sweep, returns the peers
    /// that are served again, with their workspaces.
    pub(super) fn pass(
        &mut self,
        piece: Option<SweepBatch>,
    ) -> BTreeMap<AuthorId, BTreeSet<WorkspaceId>> {
        let Some(SweepBatch { rest, .. }) = piece else { return BTreeMap::new() };
        if rest.is_some() {
            self.current = rest;
            return BTreeMap::new();
        }
        let over = std::mem::replace(&mut self.current, self.next.take());
        over.map(|over| over.lost).unwrap_or_default()
    }
}

/// The entries changed after a position, up to one batch, and the position reached.
pub(super) fn entries_changed_since(
    snapshot: &Snapshot,
    from: Seq,
    entries_max: usize,
) -> Result<(BTreeSet<EntryId>, Seq), Error> {
    let mut entries = BTreeSet::new();
    for change in snapshot.changes_since(from)? {
        // An unreadable record is not sent either.
        let Some(change) = Error::unless_damaged(change)? else { continue };
        entries.insert(change.record.entry());
        if entries.len() == entries_max {
            return Ok((entries, change.seq));
        }
    }
    Ok((entries, snapshot.head()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_engine::testing;

    fn peers<const N: usize>(numbers: [u8; N]) -> BTreeSet<AuthorId> {
        numbers.map(|number| AuthorId::from_bytes([number; 32])).into()
    }

    /// Takes one batch of the current sweep, with or without entries left after it.
    fn go_on(sweeps: &mut Sweeps, has_more: bool) -> BTreeSet<AuthorId> {
        let mut rest = sweeps.current.clone().expect("a sweep under way");
        rest.after = Some(EntryId::from_bytes([9; 16]));
        let (entries, peers) = (BTreeSet::new(), rest.peers.clone());
        let rest = has_more.then_some(rest);
        let _ = sweeps.pass(Some(SweepBatch { entries, peers: peers.clone(), rest }));
        peers
    }

    #[test]
    fn a_sweep_in_progress_is_finished_before_the_next_begins() {
        let mut sweeps = Sweeps::default();
        sweeps.add_before_serving(peers([1]));
        assert_eq!(go_on(&mut sweeps, true), peers([1]));
        sweeps.add(peers([2]));
        sweeps.add_before_serving(peers([3]));
        assert_eq!(sweeps.held_peers(), peers([1, 3]), "waiting peers of both sweeps");
        assert_eq!(go_on(&mut sweeps, false), peers([1]));
        assert_eq!(sweeps.held_peers(), peers([3]), "peers of a finished sweep are served again");
        assert_eq!(
            go_on(&mut sweeps, true),
            peers([2, 3]),
            "the other peers, from the first entry"
        );
        assert_eq!(go_on(&mut sweeps, false), peers([2, 3]));
        assert!(sweeps.current.is_none() && sweeps.held_peers().is_empty());
    }

    #[test]
    fn a_removed_member_waits_only_for_the_lost_workspaces() {
        let [one, two] = [1, 2].map(|number| WorkspaceId::from_bytes([number; 16]));
        let peer = AuthorId::from_bytes([7; 32]);
        let mut sweeps = Sweeps::default();
        sweeps.add_without(peer, [one].into());
        go_on(&mut sweeps, true);
        sweeps.add_without(peer, [two].into());
        assert!(sweeps.held_peers().is_empty());
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
        assert_eq!(sweeps.held_peers(), peers([2]));
        assert_eq!(go_on(&mut sweeps, false), peers([1, 2]), "one pass is enough");
        assert!(sweeps.current.is_none());
    }

    #[test]
    fn only_background_sweeps_rest() {
        let store = testing::store();
        let snapshot = store.snapshot().unwrap();
        let mut sweeps = Sweeps::default();
        assert_eq!(sweeps.next_at(90), None);
        sweeps.add_at_leisure(peers([1]));
        assert_eq!(sweeps.next_at(90), Some(90));
        sweeps.rest(90, 99);
        assert_eq!(sweeps.next_at(99), Some(99), "no batch was taken");
        let piece = sweeps.piece(&snapshot, 1, 100).unwrap();
        assert!(piece.is_some());
        let _ = sweeps.pass(piece);
        sweeps.rest(100, 110);
        sweeps.add_at_leisure(peers([1]));
        assert_eq!([110, 149, 150].map(|at| sweeps.next_at(at)), [150, 150, 150].map(Some));
        assert!(sweeps.piece(&snapshot, 1, 149).unwrap().is_none());
        let _ = sweeps.pass(None);
        assert_eq!(sweeps.next_at(149), Some(150), "a resting sweep is not over");
        go_on(&mut sweeps, true);
        sweeps.add(peers([2]));
        assert_eq!(sweeps.next_at(120), Some(120), "an urgent next sweep ends the rest");
        assert!(sweeps.piece(&snapshot, 1, 120).unwrap().is_some());
        sweeps.rest(120, u64::MAX / 2);
        assert_eq!(go_on(&mut sweeps, false), peers([1, 2]), "it started over, for both peers");
        sweeps.add_at_leisure(peers([1]));
        assert_eq!(sweeps.next_at(0), Some(u64::MAX / 2 + REST_MAX_MS), "the rest is bounded");
    }
}
