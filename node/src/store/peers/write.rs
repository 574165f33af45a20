//! Writing what concerns peers.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::rows;
use super::super::tables::{
    CURSORS, DIGESTS, DISTANCES, EQUIVOCATIONS, HEADS, HELD, HeldKey, INVITATIONS, OUTCOMES,
    OUTGOING, PEERS, QUEUED, RECEIPTS, REFUSALS, RELEASES, STRETCHES, WORKSPACES, key, part, span,
};
use super::rows::{
    Approval, Cursor, OutcomeRow, PeerRow, QueuedRow, ReceiptRow, RefusalRow, ReleaseRow, Way,
    WorkspaceRow, offerer_key, outgoing_bytes,
};
use klnode_crdt::charter::{self, Charter};
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::{Offerer, Outgoing};
use redb::{ReadableTable, ReadableTableMetadata};
use std::collections::BTreeSet;
use std::time::Duration;

/// So long after it has expired whoever comes with a ticket is told so, and who has used it is
/// welcomed again.
const EXPIRED_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Outcomes that are remembered of one author; older ones have faded.
const OUTCOMES_MAX: usize = 1_000;

impl Batch {
    pub(crate) fn put_cursor(&self, consumer: AuthorId, cursor: Cursor) -> Result<(), Error> {
        let mut table = self.transaction.open_table(CURSORS)?;
        table.insert(consumer.as_bytes(), &cursor.to_bytes())?;
        Ok(())
    }

    /// Who has been read from, and what each calls its store.
    pub(crate) fn offers_read(&self) -> Result<Vec<Offerer>, Error> {
        let table = self.transaction.open_table(CURSORS)?;
        let offers = table.iter()?.map(|row| {
            let (peer, cursor) = row?;
            let store = Cursor::from_bytes(cursor.value()).store;
            Ok(Offerer { peer: AuthorId::from_bytes(*peer.value()), store })
        });
        offers.collect()
    }

    pub(crate) fn drop_cursor(&self, consumer: AuthorId) -> Result<(), Error> {
        self.transaction.open_table(CURSORS)?.remove(consumer.as_bytes())?;
        Ok(())
    }

    // Who is who.

