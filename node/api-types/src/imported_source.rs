//! The words of the file that an entry was imported from.
//!
//! A node displays and exports them and judges nothing by them, except the age of the entry: any
//! program can write a file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The statements of a file about an entry. All of them are the file's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportedSource {
    /// The name of the file's format.
    pub format: String,
    /// The entry's id in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The file, relative to the imported folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The date of creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The date of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<String>,
    /// The date of the last confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<String>,
    /// The origin of the knowledge, such as `independent` or `primed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// The status in the other tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Citations with the names and dates of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<ImportedCitation>,
    /// Links to other entries of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<ImportedLink>,
    /// Fields of the file that klnode does not know, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
    /// The newest of the dates, in milliseconds since 1970. The entry is at least as old as that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<u64>,
}

/// A citation in the words of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportedCitation {
    /// The evidence as `KIND:REF`, such as `commit:1a2b3c4`.
    pub evidence: String,
    /// The name of the person or program that cited the evidence, as the file gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cited_by: Option<String>,
    /// The time of the citation, in the words of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cited_at: Option<String>,
}

/// A link in the words of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportedLink {
    /// The name of the relation; empty for a plain link.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub relation: String,
    /// The target as the file spells it.
    pub target: String,
    /// The entry at which the link starts; empty for the entry itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
}
