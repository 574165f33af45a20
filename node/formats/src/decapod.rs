//! Decapod: one JSON object per line, below `semantic`, `procedural` and `episodic`.
//!
//! Files in a folder `provenance` are ledgers of citations, and `knowledge.promotions.jsonl` lists
//! promotions; both belong to entries of other files and are read before them.

use crate::dates;
use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::{Fields, unreadable};
use crate::neutral_entry::{
    ImportKey, NeutralEntry, SourceCitation, SourceLink, one_line, title_from,
};
use crate::source_file::SourceFile;
use crate::text_lines::TextLines;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Most rows of ledgers that are kept in memory.
const LEDGER_ROWS_MAX: usize = 200_000;
/// Bytes of the ledgers that are read, for the same reason.
const LEDGER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The field of `extra` with the rows of the promotion ledger.
pub(crate) const PROMOTIONS: &str = "promotions";
const KINDS: [&str; 8] = ["commit", "pr", "doc", "test", "transcript", "file", "url", "run"];

/// Rows of the ledgers, by the id of their entry.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    citations: BTreeMap<String, Vec<SourceCitation>>,
    promotions: BTreeMap<String, Vec<Value>>,
}

fn is_ledger(path: &str) -> bool {
    path.split('/').any(|part| part == "provenance") || path.ends_with("promotions.jsonl")
}

impl Ledger {
    /// Reads the ledgers of a corpus.
    pub(crate) fn read(files: &[SourceFile]) -> Self {
        let (mut ledger, mut rows, mut bytes) = (Self::default(), 0, 0);
        for file in files.iter().filter(|file| is_ledger(&file.path)) {
            let Ok(mut lines) = TextLines::open(&file.absolute) else { continue };
            while let Some(line) = lines.next() {
                bytes += line.as_ref().map_or(0, String::len);
                if rows == LEDGER_ROWS_MAX || bytes > LEDGER_BYTES_MAX {
                    return ledger;
                }
                let row = line.ok().and_then(|line| serde_json::from_str::<Map<_, _>>(&line).ok());
                rows += 1;
                ledger.add(row.unwrap_or_default());
            }
        }
        ledger
    }

    fn add(&mut self, row: Map<String, Value>) {
        let names = ["entry_id", "source_entry_id", "entry", "id"];
        let id = names.iter().find_map(|name| row.get(*name)).and_then(Value::as_str);
        let Some(id) = id.map(str::to_owned) else { return };
        if row.contains_key("target_class") {
            self.promotions.entry(id).or_default().push(Value::Object(row));
        } else if let Some(citation) = citation(&Value::Object(row)) {
            self.citations.entry(id).or_default().push(citation);
        }
    }
}

/// Reads a file of lines.
pub(crate) fn read(file: &SourceFile, ledger: &Ledger, take: &mut Taker<'_>) -> ControlFlow<()> {
    if is_ledger(&file.path) {
        return ControlFlow::Continue(());
    }
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
        match serde_json::from_str::<Map<String, Value>>(&line) {
            Ok(object) => {
                let entry = entry(&file.path, number, object, ledger);
                take.entry(entry)?;
            }
            Err(error) => take.problem(Some(number), format!("it is no JSON object: {error}"))?,
        }
    }
    ControlFlow::Continue(())
}

/// The entry of one object, such as a command line holds it. `path` is a file of the layout, whose
/// folders give the type if the object names none.
///
/// # Errors
/// If the text is no object, or the entry has no text.
pub fn decapod_entry(path: &str, text: &str) -> Result<NeutralEntry, String> {
    let object = serde_json::from_str::<Map<String, Value>>(text)
        .map_err(|error| format!("it is no JSON object: {error}"))?;
    entry(path, 1, object, &Ledger::default()).finish()
}

