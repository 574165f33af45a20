//! Restores a backup into a home.
//!
//! The new store is written beside the old one, row by row, without entries that were forgotten
//! since the backup and with their tombstones. Peers that the operator blocked or refused since
//! stay so, and invitation tickets are not restored. Then, in this order, the index is deleted
//! because it describes the old store, the key is installed if the home has none, and one rename
//! replaces the store. If the process stops on the way, the home has either the old store or the
//! new one.
//!
//! A home keeps its key. A backup of another node is only restored on request, and its entries then
//! belong to another author. In both cases the new store belongs to the key that the home then has.

use super::{Backup, BackupError, builder};
use crate::batch::{Batch, Durability};
use crate::error::{Error, OpenError};
use crate::peers::row_types::{PeerApproval, PeerRow};
use crate::read_only_store::FrozenMedium;
use crate::row_types::{self, MarksRow, ViewRow};
use crate::snapshot::Snapshot;
use crate::store_copy::{self, OmittedData, ProgressWatch, report_progress};
use crate::tables::PEERS;
use klnode_crdt::ids::{AuthorId, Boot, EntryId};
use klnode_crdt::record::Record;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_home::Layout;
use klnode_home::{sync_folder, write_private};
use redb::{DatabaseError, ReadableTable};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Which backups may be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreIdentity {
    /// Backups of the node in this home, or any backup with a key if the home has none.
    SameNode,
    /// Any backup: the home keeps its own key, and the entries belong to another author.
    AsThisNode,
}

/// Why a backup was not restored. The home is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup itself could not be read.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// A node is running on the home.
    #[error("The backup was not restored into {home}: a node is running on it.")]
    Running {
        /// The home directory.
        home: PathBuf,
    },
    /// The backup belongs to another node.
    #[error("The backup of node {backup} was not restored: this home is node {home}.")]
    AnotherNode {
        /// The node of the home.
        home: AuthorId,
        /// The node of the backup.
        backup: AuthorId,
    },
    /// No key is available to sign as the backup's node.
    #[error(
        "The backup of node {backup} was not restored: neither it nor this home holds the node's \
         key."
    )]
    NoKey {
        /// The node of the backup.
        backup: AuthorId,
    },
    /// The key file of the home is invalid.
    #[error("The backup was not restored: {path} is not a key of 32 bytes.")]
    BadKey {
        /// The key file.
        path: PathBuf,
    },
    /// A later klnode version wrote the existing store.
    #[error("{0}")]
    Newer(OpenError),
    /// The file system reported an error.
    #[error("The backup was not restored into {path}: {source}.")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The new store could not be written.
    #[error("The restored store was not written: {0}")]
    Store(#[from] Error),
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> RestoreError + '_ {
    |source| RestoreError::Io { path: path.into(), source }
}

/// The store that the home has before the restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExistingStore {
    /// The home has no store.
    Nothing,
    /// A readable store, with the data that a restore would lose.
    Sound(LostData),
    /// A store that cannot be read completely.
    Damaged {
        /// The damage, as a sentence or clause.
        detail: String,
    },
}

/// Data of the existing store that the backup lacks. Tombstones do not count because they are kept;
/// usage data does not count either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LostData {
    /// Number of records.
    pub records: u64,
    /// Number of entries with such records.
    pub entries: u64,
    /// Number of entries whose pin, mute, wrong mark or note differs.
    pub overlays: u64,
    /// Number of findings that are missing, or whose dismissal or keeping is.
    pub findings: u64,
    /// Number of peers that have fewer rights afterwards, or are unknown.
    pub peers: u64,
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreResult {
    /// Number of tombstones kept from the replaced store.
    pub tombstones: u64,
    /// Whether the backup's key was installed in the home.
    pub wrote_key: bool,
}

/// A prepared restore. It locks the existing store while it lives.
#[derive(Debug)]
pub struct Restore {
    backup: Backup,
    layout: Layout,
    in_place: ExistingStore,
    kept: PreservedRows,
    wants_key: bool,
    /// The author the new store will belong to. `None` if the home has no key; then the next node
    /// to open the store owns it.
    author: Option<AuthorId>,
    _lock: Option<FrozenMedium>,
}

