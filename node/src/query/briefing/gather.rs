//! Which entries of a workspace are read for a briefing: from their view rows, a bounded number.

use super::super::Reading;
use super::rows::Rows;
use crate::store::Error;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use std::collections::BTreeSet;

/// Entries that are chosen on each of four grounds: so many times four are read at most, however
/// many the workspace has.
const CHOSEN_MAX: usize = 128;

/// The greatest of what it is offered, a bounded number.
#[derive(Default)]
struct Greatest(BTreeSet<(u64, u64, EntryId)>);

impl Greatest {
    fn offer(&mut self, first: u64, then: u64, entry: EntryId) {
        let offered = (first, then, entry);
        let is_full = self.0.len() == CHOSEN_MAX;
        if is_full && self.0.first().is_some_and(|least| offered <= *least) {
            return;
        }
        self.0.insert(offered);
        if self.0.len() > CHOSEN_MAX {
            self.0.pop_first();
        }
    }
}

/// The entries of a workspace that are read, by id: what changed last, what has most records (every
/// author and every kind of word is one), what others brought last, and what is unchanged longest.
pub(super) fn choose(
    reading: &Reading<'_>,
    workspace: WorkspaceId,
) -> Result<BTreeSet<EntryId>, Error> {
    let mine = &reading.society.mine;
    reading.reader.rows.choose(reading.snapshot, workspace, mine, chosen)
}

fn chosen(rows: &Rows, mine: &BTreeSet<AuthorId>) -> BTreeSet<EntryId> {
    let [mut changed, mut spoken_of, mut brought, mut quiet] =
        [(); 4].map(|()| Greatest::default());
    for (entry, row) in rows {
        let (seq, seen, entry) = (row.seq, row.seen, *entry);
        changed.offer(seq, seen, entry);
        spoken_of.offer(row.records.into(), seq, entry);
        quiet.offer(u64::MAX - seq, seen, entry);
        if row.creator.is_none_or(|creator| !mine.contains(&creator)) {
            brought.offer(seen, seq, entry);
        }
    }
    let all = [changed, spoken_of, brought, quiet].into_iter().flat_map(|chosen| chosen.0);
    all.map(|(_, _, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_are_kept_whatever_the_order_and_however_many_come() {
        let entry = |number: u64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            EntryId::from_bytes(bytes)
        };
        let (mut up, mut down) = (Greatest::default(), Greatest::default());
        for number in 0..1_000 {
            up.offer(number, 0, entry(number));
            down.offer(999 - number, 0, entry(999 - number));
        }
        assert_eq!(up.0, down.0);
        assert_eq!(up.0.len(), CHOSEN_MAX);
        assert_eq!(up.0.last().map(|last| last.0), Some(999));
    }
}
