//! The databases of Decapod, FormicOS and claude-mem.

use crate::decapod::{self, Ledger};
use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::formicos;
use crate::front_matter::Fields;
use crate::neutral_entry::{ImportKey, NeutralEntry, title_from};
use crate::source_file::SourceFile;
use crate::sqlite::DatabaseCopy;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;

/// Most later events of FormicOS that are kept in memory.
const CHANGES_MAX: usize = 500_000;

/// The ledger beside the database of Decapod.
const PROMOTIONS: &str = "knowledge.promotions.jsonl";

/// The progress in a table, as a share of the bytes of its file.
struct RowProgress {
    rows: u64,
    bytes: u64,
}

impl RowProgress {
    fn of(copy: &DatabaseCopy, table: &str, file: &SourceFile) -> Self {
        Self { rows: copy.row_count(table).max(1), bytes: file.bytes }
    }

    /// The bytes that the rows up to this one stand for.
    fn bytes(&self, number: u64) -> u64 {
        let bytes = u128::from(self.bytes) * u128::from(number) / u128::from(self.rows);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Runs a reader of rows, and reports its failure as a problem of the file.
fn read_rows(
    file: &SourceFile,
    take: &mut Taker<'_>,
    read: impl FnOnce(&DatabaseCopy, &mut Taker<'_>) -> Result<ControlFlow<()>, String>,
) -> ControlFlow<()> {
    match DatabaseCopy::open(&file.absolute).and_then(|copy| read(&copy, take)) {
        Ok(flow) => flow,
        Err(reason) => take.problem(None, reason),
    }
}

/// Reads the database of Decapod, and the promotions beside it.
pub(crate) fn read_decapod(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    read_rows(file, take, |copy, take| {
        let table = copy.table_with(&["id", "title", "content"])?;
        let table = table.ok_or("it has no table with id, title and content")?;
        let beside = file.absolute.with_file_name(PROMOTIONS);
        let is_file = fs::symlink_metadata(&beside).is_ok_and(|found| found.is_file());
        let promotions = SourceFile { path: PROMOTIONS.into(), absolute: beside, bytes: 0 };
        let promotions: Vec<SourceFile> = is_file.then_some(promotions).into_iter().collect();
        let ledger = Ledger::read(&promotions);
        let (mut flow, progress) = (ControlFlow::Continue(()), RowProgress::of(copy, &table, file));
        let position = take.position();
        copy.rows(&table, "id", &mut |number, row| {
            position.set(progress.bytes(number));
            let mut entry = decapod::entry(&file.path, number, row, &ledger);
            entry.source.format = FileFormat::DecapodDb.name().into();
            flow = take.entry(entry);
            flow
        })?;
        Ok(flow)
    })
}

/// The changes of an entry after its creation.
#[derive(Default)]
struct Change {
    status: Option<Value>,
    alpha: Option<Value>,
    beta: Option<Value>,
}

/// Reads the events of FormicOS: entries as they were created, with their last status and confidence.
pub(crate) fn read_formicos(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    read_rows(file, take, |copy, take| {
        let table = copy.table_with(&["seq", "type", "payload"])?;
        let table = table.ok_or("it has no table with seq, type and payload")?;
        let mut changes: BTreeMap<String, Change> = BTreeMap::new();
        copy.rows(&table, "seq", &mut |_, row| {
            if changes.len() < CHANGES_MAX {
                note_change(&row, &mut changes);
            }
            ControlFlow::Continue(())
        })?;
        let (mut flow, progress) = (ControlFlow::Continue(()), RowProgress::of(copy, &table, file));
        let position = take.position();
        copy.rows(&table, "seq", &mut |number, row| {
            position.set(progress.bytes(number));
            if row.get("type").and_then(Value::as_str) == Some("MemoryEntryCreated") {
                flow = take_created(&file.path, number, &row, &changes, take);
            }
            flow
        })?;
        Ok(flow)
    })
}

fn payload(row: &Map<String, Value>) -> Option<Map<String, Value>> {
    serde_json::from_str(row.get("payload")?.as_str()?).ok()
}

fn note_change(row: &Map<String, Value>, changes: &mut BTreeMap<String, Change>) {
    let kind = row.get("type").and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "MemoryEntryStatusChanged" | "MemoryConfidenceUpdated") {
        return;
    }
    let Some(payload) = payload(row) else { return };
    let Some(id) = payload.get("entry_id").and_then(Value::as_str) else { return };
    let change = changes.entry(id.to_owned()).or_default();
    let last = |names: [&str; 2]| names.iter().find_map(|name| payload.get(*name)).cloned();
    if kind == "MemoryEntryStatusChanged" {
        change.status = last(["new_status", "status"]).or(change.status.take());
    } else {
        change.alpha = last(["new_alpha", "conf_alpha"]).or(change.alpha.take());
        change.beta = last(["new_beta", "conf_beta"]).or(change.beta.take());
    }
}

fn take_created(
    path: &str,
    number: u64,
    row: &Map<String, Value>,
    changes: &BTreeMap<String, Change>,
    take: &mut Taker<'_>,
) -> ControlFlow<()> {
    let entry = payload(row).and_then(|mut payload| payload.remove("entry"));
    let Some(Value::Object(mut entry)) = entry else {
        return take.problem(Some(number), format!("event {number} has no entry"));
    };
    let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
    if let Some(Change { status, alpha, beta }) = changes.get(id) {
        let later = [("status", status), ("conf_alpha", alpha), ("conf_beta", beta)];
        for (name, value) in later {
            if let Some(value) = value {
                entry.insert(name.to_owned(), value.clone());
            }
        }
    }
    let fields = Fields(entry.into_iter().filter(|(_, value)| !value.is_null()).collect());
    let mut entry = formicos::entry(path, number, fields);
    entry.source.format = FileFormat::FormicosDb.name().into();
    take.entry(entry)
}

/// Reads the observations and summaries of claude-mem.
pub(crate) fn read_claude_mem(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    read_rows(file, take, |copy, take| {
        let tables = [["title", "narrative"], ["request", "learned"]];
        let (mut flow, mut has_any) = (ControlFlow::Continue(()), false);
        for columns in tables {
            let Some(table) = copy.table_with(&columns)? else { continue };
            has_any = true;
            let (progress, position) = (RowProgress::of(copy, &table, file), take.position());
            copy.rows(&table, "id", &mut |number, row| {
                position.set(position.get().max(progress.bytes(number)));
                flow = take.entry(claude_mem_entry(&file.path, &table, number, row));
                flow
            })?;
        }
        if has_any { Ok(flow) } else { Err("it has no observations and no summaries".into()) }
    })
}

fn claude_mem_entry(path: &str, table: &str, number: u64, row: Map<String, Value>) -> NeutralEntry {
    let mut entry = NeutralEntry::new(FileFormat::ClaudeMem, path, number);
    let mut fields = Fields(row.into_iter().filter(|(_, value)| !value.is_null()).collect());
    let id = fields.text("id");
    let sessions = ["memory_session_id", "sdk_session_id", "session_id"];
    let session = sessions.iter().find_map(|name| fields.text(name));
    let mut content = fields.text("narrative").unwrap_or_default();
    let list = |fields: &mut Fields, name: &str| -> Vec<String> {
        let text = fields.0.get(name).and_then(Value::as_str).unwrap_or_default();
        match serde_json::from_str(text) {
            Ok(list) => {
                fields.0.remove(name);
                list
            }
            Err(_) => Vec::new(),
        }
    };
    for fact in list(&mut fields, "facts") {
        let _ = write!(content, "\n- {fact}");
    }
    for name in ["request", "investigated", "learned", "completed", "next_steps", "notes"] {
        if let Some(text) = fields.text(name) {
            let _ = write!(content, "\n\n{}: {text}", name.replace('_', " "));
        }
    }
    content = content.trim().to_owned();
    entry.title = fields.text("title").unwrap_or_else(|| title_from(&content));
    entry.summary = fields.text("subtitle");
    entry.tags = list(&mut fields, "concepts");
    let kind = fields.text("type");
    let (of, sub_type) = match kind.as_deref() {
        Some("bugfix") => ("experience", Some("bug")),
        Some("decision") => ("experience", Some("decision")),
        _ => ("experience", Some("learning")),
    };
    (entry.kind, entry.sub_type) = (Some(of.into()), sub_type.map(Into::into));
    entry.tags.extend(kind);
    entry.source.created = fields.date(&["created_at", "created_at_epoch"]);
    entry.content = content;
    if let (Some(id), Some(session)) = (&id, &session) {
        entry.key = ImportKey::External(format!("{session}/{table}/{id}"));
    }
    entry.source.id = id.map(|id| format!("{table}/{id}"));
    entry.source.extra = fields.rest();
    entry.source.extra.extend(session.map(|of| ("session".to_owned(), Value::String(of))));
    entry
}
