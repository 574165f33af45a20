//! The transformer's vectors: one row for each passage of an entry.
//!
//! They complement the vectors of the embedding table, which a new entry has at once: a transformer
//! needs tens of milliseconds for a passage, so `passage_worker` computes these rows in the
//! background. An entry is as near to a question as its nearest passage. Separate from
//! [`super::vector_generation`], whose vectors cover all entries and are replaced as a whole.
//!
//! [`Vectors`] has one row for each id. The first passage of an entry has the id of the entry;
//! further ones have ids derived from it with a random salt, so that no author can choose the id of
//! an entry to hit a passage of another. `passages.bin` lists the number of passages of each entry,
//! with a salted digest of the embedded text: an entry whose text did not change is not embedded
//! again.

use super::atomic_file::write_whole;
use super::checkpoint::Checkpoint;
use super::vector_generation::MeaningError;
use super::vectors::{BadVector, Limits, RowFacts, RowFilter, Vectors};
use klnode_crdt::ids::EntryId;
use klnode_embed::{EmbedError, Embedder};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// The folder of these vectors in the index folder.
pub const FOLDER_NAME: &str = "transformer";
const LIST_NAME: &str = "passages.bin";
const SALT_BYTES: usize = 16;
const DIGEST_BYTES: usize = 8;
/// Entry id, number of passages and text digest.
const LISTED_BYTES: usize = EntryId::LEN + 1 + DIGEST_BYTES;

/// A transformer that is loaded when it is first needed.
#[derive(Clone)]
pub struct PassageModel {
    /// Model and generation of the vectors.
    pub identity: &'static str,
    /// The number of dimensions of a vector.
    pub dims: usize,
    /// Each text is followed by a pause of this multiple of its time: 1 uses half of a core.
    pub pause_share: u32,
    /// Loads the model.
    pub load: fn() -> Result<LoadedModel, EmbedError>,
}

/// A loaded transformer. Questions and passages have separate threads, so that a question does not
/// wait for a passage.
#[derive(Clone, Debug)]
pub struct LoadedModel {
    /// Embeds questions, on a thread of its own.
    pub questions: Arc<dyn Embedder>,
    /// Embeds passages of stored entries.
    pub passages: Arc<dyn Embedder>,
}

