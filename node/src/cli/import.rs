//! `klnode import`: a file to the node, some lines at a time.
//!
//! The file is read on a thread of its own, a little ahead of what the node has acknowledged, so
//! that an interrupt is heard while a pipe is silent and no more than a few pieces are in memory.

use super::read::escape;
use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::portable::line::{
    FORMAT, Head, LINE_BYTES_MAX, LINES_BYTES_MAX, LINES_MAX, VERSION,
};
use crate::api::portable::types::{Imported, PROBLEMS_MAX};
use crate::query::count;
use hyper::Method;
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use tokio::sync::mpsc;

/// What to take in, and how.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The file to read, or `-` for standard input.
    pub file: PathBuf,
    /// Put plain lines into this workspace, whatever they say.
    #[arg(long)]
    pub workspace: Option<String>,
    /// Say what would be taken in, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Learn anew what was forgotten here, under a fresh id.
    #[arg(long)]
    pub as_new: bool,
    /// Stop before the first line that is refused, instead of going on without it.
    #[arg(long)]
    pub strict: bool,
    /// As the person behind this node, whose passphrase is asked for: takes plain lines that are
    /// procedural.
    #[arg(long)]
    pub as_person: bool,
}

/// Some lines, and where they stand in the file.
struct Piece {
    first_line: u64,
    lines: Vec<u8>,
    /// Bytes of the file up to their end.
    end: u64,
}

/// What became of a file.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    imported: &'a Imported,
    /// The entries that its head announces, where it holds another number of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    announced: Option<u64>,
}

/// Where lines are read from.
type Source = Box<dyn BufRead + Send>;

/// What some programs put before the first line, to say that the rest is UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Pieces that wait for the node.
const PIECES_MAX: usize = 2;

enum Part {
    Head(Head),
    Piece(Piece),
    /// The number of a line that was too long to read.
    TooLong(u64),
    Failed(VerbError),
}

impl Import {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let (reader, name, total) = self.open()?;
        let (to, mut parts) = mpsc::channel(PIECES_MAX);
        let shown = name.clone();
        std::thread::spawn(move || read(reader, &shown, &to));
        let (mut imported, mut head) = (Imported::default(), None);
        let work = async {
            while let Some(part) = parts.recv().await {
                match part {
                    Part::Head(found) => head = Some(found),
                    Part::Failed(error) => return Err(error),
                    Part::TooLong(line) => {
                        imported.refuse(line, &format!("has more than {LINE_BYTES_MAX} bytes"));
                        imported.stopped = self.strict.then_some(line);
                    }
                    Part::Piece(piece) => {
                        let path = self.path(&name, piece.first_line);
                        let media_type = "application/x-ndjson";
                        let sent = client.send_bytes(Method::POST, &path, media_type, piece.lines);
                        imported.add(sent.await?);
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
                // What the node had not answered yet may have been taken, too.
                let taken = count::counted(imported.taken, "line was", "lines were");
                let told = format!("at least {taken} taken; run it again to complete it");
                Err(VerbError::Interrupted(told))
            }
            Err(error) => Err(error.noting(self.taken_before(&imported))),
        }
    }

    /// How far an import came that ended early. The node may have taken lines that it had no time to
    /// acknowledge, so this is a lower bound.
    fn taken_before(&self, imported: &Imported) -> String {
        let Imported { taken, known, refused, .. } = imported;
        match (taken + known + refused, self.dry_run) {
            (0, _) => "no line was taken before".to_owned(),
            (_, true) => "this was a dry run, and no line was taken".to_owned(),
            _ => {
                let taken = count::counted(*taken, "line was", "lines were");
                format!(
                    "before that at least {taken} taken, {known} known already, {refused} refused; \
                     run it again to complete it"
                )
            }
        }
    }

    /// The file, what to call it, and how long it is.
    fn open(&self) -> Result<(Source, String, Option<u64>), VerbError> {
        if self.file.as_os_str() == "-" {
            return Ok((Box::new(BufReader::new(io::stdin())), "standard input".into(), None));
        }
        let failed =
            |error: io::Error| VerbError::Input(format!("read {}: {error}", self.file.display()));
        let file = File::open(&self.file).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let name = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let total = metadata.is_file().then_some(metadata.len());
        Ok((Box::new(BufReader::new(file)), name, total))
    }

    fn path(&self, name: &str, first_line: u64) -> String {
        let route = if self.as_person { "/v1/import/person" } else { "/v1/import" };
        let mut path = format!("{route}?first_line={first_line}&source={}", escape(name));
        if let Some(workspace) = &self.workspace {
            let _ = write!(path, "&workspace={}", escape(workspace));
        }
        let flags = [("dry_run", self.dry_run), ("as_new", self.as_new), ("strict", self.strict)];
        for (flag, _) in flags.iter().filter(|(_, on)| *on) {
            let _ = write!(path, "&{flag}=true");
        }
        path
    }

    fn reply(&self, imported: &Imported, head: Option<&Head>) -> Reply {
        let would = if self.dry_run { "would be " } else { "" };
        let mut text = format!(
            "{} {would}taken, {} known already, {} refused\n",
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
                "{} of them {be} only proposed: `klnode list --proposed` shows them",
                imported.proposed
            );
        }
        if imported.prior > 0 {
            let _ = writeln!(
                text,
                "{} with prior evidence: at most 2 observations each, on this node alone",
                imported.prior
            );
        }
        if imported.quarantined > 0 {
            let _ = writeln!(
                text,
                "{} wait for a decision: `klnode quarantine list` shows them",
                imported.quarantined
            );
        }
        if let Some(line) = imported.stopped {
            let _ = writeln!(text, "stopped at line {line}");
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
                "marks left out: {}; only the node that exported them takes them back",
                count::entries(imported.unmarked)
            );
        }
        let announced = head.map(|head| head.entries).filter(|_| imported.stopped.is_none());
        let announced = announced.filter(|announced| *announced != imported.entries);
        if let Some(announced) = announced {
            let _ = writeln!(
                notes,
                "the file announces {} and holds {}: is it whole?",
                count::entries(announced),
                imported.entries
            );
        }
        let exit_code = u8::from(imported.refused > 0);
        Reply::new(&Told { imported, announced }, text).noting(notes).ending(exit_code)
    }
}

