//! Putting a backup in the place of a home's store.
//!
//! The new store is written beside the old one, row by row, without what was forgotten since the
//! backup was made, and with the tombstones that say so. Then, in this order: the index goes, since
//! it speaks of the old store; the key comes, where the home has none; and one rename makes the new
//! store the store. Whatever happens on the way, the home holds the old store or the new one.
//!
//! A home keeps its key: a backup of another node is taken only as another author's entries, and
//! only if that is asked for. Either way the new store is that of whoever's key the home then has.

use super::{Backup, BackupError, builder};
use crate::store::batch::{Batch, Durability};
use crate::store::copy::{self, Watch, Without, tell};
use crate::store::error::{Error, OpenError};
use crate::store::frozen::FrozenMedium;
use crate::store::layout::Layout;
use crate::store::rows::ViewRow;
use crate::store::snapshot::Snapshot;
use crate::store::unfinished::{sync_folder, write_private};
use klnode_crdt::ids::{AuthorId, Boot};
use klnode_crdt::key::SecretKey;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use redb::DatabaseError;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Whose backup may be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// That of the node in this home, or any if the home has no key and the backup has one.
    SameNode,
    /// Any: the home keeps its own key, and the backup's entries are another author's.
    AsThisNode,
}

/// Why a backup is not restored. The home is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup itself.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// A node runs here.
    #[error("restore into {home}: a node is running on it")]
    Running {
        /// The home.
        home: PathBuf,
    },
    /// Another node's backup.
    #[error("restore the backup of node {backup}: this home is node {home}")]
    AnotherNode {
        /// Whose home.
        home: AuthorId,
        /// Whose backup.
        backup: AuthorId,
    },
    /// Nobody could sign as that node any more.
    #[error("restore the backup of node {backup}: neither it nor this home holds the node's key")]
    NoKey {
        /// Whose backup.
        backup: AuthorId,
    },
    /// The key in place is no key.
    #[error("restore into this home: {path} is not a key of 32 bytes")]
    BadKey {
        /// The file.
        path: PathBuf,
    },
    /// A later version wrote what is in place.
    #[error("{0}")]
    Newer(OpenError),
    /// The file system said no.
    #[error("restore into {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The new store could not be written.
    #[error("write the restored store: {0}")]
    Store(#[from] Error),
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> RestoreError + '_ {
    |source| RestoreError::Io { path: path.into(), source }
}

/// What is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// No store.
    Nothing,
    /// A store that can be read.
    Sound {
        /// Records it holds and the backup does not.
        records: u64,
        /// Entries they are of.
        entries: u64,
    },
    /// A store that cannot be read, or not all of it.
    Damaged {
        /// What was found.
        detail: String,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Tombstones that were kept from the store that was replaced.
    pub tombstones: u64,
    /// Whether the backup's key was put into the home.
    pub wrote_key: bool,
}

/// A restore that is about to happen. The store in place is locked as long as this lives.
#[derive(Debug)]
pub struct Restore {
    backup: Backup,
    layout: Layout,
    in_place: InPlace,
    tombstones: Vec<(Record, ViewRow)>,
    wants_key: bool,
    /// Whose store it will be; whoever starts on it, if the home has no key even then.
    author: Option<AuthorId>,
    _lock: Option<FrozenMedium>,
}

