//! The transformer's vectors: one row for each passage of an entry.
//!
//! They complement the vectors of the embedding table, which a new entry has at once: a transformer
//! needs tens of milliseconds for a passage, so `passage_worker` computes these rows in the
//! background. An entry is as near to a question as its nearest passage. Separate from
//! [`super::entry_vectors`], whose vectors cover all entries and are replaced as a whole.
//!
//! [`Vectors`] has one row for each id. The first passage of an entry has the id of the entry;
//! further ones have ids derived from it with a random salt, so that no author can choose the id of
//! an entry to hit a passage of another. `passages.bin` lists the number of passages of each entry,
//! with a salted digest of the embedded text: an entry whose text did not change is not embedded
//! again.

use super::checkpoint::Checkpoint;
use super::entry_vectors::MeaningError;
use super::passage_list::{ListDigest, PassageList, PassageRows, SALT_BYTES, TextDigest};
use super::vectors::{BadVector, Limits, RowFacts, RowFilter, Vectors};
use klnode_crdt::ids::EntryId;
use klnode_embed::{EmbedError, Embedder};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// The folder of these vectors in the index folder.
pub const FOLDER_NAME: &str = "transformer";

/// If the nearest rows belong to too few entries, this many times as many are read, up to that
/// multiple.
const ROWS_STEP: usize = 4;
const ROWS_FACTOR_MAX: usize = 64;

/// A transformer that is loaded when it is first needed.
#[derive(Clone)]
pub struct PassageModel {
    /// Model and generation of the vectors.
    pub identity: &'static str,
    /// The number of dimensions of a vector.
    pub dims: usize,
    /// Each text is followed by a pause of this multiple of its time: 1 uses half of a core.
    pub pause_share: u32,
    /// The longest pause before a text while questions come.
    pub pause_max: Duration,
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

/// The vectors of all passages, in a folder of their own.
pub struct PassageVectors {
    folder: PathBuf,
    vectors: Vectors,
    list: RwLock<PassageList>,
    /// The entries erased since the worker last read the store: a text that it read before must not
    /// return. Held while rows change.
    erased: Mutex<BTreeSet<EntryId>>,
    /// The checkpoint of the last save; `None` before the first one.
    saved: Mutex<Option<Checkpoint>>,
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
        let opened = Vectors::open(folder, model.identity, model.dims, limits);
        let (vectors, note) = match opened {
            Ok(opened) => opened,
            Err(unusable) => {
                tracing::info!(why = %unusable, "Computing the passage vectors again");
                return None;
            }
        };
        let (checkpoint, named) = read_note(&note)?;
        let Some(mut list) = PassageList::open(folder, named) else {
            tracing::info!("Computing the passage vectors again: their list is missing or damaged");
            return None;
        };
        // Files without the digest of a list may disagree.
        let entries: Vec<EntryId> = list.rows.keys().copied().collect();
        for entry in entries {
            if !list.rows_of(entry).iter().all(|row| vectors.contains(*row)) {
                list.remove(entry);
            }
        }
        let opened = Self::of(folder, vectors, list);
        *opened.saved() = Some(checkpoint);
        Some((opened, checkpoint))
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
            // They take hours to compute, so a kill while they are saved must not cost them.
            vectors: vectors.replacing_file(),
            list: RwLock::new(list),
            erased: Mutex::default(),
            saved: Mutex::default(),
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

