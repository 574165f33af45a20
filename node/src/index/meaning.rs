//! Vectors and the embedder that made them: one generation, and how the next one comes about.
//!
//! A generation is replaced as a whole, by a `Job` on a thread of its own: because another model
//! was chosen, or because the store has doubled and its words are to be weighed anew. Meanwhile the
//! old one answers; where there is none, words alone do. What stands in the folder and is of no use
//! is deleted at once: nobody would take out of it what is forgotten.

use super::Shared;
use super::calibrate::calibrate;
use super::document::Document;
use super::due::Due;
use super::embed::weights::Weights;
use super::embed::{EmbedError, Embedder};
use super::entitled::Entitled;
use super::mark::Mark;
use super::vectors::{BadVector, CheckpointError, Facts, Limits, Vectors};
use crate::store::peers::Society;
use crate::store::rows::Seq;
use crate::store::{Error, Snapshot, Store};
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::time::WallTime;
use klnode_scoring::relevance::Calibration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Texts that are embedded together.
const BATCH_TEXTS: usize = 128;
/// A store is weighed for the first time when it holds so many documents, those from outside apart,
/// and whenever that many have doubled: below it the weights of the training corpus are the better
/// guess.
const FIT_DOCUMENTS_MIN: u64 = 100;
/// A text that every server takes which takes any.
const HARMLESS: &str = "text";

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum MeaningError {
    /// The embedder failed.
    #[error("{0}")]
    Embed(#[from] EmbedError),
    /// The embedder made what is no vector.
    #[error("{0}")]
    Vector(#[from] BadVector),
    /// The vectors cannot be written.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] Error),
    /// The weights cannot be written.
    #[error("write {path}: {source}")]
    Weights {
        /// Where.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Vectors that are of no use any more cannot be deleted.
    #[error("delete the old vectors in {path}: {source}")]
    Discard {
        /// The folder.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// The job was told to stop, or fell over.
    #[error("embed the store: it was given up")]
    GivenUp,
}

/// One generation of vectors.
pub struct Meaning {
    /// What made them, and makes those of questions.
    pub embedder: Arc<dyn Embedder>,
    /// The vectors.
    pub vectors: Vectors,
    /// How to read its cosines.
    pub calibration: Calibration,
    /// How many documents the embedder has learnt from, those from outside apart; none if there is
    /// nothing to learn.
    fitted: Option<u64>,
}

/// Who reads, and when.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// This node.
    pub own: AuthorId,
    /// What the clock says.
    pub now: fn() -> WallTime,
}

impl Reading {
    /// Who is who in a snapshot.
    pub(super) fn society(&self, snapshot: &Snapshot) -> Result<Society, Error> {
        Society::read(snapshot, self.own, (self.now)())
    }
}

impl Meaning {
    /// Opens what stands in the folder, if this model made it and it is of this feed; if not, it is
    /// deleted. Nobody is asked for that: how long vectors are is in their file.
    pub(super) fn open(
        folder: &Path,
        model: &Arc<dyn Embedder>,
        limits: Limits,
        (store, snapshot): (&Store, &Snapshot),
        reading: &Reading,
    ) -> Result<Option<(Self, Seq)>, MeaningError> {
        let kept = fs::read(weights_file(folder)).ok();
        let kept = kept.and_then(|bytes| Weights::from_bytes(&bytes).ok());
        let embedder = kept.and_then(|weights| model.resume(weights));
        let embedder = embedder.unwrap_or_else(|| Arc::clone(model));
        let dims = embedder.dims_at_hand().map_or_else(|| Vectors::dims_in(folder), Ok);
        let opened = dims.and_then(|dims| Vectors::open(folder, embedder.identity(), dims, limits));
        let why = match opened {
            Ok((vectors, note)) => match read_note(&note) {
                Some((mark, fitted)) if mark.is_of(store.id(), snapshot)? => {
                    let (society, now) = (reading.society(snapshot)?, (reading.now)());
                    let calibration = calibrate(&*embedder, &vectors, (snapshot, &society), now)?;
                    return Ok(Some((Self { embedder, vectors, calibration, fitted }, mark.seq)));
                }
                _ => "they are of another feed".to_owned(),
            },
            Err(stale) => stale.to_string(),
        };
        match snapshot.head() {
            Seq(0) => tracing::debug!(why, "there is nothing to make vectors of"),
            _ => tracing::info!(why, "the vectors are made anew"),
        }
        Self::discard(folder)?;
        Ok(None)
    }

    /// Deletes what stands in the folder.
    pub(super) fn discard(folder: &Path) -> Result<(), MeaningError> {
        let discarded = Vectors::discard(folder);
        discarded.map_err(|source| MeaningError::Discard { path: folder.into(), source })
    }

    /// Vectors of a store that holds nothing yet; none where somebody has to be asked how long they
    /// are.
    pub(super) fn empty(folder: &Path, model: &Arc<dyn Embedder>, limits: Limits) -> Option<Self> {
        let vectors = Vectors::empty(folder, model.identity(), model.dims_at_hand()?, limits);
        let fitted = model.weights().map(|_| 0);
        let (embedder, calibration) = (Arc::clone(model), Calibration::BUILT_IN);
        Some(Self { embedder, vectors, calibration, fitted })
    }

    /// Whether vectors are as long as those that the model makes, as far as that is known: a server
    /// may have come to another model under the same name.
    pub(super) fn fits(&self) -> bool {
        self.embedder.dims_at_hand().is_none_or(|dims| dims == self.vectors.dims())
    }

    /// Takes documents in, and notes how far that reaches. What is gone leaves the file before the
    /// embedder is asked for anything, since it may not answer.
    pub(super) fn put(
        &self,
        documents: &BTreeMap<EntryId, Option<Document>>,
        mark: &Mark,
    ) -> Result<(), MeaningError> {
        let absent = documents.iter().filter(|(_, document)| document.is_none());
        self.erase(absent.map(|(entry, _)| *entry))?;
        let present: Vec<&Document> = documents.values().flatten().collect();
        for batch in present.chunks(BATCH_TEXTS) {
            self.embed(batch)?;
        }
        self.checkpoint(mark)
    }

    /// Takes entries out, and leaves nothing of them in the file.
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

    /// Embeds what a server did not take together, and leaves out the text that it does not take
    /// alone: that is found by its words, and no other waits for it.
    fn embed_by_halves(
        &self,
        documents: &[&Document],
        refusal: &EmbedError,
    ) -> Result<(), MeaningError> {
        if let [document] = documents {
            // Who refuses this as well refuses everything, and not because of the text.
            self.embedder.embed(&[HARMLESS])?;
            tracing::warn!(entry = %document.entry, why = %refusal, "a text has no vector");
            self.vectors.remove(document.entry);
            return Ok(());
        }
        let (first, second) = documents.split_at(documents.len() / 2);
        self.embed(first)?;
        self.embed(second)
    }

    /// Takes entries out, until the next checkpoint from memory alone.
    pub(super) fn remove_all(&self, entries: &BTreeSet<EntryId>) {
        for entry in entries {
            self.vectors.remove(*entry);
        }
    }

    /// Takes the place of what stands in the folder.
    pub(super) fn take_place(&self, folder: &Path, mark: &Mark) -> Result<(), MeaningError> {
        let path = weights_file(folder);
        let written = match self.embedder.weights() {
            Some(weights) => write_whole(&path, &weights.to_bytes()),
            None => Ok(()),
        };
        written.map_err(|source| MeaningError::Weights { path, source })?;
        self.checkpoint(mark)
    }

    fn checkpoint(&self, mark: &Mark) -> Result<(), MeaningError> {
        let fitted = self.fitted.map_or("-".to_owned(), |count| count.to_string());
        Ok(self.vectors.checkpoint(format!("{mark} {fitted}").as_bytes())?)
    }

    /// Whether a store of so many documents should be weighed anew.
    pub(super) fn is_outgrown(&self, documents: u64, are_all: bool) -> bool {
        self.fitted.is_some_and(|fitted| is_outgrown(fitted, documents, are_all))
    }
}

/// Whether what was learnt from so many documents is outgrown where there are others: they have
/// doubled, or what was learnt is mostly from texts that no longer count. The latter can be said
/// only where all that there are have been counted.
fn is_outgrown(fitted: u64, documents: u64, are_all: bool) -> bool {
    let has_doubled = documents >= FIT_DOCUMENTS_MIN.max(fitted.saturating_mul(2));
    let has_halved = are_all && documents < fitted / 2;
    has_doubled || has_halved
}

fn facts(document: &Document) -> Facts {
    let scope = &document.scope;
    Facts::new(
        scope.workspace,
        scope.thread.as_deref().unwrap_or_default(),
        scope.kind,
        scope.memory,
        scope.tags.iter().map(String::as_str),
    )
    .of_sub_type(scope.sub_type.as_deref().unwrap_or_default())
}

fn read_note(note: &[u8]) -> Option<(Mark, Option<u64>)> {
    let (mark, fitted) = std::str::from_utf8(note).ok()?.rsplit_once(' ')?;
    Some((mark.parse().ok()?, fitted.parse().ok()))
}

fn weights_file(folder: &Path) -> PathBuf {
    folder.join("weights.bin")
}

/// A generation that is ready.
pub(super) struct Made {
    /// The vectors.
    pub(super) meaning: Meaning,
    /// Up to which place in the feed they hold.
    pub(super) mark: Mark,
    /// Whose words they were made of.
    pub(super) entitled: Entitled,
    /// What of them was not yet due when it was read.
    pub(super) due: Due,
}

/// A generation in the making.
pub(super) struct Job {
    thread: JoinHandle<Result<Made, MeaningError>>,
    done: watch::Receiver<bool>,
    tally: Arc<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Texts that have their vectors.
    pub done: u64,
    /// Texts there are.
    pub total: u64,
}

impl Job {
    /// Starts to embed everything in the store.
    pub(super) fn start(
        shared: &Arc<Shared>,
        store: &Store,
        reading: Reading,
        inside: u64,
    ) -> Self {
        let (publish, done) = watch::channel(false);
        let tally = Arc::new(Tally::default());
        tally.total.store(shared.keyword.look().documents(), Ordering::Relaxed);
        let (shared, store, counted) = (Arc::clone(shared), store.clone(), Arc::clone(&tally));
        let thread = std::thread::Builder::new()
            .name("klnode-embed".into())
            .spawn(move || {
                let made = make(&shared, &store, &reading, &counted, inside);
                // Nobody listens any more when the node stops.
                let _ = publish.send(true);
                made
            })
            .expect("the system has room for one more thread");
        Self { thread, done, tally }
    }

    pub(super) fn progress(&self) -> Progress {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Progress { done: of(&self.tally.done), total: of(&self.tally.total) }
    }

    pub(super) fn is_finished(&self) -> bool {
        *self.done.borrow() || self.thread.is_finished()
    }

    pub(super) async fn finished(&self) {
        // An error means that the thread has ended: that is finished, too.
        let _ = self.done.clone().wait_for(|done| *done).await;
    }

    /// What came of it, with the place in the feed up to which it holds.
    pub(super) fn finish(self) -> Result<Made, MeaningError> {
        self.thread.join().map_err(|_| MeaningError::GivenUp)?
    }

    /// Tells it to stop, and waits until it has.
    pub(super) fn cancel(self) {
        self.tally.is_cancelled.store(true, Ordering::Relaxed);
        // What it has made is not wanted any more.
        let _ = self.thread.join();
    }
}

/// Learns from all texts that are not from outside, then embeds them all.
fn make(
    shared: &Shared,
    store: &Store,
    reading: &Reading,
    tally: &Tally,
    inside: u64,
) -> Result<Made, MeaningError> {
    let snapshot = store.snapshot()?;
    let society = reading.society(&snapshot)?;
    let mut texts = Texts::new(&snapshot, &society, reading, tally)?;
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
    let mut meaning = Meaning { embedder, vectors, calibration: Calibration::BUILT_IN, fitted };
    let mut texts = Texts::new(&snapshot, &society, reading, tally)?;
    loop {
        let batch: Vec<Document> = texts.by_ref().take(BATCH_TEXTS).collect();
        if batch.is_empty() {
            break;
        }
        meaning.embed(&batch.iter().collect::<Vec<_>>())?;
        tally.done.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }
    let due = std::mem::take(&mut texts.due);
    texts.end()?;
    let (embedder, now) = (&*meaning.embedder, (reading.now)());
    meaning.calibration = calibrate(embedder, &meaning.vectors, (&snapshot, &society), now)?;
    let mark = Mark::at(store.id(), &snapshot, snapshot.head())?;
    Ok(Made { meaning, mark, entitled: Entitled::of(&society), due })
}

/// A file is there whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(&new, path)
}

/// All documents of a store, one after another; stops at a fault, and says so at the end.
struct Texts<'a> {
    snapshot: &'a Snapshot,
    society: &'a Society,
    reading: &'a Reading,
    tally: &'a Tally,
    entries: Box<dyn Iterator<Item = Result<EntryId, Error>>>,
    /// What was not yet due when it was read.
    due: Due,
    fault: Option<MeaningError>,
}

impl<'a> Texts<'a> {
    fn new(
        snapshot: &'a Snapshot,
        society: &'a Society,
        reading: &'a Reading,
        tally: &'a Tally,
    ) -> Result<Self, MeaningError> {
        let entries = snapshot.entries()?;
        let entries = entries.filter_map(|row| match row {
            Ok((_, row)) if row.is_forgotten || row.is_parked() => None,
            row => Some(row.map(|(entry, _)| entry)),
        });
        let (entries, due, fault) = (Box::new(entries), Due::default(), None);
        Ok(Self { snapshot, society, reading, tally, entries, due, fault })
    }

    fn end(self) -> Result<(), MeaningError> {
        self.fault.map_or(Ok(()), Err)
    }
}

impl Iterator for Texts<'_> {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        loop {
            if self.tally.is_cancelled.load(Ordering::Relaxed) {
                self.fault = Some(MeaningError::GivenUp);
                return None;
            }
            let now = (self.reading.now)();
            let read = self.entries.next()?.and_then(|entry| {
                let read = Document::read_until(self.snapshot, entry, self.society, now)?;
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
    fn a_generation_is_outgrown_when_its_store_has_doubled_or_most_of_it_counts_no_more() {
        for (fitted, documents, are_all, expect) in [
            // Nothing was learnt: then from the first hundred on.
            (0, 0, true, false),
            (0, 99, true, false),
            (0, 100, true, true),
            (0, 100, false, true),
            (100, 199, true, false),
            (100, 200, true, true),
            // Half of it is left, and then less.
            (1_000, 500, true, false),
            (1_000, 499, true, true),
            (1_000, 0, true, true),
            // An index that is built anew has counted a part.
            (1_000, 499, false, false),
            (1_000, 0, false, false),
            (u64::MAX, 5, false, false),
        ] {
            let given = is_outgrown(fitted, documents, are_all);
            assert_eq!(given, expect, "{documents} after {fitted}, all: {are_all}");
        }
    }
}
