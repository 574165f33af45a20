//! Data read for one record and reused for the next record of the same step.
//!
//! Merging a record needs all live records of its author on the entry, which may be many and large.
//! A peer that delivers many small records must not cause all of them to be read again for each.

use super::{OVER_QUOTA, Transaction, UNEXPLAINED, facets_read};
use crate::command::{IngestOutcome, RecordSource};
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::Record;
use klnode_crdt::version_vector::VersionVector;
use klnode_crdt::workspace_charter;
use klnode_store::{Batch, Damage, Error, WAITING_OF_PEER_MAX};
use std::collections::{BTreeMap, BTreeSet};

/// An author's records on an entry, in the facets that a merge reads.
type MergeKey = (EntryId, AuthorId, &'static [Facet]);
/// An author's records on an entry in one facet.
type FacetKey = (EntryId, AuthorId, Facet);

/// Data and counts that a step has read.
#[derive(Default)]
pub(crate) struct StepCache {
    /// The records of the last merged author, never those of this node.
    holding: Option<(MergeKey, LiveRecords)>,
    /// Headers of an author's records that fill all slots.
    full: Option<(FacetKey, Vec<(SignedHeader, VersionVector)>)>,
    /// Number of quarantined records that each peer delivered.
    waiting: BTreeMap<AuthorId, u64>,
    /// The charters of all workspaces, and all members they list.
    listed: Option<(BTreeSet<EntryId>, BTreeSet<AuthorId>)>,
}

impl Transaction<'_> {
    /// Returns the records that a merge has to see. A peer's record is merged with the intact
    /// records only, so that damage is repaired record by record. A local record must not be: it
    /// would be signed without regard to the damaged ones, so damage is an error.
    pub(super) fn holding_for_merge(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<LiveRecords, Error> {
        let at = (record.entry(), record.author(), facets_read(record));
        let kept = self.kept.holding.take();
        if source == RecordSource::Local {
            return batch.holding(at.0, at.1, at.2, Damage::Told);
        }
        if let Some((_, held)) = kept.filter(|(of, _)| *of == at) {
            let names: BTreeSet<Digest> = batch.held_names(at)?.into_iter().collect();
            // Another command of the step may have written there since.
            if held.records().map(Record::digest).collect::<BTreeSet<_>>() == names {
                return Ok(held);
            }
        }
        let (held, dropped) = batch.whole_holding(at)?;
        if !dropped.is_empty() && at.1 == self.writer.key.author() {
            // The used slot positions are unknown now, and peers may hold the dropped records.
            self.leave_slots(batch)?;
        }
        self.note_dropped(at.0, dropped);
        Ok(held)
    }

    /// Caches the records after a merge. Own records are not cached because other code paths write
    /// them too.
    pub(super) fn keep(&mut self, record: &Record, held: LiveRecords) {
        if record.author() != self.writer.key.author() {
            self.kept.holding =
                Some(((record.entry(), record.author(), facets_read(record)), held));
        }
    }

    /// Returns the outcome for a record whose author has used all slots of the facet, if the
    /// headers alone decide it: the record neither covers a stored one, nor is covered by one, nor
    /// equivocates with one.
    pub(super) fn slot_quota_violation(
        &mut self,
        batch: &Batch,
        record: &Record,
    ) -> Result<Option<IngestOutcome>, Error> {
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
            let versions: Vec<VersionVector> = headers.iter().map(SignedHeader::version).collect();
            self.kept.full = Some((at, headers.into_iter().zip(versions).collect()));
        }
        let Some((_, held)) = &self.kept.full else { return Ok(None) };
        let version = record.version();
        let is_unrelated = |(signed, other): &(SignedHeader, VersionVector)| {
            !version.covers(other)
                && !other.covers(&version)
                && EquivocationProof::find(signed, record.signed_header()).is_none()
        };
        // A damaged record makes room.
        if held.len() < names.len() || !held.iter().all(is_unrelated) {
            return Ok(None);
        }
        let retractions = (at.0, at.1, &[Facet::Retraction][..]);
        if record.payload().is_none() && batch.held_names(retractions)?.is_empty() {
            return Ok(Some(IngestOutcome::Deferred(UNEXPLAINED.into())));
        }
        Ok(Some(IngestOutcome::Refused(OVER_QUOTA.into())))
    }

    /// Whether a peer may have one more record in quarantine. Records from a file count for no
    /// peer.
    pub(super) fn has_room_to_wait(
        &mut self,
        batch: &Batch,
        source: RecordSource,
    ) -> Result<bool, Error> {
        let Some(from) = self.bringer(source) else { return Ok(true) };
        let waiting = match self.kept.waiting.get(&from) {
            Some(waiting) => *waiting,
            None => batch.waiting_of(from)?,
        };
        self.kept.waiting.insert(from, waiting);
        Ok(waiting < WAITING_OF_PEER_MAX)
    }

    /// Whether an author is a member of any workspace known here.
    pub(crate) fn is_listed(&mut self, batch: &Batch, author: AuthorId) -> Result<bool, Error> {
        let listed = match self.kept.listed.take() {
            Some(listed) => listed,
            None => {
                let (mut charters, mut members) = (BTreeSet::new(), BTreeSet::new());
                for workspace in batch.workspaces()? {
                    charters.insert(workspace_charter::entry(workspace));
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

    /// Drops the cached members if the written entry is a charter, or if a workspace was added
    /// (`None`).
    pub(crate) fn members_may_change(&mut self, written: Option<EntryId>) {
        if let Some((charters, _)) = &self.kept.listed
            && written.is_none_or(|written| charters.contains(&written))
        {
            self.kept.listed = None;
        }
    }

    /// Drops the data read of an entry that changed outside a merge.
    pub(crate) fn forget_read(&mut self, entry: EntryId) {
        self.kept.holding = self.kept.holding.take().filter(|((of, ..), _)| *of != entry);
        self.kept.full = self.kept.full.take().filter(|((of, ..), _)| *of != entry);
        self.forget_bytes(entry);
    }

    /// Counts a newly quarantined record for its delivering peer.
    pub(super) fn note_waiting(&mut self, source: RecordSource, is_more: bool) {
        if let Some(from) = self.bringer(source)
            && is_more
        {
            *self.kept.waiting.entry(from).or_default() += 1;
        }
    }
}
