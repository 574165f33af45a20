//! GSD: signals, spikes, reflections and lessons, each a Markdown file with front matter, and an
//! index of them.
//!
//! The index is derived from the files, so it is not read for knowledge: the reader reports rows
//! that name a missing entry, and the writer writes it anew.

use crate::dates;
use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{FENCE, Note};
use crate::gsd_conditions::translate;
use crate::neutral_entry::{
    ImportKey, NeutralEntry, Observed, SourceCitation, SourceLink, one_line, shorten, title_from,
};
use crate::output_file::{FileNames, OutputFile, UsedIds, slug};
use crate::sections::heading;
use crate::source_file::{SourceFile, is_below};
use crate::text_lines::TextLines;
use crate::yaml;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

const OUTCOMES: [&str; 4] = ["confirmed", "rejected", "partial", "inconclusive"];
/// Durabilities of GSD and the decay classes they mean.
const DURABILITIES: [(&str, &str); 3] =
    [("workaround", "ephemeral"), ("convention", "stable"), ("principle", "permanent")];
/// The types of GSD, their folders, the starts of their ids, and the entry types they become.
const TYPES: [(&str, &str, &str, &str); 4] = [
    ("signal", "signals", "sig", "signal"),
    ("spike", "spikes", "spk", "spike"),
    ("lesson", "lessons", "les", "lesson"),
    ("reflection", "reflections", "ref", "experience"),
];
const INDEX: &str = "index.md";
/// The field of `extra` that marks a title which the file does not state.
const DERIVED_TITLE: &str = "derived_title";
/// Bytes of a date in an id.
const DAY_BYTES: usize = 10;

/// Reads one entry.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    match Note::read(&file.absolute) {
        Ok(note) if note.fields.0.is_empty() => take.problem(Some(1), "it has no front matter"),
        Ok(note) => take.entry(entry(&file.path, note)),
        Err((line, reason)) => take.problem(line, reason),
    }
}

fn entry(path: &str, note: Note) -> NeutralEntry {
    let Note { mut fields, body, body_line } = note;
    let mut entry = NeutralEntry::new(FileFormat::Gsd, path, body_line);
    let id = fields.text("id");
    let kind = fields.text("type").unwrap_or_else(|| kind_of(id.as_deref(), path).to_owned());
    match TYPES.iter().find(|row| row.0 == kind) {
        Some(row) => entry.kind = Some(row.3.to_owned()),
        None => {
            fields.0.insert("type".into(), Value::String(kind));
        }
    }
    entry.tags = fields.list("tags");
    entry.source.created = fields.date(&["created", "date"]);
    entry.source.updated = fields.date(&["updated"]);
    entry.source.status = fields.text("status");
    entry.is_archived = entry.source.status.as_deref() == Some("archived");
    if let Some(Value::String(durability)) = fields.0.get("durability") {
        let class = DURABILITIES.iter().find(|row| row.0 == durability);
        entry.decay_class = class.map(|row| row.1.to_owned());
    }
    if entry.kind.as_deref() == Some("spike") {
        let outcome = fields.0.get("outcome").and_then(Value::as_str).map(str::to_lowercase);
        entry.outcome = outcome.filter(|of| OUTCOMES.contains(&of.as_str()));
    }
    let conditions = fields.clone().texts("depends_on");
    entry.depends_on = conditions.iter().map(|words| translate(words)).collect();
    for evidence in fields.texts("evidence") {
        entry.source.citations.push(SourceCitation { evidence, ..SourceCitation::default() });
    }
    if let Some(count) = fields.clone().number("evidence_count").filter(|count| *count > 0.0) {
        entry.observed = Some(Observed { successes: count, failures: 0.0 });
    }
    let related = fields.clone().list("related_signals");
    entry.source.links = related.into_iter().map(|of| SourceLink::new("", of)).collect();
    let (title, content) = split_title(&body);
    let stated = fields.text("title").or(title);
    let is_derived = stated.is_none();
    entry.title = stated.unwrap_or_else(|| derived_title(id.as_deref(), &content));
    entry.content = content;
    entry.source.extra = fields.rest();
    if is_derived {
        entry.source.extra.insert(DERIVED_TITLE.into(), Value::Bool(true));
    }
    entry.key = match &id {
        Some(id) => ImportKey::External(id.clone()),
        None => ImportKey::Place { path: path.to_owned(), within: String::new() },
    };
    entry.source.id = id;
    entry
}

