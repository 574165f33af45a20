//! Reading what concerns peers.

use super::super::Examined;
use super::super::error::Error;
use super::super::read;
use super::super::rows::{self, QuarantineRow};
use super::super::snapshot::Snapshot;
use super::super::tables::{
    CURSORS, DISTANCES, HEADS, HeldKey, INVITATIONS, OUTCOMES, OUTGOING, OWED, PEERS, QUARANTINE,
    QUEUED, RECEIPTS, REFUSALS, STRETCHES, WORKSPACES, key, part, span,
};
use super::rows::{
    Cursor, OutcomeRow, PeerRow, QueuedRow, ReceiptRow, RefusalRow, ReleaseRow, WorkspaceRow,
    offerer_key, outgoing,
};
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::{Offerer, Outgoing};
use redb::ReadableTable;
use std::collections::BTreeSet;

impl Snapshot {
    /// How far a consumer has read.
    pub fn cursor(&self, consumer: AuthorId) -> Result<Option<Cursor>, Error> {
        let table = self.transaction.open_table(CURSORS)?;
        Ok(table.get(consumer.as_bytes())?.map(|row| Cursor::from_bytes(row.value())))
    }

    /// What the operator decided about another node.
    pub fn peer(&self, peer: AuthorId) -> Result<Option<PeerRow>, Error> {
        read::row("peers", &self.transaction.open_table(PEERS)?, peer.as_bytes())
    }

    /// All other nodes that are known, by key.
    pub fn peers(&self) -> Result<Vec<(AuthorId, PeerRow)>, Error> {
        let table = self.transaction.open_table(PEERS)?;
        let rows = table.iter()?.map(|row| {
            let (peer, row) = row?;
            Ok((AuthorId::from_bytes(*peer.value()), rows::decode("peers", row.value())?))
        });
        rows.collect()
    }

    /// All workspaces that are known by name, by id.
    pub fn workspaces(&self) -> Result<Vec<(WorkspaceId, WorkspaceRow)>, Error> {
        let table = self.transaction.open_table(WORKSPACES)?;
        let rows = table.iter()?.map(|row| {
            let (id, row) = row?;
            Ok((WorkspaceId::from_bytes(*id.value()), rows::decode("workspaces", row.value())?))
        });
        rows.collect()
    }

    /// What a ticket is good for, by its name.
    pub fn invitation(&self, name: [u8; 16]) -> Result<Option<Invitation>, Error> {
        read::row("invitations", &self.transaction.open_table(INVITATIONS)?, &name)
    }

    /// Every ticket of this node that is kept; without those that cannot be read.
    pub fn invitations(&self) -> Result<Vec<Invitation>, Error> {
        let table = self.transaction.open_table(INVITATIONS)?;
        let mut all = Vec::new();
        for row in table.iter()? {
            let (_, row) = row?;
            all.extend(Error::unless_damaged(rows::decode("invitations", row.value()))?);
        }
        Ok(all)
    }

    /// How far an author is from each peer that says so.
    pub fn distances(&self, author: AuthorId) -> Result<Vec<(AuthorId, u8)>, Error> {
        let (first, last) = span::<64>(author.as_bytes());
        let table = self.transaction.open_table(DISTANCES)?;
        let rows = table.range::<&[u8; 64]>(&first..=&last)?.map(|row| {
            let (at, hop) = row?;
            Ok((AuthorId::from_bytes(part(at.value(), 32)), hop.value()))
        });
        rows.collect()
    }

    /// What the texts of an author led to here, in the order of arrival; without what is damaged.
    pub fn outcomes(&self, author: AuthorId) -> Result<Vec<OutcomeRow>, Error> {
        let (first, last) = span::<40>(author.as_bytes());
        let table = self.transaction.open_table(OUTCOMES)?;
        let mut outcomes = Vec::new();
        for row in table.range::<&[u8; 40]>(&first..=&last)? {
            outcomes.extend(Error::unless_damaged(rows::decode("outcomes", row?.1.value()))?);
        }
        Ok(outcomes)
    }

    /// The number of the newest outcome of an author's texts. Numbers are never given out again, and
    /// whatever changes any of these outcomes makes it a higher one.
    pub fn last_outcome(&self, author: AuthorId) -> Result<Option<u64>, Error> {
        let (first, last) = span::<40>(author.as_bytes());
        let table = self.transaction.open_table(OUTCOMES)?;
        let newest = table.range::<&[u8; 40]>(&first..=&last)?.next_back().transpose()?;
        Ok(newest.map(|(at, _)| u64::from_be_bytes(part(at.value(), 32))))
    }

