//! An export of mem0: memories as a JSON list, as `results` or `memories` of an object, or one per
//! line.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{Fields, unreadable};
use crate::json_elements;
use crate::neutral_entry::{ImportKey, NeutralEntry, title_from};
use crate::source_file::SourceFile;
use crate::text_lines::TextLines;
use serde_json::Value;
use std::ops::ControlFlow;

/// Ids of at least this length are unique across people.
const UNIQUE_ID_CHARS_MIN: usize = 16;

/// Reads the file.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    if file.path.ends_with(".jsonl") {
        return read_lines(file, take);
    }
    let names = ["results", "memories", "data"];
    json_elements::read(file, &names, take, |number, element, take| {
        take_element(&file.path, number, element, take)
    })
}

fn read_lines(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    let mut lines = match TextLines::open_for(&file.absolute, take) {
        Ok(lines) => lines,
        Err(error) => return take.problem(None, unreadable(&error).1),
    };
    while let Some(line) = lines.next() {
        let number = lines.number();
        match line {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => match serde_json::from_str(&line) {
                Ok(element) => take_element(&file.path, number, element, take)?,
                Err(error) => take.problem(Some(number), format!("it is not JSON: {error}"))?,
            },
            Err(fault) => {
                take.problem(Some(fault.line), fault.reason)?;
                if fault.is_final {
                    break;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

fn take_element(path: &str, number: u64, element: Value, take: &mut Taker<'_>) -> ControlFlow<()> {
    let Value::Object(object) = element else {
        return take.problem(Some(number), format!("element {number} is no object"));
    };
    let mut fields = Fields(object.into_iter().collect());
    let text = fields.text("memory").or_else(|| fields.text("text"));
    let Some(content) = text.or_else(|| fields.text("data")) else {
        return take.problem(Some(number), format!("element {number} has no `memory`"));
    };
    let mut entry = NeutralEntry::new(FileFormat::Mem0, path, number);
    entry.title = title_from(&content);
    entry.content = content;
    entry.kind = Some("experience".into());
    entry.tags = fields.list("categories");
    entry.source.created = fields.date(&["created_at"]);
    entry.source.updated = fields.date(&["updated_at"]);
    entry.source.id = fields.text("id");
    entry.source.extra = fields.rest();
    if let Some(id) = entry.source.id.clone().filter(|id| id.len() >= UNIQUE_ID_CHARS_MIN) {
        entry.key = ImportKey::External(id);
    }
    take.entry(entry)
}
