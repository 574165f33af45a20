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

use super::command::{DocumentCommand, IngestOutcome, Receipt, RecordSource, Rejection};
use super::document_cache::EditEntitlement;
use super::ingest::Transaction;
use super::replaced_records::ReplacedRecord;
use klnode_crdt::edit::DocumentEdit;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_type::{EntryType, code_digits};
use klnode_crdt::equivocation::EquivocationProof;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::limits::EDIT_COPIES_MAX;
use klnode_crdt::record::Record;
use klnode_crdt::signed_edit::EditPosition;
use klnode_crdt::time::WallTime;
use klnode_document::change::CheckedChange;
use klnode_document::change_error::ChangeError;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_document::edit::EditContext;
use klnode_document::identity::EditIdentity;
use klnode_document::limits::AuthorQuota;
use klnode_store::documents::{DocumentRow, EditName};
use klnode_store::peers::{Cut, Membership};
use klnode_store::row_types::{Seq, ViewRow};
use klnode_store::{Batch, Error, Snapshot};
use serde_bytes::ByteArray;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most bytes of one member's edits in a document. Beyond it, the edits with the greatest numbers are
/// dropped, so that the rest does not depend on the order of arrival. It is above the quota of the
/// document, so no edit is dropped that would count.
const MEMBER_BYTES_MAX: u64 = 2 * AuthorQuota::FORMAT.bytes_max;
/// Most bytes of the edits of one author who is no member. They count only if a member's edit depends
/// on them.
const OUTSIDER_BYTES_MAX: u64 = 256 * 1024;
/// Reason for refusing an edit beyond [`OUTSIDER_BYTES_MAX`]. Stored refusals are compared with it, so
/// the text must not change.
const OUTSIDER_FULL: &str = "its author is no member and has used up its bytes in this document";

