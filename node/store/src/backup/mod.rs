//! A backup: one file with a complete store as of one commit, and usually the node's key.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `klbackup` |
//! | 8 | 4 | version of this format, big-endian |
//! | 12 | 4 | length of the manifest, big-endian |
//! | 16 | | the manifest, JSON |
//! | | 32 | the node's key, if the manifest says so |
//! | 4064 | 32 | blake3 of the 4064 bytes before |
//! | 4096 | | a redb file with every table of the store |
//!
//! The manifest contains the digest of the redb file, so any changed bit of a backup is detected.
//! Making a backup does not stop the writer, and reading one does not write to it.

mod restore;

pub use restore::{ExistingStore, LostData, Restore, RestoreError, RestoreIdentity, RestoreResult};

use super::IntegrityReport;
use super::error::{Error, OpenError};
use super::read_only_store::{FrozenMedium, ReadOnlyStore};
use super::snapshot::Snapshot;
use super::store_copy::{self, OmittedData, ProgressWatch};
use super::tables::SCHEMA;
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_home::{AtomicFile, Existing};
use redb::{Builder, StorageBackend};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The version of the backup format that is written, and the newest that is read.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"klbackup";
const HEAD_BYTES: usize = 4_096;
/// Offset of the head's digest.
const SEAL_AT: usize = HEAD_BYTES - 32;
const KEY_BYTES: usize = 32;
const MANIFEST_AT: usize = 16;
const MANIFEST_BYTES_MAX: usize = SEAL_AT - MANIFEST_AT - KEY_BYTES;
/// Page cache for copying. Rows are read in order, so few pages are needed twice.
const CACHE_BYTES: usize = 32 * 1024 * 1024;
const DIGEST_CONTEXT: &str = "klnode v1 backup";

/// The description of a backup, stored in its head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Hex id of the author that the store belongs to.
    pub node: String,
    /// Hex id of the store.
    pub store: String,
    /// Time of creation in milliseconds since 1970.
    pub created: u64,
    /// The klnode version that made the backup.
    pub klnode: String,
    /// The schema version of the tables.
    pub schema: u32,
    /// The newest feed position.
    pub head: u64,
    /// Number of entries, including forgotten ones.
    pub entries: u64,
    /// Number of entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Number of live records.
    pub records: u64,
    /// Whether the backup contains the node's key.
    pub has_key: bool,
    /// Bytes of the redb file.
    pub store_bytes: u64,
    /// Hex digest of the redb file.
    pub store_digest: String,
}

/// Facts for the manifest that are not in the store.
#[derive(Clone, Copy, Debug)]
pub struct BackupFacts<'a> {
    /// The author that the store belongs to.
    pub node: AuthorId,
    /// The id of the store.
    pub store: StoreId,
    /// The time of creation.
    pub now: WallTime,
    /// The version of the running klnode.
    pub klnode: &'a str,
    /// The node's key, or `None` to leave it out.
    pub key: Option<&'a SecretKey>,
}

/// Why a backup could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file exists already.
    #[error("The backup {path} was not written: there is such a file already.")]
    Exists {
        /// The existing file.
        path: PathBuf,
    },
    /// The path is a folder, a pipe or similar.
    #[error("The backup {path} was not written: the path is not a regular file.")]
    NotAFile {
        /// The path of the backup.
        path: PathBuf,
    },
    /// The existing file is not a backup, so it is not replaced.
    #[error("The file {path} was not replaced: it is no backup of klnode.")]
    Foreign {
        /// The existing file.
        path: PathBuf,
    },
    /// The file system reported an error.
    #[error("The backup {path} cannot be used: {source}.")]
    Io {
        /// The backup file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a backup.
    #[error("The file {path} was not read: it is no backup of klnode.")]
    NotOne {
        /// The file to read.
        path: PathBuf,
    },
    /// A later klnode version made the backup.
    #[error(
        "The backup {path} was not read: a newer klnode made it (version {found}, this one \
         knows {VERSION})."
    )]
    Newer {
        /// The backup file.
        path: PathBuf,
        /// The format version of the file.
        found: u32,
    },
    /// The bytes differ from those that were written.
    #[error("The backup {path} is damaged ({detail}).")]
    Damaged {
        /// The backup file.
        path: PathBuf,
        /// The damage, as a clause.
        detail: String,
    },
    /// The copied store, or the disk of the backup, failed.
    #[error("The store was not copied: {0}")]
    Store(#[from] Error),
}

impl BackupError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists { path: path.into() },
            _ => Self::Io { path: path.into(), source },
        }
    }

    fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), detail: detail.into() }
    }
}

