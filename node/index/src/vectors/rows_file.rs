//! The rows on disk: one file, of which a checkpoint writes only the changed part.
//!
//! The header has the identity of the vectors, their number, and the feed position of the index
//! (the cursor). One slot for each row follows, all of one size, each with a checksum over its
//! content and number; the header has a checksum over itself and the sum of all slot checksums, so
//! that a slot that was never written is detected like a damaged one ([`super::rows_file_format`]).
//!
//! A checkpoint marks the header as being written and syncs it, writes the changed slots, truncates
//! the file to its rows and syncs, and writes the new header. A crash before the mark leaves the
//! old state, a crash after it leaves a file that is recognised as incomplete
//! ([`UnusableFile::Interrupted`]), never a mixture that loads. A removed row is overwritten by the
//! row that takes its place, or truncated. A new file is written under a temporary name and renamed;
//! vectors that take long to compute do so at every checkpoint, and are never left incomplete.

use super::quantized_rows::QuantizedRows;
use super::rows_file_format::{
    CURSOR_BYTES_MAX, FileHeader, HEADER_BYTES, State, UnusableFile, read_slot, slot_bytes,
    write_slot,
};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::RwLock;

/// Slots are read and written in runs of about this many bytes.
const RUN_BYTES: usize = 1 << 20;

/// Reasons why a checkpoint failed. The next checkpoint saves the same changes.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The cursor is too long.
    #[error(
        "The vectors could not be saved: a cursor has {found} bytes, more than {CURSOR_BYTES_MAX}."
    )]
    Cursor {
        /// The length of the cursor.
        found: usize,
    },
    /// The file could not be written.
    #[error("The vectors could not be saved to {path}: {source}.")]
    Io {
        /// The vector file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// The file operations of a checkpoint; tests substitute a recorder.
pub(super) trait RowsBackend {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn cut(&self, length: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

impl RowsBackend for File {
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

/// The rows that differ from the file.
#[derive(Clone, Debug, Default)]
pub(super) struct DirtyRows {
    words: Vec<u64>,
}

impl DirtyRows {
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

    /// Maximal runs of marked rows below `rows`.
    fn runs(&self, rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < rows && !self.holds(at) {
                // Skip words without a mark at once.
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

/// The file and its known contents.
pub(super) struct RowsFile {
    path: PathBuf,
    identity: String,
    dims: usize,
    /// `None` until the first checkpoint has created it.
    file: Option<File>,
    /// The checksum of each slot.
    sums: Vec<u64>,
    /// The cursor of the last checkpoint.
    cursor: Vec<u8>,
    /// Whether every checkpoint writes a new file.
    is_replaced: bool,
}

impl RowsFile {
    /// A file that does not exist yet.
    pub(super) fn new(path: PathBuf, identity: &str, dims: usize) -> Self {
        // A temporary file of a killed process may contain vectors that were removed since.
        let _ = fs::remove_file(temporary(&path));
        let (identity, sums, cursor) = (identity.to_owned(), Vec::new(), Vec::new());
        Self { path, identity, dims, file: None, sums, cursor, is_replaced: false }
    }

    /// Every checkpoint writes a new file and renames it.
    pub(super) fn replace_whole(&mut self) {
        self.is_replaced = true;
    }

    /// True if there is a file of these rows.
    pub(super) fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// The cursor of the last checkpoint.
    pub(super) fn cursor(&self) -> &[u8] {
        &self.cursor
    }

    /// Writes the rows to the file. `dirty` names the rows changed since the last time.
    ///
    /// The rows are locked for reading only, and never during a file operation.
    pub(super) fn checkpoint(
        &mut self,
        rows: &RwLock<impl RowContainer>,
        dirty: &DirtyRows,
        cursor: &[u8],
    ) -> Result<(), CheckpointError> {
        if cursor.len() > CURSOR_BYTES_MAX {
            return Err(CheckpointError::Cursor { found: cursor.len() });
        }
        let path = self.path.clone();
        let done = match self.file.take() {
            Some(file) if self.is_replaced => {
                let done = self.write_anew(rows, cursor);
                if done.is_err() {
                    self.file = Some(file);
                }
                done
            }
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

    fn write_anew(&mut self, rows: &RwLock<impl RowContainer>, cursor: &[u8]) -> io::Result<()> {
        let temporary = temporary(&self.path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&temporary)?;
        // The mode above applies to a new file; this restricts one left behind.
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
        file: &dyn RowsBackend,
        rows: &RwLock<impl RowContainer>,
        dirty: &DirtyRows,
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
        file: &dyn RowsBackend,
        rows: &RwLock<impl RowContainer>,
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
        FileHeader { state, dims: self.dims, rows, total, identity, cursor }.to_bytes()
    }
}

/// A container of rows behind a lock.
pub(super) trait RowContainer {
    fn as_rows(&self) -> &QuantizedRows;

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

/// Deletes the vector file, and a temporary file of a killed process, if they exist.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for path in [path, &temporary(path)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The number of dimensions in a vector file, for any model.
pub(super) fn dims(path: &Path) -> Result<usize, UnusableFile> {
    let mut file = open(path)?;
    Ok(read_header(&mut file)?.dims)
}

fn open(path: &Path) -> Result<File, UnusableFile> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(UnusableFile::Absent),
        opened => Ok(opened?),
    }
}

fn read_header(file: &mut File) -> Result<FileHeader, UnusableFile> {
    let mut bytes = [0; HEADER_BYTES];
    read_or(file, &mut bytes, "its header is cut short")?;
    FileHeader::parse(&bytes)
}

/// Loads a vector file, with the cursor of its last checkpoint.
pub(super) fn load(
    path: &Path,
    identity: &str,
    dims: usize,
) -> Result<(RowsFile, QuantizedRows, Vec<u8>), UnusableFile> {
    let mut disk = RowsFile::new(path.to_owned(), identity, dims);
    let mut file = open(path)?;
    let header = read_header(&mut file)?;
    if header.identity != identity {
        return Err(UnusableFile::Identity { found: header.identity });
    }
    if header.dims != dims {
        return Err(UnusableFile::Dims { found: header.dims, expected: dims });
    }
    if header.state != State::Whole {
        return Err(UnusableFile::Interrupted);
    }
    let slot = slot_bytes(dims);
    // Check before allocating memory of that size.
    if file.metadata()?.len() != (HEADER_BYTES + header.rows * slot) as u64 {
        return Err(UnusableFile::Damaged("its length does not match its rows"));
    }
    let mut rows = QuantizedRows::with_capacity(dims, header.rows);
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
        return Err(UnusableFile::Damaged("a row belongs to another checkpoint"));
    }
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    (disk.file, disk.cursor) = (Some(file), header.cursor.clone());
    Ok((disk, rows, header.cursor))
}

fn read_or(file: &mut File, bytes: &mut [u8], what: &'static str) -> Result<(), UnusableFile> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => UnusableFile::Damaged(what),
        _ => UnusableFile::Io(error),
    })
}
