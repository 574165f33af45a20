//! Verbs that ask once and wait for one answer: meanwhile they tell what they wait for.

use super::Progress;
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
    fn what_is_waited_for_is_told_until_the_answer_is_there_and_gone_then() {
        assert_eq!(heard_until(0), ["clear", "clear"]);
        assert_eq!(heard_until(3), ["clear", "waiting for vm", "waiting for vm", "clear"]);
    }
}