impl Restore {
    /// Looks at the home without changing anything: may this backup be restored here, and what
    /// would be lost?
    pub fn prepare(
        backup: Backup,
        layout: Layout,
        identity: Identity,
        watch: Watch<'_>,
    ) -> Result<Self, RestoreError> {
        let home = home_author(&layout)?;
        let wants_key = wants_key(&backup, home, identity)?;
        let author = if wants_key { Some(backup.node()) } else { home };
        let store = layout.store_file();
        let lock = match FrozenMedium::store(&store) {
            Ok(medium) => Some(medium),
            Err(DatabaseError::DatabaseAlreadyOpen) => {
                return Err(RestoreError::Running { home: layout.home().into() });
            }
            Err(error) => match OpenError::from_redb(store.clone(), error) {
                OpenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => None,
                OpenError::Io { path, source } => return Err(RestoreError::Io { path, source }),
                other => return Err(RestoreError::Newer(other)),
            },
        };
        let (in_place, tombstones) = match &lock {
            None => (InPlace::Nothing, Vec::new()),
            Some(medium) => look(medium.clone(), &*backup.look()?, watch)?,
        };
        Ok(Self { backup, layout, in_place, tombstones, wants_key, author, _lock: lock })
    }

    /// What is there already.
    pub fn in_place(&self) -> &InPlace {
        &self.in_place
    }

    /// Does it all. `boot` are random bits: what is added to the feed must not be taken for what
    /// another life of this home had there.
    pub fn run(
        self,
        boot: Boot,
        now: WallTime,
        watch: Watch<'_>,
    ) -> Result<Restored, RestoreError> {
        self.build(boot, now, watch)?;
        self.clear_index()?;
        self.install_key()?;
        self.swap()
    }

    /// Writes the new store beside the old one.
    pub fn build(&self, boot: Boot, now: WallTime, watch: Watch<'_>) -> Result<(), RestoreError> {
        let path = self.layout.restoring_file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io_at(&path)(error));
            }
            _ => {}
        }
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(io_at(&path))?;
        let built = self.fill(&path, boot, now, watch);
        if built.is_err() {
            // What could not be finished holds texts; that it goes too is all that can be done.
            let _ = fs::remove_file(&path);
        }
        built
    }

    fn fill(
        &self,
        path: &Path,
        boot: Boot,
        now: WallTime,
        watch: Watch<'_>,
    ) -> Result<(), RestoreError> {
        let snapshot = self.backup.look()?;
        let database = builder()
            .create(path)
            .map_err(|error| RestoreError::Backup(BackupError::damaged(path, error.to_string())))?;
        let without = Without {
            entries: self.tombstones.iter().map(|(tombstone, _)| tombstone.entry()).collect(),
            peers: self.author != Some(self.backup.node()),
        };
        copy::copy(&snapshot, &database, &without, watch)?;
        let batch = Batch::begin(&database, Durability::Durable)?;
        batch.hand_over(self.author)?;
        batch.begin_epoch(boot, now)?;
        for (tombstone, row) in &self.tombstones {
            let row = batch.view_row(tombstone.entry())?.unwrap_or_else(|| row.clone());
            batch.put_tombstone(tombstone, &row)?;
        }
        batch.commit()?;
        drop(database);
        File::open(path).and_then(|file| file.sync_all()).map_err(io_at(path))
    }

    /// Removes what was made from the old store.
    pub fn clear_index(&self) -> Result<(), RestoreError> {
        let folder = self.layout.index_folder();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(&folder)(error)),
            _ => Ok(()),
        }
    }

    /// Puts the backup's key into a home that has none.
    pub fn install_key(&self) -> Result<(), RestoreError> {
        let path = self.layout.key_file();
        match self.backup.key().filter(|_| self.wants_key) {
            None => Ok(()),
            Some(key) => write_private(&path, &key.to_bytes()[..]).map_err(io_at(&path)),
        }
    }

    /// Makes the new store the store.
    pub fn swap(self) -> Result<Restored, RestoreError> {
        let store = self.layout.store_file();
        fs::rename(self.layout.restoring_file(), &store).map_err(io_at(&store))?;
        sync_folder(&store).map_err(io_at(&store))?;
        for leftover in self.layout.unfinished_files() {
            // Copies of the old store; mostly there are none.
            let _ = fs::remove_file(leftover);
        }
        let tombstones = self.tombstones.len() as u64;
        Ok(Restored { tombstones, wrote_key: self.wants_key })
    }
}

