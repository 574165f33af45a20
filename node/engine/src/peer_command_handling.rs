//! Commands about peers: approval, releases, outboxes, refusals, proofs and erasure receipts.

use super::command::{PeerCommand, Receipt, Rejection};
use super::record_intake::Transaction;
use super::record_refusal::{REJECTED, TOO_MANY_WAIT};
use super::tasks::chain;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};
use klnode_crdt::tally::Observation;
use klnode_federation::proto::OutboxTarget;
use klnode_federation::proto::message::ErasureReceipt as Erased;
use klnode_store::peers::row_types::{OutcomeRow, PeerApproval, PeerRow, ReceiptRow};
use klnode_store::tasks::TextRow;
use klnode_store::{Batch, Error};

/// Most equivocation proofs kept, of whichever author.
pub(super) const PROOFS_MAX: u64 = 1_000;
/// Most proofs kept including those about authors for which a peer stated a distance; peers can
/// state distances for any author.
pub(super) const PROOFS_TOLD_MAX: u64 = 3_000;
/// Most proofs about authors that are neither peers nor members here that one peer may deliver per
/// process start.
pub(super) const PROOFS_OF_PEER_MAX: u64 = 1_000;

impl Transaction<'_> {
    pub(super) fn note_peers(
        &mut self,
        batch: &Batch,
        acts: &[PeerCommand],
    ) -> Result<Receipt, Rejection> {
        for act in acts {
            self.note_peer(batch, act)?;
        }
        Ok(Receipt::Done(batch.head()?))
    }

    /// Stores a peer's row and applies its consequences.
    fn put_peer(&mut self, batch: &Batch, peer: AuthorId, row: &PeerRow) -> Result<(), Error> {
        let boot = self.writer.boot;
        // Compare with the stored row, since the one in memory may stem from a failed attempt.
        let held = batch.peer(peer)?;
        match row.counts_as_mine() {
            true => self.writer.mine.insert(peer),
            false => self.writer.mine.remove(&peer),
        };
        let was_mine = held.as_ref().is_some_and(PeerRow::counts_as_mine);
        if was_mine != row.counts_as_mine() {
            self.refresh_all_edges(batch)?;
        }
        self.writer.membership_changes += 1;
        let was_approved = held.is_some_and(|held| held.approval == PeerApproval::Approved);
        let is_approved = row.approval == PeerApproval::Approved;
        if was_approved != is_approved {
            batch.end_out(peer, (boot, self.now))?;
        }
        if is_approved && (!was_approved || (row.counts_as_mine() && !was_mine)) {
            // Proofs stored earlier concern the new peer too.
            for author in batch.proofs()? {
                if let Some(entry) = batch.proof_entry(author)?
                    && self.may_know(batch, peer, entry)?
                {
                    batch.append(peer, OutboxTarget::Proof(author), boot)?;
                }
            }
        }
        // Blocking or removing a peer ends its vouch, and the vouch does not return with the peer.
        let vouched = row.standing_vouch();
        batch.put_peer(peer, &PeerRow { vouched, ..row.clone() })
    }

    fn note_peer(&mut self, batch: &Batch, act: &PeerCommand) -> Result<(), Error> {
        let boot = self.writer.boot;
        match act {
            PeerCommand::Put(peer, row) => self.put_peer(batch, *peer, row),
            PeerCommand::Equal(peer, at) => match batch.peer(*peer)? {
                Some(row) => batch.put_peer(*peer, &PeerRow { equal_at: Some(*at), ..row }),
                None => Ok(()),
            },
            PeerCommand::NameWorkspace(id, row) => {
                self.writer.membership_changes += 1;
                self.members_may_change(None);
                self.members_changed(*id);
                batch.put_workspace(*id, row)
            }
            PeerCommand::Invite(row) => batch.put_invitation(row, self.now),
            PeerCommand::Advance(consumer, cursor) => batch.put_cursor(*consumer, *cursor),
            PeerCommand::Rewind(consumer) => batch.drop_cursor(*consumer),
            PeerCommand::Release(peer, entry, is_open) => {
                batch.set_release(*peer, *entry, *is_open, (boot, self.now))
            }
            PeerCommand::Released(peer, entry, is_open) => {
                batch.set_back(*peer, *entry, *is_open, self.now)
            }
            PeerCommand::Requeue(peer, digests) => {
                digests.iter().try_for_each(|digest| batch.requeue(*peer, *digest, boot))
            }
            PeerCommand::Restart(peer) => batch.restart_outbox(*peer, boot),
            PeerCommand::Reread(peer) => {
                batch.drop_cursor(*peer)?;
                batch.end_back(*peer, self.now)?;
                batch.restart_outbox(*peer, boot)
            }
            PeerCommand::Refuse(offer, slot, refusal) => match self.is_void(batch, refusal)? {
                true => batch.request_reread(offer.peer),
                false => batch.note_refusal(*offer, *slot, refusal),
            },
            PeerCommand::Withdrawn(offer, digests) => {
                batch.drop_refusals(*offer, |refused| digests.contains(&refused.digest)).map(|_| ())
            }
            // A filter change does not readmit records that the operator rejected.
            PeerCommand::Readmit(offer) => {
                batch.drop_refusals(*offer, |refused| refused.reason != REJECTED).map(|_| ())
            }
            PeerCommand::ReadmitWaiting(offer) => {
                batch.drop_refusals(*offer, |refused| refused.reason == TOO_MANY_WAIT).map(|_| ())
            }
            PeerCommand::Distance(author, peer, hop) => batch.put_distance(*author, *peer, *hop),
            PeerCommand::Convict(from, proof) => self.handle_proof(batch, *from, proof),
            PeerCommand::Received(peer, receipts) => self.store_receipts(batch, *peer, receipts),
            PeerCommand::Told(peer, receipts) => {
                for told in receipts {
                    // A damaged row would be sent for ever and block later ones, so it is replaced.
                    // Receipts are owed only to the peer that delivered the tombstone.
                    let row = Error::unless_damaged(batch.receipt(*peer, told.entry))?;
                    let row = row
                        .unwrap_or_else(|| ReceiptRow { is_upstream: true, ..Default::default() });
                    batch.put_receipt(*peer, told.entry, ReceiptRow { is_due: false, ..row })?;
                }
                Ok(())
            }
        }
    }

    /// Handles a proof delivered by a peer or formed by two records. Anyone can create keys and
    /// convict them, so the number of kept proofs is limited: above the first limit only proofs
    /// about authors with a stated distance are kept, and above the second limit, or above one
    /// peer's share, only proofs about authors this node knows itself.
    pub(super) fn handle_proof(
        &mut self,
        batch: &Batch,
        from: AuthorId,
        proof: &EquivocationProof,
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
        } else if is_convicted || !self.is_known_author(batch, author)? {
            return Ok(());
        }
        self.convict(batch, from, proof)
    }

    /// Whether an author is one of this person's keys, a peer, or a member of a workspace.
    fn is_known_author(&mut self, batch: &Batch, author: AuthorId) -> Result<bool, Error> {
        Ok(self.writer.mine.contains(&author)
            || batch.has_peer(author)?
            || self.is_listed(batch, author)?)
    }

    /// Stores a proof and queues it for the peers that may know its entry, and for the peer that
    /// delivered it or half of it. A second proof against the same author replaces the first only
    /// if strictly more peers may see it, including all who may see the first, since some may not
    /// have read the first yet.
    fn convict(
        &mut self,
        batch: &Batch,
        from: AuthorId,
        proof: &EquivocationProof,
    ) -> Result<(), Error> {
        let author = proof.author();
        let recipients = self.recipients(batch, from, proof.entry())?;
        if let Some(named) = batch.proof_entry(author)? {
            let told = self.recipients(batch, from, named)?;
            if told.len() >= recipients.len() || !told.iter().all(|peer| recipients.contains(peer))
            {
                return Ok(());
            }
        }
        batch.put_proof(proof)?;
        if let Some(row) = batch.peer(author)?.filter(|row| row.vouched.is_some()) {
            batch.put_peer(author, &PeerRow { vouched: None, ..row })?;
        }
        self.writer.membership_changes += 1;
        let boot = self.writer.boot;
        recipients
            .into_iter()
            .try_for_each(|peer| batch.append(peer, OutboxTarget::Proof(author), boot))
    }

    /// The approved peers that may know an entry, including the peer that just mentioned it.
    fn recipients(
        &self,
        batch: &Batch,
        from: AuthorId,
        entry: EntryId,
    ) -> Result<Vec<AuthorId>, Error> {
        let mut recipients = Vec::new();
        for peer in batch.peers()? {
            let row = batch.peer(peer)?;
            let is_approved = row.is_some_and(|row| row.approval == PeerApproval::Approved);
            if is_approved && (peer == from || self.may_know(batch, peer, entry)?) {
                recipients.push(peer);
            }
        }
        Ok(recipients)
    }

    /// Whether a peer may know an entry: it is this person's own machine, or a record of the entry
    /// passed between the two nodes.
    fn may_know(&self, batch: &Batch, peer: AuthorId, entry: EntryId) -> Result<bool, Error> {
        Ok(self.writer.mine.contains(&peer) || batch.release(peer, entry)?.has_passed())
    }

    fn store_receipts(
        &mut self,
        batch: &Batch,
        peer: AuthorId,
        receipts: &[Erased],
    ) -> Result<(), Error> {
        for said in receipts {
            // Accept receipts only for entries this node knows to be forgotten, so a peer cannot
            // probe for others.
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

    /// Credits or blames the authors of the observed text. A text of several authors earns none of
    /// them credit but blames each.
    pub(super) fn note_outcome(
        &mut self,
        batch: &Batch,
        (entry, view): (EntryId, &EntryView),
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

    /// The observed text: within a task the one served there or in a parent task, even if it was
    /// edited since; otherwise the current one.
    pub(super) fn observed_text(
        &self,
        batch: &Batch,
        (entry, view): (EntryId, &EntryView),
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

    /// The current text with its authors.
    pub(super) fn text_of(&self, view: &EntryView) -> TextRow {
        let mut authors: Vec<AuthorId> = view.author(&self.writer.mine).into_iter().collect();
        let creator = view.origin.as_ref().and_then(Origin::creator);
        // The creator's title above another author's content is not blamed.
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
