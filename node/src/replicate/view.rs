//! The store as the protocol reads it.

use super::placed::in_place;
use super::release::hop;
use crate::engine::{hears, is_apart, place, takes_back};
use crate::store::peers::Society;
use crate::store::peers::rows::{RefusalRow, ReleaseRow, Way};
use crate::store::{Error, Snapshot};
use klnode_crdt::entry::Entry;
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, StoreId, WorkspaceId};
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::limits::ROW_BYTES;
use klnode_federation::proto::message::{Cursor, Receipt};
use klnode_federation::proto::{Comparable, Offerer, Outgoing, Unreadable, View};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One snapshot, read for peers.
pub(super) struct StoreView {
    pub(super) snapshot: Snapshot,
    pub(super) society: Arc<Society>,
    pub(super) store: StoreId,
    pub(super) now: WallTime,
    /// Who is told to ask again later: what they may have is being examined anew.
    pub(super) held: BTreeSet<AuthorId>,
    /// Of which workspaces somebody is served nothing: it was struck off.
    pub(super) lost: BTreeMap<AuthorId, BTreeSet<WorkspaceId>>,
    /// What was refused where something is offered, once that was asked.
    pub(super) refused: OnceCell<(Offerer, BTreeSet<Digest>)>,
    /// What waits in quarantine, likewise.
    pub(super) waiting: OnceCell<BTreeSet<Digest>>,
}

/// Headers, by entry.
type HeadersOf = BTreeMap<EntryId, Vec<SignedHeader>>;

/// Says why the store could not be read, and lets the protocol go on without.
impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "the store could not be read for a peer");
        Self
    }
}

impl StoreView {
    /// Nothing is read for a peer that is to ask again later.
    fn admit(&self, peer: AuthorId) -> Result<(), Unreadable> {
        if self.held.contains(&peer) { Err(Unreadable) } else { Ok(()) }
    }

    /// What is held of an entry, as far as it is whole.
    pub(super) fn here(&self, entry: EntryId) -> Result<Entry, Error> {
        match Error::unless_damaged(self.snapshot.entry(entry))? {
            Some(held) => Ok(held.to_entry()),
            None => Ok(Entry::assemble(self.snapshot.whole_records(entry)?.iter())),
        }
    }

    /// Whether a peer may have a record, by what is released to it.
    fn may_have(&self, peer: AuthorId, record: &Record) -> Result<bool, Error> {
        let row = self.snapshot.release(peer, record.entry())?;
        let is_own = record.author() == peer && row.has_passed();
        if is_own || (takes_back(record) && self.hears(peer, record, row)?) {
            return Ok(true);
        }
        Ok(row.out == Way::Open && !self.is_lost(peer, record.entry())?)
    }

    /// Whether a peer hears of a record that takes its entry back.
    fn hears(&self, peer: AuthorId, record: &Record, row: ReleaseRow) -> Result<bool, Error> {
        // Mostly something has gone out, and where the entry is does not matter.
        if row.out != Way::Never {
            return Ok(true);
        }
        let held = Error::unless_damaged(self.snapshot.view_row(record.entry()))?.flatten();
        Ok(hears(row, is_apart(place(held.as_ref(), record), self.society.mine.contains(&peer))))
    }

    /// Whether a peer may not have a record, as far as its header tells: then no more of it is read,
    /// however large it is. What takes back says itself where it goes.
    fn is_withheld(&self, peer: AuthorId, digest: Digest) -> Result<bool, Error> {
        let header = Error::unless_damaged(self.snapshot.header_of(digest))?.flatten();
        let Some(signed) = header else { return Ok(true) };
        let at = signed.header();
        if at.facet.takes_back() {
            return Ok(false);
        }
        let row = self.snapshot.release(peer, at.entry)?;
        let is_own = at.author == peer && row.has_passed();
        Ok(!is_own && row.out != Way::Open)
    }

    /// Whether a peer was just struck off where an entry is. Its releases are ended one by one, and
    /// whoever strikes off may be anybody: of all else it is served as before.
    fn is_lost(&self, peer: AuthorId, entry: EntryId) -> Result<bool, Error> {
        let Some(lost) = self.lost.get(&peer) else { return Ok(false) };
        Ok(self.workspace_of(entry)?.is_none_or(|workspace| lost.contains(&workspace)))
    }

