//! Errors of the store.

use klnode_crdt::record::RecordError;
use redb::{
    CommitError, CompactionError, DatabaseError, StorageError, TableError, TransactionError,
};
use std::io;
use std::path::PathBuf;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open; only one may.
    #[error("The store at {path} is in use by another klnode process.")]
    InUse {
        /// The store file.
        path: PathBuf,
    },
    /// A later klnode version wrote the store.
    #[error(
        "The store at {path} was not opened: a newer klnode wrote it (schema {found}, this \
         one knows {known})."
    )]
    Newer {
        /// The store file.
        path: PathBuf,
        /// The schema version of the file.
        found: u32,
        /// The newest schema version that this klnode can read.
        known: u32,
    },
    /// The file is no store, or is incomplete.
    #[error("The store at {path} is damaged ({detail}).")]
    Damaged {
        /// The store file.
        path: PathBuf,
        /// The damage, worded to follow a colon in an error message.
        detail: String,
    },
    /// The file system reported an error.
    #[error("The store at {path} was not opened: {source}.")]
    Io {
        /// The store file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store was opened, but its first rows could not be read or written.
    #[error("The store at {path} was not prepared: {source}")]
    Prepare {
        /// The store file.
        path: PathBuf,
        /// The error of the first transaction.
        source: Error,
    },
}

/// Why a read or a write of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing was written. Writes succeed again once there is free space.
    #[error("The store was not written: the disk is full.")]
    Full,
    /// The store is unchanged: its rewritten copy was not begun or not finished.
    #[error("The store was not rewritten: the disk has no room for a second copy.")]
    NoRoom,
    /// The disk reported an error. The writer continues on a copy of the file.
    #[error("The store cannot be used: the disk failed ({0}).")]
    Io(io::Error),
    /// An earlier fault closed the store; the writer reopens it before its next write.
    #[error("The store is closed after an earlier fault.")]
    Closed,
    /// Compaction needs exclusive access.
    #[error("The store was not compacted: it is being read.")]
    Busy,
    /// The caller cancelled the operation.
    #[error("The operation was cancelled.")]
    Abandoned,
    /// Bytes that no klnode version wrote.
    #[error("The store is damaged: {what} cannot be read ({detail}).")]
    Damaged {
        /// The damaged row or file, as a noun.
        what: String,
        /// The damage, as a clause.
        detail: String,
    },
}

impl Error {
    /// Turns damage into `None`, for callers that can continue without the value.
    pub fn unless_damaged<T>(read: Result<T, Self>) -> Result<Option<T>, Self> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(Self::Damaged { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    pub fn damaged(what: impl Into<String>, detail: &(impl ToString + ?Sized)) -> Self {
        Self::Damaged { what: what.into(), detail: detail.to_string() }
    }

    /// Returns a function that turns a refused record into damage. It computes the record's name
    /// only on refusal, because rows are read all the time and nearly all are intact.
    pub(crate) fn to_damage<Name: Into<String>>(
        what: impl FnOnce() -> Name,
    ) -> impl FnOnce(RecordError) -> Self {
        move |refusal| Self::damaged(what(), &refusal)
    }
}

/// Whether the error means that no space is left, on the disk or within the user's quota, while
/// existing data is intact.
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

/// The replication protocol continues without the data that it asked for; the log has the cause.
impl From<Error> for klnode_federation::proto::StoreUnavailable {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "The store could not be read for a peer; the sync continues without that data");
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_record_name_is_computed_only_on_refusal() {
        let named = Cell::new(0);
        let what = || {
            named.set(named.get() + 1);
            "a row"
        };
        let read = |read: Result<u8, RecordError>| read.map_err(Error::to_damage(what));
        assert!(matches!(read(Ok(7)), Ok(7)));
        assert_eq!(named.get(), 0);
        let message = read(Err(RecordError::BadSignature)).unwrap_err().to_string();
        let expect =
            "The store is damaged: a row cannot be read (the signature is not the author's).";
        assert_eq!((message.as_str(), named.get()), (expect, 1));
    }

    #[test]
    fn an_exhausted_quota_counts_as_a_full_disk() {
        let error_for =
            |errno: i32| Error::from(StorageError::Io(io::Error::from_raw_os_error(errno)));
        let errnos = [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT, rustix::io::Errno::FBIG];
        for errno in errnos {
            assert!(matches!(error_for(errno.raw_os_error()), Error::Full), "{errno}");
        }
        assert!(matches!(error_for(rustix::io::Errno::IO.raw_os_error()), Error::Io(_)));
    }
}
