//! Selects a bounded number of entries for a briefing from their view rows.
//!
//! Entries that certainly do not qualify take no place, however many there are. Some places are
//! reserved for entries written by the owner, however much fellow members write.

use super::super::ReadContext;
use super::cache::{MemberSets, Row, WorkspaceRows};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_store::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Entries selected by each of five criteria; a briefing reads at most five times this number.
const CHOSEN_MAX: usize = 128;

/// An entry, with its primary and secondary sort key.
type OfferedEntry = (u64, u64, EntryId);

/// A bounded set that keeps the greatest items.
#[derive(Default)]
struct TopEntries(BTreeSet<OfferedEntry>);

impl TopEntries {
    /// Inserts an item that is greater than the smallest one. `is_welcome` is evaluated only for
    /// such items, because it may read the store.
    fn offer(
        &mut self,
        offered: OfferedEntry,
        is_welcome: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let is_full = self.0.len() == CHOSEN_MAX;
        if is_full && self.0.first().is_some_and(|least| offered <= *least) {
            return Ok(());
        }
        if is_welcome()? {
            self.0.insert(offered);
        }
        if self.0.len() > CHOSEN_MAX {
            self.0.pop_first();
        }
        Ok(())
    }
}

/// The relation of an entry to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryOwnership {
    /// The owner created or imported it.
    Mine,
    /// A member made a claim about it.
    Inside,
    /// Neither the owner nor a member made a claim about it.
    Outside,
}

/// Determines the relation of entries to the owner without reading them.
struct OwnershipLookup<'a> {
    members: &'a MemberSets,
    authors: &'a dyn Fn(EntryId) -> Result<Vec<AuthorId>, Error>,
    looked: BTreeMap<EntryId, EntryOwnership>,
}

impl OwnershipLookup<'_> {
    fn of(&mut self, entry: EntryId, row: &Row) -> Result<EntryOwnership, Error> {
        match row.creator {
            Some(creator) if self.members.mine.contains(&creator) => {
                return Ok(EntryOwnership::Mine);
            }
            Some(creator) if self.members.fellows.contains(&creator) => {
                return Ok(EntryOwnership::Inside);
            }
            _ => {}
        }
        if let Some(ownership) = self.looked.get(&entry) {
            return Ok(*ownership);
        }
        let authors = (self.authors)(entry)?;
        let is_mine = |author: &AuthorId| self.members.mine.contains(author);
        let is_fellow = |author: &AuthorId| self.members.fellows.contains(author);
        let ownership = if row.creator.is_none() && authors.iter().any(is_mine) {
            EntryOwnership::Mine
        } else if authors.iter().any(|author| is_mine(author) || is_fellow(author)) {
            EntryOwnership::Inside
        } else {
            EntryOwnership::Outside
        };
        self.looked.insert(entry, ownership);
        Ok(ownership)
    }
}

/// The entries of a workspace to read, by id: those that changed last, have the most records (one
/// per author and facet), are unchanged for longest, arrived last from other authors, and were last
/// written by the owner.
pub(super) fn choose(
    reading: &ReadContext<'_>,
    workspace: WorkspaceId,
) -> Result<BTreeSet<EntryId>, Error> {
    let (membership, snapshot) = (&reading.membership, reading.snapshot);
    let mine = membership.mine.clone();
    let fellows = match mine.iter().any(|own| membership.is_member(*own, workspace)) {
        true => membership.unblocked_members(workspace),
        false => BTreeSet::new(),
    };
    let members = MemberSets { mine, fellows };
    let authors = |entry| snapshot.authors(entry);
    let choose =
        |rows: &WorkspaceRows, members: &MemberSets| select_entries(rows, members, &authors);
    reading.reader.rows.choose(snapshot, workspace, &members, choose)
}

fn select_entries(
    rows: &WorkspaceRows,
    members: &MemberSets,
    authors: &dyn Fn(EntryId) -> Result<Vec<AuthorId>, Error>,
) -> Result<BTreeSet<EntryId>, Error> {
    let mut owners = OwnershipLookup { members, authors, looked: BTreeMap::new() };
    let [mut changed, mut spoken_of, mut quiet, mut brought, mut written] =
        [(); 5].map(|()| TopEntries::default());
    for (entry, row) in rows {
        let (seq, seen, entry) = (row.seq, row.seen, *entry);
        for (ground, first, then) in [
            (&mut changed, seq, seen),
            (&mut spoken_of, u64::from(row.records), seq),
            (&mut quiet, u64::MAX - seq, seen),
        ] {
            ground.offer((first, then, entry), || {
                Ok(owners.of(entry, row)? != EntryOwnership::Outside)
            })?;
        }
        brought
            .offer((seen, seq, entry), || Ok(owners.of(entry, row)? == EntryOwnership::Inside))?;
        written.offer((seq, seen, entry), || Ok(owners.of(entry, row)? == EntryOwnership::Mine))?;
    }
    let all = [changed, spoken_of, quiet, brought, written].into_iter().flat_map(|chosen| chosen.0);
    Ok(all.map(|(_, _, entry)| entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> EntryId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        EntryId::from_bytes(bytes)
    }

    fn author(byte: u8) -> AuthorId {
        AuthorId::from_bytes([byte; 32])
    }

    #[test]
    fn the_greatest_items_are_kept_in_any_order() {
        let (mut up, mut down) = (TopEntries::default(), TopEntries::default());
        for number in 0..1_000 {
            up.offer((number, 0, entry(number)), || Ok(true)).unwrap();
            down.offer((999 - number, 0, entry(999 - number)), || Ok(true)).unwrap();
        }
        assert_eq!(up.0, down.0);
        assert_eq!(up.0.len(), CHOSEN_MAX);
        assert_eq!(up.0.last().map(|last| last.0), Some(999));
    }

    #[test]
    fn outsiders_take_no_place_and_own_entries_keep_some() {
        let [own, fellow, outsider] = [1, 2, 3].map(author);
        let members = MemberSets { mine: [own].into(), fellows: [fellow].into() };
        // More entries of each group than there is room for, with the owner's in the middle.
        let kinds = [
            (outsider, true),
            (outsider, false),
            (fellow, true),
            (own, true),
            (own, false),
            (fellow, true),
            (outsider, false),
            (outsider, true),
        ];
        let mut rows = WorkspaceRows::new();
        let mut by = BTreeMap::new();
        for (kind, (author, is_created)) in (0_u64..).zip(kinds) {
            for number in kind * 300..(kind + 1) * 300 {
                let creator = is_created.then_some(author);
                let records = if author == own { 1 } else { 2 };
                rows.insert(entry(number), Row { seq: number, seen: number, records, creator });
                by.insert(entry(number), author);
            }
        }
        let authors = |entry: EntryId| -> Result<Vec<AuthorId>, Error> {
            Ok(by.get(&entry).copied().into_iter().collect())
        };
        let given = select_entries(&rows, &members, &authors).unwrap();
        let count = |of: AuthorId| given.iter().filter(|entry| by.get(*entry) == Some(&of)).count();
        assert_eq!(count(outsider), 0);
        assert!(count(own) >= CHOSEN_MAX && count(fellow) >= CHOSEN_MAX);
        assert!(given.len() <= 5 * CHOSEN_MAX);
    }
}
