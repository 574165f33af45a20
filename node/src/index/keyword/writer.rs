//! The writing side of the keyword index. One at a time: the follower's.
//!
//! A deleted document stays in its segment's files until the segment is merged. For what was
//! forgotten that is not good enough, so [`Writer::wipe`] merges every segment that has lost
//! something and removes the old files. That it is owed stands in the commit itself
//! ([`Writer::owe_wipe`]), so that whoever opens the index after a crash knows it, too.

use super::question::texts;
use super::{Fields, Keyword, KeywordError, LAYOUT, terms_of};
use crate::index::document::Document;
use crate::index::mark::Mark;
use klnode_crdt::ids::EntryId;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::merge_policy::NoMergePolicy;
use tantivy::{FutureResult, IndexWriter, TantivyDocument, Term};

/// tantivy's least: it holds the words of documents until they are flushed.
const MEMORY_BYTES: usize = 15_000_000;

/// So many segments are left as they are.
const SEGMENTS_MAX: usize = 12;
/// Beyond that, so many of the smallest become one.
const MERGED_SEGMENTS: usize = 8;
/// In quiet, a segment is merged with all that are smaller once those together have this part of it:
/// so a document is written anew a few times while the store doubles, and not at every change.
const SETTLED_PART: u32 = 4;

/// Files that a question reads cannot go; most questions take milliseconds.
const WIPE_PAUSE: Duration = Duration::from_millis(20);
const WIPE_TRIES_MAX: usize = 500;
/// tantivy's list of what the index is made of.
const META_FILE: &str = "meta.json";
/// What a commit ends in that takes out what must leave the files. It may stand there after that is
/// done: whether it is can be seen in the files.
const UNWIPED: &str = " unwiped";

/// Puts documents in and takes them out.
pub struct Writer {
    keyword: Keyword,
    /// None after a failure, until something is to be done again.
    writer: Option<IndexWriter>,
    /// A merge that is under way.
    settling: Option<FutureResult<Option<SegmentMeta>>>,
    /// Whether what was taken out must leave the files, and may not have.
    owes_wipe: bool,
}

impl Writer {
    /// The only writer of an index.
    pub fn new(keyword: &Keyword) -> Result<Self, KeywordError> {
        let writer = keyword.writer().map_err(|source| keyword.failed(source))?;
        let owes_wipe = keyword.owes_wipe().map_err(|source| keyword.failed(source))?;
        Ok(Self { keyword: keyword.clone(), writer: Some(writer), settling: None, owes_wipe })
    }

