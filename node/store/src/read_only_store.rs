//! A store that is only read: inside a backup, or in a home whose node has stopped.
//!
//! `frozen_file` keeps the file unchanged, so that damage is reported as it is on disk.

use super::backend::Backend;
use super::error::OpenError;
use super::frozen_file;
use super::open_store::{Options, Store};
use super::snapshot::Snapshot;
use klnode_crdt::ids::StoreId;
use redb::{Builder, Database, DatabaseError, StorageError};
use std::fs::{File, TryLockError};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// A part of a file as a medium that is never written.
#[derive(Clone, Debug)]
pub struct FrozenMedium {
    path: PathBuf,
    file: Arc<File>,
    /// Offset of the store in the file.
    start: u64,
}

impl FrozenMedium {
    /// The store at a path. The file is locked against other users until the last clone of this
    /// medium and every store opened from it are dropped.
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

impl Backend for FrozenMedium {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        frozen_file::open(self.file.clone(), self.start, builder)
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

/// A snapshot of a read-only store, together with that store, because redb reads nothing more once
/// its database is dropped.
pub struct ReadOnlyStore {
    snapshot: Snapshot,
    _store: Store,
}

impl Deref for ReadOnlyStore {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// Page cache for a store that is read once from beginning to end.
const CACHE_BYTES_MAX: usize = 8 * 1024 * 1024;

impl FrozenMedium {
    /// Opens the store and returns a snapshot of its last commit.
    pub fn look(self) -> Result<ReadOnlyStore, OpenError> {
        let path = self.path();
        let mut options = Options::new(StoreId::default());
        options.cache_bytes_max = CACHE_BYTES_MAX;
        let opened = catch_unwind(AssertUnwindSafe(|| Store::open(Box::new(self), &options)));
        // A damaged file can make redb panic; that is reported as damage.
        let store = opened.unwrap_or_else(|_| {
            let detail = "its pages are inconsistent".into();
            Err(OpenError::Damaged { path: path.clone(), detail })
        })?;
        let snapshot = store.snapshot().map_err(|source| OpenError::Prepare { path, source })?;
        Ok(ReadOnlyStore { snapshot, _store: store })
    }
}
