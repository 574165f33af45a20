//! The notes of an earlier export in a folder.
//!
//! An export writes an entry in the note that has its id already, so that a renamed entry keeps its
//! note. It reads only front matter, and follows no symbolic link.

use crate::corpus::SourceCorpus;
use crate::corpus_error::CorpusError;
use crate::format::FileFormat;
use crate::markdown_notes::{note_id, written_id};
use crate::neutral_entry::NeutralEntry;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The notes of an earlier export.
#[derive(Debug, Default)]
pub struct EarlierNotes {
    /// Their paths, by the ids of their entries.
    paths: BTreeMap<String, String>,
    /// Further notes with the id of one of them.
    repeated: Vec<String>,
}

impl EarlierNotes {
    /// Finds the notes below a folder, which need not exist.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn read(folder: &Path) -> Result<Self, CorpusError> {
        let corpus = match SourceCorpus::open(folder, Some(FileFormat::Markdown)) {
            Ok(corpus) => corpus,
            Err(CorpusError::Empty { .. }) => return Ok(Self::default()),
            Err(CorpusError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(error),
        };
        let mut notes = Self::default();
        for file in corpus.files {
            let Some(id) = note_id(&file.absolute) else { continue };
            match notes.paths.get(&id) {
                Some(_) => notes.repeated.push(file.path),
                None => drop(notes.paths.insert(id, file.path)),
            }
        }
        Ok(notes)
    }

    /// Gives each entry the path of its note. Returns the paths of the notes that are left: their
    /// entries are not among these, or have another note.
    pub fn assign(mut self, entries: &mut [NeutralEntry]) -> Vec<String> {
        for entry in entries {
            entry.written_path = written_id(entry).and_then(|id| self.paths.remove(id));
        }
        let mut left = self.repeated;
        left.extend(self.paths.into_values());
        left.sort();
        left
    }
}
