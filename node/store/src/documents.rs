//! Documents: the edits of a playbook by number, and its merged text.
//!
//! The edits are ordinary records. `edits` finds them by author and number, so that merging one does
//! not read the others. `documents` holds the merge of the edits that count: the writer updates it in
//! the transaction that stores an edit or changes the members, so readers need no merge of their own.

use super::batch::Batch;
use super::error::Error;
use super::row_types;
use super::shared_reads::{self, Records};
use super::snapshot::Snapshot;
use super::tables::{DIGESTS, DOCUMENTS, EDITS, EditKey, HELD, HeldKey, RECORDS, key, part, span};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use redb::ReadableTable;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteArray;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The merged text of a document.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DocumentRow {
    #[serde(rename = "t")]
    pub text: String,
    /// The version of the text: the hashes of the changes on which no other applied change depends.
    #[serde(rename = "h")]
    pub heads: Vec<ByteArray<32>>,
    /// The time of the last edit in the text, by its author's clock but at most the time of the merge.
    #[serde(rename = "u")]
    pub updated: WallTime,
    /// Number of edits in the text.
    #[serde(rename = "n")]
    pub applied: u32,
    /// Number of edits whose predecessors are missing here.
    #[serde(rename = "w", default, skip_serializing_if = "is_none")]
    pub waiting: u32,
    /// Number of edits that do not count, because their authors are no members or they break a rule.
    #[serde(rename = "o", default, skip_serializing_if = "is_none")]
    pub left_out: u32,
    /// A hash of the authors whose edits counted in the merge; `None` if the merge is to be repeated.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub entitlement: Option<ByteArray<32>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// An edit as far as the keys of `edits` tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EditName {
    pub author: AuthorId,
    pub number: u32,
    /// The digest of its record.
    pub digest: Digest,
    /// The length of its change in bytes.
    pub bytes: u32,
}

impl EditName {
    /// The name of a record, if it is an edit.
    pub fn of(record: &Record) -> Option<Self> {
        let edit = record.edit()?;
        let bytes = u32::try_from(edit.edit.change.len()).unwrap_or(u32::MAX);
        Some(Self { author: edit.author, number: edit.number, digest: record.digest(), bytes })
    }

    fn read(at: &EditKey, bytes: [u8; 4]) -> Self {
        Self {
            author: AuthorId::from_bytes(part(at, 16)),
            number: u32::from_be_bytes(part(at, 48)),
            digest: Digest::from_bytes(part(at, 52)),
            bytes: u32::from_be_bytes(bytes),
        }
    }
}

fn edit_key(record: &Record, number: u32) -> EditKey {
    let (entry, author) = (record.entry(), record.author());
    key(&[entry.as_bytes(), author.as_bytes(), &number.to_be_bytes(), record.digest().as_bytes()])
}

/// The edits whose key begins with a prefix, by author and number.
fn names(
    table: &impl ReadableTable<&'static EditKey, &'static [u8; 4]>,
    prefix: &[u8],
) -> Result<Vec<EditName>, Error> {
    let (first, last) = span::<84>(prefix);
    let rows = table.range::<&EditKey>(&first..=&last)?;
    rows.map(|row| {
        let (at, bytes) = row?;
        Ok(EditName::read(at.value(), *bytes.value()))
    })
    .collect()
}

/// The intact records of some edits, and the digests of damaged ones.
fn read_edits(
    (digests, records): (&impl ReadableTable<&'static [u8; 32], &'static [u8; 8]>, &impl Records),
    names: &[EditName],
) -> Result<(Vec<Record>, Vec<EditName>), Error> {
    let (mut intact, mut damaged) = (Vec::with_capacity(names.len()), Vec::new());
    for name in names {
        let seq = digests.get(name.digest.as_bytes())?.map(|seq| *seq.value());
        let read = seq.map(|seq| {
            let seq = row_types::Seq(u64::from_be_bytes(seq));
            Error::unless_damaged(shared_reads::record_at(records, seq, name.digest))
        });
        match read.transpose()?.flatten() {
            Some(record) => intact.push(record),
            None => damaged.push(*name),
        }
    }
    Ok((intact, damaged))
}

impl Batch {
    /// Lists a stored record under its number, if it is an edit.
    pub(super) fn list_edit(&self, record: &Record) -> Result<(), Error> {
        let Some(name) = EditName::of(record) else { return Ok(()) };
        let mut table = self.transaction.open_table(EDITS)?;
        table.insert(&edit_key(record, name.number), &name.bytes.to_be_bytes())?;
        Ok(())
    }

