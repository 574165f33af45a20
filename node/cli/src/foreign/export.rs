//! Writes the node's entries as files of another tool.
//!
//! A file that exists with another content is kept unless the caller asks to replace it. Files are
//! replaced whole, so an interrupted export leaves no half file.

use super::super::api_path::escape;
use super::super::export_stream::receive;
use super::super::{ProgressSink, Reply, VerbError, promotion_ledger};
use super::entry_line_conversion::ExportedLine;
use klnode_client::Client;
use klnode_formats::{
    EarlierNotes, FileFormat, LinkIndex, LinkTarget, NeutralEntry, OutputFile, Source, WriteError,
    relation,
};
use klnode_home::{AtomicFile, Existing};
use klnode_text::plural;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

/// Types that are recorded without interpretation. Only the formats that have them take them.
const RAW: [&str; 3] = ["signal", "friction", "calibration"];

#[derive(Serialize)]
struct FolderSummary<'a> {
    folder: &'a Path,
    format: &'static str,
    entries: u64,
    files: u64,
    unchanged: u64,
    /// Files that exist with another content.
    kept: &'a [PathBuf],
    /// Files of an earlier export that were removed, because their entry has another file now.
    moved: u64,
    /// Notes of an earlier export whose entry is not exported now.
    orphaned: &'a [PathBuf],
    /// Entries that were left out, by reason.
    left_out: &'a BTreeMap<String, u64>,
}

/// The flags of an export.
pub(in super::super) struct ExportFlags {
    /// The format of the files.
    pub(in super::super) format: FileFormat,
    /// The folder; `None` if the caller names none.
    pub(in super::super) folder: Option<PathBuf>,
    /// Only this workspace, by name or id.
    pub(in super::super) workspace: Option<String>,
    /// Replaces files that differ.
    pub(in super::super) is_forced: bool,
}

/// Exports to a folder.
pub(in super::super) async fn run(
    flags: &ExportFlags,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Reply, VerbError> {
    let format = flags.format;
    if !FileFormat::WRITTEN.contains(&format) {
        let written: Vec<&str> = FileFormat::WRITTEN.iter().map(|format| format.name()).collect();
        return Err(VerbError::Input(format!(
            "{} Choose one of {}.",
            WriteError::ReadOnly(format),
            written.join(", ")
        )));
    }
    let Some(folder) = flags.folder.as_deref() else {
        let message = "An export in another format is a folder of files. Name the folder.";
        return Err(VerbError::Input(message.into()));
    };
    let (mut entries, left_out) = fetch(flags, client, progress).await?;
    if format == FileFormat::Decapod {
        add_promotions(&mut entries, client).await?;
    } else {
        drop_own_citations(&mut entries);
    }
    drop_stated_links(&mut entries);
    let orphaned = match format {
        FileFormat::Markdown => {
            let earlier = EarlierNotes::read(folder);
            earlier.map_err(|error| VerbError::Input(error.to_string()))?.assign(&mut entries)
        }
        _ => Vec::new(),
    };
    let orphaned: Vec<PathBuf> = orphaned.iter().map(|path| folder.join(path)).collect();
    let count = entries.len() as u64;
    let mut writer = FolderWriter { folder, is_forced: flags.is_forced, ..FolderWriter::default() };
    let written =
        klnode_formats::write(format, &mut entries.into_iter(), &mut |file| writer.put(&file));
    let written = written.map_err(|error| error.to_string());
    let moved = written.and_then(|()| writer.remove_moved().map_err(|error| error.to_string()));
    let moved = moved.map_err(|error| {
        VerbError::Failed(format!("Cannot write to {}: {error}.", folder.display()))
    })?;
    let FolderWriter { files, unchanged, kept, .. } = writer;
    let summary = FolderSummary {
        folder,
        format: format.name(),
        entries: count,
        files,
        unchanged,
        kept: &kept,
        moved,
        orphaned: &orphaned,
        left_out: &left_out,
    };
    let reply = Reply::new(&summary, summary.text()).with_notes(summary.notes());
    Ok(reply.with_exit_code(u8::from(!kept.is_empty())))
}

impl FolderSummary<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "{} exported to {} as {}: {} written, {} unchanged\n",
            plural::entries(self.entries),
            self.folder.display(),
            self.format,
            plural::counted(self.files, "file", "files"),
            self.unchanged
        );
        if self.moved > 0 {
            let files = plural::counted(self.moved, "file", "files");
            let _ = writeln!(text, "{files} moved to or from the archive");
        }
        for (reason, count) in self.left_out {
            let _ = writeln!(text, "{} left out: {reason}", plural::entries(*count));
        }
        text
    }

    fn notes(&self) -> String {
        let mut notes = String::new();
        for path in self.orphaned {
            let _ = writeln!(
                notes,
                "{} is a note of an earlier export, and no exported entry is written to it; \
                 delete it if you no longer want it",
                path.display()
            );
        }
        for path in self.kept {
            let _ =
                writeln!(notes, "{} exists and differs; use --force to replace it", path.display());
        }
        notes
    }
}

