//! Which entries were served to which session and client process: what a confirmation from there is
//! worth follows.
//!
//! Local: nothing here is ever sent. A session is kept as a hash of the id it gave itself, a client
//! process as a hash of its identity. Both tables are bounded: the recipients that were served longest
//! ago go first, and one that was served too many entries counts as served them all.

use super::batch::Batch;
use super::client_process::ClientId;
use super::error::Error;
use super::label::Label;
use super::read;
use super::rows;
use super::tables::{
    PRIMED, PRIMED_ROWS_MAX, SESSION_ENTRIES_MAX, SESSIONS, SESSIONS_MAX, key, part, span,
};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use redb::{ReadableTable, ReadableTableMetadata};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What is known of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionRow {
    /// When it was last served.
    #[serde(rename = "t")]
    pub at: WallTime,
    /// How many entries are noted as served to it.
    #[serde(rename = "n")]
    pub entries: u32,
}

/// The key under which it is kept that a session, or a client process, was served entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Recipient([u8; 16]);

impl Recipient {
    /// A session, by the name it gave itself.
    pub(crate) fn session(session: &Label) -> Self {
        Self::hashed("klnode session v1", session.as_str().as_bytes())
    }

    /// A client process, for entries served to callers of which it is the nearest client.
    pub(crate) fn client(client: ClientId) -> Self {
        Self::hashed("klnode served client v1", client.as_bytes())
    }

    /// A client process, for entries served to any caller below it.
    pub(crate) fn below_client(client: ClientId) -> Self {
        Self::hashed("klnode served below client v1", client.as_bytes())
    }

    fn hashed(context: &str, bytes: &[u8]) -> Self {
        Self(part(&blake3::derive_key(context, bytes), 0))
    }
}

impl Batch {
    /// Notes that a recipient was served these entries.
    pub(crate) fn prime(
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
        sessions.insert(&session, rows::encode(&row).as_slice())?;
        drop(sessions);
        self.evict_sessions(SESSIONS_MAX, PRIMED_ROWS_MAX)
    }

    /// Whether a recipient was served an entry; in doubt it was.
    pub(crate) fn is_primed(&self, recipient: Recipient, entry: EntryId) -> Result<bool, Error> {
        let session = recipient.0;
        let is_full = |row: SessionRow| row.entries >= SESSION_ENTRIES_MAX;
        if self.session(&session)?.is_some_and(is_full) {
            return Ok(true);
        }
        let primed = self.transaction.open_table(PRIMED)?;
        Ok(primed.get(&key::<32>(&[&session, entry.as_bytes()]))?.is_some())
    }

    fn session(&self, session: &[u8; 16]) -> Result<Option<SessionRow>, Error> {
        read::row("sessions", &self.transaction.open_table(SESSIONS)?, session)
    }

    /// Lets the tenth of the sessions go that were served longest ago, as often as there are too
    /// many, or too many rows of them.
    fn evict_sessions(&self, sessions_max: u64, rows_max: u64) -> Result<(), Error> {
        let mut sessions = self.transaction.open_table(SESSIONS)?;
        let mut primed = self.transaction.open_table(PRIMED)?;
        while sessions.len()? > 1 && (sessions.len()? > sessions_max || primed.len()? > rows_max) {
            let mut oldest_first = Vec::new();
            for row in sessions.iter()? {
                let (session, row) = row?;
                let row: SessionRow = rows::decode("sessions", row.value())?;
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

    /// No session remembers forgotten entries. Returns how many rows were looked at.
    pub(super) fn forget_primed(&self, gone: &BTreeSet<EntryId>) -> Result<u64, Error> {
        let mut primed = self.transaction.open_table(PRIMED)?;
        let looked = primed.len()?;
        primed.retain(|at, _| !gone.contains(&EntryId::from_bytes(part(at, 16))))?;
        Ok(looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, Store};

    fn entry(byte: u8) -> EntryId {
        EntryId::from_bytes([byte; 16])
    }

    #[test]
    fn the_sessions_that_were_served_longest_ago_go_first() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let session =
            |number: u64| Recipient::session(&Label::parse(&format!("session-{number}")).unwrap());
        for number in 0..20 {
            let now = WallTime::from_millis(1_000 + number);
            batch.prime(session(number), &[entry(1), entry(2)], now).unwrap();
        }
        batch.evict_sessions(18, 1_000).unwrap();
        for number in 0..20 {
            let is_primed = batch.is_primed(session(number), entry(1)).unwrap();
            assert_eq!(is_primed, number >= 2, "{number}");
        }
        batch.evict_sessions(1_000, 10).unwrap();
        assert!(!batch.is_primed(session(12), entry(2)).unwrap(), "rows are bounded, too");
        assert!(batch.is_primed(session(19), entry(2)).unwrap());
        batch.forget_primed(&[entry(2)].into()).unwrap();
        assert!(!batch.is_primed(session(19), entry(2)).unwrap());
        assert!(batch.is_primed(session(19), entry(1)).unwrap());
    }

    #[test]
    fn a_session_that_was_served_too_much_counts_as_served_everything() {
        let store = Store::in_memory();
        let batch = store.batch(Durability::Durable).unwrap();
        let session = Recipient::session(&Label::parse("greedy").unwrap());
        let served: Vec<EntryId> = (0..SESSION_ENTRIES_MAX)
            .map(|number| {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&number.to_be_bytes());
                EntryId::from_bytes(bytes)
            })
            .collect();
        batch.prime(session, &served[1..], WallTime::from_millis(1)).unwrap();
        assert!(!batch.is_primed(session, entry(0xEE)).unwrap());
        batch.prime(session, &served[..1], WallTime::from_millis(2)).unwrap();
        assert!(batch.is_primed(session, entry(0xEE)).unwrap());
    }
}
