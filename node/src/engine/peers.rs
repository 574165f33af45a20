//! What concerns peers, done by the one writer.

use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use super::tasks::chain;
use crate::store::peers::rows::{
    Approval, Cursor, OutcomeRow, PeerRow, ReceiptRow, RefusalRow, WorkspaceRow,
};
use crate::store::tasks::TextRow;
use crate::store::{Batch, Error};
use klnode_crdt::digest;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId, WorkspaceId};
use klnode_crdt::origin::Origin;
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::tally::Observation;
use klnode_crdt::view::View;
use klnode_federation::proto::message::Receipt as Erased;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::{Offerer, Outgoing};
use std::collections::BTreeSet;

/// Proofs that are kept of whoever it is.
pub(super) const PROOFS_MAX: u64 = 1_000;
/// The same where a peer has told of the author: peers tell of whomever they like.
pub(super) const PROOFS_TOLD_MAX: u64 = 3_000;
/// Of authors who are neither peers nor members here, what one peer has brought since the start.
pub(super) const PROOFS_OF_PEER_MAX: u64 = 1_000;

/// Why a record is refused that waited, and that the operator does not want.
pub(super) const REJECTED: &str = "the operator rejected it";

/// Why a record is refused for which there is no room among those that wait for the operator.
pub(crate) const TOO_MANY_WAIT: &str = "too many of its kind wait already";

/// One thing to note about peers.
#[derive(Clone, Debug)]
pub enum PeerAct {
    /// What the operator decided about a node, or what is new about it.
    Put(AuthorId, Box<PeerRow>),
    /// When a peer and this node last held the same.
    Equal(AuthorId, klnode_crdt::time::WallTime),
    /// What a workspace is called here.
    NameWorkspace(WorkspaceId, WorkspaceRow),
    /// What a ticket is good for.
    Invite(Box<Invitation>),
    /// How far a consumer has read.
    Advance(AuthorId, Cursor),
    /// A consumer begins again.
    Rewind(AuthorId),
    /// Opens or ends the release of an entry to a peer.
    Release(AuthorId, EntryId, bool),
    /// What a peer says about its release of an entry to this node.
    Released(AuthorId, EntryId, bool),
    /// A peer lacks these, or may: what is held of them goes to the end of its outbox.
    Requeue(AuthorId, Vec<Digest>),
    /// A peer reads from the start: it may lack what it once brought.
    Restart(AuthorId),
    /// A peer's outbox is read from the start: its store is an older copy, or another one.
    Reread(AuthorId),
    /// Keeps a header that was refused where it was offered, by a hash of its slot.
    Refuse(Offerer, [u8; 16], Box<RefusalRow>),
    /// A peer's store holds these no longer, which were refused from it; or they are welcome now.
    Withdrawn(Offerer, BTreeSet<Digest>),
    /// What was refused from a peer's store is welcome now.
    Readmit(Offerer),
    /// The same, but only of what was refused because too much waited for the operator.
    ReadmitWaiting(Offerer),
    /// How far an author is from a peer, as the peer says.
    Distance(AuthorId, AuthorId, u8),
    /// A proof of equivocation, who brought it, and that was checked.
    Convict(AuthorId, Box<Proof>),
    /// What a peer says about erased entries.
    Received(AuthorId, Vec<Erased>),
    /// What a peer has heard about erased entries.
    Told(AuthorId, Vec<Erased>),
}

impl PeerAct {
    /// Whether losing it in a power cut only means doing some work again.
    pub(super) fn is_incidental(&self) -> bool {
        matches!(self, Self::Advance(..) | Self::Distance(..) | Self::Told(..) | Self::Equal(..))
    }
}

