//! Releases: which entries pass between this node and a peer, and which records a peer delivered.
//!
//! A release has two directions. This node decides about the outbound one; for the inbound one the
//! peer's statement counts, or the fact that it delivers records.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::row_types;
use super::super::shared_reads;
use super::super::tables::{HELD, HeldKey, QUARANTINE, QUEUED, RELEASES, key, part, span};
use super::row_types::{QueuedRow, ReleaseRow, ReleaseState};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::OutboxTarget;
use redb::ReadableTable;
use std::collections::BTreeSet;

impl Batch {
    pub fn release(&self, peer: AuthorId, entry: EntryId) -> Result<ReleaseRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        let row = shared_reads::row("releases", &self.transaction.open_table(RELEASES)?, &at)?;
        Ok(row.unwrap_or_default())
    }

    pub fn put_release(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
    ) -> Result<(), Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        self.transaction.open_table(RELEASES)?.insert(&at, row_types::encode(&row).as_slice())?;
        Ok(())
    }

    /// Opens or ends the release of an entry to a peer, queues the notice, and queues the entry's
    /// records when it opens.
    pub fn set_release(
        &self,
        peer: AuthorId,
        entry: EntryId,
        is_open: bool,
        (boot, now): (Boot, WallTime),
    ) -> Result<(), Error> {
        let held = self.release(peer, entry)?;
        let out = if is_open { ReleaseState::Open } else { ReleaseState::Ended };
        if held.out == out || (held.out == ReleaseState::Never && !is_open) {
            return Ok(());
        }
        if held.is_foretold {
            self.fulfil_announcement(peer)?;
        }
        let mut row = ReleaseRow { out, since: now, is_foretold: false, ..held };
        // However often a release opens and ends, only the last notice of each kind is kept. Both
        // are needed: a peer that has not read the opening ignores the ending.
        let (notice, notice_at) = match is_open {
            true => (OutboxTarget::Opened(entry), &mut row.opened_at),
            false => (OutboxTarget::Ended(entry), &mut row.ended_at),
        };
        *notice_at = Some(self.move_to_end(peer, notice, *notice_at, boot)?);
        self.put_release(peer, entry, row)?;
        if !is_open {
            return Ok(());
        }
        if held.out == ReleaseState::Never {
            self.queue_proofs(peer, entry, boot)?;
        }
        // Records that the outbox skipped while the entry was not released move to the end. Before a
        // first release, these are records that the peer delivered and may have lost since. A
        // record that it delivered and that is not in the outbox is not offered back.
        for digest in self.digests_of(entry)? {
            let is_again = held.out == ReleaseState::Ended || self.is_queued(peer, digest)?;
            self.queue(peer, digest, is_again, boot)?;
        }
        Ok(())
    }

    /// Queues for a peer the proofs against authors of an entry. Proofs that name the entry could
    /// not be sent before its release.
    pub fn queue_proofs(&self, peer: AuthorId, entry: EntryId, boot: Boot) -> Result<(), Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let mut authors = BTreeSet::new();
        for row in self.transaction.open_table(HELD)?.range::<&HeldKey>(&first..=&last)? {
            authors.insert(AuthorId::from_bytes(part(row?.0.value(), 16)));
        }
        for author in authors {
            if self.proof_entry(author)? == Some(entry) {
                self.append(peer, OutboxTarget::Proof(author), boot)?;
            }
        }
        Ok(())
    }

    /// Queues a committed record for every peer to which its entry is released, and for those that
    /// `is_told` selects.
    pub fn pass_on(
        &self,
        (entry, digest): (EntryId, Digest),
        boot: Boot,
        is_told: impl Fn(AuthorId, ReleaseRow) -> bool,
    ) -> Result<(), Error> {
        for peer in self.peers()? {
            let row = self.release(peer, entry)?;
            if row.out == ReleaseState::Open || is_told(peer, row) {
                self.queue(peer, digest, false, boot)?;
            }
        }
        Ok(())
    }

    /// Stores a peer's statement about its release of an entry to this node. Anyone can make up
    /// entry ids, so statements about entries that this node does not hold are limited.
    pub fn set_back(
        &self,
        peer: AuthorId,
        entry: EntryId,
        is_open: bool,
        now: WallTime,
    ) -> Result<(), Error> {
        let row = self.release(peer, entry)?;
        let back = if is_open { ReleaseState::Open } else { ReleaseState::Ended };
        // A release that was never open cannot end: otherwise a peer could guess an id and receive
        // the entry's tombstone.
        let is_idle = row.back == ReleaseState::Never && !is_open;
        if is_idle || (row.back == back && !row.is_untold) {
            return Ok(());
        }
        let said = ReleaseRow { back, since: now, is_untold: false, ..row };
        if row.has_passed() || self.holds_any_of(entry)? {
            return self.put_release(peer, entry, said);
        }
        self.announce(peer, entry, said, now)
    }

    /// Ends all inbound releases of a peer until it states them again.
    pub fn end_back(&self, peer: AuthorId, now: WallTime) -> Result<(), Error> {
        for (entry, row) in self.open(peer, |row| row.back)? {
            self.put_release(
                peer,
                entry,
                ReleaseRow { back: ReleaseState::Ended, since: now, ..row },
            )?;
        }
        Ok(())
    }

    /// Ends every release to a peer, because they are decided again for its new approval state.
    /// Retractions and tombstones still follow.
    pub fn end_out(&self, peer: AuthorId, at: (Boot, WallTime)) -> Result<(), Error> {
        let open = self.open(peer, |row| row.out)?;
        open.into_iter().try_for_each(|(entry, _)| self.set_release(peer, entry, false, at))
    }

    /// The entries with an open release in one direction.
    fn open(
        &self,
        peer: AuthorId,
        way: impl Fn(&ReleaseRow) -> ReleaseState,
    ) -> Result<Vec<(EntryId, ReleaseRow)>, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let mut open = Vec::new();
        for row in self.transaction.open_table(RELEASES)?.range::<&[u8; 48]>(&first..=&last)? {
            let (at, row) = row?;
            let row: ReleaseRow = row_types::decode("releases", row.value())?;
            if way(&row) == ReleaseState::Open {
                open.push((EntryId::from_bytes(part(at.value(), 32)), row));
            }
        }
        Ok(open)
    }

    // Deliveries, and records of authors.

    /// Notes that a peer delivered a record and therefore has it. The delivery implies that the
    /// peer releases the entry, unless it `returns` to its author or takes something back, since
    /// those go wherever the entry has been. This also holds if only returning records came before,
    /// without a statement. Returns whether nothing had passed before.
    pub fn brought(
        &self,
        peer: AuthorId,
        (entry, digest): (EntryId, Digest),
        returns: bool,
        now: WallTime,
    ) -> Result<bool, Error> {
        let at = key::<64>(&[peer.as_bytes(), digest.as_bytes()]);
        let mut queued = self.transaction.open_table(QUEUED)?;
        if queued.get(&at)?.is_none() {
            let row = QueuedRow { is_brought: true, position: None };
            queued.insert(&at, &row.to_bytes())?;
        }
        drop(queued);
        self.brought_of(peer, entry, returns, now)
    }

    /// Notes that a peer delivered some record of an entry, as [`Batch::brought`] does. Returns
    /// whether nothing of the entry had passed before.
    pub fn brought_of(
        &self,
        peer: AuthorId,
        entry: EntryId,
        returns: bool,
        now: WallTime,
    ) -> Result<bool, Error> {
        let row = self.release(peer, entry)?;
        if row.is_foretold {
            self.fulfil_announcement(peer)?;
            self.put_release(peer, entry, ReleaseRow { is_foretold: false, ..row })?;
        }
        let is_implied = row.back == ReleaseState::Never || (row.is_untold && !returns);
        if is_implied {
            let back = if returns { ReleaseState::Ended } else { ReleaseState::Open };
            let row = ReleaseRow { back, since: now, is_untold: returns, ..row };
            self.put_release(peer, entry, row)?;
        }
        Ok(!row.has_passed())
    }

    /// The peers that have delivered any record of an entry.
    pub fn bringers(&self, entry: EntryId) -> Result<Vec<AuthorId>, Error> {
        let mut bringers = Vec::new();
        for peer in self.peers()? {
            if self.release(peer, entry)?.back != ReleaseState::Never {
                bringers.push(peer);
            }
        }
        Ok(bringers)
    }

    /// The number of quarantined records that a peer delivered, from the keys alone.
    pub fn waiting_of(&self, peer: AuthorId) -> Result<u64, Error> {
        let waiting = self.transaction.open_table(QUARANTINE)?;
        let queued = self.transaction.open_table(QUEUED)?;
        let mut count = 0;
        for row in waiting.iter()? {
            let digest = part::<32>(row?.0.value(), 49);
            let row = queued.get(&key::<64>(&[peer.as_bytes(), &digest]))?;
            let is_of_peer = row.is_some_and(|row| QueuedRow::from_bytes(*row.value()).is_brought);
            count += u64::from(is_of_peer);
        }
        Ok(count)
    }

    /// Whether any record of an entry is stored.
    pub(super) fn holds_any_of(&self, entry: EntryId) -> Result<bool, Error> {
        self.holds_under(entry.as_bytes())
    }

    /// Whether any record of an author on an entry is stored.
    pub fn has_word_of(&self, author: AuthorId, entry: EntryId) -> Result<bool, Error> {
        self.holds_under(&[&entry.as_bytes()[..], author.as_bytes()].concat())
    }

    /// Whether an author has claims on an entry.
    pub fn has_claims_of(&self, author: AuthorId, entry: EntryId) -> Result<bool, Error> {
        let claims = [Facet::Claims.code()];
        self.holds_under(&[&entry.as_bytes()[..], author.as_bytes(), &claims].concat())
    }

    fn holds_under(&self, prefix: &[u8]) -> Result<bool, Error> {
        let (first, last) = span::<81>(prefix);
        let held = self.transaction.open_table(HELD)?;
        Ok(held.range::<&HeldKey>(&first..=&last)?.next().transpose()?.is_some())
    }

    /// The number of unknown authors with records on an entry, and how many of them a peer
    /// delivered.
    pub fn unknown_authors(
        &self,
        entry: EntryId,
        peer: AuthorId,
        known: &BTreeSet<AuthorId>,
    ) -> Result<(usize, usize), Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let held = self.transaction.open_table(HELD)?;
        let queued = self.transaction.open_table(QUEUED)?;
        let (mut unknown, mut brought) = (0, 0);
        let (mut author, mut is_counted) = (None, false);
        for row in held.range::<&HeldKey>(&first..=&last)? {
            let (at, _) = row?;
            let next = AuthorId::from_bytes(part(at.value(), 16));
            if author != Some(next) {
                (author, is_counted) = (Some(next), known.contains(&next));
                unknown += usize::from(!is_counted);
            }
            if !is_counted {
                let digest = part::<32>(at.value(), 49);
                let row = queued.get(&key::<64>(&[peer.as_bytes(), &digest]))?;
                is_counted = row.is_some_and(|row| QueuedRow::from_bytes(*row.value()).is_brought);
                brought += usize::from(is_counted);
            }
        }
        Ok((unknown, brought))
    }
}