/// The digest of an embedded text.
pub(super) type TextDigest = [u8; DIGEST_BYTES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PassageRows {
    count: u8,
    digest: TextDigest,
}

/// The rows of all entries, by entry and by row.
#[derive(Debug, PartialEq, Eq)]
struct PassageList {
    salt: [u8; SALT_BYTES],
    rows: BTreeMap<EntryId, PassageRows>,
    /// The entries of the rows that do not have their entry's id.
    owners: HashMap<EntryId, EntryId>,
}

/// The vectors of all passages, in a folder of their own.
pub struct PassageVectors {
    folder: PathBuf,
    vectors: Vectors,
    list: RwLock<PassageList>,
    /// The entries erased since the worker last read the store: a text that it read before must not
    /// return. Held while rows change.
    erased: Mutex<BTreeSet<EntryId>>,
    model: OnceLock<LoadedModel>,
}

impl PassageVectors {
    /// Opens the vectors of a folder, with the checkpoint of their last save; `None` if there are
    /// none, or none of this model.
    pub(super) fn open(
        folder: &Path,
        model: &PassageModel,
        limits: Limits,
    ) -> Option<(Self, Checkpoint)> {
        let list = PassageList::read(&fs::read(folder.join(LIST_NAME)).ok()?)?;
        let opened = Vectors::open(folder, model.identity, model.dims, limits);
        let (vectors, note) = match opened {
            Ok(opened) => opened,
            Err(unusable) => {
                tracing::info!(why = %unusable, "Computing the passage vectors again");
                return None;
            }
        };
        let checkpoint = std::str::from_utf8(&note).ok()?.parse().ok()?;
        Some((Self::of(folder, vectors, list), checkpoint))
    }

    /// Vectors without rows. Their first save replaces the files in the folder.
    pub(super) fn empty(
        folder: &Path,
        model: &PassageModel,
        limits: Limits,
        salt: [u8; SALT_BYTES],
    ) -> Self {
        let vectors = Vectors::empty(folder, model.identity, model.dims, limits);
        Self::of(folder, vectors, PassageList::new(salt))
    }

    fn of(folder: &Path, vectors: Vectors, list: PassageList) -> Self {
        Self {
            folder: folder.to_owned(),
            vectors,
            list: RwLock::new(list),
            erased: Mutex::default(),
            model: OnceLock::new(),
        }
    }

    /// Deletes the vectors of an index folder that no worker will update: forgotten entries would
    /// otherwise stay in them.
    pub(super) fn discard(folder: &Path) -> Result<(), MeaningError> {
        match fs::remove_dir_all(folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(MeaningError::Discard { path: folder.into(), source })
            }
            _ => Ok(()),
        }
    }

    /// The number of entries that have vectors.
    pub fn entries(&self) -> u64 {
        self.list().rows.len() as u64
    }

    /// The number of passages.
    pub fn passages(&self) -> usize {
        self.vectors.len()
    }

    /// The vector of a question; `None` while the model is not loaded, or if it knows no word.
    pub fn question_vector(&self, text: &str) -> Option<Vec<f32>> {
        let vector = self.model.get()?.questions.embed_query(text);
        match vector {
            Ok(vector) => vector.iter().any(|part| *part != 0.0).then_some(vector),
            Err(error) => {
                tracing::warn!(%error, "The transformer failed on a question; the search used the table");
                None
            }
        }
    }

    /// The nearest entries that the filter admits, at most `count`, each with the cosine of its
    /// nearest passage.
    pub fn nearest(
        &self,
        vector: &[f32],
        count: usize,
        filter: &RowFilter,
    ) -> Result<Vec<(EntryId, f32)>, BadVector> {
        let rows = self.vectors.nearest(vector, count, filter)?.hits;
        let list = self.list();
        let mut seen = BTreeSet::new();
        let owned = rows.into_iter().map(|(row, cosine)| (list.owner(row), cosine));
        // Rows come nearest first, so the first row of an entry is its nearest.
        Ok(owned.filter(|(entry, _)| seen.insert(*entry)).collect())
    }

    /// The cosine of each entry's nearest passage; `None` for an entry without vectors.
    pub fn cosines_of(
        &self,
        entries: &[EntryId],
        vector: &[f32],
    ) -> Result<Vec<Option<f32>>, BadVector> {
        let list = self.list();
        let rows: Vec<Vec<EntryId>> = entries.iter().map(|entry| list.rows_of(*entry)).collect();
        drop(list);
        let cosines = self.vectors.cosines_of(&rows.concat(), vector)?;
        let mut cosines = cosines.into_iter();
        let best = |rows: &Vec<EntryId>| {
            cosines.by_ref().take(rows.len()).flatten().max_by(|a, b| a.total_cmp(b))
        };
        Ok(rows.iter().map(best).collect())
    }

    /// The number of the passage that is nearest to a vector; `None` for an entry with fewer than
    /// two passages.
    pub fn nearest_passage(&self, entry: EntryId, vector: &[f32]) -> Option<usize> {
        let rows = self.list().rows_of(entry);
        let cosines = (rows.len() > 1).then(|| self.vectors.cosines_of(&rows, vector))?.ok()?;
        let known = cosines.into_iter().enumerate().filter_map(|(at, of)| Some((at, of?)));
        known.max_by(|one, two| one.1.total_cmp(&two.1)).map(|(at, _)| at)
    }

    /// The entries nearest to an entry by their first passages; empty if it has no vectors.
    pub fn nearest_to(
        &self,
        entry: EntryId,
        count: usize,
        filter: &RowFilter,
    ) -> Vec<(EntryId, f32)> {
        let rows = self.vectors.nearest_to(entry, count, filter).unwrap_or_default();
        let list = self.list();
        let mut seen = BTreeSet::from([entry]);
        let owned = rows.into_iter().map(|(row, cosine)| (list.owner(row), cosine));
        owned.filter(|(entry, _)| seen.insert(*entry)).collect()
    }

    /// The loaded model.
    pub(super) fn set_model(&self, model: LoadedModel) {
        // A second model of the same kind changes nothing.
        let _ = self.model.set(model);
    }

    /// True if an entry has vectors.
    pub(super) fn contains(&self, entry: EntryId) -> bool {
        self.list().rows.contains_key(&entry)
    }

    /// True if the entry has the vectors of a text with this digest.
    pub(super) fn has_text(&self, entry: EntryId, digest: TextDigest) -> bool {
        self.list().rows.get(&entry).is_some_and(|rows| rows.digest == digest)
    }

    /// The digest of the texts of an entry's passages.
    pub(super) fn digest(&self, texts: &[String]) -> TextDigest {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.list().salt);
        for text in texts {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        *hash.finalize().as_bytes().first_chunk().expect("a digest has 32 bytes")
    }

    /// The worker is about to read the store: earlier erasures are visible to it.
    pub(super) fn begin_reading(&self) {
        self.erased().clear();
    }

    /// Replaces the rows of an entry, unless it was erased after the worker read it.
    pub(super) fn put(
        &self,
        entry: EntryId,
        vectors: &[Vec<f32>],
        digest: TextDigest,
        facts: RowFacts,
    ) -> Result<(), MeaningError> {
        let erased = self.erased();
        if erased.contains(&entry) {
            return Ok(());
        }
        let count = u8::try_from(vectors.len()).unwrap_or(u8::MAX);
        let unneeded = self.list_mut().set(entry, PassageRows { count, digest });
        for row in unneeded {
            self.vectors.remove(row);
        }
        let rows = self.list().rows_of(entry);
        for (row, vector) in rows.into_iter().zip(vectors) {
            self.vectors.upsert(row, vector, facts)?;
        }
        drop(erased);
        Ok(())
    }

    /// Replaces the facts of an entry whose text did not change.
    pub(super) fn set_facts(&self, entry: EntryId, facts: RowFacts) {
        let erased = self.erased();
        for row in self.list().rows_of(entry) {
            self.vectors.set_facts(row, facts);
        }
        drop(erased);
    }

    /// Removes entries from the vectors and from the files.
    pub(super) fn erase(
        &self,
        entries: impl IntoIterator<Item = EntryId>,
    ) -> Result<(), MeaningError> {
        let mut erased = self.erased();
        let mut is_changed = false;
        for entry in entries {
            erased.insert(entry);
            let rows = self.list_mut().remove(entry);
            is_changed |= !rows.is_empty();
            for row in rows {
                self.vectors.remove(row);
            }
        }
        if is_changed && self.folder.join(LIST_NAME).exists() {
            self.save_list()?;
            self.vectors.save()?;
        }
        Ok(())
    }

    /// Saves all changes. The list comes first: a listed row that is missing is harmless, an
    /// unlisted one would look like an entry.
    pub(super) fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), MeaningError> {
        let erased = self.erased();
        self.save_list()?;
        self.vectors.checkpoint(checkpoint.to_string().as_bytes())?;
        drop(erased);
        Ok(())
    }

    fn save_list(&self) -> Result<(), MeaningError> {
        let (path, bytes) = (self.folder.join(LIST_NAME), self.list().to_bytes());
        let made = fs::create_dir_all(&self.folder).and_then(|()| write_whole(&path, &bytes));
        made.map_err(|source| MeaningError::Passages { path, source })
    }

    fn list(&self) -> std::sync::RwLockReadGuard<'_, PassageList> {
        self.list.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_mut(&self) -> std::sync::RwLockWriteGuard<'_, PassageList> {
        self.list.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn erased(&self) -> MutexGuard<'_, BTreeSet<EntryId>> {
        self.erased.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PassageVectors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PassageVectors")
            .field("passages", &self.passages())
            .finish_non_exhaustive()
    }
}

