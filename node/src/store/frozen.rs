//! A store that is only looked at: inside a backup, or in a home whose node has stopped.
//!
//! Opening a redb file writes to it: a mark that it is open, a repair after a crash. Here such
//! writes stay in memory, so that whatever is found wrong is found as it was left.

use super::error::OpenError;
use super::medium::Medium;
use super::open::{Options, Store};
use super::snapshot::Snapshot;
use klnode_crdt::ids::StoreId;
use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes that are kept in memory as one once some of them are written.
const PAGE_BYTES: u64 = 4_096;

/// A part of a file as a medium that is never written.
#[derive(Clone, Debug)]
pub struct FrozenMedium {
    path: PathBuf,
    file: Arc<File>,
    /// Where the store begins in the file.
    start: u64,
}

impl FrozenMedium {
    /// The store at a path. Nobody else may use it meanwhile: the file is locked until the last
    /// copy of this medium and every store opened from it have gone.
    pub fn store(path: impl Into<PathBuf>) -> Result<Self, DatabaseError> {
        let path = path.into();
        let file = File::open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, file: Arc::new(file), start: 0 }),
            Err(TryLockError::WouldBlock) => Err(DatabaseError::DatabaseAlreadyOpen),
            Err(TryLockError::Error(error)) => Err(StorageError::Io(error).into()),
        }
    }

    /// The store that begins at an offset of a file.
    pub fn inside(path: impl Into<PathBuf>, file: File, start: u64) -> Self {
        Self { path: path.into(), file: Arc::new(file), start }
    }
}

impl Medium for FrozenMedium {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        let whole = self.file.metadata()?.len();
        let len = whole.saturating_sub(self.start);
        // An empty medium would be made a new store.
        if len == 0 {
            let empty = io::Error::new(io::ErrorKind::InvalidData, "it is empty");
            return Err(StorageError::Io(empty).into());
        }
        builder.create_with_backend(Frozen::new(self.file.clone(), self.start, len))
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

/// What a frozen store holds. redb reads nothing more once its database is dropped: so both live
/// and go together.
pub struct Seen {
    snapshot: Snapshot,
    _store: Store,
}

impl Deref for Seen {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// Memory for pages of a store that is read once, from its beginning to its end.
const CACHE_BYTES_MAX: usize = 8 * 1024 * 1024;

impl FrozenMedium {
    /// Opens the store and looks at what its last commit left.
    pub fn look(self) -> Result<Seen, OpenError> {
        let path = self.path();
        let mut options = Options::new(StoreId::default());
        options.cache_bytes_max = CACHE_BYTES_MAX;
        let opened = catch_unwind(AssertUnwindSafe(|| Store::open(Box::new(self), &options)));
        // A damaged file can make redb panic: that is damage, not our end.
        let store = opened.unwrap_or_else(|_| {
            let detail = "its pages contradict each other".into();
            Err(OpenError::Damaged { path: path.clone(), detail })
        })?;
        let snapshot = store.snapshot().map_err(|source| OpenError::Prepare { path, source })?;
        Ok(Seen { snapshot, _store: store })
    }
}

/// A file below, what was written since above it.
#[derive(Debug)]
struct Frozen {
    file: Arc<File>,
    start: u64,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// How much of the file still shows. What was once cut off does not come back.
    below_len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Frozen {
    fn new(file: Arc<File>, start: u64, len: u64) -> Self {
        let written = Written { len, below_len: len, pages: BTreeMap::new() };
        Self { file, start, written: Mutex::new(written) }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().expect("no holder of the lock panics")
    }

    /// Bytes of the file as it lies; zeros beyond its end.
    fn below(&self, below_len: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = below_len.saturating_sub(offset).min(out.len() as u64) as usize;
        self.file.read_exact_at(&mut out[..there], self.start + offset)?;
        out[there..].fill(0);
        Ok(())
    }
}

/// The parts of a run of bytes, page by page: the page, where it begins there, and in the run.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < len).then(|| {
            let (page, within) =
                ((offset + at as u64) / PAGE_BYTES, (offset + at as u64) % PAGE_BYTES);
            let count = (len - at).min((PAGE_BYTES - within) as usize);
            at += count;
            (page, within as usize, at - count..at)
        })
    })
}

impl StorageBackend for Frozen {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset + out.len() as u64 > written.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.below(written.below_len, offset, out)?;
        for (page, within, range) in parts(offset, out.len()) {
            if let Some(bytes) = written.pages.get(&page) {
                let len = range.len();
                out[range].copy_from_slice(&bytes[within..within + len]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        written.pages.split_off(&len.div_ceil(PAGE_BYTES));
        let within = (len % PAGE_BYTES) as usize;
        if let Some(last) = written.pages.get_mut(&(len / PAGE_BYTES)).filter(|_| within > 0) {
            last[within..].fill(0);
        }
        written.below_len = written.below_len.min(len);
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        for (page, within, range) in parts(offset, data.len()) {
            let below_len = written.below_len;
            let bytes = match written.pages.entry(page) {
                Entry::Occupied(page) => page.into_mut(),
                Entry::Vacant(place) => {
                    let mut bytes = vec![0; PAGE_BYTES as usize].into_boxed_slice();
                    self.below(below_len, page * PAGE_BYTES, &mut bytes)?;
                    place.insert(bytes)
                }
            };
            bytes[within..within + range.len()].copy_from_slice(&data[range]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn frozen(bytes: &[u8], start: u64) -> (tempfile::NamedTempFile, Frozen) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let below = Arc::new(file.reopen().unwrap());
        (file, Frozen::new(below, start, bytes.len() as u64 - start))
    }

    #[test]
    fn what_is_written_is_read_back_and_the_file_stays_as_it_was() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| at as u8).collect();
        let (file, frozen) = frozen(&bytes, 100);
        let mut expected = bytes[100..].to_vec();
        for (offset, len, value) in [(0, 10, 1), (4_090, 5_000, 2), (12_000, 7_900, 3)] {
            frozen.write(offset as u64, &vec![value; len]).unwrap();
            expected[offset..offset + len].fill(value);
        }
        let mut found = vec![0; expected.len()];
        frozen.read(0, &mut found).unwrap();
        assert_eq!(found, expected);
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
        assert!(frozen.read(19_900, &mut [0]).is_err(), "the end is the end");
    }

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        let (_file, frozen) = frozen(&[7; 20_000], 0);
        frozen.write(5_000, &[8; 9_000]).unwrap();
        frozen.set_len(5_100).unwrap();
        frozen.set_len(20_000).unwrap();
        let mut found = vec![1; 20_000];
        frozen.read(0, &mut found).unwrap();
        let expected = [vec![7; 5_000], vec![8; 100], vec![0; 14_900]].concat();
        assert_eq!(found, expected);
    }
}
