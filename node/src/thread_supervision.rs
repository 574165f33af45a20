//! Supervision of background threads: a panic ends neither the thread nor the stop of the node.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

/// The back-off after a panic.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Calls `work` until it returns. After a panic, as on damaged pages of the store, it logs an error
/// and calls `work` again. The argument is the time to wait first: zero at the start, the back-off
/// after a panic. `work` does the waiting, because it knows how it is stopped.
pub(super) fn restart_on_panic(worker: &str, mut work: impl FnMut(Duration)) {
    let mut pause = Duration::ZERO;
    while catch_unwind(AssertUnwindSafe(|| work(pause))).is_err() {
        tracing::error!(
            worker,
            "A worker panicked, probably on damaged data; restarting it in 10 s"
        );
        pause = RETRY_TIME;
    }
}

/// Waits until a stopping thread has ended. A panic is only logged, because other threads must
/// still be stopped.
pub(super) fn join(worker: &str, thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!(worker, "A worker panicked while stopping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_called_again_after_a_panic() {
        let mut pauses = Vec::new();
        restart_on_panic("a test", |pause| {
            pauses.push(pause);
            assert!(pauses.len() > 2, "it panics twice");
        });
        assert_eq!(pauses, [Duration::ZERO, RETRY_TIME, RETRY_TIME]);
    }

    #[test]
    fn joining_a_panicked_thread_does_not_panic() {
        join("a test", std::thread::spawn(|| panic!("it panics")));
    }
}