impl Restore {
    /// Checks, without changing anything, whether the backup may be restored here, and determines
    /// the data that a restore would lose.
    pub fn prepare(
        backup: Backup,
        layout: Layout,
        identity: RestoreIdentity,
        watch: ProgressWatch<'_>,
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
        let (in_place, kept) = match &lock {
            None => (ExistingStore::Nothing, PreservedRows::default()),
            Some(medium) => look(medium.clone(), &*backup.look()?, (backup.node(), author), watch)?,
        };
        Ok(Self { backup, layout, in_place, kept, wants_key, author, _lock: lock })
    }

    /// The existing store and its losses.
    pub fn in_place(&self) -> &ExistingStore {
        &self.in_place
    }

    /// Runs all steps. `boot` must be random, so that additions to the feed are not taken for those
    /// of an earlier process of this home.
    pub fn run(
        self,
        boot: Boot,
        now: WallTime,
        watch: ProgressWatch<'_>,
    ) -> Result<RestoreResult, RestoreError> {
        self.build(boot, now, watch)?;
        self.clear_index()?;
        self.install_key()?;
        self.swap()
    }

    /// Writes the new store beside the old one.
    pub fn build(
        &self,
        boot: Boot,
        now: WallTime,
        watch: ProgressWatch<'_>,
    ) -> Result<(), RestoreError> {
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
            // The unfinished store contains texts, so try to remove it.
            let _ = fs::remove_file(&path);
        }
        built
    }

    fn fill(
        &self,
        path: &Path,
        boot: Boot,
        now: WallTime,
        watch: ProgressWatch<'_>,
    ) -> Result<(), RestoreError> {
        let snapshot = self.backup.look()?;
        let database = builder()
            .create(path)
            .map_err(|error| RestoreError::Backup(BackupError::damaged(path, error.to_string())))?;
        let without = OmittedData {
            entries: self.kept.tombstones.iter().map(|(tombstone, _)| tombstone.entry()).collect(),
            peers: self.author != Some(self.backup.node()),
            tickets: true,
        };
        store_copy::copy(&snapshot, &database, &without, watch)?;
        let batch = Batch::begin(&database, Durability::Durable)?;
        batch.hand_over(self.author)?;
        batch.begin_epoch(boot, now)?;
        for (peer, row) in &self.kept.peers {
            batch.put_peer(*peer, row)?;
        }
        for (tombstone, row) in &self.kept.tombstones {
            let row = batch.view_row(tombstone.entry())?.unwrap_or_else(|| row.clone());
            batch.put_tombstone(tombstone, &row)?;
        }
        batch.commit()?;
        drop(database);
        File::open(path).and_then(|file| file.sync_all()).map_err(io_at(path))
    }

    /// Deletes the index, which was built from the old store.
    pub fn clear_index(&self) -> Result<(), RestoreError> {
        let folder = self.layout.index_folder();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_at(&folder)(error)),
            _ => Ok(()),
        }
    }

    /// Installs the backup's key in a home without one.
    pub fn install_key(&self) -> Result<(), RestoreError> {
        let path = self.layout.key_file();
        match self.backup.key().filter(|_| self.wants_key) {
            None => Ok(()),
            Some(key) => write_private(&path, &key.to_bytes()[..]).map_err(io_at(&path)),
        }
    }

    /// Renames the new store over the old one.
    pub fn swap(self) -> Result<RestoreResult, RestoreError> {
        let store = self.layout.store_file();
        fs::rename(self.layout.restoring_file(), &store).map_err(io_at(&store))?;
        sync_folder(&store).map_err(io_at(&store))?;
        for leftover in self.layout.unfinished_files() {
            // Copies of the old store; usually there are none.
            let _ = fs::remove_file(leftover);
        }
        let tombstones = self.kept.tombstones.len() as u64;
        Ok(RestoreResult { tombstones, wrote_key: self.wants_key })
    }
}

/// The author of the home's key, if there is one.
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

/// Whether the home needs the backup's key. An error if home and backup belong to different nodes.
fn wants_key(
    backup: &Backup,
    home: Option<AuthorId>,
    identity: RestoreIdentity,
) -> Result<bool, RestoreError> {
    let node = backup.node();
    match (home, identity) {
        (Some(home), _) if home == node => Ok(false),
        (_, RestoreIdentity::AsThisNode) => Ok(false),
        (Some(home), RestoreIdentity::SameNode) => {
            Err(RestoreError::AnotherNode { home, backup: node })
        }
        (None, RestoreIdentity::SameNode) if backup.key().is_some() => Ok(true),
        (None, RestoreIdentity::SameNode) => Err(RestoreError::NoKey { backup: node }),
    }
}