/// Adds the rows of the promotion ledger to the promoted entries, for the ledger of the layout.
async fn add_promotions(entries: &mut [NeutralEntry], client: &Client) -> Result<(), VerbError> {
    for row in promotion_ledger::fetch(client).await? {
        let target = entries.iter_mut().find(|of| of.klnode_id.as_deref() == Some(&row.target));
        let Some(target) = target else { continue };
        let rows = target.source.extra.entry("promotions".into()).or_insert_with(|| json!([]));
        if let Some(rows) = rows.as_array_mut() {
            rows.push(promotion_ledger::exported(&row));
        }
    }
    Ok(())
}

/// Only the ledger of Decapod has citations with names and dates; other formats have the evidence.
fn drop_own_citations(entries: &mut [NeutralEntry]) {
    let is_own = |entry: &&mut NeutralEntry| entry.source.format == FileFormat::Klnode.name();
    for entry in entries.iter_mut().filter(is_own) {
        entry.source.citations.clear();
    }
}

/// Drops the links of entries that the words of their file state already.
fn drop_stated_links(entries: &mut [NeutralEntry]) {
    let mut index = LinkIndex::default();
    for of in entries.iter() {
        let Some(entry) = of.klnode_id.as_deref() else { continue };
        let Source { path, line, id, .. } = &of.source;
        index.add(LinkTarget {
            entry,
            path: path.as_deref().unwrap_or(entry),
            line: line.unwrap_or_default(),
            title: &of.title,
            id: id.as_deref(),
        });
    }
    for of in entries.iter_mut() {
        let path = of.source.path.clone().unwrap_or_default();
        let words = of.source.links.iter().filter(|link| link.from.is_empty());
        let stated: BTreeSet<(&str, &str)> = words
            .filter_map(|link| {
                Some((relation(&link.relation), index.resolve(&path, &link.target)?))
            })
            .collect();
        of.links.retain(|link| !stated.contains(&(link.relation.as_str(), link.target.as_str())));
    }
}

/// The reason why an entry is not exported; `None` if it is.
fn reason_to_leave_out(line: &ExportedLine, format: FileFormat) -> Option<String> {
    let takes_raw = matches!(format, FileFormat::Gsd | FileFormat::Decapod | FileFormat::Markdown);
    let raw = line.kind.as_deref().filter(|kind| !takes_raw && RAW.contains(kind));
    match (&line.state, raw) {
        (Some(state), _) => Some(state.clone()),
        (None, Some(kind)) => Some(format!("{format} has no place for the type {kind}")),
        (None, None) => None,
    }
}

