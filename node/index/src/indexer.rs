//! The indexer thread: it reads the feed and updates the keyword index and the vectors.
//!
//! The writer never waits for it, and it sends no requests to the writer. Keyword index and vectors
//! each have their own feed position, because an embedder may fail or be slow where tantivy does
//! not; with the built-in embedder both are usually at the same position, and the feed is then read
//! once for both. Some entries change without a feed record, because membership changed or a
//! delayed text became due; these are read again.

use super::checkpoint::Checkpoint;
use super::delayed_reindex::DelayedReindex;
use super::document::Document;
use super::entitlement_file::EntitlementFile;
use super::entry_vectors::{
    FinishedGeneration, IndexReader, Job, RebuildProgress, VectorGeneration,
};
use super::keyword::{self, Keyword};
use super::{IndexError, Shared, Wakes, save_delayed};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{EntryId, StoreId};
use klnode_crdt::time::WallTime;
use klnode_store::peers::Membership;
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Maximum number of feed records processed in one chunk.
const CHUNK_RECORDS_MAX: usize = 4_000;
/// Maximum number of records in one chunk for a slow embedder. New keyword updates and deletions
/// wait for at most one such chunk.
const SLOW_RECORDS_MAX: usize = 256;
/// Text changes wait this long for others, to share a commit; searches read them from the store
/// meanwhile.
const GATHER_TIME: Duration = Duration::from_millis(200);
/// An outgrown generation is replaced after no text has arrived for this long: during an import the
/// next generation would be outgrown before it is ready.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// Without such a pause, it is replaced this long after it was outgrown.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(60);
/// tantivy's writer is released after no text has arrived for this long: it holds several megabytes
/// and three threads.
const WRITER_IDLE_TIME: Duration = Duration::from_secs(5);
/// The delay before a retry after a failure.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// The fault that is reported after a panic of the indexer or of a library.
const PANIC_FAULT: &str = "The indexer panicked; it may have read damaged data.";

/// The state of the indexer thread.
pub(super) struct Indexer {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Store,
    pub(super) wakes: Wakes,
    pub(super) reading: IndexReader,
    /// The entitled authors whose claims the index contains.
    pub(super) entitled: EntitlementFile,
    /// True if `entitled` was compared with the current membership since the last change of either.
    pub(super) is_compared: bool,
    /// The entries to read again, by time.
    pub(super) due: DelayedReindex,
    pub(super) keyword: keyword::KeywordWriter,
    pub(super) keyword_at: Seq,
    pub(super) meaning_at: Seq,
    pub(super) job: Option<Job>,
    /// The time since when a job is due that has not started.
    pub(super) due_since: Option<Instant>,
    /// The time of the last text change.
    pub(super) text_at: Instant,
    /// Text changes wait until then for others, to share a commit.
    pub(super) gather_until: Option<Instant>,
    /// True if the segments of the keyword index are merged.
    pub(super) is_settled: bool,
}

/// The changes in a chunk of the feed.
pub(super) struct FeedChunk {
    /// The checkpoint at its end.
    pub(super) checkpoint: Checkpoint,
    /// The changed entries in their current state; `None` for those that must not be found.
    pub(super) documents: BTreeMap<EntryId, Option<Document>>,
    /// The entries among them that change again at a known time.
    due: DelayedReindex,
    /// The entries with withdrawn or forgotten text, which must leave the files, with the feed
    /// position of the last such record.
    erased: BTreeMap<EntryId, Seq>,
}

/// Follows the feed until stopped. A panic, for example from damaged pages of the store, is
/// reported and retried like any other fault: the interrupted chunk is read from the feed again.
pub(super) fn follow_feed(mut indexer: Indexer, mut stop: oneshot::Receiver<()>) {
    let mut first = Instant::now();
    loop {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a timer needs nothing");
        let run = || runtime.block_on(indexer.run(&mut stop, first));
        if catch_unwind(AssertUnwindSafe(run)).is_ok() {
            break;
        }
        tracing::error!("The indexer panicked, probably on damaged data; restarting it in 10 s");
        indexer.shared.state.send_modify(|state| {
            (state.fault, state.embedder_fault) = (Some(PANIC_FAULT.to_owned()), None);
        });
        first = Instant::now() + RETRY_TIME;
    }
    if let Some(job) = indexer.job.take() {
        job.cancel();
    }
}

