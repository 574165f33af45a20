//! Request and response types for predicates and their evaluation in a checkout.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Options for showing an entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ShowQuery {
    /// The caller's location: the absolute path of a git checkout or of a folder in one. The node
    /// evaluates the entry's predicates there. Callers over TCP may not set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<String>,
}

/// The result of evaluating the predicates of one entry.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchorCheckResult {
    /// `holds`, `broken` or `unknown`.
    pub outcome: String,
    /// The broken atoms or, if none is broken, the atoms whose result is unknown.
    pub findings: Vec<AtomResult>,
}

/// One predicate of an entry and the repositories in which it is evaluated.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchoredPredicate {
    /// The text of the predicate.
    pub predicate: String,
    /// The repositories in which the predicate was written, as text: the remote, else a root
    /// commit. If the list is empty, the predicate is never evaluated.
    pub repositories: Vec<String>,
    /// True if the caller's checkout belongs to one of these repositories.
    pub here: bool,
}

/// One atom of a predicate that does not hold or is unknown.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AtomResult {
    /// The text of the atom.
    pub atom: String,
    /// The reason; it never quotes the contents of a file.
    pub reason: String,
}

/// A request to evaluate the predicates of many entries.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnchorsCheckRequest {
    /// The absolute path of a git checkout or of a folder in one.
    pub checkout: String,
    /// Only entries of this workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The cursor: `next` of the previous page. Entries after this id follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The result of evaluating the predicates of one page of entries.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchorsCheckPage {
    /// The root folder of the checkout.
    pub root: String,
    /// Entries on this page with predicates of this repository.
    pub entries: u64,
    /// Predicates of this repository on this page.
    pub predicates: u64,
    /// Atoms that make a predicate broken.
    pub broken: Vec<FlaggedAtom>,
    /// Atoms whose result is unknown, of entries without a broken atom.
    pub unknown: Vec<FlaggedAtom>,
    /// Predicates that were skipped because they were written in another repository.
    #[serde(default)]
    pub skipped_elsewhere: u64,
    /// Predicates that were skipped because no repository is recorded with them: they were written
    /// outside a repository, or before repositories were recorded.
    #[serde(default)]
    pub skipped_unrecorded: u64,
    /// The cursor of the next page; absent on the last page.
    pub next: Option<String>,
}

/// One atom of an entry that does not hold or is unknown.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlaggedAtom {
    /// The entry's id.
    pub id: String,
    /// The entry's citation code.
    pub code: String,
    /// The entry's title.
    pub title: String,
    /// The text of the atom; empty if the page reached its work limit.
    pub atom: String,
    /// The reason; it never quotes the contents of a file.
    pub reason: String,
}
