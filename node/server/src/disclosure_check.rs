//! Refuses flagged passages that must not be written: those of new entries if `scan.disclosure` is
//! `refuse`, and those that an edit adds to an entry that another node already receives.
//!
//! A flagged entry that may be written is held instead; `query` decides that when it reads the entry.

use crate::errors::ApiError;
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::NewEntry;
use klnode_query::{ReadContext, ShareFlag, edited_text};
use klnode_store::{Error, Snapshot};

/// Maximum number of flagged passages that an error names.
const FLAGS_NAMED_MAX: usize = 5;
const HINT: &str = "Rephrase it as a general rule, without the name of a host, a path, a customer or \
                    a weakness.";

/// The reason why a new entry must not be written, as a clause; `None` if it may be written.
pub(super) fn refusal_of_new(
    reading: &ReadContext<'_>,
    new: &NewEntry,
) -> Result<Option<String>, Error> {
    let is_thread =
        |(register, text): &(Register, String)| *register == Register::THREAD && !text.is_empty();
    let is_private = new.registers.iter().any(is_thread);
    let texts = [("title", new.title.as_str()), ("content", new.content.as_str())].into_iter();
    let summary = new.registers.iter().filter(|(register, _)| *register == Register::SUMMARY);
    let texts = texts.chain(summary.map(|(_, text)| ("summary", text.as_str())));
    let evidence = new.citations.iter().map(|of| ("evidence", of.evidence_ref.as_str()));
    let texts = texts.chain(new.claims.iter().filter_map(edited_text)).chain(evidence);
    Ok(clause(&reading.disclosed_by_new(new.workspace, is_private, texts)?))
}

/// Rejects a new entry with flagged passages, if the operator chose that such entries are refused.
pub(super) fn check_new(
    reading: &ReadContext<'_>,
    problem: &str,
    new: &NewEntry,
) -> Result<(), ApiError> {
    refused(problem, refusal_of_new(reading, new)?)
}

/// Rejects an edit that adds a flagged passage to an entry that cannot be held any more.
pub(super) fn check_edit(
    service: &Service,
    snapshot: &Snapshot,
    entry: EntryId,
    edits: &[ClaimEdit],
) -> Result<(), ApiError> {
    let reading = service.reader.at(snapshot, (service.now)())?;
    let Some(found) = reading.read(entry)? else { return Ok(()) };
    let flags = reading.disclosed_by_edit(&found, edits)?;
    refused(&format!("Entry {} was not edited", found.code()), clause(&flags))
}

fn refused(problem: &str, why: Option<String>) -> Result<(), ApiError> {
    let error = |why| ApiError::new(ErrorKind::Refused, format!("{problem}: {why}."), Some(HINT));
    why.map_or(Ok(()), |why| Err(error(why)))
}

/// The flagged passages as a clause; `None` if there are none.
fn clause(flags: &[ShareFlag]) -> Option<String> {
    let named: Vec<String> = flags
        .iter()
        .take(FLAGS_NAMED_MAX)
        .map(|flag| format!("its {} contains {} ({})", flag.field, flag.text, flag.topic))
        .collect();
    let more = match flags.len().saturating_sub(FLAGS_NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}
