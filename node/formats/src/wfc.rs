//! WFC: the knowledge file of each reviewer, with sections of dated lines.
//!
//! A line is `- [YYYY-MM-DD] text (Source: ref, Dev: id)`. Text between lists is kept as paragraphs.
//! Pruned lines are in `KNOWLEDGE-ARCHIVE.md`; the global tier has the same layout.

use crate::dates;
use crate::entry_collector::Taker;
use crate::flux_drive::described;
use crate::format::FileFormat;
use crate::front_matter::unreadable;
use crate::markdown_markup::CodeFence;
use crate::neutral_entry::{ImportKey, NeutralEntry, SourceCitation, one_line, title_from};
use crate::output_file::{OutputFile, slug};
use crate::sections::heading;
use crate::source_file::SourceFile;
use crate::text_lines::TextLines;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

const FALSE_POSITIVE: &str = "false-positive";
const INCIDENT: &str = "incident-prevented";
pub(crate) const ARCHIVE: &str = "KNOWLEDGE-ARCHIVE.md";
/// The folder of the global tier in an export.
const GLOBAL: &str = "global/";
pub(crate) const KNOWLEDGE: &str = "KNOWLEDGE.md";
const REVIEWERS: [&str; 5] =
    ["security", "correctness", "performance", "maintainability", "reliability"];
/// The sections, with the type and sub-type of their entries.
const SECTIONS: [(&str, &str, Option<&str>); 5] = [
    ("Patterns Found", "lesson", None),
    ("False Positives to Avoid", "lesson", None),
    ("Incidents Prevented", "experience", Some("bug")),
    ("Repository-Specific Rules", "experience", Some("convention")),
    ("Codebase Context", "experience", Some("learning")),
];

/// A line or a paragraph that is being read.
#[derive(Default)]
struct Pending {
    line: u64,
    text: String,
    is_item: bool,
}

struct ReviewerReader<'r, 't> {
    reviewer: String,
    path: &'r str,
    is_archived: bool,
    is_global: bool,
    section: String,
    pending: Pending,
    take: &'r mut Taker<'t>,
}

/// Reads the file of one reviewer.
pub(crate) fn read(file: &SourceFile, root: &Path, take: &mut Taker<'_>) -> ControlFlow<()> {
    let mut lines = match TextLines::open_for(&file.absolute, take) {
        Ok(lines) => lines,
        Err(error) => return take.problem(None, unreadable(&error).1),
    };
    let folder = file.absolute.parent().and_then(Path::file_name);
    let reviewer = folder.map_or("general".into(), |name| name.to_string_lossy().into_owned());
    let is_archived = file.path.ends_with(ARCHIVE);
    let is_global = is_global(&file.path, root);
    let (section, pending) = (String::new(), Pending::default());
    let path = &file.path;
    let mut reader =
        ReviewerReader { reviewer, path, is_archived, is_global, section, pending, take };
    let mut fence = CodeFence::default();
    while let Some(line) = lines.next() {
        match line {
            Ok(line) => {
                let is_code = fence.covers(&line);
                reader.line(lines.number(), &line, is_code)?;
            }
            Err(fault) => {
                reader.take.problem(Some(fault.line), fault.reason)?;
                if fault.is_final {
                    break;
                }
            }
        }
    }
    reader.flush()
}

/// True for a file of the global tier: `~/.wfc/knowledge/global/reviewers/REVIEWER/KNOWLEDGE.md`, or
/// `global/REVIEWER/KNOWLEDGE.md` of an export.
fn is_global(path: &str, root: &Path) -> bool {
    let is_exported = path.strip_prefix(GLOBAL).is_some_and(|rest| rest.contains('/'));
    is_exported || root.ends_with("global") || root.to_string_lossy().contains("knowledge/global")
}

impl ReviewerReader<'_, '_> {
    fn line(&mut self, number: u64, line: &str, is_code: bool) -> ControlFlow<()> {
        if let Some((level, title)) = heading(line).filter(|_| !is_code) {
            self.flush()?;
            if level >= 2 {
                self.section = title.to_owned();
            }
            return ControlFlow::Continue(());
        }
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        if let Some(item) = item.filter(|_| !is_code) {
            self.flush()?;
            self.pending = Pending { line: number, text: item.to_owned(), is_item: true };
            return ControlFlow::Continue(());
        }
        let is_indented = line.starts_with([' ', '\t']);
        if self.pending.is_item && (is_indented || is_code || line.trim().is_empty()) {
            self.pending.text.push('\n');
            self.pending.text.push_str(line.strip_prefix("  ").unwrap_or(line));
            return ControlFlow::Continue(());
        }
        if self.pending.is_item || (line.trim().is_empty() && !is_code) {
            self.flush()?;
        }
        if !line.trim().is_empty() {
            if self.pending.text.is_empty() {
                self.pending.line = number;
            }
            self.pending.text.push_str(line);
            self.pending.text.push('\n');
        }
        ControlFlow::Continue(())
    }

