//! Runs the engine on its own thread behind a bounded channel.
//!
//! Commands that arrive while a commit is being flushed form the next group, so the group size
//! grows with the load. If a caller drops its future, its command is applied either completely or
//! not at all.

use super::command::{Command, MaintenanceReceipt, Receipt, Rejection};
use super::engine::Engine;
use super::open_documents::OpenDocuments;
use super::replaced_records::ReplacedLog;
use klnode_crdt::time::WallTime;
use klnode_store::Store;
use klnode_store::row_types::Seq;
use rustix::time::ClockId;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Largest accepted advance of the wall clock over the steady clock between two commands. A smaller
/// advance counts as a clock correction, a larger one as a machine that was restored from an image.
const WALL_LEAD_MAX: Duration = Duration::from_secs(300);
/// A clock that no administrator can set and that keeps running while the machine sleeps. A clock
/// that stops during sleep would make every wake-up of a laptop look like a restored image, and
/// each such event draws a new boot number, which every counter keeps for good.
#[cfg(any(target_os = "linux", target_os = "android"))]
const STEADY_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const STEADY_CLOCK: ClockId = ClockId::Monotonic;

/// Size of the command queue and of a commit group, and the byte quotas per entry.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of queued commands; further callers wait for a free place.
    pub queue_max: usize,
    /// Most commands in one transaction.
    pub group_max: usize,
    /// Most payload bytes in one transaction, so that a group of large records does not delay small
    /// ones.
    pub group_bytes_max: usize,
}

impl Limits {
    /// Most authors unknown to this node whose records about one entry a single peer may deliver.
    /// Each author may have many records, so without this limit one entry could grow without bound.
    pub const AUTHORS_BROUGHT_MAX: usize = 256;
    /// Most unknown authors per entry, over all delivering peers.
    pub const AUTHORS_UNKNOWN_MAX: usize = 1_024;
    /// Most bytes that one author may store about one entry in one facet. An honest author has one
    /// record there for each of its boots that has not yet seen the others, which is nearly always
    /// one; seven records of maximum length fit.
    pub const AUTHOR_BYTES_MAX: u64 = 2 * 1024 * 1024;
    /// Most bytes that all unknown authors together may store about one entry. Decoded records take
    /// about fifteen times as much memory, and the same again while they are joined, for every
    /// reader of the entry. A quarter of the quota is reserved for short records and another
    /// quarter for authors that replace their own records, so neither is crowded out. Blocked and
    /// convicted authors count as unknown.
    pub const UNKNOWN_BYTES_MAX: u64 = 8 * 1024 * 1024;
    /// Most bytes per entry of all known authors, except this person's own keys and the entry's
    /// creator. The limit exists because a workspace owner may list thousands of keys. Records of a
    /// hundred members with content of maximum length fit into half of it.
    pub const KNOWN_BYTES_MAX: u64 = 16 * 1024 * 1024;
    /// An author whose records on an entry stay within this many bytes counts as short. For a known
    /// author the bytes are those of one facet, for an unknown author those of all facets. The
    /// counters of fifty boots fit.
    pub const SHORT_BYTES_MAX: u64 = 2 * 1024;
}

// If every permitted unknown author is short, the reserved quarter holds all of them.
const _: () = assert!(
    Limits::AUTHORS_UNKNOWN_MAX as u64 * Limits::SHORT_BYTES_MAX <= Limits::UNKNOWN_BYTES_MAX / 4
);

impl Default for Limits {
    fn default() -> Self {
        Self { queue_max: 1_024, group_max: 1_000, group_bytes_max: 4 * 1024 * 1024 }
    }
}

type CommandResult = Result<Receipt, Rejection>;

enum Request {
    Do(Box<Command>, oneshot::Sender<CommandResult>),
    All(Vec<Command>, oneshot::Sender<Vec<CommandResult>>),
    ReleaseCache(oneshot::Sender<bool>),
    Stop,
}

