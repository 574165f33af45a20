//! The check results of `GET /v1/doctor` and of a check without a running node. Scripts depend on the names.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Severity of a check result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckSeverity {
    /// Nothing is wrong.
    Ok,
    /// The user should know, but the node works.
    Warn,
    /// The user must act.
    Fail,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckResult {
    /// Name of the check, such as `records`.
    pub check: String,
    /// Severity of the check result.
    pub verdict: CheckSeverity,
    /// The result in whole sentences.
    pub says: String,
    /// The remedy; `None` if nothing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl CheckResult {
    /// A check result without a problem.
    pub fn ok(check: &str, says: impl Into<String>) -> Self {
        Self { check: check.into(), verdict: CheckSeverity::Ok, says: says.into(), way_out: None }
    }

    /// A check result that the user should know.
    pub fn warn(check: &str, says: impl Into<String>, way_out: impl Into<String>) -> Self {
        let way_out = Some(way_out.into());
        Self { check: check.into(), verdict: CheckSeverity::Warn, says: says.into(), way_out }
    }

    /// A check result that requires action.
    pub fn fail(check: &str, says: impl Into<String>, way_out: impl Into<String>) -> Self {
        let way_out = Some(way_out.into());
        Self { check: check.into(), verdict: CheckSeverity::Fail, says: says.into(), way_out }
    }
}
