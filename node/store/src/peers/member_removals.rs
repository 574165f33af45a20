//! Removals of keys from workspaces, derived from their pages.
//!
//! The pages are ordinary entries and the only source: a row of `removals` is written with the
//! record that changes a page, so that readers find the removed keys of a workspace without reading
//! the pages. The row also says which cut the writer has applied to the stored records.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::row_types::{self, QuarantineRow, Seq};
use super::super::shared_reads::{self, Damage, HeldRows, Records};
use super::super::snapshot::Snapshot;
use super::super::tables::{HELD, QUARANTINE, RECORDS, REMOVALS, TOMBSTONES, key, part, span};
use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::member_removal::{self, RemovalStatements};
use klnode_crdt::record::Record;
use klnode_crdt::removal_page_origin::RemovalPage;
use klnode_crdt::time::WallTime;
use redb::ReadableTable;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteArray;
use std::collections::{BTreeMap, BTreeSet};

/// The removal of a key from a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalRow {
    /// The authors whose statement stands, whatever their role in the workspace.
    #[serde(rename = "b")]
    pub by: BTreeSet<AuthorId>,
    /// Number of pages held here: one more than the greatest page number.
    #[serde(rename = "p")]
    pub pages: u16,
    /// When this node first held a page.
    #[serde(rename = "t")]
    pub since: WallTime,
    /// Number of digests in the applied cut.
    #[serde(rename = "n", default)]
    pub digests: u64,
    /// Whether the applied state is that the key is out.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_out: bool,
    /// The state that was applied to the stored records; `None` before the first time.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    applied: Option<ByteArray<32>>,
}

/// The effect of a removal on the records of a key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cut {
    /// Whether the key is out: a removal by the owner or a current admin stands.
    pub is_out: bool,
    /// The records of the key that still count.
    pub digests: BTreeSet<Digest>,
}

impl Cut {
    /// Whether a record of the key counts.
    pub fn keeps(&self, digest: Digest) -> bool {
        !self.is_out || self.digests.contains(&digest)
    }

    fn fingerprint(&self) -> [u8; 32] {
        let mut fields = FieldHasher::new(Context::Text).field(&[u8::from(self.is_out)]);
        if self.is_out {
            for digest in &self.digests {
                fields = fields.field(digest.as_bytes());
            }
        }
        *fields.finish().as_bytes()
    }
}

impl RemovalRow {
    /// A row before any statement is read.
    pub fn new(since: WallTime) -> Self {
        Self { by: BTreeSet::new(), pages: 0, since, digests: 0, is_out: false, applied: None }
    }

    /// Whether this cut is applied to the stored records. A removal that does not stand needs
    /// nothing before one was applied.
    pub fn has_applied(&self, cut: &Cut) -> bool {
        match self.applied {
            None => !cut.is_out,
            Some(applied) => *applied == cut.fingerprint(),
        }
    }

    /// The row after this cut was applied.
    #[must_use]
    pub fn applying(self, cut: &Cut) -> Self {
        let applied = Some(ByteArray::new(cut.fingerprint()));
        Self { digests: cut.digests.len() as u64, is_out: cut.is_out, applied, ..self }
    }
}

/// Reads the removed keys of a workspace; damaged rows are skipped, since the pages remain.
pub(super) fn rows(
    table: &impl ReadableTable<&'static [u8; 48], &'static [u8]>,
    workspace: WorkspaceId,
) -> Result<Vec<(AuthorId, RemovalRow)>, Error> {
    let (first, last) = span::<48>(workspace.as_bytes());
    let mut rows = Vec::new();
    for row in table.range::<&[u8; 48]>(&first..=&last)? {
        let (at, row) = row?;
        if let Some(row) = Error::unless_damaged(row_types::decode("removals", row.value()))? {
            rows.push((AuthorId::from_bytes(part(at.value(), 16)), row));
        }
    }
    Ok(rows)
}

/// The statements in these rows.
pub(super) fn statements(rows: Vec<(AuthorId, RemovalRow)>) -> RemovalStatements {
    rows.into_iter().map(|(member, row)| (member, row.by)).collect()
}

/// The digests that these authors put on the pages of a removal.
pub(in super::super) fn cut_digests(
    (held, records): (&impl HeldRows, &impl Records),
    (workspace, member, pages): (WorkspaceId, AuthorId, u16),
    by: &BTreeSet<AuthorId>,
) -> Result<BTreeSet<Digest>, Error> {
    let mut digests = BTreeSet::new();
    for number in 0..pages {
        let entry = RemovalPage { workspace, member, number }.entry();
        let found = shared_reads::records_of(held, records, entry.as_bytes(), Damage::PassedOver)?;
        let page = Entry::assemble(found.iter().map(|(_, record)| record));
        digests.extend(member_removal::digests(&page, by.iter().copied()));
    }
    Ok(digests)
}

