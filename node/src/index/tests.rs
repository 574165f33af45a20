//! The index when something goes wrong: a crash between two steps, an embedder that is away or
//! refuses a text, a disk that refuses words for a while, a panic of what it stands on. And what
//! comes without a word of the feed: a text becomes due.

use super::document::{Document, Filter};
use super::embed::EmbedError;
use super::mark::Mark;
use super::vectors::{FILE_NAME, Facts, Vectors};
use super::*;
use crate::store::Durability;
use crate::store::rows::ViewRow;
use klnode_crdt::entry::Entry;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::{Memory, Origin};
use klnode_crdt::record::Record;
use klnode_crdt::time::{FUTURE_SKEW_MAX, Hlc};
use klnode_crdt::tombstone::{Grounds, Tombstone};
use klnode_crdt::writer::{Claim, Writer};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
const LIMITS: Limits = Limits { hnsw_entries_min: usize::MAX, hnsw_dead_fraction_max: 0.1 };
/// Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server does with texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    /// It takes all in which it does not say `refused`.
    #[default]
    Well,
    /// It does not answer.
    Away,
    /// It takes none.
    Refusing,
}

/// A server in the test's hand.
#[derive(Debug, Default)]
struct Moody(Mutex<Mood>);

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
struct Feed {
    store: Store,
    key: SecretKey,
}

impl Feed {
    fn new() -> Self {
        Self { store: Store::in_memory(), key: SecretKey::from_bytes(&[7; 32]) }
    }

    fn origin(&self, number: u8) -> Origin {
        let (creator, stamp) = (self.key.author(), Hlc::new(NOW, u16::from(number)));
        let nonce = Nonce::from_bytes([number; 16]);
        let (workspace, memory) = (WorkspaceId::MAIN, Memory::Semantic);
        Origin::Created { creator, stamp, nonce, workspace, memory }
    }

