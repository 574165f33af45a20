//! What drives the comparing of findings: wakes when a task with some was finished or has expired,
//! and hands what follows to the writer.
//!
//! What is due stands in the store, so nothing is lost when the node stops in between, and whatever
//! was left is taken up at the next start.

use super::guarded;
use crate::engine::{Handle, Rejection};
use crate::index::Index;
use crate::query::{CompareError, Comparer, Reader};
use klnode_crdt::time::WallTime;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// What the log calls it.
const WHO: &str = "the comparing of findings";
/// After a failure it is tried again so much later.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// Vectors that are in the making are asked for again so much later.
const READY_TIME: Duration = Duration::from_millis(200);

/// It looks again after so long even if nothing is due before: a machine that sleeps, or whose clock
/// is set, is noticed then.
const LOOK_TIME: Duration = Duration::from_secs(3_600);

/// What it works with.
pub(super) struct Setup {
    /// The way to the writer.
    pub(super) engine: Handle,
    /// What makes entries findable.
    pub(super) index: Index,
    /// Who reads.
    pub(super) reader: Arc<Reader>,
    /// What the clock says.
    pub(super) now: fn() -> WallTime,
}

/// The thread that compares.
pub(super) struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts it; what is due from before is taken up at once.
pub(super) fn start(setup: Setup) -> Running {
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("klnode-findings".into())
        .spawn(move || setup.work(stopped))
        .expect("the system has room for one more thread");
    Running { stop, thread }
}

impl Running {
    /// Tells it to stop, without waiting for it: it may wait for an embedder that is told next.
    pub(super) fn tell(self) -> Stopping {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        Stopping(self.thread)
    }
}

/// A thread that was told to stop.
pub(super) struct Stopping(JoinHandle<()>);

impl Stopping {
    /// Waits until it has.
    pub(super) fn wait(self) {
        guarded::join(WHO, self.0);
    }
}

impl Setup {
    /// Compares until told to stop. What a panic left undone is still due, and is read again.
    fn work(self, mut stop: oneshot::Receiver<()>) {
        let mut unsettled = self.engine.unsettled();
        guarded::persist(WHO, |pause| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let runtime = runtime.expect("a timer needs nothing");
            let first = Instant::now() + pause;
            runtime.block_on(self.run(&mut stop, &mut unsettled, first));
        });
    }

    /// The same from a moment on, or from when something happens.
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
                Err(Failed::Compare(CompareError::NotReady)) => Some(Instant::now() + READY_TIME),
                Err(Failed::Write(Rejection::Stopping)) => break,
                Err(error) => {
                    tracing::warn!(%error, "findings wait to be compared and will be again");
                    Some(Instant::now() + RETRY_TIME)
                }
            };
        }
    }

    /// Settles what is due, as much as one pass takes; says how long to wait for the next.
    async fn turn(&self, comparer: &mut Comparer) -> Result<Option<Duration>, Failed> {
        let now = (self.now)();
        let pass = {
            // No snapshot is held while the writer works: after a full disk it opens the file anew,
            // and a file has one owner.
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

/// Why nothing was settled.
#[derive(Debug, thiserror::Error)]
enum Failed {
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
    use crate::engine::{Command, FindingAct};
    use crate::store::findings::FindingKey;
    use klnode_crdt::ids::TaskId;
    use std::sync::{Condvar, Mutex};

    /// How often the clock below was asked.
    static ASKED: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

    /// A clock that falls over when it is first asked.
    fn falling() -> WallTime {
        let times = {
            let mut asked = ASKED.0.lock().unwrap();
            *asked += 1;
            *asked
        };
        ASKED.1.notify_all();
        assert!(times > 1, "it falls over");
        now()
    }

    #[track_caller]
    fn wait_until_asked(times: u32) {
        let (asked, patience) = (ASKED.0.lock().unwrap(), Duration::from_secs(60));
        let waited = ASKED.1.wait_timeout_while(asked, patience, |asked| *asked < times);
        assert!(!waited.unwrap().1.timed_out(), "never asked {times} times");
    }

    #[test]
    fn findings_are_compared_after_a_panic_too_and_the_stop_is_in_order() {
        let (_folder, service, running) = started();
        let (engine, index, reader) = (service.engine, service.index, service.reader);
        let comparing = start(Setup { engine: engine.clone(), index, reader, now: falling });
        wait_until_asked(1);
        // Even one that is refused wakes it, before the pause is over and when nothing is due.
        let finding = FindingKey { task: TaskId::from_bytes([1; 16]), number: 1 };
        let dismiss = FindingAct::Dismiss(finding, "there is none".to_owned());
        let keep = FindingAct::Keep { finding, same: None };
        for (act, times) in [(dismiss, 2), (keep, 3)] {
            let refused = engine.submit_blocking(Command::Finding(Box::new(act)));
            assert!(refused.is_err(), "{refused:?}");
            wait_until_asked(times);
        }
        comparing.tell().wait();
        running.stop();
    }
}
