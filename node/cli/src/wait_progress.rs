//! Progress of a verb that waits for the node.

use super::ProgressSink;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::time::Duration;

/// The time between two updates, short enough to count seconds.
const TELL_INTERVAL: Duration = Duration::from_millis(200);

/// Runs some work and reports `what` as progress until it is done.
pub(super) async fn waiting<T>(
    what: &str,
    progress: &mut dyn ProgressSink,
    work: impl Future<Output = T>,
) -> T {
    paced(|| tokio::time::sleep(TELL_INTERVAL), what, progress, work).await
}

/// Progress that a verb shares with the wait around it: the wait reports until the verb reports its
/// own.
pub(super) struct SharedProgress<'a> {
    progress: RefCell<&'a mut dyn ProgressSink>,
    has_told: Cell<bool>,
}

impl<'a> SharedProgress<'a> {
    pub(super) fn new(progress: &'a mut dyn ProgressSink) -> Self {
        Self { progress: RefCell::new(progress), has_told: Cell::new(false) }
    }

    /// Runs a prompt or the editor without progress, because the operator is not waiting for the
    /// node.
    pub(super) fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        self.progress.borrow_mut().clear();
        let answer = ask();
        self.progress.borrow_mut().clear();
        answer
    }

    /// Runs the verb and reports `what` until it reports its own progress.
    pub(super) async fn waiting<T>(&self, what: &str, verb: impl Future<Output = T>) -> T {
        waiting(what, &mut WaitProgress(self), verb).await
    }
}

/// The progress that the verb itself reports.
impl ProgressSink for &SharedProgress<'_> {
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>) {
        self.has_told.set(true);
        self.progress.borrow_mut().tell(what, done, total);
    }

    fn clear(&mut self) {
        self.has_told.set(true);
        self.progress.borrow_mut().clear();
    }

    fn announce(&mut self, lines: &str) -> bool {
        self.has_told.set(true);
        self.progress.borrow_mut().announce(lines)
    }
}

/// The progress of the wait, until the verb reports its own.
struct WaitProgress<'s, 'a>(&'s SharedProgress<'a>);

impl ProgressSink for WaitProgress<'_, '_> {
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>) {
        if !self.0.has_told.get() {
            self.0.progress.borrow_mut().tell(what, done, total);
        }
    }

    fn clear(&mut self) {
        self.0.progress.borrow_mut().clear();
    }
}

/// Like [`waiting`], with one report after each pause.
async fn paced<T, P: Future<Output = ()>>(
    pause: impl Fn() -> P,
    what: &str,
    progress: &mut dyn ProgressSink,
    work: impl Future<Output = T>,
) -> T {
    // Restart the delay: earlier prompts are not part of this wait.
    progress.clear();
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            // If the answer is ready, do not pause.
            biased;
            done = &mut work => break done,
            () = pause() => progress.tell(what, 0, None),
        }
    };
    progress.clear();
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::future::{poll_fn, ready};
    use std::rc::Rc;
    use std::task::Poll;

    /// Keeps what it hears.
    #[derive(Clone, Default)]
    struct Heard(Rc<RefCell<Vec<String>>>);

    impl ProgressSink for Heard {
        fn tell(&mut self, what: &str, _: u64, _: Option<u64>) {
            self.0.borrow_mut().push(what.to_owned());
        }

        fn clear(&mut self) {
            self.0.borrow_mut().push("clear".to_owned());
        }
    }

    /// The reports during work that is done once so much was heard.
    fn heard_until(count: usize) -> Vec<String> {
        let heard = Heard::default();
        let seen = heard.clone();
        let work = poll_fn(move |_| match seen.0.borrow().len() >= count {
            true => Poll::Ready(count),
            false => Poll::Pending,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut progress = heard.clone();
        let done = runtime.block_on(paced(|| ready(()), "waiting for vm", &mut progress, work));
        assert_eq!(done, count);
        heard.0.take()
    }

    #[test]
    fn the_progress_of_a_verb_replaces_the_waiting_message() {
        let (mut heard, seen) = (Heard::default(), Heard::default());
        let told = heard.clone();
        let shared = SharedProgress::new(&mut heard);
        let (mut verb, mut around) = (&shared, WaitProgress(&shared));
        around.tell("waiting for the node", 0, None);
        assert!(shared.asking(|| {
            seen.0.replace(told.0.borrow().clone());
            true
        }));
        around.tell("waiting for the node", 0, None);
        verb.tell("backing up", 1, Some(4));
        around.tell("waiting for the node", 0, None);
        assert_eq!(*seen.0.borrow(), ["waiting for the node", "clear"]);
        let all = ["waiting for the node", "clear", "clear", "waiting for the node", "backing up"];
        assert_eq!(*told.0.borrow(), all);
    }

    #[test]
    fn the_waiting_message_is_shown_until_the_answer_and_then_cleared() {
        assert_eq!(heard_until(0), ["clear", "clear"]);
        assert_eq!(heard_until(3), ["clear", "waiting for vm", "waiting for vm", "clear"]);
    }
}
