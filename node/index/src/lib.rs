//! The search index. It is derived data: if it is deleted, the node rebuilds it from the store.
//!
//! The keyword index ([`keyword`]) and the vectors ([`vectors`], computed by an embedder of
//! [`klnode_embed`]) follow the feed on their own thread (`indexer`). A question uses both in their
//! current state, and reads records that they have not processed from the store: so every search
//! that begins after `add` has returned finds the new entry.

mod atomic_file;
mod checkpoint;
mod cosine_calibration;
mod delayed_reindex;
pub mod document;
mod entitlement_file;
pub mod entry_vectors;
pub mod function_words;
mod indexer;
pub mod keyword;
mod passage_list;
pub mod passage_splitter;
pub mod passage_vectors;
mod passage_worker;
pub mod spelling;
pub mod tokenizer;
pub mod vectors;
pub mod word_frequency;

#[cfg(test)]
mod passage_tests;
#[cfg(test)]
mod tests;

use delayed_reindex::DelayedReindex;
use entitlement_file::EntitlementFile;
use entry_vectors::{IndexReader, MeaningError, RebuildProgress, VectorGeneration};
use indexer::Indexer;
use keyword::{Keyword, KeywordError};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use klnode_embed::Embedder;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot, Store};
use passage_vectors::{PassageModel, PassageVectors};
use passage_worker::{PassageWorker, RunningWorker};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::{JoinHandle, Thread};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use vectors::Limits;
use word_frequency::WordFrequencies;

