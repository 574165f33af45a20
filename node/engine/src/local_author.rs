//! The author identity of this node, with the state needed to write its records.
//!
//! Separate from the engine, which owns it: every command that writes a record uses it.

use super::document_cache::DocumentCache;
use super::task_params::TaskParams;
use klnode_crdt::ids::{AuthorId, Boot};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::Clock;
use klnode_scoring::cooccurrence;
use std::collections::{BTreeMap, BTreeSet};

/// A random source, which fills the given buffer.
pub(super) type Entropy = Box<dyn FnMut(&mut [u8]) + Send>;

/// The author identity of this node, with the state needed to write its records.
pub(super) struct LocalAuthor {
    pub(super) key: SecretKey,
    pub(super) mine: BTreeSet<AuthorId>,
    pub(super) boot: Boot,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) cooccurrence: cooccurrence::Params,
    pub(super) tasks: TaskParams,
    /// Revision that grows when membership changes without a feed record.
    pub(super) membership_changes: u64,
    /// Number of equivocation proofs against unknown authors that each peer has delivered since the
    /// start.
    pub(super) proofs_brought: BTreeMap<AuthorId, u64>,
    /// Documents in memory.
    pub(super) documents: DocumentCache,
}

impl LocalAuthor {
    pub(super) fn draw_boot(&mut self) {
        let mut bytes = [0; 8];
        (self.entropy)(&mut bytes);
        self.boot = Boot(u64::from_be_bytes(bytes));
    }
}
