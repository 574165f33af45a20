//! `klnode import`: sends a file of lines to the node in batches. [`super::foreign`] sends files of
//! other tools.
//!
//! A thread reads the file a few batches ahead of the node, so that an interrupt works while a pipe
//! is silent, and only a few batches are in memory.

use super::api_path::escape;
use super::{ConfirmPrompt, ProgressSink, Reply, VerbError, foreign};
use hyper::Method;
use klnode_api_types::export_file::{
    ExportHeader, FORMAT, LINE_BYTES_MAX, LINES_BYTES_MAX, LINES_MAX, VERSION,
};
use klnode_api_types::transfer::{ImportResult, KeptSide, PROBLEMS_MAX};
use klnode_client::Client;
use klnode_formats::{CorpusError, FileFormat, SourceCorpus};
use klnode_text::plural;
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// The file to import.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file or folder to read, or `-` for standard input.
    pub file: PathBuf,
    /// The format, instead of the one that the names and first lines show: klnode, flux-drive,
    /// decapod, gsd, wfc, formicos, instructions, claude-memory, markdown, basic-memory, mcp-memory,
    /// mem0, or the databases decapod-db, formicos-db and claude-mem.
    #[arg(long, value_name = "NAME")]
    pub format: Option<FileFormat>,
    /// Do not ask before more than 20 entries of another tool are imported. Without a terminal,
    /// import never asks.
    #[arg(long)]
    pub yes: bool,
    /// Put plain lines into this workspace, even if they name another.
    #[arg(long)]
    pub workspace: Option<String>,
    /// Show the result without writing entries.
    #[arg(long)]
    pub dry_run: bool,
    /// Import entries that were forgotten here again, under new ids.
    #[arg(long)]
    pub as_new: bool,
    /// For entries that were changed both here and in their file: keep the entry, or take the text
    /// of the file. Without this flag they are listed and not changed.
    #[arg(long, value_name = "entry|file", value_parser = kept_side)]
    pub keep: Option<KeptSide>,
    /// Retract entries whose file or section is gone. Without this flag they are listed.
    #[arg(long)]
    pub retract_gone: bool,
    /// Stop at the first refused line instead of skipping it.
    #[arg(long)]
    pub strict: bool,
    /// Import as the person behind this node, which asks for the passphrase. Plain lines with
    /// procedural memory need it.
    #[arg(long)]
    pub as_person: bool,
}

fn kept_side(text: &str) -> Result<KeptSide, String> {
    match text {
        "entry" => Ok(KeptSide::Entry),
        "file" => Ok(KeptSide::File),
        _ => Err("write `entry` or `file`".to_owned()),
    }
}

/// Some lines, and their position in the file.
struct Piece {
    first_line: u64,
    lines: Vec<u8>,
    /// The offset of the end of the last line.
    end: u64,
}

/// The JSON form of the answer.
#[derive(Serialize)]
struct ImportSummary<'a> {
    #[serde(flatten)]
    imported: &'a ImportResult,
    /// The number of entries that the head announces, if the file holds another number.
    #[serde(skip_serializing_if = "Option::is_none")]
    announced: Option<u64>,
}

/// The reader of the file or of standard input.
type ImportSource = Box<dyn BufRead + Send>;

/// The byte order mark that some programs put before UTF-8 text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The most batches that wait for the node.
const PIECES_MAX: usize = 2;

enum ImportPart {
    Head(ExportHeader),
    Piece(Piece),
    /// The number of a line that was too long to read.
    TooLong(u64),
    Failed(VerbError),
}

