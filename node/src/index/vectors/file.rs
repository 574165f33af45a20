//! The rows on disk: one file, of which a checkpoint writes what has changed.
//!
//! The header says whose vectors these are, how many, and how far the store had been read (the
//! cursor). After it comes one slot for each row, all of one size, each with a checksum over its
//! content and number; the header has one over itself and the sum of those of all slots, so a slot
//! that was never written is found as surely as a damaged one ([`super::format`]).
//!
//! A checkpoint marks the header as being written and syncs it, writes the slots that differ, cuts
//! the file to its rows and syncs, and writes the new header. Killed before the mark it leaves the
//! old state, killed after it a file that says so ([`Stale::Interrupted`]): never a mixture that
//! loads. A removed row is overwritten by the row that takes its place, or cut off. A file that is
//! not there yet is written under another name and renamed.

use super::format::{
    CURSOR_BYTES_MAX, HEADER_BYTES, Header, Stale, State, read_slot, slot_bytes, write_slot,
};
use super::rows::Rows;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::RwLock;

/// Slots are read and written in runs of about this many bytes.
const RUN_BYTES: usize = 1 << 20;

/// Why a checkpoint was not made. What was to be written is kept for the next one.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The cursor is too long.
    #[error("save the vectors: a cursor of {found} bytes is longer than {CURSOR_BYTES_MAX}")]
    Cursor {
        /// Its length.
        found: usize,
    },
    /// The disk refused.
    #[error("save the vectors at {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What a checkpoint does to a file; a test puts a recorder in its place.
pub(super) trait Medium {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn cut(&self, length: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

impl Medium for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Rows that the file does not have as they are in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    words: Vec<u64>,
}

impl Dirty {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn mark(&mut self, row: usize) {
        let word = row / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
    }

    fn holds(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Maximal runs of marked rows below a bound.
    fn runs(&self, rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < rows && !self.holds(at) {
                // Whole words without a mark are skipped at once.
                let word = self.words.get(at / 64).copied().unwrap_or(0) >> (at % 64);
                at += if word == 0 { 64 - at % 64 } else { word.trailing_zeros() as usize };
            }
            let start = at.min(rows);
            while at < rows && self.holds(at) {
                at += 1;
            }
            (start < rows).then_some(start..at)
        })
    }
}

/// The file, and what is known to stand in it.
pub(super) struct Disk {
    path: PathBuf,
    identity: String,
    dims: usize,
    /// None until the first checkpoint has made it.
    file: Option<File>,
    /// The checksum of each slot.
    sums: Vec<u64>,
    /// What the last checkpoint was given.
    cursor: Vec<u8>,
}

impl Disk {
    /// A file that is not there yet.
    pub(super) fn new(path: PathBuf, identity: &str, dims: usize) -> Self {
        // What a killed process had begun may hold vectors that have since been removed.
        let _ = fs::remove_file(temporary(&path));
        let (identity, sums, cursor) = (identity.to_owned(), Vec::new(), Vec::new());
        Self { path, identity, dims, file: None, sums, cursor }
    }

    /// Whether there is a file of these rows.
    pub(super) fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// What the last checkpoint was given.
    pub(super) fn cursor(&self) -> &[u8] {
        &self.cursor
    }

    /// Makes the file say what the rows say. `dirty` names the rows written since the last time.
    ///
    /// The rows are only ever locked for reading, and never while the disk works.
    pub(super) fn checkpoint(
        &mut self,
        rows: &RwLock<impl AsRows>,
        dirty: &Dirty,
        cursor: &[u8],
    ) -> Result<(), CheckpointError> {
        if cursor.len() > CURSOR_BYTES_MAX {
            return Err(CheckpointError::Cursor { found: cursor.len() });
        }
        let path = self.path.clone();
        let done = match self.file.take() {
            Some(file) => {
                let done = self.write_in_place(&file, rows, dirty, cursor);
                self.file = Some(file);
                done
            }
            None => self.write_anew(rows, cursor),
        };
        done.map_err(|source| CheckpointError::Io { path, source })?;
        self.cursor = cursor.to_vec();
        Ok(())
    }

    fn write_anew(&mut self, rows: &RwLock<impl AsRows>, cursor: &[u8]) -> io::Result<()> {
        let temporary = temporary(&self.path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&temporary)?;
        // The mode above is for a file that is made now; this also closes one left behind.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let count = read(rows).len();
        self.sums.clear();
        self.write_slots(&file, rows, 0..count)?;
        file.write_all_at(&self.header(State::Whole, count, cursor), 0)?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.file = Some(file);
        Ok(())
    }