    /// Whether an entry is this person's alone, as far as a peer goes that has never had to do with it.
    pub(super) fn stays_here(&self, peer: AuthorId, entry: EntryId) -> Result<bool, Error> {
        let is_apart = is_apart(self.workspace_of(entry)?, self.society.mine.contains(&peer));
        Ok(is_apart && !self.snapshot.release(peer, entry)?.has_passed())
    }

    /// How far an author is from this node.
    fn hop_of(&self, author: AuthorId) -> Result<u8, Error> {
        Ok(hop(&self.snapshot, &self.society, author)?.unwrap_or(u8::MAX))
    }

    /// What was refused where it was offered, for a reason that still stands.
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

    /// Whether it is about what was unknown here and is known by now. What takes back waits for nothing
    /// but its entry. Of what stays here nothing is asked for again: that would tell that it is here.
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

    /// Whether it is known who has a say about an entry: where it belongs, and who owns that.
    pub(super) fn is_settled(&self, entry: EntryId) -> Result<bool, Error> {
        let Some(workspace) = self.workspace_of(entry)? else { return Ok(false) };
        let shared = self.society.workspaces.get(&workspace);
        Ok(shared.is_none_or(|shared| shared.charter.owner.is_some()))
    }

    /// Where an entry belongs, if that is known.
    fn workspace_of(&self, entry: EntryId) -> Result<Option<WorkspaceId>, Error> {
        let row = Error::unless_damaged(self.snapshot.view_row(entry))?.flatten();
        Ok(row.and_then(|row| row.workspace))
    }

    fn refused(&self, digest: Digest, offer: Offerer) -> Result<bool, Error> {
        if self.refused.get().is_none() {
            let refusals = self.refusals(offer)?;
            let digests = refusals.map(|row| Ok(row?.digest)).collect::<Result<_, Error>>()?;
            // It was empty a line ago.
            let _ = self.refused.set((offer, digests));
        }
        let has =
            |(of, digests): &(Offerer, BTreeSet<Digest>)| *of == offer && digests.contains(&digest);
        Ok(self.refused.get().is_some_and(has))
    }

    /// Whether a record waits that a peer has brought. A page names thousands of records: what waits
    /// is read once for all of them.
    fn is_waiting(&self, digest: Digest, peer: AuthorId) -> Result<bool, Error> {
        if self.waiting.get().is_none() {
            let _ = self.waiting.set(self.snapshot.quarantined()?);
        }
        let waits = self.waiting.get().is_some_and(|waiting| waiting.contains(&digest));
        Ok(waits && self.snapshot.has_brought(peer, digest)?)
    }

    /// Whether a peer is told that an entry was forgotten; of a damaged tombstone that it is there.
    fn is_told_of_end(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
    ) -> Result<bool, Error> {
        if row.out != Way::Never {
            return Ok(true);
        }
        let Some(stone) = Error::unless_damaged(self.snapshot.tombstone(entry))?.flatten() else {
            return Ok(true);
        };
        // Whoever has brought it knows.
        let is_known = stone.author() == peer || self.snapshot.has_brought(peer, stone.digest())?;
        Ok(is_known || self.hears(peer, &stone, row)?)
    }

    /// What both sides should hold of one entry, and how many rows of it were read.
    fn shared_headers(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
    ) -> Result<(Vec<SignedHeader>, u64), Error> {
        let is_forgotten =
            self.snapshot.is_forgotten(entry)? && self.is_told_of_end(peer, entry, row)?;
        // Of what passes neither way that is a tombstone, or nothing.
        if !row.is_open() && !is_forgotten {
            return Ok((Vec::new(), 0));
        }
        // Of what is not released only the peer's own are read: by how soon it is to ask again later it
        // would learn how many there are of others.
        let mut headers = match row.out == Way::Open || is_forgotten {
            true => self.snapshot.whole_headers(entry)?,
            false => self.snapshot.whole_headers_of(entry, peer)?,
        };
        let rows = headers.iter().map(rows_of).sum();
        if !is_forgotten {
            headers.retain(|one| is_shared(one.header().author, peer, self.society.own, row));
        }
        Ok((headers, rows))
    }

