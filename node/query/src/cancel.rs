//! A cancellation flag for work on another thread whose caller has gone away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shared cancellation flag: clones refer to the same flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// A guard that sets the cancellation flag when it is dropped.
#[derive(Debug)]
#[must_use = "it cancels as soon as it is dropped"]
pub struct CancelOnDrop(Cancel);

impl Cancel {
    /// True if the work should stop. Poll it between steps of a millisecond or less.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// A guard that cancels when dropped, for example with the future of a caller that disconnects.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