/// Whether a backup may be written to a path: if it is free, an empty file, or another backup. The
/// node writes as its user on behalf of any caller, so other files of the user must not be lost.
fn may_replace(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        file => file?,
    };
    let mut begins = [0; MAGIC.len()];
    Ok(file.metadata()?.len() == 0
        || (file.read_exact_at(&mut begins, 0).is_ok() && begins[..] == MAGIC[..]))
}

/// Writes a backup of a snapshot atomically.
pub fn write(
    snapshot: &Snapshot,
    path: &Path,
    existing: Existing,
    about: &BackupFacts<'_>,
    watch: ProgressWatch<'_>,
) -> Result<BackupManifest, BackupError> {
    let io = || BackupError::io(path);
    // Opening a pipe would block until it has a writer. For any other unreadable path the open
    // below reports the reason.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(BackupError::NotAFile { path: path.into() });
    }
    if !may_replace(path).map_err(io())? && existing == Existing::Replace {
        return Err(BackupError::Foreign { path: path.into() });
    }
    // A backup of a damaged store could not be restored, and might replace one that can.
    if let Some(damage) = snapshot.examine(watch)?.damage.into_iter().next() {
        return Err(damage.into());
    }
    let target = AtomicFile::create(path, existing).map_err(io())?;
    target.file().set_len(HEAD_BYTES as u64).map_err(io())?;
    let inside = EmbeddedFile { file: target.file().try_clone().map_err(io())? };
    let full = |error| match OpenError::from_redb(path.into(), error) {
        OpenError::Io { source, .. } => BackupError::Io { path: path.into(), source },
        other => BackupError::damaged(path, other.to_string()),
    };
    let mut database = builder().create_with_backend(inside).map_err(full)?;
    store_copy::copy(snapshot, &database, &OmittedData::default(), watch)?;
    database.compact().map_err(Error::from)?;
    drop(database);
    let (store_bytes, digest) = digest(target.file(), watch).map_err(|error| error.at(path))?;
    let counts = snapshot.counts()?;
    let manifest = BackupManifest {
        node: about.node.to_string(),
        store: about.store.to_string(),
        created: about.now.as_millis(),
        klnode: about.klnode.into(),
        schema: SCHEMA,
        head: snapshot.head().0,
        entries: counts.entries,
        forgotten: counts.forgotten,
        records: counts.records,
        has_key: about.key.is_some(),
        store_bytes,
        store_digest: digest.to_hex().to_string(),
    };
    let key = about.key.map(SecretKey::to_bytes);
    let head = head(&manifest, key.as_ref().map(|key| &key[..]));
    target.file().write_all_at(&head, 0).map_err(io())?;
    target.finish().map_err(io())?;
    Ok(manifest)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Builds the first page of a backup.
fn head(manifest: &BackupManifest, key: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
    let json = serde_json::to_vec(manifest).expect("numbers and texts are JSON");
    assert!(json.len() <= MANIFEST_BYTES_MAX, "every field of a manifest is short");
    let mut head = Zeroizing::new(Vec::with_capacity(HEAD_BYTES));
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&VERSION.to_be_bytes());
    head.extend_from_slice(&(json.len() as u32).to_be_bytes());
    head.extend_from_slice(&json);
    head.extend_from_slice(key.unwrap_or_default());
    head.resize(SEAL_AT, 0);
    let seal = blake3::derive_key(DIGEST_CONTEXT, &head);
    head.extend_from_slice(&seal);
    head
}

/// Why the digest could not be computed.
enum DigestError {
    Io(io::Error),
    Abandoned,
}

impl DigestError {
    fn at(self, path: &Path) -> BackupError {
        match self {
            Self::Io(error) => BackupError::io(path)(error),
            Self::Abandoned => Error::Abandoned.into(),
        }
    }
}

/// Length and digest of all bytes after the head.
fn digest(file: &File, watch: ProgressWatch<'_>) -> Result<(u64, blake3::Hash), DigestError> {
    let end = file.metadata().map_err(DigestError::Io)?.len();
    let mut hasher = blake3::Hasher::new_derive_key(DIGEST_CONTEXT);
    let mut at = HEAD_BYTES as u64;
    let mut buffer = vec![0; 1024 * 1024];
    while at < end {
        let count = (end - at).min(buffer.len() as u64) as usize;
        file.read_exact_at(&mut buffer[..count], at).map_err(DigestError::Io)?;
        hasher.update(&buffer[..count]);
        at += count as u64;
        if watch(at, end) == ControlFlow::Break(()) {
            return Err(DigestError::Abandoned);
        }
    }
    Ok((at - HEAD_BYTES as u64, hasher.finalize()))
}

/// The redb file inside a backup that is being made.
#[derive(Debug)]
struct EmbeddedFile {
    file: File,
}

