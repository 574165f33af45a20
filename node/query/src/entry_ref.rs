//! Resolves entry references in the store: an id, a citation code, or an unambiguous prefix of a
//! code.

use klnode_crdt::entry_ref::{EntryRef, MalformedRef};
use klnode_crdt::ids::EntryId;
use klnode_store::{Error, Snapshot};

/// Reasons why a reference does not resolve to exactly one entry.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// The text is neither an id nor a citation code.
    #[error("{0}")]
    Malformed(#[from] MalformedRef),
    /// The text names a section of a playbook where a whole entry is expected.
    #[error(
        "`{0}` names a section of a playbook, and this command concerns whole entries. Leave out the \
         part from `#` on, or run `klnode playbook show {0}` to read the section."
    )]
    Section(String),
    /// This node has no entry in the range.
    #[error("Entry {0} not found on this node.")]
    Unknown(String),
    /// Several entries share the prefix.
    #[error("`{text}` is ambiguous: it matches {}.", candidates.join(", "))]
    Ambiguous {
        /// The reference as the caller typed it.
        text: String,
        /// The codes of the first `CANDIDATES_MAX` matching entries.
        candidates: Vec<String>,
    },
    /// The store could not be read.
    #[error("{0}")]
    Store(#[from] Error),
}

/// Matching entries that the `Ambiguous` error lists at most.
const CANDIDATES_MAX: usize = 5;

/// The only entry that a typed reference can stand for; an error if there is none or more than one.
pub fn resolve_entry(text: &str, snapshot: &Snapshot) -> Result<EntryId, ReferenceError> {
    if text.split_once('#').is_some_and(|(entry, _)| entry.parse::<EntryRef>().is_ok()) {
        return Err(ReferenceError::Section(text.to_owned()));
    }
    let reference: EntryRef = text.parse()?;
    let (first, last) = reference.range();
    let mut found = Vec::new();
    for row in snapshot.entries_between(first, last)?.take(CANDIDATES_MAX) {
        found.push(row?.0);
    }
    match found.as_slice() {
        [] => Err(ReferenceError::Unknown(text.to_owned())),
        [one] => Ok(*one),
        several => {
            let codes = several.iter().map(|entry| code(snapshot, *entry));
            let candidates = codes.collect::<Result<_, Error>>()?;
            Err(ReferenceError::Ambiguous { text: text.to_owned(), candidates })
        }
    }
}

/// Like [`resolve_entry`], and if no code fits also by an id that the entry has in a file this node
/// imported. Commands that remove or confirm an entry do not accept such an id, because a file
/// chooses it.
pub fn resolve_shown(text: &str, snapshot: &Snapshot) -> Result<EntryId, ReferenceError> {
    let by_code = resolve_entry(text, snapshot);
    if !matches!(by_code, Err(ReferenceError::Malformed(_) | ReferenceError::Unknown(_))) {
        return by_code;
    }
    match snapshot.imported_as(text.trim(), CANDIDATES_MAX)?.as_slice() {
        [] => by_code,
        [one] => Ok(*one),
        several => {
            let codes = several.iter().map(|entry| code(snapshot, *entry));
            let candidates = codes.collect::<Result<_, Error>>()?;
            Err(ReferenceError::Ambiguous { text: text.to_owned(), candidates })
        }
    }
}

/// The citation code of an entry for error messages. It takes the entry type from all claims,
/// whether their authors are entitled or not.
pub(super) fn code(snapshot: &Snapshot, entry: EntryId) -> Result<String, Error> {
    Ok(snapshot.entry(entry)?.to_entry().code(entry))
}
