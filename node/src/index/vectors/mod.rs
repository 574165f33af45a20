//! Which entries are nearest to a vector: as good as exact, filtered, and kept over restarts.
//!
//! Each entry has one row: its vector as int8 codes, and a few [`Facts`] to filter by. A query is
//! compared with every row that its [`Filter`] admits, about as fast as memory can be read
//! (`kernel`), and a removed row is gone at once. Of thousands of rows one bit for each number is read
//! first, and the codes of those rows that may be near enough (`sketch`): next to nothing is missed, and
//! of the nearest nothing. From [`Limits::hnsw_entries_min`] rows on a graph answers instead where it
//! is faster.
//!
//! One writer at a time; queries wait neither for it to save nor for a graph to be built: that is
//! begun after a checkpoint, by a thread of its own (`builder`). Until it is done, and wherever it
//! would be slower, the scan answers. The file (`file`) is disposable: when it cannot be loaded,
//! [`Stale`] says why and the rows are made again from the store. Scores leave here as cosines;
//! what they are worth is for others to say.

mod attached;
mod builder;
mod dump;
mod facts;
mod file;
mod format;
mod graph;
mod kernel;
mod rows;
mod sketch;
mod state;
mod top;

#[cfg(test)]
mod tests;

pub use facts::{Facts, Filter, TagSignature};
pub use file::CheckpointError;
pub use format::{CURSOR_BYTES_MAX, DIMS_MAX, IDENTITY_BYTES_MAX, ROWS_MAX, Stale};

use builder::Builder;
use dump::Dump;
use file::{Dirty, Disk};
use klnode_crdt::ids::EntryId;
use rows::{Quantised, Query, Rows};
use state::State;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::{fmt, io};
use top::Top;

/// The file's name in the folder of the index.
pub const FILE_NAME: &str = "vectors.bin";

/// From so many rows on it is worth it to wake another core.
const SHARED_ROWS_MIN: usize = 20_000;

/// When a graph takes over from the scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The number of rows from which on a graph is built.
    pub hnsw_entries_min: usize,
    /// The part of dead points at which it is built again.
    pub hnsw_dead_fraction_max: f64,
}

/// Why a vector cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// It has another length than those of the index.
    #[error("use a vector of {found} numbers: those of this index have {expected}")]
    Dims {
        /// How many it has.
        found: usize,
        /// How many those of the index have.
        expected: usize,
    },
    /// It holds something that is no number.
    #[error("use a vector whose number {at} is not finite")]
    NotFinite {
        /// Which, from zero.
        at: usize,
    },
    /// There is no room for it.
    #[error("index more than {ROWS_MAX} vectors")]
    Full,
}

/// What found the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Every admitted row was compared, by its codes or by its sketch: of thousands at the very end of
    /// what was asked for one may have been missed.
    Scan,
    /// A graph was searched: a few may have been missed.
    Graph,
}

/// The nearest entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// Entries with their cosines, nearest first; equally near ones by id.
    pub hits: Vec<(EntryId, f32)>,
    /// What found them.
    pub engine: Engine,
}

impl Nearest {
    fn scanned(top: Top) -> Self {
        Self { hits: top.into_hits(), engine: Engine::Scan }
    }
}

/// The vector index: of one model and generation, in one folder.
pub struct Vectors {
    shared: Arc<Shared>,
    /// Held by whoever writes, from the first change in memory to the last on disk.
    pen: Mutex<Pen>,
    builder: Builder,
}

/// What the thread that builds a graph sees as well.
struct Shared {
    identity: String,
    dims: usize,
    limits: Limits,
    dump: Dump,
    state: RwLock<State>,
}

struct Pen {
    disk: Disk,
    dirty: Dirty,
}

impl Vectors {
    /// Loads the index of a folder, with the cursor of its last checkpoint. Whatever is wrong with
    /// it, the way on is [`Self::empty`].
    pub fn open(
        folder: &Path,
        identity: &str,
        dims: usize,
        limits: Limits,
    ) -> Result<(Self, Vec<u8>), Stale> {
        let (disk, rows, cursor) = file::load(&folder.join(FILE_NAME), identity, dims)?;
        let vectors = Self::of(folder, disk, rows, identity, limits);
        vectors.shared.dump.remove_others();
        vectors.builder.consider(&vectors.shared);
        Ok((vectors, cursor))
    }

