//! Folders that look like a git checkout, made without git.

use klnode::query::{GitCheckout, Repository, Roots, bind, recorded};
use klnode_crdt::writer::Claim;
use std::path::Path;
use tempfile::TempDir;

/// An index of version 2 that tracks these paths, as git would write it.
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

/// A folder that looks like a checkout.
pub struct Tree(TempDir);

impl Tree {
    /// A checkout that tracks these paths, of a repository of its own; none of the files is there yet.
    pub fn new(tracked: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().expect("a folder"));
        tree.write(".git/HEAD", b"ref: refs/heads/main\n");
        let name = tree.path().file_name().expect("a folder").display();
        let config = format!("[remote \"origin\"]\n\turl = https://example.org/trees/{name}.git\n");
        tree.write(".git/config", config.as_bytes());
        tree.track(tracked);
        tree
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, tracked or not.
    pub fn write(&self, path: &str, content: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it lies in the tree")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    /// Tracks these paths and no others.
    pub fn track(&self, paths: &[&str]) {
        self.write(".git/index", &index(paths));
    }

    /// The claims that record its repository with these predicates, as if they were written here.
    pub fn bound(&self, predicates: &[&str]) -> Vec<Claim> {
        let repository = Repository::open(self.path()).expect("it is a checkout");
        let elements = bind(&repository.identity(&Roots::default()), predicates.iter().copied());
        elements.into_iter().map(recorded).collect()
    }

    /// Opens it as a node does.
    pub fn open(&self) -> GitCheckout {
        GitCheckout::open(self.path()).expect("it is a checkout")
    }
}