/// Data kept from the existing store.
#[derive(Debug, Default)]
struct PreservedRows {
    /// Tombstones that the backup lacks.
    tombstones: Vec<(Record, ViewRow)>,
    /// Rows of peers, merged with those of the backup.
    peers: Vec<(AuthorId, PeerRow)>,
}

/// The node of the backup, and the author the new store will belong to.
type BackupOwners = (AuthorId, Option<AuthorId>);

/// Reads the existing store. Damage does not stop the restore, since repairing damage is its
/// purpose.
fn look(
    medium: FrozenMedium,
    backup: &Snapshot,
    owners: BackupOwners,
    watch: ProgressWatch<'_>,
) -> Result<(ExistingStore, PreservedRows), RestoreError> {
    let damaged = |detail: String| ExistingStore::Damaged { detail };
    let old = match medium.look() {
        Ok(old) => old,
        Err(newer @ OpenError::Newer { .. }) => return Err(RestoreError::Newer(newer)),
        Err(error) => return Ok((damaged(error.to_string()), PreservedRows::default())),
    };
    let mut kept = PreservedRows::default();
    let looked = catch_unwind(AssertUnwindSafe(|| {
        // Damage to the tombstones must not lose the peers, and vice versa.
        let tombstones = keep_tombstones(&old, backup, &mut kept.tombstones);
        let peers = keep_peers(&old, backup, owners, &mut kept.peers);
        tombstones?;
        let peers = peers?;
        lost(&old, backup, watch).map(|lost| LostData { peers, ..lost })
    }));
    let in_place = match looked {
        Ok(Ok(lost)) => ExistingStore::Sound(lost),
        Ok(Err(Error::Abandoned)) => return Err(Error::Abandoned.into()),
        Ok(Err(error)) => damaged(error.to_string()),
        Err(_) => damaged("its pages are inconsistent".into()),
    };
    Ok((in_place, kept))
}

/// Collects the tombstones that the backup lacks. Skips an unreadable one, and returns the first
/// such error at the end.
fn keep_tombstones(
    old: &Snapshot,
    backup: &Snapshot,
    kept: &mut Vec<(Record, ViewRow)>,
) -> Result<(), Error> {
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
        // Of several tombstones all nodes keep the one with the least rank.
        let theirs = backup.tombstone(entry)?;
        if theirs.is_none_or(|theirs| tombstone.tombstone_rank() < theirs.tombstone_rank()) {
            kept.push((tombstone, row));
        }
    }
    damage.map_or(Ok(()), Err)
}

/// Collects the merged rows of the peers in the existing store, and counts those that lose rights.
/// Skips an unreadable row, and returns the first such error at the end.
fn keep_peers(
    old: &Snapshot,
    backup: &Snapshot,
    (node, author): BackupOwners,
    kept: &mut Vec<(AuthorId, PeerRow)>,
) -> Result<u64, Error> {
    // Decisions of another node's operator do not apply here.
    let is_own = old.author()?.is_none_or(|of| Some(of) == author);
    let (mut lost, mut damage) = (0, None);
    for row in old.transaction.open_table(PEERS)?.iter()? {
        let (peer, row) = row?;
        let peer = AuthorId::from_bytes(*peer.value());
        let now: PeerRow = match row_types::decode("peers", row.value()) {
            Ok(now) => now,
            Err(error) => {
                damage = damage.or(Some(error));
                continue;
            }
        };
        let then = Error::unless_damaged(backup.peer(peer))?.flatten();
        // Another node's backup adds no peers.
        let then = then.filter(|_| author == Some(node));
        let merged = stricter(&now, then).filter(|_| is_own);
        lost += u64::from(!merged.as_ref().is_some_and(|merged| keeps_all_rights(merged, &now)));
        kept.extend(merged.map(|row| (peer, row)));
    }
    damage.map_or(Ok(lost), Err)
}

