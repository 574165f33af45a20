//! Documents in memory: the merges of the last playbooks that the writer touched.
//!
//! Separate from `documents`, because the writer holds the cache and the code there works on the
//! transaction. Building a document from its records takes seconds if it has thousands of edits;
//! adding one edit to a built document takes a fraction of that.

use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_store::peers::Cut;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of documents in memory.
const DOCUMENTS_MAX: usize = 4;

/// The authors whose edits of a document count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditEntitlement {
    /// The workspace is not known yet: no edit counts.
    Nobody,
    /// The workspace is personal: only this person's nodes write there.
    Everybody,
    /// The workspace is shared: the members, and the records in the cuts of removed keys.
    Members(BTreeSet<AuthorId>, BTreeMap<AuthorId, Arc<Cut>>),
}

impl EditEntitlement {
    /// Whether an edit of this author in one of these records counts.
    pub(super) fn covers(&self, author: AuthorId, digests: &BTreeSet<Digest>) -> bool {
        match self {
            Self::Nobody => false,
            Self::Everybody => true,
            Self::Members(members, cuts) => {
                let is_kept = |cut: &Arc<Cut>| digests.iter().any(|of| cut.digests.contains(of));
                members.contains(&author) || cuts.get(&author).is_some_and(is_kept)
            }
        }
    }
}

/// A document with the records of its changes.
pub(super) struct CachedDocument {
    pub(super) document: TextDocument,
    /// The records of each change. A change is in several only if its author signed it again.
    pub(super) digests: BTreeMap<ChangeHash, BTreeSet<Digest>>,
    pub(super) entitlement: EditEntitlement,
    last_use: u64,
}

/// The documents in memory.
#[derive(Default)]
pub(super) struct DocumentCache {
    held: BTreeMap<EntryId, CachedDocument>,
    uses: u64,
}

impl DocumentCache {
    /// A document, which counts as used now.
    pub(super) fn get(&mut self, entry: EntryId) -> Option<&mut CachedDocument> {
        self.uses += 1;
        let held = self.held.get_mut(&entry)?;
        held.last_use = self.uses;
        Some(held)
    }

    /// Adds a document, and drops the one that was not used for the longest time if there are too
    /// many.
    pub(super) fn put(
        &mut self,
        entry: EntryId,
        document: TextDocument,
        digests: BTreeMap<ChangeHash, BTreeSet<Digest>>,
        entitlement: EditEntitlement,
    ) {
        self.uses += 1;
        let last_use = self.uses;
        let built = CachedDocument { document, digests, entitlement, last_use };
        self.held.insert(entry, built);
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
    }

    /// Drops all documents: memory and store may differ after a failed step.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

/// The documents that one step has changed.
#[derive(Default)]
pub(super) struct DocumentChanges {
    /// New edits by document. An empty list means that the document is to be read again.
    pub(super) edits: BTreeMap<EntryId, Vec<Record>>,
    /// Workspaces whose members or removals changed.
    pub(super) workspaces: BTreeSet<WorkspaceId>,
    /// Bytes of an author's edits of a document, as far as this step has counted them.
    pub(super) bytes: BTreeMap<(EntryId, AuthorId), u64>,
    /// The entitlements that this step has read.
    pub(super) entitlements: BTreeMap<WorkspaceId, EditEntitlement>,
}
