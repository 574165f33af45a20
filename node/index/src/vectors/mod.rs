//! The vector index: filtered nearest-neighbour search, nearly exact, and persistent.
//!
//! Each entry has one row: its vector as int8 codes, and a few [`RowFacts`] to filter by. A query is
//! compared with every row that its [`RowFilter`] admits, about as fast as memory can be read
//! (`dot_product`), and a removed row is gone at once. With thousands of rows, one bit per
//! dimension is read first, and the codes only of rows that may be near enough (`binary_sketch`):
//! almost no row is missed, and none of the nearest. From [`Limits::hnsw_entries_min`] rows on, a
//! graph answers where it is faster.
//!
//! There is one writer at a time. Queries wait neither for a save nor for the construction of a
//! graph, which starts after a checkpoint on its own thread (`graph_builder`). Until the graph is
//! ready, and wherever it would be slower, the scan answers. The file (`rows_file`) is derived
//! data: if it cannot be loaded, [`UnusableFile`] names the reason and the rows are rebuilt from the
//! store. Scores are cosines; callers calibrate them.

mod binary_sketch;
mod dot_product;
mod graph;
mod graph_builder;
mod graph_file;
mod graph_mapping;
mod quantized_rows;
mod row_filter;
mod rows_file;
mod rows_file_format;
mod search_state;
mod top_k;

#[cfg(test)]
mod tests;

pub use row_filter::{RowFacts, RowFilter, TagSignature};
pub use rows_file::CheckpointError;
pub use rows_file_format::{
    CURSOR_BYTES_MAX, DIMS_MAX, IDENTITY_BYTES_MAX, ROWS_MAX, UnusableFile,
};

use graph_builder::Builder;
use graph_file::GraphFiles;
use klnode_crdt::ids::EntryId;
use quantized_rows::{Quantised, QuantizedQuery, QuantizedRows};
use rows_file::{DirtyRows, RowsFile};
use search_state::State;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{fmt, io};
use top_k::TopHits;

/// The name of the file in the index folder.
pub const FILE_NAME: &str = "vectors.bin";

/// Number of rows from which a scan is split between cores.
const SHARED_ROWS_MIN: usize = 20_000;

/// The thresholds of the graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Number of rows from which a graph is built.
    pub hnsw_entries_min: usize,
    /// The share of dead points from which the graph is rebuilt.
    pub hnsw_dead_fraction_max: f64,
}

/// Reasons why a vector is rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// The vector has another number of dimensions than the index.
    #[error("A vector has {found} dimensions; this index has {expected}.")]
    Dims {
        /// The dimensions of the vector.
        found: usize,
        /// The dimensions of the index.
        expected: usize,
    },
    /// The vector contains NaN or an infinity.
    #[error("Number {at} of a vector is not finite.")]
    NotFinite {
        /// The position in the vector, from zero.
        at: usize,
    },
    /// The index has the maximum number of rows.
    #[error("The vector index is full: it holds at most {ROWS_MAX} vectors.")]
    Full,
}

/// The method that answered a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Every admitted row was compared, by its codes or by its sketch: a row at the very end of the
    /// result may have been missed, one in thousands.
    Scan,
    /// A graph was searched: a few rows may have been missed.
    Graph,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// Entries with their cosines, nearest first; ties in order of id.
    pub hits: Vec<(EntryId, f32)>,
    /// The method that answered.
    pub engine: Engine,
}

impl Nearest {
    fn scanned(top: TopHits) -> Self {
        Self { hits: top.into_hits(), engine: Engine::Scan }
    }
}

/// The vector index of one model and generation, in one folder.
pub struct Vectors {
    shared: Arc<Shared>,
    /// Held by the writer from the first change in memory to the last write on disk.
    writer: Mutex<WriterState>,
    builder: Builder,
}

/// The part that the graph builder's thread shares.
struct Shared {
    identity: String,
    dims: usize,
    limits: Limits,
    graph_files: GraphFiles,
    state: RwLock<State>,
}

struct WriterState {
    disk: RowsFile,
    dirty: DirtyRows,
}

impl Vectors {
    /// Loads the index of a folder, with the cursor of its last checkpoint. After any error,
    /// continue with [`Self::empty`].
    pub fn open(
        folder: &Path,
        identity: &str,
        dims: usize,
        limits: Limits,
    ) -> Result<(Self, Vec<u8>), UnusableFile> {
        let (disk, rows, cursor) = rows_file::load(&folder.join(FILE_NAME), identity, dims)?;
        let vectors = Self::of(folder, disk, rows, identity, limits);
        vectors.shared.graph_files.remove_others();
        vectors.builder.consider(&vectors.shared);
        Ok((vectors, cursor))
    }