impl Import {
    pub(super) async fn run(
        self,
        client: &Client,
        ask: ConfirmPrompt<'_>,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        if let Some(corpus) = self.corpus()? {
            let flags = foreign::import::ImportFlags {
                path: self.request_path("", 1, false),
                dry_path: self.request_path("", 1, true),
                is_dry_run: self.dry_run,
                is_strict: self.strict,
                retracts_gone: self.retract_gone,
            };
            let ask = ask.filter(|_| !self.yes);
            return foreign::import::run(&flags, &corpus, client, (ask, progress)).await;
        }
        let (reader, name, total) = self.open()?;
        let (to, mut parts) = mpsc::channel(PIECES_MAX);
        let shown = name.clone();
        std::thread::spawn(move || read(reader, &shown, &to));
        let (mut imported, mut head) = (ImportResult::default(), None);
        let work = async {
            while let Some(part) = parts.recv().await {
                match part {
                    ImportPart::Head(found) => head = Some(found),
                    ImportPart::Failed(error) => return Err(error),
                    ImportPart::TooLong(line) => {
                        imported.refuse(line, &format!("has more than {LINE_BYTES_MAX} bytes"));
                        imported.stopped = self.strict.then_some(line);
                    }
                    ImportPart::Piece(piece) => {
                        let path = self.request_path(&name, piece.first_line, self.dry_run);
                        let media_type = "application/x-ndjson";
                        let sent = client.send_bytes(Method::POST, &path, media_type, piece.lines);
                        let mut result: ImportResult = sent.await?;
                        // Only the entries of other tools' files are listed.
                        result.would_write.clear();
                        imported.add(result);
                        progress.tell("importing", piece.end, total);
                    }
                }
                if imported.stopped.is_some() {
                    break;
                }
            }
            Ok(())
        };
        let outcome = tokio::select! {
            outcome = work => outcome,
            _ = tokio::signal::ctrl_c() => Err(VerbError::Interrupted(String::new())),
        };
        match outcome {
            Ok(()) => Ok(self.reply(&imported, head.as_ref())),
            Err(VerbError::Interrupted(_)) => {
                // The node may have imported lines that it has not acknowledged yet.
                let taken = plural::counted(imported.taken, "line was", "lines were");
                let message = format!("At least {taken} imported. Run it again to complete it.");
                Err(VerbError::Interrupted(message))
            }
            Err(error) => Err(error.with_note(self.taken_before(&imported))),
        }
    }

    /// The progress of an import that ended early. The node may have imported lines that it has not
    /// acknowledged, so this is a lower bound.
    fn taken_before(&self, imported: &ImportResult) -> String {
        let ImportResult { taken, known, refused, .. } = imported;
        match (taken + known + refused, self.dry_run) {
            (0, _) => "No line was imported before.".to_owned(),
            (_, true) => "This was a dry run, so no line was imported.".to_owned(),
            _ => {
                let taken = plural::counted(*taken, "line was", "lines were");
                format!(
                    "Before that at least {taken} imported, {known} already known, {refused} \
                     refused. Run it again to complete it."
                )
            }
        }
    }

    /// The files of another tool; `None` for lines that the node reads itself.
    fn corpus(&self) -> Result<Option<SourceCorpus>, VerbError> {
        if self.file.as_os_str() == "-" {
            return match self.format {
                None | Some(FileFormat::Klnode) => Ok(None),
                Some(format) => Err(VerbError::Input(format!(
                    "Cannot read the format {format} from standard input. Name its file or folder."
                ))),
            };
        }
        let is_folder = self.file.is_dir();
        match SourceCorpus::open(&self.file, self.format) {
            Ok(corpus) if corpus.format == FileFormat::Klnode && !is_folder => Ok(None),
            Ok(corpus) => Ok(Some(corpus)),
            // The reader of lines names the first line that is wrong.
            Err(CorpusError::Unknown { .. } | CorpusError::Io { .. }) if !is_folder => Ok(None),
            Err(error @ (CorpusError::Unknown { .. } | CorpusError::Several { .. })) => {
                Err(VerbError::Input(format!("{error} Choose one with --format.")))
            }
            Err(error) => Err(VerbError::Input(error.to_string())),
        }
    }

    /// Opens the file. Returns its reader, its name and its length if known.
    fn open(&self) -> Result<(ImportSource, String, Option<u64>), VerbError> {
        if self.file.as_os_str() == "-" {
            return Ok((Box::new(BufReader::new(io::stdin())), "standard input".into(), None));
        }
        let failed = |error: io::Error| {
            VerbError::Input(format!("Cannot read {}: {error}.", self.file.display()))
        };
        let file = File::open(&self.file).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let total = metadata.is_file().then_some(metadata.len());
        Ok((Box::new(BufReader::new(file)), name, total))
    }

    /// The path of the request for some lines.
    fn request_path(&self, name: &str, first_line: u64, dry_run: bool) -> String {
        let route = if self.as_person { "/v1/import/person" } else { "/v1/import" };
        let mut path = format!("{route}?first_line={first_line}&source={}", escape(name));
        if let Some(workspace) = &self.workspace {
            let _ = write!(path, "&workspace={}", escape(workspace));
        }
        match self.keep {
            Some(KeptSide::Entry) => path.push_str("&keep=entry"),
            Some(KeptSide::File) => path.push_str("&keep=file"),
            None => {}
        }
        let flags = [("dry_run", dry_run), ("as_new", self.as_new), ("strict", self.strict)];
        for (flag, _) in flags.iter().filter(|(_, on)| *on) {
            let _ = write!(path, "&{flag}=true");
        }
        path
    }

    fn reply(&self, imported: &ImportResult, head: Option<&ExportHeader>) -> Reply {
        let would = if self.dry_run { "would be " } else { "" };
        let mut text = format!(
            "{} {would}imported, {} already known, {} refused\n",
            imported.taken, imported.known, imported.refused
        );
        if imported.forgotten > 0 {
            let _ = writeln!(text, "{} {would}forgotten here, as in the file", imported.forgotten);
        }
        if imported.proposed > 0 {
            let be = match (self.dry_run, imported.proposed) {
                (true, _) => "would be",
                (false, 1) => "is",
                (false, _) => "are",
            };
            let _ = writeln!(
                text,
                "{} of them {be} only proposals: `klnode list --proposed` lists them",
                imported.proposed
            );
        }
        if imported.prior > 0 {
            let _ = writeln!(
                text,
                "{} with prior evidence: at most 2 observations each, on this node only",
                imported.prior
            );
        }
        if imported.quarantined > 0 {
            let _ = writeln!(
                text,
                "{} in quarantine: `klnode inbox list` lists them",
                imported.quarantined
            );
        }
        if let Some(line) = imported.stopped {
            let _ = writeln!(text, "The import stopped at line {line}.");
        }
        let mut notes = String::new();
        for problem in &imported.problems {
            let _ = writeln!(notes, "line {}: {}", problem.line, problem.message);
        }
        if imported.refused > PROBLEMS_MAX as u64 {
            let _ = writeln!(notes, "and {} more", imported.refused - PROBLEMS_MAX as u64);
        }
        if imported.unmarked > 0 {
            let _ = writeln!(
                notes,
                "marks skipped: {}; only the node that exported marks can import them",
                plural::entries(imported.unmarked)
            );
        }
        let announced = head.map(|head| head.entries).filter(|_| imported.stopped.is_none());
        let announced = announced.filter(|announced| *announced != imported.entries);
        if let Some(announced) = announced {
            let _ = writeln!(
                notes,
                "the file announces {} but holds {}; it may be incomplete",
                plural::entries(announced),
                imported.entries
            );
        }
        let exit_code = u8::from(imported.refused > 0);
        Reply::new(&ImportSummary { imported, announced }, text)
            .with_notes(notes)
            .with_exit_code(exit_code)
    }
}

