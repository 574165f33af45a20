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

/// Of which workspaces an author is a member, as far as it was asked: a charter takes long to read.
type Membership = BTreeMap<WorkspaceId, bool>;

impl Ingest<'_> {
    /// Keeps the hints that an author's records on an entry leave: those of what it holds now, and no
    /// longer those that only earlier records gave.
    pub(super) fn follow_hints(
        &self,
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
        let mut gone = had.difference(&has).peekable();
        if gone.peek().is_none() {
            return Ok(());
        }
        // Somebody else may say the same. What cannot be read may, too.
        let Some(records) = Error::unless_damaged(batch.records(entry))? else { return Ok(()) };
        let said = superseded(records.iter());
        for old in gone.filter(|old| !said.contains(*old)) {
            batch.drop_successor(*old, entry)?;
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
