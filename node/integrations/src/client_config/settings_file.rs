//! Reads and replaces settings files of other programs. Each file is replaced atomically, with a
//! backup beside it.
//!
//! Symbolic links are followed, because settings are often kept elsewhere and linked to. A file
//! that cannot be read, parsed or written is left unchanged, and the error names its position and
//! the remedy.

use super::jsonc::JsonError;
use klnode_home::{AtomicFile, Existing};
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Larger files are refused; no settings file is this big.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Number of backups with different content that are kept per file.
const BACKUPS_MAX: usize = 100;

/// Why a file was not changed. The message names the file, the position and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {what}", file = .path.display())]
pub struct SettingsError {
    /// The settings file or its backup.
    pub path: PathBuf,
    /// `:line:column`, or empty if the problem concerns the whole file.
    pub place: String,
    /// Whole sentences: the problem, then the remedy.
    pub what: String,
}

impl SettingsError {
    pub(super) fn new(path: &Path, what: impl Into<String>) -> Self {
        Self { path: path.into(), place: String::new(), what: what.into() }
    }

    /// A syntax error at a position in the file's text.
    pub fn at(path: &Path, text: &str, problem: &JsonError) -> Self {
        let way_out = "Fix it there and run the command again; the file was not changed.";
        let what = format!("{} {way_out}", problem.what);
        Self { path: path.into(), place: place(text.as_bytes(), problem.at), what }
    }
}

/// Line and column of a byte offset, both counted from one; columns count characters.
fn place(bytes: &[u8], at: usize) -> String {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let column =
        String::from_utf8_lossy(&before[start..]).trim_start_matches('\u{FEFF}').chars().count();
    format!(":{line}:{}", column + 1)
}

/// Whether replacing a file keeps a backup of the old content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupPolicy {
    /// Keep a copy of the old content beside the file.
    Keep,
    /// Keep no copy, because the old content can be produced again.
    Skip,
}

/// A settings file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Path with symbolic links resolved.
    pub path: PathBuf,
    /// The content; `None` if there is no file.
    pub text: Option<String>,
    mode: u32,
}

