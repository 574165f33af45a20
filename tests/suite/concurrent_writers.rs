//! Many callers, one writer, a real file.

use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, StoreId};
use klnode_crdt::record::Record;
use klnode_crdt::tally::Observation;
use klnode_engine::{
    Command, Engine, EngineThread, Limits, Receipt, RecordSource, Rejection, ScreenDecision, Setup,
    spawn,
};
use klnode_store::row_types::ServedRow;
use klnode_store::{Backend, Error, FileMedium, OpenError, Options, Store};
use klnode_tests::disk::{Disk, Fault};
use klnode_tests::test_engine::{DiskMedium, START, lesson, setup};
use redb::{Builder, Database, DatabaseError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

fn open(home: &Path) -> Engine {
    let medium = FileMedium::new(home.join("store.redb"));
    let store = Store::open(Box::new(medium), &Options::new(StoreId::default())).expect("opens");
    Engine::start(store, setup(1, 1), START).expect("starts")
}

fn successes(engine: &Engine, entry: EntryId) -> u64 {
    let snapshot = engine.store().snapshot().expect("readable");
    let entry = snapshot.entry(entry).expect("readable").to_entry();
    let tally = entry.tallies.values().next().expect("observed");
    tally.successes.total(START.day(), &tally.reset).0 / 1_000
}

#[test]
fn sixty_four_writers_with_five_hundred_observations_each_lose_none() {
    let home = tempfile::tempdir().expect("a folder");
    let running = spawn(open(home.path()), Limits::default(), || START);
    let create = Command::Create(Box::new(lesson("busy")));
    let Ok(Receipt::Created(entry)) = running.handle().submit_blocking(create) else {
        panic!("the entry was not created");
    };
    let writers: Vec<_> = (0..64)
        .map(|_| {
            let handle = running.handle();
            std::thread::spawn(move || {
                for _ in 0..500 {
                    let of = Observation::Success;
                    let observe = Command::Observe { entry, of, amount: Thousandths::ONE };
                    handle.submit_blocking(observe).expect("acknowledged");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("no writer panics");
    }
    drop(running.stop());
    assert_eq!(successes(&open(home.path()), entry), 64 * 500);
}

/// A writer that panics on any record that contains `fatal`.
fn fragile(medium: Box<dyn Backend>) -> EngineThread {
    let store = Store::open(medium, &Options::new(StoreId::default())).expect("opens");
    let judge = |record: &Record, _: RecordSource| {
        let bytes = record.to_raw().payload.unwrap_or_default();
        assert!(!bytes.windows(5).any(|part| part == b"fatal"), "as a damaged page would");
        ScreenDecision::Admit
    };
    let setup = Setup { judge: Box::new(judge), ..setup(1, 1) };
    let engine = Engine::start(store, setup, START).expect("starts");
    spawn(engine, Limits::default(), || START)
}

#[test]
fn servings_are_logged_once_despite_panics_and_stops() {
    for is_full in [false, true] {
        for has_panicked in [false, true] {
            let disk = Disk::new();
            let running = fragile(Box::new(DiskMedium::new(disk.clone())));
            let handle = running.handle();
            let create =
                |title: &str| handle.submit_blocking(Command::Create(Box::new(lesson(title))));
            let Ok(Receipt::Created(entry)) = create("served") else { panic!("not created") };
            if is_full {
                disk.fail_every(1, Fault::NoSpace);
                assert!(create("refused").is_err());
            }
            let row = ServedRow { entries: vec![entry], ..ServedRow::default() };
            handle.submit_blocking(Command::Served(row)).expect("reading goes on");
            disk.heal();
            if has_panicked {
                assert!(matches!(create("fatal"), Err(Rejection::Store(_))));
                create("after").expect("it goes on");
            }
            drop(handle);
            let engine = running.stop();
            let snapshot = engine.store().snapshot().expect("readable");
            let served = snapshot.uses(entry).expect("readable").served;
            assert_eq!(served, 1, "full: {is_full}, panicked: {has_panicked}");
        }
    }
}

#[test]
fn a_panic_in_a_step_fails_only_its_command() {
    let home = tempfile::tempdir().expect("a folder");
    let running = fragile(Box::new(FileMedium::new(home.path().join("store.redb"))));
    let create =
        |title: &str| running.handle().submit_blocking(Command::Create(Box::new(lesson(title))));
    let Ok(Receipt::Created(entry)) = create("before") else { panic!("not created") };
    assert!(matches!(create("fatal"), Err(Rejection::Store(_))));
    create("after").expect("it goes on");
    let together = ["beside", "fatal", "beside it"];
    let together = together.map(|title| Command::Create(Box::new(lesson(title))));
    let told = running.handle().submit_all_blocking(together.into()).expect("answered");
    assert!(matches!(told[..], [Ok(_), Err(Rejection::Store(_)), Ok(_)]), "{told:?}");
    let snapshot = running.handle().store().snapshot().expect("readable");
    assert!(snapshot.view_row(entry).expect("readable").is_some());
    assert_eq!(snapshot.entry_count().expect("readable"), 4);
    drop(snapshot);
    drop(running.stop());
}

/// A file that can be read and written, but not from end to end.
#[derive(Debug)]
struct Torn(FileMedium);

impl Backend for Torn {
    fn exists(&self) -> Result<bool, io::Error> {
        self.0.exists()
    }

    fn create(
        &self,
        builder: &Builder,
        prepare: &mut dyn FnMut(&Database) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        self.0.create(builder, prepare)
    }

    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        self.0.open(builder)
    }

    fn replace(
        &self,
        _builder: &Builder,
        _fill: &mut dyn FnMut(&Database) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        panic!("as a damaged page would")
    }

    fn path(&self) -> PathBuf {
        self.0.path()
    }
}

#[test]
fn a_panic_during_a_store_rewrite_loses_no_committed_command() {
    let home = tempfile::tempdir().expect("a folder");
    let medium = Torn(FileMedium::new(home.path().join("store.redb")));
    let store = Store::open(Box::new(medium), &Options::new(StoreId::default())).expect("opens");
    let engine = Engine::start(store, setup(1, 1), START).expect("starts");
    let running = spawn(engine, Limits::default(), || START);
    let create = |title: &str| Command::Create(Box::new(lesson(title)));
    let together = vec![create("before"), Command::Rewrite, create("beside")];
    let told = running.handle().submit_all_blocking(together).expect("answered");
    assert!(matches!(told[..], [Ok(_), Err(Rejection::Store(_)), Ok(_)]), "{told:?}");
    running.handle().submit_blocking(create("after")).expect("it goes on");
    let snapshot = running.handle().store().snapshot().expect("readable");
    assert_eq!(snapshot.entry_count().expect("readable"), 3);
    drop(snapshot);
    drop(running.stop());
}

#[test]
fn stopping_completes_queued_commands() {
    let home = tempfile::tempdir().expect("a folder");
    let (entered, inside) = std::sync::mpsc::channel();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    // The writer reads the time before each group; here it blocks until the test lets it through.
    let clock = move || {
        entered.send(()).expect("the test listens");
        gate.recv().expect("the test lets it through");
        START
    };
    let running = spawn(open(home.path()), Limits::default(), clock);
    let create = |handle: klnode_engine::Handle| {
        std::thread::spawn(move || {
            handle.submit_blocking(Command::Create(Box::new(lesson("waits"))))
        })
    };
    let first = create(running.handle());
    inside.recv().expect("the writer is at work on the first");
    let waiting: Vec<_> = (0..5).map(|_| create(running.handle())).collect();
    while running.handle().waiting() < 5 {
        std::thread::yield_now();
    }
    let stopper = std::thread::spawn(move || running.stop());
    for _ in 0..2 {
        release.send(()).expect("the writer waits");
    }
    drop(stopper.join().expect("stops"));
    for caller in waiting.into_iter().chain([first]) {
        assert!(caller.join().expect("no panic").is_ok());
    }
}

#[test]
fn stopping_keeps_acknowledged_commands_and_refuses_new_ones() {
    let home = tempfile::tempdir().expect("a folder");
    let running = spawn(
        open(home.path()),
        Limits { queue_max: 8, group_max: 4, ..Limits::default() },
        || START,
    );
    let create = Command::Create(Box::new(lesson("stop")));
    let Ok(Receipt::Created(entry)) = running.handle().submit_blocking(create) else {
        panic!("the entry was not created");
    };
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let handle = running.handle();
            std::thread::spawn(move || {
                let of = Observation::Success;
                let observe = Command::Observe { entry, of, amount: Thousandths::ONE };
                let acknowledged =
                    (0..).take_while(|_| match handle.submit_blocking(observe.clone()) {
                        Ok(_) => true,
                        Err(Rejection::Stopping) => false,
                        Err(other) => panic!("{other}"),
                    });
                acknowledged.count() as u64
            })
        })
        .collect();
    // Stops after a few commits have been published.
    let mut head = running.handle().head();
    while head.borrow_and_update().0 < 200 {
        std::thread::yield_now();
    }
    drop(running.stop());
    let acknowledged: u64 =
        writers.into_iter().map(|writer| writer.join().expect("no panic")).sum();
    assert!(acknowledged >= 190);
    assert_eq!(successes(&open(home.path()), entry), acknowledged);
}

#[test]
fn commands_submitted_together_are_committed_together() {
    let home = tempfile::tempdir().expect("a folder");
    let groups = Arc::new(AtomicUsize::new(0));
    // The writer reads the time once for each group.
    let counted = groups.clone();
    let clock = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        START
    };
    let running = spawn(open(home.path()), Limits::default(), clock);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let create = |title: &str| Command::Create(Box::new(lesson(title)));
    let commands = vec![create("first"), create(""), create("second")];
    let answers = runtime.block_on(running.handle().submit_all(commands)).expect("answered");
    assert!(matches!(answers[0], Ok(Receipt::Created(_))));
    assert!(matches!(answers[1], Err(Rejection::Invalid { field: "title", .. })));
    assert!(matches!(answers[2], Ok(Receipt::Created(_))));
    assert_eq!(groups.load(Ordering::Relaxed), 1, "one commit, not one for each");
    let none = runtime.block_on(running.handle().submit_all(Vec::new())).expect("answered");
    assert!(none.is_empty());
    drop(running.stop());
    assert_eq!(open(home.path()).store().snapshot().expect("readable").entry_count().unwrap(), 2);
}

#[test]
fn a_wall_clock_that_runs_ahead_of_the_steady_one_starts_a_new_boot() {
    let home = tempfile::tempdir().expect("a folder");
    let engine = open(home.path());
    let first = engine.boot();
    let ahead = Arc::new(AtomicU64::new(0));
    let seconds = ahead.clone();
    let clock = move || START.plus(Duration::from_secs(seconds.load(Ordering::Relaxed)));
    let running = spawn(engine, Limits::default(), clock);
    let create = |title: &str| Command::Create(Box::new(lesson(title)));
    // Less than a day of silence each time: only the steady clock shows that less time has passed.
    // The image is taken before anything is written, and after.
    for (seconds, title) in [
        (1_200, "the image was put back"),
        (1_320, "a clock that is set right"),
        (2_640, "the image was put back again"),
    ] {
        ahead.store(seconds, Ordering::Relaxed);
        running.handle().submit_blocking(create(title)).expect("written");
    }
    let engine = running.stop();
    let snapshot = engine.store().snapshot().expect("readable");
    let boots: Vec<_> = snapshot.epochs().unwrap().map(|epoch| epoch.unwrap().1).collect();
    assert_eq!(boots.len(), 3, "{boots:?}");
    assert_eq!((boots[0], boots[2]), (first, engine.boot()));
    assert_ne!(boots[0], boots[1]);
    assert_ne!(boots[1], boots[2]);
}