/// What is kept of a record that is not taken from a store, and under which hash of its slot.
pub(crate) fn refusal(record: &Record, reason: String) -> ([u8; 16], RefusalRow) {
    let at = record.header();
    let slot = digest::Fields::new(digest::Context::Slot)
        .field(at.entry.as_bytes())
        .field(at.author.as_bytes())
        .field(&[at.facet.code()])
        .field(&at.place.boot.0.to_be_bytes())
        .field(&at.place.generation.0.to_be_bytes())
        .finish_short();
    let RawRecord { header, signature, .. } = record.to_raw();
    let (counter, digest) = (at.counter, record.digest());
    (slot, RefusalRow { header, signature, counter, digest, reason, is_unknown: false })
}

impl Ingest<'_> {
    pub(super) fn note_peers(
        &mut self,
        batch: &Batch,
        acts: &[PeerAct],
    ) -> Result<Receipt, Rejection> {
        for act in acts {
            self.note_peer(batch, act)?;
        }
        Ok(Receipt::Done(batch.head()?))
    }

    /// Writes down what another node is to this one, with all that changes by it.
    fn put_peer(&mut self, batch: &Batch, peer: AuthorId, row: &PeerRow) -> Result<(), Error> {
        let boot = self.writer.boot;
        // By what is stored: what is in memory may be of an attempt that failed.
        let held = batch.peer(peer)?;
        match row.counts_as_mine() {
            true => self.writer.mine.insert(peer),
            false => self.writer.mine.remove(&peer),
        };
        let was_mine = held.as_ref().is_some_and(PeerRow::counts_as_mine);
        if was_mine != row.counts_as_mine() {
            self.refresh_all_edges(batch)?;
        }
        self.writer.society_changes += 1;
        let was_approved = held.is_some_and(|held| held.approval == Approval::Approved);
        let is_approved = row.approval == Approval::Approved;
        if was_approved != is_approved {
            batch.end_out(peer, (boot, self.now))?;
        }
        if is_approved && (!was_approved || (row.counts_as_mine() && !was_mine)) {
            // Proofs that were kept before it came concern it too.
            for author in batch.proofs()? {
                if let Some(entry) = batch.proof_entry(author)?
                    && self.may_know(batch, peer, entry)?
                {
                    batch.append(peer, Outgoing::Proof(author), boot)?;
                }
            }
        }
        // A vouch ends with a block or a removal, and does not come back with the peer.
        let vouched = row.standing_vouch();
        batch.put_peer(peer, &PeerRow { vouched, ..row.clone() })
    }

    fn note_peer(&mut self, batch: &Batch, act: &PeerAct) -> Result<(), Error> {
        let boot = self.writer.boot;
        match act {
            PeerAct::Put(peer, row) => self.put_peer(batch, *peer, row),
            PeerAct::Equal(peer, at) => match batch.peer(*peer)? {
                Some(row) => batch.put_peer(*peer, &PeerRow { equal_at: Some(*at), ..row }),
                None => Ok(()),
            },
            PeerAct::NameWorkspace(id, row) => {
                self.writer.society_changes += 1;
                self.members_may_change(None);
                batch.put_workspace(*id, row)
            }
            PeerAct::Invite(row) => batch.put_invitation(row, self.now),
            PeerAct::Advance(consumer, cursor) => batch.put_cursor(*consumer, *cursor),
            PeerAct::Rewind(consumer) => batch.drop_cursor(*consumer),
            PeerAct::Release(peer, entry, is_open) => {
                batch.set_release(*peer, *entry, *is_open, (boot, self.now))
            }
            PeerAct::Released(peer, entry, is_open) => {
                batch.set_back(*peer, *entry, *is_open, self.now)
            }
            PeerAct::Requeue(peer, digests) => {
                digests.iter().try_for_each(|digest| batch.requeue(*peer, *digest, boot))
            }
            PeerAct::Restart(peer) => batch.restart_outbox(*peer, boot),
            PeerAct::Reread(peer) => {
                batch.drop_cursor(*peer)?;
                batch.end_back(*peer, self.now)?;
                batch.restart_outbox(*peer, boot)
            }
            PeerAct::Refuse(offer, slot, refusal) => batch.note_refusal(*offer, *slot, refusal),
            PeerAct::Withdrawn(offer, digests) => {
                batch.drop_refusals(*offer, |refused| digests.contains(&refused.digest))
            }
            // What the operator has rejected is asked for by no filter.
            PeerAct::Readmit(offer) => {
                batch.drop_refusals(*offer, |refused| refused.reason != REJECTED)
            }
            PeerAct::ReadmitWaiting(offer) => {
                batch.drop_refusals(*offer, |refused| refused.reason == TOO_MANY_WAIT)
            }
            PeerAct::Distance(author, peer, hop) => batch.put_distance(*author, *peer, *hop),
            PeerAct::Convict(from, proof) => self.hear_proof(batch, *from, proof),
            PeerAct::Received(peer, receipts) => self.received(batch, *peer, receipts),
            PeerAct::Told(peer, receipts) => {
                for told in receipts {
                    // A damaged one would be told for ever, and keep what follows it from being told.
                    // What is due is due to whoever brought the tombstone.
                    let row = Error::unless_damaged(batch.receipt(*peer, told.entry))?;
                    let row = row
                        .unwrap_or_else(|| ReceiptRow { is_upstream: true, ..Default::default() });
                    batch.put_receipt(*peer, told.entry, ReceiptRow { is_due: false, ..row })?;
                }
                Ok(())
            }
        }
    }

    /// Takes a proof that somebody brought, or that two records are. Anyone can make keys, bring records
    /// of each and convict it: beyond a number of proofs only those are kept of whom a peer has told how
    /// far it is, as of everyone whose records it brings; and beyond a larger number, or a number of one
    /// peer's, only those of whom this node knows itself.
    pub(super) fn hear_proof(
        &mut self,
        batch: &Batch,
        from: AuthorId,
        proof: &Proof,
    ) -> Result<(), Error> {
        let (author, named) = (proof.author(), batch.proof_entry(proof.author())?);
        if named == Some(proof.entry()) {
            return Ok(());
        }
        let brought = self.writer.proofs_brought.get(&from).copied().unwrap_or_default();
        let (kept, is_convicted) = (batch.proof_count()?, named.is_some());
        let has_room = brought < PROOFS_OF_PEER_MAX
            && (is_convicted
                || kept < PROOFS_MAX
                || (kept < PROOFS_TOLD_MAX && batch.has_distance(author)?));
        if has_room {
            self.writer.proofs_brought.insert(from, brought + 1);
        } else if is_convicted || !self.is_acquainted(batch, author)? {
            return Ok(());
        }
        self.convict(batch, from, proof)
    }

    /// Whether an author is the person's own, a peer, or a member of a workspace.
    fn is_acquainted(&mut self, batch: &Batch, author: AuthorId) -> Result<bool, Error> {
        Ok(self.writer.mine.contains(&author)
            || batch.has_peer(author)?
            || self.is_listed(batch, author)?)
    }

    /// Keeps a proof, and passes it to those who may know of the entry that it names, and to whoever
    /// brought it, or half of it. Another against the same author takes its place only where all who
    /// may see the first may see it too, and more: somebody may not have read of the first yet.
    fn convict(&mut self, batch: &Batch, from: AuthorId, proof: &Proof) -> Result<(), Error> {
        let author = proof.author();
        let hearers = self.hearers(batch, from, proof.entry())?;
        if let Some(named) = batch.proof_entry(author)? {
            let told = self.hearers(batch, from, named)?;
            if told.len() >= hearers.len() || !told.iter().all(|peer| hearers.contains(peer)) {
                return Ok(());
            }
        }
        batch.put_proof(proof)?;
        if let Some(row) = batch.peer(author)?.filter(|row| row.vouched.is_some()) {
            batch.put_peer(author, &PeerRow { vouched: None, ..row })?;
        }
        self.writer.society_changes += 1;
        let boot = self.writer.boot;
        hearers.into_iter().try_for_each(|peer| batch.append(peer, Outgoing::Proof(author), boot))
    }

    /// The peers that may know of an entry, of which somebody among them has just told.
    fn hearers(
        &self,
        batch: &Batch,
        from: AuthorId,
        entry: EntryId,
    ) -> Result<Vec<AuthorId>, Error> {
        let mut hearers = Vec::new();
        for peer in batch.peers()? {
            let row = batch.peer(peer)?;
            let is_approved = row.is_some_and(|row| row.approval == Approval::Approved);
            if is_approved && (peer == from || self.may_know(batch, peer, entry)?) {
                hearers.push(peer);
            }
        }
        Ok(hearers)
    }

    /// Whether a peer may know of an entry: one's own machine, or one that it has passed to or come from.
    fn may_know(&self, batch: &Batch, peer: AuthorId, entry: EntryId) -> Result<bool, Error> {
        Ok(self.writer.mine.contains(&peer) || batch.release(peer, entry)?.has_passed())
    }

    fn received(
        &mut self,
        batch: &Batch,
        peer: AuthorId,
        receipts: &[Erased],
    ) -> Result<(), Error> {
        for said in receipts {
            // Only of what this node knows to be forgotten: nothing can be learned by asking.
            if batch.tombstone(said.entry)?.is_none() {
                continue;
            }
            let held = batch.receipt(peer, said.entry)?;
            let row = ReceiptRow {
                erased: held.erased.or(Some(self.now)),
                told: said.told,
                acknowledged: said.acknowledged,
                ..held
            };
            if row != held {
                batch.put_receipt(peer, said.entry, row)?;
                batch.renew_receipts(said.entry)?;
            }
        }
        Ok(())
    }

    /// Credit and blame for what was observed here go to the author of the text that was served. What
    /// several wrote is nobody's credit, and blames each of them.
    pub(super) fn note_outcome(
        &mut self,
        batch: &Batch,
        (entry, view): (EntryId, &View),
        of: Observation,
        task: Option<TaskId>,
    ) -> Result<(), Error> {
        let is_success = match of {
            Observation::Success => true,
            Observation::Failure => false,
            Observation::Confirmation => return Ok(()),
        };
        let TextRow { mut authors, digest } = self.observed_text(batch, (entry, view), task)?;
        authors.retain(|author| !self.writer.mine.contains(author));
        let (day, text, is_joint) = (self.now.day(), digest, authors.len() > 1);
        let task = task.map(|task| task.to_string());
        let row = OutcomeRow { day, is_success, entry, task, text, is_joint };
        authors.into_iter().try_for_each(|author| batch.put_outcome(author, &row))
    }

    /// The text that something was observed of: in a task the one that was served there, or above it,
    /// whatever its author has made of it since; else the one that is shown.
    pub(super) fn observed_text(
        &self,
        batch: &Batch,
        (entry, view): (EntryId, &View),
        task: Option<TaskId>,
    ) -> Result<TextRow, Error> {
        let chain = task.map(|task| chain(batch, task)).transpose()?;
        for task in chain.into_iter().flatten() {
            if let Some(text) = batch.task_part(task, entry)?.text {
                return Ok(text);
            }
        }
        Ok(self.text_of(view))
    }

    /// The text that is shown.
    pub(super) fn text_of(&self, view: &View) -> TextRow {
        let mut authors: Vec<AuthorId> = view.author(&self.writer.mine).into_iter().collect();
        let creator = view.origin.as_ref().and_then(Origin::creator);
        // A title that its creator left above another's content is not what misleads.
        let words = view.text_authors().enumerate();
        let words = words.filter(|(place, author)| *place == 0 || Some(*author) != creator);
        for (_, author) in words {
            if !authors.contains(&author) {
                authors.push(author);
            }
        }
        TextRow { authors, digest: Some(view.text_digest()) }
    }
}
