//! Writes entries in the layout of Decapod: one JSON object per line, in one file per entry.
//!
//! Beside the entries there are the ledgers: `provenance/TIME.jsonl` of each memory has one row per
//! dated citation, and `knowledge.promotions.jsonl` one per promotion. `VERSION` names the version of
//! the layout.

use crate::decapod::PROMOTIONS;
use crate::format::FileFormat;
use crate::neutral_entry::{NeutralEntry, SourceCitation};
use crate::output_file::{OutputFile, UsedIds, slug};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SCHEMA_VERSION: &str = "1.0.0";
/// Longest id that names a file.
const ID_CHARACTERS_MAX: usize = 100;

/// Lines by file. The number orders the lines of a file.
type Lines = BTreeMap<String, Vec<(u64, String)>>;

/// Writes all files.
pub(crate) fn write(entries: &mut dyn Iterator<Item = NeutralEntry>) -> Vec<OutputFile> {
    let (mut files, mut ids) = (Lines::new(), UsedIds::default());
    for entry in entries {
        let source = &entry.source;
        let own = source
            .path
            .clone()
            .filter(|path| is_own(&entry) && path.ends_with(".jsonl") && is_safe(path));
        let id = source.id.clone().or_else(|| entry.klnode_id.clone());
        let mut id = id.unwrap_or_else(|| slug(&entry.title));
        if has_id(&entry) {
            id = ids.unique(&id);
        }
        let path = own.unwrap_or_else(|| path_of(&entry, &id));
        let line = source.line.unwrap_or_default();
        files.entry(path).or_default().push((line, object(&entry, &id).to_string()));
        add_ledgers(&entry, &id, &mut files);
    }
    let file = |(path, mut lines): (String, Vec<(u64, String)>)| {
        lines.sort();
        let text = lines.into_iter().map(|(_, line)| line + "\n").collect();
        OutputFile::new(path, text)
    };
    let version = OutputFile::new("VERSION".into(), format!("{SCHEMA_VERSION}\n"));
    files.into_iter().map(file).chain([version]).collect()
}

fn is_own(entry: &NeutralEntry) -> bool {
    [FileFormat::Decapod, FileFormat::DecapodDb].iter().any(|of| entry.source.format == of.name())
}

/// True if the object of an entry has an id: not if the file of the entry had none.
fn has_id(entry: &NeutralEntry) -> bool {
    !is_own(entry) || entry.source.id.is_some()
}

fn is_safe(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The file of an entry: `{type}.{id}.jsonl`, or the one file of all friction.
fn path_of(entry: &NeutralEntry, id: &str) -> String {
    let kind = entry.kind.as_deref().unwrap_or("lesson");
    if kind == "friction" {
        return "episodic/v1/friction_ledger.jsonl".to_owned();
    }
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name = match id.chars().count() <= ID_CHARACTERS_MAX && id.chars().all(|c| is_kept(&c)) {
        true => id.to_owned(),
        false => slug(id),
    };
    let name = match name.starts_with(&format!("{kind}.")) {
        true => name,
        false => format!("{kind}.{name}"),
    };
    format!("{}/{name}.jsonl", folder(entry))
}

fn folder(entry: &NeutralEntry) -> &'static str {
    match (entry.kind.as_deref(), entry.sub_type.as_deref()) {
        (Some("norm"), Some("commit")) => "procedural/v1/commit_norms",
        (Some("norm"), Some("pr")) => "procedural/v1/pr_expectations",
        (Some("norm"), Some("risk")) => "procedural/v1/risk_tiers",
        (Some("norm"), _) => "procedural/v1/user_expectations",
        (Some("relation"), _) => "semantic/v1/relationships",
        (Some("calibration"), _) => "episodic/v1/calibration",
        (Some("signal"), _) => "episodic/v1",
        _ => "semantic/v1/entities",
    }
}

/// The memory of an entry, as the first folder of the layout.
fn memory(entry: &NeutralEntry) -> &'static str {
    let folder = folder(entry);
    match entry.kind.as_deref() {
        Some("friction") => "episodic",
        _ => folder.split('/').next().unwrap_or(folder),
    }
}

