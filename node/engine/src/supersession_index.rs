//! Index of supersession hints: an entry is stored as a possible successor of another as long as
//! some record claims it.
//!
//! Any author may claim that an entry supersedes any other, so the number of hints is limited here,
//! per author and for all authors who are not entitled to speak for the superseded entry. The query
//! crate (`supersession`) decides whether a hint holds.

use super::record_intake::Transaction;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_store::checkouts::HINTS_MAX;
use klnode_store::{Batch, Error};
use std::collections::{BTreeMap, BTreeSet};

/// Most hints at successors of one entry by one author who is not entitled to speak for it.
const AUTHOR_HINTS_MAX: usize = 16;
/// From this many hints per entry on, authors not entitled to speak for it add none.
const ENTRY_HINTS_MAX: usize = 256;

/// Whether an author is a member of a workspace, cached because reading a charter is slow.
type MembershipCache = BTreeMap<WorkspaceId, bool>;

impl Transaction<'_> {
    /// Adds the hints of an author's current records on an entry, and collects those that only
    /// replaced records gave, for removal at the end of the step.
    pub(super) fn update_hints(
        &mut self,
        batch: &Batch,
        (before, after): (&LiveRecords, &LiveRecords),
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
            self.dropped_hints.entry(entry).or_default().extend(gone);
        }
        Ok(())
    }

    /// Removes hints that no record gives any more. Another author may give the same hint, so all
    /// claims on the entry are read, once per step.
    pub(super) fn remove_dropped_hints(&mut self, batch: &Batch) -> Result<(), Error> {
        for (entry, gone) in std::mem::take(&mut self.dropped_hints) {
            // Unreadable claims may give the same hint.
            let Some(claims) = Error::unless_damaged(batch.claims(entry))? else { continue };
            let said = superseded(claims.iter());
            for old in gone.difference(&said) {
                batch.drop_successor(*old, entry)?;
            }
        }
        Ok(())
    }

    /// Whether the index accepts one more hint by an author. Hints of this person are always
    /// accepted. Entitled authors are not subject to the share of the others, because others could
    /// use up an author's share with links on that author's entries.
    fn may_hint(
        &self,
        batch: &Batch,
        old: EntryId,
        author: AuthorId,
        membership: &mut MembershipCache,
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

    /// Whether an author is the entry's creator, or a member of its workspace that is neither
    /// blocked nor convicted.
    fn may_speak_for(
        &self,
        batch: &Batch,
        entry: EntryId,
        author: AuthorId,
        membership: &mut MembershipCache,
    ) -> Result<bool, Error> {
        let Some(row) = batch.view_row(entry)? else { return Ok(false) };
        let Some(workspace) = row.workspace.filter(|_| row.creator != Some(author)) else {
            return Ok(row.creator == Some(author));
        };
        if let Some(is_member) = membership.get(&workspace) {
            return Ok(*is_member);
        }
        let members = Error::unless_damaged(batch.entitled(workspace, self.now))?;
        let is_member = members.unwrap_or_default().contains(&author);
        membership.insert(workspace, is_member);
        Ok(is_member)
    }
}

/// The entries that records claim to supersede.
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
    use crate::testing::{NOW, engine, key};
    use crate::{Command, DeliveredRecord, Engine, Receipt};
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::ids::Boot;
    use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
    use klnode_crdt::register::Register;
    use klnode_crdt::tally::Observation;
    use klnode_crdt::time::Hlc;
    use klnode_store::Durability;

    const OLD: EntryId = EntryId::from_bytes([1; 16]);
    const NEW: EntryId = EntryId::from_bytes([2; 16]);
    const LINK: Link = Link { relation: Relation::SUPERSEDES, to: OLD };
    const ONE: u32 = 2;
    const OTHER: u32 = 3;

    fn says(number: u32, boot: u64, own: &LiveRecords, claim: ClaimEdit) -> Record {
        let (key, stamp) = (key(number), Hlc::new(NOW, 1));
        let writer = RecordBuilder { key: &key, boot: Boot(boot), entry: NEW, own };
        writer.claim(&own.to_entry(), None, &[claim], stamp).unwrap()
    }

    fn links() -> Record {
        says(ONE, 1, &LiveRecords::default(), ClaimEdit::Link(LINK))
    }

    /// The replacement of `links()` without the link.
    fn unlinks() -> Record {
        says(ONE, 1, &LiveRecords::from_held([links()].into_iter()), ClaimEdit::Unlink(LINK))
    }

    /// An unrelated claim of another author.
    fn other_claims(boot: u64) -> Record {
        says(OTHER, boot, &LiveRecords::default(), ClaimEdit::Set(Register::TITLE, "other".into()))
    }

    fn counts() -> Record {
        let (key, own, stamp) = (key(OTHER), LiveRecords::default(), Hlc::new(NOW, 1));
        let writer = RecordBuilder { key: &key, boot: Boot(1), entry: NEW, own: &own };
        writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap()
    }

    fn bring(engine: &mut Engine, records: Vec<Record>) {
        let from = key(9).author();
        let arrivals = records.into_iter().map(|record| DeliveredRecord { record, from }).collect();
        let receipt = engine.step(&[Command::Ingest(arrivals)], NOW).remove(0);
        assert!(matches!(receipt, Ok(Receipt::Ingested(_))), "{receipt:?}");
    }

    /// A node that has the hint, and holds one unreadable record.
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
    fn tallies_are_not_read_when_hints_are_removed() {
        let mut node = hinted(&counts());
        bring(&mut node, vec![unlinks()]);
        assert_eq!(hints(&node), []);
    }

    #[test]
    fn hints_are_removed_once_at_the_end_of_a_step() {
        // Unreadable claims may give the same hint.
        let mut node = hinted(&other_claims(1));
        bring(&mut node, vec![unlinks()]);
        assert_eq!(hints(&node), [NEW]);
        // A later record of the same step replaces the unreadable one.
        let mut node = hinted(&other_claims(1));
        bring(&mut node, vec![unlinks(), other_claims(2)]);
        assert_eq!(hints(&node), []);
        let mut node = hinted(&counts());
        bring(
            &mut node,
            vec![unlinks(), says(OTHER, 2, &LiveRecords::default(), ClaimEdit::Link(LINK))],
        );
        assert_eq!(hints(&node), [NEW], "another author gives the same hint");
    }
}