    /// Headers that were refused where they were offered, by entry; and how many rows were read.
    fn refused_from(&self, offer: Offerer) -> Result<(HeadersOf, u64), Error> {
        let (mut refused, mut rows) = (HeadersOf::new(), 0);
        for row in self.refusals(offer)? {
            let row = row?;
            rows += 1;
            // One that a newer version wrote cannot be placed: it counts as a difference.
            if let Ok(signed) = SignedHeader::read_back(&row.header, row.signature) {
                refused.entry(signed.header().entry).or_default().push(signed);
            }
        }
        Ok((refused, rows))
    }

    /// Those of one entry. Of a forgotten one there is nothing but the tombstone that goes before the
    /// one that is held: the other side keeps that.
    fn refused_of<'a>(
        &self,
        entry: EntryId,
        refused: &'a HeadersOf,
    ) -> Result<&'a [SignedHeader], Error> {
        let Some(of_entry) = refused.get(&entry) else { return Ok(&[]) };
        match Error::unless_damaged(self.snapshot.tombstone(entry))? {
            Some(None) => Ok(of_entry),
            Some(Some(held)) => {
                let goes_before = |stone: &SignedHeader| stone.digest() < held.digest();
                Ok(if tombstone(of_entry).is_some_and(goes_before) { of_entry } else { &[] })
            }
            None => Ok(&[]),
        }
    }

    /// Headers of records that a peer has brought and that wait for the operator, by entry.
    fn waiting(&self, peer: AuthorId) -> Result<HeadersOf, Error> {
        let mut waiting = HeadersOf::new();
        for signed in self.snapshot.quarantine_of(peer)? {
            waiting.entry(signed.header().entry).or_default().push(signed);
        }
        Ok(waiting)
    }
}

/// Whether both sides should hold an author's records of an entry that passes so between them.
fn is_shared(author: AuthorId, peer: AuthorId, own: AuthorId, row: ReleaseRow) -> bool {
    match (row.out == Way::Open, row.back == Way::Open) {
        (true, true) => true,
        (true, false) => author == own,
        (false, true) => author == peer,
        (false, false) => false,
    }
}

/// As how many rows a record counts whose bytes are gone through, and not decoded: that takes a sixteenth
/// of the time.
fn rows_of(signed: &SignedHeader) -> u64 {
    let bytes = signed.bytes().len() + signed.header().payload_bytes as usize;
    1 + (bytes / (16 * ROW_BYTES)) as u64
}

fn comparable(signed: &SignedHeader) -> Comparable {
    Comparable { stamp: signed.header().stamp.bits(), digest: signed.digest() }
}

/// The tombstone among what was refused of an entry: the other side honours it, and holds nothing else
/// of the entry.
fn tombstone(refused: &[SignedHeader]) -> Option<&SignedHeader> {
    let stones = refused.iter().filter(|one| one.header().facet == Facet::Tombstone);
    stones.min_by_key(|one| one.digest())
}

