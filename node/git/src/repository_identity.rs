//! Identifies the repository of a checkout, independent of its location: by its root commits and
//! its remote.
//!
//! Worktrees, clones and moved folders have the same identity. A fork has the same root and another
//! remote. The identity proves nothing: a user who can write a checkout can make it look like any
//! other. It decides the default workspace of an entry, and in which checkouts an entry's anchors
//! are evaluated.

use super::objects::{Objects, file, is_name};
use super::{CheckoutError, GitCheckout, bounded, git_folder, plain, remotes};
use rustix::fs::{Mode, OFlags, open};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// Maximum number of commits followed from a branch to its root.
const COMMITS_MAX: usize = 20_000;
/// Maximum number of roots kept.
const ROOTS_MAX: usize = 4;
/// Branches whose roots count, in addition to that of the checked-out commit.
const BRANCHES: [&str; 3] = ["refs/heads/main", "refs/heads/master", "refs/remotes/origin/HEAD"];
/// Maximum depth of symbolic references.
const REFS_MAX: usize = 5;
/// Maximum size of one of git's own files that is read here, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of cached roots.
const KNOWN_MAX: usize = 1_024;

/// Digits of a root commit shown for a repository without a remote.
const ROOT_DIGITS_SHOWN: usize = 12;

/// Identity of a checkout's repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryIdentity {
    roots: BTreeSet<String>,
    remote: Option<String>,
}

/// How similar two checkouts' repositories are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepositorySimilarity {
    /// Different roots, or a fork with another remote.
    Other,
    /// Same remote; one of them does not show its root.
    SameRemote,
    /// Same root; one of them has no remote that names it.
    SameRoot,
    /// Same root and same remote.
    Same,
}

impl RepositoryIdentity {
    /// Root commits in hex; empty if the history is shallow, too long or not readable.
    pub fn roots(&self) -> &BTreeSet<String> {
        &self.roots
    }

    /// The remote as host and path; `None` without a remote that names the repository.
    pub fn remote(&self) -> Option<&str> {
        self.remote.as_deref()
    }

    /// True if neither a root nor a remote is known.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty() && self.remote.is_none()
    }

    /// Compares two identities.
    pub fn likeness(&self, other: &Self) -> RepositorySimilarity {
        let has_roots = !self.roots.is_empty() && !other.roots.is_empty();
        let is_one_root = !self.roots.is_disjoint(&other.roots);
        match (&self.remote, &other.remote) {
            _ if has_roots && !is_one_root => RepositorySimilarity::Other,
            (Some(one), Some(two)) if one != two => RepositorySimilarity::Other,
            (Some(_), Some(_)) if is_one_root => RepositorySimilarity::Same,
            (Some(_), Some(_)) => RepositorySimilarity::SameRemote,
            _ if is_one_root => RepositorySimilarity::SameRoot,
            _ => RepositorySimilarity::Other,
        }
    }

    /// True if two checkouts share files by history: worktrees, clones and forks have a common root
    /// commit. If one of them shows no root, such as a shallow clone, the remote decides.
    pub fn is_same_repository(&self, other: &Self) -> bool {
        match self.roots.is_empty() || other.roots.is_empty() {
            false => !self.roots.is_disjoint(&other.roots),
            true => self.remote.is_some() && self.remote == other.remote,
        }
    }

    /// The identity without the remote, which may name a host that others should not learn.
    #[must_use]
    pub fn without_remote(self) -> Self {
        Self { remote: None, ..self }
    }

    /// A name for people: the remote, or the beginning of a root commit.
    pub fn in_words(&self) -> String {
        match (&self.remote, self.roots.first()) {
            (Some(remote), _) => remote.clone(),
            (None, Some(root)) => {
                let beginning: String = root.chars().take(ROOT_DIGITS_SHOWN).collect();
                format!("the repository with root commit {beginning}")
            }
            (None, None) => "an unknown repository".to_owned(),
        }
    }

    /// A short digest of the identity, for use as a table key.
    pub fn key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(self.to_string().as_bytes()).as_bytes()[..16]);
        key
    }
}

/// One line: `root:HEX` for each root, then `remote:HOST/PATH`.
impl fmt::Display for RepositoryIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roots = self.roots.iter().map(|root| format!("root:{root}"));
        let remote = self.remote.iter().map(|remote| format!("remote:{remote}"));
        f.write_str(&roots.chain(remote).collect::<Vec<_>>().join(" "))
    }
}