/// The callers waiting for the answers of a group, in the order of its commands.
enum Waiters {
    One(oneshot::Sender<CommandResult>),
    Several(usize, oneshot::Sender<Vec<CommandResult>>),
}

/// A caller's handle to the writer thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    head: watch::Receiver<Seq>,
    membership: watch::Receiver<u64>,
    unsettled: watch::Receiver<u64>,
    noted: watch::Receiver<u64>,
    refused: watch::Receiver<bool>,
    covered: Arc<ReplacedLog>,
    documents: Arc<OpenDocuments>,
    store: Store,
}

impl Handle {
    /// Sends a command and waits until it is durable.
    pub async fn submit(&self, command: Command) -> Result<Receipt, Rejection> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Do(Box::new(command), reply);
        self.requests.send(request).await.map_err(|_| Rejection::Stopping)?;
        answer.await.map_err(|_| Rejection::Stopping)?
    }

    /// Queues a command without waiting for its result. If the queue is full the command is
    /// dropped, so this is only for commands whose loss breaks no promise to a caller.
    pub fn note(&self, command: Command) {
        let (reply, _) = oneshot::channel();
        if self.requests.try_send(Request::Do(Box::new(command), reply)).is_err() {
            tracing::debug!("The writer queue is full; dropped a best-effort command");
        }
    }

    /// Waits for a place in the queue but not for the commit; commands queued later are applied
    /// after this one. For commands without a promised result that later commands depend on.
    pub async fn hand_over(&self, command: Command) {
        let (reply, _) = oneshot::channel();
        // An error means that the node is stopping.
        let _ = self.requests.send(Request::Do(Box::new(command), reply)).await;
    }

    /// Sends several commands that are applied in order in one transaction; each has its own
    /// answer. The caller bounds their number.
    pub async fn submit_all(
        &self,
        commands: Vec<Command>,
    ) -> Result<Vec<CommandResult>, Rejection> {
        let (reply, answers) = oneshot::channel();
        let request = Request::All(commands, reply);
        self.requests.send(request).await.map_err(|_| Rejection::Stopping)?;
        answers.await.map_err(|_| Rejection::Stopping)
    }

    /// Like [`Self::submit`], for a thread without an async runtime.
    pub fn submit_blocking(&self, command: Command) -> Result<Receipt, Rejection> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Do(Box::new(command), reply);
        self.requests.blocking_send(request).map_err(|_| Rejection::Stopping)?;
        answer.blocking_recv().map_err(|_| Rejection::Stopping)?
    }

    /// Like [`Self::submit_all`], for a thread without an async runtime.
    pub fn submit_all_blocking(
        &self,
        commands: Vec<Command>,
    ) -> Result<Vec<CommandResult>, Rejection> {
        let (reply, answers) = oneshot::channel();
        let request = Request::All(commands, reply);
        self.requests.blocking_send(request).map_err(|_| Rejection::Stopping)?;
        answers.blocking_recv().map_err(|_| Rejection::Stopping)
    }

    /// Empties the page cache of the store after the queued commands. Returns false if a reader
    /// holds the store or the writer has stopped; then try again later.
    pub async fn release_cache(&self) -> bool {
        let (reply, released) = oneshot::channel();
        let sent = self.requests.send(Request::ReleaseCache(reply)).await;
        sent.is_ok() && released.await.unwrap_or_default()
    }

    /// Number of commands that are queued and not yet applied.
    pub fn waiting(&self) -> usize {
        self.requests.max_capacity() - self.requests.capacity()
    }

    /// The documents in memory, for reading.
    pub fn documents(&self) -> &Arc<OpenDocuments> {
        &self.documents
    }

    /// The log of recently replaced records.
    pub fn replaced_log(&self) -> &ReplacedLog {
        &self.covered
    }

    /// The newest feed position; changes after every commit. Subscribers read the feed themselves,
    /// each at its own pace.
    pub fn head(&self) -> watch::Receiver<Seq> {
        self.head.clone()
    }

    /// Changes after every commit that may have changed membership without a feed record: an author
    /// was blocked, convicted or marked as this person's own. Subscribers read the new state from
    /// the store.
    pub fn membership(&self) -> watch::Receiver<u64> {
        self.membership.clone()
    }

    /// Changes after every commit that may have left findings to compare; the store lists them.
    pub fn finding_changes(&self) -> watch::Receiver<u64> {
        self.unsettled.clone()
    }

    /// Changes after every commit in which maintenance wrote to its journal.
    pub fn journal_changes(&self) -> watch::Receiver<u64> {
        self.noted.clone()
    }

    /// Whether the last write failed at the disk. Reads continue and the calling writer gets an
    /// error, but the operator may see neither, so status reports this flag.
    pub fn has_write_failed(&self) -> bool {
        *self.refused.borrow()
    }

    /// The store, for reading only; the engine is its only writer.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// A running engine thread.
