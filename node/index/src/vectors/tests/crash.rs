//! Simulates crashes during a checkpoint: records the file operations, and loads every state that a
//! crash could leave.

use super::*;
use crate::vectors::rows_file::RowsBackend;
use std::cell::RefCell;
use std::io;

/// One operation on a file.
#[derive(Clone, Debug)]
enum Done {
    Write(u64, Vec<u8>),
    Cut(u64),
    Sync,
}

#[derive(Default)]
struct Recorder(RefCell<Vec<Done>>);

impl RowsBackend for Recorder {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.borrow_mut().push(Done::Write(offset, bytes.to_vec()));
        Ok(())
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().push(Done::Cut(length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.borrow_mut().push(Done::Sync);
        Ok(())
    }
}

fn apply(file: &mut Vec<u8>, done: &Done) {
    match done {
        Done::Write(offset, bytes) => {
            let start = usize::try_from(*offset).unwrap();
            file.resize(file.len().max(start + bytes.len()), 0);
            file[start..][..bytes.len()].copy_from_slice(bytes);
        }
        Done::Cut(length) => file.resize(usize::try_from(*length).unwrap(), 0),
        Done::Sync => {}
    }
}

/// All files that a crash may leave: everything synced is there; of the later writes up to the
/// crash, any subset in any order, with the last one perhaps half written.
fn states(before: &[u8], all: &[Done]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for crash in 0..=all.len() {
        let synced = all[..crash].iter().rposition(|done| matches!(done, Done::Sync)).unwrap_or(0);
        let mut base = before.to_vec();
        all[..synced].iter().for_each(|done| apply(&mut base, done));
        let loose = &all[synced..crash];
        assert!(loose.len() < 12, "too many writes without a sync to try all their subsets");
        for chosen in 0..1_u32 << loose.len() {
            let mut file = base.clone();
            let mut kept = (0..loose.len()).filter(|at| chosen >> at & 1 == 1);
            kept.clone().for_each(|at| apply(&mut file, &loose[at]));
            found.push(file);
            if let Some(last) = kept.next_back()
                && let Done::Write(offset, bytes) = &loose[last]
            {
                for part in [1, bytes.len() / 2, bytes.len() - 1] {
                    let mut file = base.clone();
                    let torn = Done::Write(*offset, bytes[..part].to_vec());
                    apply(&mut file, &torn);
                    found.push(file);
                }
            }
        }
    }
    found
}

/// Saves an index, changes it, records the next checkpoint, and loads every state.
fn check(change: impl Fn(&Vectors)) {
    let folder = folder();
    let vectors = filled(&folder, 12);
    vectors.checkpoint(b"old").unwrap();
    let before = bytes_of(&folder);
    let old = content(&vectors);
    change(&vectors);
    let new = content(&vectors);
    let recorder = Recorder::default();
    {
        let mut writer = vectors.writer();
        let WriterState { disk, dirty, .. } = &mut *writer;
        disk.write_in_place(&recorder, &vectors.shared.state, dirty, b"new").unwrap();
    }
    let (mut olds, mut news, mut refused) = (0, 0, 0);
    for state in states(&before, &recorder.0.into_inner()) {
        fs::write(folder.path().join(FILE_NAME), state).unwrap();
        match open(&folder) {
            Ok((loaded, cursor)) if cursor == b"old" => {
                assert_eq!(content(&loaded), old);
                olds += 1;
            }
            Ok((loaded, cursor)) => {
                assert_eq!((cursor.as_slice(), content(&loaded)), (&b"new"[..], new.clone()));
                news += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(olds > 0 && news > 0 && refused > 0, "{olds} {news} {refused}");
}

#[test]
fn an_interrupted_checkpoint_leaves_the_old_state_or_none() {
    // New and changed rows.
    check(|vectors| {
        for row in [3, 7, 12, 13] {
            vectors.upsert(id(row), &vector(row + 100), tagged("changed")).unwrap();
        }
    });
    // Fewer rows.
    check(|vectors| {
        for row in [0, 5, 11] {
            vectors.remove(id(row));
        }
    });
    // Some of each, and a row that is added again at another position.
    check(|vectors| {
        vectors.remove(id(2));
        vectors.upsert(id(2), &vector(2), tagged("back")).unwrap();
        vectors.remove(id(9));
    });
    // Only the cursor changes.
    check(|_| ());
}

#[test]
fn an_unfinished_temporary_file_is_removed() {
    let folder = folder();
    let vectors = filled(&folder, 3);
    vectors.checkpoint(b"").unwrap();
    let begun = folder.path().join("vectors.bin.new");
    fs::write(&begun, b"vectors of entries that may be forgotten by now").unwrap();
    assert_eq!(open(&folder).unwrap().0.len(), 3);
    assert!(!begun.exists());
}

#[test]
fn a_failed_checkpoint_is_completed_by_the_next() {
    struct Full;
    impl RowsBackend for Full {
        fn write_at(&self, _: &[u8], offset: u64) -> io::Result<()> {
            if offset == 0 { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        }
        fn cut(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = folder();
    let vectors = filled(&folder, 10);
    vectors.checkpoint(b"old").unwrap();
    vectors.remove(id(2));
    vectors.upsert(id(30), &vector(30), tagged("x")).unwrap();
    {
        let mut writer = vectors.writer();
        let WriterState { disk, dirty, .. } = &mut *writer;
        assert!(disk.write_in_place(&Full, &vectors.shared.state, dirty, b"new").is_err());
    }
    vectors.checkpoint(b"new").unwrap();
    let (loaded, cursor) = open(&folder).unwrap();
    assert_eq!((cursor.as_slice(), content(&loaded)), (&b"new"[..], content(&vectors)));
}
