//! Tests of the index under faults: a crash between two steps, an embedder that is unreachable or
//! rejects a text, a disk that rejects writes for a while, a panic of a library. Also a change
//! without a feed record: a delayed text becomes due.

use super::checkpoint::Checkpoint;
use super::document::{Document, DocumentFilter};
use super::vectors::{FILE_NAME, RowFacts, Vectors};
use super::*;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::ids::{Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::{FUTURE_SKEW_MAX, Hlc};
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_embed::EmbedError;
use klnode_store::Durability;
use klnode_store::row_types::ViewRow;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
const LIMITS: Limits = Limits { hnsw_entries_min: usize::MAX, hnsw_dead_fraction_max: 0.1 };
/// The time limit of every wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The behaviour of the test server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    /// Accepts all texts except those that contain `refused`.
    #[default]
    Well,
    /// Does not answer.
    Away,
    /// Rejects all texts.
    Refusing,
}

/// An embedder whose behaviour the test controls.
#[derive(Debug, Default)]
pub(super) struct Moody(Mutex<Mood>);

impl Moody {
    fn set(&self, mood: Mood) {
        *self.0.lock().unwrap() = mood;
    }
}

impl Embedder for Moody {
    fn identity(&self) -> &'static str {
        "moody"
    }

    fn dims(&self) -> Result<usize, EmbedError> {
        self.embed(&["dimensions"]).map(|vectors| vectors[0].len())
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (server, mood) = ("test".to_owned(), *self.0.lock().unwrap());
        if mood == Mood::Away {
            return Err(EmbedError::Unreachable { server, why: "it is away".to_owned() });
        }
        if mood == Mood::Refusing || texts.iter().any(|text| text.contains("refused")) {
            return Err(EmbedError::Refused { server, status: 400 });
        }
        Ok(texts.iter().map(|_| vec![0.5; 4]).collect())
    }
}

/// A store of one author, written as the engine would write it.
pub(super) struct Feed {
    pub(super) store: Store,
    key: SecretKey,
}

impl Feed {
    pub(super) fn new() -> Self {
        Self { store: Store::in_memory(), key: SecretKey::from_bytes(&[7; 32]) }
    }

    fn origin(&self, number: u8) -> Origin {
        let (creator, stamp) = (self.key.author(), Hlc::new(NOW, u16::from(number)));
        let nonce = Nonce::from_bytes([number; 16]);
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        Origin::Created { creator, stamp, nonce, workspace, memory }
    }