/// Parses such a line from untrusted input.
impl FromStr for RepositoryIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut identity = Self::default();
        let mut rest = text;
        while let Some(after) = rest.strip_prefix("root:") {
            let (root, after) = after.split_once(' ').unwrap_or((after, ""));
            if !is_name(root) || identity.roots.len() == ROOTS_MAX {
                return Err(());
            }
            identity.roots.insert(root.to_owned());
            rest = after;
        }
        if let Some(remote) = rest.strip_prefix("remote:") {
            let is_fit = remote.len() <= remotes::REMOTE_BYTES_MAX
                && !remote.is_empty()
                && !remote.contains(char::is_control);
            identity.remote = Some(is_fit.then(|| remote.to_owned()).ok_or(())?);
        } else if !rest.is_empty() {
            return Err(());
        }
        if identity.is_empty() { Err(()) } else { Ok(identity) }
    }
}

/// The repository of a checkout at the time it was opened.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    own: OwnedFd,
    common: OwnedFd,
    config: String,
    unread_refs: Option<String>,
}

/// A cache of root commits per object folder. It never expires, because a commit's ancestors never
/// change.
#[derive(Debug, Default)]
pub struct Roots(Mutex<BTreeMap<String, Option<String>>>);

impl Repository {
    /// Opens the repository of the checkout that contains a folder.
    pub fn open(folder: &Path) -> Result<Self, CheckoutError> {
        let root = GitCheckout::root_of(folder)
            .ok_or_else(|| CheckoutError::Missing { path: folder.to_path_buf() })?;
        let failed = |source| CheckoutError::Io { path: root.clone(), source };
        let (own, common) = folders(&root).map_err(failed)?;
        let config = text(&common, "config").unwrap_or_default();
        let unread_refs = remotes::ref_storage(&config);
        Ok(Self { root, own, common, config, unread_refs })
    }

    /// Path of the checkout's root.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The reference storage format, if it is one that this module cannot read. In that case
    /// neither the checked-out commit nor a root is known.
    pub fn unread_refs(&self) -> Option<&str> {
        self.unread_refs.as_deref()
    }

    /// The checked-out commit in hex; `None` before the first commit.
    pub fn head(&self) -> Option<String> {
        self.resolve("HEAD")
    }

    /// The checked-out branch; `None` for a detached commit.
    pub fn branch(&self) -> Option<String> {
        if self.unread_refs.is_some() {
            return None;
        }
        let head = text(&self.own, "HEAD")?;
        let branch = head.strip_prefix("ref:")?.trim().strip_prefix("refs/heads/")?.to_owned();
        (!branch.is_empty() && !branch.contains(char::is_control)).then_some(branch)
    }

    /// Determines the repository's identity.
    pub fn identity(&self, known: &Roots) -> RepositoryIdentity {
        let remote = remotes::named_by(&self.config);
        // The root of a shallow history differs from that of other clones.
        let is_shallow = text(&self.common, "shallow").is_some_and(|text| !text.is_empty());
        let objects = if is_shallow { None } else { Objects::open(&self.common) };
        let Some(objects) = objects else {
            return RepositoryIdentity { roots: BTreeSet::new(), remote };
        };
        let names = ["HEAD"].into_iter().chain(BRANCHES);
        let commits: BTreeSet<String> = names.filter_map(|name| self.resolve(name)).collect();
        let roots = commits.iter().filter_map(|commit| known.root(&objects, commit));
        RepositoryIdentity { roots: roots.take(ROOTS_MAX).collect(), remote }
    }

    /// The objects of the repository; `None` if they cannot be listed.
    pub(super) fn objects(&self) -> Option<Objects> {
        Objects::open(&self.common)
    }

    /// The names of the commits at which a shallow clone ends, one per line.
    pub(super) fn shallow(&self) -> String {
        text(&self.common, "shallow").unwrap_or_default()
    }

    /// The commit that a reference leads to.
    pub(super) fn resolve(&self, name: &str) -> Option<String> {
        if self.unread_refs.is_some() {
            return None;
        }
        let mut name = name.to_owned();
        for _ in 0..REFS_MAX {
            let text = match name.as_str() {
                "HEAD" => text(&self.own, "HEAD"),
                name => text(&self.common, name).or_else(|| self.packed_ref(name)),
            };
            let text = text?;
            let text = text.trim();
            let Some(next) = text.strip_prefix("ref:") else {
                return is_name(text).then(|| text.to_owned());
            };
            name = Some(next.trim()).filter(|next| next.starts_with("refs/"))?.to_owned();
        }
        None
    }

