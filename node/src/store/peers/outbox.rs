//! Outboxes: what each peer may read, in numbered rows.
//!
//! A record stands once in an outbox. If it is wanted again it moves to the end, so that a peer which
//! reads on meets it. So does the word that a release was opened, and the word that it has ended.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::tables::{DIGESTS, HEADS, OUTGOING, QUEUED, STRETCHES, key, part, span};
use super::rows::{QueuedRow, outgoing_bytes};
use klnode_crdt::ids::{AuthorId, Boot, Digest};
use klnode_federation::proto::Outgoing;
use redb::ReadableTable;

impl Batch {
    /// Puts a record at the end of a peer's outbox: once, unless it is wanted `again`.
    pub(crate) fn queue(
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
            if is_brought { Outgoing::Returned(digest) } else { Outgoing::Record(digest) };
        self.append(peer, outgoing, boot)?;
        let row = QueuedRow { is_brought, position: Some(self.outbox_head(peer)?) };
        queued.insert(&at, &row.to_bytes())?;
        Ok(())
    }

    /// Puts a record at the end of a peer's outbox once more, if it is held.
    pub(crate) fn requeue(&self, peer: AuthorId, digest: Digest, boot: Boot) -> Result<(), Error> {
        let is_held = self.transaction.open_table(DIGESTS)?.get(digest.as_bytes())?.is_some();
        if is_held { self.queue(peer, digest, true, boot) } else { Ok(()) }
    }

    /// Puts a row at the end of a peer's outbox in the place of an older one that says the same; where it
    /// stands then.
    pub(super) fn say_again(
        &self,
        peer: AuthorId,
        row: Outgoing,
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

    /// Positions are given out once and never again, also when the last row has gone.
    pub(crate) fn append(&self, peer: AuthorId, row: Outgoing, boot: Boot) -> Result<(), Error> {
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

    /// A record that is gone is nobody's to fetch.
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

    /// The peer may have lost what it once brought: all of it is named in its outbox.
    pub(crate) fn restart_outbox(&self, peer: AuthorId, boot: Boot) -> Result<(), Error> {
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
