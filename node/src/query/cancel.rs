//! A word to work on another thread: nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether work has become needless. Cheap to ask and to clone; clones are one.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// Cancels when it is dropped.
#[derive(Debug)]
#[must_use = "it cancels as soon as it is dropped"]
pub struct CancelOnDrop(Cancel);

impl Cancel {
    /// Whether to stop. Ask between steps of a millisecond or less.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Says to stop when what it returns is dropped: with the future of a caller that goes away.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
