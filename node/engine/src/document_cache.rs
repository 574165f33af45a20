//! Documents in memory: the merges of the last playbooks that the writer touched.
//!
//! Separate from `documents`, because the writer holds the cache and the code there works on the
//! transaction. Building a document from its records takes seconds if it has thousands of edits;
//! adding one edit to a built document takes a fraction of that.

use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_document::change_hash::ChangeHash;
use klnode_document::document::TextDocument;
use klnode_store::peers::Cut;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of documents in memory.
const DOCUMENTS_MAX: usize = 4;

/// Maximum number of refused edits that are remembered until their refusals are stored.
const REFUSED_MAX: usize = 4_096;

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

    /// Whether an edit is in a cut.
    pub(super) fn is_in_cut(&self, author: AuthorId, digest: Digest) -> bool {
        let Self::Members(_, cuts) = self else { return false };
        cuts.get(&author).is_some_and(|cut| cut.digests.contains(&digest))
    }

    /// A hash of the entitlement as far as it concerns the edits of these authors.
    pub(super) fn fingerprint(&self, authors: &BTreeSet<AuthorId>) -> [u8; 32] {
        let mut fields = FieldHasher::new(Context::Text);
        match self {
            Self::Nobody => fields = fields.field(b"none"),
            Self::Everybody => fields = fields.field(b"all"),
            Self::Members(members, cuts) => {
                for author in authors {
                    let is_member = members.contains(author);
                    let cut = cuts.get(author).filter(|_| !is_member);
                    if is_member || cut.is_some() {
                        fields = fields.field(author.as_bytes()).field(&[u8::from(is_member)]);
                    }
                    for digest in cut.into_iter().flat_map(|cut| &cut.digests) {
                        fields = fields.field(digest.as_bytes());
                    }
                }
            }
        }
        *fields.finish().as_bytes()
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
    /// Edits that were refused for lack of room and whose refusals are not stored yet, and whether
    /// the reason is void by now.
    refused: BTreeMap<Digest, (EntryId, bool)>,
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
