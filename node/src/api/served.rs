//! What was served, handed to the writer: a question itself writes nothing.

use super::caller::Caller;
use super::errors::ApiError;
use super::server::Service;
use crate::engine::Command;
use crate::store::rows::{Cost, HitCost, ServedRow};
use klnode_crdt::ids::{AuthorId, EntryId};
use std::time::Duration;

/// One entry that was served: which, whose text, and at how many tokens.
pub(super) type Given = (EntryId, Option<AuthorId>, u32);

/// What was served to a caller, and what it cost.
pub(super) fn served(caller: Caller, given: &[Given], took: Duration) -> ServedRow {
    let cost = |(_, author, tokens): &Given| HitCost { author: *author, tokens: *tokens };
    let hits = given.iter().map(cost).collect();
    let millis = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
    ServedRow {
        caller: caller.to_string(),
        entries: given.iter().map(|(entry, ..)| *entry).collect(),
        client: caller.client,
        session: caller.session,
        cost: Cost { hits, millis },
        ..ServedRow::default()
    }
}

impl Service {
    /// Hands what was served to the writer.
    pub(super) async fn note_served(&self, caller: Caller, row: ServedRow) -> Result<(), ApiError> {
        // What a confirmation is worth depends on what was served in a task or to a session: that
        // must not be dropped, and comes before what the same caller does next.
        let (in_task, in_session) = (row.task.is_some(), row.session.is_some());
        let is_empty = row.entries.is_empty();
        let command = Box::new(Command::Served(row));
        let command = Command::As { caller: caller.into(), command };
        if is_empty || !(in_task || in_session) {
            self.engine.note(command);
        } else if in_task {
            self.engine.submit(command).await?;
        } else {
            self.engine.hand_over(command).await;
        }
        Ok(())
    }
}