    /// An index without rows. Its first checkpoint replaces the file in the folder; until then
    /// another index may use that file.
    ///
    /// # Panics
    ///
    /// If the identity or the number of dimensions exceeds the limits of the file, which cannot
    /// happen for a model that loaded.
    pub fn empty(folder: &Path, identity: &str, dims: usize, limits: Limits) -> Self {
        assert!((1..=DIMS_MAX).contains(&dims), "a vector has 1 to {DIMS_MAX} numbers, not {dims}");
        assert!(identity.len() <= IDENTITY_BYTES_MAX, "the name of the model is too long");
        let disk = RowsFile::new(folder.join(FILE_NAME), identity, dims);
        Self::of(folder, disk, QuantizedRows::new(dims), identity, limits)
    }

    /// These vectors, with a file that every save replaces as a whole: it takes longer, and a process
    /// that is killed meanwhile leaves the old file instead of an incomplete one.
    #[must_use]
    pub fn replacing_file(self) -> Self {
        self.writer().disk.replace_whole();
        self
    }

    /// Deletes the vectors in a folder that no index will update: forgotten entries would otherwise
    /// stay in them.
    pub fn discard(folder: &Path) -> io::Result<()> {
        graph_file::remove_all(folder);
        rows_file::remove(&folder.join(FILE_NAME))
    }

    /// The number of dimensions of the vectors in a folder, for any model.
    pub fn dims_in(folder: &Path) -> Result<usize, UnusableFile> {
        rows_file::dims(&folder.join(FILE_NAME))
    }

    fn of(
        folder: &Path,
        disk: RowsFile,
        rows: QuantizedRows,
        identity: &str,
        limits: Limits,
    ) -> Self {
        let shared = Shared {
            identity: identity.to_owned(),
            dims: rows.codes.dims(),
            limits,
            graph_files: GraphFiles::new(folder, identity),
            state: RwLock::new(State::new(rows)),
        };
        let writer = Mutex::new(WriterState { disk, dirty: DirtyRows::default() });
        Self { shared: Arc::new(shared), writer, builder: Builder::default() }
    }

    /// Model and generation of the vectors.
    pub fn identity(&self) -> &str {
        &self.shared.identity
    }

