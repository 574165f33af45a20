//! Hints at what takes an entry's place: noted when a record says so, gone when none does any longer.
//!
//! Anyone may say that an entry takes the place of any other, so what is noted is bounded here, for
//! each author and for all who may not speak for the entry that is to give way. Whether a hint
//! holds is decided where it is read (`query::succession`).

use super::ingest::Ingest;
use crate::store::places::HINTS_MAX;
use crate::store::{Batch, Error};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use std::collections::{BTreeMap, BTreeSet};

/// Hints of one author who may not speak for it at what takes one entry's place.
const AUTHOR_HINTS_MAX: usize = 16;
/// Hints at what takes one entry's place, from which on those who may not speak for it leave none.
const ENTRY_HINTS_MAX: usize = 256;

/// By entry: what some record said that it takes the place of, and the author's next one does not.
pub(super) type Unsaid = BTreeMap<EntryId, BTreeSet<EntryId>>;

/// Of which workspaces an author is a member, as far as it was asked: a charter takes long to read.
type Membership = BTreeMap<WorkspaceId, bool>;

impl Ingest<'_> {
    /// Keeps the hints that an author's records on an entry leave: those of what it holds now, and from
    /// the end of the step on no longer those that only earlier records gave.
    pub(super) fn follow_hints(
        &mut self,
        batch: &Batch,
        (before, after): (&Holding, &Holding),
        (entry, author): (EntryId, AuthorId),
    ) -> Result<(), Error> {
        let (had, has) = (superseded(before.records()), superseded(after.records()));
        let mut membership = BTreeMap::new();
        for old in &has {
            if !batch.is_successor(*old, entry)?
                && self.may_hint(batch, *old, author, &mut membership)?
            {
                batch.put_successor(*old, entry)?;
            }
        }
        let mut gone = had.difference(&has).copied().peekable();
        if gone.peek().is_some() {
            self.unsaid.entry(entry).or_default().extend(gone);
        }
        Ok(())
    }

    /// Lets go of hints that nobody gives any longer. Somebody else may say the same, so that all that is
    /// claimed of an entry is read for it: once a step, however often it is said and not said.
    pub(super) fn settle_hints(&mut self, batch: &Batch) -> Result<(), Error> {
        for (entry, gone) in std::mem::take(&mut self.unsaid) {
            // What cannot be read may say the same, too.
            let Some(claims) = Error::unless_damaged(batch.claims(entry))? else { continue };
            let said = superseded(claims.iter());
            for old in gone.difference(&said) {
                batch.drop_successor(*old, entry)?;
            }
        }
        Ok(())
    }

    /// Whether there is room for one more hint of an author at what takes an entry's place. This
    /// node's own word always finds some. Who may speak for the entry is not counted among those
    /// who may not: they could fill an author's share with links on that author's entries.
    fn may_hint(
        &self,
        batch: &Batch,
        old: EntryId,
        author: AuthorId,
        membership: &mut Membership,
    ) -> Result<bool, Error> {
        if self.writer.mine.contains(&author) {
            return Ok(true);
        }
        let hints = batch.successors(old)?;
        if hints.len() < AUTHOR_HINTS_MAX {
            return Ok(true);
        }
        if hints.len() >= HINTS_MAX {
            return Ok(false);
        }
        if self.may_speak_for(batch, old, author, membership)? {
            return Ok(true);
        }
        if hints.len() >= ENTRY_HINTS_MAX {
            return Ok(false);
        }
        let mut own = 0;
        for new in hints {
            own += usize::from(batch.has_claims_of(author, new)?);
            if own >= AUTHOR_HINTS_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an author is the creator of an entry, or a member of its workspace who is heard.
    fn may_speak_for(
        &self,
        batch: &Batch,
        entry: EntryId,
        author: AuthorId,
        membership: &mut Membership,
    ) -> Result<bool, Error> {
        let Some(row) = batch.view_row(entry)? else { return Ok(false) };
        let Some(workspace) = row.workspace.filter(|_| row.creator != Some(author)) else {
            return Ok(row.creator == Some(author));
        };
        if let Some(is_member) = membership.get(&workspace) {
            return Ok(*is_member);
        }
        let members = Error::unless_damaged(batch.heard_members(workspace, self.now))?;
        let is_member = members.unwrap_or_default().contains(&author);
        membership.insert(workspace, is_member);
        Ok(is_member)
    }
}

/// What records say an entry takes the place of.
fn superseded<'r>(records: impl Iterator<Item = &'r Record>) -> BTreeSet<EntryId> {
    let links = records.filter_map(|record| match record.payload() {
        Some(Payload::Claims { claims, .. }) => Some(claims.links.present()),
        _ => None,
    });
    let is_one = |link: &&Link| link.relation == Relation::SUPERSEDES;
    links.flatten().filter(is_one).map(|link| link.to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{NOW, engine, key};
    use crate::engine::{Arrival, Command, Engine, Receipt};
    use crate::store::Durability;
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::ids::Boot;
    use klnode_crdt::lww::Register;
    use klnode_crdt::tally::Observation;
    use klnode_crdt::time::Hlc;
    use klnode_crdt::writer::{Claim, Writer};

    const OLD: EntryId = EntryId::from_bytes([1; 16]);
    const NEW: EntryId = EntryId::from_bytes([2; 16]);
    const LINK: Link = Link { relation: Relation::SUPERSEDES, to: OLD };
    const ONE: u32 = 2;
    const OTHER: u32 = 3;

    fn says(number: u32, boot: u64, own: &Holding, claim: Claim) -> Record {
        let (key, stamp) = (key(number), Hlc::new(NOW, 1));
        let writer = Writer { key: &key, boot: Boot(boot), entry: NEW, own };
        writer.claim(&own.to_entry(), None, &[claim], stamp).unwrap()
    }

    fn links() -> Record {
        says(ONE, 1, &Holding::default(), Claim::Link(LINK))
    }

    /// What takes the place of that, and says it no longer.
    fn unlinks() -> Record {
        says(ONE, 1, &Holding::from_held([links()].into_iter()), Claim::Unlink(LINK))
    }

    /// Something else that somebody else says.
    fn other_claims(boot: u64) -> Record {
        says(OTHER, boot, &Holding::default(), Claim::Set(Register::TITLE, "other".into()))
    }

    fn counts() -> Record {
        let (key, own, stamp) = (key(OTHER), Holding::default(), Hlc::new(NOW, 1));
        let writer = Writer { key: &key, boot: Boot(1), entry: NEW, own: &own };
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    }

    fn bring(engine: &mut Engine, records: Vec<Record>) {
        let from = key(9).author();
        let arrivals = records.into_iter().map(|record| Arrival { record, from }).collect();
        let told = engine.step(&[Command::Ingest(arrivals)], NOW).remove(0);
        assert!(matches!(told, Ok(Receipt::Ingested(_))), "{told:?}");
    }

    /// A node to which it was said what takes the old entry's place, and that holds something which
    /// nobody could read.
    fn hinted(unreadable: &Record) -> Engine {
        let mut node = engine();
        bring(&mut node, vec![links()]);
        assert_eq!(hints(&node), [NEW]);
        let batch = node.store().batch(Durability::Durable).unwrap();
        batch.put_unreadable(unreadable.header(), &key(OTHER)).unwrap();
        batch.commit().unwrap();
        node
    }

    fn hints(node: &Engine) -> Vec<EntryId> {
        node.store().snapshot().unwrap().successors(OLD, usize::MAX).unwrap()
    }

    #[test]
    fn what_anyone_has_counted_is_not_read_to_find_who_gives_a_hint() {
        let mut node = hinted(&counts());
        bring(&mut node, vec![unlinks()]);
        assert_eq!(hints(&node), []);
    }

    #[test]
    fn who_gives_a_hint_is_looked_for_once_when_all_of_a_step_is_written() {
        // What cannot be read may say the same.
        let mut node = hinted(&other_claims(1));
        bring(&mut node, vec![unlinks()]);
        assert_eq!(hints(&node), [NEW]);
        // What comes after it in the same step takes the place of what could not be read.
        let mut node = hinted(&other_claims(1));
        bring(&mut node, vec![unlinks(), other_claims(2)]);
        assert_eq!(hints(&node), []);
        let mut node = hinted(&counts());
        bring(&mut node, vec![unlinks(), says(OTHER, 2, &Holding::default(), Claim::Link(LINK))]);
        assert_eq!(hints(&node), [NEW], "somebody else says the same");
    }
}
