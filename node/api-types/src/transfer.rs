//! Request and response types of export, import and backup. Scripts depend on the names.

use crate::{ErrorDetail, ImportedSource};
use klnode_scoring::content_scan::redact_secrets;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// One line of a progress stream; the last line is `done` or `failed`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressLine<T> {
    /// The progress so far.
    Progress(Progress),
    /// The final result.
    Done(T),
    /// The error that ended the work.
    Failed(ErrorDetail),
}

/// Progress of a long operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Work done so far, in the unit of `total`. The unit depends on the operation.
    pub done: u64,
    /// Units of work in total.
    pub total: u64,
}

/// Selects the entries to export.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// Only entries of this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Only this entry, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Lines without records, with the dates of each entry in `source`. Such lines are for files of
    /// other tools.
    #[serde(default)]
    pub plain: bool,
}

/// Options for an import.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// The name of the file; lines without evidence cite it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The number of the first line in the file. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// The workspace for plain lines, by name or id. It overrides the one in the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Write nothing and report the result that an import would have.
    #[serde(default)]
    pub dry_run: bool,
    /// Import entries that were forgotten on this node again, under new ids.
    #[serde(default)]
    pub as_new: bool,
    /// Stop before the first line that is rejected.
    #[serde(default)]
    pub strict: bool,
    /// For entries that were changed here and in their file: the side that is kept. Default: such
    /// entries are listed and not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub keep: Option<KeptSide>,
}

/// A side of a conflict between an entry and its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeptSide {
    /// The text of the entry.
    Entry,
    /// The text of the file.
    File,
}

/// Selects entries that were imported from files of other tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImportedQuery {
    /// The beginning of their places.
    pub place: String,
    /// Include code, title and archived state, which takes longer.
    #[serde(default)]
    pub titles: bool,
}

/// An entry that was imported from a file of another tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedEntry {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The title of the entry, on one line.
    pub title: String,
    /// The workspace: `main`, `local` or an id.
    pub workspace: String,
    /// True if the entry is archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The place in a file.
    pub place: String,
    /// The words of the file.
    pub source: ImportedSource,
    /// Links that imports made of the links in the file, each as RELATION:ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// Links that an import makes of the links in files.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportLinks {
    /// The entries, each with all of its links.
    pub entries: Vec<LinkedImport>,
}

/// The links of one imported entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkedImport {
    /// The id of the entry.
    pub id: String,
    /// All links that its file states, each as RELATION:ID. Links of an earlier import that are
    /// missing here are withdrawn.
    pub links: Vec<String>,
}

/// The result of making links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportLinksResult {
    /// Links that were added to entries.
    pub added: u64,
    /// Links that were withdrawn.
    pub withdrawn: u64,
    /// Entries whose links were not written.
    pub refused: u64,
}

/// Options for a backup.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupOrder {
    /// The absolute path of the file.
    pub path: String,
    /// Leave the node's key out of the backup.
    #[serde(default)]
    pub without_key: bool,
    /// Replace an existing file.
    #[serde(default)]
    pub replace: bool,
}

/// The contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupContents {
    /// Hex id of the author that the store belongs to.
    pub node: String,
    /// Hex id of the store.
    pub store: String,
    /// Time of creation in milliseconds since 1970.
    pub created: u64,
    /// The klnode version that made the backup.
    pub klnode: String,
    /// The schema version of the tables.
    pub schema: u32,
    /// The newest feed position.
    pub head: u64,
    /// Number of entries, including forgotten ones.
    pub entries: u64,
    /// Number of entries of which only a tombstone is left.
    pub forgotten: u64,
    /// Number of live records.
    pub records: u64,
    /// Whether the backup contains the node's key.
    pub has_key: bool,
    /// Bytes of the stored data.
    pub store_bytes: u64,
    /// Hex digest of the stored data.
    pub store_digest: String,
}

/// The result of importing some lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportResult {
    /// Entries that the lines are about.
    pub entries: u64,
    /// Lines with something new.
    pub taken: u64,
    /// Lines that were known already.
    pub known: u64,
    /// Lines whose entry follows a change of the file.
    #[serde(default)]
    pub changed: u64,
    /// Lines whose entry was changed here and in the file. Nothing was written for them.
    #[serde(default)]
    pub conflicts: u64,
    /// Lines that were rejected in whole or in part.
    pub refused: u64,
    /// Of the new lines, those that forgot an entry on this node.
    pub forgotten: u64,
    /// Of the new lines, entries without a claim of an author whose claims are displayed. They stay
    /// proposals until they are accepted.
    #[serde(default)]
    pub proposed: u64,
    /// Lines with prior evidence, which stays on this node.
    #[serde(default)]
    pub prior: u64,
    /// Lines with records in quarantine. A line of which every record waits there is neither new
    /// nor known.
    pub quarantined: u64,
    /// Lines whose marks were dropped because this node did not export them.
    pub unmarked: u64,
    /// The problems of the first rejected lines.
    pub problems: Vec<LineProblem>,
    /// The first lines in conflict, each with the entry and its fields.
    #[serde(default)]
    pub conflicted: Vec<LineProblem>,
    /// In a dry run, the numbers of the first lines that would add or change an entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_write: Vec<u64>,
    /// The line at which a strict import stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<u64>,
}

/// The problem of a rejected line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineProblem {
    /// The number of the line in the file.
    pub line: u64,
    /// The field and the reason.
    pub message: String,
}

/// Lines that are listed of each kind; further ones are only counted.
pub const PROBLEMS_MAX: usize = 20;

impl ImportResult {
    /// Counts a rejected line and records its problem.
    pub fn refuse(&mut self, line: u64, message: &str) {
        self.refused += 1;
        if self.problems.len() < PROBLEMS_MAX {
            // The message may quote the value.
            self.problems.push(LineProblem { line, message: redact_secrets(message) });
        }
    }

    /// Counts a line whose entry was changed here and in the file.
    pub fn conflict(&mut self, line: u64, message: String) {
        self.conflicts += 1;
        if self.conflicted.len() < PROBLEMS_MAX {
            self.conflicted.push(LineProblem { line, message });
        }
    }

    /// Notes a line that would add or change an entry.
    pub fn would_write(&mut self, line: u64) {
        if self.would_write.len() < PROBLEMS_MAX {
            self.would_write.push(line);
        }
    }

    /// Adds the result of further lines.
    pub fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.taken += other.taken;
        self.known += other.known;
        self.changed += other.changed;
        self.conflicts += other.conflicts;
        self.refused += other.refused;
        self.forgotten += other.forgotten;
        self.proposed += other.proposed;
        self.prior += other.prior;
        self.quarantined += other.quarantined;
        self.unmarked += other.unmarked;
        let room = PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(other.problems.into_iter().take(room));
        let room = PROBLEMS_MAX.saturating_sub(self.conflicted.len());
        self.conflicted.extend(other.conflicted.into_iter().take(room));
        let room = PROBLEMS_MAX.saturating_sub(self.would_write.len());
        self.would_write.extend(other.would_write.into_iter().take(room));
        self.stopped = self.stopped.or(other.stopped);
    }
}
