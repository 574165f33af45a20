//! A progress bar on the terminal for long operations; none for programs and for quick operations.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use klnode_cli::{Global, ProgressSink};
use std::time::{Duration, Instant};

/// The bar appears only after this time.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// A bar on standard error if that is a terminal, removed on drop.
pub(super) struct TerminalProgress {
    now: Box<dyn Fn() -> Instant>,
    target: Box<dyn Fn() -> ProgressDrawTarget>,
    since: Instant,
    /// Whether a program reads the output, so that no progress is shown.
    is_silent: bool,
    bar: Option<ProgressBar>,
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self::new(false)
    }
}

impl TerminalProgress {
    /// A bar that is silent if a program reads the output.
    pub(super) fn of(global: &Global) -> Self {
        Self::new(global.json)
    }

    fn new(is_silent: bool) -> Self {
        Self {
            now: Box::new(Instant::now),
            // This target draws only on a terminal.
            target: Box::new(ProgressDrawTarget::stderr),
            since: Instant::now(),
            is_silent,
            bar: None,
        }
    }
}

impl ProgressSink for TerminalProgress {
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>) {
        let elapsed = (self.now)().saturating_duration_since(self.since);
        if self.is_silent || elapsed < SHOWN_AFTER {
            return;
        }
        let bar =
            self.bar.get_or_insert_with(|| ProgressBar::with_draw_target(total, (self.target)()));
        // The clock of the bar starts when it is first shown, so the time is computed here.
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
        // The next operation has its own delay.
        self.since = (self.now)();
    }

    fn announce(&mut self, lines: &str) -> bool {
        self.clear();
        if !self.is_silent {
            super::say(&klnode_cli::harmless(lines.to_owned()));
        }
        !self.is_silent
    }
}

impl Drop for TerminalProgress {
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

    /// A terminal of one line, and the number of draws.
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

    /// A bar, its screen, and the milliseconds since its start.
    fn bar(json: bool) -> (TerminalProgress, Screen, Rc<Cell<u64>>) {
        let (screen, passed) = (Screen::default(), Rc::new(Cell::new(0)));
        let (drawn_on, read) = (screen.clone(), passed.clone());
        let (home, config, log, passphrase_file) = (None, None, None, None);
        let set = Vec::new();
        let global = Global { home, config, set, log, passphrase_file, json };
        let mut bar = TerminalProgress::of(&global);
        let start = bar.since;
        bar.target = Box::new(move || ProgressDrawTarget::term_like(Box::new(drawn_on.clone())));
        bar.now = Box::new(move || start + Duration::from_millis(read.get()));
        (bar, screen, passed)
    }

    #[test]
    fn the_bar_appears_only_for_long_operations() {
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
    fn the_next_operation_has_its_own_delay() {
        let (mut bar, screen, passed) = bar(false);
        // The operator has thought about a question for this long.
        passed.set(30_000);
        bar.clear();
        bar.tell("rewriting the store", 0, None);
        passed.set(31_999);
        bar.tell("rewriting the store", 0, None);
        assert_eq!(screen.drawn(), 0);
        passed.set(32_000);
        bar.tell("rewriting the store", 0, None);
        assert!(screen.shown().ends_with(" store, 2 s"), "{}", screen.shown());
    }
}