#[derive(Debug)]
pub struct EngineThread {
    handle: Handle,
    thread: JoinHandle<Engine>,
}

/// Starts the writer thread. `now` supplies its wall-clock time.
pub fn spawn(
    engine: Engine,
    limits: Limits,
    now: impl Fn() -> WallTime + Send + 'static,
) -> EngineThread {
    let (requests, inbox) = mpsc::channel(limits.queue_max.max(1));
    let (publish, head) = watch::channel(engine.head());
    let (introduce, membership) = watch::channel(engine.membership_changes());
    let (unsettle, unsettled) = watch::channel(0);
    let (note, noted) = watch::channel(0);
    let (refuse, refused) = watch::channel(engine.has_write_failed());
    let store = engine.store().clone();
    let (covered, documents) = (engine.replaced_log(), Arc::clone(engine.documents()));
    let handle =
        Handle { requests, head, membership, unsettled, noted, refused, covered, documents, store };
    let published = CommitSignals {
        head: publish,
        membership: introduce,
        unsettled: unsettle,
        noted: note,
        refused: refuse,
    };
    let thread = std::thread::Builder::new()
        .name("klnode-writer".into())
        .spawn(move || serve(engine, inbox, limits, &published, now))
        .expect("the system has room for one more thread");
    EngineThread { handle, thread }
}

impl EngineThread {
    /// A new handle for a caller.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Refuses new commands, finishes the queued ones and returns the engine.
    pub fn stop(self) -> Engine {
        // An error means that the thread has ended already.
        let _ = self.handle.requests.blocking_send(Request::Stop);
        drop(self.handle);
        match self.thread.join() {
            Ok(engine) => engine,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn serve(
    mut engine: Engine,
    mut inbox: mpsc::Receiver<Request>,
    limits: Limits,
    published: &CommitSignals,
    now: impl Fn() -> WallTime,
) -> Engine {
    let mut clocks = Clocks(engine.last_step(), read_steady_clock());
    // The loop ends when the inbox is closed and empty; by then every command has its answer.
    while let Some(first) = inbox.blocking_recv() {
        let (mut commands, mut waiting, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut releases = Vec::new();
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Do(command, reply) => {
                    bytes += command.payload_bytes();
                    commands.push(*command);
                    waiting.push(Waiters::One(reply));
                }
                Request::All(several, reply) => {
                    bytes += several.iter().map(Command::payload_bytes).sum::<usize>();
                    waiting.push(Waiters::Several(several.len(), reply));
                    commands.extend(several);
                }
                Request::ReleaseCache(reply) => releases.push(reply),
                Request::Stop => inbox.close(),
            }
            let is_full = commands.len() >= limits.group_max || bytes >= limits.group_bytes_max;
            next = if is_full { None } else { inbox.try_recv().ok() };
        }
        let answers = match commands.is_empty() {
            true => Vec::new(),
            false => {
                let now = now();
                if clocks.wall_jumped_ahead(now, read_steady_clock()) {
                    engine.mark_resumed();
                }
                engine.step_catching_panics(&commands, now)
            }
        };
        published.notify(&engine, &commands, &answers);
        answer(waiting, answers.into_iter());
        for reply in releases {
            // An error means that the caller has gone.
            let _ = reply.send(engine.release_cache());
        }
    }
    engine.flush_reads(now);
    engine
}

fn read_steady_clock() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(STEADY_CLOCK)).unwrap_or_default()
}