    fn sealed(
        &self,
        number: u8,
        seal: impl FnOnce(RecordBuilder<'_>, Origin, Hlc) -> Record,
    ) -> Record {
        let (origin, own) = (self.origin(number), LiveRecords::default());
        let (entry, stamp) = (origin.id(), Hlc::new(NOW, 1_000 + u16::from(number)));
        seal(RecordBuilder { key: &self.key, boot: Boot(1), entry, own: &own }, origin, stamp)
    }

    pub(super) fn say(&self, number: u8, title: &str) -> EntryId {
        let record = self.sealed(number, |writer, origin, stamp| {
            let claims = [ClaimEdit::Set(Register::TITLE, title.to_owned())];
            writer.claim(&Entry::default(), Some(origin), &claims, stamp).unwrap()
        });
        self.put(number, &record)
    }

    /// Writes another title by another boot of the author, with a clock that is ahead.
    fn say_ahead(&self, number: u8, title: &str, due: WallTime) -> EntryId {
        let record = self.sealed(number, |writer, origin, _| {
            let claims = [ClaimEdit::Set(Register::TITLE, title.to_owned())];
            let stamp = Hlc::new(due.plus(FUTURE_SKEW_MAX), 0);
            let writer = RecordBuilder { boot: Boot(2), ..writer };
            writer.claim(&Entry::default(), Some(origin), &claims, stamp).unwrap()
        });
        self.put(number, &record)
    }

    fn put(&self, number: u8, record: &Record) -> EntryId {
        let mut row = ViewRow::new(NOW);
        row.learn(&self.origin(number));
        let batch = self.store.batch(Durability::Durable).unwrap();
        batch.put_record(record).unwrap();
        batch.put_view_row(record.entry(), &row).unwrap();
        batch.commit().unwrap();
        record.entry()
    }

    pub(super) fn forget(&self, number: u8) {
        let tombstone = self.sealed(number, |writer, origin, stamp| {
            writer.forget(Tombstone { origin, grounds: Grounds::Origin }, stamp).unwrap()
        });
        let batch = self.store.batch(Durability::Durable).unwrap();
        batch.put_tombstone(&tombstone, &ViewRow::new(NOW)).unwrap();
        batch.commit().unwrap();
    }

    fn checkpoint(&self, seq: u64) -> Checkpoint {
        Checkpoint::at(self.store.id(), &self.store.snapshot().unwrap(), Seq(seq)).unwrap()
    }

    pub(super) fn setup(&self, folder: &TempDir, model: &Arc<Moody>) -> Setup {
        let (folder, model) = (folder.path().to_owned(), Arc::clone(model) as Arc<dyn Embedder>);
        let (own, passages) = (self.key.author(), None);
        Setup { folder, model, passages, limits: LIMITS, own, now: || NOW }
    }

    /// Opens the vectors in a folder.
    fn meaning(&self, folder: &TempDir, model: &Arc<Moody>) -> Option<(VectorGeneration, Seq)> {
        let model = Arc::clone(model) as Arc<dyn Embedder>;
        let snapshot = self.store.snapshot().unwrap();
        let reading = IndexReader { own: self.key.author(), now: || NOW };
        VectorGeneration::open(folder.path(), &model, LIMITS, (&self.store, &snapshot), &reading)
            .unwrap()
    }
}

pub(super) fn begin() -> (TempDir, Feed, Arc<Moody>) {
    (tempfile::tempdir().unwrap(), Feed::new(), Arc::default())
}

pub(super) fn wakes(head: u64) -> ((watch::Sender<Seq>, watch::Sender<u64>), Wakes) {
    let ((publish, head), (introduce, membership)) = (watch::channel(Seq(head)), watch::channel(0));
    ((publish, introduce), Wakes { head, membership })
}

pub(super) fn wait_for(index: &Index, is_so: impl FnMut(&State) -> bool) {
    let mut states = index.watch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let is_there = runtime.block_on(async {
        let waited = tokio::time::timeout(PATIENCE, states.wait_for(is_so)).await;
        waited.is_ok_and(|state| state.is_ok())
    });
    assert!(is_there, "{:?}", index.state());
}

/// True if a search for the word finds the entry.
fn finds(index: &Index, word: &str, entry: EntryId) -> bool {
    let look = index.words();
    let question = look.question(word, &[], &WordFrequencies::default()).unwrap();
    let found = look.find(&question, &DocumentFilter::default(), 10).unwrap();
    found.iter().any(|place| place.entry == entry)
}

fn wait_until_found(index: &Index, word: &str, entry: EntryId) {
    let deadline = Instant::now() + PATIENCE;
    while !finds(index, word, entry) {
        assert!(Instant::now() < deadline, "{word} must be found: {:?}", index.state());
        std::thread::yield_now();
    }
}

fn texts(of: &[(u8, Option<&str>)]) -> BTreeMap<EntryId, Option<Document>> {
    let text = |(number, text): &(u8, Option<&str>)| {
        let document = text.map(|text| Document::plain(*number, text));
        (EntryId::from_bytes([*number; 16]), document)
    };
    of.iter().map(text).collect()
}

/// The numbers of the entries that have vectors.
fn numbers(meaning: &VectorGeneration) -> Vec<u8> {
    let mut numbers: Vec<u8> =
        meaning.vectors.entries().iter().map(|entry| entry.as_bytes()[0]).collect();
    numbers.sort_unstable();
    numbers
}

fn holds(folder: &TempDir, entry: EntryId) -> bool {
    let bytes = fs::read(folder.path().join(FILE_NAME)).unwrap();
    bytes.windows(EntryId::LEN).any(|part| part == entry.as_bytes())
}

#[test]
fn an_interrupted_wipe_is_completed_after_a_crash() {
    let (folder, feed, model) = begin();
    feed.forget(1);
    let path = folder.path().join("keyword");
    let keyword = Keyword::create(&path).unwrap();
    let mut writer = keyword::KeywordWriter::new(&keyword).unwrap();
    for number in 0..2 {
        writer.put(&Document::plain(number, "word")).unwrap();
    }
    writer.commit(&feed.checkpoint(0)).unwrap();
    writer.remove(Document::plain(0, "").entry).unwrap();
    writer.require_wipe();
    writer.commit(&feed.checkpoint(1)).unwrap();
    drop((keyword, writer));
    DelayedReindex::default().write(folder.path()).unwrap();
    let (_senders, wakes) = wakes(1);
    let (indexer, _) = open(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let state = indexer.shared.state.borrow().clone();
    assert_eq!((state.keyword, state.wiped), (Seq(1), Seq(0)));
    let running = spawn(indexer, None);
    wait_for(&running.index(), |state| state.wiped == Seq(1));
    running.stop();
    let (keyword, _) = Keyword::open(&path).unwrap().unwrap();
    assert!(!keyword::KeywordWriter::new(&keyword).unwrap().is_wipe_pending());
    assert_eq!(keyword.look().documents(), 1);
}

#[test]
fn the_writer_of_the_keyword_index_is_released_when_no_text_arrives() {
    let (folder, feed, model) = begin();
    let (_senders, wakes) = wakes(0);
    let (mut indexer, _) = open(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let holds_writer_after = |indexer: &mut Indexer, next_turn: Option<Instant>| {
        assert_eq!(indexer.release_writer_if_idle(), next_turn);
        indexer.keyword.holds_writer()
    };
    let long_ago = Instant::now().checked_sub(PATIENCE).expect("the machine runs for a minute");
    indexer.text_at = long_ago;
    assert!(holds_writer_after(&mut indexer, None), "segments are not merged yet");
    indexer.is_settled = true;
    indexer.text_at = Instant::now() + PATIENCE;
    let next_turn = Some(indexer.text_at + Duration::from_secs(5));
    assert!(holds_writer_after(&mut indexer, next_turn), "more text may arrive");
    indexer.text_at = long_ago;
    assert!(!holds_writer_after(&mut indexer, None));
    indexer.keyword.put(&Document::plain(1, "word")).unwrap();
    indexer.keyword.commit(&feed.checkpoint(0)).unwrap();
    assert!(finds(&Index(Arc::clone(&indexer.shared)), "word", Document::plain(1, "").entry));
}

#[test]
fn forgotten_entries_leave_the_vectors_without_the_embedder() {
    let (folder, feed, model) = begin();
    let (kept, secret) = (feed.say(1, "kept"), feed.say(2, "secret"));
    let ((publish, _introduce), wakes) = wakes(2);
    let running = start(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let index = running.index();
    wait_for(&index, |state| state.keyword == Seq(2) && state.vectors == Some(Seq(2)));
    assert!(holds(&folder, kept) && holds(&folder, secret));
    model.set(Mood::Away);
    feed.say(3, "later");
    feed.forget(2);
    publish.send_replace(Seq(4));
    wait_for(&index, |state| state.wiped == Seq(4));
    assert_eq!(index.state().vectors, Some(Seq(2)), "other texts wait for the embedder");
    assert!(holds(&folder, kept) && !holds(&folder, secret));
    running.stop();
}

#[test]
fn an_embedder_fault_stays_until_a_vector_is_made() {
    let (folder, feed, model) = begin();
    model.set(Mood::Away);
    feed.say(1, "first");
    let ((publish, _introduce), wakes) = wakes(1);
    let running = start(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let index = running.index();
    wait_for(&index, |state| state.fault.is_some());
    let (server, why) = ("test".to_owned(), "it is away".to_owned());
    let away = Some(EmbedError::Unreachable { server, why });
    assert_eq!(index.state().embedder_fault, away);
    // Keyword updates and the start of a new job succeed.
    feed.say(2, "second");
    publish.send_replace(Seq(2));
    let mut is_lost = false;
    wait_for(&index, |state| {
        is_lost |= state.fault.is_none();
        state.keyword == Seq(2)
    });
    assert!(!is_lost, "the fault must stay visible");
    assert_eq!(index.state().embedder_fault, away);
    model.set(Mood::Well);
    feed.say(3, "third");
    publish.send_replace(Seq(3));
    wait_for(&index, |state| state.vectors == Some(Seq(3)) && state.fault.is_none());
    assert_eq!(index.state().embedder_fault, None);
    running.stop();
}

#[test]
fn unusable_vectors_are_deleted_on_open() {
    for identity in ["another model", "moody"] {
        let (folder, feed, model) = begin();
        feed.say(1, "text");
        let old = Vectors::empty(folder.path(), identity, 4, LIMITS);
        old.upsert(EntryId::from_bytes([1; 16]), &[0.5; 4], RowFacts::default()).unwrap();
        old.checkpoint(b"of no feed").unwrap();
        drop(old);
        fs::write(folder.path().join("vectors-0123456789abcdef.points"), b"").unwrap();
        assert!(feed.meaning(&folder, &model).is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{identity}");
    }
}

#[test]
fn a_removal_is_saved_even_if_embedding_fails() {
    let (folder, feed, model) = begin();
    feed.say(1, "text");
    let embedder = Arc::clone(&model) as Arc<dyn Embedder>;
    let meaning = VectorGeneration::empty(folder.path(), &embedder, LIMITS).unwrap();
    meaning.put(&texts(&[(1, Some("first")), (2, Some("second"))]), &feed.checkpoint(0)).unwrap();
    model.set(Mood::Away);
    let failed = meaning.put(&texts(&[(1, None), (3, Some("third"))]), &feed.checkpoint(1));
    assert!(matches!(failed, Err(MeaningError::Embed(EmbedError::Unreachable { .. }))));
    assert!(!holds(&folder, EntryId::from_bytes([1; 16])));
    drop(meaning);
    // The file is intact at its previous position, and opens without calling the embedder.
    let (meaning, at) = feed.meaning(&folder, &model).unwrap();
    assert_eq!((numbers(&meaning), at), (vec![2], Seq(0)));
    assert!(meaning.fits());
}

#[test]
fn a_rejected_text_does_not_block_others() {
    let (folder, feed, model) = begin();
    let embedder = Arc::clone(&model) as Arc<dyn Embedder>;
    let meaning = VectorGeneration::empty(folder.path(), &embedder, LIMITS).unwrap();
    let some = [(1, Some("one")), (2, Some("refused")), (3, Some("three")), (4, Some("four"))];
    meaning.put(&texts(&some), &feed.checkpoint(0)).unwrap();
    assert_eq!(numbers(&meaning), [1, 3, 4]);
    // An outdated vector is removed when the new text is rejected.
    meaning.put(&texts(&[(1, Some("now refused"))]), &feed.checkpoint(0)).unwrap();
    assert_eq!(numbers(&meaning), [3, 4]);
    // If the server rejects all texts, this text is not the cause.
    model.set(Mood::Refusing);
    let failed = meaning.put(&texts(&[(3, Some("three again")), (5, None)]), &feed.checkpoint(0));
    let status = match failed {
        Err(MeaningError::Embed(EmbedError::Refused { status, .. })) => Some(status),
        _ => None,
    };
    assert_eq!((status, numbers(&meaning)), (Some(400), vec![3, 4]));
}

#[test]
fn entries_are_found_after_a_write_fault_ends() {
    let (folder, feed, model) = begin();
    let before = feed.say(1, "quartzflute");
    let ((publish, _introduce), wakes) = wakes(1);
    let running = start(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let index = running.index();
    wait_for(&index, |state| state.keyword == Seq(1));
    // tantivy lists a file here before it writes the file; a folder in its place makes that fail.
    let list = folder.path().join("keyword/.managed.json");
    let aside = folder.path().join("aside");
    fs::rename(&list, &aside).unwrap();
    fs::create_dir(&list).unwrap();
    let during = feed.say(2, "vexedgnome");
    publish.send_replace(Seq(2));
    wait_for(&index, |state| state.fault.is_some());
    fs::remove_dir(&list).unwrap();
    fs::rename(&aside, &list).unwrap();
    let after = feed.say(3, "xylophone");
    publish.send_replace(Seq(3));
    wait_for(&index, |state| state.keyword == Seq(3) && state.fault.is_none());
    for (word, entry) in [("quartzflute", before), ("vexedgnome", during), ("xylophone", after)] {
        assert!(finds(&index, word, entry), "{word}");
    }
    running.stop();
}

static CLOCK_MS: AtomicU64 = AtomicU64::new(NOW.as_millis());

fn clock_in_hand() -> WallTime {
    WallTime::from_millis(CLOCK_MS.load(Ordering::Relaxed))
}

#[test]
fn a_delayed_text_is_found_when_due_even_after_a_restart() {
    let (folder, feed, model) = begin();
    let (soon, late) = (NOW.plus(Duration::from_secs(1)), NOW.plus(Duration::from_secs(3_600)));
    let (first, second) = (feed.say(1, "quartzflute"), feed.say(2, "xylophone"));
    assert_eq!(feed.say_ahead(1, "vexedgnome", soon), first);
    assert_eq!(feed.say_ahead(2, "marzipan", late), second);
    let started = || {
        let (senders, wakes) = wakes(4);
        let setup = Setup { now: clock_in_hand, ..feed.setup(&folder, &model) };
        (senders, start(setup, feed.store.clone(), wakes).unwrap())
    };
    let (_senders, running) = started();
    let index = running.index();
    wait_for(&index, |state| state.keyword == Seq(4) && state.vectors == Some(Seq(4)));
    assert!(finds(&index, "quartzflute", first) && !finds(&index, "vexedgnome", first));
    CLOCK_MS.store(soon.as_millis(), Ordering::Relaxed);
    wait_until_found(&index, "vexedgnome", first);
    assert!(!finds(&index, "quartzflute", first), "the old text is no longer shown");
    assert!(finds(&index, "xylophone", second) && !finds(&index, "marzipan", second));
    running.stop();
    CLOCK_MS.store(late.as_millis(), Ordering::Relaxed);
    let (_senders, running) = started();
    wait_until_found(&running.index(), "marzipan", second);
    running.stop();
    assert_eq!(
        DelayedReindex::read(folder.path()),
        Some(DelayedReindex::default()),
        "no entry is delayed any more"
    );
}

static IS_BROKEN: AtomicBool = AtomicBool::new(true);

fn clock_that_breaks() -> WallTime {
    assert!(!IS_BROKEN.load(Ordering::Relaxed), "the test made the clock panic");
    NOW
}

#[test]
fn a_panic_is_reported_and_does_not_end_the_index() {
    let (folder, feed, model) = begin();
    let setup = Setup { now: clock_that_breaks, ..feed.setup(&folder, &model) };
    let ((publish, introduce), wakes) = wakes(0);
    let running = start(setup, feed.store.clone(), wakes).unwrap();
    let index = running.index();
    let has_panicked =
        |state: &State| state.fault.as_deref().is_some_and(|fault| fault.contains("panicked"));
    wait_for(&index, has_panicked);
    IS_BROKEN.store(false, Ordering::Relaxed);
    publish.send_replace(Seq(0));
    wait_for(&index, |state| state.fault.is_none());
    IS_BROKEN.store(true, Ordering::Relaxed);
    introduce.send_replace(1);
    wait_for(&index, has_panicked);
    running.stop();
}
