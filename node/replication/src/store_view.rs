//! The store as the protocol reads it.

use super::peer_holdings::in_place;
use super::release_policy::hop;
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, WorkspaceId};
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::time::WallTime;
use klnode_crdt::tombstone::TombstoneRank;
use klnode_engine::{
    REMOVED, is_private_to_owner, is_retraction_or_tombstone, receives_removals,
    workspace_of_erased,
};
use klnode_federation::proto::limits::ROW_BYTES;
use klnode_federation::proto::message::{ErasureReceipt, OutboxCursor};
use klnode_federation::proto::{
    ComparedRecord, Offerer, OutboxTarget, StoreAccess, StoreUnavailable,
};
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::{RefusalRow, ReleaseRow, ReleaseState};
use klnode_store::{Error, Snapshot};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One snapshot, read for peers.
pub(super) struct StoreView {
    pub(super) snapshot: Snapshot,
    pub(super) membership: Arc<Membership>,
    pub(super) store: StoreId,
    pub(super) now: WallTime,
    /// Peers that are told to retry later, because their releases are being examined.
    pub(super) held: BTreeSet<AuthorId>,
    /// Workspaces of which a peer is served nothing, because it was removed from them.
    pub(super) lost: BTreeMap<AuthorId, BTreeSet<WorkspaceId>>,
    /// Cache: the digests refused from one offerer.
    pub(super) refused: OnceCell<(Offerer, BTreeSet<Digest>)>,
    /// Cache: the digests in quarantine.
    pub(super) waiting: OnceCell<BTreeSet<Digest>>,
}

/// The signed headers of records, by entry.
type HeadersByEntry = BTreeMap<EntryId, Vec<SignedHeader>>;

/// The refused records of a peer, by entry.
type RefusedByEntry = BTreeMap<EntryId, Vec<RefusedRecord>>;

/// A record that this node refused from a peer.
struct RefusedRecord {
    signed: SignedHeader,
    /// Whether the record was refused because its author was removed. Of tombstones, these are the
    /// ones by an admin's grant.
    is_removed: bool,
}

impl RefusedRecord {
    /// The rank of the record if it is a tombstone.
    fn tombstone_rank(&self) -> TombstoneRank {
        TombstoneRank { is_by_grant: self.is_removed, digest: self.signed.digest() }
    }
}

impl StoreView {
    /// Fails for a peer that has to retry later.
    fn admit(&self, peer: AuthorId) -> Result<(), StoreUnavailable> {
        if self.held.contains(&peer) { Err(StoreUnavailable) } else { Ok(()) }
    }

    /// The stored records of an entry, without damaged ones.
    pub(super) fn here(&self, entry: EntryId) -> Result<Entry, Error> {
        match Error::unless_damaged(self.snapshot.entry(entry))? {
            Some(held) => Ok(held.to_entry()),
            None => Ok(Entry::assemble(self.snapshot.whole_records(entry)?.iter())),
        }
    }

    /// True if a record is released to a peer.
    fn may_have(&self, peer: AuthorId, record: &Record) -> Result<bool, Error> {
        let row = self.snapshot.release(peer, record.entry())?;
        let is_own = record.author() == peer && row.has_passed();
        if is_own || (is_retraction_or_tombstone(record) && self.may_learn_of(peer, record, row)?) {
            return Ok(true);
        }
        Ok(row.out == ReleaseState::Open && !self.is_lost(peer, record.entry())?)
    }

    /// True if a peer may learn of a retraction or tombstone.
    fn may_learn_of(
        &self,
        peer: AuthorId,
        record: &Record,
        row: ReleaseRow,
    ) -> Result<bool, Error> {
        // In most cases the entry was released once, and its workspace does not matter.
        if row.out != ReleaseState::Never {
            return Ok(true);
        }
        let held = Error::unless_damaged(self.snapshot.view_row(record.entry()))?.flatten();
        Ok(receives_removals(
            row,
            is_private_to_owner(
                workspace_of_erased(held.as_ref(), record),
                self.membership.mine.contains(&peer),
            ),
        ))
    }