/// Whose key is in the home, if one is.
fn home_author(layout: &Layout) -> Result<Option<AuthorId>, RestoreError> {
    let path = layout.key_file();
    match fs::read(&path).map(Zeroizing::new) {
        Ok(bytes) => {
            let key: &[u8; 32] =
                bytes.as_slice().try_into().map_err(|_| RestoreError::BadKey { path })?;
            Ok(Some(SecretKey::from_bytes(key).author()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_at(&path)(error)),
    }
}

/// Whether the home takes the backup's key; an error if the two do not belong together.
fn wants_key(
    backup: &Backup,
    home: Option<AuthorId>,
    identity: Identity,
) -> Result<bool, RestoreError> {
    let node = backup.node();
    match (home, identity) {
        (Some(home), _) if home == node => Ok(false),
        (_, Identity::AsThisNode) => Ok(false),
        (Some(home), Identity::SameNode) => Err(RestoreError::AnotherNode { home, backup: node }),
        (None, Identity::SameNode) if backup.key().is_some() => Ok(true),
        (None, Identity::SameNode) => Err(RestoreError::NoKey { backup: node }),
    }
}

type Kept = Vec<(Record, ViewRow)>;

/// Reads the store in place. Whatever is wrong with it must not stop a restore: a damaged store is
/// what backups are for.
fn look(
    medium: FrozenMedium,
    backup: &Snapshot,
    watch: Watch<'_>,
) -> Result<(InPlace, Kept), RestoreError> {
    let damaged = |detail: String| InPlace::Damaged { detail };
    let old = match medium.look() {
        Ok(old) => old,
        Err(newer @ OpenError::Newer { .. }) => return Err(RestoreError::Newer(newer)),
        Err(error) => return Ok((damaged(error.to_string()), Vec::new())),
    };
    let mut kept = Vec::new();
    let looked = catch_unwind(AssertUnwindSafe(|| {
        keep_tombstones(&old, backup, &mut kept)?;
        lost(&old, backup, watch)
    }));
    let in_place = match looked {
        Ok(Ok((records, entries))) => InPlace::Sound { records, entries },
        Ok(Err(Error::Abandoned)) => return Err(Error::Abandoned.into()),
        Ok(Err(error)) => damaged(error.to_string()),
        Err(_) => damaged("its pages contradict each other".into()),
    };
    Ok((in_place, kept))
}

/// The tombstones that the backup does not hold. One that cannot be read is left out and told.
fn keep_tombstones(old: &Snapshot, backup: &Snapshot, kept: &mut Kept) -> Result<(), Error> {
    let mut damage = None;
    for entry in old.forgotten()? {
        let entry = entry?;
        let read = || Ok((old.tombstone(entry)?, old.view_row(entry)?));
        let (tombstone, row) = match read() {
            Ok((Some(tombstone), Some(row))) => (tombstone, row),
            Ok(_) => continue,
            Err(error) => {
                damage = damage.or(Some(error));
                continue;
            }
        };
        // Of several the least digest is kept, everywhere.
        let theirs = backup.tombstone(entry)?;
        if theirs.is_none_or(|theirs| tombstone.digest() < theirs.digest()) {
            kept.push((tombstone, row));
        }
    }
    damage.map_or(Ok(()), Err)
}

/// Records, and entries they are of, that the backup lacks; tombstones are kept and do not count.
fn lost(old: &Snapshot, backup: &Snapshot, watch: Watch<'_>) -> Result<(u64, u64), Error> {
    let total = old.counts()?.records;
    let (mut records, mut entries) = (0, BTreeSet::new());
    for (done, change) in old.changes_since(Default::default())?.enumerate() {
        let record = change?.record;
        if !backup.holds(record.digest())? && old.tombstone(record.entry())?.is_none() {
            records += 1;
            entries.insert(record.entry());
        }
        if done % 256 == 0 {
            tell(watch, done as u64, total)?;
        }
    }
    Ok((records, entries.len() as u64))
}