/// Merges the current and the backed-up row of a peer: the stricter one wins. A peer that the
/// backup does not know is only kept if it is blocked or refused. A peer missing from the existing
/// store means nothing, because peer rows are never removed.
fn stricter(now: &PeerRow, then: Option<PeerRow>) -> Option<PeerRow> {
    let rank = |row: &PeerRow| match row.approval {
        PeerApproval::Approved => 0,
        PeerApproval::Waiting => 1,
        PeerApproval::Refused => 2,
    };
    let Some(then) = then else {
        let is_shut_out = now.is_blocked || now.approval == PeerApproval::Refused;
        return is_shut_out.then(|| now.clone());
    };
    let (is_mine, equal_at) = (now.is_mine && then.is_mine, then.equal_at);
    let is_blocked = now.is_blocked || then.is_blocked;
    // Filters and other settings come from the current row, unless the backed-up one is stricter.
    let row = if rank(&then) > rank(now) { then } else { now.clone() };
    Some(PeerRow { is_mine, is_blocked, equal_at, ..row })
}

/// Whether a peer keeps all rights of its current row. The time of equality is ignored, because the
/// next comparison sets it.
fn keeps_all_rights(merged: &PeerRow, now: &PeerRow) -> bool {
    PeerRow { equal_at: now.equal_at, ..merged.clone() } == *now
}

/// Counts the data that the backup lacks, except for peers.
fn lost(old: &Snapshot, backup: &Snapshot, watch: ProgressWatch<'_>) -> Result<LostData, Error> {
    let total = old.counts()?.records;
    let (mut lost, mut entries) = (LostData::default(), BTreeSet::new());
    for (done, change) in old.changes_since(Default::default())?.enumerate() {
        let record = change?.record;
        if !backup.holds(record.digest())? && old.tombstone(record.entry())?.is_none() {
            lost.records += 1;
            entries.insert(record.entry());
        }
        if done % 256 == 0 {
            report_progress(watch, done as u64, total)?;
        }
    }
    lost.entries = entries.len() as u64;
    for row in old.overlay_rows()?.iter()? {
        let (entry, row) = row?;
        let now: MarksRow = row_types::decode("overlays", row.value())?;
        let then = backup.overlay(EntryId::from_bytes(*entry.value()))?;
        lost.overlays += u64::from(now != then);
    }
    for finding in old.findings()? {
        let (at, now) = finding?;
        let then = backup.finding(at)?;
        let is_same = then
            .is_some_and(|then| then.dismissal == now.dismissal && then.is_kept() == now.is_kept());
        lost.findings += u64::from(!is_same && !now.is_forgotten());
    }
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_of_two_peer_rows_wins() {
        use PeerApproval::{Approved, Refused, Waiting};
        let peer = |name: &str, approval, is_mine, is_blocked| {
            let name = name.to_owned();
            PeerRow { name, approval, is_mine, is_blocked, ..PeerRow::default() }
        };
        let now = |approval, is_mine, is_blocked| peer("now", approval, is_mine, is_blocked);
        let then = |approval, is_mine, is_blocked| peer("then", approval, is_mine, is_blocked);
        let mine = || then(Approved, true, false);
        let cases = [
            (now(Approved, true, false), mine(), now(Approved, true, false)),
            (now(Approved, true, true), mine(), now(Approved, true, true)),
            (now(Approved, false, false), mine(), now(Approved, false, false)),
            (now(Waiting, false, false), mine(), now(Waiting, false, false)),
            (now(Refused, false, false), mine(), now(Refused, false, false)),
            (now(Approved, true, false), then(Approved, true, true), now(Approved, true, true)),
            (now(Approved, true, false), then(Waiting, false, false), then(Waiting, false, false)),
            (now(Waiting, false, true), then(Refused, false, false), then(Refused, false, true)),
        ];
        for (now, then, merged) in cases {
            assert_eq!(stricter(&now, Some(then)), Some(merged));
        }
        let since = PeerRow { equal_at: Some(WallTime::from_millis(1)), ..mine() };
        let merged = stricter(&since, Some(mine())).unwrap();
        assert_eq!(merged.equal_at, None, "equality concerned the old store");
        assert!(keeps_all_rights(&merged, &since), "and its loss does not count");
        assert!(!keeps_all_rights(&merged, &PeerRow { is_mine: false, ..since }));
        for (now, is_kept) in [
            (now(Approved, true, false), false),
            (now(Waiting, false, false), false),
            (now(Approved, true, true), true),
            (now(Refused, false, false), true),
        ] {
            assert_eq!(stricter(&now, None), Some(now).filter(|_| is_kept));
        }
    }
}
