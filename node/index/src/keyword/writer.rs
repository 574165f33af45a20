//! The write side of the keyword index. There is one writer at a time, owned by the indexer.
//!
//! A deleted document stays in the files of its segment until the segment is merged. That is not
//! enough for forgotten entries, so [`Writer::wipe`] merges every segment with deletions and
//! removes the old files. The commit itself records that a wipe is pending
//! ([`Writer::require_wipe`]), so that it is completed after a crash.

use super::query::texts;
use super::{Keyword, KeywordError, LAYOUT, SchemaFields, terms_of};
use crate::checkpoint::Checkpoint;
use crate::document::Document;
use klnode_crdt::ids::EntryId;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::NoMergePolicy;
use tantivy::{FutureResult, IndexWriter, TantivyDocument, Term};

/// The write buffer; tantivy's minimum.
const MEMORY_BYTES: usize = 15_000_000;

/// Number of segments from which small ones are merged.
const SEGMENTS_MAX: usize = 12;
/// Number of the smallest segments that are then merged into one.
const MERGED_SEGMENTS: usize = 8;
/// In background merging, a segment is merged with all smaller ones once these together have at
/// least a quarter (1/4) of its size: so a document is rewritten a few times while the store
/// doubles, and not at every change.
const MERGE_SIZE_RATIO: u32 = 4;

/// Files in use by a question cannot be deleted; most questions take milliseconds.
const WIPE_PAUSE: Duration = Duration::from_millis(20);
const WIPE_TRIES_MAX: usize = 500;
/// tantivy's list of the files of the index.
const META_FILE: &str = "meta.json";
/// The suffix of a commit payload while a wipe is pending. It may remain after the wipe: the files
/// show whether work is left.
const UNWIPED: &str = " unwiped";

/// Adds and removes documents.
pub struct KeywordWriter {
    keyword: Keyword,
    /// `None` after a failure or a release, until the next operation.
    writer: Option<IndexWriter>,
    /// A background merge in progress.
    merge_in_progress: Option<FutureResult<Option<SegmentMeta>>>,
    /// True if removed documents must leave the files and a wipe is pending.
    is_wipe_pending: bool,
}

impl KeywordWriter {
    /// Creates the only writer of an index.
    pub fn new(keyword: &Keyword) -> Result<Self, KeywordError> {
        let writer = keyword.writer().map_err(|source| keyword.failed(source))?;
        let is_wipe_pending = keyword.is_wipe_pending().map_err(|source| keyword.failed(source))?;
        Ok(Self {
            keyword: keyword.clone(),
            writer: Some(writer),
            merge_in_progress: None,
            is_wipe_pending,
        })
    }