    /// The number of dimensions of a vector.
    pub fn dims(&self) -> usize {
        self.shared.dims
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.shared.read().rows.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if an entry has a row.
    pub fn contains(&self, entry: EntryId) -> bool {
        self.shared.read().rows.row_of(entry).is_some()
    }

    /// All entries that have a row, in no particular order.
    pub fn entries(&self) -> Vec<EntryId> {
        self.shared.read().rows.entries().to_vec()
    }

    /// The facts of an entry; `None` if it has no row.
    pub fn facts_of(&self, entry: EntryId) -> Option<RowFacts> {
        let state = self.shared.read();
        state.rows.row_of(entry).map(|row| *state.rows.facts(row))
    }

    /// Inserts or replaces the vector of an entry. Only its direction is stored.
    pub fn upsert(&self, entry: EntryId, vector: &[f32], facts: RowFacts) -> Result<(), BadVector> {
        self.shared.check(vector)?;
        let vector = Quantised::new(vector);
        let mut writer = self.writer();
        if let Some(row) = self.shared.write().upsert(entry, &vector, facts)? {
            writer.dirty.mark(row);
        }
        Ok(())
    }

    /// Replaces the facts of an entry and keeps its vector. False if it has no row.
    pub fn set_facts(&self, entry: EntryId, facts: RowFacts) -> bool {
        let mut writer = self.writer();
        let mut state = self.shared.write();
        let Some(row) = state.rows.row_of(entry) else { return false };
        state.rows.set_facts(row, facts);
        writer.dirty.mark(row);
        true
    }

    /// Removes an entry: later queries do not find it, and after the next checkpoint the file
    /// contains nothing of it. False if it had no row.
    pub fn remove(&self, entry: EntryId) -> bool {
        let mut writer = self.writer();
        let Some(row) = self.shared.write().remove(entry) else { return false };
        writer.dirty.mark(row);
        true
    }

    /// Saves all changes, with a cursor that [`Self::open`] returns. When this returns, the file
    /// survives a crash. After an error, the next checkpoint saves the same changes.
    pub fn checkpoint(&self, cursor: &[u8]) -> Result<(), CheckpointError> {
        self.write(&mut self.writer(), cursor)
    }

    /// Saves all changes under the cursor already in the file: for deletions that must leave the
    /// file before the next cursor is known. Without a file there is nothing to do.
    pub fn save(&self) -> Result<(), CheckpointError> {
        let mut writer = self.writer();
        if !writer.disk.exists() || writer.dirty.is_empty() {
            return Ok(());
        }
        let cursor = writer.disk.cursor().to_vec();
        self.write(&mut writer, &cursor)
    }

    fn write(&self, writer: &mut WriterState, cursor: &[u8]) -> Result<(), CheckpointError> {
        let WriterState { disk, dirty } = writer;
        let first = !disk.exists();
        disk.checkpoint(&self.shared.state, dirty, cursor)?;
        *dirty = DirtyRows::default();
        if first {
            self.shared.graph_files.remove_others();
        }
        self.builder.consider(&self.shared);
        Ok(())
    }

    /// The number of points of the graph in use; `None` without a graph.
    pub fn graph_points(&self) -> Option<usize> {
        self.shared.read().points()
    }

    /// Waits until a graph under construction is in use and saved.
    pub fn wait_for_graph(&self) {
        self.builder.wait();
    }

    /// The nearest entries that the filter admits, at most `count`.
    pub fn nearest(
        &self,
        vector: &[f32],
        count: usize,
        filter: &RowFilter,
    ) -> Result<Nearest, BadVector> {
        self.shared.check(vector)?;
        let query = QuantizedQuery::new(vector);
        Ok(self.shared.read().nearest(&query, count, filter))
    }

    /// Like [`Self::nearest`], while `other` runs in parallel. With many rows the scan is split,
    /// and idle cores take unstarted parts.
    pub fn nearest_beside<T: Send>(
        &self,
        (vector, count): (&[f32], usize),
        filter: &RowFilter,
        other: impl FnOnce() -> T + Send,
    ) -> (Result<Nearest, BadVector>, T) {
        if let Err(error) = self.shared.check(vector) {
            return (Err(error), other());
        }
        let query = QuantizedQuery::new(vector);
        // Lock here and not in the helper threads: they may start on other questions while waiting
        // for each other, and would then deadlock with a waiting writer.
        let state = self.shared.read();
        if state.rows.len() < SHARED_ROWS_MIN {
            let nearest = state.nearest(&query, count, filter);
            drop(state);
            return (Ok(nearest), other());
        }
        let state: &State = &state;
        let (other, nearest) = rayon::join(other, || state.nearest_shared(&query, count, filter));
        (Ok(nearest), other)
    }

    /// The entries nearest to one that has a row, without itself; `None` if it has no row.
    pub fn nearest_to(
        &self,
        entry: EntryId,
        count: usize,
        filter: &RowFilter,
    ) -> Option<Vec<(EntryId, f32)>> {
        let state = self.shared.read();
        let mut codes = Vec::with_capacity(self.shared.dims);
        state.rows.codes.write_codes(state.rows.row_of(entry)?, &mut codes);
        let vector: Vec<f32> = codes.iter().map(|code| f32::from(code.cast_signed())).collect();
        let mut hits =
            state.nearest(&QuantizedQuery::new(&vector), count.saturating_add(1), filter).hits;
        hits.retain(|(other, _)| *other != entry);
        hits.truncate(count);
        Some(hits)
    }

    /// The cosine of each entry and a vector; `None` for an entry without a row.
    pub fn cosines_of(
        &self,
        entries: &[EntryId],
        vector: &[f32],
    ) -> Result<Vec<Option<f32>>, BadVector> {
        self.shared.check(vector)?;
        let query = QuantizedQuery::new(vector);
        let state = self.shared.read();
        let cosine =
            |entry: &EntryId| Some(state.rows.codes.cosine(state.rows.row_of(*entry)?, &query));
        Ok(entries.iter().map(cosine).collect())
    }

    /// The cosine of two entries; `None` if one of them has no row.
    pub fn cosine_between(&self, one: EntryId, two: EntryId) -> Option<f32> {
        let state = self.shared.read();
        let (one, two) = (state.rows.row_of(one)?, state.rows.row_of(two)?);
        Some(state.rows.codes.cosine_between(one, two))
    }

    /// The cosines of deterministic pairs of these entries that have rows: a sample of unrelated
    /// texts.
    pub fn sample_cosines(&self, pairs: usize, of: &[EntryId]) -> Vec<f64> {
        let state = self.shared.read();
        let rows: Vec<usize> = of.iter().filter_map(|entry| state.rows.row_of(*entry)).collect();
        let pick = |at: usize, step: usize| rows[at.wrapping_mul(step) % rows.len()];
        (0..if rows.len() < 2 { 0 } else { pairs })
            .map(|at| (pick(at, 7_919), pick(at + 1, 104_729)))
            .filter(|(one, two)| one != two)
            .map(|(one, two)| f64::from(state.rows.codes.cosine_between(one, two)))
            .collect()
    }

    fn writer(&self) -> MutexGuard<'_, WriterState> {
        self.writer.lock().expect("no writer of the vectors panics")
    }
}

impl Shared {
    fn check(&self, vector: &[f32]) -> Result<(), BadVector> {
        if vector.len() != self.dims {
            return Err(BadVector::Dims { found: vector.len(), expected: self.dims });
        }
        match vector.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(BadVector::NotFinite { at }),
            None => Ok(()),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no writer of the rows panics")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("no writer of the rows panics")
    }
}

impl Drop for Vectors {
    fn drop(&mut self) {
        self.builder.stop();
    }
}

impl fmt::Debug for Vectors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Vectors")
            .field("identity", &self.shared.identity)
            .field("dims", &self.shared.dims)
            .field("rows", &self.len())
            .finish_non_exhaustive()
    }
}
