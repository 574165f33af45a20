//! Outboxes: the numbered rows that each peer may read.
//!
//! A record is in an outbox at most once. If it is wanted again it moves to the end, so that a peer
//! that reads on meets it. The notices that a release was opened or has ended move likewise.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::tables::{DIGESTS, HEADS, OUTGOING, QUEUED, STRETCHES, key, part, span};
use super::row_types::{QueuedRow, outgoing_bytes};
use klnode_crdt::ids::{AuthorId, Boot, Digest};
use klnode_federation::proto::OutboxTarget;
use redb::ReadableTable;

impl Batch {
    /// Appends a record to a peer's outbox, unless it is there already and not wanted `again`.
    pub fn queue(
        &self,
        peer: AuthorId,
        digest: Digest,
        again: bool,
        boot: Boot,
    ) -> Result<(), Error> {
        let at = key::<64>(&[peer.as_bytes(), digest.as_bytes()]);
        let mut queued = self.transaction.open_table(QUEUED)?;
        let held = queued.get(&at)?.map(|held| QueuedRow::from_bytes(*held.value()));
        if held.is_some() && !again {
            return Ok(());
        }
        if let Some(old) = held.and_then(|held| held.position) {
            let old = key::<40>(&[peer.as_bytes(), &old.to_be_bytes()]);
            self.transaction.open_table(OUTGOING)?.remove(&old)?;
        }
        let is_brought = held.is_some_and(|held| held.is_brought);
        let outgoing =
            if is_brought { OutboxTarget::Returned(digest) } else { OutboxTarget::Record(digest) };
        self.append(peer, outgoing, boot)?;
        let row = QueuedRow { is_brought, position: Some(self.outbox_head(peer)?) };
        queued.insert(&at, &row.to_bytes())?;
        Ok(())
    }

    /// Whether a record has a row in a peer's outbox.
    pub(super) fn is_queued(&self, peer: AuthorId, digest: Digest) -> Result<bool, Error> {
        let at = key::<64>(&[peer.as_bytes(), digest.as_bytes()]);
        let row = self.transaction.open_table(QUEUED)?.get(&at)?.map(|row| *row.value());
        Ok(row.is_some_and(|row| QueuedRow::from_bytes(row).position.is_some()))
    }

    /// Appends a record to a peer's outbox once more, if it is stored.
    pub fn requeue(&self, peer: AuthorId, digest: Digest, boot: Boot) -> Result<(), Error> {
        let is_held = self.transaction.open_table(DIGESTS)?.get(digest.as_bytes())?.is_some();
        if is_held { self.queue(peer, digest, true, boot) } else { Ok(()) }
    }

    /// Appends a row to a peer's outbox in place of an older one with the same content. Returns its
    /// position.
    pub(super) fn move_to_end(
        &self,
        peer: AuthorId,
        row: OutboxTarget,
        before: Option<u64>,
        boot: Boot,
    ) -> Result<u64, Error> {
        if let Some(before) = before {
            let old = key::<40>(&[peer.as_bytes(), &before.to_be_bytes()]);
            self.transaction.open_table(OUTGOING)?.remove(&old)?;
        }
        self.append(peer, row, boot)?;
        self.outbox_head(peer)
    }

    fn outbox_head(&self, peer: AuthorId) -> Result<u64, Error> {
        let heads = self.transaction.open_table(HEADS)?;
        Ok(heads.get(peer.as_bytes())?.map_or(0, |head| u64::from_be_bytes(*head.value())))
    }

    /// Appends a row. Positions are never reused, even after the last row was removed.
    pub fn append(&self, peer: AuthorId, row: OutboxTarget, boot: Boot) -> Result<(), Error> {
        let position = self.outbox_head(peer)? + 1;
        let at = key::<40>(&[peer.as_bytes(), &position.to_be_bytes()]);
        self.transaction.open_table(HEADS)?.insert(peer.as_bytes(), &position.to_be_bytes())?;
        self.transaction.open_table(OUTGOING)?.insert(&at, &outgoing_bytes(row))?;
        let mut stretches = self.transaction.open_table(STRETCHES)?;
        let (first, last) = span::<40>(peer.as_bytes());
        let newest = stretches.range::<&[u8; 40]>(&first..=&last)?.next_back().transpose()?;
        if newest.is_none_or(|(_, of)| *of.value() != boot.0.to_be_bytes()) {
            stretches.insert(&at, &boot.0.to_be_bytes())?;
        }
        Ok(())
    }

    /// Removes a dropped record from all outboxes.
    pub(crate) fn unqueue(&self, digest: &[u8; 32]) -> Result<(), Error> {
        let peers = self.peers()?;
        let mut queued = self.transaction.open_table(QUEUED)?;
        let mut outgoing = self.transaction.open_table(OUTGOING)?;
        for peer in peers {
            let at = key::<64>(&[peer.as_bytes(), digest]);
            let row = queued.remove(&at)?.map(|row| QueuedRow::from_bytes(*row.value()));
            if let Some(position) = row.and_then(|row| row.position) {
                outgoing.remove(&key::<40>(&[peer.as_bytes(), &position.to_be_bytes()]))?;
            }
        }
        Ok(())
    }

    /// Queues all records that a peer once delivered, since it may have lost them.
    pub fn restart_outbox(&self, peer: AuthorId, boot: Boot) -> Result<(), Error> {
        let (first, last) = span::<64>(peer.as_bytes());
        let queued = self.transaction.open_table(QUEUED)?;
        let mut brought = Vec::new();
        for row in queued.range::<&[u8; 64]>(&first..=&last)? {
            let (at, row) = row?;
            if QueuedRow::from_bytes(*row.value()).position.is_none() {
                brought.push(Digest::from_bytes(part(at.value(), 32)));
            }
        }
        drop(queued);
        brought.into_iter().try_for_each(|digest| self.queue(peer, digest, true, boot))
    }
}
