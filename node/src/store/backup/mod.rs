//! A backup: one file with a whole store as it was at one commit, and usually the node's key.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `klbackup` |
//! | 8 | 4 | version of this format, big-endian |
//! | 12 | 4 | length of the manifest, big-endian |
//! | 16 | | the manifest, JSON |
//! | | 32 | the node's key, if the manifest says so |
//! | 4064 | 32 | blake3 of the 4064 bytes before |
//! | 4096 | | a redb file: every table of the store, written anew |
//!
//! The manifest holds the digest of the redb file, so that no bit of a backup changes unnoticed.
//! Making one does not stop the writer; looking at one does not write to it.

mod restore;

pub use restore::{Identity, InPlace, Lost, Restore, RestoreError, Restored};

use super::Examined;
use super::copy::{self, Watch, Without};
use super::error::{Error, OpenError};
use super::frozen::{FrozenMedium, Seen};
use super::snapshot::Snapshot;
use super::tables::SCHEMA;
use super::unfinished::{Existing, Unfinished};
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::time::WallTime;
use redb::{Builder, StorageBackend};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"klbackup";
const HEAD_BYTES: usize = 4_096;
/// Where the digest of the head stands.
const SEAL_AT: usize = HEAD_BYTES - 32;
const KEY_BYTES: usize = 32;
const MANIFEST_AT: usize = 16;
const MANIFEST_BYTES_MAX: usize = SEAL_AT - MANIFEST_AT - KEY_BYTES;
/// Memory for pages while copying: rows come in order, so few are needed twice.
const CACHE_BYTES: usize = 32 * 1024 * 1024;
const DIGEST_CONTEXT: &str = "klnode v1 backup";

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Whose store it is.
    pub node: String,
    /// The store's own name.
    pub store: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// The klnode that made it.
    pub klnode: String,
    /// The schema of its tables.
    pub schema: u32,
    /// The newest position of its feed.
    pub head: u64,
    /// Entries, forgotten ones included.
    pub entries: u64,
    /// Entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Live records.
    pub records: u64,
    /// Whether the node's key is in it.
    pub has_key: bool,
    /// Bytes of the store in it.
    pub store_bytes: u64,
    /// Their digest.
    pub store_digest: String,
}

/// What the maker of a backup knows beside the store.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Whose store it is.
    pub node: AuthorId,
    /// The store's own name.
    pub store: StoreId,
    /// When.
    pub now: WallTime,
    /// The klnode that makes it.
    pub klnode: &'a str,
    /// The node's key, unless it is to be left out.
    pub key: Option<&'a SecretKey>,
}

/// Why a backup cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It is there already.
    #[error("write the backup {path}: there is such a file already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A folder, a pipe or the like.
    #[error("write the backup {path}: what is there is no plain file")]
    NotAFile {
        /// What is there.
        path: PathBuf,
    },
    /// What is there was not made by a backup.
    #[error("replace {path}: it is no backup of klnode")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("use the backup {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Something else.
    #[error("read the backup {path}: it is no backup of klnode")]
    NotOne {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version.
    #[error(
        "read the backup {path}: a newer klnode made it (version {found}, this one knows {VERSION})"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Not what was written.
    #[error("trust the backup {path}: it is damaged ({detail})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The store that is copied, or the disk it goes to, failed.
    #[error("copy the store: {0}")]
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

/// Whether a backup may take the place of what is there: nothing, an empty file, another backup. The
/// node writes as its user, for whoever asks: nothing else of the user's is lost by it.
fn may_replace(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        file => file?,
    };
    let mut begins = [0; MAGIC.len()];
    Ok(file.metadata()?.len() == 0
        || (file.read_exact_at(&mut begins, 0).is_ok() && begins[..] == MAGIC[..]))
}

