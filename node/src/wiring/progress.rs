//! A bar on the terminal for what takes long; nothing for programs, and nothing for what is quick.

use crate::cli::{Global, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// What is done sooner needs no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// A bar on standard error, if that is a terminal. It goes when it is dropped.
pub(super) struct Bar {
    now: Box<dyn Fn() -> Instant>,
    target: Box<dyn Fn() -> ProgressDrawTarget>,
    since: Instant,
    /// A program reads the answer, and is told nothing beside it.
    is_silent: bool,
    bar: Option<ProgressBar>,
}

impl Default for Bar {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Bar {
    /// The same, unless a program reads the answer.
    pub(super) fn of(global: &Global) -> Self {
        Self::new(global.json)
    }

    fn new(is_silent: bool) -> Self {
        Self {
            now: Box::new(Instant::now),
            // It draws nothing where standard error is no terminal.
            target: Box::new(ProgressDrawTarget::stderr),
            since: Instant::now(),
            is_silent,
            bar: None,
        }
    }
}

impl Progress for Bar {
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>) {
        let elapsed = (self.now)().saturating_duration_since(self.since);
        if self.is_silent || elapsed < SHOWN_AFTER {
            return;
        }
        let bar =
            self.bar.get_or_insert_with(|| ProgressBar::with_draw_target(total, (self.target)()));
        // The bar's own clock begins when it is first shown, which is later.
        let (shape, message) = match total {
            Some(_) => ("{msg} {wide_bar} {percent} %", what.to_owned()),
            None => ("{spinner} {msg}", format!("{what}, {} s", elapsed.as_secs())),
        };
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        bar.set_length(total.unwrap_or(done));
        bar.set_message(message);
        bar.set_position(done);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        // What comes next takes its own time.
        self.since = (self.now)();
    }

    fn announce(&mut self, lines: &str) -> bool {
        self.clear();
        if !self.is_silent {
            super::say(&crate::cli::harmless(lines.to_owned()));
        }
        !self.is_silent
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::cell::Cell;
    use std::io;
    use std::rc::Rc;
    use std::sync::{Arc, Mutex};

    /// A terminal of one line, and how often something was drawn on it.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<(String, usize)>>);

    impl Screen {
        fn shown(&self) -> String {
            self.0.lock().unwrap().0.trim_end().to_owned()
        }

        fn drawn(&self) -> usize {
            self.0.lock().unwrap().1
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            40
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut line = self.0.lock().unwrap();
            line.0.push_str(text);
            line.1 += 1;
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().0.clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A bar, what is seen of it, and the milliseconds that have passed.
    fn bar(json: bool) -> (Bar, Screen, Rc<Cell<u64>>) {
        let (screen, passed) = (Screen::default(), Rc::new(Cell::new(0)));
        let (drawn_on, read) = (screen.clone(), passed.clone());
        let (home, config, log, passphrase_file) = (None, None, None, None);
        let set = Vec::new();
        let global = Global { home, config, set, log, passphrase_file, json };
        let mut bar = Bar::of(&global);
        let start = bar.since;
        bar.target = Box::new(move || ProgressDrawTarget::term_like(Box::new(drawn_on.clone())));
        bar.now = Box::new(move || start + Duration::from_millis(read.get()));
        (bar, screen, passed)
    }

    #[test]
    fn what_is_quick_shows_nothing_and_what_is_not_shows_how_far_it_is_until_it_ends() {
        let (mut bar, screen, passed) = bar(false);
        bar.tell("importing", 10, Some(100));
        passed.set(1_999);
        bar.tell("importing", 20, Some(100));
        assert_eq!(screen.drawn(), 0);
        passed.set(2_000);
        bar.tell("importing", 30, Some(100));
        let shown = screen.shown();
        assert!(shown.starts_with("importing ") && shown.ends_with(" 30 %"), "{shown}");
        bar.tell("importing", 40, Some(100));
        let shown = screen.shown();
        assert_eq!(shown.matches("importing").count(), 1, "{shown}");
        assert!(shown.ends_with(" 40 %"), "{shown}");
        drop(bar);
        assert_eq!(screen.shown(), "");
    }

    #[test]
    fn a_program_is_shown_nothing_however_long_it_takes() {
        let (mut bar, screen, passed) = bar(true);
        passed.set(60_000);
        bar.tell("importing", 30, Some(100));
        bar.tell("waiting for vm", 0, None);
        assert_eq!(screen.drawn(), 0);
    }

    #[test]
    fn a_wait_is_one_line_with_the_time_that_it_has_taken() {
        let (mut bar, screen, passed) = bar(false);
        passed.set(1_999);
        bar.tell("waiting for vm", 0, None);
        assert_eq!(screen.drawn(), 0);
        for (after, time) in [(2_000, "2 s"), (2_900, "2 s"), (61_000, "61 s")] {
            passed.set(after);
            bar.tell("waiting for vm", 0, None);
            let shown = screen.shown();
            assert!(shown.ends_with(&format!(" waiting for vm, {time}")), "{shown}");
            assert_eq!(shown.matches("waiting").count(), 1, "{shown}");
        }
        bar.clear();
        assert_eq!(screen.shown(), "");
    }

    #[test]
    fn what_follows_has_its_own_two_seconds() {
        let (mut bar, screen, passed) = bar(false);
        // So long somebody has thought about a question.
        passed.set(30_000);
        bar.clear();
        bar.tell("writing the store anew", 0, None);
        passed.set(31_999);
        bar.tell("writing the store anew", 0, None);
        assert_eq!(screen.drawn(), 0);
        passed.set(32_000);
        bar.tell("writing the store anew", 0, None);
        assert!(screen.shown().ends_with(" anew, 2 s"), "{}", screen.shown());
    }
}
