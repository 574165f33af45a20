//! The names of files and folders in a home, for all code that opens, restores or checks one.

use std::path::{Path, PathBuf};

/// A home folder and the paths in it. It neither reads nor creates files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    home: PathBuf,
}

impl Layout {
    /// The layout of this folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    /// The home folder itself.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Lock file, held by a running node, by a restore, or by the check of the store.
    pub fn lock_file(&self) -> PathBuf {
        self.home.join("lock")
    }

    /// Configuration of this node; optional.
    pub fn config_file(&self) -> PathBuf {
        self.home.join("klnode.toml")
    }

    /// The store: all data that must not be lost.
    pub fn store_file(&self) -> PathBuf {
        self.home.join("store.redb")
    }

    /// The new store during a restore, while the old one is still in place.
    pub fn restoring_file(&self) -> PathBuf {
        self.home.join("store.restoring")
    }

    /// The secret key of this node.
    pub fn key_file(&self) -> PathBuf {
        self.home.join("node.key")
    }

    /// The secret key of the person who owns this node; optional.
    pub fn person_file(&self) -> PathBuf {
        self.home.join("person.key")
    }

    /// The token that callers over TCP have to present; optional.
    pub fn token_file(&self) -> PathBuf {
        self.home.join("token")
    }

    /// The port on which peers last reached this node; optional.
    pub fn port_file(&self) -> PathBuf {
        self.home.join("port")
    }

    /// The file in which the `klnode ui` of this process hands a one-time code to the browser; exists
    /// for at most 30 seconds.
    pub fn page_file(&self, process: u32) -> PathBuf {
        self.home.join(format!("page-{process}.html"))
    }

    /// The search index, which can be rebuilt from the store.
    pub fn index_folder(&self) -> PathBuf {
        self.home.join("index")
    }

    /// The log of hooks: their actions, and why they printed nothing; optional.
    pub fn hook_log_file(&self) -> PathBuf {
        self.home.join("hook.log")
    }

    /// Files that exist only while a process runs; optional.
    pub fn run_folder(&self) -> PathBuf {
        self.home.join("run")
    }

    /// Temporary files that only an interrupted process leaves behind.
    pub fn unfinished_files(&self) -> [PathBuf; 3] {
        let store = self.store_file();
        [store.with_extension("new"), store.with_extension("copy"), self.restoring_file()]
    }
}
