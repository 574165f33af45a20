//! flux-drive: one Markdown file per finding.
//!
//! The front matter has `lastConfirmed` and `provenance`. The body is free text, with a paragraph
//! `Evidence:` that names places and a paragraph `Verify:` with steps. Archived findings are in the
//! folder `archive`.

use crate::dates;
use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{FENCE, Note};
use crate::markdown_markup::{CodeFence, path_predicates};
use crate::neutral_entry::{ImportKey, NeutralEntry, one_line, title_from};
use crate::output_file::{FileNames, OutputFile};
use crate::source_file::SourceFile;
use crate::yaml;
use serde_json::Value;
use std::fmt::Write;
use std::ops::ControlFlow;

/// The folder of archived findings.
pub(crate) const ARCHIVE_FOLDER: &str = "archive";
/// The field of `extra` with the words of the evidence paragraph.
const EVIDENCE: &str = "evidence";

/// Reads one finding.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    match Note::read(&file.absolute) {
        Ok(note) => take.entry(entry(&file.path, note)),
        Err((line, reason)) => take.problem(line, reason),
    }
}

fn entry(path: &str, note: Note) -> NeutralEntry {
    let Note { mut fields, body, body_line } = note;
    let mut entry = NeutralEntry::new(FileFormat::FluxDrive, path, body_line);
    let FindingBody { content, evidence, verify } = FindingBody::parse(&body);
    entry.source.confirmed = fields.date(&["lastConfirmed"]);
    entry.source.provenance = fields.text("provenance");
    entry.source.extra = fields.rest();
    entry.anchors = path_predicates(&evidence);
    entry.anchors.truncate(16);
    entry.verify_steps = verify;
    if !evidence.is_empty() {
        entry.source.extra.insert(EVIDENCE.into(), Value::String(evidence));
    }
    let is_finding = !entry.anchors.is_empty() && !entry.verify_steps.is_empty();
    entry.kind = Some(if is_finding { "finding" } else { "lesson" }.into());
    entry.content = content;
    let live = live_path(path);
    entry.is_archived = live.is_some();
    // An archived finding keeps its entry.
    let path = live.unwrap_or_else(|| path.to_owned());
    entry.key = ImportKey::Place { path, within: String::new() };
    entry
}

/// The path of an archived finding without the folder of the archive; `None` for a live one.
fn live_path(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let above = folder.strip_suffix(ARCHIVE_FOLDER)?;
    (above.is_empty() || above.ends_with('/')).then(|| format!("{above}{name}"))
}

/// The parts of a body.
struct FindingBody {
    content: String,
    evidence: String,
    verify: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyPart {
    Content,
    Evidence,
    Verify,
}

impl FindingBody {
    fn parse(body: &str) -> Self {
        let (mut part, mut fence) = (BodyPart::Content, CodeFence::default());
        let (mut content, mut evidence, mut verify) = (String::new(), String::new(), String::new());
        for line in body.lines() {
            let is_code = fence.covers(line);
            let marked = if is_code { None } else { marker(line) };
            let text = match marked {
                Some((of, rest)) => {
                    part = of;
                    rest
                }
                None if line.trim().is_empty() && !is_code => {
                    part = BodyPart::Content;
                    line
                }
                None => line,
            };
            let into = match part {
                BodyPart::Content => &mut content,
                BodyPart::Evidence => &mut evidence,
                BodyPart::Verify => &mut verify,
            };
            into.push_str(text);
            into.push('\n');
        }
        Self {
            content: content.trim().to_owned(),
            evidence: one_line(&evidence),
            verify: steps(&verify),
        }
    }
}

/// The part that a line begins, and the rest of the line.
fn marker(line: &str) -> Option<(BodyPart, &str)> {
    let text = line.trim_start_matches('*');
    let found = [("Evidence:", BodyPart::Evidence), ("Verify:", BodyPart::Verify)]
        .into_iter()
        .find_map(|(name, part)| text.strip_prefix(name).map(|rest| (part, rest)))?;
    Some((found.0, found.1.trim_start_matches('*').trim()))
}

/// The steps of a paragraph: its list items, or the whole.
fn steps(text: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let digits = line.chars().take_while(char::is_ascii_digit).count();
        let numbered = line[digits..].strip_prefix(". ").filter(|_| digits > 0);
        let item = numbered.or_else(|| line.strip_prefix("- "));
        match (item, steps.last_mut()) {
            (None, Some(last)) => {
                last.push(' ');
                last.push_str(line);
            }
            (item, _) => steps.push(item.unwrap_or(line).to_owned()),
        }
    }
    steps.iter().map(|step| one_line(step)).collect()
}