    /// Does something with tantivy's writer. One that fails is not asked again: it may have lost
    /// the thread that takes documents in, and then commits without them and says that all is well.
    fn act<T>(
        &mut self,
        act: impl FnOnce(&Keyword, &mut IndexWriter) -> tantivy::Result<T>,
    ) -> Result<T, KeywordError> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.keyword.writer().map_err(|source| self.keyword.failed(source))?,
        };
        match act(&self.keyword, &mut writer) {
            Ok(done) => {
                self.writer = Some(writer);
                Ok(done)
            }
            Err(source) => {
                // A merge that goes on would end beside the next writer, which sees what it did.
                if let Some(settling) = self.settling.take() {
                    let _ = wait(settling);
                }
                Err(self.keyword.failed(source))
            }
        }
    }

    /// Puts a document in, in place of the one that stands there.
    pub fn put(&mut self, document: &Document) -> Result<(), KeywordError> {
        self.remove(document.entry)?;
        let Fields { id, high, low, text, outside, scope } = self.keyword.fields;
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
        self.act(|_, writer| {
            writer.add_document(row)?;
            Ok(())
        })
    }

    /// Takes a document out.
    pub fn remove(&mut self, entry: EntryId) -> Result<(), KeywordError> {
        let term = Term::from_field_bytes(self.keyword.fields.id, entry.as_bytes());
        self.act(|_, writer| {
            writer.delete_term(term);
            Ok(())
        })
    }

    /// What is taken out by the next commit must leave the files, too.
    pub fn owe_wipe(&mut self) {
        self.owes_wipe = true;
    }

    /// Whether there is something to wipe that has not been wiped, by this process or the last.
    pub fn owes_wipe(&self) -> bool {
        self.owes_wipe
    }

    /// Makes all changes durable and visible, and notes how far they reach.
    pub fn commit(&mut self, mark: &Mark) -> Result<(), KeywordError> {
        let unwiped = if self.owes_wipe { UNWIPED } else { "" };
        self.act(|keyword, writer| {
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&format!("{LAYOUT}/{mark}{unwiped}"));
            prepared.commit()?;
            keyword.reader.reload()
        })
    }

    /// Keeps the number of segments small: a question looks into each.
    pub fn tidy(&mut self) -> Result<(), KeywordError> {
        let mut segments = self.keyword.segments()?;
        if segments.len() < SEGMENTS_MAX || self.settling.is_some() {
            return Ok(());
        }
        segments.sort_unstable();
        let small: Vec<SegmentId> =
            segments.iter().take(MERGED_SEGMENTS).map(|(_, segment)| *segment).collect();
        self.act(|keyword, writer| {
            writer.merge(&small).wait()?;
            keyword.reader.reload()?;
            writer.garbage_collect_files().wait()?;
            Ok(())
        })
    }

    /// Begins to merge what few changes have left in many segments: to be called when it is quiet.
    /// Returns whether there is anything to wait for.
    pub fn settle(&mut self) -> Result<bool, KeywordError> {
        if self.settling.is_none() {
            let mut segments = self.keyword.segments()?;
            segments.sort_unstable_by(|one, two| two.cmp(one));
            let sizes: Vec<u32> = segments.iter().map(|(documents, _)| *documents).collect();
            let merged = segments.split_off(settled(&sizes));
            let merged: Vec<SegmentId> = merged.into_iter().map(|(_, segment)| segment).collect();
            if merged.len() > 1 {
                self.settling = Some(self.act(|_, writer| Ok(writer.merge(&merged)))?);
            }
        }
        Ok(self.settling.is_some())
    }

    /// Waits for what [`Self::settle`] began; for ever, if nothing did.
    pub async fn is_settled(&mut self) -> Result<(), KeywordError> {
        let Some(settling) = &mut self.settling else { return std::future::pending().await };
        let merged = settling.await;
        self.settling = None;
        self.act(|keyword, writer| {
            merged?;
            keyword.reader.reload()?;
            writer.garbage_collect_files().wait()?;
            Ok(())
        })
    }

    /// Leaves nothing of deleted documents in any file. To be called after a commit. Files that a
    /// question still reads are waited for.
    pub fn wipe(&mut self) -> Result<(), KeywordError> {
        let settling = self.settling.take();
        let is_wiped = self.act(|keyword, writer| {
            settling.map(wait).transpose()?;
            for segment in keyword.lossy()? {
                writer.merge(&[segment]).wait()?;
            }
            keyword.reader.reload()?;
            for _ in 0..WIPE_TRIES_MAX {
                writer.garbage_collect_files().wait()?;
                if keyword.leftovers()? == 0 {
                    return Ok(true);
                }
                std::thread::sleep(WIPE_PAUSE);
            }
            Ok(false)
        })?;
        if !is_wiped {
            return Err(KeywordError::InUse { path: self.keyword.path.clone() });
        }
        self.owes_wipe = false;
        Ok(())
    }
}

