//! Which entries were served to which session and client process. This decides how a confirmation
//! by them counts.
//!
//! All of this is local and never sent. A session is stored as a hash of the id it chose, a client
//! process as a hash of its identity. Both tables are bounded: the recipients served longest ago
//! are removed first, and a recipient that was served too many entries counts as served all.

use super::batch::Batch;
use super::client_process::ClientId;
use super::error::Error;
use super::row_types;
use super::shared_reads;
use super::tables::{
    PRIMED, PRIMED_ROWS_MAX, SESSION_ENTRIES_MAX, SESSIONS, SESSIONS_MAX, key, part, span,
};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_home::CallerLabel;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionRow {
    /// When it was last served.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// How many entries are stored as served to it.
    #[serde(rename = "n")]
    pub entries: u32,
}

/// Key under which servings to a session or a client process are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recipient([u8; 16]);

impl Recipient {
    /// A session, by the name it chose.
    pub fn session(session: &CallerLabel) -> Self {
        Self::hashed("klnode session v1", session.as_str().as_bytes())
    }

    /// A client process, for entries served to callers whose nearest client it is.
    pub fn client(client: ClientId) -> Self {
        Self::hashed("klnode served client v1", client.as_bytes())
    }

    /// A client process, for entries served to any caller below it.
    pub fn below_client(client: ClientId) -> Self {
        Self::hashed("klnode served below client v1", client.as_bytes())
    }

    fn hashed(context: &str, bytes: &[u8]) -> Self {
        Self(part(&blake3::derive_key(context, bytes), 0))
    }
}

impl Batch {
    /// Notes that a recipient was served these entries.
    pub fn mark_served(
        &self,
        recipient: Recipient,
        entries: &[EntryId],
        now: WallTime,
    ) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let session = recipient.0;
        let mut row = self.session(&session)?.unwrap_or_default();
        row.at = row.at.max(now);
        let mut primed = self.transaction.open_table(PRIMED)?;
        for entry in entries {
            let at = key::<32>(&[&session, entry.as_bytes()]);
            if row.entries >= SESSION_ENTRIES_MAX || primed.get(&at)?.is_some() {
                continue;
            }
            primed.insert(&at, &now.as_millis().to_be_bytes())?;
            row.entries += 1;
        }
        drop(primed);
        let mut sessions = self.transaction.open_table(SESSIONS)?;
        sessions.insert(&session, row_types::encode(&row).as_slice())?;
        drop(sessions);
        self.evict_sessions(SESSIONS_MAX, PRIMED_ROWS_MAX)
    }

    /// Whether a recipient was served an entry; true in case of doubt.
    pub fn is_primed(&self, recipient: Recipient, entry: EntryId) -> Result<bool, Error> {
        let session = recipient.0;
        let is_full = |row: SessionRow| row.entries >= SESSION_ENTRIES_MAX;
        if self.session(&session)?.is_some_and(is_full) {
            return Ok(true);
        }
        let primed = self.transaction.open_table(PRIMED)?;
        Ok(primed.get(&key::<32>(&[&session, entry.as_bytes()]))?.is_some())
    }

    fn session(&self, session: &[u8; 16]) -> Result<Option<SessionRow>, Error> {
        shared_reads::row("sessions", &self.transaction.open_table(SESSIONS)?, session)
    }

    /// Removes the tenth of the sessions served longest ago, repeatedly while there are too many
    /// sessions or too many rows.
    fn evict_sessions(&self, sessions_max: u64, rows_max: u64) -> Result<(), Error> {
        let mut sessions = self.transaction.open_table(SESSIONS)?;
        let mut primed = self.transaction.open_table(PRIMED)?;
        while sessions.len()? > 1 && (sessions.len()? > sessions_max || primed.len()? > rows_max) {
            let mut oldest_first = Vec::new();
            for row in sessions.iter()? {
                let (session, row) = row?;
                let row: SessionRow = row_types::decode("sessions", row.value())?;
                oldest_first.push((row.at, *session.value()));
            }
            oldest_first.sort_unstable();
            for (_, session) in oldest_first.iter().take(oldest_first.len().div_ceil(10)) {
                sessions.remove(session)?;
                let (first, last) = span::<32>(session);
                primed.retain_in::<&[u8; 32], _>(&first..=&last, |_, _| false)?;
            }
        }
        Ok(())
    }

    /// Removes forgotten entries from all sessions. Returns the number of scanned rows.
    pub(super) fn forget_primed(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut primed = self.transaction.open_table(PRIMED)?;
        let scanned = primed.len()?;
        primed.retain(|at, _| !gone.contains(&EntryId::from_bytes(part(at, 16))))?;
        Ok(scanned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};

    fn entry(byte: u8) -> EntryId {
        EntryId::from_bytes([byte; 16])
    }

    #[test]
    fn the_sessions_served_longest_ago_are_removed_first() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let session = |number: u64| {
            Recipient::session(&CallerLabel::parse(&format!("session-{number}")).unwrap())
        };
        for number in 0..20 {
            let now = WallTime::from_millis(1_000 + number);
            batch.mark_served(session(number), &[entry(1), entry(2)], now).unwrap();
        }
        batch.evict_sessions(18, 1_000).unwrap();
        for number in 0..20 {
            let is_primed = batch.is_primed(session(number), entry(1)).unwrap();
            assert_eq!(is_primed, number >= 2, "{number}");
        }
        batch.evict_sessions(1_000, 10).unwrap();
        assert!(
            !batch.is_primed(session(12), entry(2)).unwrap(),
            "the number of rows is bounded too"
        );
        assert!(batch.is_primed(session(19), entry(2)).unwrap());
        batch.forget_primed(&[entry(2)].into()).unwrap();
        assert!(!batch.is_primed(session(19), entry(2)).unwrap());
        assert!(batch.is_primed(session(19), entry(1)).unwrap());
    }

    #[test]
    fn a_session_served_too_many_entries_counts_as_served_all() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let session = Recipient::session(&CallerLabel::parse("greedy").unwrap());
        let served: Vec<EntryId> = (0..SESSION_ENTRIES_MAX)
            .map(|number| {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&number.to_be_bytes());
                EntryId::from_bytes(bytes)
            })
            .collect();
        batch.mark_served(session, &served[1..], WallTime::from_millis(1)).unwrap();
        assert!(!batch.is_primed(session, entry(0xEE)).unwrap());
        batch.mark_served(session, &served[..1], WallTime::from_millis(2)).unwrap();
        assert!(batch.is_primed(session, entry(0xEE)).unwrap());
    }
}