impl Indexer {
    /// Follows the feed until stopped, starting at `first` or at the next signal.
    async fn run(&mut self, stop: &mut oneshot::Receiver<()>, first: Instant) {
        let mut wake = Some(first);
        loop {
            let pause = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = &mut *stop => break,
                changed = self.wakes.head.changed() => if changed.is_err() { break },
                changed = self.wakes.membership.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.is_compared = false;
                }
                () = pause => {}
                () = finished(self.job.as_ref()) => {}
                settled = self.keyword.merge_finished() => if let Err(error) = settled {
                    tracing::warn!(error = %error, "Merging the files of the keyword index failed; searches use them unmerged");
                    self.is_settled = true;
                }
            }
            wake = match self.turn() {
                Ok(next) => self.clear_fault(next),
                Err(error) => {
                    tracing::warn!(error = %error, "The indexer failed; searches read new entries from the store; retrying in 10 s");
                    let embedder = error.of_embedder().cloned();
                    self.shared.state.send_modify(|state| {
                        (state.fault, state.embedder_fault) = (Some(error.to_string()), embedder);
                    });
                    Some(Instant::now() + RETRY_TIME)
                }
            };
        }
    }

    /// Clears the fault after a successful turn. A fault of the embedder stays until the embedder
    /// has succeeded: while it has not been called again, or a new job has received no vector from
    /// it, the state shows the fault and not the progress of a rebuild. Returns the time of the
    /// next turn.
    fn clear_fault(&self, next: Option<Instant>) -> Option<Instant> {
        // Only the built-in embedder waits for a pause to refit, and it never fails.
        let is_untried = self.gather_until.is_some()
            || self.job.as_ref().is_some_and(|job| job.progress().done == 0);
        if is_untried && self.shared.state.borrow().embedder_fault.is_some() {
            let again = Instant::now() + RETRY_TIME;
            return Some(next.map_or(again, |next| next.min(again)));
        }
        self.shared.state.send_if_modified(|state| {
            state.embedder_fault = None;
            state.fault.take().is_some()
        });
        next
    }

    /// Performs the work that is due; returns the time of the next turn if no signal arrives.
    fn turn(&mut self) -> Result<Option<Instant>, IndexError> {
        // Take a finished job first: otherwise it would wake the thread again at once.
        self.install_finished_job()?;
        self.complete_pending_work()?;
        let head = *self.wakes.head.borrow_and_update();
        let behind = self.keyword_at.min(self.meaning_at);
        if behind >= head {
            self.gather_until = None;
            if self.is_outdated() {
                self.reindex_if_outdated(&self.store.snapshot()?)?;
            }
            return self.start_background_work();
        }
        let snapshot = self.store.snapshot()?;
        if head.0 - behind.0 <= CHUNK_RECORDS_MAX as u64 {
            let now = Instant::now();
            match self.gather_until {
                Some(at) if at > now => return Ok(Some(at)),
                Some(_) => {}
                // Observations change no text, so the index is up to date.
                None if !has_text(&snapshot, behind)? => {
                    (self.keyword_at, self.meaning_at) = (snapshot.head(), snapshot.head());
                    self.reindex_if_outdated(&snapshot)?;
                    self.publish();
                    return self.start_background_work();
                }
                None => {
                    self.gather_until = Some(now + GATHER_TIME);
                    return Ok(self.gather_until);
                }
            }
        }
        self.gather_until = None;
        let now = (self.reading.now)();
        let membership = self.reading.membership(&snapshot)?;
        let (caught_up, renewed) = (
            self.catch_up(&snapshot, &membership),
            self.reindex_changed(&snapshot, &membership, now),
        );
        caught_up.and(renewed)?;
        self.text_at = Instant::now();
        let rest_at = self.start_background_work()?;
        let is_behind = *self.wakes.head.borrow() > snapshot.head();
        Ok(if is_behind { Some(Instant::now()) } else { rest_at })
    }

    /// Completes an interrupted wipe, and drops vectors that the embedder can no longer extend.
    fn complete_pending_work(&mut self) -> Result<(), IndexError> {
        if self.keyword.is_wipe_pending() {
            self.keyword.wipe()?;
            self.publish();
        }
        if self.shared.meaning().is_some_and(|meaning| !meaning.fits()) {
            tracing::info!(
                "The embedder returns vectors of another length; rebuilding all vectors"
            );
            VectorGeneration::discard(&self.shared.folder)?;
            self.shared.replace_meaning(None);
            self.publish();
        }
        Ok(())
    }

    /// Starts background work when no records are waiting; returns the time of the next turn.
    fn start_background_work(&mut self) -> Result<Option<Instant>, IndexError> {
        let (job_at, settle_at) = (self.start_job_if_due()?, self.merge_segments_if_idle()?);
        let release_at = self.release_writer_if_idle();
        let pause = self.due.pause((self.reading.now)());
        let due_at = pause.map(|pause| Instant::now() + pause);
        Ok(job_at.into_iter().chain(settle_at).chain(release_at).chain(due_at).min())
    }

    /// Merges the segments of the keyword index when no text has arrived for a while.
    fn merge_segments_if_idle(&mut self) -> Result<Option<Instant>, IndexError> {
        if self.is_settled || self.job.is_some() {
            return Ok(None);
        }
        let at = self.text_at + QUIET_TIME;
        if at > Instant::now() {
            return Ok(Some(at));
        }
        self.is_settled = !self.keyword.start_merge()?;
        self.publish();
        Ok(None)
    }

    /// Releases tantivy's writer when no text has arrived for a while and all segments are merged.
    pub(super) fn release_writer_if_idle(&mut self) -> Option<Instant> {
        if !self.is_settled || !self.keyword.holds_writer() {
            return None;
        }
        let at = self.text_at + WRITER_IDLE_TIME;
        if at > Instant::now() {
            return Some(at);
        }
        self.keyword.release_writer();
        None
    }

    /// Processes the feed up to the snapshot. Keyword updates continue while the embedder is
    /// unreachable and do not wait for a slow one: its vectors are computed after all keyword
    /// updates, and yield to new ones.
    fn catch_up(&mut self, snapshot: &Snapshot, membership: &Membership) -> Result<(), IndexError> {
        let is_instant = self.shared.model.is_instant();
        let mut missing = Ok(());
        while self.keyword_at < snapshot.head() {
            let from = self.keyword_at;
            let chunk = self.read(snapshot, membership, from, CHUNK_RECORDS_MAX)?;
            self.erase_vectors(&chunk)?;
            self.update_keywords(&chunk)?;
            self.keyword_at = chunk.checkpoint.seq;
            if is_instant && self.meaning_at == from && missing.is_ok() {
                missing = self.update_vectors(&chunk);
            }
            self.publish();
        }
        missing?;
        let records_max = if is_instant { CHUNK_RECORDS_MAX } else { SLOW_RECORDS_MAX };
        while self.meaning_at < snapshot.head() {
            let chunk = self.read(snapshot, membership, self.meaning_at, records_max)?;
            self.update_vectors(&chunk)?;
            self.publish();
            if !is_instant && *self.wakes.head.borrow() > snapshot.head() {
                break;
            }
        }
        Ok(())
    }

    /// True if entries may have changed without a feed record.
    fn is_outdated(&self) -> bool {
        !self.is_compared || self.due.is_any((self.reading.now)())
    }

    /// Checks for changed membership and due entries, if either is possible.
    fn reindex_if_outdated(&mut self, snapshot: &Snapshot) -> Result<(), IndexError> {
        if !self.is_outdated() {
            return Ok(());
        }
        let now = (self.reading.now)();
        self.reindex_changed(snapshot, &self.reading.membership(snapshot)?, now)
    }

    /// Reads entries again that changed because of membership or because they are due. The
    /// membership was read at or after `now`, because a charter may be due too.
    fn reindex_changed(
        &mut self,
        snapshot: &Snapshot,
        membership: &Membership,
        now: WallTime,
    ) -> Result<(), IndexError> {
        let entitled = EntitlementFile::of(membership);
        let mut entries = self.entitled.changed(&entitled).entries(snapshot)?;
        entries.extend(self.due.due_entries(now));
        let store = self.store.id();
        for part in entries.chunks(CHUNK_RECORDS_MAX) {
            let documents: BTreeMap<EntryId, Option<Document>> =
                part.iter().map(|entry| (*entry, None)).collect();
            let (documents, due) = read_documents(snapshot, membership, documents, now)?;
            let checkpoint = Checkpoint::at(store, snapshot, self.keyword_at)?;
            let chunk = FeedChunk { checkpoint, documents, due, erased: BTreeMap::new() };
            self.update_keywords(&chunk)?;
            if let Some(meaning) = self.shared.meaning() {
                let checkpoint = Checkpoint::at(store, snapshot, self.meaning_at)?;
                meaning.put(&chunk.documents, &checkpoint)?;
            }
            if let Some(passages) = &self.shared.passages {
                passages.erase(part.iter().copied())?;
                self.shared.renew(part.iter().copied());
            }
        }
        self.replace_due(self.due.after(now))?;
        if self.entitled != entitled {
            let path = &self.shared.folder;
            let written = entitled.write(path);
            written.map_err(|source| IndexError::Entitled { path: path.clone(), source })?;
            self.entitled = entitled;
        }
        self.is_compared = true;
        Ok(())
    }

    /// Saves the delayed entries if they changed.
    fn replace_due(&mut self, due: DelayedReindex) -> Result<(), IndexError> {
        if due != self.due {
            self.due = save_delayed(due, &self.shared.folder)?;
        }
        Ok(())
    }

    fn update_keywords(&mut self, chunk: &FeedChunk) -> Result<(), IndexError> {
        // Save before the commit: otherwise a crash in between would lose them.
        self.replace_due(self.due.union(&chunk.due))?;
        for (entry, document) in &chunk.documents {
            match document {
                Some(document) => self.keyword.put(document)?,
                None => self.keyword.remove(*entry)?,
            }
        }
        if !chunk.erased.is_empty() {
            self.keyword.require_wipe();
        }
        self.keyword.commit(&chunk.checkpoint)?;
        self.is_settled = false;
        let tidied =
            if self.keyword.is_wipe_pending() { self.keyword.wipe() } else { self.keyword.tidy() };
        Ok(tidied?)
    }

    /// Removes erased entries from the vectors if the vectors do not reflect the deletion yet. This
    /// runs before the keyword commit, however far the vectors lag: then no index file up to the
    /// keyword position contains erased data, even if the embedder is unreachable.
    fn erase_vectors(&self, chunk: &FeedChunk) -> Result<(), IndexError> {
        if let Some(passages) = &self.shared.passages {
            passages.erase(chunk.erased.keys().copied())?;
        }
        let Some(meaning) = self.shared.meaning() else { return Ok(()) };
        let newer = chunk.erased.iter().filter(|(_, seq)| **seq > self.meaning_at);
        Ok(meaning.erase(newer.map(|(entry, _)| *entry))?)
    }

    fn update_vectors(&mut self, chunk: &FeedChunk) -> Result<(), IndexError> {
        if let Some(meaning) = self.shared.meaning() {
            meaning.put(&chunk.documents, &chunk.checkpoint)?;
        }
        self.meaning_at = chunk.checkpoint.seq;
        Ok(())
    }

    fn publish(&self) {
        let vectors = self.shared.meaning().map(|_| self.meaning_at);
        let keyword = self.keyword_at;
        let due = || RebuildProgress { done: 0, total: self.shared.keyword.look().documents() };
        let rebuild = self.job.as_ref().map(Job::progress);
        let rebuild = rebuild.or_else(|| self.due_since.map(|_| due()));
        self.shared.state.send_modify(|state| {
            (state.keyword, state.vectors, state.rebuild) = (keyword, vectors, rebuild);
            // Vectors are wiped before the keyword commit, and keywords before this publication.
            if !self.keyword.is_wipe_pending() {
                state.wiped = keyword;
            }
            state.is_settled = self.is_settled;
        });
        self.shared.wake_passage_thread();
    }

    /// Starts to recompute all vectors if that is due: the model changed, or the store has doubled
    /// since the token weights were computed. Returns the time of the next check.
    fn start_job_if_due(&mut self) -> Result<Option<Instant>, IndexError> {
        // Texts by outsiders do not count, because the weights are not learnt from them.
        let inside = self.shared.keyword.inside()?;
        let are_all = self.keyword_at >= *self.wakes.head.borrow();
        if self.job.is_some() || !self.shared.is_refit_due(inside, are_all) {
            self.due_since = None;
            return Ok(None);
        }
        let now = Instant::now();
        let due_since = *self.due_since.get_or_insert(now);
        let at = (self.text_at + QUIET_TIME).min(due_since + QUIET_WAIT_MAX);
        // Without any vectors, start at once.
        if at > now && self.shared.meaning().is_some() {
            self.publish();
            return Ok(Some(at));
        }
        self.due_since = None;
        self.job = Some(Job::start(&self.shared, &self.store, self.reading, inside));
        self.publish();
        Ok(None)
    }

    /// Installs the vectors of a finished job.
    fn install_finished_job(&mut self) -> Result<(), IndexError> {
        let Some(job) = self.job.take_if(|job| job.is_finished()) else { return Ok(()) };
        let FinishedGeneration { meaning, checkpoint, entitled, due } = job.finish()?;
        // Entries that became due since the job read them are read again.
        self.replace_due(self.due.union(&due))?;
        // Entries that were forgotten meanwhile may be wiped already and must not come back.
        let snapshot = self.store.snapshot()?;
        meaning.remove_all(&erased_since(&snapshot, checkpoint.seq)?);
        meaning.replace_files(&self.shared.folder, &checkpoint)?;
        self.shared.replace_meaning(Some(meaning));
        self.meaning_at = checkpoint.seq;
        // If membership changed meanwhile, keywords and vectors are both renewed.
        (self.entitled, self.is_compared) = (entitled, false);
        self.publish();
        Ok(())
    }

    fn read(
        &self,
        snapshot: &Snapshot,
        membership: &Membership,
        from: Seq,
        records_max: usize,
    ) -> Result<FeedChunk, Error> {
        let now = (self.reading.now)();
        read_chunk(snapshot, self.store.id(), (from, records_max), membership, now)
    }
}

