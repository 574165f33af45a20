//! Reads a git checkout on disk for predicates: the list of tracked files and the bytes of regular
//! files.
//!
//! Git is not run. Paths come only from git's index. A file is opened folder by folder from the
//! open root, without following symbolic links. Nothing is written.

mod caller_checkout;
mod commits;
mod git_index;
mod objects;
mod remotes;
mod repository_identity;

pub use caller_checkout::CallerCheckout;
pub use commits::{COMMITS_IN_RANGE_MAX, Commit, RangeError};
pub use git_index::IndexError;
pub use repository_identity::{Repository, RepositoryIdentity, RepositorySimilarity, Roots};

use git_index::TrackedPaths;
use klnode_scoring::predicate::{Checkout, ReadFailure};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum size of an index, in bytes.
const INDEX_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum size of a worktree's `.git` file, in bytes.
const POINTER_BYTES_MAX: u64 = 16 * 1024;

/// An open checkout. The tracked files are listed once, when it is opened.
#[derive(Debug)]
pub struct GitCheckout {
    path: PathBuf,
    root: OwnedFd,
    tracked: TrackedPaths,
}

/// Why a checkout could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The folder lies in no checkout.
    #[error("No checkout found at {path}: neither this folder nor one above it contains `.git`.")]
    Missing {
        /// The folder where the search started.
        path: PathBuf,
    },
    /// A file of the checkout could not be read.
    #[error("The checkout at {path} could not be read: {source}.")]
    Io {
        /// Root of the checkout.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Git's index could not be parsed, so the tracked files are unknown.
    #[error("The tracked files of {path} are unknown: git's index could not be read: {reason}.")]
    Index {
        /// Root of the checkout.
        path: PathBuf,
        /// The defect of the index.
        reason: IndexError,
    },
}

impl GitCheckout {
    /// The root of the checkout that contains a folder; `None` if the folder is in no checkout.
    pub fn root_of(folder: &Path) -> Option<PathBuf> {
        let is_root = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
        folder.ancestors().find(is_root).map(Path::to_path_buf)
    }

    /// Opens the checkout that contains a folder.
    pub fn open(folder: &Path) -> Result<Self, CheckoutError> {
        let path = Self::root_of(folder)
            .ok_or_else(|| CheckoutError::Missing { path: folder.to_path_buf() })?;
        let failed = |source| CheckoutError::Io { path: path.clone(), source };
        let bytes = git_folder(&path).and_then(|git| index_bytes(&git)).map_err(failed)?;
        let tracked = match bytes {
            Some(bytes) => git_index::read(&bytes)
                .map_err(|reason| CheckoutError::Index { path: path.clone(), reason })?,
            // Git creates the index when the first file is added.
            None => TrackedPaths::default(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path.as_path(), flags, Mode::empty());
        let root = root.map_err(|errno| failed(errno.into()))?;
        Ok(Self { path, root, tracked })
    }

    /// Path of the checkout's root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder of a tracked path. Returns `None` for the root, and the file's name in the
    /// folder.
    fn place<'p>(&self, path: &'p str) -> Result<(Option<OwnedFd>, &'p str), ReadFailure> {
        let known = self.tracked.paths.binary_search_by(|known| known.as_str().cmp(path));
        if known.is_err() {
            return Err(ReadFailure::NotAFile);
        }
        let Some((folders, name)) = path.rsplit_once('/') else { return Ok((None, path)) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut within: Option<OwnedFd> = None;
        for folder in folders.split('/') {
            let above = within.as_ref().unwrap_or(&self.root);
            let opened = openat(above, folder, flags, Mode::empty());
            let opened = opened.map_err(|errno| unreadable(errno, above, folder))?;
            within = Some(opened);
        }
        Ok((within, name))
    }
}

impl Checkout for GitCheckout {
    fn tracked(&self) -> &[String] {
        &self.tracked.paths
    }

