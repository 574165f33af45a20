//! What drives the comparing of findings: wakes when a task with some was finished or has expired,
//! and hands what follows to the writer.
//!
//! What is due stands in the store, so nothing is lost when the node stops in between, and whatever
//! was left is taken up at the next start.

use crate::engine::{Handle, Rejection};
use crate::index::Index;
use crate::query::{CompareError, Comparer, Reader};
use klnode_crdt::time::WallTime;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

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
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.expect("a timer needs nothing").block_on(setup.run(stopped));
        })
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
        if let Err(panic) = self.0.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Setup {
    async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut unsettled = self.engine.unsettled();
        let mut comparer = Comparer::default();
        let mut wake = Some(Instant::now());
        loop {
            let pause = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = &mut stop => break,
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