    pub(crate) fn put_peer(&self, peer: AuthorId, row: &PeerRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PEERS)?;
        table.insert(peer.as_bytes(), rows::encode(row).as_slice())?;
        Ok(())
    }

    pub(crate) fn peer(&self, peer: AuthorId) -> Result<Option<PeerRow>, Error> {
        let table = self.transaction.open_table(PEERS)?;
        let row = table.get(peer.as_bytes())?;
        row.map(|row| rows::decode("peers", row.value())).transpose()
    }

    /// The same person's other nodes.
    pub(crate) fn mine(&self) -> Result<Vec<AuthorId>, Error> {
        let mut mine = Vec::new();
        for peer in self.peers()? {
            let row = self.peer(peer)?;
            if row.is_some_and(|row| row.counts_as_mine()) {
                mine.push(peer);
            }
        }
        Ok(mine)
    }

    pub(crate) fn has_peer(&self, peer: AuthorId) -> Result<bool, Error> {
        Ok(self.transaction.open_table(PEERS)?.get(peer.as_bytes())?.is_some())
    }

    /// How many authors are proved to have equivocated.
    pub(crate) fn proof_count(&self) -> Result<u64, Error> {
        Ok(self.transaction.open_table(EQUIVOCATIONS)?.len()?)
    }

    pub(crate) fn has_proof(&self, author: AuthorId) -> Result<bool, Error> {
        Ok(self.transaction.open_table(EQUIVOCATIONS)?.get(author.as_bytes())?.is_some())
    }

    /// Authors that are proved to have equivocated.
    pub(crate) fn proofs(&self) -> Result<Vec<AuthorId>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        table.iter()?.map(|row| Ok(AuthorId::from_bytes(*row?.0.value()))).collect()
    }

    /// Puts a row into the outbox of everyone who may talk.
    pub(crate) fn tell_all(&self, row: Outgoing, boot: Boot) -> Result<(), Error> {
        for peer in self.peers()? {
            let may = self.peer(peer)?.is_some_and(|row| row.approval == Approval::Approved);
            if may {
                self.append(peer, row, boot)?;
            }
        }
        Ok(())
    }

    pub(crate) fn peers(&self) -> Result<Vec<AuthorId>, Error> {
        let table = self.transaction.open_table(PEERS)?;
        table.iter()?.map(|row| Ok(AuthorId::from_bytes(*row?.0.value()))).collect()
    }

    /// All workspaces that are known by name.
    pub(crate) fn workspaces(&self) -> Result<Vec<WorkspaceId>, Error> {
        let table = self.transaction.open_table(WORKSPACES)?;
        table.iter()?.map(|row| Ok(WorkspaceId::from_bytes(*row?.0.value()))).collect()
    }

    pub(crate) fn put_workspace(&self, id: WorkspaceId, row: &WorkspaceRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(WORKSPACES)?;
        table.insert(id.as_bytes(), rows::encode(row).as_slice())?;
        Ok(())
    }

    /// Keeps what a ticket is good for. Those that have expired for a while go.
    pub(crate) fn put_invitation(&self, row: &Invitation, now: WallTime) -> Result<(), Error> {
        let mut table = self.transaction.open_table(INVITATIONS)?;
        let is_kept = |row: &[u8]| {
            let row = rows::decode::<Invitation>("invitations", row);
            row.is_ok_and(|row| row.expires.plus(EXPIRED_KEPT) >= now)
        };
        table.retain(|_, row| is_kept(row))?;
        table.insert(&row.secret.name(), rows::encode(row).as_slice())?;
        Ok(())
    }

    /// Who belongs to a workspace; nobody to one that is not known here, as for readers.
    pub(crate) fn charter(&self, id: WorkspaceId, now: WallTime) -> Result<Charter, Error> {
        if self.transaction.open_table(WORKSPACES)?.get(id.as_bytes())?.is_none() {
            return Ok(Charter::default());
        }
        let records = self.records(charter::entry(id))?;
        Ok(Charter::read(id, &Entry::assemble(records.iter()), now))
    }

    /// Members of a workspace who are listened to: neither blocked nor convicted.
    pub(crate) fn heard_members(
        &self,
        id: WorkspaceId,
        now: WallTime,
    ) -> Result<BTreeSet<AuthorId>, Error> {
        let mut heard = BTreeSet::new();
        for member in self.charter(id, now)?.members {
            // Of whom a damaged row does not tell whether it is blocked, it may be.
            let row = Error::unless_damaged(self.peer(member))?;
            let is_blocked = row.is_none_or(|row| row.is_some_and(|row| row.is_blocked));
            if !is_blocked && !self.has_proof(member)? {
                heard.insert(member);
            }
        }
        Ok(heard)
    }

    /// Whether any peer has told how far an author is.
    pub(crate) fn has_distance(&self, author: AuthorId) -> Result<bool, Error> {
        let (first, last) = span::<64>(author.as_bytes());
        let table = self.transaction.open_table(DISTANCES)?;
        Ok(table.range::<&[u8; 64]>(&first..=&last)?.next().transpose()?.is_some())
    }

    pub(crate) fn put_distance(
        &self,
        author: AuthorId,
        peer: AuthorId,
        hop: u8,
    ) -> Result<(), Error> {
        let at = key::<64>(&[author.as_bytes(), peer.as_bytes()]);
        let mut table = self.transaction.open_table(DISTANCES)?;
        if table.get(&at)?.is_none_or(|held| held.value() != hop) {
            table.insert(&at, hop)?;
        }
        Ok(())
    }

    /// Notes what a text led to, once for each task and entry; outside of tasks once a day. Where
    /// the entry has another text since, the row is of that one from now on.
    pub(crate) fn put_outcome(&self, author: AuthorId, row: &OutcomeRow) -> Result<(), Error> {
        let (first, last) = span::<40>(author.as_bytes());
        let mut table = self.transaction.open_table(OUTCOMES)?;
        let (mut held, mut same) = (Vec::new(), None);
        for one in table.range::<&[u8; 40]>(&first..=&last)? {
            let (at, one) = one?;
            held.push(*at.value());
            // One that is damaged says nothing, and goes in its turn.
            let one = Error::unless_damaged(rows::decode::<OutcomeRow>("outcomes", one.value()))?;
            let Some(one) = one else { continue };
            let is_same = one.entry == row.entry
                && one.task == row.task
                && (one.task.is_some() || (one.day, one.is_success) == (row.day, row.is_success));
            if is_same && one.text == row.text {
                return Ok(());
            }
            if is_same {
                same = Some((*at.value(), OutcomeRow { text: row.text, ..one }));
            }
        }
        if let Some((at, row)) = same {
            table.insert(&at, rows::encode(&row).as_slice())?;
            return Ok(());
        }
        let next = held.last().map_or(0, |at| u64::from_be_bytes(part(at, 32)) + 1);
        table.insert(
            &key::<40>(&[author.as_bytes(), &next.to_be_bytes()]),
            rows::encode(row).as_slice(),
        )?;
        if held.len() >= OUTCOMES_MAX {
            table.remove(&held[0])?;
        }
        Ok(())
    }

    // What passes.

    pub(crate) fn release(&self, peer: AuthorId, entry: EntryId) -> Result<ReleaseRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        match self.transaction.open_table(RELEASES)?.get(&at)? {
            Some(row) => rows::decode("releases", row.value()),
            None => Ok(ReleaseRow::default()),
        }
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
        self.put_release(peer, entry, ReleaseRow { out, since: now, ..held })?;
        if !is_open {
            return self.append(peer, Outgoing::Ended(entry), boot);
        }
        self.append(peer, Outgoing::Opened(entry), boot)?;
        // What was passed over while the release was ended is given again.
        let is_again = held.out == Way::Ended;
        for record in self.records(entry)? {
            self.queue(peer, record.digest(), is_again, boot)?;
        }
        Ok(())
    }

    /// Gives a record that was just committed to every peer that may have it. What takes back goes
    /// wherever the entry has been.
    pub(crate) fn pass_on(
        &self,
        entry: EntryId,
        digest: Digest,
        takes_back: bool,
        boot: Boot,
    ) -> Result<(), Error> {
        for peer in self.peers()? {
            let row = self.release(peer, entry)?;
            let has_been = row.out != Way::Never || row.back != Way::Never;
            if row.out == Way::Open || (takes_back && has_been) {
                self.queue(peer, digest, false, boot)?;
            }
        }
        Ok(())
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

    /// Notes that a peer brought a record: it has it. Unless that `returns` to its author or takes
    /// something back, which goes wherever an entry has been, the peer releases the entry.
    pub(crate) fn brought(
        &self,
        peer: AuthorId,
        (entry, digest): (EntryId, Digest),
        returns: bool,
        now: WallTime,
    ) -> Result<(), Error> {
        let at = key::<64>(&[peer.as_bytes(), digest.as_bytes()]);
        let mut queued = self.transaction.open_table(QUEUED)?;
        if queued.get(&at)?.is_none() {
            let row = QueuedRow { is_brought: true, position: None };
            queued.insert(&at, &row.to_bytes())?;
        }
        drop(queued);
        let row = self.release(peer, entry)?;
        if row.back == Way::Never {
            let back = if returns { Way::Ended } else { Way::Open };
            self.put_release(peer, entry, ReleaseRow { back, since: now, ..row })?;
        }
        Ok(())
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

    /// Notes what a peer says about its release of an entry to this node.
    pub(crate) fn set_back(
        &self,
        peer: AuthorId,
        entry: EntryId,
        is_open: bool,
        now: WallTime,
    ) -> Result<(), Error> {
        let row = self.release(peer, entry)?;
        let back = if is_open { Way::Open } else { Way::Ended };
        if row.back == back {
            return Ok(());
        }
        self.put_release(peer, entry, ReleaseRow { back, since: now, ..row })
    }

    /// What a peer has said about its releases holds no longer until it says so again.
    pub(crate) fn end_back(&self, peer: AuthorId, now: WallTime) -> Result<(), Error> {
        let (first, last) = span::<48>(peer.as_bytes());
        let mut open = Vec::new();
        for row in self.transaction.open_table(RELEASES)?.range::<&[u8; 48]>(&first..=&last)? {
            let (at, row) = row?;
            let row: ReleaseRow = rows::decode("releases", row.value())?;
            if row.back == Way::Open {
                open.push((EntryId::from_bytes(part(at.value(), 32)), row));
            }
        }
        for (entry, row) in open {
            self.put_release(peer, entry, ReleaseRow { back: Way::Ended, since: now, ..row })?;
        }
        Ok(())
    }

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

    // What was refused, and what was forgotten.

    /// Keeps a refused header, if it is the highest of its slot where it was offered.
    pub(crate) fn put_refusal(
        &self,
        offer: Offerer,
        slot: [u8; 16],
        row: &RefusalRow,
    ) -> Result<(), Error> {
        let at = key(&[&offerer_key(offer), &slot]);
        let mut table = self.transaction.open_table(REFUSALS)?;
        let held: Option<RefusalRow> = match table.get(&at)? {
            Some(held) => Some(rows::decode("refusals", held.value())?),
            None => None,
        };
        if held.is_none_or(|held| (held.counter, held.digest) < (row.counter, row.digest)) {
            table.insert(&at, rows::encode(row).as_slice())?;
        }
        Ok(())
    }

    /// Forgets that these were refused: the cause was lifted, or the store has them no longer. A row
    /// that cannot be read goes as well.
    pub(crate) fn drop_refusals(
        &self,
        offer: Offerer,
        is_over: impl Fn(Digest) -> bool,
    ) -> Result<(), Error> {
        let (first, last) = span::<32>(&offerer_key(offer));
        let mut table = self.transaction.open_table(REFUSALS)?;
        let is_kept = |row: &[u8]| {
            rows::decode::<RefusalRow>("refusals", row).is_ok_and(|row| !is_over(row.digest))
        };
        table.retain_in::<&[u8; 32], _>(&first..=&last, |_, row| is_kept(row))?;
        Ok(())
    }

    pub(crate) fn receipt(&self, peer: AuthorId, entry: EntryId) -> Result<ReceiptRow, Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        match self.transaction.open_table(RECEIPTS)?.get(&at)? {
            Some(row) => rows::decode("receipts", row.value()),
            None => Ok(ReceiptRow::default()),
        }
    }

    pub(crate) fn put_receipt(
        &self,
        peer: AuthorId,
        entry: EntryId,
        row: ReceiptRow,
    ) -> Result<(), Error> {
        let at = key::<48>(&[peer.as_bytes(), entry.as_bytes()]);
        self.transaction.open_table(RECEIPTS)?.insert(&at, rows::encode(&row).as_slice())?;
        Ok(())
    }

    /// Notes that a peer brought a tombstone, and is to hear what became of it.
    pub(crate) fn owe_receipt(&self, peer: AuthorId, entry: EntryId) -> Result<(), Error> {
        let row = self.receipt(peer, entry)?;
        self.put_receipt(peer, entry, ReceiptRow { is_upstream: true, is_due: true, ..row })
    }

    /// Whoever brought the tombstone is to hear that more have erased the entry.
    pub(crate) fn renew_receipts(&self, entry: EntryId) -> Result<(), Error> {
        for peer in self.peers()? {
            let row = self.receipt(peer, entry)?;
            if row.is_upstream {
                self.put_receipt(peer, entry, ReceiptRow { is_due: true, ..row })?;
            }
        }
        Ok(())
    }
}
