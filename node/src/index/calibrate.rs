//! How to read a model's cosines: measured for the built-in one, sampled from the store for others.
//!
//! Only what is inside is sampled: a flood of one text would make all others look unrelated. And it
//! is looked for until there is enough of it, however much from outside stands between: what is
//! from outside is told by its row alone, so that passing it over is cheap.

use super::document::Document;
use super::embed::Embedder;
use super::vectors::Vectors;
use crate::store::peers::Society;
use crate::store::rows::ViewRow;
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::EntryId;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_scoring::relevance::Calibration;

/// Pairs of entries whose cosines are looked at.
const SAMPLE_COSINES: usize = 2_000;
/// Entries that these pairs are made of.
const SAMPLE_ENTRIES: usize = 1_000;

/// How to read the cosines of the vectors of a store.
pub(super) fn calibrate(
    embedder: &dyn Embedder,
    vectors: &Vectors,
    (snapshot, society): (&Snapshot, &Society),
    now: WallTime,
) -> Result<Calibration, Error> {
    if embedder.weights().is_some() {
        return Ok(Calibration::BUILT_IN);
    }
    let is_inside = |entry| is_inside(snapshot, entry, society, now);
    let sampled = sample(snapshot, society, &is_inside)?;
    let cosines = vectors.sample_cosines(SAMPLE_COSINES, &sampled);
    Ok(Calibration::of_sample(&cosines).unwrap_or(Calibration::BUILT_IN))
}

/// Whether an entry is not from outside; what cannot be read is left aside, too.
fn is_inside(snapshot: &Snapshot, entry: EntryId, society: &Society, now: WallTime) -> bool {
    let read = Document::read(snapshot, entry, society, now);
    matches!(read, Ok(Some(document)) if !document.is_outside)
}

/// Entries that are not from outside, in the order of their ids: those are hashes, so that the first
/// of them are as good as any.
fn sample(
    snapshot: &Snapshot,
    society: &Society,
    is_inside: &dyn Fn(EntryId) -> bool,
) -> Result<Vec<EntryId>, Error> {
    let mut sampled = Vec::new();
    for row in snapshot.entries()? {
        let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
        if may_be_inside(&row, society) && is_inside(entry) {
            sampled.push(entry);
            if sampled.len() >= SAMPLE_ENTRIES {
                break;
            }
        }
    }
    Ok(sampled)
}

/// Whether an entry is worth reading: what an outsider created, and what has no text to find it by,
/// is not.
fn may_be_inside(row: &ViewRow, society: &Society) -> bool {
    let Some(workspace) = row.workspace.filter(|_| !row.is_forgotten) else { return false };
    let is_outside = |creator| society.is_outside(creator, workspace);
    row.memory() != Some(Memory::Episodic) && !row.creator.is_some_and(is_outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Store};
    use klnode_crdt::ids::{AuthorId, Nonce, WorkspaceId};
    use klnode_crdt::origin::Origin;
    use klnode_crdt::time::Hlc;
    use std::cell::Cell;

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    fn origin(creator: AuthorId, number: u64, memory: Memory) -> Origin {
        let (stamp, nonce) = (Hlc::from_bits(number), Nonce::default());
        Origin::Created { creator, stamp, nonce, workspace: WorkspaceId::MAIN, memory }
    }

    #[test]
    fn what_is_inside_is_found_among_any_number_from_outside_which_is_not_even_read() {
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
        let society = Society { mine: [author(1)].into(), ..Society::default() };
        let read = Cell::new(0);
        let is_inside = |_| {
            read.set(read.get() + 1);
            true
        };
        assert_eq!(sample(&snapshot, &society, &is_inside).unwrap(), inside);
        assert_eq!(read.get(), 30);
        let all = Society { mine: [1, 2].map(author).into(), ..Society::default() };
        assert_eq!(sample(&snapshot, &all, &|_| true).unwrap().len(), SAMPLE_ENTRIES);
        assert!(sample(&snapshot, &all, &|_| false).unwrap().is_empty());
    }
}
