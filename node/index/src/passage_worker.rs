//! The thread that computes the transformer's vectors in the background.
//!
//! It follows the feed behind the indexer, with a feed position of its own, so that it resumes after
//! a restart where it stopped. It uses a bounded share of one core and pauses while questions come.
//! The indexer wakes it, and erases withdrawn entries itself: an erasure never waits for a text that
//! is being computed. Without this thread, or before it has an entry, search uses the table.

use super::checkpoint::Checkpoint;
use super::document::Document;
use super::indexer::{FeedChunk, read_chunk, read_documents};
use super::passage_vectors::{PassageModel, PassageVectors};
use super::passages;
use super::vector_generation::{IndexReader, MeaningError, RebuildProgress, facts};
use super::{IndexError, Shared};
use klnode_crdt::ids::EntryId;
use klnode_embed::{Embedder, count_tokens};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Number of feed records read at once. Their entries are saved together.
const CHUNK_RECORDS: usize = 32;
/// A longer chunk is saved in between.
const SAVE_TIME: Duration = Duration::from_secs(5);
/// The pause after a question, so that it is not slowed down.
const QUESTION_PAUSE: Duration = Duration::from_millis(200);
/// The delay before a retry after a failure.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// The state of the thread.
pub(super) struct PassageWorker {
    pub(super) shared: Arc<Shared>,
    pub(super) vectors: Arc<PassageVectors>,
    pub(super) model: PassageModel,
    pub(super) store: Store,
    pub(super) reading: IndexReader,
    /// The vectors contain all records up to here.
    pub(super) at: Seq,
    pub(super) is_stopped: Arc<AtomicBool>,
}

/// The running thread.
pub(super) struct RunningWorker {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl RunningWorker {
    pub(super) fn start(worker: PassageWorker) -> Self {
        let is_stopped = Arc::clone(&worker.is_stopped);
        let thread = thread::Builder::new()
            .name("klnode-passages".into())
            .spawn(move || worker.run())
            .expect("the system has room for one more thread");
        Self { is_stopped, thread }
    }

    /// The thread, to wake it.
    pub(super) fn thread(&self) -> Thread {
        self.thread.thread().clone()
    }

    /// Stops after the current text. Unsaved vectors are computed again after the next start.
    pub(super) fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            tracing::error!("The thread for passage vectors panicked while stopping");
        }
    }
}