impl PassageList {
    fn new(salt: [u8; SALT_BYTES]) -> Self {
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

    fn rows_of(&self, entry: EntryId) -> Vec<EntryId> {
        let count = self.rows.get(&entry).map_or(0, |rows| rows.count);
        (0..count).map(|number| self.row(entry, number)).collect()
    }

    fn owner(&self, row: EntryId) -> EntryId {
        self.owners.get(&row).copied().unwrap_or(row)
    }

    /// Lists an entry; returns the rows that it no longer has.
    fn set(&mut self, entry: EntryId, rows: PassageRows) -> Vec<EntryId> {
        let before = self.remove(entry);
        self.rows.insert(entry, rows);
        for row in self.rows_of(entry).into_iter().skip(1) {
            self.owners.insert(row, entry);
        }
        before.into_iter().skip(usize::from(rows.count)).collect()
    }

    /// Removes an entry; returns its rows.
    fn remove(&mut self, entry: EntryId) -> Vec<EntryId> {
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

    fn read(bytes: &[u8]) -> Option<Self> {
        let (body, digest) = bytes.split_last_chunk::<32>()?;
        if blake3::hash(body) != *digest {
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

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::entry_type::EntryType;
    use klnode_crdt::ids::WorkspaceId;
    use klnode_crdt::origin::Memory;

    const MODEL: PassageModel = PassageModel {
        identity: "test",
        dims: 4,
        pause_share: 0,
        load: || Err(EmbedError::Stopped),
    };
    const LIMITS: Limits = Limits { hnsw_entries_min: 1_000, hnsw_dead_fraction_max: 0.2 };

    fn entry(number: u8) -> EntryId {
        EntryId::from_bytes([number; 16])
    }

    fn facts() -> RowFacts {
        let kind = Some(EntryType::Experience);
        RowFacts::new(WorkspaceId::MAIN, "", kind, Memory::Semantic, [])
    }

    fn empty(folder: &Path) -> PassageVectors {
        PassageVectors::empty(folder, &MODEL, LIMITS, [7; SALT_BYTES])
    }

    fn axis(at: usize) -> Vec<f32> {
        (0..4).map(|number| if number == at { 1.0 } else { 0.0 }).collect()
    }

    #[test]
    fn an_entry_is_as_near_as_its_nearest_passage() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0), axis(1)], [0; 8], facts()).unwrap();
        vectors.put(entry(2), &[axis(2)], [0; 8], facts()).unwrap();
        let near = vectors.nearest(&axis(1), 5, &RowFilter::all()).unwrap();
        assert_eq!(near[0], (entry(1), 1.0));
        assert_eq!(near.len(), 2, "each entry comes once: {near:?}");
        let cosines = vectors.cosines_of(&[entry(2), entry(3), entry(1)], &axis(1)).unwrap();
        assert_eq!(cosines, [Some(0.0), None, Some(1.0)]);
        assert_eq!(vectors.nearest_passage(entry(1), &axis(1)), Some(1));
        assert_eq!(vectors.nearest_passage(entry(2), &axis(1)), None, "it has only one");
        vectors.put(entry(1), &[axis(0)], [1; 8], facts()).unwrap();
        assert_eq!(vectors.passages(), 2, "the second passage is gone");
    }

