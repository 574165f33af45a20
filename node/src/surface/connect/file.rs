//! Settings of other programs on disk: read as they are, replaced whole, with a copy kept beside them.
//!
//! Links are followed, because settings are often kept elsewhere and linked to. A file that cannot be
//! read, understood or written is refused with its place and the way out, and left alone.

use super::jsonc::Problem;
use crate::store::{Existing, Unfinished};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Longer files are no settings.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Copies of different content that are kept of one file.
const BACKUPS_MAX: usize = 100;

/// Why a file is left alone. The message says which, where and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {what}", file = .path.display())]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// `:line:column`, where there is one.
    pub place: String,
    /// What is wrong, and the way out.
    pub what: String,
}

impl Refusal {
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.into(), place: String::new(), what: what.into() }
    }

    /// Something is wrong in a text.
    pub fn at(path: &Path, text: &str, problem: &Problem) -> Self {
        let way_out = "mend it there and run this again; the file was left as it is";
        let what = format!("{}; {way_out}", problem.what);
        Self { path: path.into(), place: place(text.as_bytes(), problem.at), what }
    }
}

/// Line and column of a byte, both counted from one, columns in characters.
fn place(bytes: &[u8], at: usize) -> String {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let column =
        String::from_utf8_lossy(&before[start..]).trim_start_matches('\u{FEFF}').chars().count();
    format!(":{line}:{}", column + 1)
}

/// Whether a copy is kept of what is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// Beside the file.
    Keep,
    /// What is replaced is known otherwise.
    Skip,
}

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is, links followed.
    pub path: PathBuf,
    /// What it holds; nothing where there is no file.
    pub text: Option<String>,
    mode: u32,
}

