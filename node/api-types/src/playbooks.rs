//! Requests and answers about playbooks: texts that the members of a workspace edit together.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A new playbook.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlaybook {
    /// The title, one line.
    pub title: String,
    /// The text in Markdown. Its headings divide it into sections.
    pub text: String,
    /// The workspace by name or id. Default: the workspace of the checkout, else the current
    /// workspace, else `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// One sentence for short answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Tags; `/` separates levels, as in `auth/jwt`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The caller's location: the absolute path of a git checkout or of a folder in one. Callers
    /// over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// A change of a playbook. Exactly one of `text` and `restore` is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlaybookEdit {
    /// The `version` of the text that was read. The node keeps edits that others made since. It is
    /// required with `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The whole new text, or the new text of `section`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The section that `text` replaces, with its heading and its subsections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The version or edit whose text becomes the present text again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

/// The removal of a playbook's history.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PurgePlaybook {
    /// The text of the new playbook. Default: the present text, with secrets replaced by `[redacted]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The new playbook after a purge.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PurgeResult {
    /// The id of the new playbook.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// The code of the old playbook, which is forgotten.
    pub forgotten: String,
}

/// What to show of a playbook.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlaybookQuery {
    /// Only this section, with its subsections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// An earlier version, or the edit after which it was the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A playbook with its text, sections and version.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Playbook {
    /// The playbook's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// The title of the playbook.
    pub title: String,
    /// The name of its workspace.
    pub workspace: String,
    /// The text, or the section that was asked for.
    pub text: String,
    /// The version of the text, to be handed back with an edit.
    pub version: String,
    /// The sections of the whole text, in their order.
    pub sections: Vec<PlaybookSection>,
    /// True if secrets or instructions in the text were replaced. Such a text cannot be edited; a
    /// purge removes them with the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Number of edits in the text.
    pub edits: u32,
    /// Number of edits whose predecessors have not arrived yet.
    #[serde(default)]
    pub waiting: u32,
    /// Number of edits that do not count, because their authors are no members or they break a rule.
    #[serde(default)]
    pub left_out: u32,
    /// Time of the last edit in the text, in milliseconds since 1970.
    pub updated: u64,
}

/// A section of a playbook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlaybookSection {
    /// The name to ask for it, as in `P-7F3KQ2MX#releasing`.
    pub slug: String,
    /// The text of its heading.
    pub title: String,
    /// The level of its heading, 1 to 6; 0 for text before the first heading.
    pub level: u8,
    /// Its length in bytes, with its subsections.
    pub bytes: u64,
}

/// Which playbooks to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlaybooksQuery {
    /// Only those of this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// The playbooks of a node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Playbooks {
    /// The playbooks, the last edited first.
    pub playbooks: Vec<PlaybookSummary>,
}

/// A playbook in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaybookSummary {
    /// The playbook's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// The title of the playbook.
    pub title: String,
    /// The name of its workspace.
    pub workspace: String,
    /// The length of its text in bytes.
    pub bytes: u64,
    /// Number of edits in the text.
    pub edits: u32,
    /// Number of edits whose predecessors have not arrived yet.
    #[serde(default)]
    pub waiting: u32,
    /// Time of the last edit, in milliseconds since 1970.
    pub updated: u64,
}

/// The edits of a playbook.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaybookHistory {
    /// The edits in the text, the latest first.
    pub edits: Vec<PlaybookChange>,
    /// Edits that wait for missing predecessors.
    #[serde(default)]
    pub waiting: Vec<WaitingEdit>,
}

/// One edit of a playbook.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaybookChange {
    /// The hash of the edit. It names the version of the text after the edit.
    pub edit: String,
    /// The key of its author.
    pub author: String,
    /// This node's name for the author.
    pub author_name: String,
    /// When it was made, by its author's clock, in milliseconds since 1970.
    pub at: u64,
    /// Number of characters that it inserted.
    pub inserted: u32,
    /// Number of characters that it deleted.
    pub deleted: u32,
}

/// An edit whose predecessors have not arrived.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WaitingEdit {
    /// The hash of the edit.
    pub edit: String,
    /// The key of its author.
    pub author: String,
    /// This node's name for the author.
    pub author_name: String,
    /// The hashes of missing edits.
    pub missing: Vec<String>,
}

/// The author of each line of a playbook.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaybookBlame {
    /// The lines in their order.
    pub lines: Vec<BlamedLine>,
}

/// A line with the last edit that wrote into it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BlamedLine {
    /// The text of the line.
    pub text: String,
    /// The hash of the edit.
    pub edit: String,
    /// The key of its author.
    pub author: String,
    /// This node's name for the author.
    pub author_name: String,
    /// When it was made, by its author's clock, in milliseconds since 1970.
    pub at: u64,
}

/// Two versions to compare.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlaybookDiffQuery {
    /// The earlier version or edit. Default: the version before the last edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The later version or edit. Default: the present version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The difference between two versions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaybookDiff {
    /// The places where they differ, in their order.
    pub changes: Vec<DiffPlace>,
}

/// Lines that differ at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffPlace {
    /// Number of the first removed line; the first line is 1.
    pub old_line: u64,
    /// The removed lines.
    pub removed: Vec<String>,
    /// Number of the first added line; the first line is 1.
    pub new_line: u64,
    /// The added lines.
    pub added: Vec<String>,
}
