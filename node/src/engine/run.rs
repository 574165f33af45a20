//! The engine on a thread of its own, behind a bounded channel.
//!
//! Callers that wait while a commit is on its way to the disk are the next group: the busier the
//! node, the more share one commit. A caller that goes away leaves its command done or undone,
//! never half.

use super::command::{Command, Receipt, Rejection};
use super::covered::CoveredLog;
use super::step::Engine;
use super::upkeep::UpkeepDone;
use crate::store::Store;
use crate::store::rows::Seq;
use klnode_crdt::time::WallTime;
use rustix::time::ClockId;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// How far the wall clock may run ahead of the steady one between two commands: less is a clock that
/// is set right, more a machine that was put back.
const PARTED_MAX: Duration = Duration::from_secs(300);
/// The clock that nobody sets, and that goes on while the machine sleeps: a laptop sleeps several times
/// a day, and each boot is kept in whatever is counted in it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const STEADY: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const STEADY: ClockId = ClockId::Monotonic;

/// How much waits and how much is committed together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Commands that may wait; more callers wait to hand theirs over.
    pub queue_max: usize,
    /// Commands in one transaction.
    pub group_max: usize,
    /// Bytes they carry, so that a group of large records does not hold up the small ones.
    pub group_bytes_max: usize,
}

impl Limits {
    /// Authors, unknown here, whose word about one entry one peer may bring. Each author may have
    /// many records, so that without a limit one entry would take any room.
    pub const AUTHORS_BROUGHT_MAX: usize = 256;
    /// Such authors of one entry, whoever brings them.
    pub const AUTHORS_UNKNOWN_MAX: usize = 1_024;
    /// Bytes that one author has about one entry in one facet. Who tells the truth has one record there
    /// for each life of its home that has not heard of the others, nearly always one: seven of the
    /// longest fit.
    pub const AUTHOR_BYTES_MAX: u64 = 2 * 1024 * 1024;
    /// Bytes that all authors unknown here have about one entry. Decoded they take up about fifteen
    /// times as much, and again as much when they are joined, for each who reads the entry. A quarter of
    /// it is for those who say little, and another for those who say anew what they have said: however
    /// much others say, there is room for them. Blocked and convicted authors are among the unknown.
    pub const UNKNOWN_BYTES_MAX: u64 = 8 * 1024 * 1024;
    /// The same of authors who are known, but not this person's own and not the entry's creator: the
    /// owner of a workspace may list thousands of keys. A hundred members with the longest content fit
    /// into the half.
    pub const KNOWN_BYTES_MAX: u64 = 16 * 1024 * 1024;
    /// Up to so many bytes somebody says little: of whom is known here in one facet, of whom is unknown
    /// in all. A home counts there in fifty starts.
    pub const SHORT_BYTES_MAX: u64 = 2 * 1024;
}

// If all who may be unknown say little, there is room for it.
const _: () = assert!(
    Limits::AUTHORS_UNKNOWN_MAX as u64 * Limits::SHORT_BYTES_MAX <= Limits::UNKNOWN_BYTES_MAX / 4
);

impl Default for Limits {
    fn default() -> Self {
        Self { queue_max: 1_024, group_max: 1_000, group_bytes_max: 4 * 1024 * 1024 }
    }
}

type Answer = Result<Receipt, Rejection>;

enum Request {
    Do(Box<Command>, oneshot::Sender<Answer>),
    All(Vec<Command>, oneshot::Sender<Vec<Answer>>),
    Stop,
}

/// Who waits for the answers of a group, in the order of its commands.
enum Waiting {
    One(oneshot::Sender<Answer>),
    Several(usize, oneshot::Sender<Vec<Answer>>),
}

/// A caller's end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    head: watch::Receiver<Seq>,
    society: watch::Receiver<u64>,
    unsettled: watch::Receiver<u64>,
    noted: watch::Receiver<u64>,
    refused: watch::Receiver<bool>,
    covered: Arc<CoveredLog>,
    store: Store,
}

