//! Reasons why bytes and records are refused.
//!
//! Separate from records and from the wire format, because both refuse: the format refuses bytes
//! that do not decode, and a record refuses content that breaks a rule.

use crate::limits::NESTING_MAX;

/// The reason why bytes are refused before decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The message has too many bytes.
    #[error("{found} bytes are more than the {max} allowed")]
    TooLong {
        /// The length of the message.
        found: usize,
        /// The maximum length.
        max: usize,
    },
    /// The message has too many values.
    #[error("more than the {max} values allowed")]
    TooMany {
        /// The maximum number of values.
        max: usize,
    },
    /// Arrays and maps are nested deeper than [`NESTING_MAX`].
    #[error("nested deeper than the {NESTING_MAX} levels allowed")]
    TooDeep,
    /// The message ends inside a value.
    #[error("the bytes end inside a value")]
    Truncated,
    /// Bytes follow after the value.
    #[error("bytes follow after the value")]
    Trailing,
    /// The message uses an extension type or the one marker that MessagePack leaves unused.
    #[error("a kind of value that is not used here")]
    Foreign,
}

/// The reason why a record is refused. Every refusal except a newer format counts against the peer
/// that sent the record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The bytes exceed a decoding bound, such as nesting depth.
    #[error("the bytes are malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The bytes are valid MessagePack, but not of the expected type.
    #[error("the bytes do not decode: {0}")]
    Undecodable(String),
    /// A later version wrote the record. The node remembers the refusal and requests the record
    /// again after an upgrade.
    #[error("format {format}, facet {facet} is newer than this node understands")]
    NewerFormat {
        /// The format number in the header.
        format: u8,
        /// The facet number in the header.
        facet: u8,
    },
    /// A field exceeds a limit of the format.
    #[error("{what} has {found} {unit}; {max} are allowed")]
    OverLimit {
        /// The field that is too large.
        what: &'static str,
        /// The unit of `found` and `max`.
        unit: &'static str,
        /// The amount in the record.
        found: usize,
        /// The limit of the format.
        max: usize,
    },
    /// The list of absorbed slots is not sorted, or contains a slot that is not older.
    #[error("the list of absorbed slots is not in order")]
    BadAbsorbs,
    /// The signature does not verify against the author's key.
    #[error("the signature is not the author's")]
    BadSignature,
    /// The payload does not match the length and digest in the header.
    #[error("the payload is not the one that was signed")]
    WrongPayload,
    /// The payload breaks a rule of its facet.
    #[error("the payload breaks a rule: {0}")]
    BadPayload(&'static str),
    /// The author of the tombstone has no authority over the entry.
    #[error("the tombstone's author is not entitled to forget the entry")]
    NotEntitled,
}

impl RecordError {
    /// True if the refusal counts against the sender. A newer format does not.
    pub fn blames_sender(&self) -> bool {
        !matches!(self, Self::NewerFormat { .. })
    }
}

/// Refuses an amount above the limit.
pub(crate) fn at_most(
    what: &'static str,
    unit: &'static str,
    found: usize,
    max: usize,
) -> Result<(), RecordError> {
    if found <= max { Ok(()) } else { Err(RecordError::OverLimit { what, unit, found, max }) }
}
