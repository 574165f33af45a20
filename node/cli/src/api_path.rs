//! API paths of entries, peers and tasks that were named on the command line.
//!
//! A name is escaped as one segment of a path. Names of other objects are escaped by [`part`].

use super::VerbError;
pub(super) use klnode_client::escape;

/// The API path of an entry.
pub(super) fn entry_path(entry: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(entry, "an entry", "give a code, an id or its beginning")?;
    Ok(format!("/v1/entries/{name}{rest}"))
}

/// The API path of a peer.
pub(super) fn peer_path(peer: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(peer, "a peer", "give its name, or the beginning of its key")?;
    Ok(format!("/v1/peers/{name}{rest}"))
}

/// The API path of a task.
pub(super) fn task_path(task: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(task, "a task", "give its name, as `klnode task begin` printed it")?;
    Ok(format!("/v1/tasks/{name}{rest}"))
}

/// A name from the command line, escaped as one segment of an API path.
pub(super) fn part(name: &str, of: &str, wanted: &str) -> Result<String, VerbError> {
    klnode_client::part(name, of, wanted).map_err(VerbError::Input)
}
