//! A generation of vectors with its embedder, and the job that builds the next generation.
//!
//! A generation is replaced as a whole, by a `Job` on its own thread: because the model changed, or
//! because the store has doubled and the token weights are recomputed. Meanwhile the old generation
//! answers; without one, keyword search alone does. Unusable vectors in the folder are deleted at
//! once, because forgotten entries would not be removed from them.

use super::Shared;
use super::atomic_file::write_whole;
use super::checkpoint::Checkpoint;
use super::cosine_calibration::calibrate;
use super::delayed_reindex::DelayedReindex;
use super::document::Document;
use super::entitlement_file::EntitlementFile;
use super::vectors::{BadVector, CheckpointError, Limits, RowFacts, Vectors};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use klnode_embed::token_weights::TokenWeights;
use klnode_embed::{EmbedError, Embedder};
use klnode_scoring::relevance::Calibration;
use klnode_store::peers::Membership;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Number of texts embedded in one call.
const BATCH_TEXTS: usize = 128;
/// The token weights are first fitted to the store when it holds this many documents by insiders,
/// and again each time that number has doubled: below it, the weights of the training corpus are
/// better.
const FIT_DOCUMENTS_MIN: u64 = 100;
/// A text that every working server accepts.
const PROBE_TEXT: &str = "text";

