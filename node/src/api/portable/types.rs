//! What travels when files are read and written. Names here are a promise to scripts.

use crate::api::types::ErrorDetail;
use crate::query::redacted;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// One line of the answer to something that takes its time; the last is `done` or `failed`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News<T> {
    /// How far it is.
    Progress(Progress),
    /// What came of it.
    Done(T),
    /// Why nothing came of it.
    Failed(ErrorDetail),
}

/// How far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// So much is done.
    pub done: u64,
    /// Of so much.
    pub total: u64,
}

/// What to export.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// Only this workspace, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// How to take lines in.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// What the file is called: lines without evidence cite it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The number of the first line; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// Where plain lines go, whatever they say, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Write nothing, say what would be.
    #[serde(default)]
    pub dry_run: bool,
    /// Learn anew what was forgotten here, under a fresh id.
    #[serde(default)]
    pub as_new: bool,
    /// Stop before the first line that is refused.
    #[serde(default)]
    pub strict: bool,
}

/// Where to write a backup.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupOrder {
    /// The file, as an absolute path.
    pub path: String,
    /// Leave the node's key out.
    #[serde(default)]
    pub without_key: bool,
    /// Replace the file if there is one.
    #[serde(default)]
    pub replace: bool,
}

/// What became of some lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// Entries that the lines were about.
    pub entries: u64,
    /// Lines that brought something new.
    pub taken: u64,
    /// Lines that were known.
    pub known: u64,
    /// Lines of which something was refused.
    pub refused: u64,
    /// Of those taken: lines that forgot an entry here.
    pub forgotten: u64,
    /// Of those taken: entries of which nobody whose word is shown here says anything. They are
    /// proposals until somebody accepts them.
    #[serde(default)]
    pub proposed: u64,
    /// Lines that brought prior evidence, which this node keeps for itself.
    #[serde(default)]
    pub prior: u64,
    /// Lines of which something waits for the operator; what only waits is neither taken nor known.
    pub quarantined: u64,
    /// Lines whose marks were left out: this node did not export them.
    pub unmarked: u64,
    /// Why, for the first that were refused.
    pub problems: Vec<Problem>,
    /// The line at which a strict import stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<u64>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Its number.
    pub line: u64,
    /// The field and the reason.
    pub message: String,
}

/// Lines of which the problem is told; the rest is counted.
pub const PROBLEMS_MAX: usize = 20;

impl Imported {
    /// Counts a line that was refused.
    pub fn refuse(&mut self, line: u64, message: &str) {
        self.refused += 1;
        if self.problems.len() < PROBLEMS_MAX {
            // What is wrong with a value may repeat it.
            self.problems.push(Problem { line, message: redacted(message) });
        }
    }

    /// Adds what became of further lines.
    pub fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.taken += other.taken;
        self.known += other.known;
        self.refused += other.refused;
        self.forgotten += other.forgotten;
        self.proposed += other.proposed;
        self.prior += other.prior;
        self.quarantined += other.quarantined;
        self.unmarked += other.unmarked;
        let room = PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(other.problems.into_iter().take(room));
        self.stopped = self.stopped.or(other.stopped);
    }
}