    pub(super) fn write_in_place(
        &mut self,
        file: &dyn Medium,
        rows: &RwLock<impl AsRows>,
        dirty: &Dirty,
        cursor: &[u8],
    ) -> io::Result<()> {
        let count = read(rows).len();
        let mut runs = dirty.runs(count).peekable();
        if runs.peek().is_some() || count != self.sums.len() {
            file.write_at(&self.header(State::Writing, self.sums.len(), cursor), 0)?;
            file.sync()?;
            for run in runs {
                self.write_slots(file, rows, run)?;
            }
            file.cut((HEADER_BYTES + count * slot_bytes(self.dims)) as u64)?;
            file.sync()?;
            self.sums.truncate(count);
        }
        file.write_at(&self.header(State::Whole, count, cursor), 0)?;
        file.sync()
    }

    fn write_slots(
        &mut self,
        file: &dyn Medium,
        rows: &RwLock<impl AsRows>,
        mut run: std::ops::Range<usize>,
    ) -> io::Result<()> {
        let bytes = slot_bytes(self.dims);
        let most = (RUN_BYTES / bytes).max(1);
        let mut buffer = Vec::with_capacity(bytes * most.min(run.len()));
        while !run.is_empty() {
            let start = run.start;
            buffer.clear();
            let held = read(rows);
            for row in run.by_ref().take(most) {
                let sum = write_slot(held.as_rows(), row, &mut buffer);
                if row < self.sums.len() {
                    self.sums[row] = sum;
                } else {
                    self.sums.push(sum);
                }
            }
            drop(held);
            file.write_at(&buffer, (HEADER_BYTES + start * bytes) as u64)?;
        }
        Ok(())
    }

    fn header(&self, state: State, rows: usize, cursor: &[u8]) -> Vec<u8> {
        let (identity, cursor) = (self.identity.clone(), cursor.to_vec());
        let total = total(&self.sums);
        Header { state, dims: self.dims, rows, total, identity, cursor }.to_bytes()
    }
}

/// What holds rows behind a lock.
pub(super) trait AsRows {
    fn as_rows(&self) -> &Rows;

    fn len(&self) -> usize {
        self.as_rows().len()
    }
}

fn read<T>(rows: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    rows.read().expect("no holder of the rows panics")
}

fn temporary(path: &Path) -> PathBuf {
    path.with_extension("bin.new")
}

fn total(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |total, sum| total.wrapping_add(*sum))
}

/// Deletes a file of rows, if there is one, and what a killed process had begun of one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for path in [path, &temporary(path)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// How many numbers the vectors of a file have, whoever made them.
pub(super) fn dims(path: &Path) -> Result<usize, Stale> {
    let mut file = open(path)?;
    Ok(read_header(&mut file)?.dims)
}

fn open(path: &Path) -> Result<File, Stale> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Stale::Absent),
        opened => Ok(opened?),
    }
}

fn read_header(file: &mut File) -> Result<Header, Stale> {
    let mut bytes = [0; HEADER_BYTES];
    read_or(file, &mut bytes, "its header is cut short")?;
    Header::parse(&bytes)
}

/// Reads a file written by a checkpoint, with the cursor it was given.
pub(super) fn load(
    path: &Path,
    identity: &str,
    dims: usize,
) -> Result<(Disk, Rows, Vec<u8>), Stale> {
    let mut disk = Disk::new(path.to_owned(), identity, dims);
    let mut file = open(path)?;
    let header = read_header(&mut file)?;
    if header.identity != identity {
        return Err(Stale::Identity { found: header.identity });
    }
    if header.dims != dims {
        return Err(Stale::Dims { found: header.dims, expected: dims });
    }
    if header.state != State::Whole {
        return Err(Stale::Interrupted);
    }
    let slot = slot_bytes(dims);
    // Compared before anything of that size is allocated.
    if file.metadata()?.len() != (HEADER_BYTES + header.rows * slot) as u64 {
        return Err(Stale::Damaged("its length is not that of its rows"));
    }
    let mut rows = Rows::with_capacity(dims, header.rows);
    let mut buffer = vec![0; slot * (RUN_BYTES / slot).clamp(1, header.rows.max(1))];
    while rows.len() < header.rows {
        let some = (header.rows - rows.len()).min(buffer.len() / slot);
        let buffer = &mut buffer[..some * slot];
        read_or(&mut file, buffer, "its rows are cut short")?;
        for slot in buffer.chunks_exact(slot) {
            disk.sums.push(read_slot(slot, &mut rows)?);
        }
    }
    if total(&disk.sums) != header.total {
        return Err(Stale::Damaged("a row is of another time"));
    }
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    (disk.file, disk.cursor) = (Some(file), header.cursor.clone());
    Ok((disk, rows, header.cursor))
}

fn read_or(file: &mut File, bytes: &mut [u8], what: &'static str) -> Result<(), Stale> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Stale::Damaged(what),
        _ => Stale::Io(error),
    })
}