/// The identity and content of an edit, checked.
///
/// # Errors
///
/// The rule of the format that the change breaks.
pub fn checked_change(record: &Record) -> Option<Result<CheckedChange, ChangeError>> {
    let edit = record.edit()?;
    let identity = EditIdentity {
        author: edit.author,
        boot: edit.boot,
        branch: edit.edit.branch,
        number: edit.number,
    };
    Some(CheckedChange::check(&edit.edit.change, identity, &AuthorQuota::FORMAT))
}

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
            if !self.has_room_for_edit(batch, &change, entry)? {
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

    /// Whether an edit fits into the limit of its author. An outsider's edit always does if a stored
    /// edit depends on it.
    fn has_room_for_edit(
        &mut self,
        batch: &Batch,
        change: &CheckedChange,
        entry: EntryId,
    ) -> Result<bool, Error> {
        let author = change.identity().author;
        let held = self.edit_bytes(batch, entry, author)?;
        if held + change.bytes().len() as u64 <= OUTSIDER_BYTES_MAX
            || self.writer.mine.contains(&author)
        {
            return Ok(true);
        }
        let entitlement = self.entitlement_of(batch, entry)?;
        if entitlement.covers(author, &BTreeSet::new()) {
            return Ok(true);
        }
        self.with_document(batch, entry, |document| {
            document.waiting().any(|waiting| waiting.missing.contains(&change.hash()))
        })
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
        let mut excess = BTreeSet::<Digest>::new();
        if same.len() >= EDIT_COPIES_MAX {
            let digests = same.iter().map(|of| of.digest).chain([digest]);
            excess.extend(digests.collect::<BTreeSet<_>>().into_iter().skip(EDIT_COPIES_MAX));
        }
        if self.edit_bytes(batch, entry, author)? > MEMBER_BYTES_MAX {
            let mut bytes = 0;
            for of in batch.edits_by(entry, author)? {
                bytes += u64::from(of.bytes);
                if bytes > MEMBER_BYTES_MAX {
                    excess.insert(of.digest);
                }
            }
        }
        if excess.is_empty() {
            return Ok(true);
        }
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
        self.documents.bytes.remove(&(entry, author));
        self.read_again(entry);
        Ok(!excess.contains(&digest))
    }

    /// Notes that the records of a document changed otherwise than by a new edit.
    pub(super) fn read_again(&mut self, entry: EntryId) {
        self.writer.documents.remove(entry);
        self.documents.edits.insert(entry, Vec::new());
    }

    /// The authors whose edits of an entry count.
    fn entitlement_of(&mut self, batch: &Batch, entry: EntryId) -> Result<EditEntitlement, Error> {
        let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
        let Some(workspace) = row.and_then(|row| row.workspace) else {
            return Ok(EditEntitlement::Nobody);
        };
        if workspace.is_personal() {
            return Ok(EditEntitlement::Everybody);
        }
        if let Some(read) = self.documents.entitlements.get(&workspace) {
            return Ok(read.clone());
        }
        let charter =
            Error::unless_damaged(batch.charter(workspace, self.now))?.unwrap_or_default();
        let mut cuts = BTreeMap::new();
        for removed in charter.removed.keys() {
            cuts.insert(*removed, self.cut(batch, workspace, *removed)?);
        }
        let read = EditEntitlement::Members(charter.members, cuts);
        self.documents.entitlements.insert(workspace, read.clone());
        Ok(read)
    }

    /// Notes that the members or removals of a workspace may have changed.
    pub(super) fn note_document_members(&mut self, workspace: WorkspaceId) {
        self.documents.entitlements.remove(&workspace);
        self.documents.workspaces.insert(workspace);
    }

    /// Reads from a document with all stored edits.
    fn with_document<T>(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        read: impl FnOnce(&TextDocument) -> T,
    ) -> Result<T, Error> {
        self.update_document(batch, entry)?;
        let held = self.writer.documents.get(entry);
        Ok(read(&held.expect("the document was updated").document))
    }

    /// Brings a document in memory up to date. Returns whether edits were added that wait for others,
    /// or other authors count than before.
    fn update_document(&mut self, batch: &Batch, entry: EntryId) -> Result<bool, Error> {
        let entitlement = self.entitlement_of(batch, entry)?;
        let new = self.documents.edits.get_mut(&entry).map(std::mem::take).unwrap_or_default();
        let Some(held) = self.writer.documents.get(entry) else {
            let (changes, digests) = changes_of(&batch.take_edits(entry)?);
            let is_entitled = is_entitled(&entitlement, &digests);
            let document = TextDocument::build(AuthorQuota::FORMAT, changes, is_entitled);
            let is_waiting = document.waiting().next().is_some();
            self.writer.documents.put(entry, document, digests, entitlement);
            return Ok(is_waiting);
        };
        let (changes, digests) = changes_of(&new);
        for (hash, of) in digests {
            held.digests.entry(hash).or_default().extend(of);
        }
        let is_changed = held.entitlement != entitlement;
        held.entitlement = entitlement;
        let waiting = held.document.waiting().count();
        if !changes.is_empty() {
            held.document.insert(changes, is_entitled(&held.entitlement, &held.digests));
        }
        if is_changed {
            held.document.reassess(is_entitled(&held.entitlement, &held.digests));
        }
        Ok(is_changed || held.document.waiting().count() > waiting)
    }

    /// Stores the merged text of every document that this step changed.
    pub(super) fn merge_documents(&mut self, batch: &Batch) -> Result<(), Error> {
        let mut changed: BTreeSet<EntryId> = self.documents.edits.keys().copied().collect();
        let workspaces = std::mem::take(&mut self.documents.workspaces);
        if !workspaces.is_empty() {
            for entry in batch.documents()? {
                let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
                if row.and_then(|row| row.workspace).is_some_and(|of| workspaces.contains(&of)) {
                    changed.insert(entry);
                }
            }
        }
        let mut asks_again = !workspaces.is_empty();
        for entry in changed {
            let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
            if row.is_none_or(|row| row.is_forgotten) || !batch.has_edits(entry)? {
                self.writer.documents.remove(entry);
                batch.drop_document(entry)?;
                continue;
            }
            asks_again |= self.update_document(batch, entry)?;
            let now = self.now;
            let row = self.with_document(batch, entry, |document| document_row(document, now))?;
            if batch.document(entry)?.as_ref() != Some(&row) {
                batch.put_document(entry, &row)?;
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

    /// Runs a command of a caller.
    pub(super) fn about_document(
        &mut self,
        batch: &Batch,
        command: &DocumentCommand,
    ) -> Result<Receipt, Rejection> {
        match command {
            DocumentCommand::Create { new, text } => {
                super::entry_validation::new_document(new, text)?;
                let origin = self.new_origin(new.workspace, new.memory);
                let entry = origin.id();
                self.must_be_in(batch, origin.workspace())?;
                let claims = super::local_writes::document_claims(new);
                self.write(batch, entry, |writer, stamp| {
                    writer.claim(&Default::default(), Some(origin.clone()), &claims, stamp)
                })?;
                self.edit_document(batch, entry, |document, context| {
                    document.edit(&[], text, context)
                })?;
                Ok(Receipt::Created(entry))
            }
            DocumentCommand::Edit { entry, base, text } => {
                self.must_be_document(batch, *entry)?;
                self.edit_document(batch, *entry, |document, context| {
                    document.edit(base, text, context)
                })
            }
            DocumentCommand::Restore { entry, version } => {
                self.must_be_document(batch, *entry)?;
                self.edit_document(batch, *entry, |document, context| {
                    document.restore(version, context)
                })
            }
        }
    }

    /// Whether an entry shows the text of a document.
    pub(super) fn is_playbook(
        &self,
        batch: &Batch,
        entry: EntryId,
        held: &Entry,
    ) -> Result<bool, Error> {
        let is_shown = batch.document(entry)?.is_some_and(|row| row.applied > 0);
        Ok(is_shown && held.code(entry) == EntryType::Playbook.code(entry))
    }

    fn must_be_document(&mut self, batch: &Batch, entry: EntryId) -> Result<(), Rejection> {
        self.must_hold(batch, entry)?;
        if batch.document(entry)?.is_none() {
            return Err(Rejection::NoDocument(batch.entry(entry)?.code(entry)));
        }
        let row = batch.view_row(entry)?;
        match row.and_then(|row| row.workspace) {
            Some(workspace) => self.must_be_in(batch, workspace),
            None => Ok(()),
        }
    }

    /// Signs and stores the changes that `make` makes of the document.
    fn edit_document(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        make: impl FnOnce(
            &TextDocument,
            &EditContext,
        ) -> Result<Vec<CheckedChange>, klnode_document::edit::EditError>,
    ) -> Result<Receipt, Rejection> {
        let (author, boot, time) = (self.writer.key.author(), self.writer.boot, self.now);
        let number = batch.last_edit_number(entry, author)? + 1;
        let context = EditContext { author, boot, number, time };
        let made = self.with_document(batch, entry, |document| make(document, &context))?;
        let changes = made.map_err(|error| Rejection::NotEdited(error.to_string()))?;
        if changes.is_empty() {
            return Ok(Receipt::Known(entry));
        }
        let mut head = batch.head()?;
        for change in changes {
            let identity = change.identity();
            let edit = DocumentEdit { branch: identity.branch, change: change.bytes().to_vec() };
            let stamp = self.writer.clock.stamp(self.now);
            let at = EditPosition { entry, boot, number: identity.number, stamp };
            let record = edit.seal(&at, &self.writer.key)?;
            match self.take(batch, &record, RecordSource::Local, super::ingest::Screening::Judge)? {
                IngestOutcome::Merged(seq) => head = seq,
                IngestOutcome::Forgotten => {
                    return Err(Rejection::Forgotten(code_digits(entry)));
                }
                IngestOutcome::Known => {}
                IngestOutcome::Quarantined(why)
                | IngestOutcome::Refused(why)
                | IngestOutcome::Deferred(why) => return Err(Rejection::Judged(why)),
            }
        }
        Ok(Receipt::Done(head))
    }
}

/// Builds a document from the edits in a snapshot, with the same rules as the writer.
///
/// # Errors
///
/// The snapshot cannot be read.
pub fn open_document(
    snapshot: &Snapshot,
    membership: &Membership,
    entry: EntryId,
) -> Result<TextDocument, Error> {
    let workspace = snapshot.view_row(entry)?.and_then(|row| row.workspace);
    let entitlement = match workspace {
        None => EditEntitlement::Nobody,
        Some(workspace) if workspace.is_personal() => EditEntitlement::Everybody,
        Some(workspace) => {
            let shared = membership.workspaces.get(&workspace);
            let charter = shared.map(|shared| shared.charter.clone()).unwrap_or_default();
            let mut cuts = BTreeMap::new();
            for removed in charter.removed.keys() {
                let by = charter.cut_authors();
                let digests = snapshot.cut_digests(workspace, *removed, &by)?;
                cuts.insert(*removed, Arc::new(Cut { is_out: true, digests }));
            }
            EditEntitlement::Members(charter.members, cuts)
        }
    };
    let (changes, digests) = changes_of(&snapshot.edits(entry)?);
    Ok(TextDocument::build(AuthorQuota::FORMAT, changes, is_entitled(&entitlement, &digests)))
}

/// The valid changes in some records, and the records of each.
fn changes_of(records: &[Record]) -> (Vec<CheckedChange>, BTreeMap<ChangeHash, BTreeSet<Digest>>) {
    let (mut changes, mut digests) = (Vec::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for record in records {
        if let Some(Ok(change)) = checked_change(record) {
            digests.entry(change.hash()).or_default().insert(record.digest());
            changes.push(change);
        }
    }
    (changes, digests)
}

fn is_entitled<'a>(
    entitlement: &'a EditEntitlement,
    digests: &'a BTreeMap<ChangeHash, BTreeSet<Digest>>,
) -> impl FnMut(&CheckedChange) -> bool + 'a {
    |change| {
        let records = digests.get(&change.hash());
        records.is_some_and(|of| entitlement.covers(change.identity().author, of))
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
    }
}
