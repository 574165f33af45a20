//! The file of the MCP memory server: one entity with observations, or one relation, per line.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{Fields, unreadable};
use crate::neutral_entry::{ImportKey, NeutralEntry, SourceLink};
use crate::source_file::SourceFile;
use crate::text_lines::TextLines;
use serde_json::{Map, Value};
use std::ops::ControlFlow;

/// Reads the file.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    let mut lines = match TextLines::open_for(&file.absolute, take) {
        Ok(lines) => lines,
        Err(error) => return take.problem(None, unreadable(&error).1),
    };
    while let Some(line) = lines.next() {
        let number = lines.number();
        let line = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => line,
            Err(fault) => {
                take.problem(Some(fault.line), fault.reason)?;
                if fault.is_final {
                    break;
                }
                continue;
            }
        };
        let object = serde_json::from_str::<Map<String, Value>>(&line);
        match object
            .map_err(|error| format!("it is no JSON object: {error}"))
            .and_then(|object| entry(&file.path, number, Fields(object.into_iter().collect())))
        {
            Ok(entry) => take.entry(entry)?,
            Err(reason) => take.problem(Some(number), reason)?,
        }
    }
    ControlFlow::Continue(())
}

fn entry(path: &str, line: u64, mut fields: Fields) -> Result<NeutralEntry, String> {
    let mut entry = NeutralEntry::new(FileFormat::McpMemory, path, line);
    match fields.text("type").as_deref() {
        Some("entity") => {
            entry.title = fields.text("name").ok_or("the entity has no name")?;
            entry.tags = fields.text("entityType").into_iter().collect();
            let observations = fields.texts("observations");
            let items: Vec<String> = observations.iter().map(|of| format!("- {of}")).collect();
            entry.content = items.join("\n");
            entry.kind = Some("entity".into());
            entry.source.id = Some(entry.title.clone());
        }
        Some("relation") => {
            let mut end =
                |name: &str| fields.text(name).ok_or(format!("the relation has no `{name}`"));
            let (from, to) = (end("from")?, end("to")?);
            let relation = fields.text("relationType").unwrap_or_else(|| "related to".into());
            entry.title = format!("{from} {} {to}", relation.replace('_', " "));
            entry.content.clone_from(&entry.title);
            entry.kind = Some("relation".into());
            entry.source.links.extend(SourceLink::of_relation(&from, &relation, &to));
        }
        Some(other) => {
            return Err(format!("its type is `{other}`, which is no entity or relation"));
        }
        None => return Err("it has no `type`".into()),
    }
    entry.source.extra = fields.rest();
    entry.key = ImportKey::Place { path: path.to_owned(), within: entry.title.clone() };
    Ok(entry)
}