/// Adds a row for each dated citation and each promotion.
fn add_ledgers(entry: &NeutralEntry, id: &str, files: &mut Lines) {
    for citation in &entry.source.citations {
        let at = citation.cited_at.as_deref().and_then(|at| at.parse::<u64>().ok());
        let (Some(at), Some(mut row)) = (at, written(citation)) else { continue };
        row.insert("entry_id", json!(id));
        let path = format!("{}/v1/provenance/{at}.jsonl", memory(entry));
        files.entry(path).or_default().push((0, json!(row).to_string()));
    }
    for row in promotions(entry) {
        let path = "knowledge.promotions.jsonl".to_owned();
        let at = row.get("ts").and_then(Value::as_u64).unwrap_or_default();
        files.entry(path).or_default().push((at, row.to_string()));
    }
}

/// The rows of the promotion ledger that an entry carries.
fn promotions(entry: &NeutralEntry) -> impl Iterator<Item = &Value> {
    let rows = entry.source.extra.get(PROMOTIONS).and_then(Value::as_array);
    rows.into_iter().flatten().filter(|row| row.get("target_class").is_some())
}

/// The object of an entry. Its fields are sorted by name.
fn object(entry: &NeutralEntry, id: &str) -> Value {
    let source = &entry.source;
    let is_own = is_own(entry);
    let mut fields: BTreeMap<String, Value> = BTreeMap::new();
    if is_own {
        fields.extend(source.extra.clone());
        if promotions(entry).next().is_some() {
            fields.remove(PROMOTIONS);
        }
    }
    let title = fields.remove("full_title").unwrap_or_else(|| json!(entry.title));
    let kind = entry.kind.as_deref().unwrap_or("lesson");
    if has_id(entry) {
        fields.insert("id".into(), json!(id));
    }
    fields.entry("type".into()).or_insert_with(|| json!(kind));
    if source.format != FileFormat::Decapod.name() {
        // The rows of the database have none.
        fields.entry("schema_version".into()).or_insert_with(|| json!(SCHEMA_VERSION));
    }
    match kind {
        "entity" => {
            fields.extend([("name".into(), title), ("description".into(), json!(entry.content))]);
        }
        "norm" if title == json!(entry.content) => {
            fields.insert("rule".into(), title);
        }
        "norm" => {
            fields.extend([("rule".into(), title), ("description".into(), json!(entry.content))]);
        }
        _ => fields.extend([("title".into(), title), ("content".into(), json!(entry.content))]),
    }
    if !entry.tags.is_empty() {
        fields.insert("tags".into(), json!(entry.tags));
    }
    let cited: Vec<Value> = match source.citations.is_empty() {
        true => {
            let undated = |evidence: &String| SourceCitation {
                evidence: evidence.clone(),
                ..SourceCitation::default()
            };
            let citations = entry.evidence.iter().map(undated);
            citations.filter_map(|of| written(&of)).map(|row| json!(row)).collect()
        }
        false => source.citations.iter().filter_map(written).map(|row| json!(row)).collect(),
    };
    match &source.provenance {
        Some(text) if is_own => fields.insert("provenance".into(), json!(text)),
        _ if !cited.is_empty() => fields.insert("provenance".into(), Value::Array(cited)),
        _ => None,
    };
    for (name, date) in [("created_at", &source.created), ("updated_at", &source.updated)] {
        if let Some(date) = date {
            let number = date.parse::<u64>().ok().map(Value::from);
            fields.insert(name.into(), number.unwrap_or_else(|| json!(date)));
        }
    }
    let status = source.status.clone().or_else(|| entry.is_archived.then(|| "archived".into()));
    if let Some(status) = status {
        fields.insert("status".into(), json!(status));
    }
    Value::Object(fields.into_iter().collect())
}

/// The row of a citation; `None` for one without a kind. A date is written in seconds, as the ledger
/// has it.
fn written(of: &SourceCitation) -> Option<BTreeMap<&'static str, Value>> {
    let (kind, reference) = of.evidence.split_once(':')?;
    let mut row =
        BTreeMap::from([("evidence_type", json!(kind)), ("evidence_ref", json!(reference))]);
    row.extend(of.cited_by.as_ref().map(|by| ("cited_by", json!(by))));
    let number = |at: &str| at.parse::<u64>().map_or_else(|_| json!(at), Value::from);
    row.extend(of.cited_at.as_deref().map(|at| ("cited_at", number(at))));
    Some(row)
}