/// The title of an entry without one: the words of its id, else its first sentence.
fn derived_title(id: Option<&str>, content: &str) -> String {
    let slug = id.and_then(|id| {
        let (start, rest) = id.split_once('-')?;
        let is_known = TYPES.iter().any(|row| row.2 == start);
        let (day, slug) = (rest.get(..DAY_BYTES)?, rest.get(DAY_BYTES..)?.strip_prefix('-')?);
        (is_known && dates::day(day).is_some()).then_some(slug)
    });
    let words = slug.map(|slug| one_line(&slug.replace(['-', '_'], " "))).unwrap_or_default();
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => title_from(content),
    }
}

/// The type that an id or a folder shows.
fn kind_of(id: Option<&str>, path: &str) -> &'static str {
    let starts = |row: &&(&str, &'static str, &str, &str)| {
        id.is_some_and(|id| id.starts_with(row.2)) || path.starts_with(row.1)
    };
    TYPES.iter().find(starts).map_or("lesson", |row| row.0)
}

/// The first heading of a body, and the rest.
pub(crate) fn split_title(body: &str) -> (Option<String>, String) {
    let text = body.trim_start_matches(['\n', '\r']);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    match heading(first) {
        Some((1, title)) if !title.is_empty() => (Some(title.to_owned()), rest.trim().to_owned()),
        _ => (None, text.trim_end().to_owned()),
    }
}

/// Reports rows of `index.md` that name an entry which no file has: an index goes stale when a file is
/// removed, and no knowledge is missing.
pub(crate) fn check_index(
    root: &Path,
    files: &[SourceFile],
    take: &mut Taker<'_>,
) -> ControlFlow<()> {
    let index = root.join(INDEX);
    if !is_below(root, INDEX) {
        return ControlFlow::Continue(());
    }
    let Ok(mut lines) = TextLines::open(&index) else {
        return ControlFlow::Continue(());
    };
    let stem = |file: &SourceFile| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".md").unwrap_or(name).to_owned()
    };
    let stems: BTreeSet<String> = files.iter().map(stem).collect();
    while let Some(line) = lines.next() {
        let Ok(line) = line else { continue };
        let Some(row) = line.trim().strip_prefix('|') else { continue };
        let id = row.split('|').next().unwrap_or_default().trim();
        let id = id.trim_start_matches('[').split(']').next().unwrap_or_default();
        let is_id =
            TYPES.iter().any(|row| id.strip_prefix(row.2).is_some_and(|r| r.starts_with('-')));
        // The name of a file repeats the id, with or without its start.
        let short = id.split_once('-').map_or(id, |(_, rest)| rest);
        let is_known = take.has_id(id) || stems.contains(id) || stems.contains(short);
        if is_id && !is_known {
            let reason = format!("its row names `{id}`, and no file has that id");
            take.note(INDEX, lines.number(), reason)?;
        }
    }
    ControlFlow::Continue(())
}

/// Writes entries and collects the rows of the index.
#[derive(Default)]
pub(crate) struct Writer {
    rows: BTreeMap<&'static str, Vec<String>>,
    ids: UsedIds,
}