/// Waits on this thread for something that may have been awaited before it was ready: tantivy's own
/// way to wait panics then.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Waiting(Thread);
    impl Wake for Waiting {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Waiting(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// From which segment on all become one; sizes are given from the largest to the smallest.
fn settled(sizes: &[u32]) -> usize {
    let is_due = |at: &usize| {
        let smaller: u64 = sizes[at + 1..].iter().map(|size| u64::from(*size)).sum();
        smaller > 0 && smaller * u64::from(SETTLED_PART) >= u64::from(sizes[*at])
    };
    (0..sizes.len()).find(is_due).unwrap_or(sizes.len())
}

impl Keyword {
    /// tantivy's writer, of which there is one at a time.
    fn writer(&self) -> tantivy::Result<IndexWriter> {
        let writer: IndexWriter = self.index.writer_with_num_threads(1, MEMORY_BYTES)?;
        // Merging in the background would get into the way of wiping.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(writer)
    }

    /// The segments with their sizes.
    fn segments(&self) -> Result<Vec<(u32, SegmentId)>, KeywordError> {
        let metas = self.index.searchable_segment_metas().map_err(|source| self.failed(source))?;
        Ok(metas.iter().map(|segment| (segment.num_docs(), segment.id())).collect())
    }

    /// The segments that have lost something. No more than their names: tantivy keeps the files of
    /// every segment that is held.
    fn lossy(&self) -> tantivy::Result<Vec<SegmentId>> {
        let segments = self.index.searchable_segment_metas()?;
        let lossy = segments.iter().filter(|segment| segment.num_deleted_docs() > 0);
        Ok(lossy.map(SegmentMeta::id).collect())
    }

    /// Whether the last commit was to be followed by a wipe, and something is left to do for it.
    fn owes_wipe(&self) -> tantivy::Result<bool> {
        let payload = self.index.load_metas()?.payload.unwrap_or_default();
        let is_noted = payload.ends_with(UNWIPED);
        Ok(is_noted && !(self.lossy()?.is_empty() && self.leftovers()? == 0))
    }

    /// Files of segments that are no longer part of the index.
    fn leftovers(&self) -> tantivy::Result<usize> {
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

    fn mark() -> Mark {
        format!("{} 0 7", "00".repeat(16)).parse().unwrap()
    }

    /// An index of segments with two documents each, and its writer.
    fn filled(folder: &tempfile::TempDir, segments: u8) -> (Keyword, Writer) {
        let keyword = Keyword::create(folder.path()).unwrap();
        let mut writer = Writer::new(&keyword).unwrap();
        for segment in 0..segments {
            writer.put(&document(2 * segment)).unwrap();
            writer.put(&document(2 * segment + 1)).unwrap();
            writer.commit(&mark()).unwrap();
        }
        (keyword, writer)
    }

    #[test]
    fn a_wipe_waits_for_a_merge_that_was_looked_at_before_it_was_done() {
        let folder = tempfile::tempdir().unwrap();
        let (keyword, mut writer) = filled(&folder, 2);
        // A merge needs this lock at its end: it cannot be done before it is looked at.
        let lock = keyword.index.directory().acquire_lock(&META_LOCK).unwrap();
        assert!(writer.settle().unwrap());
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(writer.is_settled()).poll(&mut context).is_pending());
        drop(lock);
        writer.remove(document(0).entry).unwrap();
        writer.owe_wipe();
        writer.commit(&mark()).unwrap();
        writer.wipe().unwrap();
        assert_eq!(keyword.look().documents(), 3);
        assert!(keyword.lossy().unwrap().is_empty());
        assert_eq!(keyword.leftovers().unwrap(), 0);
    }

    #[test]
    fn a_wipe_that_a_crash_came_before_is_still_owed_and_one_that_nobody_asked_for_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (keyword, mut writer) = filled(&folder, 2);
        // What was only replaced may stay until it is merged away.
        writer.put(&document(0)).unwrap();
        writer.commit(&mark()).unwrap();
        assert_eq!(keyword.lossy().unwrap().len(), 1);
        drop((keyword, writer));
        let reopened = || {
            let (keyword, found) = Keyword::open(folder.path()).unwrap().unwrap();
            assert_eq!(found, Some(mark()));
            let writer = Writer::new(&keyword).unwrap();
            (keyword, writer)
        };
        let (keyword, mut writer) = reopened();
        assert!(!writer.owes_wipe());
        writer.remove(document(2).entry).unwrap();
        writer.owe_wipe();
        writer.commit(&mark()).unwrap();
        drop((keyword, writer));
        let (keyword, mut writer) = reopened();
        assert!(writer.owes_wipe());
        // Another commit does not make up for it.
        writer.put(&document(4)).unwrap();
        writer.commit(&mark()).unwrap();
        drop((keyword, writer));
        let (keyword, mut writer) = reopened();
        assert!(writer.owes_wipe());
        writer.wipe().unwrap();
        assert!(!writer.owes_wipe() && keyword.lossy().unwrap().is_empty());
        drop((keyword, writer));
        let (keyword, writer) = reopened();
        assert!(!writer.owes_wipe());
        assert_eq!(keyword.look().documents(), 4);
    }

    #[test]
    fn segments_are_merged_from_the_first_that_the_smaller_ones_come_near() {
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
            assert_eq!(settled(sizes), from, "{sizes:?}");
        }
    }
}
