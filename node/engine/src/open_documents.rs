//! Documents in memory that readers share with each other and with the writer.
//!
//! Building a document takes a second if it has thousands of edits, and the one writer must not spend
//! it while other writes wait. A reader therefore builds the document that a request is about and
//! leaves it here; the writer takes it from here, and leaves each document that it has changed. Nobody
//! changes a document that is here: a change is made on a copy, which shares its text with the original.
//!
//! A document is used for a snapshot only if it consists of the same edits by the same rules, or if it
//! is of a later commit than the snapshot.

use super::edit_entitlement::EditEntitlement;
use klnode_crdt::ids::{Digest, EntryId};
use klnode_crdt::record::Record;
use klnode_document::change::CheckedChange;
use klnode_document::change_error::ChangeError;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_document::edit_identity::EditIdentity;
use klnode_document::limits::AuthorQuota;
use klnode_store::documents::EditName;
use klnode_store::peers::{Cut, Membership};
use klnode_store::row_types::Seq;
use klnode_store::{Error, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum memory of the documents that are kept for readers. A single larger one is kept as well:
/// the limits of its format bound it.
const OPEN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A document with the records of its changes.
#[derive(Clone, Debug)]
pub(super) struct BuiltDocument {
    pub(super) document: Arc<TextDocument>,
    /// The records of each change. A change is in several only if its author signed it again.
    pub(super) digests: BTreeMap<ChangeHash, BTreeSet<Digest>>,
    /// All records that were read.
    records: BTreeSet<Digest>,
    pub(super) entitlement: EditEntitlement,
}

impl BuiltDocument {
    /// Builds a document from its records.
    fn build(records: &[Record], entitlement: EditEntitlement) -> Self {
        let (changes, digests) = changes_of(records);
        let is_entitled = is_entitled(&entitlement, &digests);
        let document = TextDocument::build(AuthorQuota::FORMAT, changes, is_entitled);
        let records = records.iter().map(Record::digest).collect();
        Self { document: Arc::new(document), digests, records, entitlement }
    }

    /// Adds records, and decides again which of all edits count if the authors changed.
    pub(super) fn update(&mut self, new: &[Record], entitlement: EditEntitlement) {
        let has_other_authors = self.entitlement != entitlement;
        self.entitlement = entitlement;
        let (changes, digests) = changes_of(new);
        self.records.extend(new.iter().map(Record::digest));
        for (hash, of) in digests {
            self.digests.entry(hash).or_default().extend(of);
        }
        if changes.is_empty() && !has_other_authors {
            return;
        }
        let document = Arc::make_mut(&mut self.document);
        document.insert(changes, is_entitled(&self.entitlement, &self.digests));
        if has_other_authors {
            document.reassess(is_entitled(&self.entitlement, &self.digests));
        }
    }

    pub(super) fn contains(&self, record: Digest) -> bool {
        self.records.contains(&record)
    }

    /// Whether the document consists of these edits alone, or of a part of them.
    pub(super) fn is_within(&self, edits: &[EditName]) -> bool {
        let known = edits.iter().filter(|of| self.contains(of.digest)).count();
        known == self.records.len()
    }

    /// Whether the document is the merge of these edits under this entitlement.
    pub(super) fn is_of(&self, edits: &[EditName], entitlement: &EditEntitlement) -> bool {
        self.records.len() == edits.len()
            && self.is_within(edits)
            && self.entitlement == *entitlement
    }

    fn memory_bytes(&self) -> usize {
        DOCUMENT_BYTES + self.document.memory_bytes() + self.records.len() * RECORD_BYTES
    }
}

/// Memory of a document without edits.
const DOCUMENT_BYTES: usize = 16 * 1024;
/// Memory for the digests of a record, with the nodes of both maps around it.
const RECORD_BYTES: usize = 256;

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

/// The valid changes in some records, and the records of each.
pub(super) fn changes_of(
    records: &[Record],
) -> (Vec<CheckedChange>, BTreeMap<ChangeHash, BTreeSet<Digest>>) {
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

/// A document of a commit.
#[derive(Debug)]
struct OpenDocument {
    at: Seq,
    built: Arc<BuiltDocument>,
    bytes: usize,
    last_use: u64,
}

#[derive(Debug, Default)]
struct HeldDocuments {
    documents: BTreeMap<EntryId, OpenDocument>,
    uses: u64,
    /// Documents of earlier commits are not kept: one of them may have been forgotten since.
    oldest: Seq,
}

/// The documents in memory. A lock is held for a moment only, except the one for building.
#[derive(Debug, Default)]
pub struct OpenDocuments {
    held: Mutex<HeldDocuments>,
    /// One document is built at a time, so that several requests for one document build it once.
    building: Mutex<()>,
    /// A document with edits that are on their way to the writer.
    ahead: Mutex<Option<(EntryId, Arc<BuiltDocument>)>>,
    builds: AtomicU64,
    writer_builds: AtomicU64,
}

/// Number of documents that were built from all of their edits since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildCounts {
    /// By readers.
    pub readers: u64,
    /// By the writer, while other writes waited.
    pub writer: u64,
}

impl OpenDocuments {
    /// The document of a snapshot, or of a later commit.
    ///
    /// # Errors
    ///
    /// The snapshot cannot be read.
    pub fn open(
        &self,
        snapshot: &Snapshot,
        membership: &Membership,
        entry: EntryId,
    ) -> Result<Arc<TextDocument>, Error> {
        Ok(Arc::clone(&self.open_built(snapshot, membership, entry)?.document))
    }

    /// Merges edits before the writer stores them, so that it need not merge them while other writes
    /// wait. The writer uses the result if it comes to exactly these edits.
    ///
    /// # Errors
    ///
    /// The snapshot cannot be read.
    pub fn prepare(
        &self,
        snapshot: &Snapshot,
        membership: &Membership,
        entry: EntryId,
        arriving: &[&Record],
    ) -> Result<(), Error> {
        if snapshot.edit_names(entry)?.is_empty() {
            // The first edits of an entry: nothing is saved, and the entry may not exist.
            return Ok(());
        }
        let mut built = self.open_built(snapshot, membership, entry)?;
        let is_new = |record: &&&Record| !built.contains(record.digest());
        let new: Vec<Record> = arriving.iter().filter(is_new).map(|of| (*of).clone()).collect();
        if !new.is_empty() {
            let entitlement = built.entitlement.clone();
            Arc::make_mut(&mut built).update(&new, entitlement);
            *self.ahead() = Some((entry, built));
        }
        Ok(())
    }

    fn ahead(&self) -> MutexGuard<'_, Option<(EntryId, Arc<BuiltDocument>)>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The prepared document, if it is this one.
    pub(super) fn take_ahead(&self, entry: EntryId) -> Option<Arc<BuiltDocument>> {
        self.ahead().take_if(|(of, _)| *of == entry).map(|(_, built)| built)
    }

    fn open_built(
        &self,
        snapshot: &Snapshot,
        membership: &Membership,
        entry: EntryId,
    ) -> Result<Arc<BuiltDocument>, Error> {
        let edits = snapshot.edit_names(entry)?;
        let entitlement = entitlement_in(snapshot, membership, entry)?;
        let find = || {
            let found = self.get(entry)?;
            let (at, built) = found;
            let fits = at > snapshot.head() || built.is_of(&edits, &entitlement);
            fits.then_some(built)
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = find() {
            return Ok(found);
        }
        let built = match self.part_of(entry, &edits) {
            Some(mut part) => {
                let missing: Vec<EditName> =
                    edits.into_iter().filter(|of| !part.contains(of.digest)).collect();
                let missing = snapshot.edits_named(&missing)?;
                Arc::make_mut(&mut part).update(&missing, entitlement);
                part
            }
            None => {
                self.builds.fetch_add(1, Ordering::Relaxed);
                Arc::new(BuiltDocument::build(&snapshot.edits_named(&edits)?, entitlement))
            }
        };
        self.put(entry, snapshot.head(), Arc::clone(&built));
        Ok(built)
    }

    /// Builds a document for the writer.
    pub(super) fn build_for_writer(
        &self,
        records: &[Record],
        entitlement: EditEntitlement,
    ) -> Arc<BuiltDocument> {
        if !records.is_empty() {
            self.writer_builds.fetch_add(1, Ordering::Relaxed);
        }
        Arc::new(BuiltDocument::build(records, entitlement))
    }

    /// Number of documents that were built since the start.
    pub fn builds(&self) -> BuildCounts {
        let [readers, writer] =
            [&self.builds, &self.writer_builds].map(|count| count.load(Ordering::Relaxed));
        BuildCounts { readers, writer }
    }

    /// Whether a document is in memory for readers.
    pub fn holds(&self, entry: EntryId) -> bool {
        self.held().documents.contains_key(&entry)
    }

    fn held(&self) -> MutexGuard<'_, HeldDocuments> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, entry: EntryId) -> Option<(Seq, Arc<BuiltDocument>)> {
        let mut held = self.held();
        held.uses += 1;
        let uses = held.uses;
        let found = held.documents.get_mut(&entry)?;
        found.last_use = uses;
        Some((found.at, Arc::clone(&found.built)))
    }

    /// A document that consists of some of these edits and of no others.
    pub(super) fn part_of(&self, entry: EntryId, edits: &[EditName]) -> Option<Arc<BuiltDocument>> {
        self.get(entry).map(|(_, built)| built).filter(|built| built.is_within(edits))
    }

    /// Keeps a document of a commit, unless a later one is here.
    pub(super) fn put(&self, entry: EntryId, at: Seq, built: Arc<BuiltDocument>) {
        let mut held = self.held();
        let is_late = held.documents.get(&entry).is_some_and(|held| held.at > at);
        if is_late || at < held.oldest {
            return;
        }
        held.uses += 1;
        let (bytes, last_use) = (built.memory_bytes(), held.uses);
        held.documents.insert(entry, OpenDocument { at, built, bytes, last_use });
        let total = |held: &HeldDocuments| held.documents.values().map(|of| of.bytes).sum();
        while held.documents.len() > 1 && OPEN_BYTES_MAX < total(&held) {
            let oldest = held.documents.iter().min_by_key(|(_, of)| of.last_use);
            let Some(entry) = oldest.map(|(entry, _)| *entry) else { break };
            held.documents.remove(&entry);
        }
    }

    /// Drops a document of which a commit has erased edits.
    pub(super) fn remove(&self, entry: EntryId, at: Seq) {
        self.take_ahead(entry);
        let mut held = self.held();
        held.documents.remove(&entry);
        held.oldest = held.oldest.max(at);
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
    let entitlement = entitlement_in(snapshot, membership, entry)?;
    let built = BuiltDocument::build(&snapshot.edits(entry)?, entitlement);
    Ok(Arc::unwrap_or_clone(built.document))
}

/// The authors whose edits of an entry count in a snapshot.
fn entitlement_in(
    snapshot: &Snapshot,
    membership: &Membership,
    entry: EntryId,
) -> Result<EditEntitlement, Error> {
    Ok(match snapshot.view_row(entry)?.and_then(|row| row.workspace) {
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
    })
}