    /// An index without rows. Its first checkpoint takes the place of the file in the folder; until
    /// then another index may answer from there.
    ///
    /// # Panics
    ///
    /// If the identity or the number of dimensions is beyond what the file can hold, which a model
    /// that loaded never is.
    pub fn empty(folder: &Path, identity: &str, dims: usize, limits: Limits) -> Self {
        assert!((1..=DIMS_MAX).contains(&dims), "a vector has 1 to {DIMS_MAX} numbers, not {dims}");
        assert!(identity.len() <= IDENTITY_BYTES_MAX, "the name of the model is too long");
        let disk = Disk::new(folder.join(FILE_NAME), identity, dims);
        Self::of(folder, disk, Rows::new(dims), identity, limits)
    }

    /// Deletes what stands in a folder, where nobody is going to keep it up: what is forgotten from
    /// now on would stay in it.
    pub fn discard(folder: &Path) -> io::Result<()> {
        dump::remove_all(folder);
        file::remove(&folder.join(FILE_NAME))
    }

    /// How many numbers the vectors have that stand in a folder, whoever made them.
    pub fn dims_in(folder: &Path) -> Result<usize, Stale> {
        file::dims(&folder.join(FILE_NAME))
    }

    fn of(folder: &Path, disk: Disk, rows: Rows, identity: &str, limits: Limits) -> Self {
        let shared = Shared {
            identity: identity.to_owned(),
            dims: rows.codes.dims(),
            limits,
            dump: Dump::new(folder, identity),
            state: RwLock::new(State::new(rows)),
        };
        let pen = Mutex::new(Pen { disk, dirty: Dirty::default() });
        Self { shared: Arc::new(shared), pen, builder: Builder::default() }
    }

    /// Whose vectors these are: model and generation.
    pub fn identity(&self) -> &str {
        &self.shared.identity
    }

