//! `klnode export`: streams every entry to a file or to standard output.

use super::api_path::escape;
use super::export_stream::receive;
use super::{ProgressSink, Reply, VerbError, foreign};
use klnode_api_types::export_file::{DAMAGED, ExportHeader, FORGOTTEN, FURTHER};
use klnode_client::Client;
use klnode_formats::FileFormat;
use klnode_home::{AtomicFile, Existing};
use klnode_text::plural;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The entries to export, and the file.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The file to write, or `-` for standard output [default: -]; with --format, the folder.
    pub file: Option<PathBuf>,
    /// Write files of another tool into a folder: flux-drive, decapod, gsd, wfc, formicos or
    /// markdown.
    #[arg(long, value_name = "NAME")]
    pub format: Option<FileFormat>,
    /// Only this workspace, by name or id.
    #[arg(long)]
    pub workspace: Option<String>,
    /// Replace the file if it exists, or files of the folder that differ.
    #[arg(long)]
    pub force: bool,
}

#[derive(Serialize)]
struct ExportSummary<'a> {
    file: &'a Path,
    /// All entries, including forgotten ones.
    entries: u64,
    forgotten: u64,
    bytes: u64,
}

impl ExportArgs {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        if let Some(format) = self.format.filter(|format| *format != FileFormat::Klnode) {
            let flags = foreign::export::ExportFlags {
                format,
                folder: self.file.filter(|path| path.as_os_str() != "-"),
                workspace: self.workspace,
                is_forced: self.force,
            };
            return foreign::export::run(&flags, client, progress).await;
        }
        let path = match &self.workspace {
            None => "/v1/export".to_owned(),
            Some(name) => format!("/v1/export?workspace={}", escape(name)),
        };
        let file = self.file.as_deref().filter(|file| file.as_os_str() != "-");
        let Some(file) = file else {
            return to_output(client, &path, progress).await;
        };
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => VerbError::Input(format!(
                "Cannot write {}: the file exists. Use --force to replace it.",
                file.display()
            )),
            _ => VerbError::Failed(format!("Cannot write {}: {error}.", file.display())),
        };
        let mut target = AtomicFile::create(file, existing).map_err(failed)?;
        let mut counted = LineCounter::default();
        receive(client, &path, "No file was written.", |bytes| {
            counted.take(bytes);
            progress.tell("exporting", counted.lines, counted.total());
            target.write_all(bytes).map_err(failed)
        })
        .await?;
        counted.check_complete()?;
        target.finish().map_err(failed)?;
        let (entries, bytes) = (counted.total().unwrap_or(0), counted.bytes);
        let forgotten = counted.forgotten.count;
        let and = match forgotten {
            0 => String::new(),
            count => format!(" and {count} forgotten"),
        };
        let live = plural::entries(entries.saturating_sub(forgotten));
        let text = format!("{live}{and} exported to {}\n", file.display());
        Ok(counted
            .noting_damage(Reply::new(&ExportSummary { file, entries, forgotten, bytes }, text)))
    }
}

/// Prints the lines as the answer. A closed pipe is no failure.
async fn to_output(
    client: &Client,
    path: &str,
    progress: &mut dyn ProgressSink,
) -> Result<Reply, VerbError> {
    let mut counted = LineCounter::default();
    let mut has_reader = true;
    let received = receive(client, path, "The printed export is incomplete.", |bytes| {
        counted.take(bytes);
        progress.tell("exporting", counted.lines, counted.total());
        match io::stdout().lock().write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                has_reader = false;
                Err(VerbError::Failed("The reader of standard output has closed it.".into()))
            }
            written => {
                written.map_err(|error| VerbError::Failed(format!("Cannot print: {error}.")))
            }
        }
    });
    match received.await {
        Err(_) if !has_reader => Ok(Reply::nothing()),
        received => {
            received.and_then(|()| counted.check_complete())?;
            Ok(counted.noting_damage(Reply::nothing()))
        }
    }
}

/// Counts the lines of an export. The first line announces the number of entries.
#[derive(Default)]
struct LineCounter {
    first: Vec<u8>,
    lines: u64,
    bytes: u64,
    head: Option<ExportHeader>,
    /// Entries that the node could not read.
    damaged: Occurrences,
    /// Entries with only a tombstone.
    forgotten: Occurrences,
    /// Lines that continue the entry before.
    further: Occurrences,
}

/// Counts the occurrences of a text in a stream.
#[derive(Default)]
struct Occurrences {
    count: u64,
    /// The end of the last chunk, since an occurrence may span two chunks.
    end: Vec<u8>,
}

impl Occurrences {
    fn take(&mut self, bytes: &[u8], what: &str) {
        self.end.extend_from_slice(bytes);
        let found = self.end.windows(what.len()).filter(|part| *part == what.as_bytes());
        self.count += found.count() as u64;
        let kept = self.end.len().saturating_sub(what.len() - 1);
        self.end.drain(..kept);
    }
}

impl LineCounter {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.lines == 0 {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            self.first.extend_from_slice(&bytes[..end]);
            self.head = serde_json::from_slice(&self.first).ok();
        }
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.damaged.take(bytes, DAMAGED);
        self.forgotten.take(bytes, FORGOTTEN);
        self.further.take(bytes, FURTHER);
    }

    /// Fails if the export does not hold the entries that its first line announces.
    fn check_complete(&self) -> Result<(), VerbError> {
        let (announced, lines) = (self.total(), self.lines.saturating_sub(1));
        let entries = lines.saturating_sub(self.further.count);
        if announced == Some(entries) {
            return Ok(());
        }
        let announced = plural::entries(announced.unwrap_or(0));
        Err(VerbError::Failed(format!(
            "The export is incomplete: it announces {announced} and holds {entries}."
        )))
    }

    /// Adds a note and exit code 1 if damaged entries are missing.
    fn noting_damage(&self, reply: Reply) -> Reply {
        if self.damaged.count == 0 {
            return reply;
        }
        let entries = plural::counted(self.damaged.count, "entry is", "entries are");
        let notes = format!(
            "{entries} damaged and missing in the export; `klnode check store` lists them.\n"
        );
        reply.with_notes(notes).with_exit_code(1)
    }

    fn total(&self) -> Option<u64> {
        self.head.as_ref().map(|head| head.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_complete_if_it_holds_the_announced_entries() {
        let lines = [
            r#"{"klnode":"export","version":1,"node":"8a","entries":2}"#,
            r#"{"id":"01","title":"says ,\"part\":"}"#,
            r#"{"id":"01","part":2}"#,
            r#"{"id":"02"}"#,
        ];
        let whole = |lines: &[&str]| {
            let mut counted = LineCounter::default();
            for line in lines {
                counted.take(line.as_bytes());
                counted.take(b"\n");
            }
            counted.check_complete().is_ok()
        };
        assert!(whole(&lines));
        for cut in [&lines[..0], &lines[..1], &lines[..2], &lines[..3], &lines[1..]] {
            assert!(!whole(cut), "{cut:?}");
        }
    }
}