impl Handle {
    /// Hands a command over and waits until it is durable.
    pub async fn submit(&self, command: Command) -> Result<Receipt, Rejection> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Do(Box::new(command), reply);
        self.requests.send(request).await.map_err(|_| Rejection::Stopping)?;
        answer.await.map_err(|_| Rejection::Stopping)?
    }

    /// Hands a command over without waiting for it, after all that were handed over before. When
    /// too much waits already it is dropped: for what nobody was promised.
    pub fn note(&self, command: Command) {
        let (reply, _) = oneshot::channel();
        if self.requests.try_send(Request::Do(Box::new(command), reply)).is_err() {
            tracing::debug!("the writer is too busy: what nobody was promised is dropped");
        }
    }

    /// Hands a command over, waiting for room but not for its commit: what is handed over next comes
    /// after it. For what nobody was promised, and what decides about later commands.
    pub async fn hand_over(&self, command: Command) {
        let (reply, _) = oneshot::channel();
        // An error means that the node is stopping.
        let _ = self.requests.send(Request::Do(Box::new(command), reply)).await;
    }

    /// Hands several commands over as one: they are applied in order, in one transaction, and each
    /// has its answer. The caller bounds how many.
    pub async fn submit_all(&self, commands: Vec<Command>) -> Result<Vec<Answer>, Rejection> {
        let (reply, answers) = oneshot::channel();
        let request = Request::All(commands, reply);
        self.requests.send(request).await.map_err(|_| Rejection::Stopping)?;
        answers.await.map_err(|_| Rejection::Stopping)
    }

    /// The same as [`Self::submit`], from a thread without a runtime.
    pub fn submit_blocking(&self, command: Command) -> Result<Receipt, Rejection> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Do(Box::new(command), reply);
        self.requests.blocking_send(request).map_err(|_| Rejection::Stopping)?;
        answer.blocking_recv().map_err(|_| Rejection::Stopping)?
    }

    /// The same as [`Self::submit_all`], from a thread without a runtime.
    pub fn submit_all_blocking(&self, commands: Vec<Command>) -> Result<Vec<Answer>, Rejection> {
        let (reply, answers) = oneshot::channel();
        let request = Request::All(commands, reply);
        self.requests.blocking_send(request).map_err(|_| Rejection::Stopping)?;
        answers.blocking_recv().map_err(|_| Rejection::Stopping)
    }

    /// Commands that wait for the writer.
    pub fn waiting(&self) -> usize {
        self.requests.max_capacity() - self.requests.capacity()
    }

    /// The records that were covered lately.
    pub fn covered(&self) -> &CoveredLog {
        &self.covered
    }

    /// The newest position of the feed; changes after every commit. Facts are pulled: a reader
    /// that hears of a new position reads the feed at its own pace.
    pub fn head(&self) -> watch::Receiver<Seq> {
        self.head.clone()
    }

    /// Changes after every commit that may have changed who is who without a record: somebody was
    /// blocked, convicted or made the person's own. Who is what, the store says.
    pub fn society(&self) -> watch::Receiver<u64> {
        self.society.clone()
    }

    /// Changes after every commit that may have left findings to compare; which, the store says.
    pub fn unsettled(&self) -> watch::Receiver<u64> {
        self.unsettled.clone()
    }

    /// Changes after every commit in which upkeep noted something; what, the journal says.
    pub fn noted(&self) -> watch::Receiver<u64> {
        self.noted.clone()
    }

    /// Whether the disk refused what was last to be written: reading goes on, and whoever writes is
    /// told, but the operator may be neither.
    pub fn is_refused(&self) -> bool {
        *self.refused.borrow()
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// An engine at work.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    thread: JoinHandle<Engine>,
}

/// Starts the writer's thread. `now` is its clock.
pub fn spawn(
    engine: Engine,
    limits: Limits,
    now: impl Fn() -> WallTime + Send + 'static,
) -> Running {
    let (requests, inbox) = mpsc::channel(limits.queue_max.max(1));
    let (publish, head) = watch::channel(engine.head());
    let (introduce, society) = watch::channel(engine.society_changes());
    let (unsettle, unsettled) = watch::channel(0);
    let (note, noted) = watch::channel(0);
    let (refuse, refused) = watch::channel(engine.is_refused());
    let store = engine.store().clone();
    let covered = engine.covered();
    let handle = Handle { requests, head, society, unsettled, noted, refused, covered, store };
    let published = Published {
        head: publish,
        society: introduce,
        unsettled: unsettle,
        noted: note,
        refused: refuse,
    };
    let thread = std::thread::Builder::new()
        .name("klnode-writer".into())
        .spawn(move || serve(engine, inbox, limits, &published, now))
        .expect("the system has room for one more thread");
    Running { handle, thread }
}

