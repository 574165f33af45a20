//! Sends the entries of a corpus to the node in batches.
//!
//! A thread reads the corpus a few batches ahead of the node. A batch holds entries of one type, so
//! that the node's counts are counts by type.

use super::super::{ConfirmPrompt, ProgressSink, Reply, VerbError};
use super::entry_line_conversion::{self, CorpusIdentity};
use super::gone_entries_and_links::{self, SeenParts, place_hash};
use super::import_report::{PlacedEntry, ReadCounts, Report};
use hyper::Method;
use klnode_api_types::export_file::{LINES_BYTES_MAX, LINES_MAX};
use klnode_api_types::transfer::ImportResult;
use klnode_client::Client;
use klnode_formats::{NeutralEntry, Problem, Reading, SourceCorpus};
use klnode_text::plural;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

/// The most batches that wait for the node.
const BATCHES_MAX: usize = 2;
/// On a terminal, an import of more entries shows a table and asks.
const ASKED_ABOVE: u64 = 20;
/// The type of entries without one.
const DEFAULT_TYPE: &str = "lesson";

/// Entries of one type.
#[derive(Default)]
struct LineBatch {
    lines: Vec<u8>,
    /// The title and place of each entry.
    places: Vec<PlacedEntry>,
    /// The hashes of the places by which the node recognizes the entries.
    seen: Vec<u64>,
    has_links: bool,
}

enum CorpusPart {
    Lines(String, LineBatch),
    Problem(Problem),
    Note(Problem),
    Counts(ReadCounts),
}

/// The flags of an import.
pub(in super::super) struct ImportFlags {
    /// The path of the request that imports lines.
    pub(in super::super) path: String,
    /// The path of the request that only checks lines.
    pub(in super::super) dry_path: String,
    /// Only checks.
    pub(in super::super) is_dry_run: bool,
    /// Stops at the first refused part.
    pub(in super::super) is_strict: bool,
    /// Retracts entries whose part of a file is gone.
    pub(in super::super) retracts_gone: bool,
}

