//! The open database file that a store shares with its snapshots.
//!
//! Separate from `open`, because a snapshot holds the file and knows nothing of opening.

use redb::Database;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// An open file. Snapshots hold it too, because redb reads nothing more once its database is
/// dropped. Empty only while it is reopened, and after the store is closed.
#[derive(Debug)]
pub(super) struct OpenFile(RwLock<Option<Database>>);

impl OpenFile {
    pub(super) fn new(database: Database) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Some(database))))
    }

    pub(super) fn database(&self) -> RwLockReadGuard<'_, Option<Database>> {
        // A panic of another thread leaves it open or closed, and both are consistent.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn database_mut(&self) -> RwLockWriteGuard<'_, Option<Database>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
