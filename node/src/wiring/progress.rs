//! A bar on the terminal for what takes long; nothing for programs, and nothing for what is quick.

use crate::cli::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// What is done sooner needs no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// A bar on standard error, if that is a terminal. It goes when it is dropped.
pub(super) struct Bar {
    since: Instant,
    bar: Option<ProgressBar>,
}

impl Default for Bar {
    fn default() -> Self {
        Self { since: Instant::now(), bar: None }
    }
}

impl Progress for Bar {
    fn tell(&mut self, what: &'static str, done: u64, total: Option<u64>) {
        if self.since.elapsed() < SHOWN_AFTER {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            // It draws nothing where standard error is no terminal.
            ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr())
        });
        let shape = match total {
            Some(_) => "{msg} {wide_bar} {percent} %",
            None => "{msg} {spinner} {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        bar.set_length(total.unwrap_or(done));
        bar.set_message(what);
        bar.set_position(done);
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}
