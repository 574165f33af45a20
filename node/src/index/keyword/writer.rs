//! The writing side of the keyword index. One at a time: the follower's.
//!
//! A deleted document stays in its segment's files until the segment is merged. For what was
//! forgotten that is not good enough, so [`Writer::wipe`] merges every segment that has lost
//! something and removes the old files.

use super::question::texts;
use super::{Fields, Keyword, KeywordError, LAYOUT, terms_of};
use crate::index::document::Document;
use crate::index::mark::Mark;
use klnode_crdt::ids::EntryId;
use std::path::PathBuf;
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

/// Puts documents in and takes them out.
pub struct Writer {
    keyword: Keyword,
    writer: IndexWriter,
    /// A merge that is under way.
    settling: Option<FutureResult<Option<SegmentMeta>>>,
}

impl Writer {
    /// The only writer of an index.
    pub fn new(keyword: &Keyword) -> Result<Self, KeywordError> {
        let writer = keyword.index.writer_with_num_threads(1, MEMORY_BYTES);
        let writer: IndexWriter = writer.map_err(|source| keyword.failed(source))?;
        // Merging in the background would get into the way of wiping.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(Self { keyword: keyword.clone(), writer, settling: None })
    }

    /// Puts a document in, in place of the one that stands there.
    pub fn put(&mut self, document: &Document) -> Result<(), KeywordError> {
        self.remove(document.entry);
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
        self.writer.add_document(row).map_err(|source| self.keyword.failed(source))?;
        Ok(())
    }

    /// Takes a document out.
    pub fn remove(&mut self, entry: EntryId) {
        let term = Term::from_field_bytes(self.keyword.fields.id, entry.as_bytes());
        self.writer.delete_term(term);
    }

    /// Makes all changes durable and visible, and notes how far they reach.
    pub fn commit(&mut self, mark: &Mark) -> Result<(), KeywordError> {
        let mut commit = || -> tantivy::Result<()> {
            let mut prepared = self.writer.prepare_commit()?;
            prepared.set_payload(&format!("{LAYOUT}/{mark}"));
            prepared.commit()?;
            self.keyword.reader.reload()
        };
        commit().map_err(|source| self.keyword.failed(source))
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
        let mut tidy = || -> tantivy::Result<()> {
            self.writer.merge(&small).wait()?;
            self.keyword.reader.reload()?;
            self.writer.garbage_collect_files().wait()?;
            Ok(())
        };
        tidy().map_err(|source| self.keyword.failed(source))
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
            self.settling = (merged.len() > 1).then(|| self.writer.merge(&merged));
        }
        Ok(self.settling.is_some())
    }

    /// Waits for what [`Self::settle`] began; for ever, if nothing did.
    pub async fn is_settled(&mut self) -> Result<(), KeywordError> {
        let Some(settling) = &mut self.settling else { return std::future::pending().await };
        let merged = settling.await;
        self.settling = None;
        let finish = || -> tantivy::Result<()> {
            merged?;
            self.keyword.reader.reload()?;
            self.writer.garbage_collect_files().wait()?;
            Ok(())
        };
        finish().map_err(|source| self.keyword.failed(source))
    }

    /// Leaves nothing of deleted documents in any file. To be called after a commit. Files that a
    /// question still reads are waited for.
    pub fn wipe(&mut self) -> Result<(), KeywordError> {
        let settling = self.settling.take();
        let wipe = || -> tantivy::Result<bool> {
            settling.map(FutureResult::wait).transpose()?;
            // No more than their names: tantivy keeps the files of every segment that is held.
            let lossy: Vec<SegmentId> = {
                let segments = self.keyword.index.searchable_segment_metas()?;
                let lossy = segments.iter().filter(|segment| segment.num_deleted_docs() > 0);
                lossy.map(|segment| segment.id()).collect()
            };
            for segment in lossy {
                self.writer.merge(&[segment]).wait()?;
            }
            self.keyword.reader.reload()?;
            for _ in 0..WIPE_TRIES_MAX {
                self.writer.garbage_collect_files().wait()?;
                if self.keyword.leftovers()? == 0 {
                    return Ok(true);
                }
                std::thread::sleep(WIPE_PAUSE);
            }
            Ok(false)
        };
        match wipe() {
            Ok(true) => Ok(()),
            Ok(false) => Err(KeywordError::InUse { path: self.keyword.path.clone() }),
            Err(source) => Err(self.keyword.failed(source)),
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
    /// The segments with their sizes.
    fn segments(&self) -> Result<Vec<(u32, SegmentId)>, KeywordError> {
        let metas = self.index.searchable_segment_metas().map_err(|source| self.failed(source))?;
        Ok(metas.iter().map(|segment| (segment.num_docs(), segment.id())).collect())
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