/// Writes an entry as a finding.
pub(crate) fn write(entry: &NeutralEntry, names: &mut FileNames) -> OutputFile {
    let known = names.own_path(entry, FileFormat::FluxDrive);
    let live = known.map_or_else(|| names.slug(entry), |path| live_path(&path).unwrap_or(path));
    let archived = match live.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/{ARCHIVE_FOLDER}/{name}"),
        None => format!("{ARCHIVE_FOLDER}/{live}"),
    };
    let (path, other) = if entry.is_archived { (archived, live) } else { (live, archived) };
    let first = path.clone();
    let path = names.unique(&path);
    let moved_from = Some(other).filter(|_| path == first);
    let source = &entry.source;
    let mut text = format!("{FENCE}\n");
    let dates = [&source.confirmed, &source.updated, &source.created];
    let date = dates.into_iter().flatten().next();
    let is_own = source.format == FileFormat::FluxDrive.name();
    let day = |date: &String| dates::day(date).filter(|_| !is_own);
    let date = date.map(|date| day(date).unwrap_or_else(|| date.clone()));
    yaml::put_text(&mut text, "lastConfirmed", date.as_deref());
    let provenance =
        source.provenance.as_deref().filter(|of| matches!(*of, "independent" | "primed"));
    yaml::put_text(&mut text, "provenance", provenance.or(Some("primed")));
    for (name, value) in source.extra.iter().filter(|(name, _)| is_own && *name != EVIDENCE) {
        yaml::put(&mut text, name, value);
    }
    let _ = write!(text, "{FENCE}\n{}\n", described(entry));
    let evidence = match source.extra.get(EVIDENCE).and_then(Value::as_str).filter(|_| is_own) {
        Some(words) => words.to_owned(),
        None => {
            let anchors = entry.anchors.iter().map(|of| of.strip_prefix("path:").unwrap_or(of));
            let cited = entry.evidence.iter().map(String::as_str);
            anchors.chain(cited).collect::<Vec<_>>().join(", ")
        }
    };
    let mut parts = String::new();
    if !evidence.is_empty() {
        let _ = writeln!(parts, "Evidence: {evidence}");
    }
    match entry.verify_steps.as_slice() {
        [] => {}
        [step] => {
            let _ = writeln!(parts, "Verify: {step}");
        }
        several => {
            parts.push_str("Verify:\n");
            for (at, step) in several.iter().enumerate() {
                let _ = writeln!(parts, "{}. {step}", at + 1);
            }
        }
    }
    if !parts.is_empty() {
        let _ = write!(text, "\n{parts}");
    }
    OutputFile { path, text, moved_from }
}

/// The text of an entry for a format without titles: a title that the text does not begin with comes
/// first.
pub(crate) fn described(entry: &NeutralEntry) -> String {
    let begins = |text: &str| {
        let title = entry.title.trim_end_matches(['…', '.']);
        one_line(text).trim_start_matches(['#', '-', '*', '>', ' ']).starts_with(title)
    };
    if begins(&entry.content) || title_from(&entry.content) == entry.title {
        entry.content.clone()
    } else {
        format!("{}. {}", entry.title.trim_end_matches('.'), entry.content)
    }
}