impl Settings {
    /// Reads a file that need not be there.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.symlink_metadata().is_ok() {
                    let way_out = "make the file it names, or remove the link";
                    return Err(Refusal::new(path, format!("it is a link to nothing; {way_out}")));
                }
                return Ok(Self { path: path.into(), text: None, mode: 0o600 });
            }
            Err(error) => {
                let way_out = "see where its links lead";
                return Err(Refusal::new(path, format!("it cannot be found ({error}); {way_out}")));
            }
        };
        let failed = |error: io::Error| Refusal::new(path, format!("it cannot be read ({error})"));
        let metadata = fs::metadata(&real).map_err(failed)?;
        if !metadata.is_file() {
            return Err(Refusal::new(path, "it is not a file; move it away"));
        }
        if metadata.len() > BYTES_MAX {
            let what = format!("it has {} bytes, and at most {BYTES_MAX} are read", metadata.len());
            return Err(Refusal::new(path, what));
        }
        let bytes = fs::read(&real).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let problem = Problem::new(valid, "it is not UTF-8");
            Refusal { place: place(error.as_bytes(), valid), ..Refusal::at(path, "", &problem) }
        })?;
        let mode = metadata.permissions().mode() & 0o7777;
        Ok(Self { path: real, text: Some(text), mode })
    }

    /// What it holds, or nothing.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Whether it could be replaced, before anybody is asked.
    pub fn check_writable(&self) -> Result<(), Refusal> {
        if self.text.is_some() && self.mode & 0o200 == 0 {
            let way_out = "allow writing (chmod u+w), or change it where it is made";
            return Err(Refusal::new(&self.path, format!("it is read-only; {way_out}")));
        }
        Ok(())
    }

    /// Puts another text in its place, whole and at once, and returns the copy that was kept.
    pub fn replace(&self, text: &str, backup: Backup) -> Result<Option<PathBuf>, Refusal> {
        self.check_writable()?;
        let failed =
            |error: io::Error| Refusal::new(&self.path, format!("it cannot be written ({error})"));
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let is_kept = self.text.is_some() && backup == Backup::Keep;
        let backup = is_kept.then(|| self.back_up()).transpose()?;
        let mut file = Unfinished::create(&self.path, Existing::Replace).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.file().set_permissions(Permissions::from_mode(self.mode)).map_err(failed)?;
        // Slow, so before the look and not between the look and the change.
        file.file().sync_all().map_err(failed)?;
        self.check_unchanged()?;
        file.finish().map_err(failed)?;
        Ok(backup)
    }

    /// Removes the file: it was made for what is no longer in it.
    pub fn delete(&self) -> Result<(), Refusal> {
        self.check_unchanged()?;
        fs::remove_file(&self.path)
            .map_err(|error| Refusal::new(&self.path, format!("it cannot be removed ({error})")))
    }

    /// Between reading and writing its owner may have written, too.
    fn check_unchanged(&self) -> Result<(), Refusal> {
        let now = fs::read(&self.path).ok();
        if now.as_deref() == self.text.as_ref().map(String::as_bytes) {
            return Ok(());
        }
        Err(Refusal::new(&self.path, "it was changed meanwhile; run this again"))
    }

    /// Copies of the file, the newest last.
    pub fn backups(&self) -> Vec<PathBuf> {
        (0..BACKUPS_MAX).map(|number| self.backup_name(number)).take_while(|p| p.exists()).collect()
    }

    fn backup_name(&self, number: usize) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".klnode-backup");
        if number > 0 {
            name.push(format!(".{}", number + 1));
        }
        self.path.with_file_name(name)
    }

    /// Keeps a copy; one of the same content is not written again, one of another never replaced.
    fn back_up(&self) -> Result<PathBuf, Refusal> {
        for number in 0..BACKUPS_MAX {
            let name = self.backup_name(number);
            let failed = |error: io::Error| {
                Refusal::new(&name, format!("the copy cannot be written ({error})"))
            };
            match fs::read(&name) {
                Ok(bytes) if bytes == self.text().as_bytes() => return Ok(name),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let mut file = Unfinished::create(&name, Existing::Keep).map_err(failed)?;
                    file.write_all(self.text().as_bytes()).map_err(failed)?;
                    let mode = Permissions::from_mode(self.mode);
                    file.file().set_permissions(mode).map_err(failed)?;
                    file.finish().map_err(failed)?;
                    return Ok(name);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let what = format!("it has {BACKUPS_MAX} copies (.klnode-backup) already; remove old ones");
        Err(Refusal::new(&self.path, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_replaced_through_its_links_with_its_mode_and_copies_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("dotfiles.json"), folder.path().join("link"));
        fs::write(&real, "one").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        for (text, copies) in [("two", 1), ("three", 2), ("two", 3), ("one", 3), ("two", 3)] {
            Settings::read(&link).unwrap().replace(text, Backup::Keep).unwrap();
            assert_eq!(Settings::read(&link).unwrap().backups().len(), copies, "{text}");
        }
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("dotfiles.json.klnode-backup"), "one");
        assert_eq!(read("dotfiles.json.klnode-backup.2"), "two");
        assert_eq!(read("dotfiles.json.klnode-backup.3"), "three");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing else is left");
    }

    #[test]
    fn what_cannot_be_replaced_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink(path("loop"), path("loop")).unwrap();
        symlink(path("nothing"), path("dangling")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("latin"), b"{\n \"a\": \"\xE9\"}").unwrap();
        for (name, what) in [
            ("loop", "it cannot be found"),
            ("dangling", "a link to nothing"),
            ("folder", "it is not a file"),
            ("latin", ":2:8: it is not UTF-8"),
        ] {
            let refusal = Settings::read(&path(name)).unwrap_err().to_string();
            assert!(refusal.contains(what), "{refusal}");
        }
        fs::write(path("closed"), "{}").unwrap();
        fs::set_permissions(path("closed"), Permissions::from_mode(0o444)).unwrap();
        let refusal =
            Settings::read(&path("closed")).unwrap().replace("[]", Backup::Keep).unwrap_err();
        assert!(refusal.what.starts_with("it is read-only"), "{refusal}");
        let settings = Settings::read(&path("latin.json")).unwrap();
        fs::write(path("latin.json"), "another's").unwrap();
        assert!(
            settings.replace("ours", Backup::Keep).unwrap_err().what.contains("changed meanwhile")
        );
        assert_eq!(fs::read_to_string(path("latin.json")).unwrap(), "another's");
        assert!(!path("latin.json.klnode-backup").exists());
    }
}
