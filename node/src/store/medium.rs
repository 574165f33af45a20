//! Where a store lives: a file, memory, or a disk that a test lets fail.
//!
//! The store opens its medium more than once in its life: after a fault redb refuses all further
//! writes until it is opened again.

use super::error::{Error, OpenError};
use super::frozen::FrozenMedium;
use super::unfinished::sync_folder;
use redb::{Builder, Database, DatabaseError, StorageError};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Less room than this, and writes are about to fail.
pub(crate) const ROOM_BYTES_MIN: u64 = 64 * 1024 * 1024;

/// Room that is left on the disk of a file or folder.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    // Some file systems do not count.
    if disk.f_blocks == 0 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Something that holds a store's bytes.
pub trait Medium: Send + Sync + fmt::Debug {
    /// Whether a store was ever made here. Memory is always there.
    fn exists(&self) -> Result<bool, io::Error> {
        Ok(true)
    }

    /// Opens what is there, or makes an empty database.
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError>;

    /// Makes a new store, whole or not at all: `prepare` fills the empty database.
    /// Only asked of a medium that does not exist yet.
    fn create(
        &self,
        _builder: &Builder,
        _prepare: &mut dyn FnMut(&Database) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        Ok(())
    }

    /// Brings what the operating system still has in memory safely to disk, after a failed sync:
    /// the pages that were not written may be taken for written and never tried again.
    fn salvage(&self) -> Result<(), io::Error> {
        Ok(())
    }

    /// Opens what is there to be read and nothing else, where it cannot be opened to be written.
    fn open_to_read(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        self.open(builder)
    }

    /// Whether there is room for a second store beside this one. In memory there is.
    fn has_room(&self) -> bool {
        true
    }

    /// Puts a new store in the place of the one that is open, whole or not at all: `fill` fills the
    /// empty database. False where that cannot be done.
    fn replace(
        &self,
        _builder: &Builder,
        _fill: &mut dyn FnMut(&Database) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// What to call it in a message.
    fn path(&self) -> PathBuf;
}

/// A file.
#[derive(Clone, Debug)]
pub struct FileMedium(PathBuf);

impl FileMedium {
    /// The file at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Makes a file beside this one, and moves it into its place once it is durable. What is not
    /// finished holds texts, and takes room: it goes.
    fn by_copy<E: From<StorageError>>(
        &self,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let copy = self.0.with_extension("copy");
        // Left by one that was killed; not being there is fine.
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

impl Medium for FileMedium {
    fn exists(&self) -> Result<bool, io::Error> {
        self.0.try_exists()
    }

    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        let database = builder.open(&self.0)?;
        // What an interrupted copy left behind holds texts, too. Not being there is fine.
        let _ = fs::remove_file(self.0.with_extension("copy"));
        Ok(database)
    }

    /// A half-made redb file does not open again, so a new one is made under another name and
    /// moved into place when it is durable.
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
        let copied = self.by_copy(|copy| {
            fs::copy(&self.0, copy).map_err(StorageError::Io)?;
            Ok(())
        });
        copied.map_err(|error: StorageError| match error {
            StorageError::Io(error) => error,
            other => io::Error::other(other),
        })
    }

    fn open_to_read(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        FrozenMedium::inside(&self.0, File::open(&self.0)?, 0).open(builder)
    }

    fn has_room(&self) -> bool {
        let store = fs::metadata(&self.0).map_or(0, |store| store.len());
        match free_bytes(&self.0) {
            Ok(free) => free >= store.saturating_add(ROOM_BYTES_MIN),
            // It is not known, and so tried.
            Err(_) => true,
        }
    }

    /// Not begun without room for all of it: others write to the same disk.
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
        self.by_copy(|copy| {
            make(copy).map_err(|error| match error {
                // Only the copy was written: the store need not be opened again.
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

/// Memory that goes away with the store: for simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryMedium;

impl Medium for MemoryMedium {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        builder.create_with_backend(redb::backends::InMemoryBackend::new())
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("memory")
    }
}

/// Opens a medium. A damaged file can make redb panic: that is damage, not our end.
pub(super) fn open(medium: &dyn Medium, builder: &Builder) -> Result<Database, OpenError> {
    match catch_unwind(AssertUnwindSafe(|| medium.open(builder))) {
        Ok(opened) => opened.map_err(|error| OpenError::from_redb(medium.path(), error)),
        Err(_) => {
            let detail = "its pages contradict each other".to_owned();
            Err(OpenError::Damaged { path: medium.path(), detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(medium: &FileMedium, fill: &mut dyn FnMut() -> Result<(), Error>) -> Error {
        medium.replace(&Builder::new(), &mut |_| fill()).expect_err("there is no room")
    }

    #[test]
    fn a_store_larger_than_the_room_left_is_not_begun_to_be_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let store = File::create(&path).unwrap();
        let medium = FileMedium::new(&path);
        assert!(medium.has_room(), "tests need some room");
        // All of it is a hole, which takes no room.
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
    fn a_disk_that_fills_up_meanwhile_leaves_the_store_as_it_was_and_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        fs::write(&path, "as it was").unwrap();
        let error = refused(&FileMedium::new(&path), &mut || Err(Error::Full));
        assert!(matches!(error, Error::NoRoom), "a fault of the store would have it opened again");
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
