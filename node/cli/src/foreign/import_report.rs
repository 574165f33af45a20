//! The report of a foreign import: counts by type, and the parts that were not taken.

use super::super::Reply;
use super::super::sanitize::printable;
use super::gone_entries_and_links::{GoneEntry, Settled};
use klnode_api_types::transfer::ImportResult;
use klnode_formats::{FileFormat, NeutralEntry, Problem};
use klnode_scoring::content_scan::{redact_secrets, scanner};
use klnode_text::plural;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Refused parts that are listed; further ones are only counted.
const LISTED_MAX: usize = 1_000;

/// Entries that are listed as gone, and items of each list of the table; further ones are only
/// counted.
const SHOWN_MAX: usize = 20;

/// A part of a corpus that was not taken.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RefusedItem {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    message: String,
}

/// An entry of a corpus.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PlacedEntry {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
}

/// The result of an import, or of a dry run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The name of the format.
    format: &'static str,
    /// The files of the corpus.
    files: usize,
    /// The counts of the node. `refused` includes parts that could not be read.
    #[serde(flatten)]
    pub(super) imported: ImportResult,
    /// Entries that the corpus holds twice.
    duplicates: u64,
    /// New entries by type.
    added: BTreeMap<String, u64>,
    /// Known entries by type.
    known_by_type: BTreeMap<String, u64>,
    /// Entries by type that follow a change of their file.
    changed_by_type: BTreeMap<String, u64>,
    /// Entries in which the content scan found something that a person should review.
    scan_findings: BTreeMap<String, u64>,
    /// The first entries that a dry run would add or change.
    first: Vec<PlacedEntry>,
    /// The first entries that the corpus holds twice.
    repeated: Vec<RefusedItem>,
    /// The first findings of the content scan.
    findings: Vec<RefusedItem>,
    /// Statements of the corpus about itself that do not hold.
    notes: Vec<RefusedItem>,
    /// Fields of the files that klnode keeps as the file's words, with their number.
    extra_fields: BTreeMap<String, u64>,
    /// Symbolic links that were not followed.
    links_skipped: u64,
    /// The first refused parts.
    items: Vec<RefusedItem>,
    /// The first entries that were changed here and in their file.
    conflicting: Vec<RefusedItem>,
    /// Entries whose part of a file is gone, and links.
    #[serde(flatten)]
    pub(super) settled: Settled,
}

impl Report {
    pub(super) fn new(format: FileFormat, files: usize, links_skipped: u64) -> Self {
        Self {
            format: format.name(),
            files,
            imported: ImportResult::default(),
            duplicates: 0,
            added: BTreeMap::new(),
            known_by_type: BTreeMap::new(),
            changed_by_type: BTreeMap::new(),
            scan_findings: BTreeMap::new(),
            first: Vec::new(),
            repeated: Vec::new(),
            findings: Vec::new(),
            notes: Vec::new(),
            extra_fields: BTreeMap::new(),
            links_skipped,
            items: Vec::new(),
            conflicting: Vec::new(),
            settled: Settled::default(),
        }
    }

    /// Counts a part that could not be read.
    pub(super) fn refuse(&mut self, problem: Problem) {
        self.imported.refused += 1;
        self.list(problem);
    }

    fn list(&mut self, problem: Problem) {
        push(&mut self.items, problem.into());
    }

    /// Lists a statement of the corpus about itself that does not hold.
    pub(super) fn note(&mut self, note: Problem) {
        push(&mut self.notes, note.into());
    }

    /// Adds counts of the reader.
    pub(super) fn count(&mut self, counts: ReadCounts) {
        self.duplicates += counts.duplicates;
        for (name, count) in counts.fields {
            *self.extra_fields.entry(name).or_default() += count;
        }
        for (rule, count) in counts.flags {
            *self.scan_findings.entry(rule.to_owned()).or_default() += count;
        }
        counts.repeated.into_iter().for_each(|of| push(&mut self.repeated, of));
        counts.findings.into_iter().for_each(|of| push(&mut self.findings, of));
    }

    /// Adds the node's answer for entries of one type. `place` gives the place of a line.
    pub(super) fn add(
        &mut self,
        kind: &str,
        mut result: ImportResult,
        place: impl Fn(u64) -> PlacedEntry,
    ) {
        let room = SHOWN_MAX.saturating_sub(self.first.len());
        let first = std::mem::take(&mut result.would_write).into_iter().take(room);
        self.first.extend(first.map(|line| {
            let entry = place(line);
            PlacedEntry { title: redact_secrets(&entry.title), ..entry }
        }));
        *self.added.entry(kind.to_owned()).or_default() += result.taken;
        *self.known_by_type.entry(kind.to_owned()).or_default() += result.known;
        *self.changed_by_type.entry(kind.to_owned()).or_default() += result.changed;
        for conflict in std::mem::take(&mut result.conflicted) {
            let PlacedEntry { file, line, .. } = place(conflict.line);
            push(&mut self.conflicting, RefusedItem { file, line, message: conflict.message });
        }
        for problem in std::mem::take(&mut result.problems) {
            let PlacedEntry { file, line, .. } = place(problem.line);
            self.list(Problem { file, line, reason: problem.message });
        }
        self.imported.add(result);
    }

