//! Markdown notes: a folder of notes or an Obsidian vault, and the notes that klnode exports.
//!
//! A small note is one entry; a larger one is split at its headings ([`crate::sections`]). The
//! writer writes one note per entry, with the fields of the entry in the front matter, so that a note
//! of klnode is read back as the same entry.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{FENCE, Fields, Note, open_note, read_fields};
use crate::limits::WHOLE_NOTE_BYTES_MAX;
use crate::markdown_markup::{inline_tags, note_links, wiki_links};
use crate::neutral_entry::{ImportKey, NeutralEntry, Source, SourceCitation, SourceLink};
use crate::output_file::{FileNames, OutputFile};
use crate::sections::{NoteSection, Splitter, heading};
use crate::source_file::SourceFile;
use crate::text_lines::TextLines;
use crate::yaml;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// The entry types of klnode, which a note may name in `type`.
const KINDS: [&str; 12] = [
    "skill",
    "experience",
    "lesson",
    "spike",
    "finding",
    "norm",
    "entity",
    "relation",
    "signal",
    "friction",
    "calibration",
    "playbook",
];
/// Maximum number of characters of a title that names the headings above a section.
const PATH_CHARS_MAX: usize = 120;
/// The field with the id of the exported entry.
pub(crate) const ID: &str = "klnode_id";
/// The field with the words of the file that the entry was imported from.
const SOURCE: &str = "klnode_source";

/// Reads one note.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    if file.bytes <= WHOLE_NOTE_BYTES_MAX {
        return match Note::read(&file.absolute) {
            Ok(note) => read_whole(&file.path, note, take),
            Err((line, reason)) => take.problem(line, reason),
        };
    }
    let (mut lines, fields, first) = match open_note(&file.absolute, take) {
        Ok(note) => note,
        Err((line, reason)) => return take.problem(line, reason),
    };
    if fields.has(ID) {
        // klnode wrote the note, so it is one entry of any size.
        return match Note::read(&file.absolute) {
            Ok(note) => read_whole(&file.path, note, take),
            Err((line, reason)) => take.problem(line, reason),
        };
    }
    for_each_section(&mut lines, first, take, &mut |section, take| {
        let mut entry = of_section(FileFormat::Markdown, &file.path, &section);
        let title = std::mem::take(&mut entry.title);
        set_fields(&mut entry, fields.clone());
        entry.title = title;
        set_body(&mut entry);
        take.entry(entry)
    })
}

