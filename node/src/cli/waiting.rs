//! Verbs that ask the node and wait for its answer: meanwhile they tell what they wait for.

use super::Progress;
use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::time::Duration;

/// How often it is told: often enough for the seconds beside it.
const TELL_INTERVAL: Duration = Duration::from_millis(200);

/// What comes of some work; until then, what is waited for is told.
pub(super) async fn waiting<T>(
    what: &str,
    progress: &mut dyn Progress,
    work: impl Future<Output = T>,
) -> T {
    paced(|| tokio::time::sleep(TELL_INTERVAL), what, progress, work).await
}

/// What a verb shares with the wait around it: the wait is told until the verb tells something itself.
pub(super) struct Shared<'a> {
    progress: RefCell<&'a mut dyn Progress>,
    has_told: Cell<bool>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(progress: &'a mut dyn Progress) -> Self {
        Self { progress: RefCell::new(progress), has_told: Cell::new(false) }
    }

    /// The operator's answer to a question, or what comes of the editor. No progress is shown
    /// meanwhile: the operator does not wait for the node.
    pub(super) fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        self.progress.borrow_mut().clear();
        let said = ask();
        self.progress.borrow_mut().clear();
        said
    }

    /// What comes of the verb.
    pub(super) async fn waiting<T>(&self, what: &str, verb: impl Future<Output = T>) -> T {
        waiting(what, &mut Meanwhile(self), verb).await
    }
}

/// What the verb itself tells.
impl Progress for &Shared<'_> {
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

/// What is told around a verb that has told nothing yet.
struct Meanwhile<'s, 'a>(&'s Shared<'a>);

impl Progress for Meanwhile<'_, '_> {
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>) {
        if !self.0.has_told.get() {
            self.0.progress.borrow_mut().tell(what, done, total);
        }
    }

    fn clear(&mut self) {
        self.0.progress.borrow_mut().clear();
    }
}

/// The same, told whenever a pause is over.
async fn paced<T, P: Future<Output = ()>>(
    pause: impl Fn() -> P,
    what: &str,
    progress: &mut dyn Progress,
    work: impl Future<Output = T>,
) -> T {
    // What was asked or shown before is no part of this wait.
    progress.clear();
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            // An answer that is there is not waited for.
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

    impl Progress for Heard {
        fn tell(&mut self, what: &str, _: u64, _: Option<u64>) {
            self.0.borrow_mut().push(what.to_owned());
        }

        fn clear(&mut self) {
            self.0.borrow_mut().push("clear".to_owned());
        }
    }

    /// What is heard of work that is done once so much was heard.
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
    fn a_verb_that_tells_something_itself_is_not_talked_over() {
        let (mut heard, seen) = (Heard::default(), Heard::default());
        let told = heard.clone();
        let shared = Shared::new(&mut heard);
        let (mut verb, mut around) = (&shared, Meanwhile(&shared));
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
    fn what_is_waited_for_is_told_until_the_answer_is_there_and_gone_then() {
        assert_eq!(heard_until(0), ["clear", "clear"]);
        assert_eq!(heard_until(3), ["clear", "waiting for vm", "waiting for vm", "clear"]);
    }
}
