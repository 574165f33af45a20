//! The thread that computes the transformer's vectors in the background.
//!
//! It follows the feed behind the indexer, with a feed position of its own, so that it resumes after
//! a restart where it stopped. It uses a bounded share of one core and pauses while questions come.
//! The indexer wakes it, and erases withdrawn entries itself: an erasure never waits for a text that
//! is being computed. Without this thread, or before it has an entry, search uses the table.

use super::checkpoint::Checkpoint;
use super::document::Document;
use super::entry_vectors::{IndexReader, MeaningError, RebuildProgress, facts};
use super::indexer::{FeedChunk, read_chunk, read_documents};
use super::passage_splitter;
use super::passage_vectors::{PassageModel, PassageVectors};
use super::{IndexError, Shared};
use klnode_crdt::ids::EntryId;
use klnode_embed::{Embedder, count_tokens};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Number of feed records read at once.
const CHUNK_RECORDS: usize = 32;
/// The shortest time between two saves.
const SAVE_TIME: Duration = Duration::from_secs(5);
/// A save writes all vectors, so the next one waits for at least this multiple of its duration.
const SAVE_SHARE: u32 = 20;
/// The number of attempts to embed an entry until the next start.
const ATTEMPTS_MAX: u8 = 3;
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

/// The work that is waiting: entries to embed besides those of the feed, and vectors to save.
struct Backlog {
    /// Entries to read again.
    pending: BTreeSet<EntryId>,
    /// Failed attempts of entries whose text could not be embedded. They do not block the others.
    failures: BTreeMap<EntryId, u8>,
    /// The position of the unsaved vectors; `None` if everything is saved.
    unsaved: Option<Checkpoint>,
    save_after: Instant,
}

impl Backlog {
    fn new() -> Self {
        let save_after = Instant::now() + SAVE_TIME;
        let (pending, failures) = (BTreeSet::new(), BTreeMap::new());
        Self { pending, failures, unsaved: None, save_after }
    }

    /// The failed entries that may be tried again.
    fn retriable(&self) -> impl Iterator<Item = EntryId> {
        let again = self.failures.iter().filter(|(_, attempts)| **attempts < ATTEMPTS_MAX);
        again.map(|(entry, _)| *entry)
    }

    fn is_save_due(&self) -> bool {
        self.unsaved.is_some() && Instant::now() >= self.save_after
    }

    /// Saves the unsaved vectors.
    fn save(&mut self, vectors: &PassageVectors) -> Result<(), MeaningError> {
        let Some(checkpoint) = self.unsaved else { return Ok(()) };
        let start = Instant::now();
        let saved = vectors.checkpoint(&checkpoint);
        self.save_after = Instant::now() + SAVE_TIME.max(start.elapsed() * SAVE_SHARE);
        saved?;
        self.unsaved = None;
        Ok(())
    }
}

