//! A change that passed every check that needs no other change.
//!
//! The bytes of a change come from peers. [`CheckedChange::check`] is the only way from bytes to a
//! [`CheckedChange`], and automerge sees the bytes only after
//! `chunk_parser` has counted their operations and refused everything but
//! insertions into and deletions from the one text. The checks that need the dependencies (the
//! operation counter, the sequence number, the named elements) are in
//! [`change_graph`](crate::change_graph).

use crate::change_error::ChangeError;
use crate::change_hash::ChangeHash;
use crate::change_parser::{self, ParsedChange, TargetRun};
use crate::edit_identity::{Actor, EditIdentity};
use crate::limits::{AuthorQuota, CHANGE_BYTES_MAX};
use klnode_crdt::time::WallTime;
use std::ops::Range;
use std::sync::Arc;

/// A change that passed [`CheckedChange::check`]. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct CheckedChange(Arc<ChangeParts>);

#[derive(Debug)]
struct ChangeParts {
    change: automerge::Change,
    hash: ChangeHash,
    identity: EditIdentity,
    parsed: ParsedChange,
}

impl CheckedChange {
    /// Checks the bytes of one change against the identity that its record states.
    ///
    /// # Errors
    ///
    /// The first rule that the bytes break. The check takes time linear in the bytes, plus the
    /// operations, of which there are at most
    /// [`CHANGE_OPERATIONS_MAX`](crate::limits::CHANGE_OPERATIONS_MAX).
    pub fn check(
        bytes: &[u8],
        identity: EditIdentity,
        quota: &AuthorQuota,
    ) -> Result<Self, ChangeError> {
        if identity.number == 0 || identity.number > quota.edits_max {
            return Err(ChangeError::NumberOutOfRange(identity.number));
        }
        if bytes.len() > CHANGE_BYTES_MAX {
            return Err(ChangeError::TooLong);
        }
        let parsed = change_parser::parse(bytes)?;
        let expected = identity.actor();
        if parsed.actor != expected {
            return Err(ChangeError::WrongActor { expected, found: parsed.actor });
        }
        let change = automerge::Change::try_from(bytes)
            .map_err(|_| ChangeError::Malformed("automerge cannot read it"))?;
        let hash = ChangeHash::from_bytes(change.hash().0);
        // Automerge computes the hash from the content and ignores the checksum of a single change.
        if parsed.checksum != hash.as_bytes()[..4] {
            return Err(ChangeError::WrongChecksum);
        }
        Ok(Self(Arc::new(ChangeParts { change, hash, identity, parsed })))
    }

    /// The hash that names this change in the dependencies of others.
    pub fn hash(&self) -> ChangeHash {
        self.0.hash
    }

    /// Author, boot, branch and number, as the record states them.
    pub fn identity(&self) -> &EditIdentity {
        &self.0.identity
    }

    /// The actor, derived from the identity.
    pub fn actor(&self) -> Actor {
        self.0.parsed.actor
    }

    /// Number of the change among the changes of its actor; the first is 1.
    pub fn sequence(&self) -> u32 {
        self.0.parsed.sequence
    }

    /// The changes that this change was made on, in ascending order of their hashes.
    pub fn dependencies(&self) -> &[ChangeHash] {
        &self.0.parsed.dependencies
    }

    /// The counter of the first operation.
    pub fn start_operation(&self) -> u32 {
        self.0.parsed.start_operation
    }

    /// The counter of the last operation.
    pub fn last_operation(&self) -> u32 {
        self.0.parsed.start_operation + self.0.parsed.operations - 1
    }

    /// Number of operations; each inserts or deletes one code point.
    pub fn operations(&self) -> u32 {
        self.0.parsed.operations
    }

    /// Number of code points that the change inserts.
    pub fn inserted(&self) -> u32 {
        self.0.parsed.insertions.iter().map(|range| range.end - range.start).sum()
    }

    /// Number of code points that the change deletes.
    pub fn deleted(&self) -> u32 {
        self.operations() - self.inserted()
    }

    /// The time at which the author made the edit, by the author's clock.
    pub fn time(&self) -> WallTime {
        self.0.parsed.time
    }

    /// The bytes to store and forward: exactly the bytes that were checked.
    pub fn bytes(&self) -> &[u8] {
        self.0.change.raw_bytes()
    }

    pub(crate) fn to_automerge(&self) -> automerge::Change {
        self.0.change.clone()
    }

    /// Elements of earlier changes that the operations of this change name.
    pub(crate) fn targets(&self) -> &[TargetRun] {
        &self.0.parsed.targets
    }

    /// Whether all operations with these counters belong to this change and insert a code point.
    pub(crate) fn inserts_all(&self, counters: Range<u32>) -> bool {
        let insertions = &self.0.parsed.insertions;
        let after = insertions.partition_point(|range| range.start <= counters.start);
        let range = after.checked_sub(1).and_then(|index| insertions.get(index));
        range.is_some_and(|range| range.contains(&counters.start) && counters.end <= range.end)
    }
}

impl PartialEq for CheckedChange {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash && self.0.identity == other.0.identity
    }
}

impl Eq for CheckedChange {}
