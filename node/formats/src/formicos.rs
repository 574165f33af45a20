//! FormicOS: knowledge as the JSON of its API, `{"items": [...], "total": n}`.
//!
//! The confidence of FormicOS becomes prior evidence: the observations above its starting values.

use crate::entry_collector::Taker;
use crate::format::FileFormat;
use crate::front_matter::Fields;
use crate::json_elements;
use crate::neutral_entry::{ImportKey, NeutralEntry, Observed, title_from};
use crate::output_file::{OutputFile, UsedIds, slug};
use crate::source_file::SourceFile;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The α and β with which FormicOS starts.
const START: f64 = 5.0;
const POLARITIES: [&str; 3] = ["positive", "negative", "neutral"];
const CLASSES: [&str; 3] = ["ephemeral", "stable", "permanent"];

/// Reads a file of the API.
pub(crate) fn read(file: &SourceFile, take: &mut Taker<'_>) -> ControlFlow<()> {
    json_elements::read(file, &["items", "results"], take, |number, element, take| match element {
        Value::Object(object) => {
            let fields = Fields(object.into_iter().collect());
            take.entry(entry(&file.path, number, fields))
        }
        _ => take.problem(None, format!("element {number} is no object")),
    })
}

/// The entry of an object. The database has the same fields.
pub(crate) fn entry(path: &str, number: u64, mut fields: Fields) -> NeutralEntry {
    let mut entry = NeutralEntry::new(FileFormat::Formicos, path, number);
    let id = fields.text("id");
    let kind = fields.text("entry_type");
    entry.kind = kind.clone().filter(|kind| matches!(kind.as_str(), "skill" | "experience"));
    if let Some(kind) = kind.filter(|_| entry.kind.is_none()) {
        fields.0.insert("entry_type".into(), Value::String(kind));
    }
    entry.sub_type =
        known(&mut fields, "sub_type", |of| sub_types(entry.kind.as_deref()).contains(&of));
    entry.polarity = known(&mut fields, "polarity", |of| POLARITIES.contains(&of));
    entry.decay_class = known(&mut fields, "decay_class", |of| CLASSES.contains(&of));
    entry.content = fields.text("content").unwrap_or_default();
    entry.title = fields.text("title").unwrap_or_else(|| title_from(&entry.content));
    entry.summary = fields.text("summary");
    entry.tags = fields.list("domains");
    entry.source.status = fields.text("status");
    entry.is_archived = matches!(entry.source.status.as_deref(), Some("rejected" | "invalidated"));
    entry.source.created = fields.date(&["created_at"]);
    entry.source.updated = fields.date(&["updated_at"]);
    let number = |name: &str| fields.0.get(name).and_then(Value::as_f64);
    if let (Some(alpha), Some(beta)) = (number("conf_alpha"), number("conf_beta")) {
        let (successes, failures) = ((alpha - START).max(0.0), (beta - START).max(0.0));
        entry.observed =
            Some(Observed { successes, failures }).filter(|_| successes + failures > 0.0);
    }
    entry.source.extra = fields.rest();
    if let Some(id) = &id {
        entry.key = ImportKey::External(id.clone());
    }
    entry.source.id = id;
    entry
}

/// Takes a field if its value is a known one; another value stays in `extra`.
fn known(fields: &mut Fields, name: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let text = fields.0.get(name)?.as_str()?;
    if is_known(text) { fields.text(name) } else { None }
}

fn sub_types(kind: Option<&str>) -> &'static [&'static str] {
    match kind {
        Some("skill") => &["technique", "pattern", "anti_pattern"],
        Some("experience") => &["decision", "convention", "learning", "bug"],
        _ => &[],
    }
}

/// Writes all entries as one file.
pub(crate) fn write(entries: &mut dyn Iterator<Item = NeutralEntry>) -> OutputFile {
    let (mut items, mut ids) = (Vec::<(String, Value)>::new(), UsedIds::default());
    for entry in entries {
        let source = &entry.source;
        let mut fields: BTreeMap<String, Value> = BTreeMap::new();
        let is_own = is_own(&entry);
        if is_own {
            fields.extend(source.extra.clone());
        }
        let id = source.id.clone().or_else(|| entry.klnode_id.clone());
        let id = ids.unique(&id.unwrap_or_else(|| slug(&entry.title)));
        let kind = match entry.kind.as_deref() {
            Some("skill") => "skill",
            _ => "experience",
        };
        let texts = [
            ("id", Some(id.clone())),
            ("title", Some(entry.title.clone())),
            ("content", Some(entry.content.clone())),
            ("summary", entry.summary.clone()),
            (
                "sub_type",
                entry.sub_type.clone().filter(|_| is_own || entry.kind.as_deref() == Some(kind)),
            ),
            ("polarity", entry.polarity.clone()),
            ("decay_class", entry.decay_class.clone()),
            ("status", source.status.clone()),
            ("created_at", source.created.clone()),
            ("updated_at", source.updated.clone()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.insert(name.into(), json!(text));
            }
        }
        fields.entry("entry_type".into()).or_insert_with(|| json!(kind));
        fields.insert("domains".into(), json!(entry.tags));
        if let Some(Observed { successes, failures }) = entry.observed.filter(|_| !is_own) {
            fields.insert("conf_alpha".into(), json!(START + successes));
            fields.insert("conf_beta".into(), json!(START + failures));
        }
        items.push((id, json!(fields)));
    }
    items.sort_by(|one, other| one.0.cmp(&other.0));
    let total = items.len();
    let items: Vec<Value> = items.into_iter().map(|(_, item)| item).collect();
    let text = serde_json::to_string_pretty(&json!({"items": items, "total": total}));
    let text = text.expect("texts and numbers are JSON") + "\n";
    OutputFile::new("knowledge.json".into(), text)
}

/// True if the fields of an entry are those of FormicOS.
fn is_own(entry: &NeutralEntry) -> bool {
    [FileFormat::Formicos, FileFormat::FormicosDb].iter().any(|of| entry.source.format == of.name())
}