    /// Takes removed records off the list of edits.
    pub(super) fn unlist_edits(&self, keys: &[HeldKey]) -> Result<(), Error> {
        let mut removed = BTreeMap::<[u8; 48], BTreeSet<[u8; 32]>>::new();
        for key in keys.iter().filter(|key| key[48] == Facet::Edit.code()) {
            removed.entry(part(key, 0)).or_default().insert(part(key, 49));
        }
        let mut table = self.transaction.open_table(EDITS)?;
        for (prefix, digests) in removed {
            let (first, last) = span::<84>(&prefix);
            table.retain_in::<&EditKey, _>(&first..=&last, |at, _| {
                !digests.contains(&part::<32>(at, 52))
            })?;
        }
        Ok(())
    }

    /// The edits of an author with one number.
    pub fn edits_numbered(
        &self,
        entry: EntryId,
        author: AuthorId,
        number: u32,
    ) -> Result<Vec<EditName>, Error> {
        let prefix = [&entry.as_bytes()[..], author.as_bytes(), &number.to_be_bytes()].concat();
        names(&self.transaction.open_table(EDITS)?, &prefix)
    }

    /// The edits of an author, by number.
    pub fn edits_by(&self, entry: EntryId, author: AuthorId) -> Result<Vec<EditName>, Error> {
        let prefix = [&entry.as_bytes()[..], author.as_bytes()].concat();
        names(&self.transaction.open_table(EDITS)?, &prefix)
    }

    /// The authors of the edits of an entry.
    pub fn edit_authors(&self, entry: EntryId) -> Result<BTreeSet<AuthorId>, Error> {
        let table = self.transaction.open_table(EDITS)?;
        let (first, last) = span::<84>(entry.as_bytes());
        let (mut authors, mut after) = (BTreeSet::new(), Bound::Included(first));
        // One lookup per author, however many edits each has.
        while let Some(row) =
            table.range::<&EditKey>((after.as_ref(), Bound::Included(&last)))?.next()
        {
            let author = AuthorId::from_bytes(part(row?.0.value(), 16));
            authors.insert(author);
            let (_, end) = span::<84>(&[&entry.as_bytes()[..], author.as_bytes()].concat());
            after = Bound::Excluded(end);
        }
        Ok(authors)
    }

    /// Whether an entry has an edit.
    pub fn has_edits(&self, entry: EntryId) -> Result<bool, Error> {
        let (first, last) = span::<84>(entry.as_bytes());
        let table = self.transaction.open_table(EDITS)?;
        Ok(table.range::<&EditKey>(&first..=&last)?.next().transpose()?.is_some())
    }

    /// The greatest number that an author has used in a document; 0 if there is none.
    pub fn last_edit_number(&self, entry: EntryId, author: AuthorId) -> Result<u32, Error> {
        let (first, last) = span::<84>(&[&entry.as_bytes()[..], author.as_bytes()].concat());
        let table = self.transaction.open_table(EDITS)?;
        let newest = table.range::<&EditKey>(&first..=&last)?.next_back().transpose()?;
        Ok(newest.map_or(0, |(at, _)| u32::from_be_bytes(part(at.value(), 48))))
    }

    /// The edits of a document.
    pub fn edit_names(&self, entry: EntryId) -> Result<Vec<EditName>, Error> {
        names(&self.transaction.open_table(EDITS)?, entry.as_bytes())
    }

    /// All intact edits of a document that the caller does not know. Damaged ones are dropped: they
    /// count as missing, so that a peer delivers them again.
    pub fn take_edits(
        &self,
        entry: EntryId,
        is_known: impl Fn(&EditName) -> bool,
    ) -> Result<Vec<Record>, Error> {
        let mut names = self.edit_names(entry)?;
        names.retain(|name| !is_known(name));
        let (intact, damaged) = {
            let digests = self.transaction.open_table(DIGESTS)?;
            let records = self.transaction.open_table(RECORDS)?;
            read_edits((&digests, &records), &names)?
        };
        if !damaged.is_empty() {
            let facet = [Facet::Edit.code()];
            let keys: Vec<HeldKey> = damaged
                .iter()
                .map(|of| {
                    let (author, digest) = (of.author.as_bytes(), of.digest.as_bytes());
                    key(&[entry.as_bytes(), author, &facet, digest])
                })
                .collect();
            let held = self.transaction.open_table(HELD)?;
            let mut dropped = 0;
            for key in &keys {
                dropped += u32::from(held.get(key)?.is_some());
            }
            drop(held);
            self.drop_held(&keys)?;
            if let Some(mut row) = self.view_row(entry)? {
                row.records = row.records.saturating_sub(dropped);
                self.put_view_row(entry, &row)?;
            }
        }
        Ok(intact)
    }

