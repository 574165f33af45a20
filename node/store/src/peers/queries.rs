//! Queries about peers on a snapshot.

use super::super::IntegrityReport;
use super::super::error::Error;
use super::super::row_types::{self, QuarantineRow};
use super::super::shared_reads;
use super::super::snapshot::Snapshot;
use super::super::tables::{
    CURSORS, DISTANCES, HEADS, HeldKey, INVITATIONS, OUTCOMES, OUTGOING, OWED, PEERS, QUARANTINE,
    QUEUED, RECEIPTS, REFUSALS, STRETCHES, WORKSPACES, key, part, span,
};
use super::row_types::{
    FeedCursor, OutcomeRow, PeerRow, QueuedRow, ReceiptRow, RefusalRow, ReleaseRow, WorkspaceRow,
    offerer_key, outgoing,
};
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::{Offerer, OutboxTarget};
use redb::ReadableTable;
use std::collections::BTreeSet;

impl Snapshot {
    /// How far a consumer has read.
    pub fn cursor(&self, consumer: AuthorId) -> Result<Option<FeedCursor>, Error> {
        let table = self.transaction.open_table(CURSORS)?;
        Ok(table.get(consumer.as_bytes())?.map(|row| FeedCursor::from_bytes(row.value())))
    }

    /// The row of another node.
    pub fn peer(&self, peer: AuthorId) -> Result<Option<PeerRow>, Error> {
        shared_reads::row("peers", &self.transaction.open_table(PEERS)?, peer.as_bytes())
    }

    /// All known other nodes, by key.
    pub fn peers(&self) -> Result<Vec<(AuthorId, PeerRow)>, Error> {
        let table = self.transaction.open_table(PEERS)?;
        let rows = table.iter()?.map(|row| {
            let (peer, row) = row?;
            Ok((AuthorId::from_bytes(*peer.value()), row_types::decode("peers", row.value())?))
        });
        rows.collect()
    }

    /// All workspaces with a local name, by id.
    pub fn workspaces(&self) -> Result<Vec<(WorkspaceId, WorkspaceRow)>, Error> {
        let table = self.transaction.open_table(WORKSPACES)?;
        let rows = table.iter()?.map(|row| {
            let (id, row) = row?;
            Ok((
                WorkspaceId::from_bytes(*id.value()),
                row_types::decode("workspaces", row.value())?,
            ))
        });
        rows.collect()
    }

    /// The invitation ticket with this name.
    pub fn invitation(&self, name: [u8; 16]) -> Result<Option<Invitation>, Error> {
        shared_reads::row("invitations", &self.transaction.open_table(INVITATIONS)?, &name)
    }

    /// All stored tickets of this node; unreadable ones are skipped.
    pub fn invitations(&self) -> Result<Vec<Invitation>, Error> {
        let table = self.transaction.open_table(INVITATIONS)?;
        let mut all = Vec::new();
        for row in table.iter()? {
            let (_, row) = row?;
            all.extend(Error::unless_damaged(row_types::decode("invitations", row.value()))?);
        }
        Ok(all)
    }

    /// The distances of an author that peers have stated.
    pub fn distances(&self, author: AuthorId) -> Result<Vec<(AuthorId, u8)>, Error> {
        let (first, last) = span::<64>(author.as_bytes());
        let table = self.transaction.open_table(DISTANCES)?;
        let rows = table.range::<&[u8; 64]>(&first..=&last)?.map(|row| {
            let (at, hop) = row?;
            Ok((AuthorId::from_bytes(part(at.value(), 32)), hop.value()))
        });
        rows.collect()
    }

    /// The outcomes of an author's texts on this node, in order of arrival; damaged rows are
    /// skipped.
    pub fn outcomes(&self, author: AuthorId) -> Result<Vec<OutcomeRow>, Error> {
        let (first, last) = span::<40>(author.as_bytes());
        let table = self.transaction.open_table(OUTCOMES)?;
        let mut outcomes = Vec::new();
        for row in table.range::<&[u8; 40]>(&first..=&last)? {
            outcomes.extend(Error::unless_damaged(row_types::decode("outcomes", row?.1.value()))?);
        }
        Ok(outcomes)
    }

