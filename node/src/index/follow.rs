//! The index's own thread: reads the feed, puts what it says into words and vectors, and keeps up.
//!
//! The writer never waits for it and it never asks the writer for anything. Words and vectors each
//! have a place in the feed of their own, since an embedder may fail, or take its time, where tantivy
//! does not; with the built-in one both are usually at the same place, and then the feed is read once
//! for both. Some entries are shown otherwise although the feed says nothing of them, because others are
//! entitled or a text has become due: these are read anew.

use super::document::Document;
use super::due::Due;
use super::entitled::Entitled;
use super::keyword::{self, Keyword};
use super::mark::Mark;
use super::meaning::{Job, Made, Meaning, Progress, Reading};
use super::{IndexError, Shared, Wakes, note};
use crate::store::peers::Society;
use crate::store::rows::Seq;
use crate::store::{Error, Snapshot, Store};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{EntryId, StoreId};
use klnode_crdt::time::WallTime;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Records of the feed that are taken in at a time.
const CHUNK_RECORDS_MAX: usize = 4_000;
/// Records of which an embedder that takes its time makes vectors at a time. Words that have come
/// meanwhile, and what was forgotten, wait for no more than these.
const SLOW_RECORDS_MAX: usize = 256;
/// Changes of text wait so long for others to share a commit; a search reads them meanwhile.
const GATHER_TIME: Duration = Duration::from_millis(200);
/// A generation that has been outgrown is replaced when no text has come for so long: during an
/// import it would be outgrown again before the next one is there.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// Where there is never quiet, it is replaced so long after it was outgrown.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(60);
/// After a failure it is tried again so much later.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// What it cannot do after a panic, of its own or of what it stands on.
const FALLEN: &str = "go on: it met something damaged";

/// What the follower works with.
pub(super) struct Follower {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Store,
    pub(super) wakes: Wakes,
    pub(super) reading: Reading,
    /// Whose words it is made of.
    pub(super) entitled: Entitled,
    /// Whether that was compared with who is entitled now, since there were these words or vectors.
    pub(super) is_compared: bool,
    /// What is to be read anew, and when.
    pub(super) due: Due,
    pub(super) keyword: keyword::Writer,
    pub(super) keyword_at: Seq,
    pub(super) meaning_at: Seq,
    pub(super) job: Option<Job>,
    /// Since when a job is due that has not been started.
    pub(super) due_since: Option<Instant>,
    /// When text was last taken in.
    pub(super) text_at: Instant,
    /// Changes of text wait until then for others to share a commit.
    pub(super) gather_until: Option<Instant>,
    /// Whether words stand in as few segments as they should in quiet.
    pub(super) is_settled: bool,
}

/// What a stretch of the feed says about texts.
struct Stretch {
    /// Where it ends.
    mark: Mark,
    /// The entries it names, as they are now; nothing for those that are not to be found.
    documents: BTreeMap<EntryId, Option<Document>>,
    /// When which of them may be shown differently.
    due: Due,
    /// The entries of which text was taken back or forgotten and must leave the files, and where
    /// that was said last.
    erased: BTreeMap<EntryId, Seq>,
}

/// Follows the feed until told to stop. A panic on the way, as of a store whose pages are damaged,
/// is told, and it is tried again as after any other fault: what was begun is read from the feed
/// once more.
pub(super) fn follow(mut follower: Follower, mut stop: oneshot::Receiver<()>) {
    let mut first = Instant::now();
    loop {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a timer needs nothing");
        let run = || runtime.block_on(follower.run(&mut stop, first));
        if catch_unwind(AssertUnwindSafe(run)).is_ok() {
            break;
        }
        tracing::error!("the index has fallen over and will try again");
        follower.shared.state.send_modify(|state| {
            (state.fault, state.embedder_fault) = (Some(FALLEN.to_owned()), None);
        });
        first = Instant::now() + RETRY_TIME;
    }
    if let Some(job) = follower.job.take() {
        job.cancel();
    }
}

