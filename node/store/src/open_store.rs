//! Opening a store: creation, schema check, migration, and reopening after a fault.

use super::backend::{self, Backend};
use super::batch::{Batch, Durability};
use super::error::{Error, OpenError};
use super::open_file::OpenFile;
use super::snapshot::Snapshot;
use super::store_copy::{self, OmittedData, ProgressWatch};
use super::tables::{META, META_HEAD, META_SCHEMA, META_STORE_ID, OLD_OUTBOX, SCHEMA, part};
use klnode_crdt::ids::{AuthorId, StoreId};
use redb::{Builder, Database, ReadableDatabase};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

/// Options for opening a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the page cache.
    pub cache_bytes_max: usize,
    /// The id of a newly created store: random bytes from the caller.
    pub new_id: StoreId,
    /// Migrations from older schemas. They are an option so that tests can supply their own.
    pub migrations: Vec<Migration>,
    /// The schema version after opening.
    pub schema: u32,
}

impl Options {
    /// The options that a node uses.
    pub fn new(new_id: StoreId) -> Self {
        Self {
            cache_bytes_max: 64 * 1024 * 1024,
            new_id,
            migrations: MIGRATIONS.to_vec(),
            schema: SCHEMA,
        }
    }
}

/// A migration from one schema version to the next. It shares one transaction with the change of
/// the schema number, so a crash leaves either the old or the new version.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// The schema version it starts from; it ends at the next.
    pub from: u32,
    /// Changes the tables within the transaction.
    pub run: fn(&Batch) -> Result<(), Error>,
}

/// The migrations up to [`SCHEMA`].
const MIGRATIONS: [Migration; 8] = [
    // Schema 2 adds `callers`. The callers of older records are unknown.
    Migration { from: 1, run: |_| Ok(()) },
    // Schema 3 adds the tables of peers, and an outbox that can hold more than digests.
    Migration { from: 2, run: Batch::leave_schema_2 },
    // Schema 4 adds `tasks` and `parts`. Entries served before belong to no task.
    Migration { from: 3, run: Batch::open_all },
    // Schema 5 adds the tables of findings, maintenance, checkouts and usage accounting.
    Migration { from: 4, run: Batch::open_all },
    // Schema 6 adds `owed`. The owed receipts are collected by a scan of all receipts.
    Migration { from: 5, run: Batch::list_owed },
    // Schema 7 adds `removals`. There were none before.
    Migration { from: 6, run: Batch::open_all },
    // Schema 8 adds `imports` and `import_ids`. The words of earlier files are unknown.
    Migration { from: 7, run: Batch::open_all },
    // Schema 9 adds `dismissed`. No insight was dismissed before.
    Migration { from: 8, run: Batch::open_all },
];

/// An open store. Cheap to clone: clones share the file.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<SharedStore>,
}

#[derive(Debug)]
struct SharedStore {
    medium: Box<dyn Backend>,
    cache_bytes_max: usize,
    id: StoreId,
    /// Replaced when the store is rewritten.
    file: RwLock<Arc<OpenFile>>,
}

impl Drop for SharedStore {
    /// Closes the database even while snapshots exist, so that they do not lock the file for its
    /// next owner.
    fn drop(&mut self) {
        self.file().database_mut().take();
    }
}