    /// True if a peer may not have a record, judging by its header; then the payload is not read.
    /// Retractions and tombstones are decided by their contents.
    fn is_withheld(&self, peer: AuthorId, digest: Digest) -> Result<bool, Error> {
        let header = Error::unless_damaged(self.snapshot.header_of(digest))?.flatten();
        let Some(signed) = header else { return Ok(true) };
        let at = signed.header();
        if at.facet.is_retraction_or_tombstone() {
            return Ok(false);
        }
        let row = self.snapshot.release(peer, at.entry)?;
        let is_own = at.author == peer && row.has_passed();
        Ok(!is_own && row.out != ReleaseState::Open)
    }

    /// True if a peer was just removed from the workspace of an entry. Its releases are ended one
    /// by one; any admin may have removed it, so entries of other workspaces are served as before.
    fn is_lost(&self, peer: AuthorId, entry: EntryId) -> Result<bool, Error> {
        let Some(lost) = self.lost.get(&peer) else { return Ok(false) };
        Ok(self.workspace_of(entry)?.is_none_or(|workspace| lost.contains(&workspace)))
    }

    /// True if an entry stays on this person's nodes and a peer was never involved with it.
    pub(super) fn stays_here(&self, peer: AuthorId, entry: EntryId) -> Result<bool, Error> {
        let is_private =
            is_private_to_owner(self.workspace_of(entry)?, self.membership.mine.contains(&peer));
        Ok(is_private && !self.snapshot.release(peer, entry)?.has_passed())
    }

    /// The distance of an author from this node.
    fn hop_of(&self, author: AuthorId) -> Result<u8, Error> {
        Ok(hop(&self.snapshot, &self.membership, author)?.unwrap_or(u8::MAX))
    }

    /// The refusals for an offerer whose reason still applies.
    fn refusals(
        &self,
        offer: Offerer,
    ) -> Result<impl Iterator<Item = Result<RefusalRow, Error>>, Error> {
        let stands = move |row: RefusalRow| {
            let is_known = self.is_known_since(offer.peer, &row);
            is_known.map(|is_known| (!is_known).then_some(row))
        };
        let rows = self.snapshot.refusals(offer)?;
        Ok(rows.filter_map(move |row| row.and_then(stands).transpose()))
    }

    /// True if a record was refused because its context was unknown and is known now. A retraction
    /// needs only its entry. Entries that stay on this person's nodes are never requested again,
    /// because the request would reveal them.
    fn is_known_since(&self, peer: AuthorId, row: &RefusalRow) -> Result<bool, Error> {
        if !row.is_unknown {
            return Ok(false);
        }
        let Ok(signed) = SignedHeader::read_back(&row.header, row.signature) else {
            return Ok(false);
        };
        let entry = signed.header().entry;
        match signed.header().facet {
            _ if self.stays_here(peer, entry)? => Ok(false),
            Facet::Retraction => Ok(self.workspace_of(entry)?.is_some()),
            _ => self.is_settled(entry),
        }
    }

    /// True if the authorised authors of an entry are known: its workspace and the workspace's
    /// owner.
    pub(super) fn is_settled(&self, entry: EntryId) -> Result<bool, Error> {
        let Some(workspace) = self.workspace_of(entry)? else { return Ok(false) };
        let shared = self.membership.workspaces.get(&workspace);
        Ok(shared.is_none_or(|shared| shared.charter.owner.is_some()))
    }

    /// The workspace of an entry, if it is known.
    fn workspace_of(&self, entry: EntryId) -> Result<Option<WorkspaceId>, Error> {
        let row = Error::unless_damaged(self.snapshot.view_row(entry))?.flatten();
        Ok(row.and_then(|row| row.workspace))
    }

