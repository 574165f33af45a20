//! Is this home in order? Each question, with its answer, and the way out where it is no.
//!
//! A running node asks these questions of itself; where none runs, the command line asks them of
//! the folder. Nothing is mended: whoever asks decides.

mod home;
mod store;

pub use home::{close_key_command, home, is_open, socket};
pub use store::{store, store_file};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// In order.
    Ok,
    /// Worth knowing.
    Warn,
    /// Something must be done.
    Fail,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// How it stands.
    pub verdict: Verdict,
    /// One sentence.
    pub says: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl Finding {
    /// In order.
    pub fn ok(check: &str, says: impl Into<String>) -> Self {
        Self { check: check.into(), verdict: Verdict::Ok, says: says.into(), way_out: None }
    }

    /// Worth knowing.
    pub fn warn(check: &str, says: impl Into<String>, way_out: impl Into<String>) -> Self {
        let way_out = Some(way_out.into());
        Self { check: check.into(), verdict: Verdict::Warn, says: says.into(), way_out }
    }

    /// Something must be done.
    pub fn fail(check: &str, says: impl Into<String>, way_out: impl Into<String>) -> Self {
        let way_out = Some(way_out.into());
        Self { check: check.into(), verdict: Verdict::Fail, says: says.into(), way_out }
    }
}