    /// Runs an operation on tantivy's writer. A writer that failed is dropped: it may have lost its
    /// indexing thread, and would then commit without the documents and report success.
    fn with_writer<T>(
        &mut self,
        operation: impl FnOnce(&Keyword, &mut IndexWriter) -> tantivy::Result<T>,
    ) -> Result<T, KeywordError> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.keyword.writer().map_err(|source| self.keyword.failed(source))?,
        };
        match operation(&self.keyword, &mut writer) {
            Ok(done) => {
                self.writer = Some(writer);
                Ok(done)
            }
            Err(source) => {
                // Wait for a running merge: otherwise it would end while the next writer is active.
                if let Some(merge_in_progress) = self.merge_in_progress.take() {
                    let _ = wait(merge_in_progress);
                }
                Err(self.keyword.failed(source))
            }
        }
    }

    /// Adds a document and replaces its previous version.
    pub fn put(&mut self, document: &Document) -> Result<(), KeywordError> {
        self.remove(document.entry)?;
        let SchemaFields { id, high, low, text, outside, scope } = self.keyword.fields;
        let text = if document.is_outside { outside } else { text };
        let mut row = TantivyDocument::default();
        let bytes = u128::from_be_bytes(*document.entry.as_bytes());
        row.add_bytes(id, document.entry.as_bytes());
        row.add_u64(high, (bytes >> 64) as u64);
        row.add_u64(low, bytes as u64);
        for part in texts(document) {
            row.add_text(text, part);
        }
        for term in terms_of(document) {
            row.add_text(scope, term);
        }
        self.with_writer(|_, writer| {
            writer.add_document(row)?;
            Ok(())
        })
    }

    /// Removes a document.
    pub fn remove(&mut self, entry: EntryId) -> Result<(), KeywordError> {
        let term = Term::from_field_bytes(self.keyword.fields.id, entry.as_bytes());
        self.with_writer(|_, writer| {
            writer.delete_term(term);
            Ok(())
        })
    }

    /// Marks that documents removed by the next commit must leave the files too.
    pub fn require_wipe(&mut self) {
        self.is_wipe_pending = true;
    }

    /// True if a wipe is pending, from this process or the last.
    pub fn is_wipe_pending(&self) -> bool {
        self.is_wipe_pending
    }

    /// Makes all changes durable and visible, with their checkpoint.
    pub fn commit(&mut self, checkpoint: &Checkpoint) -> Result<(), KeywordError> {
        let unwiped = if self.is_wipe_pending { UNWIPED } else { "" };
        self.with_writer(|keyword, writer| {
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&format!("{LAYOUT}/{checkpoint}{unwiped}"));
            prepared.commit()?;
            keyword.reader.reload()
        })
    }

    /// Merges small segments, because a question has to search each segment.
    pub fn tidy(&mut self) -> Result<(), KeywordError> {
        let mut segments = self.keyword.segments()?;
        if segments.len() < SEGMENTS_MAX || self.merge_in_progress.is_some() {
            return Ok(());
        }
        segments.sort_unstable();
        let small: Vec<SegmentId> =
            segments.iter().take(MERGED_SEGMENTS).map(|(_, segment)| *segment).collect();
        self.with_writer(|keyword, writer| {
            writer.merge(&small).wait()?;
            keyword.reader.reload()?;
            writer.garbage_collect_files().wait()?;
            Ok(())
        })
    }

    /// Starts a background merge of small segments; call it when the node is idle. Returns true if
    /// a merge is in progress.
    pub fn start_merge(&mut self) -> Result<bool, KeywordError> {
        if self.merge_in_progress.is_none() {
            let mut segments = self.keyword.segments()?;
            segments.sort_unstable_by(|one, two| two.cmp(one));
            let sizes: Vec<u32> = segments.iter().map(|(documents, _)| *documents).collect();
            let merged = segments.split_off(first_to_merge(&sizes));
            let merged: Vec<SegmentId> = merged.into_iter().map(|(_, segment)| segment).collect();
            if merged.len() > 1 {
                self.merge_in_progress =
                    Some(self.with_writer(|_, writer| Ok(writer.merge(&merged)))?);
            }
        }
        Ok(self.merge_in_progress.is_some())
    }

    /// True if tantivy's writer exists, with its threads and buffers.
    pub fn holds_writer(&self) -> bool {
        self.writer.is_some()
    }

    /// Drops tantivy's writer with its threads, buffers and list of deletions; the next change
    /// creates another. Call it after a commit, because uncommitted changes are lost. A merge in
    /// progress needs the writer, which then stays.
    pub fn release_writer(&mut self) {
        if self.merge_in_progress.is_none() {
            self.writer = None;
        }
    }

    /// Waits for the merge that [`Self::start_merge`] started; forever if there is none.
    pub async fn merge_finished(&mut self) -> Result<(), KeywordError> {
        let Some(merge_in_progress) = &mut self.merge_in_progress else {
            return std::future::pending().await;
        };
        let merged = merge_in_progress.await;
        self.merge_in_progress = None;
        self.with_writer(|keyword, writer| {
            merged?;
            keyword.reader.reload()?;
            writer.garbage_collect_files().wait()?;
            Ok(())
        })
    }

    /// Removes all data of deleted documents from the files; call it after a commit. It waits for
    /// files that a question still reads.
    pub fn wipe(&mut self) -> Result<(), KeywordError> {
        let merge_in_progress = self.merge_in_progress.take();
        let is_wiped = self.with_writer(|keyword, writer| {
            merge_in_progress.map(wait).transpose()?;
            for segment in keyword.segments_with_deletions()? {
                writer.merge(&[segment]).wait()?;
            }
            keyword.reader.reload()?;
            for _ in 0..WIPE_TRIES_MAX {
                writer.garbage_collect_files().wait()?;
                if keyword.leftover_files()? == 0 {
                    return Ok(true);
                }
                std::thread::sleep(WIPE_PAUSE);
            }
            Ok(false)
        })?;
        if !is_wiped {
            return Err(KeywordError::InUse { path: self.keyword.path.clone() });
        }
        self.is_wipe_pending = false;
        Ok(())
    }
}

