//! The thread that compares findings: it wakes when a task with findings has finished or expired,
//! and sends the resulting commands to the writer.
//!
//! Due comparisons are stored, so a stop of the node loses none; the next start continues with
//! them.

use super::thread_supervision;
use klnode_crdt::time::WallTime;
use klnode_engine::{Handle, Rejection};
use klnode_index::Index;
use klnode_query::{CompareError, Comparer, Reader};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// The name of this worker in the log.
const WORKER: &str = "findings";
/// The back-off after a failure.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// The time between two attempts while the index computes vectors.
const READY_TIME: Duration = Duration::from_millis(200);

/// The longest wait, even if no comparison is due: it notices a machine that slept, or a clock that
/// was set.
const LOOK_TIME: Duration = Duration::from_secs(3_600);

/// The parts of the node that the worker uses.
pub(super) struct Setup {
    /// The queue of the writer.
    pub(super) engine: Handle,
    /// The index with the vectors of entries.
    pub(super) index: Index,
    /// The reader of the store.
    pub(super) reader: Arc<Reader>,
    /// The wall clock.
    pub(super) now: fn() -> WallTime,
}

/// The running thread.
pub(super) struct FindingWorker {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts the thread, which begins with comparisons that are already due.
pub(super) fn start(setup: Setup) -> FindingWorker {
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("klnode-findings".into())
        .spawn(move || setup.work(stopped))
        .expect("the system has room for one more thread");
    FindingWorker { stop, thread }
}

impl FindingWorker {
    /// Signals the thread to stop, without waiting: it may be blocked on the embedder, which is
    /// stopped next.
    pub(super) fn signal_stop(self) -> StoppingFindingWorker {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        StoppingFindingWorker(self.thread)
    }
}

/// A thread that is stopping.
pub(super) struct StoppingFindingWorker(JoinHandle<()>);

impl StoppingFindingWorker {
    /// Waits until the thread has ended.
    pub(super) fn wait(self) {
        thread_supervision::join(WORKER, self.0);
    }
}

impl Setup {
    /// Compares until the stop signal. After a panic, unfinished comparisons are still due in the
    /// store.
    fn work(self, mut stop: oneshot::Receiver<()>) {
        let mut unsettled = self.engine.finding_changes();
        thread_supervision::restart_on_panic(WORKER, |pause| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let runtime = runtime.expect("a timer needs nothing");
            let first = Instant::now() + pause;
            runtime.block_on(self.run(&mut stop, &mut unsettled, first));
        });
    }

    /// Compares from `first` on, or as soon as a task ends.
    async fn run(
        &self,
        stop: &mut oneshot::Receiver<()>,
        unsettled: &mut watch::Receiver<u64>,
        first: Instant,
    ) {
        let mut comparer = Comparer::default();
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
                changed = unsettled.changed() => if changed.is_err() { break },
                () = pause => {}
            }
            unsettled.borrow_and_update();
            wake = match self.turn(&mut comparer).await {
                Ok(wait) => wait.map(|wait| Instant::now() + wait),
                Err(FindingError::Compare(CompareError::NotReady)) => {
                    Some(Instant::now() + READY_TIME)
                }
                Err(FindingError::Write(Rejection::Stopping)) => break,
                Err(error) => {
                    tracing::warn!(%error, "Findings could not be compared; retrying in 10 s");
                    Some(Instant::now() + RETRY_TIME)
                }
            };
        }
    }

    /// Runs one pass over due comparisons. Returns the time to wait for the next; `None` if none is
    /// due.
    async fn turn(&self, comparer: &mut Comparer) -> Result<Option<Duration>, FindingError> {
        let now = (self.now)();
        let pass = {
            // Drop the snapshot before the writer works: after a full disk the writer reopens the
            // file, which allows one owner.
            let snapshot = self.engine.store().snapshot().map_err(CompareError::from)?;
            comparer.pass(&self.reader, &self.index, &snapshot, now)?
        };
        let has_worked = !pass.commands.is_empty();
        for command in pass.commands {
            self.engine.submit(command).await?;
        }
        if has_worked {
            return Ok(Some(Duration::ZERO));
        }
        let wait = |at: WallTime| at.as_millis().saturating_sub(now.as_millis());
        Ok(pass.next.map(|at| Duration::from_millis(wait(at)).min(LOOK_TIME)))
    }
}

/// The reason why a pass failed.
#[derive(Debug, thiserror::Error)]
enum FindingError {
    #[error("{0}")]
    Compare(#[from] CompareError),
    #[error("{0}")]
    Write(#[from] Rejection),
}

#[cfg(test)]
mod tests {
    use super::super::node::now;
    use super::super::node::testing::started;
    use super::*;
    use klnode_crdt::ids::TaskId;
    use klnode_engine::{Command, FindingCommand};
    use klnode_store::findings::FindingKey;
    use std::sync::{Condvar, Mutex};

    /// The number of calls of the clock below.
    static ASKED: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

    /// A clock that panics on its first call.
    fn panicking() -> WallTime {
        let times = {
            let mut asked = ASKED.0.lock().unwrap();
            *asked += 1;
            *asked
        };
        ASKED.1.notify_all();
        assert!(times > 1, "it panics");
        now()
    }

    #[track_caller]
    fn wait_until_asked(times: u32) {
        let (asked, patience) = (ASKED.0.lock().unwrap(), Duration::from_secs(60));
        let waited = ASKED.1.wait_timeout_while(asked, patience, |asked| *asked < times);
        assert!(!waited.unwrap().1.timed_out(), "never asked {times} times");
    }

    #[test]
    fn the_worker_continues_after_a_panic_and_stops_cleanly() {
        let (_folder, service, running) = started();
        let (engine, index, reader) = (service.engine, service.index, service.reader);
        let comparing = start(Setup { engine: engine.clone(), index, reader, now: panicking });
        wait_until_asked(1);
        // Even a refused command wakes the worker, before its pause ends and with no comparison
        // due.
        let finding = FindingKey { task: TaskId::from_bytes([1; 16]), number: 1 };
        let dismiss = FindingCommand::Dismiss(finding, "there is none".to_owned());
        let keep = FindingCommand::Keep { finding, same: None };
        for (act, times) in [(dismiss, 2), (keep, 3)] {
            let refused = engine.submit_blocking(Command::Finding(Box::new(act)));
            assert!(refused.is_err(), "{refused:?}");
            wait_until_asked(times);
        }
        comparing.signal_stop().wait();
        running.stop();
    }
}
