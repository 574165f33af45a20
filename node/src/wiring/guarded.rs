//! Threads that work for the node by themselves: a panic ends none of them, and none the stop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;

/// After a panic it is tried again so much later.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Works until `work` returns. A panic on the way, as of a store whose pages are damaged, is told,
/// and `work` is called again. It is handed how long to wait first: nothing at the start, and a
/// while after a panic. The wait is its own, since it knows how it is told to stop.
pub(super) fn persist(who: &str, mut work: impl FnMut(Duration)) {
    let mut pause = Duration::ZERO;
    while catch_unwind(AssertUnwindSafe(|| work(pause))).is_err() {
        tracing::error!("{who} has fallen over and will try again");
        pause = RETRY_TIME;
    }
}

/// Waits until a thread that was told to stop has ended. However it has: others have yet to be
/// stopped.
pub(super) fn join(who: &str, thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("{who} fell over at its end");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_falls_over_is_called_again_after_a_while() {
        let mut pauses = Vec::new();
        persist("a test", |pause| {
            pauses.push(pause);
            assert!(pauses.len() > 2, "it falls over twice");
        });
        assert_eq!(pauses, [Duration::ZERO, RETRY_TIME, RETRY_TIME]);
    }

    #[test]
    fn a_thread_that_fell_over_ends_nobody_who_waits_for_it() {
        join("a test", std::thread::spawn(|| panic!("it falls over")));
    }
}