    /// What passes of an entry between this node and a peer.
    pub fn release(&self, peer: AuthorId, entry: EntryId) -> Result<ReleaseRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        Ok(read::row("releases", self.release_rows()?, &at)?.unwrap_or_default())
    }

    /// Entries that pass, or have passed, between this node and a peer.
    pub fn releases(
        &self,
        peer: AuthorId,
    ) -> Result<impl Iterator<Item = Result<(EntryId, ReleaseRow), Error>> + use<>, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let rows = self.release_rows()?.range::<&[u8; 48]>(&first..=&last)?;
        Ok(rows.map(|row| {
            let (at, row) = row?;
            Ok((EntryId::from_bytes(part(at.value(), 32)), rows::decode("releases", row.value())?))
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
    ) -> Result<impl Iterator<Item = Result<(u64, Outgoing), Error>> + use<>, Error> {
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

    /// Which process start gave out a position of a peer's outbox; none if nobody did.
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

    /// Whether a peer has brought a record.
    pub fn has_brought(&self, peer: AuthorId, digest: Digest) -> Result<bool, Error> {
        let at = key::<64>(&[peer.as_bytes(), digest.as_bytes()]);
        let row = self.transaction.open_table(QUEUED)?.get(&at)?;
        Ok(row.is_some_and(|row| QueuedRow::from_bytes(*row.value()).is_brought))
    }

    /// What was refused of a slot where it was offered.
    pub fn refusal(&self, offer: Offerer, slot: [u8; 16]) -> Result<Option<RefusalRow>, Error> {
        let at = key::<32>(&[&offerer_key(offer), &slot]);
        read::row("refusals", &self.transaction.open_table(REFUSALS)?, &at)
    }

    /// Headers refused where they were offered.
    pub fn refusals(
        &self,
        offer: Offerer,
    ) -> Result<impl Iterator<Item = Result<RefusalRow, Error>> + use<>, Error> {
        let (first, last) = span::<32>(&offerer_key(offer));
        let rows = self.transaction.open_table(REFUSALS)?.range::<&[u8; 32]>(&first..=&last)?;
        Ok(rows.map(|row| rows::decode("refusals", row?.1.value())))
    }

    /// What is known between this node and a peer about a forgotten entry.
    pub fn receipt(&self, peer: AuthorId, entry: EntryId) -> Result<Option<ReceiptRow>, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        read::row("receipts", &self.transaction.open_table(RECEIPTS)?, &at)
    }

    /// Forgotten entries of which a peer is to hear.
    pub fn receipts_due(&self, peer: AuthorId, max: usize) -> Result<Vec<EntryId>, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let rows = self.transaction.open_table(OWED)?.range::<&[u8; 48]>(&first..=&last)?;
        rows.take(max).map(|row| Ok(EntryId::from_bytes(part(row?.0.value(), 32)))).collect()
    }

    /// Whether only a tombstone is left of an entry.
    pub fn is_forgotten(&self, entry: EntryId) -> Result<bool, Error> {
        Ok(self.tombstones()?.get(entry.as_bytes())?.is_some())
    }

    /// All live records of an entry, its tombstone included.
    pub fn entry_records(&self, entry: EntryId) -> Result<Vec<Record>, Error> {
        Ok(self.places(entry)?.into_iter().map(|(_, record)| record).collect())
    }

    /// The headers of what an author says of an entry, as far as it is whole.
    pub(crate) fn whole_headers_of(
        &self,
        entry: EntryId,
        author: AuthorId,
    ) -> Result<Vec<SignedHeader>, Error> {
        let prefix = key::<48>(&[entry.as_bytes(), author.as_bytes()]);
        read::headers_under(self.held()?, self.records()?, &prefix)
    }

    /// How many bytes the records of an entry take up. None of them is decoded.
    pub(crate) fn entry_bytes(&self, entry: EntryId) -> Result<u64, Error> {
        let records = self.records()?;
        let mut bytes = 0;
        for place in read::places_of(self.held()?, entry.as_bytes())? {
            let (seq, _) = place?;
            let row = records.get(&seq.0.to_be_bytes())?;
            bytes += row.map_or(0, |row| row.value().len() as u64);
        }
        Ok(bytes)
    }

    /// The names of all records that wait in quarantine.
    pub fn quarantined(&self) -> Result<BTreeSet<Digest>, Error> {
        let rows = self.transaction.open_table(QUARANTINE)?.range::<&HeldKey>(..)?;
        rows.map(|row| Ok(Digest::from_bytes(part(row?.0.value(), 49)))).collect()
    }

    /// Headers of the records that wait in quarantine and that a peer has brought. Whoever has not
    /// brought one may never have had it: it is not read.
    pub fn quarantine_of(&self, peer: AuthorId) -> Result<Vec<SignedHeader>, Error> {
        let mut brought = Vec::new();
        for row in self.transaction.open_table(QUARANTINE)?.range::<&HeldKey>(..)? {
            let (at, row) = row?;
            if self.has_brought(peer, Digest::from_bytes(part(at.value(), 49)))? {
                let row: QuarantineRow = rows::decode("quarantine", row.value())?;
                let signed = Record::header_back(&row.record);
                brought.push(signed.map_err(|error| Error::damaged("quarantine", &error))?);
            }
        }
        Ok(brought)
    }

    /// Whether what stands in the outboxes is what `queued` says.
    pub(in crate::store) fn check_outboxes(&self, found: &mut Examined) -> Result<(), Error> {
        let queued = self.transaction.open_table(QUEUED)?;
        for row in self.transaction.open_table(OUTGOING)?.iter()? {
            let (at, row) = row?;
            let Some(row) = outgoing(row.value()) else { continue };
            let (Outgoing::Record(digest) | Outgoing::Returned(digest)) = row else { continue };
            let there = queued.get(&key(&[&at.value()[..32], digest.as_bytes()]))?;
            let there = there.and_then(|there| QueuedRow::from_bytes(*there.value()).position);
            if there != Some(u64::from_be_bytes(part(at.value(), 32))) {
                let damage = Error::damaged("an outbox", "a record is queued in it unnoticed");
                found.note(Err(damage))?;
            }
        }
        Ok(())
    }
}
