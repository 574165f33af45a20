//! The single code path into the store, for records written here and records delivered by peers.
//!
//! A record arrives with a verified signature. If its entry was forgotten the record is discarded;
//! if it is a tombstone the entry is erased. Otherwise the judge decides, and an admitted record is
//! merged with its author's other records on the entry: covered records are dropped, retracted
//! payloads are erased, and the feed gets a row.

use super::command::{IngestOutcome, RecordSource, ScreenDecision};
use super::document_cache::DocumentChanges;
use super::local_author::LocalAuthor;
use super::member_removal_cache::RemovalCache;
use super::quota_counts::QuotaCounts;
use super::record_refusal::TOO_MANY_WAIT;
use super::record_screen::RecordScreen;
use super::replaced_records::{ReplacedRecord, StepReplacements};
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::live_records::{LiveRecords, MergeEffects, MergeOutcome};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::RecordBuilder;
use klnode_crdt::time::WallTime;
use klnode_crdt::tombstone::Authority;
use klnode_home::CallerLabel;
use klnode_store::peers::row_types::{ReleaseRow, ReleaseState};
use klnode_store::row_types::{CallerRow, QuarantineRow, ViewRow};
use klnode_store::{Batch, Error, QuarantineResult};
use std::collections::{BTreeMap, BTreeSet};

mod step_cache;

pub(super) use step_cache::StepCache;

/// Reason for deferring a record without a payload.
const UNEXPLAINED: &str = "its payload is missing and no retraction explains that";
/// Reason for refusing a record whose author has the maximum number of live records on the entry.
const OVER_QUOTA: &str = "its author has too many live records on this entry";

/// By entry: the superseded entries that an author's replaced records named and its current records
/// do not.
pub(super) type DroppedHints = BTreeMap<EntryId, BTreeSet<EntryId>>;

/// The state that ingesting the records of one step needs.
pub(super) struct Transaction<'a> {
    pub(super) writer: &'a mut LocalAuthor,
    pub(super) judge: &'a mut dyn RecordScreen,
    pub(super) now: WallTime,
    /// The caller of the current command, if it has one. All fields of a caller may be unknown.
    pub(super) caller: Option<CallerRow>,
    /// Whether this step drew a new boot because it met records of another process of this home, or
    /// dropped damaged own records. One new boot per step is enough.
    pub(super) has_left_slots: bool,
    /// Author and byte counts of entries, as far as this step has read them.
    pub(super) quota: QuotaCounts,
    /// Data read for the previous record that may serve for the next one.
    pub(super) kept: StepCache,
    /// Supersession hints that a record of this step no longer gives.
    pub(super) dropped_hints: DroppedHints,
    /// Records that this step replaced, for readers of the feed.
    pub(super) covered: StepReplacements,
    /// Removed keys, as far as this step has read or changed them.
    pub(super) removals: RemovalCache,
    /// Documents that this step has changed.
    pub(super) documents: DocumentChanges,
}

/// Whether the judge is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screening {
    /// Ask the judge.
    Judge,
    /// Skip the judge, because the operator has decided or the record was admitted before.
    Nobody,
}

