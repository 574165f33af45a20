//! Keeps untrusted entries out of a pipe, which an agent may read.

use super::VerbError;

/// The reason why an entry is not printed into a pipe, where an agent may read it; `None` if it
/// may.
pub(super) fn untrusted_because(
    (foreign, gate, status): (bool, &str, &str),
) -> Option<&'static str> {
    match (foreign, gate, status) {
        (true, "shut", _) => {
            Some("its author is no member of the workspace, and it has not proved useful here")
        }
        (_, "held", _) => {
            Some("its text names a host, a path, a customer or a weakness; see `klnode inbox list`")
        }
        (true, _, "rejected") => Some("the node rejects it"),
        _ => None,
    }
}

/// Refuses to print an untrusted entry into a pipe, which an agent may read.
pub(super) fn allow_in_pipe(code: &str, facts: (bool, &str, &str)) -> Result<(), VerbError> {
    let Some(why) = untrusted_because(facts) else { return Ok(()) };
    Err(VerbError::Failed(format!(
        "Entry {code} is hidden because output is not a terminal: {why}. Use --all to show it."
    )))
}
