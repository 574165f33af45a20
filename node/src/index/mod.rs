//! What makes entries findable. Disposable: delete it and it is built again from the store.
//!
//! Words ([`keyword`]) and vectors ([`vectors`], made by an embedder of [`embed`]) follow the feed
//! on a thread of their own (`follow`). A question looks at both as they stand, and reads what
//! they have not yet taken in from the store itself: so an entry is found by every search that
//! begins after `add` has returned.

mod calibrate;
pub mod document;
mod due;
pub mod embed;
mod entitled;
mod follow;
pub mod keyword;
mod mark;
pub mod meaning;
pub mod shares;
pub mod spelling;
pub mod vectors;
pub mod words;

#[cfg(test)]
mod tests;

use crate::store::rows::Seq;
use crate::store::{Error, Store};
use due::Due;
use embed::Embedder;
use entitled::Entitled;
use follow::Follower;
use keyword::{Keyword, KeywordError};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use meaning::{Meaning, MeaningError, Progress, Reading};
use shares::Shares;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use vectors::Limits;

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The folder cannot be made.
    #[error("make the index folder {path}: {source}")]
    Folder {
        /// Where.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The words cannot be written.
    #[error("{0}")]
    Keyword(#[from] KeywordError),
    /// The vectors cannot be written.
    #[error("{0}")]
    Meaning(#[from] MeaningError),
    /// It cannot be noted whose words it was made of.
    #[error("note who is entitled in {path}: {source}")]
    Entitled {
        /// Where.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// It cannot be noted what is to be read anew, and when.
    #[error("note what becomes due in {path}: {source}")]
    Due {
        /// Where.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

impl IndexError {
    /// What the embedder could not do, where the failure is the embedder's.
    fn of_embedder(&self) -> Option<&embed::EmbedError> {
        match self {
            Self::Meaning(MeaningError::Embed(error)) => Some(error),
            _ => None,
        }
    }
}

/// How far the index is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Words are taken in up to here.
    pub keyword: Seq,
    /// Vectors are taken in up to here; none if there are none yet.
    pub vectors: Option<Seq>,
    /// Nothing that was taken back or forgotten up to here is left in any file of the index.
    pub wiped: Seq,
    /// Vectors are being made anew.
    pub rebuild: Option<Progress>,
    /// Words stand in as few segments as they should: nothing is left to do in quiet.
    pub is_settled: bool,
    /// Why it stands still, if it does. It tries again by itself.
    pub fault: Option<String>,
    /// What the embedder could not do, where that is the fault: then nothing of the index is damaged.
    pub embedder_fault: Option<embed::EmbedError>,
}

/// What the index is made with.
pub struct Setup {
    /// Where it keeps its files.
    pub folder: PathBuf,
    /// The model that makes vectors.
    pub model: Arc<dyn Embedder>,
    /// When a graph takes over from the exact scan.
    pub limits: Limits,
    /// This node.
    pub own: AuthorId,
    /// What the clock says.
    pub now: fn() -> WallTime,
}

/// What wakes it. What has happened it reads from the store.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// The newest place in the feed.
    pub head: watch::Receiver<Seq>,
    /// Changes whenever it may have become another who is who without a record.
    pub society: watch::Receiver<u64>,
}

struct Shared {
    folder: PathBuf,
    limits: Limits,
    model: Arc<dyn Embedder>,
    keyword: Keyword,
    meaning: RwLock<Option<Arc<Meaning>>>,
    shares: OnceLock<Shares>,
    questions: AtomicU64,
    state: watch::Sender<State>,
}

impl Shared {
    fn meaning(&self) -> Option<Arc<Meaning>> {
        self.meaning.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_meaning(&self, meaning: Option<Meaning>) {
        let mut place = self.meaning.write().unwrap_or_else(PoisonError::into_inner);
        *place = meaning.map(Arc::new);
    }

    fn is_refit_due(&self, documents: u64, are_all: bool) -> bool {
        self.meaning().is_none_or(|meaning| meaning.is_outgrown(documents, are_all))
    }
}

/// A reader's end. Cheap to clone.
#[derive(Clone)]
pub struct Index(Arc<Shared>);

impl Index {
    /// The words as they stand.
    pub fn words(&self) -> keyword::Look {
        self.0.keyword.look()
    }

    /// How common words are before the store has said it. Made when the first question comes.
    pub fn shares(&self) -> &Shares {
        self.0.shares.get_or_init(|| Shares::built_in().unwrap_or_default())
    }

    /// The vectors as they stand; none while the first are in the making.
    pub fn meaning(&self) -> Option<Arc<Meaning>> {
        self.0.meaning()
    }

    /// Somebody asks something, and waits for it.
    pub fn note_question(&self) {
        self.0.questions.fetch_add(1, Ordering::Relaxed);
    }

    /// How many questions there have been: whoever works in quiet looks whether it is.
    pub fn questions(&self) -> u64 {
        self.0.questions.load(Ordering::Relaxed)
    }

    /// Ends every call to an embedder that is under way, and makes each later one fail: the node
    /// stops, and nobody who waits for a server holds it up.
    pub fn leave_embedder(&self) {
        self.0.model.stop();
    }

    /// How far it is.
    pub fn state(&self) -> State {
        self.0.state.borrow().clone()
    }

    /// How far it is, from now on.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.0.state.subscribe()
    }
}

/// An index at work.
pub struct Running {
    index: Index,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Opens the index of a store, or begins it anew, and follows the feed. What is missing is built
/// in the background; this does not wait for it.
pub fn start(setup: Setup, store: Store, wakes: Wakes) -> Result<Running, IndexError> {
    Ok(spawn(open(setup, store, wakes)?))
}

fn open(setup: Setup, store: Store, wakes: Wakes) -> Result<Follower, IndexError> {
    let Setup { folder, model, limits, own, now } = setup;
    make_folder(&folder)?;
    let snapshot = store.snapshot()?;
    let noted = Due::read(&folder);
    let (keyword, keyword_at) = follow::open_keyword(&folder, &store, &snapshot, noted.is_some())?;
    let due = noted.map_or_else(|| note(Due::default(), &folder), Ok)?;
    let writer = keyword::Writer::new(&keyword)?;
    let reading = Reading { own, now };
    let opened = Meaning::open(&folder, &model, limits, (&store, &snapshot), &reading)?;
    let (meaning, meaning_at) = match opened {
        Some((meaning, at)) => (Some(meaning), at),
        None if snapshot.head() == Seq(0) => (Meaning::empty(&folder, &model, limits), Seq(0)),
        // A job makes them; until it is done there is nothing to keep up, and no file of any.
        None => (None, snapshot.head()),
    };
    drop(snapshot);
    let entitled = Entitled::read(&folder, own);
    let state = State {
        keyword: keyword_at,
        vectors: meaning.as_ref().map(|_| meaning_at),
        // What the last process was to wipe and did not is still there.
        wiped: if writer.owes_wipe() { Seq(0) } else { keyword_at },
        ..State::default()
    };
    let shared = Arc::new(Shared {
        folder,
        limits,
        model,
        keyword,
        meaning: RwLock::new(meaning.map(Arc::new)),
        shares: OnceLock::new(),
        questions: AtomicU64::new(0),
        state: watch::Sender::new(state),
    });
    Ok(Follower {
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
    })
}

fn spawn(follower: Follower) -> Running {
    let index = Index(Arc::clone(&follower.shared));
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("klnode-index".into())
        .spawn(move || follow::follow(follower, stopped))
        .expect("the system has room for one more thread");
    Running { index, stop, thread }
}

impl Running {
    /// A reader's end.
    pub fn index(&self) -> Index {
        self.index.clone()
    }

    /// Ends the thread. What it has not written down it reads again from the feed.
    pub fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        self.index.leave_embedder();
        // Others have yet to be stopped, and lose nothing by it: what is here is built again.
        if self.thread.join().is_err() {
            tracing::error!("the index fell over at its end");
        }
    }
}

/// Notes in the folder what becomes due, and returns it.
fn note(due: Due, folder: &Path) -> Result<Due, IndexError> {
    let noted = due.write(folder);
    noted.map_err(|source| IndexError::Due { path: folder.into(), source })?;
    Ok(due)
}

fn make_folder(path: &Path) -> Result<(), IndexError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| IndexError::Folder { path: path.into(), source })
}
