//! Storage media of a store: a file, memory, or a failing disk in tests.
//!
//! The store may open its medium several times, because redb accepts no writes after a fault until
//! it is reopened.

use super::error::{Error, OpenError};
use super::frozen_file;
use klnode_home::sync_folder;
use redb::{Builder, Database, DatabaseError, StorageError};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// With less free space than this, writes are about to fail.
pub const ROOM_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Free bytes on the file system of a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    // Some file systems do not report their size.
    if disk.f_blocks == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A medium that holds a store's bytes.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Whether a store was ever created here. Always true for memory.
    fn exists(&self) -> Result<bool, io::Error> {
        Ok(true)
    }

    /// Opens the existing database, or creates an empty one.
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError>;

    /// Creates a new store atomically; `prepare` fills the empty database. Only called on a medium
    /// that does not exist yet.
    fn create(
        &self,
        _builder: &Builder,
        _prepare: &mut dyn FnMut(&Database) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        Ok(())
    }

    /// Copies the data that the operating system still has in memory to disk after a failed sync:
    /// the kernel may mark the unwritten pages as clean and never write them again.
    fn salvage(&self) -> Result<(), io::Error> {
        Ok(())
    }

    /// Opens the store read-only, as a fallback if it cannot be opened for writing.
    fn open_to_read(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        self.open(builder)
    }

    /// Whether the data outlives the open database. False for memory.
    fn outlives_database(&self) -> bool {
        true
    }

    /// Whether there is free space for a second copy of the store. Always true for memory.
    fn has_room(&self) -> bool {
        true
    }

    /// Replaces the open store by a new one atomically; `fill` fills the empty database. Returns
    /// false if the medium does not support it.
    fn replace(
        &self,
        _builder: &Builder,
        _fill: &mut dyn FnMut(&Database) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// The path for messages.
    fn path(&self) -> PathBuf;
}

/// A store in a file.
#[derive(Clone, Debug)]
pub struct FileMedium(PathBuf);

impl FileMedium {
    /// The file at this path, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Creates a file beside this one and renames it over this one once it is durable. An
    /// unfinished file contains texts and takes space, so it is removed.
    fn replace_atomically<E: From<StorageError>>(
        &self,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let copy = self.0.with_extension("copy");
        // A copy left over from a killed process; usually there is none.
        let _ = fs::remove_file(&copy);
        let moved = make(&copy).and_then(|()| {
            let synced = File::open(&copy).and_then(|file| file.sync_all());
            let moved = synced.and_then(|()| fs::rename(&copy, &self.0));
            moved.and_then(|()| sync_folder(&self.0)).map_err(|e| StorageError::Io(e).into())
        });
        if moved.is_err() {
            let _ = fs::remove_file(&copy);
        }
        moved
    }

    fn io(&self) -> impl FnOnce(io::Error) -> OpenError + '_ {
        |source| OpenError::Io { path: self.0.clone(), source }
    }
}

impl Backend for FileMedium {
    fn exists(&self) -> Result<bool, io::Error> {
        self.0.try_exists()
    }

    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        let database = builder.open(&self.0)?;
        // The copy of an interrupted process contains texts too. Usually there is none.
        let _ = fs::remove_file(self.0.with_extension("copy"));
        Ok(database)
    }

    /// redb does not reopen a half-created file, so the new one gets another name and is renamed
    /// once it is durable.
    fn create(
        &self,
        builder: &Builder,
        prepare: &mut dyn FnMut(&Database) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let unfinished = self.0.with_extension("new");
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(self.io()(error)),
            _ => {}
        }
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(self.io())?;
        let database = builder
            .create(&unfinished)
            .map_err(|error| OpenError::from_redb(unfinished.clone(), error))?;
        prepare(&database)?;
        drop(database);
        File::open(&unfinished).and_then(|file| file.sync_all()).map_err(self.io())?;
        fs::rename(&unfinished, &self.0).map_err(self.io())?;
        sync_folder(&self.0).map_err(self.io())
    }

    fn salvage(&self) -> Result<(), io::Error> {
        let copied = self.replace_atomically(|copy| {
            fs::copy(&self.0, copy).map_err(StorageError::Io)?;
            Ok(())
        });
        copied.map_err(|error: StorageError| match error {
            StorageError::Io(error) => error,
            other => io::Error::other(other),
        })
    }

    fn open_to_read(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        frozen_file::open(Arc::new(File::open(&self.0)?), 0, builder)
    }

    fn has_room(&self) -> bool {
        let store = fs::metadata(&self.0).map_or(0, |store| store.len());
        match free_bytes(&self.0) {
            Ok(free) => free >= store.saturating_add(ROOM_BYTES_MIN),
            // Free space is unknown, so try.
            Err(_) => true,
        }
    }

    /// Does not begin without space for the whole copy, because other processes write to the same
    /// disk.
    fn replace(
        &self,
        builder: &Builder,
        fill: &mut dyn FnMut(&Database) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if !self.has_room() {
            return Err(Error::NoRoom);
        }
        let mut make = |copy: &Path| -> Result<(), Error> {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy);
            drop(file.map_err(StorageError::Io)?);
            fill(&builder.create(copy).map_err(|error| match error {
                DatabaseError::Storage(error) => error.into(),
                other => Error::damaged("the new file", &other),
            })?)
        };
        self.replace_atomically(|copy| {
            make(copy).map_err(|error| match error {
                // Only the copy was written, so the store need not be reopened.
                Error::Full => Error::NoRoom,
                other => other,
            })
        })?;
        Ok(true)
    }

    fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

/// Memory that is dropped with the store, for simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryMedium;

impl Backend for MemoryMedium {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        builder.create_with_backend(redb::backends::InMemoryBackend::new())
    }

    fn outlives_database(&self) -> bool {
        false
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("memory")
    }
}

/// Opens a medium. A damaged file can make redb panic; that is reported as damage.
pub(super) fn open(medium: &dyn Backend, builder: &Builder) -> Result<Database, OpenError> {
    match catch_unwind(AssertUnwindSafe(|| medium.open(builder))) {
        Ok(opened) => opened.map_err(|error| OpenError::from_redb(medium.path(), error)),
        Err(_) => {
            let detail = "its pages are inconsistent".to_owned();
            Err(OpenError::Damaged { path: medium.path(), detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(medium: &FileMedium, fill: &mut dyn FnMut() -> Result<(), Error>) -> Error {
        medium.replace(&Builder::new(), &mut |_| fill()).expect_err("there is no free space")
    }

    #[test]
    fn a_rewrite_does_not_begin_without_enough_free_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let store = File::create(&path).unwrap();
        let medium = FileMedium::new(&path);
        assert!(medium.has_room(), "tests need some free space");
        // The file is sparse and takes no space.
        store.set_len(free_bytes(folder.path()).unwrap() + (1 << 30)).unwrap();
        assert!(!medium.has_room());
        let mut is_begun = false;
        let error = refused(&medium, &mut || {
            is_begun = true;
            Ok(())
        });
        assert!(matches!(error, Error::NoRoom), "{error}");
        assert!(!is_begun);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_disk_that_fills_up_during_a_rewrite_leaves_the_store_unchanged_and_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        fs::write(&path, "as it was").unwrap();
        let error = refused(&FileMedium::new(&path), &mut || Err(Error::Full));
        assert!(matches!(error, Error::NoRoom), "a store fault would cause a reopen");
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
