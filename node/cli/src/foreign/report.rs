//! The report of a foreign import: counts by type, and the parts that were not taken.

use super::super::Reply;
use super::super::sanitize::printable;
use super::settle::{GoneEntry, Settled};
use klnode_api_types::transfer::ImportResult;
use klnode_formats::{FileFormat, NeutralEntry, Problem};
use klnode_scoring::scan::{redact_secrets, scanner};
use klnode_text::plural;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Refused parts that are listed; further ones are only counted.
const LISTED_MAX: usize = 1_000;

/// Entries that are listed as gone; further ones are only counted.
const GONE_LISTED_MAX: usize = 20;

/// A part of a corpus that was not taken.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RefusedItem {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    message: String,
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
        if self.items.len() < LISTED_MAX {
            let Problem { file, line, reason } = problem;
            self.items.push(RefusedItem { file, line, message: redact_secrets(&reason) });
        }
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
    }

    /// Adds the node's answer for entries of one type. `place` gives the place of a line.
    pub(super) fn add(
        &mut self,
        kind: &str,
        mut result: ImportResult,
        place: impl Fn(u64) -> (String, Option<u64>),
    ) {
        *self.added.entry(kind.to_owned()).or_default() += result.taken;
        *self.known_by_type.entry(kind.to_owned()).or_default() += result.known;
        *self.changed_by_type.entry(kind.to_owned()).or_default() += result.changed;
        for conflict in std::mem::take(&mut result.conflicted) {
            let ((file, line), message) = (place(conflict.line), conflict.message);
            if self.conflicting.len() < LISTED_MAX {
                self.conflicting.push(RefusedItem { file, line, message });
            }
        }
        for problem in std::mem::take(&mut result.problems) {
            let (file, line) = place(problem.line);
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
        let _ = writeln!(text, "\nchanged here and in the files: {conflicts}");
        let _ = writeln!(text, "gone from the files: {}", self.settled.gone.len());
        let _ = writeln!(text, "refused: {}", self.imported.refused);
        let _ = writeln!(text, "duplicates in the files: {}", self.duplicates);
        let findings: u64 = self.scan_findings.values().sum();
        let _ = writeln!(text, "scan matches: {findings}");
        for (rule, count) in &self.scan_findings {
            let _ = writeln!(text, "  {rule}: {}", plural::entries(*count));
        }
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
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            let _ = writeln!(notes, "{file}{line}: changed here and in the file: {message}");
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
        for GoneEntry { code, title, file, .. } in self.settled.gone.iter().take(GONE_LISTED_MAX) {
            let _ = writeln!(notes, "{file}: gone from the file: {code}  {}", printable(title));
        }
        let unlisted = self.settled.gone.len().saturating_sub(GONE_LISTED_MAX);
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
            let line = line.map_or(String::new(), |line| format!(":{line}"));
            let _ = writeln!(notes, "{file}{line}: {message}");
        }
        let unlisted = self.imported.refused.saturating_sub(self.items.len() as u64);
        if unlisted > 0 {
            let _ = writeln!(notes, "and {unlisted} more");
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

/// Counts that the reader collects between two batches.
#[derive(Default)]
pub(super) struct ReadCounts {
    /// Unknown fields, with their number.
    pub(super) fields: BTreeMap<String, u64>,
    /// Rules of the content scan, with the number of entries they match.
    pub(super) flags: BTreeMap<&'static str, u64>,
    /// Entries that the corpus holds twice.
    pub(super) duplicates: u64,
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
        }
    }
}
