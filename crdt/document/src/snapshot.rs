//! Snapshots: the merge of a document as bytes, so that opening it again takes less time.
//!
//! A snapshot is a cache of one node. It is never sent, and deleting it loses nothing: the changes
//! decide, and a snapshot that does not fit them is ignored. It holds automerge's own compact form,
//! whose hashes automerge verifies, so a damaged snapshot is ignored, too.

use crate::change::CheckedChange;
use crate::document::TextDocument;
use crate::limits::AuthorQuota;
use crate::root_change::TEXT_ENCODING;
use automerge::{Automerge, LoadOptions};

impl TextDocument {
    /// The present merge as bytes, for [`Self::open`].
    pub fn snapshot(&self) -> Vec<u8> {
        self.merged().save()
    }

    /// Builds a document like [`Self::build`], with the help of a snapshot of an earlier state. The
    /// result does not depend on the snapshot.
    pub fn open(
        quota: AuthorQuota,
        snapshot: &[u8],
        changes: impl IntoIterator<Item = CheckedChange>,
        is_entitled: impl FnMut(&CheckedChange) -> bool,
    ) -> Self {
        let options = LoadOptions::new().text_encoding(TEXT_ENCODING);
        let merged = Automerge::load_with_options(snapshot, options).ok();
        // No bytes are a document without the root change.
        let merged = merged.filter(|merged| !merged.get_heads().is_empty());
        Self::build_on(quota, changes, is_entitled, merged)
    }
}