/// Imports a corpus. On a terminal it shows a table first and asks.
pub(in super::super) async fn run(
    flags: &ImportFlags,
    corpus: &SourceCorpus,
    client: &Client,
    (ask, progress): (ConfirmPrompt<'_>, &mut dyn ProgressSink),
) -> Result<Reply, VerbError> {
    if let Some(ask) = ask.filter(|_| !flags.is_dry_run) {
        let planned = send(flags, corpus, true, client, progress).await?;
        if planned.written() > ASKED_ABOVE {
            progress.clear();
            let question = format!("{}\n{}Import them?", planned.table(), planned.refusals());
            if !ask(&question) {
                return Err(VerbError::Declined("Nothing was imported."));
            }
        }
    }
    let report = send(flags, corpus, flags.is_dry_run, client, progress).await?;
    Ok(report.reply(flags.is_dry_run))
}

async fn send(
    flags: &ImportFlags,
    corpus: &SourceCorpus,
    is_dry_run: bool,
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Report, VerbError> {
    let mut report = Report::new(corpus.format, corpus.files.len(), corpus.links_skipped);
    let (to, mut parts) = mpsc::channel(BATCHES_MAX);
    let identity = Arc::new(CorpusIdentity::of(&corpus.root));
    let (reader, of_reader) = (corpus.clone(), Arc::clone(&identity));
    std::thread::spawn(move || read(&reader, &of_reader, is_dry_run, &to));
    let (mut seen, mut is_whole) = (SeenParts::default(), true);
    let path = if is_dry_run { &flags.dry_path } else { &flags.path };
    let (total, begun) = (corpus.bytes_total(), Instant::now());
    let (mut bytes, mut sent) = (0, 0);
    let what = if is_dry_run { "checking" } else { "importing" };
    let work = async {
        while let Some(part) = parts.recv().await {
            match part {
                CorpusPart::Lines(kind, LineBatch { lines, places, seen: parts, has_links }) => {
                    sent += places.len() as u64;
                    seen.see(&parts);
                    seen.has_links |= has_links;
                    let media_type = "application/x-ndjson";
                    let answer = client.send_bytes(Method::POST, path, media_type, lines).await?;
                    let answer: ImportResult = answer;
                    let stopped = answer.stopped.is_some();
                    report.add(&kind, answer, |line| {
                        let at = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
                        places.get(at).cloned().unwrap_or_default()
                    });
                    if stopped {
                        is_whole = false;
                        break;
                    }
                }
                CorpusPart::Problem(problem) => {
                    seen.see_problem(&problem.file);
                    report.refuse(problem);
                    if flags.is_strict {
                        is_whole = false;
                        break;
                    }
                }
                CorpusPart::Note(note) => report.note(note),
                CorpusPart::Counts(counts) => {
                    bytes += counts.bytes;
                    report.count(counts);
                }
            }
            progress.tell(&rate(what, sent, bytes, total, begun), bytes, Some(total));
        }
        if is_whole {
            let seen = (&seen, is_dry_run);
            report.settled =
                gone_entries_and_links::settle(corpus, &identity, seen, client, progress).await?;
        }
        if flags.retracts_gone && !is_dry_run {
            gone_entries_and_links::retract(&mut report.settled, client).await?;
        }
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        _ = tokio::signal::ctrl_c() => Err(VerbError::Interrupted(String::new())),
    };
    match outcome {
        Ok(()) => Ok(report),
        Err(error) => Err(with_taken(error, is_dry_run, report.taken())),
    }
}

/// The error of an import that stopped, with the number of entries that the node has taken. It may
/// have taken more that it has not acknowledged yet.
fn with_taken(error: VerbError, is_dry_run: bool, taken: u64) -> VerbError {
    let taken = plural::counted(taken, "entry was", "entries were");
    match error {
        VerbError::Interrupted(_) if is_dry_run => {
            VerbError::Interrupted("Nothing was imported.".into())
        }
        VerbError::Interrupted(_) => VerbError::Interrupted(format!(
            "At least {taken} imported. Run it again to complete it."
        )),
        error => error.with_note(format!("Before that at least {taken} imported.")),
    }
}

/// The progress as words: entries, rate and remaining time.
fn rate(what: &str, sent: u64, bytes: u64, total: u64, begun: Instant) -> String {
    let seconds = begun.elapsed().as_secs_f64();
    if bytes == 0 || seconds < 1.0 {
        return what.to_owned();
    }
    let per_second = sent as f64 / seconds;
    let left = total.saturating_sub(bytes) as f64 * seconds / bytes as f64;
    format!("{what} {sent} entries, {per_second:.0}/s, {left:.0} s left")
}

/// Reads a corpus and sends it in batches, until it ends or the receiver is gone.
fn read(
    corpus: &SourceCorpus,
    identity: &CorpusIdentity,
    is_dry_run: bool,
    to: &mpsc::Sender<CorpusPart>,
) {
    let send = |part: CorpusPart| match to.blocking_send(part) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    let mut batches: BTreeMap<String, LineBatch> = BTreeMap::new();
    let mut counts = ReadCounts::default();
    let read = corpus.read(&mut |reading| {
        match reading {
            Reading::Entry(entry) => {
                // The node scans each entry that it takes; a dry run lists what it would flag.
                counts.add(&entry, is_dry_run);
                let kind = entry.kind.clone().unwrap_or_else(|| DEFAULT_TYPE.to_owned());
                let line = entry_line_conversion::of_entry(&entry, identity).to_string();
                let batch = batches.entry(kind.clone()).or_default();
                let bytes = batch.lines.len() + line.len();
                let is_full = batch.places.len() >= LINES_MAX || bytes > LINES_BYTES_MAX;
                if is_full && !batch.places.is_empty() {
                    send(CorpusPart::Lines(kind.clone(), std::mem::take(batch)))?;
                    send(CorpusPart::Counts(std::mem::take(&mut counts)))?;
                }
                batch.lines.extend_from_slice(line.as_bytes());
                batch.lines.push(b'\n');
                batch.seen.extend(identity.place(&entry).map(|place| place_hash(&place)));
                batch.has_links |= !entry.source.links.is_empty();
                let NeutralEntry { title, source, .. } = *entry;
                let (file, line) = (source.path.unwrap_or_default(), source.line);
                batch.places.push(PlacedEntry { kind, title, file, line });
            }
            Reading::Problem(problem) => send(CorpusPart::Problem(problem))?,
            Reading::Note(note) => send(CorpusPart::Note(note))?,
            Reading::Duplicate(problem) => counts.add_duplicate(problem),
            Reading::Bytes(bytes) => counts.bytes += bytes,
        }
        ControlFlow::Continue(())
    });
    if read.is_break() {
        return;
    }
    let last = batches.into_iter().map(|(kind, batch)| CorpusPart::Lines(kind, batch));
    let _ = last.chain([CorpusPart::Counts(counts)]).try_for_each(send);
}
