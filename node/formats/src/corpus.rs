//! A corpus: a file or a folder in one format, its files, and the reading of all of them.
//!
//! Separate from the readers because the rules here are the same for every format: symbolic links
//! are not followed, a file that cannot be read is a problem and not the end, and an identity that
//! occurs twice is reported.

use crate::corpus_error::CorpusError;
use crate::detect::{self, Detection};
use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::limits::{DEPTH_MAX, FILES_MAX};
use crate::neutral_entry::Reading;
use crate::source_file::SourceFile;
use crate::{
    agent_instructions, basic_memory, claude_memory, databases, decapod, flux_drive, formicos, gsd,
    markdown_notes, mcp_memory, mem0, wfc,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file or a folder in one format.
#[derive(Clone, Debug)]
pub struct SourceCorpus {
    pub format: FileFormat,
    /// The folder to which the paths of files are relative.
    pub root: PathBuf,
    /// The files, in the order of their paths.
    pub files: Vec<SourceFile>,
    /// Symbolic links that were not followed.
    pub links_skipped: u64,
    /// True if the corpus is one file and not its folder.
    pub is_one_file: bool,
    /// The part of the folder that is read, with a slash at the end; empty for all of it.
    pub part: String,
}

impl SourceCorpus {
    /// Opens a file or a folder, in the given format or in the one that its names and first lines
    /// show.
    ///
    /// # Errors
    /// If the path cannot be read, or has no known format or several.
    pub fn open(path: &Path, format: Option<FileFormat>) -> Result<Self, CorpusError> {
        let failed = |source| CorpusError::Io { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(failed)?;
        let Detection { format, root } = match format {
            Some(format) => Detection { format, root: detect::root_for(path, format)? },
            None => detect::detect(path, metadata.is_dir())?,
        };
        let found = fs::metadata(&root).map_err(failed)?;
        let folder = match found.is_file() {
            true => root.parent().filter(|folder| *folder != Path::new("")),
            false => Some(root.as_path()),
        };
        // One file and its folder must give the same identities, so both start at the same place.
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().map_err(failed)?;
        let (top, part) = top_of(format, &folder);
        let (files, links_skipped, is_one_file) = (Vec::new(), 0, found.is_file());
        let mut corpus = Self { format, root: top, files, links_skipped, is_one_file, part };
        if is_one_file {
            let name = root.file_name().unwrap_or_default().to_string_lossy();
            let path = format!("{}{name}", corpus.part);
            corpus.files.push(SourceFile { path, absolute: root.clone(), bytes: found.len() });
            return Ok(corpus);
        }
        let below = corpus.part.trim_end_matches('/').to_owned();
        corpus.collect(&folder, &below, 0)?;
        if corpus.files.is_empty() {
            return Err(CorpusError::Empty { path: path.to_owned(), format });
        }
        Ok(corpus)
    }

    /// The size of all files.
    pub fn bytes_total(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Collects the files of a folder. A folder below the first that cannot be read is skipped with
    /// the files it may have; reading them would fail as well.
    fn collect(&mut self, folder: &Path, below: &str, depth: usize) -> Result<(), CorpusError> {
        let failed = |source| CorpusError::Io { path: folder.to_owned(), source };
        let listed = match fs::read_dir(folder) {
            Ok(listed) => listed,
            Err(error) if depth == 0 => return Err(failed(error)),
            Err(_) => return Ok(()),
        };
        let mut names: Vec<_> =
            listed.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let absolute = folder.join(&name);
            let Ok(metadata) = fs::symlink_metadata(&absolute) else { continue };
            let name = name.to_string_lossy();
            let path = if below.is_empty() { name.into_owned() } else { format!("{below}/{name}") };
            if metadata.is_symlink() {
                self.links_skipped += 1;
            } else if metadata.is_dir() {
                if depth < DEPTH_MAX && detect::visits(self.format, &path) {
                    self.collect(&absolute, &path, depth + 1)?;
                }
            } else if metadata.is_file()
                && detect::takes(self.format, &self.root.to_string_lossy(), &path)
            {
                if self.files.len() == FILES_MAX {
                    return Err(CorpusError::TooMany { path: self.root.clone() });
                }
                self.files.push(SourceFile { path, absolute, bytes: metadata.len() });
            }
        }
        Ok(())
    }

    /// Reads all files, and calls `take` for each entry and problem, until it breaks.
    pub fn read(&self, take: &mut dyn FnMut(Reading) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut taker = Taker::new(&self.files, take);
        let ledger = match self.format {
            FileFormat::Decapod => decapod::Ledger::read(&self.files),
            _ => decapod::Ledger::default(),
        };
        for (at, file) in self.files.iter().enumerate() {
            taker.begin(at);
            self.read_file(file, &ledger, &mut taker)?;
            taker.end(file.bytes)?;
        }
        if self.format == FileFormat::Gsd {
            gsd::check_index(&self.root, &self.files, &mut taker)?;
        }
        ControlFlow::Continue(())
    }

    fn read_file(
        &self,
        file: &SourceFile,
        ledger: &decapod::Ledger,
        take: &mut Taker<'_>,
    ) -> ControlFlow<()> {
        match self.format {
            FileFormat::FluxDrive => flux_drive::read(file, take),
            FileFormat::Decapod => decapod::read(file, ledger, take),
            FileFormat::Gsd => gsd::read(file, take),
            FileFormat::Wfc => wfc::read(file, &self.root, take),
            FileFormat::Formicos => formicos::read(file, take),
            FileFormat::Instructions => agent_instructions::read(file, take),
            FileFormat::ClaudeMemory => claude_memory::read(file, take),
            FileFormat::Markdown => markdown_notes::read(file, take),
            FileFormat::BasicMemory => basic_memory::read(file, take),
            FileFormat::McpMemory => mcp_memory::read(file, take),
            FileFormat::Mem0 => mem0::read(file, take),
            FileFormat::DecapodDb => databases::read_decapod(file, take),
            FileFormat::FormicosDb => databases::read_formicos(file, take),
            FileFormat::ClaudeMem => databases::read_claude_mem(file, take),
            FileFormat::Klnode => take.problem(None, "the node itself reads lines of klnode"),
        }
    }
}

/// The folder to which the files of a format are relative, and the part of it that is read. The folder
/// of a WFC reviewer and flux-drive's archive are parts of the folder above.
fn top_of(format: FileFormat, folder: &Path) -> (PathBuf, String) {
    let is_part = match format {
        FileFormat::Wfc => {
            [wfc::KNOWLEDGE, wfc::ARCHIVE].iter().any(|name| folder.join(name).is_file())
        }
        FileFormat::FluxDrive => folder.ends_with(flux_drive::ARCHIVE_FOLDER),
        _ => false,
    };
    match (folder.parent(), folder.file_name()) {
        // The folder above a repository would be outside of it.
        (Some(above), Some(name)) if is_part && !folder.join(".git").exists() => {
            (above.to_owned(), format!("{}/", name.to_string_lossy()))
        }
        _ => (folder.to_owned(), String::new()),
    }
}
