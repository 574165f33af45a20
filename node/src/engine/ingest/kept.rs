//! What is read for one record and kept for the next of the same step.
//!
//! A record is merged with all that its author has live on the entry, and of that there may be many, each
//! as large as records may be. Whoever brings one small record after another must not have all of it read
//! again for each.

use super::{Ingest, OVER_QUOTA, UNEXPLAINED, beside};
use crate::engine::command::{Ingested, Source};
use crate::store::{Batch, Damage, Error, WAITING_OF_PEER_MAX};
use klnode_crdt::charter;
use klnode_crdt::equivocation::Proof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::record::Record;
use klnode_crdt::version::Version;
use std::collections::{BTreeMap, BTreeSet};

/// Whose records on which entry, in the facets that a merge looks at.
type Beside = (EntryId, AuthorId, &'static [Facet]);
/// The same of one facet.
type Kind = (EntryId, AuthorId, Facet);

/// What a step has read, and what it has counted.
#[derive(Default)]
pub(in crate::engine) struct Kept {
    /// What another author has there.
    holding: Option<(Beside, Holding)>,
    /// Headers of as many records as there may be.
    full: Option<(Kind, Vec<(SignedHeader, Version)>)>,
    /// How many of the records that wait for the operator a peer has brought.
    waiting: BTreeMap<AuthorId, u64>,
    /// The charters of all workspaces, and whom they list.
    listed: Option<(BTreeSet<EntryId>, BTreeSet<AuthorId>)>,
}

impl Ingest<'_> {
    /// What the merge of a record needs to see. What a peer brings is merged with what is whole, so
    /// that damage is mended record by record; what is written here must not be, since it would be
    /// signed beside something unseen.
    pub(super) fn held_beside(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
    ) -> Result<Holding, Error> {
        let at = (record.entry(), record.author(), beside(record));
        let kept = self.kept.holding.take();
        if source == Source::Local {
            return batch.holding(at.0, at.1, at.2, Damage::Told);
        }
        if let Some((_, held)) = kept.filter(|(of, _)| *of == at) {
            let names: BTreeSet<Digest> = batch.held_names(at)?.into_iter().collect();
            // Something else in the step may have written there since.
            if held.records().map(Record::digest).collect::<BTreeSet<_>>() == names {
                return Ok(held);
            }
        }
        let (held, dropped) = batch.whole_holding(at)?;
        if !dropped.is_empty() && at.1 == self.writer.key.author() {
            // How far its slots were used is not known any more, and others may hold what stood there.
            self.leave_slots(batch)?;
        }
        self.note_dropped(at.0, dropped);
        Ok(held)
    }

    /// Keeps what is held beside a record now. What this node says itself is written in other ways, too.
    pub(super) fn keep(&mut self, record: &Record, held: Holding) {
        if record.author() != self.writer.key.author() {
            self.kept.holding = Some(((record.entry(), record.author(), beside(record)), held));
        }
    }

    /// What becomes of a record whose author has as many of its kind as there may be, where that is told
    /// by their headers: it neither takes the place of one of them, nor gives way to one, nor
    /// contradicts one.
    pub(super) fn one_too_many(
        &mut self,
        batch: &Batch,
        record: &Record,
    ) -> Result<Option<Ingested>, Error> {
        let at = (record.entry(), record.author(), record.header().facet);
        let names = batch.held_names((at.0, at.1, &[at.2][..]))?;
        if names.len() < LIVE_SLOTS_MAX || names.contains(&record.digest()) {
            return Ok(None);
        }
        let is_read = self.kept.full.as_ref().is_some_and(|(of, held)| {
            *of == at && held.iter().map(|(signed, _)| signed.digest()).eq(names.iter().copied())
        });
        if !is_read {
            let headers = batch.held_headers(at)?;
            let versions: Vec<Version> = headers.iter().map(SignedHeader::version).collect();
            self.kept.full = Some((at, headers.into_iter().zip(versions).collect()));
        }
        let Some((_, held)) = &self.kept.full else { return Ok(None) };
        let version = record.version();
        let is_apart = |(signed, other): &(SignedHeader, Version)| {
            !version.covers(other)
                && !other.covers(&version)
                && Proof::find(signed, record.signed()).is_none()
        };
        // One that is damaged makes room.
        if held.len() < names.len() || !held.iter().all(is_apart) {
            return Ok(None);
        }
        let retractions = (at.0, at.1, &[Facet::Retraction][..]);
        if record.payload().is_none() && batch.held_names(retractions)?.is_empty() {
            return Ok(Some(Ingested::Deferred(UNEXPLAINED.into())));
        }
        Ok(Some(Ingested::Refused(OVER_QUOTA.into())))
    }

    /// Whether a peer may have one more record wait for the operator. What stands in a file was brought
    /// by nobody.
    pub(super) fn has_room_to_wait(
        &mut self,
        batch: &Batch,
        source: Source,
    ) -> Result<bool, Error> {
        let Some(from) = self.bringer(source) else { return Ok(true) };
        let waiting = match self.kept.waiting.get(&from) {
            Some(waiting) => *waiting,
            None => batch.waiting_of(from)?,
        };
        self.kept.waiting.insert(from, waiting);
        Ok(waiting < WAITING_OF_PEER_MAX)
    }

    /// Whether an author belongs to any workspace that is known here.
    pub(in crate::engine) fn is_listed(
        &mut self,
        batch: &Batch,
        author: AuthorId,
    ) -> Result<bool, Error> {
        let listed = match self.kept.listed.take() {
            Some(listed) => listed,
            None => {
                let (mut charters, mut members) = (BTreeSet::new(), BTreeSet::new());
                for workspace in batch.workspaces()? {
                    charters.insert(charter::entry(workspace));
                    let charter = Error::unless_damaged(batch.charter(workspace, self.now))?;
                    members.extend(charter.unwrap_or_default().members);
                }
                (charters, members)
            }
        };
        let is_listed = listed.1.contains(&author);
        self.kept.listed = Some(listed);
        Ok(is_listed)
    }

    /// Who belongs to workspaces is read anew if an entry that was written is a charter, or if there is
    /// another workspace.
    pub(in crate::engine) fn members_may_change(&mut self, written: Option<EntryId>) {
        if let Some((charters, _)) = &self.kept.listed
            && written.is_none_or(|written| charters.contains(&written))
        {
            self.kept.listed = None;
        }
    }

    /// Counts a record that waits now, if it is one more.
    pub(super) fn note_waiting(&mut self, source: Source, is_more: bool) {
        if let Some(from) = self.bringer(source)
            && is_more
        {
            *self.kept.waiting.entry(from).or_default() += 1;
        }
    }
}