impl Transaction<'_> {
    /// The caller's session, if it has a name.
    pub(super) fn session(&self) -> Option<CallerLabel> {
        self.caller.and_then(|caller| caller.session)
    }

    /// Merges a verified record if the judge admits it.
    pub(super) fn ingest(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<IngestOutcome, Error> {
        self.take(batch, record, source, Screening::Judge)
    }

    pub(super) fn take(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
        ask: Screening,
    ) -> Result<IngestOutcome, Error> {
        if let Some(reason) = self.removal_violation(batch, record, source)? {
            return Ok(IngestOutcome::Refused(reason.into()));
        }
        if record.header().facet == Facet::Tombstone {
            return self.apply_tombstone(batch, record, source);
        }
        // A damaged tombstone still shows that the entry was forgotten, so nothing is written in
        // its place.
        match Error::unless_damaged(batch.tombstone(record.entry()))? {
            Some(None) => {}
            tombstone => {
                self.send_tombstone(batch, tombstone.flatten().as_ref(), source)?;
                return Ok(IngestOutcome::Forgotten);
            }
        }
        if record.header().facet == Facet::Edit {
            return self.take_edit(batch, record, source);
        }
        if source != RecordSource::Local
            && let Some(ingested) = self.slot_quota_violation(batch, record)?
        {
            return Ok(ingested);
        }
        let before = self.holding_for_merge(batch, record, source)?;
        if ask == Screening::Judge
            && let Some(reason) = self.author_quota_violation(batch, record, source)?
        {
            return Ok(IngestOutcome::Refused(reason));
        }
        let (ingested, after) = self.merge(batch, record, (source, ask), &before)?;
        if source != RecordSource::Local {
            self.keep(record, after.unwrap_or(before));
        }
        Ok(ingested)
    }

    /// Merges a record with its author's other records. Returns the outcome, and the new set of
    /// records if it changed.
    fn merge(
        &mut self,
        batch: &Batch,
        record: &Record,
        (source, ask): (RecordSource, Screening),
        before: &LiveRecords,
    ) -> Result<(IngestOutcome, Option<LiveRecords>), Error> {
        let mut after = before.clone();
        let merge = after.merge(record.clone());
        if let Some(proof) = &merge.proof {
            // Which of the two records is stored does not depend on whether the proof is kept.
            let from = self.bringer(source).unwrap_or(self.writer.key.author());
            self.handle_proof(batch, from, proof)?;
        }
        let is_own_returned =
            source != RecordSource::Local && record.author() == self.writer.key.author();
        let changes = match merge.outcome {
            MergeOutcome::Merged(changes) => changes,
            // An equivocating twin of an own record comes from another process of this home that
            // uses the same boot. Once this process uses another boot the twin is no news, however
            // often a peer delivers it.
            MergeOutcome::Known if is_own_returned && merge.proof.is_some() => {
                if record.header().place.boot == self.writer.boot {
                    self.meet_other_process(batch, before, record)?;
                }
                return Ok((IngestOutcome::Known, None));
            }
            MergeOutcome::Known => {
                self.note_bringer(batch, record, source)?;
                return Ok((IngestOutcome::Known, None));
            }
            MergeOutcome::Unexplained => {
                return Ok((IngestOutcome::Deferred(UNEXPLAINED.into()), None));
            }
            MergeOutcome::OverQuota => {
                return Ok((IngestOutcome::Refused(OVER_QUOTA.into()), None));
            }
        };
        // The judge only sees payloads that would be shown. A payload that a retraction erases at
        // once is not judged, and a retraction is always accepted, whichever peer delivers it.
        let stays = after.get(record.digest()).is_some_and(|live| live.payload().is_some());
        if ask == Screening::Judge && stays && record.header().facet != Facet::Retraction {
            match self.judge.judge(record, source) {
                ScreenDecision::Admit => {}
                ScreenDecision::Quarantine(reason) => {
                    return Ok((self.quarantine(batch, record, source, reason)?, None));
                }
                ScreenDecision::Refuse(reason) => {
                    return Ok((IngestOutcome::Refused(reason), None));
                }
            }
        }
        if source != RecordSource::Local
            && let Some(reason) = self.byte_quota_violation(batch, record, ask, (before, &after))?
        {
            return Ok((IngestOutcome::Refused(reason.into()), None));
        }
        let ingested = self.apply(batch, before, &after, record, &changes)?;
        self.update_author_bytes(record, (before, &after));
        self.follow_edges(batch, record)?;
        self.queue_for_peers(batch, record, source)?;
        if is_own_returned {
            self.meet_other_process(batch, before, record)?;
        }
        Ok((ingested, Some(after)))
    }

    fn apply(
        &mut self,
        batch: &Batch,
        before: &LiveRecords,
        after: &LiveRecords,
        record: &Record,
        changes: &MergeEffects,
    ) -> Result<IngestOutcome, Error> {
        let mut covered = Vec::new();
        for record in changes.covered.iter().filter_map(|digest| before.get(*digest)) {
            covered.extend(batch.drop_record(record)?.map(|from| (from, record.clone())));
        }
        if !changes.erased.is_empty() {
            self.covered.erased.push(record.entry());
        }
        let others = changes.erased.iter().filter(|digest| **digest != record.digest());
        for erased in others.filter_map(|digest| after.get(*digest)) {
            batch.erase_payload(erased)?;
        }
        if let Some(stripped) = before.get(record.digest()) {
            batch.drop_record(stripped)?;
        }
        // A record whose payload a retraction erases at once and that is then covered leaves no
        // trace.
        let live = after.get(record.digest());
        let seq = live.map(|live| batch.put_record(live)).transpose()?;
        let until = seq.map_or_else(|| batch.head(), Ok)?;
        self.covered.covered.extend(covered.into_iter().map(|(from, record)| ReplacedRecord {
            from,
            until,
            entry: record.entry(),
            record: Some(record),
        }));
        if record.header().facet == Facet::Retraction {
            // Quarantined claims of this author are retracted now, so they need not wait for the
            // operator.
            let (entry, author) = (record.entry(), record.author());
            let claims = [Facet::Claims.code()];
            let under = [&entry.as_bytes()[..], &author.as_bytes()[..], &claims].concat();
            batch.drop_quarantined_under(&under)?;
        }

        let row = batch.view_row(record.entry())?;
        let is_reworded = match &row {
            // A tally contains no text and may be long to read.
            Some(row) if record.header().facet != Facet::Tally => {
                self.changes_text(batch, row, record.author(), (before, after))?
            }
            _ => false,
        };
        let mut row = row.unwrap_or_else(|| ViewRow::new(self.now));
        row.reworded = if is_reworded { Some(self.now) } else { row.reworded };
        if let Some(
            Payload::Claims { origin: Some(origin), .. }
            | Payload::Retraction { origin: Some(origin), .. },
        ) = live.and_then(Record::payload)
        {
            if row.workspace.is_none() && row.records > 0 {
                self.note_placed(record.entry());
            }
            row.learn(origin);
        }
        self.update_hints(batch, (before, after), (record.entry(), record.author()))?;
        let gone = before.records().len() as u32;
        row.records = row.records.saturating_sub(gone).saturating_add(after.records().len() as u32);
        row.seq = seq.unwrap_or(row.seq);
        batch.put_view_row(record.entry(), &row)?;
        Ok(seq.map_or(IngestOutcome::Known, IngestOutcome::Merged))
    }

    /// Whether an entitled author other than this person changed content, title or summary of a
    /// known entry. Confirmations up to now were of another text.
    fn changes_text(
        &self,
        batch: &Batch,
        row: &ViewRow,
        author: AuthorId,
        (before, after): (&LiveRecords, &LiveRecords),
    ) -> Result<bool, Error> {
        let texts = |held: &LiveRecords| Entry::assemble(held.records()).texts_by(author);
        if self.writer.mine.contains(&author) || texts(before) == texts(after) {
            return Ok(false);
        }
        match row.workspace {
            _ if row.creator == Some(author) => Ok(true),
            Some(workspace) if !workspace.is_personal() => {
                Ok(batch.entitled(workspace, self.now)?.contains(&author))
            }
            _ => Ok(false),
        }
    }

    /// Handles an own record that this node did not know: it comes from another process of this
    /// home, such as a clone, or was written before an old copy was restored. From now on this
    /// process writes into fresh slots, and signs again the records that the other process's newer
    /// ones would cover merely by age.
    fn meet_other_process(
        &mut self,
        batch: &Batch,
        before: &LiveRecords,
        record: &Record,
    ) -> Result<(), Error> {
        self.leave_slots(batch)?;
        let facet = record.header().facet;
        let version = record.version();
        let is_aged = |held: &Record| version.covers_by_age_alone(&held.version());
        if !before.facet(facet).any(is_aged) {
            return Ok(());
        }
        let both = LiveRecords::from_held(before.records().cloned().chain([record.clone()]));
        let entry = record.entry();
        let writer =
            RecordBuilder { key: &self.writer.key, boot: self.writer.boot, entry, own: &both };
        let stamp = self.writer.clock.stamp(self.now);
        match writer.carry_over(facet, stamp) {
            Ok(carried) => {
                self.take(batch, &carried, RecordSource::Local, Screening::Nobody).map(|_| ())
            }
            // The claims do not fit into one record; then both records stay with the nodes that
            // hold them.
            Err(refusal) => {
                tracing::warn!(%entry, %refusal, "Two records of this author exceed the size of one, so both are kept");
                Ok(())
            }
        }
    }

    /// Makes this process write into fresh slots, once per step.
    pub(super) fn leave_slots(&mut self, batch: &Batch) -> Result<(), Error> {
        if self.has_left_slots {
            return Ok(());
        }
        self.has_left_slots = true;
        self.draw_boot(batch)
    }

    /// Draws a new boot, so that later records of this process share no slot with earlier ones.
    pub(super) fn draw_boot(&mut self, batch: &Batch) -> Result<(), Error> {
        self.writer.draw_boot();
        batch.begin_epoch(self.writer.boot, self.now)
    }

    /// Applies a tombstone.
    fn apply_tombstone(
        &mut self,
        batch: &Batch,
        tombstone: &Record,
        source: RecordSource,
    ) -> Result<IngestOutcome, Error> {
        let is_entitled = match tombstone.authority() {
            Authority::Proved => true,
            Authority::IfMine => self.is_own_tombstone(batch, tombstone.author(), source)?,
            Authority::None => false,
        };
        if !is_entitled {
            return Ok(IngestOutcome::Refused("its author may not forget the entry".into()));
        }
        let entry = tombstone.entry();
        // A damaged tombstone is replaced.
        let held = Error::unless_damaged(batch.tombstone(entry))?.flatten();
        let is_known = held.is_some_and(|held| held.tombstone_rank() <= tombstone.tombstone_rank());
        if let Some(from) = self.bringer(source) {
            batch.owe_receipt(from, entry)?;
        }
        if is_known {
            self.note_bringer(batch, tombstone, source)?;
            return Ok(IngestOutcome::Known);
        }
        let row = batch.view_row(entry)?.unwrap_or_else(|| ViewRow::new(self.now));
        let seq = batch.put_tombstone(tombstone, &row)?;
        self.covered.erased.push(entry);
        self.writer.documents.remove(entry);
        self.queue_for_peers(batch, tombstone, source)?;
        Ok(IngestOutcome::Merged(seq))
    }

    /// Sends the tombstone to a peer that delivers a record of a forgotten entry, if the peer has
    /// not received it before: such a peer holds the entry. A peer to which the entry is private
    /// cannot hold it and would only learn that the entry existed, so it gets nothing.
    fn send_tombstone(
        &self,
        batch: &Batch,
        tombstone: Option<&Record>,
        source: RecordSource,
    ) -> Result<(), Error> {
        let (Some(from), Some(tombstone)) = (self.bringer(source), tombstone) else {
            return Ok(());
        };
        let entry = tombstone.entry();
        let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
        let is_mine = self.writer.mine.contains(&from);
        if batch.release(from, entry)?.has_passed()
            || is_private_to_owner(workspace_of_erased(row.as_ref(), tombstone), is_mine)
        {
            return Ok(());
        }
        batch.brought_of(from, entry, true, self.now)?;
        batch.queue(from, tombstone.digest(), false, self.writer.boot)
    }

    /// Whether a tombstone that only this person may write is valid: one of the person's machines
    /// wrote it, or delivered it and has therefore honoured it. A tombstone of a lost machine that
    /// is blocked here is invalid even if another machine delivers it.
    fn is_own_tombstone(
        &self,
        batch: &Batch,
        author: AuthorId,
        source: RecordSource,
    ) -> Result<bool, Error> {
        let is_mine = |author| self.writer.mine.contains(&author);
        if is_mine(author) {
            return Ok(true);
        }
        let is_blocked = batch.peer(author)?.is_some_and(|row| row.is_blocked);
        Ok(!is_blocked && self.bringer(source).is_some_and(is_mine))
    }

    /// The peer that delivered a record. `None` for records from a file, which are ingested in this
    /// node's own name.
    pub(super) fn bringer(&self, source: RecordSource) -> Option<AuthorId> {
        match source {
            RecordSource::Peer(from) if from != self.writer.key.author() => Some(from),
            RecordSource::Peer(_) | RecordSource::Local => None,
        }
    }

    /// Notes that the delivering peer has the record.
    pub(super) fn note_bringer(
        &self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<(), Error> {
        let Some(from) = self.bringer(source) else { return Ok(()) };
        let returns =
            is_retraction_or_tombstone(record) || record.author() == self.writer.key.author();
        let (entry, digest) = (record.entry(), record.digest());
        match batch.brought(from, (entry, digest), returns, self.now)? {
            true => batch.queue_proofs(from, entry, self.writer.boot),
            false => Ok(()),
        }
    }

    /// Queues a merged record for every peer that may have it, except the one that delivered it.
    pub(super) fn queue_for_peers(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<(), Error> {
        let (entry, digest) = (record.entry(), record.digest());
        self.members_may_change(Some(entry));
        self.invalidate_members(entry);
        self.note_removals(batch, record)?;
        self.note_bringer(batch, record, source)?;
        let is_removal = is_retraction_or_tombstone(record);
        let row = if is_removal { batch.view_row(entry) } else { Ok(None) };
        let workspace = workspace_of_erased(Error::unless_damaged(row)?.flatten().as_ref(), record);
        let mine = &self.writer.mine;
        let receives = |peer: AuthorId, release: ReleaseRow| {
            is_removal
                && receives_removals(release, is_private_to_owner(workspace, mine.contains(&peer)))
        };
        batch.pass_on((entry, digest), self.writer.boot, receives)
    }

    fn quarantine(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
        reason: String,
    ) -> Result<IngestOutcome, Error> {
        // A local record is refused instead of quarantined: its author gets an error, and the slot
        // stays free for the record written instead.
        let RecordSource::Peer(from) = source else { return Ok(IngestOutcome::Refused(reason)) };
        let (record_bytes, at) = (record.to_raw(), self.now);
        let row = QuarantineRow { record: record_bytes, from, at, reason: reason.clone() };
        let has_room = self.has_room_to_wait(batch, source)?;
        let before = batch.quarantined_count()?;
        match batch.put_quarantined(record, &row, has_room)? {
            QuarantineResult::Kept => {
                self.note_waiting(source, batch.quarantined_count()? > before);
                self.note_bringer(batch, record, source)?;
                Ok(IngestOutcome::Quarantined(reason))
            }
            QuarantineResult::Full => Ok(IngestOutcome::Refused(TOO_MANY_WAIT.into())),
        }
    }
}

/// Whether a record is a retraction or tombstone, which goes wherever its entry has been.
pub fn is_retraction_or_tombstone(record: &Record) -> bool {
    record.header().facet.is_retraction_or_tombstone()
}

/// Whether an entry is private to this person with respect to a peer that is, or is not, one of the
/// person's machines.
pub fn is_private_to_owner(workspace: Option<WorkspaceId>, is_mine: bool) -> bool {
    match workspace {
        Some(WorkspaceId::LOCAL) => true,
        Some(WorkspaceId::MAIN) => !is_mine,
        _ => false,
    }
}

/// The workspace of an entry that a record retracts or forgets, from the stored row. If this node
/// never held the entry, the tombstone of an import states it; the id of a created entry cannot be
/// guessed, so it needs no check.
pub fn workspace_of_erased(row: Option<&ViewRow>, record: &Record) -> Option<WorkspaceId> {
    match (row.and_then(|row| row.workspace), record.payload()) {
        (None, Some(Payload::Tombstone(stone))) if stone.origin.creator().is_none() => {
            Some(stone.origin.workspace())
        }
        (noted, _) => noted,
    }
}

/// Whether a peer receives retractions and tombstones of an entry: some record of it passed between
/// the two nodes. If the entry is private to this person, a record must have gone out; the peer's
/// own deliveries prove nothing then, because any peer can guess the id of an import.
pub fn receives_removals(release: ReleaseRow, is_private: bool) -> bool {
    release.out != ReleaseState::Never || (release.back != ReleaseState::Never && !is_private)
}

/// The facets that merging a record has to read: its own, and for claims also retractions.
pub fn facets_read(record: &Record) -> &'static [Facet] {
    match record.header().facet {
        Facet::Tally => &[Facet::Tally],
        // Edits are found by their number.
        Facet::Edit => &[],
        _ => &[Facet::Claims, Facet::Retraction],
    }
}

#[cfg(test)]
mod tests;
