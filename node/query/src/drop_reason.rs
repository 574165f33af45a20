//! The reasons why a search drops a candidate, and an entry of the list of everything it considered.
//!
//! Separate from `search_trace`, which makes the list: the types of an answer name these types.

use klnode_crdt::ids::EntryId;
use klnode_scoring::status::Status;
use klnode_scoring::token_budget::OmissionReason;
use std::fmt;

/// The reason why a candidate is no hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DropReason {
    /// The caller has the current text already.
    Known,
    /// The entry does not pass the filter of the question.
    Filter,
    /// Entries of this status are not served.
    Status(Status),
    /// The operator muted the entry or called it wrong.
    Mark,
    /// The entry belongs to another reviewer.
    OtherReviewer,
    /// The entry is untrusted, and the answer is for a program.
    Gate,
    /// The entry belongs to another thread.
    OtherThread,
    /// The entry is a duplicate of another candidate.
    Merged,
    /// The entry could not be read.
    Unreadable,
    /// Enough more relevant entries were read.
    NotRead,
    /// The relevance is below the threshold.
    NotRelevant(f64),
    /// The answer left the entry out.
    LeftOut(OmissionReason),
    /// The task has as many entries as one agent is given.
    PlacesTaken,
}

impl fmt::Display for DropReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known => out.write_str("the caller has it already"),
            Self::Filter => out.write_str("it does not pass the filter of the question"),
            Self::Status(status) => write!(out, "its status is {}", status.name()),
            Self::Mark => out.write_str("it is muted or marked as wrong on this node"),
            Self::OtherReviewer => out.write_str("it belongs to another reviewer"),
            Self::Gate => out.write_str("it is untrusted, and the answer is for a program"),
            Self::OtherThread => out.write_str("it belongs to another thread"),
            Self::Merged => out.write_str("a duplicate of it was considered instead"),
            Self::Unreadable => out.write_str("it could not be read"),
            Self::NotRead => out.write_str("enough more relevant entries were read"),
            Self::NotRelevant(min) => write!(out, "its relevance is below {min:.2}"),
            Self::LeftOut(OmissionReason::TooMany) => out.write_str("more hits than the limit"),
            Self::LeftOut(OmissionReason::TooLong) => out.write_str("the token budget is spent"),
            Self::LeftOut(OmissionReason::Untried) => {
                out.write_str("it is untried, and the places of untried entries are taken")
            }
            Self::PlacesTaken => {
                out.write_str("the task was given as many entries as one agent gets")
            }
        }
    }
}

/// An entry that the search considered.
#[derive(Clone, Debug)]
pub struct ConsideredEntry {
    pub entry: EntryId,
    /// The citation code.
    pub code: String,
    /// The title; `None` if the recipient of the answer may not read it.
    pub title: Option<String>,
    /// The relevance to the question.
    pub relevance: f64,
    /// The place in the answer, from 1; `None` if the entry is no hit.
    pub place: Option<usize>,
    /// The reason why the entry is no hit; `None` if it is one.
    pub reason: Option<DropReason>,
}
