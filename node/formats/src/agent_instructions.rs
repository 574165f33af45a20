//! Instructions for coding agents: CLAUDE.md, AGENTS.md, GEMINI.md, Cursor rules and Copilot
//! instructions.
//!
//! Each section is an entry. A long section that is one list becomes an entry for each item, because
//! its items are rules of their own.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{Fields, open_note};
use crate::markdown_notes::{for_each_section, of_section, set_body};
use crate::neutral_entry::{ImportKey, NeutralEntry, one_line, title_from};
use crate::sections::{NoteSection, list_items};
use crate::source_file::SourceFile;
use std::ops::ControlFlow;

/// A section of at most this size stays whole, even if it is a list.
const WHOLE_LIST_BYTES_MAX: usize = 1_500;

/// Words that name an item of a list.
const ITEM_NAME_WORDS: usize = 6;

/// Reads one file.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    let (mut lines, fields, first) = match open_note(&file.absolute, take) {
        Ok(note) => note,
        Err((line, reason)) => return take.problem(line, reason),
    };
    for_each_section(&mut lines, first, take, &mut |section, take| {
        take_section(&file.path, &fields, &section, take)
    })
}

fn take_section(
    path: &str,
    fields: &Fields,
    section: &NoteSection,
    take: &mut Taker<'_>,
) -> ControlFlow<()> {
    let items = list_items(&section.text).filter(|_| section.text.len() > WHOLE_LIST_BYTES_MAX);
    let Some(items) = items else {
        return take.entry(entry(path, fields, section));
    };
    for (at, text) in items {
        let mut item = entry(path, fields, section);
        item.title = title_from(&text);
        // The first words name an item, so that it keeps its entry when its end is edited.
        let line = one_line(&text);
        let name: Vec<&str> = line.split(' ').take(ITEM_NAME_WORDS).collect();
        item.key = match item.key {
            ImportKey::Place { path, within } => {
                ImportKey::Place { path, within: format!("{within} > {}", name.join(" ")) }
            }
            other => other,
        };
        item.source.line = Some(section.line + 1 + at);
        item.content = text;
        take.entry(item)?;
    }
    ControlFlow::Continue(())
}

fn entry(path: &str, fields: &Fields, section: &NoteSection) -> NeutralEntry {
    let mut entry = of_section(FileFormat::Instructions, path, section);
    entry.kind = Some("experience".into());
    entry.sub_type = Some("convention".into());
    let mut fields = fields.clone();
    entry.summary = fields.text("description").filter(|_| section.headings.len() <= 1);
    entry.source.extra.extend(fields.rest());
    set_body(&mut entry);
    entry.tags.insert(0, "instructions".into());
    entry
}