impl PassageWorker {
    fn run(mut self) {
        let mut embedder = None;
        let mut pending = BTreeSet::new();
        if let Err(error) = self.find_missing(&mut pending) {
            tracing::warn!(%error, "Entries without passage vectors could not be listed; they wait for the next start");
        }
        while !self.is_stopped() {
            let head = self.shared.state.borrow().keyword;
            pending.append(&mut self.shared.take_renewed());
            // The model also serves questions, so it is loaded as soon as there are vectors.
            if head == Seq(0) || (head <= self.at && pending.is_empty() && embedder.is_some()) {
                thread::park();
                continue;
            }
            if embedder.is_none() {
                match (self.model.load)() {
                    Ok(model) => {
                        embedder = Some(Arc::clone(&model.passages));
                        self.vectors.set_model(model);
                        self.publish();
                    }
                    Err(error) => {
                        tracing::error!(%error, "The transformer could not be loaded; searches use the table until the next start");
                        return;
                    }
                }
                continue;
            }
            let Some(embedder) = &embedder else { continue };
            if let Err(error) = self.turn(&**embedder, &mut pending) {
                tracing::warn!(%error, "Computing passage vectors failed; retrying in 10 s");
                self.pause(RETRY_TIME);
            }
            self.publish();
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Entries that have no vectors although their records were processed: they were read again
    /// because of a changed membership, and the node stopped before their texts were embedded.
    fn find_missing(&self, pending: &mut BTreeSet<EntryId>) -> Result<(), Error> {
        if self.at == Seq(0) {
            return Ok(());
        }
        for row in self.store.snapshot()?.entries()? {
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            if !row.is_forgotten && !row.is_parked() && !self.vectors.contains(entry) {
                pending.insert(entry);
            }
        }
        Ok(())
    }

    /// Embeds the pending entries and the next chunk of the feed.
    fn turn(
        &mut self,
        embedder: &dyn Embedder,
        pending: &mut BTreeSet<EntryId>,
    ) -> Result<(), IndexError> {
        self.vectors.begin_reading();
        let snapshot = self.store.snapshot()?;
        let membership = self.reading.membership(&snapshot)?;
        let now = (self.reading.now)();
        if !pending.is_empty() {
            let entries: Vec<EntryId> = pending.iter().copied().take(CHUNK_RECORDS).collect();
            let documents = entries.iter().map(|entry| (*entry, None)).collect();
            let (documents, _) = read_documents(&snapshot, &membership, documents, now)?;
            self.update(embedder, &snapshot, &documents, self.at)?;
            for entry in entries {
                pending.remove(&entry);
            }
            return Ok(());
        }
        let from = (self.at, CHUNK_RECORDS);
        let chunk: FeedChunk = read_chunk(&snapshot, self.store.id(), from, &membership, now)?;
        let is_whole = self.update(embedder, &snapshot, &chunk.documents, self.at)?;
        if is_whole {
            self.at = chunk.checkpoint.seq;
            self.vectors.checkpoint(&chunk.checkpoint)?;
        }
        Ok(())
    }

    /// Embeds documents; false if the node is stopping before all are done.
    fn update(
        &self,
        embedder: &dyn Embedder,
        snapshot: &Snapshot,
        documents: &BTreeMap<EntryId, Option<Document>>,
        at: Seq,
    ) -> Result<bool, IndexError> {
        let absent = documents.iter().filter(|(_, document)| document.is_none());
        self.vectors.erase(absent.map(|(entry, _)| *entry))?;
        let checkpoint = Checkpoint::at(self.store.id(), snapshot, at)?;
        let mut saved = Instant::now();
        for document in documents.values().flatten() {
            if !self.embed(embedder, document)? {
                return Ok(false);
            }
            if saved.elapsed() > SAVE_TIME {
                self.vectors.checkpoint(&checkpoint)?;
                self.publish();
                saved = Instant::now();
            }
        }
        Ok(true)
    }

    /// Embeds the passages of a document; false if the node is stopping.
    fn embed(&self, embedder: &dyn Embedder, document: &Document) -> Result<bool, MeaningError> {
        let content = &document.content;
        let cut = passages::split(content, &count_tokens);
        let texts: Vec<String> =
            cut.iter().map(|passage| passage.meaning(&document.title, content)).collect();
        let digest = self.vectors.digest(&texts);
        if self.vectors.has_text(document.entry, digest) {
            self.vectors.set_facts(document.entry, facts(document));
            return Ok(true);
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in &texts {
            if self.is_stopped() {
                return Ok(false);
            }
            let (start, questions) = (Instant::now(), self.shared.questions());
            vectors.extend(embedder.embed(&[text.as_str()])?);
            self.pause(start.elapsed() * self.model.pause_share);
            while self.shared.questions() != questions && !self.is_stopped() {
                let before = self.shared.questions();
                self.pause(QUESTION_PAUSE);
                if self.shared.questions() == before {
                    break;
                }
            }
        }
        self.vectors.put(document.entry, &vectors, digest, facts(document))?;
        Ok(true)
    }

    /// Waits, or until the node stops.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(rest) = until.checked_duration_since(Instant::now())
            && !self.is_stopped()
        {
            thread::park_timeout(rest);
        }
    }

    fn publish(&self) {
        let done = self.vectors.entries();
        let total = self.shared.keyword.look().documents().max(done);
        let progress = RebuildProgress { done, total };
        self.shared.state.send_if_modified(|state| {
            let is_new = state.passages != Some(progress);
            state.passages = Some(progress);
            is_new
        });
    }
}

impl Shared {
    /// Notes entries that changed without a feed record, for the passage thread.
    pub(super) fn renew(&self, entries: impl IntoIterator<Item = EntryId>) {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
    }

    fn take_renewed(&self) -> BTreeSet<EntryId> {
        mem::take(&mut *self.renewed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