async fn finished(job: Option<&Job>) {
    match job {
        Some(job) => job.finished().await,
        None => std::future::pending().await,
    }
}

/// Entries with text that was withdrawn or forgotten after a feed position.
fn erased_since(snapshot: &Snapshot, from: Seq) -> Result<BTreeSet<EntryId>, Error> {
    let mut erased = BTreeSet::new();
    for change in snapshot.changes_since(from)? {
        let Some(change) = Error::unless_damaged(change)? else { continue };
        if change.record.header().facet.is_retraction_or_tombstone() {
            erased.insert(change.record.entry());
        }
    }
    Ok(erased)
}

/// True if a record after a feed position can change search results.
fn has_text(snapshot: &Snapshot, from: Seq) -> Result<bool, Error> {
    for change in snapshot.changes_since(from)? {
        // A damaged record may have been text; reading the chunk skips it.
        let change = Error::unless_damaged(change)?;
        if change.is_none_or(|change| change.record.header().facet != Facet::Tally) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn read_chunk(
    snapshot: &Snapshot,
    store: StoreId,
    (from, records_max): (Seq, usize),
    membership: &Membership,
    now: WallTime,
) -> Result<FeedChunk, Error> {
    let mut upto = snapshot.head();
    let (mut documents, mut erased) = (BTreeMap::new(), BTreeMap::new());
    for (count, change) in snapshot.changes_since(from)?.enumerate() {
        // `klnode check` reports a damaged record; the others are indexed.
        let Some(change) = Error::unless_damaged(change)? else { continue };
        let facet = change.record.header().facet;
        if facet.is_retraction_or_tombstone() {
            erased.insert(change.record.entry(), change.seq);
        }
        if facet != Facet::Tally {
            documents.insert(change.record.entry(), None);
        }
        if count + 1 >= records_max {
            upto = change.seq;
            break;
        }
    }
    let (documents, due) = read_documents(snapshot, membership, documents, now)?;
    Ok(FeedChunk { checkpoint: Checkpoint::at(store, snapshot, upto)?, documents, due, erased })
}

pub(super) fn read_documents(
    snapshot: &Snapshot,
    membership: &Membership,
    mut documents: BTreeMap<EntryId, Option<Document>>,
    now: WallTime,
) -> Result<(BTreeMap<EntryId, Option<Document>>, DelayedReindex), Error> {
    let mut due = DelayedReindex::default();
    for (entry, document) in &mut documents {
        let read = Document::read_until(snapshot, *entry, membership, now);
        let (read, until) = Error::unless_damaged(read)?.unwrap_or_default();
        *document = read;
        if let Some(at) = until {
            due.note(at, *entry);
        }
    }
    Ok((documents, due))
}

/// Opens the keyword index. It is rebuilt if it belongs to another history, or if the list of
/// delayed entries is missing.
pub(super) fn open_keyword(
    folder: &Path,
    store: &Store,
    snapshot: &Snapshot,
    has_due: bool,
) -> Result<(Keyword, Seq), IndexError> {
    let path = folder.join("keyword");
    let why = match Keyword::open(&path) {
        Ok(Some((keyword, Some(checkpoint))))
            if has_due && checkpoint.is_of(store.id(), snapshot)? =>
        {
            return Ok((keyword, checkpoint.seq));
        }
        Ok(Some(_)) if !has_due => "the list of delayed entries is missing".to_owned(),
        Ok(Some(_)) => "it belongs to another history of the store".to_owned(),
        Ok(None) => "there is no keyword index".to_owned(),
        Err(error) => error.to_string(),
    };
    match snapshot.head() {
        Seq(0) => tracing::debug!(why, "Creating a keyword index"),
        _ => tracing::info!(why, "Building the keyword index"),
    }
    Ok((Keyword::create(&path)?, Seq(0)))
}
