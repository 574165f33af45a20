//! Releases: which entries pass between this node and a peer, and who brought what of them.
//!
//! A release has two ways. What goes out is for this node to decide; what comes back is as the peer
//! says, or shows by bringing something.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::read;
use super::super::rows;
use super::super::tables::{HELD, HeldKey, QUARANTINE, QUEUED, RELEASES, key, part, span};
use super::rows::{QueuedRow, ReleaseRow, Way};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::Outgoing;
use redb::ReadableTable;
use std::collections::BTreeSet;

impl Batch {
    pub(crate) fn release(&self, peer: AuthorId, entry: EntryId) -> Result<ReleaseRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        let row = read::row("releases", &self.transaction.open_table(RELEASES)?, &at)?;
        Ok(row.unwrap_or_default())
    }

    pub(crate) fn put_release(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReleaseRow,
    ) -> Result<(), Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        self.transaction.open_table(RELEASES)?.insert(&at, rows::encode(&row).as_slice())?;
        Ok(())
    }

    /// Opens or ends the release of an entry to a peer, tells it so, and gives it what there is.
    pub(crate) fn set_release(
        &self,
        peer: AuthorId,
        entry: EntryId,
        is_open: bool,
        (boot, now): (Boot, WallTime),
    ) -> Result<(), Error> {
        let held = self.release(peer, entry)?;
        let out = if is_open { Way::Open } else { Way::Ended };
        if held.out == out || (held.out == Way::Never && !is_open) {
            return Ok(());
        }
        if held.is_foretold {
            self.fulfil(peer)?;
        }
        let mut row = ReleaseRow { out, since: now, is_foretold: false, ..held };
        // However often it opens and ends, of each word the last is kept. Both are: who has not read that
        // it was opened does not mind that it has ended.
        let (notice, said_at) = match is_open {
            true => (Outgoing::Opened(entry), &mut row.opened_at),
            false => (Outgoing::Ended(entry), &mut row.ended_at),
        };
        *said_at = Some(self.say_again(peer, notice, *said_at, boot)?);
        self.put_release(peer, entry, row)?;
        if !is_open {
            return Ok(());
        }
        if held.out == Way::Never {
            self.tell_proofs(peer, entry, boot)?;
        }
        // What was passed over while the release was ended is given again.
        let is_again = held.out == Way::Ended;
        for record in self.records(entry)? {
            self.queue(peer, record.digest(), is_again, boot)?;
        }
        Ok(())
    }

    /// Tells a peer what convicts those who have a say about an entry: what names it could not be told
    /// before.
    pub(crate) fn tell_proofs(
        &self,
        peer: AuthorId,
        entry: EntryId,
        boot: Boot,
    ) -> Result<(), Error> {
        let (first, last) = span::<81>(entry.as_bytes());
        let mut authors = BTreeSet::new();
        for row in self.transaction.open_table(HELD)?.range::<&HeldKey>(&first..=&last)? {
            authors.insert(AuthorId::from_bytes(part(row?.0.value(), 16)));
        }
        for author in authors {
            if self.proof_entry(author)? == Some(entry) {
                self.append(peer, Outgoing::Proof(author), boot)?;
            }
        }
        Ok(())
    }

    /// Gives a record that was just committed to every peer that may have it: to whom its entry is
    /// released, and to whoever is told of it in any case.
    pub(crate) fn pass_on(
        &self,
        (entry, digest): (EntryId, Digest),
        boot: Boot,
        is_told: impl Fn(AuthorId, ReleaseRow) -> bool,
    ) -> Result<(), Error> {
        for peer in self.peers()? {
            let row = self.release(peer, entry)?;
            if row.out == Way::Open || is_told(peer, row) {
                self.queue(peer, digest, false, boot)?;
            }
        }
        Ok(())
    }

    /// Notes what a peer says about its release of an entry to this node. Anyone can make up the name of
    /// an entry: where nothing of it is here, so much is noted and no more.
    pub(crate) fn set_back(
        &self,
        peer: AuthorId,
        entry: EntryId,
        is_open: bool,
        now: WallTime,
    ) -> Result<(), Error> {
        let row = self.release(peer, entry)?;
        let back = if is_open { Way::Open } else { Way::Ended };
        // What never was open cannot end: whoever guesses a name would hear what becomes of the entry.
        let is_idle = row.back == Way::Never && !is_open;
        if is_idle || (row.back == back && !row.is_untold) {
            return Ok(());
        }
        let said = ReleaseRow { back, since: now, is_untold: false, ..row };
        if row.has_passed() || self.holds_any_of(entry)? {
            return self.put_release(peer, entry, said);
        }
        self.foretell(peer, entry, said, now)
    }

    /// What a peer has said about its releases holds no longer until it says so again.
    pub(crate) fn end_back(&self, peer: AuthorId, now: WallTime) -> Result<(), Error> {
        for (entry, row) in self.open(peer, |row| row.back)? {
            self.put_release(peer, entry, ReleaseRow { back: Way::Ended, since: now, ..row })?;
        }
        Ok(())
    }

    /// Ends every release to a peer: what was decided for what it was is decided anew for what it
    /// becomes. What takes back still follows.
    pub(crate) fn end_out(&self, peer: AuthorId, at: (Boot, WallTime)) -> Result<(), Error> {
        let open = self.open(peer, |row| row.out)?;
        open.into_iter().try_for_each(|(entry, _)| self.set_release(peer, entry, false, at))
    }

    /// The entries that pass between this node and a peer in one direction.
    fn open(
        &self,
        peer: AuthorId,
        way: impl Fn(&ReleaseRow) -> Way,
    ) -> Result<Vec<(EntryId, ReleaseRow)>, Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let mut open = Vec::new();
        for row in self.transaction.open_table(RELEASES)?.range::<&[u8; 48]>(&first..=&last)? {
            let (at, row) = row?;
            let row: ReleaseRow = rows::decode("releases", row.value())?;
            if way(&row) == Way::Open {
                open.push((EntryId::from_bytes(part(at.value(), 32)), row));
            }
        }
        Ok(open)
    }

    // Who brought what, and who has a say.

    /// Notes that a peer brought a record: it has it. Unless that `returns` to its author or takes
    /// something back, which goes wherever an entry has been, the peer releases the entry; also where
    /// something that only returned came before, and no word. Says whether nothing had passed before.
    pub(crate) fn brought(
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

    /// Notes that a peer brought something of an entry, as [`Batch::brought`] does, and says whether
    /// nothing of it had passed before.
    pub(crate) fn brought_of(
        &self,
        peer: AuthorId,
        entry: EntryId,
        returns: bool,
        now: WallTime,
    ) -> Result<bool, Error> {
        let row = self.release(peer, entry)?;
        if row.is_foretold {
            self.fulfil(peer)?;
            self.put_release(peer, entry, ReleaseRow { is_foretold: false, ..row })?;
        }
        let is_gathered = row.back == Way::Never || (row.is_untold && !returns);
        if is_gathered {
            let back = if returns { Way::Ended } else { Way::Open };
            let row = ReleaseRow { back, since: now, is_untold: returns, ..row };
            self.put_release(peer, entry, row)?;
        }
        Ok(!row.has_passed())
    }

    /// The peers that have brought anything of an entry.
    pub(crate) fn bringers(&self, entry: EntryId) -> Result<Vec<AuthorId>, Error> {
        let mut bringers = Vec::new();
        for peer in self.peers()? {
            if self.release(peer, entry)?.back != Way::Never {
                bringers.push(peer);
            }
        }
        Ok(bringers)
    }

    /// How many of the records that wait for the operator a peer has brought, told by their names.
    pub(crate) fn waiting_of(&self, peer: AuthorId) -> Result<u64, Error> {
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

    /// Whether anything is held about an entry.
    pub(super) fn holds_any_of(&self, entry: EntryId) -> Result<bool, Error> {
        self.holds_under(entry.as_bytes())
    }

    /// Whether anything of an author is held about an entry.
    pub(crate) fn has_word_of(&self, author: AuthorId, entry: EntryId) -> Result<bool, Error> {
        self.holds_under(&[&entry.as_bytes()[..], author.as_bytes()].concat())
    }

    /// Whether an author claims anything about an entry.
    pub(crate) fn has_claims_of(&self, author: AuthorId, entry: EntryId) -> Result<bool, Error> {
        let claims = [Facet::Claims.code()];
        self.holds_under(&[&entry.as_bytes()[..], author.as_bytes(), &claims].concat())
    }

    fn holds_under(&self, prefix: &[u8]) -> Result<bool, Error> {
        let (first, last) = span::<81>(prefix);
        let held = self.transaction.open_table(HELD)?;
        Ok(held.range::<&HeldKey>(&first..=&last)?.next().transpose()?.is_some())
    }

    /// How many authors that are not known here have a say about an entry, and how many of them a
    /// peer has brought.
    pub(crate) fn unknown_authors(
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