    fn sealed(&self, number: u8, seal: impl FnOnce(Writer<'_>, Origin, Hlc) -> Record) -> Record {
        let (origin, own) = (self.origin(number), Holding::default());
        let (entry, stamp) = (origin.id(), Hlc::new(NOW, 1_000 + u16::from(number)));
        seal(Writer { key: &self.key, boot: Boot(1), entry, own: &own }, origin, stamp)
    }

    fn say(&self, number: u8, title: &str) -> EntryId {
        let record = self.sealed(number, |writer, origin, stamp| {
            let claims = [Claim::Set(Register::TITLE, title.to_owned())];
            writer.claim(&Entry::default(), Some(origin), &claims, stamp).unwrap()
        });
        self.put(number, &record)
    }

    /// Another life of the author says it otherwise, by a clock that is ahead.
    fn say_ahead(&self, number: u8, title: &str, due: WallTime) -> EntryId {
        let record = self.sealed(number, |writer, origin, _| {
            let claims = [Claim::Set(Register::TITLE, title.to_owned())];
            let stamp = Hlc::new(due.plus(FUTURE_SKEW_MAX), 0);
            let writer = Writer { boot: Boot(2), ..writer };
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

    fn forget(&self, number: u8) {
        let tombstone = self.sealed(number, |writer, origin, stamp| {
            writer.forget(Tombstone { origin, grounds: Grounds::Origin }, stamp).unwrap()
        });
        let batch = self.store.batch(Durability::Durable).unwrap();
        batch.put_tombstone(&tombstone, &ViewRow::new(NOW)).unwrap();
        batch.commit().unwrap();
    }

    fn mark(&self, seq: u64) -> Mark {
        Mark::at(self.store.id(), &self.store.snapshot().unwrap(), Seq(seq)).unwrap()
    }

    fn setup(&self, folder: &TempDir, model: &Arc<Moody>) -> Setup {
        let (folder, model) = (folder.path().to_owned(), Arc::clone(model) as Arc<dyn Embedder>);
        Setup { folder, model, limits: LIMITS, own: self.key.author(), now: || NOW }
    }

    /// Opens the vectors in a folder.
    fn meaning(&self, folder: &TempDir, model: &Arc<Moody>) -> Option<(Meaning, Seq)> {
        let model = Arc::clone(model) as Arc<dyn Embedder>;
        let snapshot = self.store.snapshot().unwrap();
        let reading = Reading { own: self.key.author(), now: || NOW };
        Meaning::open(folder.path(), &model, LIMITS, (&self.store, &snapshot), &reading).unwrap()
    }
}

fn begin() -> (TempDir, Feed, Arc<Moody>) {
    (tempfile::tempdir().unwrap(), Feed::new(), Arc::default())
}

fn wakes(head: u64) -> ((watch::Sender<Seq>, watch::Sender<u64>), Wakes) {
    let ((publish, head), (introduce, society)) = (watch::channel(Seq(head)), watch::channel(0));
    ((publish, introduce), Wakes { head, society })
}

fn wait_for(index: &Index, is_so: impl FnMut(&State) -> bool) {
    let mut states = index.watch();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let is_there = runtime.block_on(async {
        let waited = tokio::time::timeout(PATIENCE, states.wait_for(is_so)).await;
        waited.is_ok_and(|state| state.is_ok())
    });
    assert!(is_there, "{:?}", index.state());
}

/// Whether a word leads to an entry.
fn finds(index: &Index, word: &str, entry: EntryId) -> bool {
    let look = index.words();
    let question = look.question(word, &[], &Shares::default()).unwrap();
    let found = look.find(&question, &Filter::default(), 10).unwrap();
    found.iter().any(|place| place.entry == entry)
}

fn wait_until_found(index: &Index, word: &str, entry: EntryId) {
    let deadline = Instant::now() + PATIENCE;
    while !finds(index, word, entry) {
        assert!(Instant::now() < deadline, "{word} is not found: {:?}", index.state());
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
fn numbers(meaning: &Meaning) -> Vec<u8> {
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
fn what_a_crash_left_in_the_words_is_not_said_to_be_wiped_before_it_is() {
    let (folder, feed, model) = begin();
    feed.forget(1);
    let path = folder.path().join("keyword");
    let keyword = Keyword::create(&path).unwrap();
    let mut writer = keyword::Writer::new(&keyword).unwrap();
    for number in 0..2 {
        writer.put(&Document::plain(number, "word")).unwrap();
    }
    writer.commit(&feed.mark(0)).unwrap();
    writer.remove(Document::plain(0, "").entry).unwrap();
    writer.owe_wipe();
    writer.commit(&feed.mark(1)).unwrap();
    drop((keyword, writer));
    Due::default().write(folder.path()).unwrap();
    let (_senders, wakes) = wakes(1);
    let follower = open(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let state = follower.shared.state.borrow().clone();
    assert_eq!((state.keyword, state.wiped), (Seq(1), Seq(0)));
    let running = spawn(follower);
    wait_for(&running.index(), |state| state.wiped == Seq(1));
    running.stop();
    let (keyword, _) = Keyword::open(&path).unwrap().unwrap();
    assert!(!keyword::Writer::new(&keyword).unwrap().owes_wipe());
    assert_eq!(keyword.look().documents(), 1);
}

#[test]
fn what_is_forgotten_leaves_the_vectors_though_the_embedder_is_away() {
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
    assert_eq!(index.state().vectors, Some(Seq(2)), "the others wait for the embedder");
    assert!(holds(&folder, kept) && !holds(&folder, secret));
    running.stop();
}

#[test]
fn an_embedder_that_is_away_stays_the_fault_until_it_has_made_a_vector() {
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
    // Words are gathered and taken in, and a new job is begun: all of that goes well.
    feed.say(2, "second");
    publish.send_replace(Seq(2));
    let mut is_lost = false;
    wait_for(&index, |state| {
        is_lost |= state.fault.is_none();
        state.keyword == Seq(2)
    });
    assert!(!is_lost, "it was said that vectors are being made");
    assert_eq!(index.state().embedder_fault, away);
    model.set(Mood::Well);
    feed.say(3, "third");
    publish.send_replace(Seq(3));
    wait_for(&index, |state| state.vectors == Some(Seq(3)) && state.fault.is_none());
    assert_eq!(index.state().embedder_fault, None);
    running.stop();
}

#[test]
fn vectors_that_no_embedder_keeps_up_are_deleted_when_they_are_met() {
    for identity in ["another model", "moody"] {
        let (folder, feed, model) = begin();
        feed.say(1, "text");
        let old = Vectors::empty(folder.path(), identity, 4, LIMITS);
        old.upsert(EntryId::from_bytes([1; 16]), &[0.5; 4], Facts::default()).unwrap();
        old.checkpoint(b"of no feed").unwrap();
        drop(old);
        fs::write(folder.path().join("vectors-0123456789abcdef.points"), b"").unwrap();
        assert!(feed.meaning(&folder, &model).is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{identity}");
    }
}

#[test]
fn a_removal_is_in_the_file_though_what_came_with_it_could_not_be_embedded() {
    let (folder, feed, model) = begin();
    feed.say(1, "text");
    let embedder = Arc::clone(&model) as Arc<dyn Embedder>;
    let meaning = Meaning::empty(folder.path(), &embedder, LIMITS).unwrap();
    meaning.put(&texts(&[(1, Some("first")), (2, Some("second"))]), &feed.mark(0)).unwrap();
    model.set(Mood::Away);
    let failed = meaning.put(&texts(&[(1, None), (3, Some("third"))]), &feed.mark(1));
    assert!(matches!(failed, Err(MeaningError::Embed(EmbedError::Unreachable { .. }))));
    assert!(!holds(&folder, EntryId::from_bytes([1; 16])));
    drop(meaning);
    // It is whole, at the place where it was, and opened without asking who is away.
    let (meaning, at) = feed.meaning(&folder, &model).unwrap();
    assert_eq!((numbers(&meaning), at), (vec![2], Seq(0)));
    assert!(meaning.fits());
}

#[test]
fn a_text_that_is_refused_for_good_holds_up_no_other() {
    let (folder, feed, model) = begin();
    let embedder = Arc::clone(&model) as Arc<dyn Embedder>;
    let meaning = Meaning::empty(folder.path(), &embedder, LIMITS).unwrap();
    let some = [(1, Some("one")), (2, Some("refused")), (3, Some("three")), (4, Some("four"))];
    meaning.put(&texts(&some), &feed.mark(0)).unwrap();
    assert_eq!(numbers(&meaning), [1, 3, 4]);
    // The vector of another text is none for this one.
    meaning.put(&texts(&[(1, Some("now refused"))]), &feed.mark(0)).unwrap();
    assert_eq!(numbers(&meaning), [3, 4]);
    // A server that refuses everything has nothing against the text.
    model.set(Mood::Refusing);
    let failed = meaning.put(&texts(&[(3, Some("three again")), (5, None)]), &feed.mark(0));
    let status = match failed {
        Err(MeaningError::Embed(EmbedError::Refused { status, .. })) => Some(status),
        _ => None,
    };
    assert_eq!((status, numbers(&meaning)), (Some(400), vec![3, 4]));
}

#[test]
fn what_came_while_words_could_not_be_written_is_found_once_they_can() {
    let (folder, feed, model) = begin();
    let before = feed.say(1, "quartzflute");
    let ((publish, _introduce), wakes) = wakes(1);
    let running = start(feed.setup(&folder, &model), feed.store.clone(), wakes).unwrap();
    let index = running.index();
    wait_for(&index, |state| state.keyword == Seq(1));
    // tantivy lists a file here before it writes it, and no file takes the place of a folder.
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
fn a_text_that_becomes_due_is_found_by_its_words_also_if_that_was_while_nobody_ran() {
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
    assert!(!finds(&index, "quartzflute", first), "it is not shown any more");
    assert!(finds(&index, "xylophone", second) && !finds(&index, "marzipan", second));
    running.stop();
    CLOCK_MS.store(late.as_millis(), Ordering::Relaxed);
    let (_senders, running) = started();
    wait_until_found(&running.index(), "marzipan", second);
    running.stop();
    assert_eq!(Due::read(folder.path()), Some(Due::default()), "nothing is waited for any more");
}

static IS_BROKEN: AtomicBool = AtomicBool::new(true);

fn clock_that_breaks() -> WallTime {
    assert!(!IS_BROKEN.load(Ordering::Relaxed), "the test wants it so");
    NOW
}

#[test]
fn a_panic_is_told_as_a_fault_and_ends_neither_the_index_nor_who_stops_it() {
    let (folder, feed, model) = begin();
    let setup = Setup { now: clock_that_breaks, ..feed.setup(&folder, &model) };
    let ((publish, introduce), wakes) = wakes(0);
    let running = start(setup, feed.store.clone(), wakes).unwrap();
    let index = running.index();
    let has_fallen =
        |state: &State| state.fault.as_deref() == Some("go on: it met something damaged");
    wait_for(&index, has_fallen);
    IS_BROKEN.store(false, Ordering::Relaxed);
    publish.send_replace(Seq(0));
    wait_for(&index, |state| state.fault.is_none());
    IS_BROKEN.store(true, Ordering::Relaxed);
    introduce.send_replace(1);
    wait_for(&index, has_fallen);
    running.stop();
}
