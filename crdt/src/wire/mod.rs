//! Wire and storage format: MessagePack of types that exist only for this purpose.
//!
//! Domain types may change with the code; wire types may not. Every decode first checks the bytes
//! against [`MsgpackLimits`]. Payloads are maps with one-letter keys: a later version may add a key, and
//! this version skips it. Nodes keep the original bytes, so they forward unknown keys, too.

pub(crate) mod claims;
pub(crate) mod edit;
pub mod msgpack_limits;
pub(crate) mod origin;
pub(crate) mod retraction;
pub(crate) mod tally;
pub(crate) mod tombstone;

use crate::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_ITEMS_MAX};
use crate::record_error::RecordError;
use msgpack_limits::MsgpackLimits;
use serde::{Deserialize, Serialize};

/// The bounds for payloads of all facets.
pub(crate) const PAYLOAD: MsgpackLimits =
    MsgpackLimits { bytes_max: PAYLOAD_BYTES_MAX, items_max: PAYLOAD_ITEMS_MAX };

/// Encodes a wire type: structs as maps, tuple structs as arrays.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("a wire type holds nothing that cannot be encoded")
}

/// Maximum length of a decoder message in characters. The message may quote untrusted bytes, and a
/// refusal is logged, shown and sent back, so it is cut and put on one line.
const WORDS_CHARS_MAX: usize = 200;

/// Checks the bounds of the bytes and decodes a wire type.
pub fn decode<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
    bounds: MsgpackLimits,
) -> Result<T, RecordError> {
    msgpack_limits::check(bytes, bounds)?;
    rmp_serde::from_slice(bytes).map_err(|error| {
        let words = error.to_string();
        let plain = |c: char| if c.is_whitespace() || c.is_control() { ' ' } else { c };
        RecordError::Undecodable(words.chars().take(WORDS_CHARS_MAX).map(plain).collect())
    })
}
