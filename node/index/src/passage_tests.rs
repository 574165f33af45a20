//! Tests of the transformer's vectors with a model in the hands of the test: progress, restart,
//! erasure while a text is computed, another model.

use super::passage_vectors::{FOLDER_NAME, LoadedModel, PassageModel, PassageVectors};
use super::tests::{Feed, PATIENCE, begin, wait_for, wakes};
use super::vectors::{FILE_NAME, RowFilter};
use super::*;
use klnode_embed::EmbedError;
use std::fs;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// The longest pause before a text in these tests.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A model that counts its texts, and may wait before each of them.
#[derive(Debug)]
struct CountingModel {
    texts: Mutex<u64>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl CountingModel {
    const fn new(is_open: bool) -> Self {
        Self { texts: Mutex::new(0), is_open: Mutex::new(is_open), opened: Condvar::new() }
    }

    fn count(&self) -> u64 {
        *self.texts.lock().unwrap()
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn loaded(&'static self) -> Result<LoadedModel, EmbedError> {
        let model = || Arc::new(ModelRef(self)) as Arc<dyn Embedder>;
        Ok(LoadedModel { questions: model(), passages: model() })
    }
}

#[derive(Debug)]
struct ModelRef(&'static CountingModel);

impl Embedder for ModelRef {
    fn identity(&self) -> &'static str {
        "counting"
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        Ok(2)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.iter().any(|text| text.contains("refused")) {
            return Err(EmbedError::Refused { server: "test".to_owned(), status: 400 });
        }
        let of = |text: &&str| {
            *self.0.texts.lock().unwrap() += 1;
            let closed = self.0.is_open.lock().unwrap();
            drop(self.0.opened.wait_while(closed, |is_open| !*is_open).unwrap());
            if text.contains("north") { vec![1.0, 0.0] } else { vec![0.0, 1.0] }
        };
        Ok(texts.iter().map(of).collect())
    }
}

fn model(load: fn() -> Result<LoadedModel, EmbedError>) -> Option<PassageModel> {
    Some(PassageModel { identity: "counting", dims: 2, pause_share: 0, pause_max: PAUSE_MAX, load })
}

struct Started {
    running: Running,
    _senders: (watch::Sender<Seq>, watch::Sender<u64>),
}

/// Starts an index with all records of the feed.
fn start_index(feed: &Feed, folder: &tempfile::TempDir, passages: Option<PassageModel>) -> Started {
    let head = feed.store.snapshot().unwrap().head();
    let (senders, wakes) = wakes(head.0);
    let setup = Setup { passages, ..feed.setup(folder, &Arc::default()) };
    Started { running: start(setup, feed.store.clone(), wakes).unwrap(), _senders: senders }
}

fn wait_for_passages(started: &Started, entries: u64) -> Arc<PassageVectors> {
    let index = started.running.index();
    wait_for(&index, |state| state.passages.is_some_and(|progress| progress.done == entries));
    index.passages().unwrap()
}

#[test]
fn entries_get_vectors_in_the_background_and_a_restart_keeps_them() {
    static MODEL: CountingModel = CountingModel::new(true);
    let (folder, feed, _) = begin();
    let north = feed.say(1, "north");
    let south = feed.say(2, "south");
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    let vectors = wait_for_passages(&started, 2);
    let vector = vectors.question_vector("to the north").unwrap();
    let (near, _) = vectors.nearest(&vector, (5, 5), &RowFilter::all()).unwrap();
    assert_eq!(near, [(north, 1.0), (south, 0.0)]);
    drop(vectors);
    started.running.stop();
    let count = MODEL.count();
    let east = feed.say(3, "east");
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    let vectors = wait_for_passages(&started, 3);
    assert!(vectors.contains(east) && vectors.contains(north));
    assert_eq!(MODEL.count(), count + 1, "only the new entry is embedded");
    drop(vectors);
    started.running.stop();
    // Without a transformer no thread would erase forgotten entries from the files.
    start_index(&feed, &folder, None).running.stop();
    assert!(!folder.path().join(FOLDER_NAME).exists());
}

#[test]
fn an_entry_forgotten_while_it_is_embedded_leaves_no_vector() {
    static MODEL: CountingModel = CountingModel::new(false);
    let (folder, feed, _) = begin();
    let entry = feed.say(1, "north");
    let kept = feed.say(2, "south");
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    while MODEL.count() == 0 {
        std::thread::yield_now();
    }
    feed.forget(1);
    let head = feed.store.snapshot().unwrap().head();
    started._senders.0.send(head).unwrap();
    wait_for(&started.running.index(), |state| state.wiped >= head);
    MODEL.open();
    let vectors = wait_for_passages(&started, 1);
    assert!(vectors.contains(kept) && !vectors.contains(entry));
    drop(vectors);
    started.running.stop();
    let bytes = fs::read(folder.path().join(FOLDER_NAME).join(FILE_NAME)).unwrap();
    assert!(!bytes.windows(16).any(|part| part == entry.as_bytes()));
}

#[test]
fn a_kill_between_the_two_files_of_a_save_loses_no_vector() {
    static MODEL: CountingModel = CountingModel::new(true);
    let (folder, feed, _) = begin();
    let north = feed.say(1, "north");
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    wait_for_passages(&started, 1);
    started.running.stop();
    let path = |name: &str| folder.path().join(FOLDER_NAME).join(name);
    let (list, rows) = (path("passages.bin"), path(FILE_NAME));
    let before = [&list, &rows].map(|path| fs::read(path).unwrap());
    let south = feed.say(2, "south");
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    wait_for_passages(&started, 2);
    started.running.stop();
    let after = [&list, &rows].map(|path| fs::read(path).unwrap());
    // The new list is on disk, beside the old one or in its place, and the rows are the old ones.
    for (current, next, texts) in [(&before[0], Some(&after[0]), 1), (&after[0], None, 2)] {
        fs::write(&list, current).unwrap();
        fs::write(&rows, &before[1]).unwrap();
        if let Some(next) = next {
            fs::write(path("passages.next.bin"), next).unwrap();
        }
        let count = MODEL.count();
        let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
        let vectors = wait_for_passages(&started, 2);
        for (axis, entry) in [([1.0, 0.0], north), ([0.0, 1.0], south)] {
            let near = vectors.nearest(&axis, (1, 1), &RowFilter::all()).unwrap().0;
            assert_eq!(near, [(entry, 1.0)]);
        }
        assert_eq!(MODEL.count() - count, texts, "saved vectors are kept where they can be");
        drop(vectors);
        started.running.stop();
    }
}

#[test]
fn steady_questions_delay_the_vectors_and_do_not_prevent_them() {
    static MODEL: CountingModel = CountingModel::new(true);
    let (folder, feed, _) = begin();
    for number in 1..=3 {
        feed.say(number, "north");
    }
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    let index = started.running.index();
    let (is_asking, deadline) = (AtomicBool::new(true), Instant::now() + PATIENCE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while is_asking.load(Ordering::Relaxed) && Instant::now() < deadline {
                index.note_question();
                std::thread::yield_now();
            }
        });
        wait_for_passages(&started, 3);
        is_asking.store(false, Ordering::Relaxed);
    });
    started.running.stop();
}

#[test]
fn a_text_that_cannot_be_embedded_does_not_block_others() {
    static MODEL: CountingModel = CountingModel::new(true);
    let (folder, feed, _) = begin();
    let entries: Vec<EntryId> =
        [(1, "north"), (2, "refused"), (3, "south"), (4, "refused too"), (5, "east")]
            .map(|(number, title)| feed.say(number, title))
            .to_vec();
    let started = start_index(&feed, &folder, model(|| MODEL.loaded()));
    let vectors = wait_for_passages(&started, 3);
    let has_vectors: Vec<bool> = entries.iter().map(|entry| vectors.contains(*entry)).collect();
    assert_eq!(has_vectors, [true, false, true, false, true]);
    drop(vectors);
    started.running.stop();
}