/// Reasons why vectors could not be built or updated.
#[derive(Debug, thiserror::Error)]
pub enum MeaningError {
    /// The embedder failed.
    #[error("{0}")]
    Embed(#[from] EmbedError),
    /// The embedder returned an invalid vector.
    #[error("{0}")]
    Vector(#[from] BadVector),
    /// The vectors could not be saved.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// The store could not be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The token weights could not be written.
    #[error("The token weights could not be written to {path}: {source}.")]
    Weights {
        /// The weights file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The list of passages could not be written.
    #[error("The list of passages could not be written to {path}: {source}.")]
    Passages {
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// Unusable vectors could not be deleted.
    #[error("The old vectors in {path} could not be deleted: {source}.")]
    Discard {
        /// The index folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The job was cancelled or panicked.
    #[error("Rebuilding the vectors was cancelled or failed.")]
    GivenUp,
}

/// One generation of vectors.
pub struct VectorGeneration {
    /// The embedder of the stored vectors, which also embeds questions.
    pub embedder: Arc<dyn Embedder>,
    /// The stored vectors.
    pub vectors: Vectors,
    /// Maps cosines of this embedder to similarity.
    pub calibration: Calibration,
    /// Number of documents by insiders to which the token weights were fitted; `None` if the
    /// embedder has no weights.
    fitted: Option<u64>,
}

/// The identity and the clock with which the store is read.
#[derive(Clone, Copy, Debug)]
pub struct IndexReader {
    /// The author id of this node.
    pub own: AuthorId,
    /// Returns the current time; tests substitute their own clock.
    pub now: fn() -> WallTime,
}

impl IndexReader {
    /// The membership in a snapshot.
    pub(super) fn membership(&self, snapshot: &Snapshot) -> Result<Membership, Error> {
        Membership::read(snapshot, self.own, (self.now)())
    }
}

impl VectorGeneration {
    /// Opens the vectors in the folder if they belong to this model and this history of the store;
    /// otherwise deletes them. The embedder is not called: the file contains the vector length.
    pub(super) fn open(
        folder: &Path,
        model: &Arc<dyn Embedder>,
        limits: Limits,
        (store, snapshot): (&Store, &Snapshot),
        reading: &IndexReader,
    ) -> Result<Option<(Self, Seq)>, MeaningError> {
        let kept = fs::read(weights_file(folder)).ok();
        let kept = kept.and_then(|bytes| TokenWeights::from_bytes(&bytes).ok());
        let embedder = kept.and_then(|weights| model.resume(weights));
        let embedder = embedder.unwrap_or_else(|| Arc::clone(model));
        let dims = embedder.dims_at_hand().map_or_else(|| Vectors::dims_in(folder), Ok);
        let opened = dims.and_then(|dims| Vectors::open(folder, embedder.identity(), dims, limits));
        let why = match opened {
            Ok((vectors, note)) => match read_note(&note) {
                Some((checkpoint, fitted)) if checkpoint.is_of(store.id(), snapshot)? => {
                    let (membership, now) = (reading.membership(snapshot)?, (reading.now)());
                    let calibration =
                        calibrate(&*embedder, &vectors, (snapshot, &membership), now)?;
                    return Ok(Some((
                        Self { embedder, vectors, calibration, fitted },
                        checkpoint.seq,
                    )));
                }
                _ => "they belong to another history of the store".to_owned(),
            },
            Err(stale) => stale.to_string(),
        };
        match snapshot.head() {
            Seq(0) => tracing::debug!(why, "The store is empty; there are no vectors to build"),
            _ => tracing::info!(why, "Rebuilding the vectors"),
        }
        Self::discard(folder)?;
        Ok(None)
    }

    /// Deletes the vectors in the folder.
    pub(super) fn discard(folder: &Path) -> Result<(), MeaningError> {
        let discarded = Vectors::discard(folder);
        discarded.map_err(|source| MeaningError::Discard { path: folder.into(), source })
    }

    /// The vectors of an empty store; `None` if only a server knows the vector length.
    pub(super) fn empty(folder: &Path, model: &Arc<dyn Embedder>, limits: Limits) -> Option<Self> {
        let vectors = Vectors::empty(folder, model.identity(), model.dims_at_hand()?, limits);
        let fitted = model.weights().map(|_| 0);
        let (embedder, calibration) = (Arc::clone(model), Calibration::BUILT_IN);
        Some(Self { embedder, vectors, calibration, fitted })
    }

    /// True if the stored vectors have the length that the model returns, as far as known: a server
    /// may have switched models under the same name.
    pub(super) fn fits(&self) -> bool {
        self.embedder.dims_at_hand().is_none_or(|dims| dims == self.vectors.dims())
    }

    /// Updates documents and saves the checkpoint. Deleted entries leave the file before the
    /// embedder is called, because it may not answer.
    pub(super) fn put(
        &self,
        documents: &BTreeMap<EntryId, Option<Document>>,
        checkpoint: &Checkpoint,
    ) -> Result<(), MeaningError> {
        let absent = documents.iter().filter(|(_, document)| document.is_none());
        self.erase(absent.map(|(entry, _)| *entry))?;
        let present: Vec<&Document> = documents.values().flatten().collect();
        for batch in present.chunks(BATCH_TEXTS) {
            self.embed(batch)?;
        }
        self.checkpoint(checkpoint)
    }

    /// Removes entries from the vectors and from the file.
    pub(super) fn erase(
        &self,
        entries: impl IntoIterator<Item = EntryId>,
    ) -> Result<(), MeaningError> {
        for entry in entries {
            self.vectors.remove(entry);
        }
        Ok(self.vectors.save()?)
    }

    fn embed(&self, documents: &[&Document]) -> Result<(), MeaningError> {
        let texts: Vec<String> = documents.iter().map(|document| document.meaning()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = match self.embedder.embed(&texts) {
            Err(refusal) if refusal.may_be_of_a_text() => {
                return self.embed_by_halves(documents, &refusal);
            }
            vectors => vectors?,
        };
        for (document, vector) in documents.iter().zip(vectors) {
            self.vectors.upsert(document.entry, &vector, facts(document))?;
        }
        Ok(())
    }

    /// Embeds the two halves of a rejected batch separately, and skips a text that the server
    /// rejects alone: keyword search still finds it, and the other texts do not wait for it.
    fn embed_by_halves(
        &self,
        documents: &[&Document],
        refusal: &EmbedError,
    ) -> Result<(), MeaningError> {
        if let [document] = documents {
            // A server that rejects this text too rejects all requests, so the document is not the
            // cause.
            self.embedder.embed(&[PROBE_TEXT])?;
            tracing::warn!(entry = %document.entry, why = %refusal, "The embedder rejected a text");
            self.vectors.remove(document.entry);
            return Ok(());
        }
        let (first, second) = documents.split_at(documents.len() / 2);
        self.embed(first)?;
        self.embed(second)
    }

    /// Removes entries in memory; the file follows at the next checkpoint.
    pub(super) fn remove_all(&self, entries: &BTreeSet<EntryId>) {
        for entry in entries {
            self.vectors.remove(*entry);
        }
    }

    /// Replaces the vectors in the folder.
    pub(super) fn replace_files(
        &self,
        folder: &Path,
        checkpoint: &Checkpoint,
    ) -> Result<(), MeaningError> {
        let path = weights_file(folder);
        let written = match self.embedder.weights() {
            Some(weights) => write_whole(&path, &weights.to_bytes()),
            None => Ok(()),
        };
        written.map_err(|source| MeaningError::Weights { path, source })?;
        self.checkpoint(checkpoint)
    }

    fn checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), MeaningError> {
        let fitted = self.fitted.map_or("-".to_owned(), |count| count.to_string());
        Ok(self.vectors.checkpoint(format!("{checkpoint} {fitted}").as_bytes())?)
    }

    /// True if the token weights should be fitted again to a store of this many documents.
    pub(super) fn is_outgrown(&self, documents: u64, are_all: bool) -> bool {
        self.fitted.is_some_and(|fitted| is_outgrown(fitted, documents, are_all))
    }
}

/// True if weights fitted to `fitted` documents are outdated: the number of documents has doubled,
/// or has fallen below half, so that most of the fitted texts no longer count. The latter is known
/// only if all documents were counted.
fn is_outgrown(fitted: u64, documents: u64, are_all: bool) -> bool {
    let has_doubled = documents >= FIT_DOCUMENTS_MIN.max(fitted.saturating_mul(2));
    let has_halved = are_all && documents < fitted / 2;
    has_doubled || has_halved
}

/// The facts of a document's rows.
pub(super) fn facts(document: &Document) -> RowFacts {
    let scope = &document.scope;
    RowFacts::new(
        scope.workspace,
        scope.thread.as_deref().unwrap_or_default(),
        scope.kind,
        scope.memory,
        scope.tags.iter().map(String::as_str),
    )
    .of_sub_type(scope.sub_type.as_deref().unwrap_or_default())
}

fn read_note(note: &[u8]) -> Option<(Checkpoint, Option<u64>)> {
    let (checkpoint, fitted) = std::str::from_utf8(note).ok()?.rsplit_once(' ')?;
    Some((checkpoint.parse().ok()?, fitted.parse().ok()))
}

fn weights_file(folder: &Path) -> PathBuf {
    folder.join("weights.bin")
}

/// A finished generation.
pub(super) struct FinishedGeneration {
    /// The embedder and its vectors.
    pub(super) meaning: VectorGeneration,
    /// The feed position up to which they are complete.
    pub(super) checkpoint: Checkpoint,
    /// The entitled authors whose claims they contain.
    pub(super) entitled: EntitlementFile,
    /// The entries that change again at a known time.
    pub(super) due: DelayedReindex,
}

/// A generation being built on its own thread.
pub(super) struct Job {
    thread: JoinHandle<Result<FinishedGeneration, MeaningError>>,
    done: watch::Receiver<bool>,
    counter: Arc<JobCounter>,
}

#[derive(Debug, Default)]
struct JobCounter {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

/// The progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildProgress {
    /// Documents that have vectors.
    pub done: u64,
    /// All documents of the store, as counted when the job started.
    pub total: u64,
}

impl Job {
    /// Starts to embed all texts of the store.
    pub(super) fn start(
        shared: &Arc<Shared>,
        store: &Store,
        reading: IndexReader,
        inside: u64,
    ) -> Self {
        let (publish, done) = watch::channel(false);
        let counter = Arc::new(JobCounter::default());
        counter.total.store(shared.keyword.look().documents(), Ordering::Relaxed);
        let (shared, store, counted) = (Arc::clone(shared), store.clone(), Arc::clone(&counter));
        let thread = std::thread::Builder::new()
            .name("klnode-embed".into())
            .spawn(move || {
                let made = build_generation(&shared, &store, &reading, &counted, inside);
                // An error means that the node is stopping.
                let _ = publish.send(true);
                made
            })
            .expect("the system has room for one more thread");
        Self { thread, done, counter }
    }

    pub(super) fn progress(&self) -> RebuildProgress {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RebuildProgress { done: of(&self.counter.done), total: of(&self.counter.total) }
    }

    pub(super) fn is_finished(&self) -> bool {
        *self.done.borrow() || self.thread.is_finished()
    }

    pub(super) async fn finished(&self) {
        // An error means that the thread has ended, which counts as finished.
        let _ = self.done.clone().wait_for(|done| *done).await;
    }

    /// The result, with the feed position up to which it is complete.
    pub(super) fn finish(self) -> Result<FinishedGeneration, MeaningError> {
        self.thread.join().map_err(|_| MeaningError::GivenUp)?
    }

    /// Cancels the job and waits until it has stopped.
    pub(super) fn cancel(self) {
        self.counter.is_cancelled.store(true, Ordering::Relaxed);
        // The result is no longer needed.
        let _ = self.thread.join();
    }
}

/// Fits the token weights to all texts by insiders, then embeds all texts.
fn build_generation(
    shared: &Shared,
    store: &Store,
    reading: &IndexReader,
    counter: &JobCounter,
    inside: u64,
) -> Result<FinishedGeneration, MeaningError> {
    let snapshot = store.snapshot()?;
    let membership = reading.membership(&snapshot)?;
    let mut texts = Documents::new(&snapshot, &membership, reading, counter)?;
    let refitted = if inside >= FIT_DOCUMENTS_MIN {
        let learnt = texts.by_ref().filter(|document| !document.is_outside);
        shared.model.refit(&mut learnt.map(|document| document.meaning()))
    } else {
        None
    };
    texts.end()?;
    let fitted = shared.model.weights().map(|_| if refitted.is_some() { inside } else { 0 });
    let embedder = refitted.unwrap_or_else(|| Arc::clone(&shared.model));
    let (identity, dims) = (embedder.identity().to_owned(), embedder.dims()?);
    let vectors = Vectors::empty(&shared.folder, &identity, dims, shared.limits);
    let mut meaning =
        VectorGeneration { embedder, vectors, calibration: Calibration::BUILT_IN, fitted };
    let mut texts = Documents::new(&snapshot, &membership, reading, counter)?;
    loop {
        let batch: Vec<Document> = texts.by_ref().take(BATCH_TEXTS).collect();
        if batch.is_empty() {
            break;
        }
        meaning.embed(&batch.iter().collect::<Vec<_>>())?;
        counter.done.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }
    let due = std::mem::take(&mut texts.due);
    texts.end()?;
    let (embedder, now) = (&*meaning.embedder, (reading.now)());
    meaning.calibration = calibrate(embedder, &meaning.vectors, (&snapshot, &membership), now)?;
    let checkpoint = Checkpoint::at(store.id(), &snapshot, snapshot.head())?;
    Ok(FinishedGeneration { meaning, checkpoint, entitled: EntitlementFile::of(&membership), due })
}

/// Iterates over all documents of a store; stops at a fault, which `end` returns.
struct Documents<'a> {
    snapshot: &'a Snapshot,
    membership: &'a Membership,
    reading: &'a IndexReader,
    counter: &'a JobCounter,
    entries: Box<dyn Iterator<Item = Result<EntryId, Error>>>,
    /// The entries that change again at a known time.
    due: DelayedReindex,
    fault: Option<MeaningError>,
}

impl<'a> Documents<'a> {
    fn new(
        snapshot: &'a Snapshot,
        membership: &'a Membership,
        reading: &'a IndexReader,
        counter: &'a JobCounter,
    ) -> Result<Self, MeaningError> {
        let entries = snapshot.entries()?;
        let entries = entries.filter_map(|row| match row {
            Ok((_, row)) if row.is_forgotten || row.is_parked() => None,
            row => Some(row.map(|(entry, _)| entry)),
        });
        let (entries, due, fault) = (Box::new(entries), DelayedReindex::default(), None);
        Ok(Self { snapshot, membership, reading, counter, entries, due, fault })
    }

    fn end(self) -> Result<(), MeaningError> {
        self.fault.map_or(Ok(()), Err)
    }
}

impl Iterator for Documents<'_> {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        loop {
            if self.counter.is_cancelled.load(Ordering::Relaxed) {
                self.fault = Some(MeaningError::GivenUp);
                return None;
            }
            let now = (self.reading.now)();
            let read = self.entries.next()?.and_then(|entry| {
                let read = Document::read_until(self.snapshot, entry, self.membership, now)?;
                let (document, until) = read;
                if let Some(at) = until {
                    self.due.note(at, entry);
                }
                Ok(document)
            });
            match read {
                Ok(Some(document)) => return Some(document),
                Ok(None) | Err(Error::Damaged { .. }) => {}
                Err(error) => {
                    self.fault = Some(error.into());
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_outgrown_when_its_store_doubles_or_halves() {
        for (fitted, documents, are_all, expect) in [
            // Nothing was fitted yet: due from the first hundred documents on.
            (0, 0, true, false),
            (0, 99, true, false),
            (0, 100, true, true),
            (0, 100, false, true),
            (100, 199, true, false),
            (100, 200, true, true),
            // Half of the documents are left, then fewer.
            (1_000, 500, true, false),
            (1_000, 499, true, true),
            (1_000, 0, true, true),
            // An index that is being rebuilt has counted only some documents.
            (1_000, 499, false, false),
            (1_000, 0, false, false),
            (u64::MAX, 5, false, false),
        ] {
            let given = is_outgrown(fitted, documents, are_all);
            assert_eq!(given, expect, "{documents} after {fitted}, all: {are_all}");
        }
    }
}