impl Follower {
    /// Follows the feed until told to stop, from a moment on or when something happens.
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
                changed = self.wakes.society.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    self.is_compared = false;
                }
                () = pause => {}
                () = finished(self.job.as_ref()) => {}
                settled = self.keyword.is_settled() => if let Err(error) = settled {
                    tracing::warn!(error = %error, "the words stay in many segments for now");
                    self.is_settled = true;
                }
            }
            wake = match self.turn() {
                Ok(next) => self.go_on(next),
                Err(error) => {
                    tracing::warn!(error = %error, "the index stands still and will try again");
                    let embedder = error.of_embedder().cloned();
                    self.shared.state.send_modify(|state| {
                        (state.fault, state.embedder_fault) = (Some(error.to_string()), embedder);
                    });
                    Some(Instant::now() + RETRY_TIME)
                }
            };
        }
    }

    /// A turn went well, so there is no fault any more. Only an embedder that failed has yet to show
    /// that it is back: while it has not been asked again, or a new job has had nothing of it, whoever
    /// looks is told of the fault and not of vectors in the making. Returns when to look again.
    fn go_on(&self, next: Option<Instant>) -> Option<Instant> {
        // The one that waits for quiet to learn anew is the built-in one, which never fails.
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

    /// Does what is due; returns when to look again even if nothing happens.
    fn turn(&mut self) -> Result<Option<Instant>, IndexError> {
        // First of all: a job that is done and not taken would wake it again at once.
        self.take_job()?;
        self.mend()?;
        let head = *self.wakes.head.borrow_and_update();
        let behind = self.keyword_at.min(self.meaning_at);
        if behind >= head {
            self.gather_until = None;
            if self.is_outdated() {
                self.compare(&self.store.snapshot()?)?;
            }
            return self.rest();
        }
        let snapshot = self.store.snapshot()?;
        if head.0 - behind.0 <= CHUNK_RECORDS_MAX as u64 {
            let now = Instant::now();
            match self.gather_until {
                Some(at) if at > now => return Ok(Some(at)),
                Some(_) => {}
                // Observations change no text: the index is as new as before.
                None if !has_text(&snapshot, behind)? => {
                    (self.keyword_at, self.meaning_at) = (snapshot.head(), snapshot.head());
                    self.compare(&snapshot)?;
                    self.publish();
                    return self.rest();
                }
                None => {
                    self.gather_until = Some(now + GATHER_TIME);
                    return Ok(self.gather_until);
                }
            }
        }
        self.gather_until = None;
        let now = (self.reading.now)();
        let society = self.reading.society(&snapshot)?;
        let (caught_up, renewed) =
            (self.catch_up(&snapshot, &society), self.renew(&snapshot, &society, now));
        caught_up.and(renewed)?;
        self.text_at = Instant::now();
        let rest_at = self.rest()?;
        let is_behind = *self.wakes.head.borrow() > snapshot.head();
        Ok(if is_behind { Some(Instant::now()) } else { rest_at })
    }

    /// Does what was left undone before, and drops vectors that are of no use any more.
    fn mend(&mut self) -> Result<(), IndexError> {
        if self.keyword.owes_wipe() {
            self.keyword.wipe()?;
            self.publish();
        }
        if self.shared.meaning().is_some_and(|meaning| !meaning.fits()) {
            tracing::info!("the embedder gives vectors of another length: all are made anew");
            Meaning::discard(&self.shared.folder)?;
            self.shared.replace_meaning(None);
            self.publish();
        }
        Ok(())
    }

    /// Nothing is to be taken in: what quiet is for. Returns when to look again.
    fn rest(&mut self) -> Result<Option<Instant>, IndexError> {
        let (job_at, settle_at) = (self.consider_job()?, self.consider_settling()?);
        let pause = self.due.pause((self.reading.now)());
        let due_at = pause.map(|pause| Instant::now() + pause);
        Ok(job_at.into_iter().chain(settle_at).chain(due_at).min())
    }

    /// Merges the segments of words when no text has come for a while.
    fn consider_settling(&mut self) -> Result<Option<Instant>, IndexError> {
        if self.is_settled || self.job.is_some() {
            return Ok(None);
        }
        let at = self.text_at + QUIET_TIME;
        if at > Instant::now() {
            return Ok(Some(at));
        }
        self.is_settled = !self.keyword.settle()?;
        self.publish();
        Ok(None)
    }

    /// Takes in the feed up to the snapshot. Words go on while the embedder is away, and wait for none
    /// that takes its time: its vectors come after all words, and make way for new ones.
    fn catch_up(&mut self, snapshot: &Snapshot, society: &Society) -> Result<(), IndexError> {
        let is_instant = self.shared.model.is_instant();
        let mut missing = Ok(());
        while self.keyword_at < snapshot.head() {
            let from = self.keyword_at;
            let stretch = self.read(snapshot, society, from, CHUNK_RECORDS_MAX)?;
            self.erase_meaning(&stretch)?;
            self.put_words(&stretch)?;
            self.keyword_at = stretch.mark.seq;
            if is_instant && self.meaning_at == from && missing.is_ok() {
                missing = self.put_meaning(&stretch);
            }
            self.publish();
        }
        missing?;
        let records_max = if is_instant { CHUNK_RECORDS_MAX } else { SLOW_RECORDS_MAX };
        while self.meaning_at < snapshot.head() {
            let stretch = self.read(snapshot, society, self.meaning_at, records_max)?;
            self.put_meaning(&stretch)?;
            self.publish();
            if !is_instant && *self.wakes.head.borrow() > snapshot.head() {
                break;
            }
        }
        Ok(())
    }

    /// Whether something may be shown differently without a word of the feed.
    fn is_outdated(&self) -> bool {
        !self.is_compared || self.due.is_any((self.reading.now)())
    }

    /// Looks whether others are entitled than before, where that may be, or something is due.
    fn compare(&mut self, snapshot: &Snapshot) -> Result<(), IndexError> {
        if !self.is_outdated() {
            return Ok(());
        }
        let now = (self.reading.now)();
        self.renew(snapshot, &self.reading.society(snapshot)?, now)
    }

    /// Reads anew what is shown differently because others are entitled than before, or because it
    /// is due. The society was not read before `now`: a charter may be due, too.
    fn renew(
        &mut self,
        snapshot: &Snapshot,
        society: &Society,
        now: WallTime,
    ) -> Result<(), IndexError> {
        let entitled = Entitled::of(society);
        let mut entries = self.entitled.changed(&entitled).entries(snapshot)?;
        entries.extend(self.due.until(now));
        let store = self.store.id();
        for chunk in entries.chunks(CHUNK_RECORDS_MAX) {
            let documents: BTreeMap<EntryId, Option<Document>> =
                chunk.iter().map(|entry| (*entry, None)).collect();
            let (documents, due) = read_documents(snapshot, society, documents, now)?;
            let mark = Mark::at(store, snapshot, self.keyword_at)?;
            let stretch = Stretch { mark, documents, due, erased: BTreeMap::new() };
            self.put_words(&stretch)?;
            if let Some(meaning) = self.shared.meaning() {
                let mark = Mark::at(store, snapshot, self.meaning_at)?;
                meaning.put(&stretch.documents, &mark)?;
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

    /// Notes what becomes due, where that is another than before.
    fn replace_due(&mut self, due: Due) -> Result<(), IndexError> {
        if due != self.due {
            self.due = note(due, &self.shared.folder)?;
        }
        Ok(())
    }

    fn put_words(&mut self, stretch: &Stretch) -> Result<(), IndexError> {
        // Before they are committed: a crash in between must not make it forget them.
        self.replace_due(self.due.joined(&stretch.due))?;
        for (entry, document) in &stretch.documents {
            match document {
                Some(document) => self.keyword.put(document)?,
                None => self.keyword.remove(*entry)?,
            }
        }
        if !stretch.erased.is_empty() {
            self.keyword.owe_wipe();
        }
        self.keyword.commit(&stretch.mark)?;
        self.is_settled = false;
        let tidied =
            if self.keyword.owes_wipe() { self.keyword.wipe() } else { self.keyword.tidy() };
        Ok(tidied?)
    }

    /// Takes out of the vectors what must leave the files and is not in them as it is now. To be
    /// called before words are committed, however far vectors are behind: then nothing of it is in
    /// any file up to where words are, though the embedder may be away.
    fn erase_meaning(&self, stretch: &Stretch) -> Result<(), IndexError> {
        let Some(meaning) = self.shared.meaning() else { return Ok(()) };
        let newer = stretch.erased.iter().filter(|(_, seq)| **seq > self.meaning_at);
        Ok(meaning.erase(newer.map(|(entry, _)| *entry))?)
    }

    fn put_meaning(&mut self, stretch: &Stretch) -> Result<(), IndexError> {
        if let Some(meaning) = self.shared.meaning() {
            meaning.put(&stretch.documents, &stretch.mark)?;
        }
        self.meaning_at = stretch.mark.seq;
        Ok(())
    }

    fn publish(&self) {
        let vectors = self.shared.meaning().map(|_| self.meaning_at);
        let keyword = self.keyword_at;
        let due = || Progress { done: 0, total: self.shared.keyword.look().documents() };
        let rebuild = self.job.as_ref().map(Job::progress);
        let rebuild = rebuild.or_else(|| self.due_since.map(|_| due()));
        self.shared.state.send_modify(|state| {
            (state.keyword, state.vectors, state.rebuild) = (keyword, vectors, rebuild);
            // Vectors are wiped before words are committed, words before they are published.
            if !self.keyword.owes_wipe() {
                state.wiped = keyword;
            }
            state.is_settled = self.is_settled;
        });
    }

    /// Starts to embed everything anew where that is due: another model, or a store that has
    /// doubled since its words were last weighed. Returns when to look again.
    fn consider_job(&mut self) -> Result<Option<Instant>, IndexError> {
        // However many come from outside: there is nothing to learn from those.
        let inside = self.shared.keyword.inside()?;
        let are_all = self.keyword_at >= *self.wakes.head.borrow();
        if self.job.is_some() || !self.shared.is_refit_due(inside, are_all) {
            self.due_since = None;
            return Ok(None);
        }
        let now = Instant::now();
        let due_since = *self.due_since.get_or_insert(now);
        let at = (self.text_at + QUIET_TIME).min(due_since + QUIET_WAIT_MAX);
        // Where there are no vectors at all, nobody waits for quiet.
        if at > now && self.shared.meaning().is_some() {
            self.publish();
            return Ok(Some(at));
        }
        self.due_since = None;
        self.job = Some(Job::start(&self.shared, &self.store, self.reading, inside));
        self.publish();
        Ok(None)
    }

    /// Puts vectors that are ready in place.
    fn take_job(&mut self) -> Result<(), IndexError> {
        let Some(job) = self.job.take_if(|job| job.is_finished()) else { return Ok(()) };
        let Made { meaning, mark, entitled, due } = job.finish()?;
        // What has become due since the job read it is read once more.
        self.replace_due(self.due.joined(&due))?;
        // What was forgotten meanwhile may have been wiped already, and must not come back.
        let snapshot = self.store.snapshot()?;
        meaning.remove_all(&erased_since(&snapshot, mark.seq)?);
        meaning.take_place(&self.shared.folder, &mark)?;
        self.shared.replace_meaning(Some(meaning));
        self.meaning_at = mark.seq;
        // Where others are entitled by now, words and vectors are renewed together.
        (self.entitled, self.is_compared) = (entitled, false);
        self.publish();
        Ok(())
    }

    fn read(
        &self,
        snapshot: &Snapshot,
        society: &Society,
        from: Seq,
        records_max: usize,
    ) -> Result<Stretch, Error> {
        let now = (self.reading.now)();
        read_stretch(snapshot, self.store.id(), (from, records_max), society, now)
    }
}

async fn finished(job: Option<&Job>) {
    match job {
        Some(job) => job.finished().await,
        None => std::future::pending().await,
    }
}

/// Entries of which text was taken back or forgotten after a place in the feed.
fn erased_since(snapshot: &Snapshot, from: Seq) -> Result<BTreeSet<EntryId>, Error> {
    let mut erased = BTreeSet::new();
    for change in snapshot.changes_since(from)? {
        let Some(change) = Error::unless_damaged(change)? else { continue };
        if change.record.header().facet.takes_back() {
            erased.insert(change.record.entry());
        }
    }
    Ok(erased)
}

/// Whether anything after a place in the feed changes what can be found.
fn has_text(snapshot: &Snapshot, from: Seq) -> Result<bool, Error> {
    for change in snapshot.changes_since(from)? {
        // A damaged record may have been text: reading the stretch passes over it.
        let change = Error::unless_damaged(change)?;
        if change.is_none_or(|change| change.record.header().facet != Facet::Tally) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_stretch(
    snapshot: &Snapshot,
    store: StoreId,
    (from, records_max): (Seq, usize),
    society: &Society,
    now: WallTime,
) -> Result<Stretch, Error> {
    let mut upto = snapshot.head();
    let (mut documents, mut erased) = (BTreeMap::new(), BTreeMap::new());
    for (count, change) in snapshot.changes_since(from)?.enumerate() {
        // A damaged record is told of by the doctor; the others are to be found all the same.
        let Some(change) = Error::unless_damaged(change)? else { continue };
        let facet = change.record.header().facet;
        if facet.takes_back() {
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
    let (documents, due) = read_documents(snapshot, society, documents, now)?;
    Ok(Stretch { mark: Mark::at(store, snapshot, upto)?, documents, due, erased })
}

fn read_documents(
    snapshot: &Snapshot,
    society: &Society,
    mut documents: BTreeMap<EntryId, Option<Document>>,
    now: WallTime,
) -> Result<(BTreeMap<EntryId, Option<Document>>, Due), Error> {
    let mut due = Due::default();
    for (entry, document) in &mut documents {
        let read = Document::read_until(snapshot, *entry, society, now);
        let (read, until) = Error::unless_damaged(read)?.unwrap_or_default();
        *document = read;
        if let Some(at) = until {
            due.note(at, *entry);
        }
    }
    Ok((documents, due))
}

/// Opens the words, or begins them anew where they are not those of this feed, or where it was not
/// noted what of them becomes due.
pub(super) fn open_keyword(
    folder: &Path,
    store: &Store,
    snapshot: &Snapshot,
    has_due: bool,
) -> Result<(Keyword, Seq), IndexError> {
    let path = folder.join("keyword");
    let why = match Keyword::open(&path) {
        Ok(Some((keyword, Some(mark)))) if has_due && mark.is_of(store.id(), snapshot)? => {
            return Ok((keyword, mark.seq));
        }
        Ok(Some(_)) if !has_due => "it is not noted what becomes due".to_owned(),
        Ok(Some(_)) => "it is of another feed".to_owned(),
        Ok(None) => "there is none".to_owned(),
        Err(error) => error.to_string(),
    };
    match snapshot.head() {
        Seq(0) => tracing::debug!(why, "beginning a keyword index"),
        _ => tracing::info!(why, "building the keyword index"),
    }
    Ok((Keyword::create(&path)?, Seq(0)))
}
