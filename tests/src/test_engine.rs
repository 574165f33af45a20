//! An engine on an in-memory disk, with a clock and a seed controlled by the test, and the simplest
//! possible exchange of records between two of them.

use crate::disk::Disk;
use klnode_config::Config;
use klnode_crdt::claims::Citation;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::{Entitlement, EntryView};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId, StoreId, WorkspaceId};
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::WallTime;
use klnode_engine::{
    Command, DeliveredRecord, Engine, IngestOutcome, NewEntry, Receipt, RecordScreen, RecordSource,
    Rejection, ScreenDecision, Setup, TaskParams,
};
use klnode_store::{Backend, Durability, OpenError, Options, Store};
use redb::{Builder, Database, DatabaseError, TableDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Start time of all tests, in 2026.
pub const START: WallTime = WallTime::from_millis(1_790_000_000_000);

/// A small seeded generator: SplitMix64.
#[derive(Clone, Debug)]
pub struct Seeded(pub u64);

impl Seeded {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Fills a buffer with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_be_bytes()[..chunk.len()]);
        }
    }
}

/// A simulated disk as the store's medium. Salvaging replaces it with a copy, like a copied file.
#[derive(Clone, Debug)]
pub struct DiskMedium {
    disk: Arc<Mutex<Disk>>,
    is_past_saving: Arc<AtomicBool>,
}

impl DiskMedium {
    /// A medium on this disk.
    pub fn new(disk: Disk) -> Self {
        Self { disk: Arc::new(Mutex::new(disk)), is_past_saving: Arc::default() }
    }

    /// Makes salvaging fail or work again: a part of the disk cannot be read.
    pub fn be_past_saving(&self, is_past_saving: bool) {
        self.is_past_saving.store(is_past_saving, Ordering::Relaxed);
    }

    /// The disk as it is now.
    pub fn disk(&self) -> Disk {
        self.disk.lock().expect("no holder panics").clone()
    }
}

impl Backend for DiskMedium {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        builder.create_with_backend(self.disk())
    }

    fn salvage(&self) -> Result<(), io::Error> {
        if self.is_past_saving.load(Ordering::Relaxed) {
            return Err(io::Error::other("a part of the disk cannot be read"));
        }
        let mut disk = self.disk.lock().expect("no holder panics");
        *disk = disk.fork();
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.disk().has_room_for_a_copy()
    }

    fn path(&self) -> PathBuf {
        PathBuf::from("simulated")
    }
}

/// The entry that a command created.
///
/// # Panics
/// If it created none.
pub fn created(receipt: &Receipt) -> EntryId {
    match receipt {
        Receipt::Created(entry) => *entry,
        other => panic!("no entry was created: {other:?}"),
    }
}

/// A judge that admits everything.
pub fn admit_all() -> Box<dyn RecordScreen> {
    Box::new(|_: &Record, _: RecordSource| ScreenDecision::Admit)
}

/// One running home.
pub struct Node {
    /// Engine of the node.
    pub engine: Engine,
    /// Medium of the node's store.
    pub medium: DiskMedium,
    /// Current time of its clock.
    pub now: WallTime,
    key_seed: u8,
}

impl Node {
    /// Starts a home with a fresh disk. Nodes with the same `key_seed` are the same author.
    pub fn start(key_seed: u8, boot_seed: u64) -> Self {
        Self::start_on(Disk::new(), key_seed, boot_seed, START).expect("a fresh disk opens")
    }

    /// Starts a home with a fresh disk and a judge.
    pub fn start_with_screen(key_seed: u8, boot_seed: u64, judge: Box<dyn RecordScreen>) -> Self {
        let setup = Setup { judge, ..setup(key_seed, boot_seed) };
        let id = StoreId::from_bytes([key_seed; 16]);
        Self::start_with((Disk::new(), id), key_seed, setup, START).expect("a fresh disk opens")
    }

    /// Starts a home with a fresh disk that runs with this configuration and scans every record.
    pub fn start_with_config(key_seed: u8, boot_seed: u64, config: &Config) -> Self {
        let setup = Setup {
            judge: Box::new(klnode_query::screen_record),
            tasks: klnode_query::tasks(config),
            cooccurrence: klnode_query::cooccurrence(&config.cooccurrence),
            ..setup(key_seed, boot_seed)
        };
        let id = StoreId::from_bytes([key_seed; 16]);
        Self::start_with((Disk::new(), id), key_seed, setup, START).expect("a fresh disk opens")
    }

    /// Starts a home with a fresh disk and this store id.
    pub fn start_anew(key_seed: u8, boot_seed: u64, id: StoreId, now: WallTime) -> Self {
        let setup = setup(key_seed, boot_seed);
        Self::start_with((Disk::new(), id), key_seed, setup, now).expect("a fresh disk opens")
    }