/// The result of embedding a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EmbedOutcome {
    /// The vectors or their facts changed.
    Changed,
    /// The vectors were there already.
    Unchanged,
    /// The node is stopping.
    Stopped,
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

    /// Stops after the current text, and saves the vectors.
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
        let mut backlog = Backlog::new();
        if let Err(error) = self.find_missing(&mut backlog.pending) {
            tracing::warn!(%error, "Entries without passage vectors could not be listed; they wait for the next start");
        }
        self.follow(&mut backlog);
        if let Err(error) = backlog.save(&self.vectors) {
            tracing::warn!(%error, "The last passage vectors are not saved; they are computed again after the next start");
        }
    }

    /// Follows the feed until the node stops.
    fn follow(&mut self, backlog: &mut Backlog) {
        let mut embedder = None;
        while !self.is_stopped() {
            let head = self.shared.state.borrow().keyword;
            backlog.pending.append(&mut self.shared.take_renewed());
            // The model also serves questions, so it is loaded as soon as there are vectors.
            if head == Seq(0)
                || (head <= self.at && backlog.pending.is_empty() && embedder.is_some())
            {
                self.rest(backlog);
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
            if let Err(error) = self.turn(&**embedder, backlog) {
                tracing::warn!(%error, "Computing passage vectors failed; retrying in 10 s");
                self.pause(RETRY_TIME);
            }
            self.publish();
        }
    }

    /// Waits until there is work: new records, failed entries to try again, or vectors to save.
    fn rest(&self, backlog: &mut Backlog) {
        if backlog.is_save_due()
            && let Err(error) = backlog.save(&self.vectors)
        {
            tracing::warn!(%error, "Passage vectors could not be saved; trying again");
        }
        let again: BTreeSet<EntryId> = backlog.retriable().collect();
        if backlog.unsaved.is_some() {
            let rest = backlog.save_after.saturating_duration_since(Instant::now());
            thread::park_timeout(rest);
        } else if again.is_empty() {
            thread::park();
        } else {
            thread::park_timeout(RETRY_TIME);
            backlog.pending.extend(again);
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

    /// Embeds the pending entries or, without any, the next chunk of the feed.
    fn turn(&mut self, embedder: &dyn Embedder, backlog: &mut Backlog) -> Result<(), IndexError> {
        self.vectors.begin_reading();
        let snapshot = self.store.snapshot()?;
        let membership = self.reading.membership(&snapshot)?;
        let now = (self.reading.now)();
        let here = Checkpoint::at(self.store.id(), &snapshot, self.at)?;
        if !backlog.pending.is_empty() {
            let entries: Vec<EntryId> =
                backlog.pending.iter().copied().take(CHUNK_RECORDS).collect();
            let documents = entries.iter().map(|entry| (*entry, None)).collect();
            let (documents, _) = read_documents(&snapshot, &membership, documents, now)?;
            if self.update(embedder, &documents, here, backlog)? {
                backlog.pending.retain(|entry| !entries.contains(entry));
            }
            return Ok(());
        }
        let from = (self.at, CHUNK_RECORDS);
        let chunk: FeedChunk = read_chunk(&snapshot, self.store.id(), from, &membership, now)?;
        if self.update(embedder, &chunk.documents, here, backlog)? {
            self.at = chunk.checkpoint.seq;
            // A position alone is not worth a save: its records are read again after a restart.
            if let Some(unsaved) = &mut backlog.unsaved {
                *unsaved = chunk.checkpoint;
            }
        }
        Ok(())
    }

    /// Embeds documents; false if the node is stopping before all are done. `here` is the position
    /// before them.
    fn update(
        &self,
        embedder: &dyn Embedder,
        documents: &BTreeMap<EntryId, Option<Document>>,
        here: Checkpoint,
        backlog: &mut Backlog,
    ) -> Result<bool, IndexError> {
        let absent = documents.iter().filter(|(_, document)| document.is_none());
        let absent: Vec<EntryId> = absent.map(|(entry, _)| *entry).collect();
        backlog.failures.retain(|entry, _| !absent.contains(entry));
        self.vectors.erase(absent)?;
        for document in documents.values().flatten() {
            match self.embed(embedder, document) {
                Ok(EmbedOutcome::Stopped) => return Ok(false),
                Ok(outcome) => {
                    backlog.failures.remove(&document.entry);
                    if outcome == EmbedOutcome::Changed {
                        backlog.unsaved = Some(here);
                    }
                }
                Err(error) => {
                    let attempts = backlog.failures.entry(document.entry).or_default();
                    *attempts = attempts.saturating_add(1);
                    if backlog.failures.len() == 1 {
                        tracing::warn!(%error, "An entry could not be embedded; trying again later, its words and table vector serve until then");
                    }
                }
            }
            if backlog.is_save_due() {
                backlog.save(&self.vectors)?;
                self.publish();
            }
        }
        Ok(true)
    }

    /// Embeds the passages of a document.
    fn embed(
        &self,
        embedder: &dyn Embedder,
        document: &Document,
    ) -> Result<EmbedOutcome, MeaningError> {
        let content = &document.content;
        let cut = passage_splitter::split(content, &count_tokens);
        let texts: Vec<String> =
            cut.iter().map(|passage| passage.meaning(&document.title, content)).collect();
        let digest = self.vectors.digest(&texts);
        if self.vectors.has_text(document.entry, digest) {
            return Ok(match self.vectors.set_facts(document.entry, facts(document)) {
                true => EmbedOutcome::Changed,
                false => EmbedOutcome::Unchanged,
            });
        }
        let mut vectors = Vec::with_capacity(texts.len());
        for text in &texts {
            if self.is_stopped() {
                return Ok(EmbedOutcome::Stopped);
            }
            let (start, questions) = (Instant::now(), self.shared.questions());
            vectors.extend(embedder.embed(&[text.as_str()])?);
            self.pause(start.elapsed() * self.model.pause_share);
            self.wait_for_questions(questions);
        }
        self.vectors.put(document.entry, &vectors, digest, facts(document))?;
        Ok(EmbedOutcome::Changed)
    }

    /// Pauses while questions come, up to a bound: without it, steady questions would keep new
    /// entries without vectors for ever.
    fn wait_for_questions(&self, mut before: u64) {
        let until = Instant::now() + self.model.pause_max;
        while self.shared.questions() != before && !self.is_stopped() {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            before = self.shared.questions();
            self.pause(QUESTION_PAUSE.min(rest));
        }
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