    /// How many numbers a vector has.
    pub fn dims(&self) -> usize {
        self.shared.dims
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.shared.read().rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an entry has a row.
    pub fn contains(&self, entry: EntryId) -> bool {
        self.shared.read().rows.row_of(entry).is_some()
    }

    /// Every entry that has a row, in no order that means anything.
    pub fn entries(&self) -> Vec<EntryId> {
        self.shared.read().rows.entries().to_vec()
    }

    /// What is known of an entry.
    pub fn facts_of(&self, entry: EntryId) -> Option<Facts> {
        let state = self.shared.read();
        state.rows.row_of(entry).map(|row| *state.rows.facts(row))
    }

    /// Gives an entry this vector, or another if it has one. Only its direction is kept.
    pub fn upsert(&self, entry: EntryId, vector: &[f32], facts: Facts) -> Result<(), BadVector> {
        self.shared.check(vector)?;
        let vector = Quantised::new(vector);
        let mut pen = self.pen();
        if let Some(row) = self.shared.write().upsert(entry, &vector, facts)? {
            pen.dirty.mark(row);
        }
        Ok(())
    }

    /// Changes what is known of an entry and leaves its vector. False if it has no row.
    pub fn set_facts(&self, entry: EntryId, facts: Facts) -> bool {
        let mut pen = self.pen();
        let mut state = self.shared.write();
        let Some(row) = state.rows.row_of(entry) else { return false };
        state.rows.set_facts(row, facts);
        pen.dirty.mark(row);
        true
    }

    /// Takes an entry out: no later query finds it, and after the next checkpoint nothing of it is
    /// in the file. False if it had no row.
    pub fn remove(&self, entry: EntryId) -> bool {
        let mut pen = self.pen();
        let Some(row) = self.shared.write().remove(entry) else { return false };
        pen.dirty.mark(row);
        true
    }

    /// Saves what has changed, with a cursor to be handed back by [`Self::open`]. When it returns,
    /// the file survives a crash. What could not be saved is saved the next time.
    pub fn checkpoint(&self, cursor: &[u8]) -> Result<(), CheckpointError> {
        self.write(&mut self.pen(), cursor)
    }

    /// Saves what has changed under the cursor that the file has: for what must leave the file
    /// before the next cursor can be told. Where there is no file yet, there is nothing to leave.
    pub fn save(&self) -> Result<(), CheckpointError> {
        let mut pen = self.pen();
        if !pen.disk.exists() || pen.dirty.is_empty() {
            return Ok(());
        }
        let cursor = pen.disk.cursor().to_vec();
        self.write(&mut pen, &cursor)
    }

    fn write(&self, pen: &mut Pen, cursor: &[u8]) -> Result<(), CheckpointError> {
        let Pen { disk, dirty } = pen;
        let first = !disk.exists();
        disk.checkpoint(&self.shared.state, dirty, cursor)?;
        *dirty = Dirty::default();
        if first {
            self.shared.dump.remove_others();
        }
        self.builder.consider(&self.shared);
        Ok(())
    }

    /// How many points the graph has, if one is in use.
    pub fn graph_points(&self) -> Option<usize> {
        self.shared.read().points()
    }

    /// Waits until a graph that is being built is in use and saved.
    pub fn wait_for_graph(&self) {
        self.builder.wait();
    }

    /// The entries nearest to a vector, at most `count`, of those the filter admits.
    pub fn nearest(
        &self,
        vector: &[f32],
        count: usize,
        filter: &Filter,
    ) -> Result<Nearest, BadVector> {
        self.shared.check(vector)?;
        let query = Query::new(vector);
        Ok(self.shared.read().nearest(&query, count, filter))
    }

    /// The same, while something else is done. Of many vectors another core takes a part, if it has
    /// time: whoever has nothing left to do takes what nobody has begun.
    pub fn nearest_beside<T: Send>(
        &self,
        (vector, count): (&[f32], usize),
        filter: &Filter,
        other: impl FnOnce() -> T + Send,
    ) -> (Result<Nearest, BadVector>, T) {
        if let Err(error) = self.shared.check(vector) {
            return (Err(error), other());
        }
        let query = Query::new(vector);
        // Locked here and not by who helps: they take up other questions while they wait for each
        // other, and would then wait for a writer who waits for them.
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

    /// The entries nearest to one that has a row, itself left out; none if it has none.
    pub fn nearest_to(
        &self,
        entry: EntryId,
        count: usize,
        filter: &Filter,
    ) -> Option<Vec<(EntryId, f32)>> {
        let state = self.shared.read();
        let mut codes = Vec::with_capacity(self.shared.dims);
        state.rows.codes.write_codes(state.rows.row_of(entry)?, &mut codes);
        let vector: Vec<f32> = codes.iter().map(|code| f32::from(code.cast_signed())).collect();
        let mut hits = state.nearest(&Query::new(&vector), count.saturating_add(1), filter).hits;
        hits.retain(|(other, _)| *other != entry);
        hits.truncate(count);
        Some(hits)
    }

    /// The cosine of each of these entries and a vector; none for an entry without a row.
    pub fn cosines_of(
        &self,
        entries: &[EntryId],
        vector: &[f32],
    ) -> Result<Vec<Option<f32>>, BadVector> {
        self.shared.check(vector)?;
        let query = Query::new(vector);
        let state = self.shared.read();
        let cosine =
            |entry: &EntryId| Some(state.rows.codes.cosine(state.rows.row_of(*entry)?, &query));
        Ok(entries.iter().map(cosine).collect())
    }

    /// The cosine of two entries; none where one of them has no row.
    pub fn cosine_between(&self, one: EntryId, two: EntryId) -> Option<f32> {
        let state = self.shared.read();
        let (one, two) = (state.rows.row_of(one)?, state.rows.row_of(two)?);
        Some(state.rows.codes.cosine_between(one, two))
    }

    /// The cosines of pairs of these entries, as far as they have rows, the same each time: what
    /// unrelated texts look like to the model.
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

    fn pen(&self) -> MutexGuard<'_, Pen> {
        self.pen.lock().expect("no writer of the vectors panics")
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