    /// Takes the pending text as an entry. Comments and placeholders such as `_None yet_` are none.
    fn flush(&mut self) -> ControlFlow<()> {
        let Pending { line, text, is_item } = std::mem::take(&mut self.pending);
        let text = text.trim();
        let is_comment = text.starts_with("<!--") || text == FENCE_LINE;
        let is_placeholder = ['_', '*'].iter().any(|mark| {
            text.len() > 2 && text.starts_with(*mark) && text.ends_with(*mark) && !is_item
        });
        if text.is_empty() || is_comment || is_placeholder || self.section.is_empty() && !is_item {
            return ControlFlow::Continue(());
        }
        let entry = self.entry(line, text, is_item);
        self.take.entry(entry)
    }

    fn entry(&self, line: u64, text: &str, is_item: bool) -> NeutralEntry {
        let mut entry = NeutralEntry::new(FileFormat::Wfc, self.path, line);
        let (date, rest) = split_date(text);
        let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let (first, source, dev) = split_source(first);
        entry.content = first.to_owned();
        if !below.is_empty() {
            entry.content = format!("{first}\n{below}");
        }
        entry.title = title_from(first);
        entry.source.created = date.map(str::to_owned);
        if let Some(evidence) = source {
            entry.evidence = vec![typed(evidence)];
            let (cited_by, cited_at) = (dev.map(str::to_owned), entry.source.created.clone());
            entry.source.citations.push(SourceCitation {
                evidence: evidence.to_owned(),
                cited_by,
                cited_at,
            });
        }
        let known = SECTIONS.iter().find(|row| row.0.eq_ignore_ascii_case(&self.section));
        entry.kind = Some(known.map_or("lesson", |row| row.1).to_owned());
        entry.sub_type = known.and_then(|row| row.2).map(str::to_owned);
        entry.tags = vec![format!("review/{}", self.reviewer)];
        if known.is_some_and(|row| row.0 == SECTIONS[1].0) {
            entry.tags.push(FALSE_POSITIVE.into());
            entry.polarity = Some("negative".into());
        }
        let extra = &mut entry.source.extra;
        extra.insert("section".into(), Value::String(self.section.clone()));
        extra.insert("reviewer".into(), Value::String(self.reviewer.clone()));
        if self.is_global {
            extra.insert("tier".into(), Value::String("global".into()));
        }
        if !is_item {
            extra.insert("form".into(), Value::String("paragraph".into()));
        }
        entry.is_archived = self.is_archived;
        let digest = blake3::hash(one_line(&entry.content).to_lowercase().as_bytes()).to_hex();
        // A line that moves to the archive keeps its entry.
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        entry.key = ImportKey::Place {
            path: folder.to_owned(),
            within: format!("{}:{}", self.section, &digest[..32]),
        };
        entry
    }
}

const FENCE_LINE: &str = "---";

/// The date before a text.
fn split_date(text: &str) -> (Option<&str>, &str) {
    let inner = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match inner {
        Some((date, rest))
            if date.len() <= 32 && date.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            (Some(date), rest.trim_start())
        }
        _ => (None, text),
    }
}

/// The text, the source and the developer of a line that ends with `(Source: ref, Dev: id)`.
fn split_source(text: &str) -> (&str, Option<&str>, Option<&str>) {
    let found = text.rfind("(Source:").filter(|_| text.ends_with(')'));
    let Some(at) = found else { return (text, None, None) };
    let inner = text[at + 8..text.len() - 1].trim();
    let (source, dev) = match inner.rsplit_once(", Dev:") {
        Some((source, dev)) => (source.trim(), Some(dev.trim())),
        None => (inner, None),
    };
    (text[..at].trim_end(), Some(source).filter(|of| !of.is_empty()), dev)
}

/// A reference as KIND:REF.
fn typed(reference: &str) -> String {
    let is_hex = reference.len() >= 7 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = reference.strip_prefix("PR-").or_else(|| reference.strip_prefix("PR #"));
    if reference.starts_with("https://") || reference.starts_with("http://") {
        format!("url:{reference}")
    } else if is_hex {
        format!("commit:{reference}")
    } else if let Some(number) = number.or_else(|| reference.strip_prefix('#')) {
        format!("pr:{number}")
    } else {
        format!("doc:{reference}")
    }
}

