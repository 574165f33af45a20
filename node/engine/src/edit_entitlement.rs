//! Decides which edits of a document count: those of the members of its workspace, and those in the cuts
//! of removed members.
//!
//! Separate from the documents in memory, because the writer, the readers and the limits of edits apply
//! the same rule.

use klnode_crdt::digest::{Context, FieldHasher};
use klnode_crdt::ids::{AuthorId, Digest};
use klnode_store::peers::Cut;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
