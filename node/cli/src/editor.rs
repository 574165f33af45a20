//! A text in the operator's editor: written to a private file, opened, read back.
//!
//! The file lies in the folder for temporary files, not in the home: a forgotten entry is erased
//! from every file of the home, and a draft must not stay behind there. The file is removed once
//! its text is stored, and kept, with its path in the message, after an error.

use super::VerbError;
use super::read_limited;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most bytes that are read back from an editor.
const DRAFT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// File names to try before giving up on a folder where every name is taken.
const NAMES_MAX: u32 = 1_000;

/// Opens a file in an editor and waits for it. Returns whether the editor ended with success.
pub type OpenEditor<'a> = &'a mut dyn FnMut(&Path) -> io::Result<bool>;

/// The operator's editor.
pub struct Editor<'a> {
    /// Starts the editor on a file and waits.
    pub open: OpenEditor<'a>,
    /// The folder for drafts.
    pub folder: PathBuf,
}

/// A text in a file that the editor works on.
pub(super) struct Draft {
    file: PathBuf,
    /// The text as it was written for the editor.
    before: String,
}

impl Draft {
    /// Writes a text to a new file that only this user can read. Symbolic links are not followed:
    /// the file must not exist.
    pub(super) fn write(folder: &Path, name: &str, text: &str) -> Result<Self, VerbError> {
        let failed = |file: &Path, error: &io::Error| {
            VerbError::Failed(format!("Cannot write {} for the editor: {error}.", file.display()))
        };
        for number in 0..NAMES_MAX {
            let (process, more) = (std::process::id(), number);
            let file = folder.join(format!("klnode-{name}-{process}-{more}.md"));
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(&file) {
                Ok(mut open) => {
                    let written = open.write_all(text.as_bytes());
                    written.map_err(|error| failed(&file, &error))?;
                    return Ok(Self { file, before: text.to_owned() });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&file, &error)),
            }
        }
        Err(failed(folder, &io::ErrorKind::AlreadyExists.into()))
    }

    /// Opens the editor and reads the file back; `None` if it is unchanged or empty.
    pub(super) fn edit(&self, open: &mut OpenEditor<'_>) -> Result<Option<String>, VerbError> {
        match open(&self.file) {
            Ok(true) => {}
            Ok(false) => {
                return Err(self.keep("The editor ended with an error, so nothing was written."));
            }
            Err(error) => {
                self.remove();
                let message = format!("Cannot start the editor: {error}. Set VISUAL or EDITOR.");
                return Err(VerbError::Failed(message));
            }
        }
        let read = File::open(&self.file).map_err(|error| error.to_string());
        let read = read.and_then(|file| {
            read_limited::text(file, DRAFT_BYTES_MAX).map_err(|error| error.to_string())
        });
        let text = read.map_err(|error| self.keep(&format!("Cannot read the text: {error}.")))?;
        Ok(Some(text).filter(|text| *text != self.before && !text.trim().is_empty()))
    }

    /// An error for a problem, which is a whole sentence, with the path of the kept text.
    pub(super) fn keep(&self, problem: &str) -> VerbError {
        VerbError::Input(format!("{problem} Your text is kept in {}.", self.file.display()))
    }

    /// The path of the draft.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Removes the file after its text was stored or discarded.
    pub(super) fn remove(&self) {
        // A file that cannot be removed lies among temporary files, readable by this user alone.
        let _ = std::fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_draft_is_private_and_its_text_comes_back_only_if_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let draft = Draft::write(folder.path(), "edit-L-1", "before\n").unwrap();
        let mode = std::fs::metadata(draft.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for (left, expect) in
            [("before\n", None), ("\n \n", None), ("after\n", Some("after\n".to_owned()))]
        {
            let mut open = |file: &Path| std::fs::write(file, left).map(|()| true);
            assert_eq!(draft.edit(&mut (&mut open as OpenEditor<'_>)).unwrap(), expect, "{left:?}");
        }
        draft.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_editor_that_fails_leaves_the_text_where_the_message_says() {
        let folder = tempfile::tempdir().unwrap();
        let draft = Draft::write(folder.path(), "edit-L-1", "before\n").unwrap();
        let mut open = |file: &Path| std::fs::write(file, "half").map(|()| false);
        let told = draft.edit(&mut (&mut open as OpenEditor<'_>)).unwrap_err().to_string();
        assert!(told.contains(draft.file().to_str().unwrap()), "{told}");
        assert_eq!(std::fs::read_to_string(draft.file()).unwrap(), "half");
    }
}
