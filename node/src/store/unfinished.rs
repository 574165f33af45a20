//! A file that appears whole or not at all: written under another name, made durable, then renamed.
//!
//! Open to nobody else, since what is written this way holds keys or texts. What is given up, by an
//! error or because its owner went away, is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Files that this process has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// What to do with a file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the new one is not written.
    Keep,
    /// The new one takes its place.
    Replace,
}

/// A file that is not yet whole.
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    target: PathBuf,
    temporary: Temporary,
    existing: Existing,
}

/// The other name; goes unless it was given away.
#[derive(Debug)]
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Gone already is as good as removed.
            let _ = fs::remove_file(path);
        }
    }
}

impl Unfinished {
    /// Begins a file that will be called `target`.
    pub fn create(target: &Path, existing: Existing) -> io::Result<Self> {
        if existing == Existing::Keep && target.try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        // Two who write the same file at once write two, and the later takes its place.
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}-{number}.part", std::process::id()));
        let temporary = target.with_file_name(name);
        // Nobody else's: left over from a process that had the same number.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        Ok(Self { file, target: target.into(), temporary: Temporary(Some(temporary)), existing })
    }

    /// What is written so far.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes it durable under its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if self.existing == Existing::Keep && self.target.try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if let Some(temporary) = &self.temporary.0 {
            fs::rename(temporary, &self.target)?;
        }
        self.temporary.0 = None;
        sync_folder(&self.target)
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a small secret: durable before anything relies on it.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Unfinished::create(path, Existing::Replace)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Makes the names in a file's folder durable.
pub(crate) fn sync_folder(of: &Path) -> io::Result<()> {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_appears_whole_private_and_only_when_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mut file = Unfinished::create(&path, Existing::Keep).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Unfinished::create(&path, Existing::Keep).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        write_private(&path, b"replaced").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"replaced");
    }

    #[test]
    fn two_who_write_one_file_at_once_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        let mut first = Unfinished::create(&path, Existing::Replace).unwrap();
        let second = Unfinished::create(&path, Existing::Replace).unwrap();
        first.write_all(b"whole").unwrap();
        drop(second);
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn what_is_given_up_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mut file = Unfinished::create(&path, Existing::Replace).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        let raced = Unfinished::create(&path, Existing::Keep).unwrap();
        fs::write(&path, b"another's").unwrap();
        assert!(raced.finish().is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }
}