    fn exists(&self, path: &str) -> Result<bool, ReadFailure> {
        let found = self.place(path).and_then(|(within, name)| {
            let above = within.as_ref().unwrap_or(&self.root);
            kind(above, name).map_err(|errno| unreadable(errno, above, name))
        });
        match found {
            Ok(_) => Ok(true),
            // A sparse checkout may omit the file, so its absence proves nothing.
            Err(ReadFailure::Missing) if self.tracked.sparse.contains(path) => {
                Err(ReadFailure::Failed)
            }
            Err(ReadFailure::Missing) => Ok(false),
            Err(_) => Err(ReadFailure::Failed),
        }
    }

    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, ReadFailure> {
        let read = self.place(path).and_then(|(within, name)| {
            let above = within.as_ref().unwrap_or(&self.root);
            // Only regular files are opened: opening a device can have side effects.
            let found = kind(above, name).map_err(|errno| unreadable(errno, above, name))?;
            if found != FileType::RegularFile {
                return Err(ReadFailure::NotAFile);
            }
            let opened = openat(above, name, plain() | OFlags::NOFOLLOW, Mode::empty());
            let opened = opened.map_err(|errno| unreadable(errno, above, name))?;
            content(File::from(opened), bytes_max)
        });
        match read {
            Err(ReadFailure::Missing) if self.tracked.sparse.contains(path) => {
                Err(ReadFailure::Failed)
            }
            read => read.map(Cow::Owned),
        }
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::hash(bytes).as_bytes()
    }
}

/// Flags for reading a file without blocking on a pipe.
fn plain() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// The type of a directory entry; symbolic links are not followed.
fn kind(above: &OwnedFd, name: &str) -> Result<FileType, Errno> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Why a directory entry could not be opened.
fn unreadable(errno: Errno, above: &OwnedFd, name: &str) -> ReadFailure {
    match errno {
        Errno::NOENT => ReadFailure::Missing,
        Errno::NOTDIR | Errno::LOOP => match kind(above, name) {
            Ok(FileType::Symlink) => ReadFailure::NotAFile,
            // A file has replaced the folder.
            _ => ReadFailure::Missing,
        },
        _ => ReadFailure::Failed,
    }
}

/// The bytes of an open file, if it is a regular file and not too large.
fn content(file: File, bytes_max: usize) -> Result<Vec<u8>, ReadFailure> {
    let metadata = file.metadata().map_err(|_| ReadFailure::Failed)?;
    if !metadata.is_file() {
        return Err(ReadFailure::NotAFile);
    }
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if metadata.len() > limit {
        return Err(ReadFailure::TooLarge);
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|_| ReadFailure::Failed)?;
    if bytes.len() > bytes_max { Err(ReadFailure::TooLarge) } else { Ok(bytes) }
}

/// Git's folder of a checkout: `.git`, or the folder that a file of that name points to, as in a
/// worktree.
fn git_folder(root: &Path) -> io::Result<PathBuf> {
    let git = root.join(".git");
    if git.metadata()?.is_dir() {
        return Ok(git);
    }
    let bytes = bounded(&git, POINTER_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    let folder = text.strip_prefix("gitdir:").map(str::trim).filter(|folder| !folder.is_empty());
    let folder = folder.ok_or_else(|| io::Error::other("its `.git` file names no folder"))?;
    Ok(root.join(folder))
}

/// The bytes of the index in git's folder; `None` if there is no index yet.
fn index_bytes(git: &Path) -> io::Result<Option<Vec<u8>>> {
    // A folder that is not git's has no index either, and must not count as an empty checkout.
    git.join("HEAD").symlink_metadata()?;
    match bounded(&git.join("index"), INDEX_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a path below a folder without following symbolic links and without `..`.
fn within(folder: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let mut opened: Option<OwnedFd> = None;
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        if matches!(name, "" | "." | "..") {
            return Err(io::Error::other("the path has an empty or relative component"));
        }
        let kind = if names.peek().is_some() { OFlags::DIRECTORY } else { flags };
        let flags = plain() | OFlags::NOFOLLOW | kind;
        let above = opened.as_ref().unwrap_or(folder);
        opened = Some(openat(above, name, flags, Mode::empty())?);
    }
    opened.ok_or_else(|| io::Error::other("the path is empty"))
}

/// The bytes of one of git's own files, up to a limit.
fn bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = File::from(open(path, plain(), Mode::empty())?);
    let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    content(file, limit).map_err(|unreadable| {
        let what = match unreadable {
            ReadFailure::TooLarge => "is too large",
            ReadFailure::NotAFile => "is not a regular file",
            ReadFailure::Missing | ReadFailure::Failed => "cannot be read",
        };
        let name = path.file_name().unwrap_or_default().display();
        io::Error::other(format!("`{name}` {what}"))
    })
}
