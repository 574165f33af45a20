//! Opening a store: create, check the schema, migrate, open again after a fault.

use super::batch::{Batch, Durability};
use super::copy::{self, Watch, Without};
use super::error::{Error, OpenError};
use super::medium::{self, Medium};
use super::snapshot::Snapshot;
use super::tables::{META, META_HEAD, META_SCHEMA, META_STORE_ID, OLD_OUTBOX, SCHEMA, part};
use klnode_crdt::ids::{AuthorId, StoreId};
use redb::{Builder, Database, ReadableDatabase};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for cached pages.
    pub cache_bytes_max: usize,
    /// What to call a new store: random bytes from the caller.
    pub new_id: StoreId,
    /// Steps from older schemas. Part of the options so that a test can bring its own.
    pub migrations: Vec<Migration>,
    /// The schema to end at.
    pub schema: u32,
}

impl Options {
    /// What a node uses.
    pub fn new(new_id: StoreId) -> Self {
        Self {
            cache_bytes_max: 64 * 1024 * 1024,
            new_id,
            migrations: MIGRATIONS.to_vec(),
            schema: SCHEMA,
        }
    }
}

/// One step from a schema to the next. Each runs in one transaction with the change of the schema
/// number, so a crash leaves either the old or the new.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The schema it starts from; it ends at the next.
    pub from: u32,
    /// What it does.
    pub run: fn(&Batch) -> Result<(), Error>,
}

/// Steps to [`SCHEMA`].
const MIGRATIONS: [Migration; 5] = [
    // Schema 2 adds `callers`. Of records that were written before, nobody knows who asked.
    Migration { from: 1, run: |_| Ok(()) },
    // Schema 3 adds the tables of peers, and an outbox with room for more than digests.
    Migration { from: 2, run: Batch::leave_schema_2 },
    // Schema 4 adds `tasks` and `parts`. What was served before belongs to no task.
    Migration { from: 3, run: Batch::open_all },
    // Schema 5 adds what findings, upkeep, checkouts and the account of use are kept in.
    Migration { from: 4, run: Batch::open_all },
    // Schema 6 adds `owed`. What is due is found among all receipts once more.
    Migration { from: 5, run: Batch::list_owed },
];

/// A store, open. Cheap to clone: clones share the file.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    medium: Box<dyn Medium>,
    cache_bytes_max: usize,
    id: StoreId,
    /// Another one once the store was written anew.
    file: RwLock<Arc<OpenFile>>,
}

impl Drop for Shared {
    /// Whoever still reads does not keep the file from its next owner.
    fn drop(&mut self) {
        self.file().database_mut().take();
    }
}

