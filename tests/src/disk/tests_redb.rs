//! redb on the disk keeps every acknowledged commit; also documents its behaviour after a fault, on
//! which the store relies.

use std::collections::BTreeMap;
use std::io;

use redb::{Database, DatabaseError, Durability, ReadableDatabase, ReadableTable};
use redb::{StorageError, TableDefinition, TableError};

use super::{Disk, Fault, PowerCut};

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// Content of a table: length and first byte of each row.
type Rows = BTreeMap<u64, (usize, u8)>;

/// Edits of transaction number `step`: small rows that overwrite one another, and occasionally a
/// row that makes the file grow, which a later step removes so that it can shrink.
fn edits(step: u64) -> Vec<(u64, Option<(usize, u8)>)> {
    let fill = step as u8 + 1;
    let mut edits = vec![(step % 5, Some((300, fill))), (100 + step, Some((40, fill)))];
    match step % 8 {
        3 => edits.push((1000, Some((700_000, fill)))),
        6 => edits.push((1000, None)),
        _ => {}
    }
    edits
}

const STEPS: u64 = 16;

/// Content of the table after `steps` transactions.
fn rows_after(steps: u64) -> Rows {
    let mut rows = Rows::new();
    for (key, value) in (0..steps).flat_map(edits) {
        match value {
            Some(row) => drop(rows.insert(key, row)),
            None => drop(rows.remove(&key)),
        }
    }
    rows
}

fn open(disk: &Disk) -> Result<Database, DatabaseError> {
    Database::builder().create_with_backend(disk.clone())
}

fn commit(database: &Database, step: u64) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in edits(step) {
            match value {
                Some((len, fill)) => drop(table.insert(key, vec![fill; len].as_slice())?),
                None => drop(table.remove(key)?),
            }
        }
    }
    Ok(transaction.commit()?)
}

/// Runs the script from `from` to its end or the first failure; returns the acknowledged steps.
fn run(database: &Database, from: u64) -> (u64, Option<redb::Error>) {
    for step in from..STEPS {
        if let Err(error) = commit(database, step) {
            return (step, Some(error));
        }
    }
    (STEPS, None)
}

fn rows(database: &Database) -> Rows {
    let transaction = database.begin_read().unwrap();
    let table = match transaction.open_table(TABLE) {
        Err(TableError::TableDoesNotExist(_)) => return Rows::new(),
        table => table.unwrap(),
    };
    let row = |entry: Result<(redb::AccessGuard<'_, u64>, redb::AccessGuard<'_, &[u8]>), _>| {
        let (key, value) = entry.unwrap();
        (key.value(), (value.value().len(), value.value()[0]))
    };
    table.iter().unwrap().map(row).collect()
}

/// Opens the image and returns how many steps it contains: the acknowledged ones, or one more that
/// was in progress.
#[track_caller]
fn steps_found(image: &Disk, acknowledged: u64, context: &str) -> u64 {
    let mut database = open(image).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(database.check_integrity().unwrap(), "{context}: not sound");
    let found = rows(&database);
    (acknowledged..=acknowledged + 1)
        .find(|steps| found == rows_after(*steps))
        .unwrap_or_else(|| panic!("{context}: {acknowledged} steps were acknowledged: {found:?}"))
}

/// A disk with an empty, closed database: creating one is not atomic, as another test shows.
fn formatted() -> Disk {
    let disk = Disk::new();
    drop(open(&disk).unwrap());
    disk
}

/// The script run to its end on a recording disk, and the call at which each step was acknowledged.
fn recorded() -> (Disk, Vec<u64>) {
    let disk = formatted();
    disk.record();
    let database = open(&disk).unwrap();
    let mut acknowledged_at = Vec::new();
    for step in 0..STEPS {
        commit(&database, step).unwrap();
        acknowledged_at.push(disk.counts().calls());
    }
    drop(database);
    (disk, acknowledged_at)
}

#[test]
fn redb_keeps_acknowledged_commits_after_any_power_cut() {
    let first = formatted().counts().calls();
    let (disk, acknowledged_at) = recorded();
    for call in first..=disk.counts().calls() {
        let acknowledged = acknowledged_at.partition_point(|at| *at <= call) as u64;
        for cut in PowerCut::ALL {
            let seed = call;
            let image = disk.crash_image_at(call, cut, seed);
            steps_found(&image, acknowledged, &format!("call {call}, {cut:?}, seed {seed}"));
        }
    }
}

#[test]
fn an_image_of_a_recorded_call_is_the_image_of_a_crash_at_that_call() {
    let first = formatted().counts().calls();
    let (recording, acknowledged_at) = recorded();
    for calls in (0..recording.counts().calls() - first).step_by(17) {
        let disk = formatted();
        disk.crash_at_call(calls);
        let acknowledged = open(&disk).map_or(0, |database| run(&database, 0).0);
        let call = first + calls;
        assert_eq!(acknowledged, acknowledged_at.partition_point(|at| *at <= call) as u64);
        for cut in PowerCut::ALL {
            let image = disk.crash_image(cut, 3).bytes();
            assert_eq!(image, recording.crash_image_at(call, cut, 3).bytes(), "call {call}");
        }
    }
}