/// Reads a file and sends it in batches, until it ends or the receiver is gone.
fn read(mut reader: ImportSource, name: &str, to: &mpsc::Sender<ImportPart>) {
    let send = |part: ImportPart| to.blocking_send(part).is_ok();
    let mut lines = LinePosition { number: 0, offset: 0 };
    let mut piece: Option<Piece> = None;
    let mut is_first = true;
    loop {
        let mut line = match lines.next(&mut reader) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                send(ImportPart::Failed(VerbError::Failed(format!(
                    "Cannot read {name}: {error}."
                ))));
                return;
            }
        };
        if line.number == 1 && line.bytes.starts_with(MARK) {
            line.bytes.drain(..MARK.len());
        }
        if line.is_too_long {
            let before = piece.take().map(ImportPart::Piece);
            if !before.into_iter().chain([ImportPart::TooLong(line.number)]).all(send) {
                return;
            }
            continue;
        }
        if is_first && !line.bytes.trim_ascii().is_empty() {
            is_first = false;
            let is_head = match first(&line, name) {
                Ok(None) => false,
                Ok(Some(head)) => send(ImportPart::Head(head)),
                Err(error) => {
                    send(ImportPart::Failed(error));
                    return;
                }
            };
            if is_head {
                continue;
            }
        }
        if piece.as_ref().is_some_and(|piece| piece.is_full(&line))
            && !piece.take().map(ImportPart::Piece).into_iter().all(send)
        {
            return;
        }
        let first_line = line.number;
        let piece = piece.get_or_insert(Piece { first_line, lines: Vec::new(), end: 0 });
        piece.lines.extend_from_slice(&line.bytes);
        piece.lines.push(b'\n');
        piece.end = lines.offset;
    }
    piece.map(|last| send(ImportPart::Piece(last)));
}