/// The entry of an object. The database has the same fields.
pub(crate) fn entry(
    path: &str,
    line: u64,
    object: Map<String, Value>,
    ledger: &Ledger,
) -> NeutralEntry {
    let mut fields = Fields(object.into_iter().filter(|(_, value)| !value.is_null()).collect());
    let mut entry = NeutralEntry::new(FileFormat::Decapod, path, line);
    let id = fields.text("id");
    let kind = fields.0.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (of, sub_type, memory) = klnode_type(&kind, path);
    (entry.kind, entry.sub_type, entry.memory) =
        (Some(of.into()), sub_type.map(Into::into), Some(memory.into()));
    let rule = fields.text("rule");
    let title = fields.text("title").or_else(|| fields.text("name")).or_else(|| rule.clone());
    let names = ["content", "description", "text", "message", "error"];
    let content = names.iter().find_map(|name| fields.text(name)).or(rule);
    entry.content = match (&content, &title) {
        (Some(content), _) => content.clone(),
        (None, Some(title)) => title.clone(),
        (None, None) => fields.0.iter().map(|(name, value)| format!("{name}: {value}\n")).collect(),
    };
    entry.title = title.unwrap_or_else(|| title_from(&entry.content));
    entry.tags = match fields.0.get("tags") {
        // The database has tags as JSON in a text.
        Some(Value::String(text)) if text.starts_with('[') => {
            let tags = serde_json::from_str(text).unwrap_or_default();
            fields.0.remove("tags");
            tags
        }
        _ => fields.list("tags"),
    };
    entry.source.created = fields.date(&["created_at", "ts", "timestamp"]);
    entry.source.updated = fields.date(&["updated_at"]);
    entry.source.status = fields.text("status");
    entry.is_archived = matches!(entry.source.status.as_deref(), Some("archived" | "superseded"));
    let cited = fields.0.remove("provenance");
    match cited {
        Some(Value::Array(of)) => entry.source.citations.extend(of.iter().filter_map(citation)),
        Some(Value::String(text)) => {
            entry.source.citations.extend(citation(&Value::String(text.clone())));
            entry.source.provenance = Some(text);
        }
        Some(other) => {
            fields.0.insert("provenance".into(), other);
        }
        None => {}
    }
    if let Some(id) = &id {
        // The ledger repeats the citations of files that klnode wrote.
        for citation in ledger.citations.get(id).into_iter().flatten() {
            if !entry.source.citations.contains(citation) {
                entry.source.citations.push(citation.clone());
            }
        }
        if let Some(promotions) = ledger.promotions.get(id) {
            fields.0.insert(PROMOTIONS.into(), Value::Array(promotions.clone()));
        }
        entry.key = ImportKey::External(id.clone());
    }
    let end = |names: [&str; 3]| {
        names.iter().find_map(|name| fields.0.get(*name).and_then(Value::as_str))
    };
    if of == "relation"
        && let (Some(from), Some(to)) =
            (end(["from", "source", "subject"]), end(["to", "target", "object"]))
    {
        let relation = end(["relation", "relation_type", "predicate"]).unwrap_or_default();
        entry.source.links.extend(SourceLink::of_relation(from, relation, to));
    }
    entry.evidence = entry.source.citations.iter().map(|of| typed(&of.evidence)).collect();
    entry.evidence.dedup();
    entry.source.extra = fields.rest();
    entry.source.id = id;
    entry
}

/// The entry type, sub-type and memory for a type and a folder of Decapod.
fn klnode_type(kind: &str, path: &str) -> (&'static str, Option<&'static str>, &'static str) {
    let within = |name: &str| path.split('/').any(|part| part == name);
    let is = |name: &str| kind.contains(name);
    if is("friction") || path.contains("friction") {
        ("friction", None, "episodic")
    } else if within("calibration") || is("calibration") {
        ("calibration", None, "episodic")
    } else if within("commit_norms") || is("commit_norm") {
        ("norm", Some("commit"), "procedural")
    } else if within("pr_expectations") || is("pr_expectation") {
        ("norm", Some("pr"), "procedural")
    } else if within("user_expectations") || is("user_expectation") {
        ("norm", Some("expectation"), "procedural")
    } else if within("risk_tiers") || is("risk") {
        ("norm", Some("risk"), "procedural")
    } else if within("relationships") || is("relation") {
        ("relation", None, "semantic")
    } else if within("entities") || is("entity") {
        ("entity", None, "semantic")
    } else {
        ("lesson", None, "semantic")
    }
}

/// A citation of an object or of a text such as `file:PATH#L1-L2`.
fn citation(value: &Value) -> Option<SourceCitation> {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            Some(SourceCitation { evidence: text.trim().into(), ..SourceCitation::default() })
        }
        Value::Object(of) => {
            let text = |name: &str| of.get(name).and_then(dates::words);
            let kind = text("evidence_type").unwrap_or_else(|| "doc".into());
            let evidence = format!("{kind}:{}", text("evidence_ref")?);
            Some(SourceCitation {
                evidence,
                cited_by: text("cited_by"),
                cited_at: text("cited_at"),
            })
        }
        _ => None,
    }
}

/// Evidence in the kinds of klnode.
fn typed(evidence: &str) -> String {
    let (kind, rest) = evidence.split_once(':').unwrap_or(("doc", evidence));
    let kind = match kind {
        known if KINDS.contains(&known) => known,
        "cmd" | "event" => "run",
        _ => return format!("doc:{}", one_line(evidence)),
    };
    format!("{kind}:{}", one_line(rest))
}
