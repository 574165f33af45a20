//! Documents in memory: the merges of the last playbooks that the writer touched.
//!
//! Separate from `documents`, because the writer holds the cache and the code there works on the
//! transaction. Building a document from its records takes seconds if it has thousands of edits;
//! adding one edit to a built document takes a fraction of that.

use super::edit_entitlement::EditEntitlement;
use super::open_documents::{BuiltDocument, OpenDocuments};
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_store::documents::EditName;
use klnode_store::row_types::Seq;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of documents in memory.
const DOCUMENTS_MAX: usize = 4;

/// Maximum number of refused edits that are remembered until their refusals are stored.
const REFUSED_MAX: usize = 4_096;

/// A document, and when it was used.
struct CachedDocument {
    built: Arc<BuiltDocument>,
    last_use: u64,
}

/// The documents in memory.
#[derive(Default)]
pub(super) struct DocumentCache {
    held: BTreeMap<EntryId, CachedDocument>,
    uses: u64,
    /// Documents that readers have built, and that this writer has changed.
    opened: Arc<OpenDocuments>,
    /// Documents that the step in progress has changed or removed.
    changed: BTreeSet<EntryId>,
    /// Edits that were refused for lack of room and whose refusals are not stored yet, and whether
    /// the reason is void by now.
    refused: BTreeMap<Digest, (EntryId, bool)>,
}

impl DocumentCache {
    /// The documents that readers use.
    pub(super) fn shared(&self) -> &Arc<OpenDocuments> {
        &self.opened
    }

    /// A document.
    pub(super) fn get(&self, entry: EntryId) -> Option<&BuiltDocument> {
        self.held.get(&entry).map(|held| &*held.built)
    }

    /// A document to change, which counts as used now.
    pub(super) fn get_mut(&mut self, entry: EntryId) -> Option<&mut Arc<BuiltDocument>> {
        self.uses += 1;
        let held = self.held.get_mut(&entry)?;
        held.last_use = self.uses;
        Some(&mut held.built)
    }

    /// A document that a reader has built of some of these edits.
    pub(super) fn opened(&self, entry: EntryId, edits: &[EditName]) -> Option<Arc<BuiltDocument>> {
        self.opened.part_of(entry, edits)
    }

    /// Notes that the step in progress has changed a document.
    pub(super) fn note_changed(&mut self, entry: EntryId) {
        self.changed.insert(entry);
    }

    /// Leaves the documents that a committed step has changed to the readers.
    pub(super) fn publish(&mut self, head: Seq) {
        for entry in std::mem::take(&mut self.changed) {
            match self.held.get(&entry) {
                Some(held) => self.opened.put(entry, head, Arc::clone(&held.built)),
                None => self.opened.remove(entry, head),
            }
        }
    }

    /// Adds a document, and drops the one that was not used for the longest time if there are too
    /// many.
    pub(super) fn put(&mut self, entry: EntryId, built: Arc<BuiltDocument>) {
        self.uses += 1;
        self.held.insert(entry, CachedDocument { built, last_use: self.uses });
        self.changed.insert(entry);
        if self.held.len() > DOCUMENTS_MAX {
            let oldest = self.held.iter().min_by_key(|(_, held)| held.last_use);
            if let Some(entry) = oldest.map(|(entry, _)| *entry) {
                self.held.remove(&entry);
            }
        }
    }

    /// Drops a document whose records changed otherwise than by a new edit.
    pub(super) fn remove(&mut self, entry: EntryId) {
        self.held.remove(&entry);
        self.changed.insert(entry);
    }

    /// Notes that an edit was refused for lack of room.
    pub(super) fn note_refused(&mut self, entry: EntryId, digest: Digest) {
        if self.refused.len() >= REFUSED_MAX {
            self.refused.clear();
        }
        self.refused.insert(digest, (entry, false));
    }

    /// Notes that refused edits of a document may have room now.
    pub(super) fn void_refusals(&mut self, entry: EntryId) {
        for (of, is_void) in self.refused.values_mut() {
            *is_void |= *of == entry;
        }
    }

    /// Whether the refusal of an edit became void before it was stored. Asked once per refusal.
    pub(super) fn take_void_refusal(&mut self, digest: Digest) -> bool {
        self.refused.remove(&digest).is_some_and(|(_, is_void)| is_void)
    }

    /// Drops all documents: memory and store may differ after a failed step.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.changed.clear();
    }
}

/// The documents that one step has changed.
#[derive(Default)]
pub(super) struct DocumentChanges {
    /// New edits by document. An empty list means that the document is to be read again.
    pub(super) edits: BTreeMap<EntryId, Vec<Record>>,
    /// Workspaces whose members or removals changed.
    pub(super) workspaces: BTreeSet<WorkspaceId>,
    /// Documents of which this step dropped edits. The one in memory may still contain them.
    pub(super) stale: BTreeSet<EntryId>,
    /// Documents with a new edit that waits for a missing one.
    pub(super) waiting: BTreeSet<EntryId>,
    /// Bytes of an author's edits of a document, as far as this step has counted them.
    pub(super) bytes: BTreeMap<(EntryId, AuthorId), u64>,
    /// The entitlements that this step has read.
    pub(super) entitlements: BTreeMap<WorkspaceId, EditEntitlement>,
}
