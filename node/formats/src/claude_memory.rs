//! A memory folder of Claude Code: an index `MEMORY.md`, and one Markdown file per topic.
//!
//! A section of the index that only lists the topic files is no knowledge of its own.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{Note, open_note};
use crate::gsd::split_title;
use crate::markdown_notes::{for_each_section, of_section, set_body, set_fields, stem};
use crate::neutral_entry::{ImportKey, NeutralEntry};
use crate::source_file::SourceFile;
use std::ops::ControlFlow;

const INDEX: &str = "MEMORY.md";

/// Reads one file.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    if file.path.rsplit('/').next() == Some(INDEX) {
        return read_index(file, take);
    }
    let Note { mut fields, body, body_line } = match Note::read(&file.absolute) {
        Ok(note) => note,
        Err((line, reason)) => return take.problem(line, reason),
    };
    if body.trim().is_empty() && fields.0.is_empty() {
        return take.problem(Some(1), "the file is empty");
    }
    let mut entry = NeutralEntry::new(FileFormat::ClaudeMemory, &file.path, body_line);
    let (heading, content) = split_title(&body);
    entry.title = fields.text("name").or(heading).unwrap_or_else(|| stem(&file.path));
    entry.content = content;
    let topic = fields.text("type");
    set_fields(&mut entry, fields);
    entry.tags.extend(topic.map(|topic| format!("memory/{topic}")));
    set_body(&mut entry);
    entry.key = ImportKey::Place { path: file.path.clone(), within: String::new() };
    take.entry(entry)
}

/// Reads the sections of the index.
fn read_index(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    let (mut lines, _, first) = match open_note(&file.absolute, take) {
        Ok(note) => note,
        Err((line, reason)) => return take.problem(line, reason),
    };
    for_each_section(&mut lines, first, take, &mut |section, take| {
        let is_link = |line: &str| line.contains("](") && line.contains(".md)");
        let mut filled = section.text.lines().filter(|line| !line.trim().is_empty());
        if filled.all(is_link) {
            return ControlFlow::Continue(());
        }
        let mut entry = of_section(FileFormat::ClaudeMemory, &file.path, &section);
        set_body(&mut entry);
        take.entry(entry)
    })
}