impl Running {
    /// A caller's end.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes no new commands, finishes those that wait, and hands the engine back.
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
    published: &Published,
    now: impl Fn() -> WallTime,
) -> Engine {
    let mut watched = Watched(engine.last_step(), steady());
    // Ends when the inbox is closed and empty: then every command has its answer.
    while let Some(first) = inbox.blocking_recv() {
        let (mut commands, mut waiting, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Do(command, reply) => {
                    bytes += command.payload_bytes();
                    commands.push(*command);
                    waiting.push(Waiting::One(reply));
                }
                Request::All(several, reply) => {
                    bytes += several.iter().map(Command::payload_bytes).sum::<usize>();
                    waiting.push(Waiting::Several(several.len(), reply));
                    commands.extend(several);
                }
                Request::Stop => inbox.close(),
            }
            let is_full = commands.len() >= limits.group_max || bytes >= limits.group_bytes_max;
            next = if is_full { None } else { inbox.try_recv().ok() };
        }
        let answers = match commands.is_empty() {
            true => Vec::new(),
            false => {
                let now = now();
                if watched.has_parted(now, steady()) {
                    engine.resumed();
                }
                engine.step_over(&commands, now)
            }
        };
        published.tell(&engine, &commands, &answers);
        answer(waiting, answers.into_iter());
    }
    engine.settle(now);
    engine
}

/// What the steady clock says.
fn steady() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(STEADY)).unwrap_or_default()
}

/// Both clocks when the last command came, or the engine started.
struct Watched(WallTime, Duration);

impl Watched {
    /// Whether the wall clock has run ahead of the steady one since then. Of an image that is put back
    /// the steady one goes on from where the image was taken, while the wall clock is set right. (Of one
    /// that was taken of a machine asleep nobody can tell but by the day that passed.)
    fn has_parted(&mut self, wall: WallTime, steady: Duration) -> bool {
        let passed = steady.saturating_sub(self.1);
        let has_parted = self.0.plus(passed).plus(PARTED_MAX) < wall;
        *self = Self(wall, steady);
        has_parted
    }
}

/// Whom the writer wakes after a commit. What happened they read themselves.
struct Published {
    head: watch::Sender<Seq>,
    society: watch::Sender<u64>,
    unsettled: watch::Sender<u64>,
    noted: watch::Sender<u64>,
    refused: watch::Sender<bool>,
}

impl Published {
    fn tell(&self, engine: &Engine, commands: &[Command], answers: &[Answer]) {
        let newest = engine.head();
        self.head.send_if_modified(|head| std::mem::replace(head, newest) != newest);
        let changes = engine.society_changes();
        self.society.send_if_modified(|known| std::mem::replace(known, changes) != changes);
        let is_refused = engine.is_refused();
        self.refused.send_if_modified(|known| std::mem::replace(known, is_refused) != is_refused);
        let wake =
            |whom: &watch::Sender<u64>| whom.send_modify(|times| *times = times.wrapping_add(1));
        if commands.iter().any(Command::unsettles) {
            wake(&self.unsettled);
        }
        let has_noted = |answer: &Answer| match answer {
            Ok(Receipt::Upkeep(UpkeepDone::Noted(numbers))) => !numbers.is_empty(),
            _ => false,
        };
        if answers.iter().any(has_noted) {
            wake(&self.noted);
        }
    }
}

/// Hands the answers out. An error means that the caller went away; what it asked for is done all
/// the same.
fn answer(waiting: Vec<Waiting>, mut answers: impl Iterator<Item = Answer>) {
    for caller in waiting {
        match caller {
            Waiting::One(reply) => {
                let _ = answers.next().map(|answer| reply.send(answer));
            }
            Waiting::Several(count, reply) => {
                let _ = reply.send(answers.by_ref().take(count).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_is_put_back_parts_the_clocks_and_a_night_of_sleep_does_not() {
        let (wall, night) = (WallTime::from_millis(1_800_000_000_000), Duration::from_secs(30_000));
        let mut watched = Watched(wall, Duration::ZERO);
        assert!(!watched.has_parted(wall.plus(night), night), "both went on");
        let set_right = wall.plus(night).plus(PARTED_MAX);
        assert!(!watched.has_parted(set_right, night), "a clock may be set");
        assert!(watched.has_parted(set_right.plus(night), night), "the steady one was put back");
        assert!(!watched.has_parted(wall, night), "what is put back is noticed elsewhere");
    }

    #[test]
    fn the_steady_clock_can_be_read() {
        let before = steady();
        assert!(before > Duration::ZERO && steady() >= before);
    }
}