/// Reads a file and sends it piece by piece, until it ends or nobody listens any more.
fn read(mut reader: Source, name: &str, to: &mpsc::Sender<Part>) {
    let send = |part: Part| to.blocking_send(part).is_ok();
    let mut lines = Lines { number: 0, offset: 0 };
    let mut piece: Option<Piece> = None;
    let mut is_first = true;
    loop {
        let mut line = match lines.next(&mut reader) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                send(Part::Failed(VerbError::Failed(format!("read {name}: {error}"))));
                return;
            }
        };
        if line.number == 1 && line.bytes.starts_with(MARK) {
            line.bytes.drain(..MARK.len());
        }
        if line.is_too_long {
            let before = piece.take().map(Part::Piece);
            if !before.into_iter().chain([Part::TooLong(line.number)]).all(send) {
                return;
            }
            continue;
        }
        if is_first && !line.bytes.trim_ascii().is_empty() {
            is_first = false;
            let is_head = match first(&line, name) {
                Ok(None) => false,
                Ok(Some(head)) => send(Part::Head(head)),
                Err(error) => {
                    send(Part::Failed(error));
                    return;
                }
            };
            if is_head {
                continue;
            }
        }
        if piece.as_ref().is_some_and(|piece| piece.is_full(&line))
            && !piece.take().map(Part::Piece).into_iter().all(send)
        {
            return;
        }
        let first_line = line.number;
        let piece = piece.get_or_insert(Piece { first_line, lines: Vec::new(), end: 0 });
        piece.lines.extend_from_slice(&line.bytes);
        piece.lines.push(b'\n');
        piece.end = lines.offset;
    }
    piece.map(|last| send(Part::Piece(last)));
}

impl Piece {
    /// Whether another line would be too much.
    fn is_full(&self, line: &Read) -> bool {
        self.lines.len() + line.bytes.len() > LINES_BYTES_MAX
            || line.number - self.first_line >= LINES_MAX as u64
    }
}

/// The head, if the first line is one; nothing if it is a line like the others.
fn first(line: &Read, name: &str) -> Result<Option<Head>, VerbError> {
    let object: Result<serde_json::Map<_, _>, _> = serde_json::from_slice(&line.bytes);
    let Ok(object) = object else {
        return Err(VerbError::Input(format!(
            "read {name}: line {} is no JSON object; lines of JSON are taken, one entry each",
            line.number
        )));
    };
    let Some(format) = object.get("klnode") else { return Ok(None) };
    let version = object.get("version").and_then(serde_json::Value::as_u64);
    match version {
        Some(version) if version > u64::from(VERSION) => {
            return Err(VerbError::Input(format!(
                "read {name}: a newer klnode wrote it (version {version}, this one knows {VERSION})"
            )));
        }
        _ if format != FORMAT => {
            return Err(VerbError::Input(format!("read {name}: it is no export of klnode")));
        }
        _ => {}
    }
    let head = serde_json::from_value(object.into());
    head.map(Some)
        .map_err(|error| VerbError::Input(format!("read {name}: line {}: {error}", line.number)))
}

/// Where a reader is in its file.
struct Lines {
    number: u64,
    offset: u64,
}

/// One line, without its end; empty if it was too long to keep.
struct Read {
    number: u64,
    bytes: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    /// The next line, of which no more is kept than the limit allows.
    fn next(&mut self, reader: &mut impl BufRead) -> io::Result<Option<Read>> {
        let mut line = Read { number: self.number + 1, bytes: Vec::new(), is_too_long: false };
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