#[test]
fn redb_survives_power_cuts_during_its_recovery_from_power_cuts() {
    let first = formatted().counts().calls();
    let (disk, acknowledged_at) = recorded();
    for (round, call) in (first..disk.counts().calls()).step_by(5).enumerate() {
        let acknowledged = acknowledged_at.partition_point(|at| *at <= call) as u64;
        for calls in [0, 1, 2, 3, 5, 8, 13] {
            let seed = call * 100 + calls;
            let context = format!("call {call}, again after {calls}, seed {seed}");
            let mut image = disk.crash_image_at(call, PowerCut::Scatter, seed);
            let mut seen = None;
            for again in 0..2 {
                image.crash_at_call((calls + again * round as u64) % 16);
                if let Ok(database) = open(&image) {
                    let found = rows(&database);
                    assert_eq!(seen.get_or_insert_with(|| found.clone()), &found, "{context}");
                }
                image = image.crash_image(PowerCut::Scatter, seed + again);
            }
            let steps = steps_found(&image, acknowledged, &context);
            assert!(
                seen.is_none_or(|seen| seen == rows_after(steps)),
                "{context}: seen, then gone"
            );
        }
    }
}

#[test]
fn redb_acknowledges_nothing_after_a_fault_until_it_is_reopened() {
    for fault in [Fault::NoSpace, Fault::Io, Fault::ShortWrite] {
        for call in 0.. {
            let disk = formatted();
            let database = open(&disk).unwrap();
            disk.fail_at_call(call, fault);
            let (acknowledged, error) = run(&database, 0);
            let Some(error) = error else { break };
            let context = format!("{fault:?} at call {call}: {error}");
            assert!(matches!(error, redb::Error::Io(_)), "{context}");
            assert!(matches!(commit(&database, 0), Err(redb::Error::PreviousIo)), "{context}");
            drop(database);

            let platter = disk.crash_image(PowerCut::DropAll, 0);
            steps_found(&platter, acknowledged, &context);
            let found = steps_found(&disk, acknowledged, &context);
            let database = open(&disk).unwrap();
            assert!(run(&database, found).1.is_none(), "{context}");
            assert_eq!(rows(&database), rows_after(STEPS), "{context}");
        }
    }
}

#[test]
fn redb_on_a_full_disk_keeps_acknowledged_commits_and_continues_with_room() {
    let disk = formatted();
    // The capacity is below the length of the file: writes to holes fail.
    for capacity in [40_000, 64 * 1024, 600_000, 1_200_000] {
        let disk = disk.fork();
        disk.capacity_bytes(Some(capacity));
        let database = open(&disk).unwrap();
        let (acknowledged, error) = run(&database, 0);
        let error = error.expect("the script needs more room than that");
        let context = format!("capacity {capacity}: {error}");
        let redb::Error::Io(error) = error else { panic!("{context}") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        drop(database);

        steps_found(&disk.crash_image(PowerCut::DropAll, 0), acknowledged, &context);
        disk.capacity_bytes(None);
        let found = steps_found(&disk, acknowledged, &context);
        let database = open(&disk).unwrap();
        assert!(run(&database, found).1.is_none(), "{context}");
    }
}

#[test]
fn after_a_lost_sync_platter_and_copy_are_sound_but_the_file_may_be_lost() {
    let mut lost = 0;
    for call in 0..60 {
        let disk = formatted();
        let database = open(&disk).unwrap();
        disk.fail_at_call(call, Fault::LostSync);
        let (acknowledged, _) = run(&database, 0);
        drop(database);
        let context = format!("call {call}");
        steps_found(&disk.crash_image(PowerCut::DropAll, 0), acknowledged, &context);
        steps_found(&disk.fork(), acknowledged, &context);

        // Opened in place, redb trusts pages that it reads from the cache and that no sync will
        // write again.
        let found = steps_found(&disk, acknowledged, &context);
        let database = open(&disk).unwrap();
        commit(&database, found).unwrap();
        let later = open(&disk.crash_image(PowerCut::DropAll, 0));
        lost += u32::from(later.is_err());
    }
    assert!(lost > 0, "redb survives a lost sync now: the store may open its file in place");
}

#[test]
fn a_power_cut_during_creation_leaves_an_empty_or_refused_database() {
    let disk = Disk::new();
    disk.record();
    drop(open(&disk).unwrap());
    let mut refused = 0;
    for call in 0..=disk.counts().calls() {
        for cut in PowerCut::ALL {
            match open(&disk.crash_image_at(call, cut, call)) {
                Ok(database) => assert_eq!(rows(&database), Rows::new()),
                Err(DatabaseError::Storage(StorageError::Io(error))) => {
                    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                    refused += 1;
                }
                Err(error) => panic!("call {call}, {cut:?}: {error:?}"),
            }
        }
    }
    assert!(refused > 0, "redb makes its file in one step now: the store need not");
}

#[test]
fn a_disk_with_an_open_database_is_refused_until_it_is_closed() {
    let disk = formatted();
    let database = open(&disk).unwrap();
    assert!(matches!(open(&disk), Err(DatabaseError::DatabaseAlreadyOpen)));
    drop(database);
    drop(open(&disk).unwrap());
}
