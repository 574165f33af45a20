//! JSON Schemas of new entries, one for each entry type and sub-type.
//!
//! The fields come from the type of the API, so a schema cannot fall behind the API; the rules of a type are
//! added here. The node checks more than a schema can say, such as contradictions between norms.

use super::{Reply, VerbError};
use klnode_api_types::new_entry_schema;
use klnode_crdt::entry_type::EntryType;
use serde_json::{Map, Value, json};

/// The dialect of the schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Fields that describe the caller rather than the entry.
const CALLER_FIELDS: [&str; 2] = ["checkout", "task"];

/// The schema to print.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An entry type, or a type and a sub-type as in norm/commit [default: all, by name].
    #[arg(value_name = "TYPE")]
    pub name: Option<String>,
}

impl Args {
    /// The reply of `generate schema` and of `schema`.
    pub fn run(&self) -> Result<Reply, VerbError> {
        let schema = match &self.name {
            Some(name) => of(name).ok_or_else(|| {
                let known = names().collect::<Vec<_>>().join(", ");
                VerbError::Input(format!("There is no schema `{name}`. There are {known}."))
            })?,
            None => {
                let all = names().filter_map(|name| of(&name).map(|schema| (name, schema)));
                json!({"$schema": DIALECT, "$defs": all.collect::<Map<String, Value>>()})
            }
        };
        let text = format!("{schema:#}\n");
        Ok(Reply::new(&schema, text))
    }
}

/// All names: each entry type, and each sub-type as `norm/commit`.
fn names() -> impl Iterator<Item = String> {
    EntryType::ALL.into_iter().flat_map(|(_, name, _, sub_types)| {
        let parts = sub_types.iter().map(move |part| format!("{name}/{part}"));
        std::iter::once(name.to_owned()).chain(parts)
    })
}

/// The schema with this name; `None` if there is none.
fn of(name: &str) -> Option<Value> {
    let (kind, part) = match name.split_once('/') {
        Some((kind, part)) => (EntryType::parse(kind)?, Some(part)),
        None => (EntryType::parse(name)?, None),
    };
    if part.is_some_and(|part| !kind.sub_types().contains(&part)) {
        return None;
    }
    let base = serde_json::to_value(new_entry_schema()).ok()?;
    let mut fields = base.get("properties")?.as_object()?.clone();
    for field in CALLER_FIELDS {
        fields.remove(field);
    }
    fields.insert("type".to_owned(), json!({"const": kind.name()}));
    narrow(&mut fields, kind, part);
    let mut required = vec!["title", "content", "type"];
    required.extend((!kind.is_raw()).then_some("evidence"));
    required.extend(part.map(|_| "sub_type"));
    if kind == EntryType::Finding {
        required.extend(["anchors", "verify_steps"]);
    }
    Some(json!({
        "$schema": DIALECT,
        "title": name,
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": false,
    }))
}

/// Restricts the fields to the values that the type allows.
fn narrow(fields: &mut Map<String, Value>, kind: EntryType, part: Option<&str>) {
    match (part, kind.sub_types()) {
        (Some(part), _) => fields.insert("sub_type".to_owned(), json!({"const": part})),
        (None, []) => fields.remove("sub_type"),
        (None, all) => fields.insert("sub_type".to_owned(), json!({"enum": all})),
    };
    match kind {
        EntryType::Spike => {
            fields.insert("outcome".to_owned(), json!({"enum": EntryType::OUTCOMES}))
        }
        _ => fields.remove("outcome"),
    };
    let texts =
        |least: u32| json!({"type": "array", "items": {"type": "string"}, "minItems": least});
    if !kind.is_raw() {
        fields.insert("evidence".to_owned(), texts(1));
    }
    if kind == EntryType::Finding {
        fields.insert("anchors".to_owned(), texts(1));
        let mut steps = texts(1);
        steps["maxItems"] = json!(3);
        fields.insert("verify_steps".to_owned(), steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_schema_and_no_other() {
        assert!(names().count() > EntryType::ALL.len());
        for name in names() {
            let schema = of(&name).expect("a schema");
            assert_eq!(schema["title"], name.as_str());
            assert_eq!(schema["properties"]["title"]["type"], "string", "{schema}");
        }
        for unknown in ["poem", "norm/bug", "lesson/commit", ""] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_schema_has_the_rules_of_its_type() {
        let commit = of("norm/commit").expect("a schema");
        assert_eq!(commit["properties"]["sub_type"], json!({"const": "commit"}));
        assert_eq!(commit["required"], json!(["title", "content", "type", "evidence", "sub_type"]));
        assert!(commit["properties"].get("outcome").is_none());
        assert_eq!(of("spike").expect("a schema")["properties"]["outcome"]["enum"][0], "confirmed");
        let signal = of("signal").expect("a schema");
        assert_eq!(signal["required"], json!(["title", "content", "type"]));
        assert_eq!(of("finding").expect("a schema")["properties"]["verify_steps"]["maxItems"], 3);
    }
}
