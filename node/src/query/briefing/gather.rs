//! Which entries of a workspace are read for a briefing: from their view rows, a bounded number.
//!
//! What surely may not be told takes nobody's place, however much of it there is; and some places
//! are for what this person wrote, however much fellow members write.

use super::super::Reading;
use super::rows::{Circle, Row, Rows};
use crate::store::Error;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};

/// Entries that are chosen on each of five grounds: so many times five are read at most, however
/// many the workspace has.
const CHOSEN_MAX: usize = 128;

/// An entry, and what it is chosen by.
type Offered = (u64, u64, EntryId);

/// The greatest of what it is offered, a bounded number.
#[derive(Default)]
struct Greatest(BTreeSet<Offered>);

impl Greatest {
    /// Takes what is greater than the least there is. Of nothing else it is asked whether it is
    /// welcome.
    fn offer(
        &mut self,
        offered: Offered,
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

/// Whose an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// This person created or imported it.
    Mine,
    /// Somebody inside has said something about it.
    Inside,
    /// Nobody has whose word could let it in.
    Outside,
}

/// Whose entries are, told without reading them.
struct Owners<'a> {
    circle: &'a Circle,
    authors: &'a dyn Fn(EntryId) -> Result<Vec<AuthorId>, Error>,
    looked: BTreeMap<EntryId, Whose>,
}

impl Owners<'_> {
    fn of(&mut self, entry: EntryId, row: &Row) -> Result<Whose, Error> {
        match row.creator {
            Some(creator) if self.circle.mine.contains(&creator) => return Ok(Whose::Mine),
            Some(creator) if self.circle.fellows.contains(&creator) => return Ok(Whose::Inside),
            _ => {}
        }
        if let Some(whose) = self.looked.get(&entry) {
            return Ok(*whose);
        }
        let authors = (self.authors)(entry)?;
        let is_mine = |author: &AuthorId| self.circle.mine.contains(author);
        let is_fellow = |author: &AuthorId| self.circle.fellows.contains(author);
        let whose = if row.creator.is_none() && authors.iter().any(is_mine) {
            Whose::Mine
        } else if authors.iter().any(|author| is_mine(author) || is_fellow(author)) {
            Whose::Inside
        } else {
            Whose::Outside
        };
        self.looked.insert(entry, whose);
        Ok(whose)
    }
}

/// The entries of a workspace that are read, by id: what changed last, what has most records (every
/// author and every kind of word is one), what is unchanged longest, what others brought last, and
/// what this person wrote last.
pub(super) fn choose(
    reading: &Reading<'_>,
    workspace: WorkspaceId,
) -> Result<BTreeSet<EntryId>, Error> {
    let (society, snapshot) = (&reading.society, reading.snapshot);
    let mine = society.mine.clone();
    let fellows = match mine.iter().any(|own| society.is_member(*own, workspace)) {
        true => society.heard_members(workspace),
        false => BTreeSet::new(),
    };
    let circle = Circle { mine, fellows };
    let authors = |entry| snapshot.authors(entry);
    let choose = |rows: &Rows, circle: &Circle| chosen(rows, circle, &authors);
    reading.reader.rows.choose(snapshot, workspace, &circle, choose)
}

fn chosen(
    rows: &Rows,
    circle: &Circle,
    authors: &dyn Fn(EntryId) -> Result<Vec<AuthorId>, Error>,
) -> Result<BTreeSet<EntryId>, Error> {
    let mut owners = Owners { circle, authors, looked: BTreeMap::new() };
    let [mut changed, mut spoken_of, mut quiet, mut brought, mut written] =
        [(); 5].map(|()| Greatest::default());
    for (entry, row) in rows {
        let (seq, seen, entry) = (row.seq, row.seen, *entry);
        for (ground, first, then) in [
            (&mut changed, seq, seen),
            (&mut spoken_of, u64::from(row.records), seq),
            (&mut quiet, u64::MAX - seq, seen),
        ] {
            ground.offer((first, then, entry), || Ok(owners.of(entry, row)? != Whose::Outside))?;
        }
        brought.offer((seen, seq, entry), || Ok(owners.of(entry, row)? == Whose::Inside))?;
        written.offer((seq, seen, entry), || Ok(owners.of(entry, row)? == Whose::Mine))?;
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
    fn the_greatest_are_kept_whatever_the_order_and_however_many_come() {
        let (mut up, mut down) = (Greatest::default(), Greatest::default());
        for number in 0..1_000 {
            up.offer((number, 0, entry(number)), || Ok(true)).unwrap();
            down.offer((999 - number, 0, entry(999 - number)), || Ok(true)).unwrap();
        }
        assert_eq!(up.0, down.0);
        assert_eq!(up.0.len(), CHOSEN_MAX);
        assert_eq!(up.0.last().map(|last| last.0), Some(999));
    }

    #[test]
    fn what_is_from_outside_takes_no_place_and_what_is_ones_own_keeps_some() {
        let [own, fellow, outsider] = [1, 2, 3].map(author);
        let circle = Circle { mine: [own].into(), fellows: [fellow].into() };
        // Of each kind more than there is room for, the own in the middle of everything.
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
        let mut rows = Rows::new();
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
        let given = chosen(&rows, &circle, &authors).unwrap();
        let count = |of: AuthorId| given.iter().filter(|entry| by.get(*entry) == Some(&of)).count();
        assert_eq!(count(outsider), 0);
        assert!(count(own) >= CHOSEN_MAX && count(fellow) >= CHOSEN_MAX);
        assert!(given.len() <= 5 * CHOSEN_MAX);
    }
}
