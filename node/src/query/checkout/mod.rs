//! A git checkout on disk, as predicates may see it: what git tracks, and the bytes of plain files.
//!
//! Git is not run. Paths come from git's index and from nowhere else; a file is reached folder by
//! folder from the open root, and no link is followed on the way. Nothing is written.

mod caller;
mod identity;
mod objects;
mod remotes;
mod tracked;

pub use caller::CallerCheckout;
pub use identity::{Identity, Likeness, Repository, Roots};
pub use tracked::Misread;

use klnode_scoring::predicate::{Checkout, Unreadable};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tracked::Tracked;

/// The largest index that is read, in bytes.
const INDEX_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The longest `.git` file of a worktree, in bytes.
const POINTER_BYTES_MAX: u64 = 16 * 1024;

/// A checkout, as it is when it is opened: its tracked files are listed once.
#[derive(Debug)]
pub struct GitCheckout {
    path: PathBuf,
    root: OwnedFd,
    tracked: Tracked,
}

/// Why there is no checkout to look at. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// There is none.
    #[error("find a checkout at {path}: neither this folder nor one above it holds `.git`")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It could not be read.
    #[error("read the checkout at {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What git tracks could not be told.
    #[error("tell what git tracks in {path}: its index cannot be read: {reason}")]
    Index {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: Misread,
    },
}

impl GitCheckout {
    /// The root of the checkout that a folder lies in; none if it lies in none.
    pub fn root_of(folder: &Path) -> Option<PathBuf> {
        let is_root = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
        folder.ancestors().find(is_root).map(Path::to_path_buf)
    }

    /// Opens the checkout that a folder lies in.
    pub fn open(folder: &Path) -> Result<Self, CheckoutError> {
        let path = Self::root_of(folder)
            .ok_or_else(|| CheckoutError::Missing { path: folder.to_path_buf() })?;
        let failed = |source| CheckoutError::Io { path: path.clone(), source };
        let bytes = git_folder(&path).and_then(|git| index_bytes(&git)).map_err(failed)?;
        let tracked = match bytes {
            Some(bytes) => tracked::read(&bytes)
                .map_err(|reason| CheckoutError::Index { path: path.clone(), reason })?,
            // Nothing was ever added.
            None => Tracked::default(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path.as_path(), flags, Mode::empty());
        let root = root.map_err(|errno| failed(errno.into()))?;
        Ok(Self { path, root, tracked })
    }

    /// Where its root is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that a tracked path lies in, none for the root, and its name there.
    fn place<'p>(&self, path: &'p str) -> Result<(Option<OwnedFd>, &'p str), Unreadable> {
        let known = self.tracked.paths.binary_search_by(|known| known.as_str().cmp(path));
        if known.is_err() {
            return Err(Unreadable::NotAFile);
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

    fn exists(&self, path: &str) -> Result<bool, Unreadable> {
        let found = self.place(path).and_then(|(within, name)| {
            let above = within.as_ref().unwrap_or(&self.root);
            kind(above, name).map_err(|errno| unreadable(errno, above, name))
        });
        match found {
            Ok(_) => Ok(true),
            // A sparse checkout leaves it out; that says nothing about it.
            Err(Unreadable::Missing) if self.tracked.sparse.contains(path) => {
                Err(Unreadable::Failed)
            }
            Err(Unreadable::Missing) => Ok(false),
            Err(_) => Err(Unreadable::Failed),
        }
    }

    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, Unreadable> {
        let read = self.place(path).and_then(|(within, name)| {
            let above = within.as_ref().unwrap_or(&self.root);
            // What is no plain file is not even opened: that alone can move a device.
            let found = kind(above, name).map_err(|errno| unreadable(errno, above, name))?;
            if found != FileType::RegularFile {
                return Err(Unreadable::NotAFile);
            }
            let opened = openat(above, name, plain() | OFlags::NOFOLLOW, Mode::empty());
            let opened = opened.map_err(|errno| unreadable(errno, above, name))?;
            content(File::from(opened), bytes_max)
        });
        match read {
            Err(Unreadable::Missing) if self.tracked.sparse.contains(path) => {
                Err(Unreadable::Failed)
            }
            read => read.map(Cow::Owned),
        }
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::hash(bytes).as_bytes()
    }
}

/// How files are opened: to be read, and without waiting for anybody at the other end.
fn plain() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// What a name in a folder is; a link is a link.
fn kind(above: &OwnedFd, name: &str) -> Result<FileType, Errno> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Why a name in a folder could not be opened.
fn unreadable(errno: Errno, above: &OwnedFd, name: &str) -> Unreadable {
    match errno {
        Errno::NOENT => Unreadable::Missing,
        Errno::NOTDIR | Errno::LOOP => match kind(above, name) {
            Ok(FileType::Symlink) => Unreadable::NotAFile,
            // A file has taken the place of the folder.
            _ => Unreadable::Missing,
        },
        _ => Unreadable::Failed,
    }
}

/// The bytes of an open file, if it is a plain one and not too large.
fn content(file: File, bytes_max: usize) -> Result<Vec<u8>, Unreadable> {
    let metadata = file.metadata().map_err(|_| Unreadable::Failed)?;
    if !metadata.is_file() {
        return Err(Unreadable::NotAFile);
    }
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if metadata.len() > limit {
        return Err(Unreadable::TooLarge);
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|_| Unreadable::Failed)?;
    if bytes.len() > bytes_max { Err(Unreadable::TooLarge) } else { Ok(bytes) }
}

/// The folder in which git keeps the index of a checkout: `.git`, or where the file of that name
/// says, which is how a worktree has it.
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

/// The bytes of the index in git's folder; none where there is no index yet.
fn index_bytes(git: &Path) -> io::Result<Option<Vec<u8>>> {
    // A folder that is no git's has no index either, and must not pass for an empty checkout.
    git.join("HEAD").symlink_metadata()?;
    match bounded(&git.join("index"), INDEX_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens what lies at a path below a folder. No link is followed on the way, and no name leads up.
fn within(folder: &OwnedFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let mut opened: Option<OwnedFd> = None;
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        if matches!(name, "" | "." | "..") {
            return Err(io::Error::other("a name in the path is none"));
        }
        let kind = if names.peek().is_some() { OFlags::DIRECTORY } else { flags };
        let flags = plain() | OFlags::NOFOLLOW | kind;
        let above = opened.as_ref().unwrap_or(folder);
        opened = Some(openat(above, name, flags, Mode::empty())?);
    }
    opened.ok_or_else(|| io::Error::other("the path is empty"))
}

/// The bytes of a plain file of git's own, up to a limit.
fn bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = File::from(open(path, plain(), Mode::empty())?);
    let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    content(file, limit).map_err(|unreadable| {
        let what = match unreadable {
            Unreadable::TooLarge => "is too large",
            Unreadable::NotAFile => "is no plain file",
            Unreadable::Missing | Unreadable::Failed => "cannot be read",
        };
        let name = path.file_name().unwrap_or_default().display();
        io::Error::other(format!("`{name}` {what}"))
    })
}
