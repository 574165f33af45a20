//! Folders that look like a git checkout, made without git.

use klnode_crdt::record_builder::ClaimEdit;
use klnode_git::{GitCheckout, Repository, Roots};
use klnode_query::{bind, recorded};
use std::path::Path;
use tempfile::TempDir;

/// A git index of version 2 that tracks these paths.
pub fn index(paths: &[&str]) -> Vec<u8> {
    let mut paths = paths.to_vec();
    paths.sort_unstable();
    let count = u32::try_from(paths.len()).expect("few");
    let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    for path in paths {
        let begin = bytes.len();
        // Times and numbers, of which only the mode is read; then a digest.
        bytes.extend([0; 24]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([0; 12 + 20]);
        bytes.extend(u16::try_from(path.len()).expect("short").to_be_bytes());
        bytes.extend(path.as_bytes());
        bytes.push(0);
        let length = (bytes.len() - begin).next_multiple_of(8);
        bytes.resize(begin + length, 0);
    }
    bytes.extend([0; 20]);
    bytes
}

/// A temporary folder that looks like a checkout.
pub struct Tree(TempDir);

impl Tree {
    /// A checkout of its own repository that tracks these paths; the files themselves do not exist
    /// yet.
    pub fn new(tracked: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().expect("a folder"));
        tree.write(".git/HEAD", b"ref: refs/heads/main\n");
        let name = tree.path().file_name().expect("a folder").display();
        let config = format!("[remote \"origin\"]\n\turl = https://example.org/trees/{name}.git\n");
        tree.write(".git/config", config.as_bytes());
        tree.track(tracked);
        tree
    }

    /// Root of the checkout.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, tracked or not.
    pub fn write(&self, path: &str, content: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in the tree")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    /// Tracks exactly these paths.
    pub fn track(&self, paths: &[&str]) {
        self.write(".git/index", &index(paths));
    }

    /// Claims that record its repository with these predicates, as the engine would write them.
    pub fn bound(&self, predicates: &[&str]) -> Vec<ClaimEdit> {
        let repository = Repository::open(self.path()).expect("it is a checkout");
        let elements = bind(&repository.identity(&Roots::default()), predicates.iter().copied());
        elements.into_iter().map(recorded).collect()
    }

    /// Opens it as a node does.
    pub fn open(&self) -> GitCheckout {
        GitCheckout::open(self.path()).expect("it is a checkout")
    }
}