impl SharedStore {
    fn file(&self) -> Arc<OpenFile> {
        // A panic of another thread leaves either the old or the new file, and both are intact.
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store {
    /// An empty in-memory store for unit tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn in_memory() -> Self {
        let options = Options::new(StoreId::from_bytes([1; 16]));
        Self::open(Box::new(super::MemoryMedium), &options).expect("memory opens")
    }

    /// Opens the store in a medium, or creates one.
    pub fn open(medium: Box<dyn Backend>, options: &Options) -> Result<Self, OpenError> {
        let path = medium.path();
        let builder = builder(options.cache_bytes_max);
        let exists =
            medium.exists().map_err(|source| OpenError::Io { path: path.clone(), source })?;
        if !exists {
            medium.create(&builder, &mut |database| prepare(database, options, &path))?;
        }
        let database = backend::open(&*medium, &builder)?;
        prepare(&database, options, &path)?;
        let id = store_id(&database).map_err(|source| OpenError::Prepare { path, source })?;
        let shared = SharedStore {
            medium,
            cache_bytes_max: options.cache_bytes_max,
            id,
            file: RwLock::new(OpenFile::new(database)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The id of the store, which copies of the file keep.
    pub fn id(&self) -> StoreId {
        self.shared.id
    }

    /// Assigns the store to another author, for an operator who has lost the key.
    pub fn hand_over(&self, author: AuthorId) -> Result<(), Error> {
        let batch = self.batch(Durability::Durable)?;
        batch.hand_over(Some(author))?;
        batch.commit()
    }

    /// A read-only view of the last commit.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let file = self.shared.file();
        let transaction = file.database().as_ref().ok_or(Error::Closed)?.begin_read()?;
        Snapshot::new(transaction, file)
    }

    /// Begins a write transaction. Only the engine calls this.
    pub fn batch(&self, durability: Durability) -> Result<Batch, Error> {
        let file = self.shared.file();
        let database = file.database();
        Batch::begin(database.as_ref().ok_or(Error::Closed)?, durability)
    }

    /// Reopens the file after a fault, from a copy if the disk itself failed. Older snapshots stay
    /// readable as far as their pages are in memory.
    pub fn reopen(&self, after: StoreFault) -> Result<(), OpenError> {
        if after == StoreFault::Disk {
            // Until then the open database serves reads from memory only.
            let salvaged = self.shared.medium.salvage();
            salvaged.map_err(|source| {
                // The open database can read nothing more from its disk.
                self.open_read_only();
                OpenError::Io { path: self.shared.medium.path(), source }
            })?;
        }
        self.reopen_file()
    }

    /// Reopens the current file. On failure it falls back to a read-only open.
    fn reopen_file(&self) -> Result<(), OpenError> {
        let file = self.shared.file();
        let reopened = self.reopen_database(&mut file.database_mut());
        reopened.inspect_err(|_| self.open_read_only())
    }

    /// Closes a database and opens its file again, because a file has one owner.
    fn reopen_database(&self, database: &mut Option<Database>) -> Result<(), OpenError> {
        database.take();
        let builder = builder(self.shared.cache_bytes_max);
        *database = Some(backend::open(&*self.shared.medium, &builder)?);
        Ok(())
    }

    /// Empties the page cache by reopening the file, because redb has no other way: its cache keeps
    /// the pages that a commit has written, even those that the next commit replaces. Returns false,
    /// and does nothing, while a snapshot exists or if closing would lose the data. Only the engine
    /// calls this, between two write transactions.
    pub fn release_cache(&self) -> Result<bool, OpenError> {
        let file = self.shared.file();
        let mut database = file.database_mut();
        // The store and this function hold the file; a snapshot holds it before it locks it.
        let is_read = Arc::strong_count(&file) > 2;
        if is_read || database.is_none() || !self.shared.medium.outlives_database() {
            return Ok(false);
        }
        let reopened = self.reopen_database(&mut database);
        drop(database);
        reopened.map(|()| true).inspect_err(|_| self.open_read_only())
    }

    /// Opens the current file read-only, if possible.
    fn open_read_only(&self) {
        let (medium, builder) = (&*self.shared.medium, builder(self.shared.cache_bytes_max));
        let file = self.shared.file();
        let mut database = file.database_mut();
        database.take();
        let to_read = catch_unwind(AssertUnwindSafe(|| medium.open_to_read(&builder)));
        *database = to_read.ok().and_then(Result::ok);
    }

    /// Whether there is free space to rewrite the store.
    pub fn has_room(&self) -> bool {
        self.shared.medium.has_room()
    }

    /// Rewrites the store row by row, so that no erased bytes remain: an unused page keeps its old
    /// contents. Readers continue during the rewrite; the writer waits.
    pub fn rewrite(&self) -> Result<(), Error> {
        let (medium, builder) = (&*self.shared.medium, builder(self.shared.cache_bytes_max));
        let snapshot = self.snapshot()?;
        let fill = &mut |database: &Database| {
            let watch: ProgressWatch<'_> = &mut |_, _| ControlFlow::Continue(());
            store_copy::copy(&snapshot, database, &OmittedData::default(), watch)
        };
        if !medium.replace(&builder, fill)? {
            drop(snapshot);
            return self.compact();
        }
        // The open file is the old one, which has no name any more. It exists until its last reader
        // is gone.
        match backend::open(medium, &builder) {
            Ok(opened) => {
                let mut file = self.shared.file.write().unwrap_or_else(PoisonError::into_inner);
                *file = OpenFile::new(opened);
                Ok(())
            }
            // Writes to the old file would be lost.
            Err(_) => self.reopen_file().map_err(|_| Error::Closed),
        }
    }

    /// Releases unused pages. Needs exclusive access: no snapshot may exist.
    fn compact(&self) -> Result<(), Error> {
        let file = self.shared.file();
        let mut database = file.database_mut();
        database.as_mut().ok_or(Error::Closed)?.compact()?;
        Ok(())
    }
}

/// The fault that closed the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// No free space; no data was lost.
    Full,
    /// The disk failed; data reported as written may be in memory only.
    Disk,
}

fn builder(cache_bytes_max: usize) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes_max);
    builder
}

/// Writes the first rows of a new store, or migrates an older one.
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
        // Only a file without any table is a new store.
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
    /// Creates every table, so that readers can rely on their existence.
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