    fn refused(&self, digest: Digest, offer: Offerer) -> Result<bool, Error> {
        if self.refused.get().is_none() {
            let refusals = self.refusals(offer)?;
            let digests = refusals.map(|row| Ok(row?.digest)).collect::<Result<_, Error>>()?;
            // The cell was empty, so this cannot fail.
            let _ = self.refused.set((offer, digests));
        }
        let has =
            |(of, digests): &(Offerer, BTreeSet<Digest>)| *of == offer && digests.contains(&digest);
        Ok(self.refused.get().is_some_and(has))
    }

    /// True if a record that a peer sent is in quarantine. A page names thousands of records, so
    /// the quarantine is read once for all of them.
    fn is_waiting(&self, digest: Digest, peer: AuthorId) -> Result<bool, Error> {
        if self.waiting.get().is_none() {
            let _ = self.waiting.set(self.snapshot.quarantined_digests()?);
        }
        let waits = self.waiting.get().is_some_and(|waiting| waiting.contains(&digest));
        Ok(waits && self.snapshot.has_brought(peer, digest)?)
    }

    /// True if a peer may learn that an entry was forgotten. Of a damaged tombstone, the peer
    /// learns that it exists.
    fn may_know_of_tombstone(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
    ) -> Result<bool, Error> {
        if row.out != ReleaseState::Never {
            return Ok(true);
        }
        let Some(stone) = Error::unless_damaged(self.snapshot.tombstone(entry))?.flatten() else {
            return Ok(true);
        };
        // The peer that sent the tombstone knows it already.
        let is_known = stone.author() == peer || self.snapshot.has_brought(peer, stone.digest())?;
        Ok(is_known || self.may_learn_of(peer, &stone, row)?)
    }

    /// The records of an entry that both sides should hold, and the number of rows read.
    fn shared_headers(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
    ) -> Result<(Vec<SignedHeader>, u64), Error> {
        let is_forgotten =
            self.snapshot.is_forgotten(entry)? && self.may_know_of_tombstone(peer, entry, row)?;
        // For an entry released in neither direction, this is a tombstone or nothing.
        if !row.is_open() && !is_forgotten {
            return Ok((Vec::new(), 0));
        }
        // For an entry that is not released to the peer, only its own records are read: the
        // back-off would otherwise reveal how many records of others exist.
        let mut headers = match row.out == ReleaseState::Open || is_forgotten {
            true => self.snapshot.whole_headers(entry)?,
            false => self.snapshot.whole_headers_of(entry, peer)?,
        };
        let rows = headers.iter().map(rows_of).sum();
        if !is_forgotten {
            headers.retain(|one| is_shared(one.header().author, peer, self.membership.own, row));
        }
        Ok((headers, rows))
    }

    /// Records refused from an offerer, by entry, and the number of rows read.
    fn refused_from(&self, offer: Offerer) -> Result<(RefusedByEntry, u64), Error> {
        let (mut refused, mut rows) = (RefusedByEntry::new(), 0);
        for row in self.refusals(offer)? {
            let row = row?;
            rows += 1;
            // A header of a newer version cannot be parsed: it counts as a difference.
            if let Ok(signed) = SignedHeader::read_back(&row.header, row.signature) {
                let (entry, is_removed) = (signed.header().entry, row.reason == REMOVED);
                refused.entry(entry).or_default().push(RefusedRecord { signed, is_removed });
            }
        }
        Ok((refused, rows))
    }

    /// The refused records of one entry. For a forgotten entry, only a tombstone that precedes the
    /// stored one counts, because the peer keeps that one.
    fn refused_of<'a>(
        &self,
        entry: EntryId,
        refused: &'a RefusedByEntry,
    ) -> Result<&'a [RefusedRecord], Error> {
        let Some(of_entry) = refused.get(&entry) else { return Ok(&[]) };
        match Error::unless_damaged(self.snapshot.tombstone(entry))? {
            Some(None) => Ok(of_entry),
            Some(Some(held)) => {
                let goes_before =
                    |stone: &RefusedRecord| stone.tombstone_rank() < held.tombstone_rank();
                Ok(if tombstone(of_entry).is_some_and(goes_before) { of_entry } else { &[] })
            }
            None => Ok(&[]),
        }
    }

    /// Headers of quarantined records that a peer sent, by entry.
    fn waiting(&self, peer: AuthorId) -> Result<HeadersByEntry, Error> {
        let mut waiting = HeadersByEntry::new();
        for signed in self.snapshot.quarantine_of(peer)? {
            waiting.entry(signed.header().entry).or_default().push(signed);
        }
        Ok(waiting)
    }
}