    fn packed_ref(&self, name: &str) -> Option<String> {
        let packed = text(&self.common, "packed-refs")?;
        let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(_, known)| *known == name).map(|(commit, _)| commit.to_owned())
    }
}

/// The text of a regular file below one of git's folders, without following symbolic links.
fn text(folder: &OwnedFd, path: &str) -> Option<String> {
    let bytes = file(folder, path, FILE_BYTES_MAX)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Git's folder of a checkout, and the folder it shares with other worktrees. Each pointer is
/// followed once.
fn folders(root: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    let git = git_folder(root)?;
    git.join("HEAD").symlink_metadata()?;
    let folder = |path: &Path| {
        let flags = plain() | OFlags::DIRECTORY;
        open(path, flags, Mode::empty()).map_err(io::Error::from)
    };
    let common = match bounded(&git.join("commondir"), super::POINTER_BYTES_MAX) {
        Ok(bytes) => git.join(String::from_utf8_lossy(&bytes).trim()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => git.clone(),
        Err(error) => return Err(error),
    };
    Ok((folder(&git)?, folder(&common)?))
}

impl Roots {
    /// Follows first parents from a commit to its root or to a cached commit. `None` if that is too
    /// far, costs too much, or an object is missing.
    fn root(&self, objects: &Objects, commit: &str) -> Option<String> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = commit.to_owned();
        let mut found = None;
        for _ in 0..COMMITS_MAX {
            let before = known().get(&objects.here(&at)).cloned();
            if let Some(root) = before {
                found = root;
                break;
            }
            match objects.first_parent(&at) {
                Some(Some(parent)) => at = parent,
                Some(None) => {
                    found = Some(at);
                    break;
                }
                None if objects.is_spent() => break,
                // An unreadable object may be repaired later, so the failure is not cached.
                None => return None,
            }
        }
        let mut known = known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(objects.here(commit), found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> RepositoryIdentity {
        line.parse().unwrap()
    }

    #[test]
    fn a_fork_has_the_same_root_and_another_remote() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let both = of(&format!("root:{a} remote:h/one"));
        for (line, likeness) in [
            (format!("root:{a} remote:h/one"), RepositorySimilarity::Same),
            (format!("root:{a} root:{b} remote:h/one"), RepositorySimilarity::Same),
            (format!("root:{a}"), RepositorySimilarity::SameRoot),
            ("remote:h/one".to_owned(), RepositorySimilarity::SameRemote),
            (format!("root:{a} remote:h/two"), RepositorySimilarity::Other),
            (format!("root:{b} remote:h/one"), RepositorySimilarity::Other),
            (format!("root:{b}"), RepositorySimilarity::Other),
            ("remote:h/two".to_owned(), RepositorySimilarity::Other),
        ] {
            assert_eq!(both.likeness(&of(&line)), likeness, "{line}");
            assert_eq!(of(&line).likeness(&both), likeness, "{line}");
        }
        // Anchors are also checked in a fork, because its files come from the same history.
        for (line, expected) in [
            (format!("root:{a} remote:h/two"), true),
            (format!("root:{a}"), true),
            ("remote:h/one".to_owned(), true),
            (format!("root:{b} remote:h/one"), false),
            ("remote:h/two".to_owned(), false),
        ] {
            assert_eq!(both.is_same_repository(&of(&line)), expected, "{line}");
            assert_eq!(of(&line).is_same_repository(&both), expected, "{line}");
        }
        assert_eq!(
            of(&format!("root:{a}")).likeness(&of("remote:h/one")),
            RepositorySimilarity::Other
        );
    }

    #[test]
    fn an_identity_line_round_trips_and_malformed_lines_fail() {
        let line = format!("root:{} root:{} remote:h/a b", "a".repeat(40), "b".repeat(64));
        assert_eq!(of(&line).to_string(), line);
        for line in ["", "root:zz", "remote:", "remote:a\u{1b}", "else", "root:"] {
            assert_eq!(line.parse::<RepositoryIdentity>(), Err(()), "{line}");
        }
    }
}
