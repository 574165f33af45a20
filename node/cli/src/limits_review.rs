//! `klnode check limits --proposal FILE`: proposes a review of the numbers that exceed their limits.
//!
//! The file is written only if a limit is exceeded, so a build can act on its existence. Nothing else
//! is changed.

use super::VerbError;
use klnode_home::{AtomicFile, Existing};
use klnode_scoring::audit::{Aspect, Measure};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// A proposal to review the store.
#[derive(Serialize)]
struct ReviewProposal {
    proposal: &'static str,
    findings: Vec<ProposedReview>,
}

/// One number over its limit, and the commands that review it.
#[derive(Serialize)]
struct ProposedReview {
    measure: &'static str,
    value: f64,
    limit: f64,
    review: &'static str,
    action: &'static str,
}

/// Writes the proposal if a number exceeds its limit. Returns a line for people.
pub(super) fn write(file: &Path, measures: &[Measure]) -> Result<String, VerbError> {
    let findings: Vec<ProposedReview> = measures.iter().filter_map(finding).collect();
    if findings.is_empty() {
        return Ok("No number exceeds its limit, so no proposal was written.\n".to_owned());
    }
    let count = findings.len();
    let proposal = ReviewProposal { proposal: "review", findings };
    write_json(file, "the proposal", &proposal)?;
    Ok(format!("A proposal to review {count} of the numbers is in {}.\n", file.display()))
}

/// Replaces a file with a value as JSON. `what` names the value in the error.
pub(super) fn write_json(file: &Path, what: &str, value: &impl Serialize) -> Result<(), VerbError> {
    let written = || -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)? + "\n";
        let mut target = AtomicFile::create(file, Existing::Replace)?;
        target.write_all(text.as_bytes())?;
        target.finish()
    };
    written().map_err(|error| {
        VerbError::Failed(format!("Cannot write {what} to {}: {error}.", file.display()))
    })
}

/// The proposal for one number; `None` if it is within its limit.
fn finding(measure: &Measure) -> Option<ProposedReview> {
    let value = measure.value.filter(|_| measure.is_over())?;
    let (review, action) = match measure.aspect {
        Aspect::Stale => ("klnode check drift", "klnode archive --stale"),
        Aspect::Disputed => ("klnode maintain list contradictions", "klnode edit ENTRY --resolve"),
        Aspect::Bloated => ("klnode check drift", "klnode archive ENTRY"),
        Aspect::Friction => {
            ("klnode task friction report", "klnode add --from ENTRY --approve REASON")
        }
        Aspect::Waiting => ("klnode inbox list", "klnode inbox release RECORD"),
        Aspect::Failed => ("klnode status usage", "klnode task findings TASK"),
    };
    let (measure, limit) = (measure.aspect.name(), measure.limit);
    Some(ProposedReview { measure, value, limit, review, action })
}