/// Splits the rest of a file at its headings, and calls `take_section` for each section.
pub(crate) fn for_each_section(
    lines: &mut TextLines,
    first: Option<String>,
    take: &mut Taker<'_>,
    take_section: &mut dyn FnMut(NoteSection, &mut Taker<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut splitter = Splitter::default();
    let mut next = first.map(Ok).or_else(|| lines.next());
    while let Some(line) = next {
        match line {
            Ok(line) => {
                if let Some(section) = splitter.push(lines.number(), &line) {
                    take_section(section, take)?;
                }
            }
            Err(fault) => {
                take.problem(Some(fault.line), fault.reason)?;
                if fault.is_final {
                    break;
                }
            }
        }
        next = lines.next();
    }
    match splitter.finish() {
        Some(section) => take_section(section, take),
        None => ControlFlow::Continue(()),
    }
}

/// The entry of a section, without the fields of the note.
pub(crate) fn of_section(format: FileFormat, path: &str, section: &NoteSection) -> NeutralEntry {
    let mut entry = NeutralEntry::new(format, path, section.line);
    let title = section_title(&section.headings).unwrap_or_else(|| stem(path));
    entry.title = match section.part {
        1 => title,
        part => format!("{title} ({part})"),
    };
    entry.content.clone_from(&section.text);
    let mut within = section.headings.join(" > ");
    if section.part > 1 {
        let _ = write!(within, " ({})", section.part);
    }
    entry.source.extra.extend(
        (!section.headings.is_empty()).then(|| ("headings".to_owned(), json!(section.headings))),
    );
    entry.key = ImportKey::Place { path: path.to_owned(), within };
    entry
}

/// The title of a section: its heading below those above it, because "Context" or "Rules" alone says
/// little in a list of entries. Of a long path only the ends are kept, of a very long one the end.
fn section_title(headings: &[String]) -> Option<String> {
    let (first, last) = (headings.first()?, headings.last()?);
    let fits = |title: &String| title.chars().count() <= PATH_CHARS_MAX;
    let whole = Some(headings.join(" > ")).filter(fits);
    let ends = || Some(format!("{first} > {last}")).filter(fits);
    whole.or_else(ends).or_else(|| Some(last.clone()))
}

fn read_whole(path: &str, note: Note, take: &mut Taker<'_>) -> ControlFlow<()> {
    let Note { fields, body, body_line } = note;
    let mut entry = NeutralEntry::new(FileFormat::Markdown, path, body_line);
    entry.content = body.trim_matches('\n').to_owned();
    if entry.content.trim().is_empty() && fields.0.is_empty() {
        return take.problem(Some(1), "the note is empty");
    }
    entry.title = derived_title(path, &entry.content);
    entry.key = ImportKey::Place { path: path.to_owned(), within: String::new() };
    let id = fields.0.get(ID).and_then(Value::as_str).map(str::to_owned);
    set_fields(&mut entry, fields);
    match id {
        Some(id) => {
            entry.key = ImportKey::External(id);
            set_links(&mut entry);
        }
        None => set_body(&mut entry),
    }
    take.entry(entry)
}

/// The title of a note without one in its fields: its first heading, else its file name.
fn derived_title(path: &str, content: &str) -> String {
    let first = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match heading(first) {
        Some((1, title)) if !title.is_empty() => title.to_owned(),
        _ => stem(path),
    }
}

/// The name of a file without its folder and extension.
pub(crate) fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

/// Takes the tags and links of the text.
pub(crate) fn set_body(entry: &mut NeutralEntry) {
    entry.tags.extend(inline_tags(&entry.content));
    set_links(entry);
}

/// Takes the links of the text.
fn set_links(entry: &mut NeutralEntry) {
    for target in body_links(&entry.content) {
        if !entry.source.links.iter().any(|link| link.target == target) {
            entry.source.links.push(SourceLink::new("", target));
        }
    }
}

/// The targets of the links in a text.
fn body_links(text: &str) -> impl Iterator<Item = String> {
    wiki_links(text).into_iter().chain(note_links(text))
}

/// Takes the fields of a note.
pub(crate) fn set_fields(entry: &mut NeutralEntry, mut fields: Fields) {
    let known = |fields: &mut Fields, name: &str, known: &[&str]| {
        let text = fields.0.get(name).and_then(Value::as_str)?;
        if known.contains(&text) { fields.text(name) } else { None }
    };
    entry.title = fields.text("title").unwrap_or_else(|| std::mem::take(&mut entry.title));
    entry.kind = known(&mut fields, "type", &KINDS);
    if entry.kind.is_some() {
        entry.sub_type = fields.text("sub_type");
        entry.memory = known(&mut fields, "memory", &["semantic", "procedural", "episodic"]);
    }
    entry.outcome =
        known(&mut fields, "outcome", &["confirmed", "rejected", "partial", "inconclusive"])
            .filter(|_| entry.kind.as_deref() == Some("spike"));
    entry.polarity = known(&mut fields, "polarity", &["positive", "negative", "neutral"]);
    entry.decay_class = known(&mut fields, "decay_class", &["ephemeral", "stable", "permanent"]);
    entry.summary = fields.text("summary").or_else(|| fields.text("description"));
    entry.tags = fields.list("tags");
    entry.tags.extend(fields.list("tag"));
    entry.source.created = fields.date(&["created", "created_at", "date"]);
    entry.source.updated = fields.date(&["updated", "modified", "updated_at", "last_updated"]);
    entry.source.confirmed = fields.date(&["confirmed", "lastConfirmed"]);
    entry.source.status = fields.text("status");
    entry.is_archived = fields.text("archived").is_some_and(|of| of == "true")
        || entry.source.status.as_deref() == Some("archived");
    for link in fields.list("related").into_iter().chain(fields.list("links")) {
        entry.source.links.push(stated_link(&link));
    }
    if fields.has(ID) {
        entry.anchors = fields.texts("anchors");
        entry.verify_steps = fields.texts("verify_steps");
        entry.depends_on = fields.texts("depends_on");
        entry.evidence = fields.texts("evidence");
        entry.source.provenance = fields.text("provenance");
        if let Some(Value::Array(of)) = fields.0.remove("citations") {
            let read = of.into_iter().filter_map(|one| serde_json::from_value(one).ok());
            entry.source.citations = read.collect::<Vec<SourceCitation>>();
        }
    }
    entry.source.extra.extend(fields.rest());
}

/// The link that a front matter states, such as `uses [[B]]`, or `[[A]] uses [[B]]` for a link between
/// two other notes.
fn stated_link(text: &str) -> SourceLink {
    let other = text.trim().strip_prefix("[[").and_then(|rest| rest.split_once("]]"));
    let (from, text) = other.filter(|(_, rest)| rest.contains("[[")).unwrap_or(("", text));
    let (relation, rest) = text.split_once("[[").unwrap_or(("", text));
    let target = rest.trim_end_matches("]]").split('|').next().unwrap_or_default();
    SourceLink { from: from.to_owned(), ..SourceLink::new(relation.trim(), target) }
}

/// The id of the entry that klnode wrote as a note; `None` for another file.
pub(crate) fn note_id(path: &Path) -> Option<String> {
    let (fields, _) = read_fields(&mut TextLines::open(path).ok()?).ok()?;
    fields.0.get(ID).and_then(Value::as_str).map(str::to_owned)
}

/// The id that the note of an entry has.
pub(crate) fn written_id(entry: &NeutralEntry) -> Option<&str> {
    entry.source.extra.get(ID).and_then(Value::as_str).or(entry.klnode_id.as_deref())
}

/// Writes entries as notes. The paths of all notes are chosen first, because notes link to each other.
pub(crate) fn write_all(
    entries: &mut dyn Iterator<Item = NeutralEntry>,
    put: &mut dyn FnMut(OutputFile) -> io::Result<()>,
) -> io::Result<()> {
    let mut names = FileNames::default();
    let mut path = |entry: NeutralEntry| {
        let own = names.own_path(&entry, FileFormat::Markdown);
        let path = names.unique(&own.unwrap_or_else(|| names.slug(&entry)));
        (path, entry)
    };
    // Notes of an earlier export keep their names, so those come first.
    let (earlier, new): (Vec<_>, Vec<_>) = entries.partition(|of| of.written_path.is_some());
    let mut notes: Vec<(String, NeutralEntry)> = earlier.into_iter().map(&mut path).collect();
    notes.extend(new.into_iter().map(path));
    let mut stems = HashMap::<String, usize>::new();
    for (path, _) in &notes {
        *stems.entry(stem(path).to_lowercase()).or_default() += 1;
    }
    let name = |path: &str| match stems.get(&stem(path).to_lowercase()) {
        Some(1) => stem(path),
        _ => path.trim_end_matches(".md").to_owned(),
    };
    let notes_by_id = notes.iter().filter_map(|(path, of)| Some((of.klnode_id.clone()?, path)));
    let targets: HashMap<String, String> = notes_by_id.map(|(id, path)| (id, name(path))).collect();
    notes.iter().try_for_each(|(path, entry)| put(write(entry, path.clone(), &targets)))
}

/// Writes an entry as a note. `targets` are the names of all notes by the ids of their entries.
fn write(entry: &NeutralEntry, path: String, targets: &HashMap<String, String>) -> OutputFile {
    let source = &entry.source;
    let is_own = source.format == FileFormat::Markdown.name();
    let mut text = format!("{FENCE}\n");
    let content = entry.content.trim_matches('\n');
    if derived_title(&path, content) != entry.title {
        yaml::put_text(&mut text, "title", Some(&entry.title));
    }
    let fields = [
        ("type", Some(entry.kind.as_deref().unwrap_or("lesson"))),
        ("sub_type", entry.sub_type.as_deref()),
        ("memory", entry.memory.as_deref()),
        ("outcome", entry.outcome.as_deref()),
        ("polarity", entry.polarity.as_deref()),
        ("decay_class", entry.decay_class.as_deref()),
        ("summary", entry.summary.as_deref()),
    ];
    for (name, value) in fields {
        yaml::put_text(&mut text, name, value);
    }
    yaml::put_list(&mut text, "tags", &entry.tags);
    let dates = [
        ("created", &source.created),
        ("updated", &source.updated),
        ("confirmed", &source.confirmed),
        ("provenance", &source.provenance),
        ("status", &source.status),
    ];
    for (name, value) in dates {
        yaml::put_text(&mut text, name, value.as_deref());
    }
    if entry.is_archived && source.status.as_deref() != Some("archived") {
        yaml::put(&mut text, "archived", &json!(true));
    }
    yaml::put_list(&mut text, "anchors", &entry.anchors);
    yaml::put_list(&mut text, "verify_steps", &entry.verify_steps);
    yaml::put_list(&mut text, "depends_on", &entry.depends_on);
    yaml::put_list(&mut text, "evidence", &entry.evidence);
    let link = |of: &SourceLink| {
        let target = targets.get(&of.target).unwrap_or(&of.target);
        let from = Some(&of.from).filter(|from| !from.is_empty());
        let from = from.map_or(String::new(), |from| format!("[[{from}]] "));
        format!("{from}{} [[{target}]]", of.relation).trim().to_owned()
    };
    // The text of the note has its plain links itself.
    let is_in_text = |of: &&SourceLink| {
        let target = of.target.as_str();
        of.relation.is_empty() && is_own && body_links(&entry.content).any(|one| one == target)
    };
    let own = source.links.iter().filter(|of| !is_in_text(of)).chain(&entry.links);
    let links: Vec<String> = own.map(link).collect();
    yaml::put_list(&mut text, "related", &links);
    if !source.citations.is_empty() {
        yaml::put(&mut text, "citations", &json!(source.citations));
    }
    for (name, value) in source.extra.iter().filter(|(name, _)| is_own && *name != ID) {
        yaml::put(&mut text, name, value);
    }
    if !is_own && source.format != FileFormat::Klnode.name() {
        let Source { format, id, path, extra, .. } = source;
        let words = json!({"format": format, "id": id, "path": path, "extra": extra});
        yaml::put(&mut text, SOURCE, &words);
    }
    yaml::put_text(&mut text, ID, written_id(entry));
    let _ = write!(text, "{FENCE}\n{content}\n");
    OutputFile::new(path, text)
}

#[cfg(test)]
mod tests {
    use super::section_title;

    #[test]
    fn the_title_of_a_section_names_the_headings_above_it() {
        let title = |headings: &[&str]| {
            let headings: Vec<String> = headings.iter().map(|one| (*one).to_owned()).collect();
            section_title(&headings)
        };
        let long = "x".repeat(110);
        assert_eq!(title(&[]), None);
        assert_eq!(title(&["Rules"]).unwrap(), "Rules");
        assert_eq!(title(&["Billing", "Retries", "Rules"]).unwrap(), "Billing > Retries > Rules");
        assert_eq!(title(&["Billing", &long, "Rules"]).unwrap(), "Billing > Rules");
        assert_eq!(
            title(&[&long, "Retries", "Wait thirty seconds"]).unwrap(),
            "Wait thirty seconds"
        );
    }
}