impl Snapshot {
    /// The removed keys of a workspace, with the statements about them.
    pub fn removals(&self, workspace: WorkspaceId) -> Result<Vec<(AuthorId, RemovalRow)>, Error> {
        rows(&self.transaction.open_table(REMOVALS)?, workspace)
    }
}

impl Batch {
    /// The removed keys of a workspace, with the statements about them.
    pub fn removals(&self, workspace: WorkspaceId) -> Result<Vec<(AuthorId, RemovalRow)>, Error> {
        rows(&self.transaction.open_table(REMOVALS)?, workspace)
    }

    /// The workspaces that have a removal of this key, whether or not it stands.
    pub fn workspaces_removing(&self, member: AuthorId) -> Result<Vec<WorkspaceId>, Error> {
        let table = self.transaction.open_table(REMOVALS)?;
        let mut workspaces = Vec::new();
        for row in table.iter()? {
            let at = *row?.0.value();
            if at[16..] == member.as_bytes()[..] {
                workspaces.push(WorkspaceId::from_bytes(part(&at, 0)));
            }
        }
        Ok(workspaces)
    }

    /// The removals that any author states in a workspace.
    pub fn removal_statements(&self, workspace: WorkspaceId) -> Result<RemovalStatements, Error> {
        Ok(statements(self.removals(workspace)?))
    }

    /// The removal of a key; `None` if no page of it is held.
    pub fn removal(
        &self,
        workspace: WorkspaceId,
        member: AuthorId,
    ) -> Result<Option<RemovalRow>, Error> {
        let at = key::<48>(&[workspace.as_bytes(), member.as_bytes()]);
        shared_reads::row("removals", &self.transaction.open_table(REMOVALS)?, &at)
    }

    /// Stores the removal of a key.
    pub fn put_removal(
        &self,
        workspace: WorkspaceId,
        member: AuthorId,
        row: &RemovalRow,
    ) -> Result<(), Error> {
        let at = key::<48>(&[workspace.as_bytes(), member.as_bytes()]);
        let mut table = self.transaction.open_table(REMOVALS)?;
        table.insert(&at, row_types::encode(row).as_slice())?;
        Ok(())
    }

    /// The digests that these authors put on the pages of a removal.
    pub fn cut_digests(
        &self,
        of: (WorkspaceId, AuthorId, u16),
        by: &BTreeSet<AuthorId>,
    ) -> Result<BTreeSet<Digest>, Error> {
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        cut_digests((&held, &records), of, by)
    }

    /// The claims, edits and tombstones of these authors: entry and digest, by author. One pass over the
    /// keys of all records, however many authors there are.
    pub fn bound_records(
        &self,
        authors: &BTreeSet<AuthorId>,
    ) -> Result<BTreeMap<AuthorId, Vec<(EntryId, Digest)>>, Error> {
        let bound = [Facet::Claims.code(), Facet::Edit.code(), Facet::Tombstone.code()];
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for row in self.transaction.open_table(HELD)?.iter()? {
            let at = *row?.0.value();
            let author = AuthorId::from_bytes(part(&at, 16));
            if bound.contains(&at[48]) && authors.contains(&author) {
                let record = (EntryId::from_bytes(part(&at, 0)), Digest::from_bytes(part(&at, 49)));
                found.entry(author).or_default().push(record);
            }
        }
        Ok(found)
    }

    /// Removes the tombstone of an entry, whose author was not entitled to write it. The entry has
    /// no records until peers deliver them again.
    pub fn drop_tombstone(&self, tombstone: &Record) -> Result<(), Error> {
        let entry = tombstone.entry();
        self.drop_record(tombstone)?;
        self.transaction.open_table(TOMBSTONES)?.remove(entry.as_bytes())?;
        if let Some(mut row) = self.view_row(entry)? {
            (row.records, row.seq, row.is_forgotten) = (0, Seq(0), false);
            self.put_view_row(entry, &row)?;
        }
        Ok(())
    }

    /// The quarantined records of an author with this reason.
    pub fn quarantined_by(
        &self,
        author: AuthorId,
        reason: &str,
    ) -> Result<Vec<QuarantineRow>, Error> {
        let table = self.transaction.open_table(QUARANTINE)?;
        let mut found = Vec::new();
        for row in table.iter()? {
            let (at, row) = row?;
            if at.value()[16..48] != author.as_bytes()[..] {
                continue;
            }
            let row = row_types::decode::<QuarantineRow>("quarantine", row.value());
            found.extend(Error::unless_damaged(row)?.filter(|row| row.reason == reason));
        }
        Ok(found)
    }
}