impl Shared {
    fn file(&self) -> Arc<OpenFile> {
        // Whoever panicked beside it has left one or the other, and either is whole.
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A file that is open. Whoever reads it holds it as well: redb reads nothing more once its database
/// is dropped. Empty only while it is opened again, and once the store is closed.
#[derive(Debug)]
pub(super) struct OpenFile(RwLock<Option<Database>>);

impl OpenFile {
    fn new(database: Database) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Some(database))))
    }

    fn database(&self) -> RwLockReadGuard<'_, Option<Database>> {
        // Whoever panicked beside it has left it open or closed, and either is whole.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn database_mut(&self) -> RwLockWriteGuard<'_, Option<Database>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// A store in memory that holds nothing, for unit tests.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        let options = Options::new(StoreId::from_bytes([1; 16]));
        Self::open(Box::new(super::MemoryMedium), &options).expect("memory opens")
    }

    /// Opens the store in a medium, or makes one.
    pub fn open(medium: Box<dyn Medium>, options: &Options) -> Result<Self, OpenError> {
        let path = medium.path();
        let builder = builder(options.cache_bytes_max);
        let exists =
            medium.exists().map_err(|source| OpenError::Io { path: path.clone(), source })?;
        if !exists {
            medium.create(&builder, &mut |database| prepare(database, options, &path))?;
        }
        let database = medium::open(&*medium, &builder)?;
        prepare(&database, options, &path)?;
        let id = store_id(&database).map_err(|source| OpenError::Prepare { path, source })?;
        let shared = Shared {
            medium,
            cache_bytes_max: options.cache_bytes_max,
            id,
            file: RwLock::new(OpenFile::new(database)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The store's own name, kept by copies of the file.
    pub fn id(&self) -> StoreId {
        self.shared.id
    }

    /// Makes another author the one whose store it is: an operator who has lost the key asks for it.
    pub fn hand_over(&self, author: AuthorId) -> Result<(), Error> {
        let batch = self.batch(Durability::Durable)?;
        batch.hand_over(Some(author))?;
        batch.commit()
    }

    /// What the last commit left, for reading.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let file = self.shared.file();
        let transaction = file.database().as_ref().ok_or(Error::Closed)?.begin_read()?;
        Snapshot::new(transaction, file)
    }

    /// A transaction to write in. The engine is the only caller.
    pub(crate) fn batch(&self, durability: Durability) -> Result<Batch, Error> {
        let file = self.shared.file();
        let database = file.database();
        Batch::begin(database.as_ref().ok_or(Error::Closed)?, durability)
    }

    /// Opens the file again after a fault, from a copy if the disk itself failed. Snapshots taken
    /// before stay readable as far as their pages are in memory.
    pub(crate) fn reopen(&self, after: Fault) -> Result<(), OpenError> {
        if after == Fault::Disk {
            // What is open meanwhile is read as far as it is in memory.
            let salvaged = self.shared.medium.salvage();
            salvaged.map_err(|source| {
                // What is open reads nothing more from its disk.
                self.open_to_read();
                OpenError::Io { path: self.shared.medium.path(), source }
            })?;
        }
        self.open_again()
    }

    /// Opens what is there now. Where that fails it can be read all the same, if that is possible.
    fn open_again(&self) -> Result<(), OpenError> {
        let file = self.shared.file();
        let mut database = file.database_mut();
        // The old one must be closed first: a file has one owner.
        database.take();
        match medium::open(&*self.shared.medium, &builder(self.shared.cache_bytes_max)) {
            Ok(opened) => *database = Some(opened),
            Err(error) => {
                drop(database);
                self.open_to_read();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Opens what is there to be read alone, if that is possible.
    fn open_to_read(&self) {
        let (medium, builder) = (&*self.shared.medium, builder(self.shared.cache_bytes_max));
        let file = self.shared.file();
        let mut database = file.database_mut();
        database.take();
        let to_read = catch_unwind(AssertUnwindSafe(|| medium.open_to_read(&builder)));
        *database = to_read.ok().and_then(Result::ok);
    }

    /// Whether there is room to write the store anew.
    pub(crate) fn has_room(&self) -> bool {
        self.shared.medium.has_room()
    }

    /// Writes the store anew, row by row, so that nothing that was erased is left in it: a page that
    /// nothing uses keeps what it held. Whoever reads goes on; the writer waits.
    pub(crate) fn rewrite(&self) -> Result<(), Error> {
        let (medium, builder) = (&*self.shared.medium, builder(self.shared.cache_bytes_max));
        let snapshot = self.snapshot()?;
        let fill = &mut |database: &Database| {
            let watch: Watch<'_> = &mut |_, _| ControlFlow::Continue(());
            copy::copy(&snapshot, database, &Without::default(), watch)
        };
        if !medium.replace(&builder, fill)? {
            drop(snapshot);
            return self.compact();
        }
        // What is open is the old file, which has no name any more. It lasts until nobody reads it.
        match medium::open(medium, &builder) {
            Ok(opened) => {
                let mut file = self.shared.file.write().unwrap_or_else(PoisonError::into_inner);
                *file = OpenFile::new(opened);
                Ok(())
            }
            // What would be written to it would be lost.
            Err(_) => self.open_again().map_err(|_| Error::Closed),
        }
    }

    /// Gives unused pages back. Needs the store for itself: nobody may hold a snapshot.
    fn compact(&self) -> Result<(), Error> {
        let file = self.shared.file();
        let mut database = file.database_mut();
        database.as_mut().ok_or(Error::Closed)?.compact()?;
        Ok(())
    }
}

/// What closed the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No room: nothing was lost.
    Full,
    /// The disk failed: what it was told to keep may be in memory only.
    Disk,
}

fn builder(cache_bytes_max: usize) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes_max);
    builder
}

/// Writes the first rows of a new store, or brings an older one up to date.
fn prepare(
    database: &Database,
    options: &Options,
    path: &std::path::Path,
) -> Result<(), OpenError> {
    let prepared = |source| OpenError::Prepare { path: path.into(), source };
    let mut found = schema(database).map_err(prepared)?;
    if let Some(found) = found.filter(|found| *found > options.schema) {
        return Err(OpenError::Newer { path: path.into(), found, known: options.schema });
    }
    while found != Some(options.schema) {
        let batch = Batch::begin(database, Durability::Durable).map_err(prepared)?;
        let next = match found {
            None => {
                batch.create_tables(options.new_id).map_err(prepared)?;
                options.schema
            }
            Some(from) => {
                let step = options.migrations.iter().find(|step| step.from == from);
                let step = step.ok_or_else(|| OpenError::Damaged {
                    path: path.into(),
                    detail: format!("schema {from} is unknown"),
                })?;
                (step.run)(&batch).map_err(prepared)?;
                from + 1
            }
        };
        batch.set_schema(next).map_err(prepared)?;
        batch.commit().map_err(prepared)?;
        found = Some(next);
    }
    Ok(())
}

fn schema(database: &Database) -> Result<Option<u32>, Error> {
    let reader = database.begin_read()?;
    let meta = match reader.open_table(META) {
        Ok(meta) => meta,
        // Only a file without any table is a new one.
        Err(redb::TableError::TableDoesNotExist(_)) if reader.list_tables()?.next().is_none() => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let schema = meta.get(&META_SCHEMA)?;
    let bytes = schema.as_ref().map(redb::AccessGuard::value).filter(|bytes| bytes.len() == 4);
    let bytes = bytes.ok_or_else(|| Error::damaged("the schema number", "it is missing"))?;
    Ok(Some(u32::from_be_bytes(part(bytes, 0))))
}

fn store_id(database: &Database) -> Result<StoreId, Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let id = meta.get(&META_STORE_ID)?;
    id.and_then(|id| StoreId::from_slice(id.value()))
        .ok_or_else(|| Error::damaged("the store id", "it is missing"))
}

impl Batch {
    /// Makes every table, so that no reader ever misses one.
    fn create_tables(&self, id: StoreId) -> Result<(), Error> {
        self.open_all()?;
        self.put_meta(META_STORE_ID, id.as_bytes())?;
        self.put_meta(META_HEAD, &0_u64.to_be_bytes())
    }

    fn leave_schema_2(&self) -> Result<(), Error> {
        self.transaction.delete_table(OLD_OUTBOX)?;
        self.open_all()
    }

    fn set_schema(&self, schema: u32) -> Result<(), Error> {
        self.put_meta(META_SCHEMA, &schema.to_be_bytes())
    }
}
