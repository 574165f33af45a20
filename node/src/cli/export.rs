//! `klnode export`: every entry to a file or to standard output, piece by piece.

use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::portable::line::{DAMAGED, FORGOTTEN, FURTHER, Head};
use crate::query::count;
use crate::store::{Existing, Unfinished};
use hyper::Method;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What to export, and where to.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The file to write, or `-` for standard output [default: -].
    pub file: Option<PathBuf>,
    /// Only this workspace, by name or id.
    #[arg(long)]
    pub workspace: Option<String>,
    /// Replace the file if there is one.
    #[arg(long)]
    pub force: bool,
}

#[derive(Serialize)]
struct Exported<'a> {
    file: &'a Path,
    /// Forgotten ones included.
    entries: u64,
    forgotten: u64,
    bytes: u64,
}

impl Export {
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn Progress,
    ) -> Result<Reply, VerbError> {
        let path = match &self.workspace {
            None => "/v1/export".to_owned(),
            Some(name) => format!("/v1/export?workspace={}", super::read::escape(name)),
        };
        let file = self.file.as_deref().filter(|file| file.as_os_str() != "-");
        let Some(file) = file else {
            return to_output(client, &path, progress).await;
        };
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => VerbError::Input(format!(
                "write {}: there is such a file already; --force replaces it",
                file.display()
            )),
            _ => VerbError::Failed(format!("write {}: {error}", file.display())),
        };
        let mut target = Unfinished::create(file, existing).map_err(failed)?;
        let mut counted = Counted::default();
        receive(client, &path, "nothing was written", |bytes| {
            counted.take(bytes);
            progress.tell("exporting", counted.lines, counted.total());
            target.write_all(bytes).map_err(failed)
        })
        .await?;
        counted.must_be_whole()?;
        target.finish().map_err(failed)?;
        let (entries, bytes) = (counted.total().unwrap_or(0), counted.bytes);
        let forgotten = counted.forgotten.count;
        let and = match forgotten {
            0 => String::new(),
            count => format!(" and {count} forgotten"),
        };
        let live = count::entries(entries.saturating_sub(forgotten));
        let text = format!("{live}{and} exported to {}\n", file.display());
        Ok(counted.told(Reply::new(&Exported { file, entries, forgotten, bytes }, text)))
    }
}

/// The lines themselves are the answer. A reader that has gone away is no failure.
async fn to_output(
    client: &Client,
    path: &str,
    progress: &mut dyn Progress,
) -> Result<Reply, VerbError> {
    let mut counted = Counted::default();
    let mut has_reader = true;
    let received = receive(client, path, "what was printed is not whole", |bytes| {
        counted.take(bytes);
        progress.tell("exporting", counted.lines, counted.total());
        match io::stdout().lock().write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                has_reader = false;
                Err(VerbError::Failed("go on: nobody reads".into()))
            }
            written => written.map_err(|error| VerbError::Failed(format!("print: {error}"))),
        }
    });
    match received.await {
        Err(_) if !has_reader => Ok(Reply::nothing()),
        received => {
            received.and_then(|()| counted.must_be_whole())?;
            Ok(counted.told(Reply::nothing()))
        }
    }
}

/// Takes piece by piece; `left` says what an interrupt leaves.
async fn receive(
    client: &Client,
    path: &str,
    left: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), VerbError>,
) -> Result<(), VerbError> {
    let received = client.receive(Method::GET, path, &(), |bytes| take(&bytes));
    tokio::select! {
        received = received => received,
        _ = tokio::signal::ctrl_c() => Err(VerbError::Interrupted(left.into())),
    }
}

/// How far it is: the first line says how many follow.
#[derive(Default)]
struct Counted {
    first: Vec<u8>,
    lines: u64,
    bytes: u64,
    head: Option<Head>,
    /// Entries that could not be read.
    damaged: Said,
    /// Entries of which a tombstone is left.
    forgotten: Said,
    /// Lines that go on with the entry before.
    further: Said,
}

/// How often lines say something.
#[derive(Default)]
struct Said {
    count: u64,
    /// The end of the last piece, which the next goes on.
    end: Vec<u8>,
}

impl Said {
    fn take(&mut self, bytes: &[u8], what: &str) {
        self.end.extend_from_slice(bytes);
        let said = self.end.windows(what.len()).filter(|part| *part == what.as_bytes());
        self.count += said.count() as u64;
        let kept = self.end.len().saturating_sub(what.len() - 1);
        self.end.drain(..kept);
    }
}

impl Counted {
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

    /// Refuses what does not hold what its first line announces, however well it ended.
    fn must_be_whole(&self) -> Result<(), VerbError> {
        let (announced, lines) = (self.total(), self.lines.saturating_sub(1));
        let entries = lines.saturating_sub(self.further.count);
        if announced == Some(entries) {
            return Ok(());
        }
        let announced = count::entries(announced.unwrap_or(0));
        Err(VerbError::Failed(format!(
            "read the export to its end: it announces {announced} and holds {entries}"
        )))
    }

    /// The answer, with what is not in it.
    fn told(&self, reply: Reply) -> Reply {
        if self.damaged.count == 0 {
            return reply;
        }
        let entries = count::counted(self.damaged.count, "entry is", "entries are");
        let notes = format!("{entries} damaged and not in it; `klnode doctor` says which\n");
        reply.noting(notes).ending(1)
    }

    fn total(&self) -> Option<u64> {
        self.head.as_ref().map(|head| head.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_whole_that_holds_the_entries_it_announces() {
        let lines = [
            r#"{"klnode":"export","version":1,"node":"8a","entries":2}"#,
            r#"{"id":"01","title":"says ,\"part\":"}"#,
            r#"{"id":"01","part":2}"#,
            r#"{"id":"02"}"#,
        ];
        let whole = |lines: &[&str]| {
            let mut counted = Counted::default();
            for line in lines {
                counted.take(line.as_bytes());
                counted.take(b"\n");
            }
            counted.must_be_whole().is_ok()
        };
        assert!(whole(&lines));
        for cut in [&lines[..0], &lines[..1], &lines[..2], &lines[..3], &lines[1..]] {
            assert!(!whole(cut), "{cut:?}");
        }
    }
}
