//! Folders with repositories made by git itself, and verbs typed in them.

use crate::support::node_process::{klnode, told};
use crate::support::peer_processes::Peer;
use klnode_git::{Repository, RepositoryIdentity, Roots};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder in which git makes repositories.
pub(crate) struct Ground(tempfile::TempDir);

impl Ground {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs git in a folder, independent of this machine's configuration.
    #[track_caller]
    pub(crate) fn git(&self, within: &str, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(words).current_dir(self.path(within)).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.0.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "n@host");
        }
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "git {words:?}: {}", told(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A repository with some commits and a remote.
    pub(crate) fn repository(&self, name: &str, remote: Option<&str>, commits: usize) {
        self.git(".", &["init", "-q", "-b", "main", name]);
        for number in 1..=commits {
            self.commit(name, &format!("{name}: number {number}"));
        }
        if let Some(url) = remote {
            self.git(name, &["remote", "add", "origin", url]);
        }
    }

    pub(crate) fn commit(&self, name: &str, message: &str) {
        self.git(name, &["commit", "-q", "--allow-empty", "-m", message]);
    }

    pub(crate) fn clone(&self, from: &str, to: &str, remote: Option<&str>) {
        self.git(".", &["clone", "-q", from, to]);
        if let Some(url) = remote {
            self.git(to, &["remote", "set-url", "origin", url]);
        }
    }

    pub(crate) fn identity(&self, name: &str) -> RepositoryIdentity {
        Repository::open(&self.path(name)).unwrap().identity(&Roots::default())
    }
}

pub(crate) fn type_in(node: &Peer, from: &Path, words: &[&str]) -> Output {
    klnode(&node.home).args(words).current_dir(from).output().unwrap()
}

/// JSON output of a verb that must succeed.
#[track_caller]
pub(crate) fn done(node: &Peer, from: &Path, words: &[&str]) -> Value {
    let output = type_in(node, from, &[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", told(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks the exit code and message of a verb that must fail.
#[track_caller]
pub(crate) fn refused(node: &Peer, from: &Path, words: &[&str], code: i32, part: &str) {
    let output = type_in(node, from, words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}", told(&output));
    assert!(told(&output).contains(part), "{words:?}: {}", told(&output));
}
