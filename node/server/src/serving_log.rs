//! Submits served entries to the writer, which keeps the serving log. Reading itself writes
//! nothing.

use super::caller::Caller;
use super::errors::ApiError;
use super::service::Service;
use klnode_crdt::ids::EntryId;
use klnode_engine::Command;
use klnode_query::AssessedEntry;
use klnode_scoring::status::Status;
use klnode_store::row_types::{AnswerCost, HitCost, ServedRow};
use std::time::Duration;

/// A served entry: its id, and the author and digest of its text, its tokens and whether it was
/// stale.
pub(super) type ServedEntry = (EntryId, HitCost);

/// The log data of an entry served with this many tokens.
pub(super) fn served_entry(found: &AssessedEntry, tokens: u32) -> ServedEntry {
    let author = found.author.as_ref().map(|author| author.author);
    let (text, is_stale) =
        (Some(found.view.text_digest()), found.assessment.standing.status == Status::Stale);
    (found.entry, HitCost { author, text, tokens, is_stale })
}

/// The row of the serving log for an answer.
pub(super) fn log_row(caller: Caller, given: &[ServedEntry], took: Duration) -> ServedRow {
    let hits = given.iter().map(|(_, cost)| *cost).collect();
    let millis = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
    ServedRow {
        caller: caller.to_string(),
        entries: given.iter().map(|(entry, _)| *entry).collect(),
        client: caller.client,
        session: caller.session,
        cost: AnswerCost { hits, millis },
        ..ServedRow::default()
    }
}

impl Service {
    /// Submits a row of the serving log. A person at the page is no agent, so the page has no rows.
    pub(super) async fn note_served(&self, caller: Caller, row: ServedRow) -> Result<(), ApiError> {
        if caller.is_page {
            return Ok(());
        }
        // The class of a later confirmation depends on this row, so a row with entries must not be
        // dropped and must precede the caller's next command.
        let (in_task, is_empty) = (row.task.is_some(), row.entries.is_empty());
        let command = on_behalf(caller, row);
        if in_task {
            self.engine.submit(command).await?;
        } else if is_empty {
            self.engine.note(command);
        } else {
            self.engine.hand_over(command).await;
        }
        Ok(())
    }

    /// Records entries that a caller has read outside an answer, or in an answer that is not
    /// counted. A caller that has read an entry cannot confirm it independently.
    pub(super) async fn note_read(&self, caller: Caller, entries: Vec<EntryId>) {
        if !entries.is_empty() && !caller.is_page {
            let row = log_row(caller, &[], Duration::ZERO);
            let row = ServedRow { entries, is_unrecorded: true, ..row };
            self.engine.hand_over(on_behalf(caller, row)).await;
        }
    }
}

fn on_behalf(caller: Caller, row: ServedRow) -> Command {
    Command::As { caller: caller.into(), command: Box::new(Command::Served(row)) }
}