    #[test]
    fn saved_vectors_open_again_and_damaged_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0), axis(1)], [3; 8], facts()).unwrap();
        let checkpoint: Checkpoint =
            format!("{} {:016x} 9", "00".repeat(16), 5).parse().expect("a checkpoint");
        vectors.checkpoint(&checkpoint).unwrap();
        let (opened, at) = PassageVectors::open(folder.path(), &MODEL, LIMITS).unwrap();
        assert_eq!((opened.passages(), opened.entries(), at), (2, 1, checkpoint));
        assert!(opened.has_text(entry(1), [3; 8]) && !opened.has_text(entry(1), [4; 8]));
        drop(opened);
        let other = PassageModel { identity: "other", ..MODEL };
        assert!(PassageVectors::open(folder.path(), &other, LIMITS).is_none());
        let list = folder.path().join(LIST_NAME);
        let mut bytes = fs::read(&list).unwrap();
        bytes[20] ^= 1;
        fs::write(&list, bytes).unwrap();
        assert!(PassageVectors::open(folder.path(), &MODEL, LIMITS).is_none());
    }

    #[test]
    fn an_entry_erased_while_it_is_embedded_does_not_return() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0), axis(1)], [0; 8], facts()).unwrap();
        vectors.begin_reading();
        vectors.erase([entry(1)]).unwrap();
        vectors.put(entry(1), &[axis(0)], [0; 8], facts()).unwrap();
        assert_eq!((vectors.passages(), vectors.contains(entry(1))), (0, false));
        vectors.begin_reading();
        vectors.put(entry(1), &[axis(0)], [0; 8], facts()).unwrap();
        assert!(vectors.contains(entry(1)), "an entry may be written again");
    }
}