    /// The number of entries that the import added.
    pub(super) fn taken(&self) -> u64 {
        self.imported.taken
    }

    /// The number of entries that the import adds or changes.
    pub(super) fn written(&self) -> u64 {
        self.imported.taken + self.imported.changed
    }

    /// The table of a dry run.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "Format: {} ({})\n\n{:<14}{:>10}{:>10}{:>10}\n",
            self.format,
            plural::counted(self.files as u64, "file", "files"),
            "type",
            "to add",
            "changed",
            "known"
        );
        for (kind, added) in &self.added {
            let known = self.known_by_type.get(kind).copied().unwrap_or_default();
            let changed = self.changed_by_type.get(kind).copied().unwrap_or_default();
            let _ = writeln!(text, "{kind:<14}{added:>10}{changed:>10}{known:>10}");
        }
        let ImportResult { taken, changed, known, conflicts, .. } = &self.imported;
        let _ = writeln!(text, "{:<14}{taken:>10}{changed:>10}{known:>10}", "all");
        for PlacedEntry { kind, title, file, line } in &self.first {
            let place = placed(file, *line);
            let _ = writeln!(text, "  {kind}  {}  {}", printable(title), printable(&place));
        }
        let unlisted = self.written().saturating_sub(self.first.len() as u64);
        if !self.first.is_empty() && unlisted > 0 {
            let _ = writeln!(text, "  and {unlisted} more");
        }
        let _ = writeln!(text, "\nchanged here and in the files: {conflicts}");
        let _ = writeln!(text, "gone from the files: {}", self.settled.gone.len());
        let _ = writeln!(text, "refused: {}", self.imported.refused);
        let _ = writeln!(text, "duplicates in the files: {}", self.duplicates);
        text.push_str(&listed(&self.repeated, self.duplicates));
        let findings: u64 = self.scan_findings.values().sum();
        let _ = writeln!(text, "scan matches: {findings}");
        for (rule, count) in &self.scan_findings {
            let _ = writeln!(text, "  {rule}: {}", plural::entries(*count));
        }
        text.push_str(&listed(&self.findings, findings));
        text.push_str(&self.kept_fields());
        text
    }

    fn kept_fields(&self) -> String {
        if self.extra_fields.is_empty() {
            return String::new();
        }
        let names: Vec<String> =
            self.extra_fields.iter().map(|(name, count)| format!("{name} ({count})")).collect();
        format!("kept as the file's words: {}\n", names.join(", "))
    }

    fn links(&self) -> String {
        let Settled { links, unresolved_links, retracted, .. } = &self.settled;
        let mut text = String::new();
        if links + unresolved_links > 0 {
            let _ =
                writeln!(text, "links: {links} lead to an entry, {unresolved_links} stay words");
        }
        if *retracted > 0 {
            let _ = writeln!(text, "{} retracted", plural::entries(*retracted));
        }
        text
    }

    /// The entries in conflict, and those whose part of a file is gone.
    fn differences(&self) -> String {
        let mut notes = String::new();
        for RefusedItem { file, line, message } in &self.conflicting {
            let place = placed(file, *line);
            let _ = writeln!(notes, "{place}: changed here and in the file: {message}");
        }
        let unlisted = self.imported.conflicts.saturating_sub(self.conflicting.len() as u64);
        if unlisted > 0 {
            let _ = writeln!(notes, "and {unlisted} more changed here and in their files");
        }
        if self.imported.conflicts > 0 {
            notes.push_str(
                "Nothing was written for them. `--keep file` takes the text of the file, `--keep \
                 entry` keeps the entry.\n",
            );
        }
        if self.settled.retracted > 0 {
            return notes;
        }
        for GoneEntry { code, title, file, .. } in self.settled.gone.iter().take(SHOWN_MAX) {
            let _ = writeln!(notes, "{file}: gone from the file: {code}  {}", printable(title));
        }
        let unlisted = self.settled.gone.len().saturating_sub(SHOWN_MAX);
        if unlisted > 0 {
            let _ = writeln!(notes, "and {unlisted} more gone from their files");
        }
        if !self.settled.gone.is_empty() {
            notes.push_str(
                "They stay entries. `--retract-gone` retracts them, `klnode archive CODE` hides \
                 one.\n",
            );
        }
        notes
    }

    /// The list of refused parts and of differences.
    pub(super) fn refusals(&self) -> String {
        let mut notes = self.differences();
        for RefusedItem { file, line, message } in &self.items {
            let _ = writeln!(notes, "{}: {message}", placed(file, *line));
        }
        let unlisted = self.imported.refused.saturating_sub(self.items.len() as u64);
        if unlisted > 0 {
            let _ = writeln!(notes, "and {unlisted} more");
        }
        for RefusedItem { file, line, message } in &self.notes {
            let _ = writeln!(notes, "{}: note: {message}", placed(file, *line));
        }
        if self.links_skipped > 0 {
            let links = plural::counted(self.links_skipped, "symbolic link", "symbolic links");
            let _ = writeln!(notes, "{links} not followed");
        }
        notes
    }

    /// The answer of the verb.
    pub(super) fn reply(&self, is_dry_run: bool) -> Reply {
        let ImportResult { taken, known, changed, refused, prior, conflicts, .. } = &self.imported;
        let text = match is_dry_run {
            true => self.table(),
            false => {
                let changed = match changed {
                    0 => String::new(),
                    _ => format!("{changed} changed, "),
                };
                let mut text = format!(
                    "Format: {} ({})\n{taken} imported, {changed}{known} already known, {refused} \
                     refused",
                    self.format,
                    plural::counted(self.files as u64, "file", "files"),
                );
                if self.duplicates > 0 {
                    let _ = write!(text, ", {} twice in the files", self.duplicates);
                }
                text.push('\n');
                text += &self.links();
                if *prior > 0 {
                    let _ = writeln!(
                        text,
                        "{prior} with prior evidence: at most 2 observations each, on this node only"
                    );
                }
                text + &self.kept_fields()
            }
        };
        let is_incomplete = *refused > 0 || *conflicts > 0;
        Reply::new(self, text).with_notes(self.refusals()).with_exit_code(u8::from(is_incomplete))
    }
}

