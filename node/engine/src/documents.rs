//! Documents: stores the edits of playbooks and merges them into a text.
//!
//! An edit is a record that no other record replaces. [`Transaction::take_edit`] stores it if it is a
//! valid change within the limits; whether it counts is decided when the text is merged
//! ([`klnode_document`]). So that all members hold the same text, neither trust nor blocks nor
//! filters of this node play a part in that: an edit counts if its author is a member of the
//! workspace, if it is in the cut of a removal, or if an edit that counts depends on it.
//!
//! For that last reason the edits of other authors are stored, too, up to a small limit. An edit that
//! is beyond the limit is requested again when an edit arrives that depends on a missing one, or when
//! the members change.
//!
//! At the end of a step the merged text of every changed document is stored, so readers need no merge.

use super::command::{IngestOutcome, RecordSource};
use super::document_edit_limits::{EditLimits, MEMBER_BYTES_MAX};
use super::edit_entitlement::EditEntitlement;
use super::open_documents::{BuiltDocument, changes_of, checked_change};
use super::record_intake::Transaction;
use super::replaced_records::ReplacedRecord;
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::limits::EDIT_COPIES_MAX;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_document::change::CheckedChange;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_store::documents::{DocumentRow, EditName};
use klnode_store::peers::row_types::RefusalRow;
use klnode_store::row_types::{Seq, ViewRow};
use klnode_store::{Batch, Error};
use serde_bytes::ByteArray;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most bytes of the edits of one author who is no member. They count only if a member's edit depends
/// on them.
const OUTSIDER_BYTES_MAX: u64 = 256 * 1024;
/// Reason for refusing an edit beyond [`OUTSIDER_BYTES_MAX`]. Stored refusals are compared with it, so
/// the text must not change.
const OUTSIDER_FULL: &str = "its author is no member and has used up its bytes in this document";