impl StorageBackend for EmbeddedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().saturating_sub(HEAD_BYTES as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, HEAD_BYTES as u64 + offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(HEAD_BYTES as u64 + len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, HEAD_BYTES as u64 + offset)
    }
}

/// An open backup.
#[derive(Debug)]
pub struct Backup {
    path: PathBuf,
    file: File,
    manifest: BackupManifest,
    node: AuthorId,
    key: Option<SecretKey>,
}

impl Backup {
    /// Reads and checks the head of a backup.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let file = File::open(path).map_err(BackupError::io(path))?;
        let not_one = || BackupError::NotOne { path: path.into() };
        let damaged = |detail: &str| BackupError::damaged(path, detail);
        let mut head = Zeroizing::new(vec![0; HEAD_BYTES]);
        match file.read_exact_at(&mut head[..MANIFEST_AT], 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(not_one()),
            read => read.map_err(BackupError::io(path))?,
        }
        if head[..8] != MAGIC[..] {
            return Err(not_one());
        }
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (found, len) = (number(8), number(12) as usize);
        if found > VERSION {
            return Err(BackupError::Newer { path: path.into(), found });
        }
        file.read_exact_at(&mut head, 0).map_err(|_| damaged("it ends inside its head"))?;
        let seal = blake3::derive_key(DIGEST_CONTEXT, &head[..SEAL_AT]);
        if seal[..] != head[SEAL_AT..] || len > MANIFEST_BYTES_MAX {
            return Err(damaged("the digest of its head does not match"));
        }
        let manifest = MANIFEST_AT..MANIFEST_AT + len;
        let key = &head[manifest.end..manifest.end + KEY_BYTES];
        let manifest: BackupManifest = serde_json::from_slice(&head[manifest])
            .map_err(|error| BackupError::damaged(path, format!("its manifest: {error}")))?;
        let node = AuthorId::from_hex(&manifest.node);
        let node = node.ok_or_else(|| damaged("its manifest names no node"))?;
        let key = key.try_into().ok().filter(|_| manifest.has_key).map(SecretKey::from_bytes);
        if key.as_ref().is_some_and(|key| key.author() != node) {
            return Err(damaged("the key in it belongs to another node"));
        }
        Ok(Self { path: path.into(), file, manifest, node, key })
    }

    /// The description from the head.
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// The author that the store belongs to.
    pub fn node(&self) -> AuthorId {
        self.node
    }

    /// The node's key, if the backup contains it.
    pub fn key(&self) -> Option<&SecretKey> {
        self.key.as_ref()
    }

    /// Checks length and digest of the redb file.
    pub fn check_bytes(&self, watch: ProgressWatch<'_>) -> Result<(), BackupError> {
        let there = self.file.metadata().map_err(BackupError::io(&self.path))?.len();
        let there = there.saturating_sub(HEAD_BYTES as u64);
        let expected = self.manifest.store_bytes;
        if there != expected {
            let detail = format!("the store in it has {there} bytes, not {expected}");
            return Err(BackupError::damaged(&self.path, detail));
        }
        let (_, digest) = digest(&self.file, watch).map_err(|error| error.at(&self.path))?;
        if digest.to_hex().as_str() != self.manifest.store_digest {
            return Err(BackupError::damaged(&self.path, "the store in it was altered"));
        }
        Ok(())
    }

    /// Checks that every record verifies, the tables are consistent, and the counts match the
    /// manifest.
    pub fn check_records(&self, watch: ProgressWatch<'_>) -> Result<IntegrityReport, BackupError> {
        let examined = self.look()?.examine(watch)?;
        let expected = (self.manifest.entries, self.manifest.forgotten, self.manifest.records);
        let found = (examined.entries, examined.forgotten, examined.records);
        if let Some(damage) = examined.damage.first() {
            let detail = format!("{} rows, the first: {damage}", examined.damaged);
            return Err(BackupError::damaged(&self.path, detail));
        }
        if expected != found {
            let detail = format!(
                "it should contain {} entries, {} forgotten, in {} records; it contains {}, {} \
                 and {}",
                expected.0, expected.1, expected.2, found.0, found.1, found.2
            );
            return Err(BackupError::damaged(&self.path, detail));
        }
        Ok(examined)
    }

    /// Opens the store in the backup for reading. Writes of redb while it is open stay in memory.
    pub fn look(&self) -> Result<ReadOnlyStore, BackupError> {
        let file = self.file.try_clone().map_err(BackupError::io(&self.path))?;
        let medium = FrozenMedium::inside(&self.path, file, HEAD_BYTES as u64);
        medium.look().map_err(|error| match error {
            OpenError::Newer { found, .. } => BackupError::Newer { path: self.path.clone(), found },
            other => BackupError::damaged(&self.path, other.to_string()),
        })
    }
}
