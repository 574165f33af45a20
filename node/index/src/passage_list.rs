//! The list of passages: the rows of each entry, and the digest of the text they were made from.
//!
//! Separate from `passage_vectors`, which keeps the vectors of these rows in a file of their own. The
//! two files must not disagree after a crash: a listed entry whose rows are missing would never be
//! embedded. So a list is written beside the current one, the saved rows name its digest, and only
//! then it replaces the current one.

use super::atomic_file::write_whole;
use klnode_crdt::ids::EntryId;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::{fs, io};

const LIST_NAME: &str = "passages.bin";
const NEXT_NAME: &str = "passages.next.bin";
pub(super) const SALT_BYTES: usize = 16;
const DIGEST_BYTES: usize = 8;
/// Entry id, number of passages and text digest.
const LISTED_BYTES: usize = EntryId::LEN + 1 + DIGEST_BYTES;

/// The digest of an embedded text.
pub(super) type TextDigest = [u8; DIGEST_BYTES];

/// The digest of a whole list.
pub(super) type ListDigest = blake3::Hash;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassageRows {
    pub(super) count: u8,
    pub(super) digest: TextDigest,
}

/// The rows of all entries, by entry and by row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PassageList {
    pub(super) salt: [u8; SALT_BYTES],
    pub(super) rows: BTreeMap<EntryId, PassageRows>,
    /// The entries of the rows that do not have their entry's id.
    owners: HashMap<EntryId, EntryId>,
}

impl PassageList {
    pub(super) fn new(salt: [u8; SALT_BYTES]) -> Self {
        Self { salt, rows: BTreeMap::new(), owners: HashMap::new() }
    }

    fn row(&self, entry: EntryId, number: u8) -> EntryId {
        if number == 0 {
            return entry;
        }
        let mut hash = blake3::Hasher::new();
        hash.update(&self.salt).update(entry.as_bytes()).update(&[number]);
        let id = hash.finalize().as_bytes().first_chunk().copied();
        EntryId::from_bytes(id.expect("a digest has 32 bytes"))
    }

    pub(super) fn rows_of(&self, entry: EntryId) -> Vec<EntryId> {
        let count = self.rows.get(&entry).map_or(0, |rows| rows.count);
        (0..count).map(|number| self.row(entry, number)).collect()
    }

    pub(super) fn owner(&self, row: EntryId) -> EntryId {
        self.owners.get(&row).copied().unwrap_or(row)
    }

    /// Lists an entry; returns the rows that it no longer has.
    pub(super) fn set(&mut self, entry: EntryId, rows: PassageRows) -> Vec<EntryId> {
        let before = self.remove(entry);
        self.rows.insert(entry, rows);
        for row in self.rows_of(entry).into_iter().skip(1) {
            self.owners.insert(row, entry);
        }
        before.into_iter().skip(usize::from(rows.count)).collect()
    }

    /// Removes an entry; returns its rows.
    pub(super) fn remove(&mut self, entry: EntryId) -> Vec<EntryId> {
        let rows = self.rows_of(entry);
        for row in &rows {
            self.owners.remove(row);
        }
        self.rows.remove(&entry);
        rows
    }

    /// Salt, rows and a digest of both.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SALT_BYTES + self.rows.len() * LISTED_BYTES + 32);
        bytes.extend(self.salt);
        for (entry, rows) in &self.rows {
            bytes.extend(entry.as_bytes());
            bytes.push(rows.count);
            bytes.extend(rows.digest);
        }
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        bytes
    }

    /// Writes the list beside the current one and returns its digest. It counts once the rows that
    /// were saved name that digest.
    pub(super) fn write_next(&self, folder: &Path) -> io::Result<ListDigest> {
        let bytes = self.to_bytes();
        fs::create_dir_all(folder)?;
        write_whole(&folder.join(NEXT_NAME), &bytes)?;
        let digest = bytes.last_chunk::<32>().expect("a list ends with its digest");
        Ok(ListDigest::from_bytes(*digest))
    }

    /// Replaces the current list by the next one, after the rows were saved with its digest.
    pub(super) fn adopt_next(folder: &Path) -> io::Result<()> {
        fs::rename(folder.join(NEXT_NAME), folder.join(LIST_NAME))
    }

    /// Reads the list that the saved rows name, the current one or the next; without a name the
    /// current one. `None` if a process was killed before this was recorded, or a file is damaged.
    pub(super) fn open(folder: &Path, named: Option<ListDigest>) -> Option<Self> {
        let read = |name: &str| Self::read(&fs::read(folder.join(name)).ok()?, named);
        if let Some(list) = read(LIST_NAME) {
            // A killed process may have left it, with entries that were erased since.
            let _ = fs::remove_file(folder.join(NEXT_NAME));
            return Some(list);
        }
        let list = read(NEXT_NAME).filter(|_| named.is_some())?;
        Self::adopt_next(folder).ok()?;
        Some(list)
    }

    fn read(bytes: &[u8], named: Option<ListDigest>) -> Option<Self> {
        let (body, digest) = bytes.split_last_chunk::<32>()?;
        let is_named = named.is_none_or(|named| named == ListDigest::from_bytes(*digest));
        if !is_named || blake3::hash(body) != *digest {
            return None;
        }
        let (salt, rows) = body.split_first_chunk()?;
        let mut list = Self::new(*salt);
        for row in rows.chunks(LISTED_BYTES) {
            let (entry, rest) = row.split_first_chunk()?;
            let (count, digest) = rest.split_first()?;
            let rows = PassageRows { count: *count, digest: *digest.first_chunk()? };
            list.set(EntryId::from_bytes(*entry), rows);
        }
        Some(list)
    }
}