    /// The number of an author's newest outcome. Numbers are never reused, and every change of the
    /// author's outcomes raises this number.
    pub fn last_outcome(&self, author: AuthorId) -> Result<Option<u64>, Error> {
        let (first, last) = span::<40>(author.as_bytes());
        let table = self.transaction.open_table(OUTCOMES)?;
        let newest = table.range::<&[u8; 40]>(&first..=&last)?.next_back().transpose()?;
        Ok(newest.map(|(at, _)| u64::from_be_bytes(part(at.value(), 32))))
    }

    /// The release of an entry between this node and a peer.
    pub fn release(&self, peer: AuthorId, entry: EntryId) -> Result<ReleaseRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        Ok(shared_reads::row("releases", self.release_rows()?, &at)?.unwrap_or_default())
    }

    /// All entries that are or were released between this node and a peer.
    pub fn releases(
        &self,
        peer: AuthorId,
    ) -> Result<impl Iterator<Item = Result<(EntryId, ReleaseRow), Error>> + use<>, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let rows = self.release_rows()?.range::<&[u8; 48]>(&first..=&last)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            Ok((
                EntryId::from_bytes(part(at.value(), 32)),
                row_types::decode("releases", row.value())?,
            ))
        }))
    }

    /// The last position of a peer's outbox.
    pub fn outbox_head(&self, peer: AuthorId) -> Result<u64, Error> {
        let heads = self.transaction.open_table(HEADS)?;
        Ok(heads.get(peer.as_bytes())?.map_or(0, |head| u64::from_be_bytes(*head.value())))
    }

    /// A peer's outbox after a position, in order.
    pub fn outbox(
        &self,
        peer: AuthorId,
        after: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, OutboxTarget), Error>> + use<>, Error> {
        let first = key(&[peer.as_bytes(), &after.saturating_add(1).to_be_bytes()]);
        let (_, last) = span::<40>(peer.as_bytes());
        let rows = self.transaction.open_table(OUTGOING)?.range::<&[u8; 40]>(&first..=&last)?;
        Ok(rows.filter_map(|row| {
            let (at, row) = match row {
                Ok(row) => row,
                Err(error) => return Some(Err(error.into())),
            };
            let position = u64::from_be_bytes(part(at.value(), 32));
            outgoing(row.value()).map(|row| Ok((position, row)))
        }))
    }

    /// The process start that assigned a position of a peer's outbox; `None` if it was never
    /// assigned.
    pub fn outbox_epoch(&self, peer: AuthorId, position: u64) -> Result<Option<Boot>, Error> {
        if position > self.outbox_head(peer)? {
            return Ok(None);
        }
        let (first, _) = span::<40>(peer.as_bytes());
        let last = key::<40>(&[peer.as_bytes(), &position.to_be_bytes()]);
        let stretches = self.transaction.open_table(STRETCHES)?;
        let newest = stretches.range::<&[u8; 40]>(&first..=&last)?.next_back().transpose()?;
        Ok(newest.map(|(_, boot)| Boot(u64::from_be_bytes(*boot.value()))))
    }

    /// Whether a peer has delivered a record.
    pub fn has_brought(&self, peer: AuthorId, digest: Digest) -> Result<bool, Error> {
        let at = key::<64>(&[peer.as_bytes(), digest.as_bytes()]);
        let row = self.transaction.open_table(QUEUED)?.get(&at)?;
        Ok(row.is_some_and(|row| QueuedRow::from_bytes(*row.value()).is_brought))
    }

    /// The refusal of a slot in an offer.
    pub fn refusal(&self, offer: Offerer, slot: [u8; 16]) -> Result<Option<RefusalRow>, Error> {
        let at = key::<32>(&[&offerer_key(offer), &slot]);
        shared_reads::row("refusals", &self.transaction.open_table(REFUSALS)?, &at)
    }

    /// All refused headers of an offer.
    pub fn refusals(
        &self,
        offer: Offerer,
    ) -> Result<impl Iterator<Item = Result<RefusalRow, Error>> + use<>, Error> {
        let (first, last) = span::<32>(&offerer_key(offer));
        let rows = self.transaction.open_table(REFUSALS)?.range::<&[u8; 32]>(&first..=&last)?;
        Ok(rows.map(|row| row_types::decode("refusals", row?.1.value())))
    }

    /// The erasure receipt of a peer for a forgotten entry.
    pub fn receipt(&self, peer: AuthorId, entry: EntryId) -> Result<Option<ReceiptRow>, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        shared_reads::row("receipts", &self.transaction.open_table(RECEIPTS)?, &at)
    }

    /// Forgotten entries for which a peer is owed a receipt, at most `max`.
    pub fn receipts_due(&self, peer: AuthorId, max: usize) -> Result<Vec<EntryId>, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let rows = self.transaction.open_table(OWED)?.range::<&[u8; 48]>(&first..=&last)?;
        rows.take(max).map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 32)))).collect()
    }

    /// Whether only a tombstone is left of an entry.
    pub fn is_forgotten(&self, entry: EntryId) -> Result<bool, Error> {
        Ok(self.tombstones()?.get(entry.as_bytes())?.is_some())
    }

    /// All live records of an entry, including its tombstone.
    pub fn entry_records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        Ok(self.places(entry)?.into_iter().map(|(_, record)| record).collect())
    }

    /// The headers of an author's intact records on an entry.
    pub fn whole_headers_of(
        &self,
        entry: EntryId,
        author: AuthorId,
    ) -> Result<Vec<SignedHeader>, Error> {
        let prefix = key::<48>(&[entry.as_bytes(), author.as_bytes()]);
        shared_reads::headers_under(self.held()?, self.records()?, &prefix)
    }

    /// The stored size of an entry's records. No record is decoded.
    pub fn entry_bytes(&self, entry: EntryId) -> Result<u64, Error> {
        let records = self.records()?;
        let mut bytes = 0;
        for place in shared_reads::places_of(self.held()?, entry.as_bytes())? {
            let (seq, _) = place?;
            let row = records.get(&seq.0.to_be_bytes())?;
            bytes += row.map_or(0, |row| row.value().len() as u64);
        }
        Ok(bytes)
    }

    /// The digests of all quarantined records.
    pub fn quarantined_digests(&self) -> Result<BTreeSet<Digest>, Error> {
        let rows = self.transaction.open_table(QUARANTINE)?.range::<&HeldKey>(..)?;
        rows.map(|row| Ok(Digest::from_bytes(part(row?.0.value(), 49)))).collect()
    }

    /// Headers of the quarantined records that a peer delivered. Others are not read, since the
    /// peer may never have had them.
    pub fn quarantine_of(&self, peer: AuthorId) -> Result<Vec<SignedHeader>, Error> {
        let mut brought = Vec::new();
        for row in self.transaction.open_table(QUARANTINE)?.range::<&HeldKey>(..)? {
            let (at, row) = row?;
            if self.has_brought(peer, Digest::from_bytes(part(at.value(), 49)))? {
                let row: QuarantineRow = row_types::decode("quarantine", row.value())?;
                let signed = Record::header_back(&row.record);
                brought.push(signed.map_err(|error| Error::damaged("quarantine", &error))?);
            }
        }
        Ok(brought)
    }

    /// Checks that the outboxes agree with the table `queued`.
    pub(crate) fn check_outboxes(&self, found: &mut IntegrityReport) -> Result<(), Error> {
        let queued = self.transaction.open_table(QUEUED)?;
        for row in self.transaction.open_table(OUTGOING)?.iter()? {
            let (at, row) = row?;
            let Some(row) = outgoing(row.value()) else { continue };
            let (OutboxTarget::Record(digest) | OutboxTarget::Returned(digest)) = row else {
                continue;
            };
            let there = queued.get(&key(&[&at.value()[..32], digest.as_bytes()]))?;
            let there = there.and_then(|there| QueuedRow::from_bytes(*there.value()).position);
            if there != Some(u64::from_be_bytes(part(at.value(), 32))) {
                let damage =
                    Error::damaged("an outbox", "a record in it is missing from the queue table");
                found.note(Err(damage))?;
            }
        }
        Ok(())
    }
}
