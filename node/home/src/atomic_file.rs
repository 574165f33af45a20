//! Atomic file creation: the file is written under a temporary name, flushed, and then renamed.
//!
//! Such files contain keys or texts, so only the owner can read them. An unfinished file is removed
//! on an error or when its owner is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of files this process has begun, for unique temporary names.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// How to treat an existing file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and do not write the new one.
    Keep,
    /// Replace it with the new one.
    Replace,
}

/// A file that is being written under a temporary name.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    target: PathBuf,
    temporary: Temporary,
    existing: Existing,
}

/// The temporary name; the file is removed on drop unless it was renamed.
#[derive(Debug)]
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // A file that is already gone needs no removal.
            let _ = fs::remove_file(path);
        }
    }
}

impl AtomicFile {
    /// Begins a file that [`Self::finish`] will rename to `target`.
    pub fn create(target: &Path, existing: Existing) -> io::Result<Self> {
        if existing == Existing::Keep && target.try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        // Two concurrent writers of one file get different temporary names; the later rename wins.
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        name.push(format!(".{}-{number}.part", std::process::id()));
        let temporary = target.with_file_name(name);
        // Such a file can only be left over from an earlier process with the same process id.
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

    /// The temporary file, for reading back or positioned writes.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Flushes the file and renames it to its target.
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

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a small secret and flushes it before returning.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path, Existing::Replace)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Flushes the directory that contains a file, so that renames in it are durable.
pub fn sync_folder(of: &Path) -> io::Result<()> {
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
        let mut file = AtomicFile::create(&path, Existing::Keep).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = AtomicFile::create(&path, Existing::Keep).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        write_private(&path, b"replaced").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"replaced");
    }

    #[test]
    fn concurrent_writers_of_one_file_do_not_interfere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup");
        let mut first = AtomicFile::create(&path, Existing::Replace).unwrap();
        let second = AtomicFile::create(&path, Existing::Replace).unwrap();
        first.write_all(b"whole").unwrap();
        drop(second);
        first.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mut file = AtomicFile::create(&path, Existing::Replace).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        let raced = AtomicFile::create(&path, Existing::Keep).unwrap();
        fs::write(&path, b"another's").unwrap();
        assert!(raced.finish().is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }
}
