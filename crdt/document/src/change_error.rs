//! The reasons to refuse the bytes of a change.

use crate::edit_identity::Actor;
use crate::limits::CHANGE_BYTES_MAX;

/// Why the bytes of a change are refused. The reason depends on the bytes and the identity alone, so
/// every node refuses the same changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The bytes are longer than [`CHANGE_BYTES_MAX`].
    #[error("The change has more than {CHANGE_BYTES_MAX} bytes.")]
    TooLong,
    /// The columns describe more operations than one change may have.
    #[error("The change has too many operations.")]
    TooManyOperations,
    /// The number of the edit is 0 or exceeds the quota.
    #[error("The edit number {0} is outside the quota of an author.")]
    NumberOutOfRange(u32),
    /// The chunk is a document, a compressed change or a bundle.
    #[error("The chunk has type {0}; only an uncompressed change is accepted.")]
    WrongChunkType(u8),
    /// The checksum in the header is not that of the content.
    #[error("The checksum of the change is wrong.")]
    WrongChecksum,
    /// The actor is not the one derived from author, boot and branch.
    #[error("The change was made by actor {found}; its record belongs to actor {expected}.")]
    WrongActor {
        /// The actor of the record.
        expected: Actor,
        /// The actor inside the change.
        found: Actor,
    },
    /// An operation is neither an insertion into the text nor a deletion from it.
    #[error("Operation {index} is not a splice of the text: {reason}.")]
    NotASplice {
        /// Position of the operation in the change; the first is 0.
        index: u32,
        /// The rule that the operation breaks.
        reason: &'static str,
    },
    /// The change has a column that insertions and deletions of text do not need: keys of a map, marks
    /// or compressed data.
    #[error("The change has column {0:#x}, which a splice of the text does not need.")]
    UnexpectedColumn(u32),
    /// The operation counters of the change exceed the limit.
    #[error("The operation counter of the change is out of range.")]
    CounterOutOfRange,
    /// The bytes do not follow the format.
    #[error("The change is malformed: {0}.")]
    Malformed(&'static str),
}