    /// The entries of the nearest `count` rows that the filter admits, each with the cosine of its
    /// nearest passage, and whether these are all entries. If the rows belong to fewer than
    /// `wanted` entries, more rows are read: a few long entries do not hide the others.
    pub fn nearest(
        &self,
        vector: &[f32],
        (count, wanted): (usize, usize),
        filter: &RowFilter,
    ) -> Result<(Vec<(EntryId, f32)>, bool), BadVector> {
        let mut rows_max = count;
        loop {
            let rows = self.vectors.nearest(vector, rows_max, filter)?.hits;
            let are_all = rows.len() < rows_max;
            let list = self.list();
            let mut seen = BTreeSet::new();
            let owned = rows.into_iter().map(|(row, cosine)| (list.owner(row), cosine));
            // Rows come nearest first, so the first row of an entry is its nearest.
            let mut found: Vec<(EntryId, f32)> =
                owned.filter(|(entry, _)| seen.insert(*entry)).collect();
            let are_rows_read = rows_max >= count.saturating_mul(ROWS_FACTOR_MAX);
            if are_all || are_rows_read || found.len() >= wanted {
                let is_cut = found.len() > count;
                found.truncate(count);
                return Ok((found, are_all && !is_cut));
            }
            rows_max = rows_max.saturating_mul(ROWS_STEP);
        }
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

    /// Replaces the facts of an entry whose text did not change; false if they were the same.
    pub(super) fn set_facts(&self, entry: EntryId, facts: RowFacts) -> bool {
        let erased = self.erased();
        let mut is_changed = false;
        for row in self.list().rows_of(entry) {
            if self.vectors.facts_of(row) != Some(facts) {
                is_changed |= self.vectors.set_facts(row, facts);
            }
        }
        drop(erased);
        is_changed
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
        let saved = *self.saved();
        if let Some(checkpoint) = saved.filter(|_| is_changed) {
            self.save(&checkpoint)?;
        }
        Ok(())
    }

    /// Saves all changes under this checkpoint.
    pub(super) fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), MeaningError> {
        let erased = self.erased();
        self.save(checkpoint)?;
        *self.saved() = Some(*checkpoint);
        drop(erased);
        Ok(())
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<(), MeaningError> {
        let failed = |source| MeaningError::Passages { path: self.folder.clone(), source };
        let digest = self.list().write_next(&self.folder).map_err(failed)?;
        self.vectors.checkpoint(note(checkpoint, &digest).as_bytes())?;
        PassageList::adopt_next(&self.folder).map_err(failed)
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

    fn saved(&self) -> MutexGuard<'_, Option<Checkpoint>> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is saved with the rows: their checkpoint and the digest of their list.
fn note(checkpoint: &Checkpoint, list: &ListDigest) -> String {
    format!("{checkpoint} {}", list.to_hex())
}

/// The digest is missing in files of earlier versions.
fn read_note(note: &[u8]) -> Option<(Checkpoint, Option<ListDigest>)> {
    let note = std::str::from_utf8(note).ok()?;
    let digest = match note.split(' ').nth(3) {
        Some(digest) => Some(ListDigest::from_hex(digest).ok()?),
        None => None,
    };
    Some((note.parse().ok()?, digest))
}

impl fmt::Debug for PassageVectors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PassageVectors")
            .field("passages", &self.passages())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::FILE_NAME;
    use klnode_crdt::entry_origin::Memory;
    use klnode_crdt::entry_type::EntryType;
    use klnode_crdt::ids::WorkspaceId;

    const MODEL: PassageModel = PassageModel {
        identity: "test",
        dims: 4,
        pause_share: 0,
        pause_max: Duration::ZERO,
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
        let (near, are_all) = vectors.nearest(&axis(1), (5, 5), &RowFilter::all()).unwrap();
        assert_eq!(near[0], (entry(1), 1.0));
        assert_eq!((near.len(), are_all), (2, true), "each entry comes once: {near:?}");
        let cosines = vectors.cosines_of(&[entry(2), entry(3), entry(1)], &axis(1)).unwrap();
        assert_eq!(cosines, [Some(0.0), None, Some(1.0)]);
        assert_eq!(vectors.nearest_passage(entry(1), &axis(1)), Some(1));
        assert_eq!(vectors.nearest_passage(entry(2), &axis(1)), None, "it has only one");
        vectors.put(entry(1), &[axis(0)], [1; 8], facts()).unwrap();
        assert_eq!(vectors.passages(), 2, "the second passage is gone");
    }

    #[test]
    fn the_passages_of_a_long_entry_do_not_hide_other_entries() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        let long = vec![axis(1); 40];
        vectors.put(entry(1), &long, [0; 8], facts()).unwrap();
        let farther = vec![vec![0.1, 0.9, 0.0, 0.0]; 40];
        vectors.put(entry(2), &farther, [0; 8], facts()).unwrap();
        for other in 3..=6 {
            vectors.put(entry(other), &[vec![0.0, 0.9, 0.4, 0.0]], [0; 8], facts()).unwrap();
        }
        let near = |count, wanted| {
            let (near, are_all) =
                vectors.nearest(&axis(1), (count, wanted), &RowFilter::all()).unwrap();
            (near.len(), are_all)
        };
        assert_eq!(near(10, 1), (1, false), "the nearest rows are of one entry");
        assert_eq!(near(10, 6), (6, true), "more rows are read");
        assert_eq!(near(10, 20), (6, true), "there are no more");
        assert_eq!(near(4, 6), (4, false), "not more than asked for");
    }

    fn checkpoint(seq: u64) -> Checkpoint {
        format!("{} {:016x} {seq}", "00".repeat(16), 5).parse().expect("a checkpoint")
    }

    #[test]
    fn saved_vectors_open_again_and_damaged_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0), axis(1)], [3; 8], facts()).unwrap();
        vectors.checkpoint(&checkpoint(9)).unwrap();
        let (opened, at) = PassageVectors::open(folder.path(), &MODEL, LIMITS).unwrap();
        assert_eq!((opened.passages(), opened.entries(), at), (2, 1, checkpoint(9)));
        assert!(opened.has_text(entry(1), [3; 8]) && !opened.has_text(entry(1), [4; 8]));
        drop(opened);
        let other = PassageModel { identity: "other", ..MODEL };
        assert!(PassageVectors::open(folder.path(), &other, LIMITS).is_none());
        let list = folder.path().join("passages.bin");
        let mut bytes = fs::read(&list).unwrap();
        bytes[20] ^= 1;
        fs::write(&list, bytes).unwrap();
        assert!(PassageVectors::open(folder.path(), &MODEL, LIMITS).is_none());
    }

    #[test]
    fn a_kill_between_the_writes_of_a_save_leaves_the_state_before_or_after_it() {
        let (folder, cut) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0)], [1; 8], facts()).unwrap();
        vectors.checkpoint(&checkpoint(1)).unwrap();
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let (list, rows) = (read("passages.bin"), read(FILE_NAME));
        vectors.put(entry(1), &[axis(2)], [2; 8], facts()).unwrap();
        vectors.put(entry(2), &[axis(3)], [2; 8], facts()).unwrap();
        vectors.checkpoint(&checkpoint(2)).unwrap();
        assert!(!folder.path().join("passages.next.bin").exists());
        let (next_list, next_rows) = (read("passages.bin"), read(FILE_NAME));
        let opened = |list: &[u8], next: &[u8], rows: &[u8]| {
            fs::write(cut.path().join("passages.bin"), list).unwrap();
            fs::write(cut.path().join("passages.next.bin"), next).unwrap();
            fs::write(cut.path().join(FILE_NAME), rows).unwrap();
            PassageVectors::open(cut.path(), &MODEL, LIMITS)
        };
        let (before, at) = opened(&list, &next_list, &rows).unwrap();
        assert!(before.has_text(entry(1), [1; 8]) && !before.contains(entry(2)));
        assert_eq!(at, checkpoint(1));
        assert!(!cut.path().join("passages.next.bin").exists(), "it may name erased entries");
        let (after, at) = opened(&list, &next_list, &next_rows).unwrap();
        assert!(after.has_text(entry(1), [2; 8]) && after.has_text(entry(2), [2; 8]));
        assert_eq!((after.passages(), at), (2, checkpoint(2)));
        let near = after.nearest(&axis(3), (1, 1), &RowFilter::all()).unwrap().0;
        assert_eq!(near, [(entry(2), 1.0)]);
        let mixed = opened(&next_list, &next_list, &rows);
        assert!(mixed.is_none(), "entries would be listed whose vectors are missing");
    }

    #[test]
    fn a_list_without_digest_counts_where_it_has_rows() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0)], [1; 8], facts()).unwrap();
        vectors.checkpoint(&checkpoint(1)).unwrap();
        // Earlier versions saved the list first, and no digest with the rows.
        vectors.list_mut().set(entry(2), PassageRows { count: 1, digest: [1; 8] });
        vectors.checkpoint(&checkpoint(2)).unwrap();
        vectors.vectors.checkpoint(checkpoint(1).to_string().as_bytes()).unwrap();
        let (opened, at) = PassageVectors::open(folder.path(), &MODEL, LIMITS).unwrap();
        assert_eq!(at, checkpoint(1));
        assert!(opened.contains(entry(1)) && !opened.contains(entry(2)));
    }

    #[test]
    fn a_failed_save_keeps_the_file_and_is_made_up_for() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = empty(folder.path());
        vectors.put(entry(1), &[axis(0)], [1; 8], facts()).unwrap();
        vectors.checkpoint(&checkpoint(1)).unwrap();
        vectors.put(entry(2), &[axis(1)], [1; 8], facts()).unwrap();
        let blocked = folder.path().join("vectors.bin.new");
        fs::create_dir(&blocked).unwrap();
        vectors.checkpoint(&checkpoint(2)).unwrap_err();
        let (opened, at) = PassageVectors::open(folder.path(), &MODEL, LIMITS).unwrap();
        assert_eq!((opened.entries(), at), (1, checkpoint(1)));
        drop(opened);
        fs::remove_dir(&blocked).unwrap();
        vectors.erase([entry(1)]).unwrap();
        let (opened, _) = PassageVectors::open(folder.path(), &MODEL, LIMITS).unwrap();
        assert!(opened.contains(entry(2)) && !opened.contains(entry(1)));
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
