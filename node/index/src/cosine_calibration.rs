//! Calibrates the cosines of a model: measured for the built-in one, sampled from the store for
//! others.
//!
//! Only entries by insiders are sampled: a flood of one text would make all others look unrelated.
//! The search for them continues until there are enough, however many entries by outsiders lie
//! between: the view row alone shows an outsider's entry, so skipping it is cheap.

use super::document::Document;
use super::vectors::Vectors;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_embed::Embedder;
use klnode_scoring::relevance::Calibration;
use klnode_store::peers::Membership;
use klnode_store::row_types::ViewRow;
use klnode_store::{Error, Snapshot};

/// Number of pairs whose cosines are sampled.
const SAMPLE_COSINES: usize = 2_000;
/// Number of entries that these pairs are drawn from.
const SAMPLE_ENTRIES: usize = 1_000;

/// The calibration for the vectors of a store.
pub(super) fn calibrate(
    embedder: &dyn Embedder,
    vectors: &Vectors,
    (snapshot, membership): (&Snapshot, &Membership),
    now: WallTime,
) -> Result<Calibration, Error> {
    if embedder.weights().is_some() {
        return Ok(Calibration::BUILT_IN);
    }
    let is_inside = |entry| is_inside(snapshot, entry, membership, now);
    let sampled = sample(snapshot, membership, &is_inside)?;
    let cosines = vectors.sample_cosines(SAMPLE_COSINES, &sampled);
    Ok(Calibration::of_sample(&cosines).unwrap_or(Calibration::BUILT_IN))
}

/// True if an entry is by insiders; false for an unreadable one.
fn is_inside(snapshot: &Snapshot, entry: EntryId, membership: &Membership, now: WallTime) -> bool {
    let read = Document::read(snapshot, entry, membership, now);
    matches!(read, Ok(Some(document)) if !document.is_outside)
}

/// Entries by insiders in order of id: ids are hashes, so the first ones are a fair sample.
fn sample(
    snapshot: &Snapshot,
    membership: &Membership,
    is_inside: &dyn Fn(EntryId) -> bool,
) -> Result<Vec<EntryId>, Error> {
    let mut sampled = Vec::new();
    for row in snapshot.entries()? {
        let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
        if may_be_inside(&row, membership) && is_inside(entry) {
            sampled.push(entry);
            if sampled.len() >= SAMPLE_ENTRIES {
                break;
            }
        }
    }
    Ok(sampled)
}

/// True if an entry is worth reading: not created by an outsider, and with a text to find it by.
fn may_be_inside(row: &ViewRow, membership: &Membership) -> bool {
    let Some(workspace) = row.workspace.filter(|_| !row.is_forgotten) else { return false };
    let is_outside = |creator| membership.is_outside(creator, workspace);
    row.memory() != Some(Memory::Episodic) && !row.creator.is_some_and(is_outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::entry_origin::Origin;
    use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
    use klnode_crdt::time::Hlc;
    use klnode_store::{Durability, Store};
    use std::cell::Cell;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn origin(creator: AuthorId, number: u64, memory: Memory) -> Origin {
        let (stamp, nonce) = (Hlc::from_bits(number), Nonce::default());
        Origin::Created { creator, stamp, nonce, workspace: WorkspaceId::MAIN, memory }
    }

    #[test]
    fn entries_by_outsiders_are_skipped_unread() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let put = |origin: Origin| {
            let mut row = ViewRow::new(WallTime::from_millis(1));
            row.learn(&origin);
            batch.put_view_row(origin.id(), &row).unwrap();
            origin.id()
        };
        let mut inside: Vec<EntryId> =
            (0..30).map(|number| put(origin(author(1), number, Memory::Semantic))).collect();
        inside.sort_unstable();
        for number in 0..20_000 {
            put(origin(author(2), number, Memory::Semantic));
        }
        put(origin(author(1), 99, Memory::Episodic));
        let parked = EntryId::from_bytes([3; 16]);
        batch.put_view_row(parked, &ViewRow::new(WallTime::from_millis(1))).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let membership = Membership { mine: [author(1)].into(), ..Membership::default() };
        let read = Cell::new(0);
        let is_inside = |_| {
            read.set(read.get() + 1);
            true
        };
        assert_eq!(sample(&snapshot, &membership, &is_inside).unwrap(), inside);
        assert_eq!(read.get(), 30);
        let all = Membership { mine: [1, 2].map(author).into(), ..Membership::default() };
        assert_eq!(sample(&snapshot, &all, &|_| true).unwrap().len(), SAMPLE_ENTRIES);
        assert!(sample(&snapshot, &all, &|_| false).unwrap().is_empty());
    }
}
