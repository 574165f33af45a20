//! Where things lie in a home: the names, in one place, for whoever opens, restores or examines it.

use std::path::{Path, PathBuf};

/// A home folder and the names in it. Nothing is read or made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    home: PathBuf,
}

impl Layout {
    /// The names in this folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    /// The folder itself.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Locked by whoever works on the home: a node that runs, what puts a backup in its place, or the
    /// doctor while it looks at the store.
    pub fn lock_file(&self) -> PathBuf {
        self.home.join("lock")
    }

    /// Settings of this node; need not be there.
    pub fn config_file(&self) -> PathBuf {
        self.home.join("klnode.toml")
    }

    /// Everything that must not be lost.
    pub fn store_file(&self) -> PathBuf {
        self.home.join("store.redb")
    }

    /// A store that is being restored: what it replaces is still in place.
    pub fn restoring_file(&self) -> PathBuf {
        self.home.join("store.restoring")
    }

    /// The secret half of this node.
    pub fn key_file(&self) -> PathBuf {
        self.home.join("node.key")
    }

    /// The key of the person behind this node; need not be there.
    pub fn person_file(&self) -> PathBuf {
        self.home.join("person.key")
    }

    /// What callers over TCP must show; need not be there.
    pub fn token_file(&self) -> PathBuf {
        self.home.join("token")
    }

    /// The port on which peers reached this node last; need not be there.
    pub fn port_file(&self) -> PathBuf {
        self.home.join("port")
    }

    /// What is made from the store and can be made again.
    pub fn index_folder(&self) -> PathBuf {
        self.home.join("index")
    }

    /// What hooks did, and why they said nothing; need not be there.
    pub fn hook_log_file(&self) -> PathBuf {
        self.home.join("hook.log")
    }

    /// What lasts as long as something goes on; need not be there.
    pub fn run_folder(&self) -> PathBuf {
        self.home.join("run")
    }

    /// Names that only something interrupted leaves behind.
    pub fn unfinished_files(&self) -> [PathBuf; 3] {
        let store = self.store_file();
        [store.with_extension("new"), store.with_extension("copy"), self.restoring_file()]
    }
}