/// Receives the entries, sorted by id, and counts the ones that are left out by reason.
async fn fetch(
    flags: &ExportFlags,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<(Vec<NeutralEntry>, BTreeMap<String, u64>), VerbError> {
    let workspace = flags.workspace.as_ref().map(|name| format!("&workspace={}", escape(name)));
    let path = format!("/v1/export?plain=true{}", workspace.unwrap_or_default());
    let (mut pending, mut entries, mut is_first) = (Vec::new(), Vec::new(), true);
    let mut left_out = BTreeMap::<String, u64>::new();
    receive(client, &path, "The export is incomplete.", |bytes| {
        pending.extend_from_slice(bytes);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            if std::mem::take(&mut is_first) {
                continue;
            }
            let line: ExportedLine = serde_json::from_slice(&line).map_err(|error| {
                VerbError::Failed(format!("The node sent a line that is no entry: {error}."))
            })?;
            let reason = reason_to_leave_out(&line, flags.format);
            let entry = if reason.is_none() { line.into_entry() } else { None };
            match entry {
                Some(entry) => entries.push(entry),
                None => {
                    let reason = reason.unwrap_or_else(|| "it has no text".to_owned());
                    *left_out.entry(reason).or_default() += 1;
                }
            }
            progress.tell("exporting", entries.len() as u64, None);
        }
        Ok(())
    })
    .await?;
    Ok((entries, left_out))
}

struct FolderWriter<'a> {
    folder: &'a Path,
    is_forced: bool,
    files: u64,
    unchanged: u64,
    kept: Vec<PathBuf>,
    /// The files of this export.
    paths: BTreeSet<String>,
    /// Where the same entries were before, each with the path and text of its file now.
    moved: Vec<(String, OutputFile)>,
}

impl Default for FolderWriter<'_> {
    fn default() -> Self {
        Self {
            folder: Path::new(""),
            is_forced: false,
            files: 0,
            unchanged: 0,
            kept: Vec::new(),
            paths: BTreeSet::new(),
            moved: Vec::new(),
        }
    }
}

impl FolderWriter<'_> {
    fn put(&mut self, file: &OutputFile) -> io::Result<()> {
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !Path::new(&file.path).components().all(is_below) {
            return Err(io::Error::other(format!("{} is no path below the folder", file.path)));
        }
        self.paths.insert(file.path.clone());
        if let Some(from) = &file.moved_from {
            self.moved.push((from.clone(), file.clone()));
        }
        let path = self.folder.join(&file.path);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {
                if fs::read(&path)? == file.text.as_bytes() {
                    self.unchanged += 1;
                    return Ok(());
                }
                if !self.is_forced {
                    self.kept.push(path);
                    return Ok(());
                }
            }
            // A link could lead out of the folder.
            Ok(_) => {
                self.kept.push(path);
                return Ok(());
            }
            Err(_) => {}
        }
        self.make_folder(&path)?;
        let mut target = AtomicFile::create(&path, Existing::Replace)?;
        target.write_all(file.text.as_bytes())?;
        target.finish()?;
        self.files += 1;
        Ok(())
    }

    /// Removes the files of entries that have moved to or from the archive. One that a person edited
    /// is kept, unless the caller asks to replace files. Returns the number of removed files.
    fn remove_moved(&mut self) -> io::Result<u64> {
        let mut removed = 0;
        for (from, file) in std::mem::take(&mut self.moved) {
            let path = self.folder.join(&from);
            let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            if !is_file || self.paths.contains(&from) || self.is_behind_link(&path) {
                continue;
            }
            let is_written = self.folder.join(&file.path).is_file();
            if is_written && (self.is_forced || fs::read(&path)? == file.text.as_bytes()) {
                fs::remove_file(&path)?;
                removed += 1;
            } else {
                self.kept.push(path);
            }
        }
        Ok(removed)
    }

    /// True if a folder above a file is a symbolic link.
    fn is_behind_link(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1).take_while(|folder| *folder != self.folder);
        above.any(Path::is_symlink)
    }

    /// Creates the folders above a file, none of which may be a symbolic link.
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(self.folder)?;
        let below = path.strip_prefix(self.folder).unwrap_or(path);
        let mut folder = self.folder.to_owned();
        for part in below.parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            match fs::symlink_metadata(&folder) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    let message = format!("{} is no folder", folder.display());
                    return Err(io::Error::other(message));
                }
                Err(_) => fs::create_dir(&folder)?,
            }
        }
        Ok(())
    }
}