impl ClientSettings {
    /// Reads a file. A missing file is not an error.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.symlink_metadata().is_ok() {
                    let way_out = "Create the file it points to, or remove the link.";
                    return Err(SettingsError::new(
                        path,
                        format!("This is a broken symbolic link. {way_out}"),
                    ));
                }
                return Ok(Self { path: path.into(), text: None, mode: 0o600 });
            }
            Err(error) => {
                let way_out = "Check where its links lead.";
                return Err(SettingsError::new(
                    path,
                    format!("The file was not found ({error}). {way_out}"),
                ));
            }
        };
        let failed = |error: io::Error| {
            SettingsError::new(path, format!("The file is not readable ({error})."))
        };
        let metadata = fs::metadata(&real).map_err(failed)?;
        if !metadata.is_file() {
            return Err(SettingsError::new(path, "This is not a regular file. Move it away."));
        }
        if metadata.len() > BYTES_MAX {
            let what = format!("The file has {} bytes; the limit is {BYTES_MAX}.", metadata.len());
            return Err(SettingsError::new(path, what));
        }
        let bytes = fs::read(&real).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let problem = JsonError::new(valid, "The file is not UTF-8.");
            SettingsError {
                place: place(error.as_bytes(), valid),
                ..SettingsError::at(path, "", &problem)
            }
        })?;
        let mode = metadata.permissions().mode() & 0o7777;
        Ok(Self { path: real, text: Some(text), mode })
    }

    /// The content; empty if there is no file.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Checks that the file may be replaced, before the user is asked for consent.
    pub fn check_writable(&self) -> Result<(), SettingsError> {
        if self.text.is_some() && self.mode & 0o200 == 0 {
            let way_out = "Allow writing (chmod u+w), or change it where it is generated.";
            return Err(SettingsError::new(
                &self.path,
                format!("The file is read-only. {way_out}"),
            ));
        }
        Ok(())
    }

    /// Replaces the content atomically and returns the path of the backup, if one was kept.
    pub fn replace(
        &self,
        text: &str,
        backup: BackupPolicy,
    ) -> Result<Option<PathBuf>, SettingsError> {
        self.check_writable()?;
        let failed = |error: io::Error| {
            SettingsError::new(&self.path, format!("The file was not written ({error})."))
        };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let is_kept = self.text.is_some() && backup == BackupPolicy::Keep;
        let backup = is_kept.then(|| self.back_up()).transpose()?;
        let mut file = AtomicFile::create(&self.path, Existing::Replace).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.file().set_permissions(Permissions::from_mode(self.mode)).map_err(failed)?;
        // Flush before the check for changes: it is slow, and the check must directly precede the
        // rename.
        file.file().sync_all().map_err(failed)?;
        self.check_unchanged()?;
        file.finish().map_err(failed)?;
        Ok(backup)
    }

    /// Deletes the file. Used if klnode created it and nothing else is in it.
    pub fn delete(&self) -> Result<(), SettingsError> {
        self.check_unchanged()?;
        fs::remove_file(&self.path).map_err(|error| {
            SettingsError::new(&self.path, format!("The file was not removed ({error})."))
        })
    }

    /// Fails if another program wrote the file since it was read.
    fn check_unchanged(&self) -> Result<(), SettingsError> {
        let now = fs::read(&self.path).ok();
        if now.as_deref() == self.text.as_ref().map(String::as_bytes) {
            return Ok(());
        }
        Err(SettingsError::new(
            &self.path,
            "Another program changed the file. Run the command again.",
        ))
    }

    /// Existing backups of the file, oldest first.
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

    /// Writes a backup. Content that is already backed up is not written again, and no backup is
    /// overwritten.
    fn back_up(&self) -> Result<PathBuf, SettingsError> {
        for number in 0..BACKUPS_MAX {
            let name = self.backup_name(number);
            let failed = |error: io::Error| {
                SettingsError::new(&name, format!("The backup was not written ({error})."))
            };
            match fs::read(&name) {
                Ok(bytes) if bytes == self.text().as_bytes() => return Ok(name),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let mut file = AtomicFile::create(&name, Existing::Keep).map_err(failed)?;
                    file.write_all(self.text().as_bytes()).map_err(failed)?;
                    let mode = Permissions::from_mode(self.mode);
                    file.file().set_permissions(mode).map_err(failed)?;
                    file.finish().map_err(failed)?;
                    return Ok(name);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        let what = format!(
            "The file already has {BACKUPS_MAX} backups (.klnode-backup). Remove old ones."
        );
        Err(SettingsError::new(&self.path, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn replacing_follows_links_keeps_the_mode_and_numbers_backups() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("dotfiles.json"), folder.path().join("link"));
        fs::write(&real, "one").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        for (text, copies) in [("two", 1), ("three", 2), ("two", 3), ("one", 3), ("two", 3)] {
            ClientSettings::read(&link).unwrap().replace(text, BackupPolicy::Keep).unwrap();
            assert_eq!(ClientSettings::read(&link).unwrap().backups().len(), copies, "{text}");
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
    fn files_that_cannot_be_replaced_are_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink(path("loop"), path("loop")).unwrap();
        symlink(path("nothing"), path("dangling")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("latin"), b"{\n \"a\": \"\xE9\"}").unwrap();
        for (name, what) in [
            ("loop", "The file was not found"),
            ("dangling", "a broken symbolic link"),
            ("folder", "This is not a regular file"),
            ("latin", ":2:8: The file is not UTF-8"),
        ] {
            let refusal = ClientSettings::read(&path(name)).unwrap_err().to_string();
            assert!(refusal.contains(what), "{refusal}");
        }
        fs::write(path("closed"), "{}").unwrap();
        fs::set_permissions(path("closed"), Permissions::from_mode(0o444)).unwrap();
        let refusal = ClientSettings::read(&path("closed"))
            .unwrap()
            .replace("[]", BackupPolicy::Keep)
            .unwrap_err();
        assert!(refusal.what.starts_with("The file is read-only"), "{refusal}");
        let settings = ClientSettings::read(&path("latin.json")).unwrap();
        fs::write(path("latin.json"), "another's").unwrap();
        assert!(
            settings
                .replace("ours", BackupPolicy::Keep)
                .unwrap_err()
                .what
                .contains("Another program changed")
        );
        assert_eq!(fs::read_to_string(path("latin.json")).unwrap(), "another's");
        assert!(!path("latin.json.klnode-backup").exists());
    }
}