/// Writes a backup of what a snapshot holds, whole or not at all.
pub fn write(
    snapshot: &Snapshot,
    path: &Path,
    existing: Existing,
    about: &About<'_>,
    watch: Watch<'_>,
) -> Result<Manifest, BackupError> {
    let io = || BackupError::io(path);
    // Whoever opens a pipe waits until somebody writes to it. Of anything else that cannot be looked
    // at, opening it tells why.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(BackupError::NotAFile { path: path.into() });
    }
    if !may_replace(path).map_err(io())? && existing == Existing::Replace {
        return Err(BackupError::Foreign { path: path.into() });
    }
    // A backup of what is damaged could not be restored, and would take the place of one that can.
    if let Some(damage) = snapshot.examine(watch)?.damage.into_iter().next() {
        return Err(damage.into());
    }
    let target = Unfinished::create(path, existing).map_err(io())?;
    target.file().set_len(HEAD_BYTES as u64).map_err(io())?;
    let inside = Inside { file: target.file().try_clone().map_err(io())? };
    let full = |error| match OpenError::from_redb(path.into(), error) {
        OpenError::Io { source, .. } => BackupError::Io { path: path.into(), source },
        other => BackupError::damaged(path, other.to_string()),
    };
    let mut database = builder().create_with_backend(inside).map_err(full)?;
    copy::copy(snapshot, &database, &Without::default(), watch)?;
    database.compact().map_err(Error::from)?;
    drop(database);
    let (store_bytes, digest) = digest(target.file(), watch).map_err(|error| error.at(path))?;
    let counts = snapshot.counts()?;
    let manifest = Manifest {
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

/// The first page.
fn head(manifest: &Manifest, key: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
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

/// Why the bytes of a file have no digest.
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

/// The length and the digest of everything behind the head.
fn digest(file: &File, watch: Watch<'_>) -> Result<(u64, blake3::Hash), DigestError> {
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

/// The redb file inside a backup while it is made.
#[derive(Debug)]
struct Inside {
    file: File,
}

impl StorageBackend for Inside {
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

/// A backup, opened.
#[derive(Debug)]
pub struct Backup {
    path: PathBuf,
    file: File,
    manifest: Manifest,
    node: AuthorId,
    key: Option<SecretKey>,
}

impl Backup {
    /// Reads the head of a backup.
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
        file.read_exact_at(&mut head, 0).map_err(|_| damaged("it ends within its head"))?;
        let seal = blake3::derive_key(DIGEST_CONTEXT, &head[..SEAL_AT]);
        if seal[..] != head[SEAL_AT..] || len > MANIFEST_BYTES_MAX {
            return Err(damaged("its head is not what was written"));
        }
        let manifest = MANIFEST_AT..MANIFEST_AT + len;
        let key = &head[manifest.end..manifest.end + KEY_BYTES];
        let manifest: Manifest = serde_json::from_slice(&head[manifest])
            .map_err(|error| BackupError::damaged(path, format!("its manifest: {error}")))?;
        let node = AuthorId::from_hex(&manifest.node);
        let node = node.ok_or_else(|| damaged("its manifest names no node"))?;
        let key = key.try_into().ok().filter(|_| manifest.has_key).map(SecretKey::from_bytes);
        if key.as_ref().is_some_and(|key| key.author() != node) {
            return Err(damaged("the key in it is another node's"));
        }
        Ok(Self { path: path.into(), file, manifest, node, key })
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whose store it is.
    pub fn node(&self) -> AuthorId {
        self.node
    }

    /// The key in it.
    pub fn key(&self) -> Option<&SecretKey> {
        self.key.as_ref()
    }

    /// Whether every byte of the store in it is what was written.
    pub fn check_bytes(&self, watch: Watch<'_>) -> Result<(), BackupError> {
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

    /// Whether every record in it verifies, every table fits the others, and all is there.
    pub fn check_records(&self, watch: Watch<'_>) -> Result<Examined, BackupError> {
        let examined = self.look()?.examine(watch)?;
        let told = (self.manifest.entries, self.manifest.forgotten, self.manifest.records);
        let found = (examined.entries, examined.forgotten, examined.records);
        if let Some(damage) = examined.damage.first() {
            let detail = format!("{} rows, the first: {damage}", examined.damaged);
            return Err(BackupError::damaged(&self.path, detail));
        }
        if told != found {
            let detail = format!(
                "it should hold {} entries, {} forgotten, in {} records; it holds {}, {} and {}",
                told.0, told.1, told.2, found.0, found.1, found.2
            );
            return Err(BackupError::damaged(&self.path, detail));
        }
        Ok(examined)
    }

    /// The store in it, for reading. What is written to it while it is open stays in memory.
    pub fn look(&self) -> Result<Seen, BackupError> {
        let file = self.file.try_clone().map_err(BackupError::io(&self.path))?;
        let medium = FrozenMedium::inside(&self.path, file, HEAD_BYTES as u64);
        medium.look().map_err(|error| match error {
            OpenError::Newer { found, .. } => BackupError::Newer { path: self.path.clone(), found },
            other => BackupError::damaged(&self.path, other.to_string()),
        })
    }
}