impl Transaction<'_> {
    /// Stores an edit, unless it is known, invalid or beyond a limit.
    pub(super) fn take_edit(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<IngestOutcome, Error> {
        let change = match checked_change(record) {
            Some(Ok(change)) => change,
            Some(Err(error)) => return Ok(IngestOutcome::Refused(error.to_string())),
            None => return Ok(IngestOutcome::Refused("it is no edit".into())),
        };
        let (entry, author) = (record.entry(), record.author());
        let same = batch.edits_numbered(entry, author, change.identity().number)?;
        if same.iter().any(|held| held.digest == record.digest()) {
            self.note_bringer(batch, record, source)?;
            return Ok(IngestOutcome::Known);
        }
        self.find_equivocation(batch, record, &same, source)?;
        if source != RecordSource::Local {
            if let Some(reason) = self.author_quota_violation(batch, record, source)? {
                return Ok(IngestOutcome::Refused(reason));
            }
            if !self.has_room_for_edit(batch, &change, record)? {
                self.writer.documents.note_refused(entry, record.digest());
                return Ok(IngestOutcome::Refused(OUTSIDER_FULL.into()));
            }
        }
        let seq = batch.put_record(record)?;
        let mut row = batch.view_row(entry)?.unwrap_or_else(|| ViewRow::new(self.now));
        (row.records, row.seq) = (row.records.saturating_add(1), seq);
        batch.put_view_row(entry, &row)?;
        *self.documents.bytes.entry((entry, author)).or_default() += change.bytes().len() as u64;
        self.queue_for_peers(batch, record, source)?;
        self.documents.edits.entry(entry).or_default().push(record.clone());
        let is_kept = self.drop_excess_edits(batch, record, (&same, seq))?;
        if source != RecordSource::Local && author == self.writer.key.author() {
            // Another process of this home wrote it, or this process before an old copy was restored.
            self.leave_slots(batch)?;
        }
        Ok(if is_kept { IngestOutcome::Merged(seq) } else { IngestOutcome::Known })
    }

    fn find_equivocation(
        &mut self,
        batch: &Batch,
        record: &Record,
        same: &[EditName],
        source: RecordSource,
    ) -> Result<(), Error> {
        for held in same {
            let Some(held) = Error::unless_damaged(batch.header_of(held.digest))?.flatten() else {
                continue;
            };
            if let Some(proof) = EquivocationProof::find(&held, record.signed_header()) {
                let from = self.bringer(source).unwrap_or(self.writer.key.author());
                self.handle_proof(batch, from, &proof)?;
            }
        }
        Ok(())
    }

    /// Whether an edit fits into the limit of its author. A member's edit always does, and an
    /// outsider's if it is in a cut or a stored edit depends on it.
    fn has_room_for_edit(
        &mut self,
        batch: &Batch,
        change: &CheckedChange,
        record: &Record,
    ) -> Result<bool, Error> {
        let (entry, author) = (record.entry(), record.author());
        let held = self.edit_bytes(batch, entry, author)?;
        if held + change.bytes().len() as u64 <= OUTSIDER_BYTES_MAX
            || self.writer.mine.contains(&author)
        {
            return Ok(true);
        }
        match self.entitlement_of(batch, entry)? {
            // While the members are unknown, the edit may be one of theirs.
            None => return Ok(true),
            Some(entitlement) if entitlement.covers(author, &[record.digest()].into()) => {
                return Ok(true);
            }
            Some(_) => {}
        }
        // Building the document is expensive, and pointless if no edit waits.
        let is_merged = self.documents.edits.get(&entry).is_none_or(Vec::is_empty);
        if is_merged && batch.document(entry)?.is_none_or(|row| row.waiting == 0) {
            return Ok(false);
        }
        let is_missed = self.with_document(batch, entry, |held| {
            held.document.waiting().any(|waiting| waiting.missing.contains(&change.hash()))
        })?;
        Ok(is_missed.unwrap_or(true))
    }

    /// The reason is void of a refusal that the step of an earlier command gave, because an edit
    /// arrived since that waits for a missing one, or because the members changed.
    pub(super) fn is_edit_refusal_void(&mut self, refusal: &RefusalRow) -> bool {
        refusal.reason == OUTSIDER_FULL && self.writer.documents.take_void_refusal(refusal.digest)
    }

    /// Bytes of an author's edits, counted once per step.
    fn edit_bytes(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        author: AuthorId,
    ) -> Result<u64, Error> {
        if let Some(bytes) = self.documents.bytes.get(&(entry, author)) {
            return Ok(*bytes);
        }
        let edits = batch.edits_by(entry, author)?;
        let bytes = edits.iter().map(|of| u64::from(of.bytes)).sum();
        self.documents.bytes.insert((entry, author), bytes);
        Ok(bytes)
    }

    /// Drops the edits beyond the limits of a number and of an author, whichever order they came in.
    /// Returns whether the new edit stays.
    fn drop_excess_edits(
        &mut self,
        batch: &Batch,
        record: &Record,
        (same, until): (&[EditName], Seq),
    ) -> Result<bool, Error> {
        let (entry, author, digest) = (record.entry(), record.author(), record.digest());
        let is_over = self.edit_bytes(batch, entry, author)? > MEMBER_BYTES_MAX;
        if same.len() < EDIT_COPIES_MAX && !is_over {
            return Ok(true);
        }
        let Some(limits) = self.limits_of(batch, entry, author)? else { return Ok(true) };
        // Limits of bytes concern all edits of the author, limits of copies those with one number.
        let names = match is_over {
            true => batch.edits_by(entry, author)?,
            false => {
                let new = EditName::of(record);
                let names = same.iter().copied().chain(new).collect::<BTreeSet<_>>();
                names.into_iter().collect()
            }
        };
        let excess = limits.excess(&names);
        for dropped in &excess {
            let Some(dropped) = Error::unless_damaged(batch.record(*dropped))?.flatten() else {
                continue;
            };
            if let Some(from) = batch.drop_record(&dropped)? {
                let record = Some(dropped);
                self.covered.covered.push(ReplacedRecord { from, until, entry, record });
            }
            if let Some(mut row) = batch.view_row(entry)? {
                row.records = row.records.saturating_sub(1);
                batch.put_view_row(entry, &row)?;
            }
        }
        if !excess.is_empty() {
            self.documents.bytes.remove(&(entry, author));
            self.documents.stale.insert(entry);
        }
        Ok(!excess.contains(&digest))
    }

    /// The edits of an author that limits apply to; `None` while the members are unknown.
    fn limits_of(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        author: AuthorId,
    ) -> Result<Option<EditLimits>, Error> {
        let Some(entitlement) = self.entitlement_of(batch, entry)? else { return Ok(None) };
        self.with_document(batch, entry, |held| {
            let needed = held.document.needed_by_others(author);
            let records = |hash: ChangeHash| {
                let digests = held.digests.get(&hash).into_iter().flatten();
                digests.map(move |digest| (*digest, hash))
            };
            let needed = needed.into_iter().flat_map(records).collect();
            EditLimits { author, entitlement, needed }
        })
    }

    /// The authors whose edits of an entry count; `None` while a record of the charter is damaged.
    fn entitlement_of(
        &mut self,
        batch: &Batch,
        entry: EntryId,
    ) -> Result<Option<EditEntitlement>, Error> {
        let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
        let Some(workspace) = row.and_then(|row| row.workspace) else {
            return Ok(Some(EditEntitlement::Nobody));
        };
        if workspace.is_personal() {
            return Ok(Some(EditEntitlement::Everybody));
        }
        if let Some(read) = self.documents.entitlements.get(&workspace) {
            return Ok(Some(read.clone()));
        }
        let Some(charter) = Error::unless_damaged(batch.charter(workspace, self.now))? else {
            return Ok(None);
        };
        let mut cuts = BTreeMap::new();
        for removed in charter.removed.keys() {
            cuts.insert(*removed, self.cut(batch, workspace, *removed)?);
        }
        let read = EditEntitlement::Members(charter.members, cuts);
        self.documents.entitlements.insert(workspace, read.clone());
        Ok(Some(read))
    }

    /// Notes that the members or removals of a workspace may have changed.
    pub(super) fn note_document_members(&mut self, workspace: WorkspaceId) {
        self.documents.entitlements.remove(&workspace);
        self.documents.workspaces.insert(workspace);
    }

    /// Reads from a document with all stored edits; `None` while the members are unknown.
    pub(super) fn with_document<T>(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        read: impl FnOnce(&BuiltDocument) -> T,
    ) -> Result<Option<T>, Error> {
        let Some(entitlement) = self.entitlement_of(batch, entry)? else {
            self.writer.documents.remove(entry);
            return Ok(None);
        };
        self.update_document(batch, entry, entitlement)?;
        Ok(self.writer.documents.get(entry).map(read))
    }

    /// Brings a document in memory up to date, and notes whether a new edit waits for others.
    fn update_document(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        entitlement: EditEntitlement,
    ) -> Result<(), Error> {
        let new = self.documents.edits.get_mut(&entry).map(std::mem::take).unwrap_or_default();
        let documents = &mut self.writer.documents;
        if let Some(ahead) = documents.shared().take_ahead(entry)
            && ahead.is_of(&batch.edit_names(entry)?, &entitlement)
        {
            documents.put(entry, ahead);
        }
        match documents.get_mut(entry) {
            Some(held) => {
                let is_new = |record: &Record| !held.contains(record.digest());
                if new.iter().any(is_new) || held.entitlement != entitlement {
                    Arc::make_mut(held).update(&new, entitlement);
                    documents.note_changed(entry);
                }
            }
            None => {
                let part = documents.opened(entry, &batch.edit_names(entry)?);
                let is_known =
                    |of: &EditName| part.as_ref().is_some_and(|part| part.contains(of.digest));
                let missing = batch.take_edits(entry, is_known)?;
                let built = match part {
                    Some(mut part) => {
                        Arc::make_mut(&mut part).update(&missing, entitlement);
                        part
                    }
                    None => documents.shared().build_for_writer(&missing, entitlement),
                };
                documents.put(entry, built);
            }
        }
        let (_, digests) = changes_of(&new);
        let held = self.writer.documents.get(entry);
        let waits = !digests.is_empty()
            && held.is_some_and(|held| {
                held.document.waiting().any(|of| digests.contains_key(&of.hash))
            });
        if waits {
            self.documents.waiting.insert(entry);
        }
        Ok(())
    }

    /// Removes documents from memory that contain edits which this step dropped.
    pub(super) fn forget_stale_documents(&mut self) {
        for entry in std::mem::take(&mut self.documents.stale) {
            self.writer.documents.remove(entry);
            self.documents.edits.entry(entry).or_default();
        }
    }

    /// Stores the merged text of every document that this step changed.
    pub(super) fn merge_documents(&mut self, batch: &Batch) -> Result<(), Error> {
        self.forget_stale_documents();
        let mut changed: BTreeSet<EntryId> = self.documents.edits.keys().copied().collect();
        let workspaces = std::mem::take(&mut self.documents.workspaces);
        let mut reassessed = BTreeSet::new();
        if !workspaces.is_empty() {
            for entry in batch.documents()? {
                let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
                if row.and_then(|row| row.workspace).is_some_and(|of| workspaces.contains(&of)) {
                    reassessed.insert(entry);
                }
            }
        }
        changed.extend(&reassessed);
        let mut asks_again = false;
        for entry in changed {
            let has_other_authors = self.merge_document(batch, entry)?;
            // Refused edits may have room now.
            let has_room = has_other_authors && reassessed.contains(&entry);
            if has_room || self.documents.waiting.contains(&entry) {
                self.writer.documents.void_refusals(entry);
                asks_again = true;
            }
        }
        if asks_again {
            for offer in batch.offers_read()? {
                if batch.drop_refusals(offer, |refused| refused.reason == OUTSIDER_FULL)? {
                    batch.request_reread(offer.peer)?;
                }
            }
        }
        Ok(())
    }

    /// Stores the merged text of a document if its edits changed, or if other authors count than in
    /// the stored merge. Returns whether others count.
    fn merge_document(&mut self, batch: &Batch, entry: EntryId) -> Result<bool, Error> {
        let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
        if row.is_none_or(|row| row.is_forgotten) || !batch.has_edits(entry)? {
            self.writer.documents.remove(entry);
            batch.drop_document(entry)?;
            return Ok(false);
        }
        let stored = batch.document(entry)?;
        let Some(entitlement) = self.entitlement_of(batch, entry)? else {
            // The text stays until a peer has delivered the damaged record of the charter again.
            self.writer.documents.remove(entry);
            let row = DocumentRow { entitlement: None, ..stored.clone().unwrap_or_default() };
            if stored.as_ref() != Some(&row) {
                batch.put_document(entry, &row)?;
            }
            return Ok(false);
        };
        let authors = batch.edit_authors(entry)?;
        let fingerprint = Some(ByteArray::new(entitlement.fingerprint(&authors)));
        let has_other_authors = stored.as_ref().is_none_or(|row| row.entitlement != fingerprint);
        if !has_other_authors && !self.documents.edits.contains_key(&entry) {
            return Ok(false);
        }
        let now = self.now;
        let row = self.with_document(batch, entry, |held| document_row(&held.document, now))?;
        let row = row.map(|row| DocumentRow { entitlement: fingerprint, ..row });
        if let Some(row) = row.filter(|row| stored.as_ref() != Some(row)) {
            batch.put_document(entry, &row)?;
        }
        Ok(has_other_authors)
    }
}

/// The stored form of a merged document.
fn document_row(document: &TextDocument, now: WallTime) -> DocumentRow {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (applied, waiting) = (document.history().count(), document.waiting().count());
    DocumentRow {
        text: document.text(),
        heads: document.heads().iter().map(|hash| ByteArray::new(*hash.as_bytes())).collect(),
        updated: document.history().map(CheckedChange::time).max().unwrap_or_default().min(now),
        applied: count(applied),
        waiting: count(waiting),
        left_out: count(document.held_count().saturating_sub(applied + waiting)),
        entitlement: None,
    }
}