/// True if both sides should hold an author's records of an entry with these releases.
fn is_shared(author: AuthorId, peer: AuthorId, own: AuthorId, row: ReleaseRow) -> bool {
    match (row.out == ReleaseState::Open, row.back == ReleaseState::Open) {
        (true, true) => true,
        (true, false) => author == own,
        (false, true) => author == peer,
        (false, false) => false,
    }
}

/// The cost of a record in rows. Its bytes are read and not decoded, which takes a sixteenth of the
/// time.
fn rows_of(signed: &SignedHeader) -> u64 {
    let bytes = signed.bytes().len() + signed.header().payload_bytes as usize;
    1 + (bytes / (16 * ROW_BYTES)) as u64
}

fn comparable(signed: &SignedHeader) -> ComparedRecord {
    ComparedRecord { stamp: signed.header().stamp.bits(), digest: signed.digest() }
}

/// The tombstone among the refused records of an entry: the peer honours it and holds nothing else
/// of the entry.
fn tombstone(refused: &[RefusedRecord]) -> Option<&RefusedRecord> {
    let stones = refused.iter().filter(|one| one.signed.header().facet == Facet::Tombstone);
    stones.min_by_key(|one| one.tombstone_rank())
}

impl StoreAccess for StoreView {
    fn store(&self) -> StoreId {
        self.store
    }

    fn epoch(&self) -> Boot {
        self.snapshot.newest_epoch().ok().flatten().unwrap_or_default()
    }

    fn now(&self) -> WallTime {
        self.now
    }

    fn is_approved(&self, peer: AuthorId) -> bool {
        self.membership.is_approved(peer)
    }

    fn is_mine(&self, peer: AuthorId) -> bool {
        self.membership.mine.contains(&peer)
    }

    fn outbox_head(&self, peer: AuthorId) -> Result<u64, StoreUnavailable> {
        Ok(self.snapshot.outbox_head(peer)?)
    }

    fn outbox(
        &self,
        peer: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, OutboxTarget)>, StoreUnavailable> {
        self.admit(peer)?;
        let rows = self.snapshot.outbox(peer, after)?;
        Ok(rows.take(max).collect::<Result<_, Error>>()?)
    }

