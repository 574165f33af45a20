//! What concerns peers, done by the one writer.

use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use crate::store::peers::rows::{
    Approval, Cursor, OutcomeRow, PeerRow, ReceiptRow, RefusalRow, WorkspaceRow,
};
use crate::store::{Batch, Error};
use klnode_crdt::digest;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, TaskId, WorkspaceId};
use klnode_crdt::record::{RawRecord, Record};
use klnode_crdt::tally::Observation;
use klnode_crdt::view::View;
use klnode_federation::proto::message::Receipt as Erased;
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::{Offerer, Outgoing};

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
    /// A peer's store holds these no longer, which were refused from it.
    Withdrawn(Offerer, Vec<Digest>),
    /// What was refused from a peer's store is welcome now.
    Readmit(Offerer),
    /// How far an author is from a peer, as the peer says.
    Distance(AuthorId, AuthorId, u8),
    /// A proof of equivocation that was checked, and who brought it.
    Convict(Box<Proof>),
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
    (slot, RefusalRow { header, signature, counter, digest, reason })
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

    fn note_peer(&mut self, batch: &Batch, act: &PeerAct) -> Result<(), Error> {
        let boot = self.writer.boot;
        match act {
            PeerAct::Put(peer, row) => {
                // By what is stored: what is in memory may be of an attempt that failed.
                let was_mine = batch.peer(*peer)?.is_some_and(|held| held.counts_as_mine());
                match row.counts_as_mine() {
                    true => self.writer.mine.insert(*peer),
                    false => self.writer.mine.remove(peer),
                };
                if was_mine != row.counts_as_mine() {
                    self.refresh_all_edges(batch)?;
                }
                self.writer.society_changes += 1;
                let held = batch.peer(*peer)?.map(|held| held.approval);
                if row.approval == Approval::Approved && held != Some(Approval::Approved) {
                    // What was proved before it came concerns it too.
                    for author in batch.proofs()? {
                        batch.append(*peer, Outgoing::Proof(author), boot)?;
                    }
                }
                batch.put_peer(*peer, row)
            }
            PeerAct::Equal(peer, at) => match batch.peer(*peer)? {
                Some(row) => batch.put_peer(*peer, &PeerRow { equal_at: Some(*at), ..row }),
                None => Ok(()),
            },
            PeerAct::NameWorkspace(id, row) => {
                self.writer.society_changes += 1;
                batch.put_workspace(*id, row)
            }
            PeerAct::Invite(row) => batch.put_invitation(row),
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
            PeerAct::Refuse(offer, slot, refusal) => batch.put_refusal(*offer, *slot, refusal),
            PeerAct::Withdrawn(offer, digests) => {
                batch.drop_refusals(*offer, |refused| digests.contains(&refused))
            }
            PeerAct::Readmit(offer) => batch.drop_refusals(*offer, |_| true),
            PeerAct::Distance(author, peer, hop) => batch.put_distance(*author, *peer, *hop),
            PeerAct::Convict(proof) => self.convict(batch, proof),
            PeerAct::Received(peer, receipts) => self.received(batch, *peer, receipts),
            PeerAct::Told(peer, receipts) => {
                for told in receipts {
                    let row = batch.receipt(*peer, told.entry)?;
                    batch.put_receipt(*peer, told.entry, ReceiptRow { is_due: false, ..row })?;
                }
                Ok(())
            }
        }
    }

    /// Keeps a proof, and passes it to everyone who may talk: it speaks of the author alone.
    pub(super) fn convict(&mut self, batch: &Batch, proof: &Proof) -> Result<(), Error> {
        if batch.has_proof(proof.author())? {
            return Ok(());
        }
        batch.put_proof(proof)?;
        self.writer.society_changes += 1;
        batch.tell_all(Outgoing::Proof(proof.author()), self.writer.boot)
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

    /// Credit and blame for what was observed here go to the author of the text that is shown.
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
        let Some(author) = view.author(&self.writer.mine) else { return Ok(()) };
        if self.writer.mine.contains(&author) {
            return Ok(());
        }
        let (day, text) = (self.now.day(), Some(view.text_digest()));
        let task = task.map(|task| task.to_string());
        let row = OutcomeRow { day, is_success, entry, task, text };
        batch.put_outcome(author, &row)
    }

    /// An entry as it is shown here, and who answers for its text.
    pub(super) fn shown(
        &self,
        batch: &Batch,
        entry: EntryId,
    ) -> Result<Option<(AuthorId, View)>, Error> {
        let Some(view) = self.view(batch, entry)? else { return Ok(None) };
        Ok(view.author(&self.writer.mine).map(|author| (author, view)))
    }
}