impl From<Problem> for RefusedItem {
    fn from(Problem { file, line, reason }: Problem) -> Self {
        Self { file, line, message: redact_secrets(&reason) }
    }
}

/// Adds an item to a list, which is bounded.
fn push(list: &mut Vec<RefusedItem>, item: RefusedItem) {
    if list.len() < LISTED_MAX {
        list.push(item);
    }
}

/// A file with a line in it.
fn placed(file: &str, line: Option<u64>) -> String {
    line.map_or(file.to_owned(), |line| format!("{file}:{line}"))
}

/// The first items of a list, and the number of the others.
fn listed(items: &[RefusedItem], count: u64) -> String {
    let mut text = String::new();
    for RefusedItem { file, line, message } in items.iter().take(SHOWN_MAX) {
        let _ = writeln!(text, "  {}: {}", printable(&placed(file, *line)), printable(message));
    }
    let unlisted = count.saturating_sub(items.len().min(SHOWN_MAX) as u64);
    if unlisted > 0 {
        let _ = writeln!(text, "  and {unlisted} more");
    }
    text
}

/// Counts that the reader collects between two batches.
#[derive(Default)]
pub(super) struct ReadCounts {
    /// Unknown fields, with their number.
    pub(super) fields: BTreeMap<String, u64>,
    /// Rules of the content scan, with the number of entries they match.
    pub(super) flags: BTreeMap<&'static str, u64>,
    /// Entries that the corpus holds twice.
    pub(super) duplicates: u64,
    /// The first of them.
    repeated: Vec<RefusedItem>,
    /// The first findings of the content scan.
    findings: Vec<RefusedItem>,
    /// Bytes that were read.
    pub(super) bytes: u64,
}

impl ReadCounts {
    /// Counts the unknown fields of an entry, and the rules of the content scan that match it.
    pub(super) fn add(&mut self, entry: &NeutralEntry, is_scanned: bool) {
        for name in entry.source.extra.keys() {
            *self.fields.entry(name.clone()).or_default() += 1;
        }
        if !is_scanned {
            return;
        }
        let mut rules = BTreeSet::new();
        for text in [&entry.title, &entry.content] {
            let report = scanner().scan(text);
            rules.extend(report.findings.iter().map(|finding| finding.rule.name));
        }
        for rule in rules {
            *self.flags.entry(rule).or_default() += 1;
            let file = entry.source.path.clone().unwrap_or_default();
            let message = rule.to_owned();
            push(&mut self.findings, RefusedItem { file, line: entry.source.line, message });
        }
    }

    /// Counts an entry that the corpus holds twice.
    pub(super) fn add_duplicate(&mut self, problem: Problem) {
        self.duplicates += 1;
        push(&mut self.repeated, problem.into());
    }
}