    /// Starts a home on a disk.
    pub fn start_on(
        disk: Disk,
        key_seed: u8,
        boot_seed: u64,
        now: WallTime,
    ) -> Result<Self, OpenError> {
        let id = StoreId::from_bytes([key_seed; 16]);
        Self::start_with((disk, id), key_seed, setup(key_seed, boot_seed), now)
    }

    /// A store that already exists on the disk keeps its id.
    fn start_with(
        (disk, id): (Disk, StoreId),
        key_seed: u8,
        setup: Setup,
        now: WallTime,
    ) -> Result<Self, OpenError> {
        let medium = DiskMedium::new(disk);
        let options = Options::new(id);
        let store = Store::open(Box::new(medium.clone()), &options)?;
        let engine = Engine::start(store, setup, now)
            .map_err(|source| OpenError::Prepare { path: medium.path(), source })?;
        Ok(Self { engine, medium, now, key_seed })
    }

    /// Stops, and starts on a durable copy of the disk. Faults, capacity and counters of the disk
    /// are not kept.
    #[must_use]
    pub fn restart(self, boot_seed: u64) -> Self {
        let Self { engine, medium, now, key_seed } = self;
        drop(engine);
        Self::start_on(medium.disk().fork(), key_seed, boot_seed, now).expect("the disk opens")
    }

    /// A copy of the home as it is on disk now, started as another life.
    #[must_use]
    pub fn clone_home(&self, boot_seed: u64) -> Self {
        let copy = self.medium.disk().fork();
        Self::start_on(copy, self.key_seed, boot_seed, self.now).expect("the copy opens")
    }

    /// Author id of this node.
    pub fn author(&self) -> AuthorId {
        self.engine.author()
    }

    /// Runs one command.
    pub fn run(&mut self, command: Command) -> Result<Receipt, Rejection> {
        self.engine.step(&[command], self.now).remove(0)
    }

    /// Creates an entry in `main`.
    pub fn create(&mut self, title: &str) -> EntryId {
        match self.run(Command::Create(Box::new(lesson(title)))) {
            Ok(Receipt::Created(entry)) => entry,
            other => panic!("the entry was not created: {other:?}"),
        }
    }

    /// Writes a claim.
    pub fn claim(&mut self, entry: EntryId, claim: ClaimEdit) {
        self.run(Command::Claim { entry, claims: vec![claim] }).expect("claimed");
    }

    /// Sets the title.
    pub fn retitle(&mut self, entry: EntryId, title: &str) {
        self.claim(entry, ClaimEdit::Set(Register::TITLE, title.into()));
    }

    /// Counts one success.
    pub fn succeed(&mut self, entry: EntryId) {
        self.run(success(entry)).expect("observed");
    }

    /// All records of an entry.
    pub fn records(&self, entry: EntryId) -> EntryRecords {
        self.engine.store().snapshot().expect("readable").entry(entry).expect("readable")
    }

    /// The merged entry.
    pub fn entry(&self, entry: EntryId) -> Entry {
        self.records(entry).to_entry()
    }

    /// The entry as this node reads it; other authors are members.
    pub fn view(&self, entry: EntryId) -> EntryView {
        let entry = self.entry(entry);
        let members: BTreeSet<AuthorId> = entry.claims.keys().copied().collect();
        entry.view(self.now, &Entitlement { mine: [self.author()].into(), members })
    }

    /// Title that this node shows.
    pub fn title(&self, entry: EntryId) -> Option<String> {
        self.view(entry).text(Register::TITLE).map(str::to_owned)
    }

    /// Successes of all authors, in whole observations.
    pub fn successes(&self, entry: EntryId) -> u64 {
        let entry = self.entry(entry);
        let total = |tally: &klnode_crdt::tally::Tally| {
            tally.successes.total(self.now.day(), &tally.reset).0
        };
        entry.tallies.values().map(total).sum::<u64>() / 1_000
    }

    /// All records of all entries.
    pub fn everything(&self) -> BTreeMap<EntryId, EntryRecords> {
        let snapshot = self.engine.store().snapshot().expect("readable");
        let entries = snapshot.entries().expect("readable").map(|row| row.expect("readable").0);
        entries.map(|entry| (entry, snapshot.entry(entry).expect("readable"))).collect()
    }

