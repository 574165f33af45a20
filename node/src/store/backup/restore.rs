//! Putting a backup in the place of a home's store.
//!
//! The new store is written beside the old one, row by row, without what was forgotten since the
//! backup was made, and with the tombstones that say so. Whom the operator has shut out since stays
//! out, and no ticket comes back. Then, in this order: the index goes, since it speaks of the old
//! store; the key comes, where the home has none; and one rename makes the new store the store.
//! Whatever happens on the way, the home holds the old store or the new one.
//!
//! A home keeps its key: a backup of another node is taken only as another author's entries, and
//! only if that is asked for. Either way the new store is that of whoever's key the home then has.

use super::{Backup, BackupError, builder};
use crate::store::batch::{Batch, Durability};
use crate::store::copy::{self, Watch, Without, tell};
use crate::store::error::{Error, OpenError};
use crate::store::frozen::FrozenMedium;
use crate::store::layout::Layout;
use crate::store::peers::rows::{Approval, PeerRow};
use crate::store::rows::{self, OverlayRow, ViewRow};
use crate::store::snapshot::Snapshot;
use crate::store::tables::PEERS;
use crate::store::unfinished::{sync_folder, write_private};
use klnode_crdt::ids::{AuthorId, Boot, EntryId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use redb::{DatabaseError, ReadableTable};
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
    /// A store that can be read, and what it holds and the backup does not.
    Sound(Lost),
    /// A store that cannot be read, or not all of it.
    Damaged {
        /// What was found.
        detail: String,
    },
}

/// What a restore loses of the store in place. Tombstones are kept, and do not count; nor does what
/// only tells of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lost {
    /// Records.
    pub records: u64,
    /// Entries they are of.
    pub entries: u64,
    /// The operator's own pins, mutes, invalidations and notes, by entry.
    pub overlays: u64,
    /// Findings, and what was said of them: dismissed or kept.
    pub findings: u64,
    /// Other nodes that have less of a say afterwards, or are unknown.
    pub peers: u64,
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
    kept: Kept,
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
        let (in_place, kept) = match &lock {
            None => (InPlace::Nothing, Kept::default()),
            Some(medium) => look(medium.clone(), &*backup.look()?, (backup.node(), author), watch)?,
        };
        Ok(Self { backup, layout, in_place, kept, wants_key, author, _lock: lock })
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
            entries: self.kept.tombstones.iter().map(|(tombstone, _)| tombstone.entry()).collect(),
            peers: self.author != Some(self.backup.node()),
            tickets: true,
        };
        copy::copy(&snapshot, &database, &without, watch)?;
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
        let tombstones = self.kept.tombstones.len() as u64;
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

/// What is kept of the store in place.
#[derive(Debug, Default)]
struct Kept {
    /// Tombstones that the backup does not hold.
    tombstones: Vec<(Record, ViewRow)>,
    /// What stands of other nodes, whatever the backup says.
    peers: Vec<(AuthorId, PeerRow)>,
}

/// Whose backup it is, and whose store it will be.
type Whose = (AuthorId, Option<AuthorId>);

/// Reads the store in place. Whatever is wrong with it must not stop a restore: a damaged store is
/// what backups are for.
fn look(
    medium: FrozenMedium,
    backup: &Snapshot,
    whose: Whose,
    watch: Watch<'_>,
) -> Result<(InPlace, Kept), RestoreError> {
    let damaged = |detail: String| InPlace::Damaged { detail };
    let old = match medium.look() {
        Ok(old) => old,
        Err(newer @ OpenError::Newer { .. }) => return Err(RestoreError::Newer(newer)),
        Err(error) => return Ok((damaged(error.to_string()), Kept::default())),
    };
    let mut kept = Kept::default();
    let looked = catch_unwind(AssertUnwindSafe(|| {
        // What is damaged of the one costs nothing of the other.
        let tombstones = keep_tombstones(&old, backup, &mut kept.tombstones);
        let peers = keep_peers(&old, backup, whose, &mut kept.peers);
        tombstones?;
        let peers = peers?;
        lost(&old, backup, watch).map(|lost| Lost { peers, ..lost })
    }));
    let in_place = match looked {
        Ok(Ok(lost)) => InPlace::Sound(lost),
        Ok(Err(Error::Abandoned)) => return Err(Error::Abandoned.into()),
        Ok(Err(error)) => damaged(error.to_string()),
        Err(_) => damaged("its pages contradict each other".into()),
    };
    Ok((in_place, kept))
}