impl Writer {
    pub(crate) fn write(&mut self, entry: &NeutralEntry, names: &mut FileNames) -> OutputFile {
        let source = &entry.source;
        let is_own = source.format == FileFormat::Gsd.name();
        let row = gsd_type(entry);
        let created = source.created.clone().or_else(|| source.updated.clone());
        let id = source.id.clone().filter(|_| is_own).unwrap_or_else(|| {
            let day = created.as_deref().and_then(dates::day).unwrap_or_else(|| "undated".into());
            format!("{}-{day}-{}", row.2, slug(&entry.title))
        });
        let id = self.ids.unique(&id);
        let extra = |name: &str| source.extra.get(name).filter(|_| is_own);
        let project = extra("project").and_then(Value::as_str).unwrap_or("klnode");
        let category = extra("category").and_then(Value::as_str);
        let folder = match (row.0, category) {
            ("lesson", category) => format!("lessons/{}", slug(category.unwrap_or("general"))),
            _ => format!("{}/{}", row.1, slug(project)),
        };
        let path = names.own_path(entry, FileFormat::Gsd);
        let path = path.unwrap_or_else(|| format!("{folder}/{}.md", file_name(&id)));
        let path = names.unique(&path);
        let mut text = format!("{FENCE}\n");
        yaml::put_text(&mut text, "id", Some(&id));
        let kind = extra("type").and_then(Value::as_str).unwrap_or(row.0);
        yaml::put_text(&mut text, "type", Some(kind));
        if extra("project").is_none() {
            yaml::put_text(&mut text, "project", Some(project));
        }
        yaml::put_list(&mut text, "tags", &entry.tags);
        yaml::put_text(&mut text, "created", created.as_deref());
        yaml::put_text(&mut text, "updated", source.updated.as_deref());
        let status = if entry.is_archived { "archived" } else { "active" };
        let status = source.status.as_deref().filter(|_| is_own).unwrap_or(status);
        yaml::put_text(&mut text, "status", Some(status));
        put_rest(entry, row.0, is_own, &mut text);
        let is_derived = extra(DERIVED_TITLE).is_some()
            && split_title(&entry.content).0.is_none()
            && derived_title(Some(&id), &entry.content) == entry.title;
        let title = if is_derived { String::new() } else { format!("# {}\n\n", entry.title) };
        let _ = write!(text, "{FENCE}\n{title}{}\n", entry.content);
        let line = one_line(entry.summary.as_deref().unwrap_or(&entry.title)).replace('|', "\\|");
        let day = created.as_deref().map(|date| dates::day(date).unwrap_or(date.to_owned()));
        self.rows.entry(row.1).or_default().push(format!(
            "| {id} | {project} | {} | {} | {status} | {path} | {} |",
            entry.tags.join(", "),
            day.unwrap_or_default(),
            shorten(&line, 120)
        ));
        OutputFile::new(path, text)
    }

    /// The index of the written entries.
    pub(crate) fn index(&mut self) -> OutputFile {
        let mut text = "# Knowledge Index\n".to_owned();
        for (_, folder, _, _) in TYPES {
            let Some(mut rows) = self.rows.remove(folder) else { continue };
            rows.sort();
            let title = format!("{}{}", folder[..1].to_uppercase(), &folder[1..]);
            let _ = write!(
                text,
                "\n## {title} ({})\n\n| ID | Project | Tags | Date | Status | Path | Summary |\n\
                 |---|---|---|---|---|---|---|\n{}\n",
                rows.len(),
                rows.join("\n")
            );
        }
        OutputFile::new(INDEX.into(), text)
    }
}

/// Adds the fields that only some entries have.
fn put_rest(entry: &NeutralEntry, row_name: &str, is_own: bool, text: &mut String) {
    let source = &entry.source;
    let has = |name: &str| is_own && source.extra.contains_key(name);
    if !has("durability") {
        let class = entry.decay_class.as_deref();
        let row = DURABILITIES.iter().find(|row| Some(row.1) == class);
        yaml::put_text(text, "durability", Some(row.map_or("convention", |row| row.0)));
    }
    if !has("depends_on") {
        yaml::put_list(text, "depends_on", &entry.depends_on);
    }
    if !has("outcome") {
        yaml::put_text(text, "outcome", entry.outcome.as_deref());
    }
    let cited: Vec<String> = match is_own {
        true => source.citations.iter().map(|of| of.evidence.clone()).collect(),
        false => entry.evidence.clone(),
    };
    yaml::put_list(text, "evidence", &cited);
    if !is_own && row_name == "lesson" {
        let count = entry.observed.map_or(0.0, |of| of.successes.floor());
        if count >= 1.0 {
            yaml::put(text, "evidence_count", &Value::from(count as u64));
        }
    }
    let is_said = |name: &str| is_own && !matches!(name, "type" | DERIVED_TITLE);
    for (name, value) in source.extra.iter().filter(|(name, _)| is_said(name)) {
        yaml::put(text, name, value);
    }
}

/// The id as a file name. A file of another person chooses its ids, so one with other characters could
/// name a file elsewhere.
fn file_name(id: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    match id.chars().all(is_kept) && !id.starts_with('.') {
        true => id.to_owned(),
        false => slug(id),
    }
}

/// The row of [`TYPES`] for an entry.
fn gsd_type(
    entry: &NeutralEntry,
) -> &'static (&'static str, &'static str, &'static str, &'static str) {
    let id = entry.source.id.as_deref().filter(|_| entry.source.format == FileFormat::Gsd.name());
    let by_id = TYPES.iter().find(|row| id.is_some_and(|id| id.starts_with(row.2)));
    let kind = entry.kind.as_deref();
    let by_kind = TYPES.iter().find(|row| Some(row.3) == kind && row.0 != "reflection");
    by_id.or(by_kind).unwrap_or(&TYPES[2])
}
