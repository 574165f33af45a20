//! Which entries of a workspace are read for a briefing: from their view rows, a bounded number.

use super::super::Reading;
use super::rows::Rows;
use crate::store::Error;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use std::collections::BTreeSet;

/// Entries that are chosen on each of four grounds: so many times four are read at most, however
/// many the workspace has.
const CHOSEN_MAX: usize = 128;

/// What entries are compared by.
type Rank = (u64, u64, EntryId);

/// The greatest of what it is offered, a bounded number.
#[derive(Default)]
struct Greatest {
    held: BTreeSet<Rank>,
    /// The least of them, once there is no room for more.
    least: Option<Rank>,
}

impl Greatest {
    /// Whether it would take it. This is all that is asked of nearly every row of a large store.
    #[inline]
    fn takes(&self, offered: &Rank) -> bool {
        self.least.as_ref().is_none_or(|least| offered > least)
    }

    fn offer(&mut self, offered: Rank) {
        if !self.takes(&offered) {
            return;
        }
        self.held.insert(offered);
        if self.held.len() > CHOSEN_MAX {
            self.held.pop_first();
        }
        if self.held.len() == CHOSEN_MAX {
            self.least = self.held.first().copied();
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
    reading.reader.rows.read(reading.snapshot, workspace, |rows| chosen(rows, mine))
}

fn chosen(rows: &Rows, mine: &BTreeSet<AuthorId>) -> BTreeSet<EntryId> {
    let [mut changed, mut spoken_of, mut brought, mut quiet] =
        [(); 4].map(|()| Greatest::default());
    for (entry, row) in rows {
        let (seq, seen, entry) = (row.seq, row.seen, *entry);
        changed.offer((seq, seen, entry));
        spoken_of.offer((row.records.into(), seq, entry));
        quiet.offer((u64::MAX - seq, seen, entry));
        // Who created it is looked up last: it takes longest.
        let is_brought = || row.creator.is_none_or(|creator| !mine.contains(&creator));
        if brought.takes(&(seen, seq, entry)) && is_brought() {
            brought.offer((seen, seq, entry));
        }
    }
    let all = [changed, spoken_of, brought, quiet].into_iter().flat_map(|chosen| chosen.held);
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
            up.offer((number, 0, entry(number)));
            down.offer((999 - number, 0, entry(999 - number)));
        }
        assert_eq!(up.held, down.held);
        assert_eq!(up.held.len(), CHOSEN_MAX);
        assert_eq!(up.held.last().map(|last| last.0), Some(999));
        let least = up.held.first().copied().unwrap();
        assert!(!up.takes(&least) && up.takes(&(least.0, 1, least.2)));
    }
}