/// Wall and steady clock at the last command, or at the start of the engine.
struct Clocks(WallTime, Duration);

impl Clocks {
    /// Whether the wall clock has run ahead of the steady clock since then. After a restore from an
    /// image the steady clock continues from the moment of the image, while the wall clock is set
    /// to the current time. (An image of a sleeping machine can only be recognised by the long gap
    /// between steps.)
    fn wall_jumped_ahead(&mut self, wall: WallTime, steady: Duration) -> bool {
        let passed = steady.saturating_sub(self.1);
        let wall_jumped_ahead = self.0.plus(passed).plus(WALL_LEAD_MAX) < wall;
        *self = Self(wall, steady);
        wall_jumped_ahead
    }
}

/// Channels on which the writer wakes subscribers after a commit. They carry no details;
/// subscribers read the store.
struct CommitSignals {
    head: watch::Sender<Seq>,
    membership: watch::Sender<u64>,
    unsettled: watch::Sender<u64>,
    noted: watch::Sender<u64>,
    refused: watch::Sender<bool>,
}

impl CommitSignals {
    fn notify(&self, engine: &Engine, commands: &[Command], answers: &[CommandResult]) {
        let newest = engine.head();
        self.head.send_if_modified(|head| std::mem::replace(head, newest) != newest);
        let changes = engine.membership_changes();
        self.membership.send_if_modified(|known| std::mem::replace(known, changes) != changes);
        let is_refused = engine.has_write_failed();
        self.refused.send_if_modified(|known| std::mem::replace(known, is_refused) != is_refused);
        let wake =
            |whom: &watch::Sender<u64>| whom.send_modify(|times| *times = times.wrapping_add(1));
        if commands.iter().any(Command::leaves_comparisons) {
            wake(&self.unsettled);
        }
        let has_noted = |answer: &CommandResult| match answer {
            Ok(Receipt::Maintenance(MaintenanceReceipt::Noted(numbers))) => !numbers.is_empty(),
            _ => false,
        };
        if answers.iter().any(has_noted) {
            wake(&self.noted);
        }
    }
}

/// Sends the answers to their callers. A send error means that the caller has gone; its command is
/// applied all the same.
fn answer(waiting: Vec<Waiters>, mut answers: impl Iterator<Item = CommandResult>) {
    for caller in waiting {
        match caller {
            Waiters::One(reply) => {
                let _ = answers.next().map(|answer| reply.send(answer));
            }
            Waiters::Several(count, reply) => {
                let _ = reply.send(answers.by_ref().take(count).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restoring_an_image_is_detected_and_a_night_of_sleep_is_not() {
        let (wall, night) = (WallTime::from_millis(1_800_000_000_000), Duration::from_secs(30_000));
        let mut clocks = Clocks(wall, Duration::ZERO);
        assert!(!clocks.wall_jumped_ahead(wall.plus(night), night), "both clocks advanced");
        let corrected = wall.plus(night).plus(WALL_LEAD_MAX);
        assert!(!clocks.wall_jumped_ahead(corrected, night), "a small correction is accepted");
        assert!(
            clocks.wall_jumped_ahead(corrected.plus(night), night),
            "only the wall clock advanced"
        );
        assert!(
            !clocks.wall_jumped_ahead(wall, night),
            "a wall clock that goes back is detected elsewhere"
        );
    }

    #[test]
    fn the_steady_clock_can_be_read() {
        let before = read_steady_clock();
        assert!(before > Duration::ZERO && read_steady_clock() >= before);
    }
}
