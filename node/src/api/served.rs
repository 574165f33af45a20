//! What was served, handed to the writer: a question itself writes nothing.

use super::caller::Caller;
use super::errors::ApiError;
use super::server::Service;
use crate::engine::Command;
use crate::query::Found;
use crate::store::rows::{Cost, HitCost, ServedRow};
use klnode_crdt::ids::EntryId;
use klnode_scoring::status::Status;
use std::time::Duration;

/// One entry that was served: which, whose text and which one, at how many tokens, and whether it was
/// stale.
pub(super) type Given = (EntryId, HitCost);

/// An entry as it is served at so many tokens.
pub(super) fn given(found: &Found, tokens: u32) -> Given {
    let author = found.author.as_ref().map(|author| author.author);
    let (text, is_stale) =
        (Some(found.view.text_digest()), found.judged.standing.status == Status::Stale);
    (found.entry, HitCost { author, text, tokens, is_stale })
}

/// What was served to a caller, and what it cost.
pub(super) fn served(caller: Caller, given: &[Given], took: Duration) -> ServedRow {
    let hits = given.iter().map(|(_, cost)| *cost).collect();
    let millis = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
    ServedRow {
        caller: caller.to_string(),
        entries: given.iter().map(|(entry, _)| *entry).collect(),
        client: caller.client,
        session: caller.session,
        cost: Cost { hits, millis },
        ..ServedRow::default()
    }
}

impl Service {
    /// Hands what was served to the writer.
    pub(super) async fn note_served(&self, caller: Caller, row: ServedRow) -> Result<(), ApiError> {
        // What a confirmation is worth depends on what was served, where and to whom: that must not be
        // dropped, and comes before what the same caller does next.
        let (in_task, is_empty) = (row.task.is_some(), row.entries.is_empty());
        let command = on_behalf(caller, row);
        if is_empty {
            self.engine.note(command);
        } else if in_task {
            self.engine.submit(command).await?;
        } else {
            self.engine.hand_over(command).await;
        }
        Ok(())
    }

    /// Hands over what a caller has read that is no answer, or is not to be counted as one: whoever has
    /// read something has not found it out.
    pub(super) async fn note_read(&self, caller: Caller, entries: Vec<EntryId>) {
        if !entries.is_empty() {
            let row = served(caller, &[], Duration::ZERO);
            let row = ServedRow { entries, is_unrecorded: true, ..row };
            self.engine.hand_over(on_behalf(caller, row)).await;
        }
    }
}

fn on_behalf(caller: Caller, row: ServedRow) -> Command {
    Command::As { caller: caller.into(), command: Box::new(Command::Served(row)) }
}