impl Piece {
    /// Whether another line would exceed the limits of a request.
    fn is_full(&self, line: &ReadLine) -> bool {
        self.lines.len() + line.bytes.len() > LINES_BYTES_MAX
            || line.number - self.first_line >= LINES_MAX as u64
    }
}

/// The head of an export, if the first line is one; `None` for a plain line.
fn first(line: &ReadLine, name: &str) -> Result<Option<ExportHeader>, VerbError> {
    let object: Result<serde_json::Map<_, _>, _> = serde_json::from_slice(&line.bytes);
    let Ok(object) = object else {
        return Err(VerbError::Input(format!(
            "Cannot read {name}: line {} is no JSON object. Each line must be one entry in JSON.",
            line.number
        )));
    };
    let Some(format) = object.get("klnode") else { return Ok(None) };
    let version = object.get("version").and_then(serde_json::Value::as_u64);
    match version {
        Some(version) if version > u64::from(VERSION) => {
            return Err(VerbError::Input(format!(
                "Cannot read {name}: a newer klnode wrote it (version {version}, this one knows \
                 {VERSION})."
            )));
        }
        _ if format != FORMAT => {
            return Err(VerbError::Input(format!(
                "Cannot read {name}: it is no export of klnode."
            )));
        }
        _ => {}
    }
    let head = serde_json::from_value(object.into());
    head.map(Some).map_err(|error| {
        VerbError::Input(format!("Cannot read {name}: line {}: {error}.", line.number))
    })
}

/// The position of the reader in its file.
struct LinePosition {
    number: u64,
    offset: u64,
}

/// One line without its line break; empty if it was too long to keep.
struct ReadLine {
    number: u64,
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl LinePosition {
    /// Reads the next line, and keeps at most [`LINE_BYTES_MAX`] bytes of it.
    fn next(&mut self, reader: &mut impl BufRead) -> io::Result<Option<ReadLine>> {
        let mut line = ReadLine { number: self.number + 1, bytes: Vec::new(), is_too_long: false };
        loop {
            let buffer = reader.fill_buf()?;
            if buffer.is_empty() {
                let is_over = line.bytes.is_empty() && !line.is_too_long;
                self.number = line.number;
                return Ok(Some(line).filter(|_| !is_over));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            if line.is_too_long || line.bytes.len() + part.len() > LINE_BYTES_MAX {
                line.is_too_long = true;
                line.bytes = Vec::new();
            } else {
                line.bytes.extend_from_slice(part);
            }
            let count = part.len() + usize::from(end.is_some());
            reader.consume(count);
            self.offset += count as u64;
            if end.is_some() {
                self.number = line.number;
                return Ok(Some(line));
            }
        }
    }
}
