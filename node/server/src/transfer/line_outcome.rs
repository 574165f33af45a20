//! The outcome of an imported line: counts the writer's answers, and words refusals.

use crate::errors::ApiError;
use klnode_api_types::transfer::ImportResult;
use klnode_engine::{IngestOutcome, Receipt, Rejection};

/// The refusal of an entry that was forgotten here.
pub(super) fn forgotten() -> String {
    "it was forgotten on this node; use --as-new to import it under a new id".into()
}

/// Removes the common prefix of messages about new entries, because the line is named before them.
pub(super) fn without_prefix(message: String) -> String {
    let rest = message.strip_prefix("The entry was not written: ").map(str::to_owned);
    rest.or_else(|| message.strip_prefix("The record was not written: ").map(str::to_owned))
        .unwrap_or(message)
}

/// The count to which a line is added if the writer accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineCount {
    /// New, or known if the writer knew all of it.
    New,
    /// A change of an entry that an earlier import wrote.
    Changed,
    /// Known: only the place of the entry in its file is stored anew.
    Known,
}

/// Adds the writer's result for a line. A fault of the store fails the whole import, except damage.
pub(super) fn conclude(
    imported: &mut ImportResult,
    (number, count): (u64, LineCount),
    answers: Vec<Result<Receipt, Rejection>>,
) -> Result<(), ApiError> {
    let (mut is_taken, mut waits, mut problem) = (false, false, None);
    for answer in answers {
        match answer {
            Ok(Receipt::Created(_)) => is_taken = true,
            Ok(Receipt::Known(_)) => {}
            // Marks can also be set on entries that are held already.
            Ok(
                Receipt::Done(_) | Receipt::Task(_) | Receipt::Finding(_) | Receipt::Maintenance(_),
            ) => {
                is_taken = true;
            }
            // New prior evidence.
            Ok(Receipt::Noted) => {
                is_taken = true;
                imported.prior += 1;
            }
            Ok(Receipt::Ingested(ingested)) => {
                for of in ingested {
                    match of {
                        IngestOutcome::Known => {}
                        IngestOutcome::Merged(_) => is_taken = true,
                        IngestOutcome::Quarantined(_) => waits = true,
                        IngestOutcome::Forgotten => problem = Some(forgotten()),
                        IngestOutcome::Refused(why) | IngestOutcome::Deferred(why) => {
                            problem = Some(format!("records: {why}"));
                        }
                    }
                }
            }
            Err(Rejection::Forgotten(_)) => problem = Some(forgotten()),
            Err(damage) if damage.is_damage() => problem = Some(damage.to_string()),
            Err(fault @ (Rejection::Store(_) | Rejection::Reopen(_) | Rejection::Stopping)) => {
                return Err(fault.into());
            }
            Err(rejection) => problem = Some(without_prefix(rejection.to_string())),
        }
    }
    match problem {
        Some(message) => {
            imported.refuse(number, &message);
            imported.quarantined += u64::from(waits);
        }
        None if count == LineCount::Changed => imported.changed += 1,
        None => add_read(imported, is_taken && count == LineCount::New, waits),
    }
    Ok(())
}

/// Counts a line that was not rejected. A line of which every record is quarantined is neither new
/// nor known.
pub(super) fn add_read(imported: &mut ImportResult, is_taken: bool, waits: bool) {
    imported.taken += u64::from(is_taken);
    imported.known += u64::from(!is_taken && !waits);
    imported.quarantined += u64::from(waits);
}
