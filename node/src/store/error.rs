//! What can go wrong with the store, in words that fit after "cannot".

use klnode_crdt::record::Refusal;
use redb::{
    CommitError, CompactionError, DatabaseError, StorageError, TableError, TransactionError,
};
use std::io;
use std::path::PathBuf;

/// Why a store does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// One process owns a store.
    #[error("open the store at {path}: another klnode is using it")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version.
    #[error(
        "open the store at {path}: a newer klnode wrote it (schema {found}, this one knows {known})"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest this version knows.
        known: u32,
    },
    /// Not a store, or not a whole one.
    #[error("open the store at {path}: it is damaged ({detail})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file system said no.
    #[error("open the store at {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Opened, but its first rows could not be read or written.
    #[error("prepare the store at {path}: {source}")]
    Prepare {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Error,
    },
}

/// Why a read or a write failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was written; it works again when there is room.
    #[error("write to the store: the disk is full")]
    Full,
    /// The store is as it was: a copy that was to take its place was not begun, or not finished.
    #[error("write the store anew: the disk has no room for a second one beside it")]
    NoRoom,
    /// The writer goes on from a copy of the file.
    #[error("use the store: the disk failed ({0})")]
    Io(io::Error),
    /// An earlier fault closed the store; the writer opens it again before its next write.
    #[error("use the store: it is closed after an earlier fault")]
    Closed,
    /// Compacting needs the store for itself.
    #[error("compact the store: it is being read")]
    Busy,
    /// Whoever asked does not wait for it any more.
    #[error("finish: it was broken off")]
    Abandoned,
    /// Bytes that this or an earlier version did not write.
    #[error("read the store: {what} is damaged ({detail})")]
    Damaged {
        /// Which row.
        what: String,
        /// What was found.
        detail: String,
    },
}

impl Error {
    /// What was read, unless it is damaged: whoever can do without it goes on.
    pub(crate) fn unless_damaged<T>(read: Result<T, Self>) -> Result<Option<T>, Self> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(Self::Damaged { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    pub(crate) fn damaged(what: impl Into<String>, detail: &(impl ToString + ?Sized)) -> Self {
        Self::Damaged { what: what.into(), detail: detail.to_string() }
    }

    /// What a refusal comes to. Nearly everything that is read is whole, and rows are read all the
    /// time: what is read gets its name only if it is refused.
    pub(crate) fn refused<Name: Into<String>>(
        what: impl FnOnce() -> Name,
    ) -> impl FnOnce(Refusal) -> Self {
        move |refusal| Self::damaged(what(), &refusal)
    }
}

/// Whether nothing more can be written, and nothing is wrong with what was: the disk is full, or what
/// somebody may have on it.
fn is_out_of_room(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Io(error) if is_out_of_room(error.kind()) => Self::Full,
            StorageError::Io(error) => Self::Io(error),
            StorageError::PreviousIo | StorageError::DatabaseClosed => Self::Closed,
            other => Self::damaged("the file", &other),
        }
    }
}

impl From<TransactionError> for Error {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Storage(error) => error.into(),
            other => Self::damaged("the file", &other),
        }
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            other => Self::damaged("a table", &other),
        }
    }
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Storage(error) => error.into(),
            other => Self::damaged("the transaction", &other),
        }
    }
}

impl From<CompactionError> for Error {
    fn from(error: CompactionError) -> Self {
        match error {
            CompactionError::Storage(error) => error.into(),
            CompactionError::TransactionInProgress => Self::Busy,
            other => Self::damaged("the file", &other),
        }
    }
}

impl OpenError {
    pub(crate) fn from_redb(path: PathBuf, error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::InUse { path },
            DatabaseError::Storage(StorageError::Io(source))
                if source.kind() != io::ErrorKind::InvalidData =>
            {
                Self::Io { path, source }
            }
            other => Self::Damaged { path, detail: other.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_read_gets_a_name_only_if_it_is_refused() {
        let named = Cell::new(0);
        let what = || {
            named.set(named.get() + 1);
            "a row"
        };
        let read = |read: Result<u8, Refusal>| read.map_err(Error::refused(what));
        assert!(matches!(read(Ok(7)), Ok(7)));
        assert_eq!(named.get(), 0);
        let told = read(Err(Refusal::BadSignature)).unwrap_err().to_string();
        let expect = "read the store: a row is damaged (the signature is not the author's)";
        assert_eq!((told.as_str(), named.get()), (expect, 1));
    }

    #[test]
    fn a_quota_that_is_used_up_is_a_disk_that_is_full_and_not_one_that_failed() {
        let told = |errno: i32| Error::from(StorageError::Io(io::Error::from_raw_os_error(errno)));
        let errnos = [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT, rustix::io::Errno::FBIG];
        for errno in errnos {
            assert!(matches!(told(errno.raw_os_error()), Error::Full), "{errno}");
        }
        assert!(matches!(told(rustix::io::Errno::IO.raw_os_error()), Error::Io(_)));
    }
}