/// The tombstones that the backup does not hold. One that cannot be read is left out and told.
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
        // Of several the least digest is kept, everywhere.
        let theirs = backup.tombstone(entry)?;
        if theirs.is_none_or(|theirs| tombstone.digest() < theirs.digest()) {
            kept.push((tombstone, row));
        }
    }
    damage.map_or(Ok(()), Err)
}

/// What stands of the peers that the store in place knows, and how many of them lose by it. A row that
/// cannot be read is left out and told.
fn keep_peers(
    old: &Snapshot,
    backup: &Snapshot,
    (node, author): Whose,
    kept: &mut Vec<(AuthorId, PeerRow)>,
) -> Result<u64, Error> {
    // What the operator of another node decided is nothing to this one.
    let is_own = old.author()?.is_none_or(|of| Some(of) == author);
    let (mut lost, mut damage) = (0, None);
    for row in old.transaction.open_table(PEERS)?.iter()? {
        let (peer, row) = row?;
        let peer = AuthorId::from_bytes(*peer.value());
        let now: PeerRow = match rows::decode("peers", row.value()) {
            Ok(now) => now,
            Err(error) => {
                damage = damage.or(Some(error));
                continue;
            }
        };
        let then = Error::unless_damaged(backup.peer(peer))?.flatten();
        // Another node's backup brings nobody along.
        let then = then.filter(|_| author == Some(node));
        let stands = stricter(&now, then).filter(|_| is_own);
        lost += u64::from(!stands.as_ref().is_some_and(|stands| has_as_much(stands, &now)));
        kept.extend(stands.map(|row| (peer, row)));
    }
    damage.map_or(Ok(lost), Err)
}

/// What stands of a peer, of what is said of it now and what was said then: whatever shuts it out
/// further. Whom the backup does not know is known afterwards only to be shut out. That the store in
/// place does not know somebody says nothing: no row of a peer is ever removed.
fn stricter(now: &PeerRow, then: Option<PeerRow>) -> Option<PeerRow> {
    let rank = |row: &PeerRow| match row.approval {
        Approval::Approved => 0,
        Approval::Waiting => 1,
        Approval::Refused => 2,
    };
    let Some(then) = then else {
        let is_shut_out = now.is_blocked || now.approval == Approval::Refused;
        return is_shut_out.then(|| now.clone());
    };
    let (is_mine, equal_at) = (now.is_mine && then.is_mine, then.equal_at);
    let is_blocked = now.is_blocked || then.is_blocked;
    // Filters and the like are those of the later word, unless it is the laxer one.
    let row = if rank(&then) > rank(now) { then } else { now.clone() };
    Some(PeerRow { is_mine, is_blocked, equal_at, ..row })
}

/// Whether all stands that was said of a peer. When it was equal is known anew with the next comparison.
fn has_as_much(stands: &PeerRow, now: &PeerRow) -> bool {
    PeerRow { equal_at: now.equal_at, ..stands.clone() } == *now
}

/// What the backup lacks, but for peers; tombstones are kept and do not count.
fn lost(old: &Snapshot, backup: &Snapshot, watch: Watch<'_>) -> Result<Lost, Error> {
    let total = old.counts()?.records;
    let (mut lost, mut entries) = (Lost::default(), BTreeSet::new());
    for (done, change) in old.changes_since(Default::default())?.enumerate() {
        let record = change?.record;
        if !backup.holds(record.digest())? && old.tombstone(record.entry())?.is_none() {
            lost.records += 1;
            entries.insert(record.entry());
        }
        if done % 256 == 0 {
            tell(watch, done as u64, total)?;
        }
    }
    lost.entries = entries.len() as u64;
    for row in old.overlay_rows()?.iter()? {
        let (entry, row) = row?;
        let now: OverlayRow = rows::decode("overlays", row.value())?;
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
    fn of_two_words_on_a_peer_the_stricter_stands() {
        use Approval::{Approved, Refused, Waiting};
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
        for (now, then, stands) in cases {
            assert_eq!(stricter(&now, Some(then)), Some(stands));
        }
        let since = PeerRow { equal_at: Some(WallTime::from_millis(1)), ..mine() };
        let stands = stricter(&since, Some(mine())).unwrap();
        assert_eq!(stands.equal_at, None, "that was another store");
        assert!(has_as_much(&stands, &since), "and nobody is asked about it");
        assert!(!has_as_much(&stands, &PeerRow { is_mine: false, ..since }));
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
