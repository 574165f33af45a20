//! What travels about what entries depend on, and what a checkout says to it.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How to show an entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShowQuery {
    /// Where the caller is: the absolute path of a git checkout, or of a folder in one. What the
    /// entry depends on is looked at there. Refused to callers over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// What a look at the predicates of one entry said.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Checked {
    /// `holds`, `broken` or `unknown`.
    pub outcome: String,
    /// The atoms that are broken, or, where none is, those that could not be told.
    pub findings: Vec<AtomFinding>,
}

/// One predicate of an entry, and where it is evaluated.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchoredPredicate {
    /// The predicate.
    pub predicate: String,
    /// The repositories in which it was written, in words: the remote, else a root commit. Empty if
    /// none is recorded; then it is evaluated nowhere.
    pub repositories: Vec<String>,
    /// Whether the caller's checkout is of one of them.
    pub here: bool,
}

/// One atom of a predicate, and why it does not hold here.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AtomFinding {
    /// The atom, as it is written.
    pub atom: String,
    /// Why; never with a word of what a file says.
    pub reason: String,
}

/// Which predicates to check, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnchorsCheck {
    /// The absolute path of a git checkout, or of a folder in one.
    pub checkout: String,
    /// Only entries of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Entries after this id: `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// What a checkout says about the predicates of a page of entries.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchorsChecked {
    /// The root of the checkout.
    pub root: String,
    /// Entries with predicates of this repository.
    pub entries: u64,
    /// Those predicates.
    pub predicates: u64,
    /// Atoms that make a predicate broken.
    pub broken: Vec<FlaggedAtom>,
    /// Atoms that could not be told, of entries of which nothing is broken.
    pub unknown: Vec<FlaggedAtom>,
    /// Predicates that were skipped because they were written in another repository.
    #[serde(default)]
    pub skipped_elsewhere: u64,
    /// Predicates that were skipped because no repository is recorded with them: they were written
    /// outside of any, or before repositories were recorded.
    #[serde(default)]
    pub skipped_unrecorded: u64,
    /// Where the next page begins; absent on the last.
    pub next: Option<String>,
}

/// One atom of an entry, and why it does not hold.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlaggedAtom {
    /// The entry's id.
    pub id: String,
    /// Its citation code.
    pub code: String,
    /// Its title.
    pub title: String,
    /// The atom, as it is written; empty where a page had too much to look at.
    pub atom: String,
    /// Why; never with a word of what a file says.
    pub reason: String,
}