/// Writes the files of all reviewers.
pub(crate) fn write(entries: &mut dyn Iterator<Item = NeutralEntry>) -> Vec<OutputFile> {
    let mut files: BTreeMap<String, BTreeMap<(usize, String), Vec<String>>> = BTreeMap::new();
    for entry in entries {
        let reviewer = reviewer(&entry);
        let name = if entry.is_archived { ARCHIVE } else { KNOWLEDGE };
        let section = section(&entry);
        let order = SECTIONS.iter().position(|row| row.0 == section).unwrap_or(SECTIONS.len());
        let tier = if own(&entry, "tier") == Some("global") { GLOBAL } else { "" };
        let sections = files.entry(format!("{tier}{reviewer}/{name}")).or_default();
        sections.entry((order, section)).or_default().push(line(&entry));
    }
    let file = |(path, mut sections): (String, BTreeMap<(usize, String), Vec<String>>)| {
        let mut reviewer = path.rsplit('/').nth(1).unwrap_or_default().chars();
        let what = if path.ends_with(ARCHIVE) { "Knowledge Archive" } else { "Knowledge" };
        let first = reviewer.next().into_iter().flat_map(char::to_uppercase);
        let name: String = first.chain(reviewer).collect();
        let mut text = format!("# {name} Reviewer {what}\n");
        if path.ends_with(KNOWLEDGE) {
            for (order, (name, _, _)) in SECTIONS.iter().enumerate() {
                sections.entry((order, (*name).to_owned())).or_default();
            }
        }
        for ((_, name), mut lines) in sections {
            lines.sort();
            let _ = write!(text, "\n## {name}\n");
            if !lines.is_empty() {
                let _ = write!(text, "\n{}\n", lines.join("\n"));
            }
        }
        OutputFile::new(path, text)
    };
    files.into_iter().map(file).collect()
}

fn own<'e>(entry: &'e NeutralEntry, name: &str) -> Option<&'e str> {
    let is_own = entry.source.format == FileFormat::Wfc.name();
    entry.source.extra.get(name).and_then(Value::as_str).filter(|_| is_own)
}

fn reviewer(entry: &NeutralEntry) -> String {
    let tagged = entry.tags.iter().find_map(|tag| tag.strip_prefix("review/"));
    let known = tagged.filter(|name| REVIEWERS.contains(name));
    let name = own(entry, "reviewer").or(known).unwrap_or("correctness");
    slug(name)
}

fn section(entry: &NeutralEntry) -> String {
    if let Some(section) = own(entry, "section").filter(|name| !name.is_empty()) {
        return section.to_owned();
    }
    let is_false = entry.tags.iter().any(|tag| tag == FALSE_POSITIVE);
    let is_incident = entry.tags.iter().any(|tag| tag == INCIDENT);
    let at = match (entry.kind.as_deref(), entry.sub_type.as_deref()) {
        _ if is_false => 1,
        _ if is_incident => 2,
        (_, Some("bug")) => 2,
        (Some("norm"), _) | (_, Some("convention" | "decision")) => 3,
        (None | Some("lesson" | "finding" | "skill"), _) => 0,
        _ => 4,
    };
    SECTIONS[at].0.to_owned()
}

/// The line of an entry.
fn line(entry: &NeutralEntry) -> String {
    let text = described(entry).replace('\n', "\n  ");
    let text = text.replace("\n  \n", "\n\n");
    if own(entry, "form").is_some() {
        return format!("{}\n", text.replace("\n  ", "\n"));
    }
    let dates = [&entry.source.created, &entry.source.updated];
    let date = dates.into_iter().flatten().next();
    let is_own = entry.source.format == FileFormat::Wfc.name();
    let day = |date: &String| dates::day(date).filter(|_| !is_own);
    let date = date.map(|date| day(date).unwrap_or_else(|| date.clone()));
    let date = date.map_or(String::new(), |date| format!("[{date}] "));
    let cited = entry.source.citations.first();
    let source = match (cited, entry.evidence.first()) {
        (Some(of), _) => match &of.cited_by {
            Some(dev) => format!(" (Source: {}, Dev: {dev})", of.evidence),
            None => format!(" (Source: {})", of.evidence),
        },
        (None, Some(evidence)) => format!(" (Source: {evidence})"),
        (None, None) => String::new(),
    };
    let (first, below) = text.split_once('\n').unwrap_or((&text, ""));
    let below = if below.is_empty() { String::new() } else { format!("\n{below}") };
    format!("- {date}{first}{source}{below}")
}