/// Reasons why the index could not be opened or updated.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The folder could not be created.
    #[error("The index folder {path} could not be created: {source}.")]
    Folder {
        /// The index folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The store could not be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The keyword index could not be written.
    #[error("{0}")]
    Keyword(#[from] KeywordError),
    /// The vectors could not be written.
    #[error("{0}")]
    Meaning(#[from] MeaningError),
    /// The list of entitled authors could not be saved.
    #[error("The index could not save the list of entitled authors in {path}: {source}.")]
    Entitled {
        /// The index folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The list of entries to read again later could not be saved.
    #[error("The index could not save the list of delayed entries in {path}: {source}.")]
    Due {
        /// The index folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

impl IndexError {
    /// The error of the embedder, if that is the cause.
    fn of_embedder(&self) -> Option<&klnode_embed::EmbedError> {
        match self {
            Self::Meaning(MeaningError::Embed(error)) => Some(error),
            _ => None,
        }
    }
}

/// The progress and health of the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The feed position of the keyword index.
    pub keyword: Seq,
    /// The feed position of the vectors; `None` if there are none yet.
    pub vectors: Option<Seq>,
    /// No file of the index contains data that was withdrawn or forgotten up to this feed position.
    pub wiped: Seq,
    /// Progress of a vector rebuild; `None` if none is running.
    pub rebuild: Option<RebuildProgress>,
    /// The entries with vectors of the transformer, of all; `None` without a transformer.
    pub passages: Option<RebuildProgress>,
    /// True if the segments of the keyword index are merged, so that no background work is left.
    pub is_settled: bool,
    /// The fault that stops the index; `None` if it is healthy. The index retries by itself.
    pub fault: Option<String>,
    /// The error of the embedder if it caused the fault; the index files are then undamaged.
    pub embedder_fault: Option<klnode_embed::EmbedError>,
}

/// The inputs to open an index.
pub struct Setup {
    /// The folder of the index files.
    pub folder: PathBuf,
    /// The model that computes vectors.
    pub model: Arc<dyn Embedder>,
    /// The transformer whose vectors follow in the background; `None` to do without.
    pub passages: Option<PassageModel>,
    /// The thresholds from which a graph replaces the exact scan.
    pub limits: Limits,
    /// The author id of this node.
    pub own: AuthorId,
    /// Returns the current time; tests substitute their own clock.
    pub now: fn() -> WallTime,
}

/// The signals that wake the indexer. It reads the changes from the store.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// The head of the feed.
    pub head: watch::Receiver<Seq>,
    /// Bumped when membership changes without a feed record.
    pub membership: watch::Receiver<u64>,
}

struct Shared {
    folder: PathBuf,
    limits: Limits,
    model: Arc<dyn Embedder>,
    keyword: Keyword,
    meaning: RwLock<Option<Arc<VectorGeneration>>>,
    passages: Option<Arc<PassageVectors>>,
    /// Entries that changed without a feed record, for the passage thread.
    renewed: Mutex<BTreeSet<EntryId>>,
    passage_thread: OnceLock<Thread>,
    shares: OnceLock<WordFrequencies>,
    questions: AtomicU64,
    state: watch::Sender<State>,
}

impl Shared {
    fn meaning(&self) -> Option<Arc<VectorGeneration>> {
        self.meaning.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_meaning(&self, meaning: Option<VectorGeneration>) {
        let mut place = self.meaning.write().unwrap_or_else(PoisonError::into_inner);
        *place = meaning.map(Arc::new);
    }

    /// The number of questions so far.
    fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// Tells the passage thread that the index has processed more records.
    fn wake_passage_thread(&self) {
        if let Some(thread) = self.passage_thread.get() {
            thread.unpark();
        }
    }

    fn is_refit_due(&self, documents: u64, are_all: bool) -> bool {
        self.meaning().is_none_or(|meaning| meaning.is_outgrown(documents, are_all))
    }
}

/// A handle for readers; cheap to clone.
#[derive(Clone)]
pub struct Index(Arc<Shared>);

impl Index {
    /// The current state of the keyword index.
    pub fn words(&self) -> keyword::KeywordReader {
        self.0.keyword.look()
    }

    /// The built-in word frequencies, used before the store has enough texts. Loaded on first use.
    pub fn shares(&self) -> &WordFrequencies {
        self.0.shares.get_or_init(|| WordFrequencies::built_in().unwrap_or_default())
    }

    /// The current vectors; `None` while the first ones are being computed.
    pub fn meaning(&self) -> Option<Arc<VectorGeneration>> {
        self.0.meaning()
    }

    /// The transformer's vectors; `None` without a transformer.
    pub fn passages(&self) -> Option<Arc<PassageVectors>> {
        self.0.passages.clone()
    }

    /// Counts a question of a waiting caller.
    pub fn note_question(&self) {
        self.0.questions.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of questions so far. Background work compares it to detect idle time.
    pub fn questions(&self) -> u64 {
        self.0.questions()
    }

    /// Ends all running calls to the embedder and makes later ones fail, so that a slow server does
    /// not delay the shutdown of the node.
    pub fn leave_embedder(&self) {
        self.0.model.stop();
    }

    /// The current progress and health.
    pub fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    /// A receiver of progress and health.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }
}

/// A running index with its thread.
pub struct Running {
    index: Index,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    passages: Option<RunningWorker>,
}

/// Opens the index of a store, or creates it, and starts to follow the feed. Missing data is built
/// in the background, and this function does not wait for it.
pub fn start(setup: Setup, store: Store, wakes: Wakes) -> Result<Running, IndexError> {
    let model = setup.passages.clone();
    let (indexer, passages_at) = open(setup, store, wakes)?;
    let worker = indexer.shared.passages.clone().zip(model).map(|(vectors, model)| {
        let (shared, store) = (Arc::clone(&indexer.shared), indexer.store.clone());
        let (reading, is_stopped) = (indexer.reading, Arc::new(AtomicBool::new(false)));
        PassageWorker { shared, vectors, model, store, reading, at: passages_at, is_stopped }
    });
    let passages = worker.map(RunningWorker::start);
    if let Some(worker) = &passages {
        // The cell is new, so it is empty.
        let _ = indexer.shared.passage_thread.set(worker.thread());
    }
    Ok(spawn(indexer, passages))
}

/// The indexer, and the feed position of the transformer's vectors.
fn open(setup: Setup, store: Store, wakes: Wakes) -> Result<(Indexer, Seq), IndexError> {
    let Setup { folder, model, passages, limits, own, now } = setup;
    make_folder(&folder)?;
    let snapshot = store.snapshot()?;
    let noted = DelayedReindex::read(&folder);
    let (keyword, keyword_at) = indexer::open_keyword(&folder, &store, &snapshot, noted.is_some())?;
    let due = noted.map_or_else(|| save_delayed(DelayedReindex::default(), &folder), Ok)?;
    let writer = keyword::KeywordWriter::new(&keyword)?;
    let reading = IndexReader { own, now };
    let opened = VectorGeneration::open(&folder, &model, limits, (&store, &snapshot), &reading)?;
    let (meaning, meaning_at) = match opened {
        Some((meaning, at)) => (Some(meaning), at),
        None if snapshot.head() == Seq(0) => {
            (VectorGeneration::empty(&folder, &model, limits), Seq(0))
        }
        // A job computes them; until it is done there are neither vectors nor files to update.
        None => (None, snapshot.head()),
    };
    let (passages, passages_at) =
        open_passages(&folder, passages.as_ref(), limits, (&store, &snapshot))?;
    drop(snapshot);
    let entitled = EntitlementFile::read(&folder, own);
    let state = State {
        keyword: keyword_at,
        vectors: meaning.as_ref().map(|_| meaning_at),
        // The last process may have crashed before it wiped deleted data.
        wiped: if writer.is_wipe_pending() { Seq(0) } else { keyword_at },
        passages: passages.as_ref().map(|vectors| {
            let (done, documents) = (vectors.entries(), keyword.look().documents());
            RebuildProgress { done, total: documents.max(done) }
        }),
        ..State::default()
    };
    let shared = Arc::new(Shared {
        folder,
        limits,
        model,
        keyword,
        meaning: RwLock::new(meaning.map(Arc::new)),
        passages,
        renewed: Mutex::default(),
        passage_thread: OnceLock::new(),
        shares: OnceLock::new(),
        questions: AtomicU64::new(0),
        state: watch::Sender::new(state),
    });
    let indexer = Indexer {
        shared,
        store,
        wakes,
        reading,
        entitled,
        is_compared: false,
        due,
        keyword: writer,
        keyword_at,
        meaning_at,
        job: None,
        due_since: None,
        text_at: Instant::now(),
        gather_until: None,
        is_settled: false,
    };
    Ok((indexer, passages_at))
}

/// Opens the transformer's vectors with their feed position. Those of another model or another
/// history are deleted.
fn open_passages(
    folder: &Path,
    model: Option<&PassageModel>,
    limits: Limits,
    (store, snapshot): (&Store, &Snapshot),
) -> Result<(Option<Arc<PassageVectors>>, Seq), IndexError> {
    let folder = folder.join(passage_vectors::FOLDER_NAME);
    if let Some(model) = model
        && let Some((vectors, checkpoint)) = PassageVectors::open(&folder, model, limits)
        && checkpoint.is_of(store.id(), snapshot)?
    {
        return Ok((Some(Arc::new(vectors)), checkpoint.seq));
    }
    PassageVectors::discard(&folder)?;
    let Some(model) = model else { return Ok((None, Seq(0))) };
    make_folder(&folder)?;
    let random = || RandomState::new().hash_one(()).to_le_bytes();
    let salt: Vec<u8> = [random(), random()].concat();
    let salt = salt.try_into().expect("two numbers have 16 bytes");
    Ok((Some(Arc::new(PassageVectors::empty(&folder, model, limits, salt))), Seq(0)))
}

fn spawn(indexer: Indexer, passages: Option<RunningWorker>) -> Running {
    let index = Index(Arc::clone(&indexer.shared));
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("klnode-index".into())
        .spawn(move || indexer::follow_feed(indexer, stopped))
        .expect("the system has room for one more thread");
    Running { index, stop, thread, passages }
}

impl Running {
    /// A handle for readers.
    pub fn index(&self) -> Index {
        self.index.clone()
    }

    /// Stops the thread. Unsaved work is repeated from the feed at the next start.
    pub fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        self.index.leave_embedder();
        if let Some(worker) = self.passages {
            worker.stop();
        }
        // Continue after a panic: other components must still be stopped, and the index can be
        // rebuilt.
        if self.thread.join().is_err() {
            tracing::error!("The indexer panicked while stopping");
        }
    }
}

/// Saves the delayed entries in the folder and returns them.
fn save_delayed(due: DelayedReindex, folder: &Path) -> Result<DelayedReindex, IndexError> {
    let noted = due.write(folder);
    noted.map_err(|source| IndexError::Due { path: folder.into(), source })?;
    Ok(due)
}

fn make_folder(path: &Path) -> Result<(), IndexError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| IndexError::Folder { path: path.into(), source })
}
