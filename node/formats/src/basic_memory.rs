//! Notes of basic-memory: Markdown with `- [category] observation #tag (context)` and
//! `- relation [[Target]]`.
//!
//! A note is one entry with its whole text: the observations of a note support each other.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::Note;
use crate::gsd::split_title;
use crate::markdown_markup::CodeFence;
use crate::markdown_notes::{set_body, set_fields, stem};
use crate::neutral_entry::{ImportKey, NeutralEntry, SourceLink};
use crate::source_file::SourceFile;
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// Reads one note.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    let Note { mut fields, body, body_line } = match Note::read(&file.absolute) {
        Ok(note) => note,
        Err((line, reason)) => return take.problem(line, reason),
    };
    if body.trim().is_empty() && fields.0.is_empty() {
        return take.problem(Some(1), "the note is empty");
    }
    let mut entry = NeutralEntry::new(FileFormat::BasicMemory, &file.path, body_line);
    let (title, content) = split_title(&body);
    entry.title = title.unwrap_or_else(|| stem(&file.path));
    entry.content = content;
    entry.source.id = fields.text("permalink");
    set_fields(&mut entry, fields);
    set_body(&mut entry);
    let mut categories = Vec::new();
    let mut fence = CodeFence::default();
    for line in entry.content.lines() {
        let is_code = fence.covers(line);
        let Some(item) = line.trim_start().strip_prefix("- ").filter(|_| !is_code) else {
            continue;
        };
        if let Some((category, _)) = item.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            categories.push(category.to_owned());
        } else if let Some((relation, rest)) = item.split_once("[[") {
            let target = rest.split("]]").next().unwrap_or_default().to_owned();
            let relation = relation.trim().to_owned();
            let links = &mut entry.source.links;
            links.retain(|link| link.target != target || !link.relation.is_empty());
            links.push(SourceLink::new(relation, target));
        }
    }
    categories.sort();
    categories.dedup();
    if !categories.is_empty() {
        let categories: Vec<Value> = categories.into_iter().map(Value::String).collect();
        entry.source.extra.insert("observation_categories".into(), json!(categories));
    }
    entry.key = ImportKey::Place { path: file.path.clone(), within: String::new() };
    take.entry(entry)
}