    /// Sends all records that the other lacks; returns their number.
    pub fn send_to(&self, other: &mut Self) -> usize {
        let theirs = other.engine.store().snapshot().expect("readable");
        let mut records: Vec<Record> = self
            .everything()
            .into_values()
            .flat_map(|records| match records {
                EntryRecords::Forgotten(tombstone) => vec![*tombstone],
                EntryRecords::Live(authors) => {
                    authors.values().flat_map(|held| held.records().cloned()).collect()
                }
            })
            .filter(|record| !theirs.holds(record.digest()).expect("readable"))
            .collect();
        drop(theirs);
        // Retractions go first, since they explain missing payloads.
        records.sort_by_key(|record| record.header().facet != Facet::Retraction);
        let sent = records.len();
        let from = self.author();
        // Records are encoded and verified, as over the wire.
        let verified = records.iter().map(|record| Record::verify(&record.to_raw()));
        let arrivals = verified
            .map(|record| DeliveredRecord { record: record.expect("honest"), from })
            .collect();
        other.run(Command::Ingest(arrivals)).expect("ingested");
        sent
    }

    /// Delivers one verified record.
    pub fn ingest(&mut self, record: Record, from: AuthorId) -> IngestOutcome {
        match self.run(Command::Ingest(vec![DeliveredRecord { record, from }])) {
            Ok(Receipt::Ingested(mut ingested)) => ingested.remove(0),
            other => panic!("no answer about the record: {other:?}"),
        }
    }
}

/// One round of exchange, both ways; returns the number of records moved.
pub fn exchange(one: &mut Node, two: &mut Node) -> usize {
    one.send_to(two) + two.send_to(one)
}

/// Setup of an author with a seed for entropy.
pub fn setup(key_seed: u8, boot_seed: u64) -> Setup {
    let mut seeded = Seeded(boot_seed);
    Setup {
        key: SecretKey::from_bytes(&[key_seed; 32]),
        entropy: Box::new(move |bytes: &mut [u8]| seeded.fill(bytes)),
        judge: admit_all(),
        durability: Durability::Durable,
        cooccurrence: klnode_scoring::cooccurrence::Params::default(),
        tasks: TaskParams::default(),
    }
}

/// A lesson with evidence, in `main`.
pub fn lesson(title: &str) -> NewEntry {
    NewEntry {
        workspace: WorkspaceId::MAIN,
        memory: Memory::Semantic,
        kind: EntryType::Lesson,
        title: title.into(),
        content: format!("What we learned about {title}."),
        registers: Vec::new(),
        claims: Vec::new(),
        citations: vec![Citation {
            evidence_type: "commit".into(),
            evidence_ref: "1a2b3c4".into(),
            cited_by: "test".into(),
            cited_at: START,
            is_context: false,
        }],
        source: None,
    }
}

/// A lesson with evidence, in a workspace.
pub fn in_workspace(workspace: WorkspaceId, title: &str) -> NewEntry {
    NewEntry { workspace, ..lesson(title) }
}

/// Command that counts one success of an entry.
pub fn success(entry: EntryId) -> Command {
    Command::Observe { entry, of: Observation::Success, amount: Thousandths::ONE }
}

/// Tables that were added with each schema version.
const TABLES_SINCE: [(u32, &[&str]); 8] = [
    (2, &["callers"]),
    (
        3,
        &[
            "distances",
            "heads",
            "invitations",
            "outcomes",
            "outgoing",
            "peers",
            "receipts",
            "stretches",
            "workspaces",
        ],
    ),
    (4, &["parts", "tasks"]),
    (
        5,
        &[
            "checkouts",
            "findings",
            "primed",
            "promotions",
            "same",
            "services",
            "sessions",
            "subjects",
            "successors",
            "unsettled",
            "upkeep",
            "usage",
        ],
    ),
    (6, &["owed"]),
    (7, &["removals"]),
    (8, &["documents", "edits", "import_ids", "imports"]),
    (9, &["dismissed"]),
];

/// The schema of the newest tables.
pub fn newest_schema() -> u32 {
    TABLES_SINCE.iter().map(|(since, _)| *since).max().expect("there are tables")
}

/// Downgrades the closed store on a disk to an older schema: removes the tables that were added
/// later, and sets the version number.
pub fn downgrade(disk: &Disk, to: u32) {
    const META: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("meta");
    let database = Database::builder().create_with_backend(disk.clone()).expect("it opens");
    let write = database.begin_write().expect("no other writer");
    for name in TABLES_SINCE.iter().filter(|(since, _)| *since > to).flat_map(|(_, names)| *names) {
        // The content of the table does not matter for its deletion.
        let table = TableDefinition::<&[u8], &[u8]>::new(name);
        assert!(write.delete_table(table).expect("deleted"), "there is no table {name}");
    }
    let mut meta = write.open_table(META).expect("every store has it");
    meta.insert(b"schema\0\0", &to.to_be_bytes()[..]).expect("written");
    drop(meta);
    write.commit().expect("committed");
}