impl View for StoreView {
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
        self.society.is_approved(peer)
    }

    fn is_mine(&self, peer: AuthorId) -> bool {
        self.society.mine.contains(&peer)
    }

    fn outbox_head(&self, peer: AuthorId) -> Result<u64, Unreadable> {
        Ok(self.snapshot.outbox_head(peer)?)
    }

    fn outbox(
        &self,
        peer: AuthorId,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, Outgoing)>, Unreadable> {
        self.admit(peer)?;
        let rows = self.snapshot.outbox(peer, after)?;
        Ok(rows.take(max).collect::<Result<_, Error>>()?)
    }

    fn cursor_at(&self, peer: AuthorId, position: u64) -> Result<Option<Cursor>, Unreadable> {
        let store = self.store;
        if position == 0 {
            return Ok(Some(Cursor { store, epoch: Boot(0), position }));
        }
        let epoch = self.snapshot.outbox_epoch(peer, position)?;
        Ok(epoch.map(|epoch| Cursor { store, epoch, position }))
    }

    fn record(
        &self,
        peer: AuthorId,
        digest: Digest,
    ) -> Result<Option<(u8, RawRecord)>, Unreadable> {
        // A damaged one is not held: whoever has it brings it back.
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
    ) -> Result<Vec<RawRecord>, Unreadable> {
        self.admit(peer)?;
        let mut found = Vec::new();
        for digest in digests {
            // It costs the peer as much as what is not held, and is to take no longer.
            if self.is_withheld(peer, *digest)? {
                continue;
            }
            let record = Error::unless_damaged(self.snapshot.record_to_send(*digest))?.flatten();
            let Some(record) = record else { continue };
            if self.may_have(peer, &record)? {
                found.push(record);
            }
        }
        // What explains a missing payload goes first.
        found.sort_by_key(|record| !takes_back(record));
        Ok(found.iter().map(Record::to_raw).collect())
    }

    fn proof(&self, peer: AuthorId, author: AuthorId) -> Result<Option<RawProof>, Unreadable> {
        let Some(proof) = self.snapshot.equivocation(author)? else { return Ok(None) };
        let row = self.snapshot.release(peer, proof.entry())?;
        let is_apart = is_apart(self.workspace_of(proof.entry())?, false);
        let may_see = self.is_mine(peer) || hears(row, is_apart);
        Ok(may_see.then(|| proof.to_raw()))
    }

    fn knows(&self, digest: Digest, offer: Offerer) -> Result<bool, Unreadable> {
        Ok(self.snapshot.holds(digest)?
            || self.is_waiting(digest, offer.peer)?
            || self.refused(digest, offer)?)
    }

    fn is_refused(&self, digest: Digest, offer: Offerer) -> Result<bool, Unreadable> {
        Ok(self.refused(digest, offer)?)
    }

    fn cursor(&self, peer: AuthorId) -> Result<Option<Cursor>, Unreadable> {
        Ok(self.snapshot.cursor(peer)?.map(Into::into))
    }

    fn comparable(&self, with: Offerer) -> Result<(Vec<Comparable>, u64), Unreadable> {
        self.admit(with.peer)?;
        let (peer, mut items) = (with.peer, BTreeSet::new());
        let (waiting, (refused, mut rows)) = (self.waiting(peer)?, self.refused_from(with)?);
        // What others have brought is passed over: nobody is to learn how much of that waits.
        rows += waiting.values().flatten().map(rows_of).sum::<u64>();
        for row in self.snapshot.releases(peer)? {
            let (entry, row) = row?;
            rows += 1;
            if self.is_lost(peer, entry)? {
                continue;
            }
            let is_shared =
                |one: &&SignedHeader| is_shared(one.header().author, peer, self.society.own, row);
            let refused = self.refused_of(entry, &refused)?;
            if let Some(stone) = tombstone(refused) {
                items.insert(comparable(stone));
                continue;
            }
            let (shared, read) = self.shared_headers(peer, entry, row)?;
            // An entry whose only record is held counts as one row.
            rows += read.saturating_sub(1);
            let held: Vec<&SignedHeader> = shared.iter().collect();
            let waiting = waiting.get(&entry).into_iter().flatten();
            let aside: Vec<&SignedHeader> = waiting.chain(refused).filter(is_shared).collect();
            items.extend(in_place(&held, &aside).into_iter().map(comparable));
        }
        Ok((items.into_iter().collect(), rows))
    }

    fn receipts(&self, peer: AuthorId) -> Result<Vec<Receipt>, Unreadable> {
        let mut receipts = Vec::new();
        for entry in self.snapshot.receipts_due(peer, RECEIPTS_AT_ONCE)? {
            let (mut told, mut acknowledged) = (0, 0);
            for other in self.society.peers.keys().filter(|other| **other != peer) {
                let row = self.snapshot.release(*other, entry)?;
                if row.has_passed() && self.is_told_of_end(*other, entry, row)? {
                    told += 1;
                    // What a damaged one said is unknown; the peer is told of all others.
                    let row = Error::unless_damaged(self.snapshot.receipt(*other, entry))?;
                    let row = row.flatten();
                    acknowledged += u32::from(row.is_some_and(|row| row.erased.is_some()));
                }
            }
            receipts.push(Receipt { entry, told, acknowledged });
        }
        Ok(receipts)
    }
}

const RECEIPTS_AT_ONCE: usize = 500;

#[cfg(test)]
mod tests;