/// Blocks on a future that may have been polled before: tantivy's own blocking wait panics then.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct PendingCommit(Thread);
    impl Wake for PendingCommit {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(PendingCommit(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// The index of the first segment to merge with all smaller ones; `sizes` is in descending order.
fn first_to_merge(sizes: &[u32]) -> usize {
    let is_due = |at: &usize| {
        let smaller: u64 = sizes[at + 1..].iter().map(|size| u64::from(*size)).sum();
        smaller > 0 && smaller * u64::from(MERGE_SIZE_RATIO) >= u64::from(sizes[*at])
    };
    (0..sizes.len()).find(is_due).unwrap_or(sizes.len())
}

impl Keyword {
    /// A new tantivy writer; only one may exist.
    fn writer(&self) -> tantivy::Result<IndexWriter> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .memory_budget_per_thread(MEMORY_BYTES)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter = self.index.writer_with_options(options)?;
        // Background merges by tantivy would interfere with wiping.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(writer)
    }

    /// The segments with their sizes.
    fn segments(&self) -> Result<Vec<(u32, SegmentId)>, KeywordError> {
        let metas = self.index.searchable_segment_metas().map_err(|source| self.failed(source))?;
        Ok(metas.iter().map(|segment| (segment.num_docs(), segment.id())).collect())
    }

    /// The ids of segments with deleted documents. Only ids, because tantivy keeps the files of
    /// every segment that is referenced.
    fn segments_with_deletions(&self) -> tantivy::Result<Vec<SegmentId>> {
        let segments = self.index.searchable_segment_metas()?;
        let segments_with_deletions =
            segments.iter().filter(|segment| segment.num_deleted_docs() > 0);
        Ok(segments_with_deletions.map(SegmentMeta::id).collect())
    }

    /// True if the last commit requires a wipe that is not complete.
    fn is_wipe_pending(&self) -> tantivy::Result<bool> {
        let payload = self.index.load_metas()?.payload.unwrap_or_default();
        let is_noted = payload.ends_with(UNWIPED);
        Ok(is_noted && !(self.segments_with_deletions()?.is_empty() && self.leftover_files()? == 0))
    }

    /// Number of files of segments that are no longer part of the index.
    fn leftover_files(&self) -> tantivy::Result<usize> {
        let segments = self.index.searchable_segment_ids()?;
        let living: Vec<String> = segments.iter().map(SegmentId::uuid_string).collect();
        let files = self.index.directory().list_managed_files();
        let is_left = |file: &&PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name != META_FILE && !living.iter().any(|segment| name.starts_with(segment.as_str()))
        };
        Ok(files.iter().filter(is_left).count())
    }

    fn failed(&self, source: tantivy::TantivyError) -> KeywordError {
        KeywordError::Tantivy { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantivy::directory::{Directory, META_LOCK};

    fn document(number: u8) -> Document {
        Document::plain(number, &format!("word{number}"))
    }

    fn checkpoint() -> Checkpoint {
        format!("{} 0 7", "00".repeat(16)).parse().unwrap()
    }

    /// An index of segments with two documents each, and its writer.
    fn filled(folder: &tempfile::TempDir, segments: u8) -> (Keyword, KeywordWriter) {
        let keyword = Keyword::create(folder.path()).unwrap();
        let mut writer = KeywordWriter::new(&keyword).unwrap();
        for segment in 0..segments {
            writer.put(&document(2 * segment)).unwrap();
            writer.put(&document(2 * segment + 1)).unwrap();
            writer.commit(&checkpoint()).unwrap();
        }
        (keyword, writer)
    }

    #[test]
    fn a_wipe_waits_for_a_merge_in_progress() {
        let folder = tempfile::tempdir().unwrap();
        let (keyword, mut writer) = filled(&folder, 2);
        // A merge needs this lock at its end, so it cannot finish before it is polled.
        let lock = keyword.index.directory().acquire_lock(&META_LOCK).unwrap();
        assert!(writer.start_merge().unwrap());
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(writer.merge_finished()).poll(&mut context).is_pending());
        drop(lock);
        writer.remove(document(0).entry).unwrap();
        writer.require_wipe();
        writer.commit(&checkpoint()).unwrap();
        writer.wipe().unwrap();
        assert_eq!(keyword.look().documents(), 3);
        assert!(keyword.segments_with_deletions().unwrap().is_empty());
        assert_eq!(keyword.leftover_files().unwrap(), 0);
    }

    #[test]
    fn a_writer_is_released_unless_a_merge_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let (keyword, mut writer) = filled(&folder, 2);
        let lock = keyword.index.directory().acquire_lock(&META_LOCK).unwrap();
        assert!(writer.start_merge().unwrap());
        writer.release_writer();
        assert!(writer.holds_writer());
        drop(lock);
        wait(writer.merge_finished()).unwrap();
        writer.release_writer();
        assert!(!writer.holds_writer());
        writer.remove(document(0).entry).unwrap();
        writer.commit(&checkpoint()).unwrap();
        assert!(writer.holds_writer());
        assert_eq!(keyword.look().documents(), 3);
    }

    #[test]
    fn a_pending_wipe_survives_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let (keyword, mut writer) = filled(&folder, 2);
        // A replaced document may stay until its segment is merged.
        writer.put(&document(0)).unwrap();
        writer.commit(&checkpoint()).unwrap();
        assert_eq!(keyword.segments_with_deletions().unwrap().len(), 1);
        drop((keyword, writer));
        let reopened = || {
            let (keyword, found) = Keyword::open(folder.path()).unwrap().unwrap();
            assert_eq!(found, Some(checkpoint()));
            let writer = KeywordWriter::new(&keyword).unwrap();
            (keyword, writer)
        };
        let (keyword, mut writer) = reopened();
        assert!(!writer.is_wipe_pending());
        writer.remove(document(2).entry).unwrap();
        writer.require_wipe();
        writer.commit(&checkpoint()).unwrap();
        drop((keyword, writer));
        let (keyword, mut writer) = reopened();
        assert!(writer.is_wipe_pending());
        // Another commit does not complete the wipe.
        writer.put(&document(4)).unwrap();
        writer.commit(&checkpoint()).unwrap();
        drop((keyword, writer));
        let (keyword, mut writer) = reopened();
        assert!(writer.is_wipe_pending());
        writer.wipe().unwrap();
        assert!(!writer.is_wipe_pending() && keyword.segments_with_deletions().unwrap().is_empty());
        drop((keyword, writer));
        let (keyword, writer) = reopened();
        assert!(!writer.is_wipe_pending());
        assert_eq!(keyword.look().documents(), 4);
    }

    #[test]
    fn small_segments_are_merged_when_they_add_up() {
        for (sizes, from) in [
            (&[][..], 0),
            (&[100], 1),
            (&[14, 14, 14, 14], 0),
            (&[100_000, 1, 1, 1], 1),
            (&[100_000, 24_999], 2),
            (&[100_000, 25_000], 0),
            (&[100_000, 900, 10, 1], 4),
            (&[100_000, 900, 10, 3], 2),
            (&[5, 0], 2),
        ] {
            assert_eq!(first_to_merge(sizes), from, "{sizes:?}");
        }
    }
}