    /// The merged text of a document; `None` if the entry is none or its row is damaged.
    pub fn document(&self, entry: EntryId) -> Result<Option<DocumentRow>, Error> {
        let table = self.transaction.open_table(DOCUMENTS)?;
        let row = shared_reads::row("documents", &table, entry.as_bytes());
        Ok(Error::unless_damaged(row)?.flatten())
    }

    /// The entries that have edits.
    pub fn documents(&self) -> Result<Vec<EntryId>, Error> {
        let table = self.transaction.open_table(DOCUMENTS)?;
        table.iter()?.map(|row| Ok(EntryId::from_bytes(*row?.0.value()))).collect()
    }

    /// Stores the merged text of a document. Bytes of the previous text are erased with the next
    /// rewrite of the store.
    pub fn put_document(&self, entry: EntryId, row: &DocumentRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(DOCUMENTS)?;
        table.insert(entry.as_bytes(), row_types::encode(row).as_slice())?;
        Ok(())
    }

    /// Erases the merged text of a document.
    pub fn drop_document(&self, entry: EntryId) -> Result<(), Error> {
        let mut table = self.transaction.open_table(DOCUMENTS)?;
        let length = table.get(entry.as_bytes())?.map(|row| row.value().len());
        if let Some(length) = length {
            table.insert(entry.as_bytes(), vec![0; length].as_slice())?;
            table.remove(entry.as_bytes())?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// The merged text of a document; `None` if the entry is none or its row is damaged.
    pub fn document(&self, entry: EntryId) -> Result<Option<DocumentRow>, Error> {
        let row = shared_reads::row("documents", self.documents_table()?, entry.as_bytes());
        Ok(Error::unless_damaged(row)?.flatten())
    }

    /// Shows the merged text in the view of a playbook; other views stay as they are.
    pub fn with_document(&self, entry: EntryId, view: EntryView) -> Result<EntryView, Error> {
        if view.kind() != Some(EntryType::Playbook) || view.state != State::Live {
            return Ok(view);
        }
        Ok(match self.document(entry)?.filter(|row| row.applied > 0) {
            Some(row) => view.with_document(row.text, row.updated),
            None => view,
        })
    }

    /// The entries that have edits.
    pub fn documents(&self) -> Result<Vec<EntryId>, Error> {
        let rows = self.documents_table()?.range::<&[u8; 16]>(..)?;
        rows.map(|row| Ok(EntryId::from_bytes(*row?.0.value()))).collect()
    }

    /// Whether a record is listed under its number; true for records that are no edits.
    pub(super) fn is_edit_listed(&self, record: &Record) -> Result<bool, Error> {
        let Some(edit) = record.edit() else { return Ok(true) };
        let table = self.transaction.open_table(EDITS)?;
        Ok(table.get(&edit_key(record, edit.number))?.is_some())
    }

    /// The edits of a document.
    pub fn edit_names(&self, entry: EntryId) -> Result<Vec<EditName>, Error> {
        names(&self.transaction.open_table(EDITS)?, entry.as_bytes())
    }

    /// The intact records of some edits.
    pub fn edits_named(&self, names: &[EditName]) -> Result<Vec<Record>, Error> {
        let digests = self.transaction.open_table(DIGESTS)?;
        Ok(read_edits((&digests, self.records()?), names)?.0)
    }

    /// All intact edits of a document.
    pub fn edits(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        self.edits_named(&self.edit_names(entry)?)
    }

    /// The digests that the removals of an author from a workspace keep.
    pub fn cut_digests(
        &self,
        workspace: klnode_crdt::ids::WorkspaceId,
        member: AuthorId,
        by: &BTreeSet<AuthorId>,
    ) -> Result<BTreeSet<Digest>, Error> {
        let pages = self.removals(workspace)?;
        let pages = pages.into_iter().find(|(of, _)| *of == member).map_or(0, |of| of.1.pages);
        super::peers::cut_digests((self.held()?, self.records()?), (workspace, member, pages), by)
    }
}