    fn cursor_at(
        &self,
        peer: AuthorId,
        position: u64,
    ) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        let store = self.store;
        if position == 0 {
            return Ok(Some(OutboxCursor { store, epoch: Boot(0), position }));
        }
        let epoch = self.snapshot.outbox_epoch(peer, position)?;
        Ok(epoch.map(|epoch| OutboxCursor { store, epoch, position }))
    }

    fn record(
        &self,
        peer: AuthorId,
        digest: Digest,
    ) -> Result<Option<(u8, RawRecord)>, StoreUnavailable> {
        // A damaged record counts as missing, so a peer that has it sends it again.
        let record = Error::unless_damaged(self.snapshot.record_to_send(digest))?.flatten();
        let Some(record) = record else { return Ok(None) };
        if !self.may_have(peer, &record)? {
            return Ok(None);
        }
        Ok(Some((self.hop_of(record.author())?, record.to_raw())))
    }

    fn records_for(
        &self,
        peer: AuthorId,
        digests: &[Digest],
    ) -> Result<Vec<RawRecord>, StoreUnavailable> {
        self.admit(peer)?;
        let mut found = Vec::new();
        for digest in digests {
            // A withheld record must cost the peer as much as a missing one and take no longer.
            if self.is_withheld(peer, *digest)? {
                continue;
            }
            let record = Error::unless_damaged(self.snapshot.record_to_send(*digest))?.flatten();
            let Some(record) = record else { continue };
            if self.may_have(peer, &record)? {
                found.push(record);
            }
        }
        // Retractions and tombstones go first, because they explain missing payloads.
        found.sort_by_key(|record| !is_retraction_or_tombstone(record));
        Ok(found.iter().map(Record::to_raw).collect())
    }

    fn proof(
        &self,
        peer: AuthorId,
        author: AuthorId,
    ) -> Result<Option<RawProof>, StoreUnavailable> {
        let Some(proof) = self.snapshot.equivocation(author)? else { return Ok(None) };
        let row = self.snapshot.release(peer, proof.entry())?;
        let is_private = is_private_to_owner(self.workspace_of(proof.entry())?, false);
        let may_see = self.is_mine(peer) || receives_removals(row, is_private);
        Ok(may_see.then(|| proof.to_raw()))
    }

    fn knows(&self, digest: Digest, offer: Offerer) -> Result<bool, StoreUnavailable> {
        Ok(self.snapshot.holds(digest)?
            || self.is_waiting(digest, offer.peer)?
            || self.refused(digest, offer)?)
    }

    fn is_refused(&self, digest: Digest, offer: Offerer) -> Result<bool, StoreUnavailable> {
        Ok(self.refused(digest, offer)?)
    }

    fn cursor(&self, peer: AuthorId) -> Result<Option<OutboxCursor>, StoreUnavailable> {
        Ok(self.snapshot.cursor(peer)?.map(Into::into))
    }

    fn comparable(&self, with: Offerer) -> Result<(Vec<ComparedRecord>, u64), StoreUnavailable> {
        self.admit(with.peer)?;
        let (peer, mut items) = (with.peer, BTreeSet::new());
        let (waiting, (refused, mut rows)) = (self.waiting(peer)?, self.refused_from(with)?);
        // Records that other peers sent are skipped, because their number must not be revealed.
        rows += waiting.values().flatten().map(rows_of).sum::<u64>();
        for row in self.snapshot.releases(peer)? {
            let (entry, row) = row?;
            rows += 1;
            if self.is_lost(peer, entry)? {
                continue;
            }
            let is_shared = |one: &&SignedHeader| {
                is_shared(one.header().author, peer, self.membership.own, row)
            };
            let refused = self.refused_of(entry, &refused)?;
            if let Some(stone) = tombstone(refused) {
                items.insert(comparable(&stone.signed));
                continue;
            }
            let (shared, read) = self.shared_headers(peer, entry, row)?;
            // An entry with a single stored record counts as one row.
            rows += read.saturating_sub(1);
            let held: Vec<&SignedHeader> = shared.iter().collect();
            let waiting = waiting.get(&entry).into_iter().flatten();
            let refused = refused.iter().map(|one| &one.signed);
            let aside: Vec<&SignedHeader> = waiting.chain(refused).filter(is_shared).collect();
            items.extend(in_place(&held, &aside).into_iter().map(comparable));
        }
        Ok((items.into_iter().collect(), rows))
    }

    fn receipts(&self, peer: AuthorId) -> Result<Vec<ErasureReceipt>, StoreUnavailable> {
        let mut receipts = Vec::new();
        for entry in self.snapshot.receipts_due(peer, RECEIPTS_AT_ONCE)? {
            let (mut told, mut acknowledged) = (0, 0);
            for other in self.membership.peers.keys().filter(|other| **other != peer) {
                let row = self.snapshot.release(*other, entry)?;
                if row.has_passed() && self.may_know_of_tombstone(*other, entry, row)? {
                    told += 1;
                    // The contents of a damaged receipt are unknown; the others are counted.
                    let row = Error::unless_damaged(self.snapshot.receipt(*other, entry))?;
                    let row = row.flatten();
                    acknowledged += u32::from(row.is_some_and(|row| row.erased.is_some()));
                }
            }
            receipts.push(ErasureReceipt { entry, told, acknowledged });
        }
        Ok(receipts)
    }
}

const RECEIPTS_AT_ONCE: usize = 500;

#[cfg(test)]
mod tests;
