//! What travels and is stored: MessagePack of types made for that alone.
//!
//! Domain types change with the code; these do not. Every decode first walks the bytes under
//! bounds. Payloads are maps with one-letter names, so that a later version may add a field and an
//! earlier one skips it; the bytes themselves are always kept.

pub mod bounded;
pub(crate) mod claims;
pub(crate) mod mark;
pub(crate) mod origin;
pub(crate) mod tally;
pub(crate) mod tombstone;

use crate::limits::{PAYLOAD_BYTES_MAX, PAYLOAD_ITEMS_MAX};
use crate::record::Refusal;
use bounded::Bounds;
use serde::{Deserialize, Serialize};

/// Bounds of every payload.
pub(crate) const PAYLOAD: Bounds =
    Bounds { bytes_max: PAYLOAD_BYTES_MAX, items_max: PAYLOAD_ITEMS_MAX };

/// Encodes a wire type: structs as maps, tuple structs as arrays.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(value).expect("a wire type holds nothing that cannot be encoded")
}

/// The decoder's words about bytes may repeat them; so many characters of that are kept, on one
/// line, since a refusal is logged, shown and sent back.
const WORDS_CHARS_MAX: usize = 200;

/// Decodes a wire type from bytes within the bounds.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8], bounds: Bounds) -> Result<T, Refusal> {
    bounded::check(bytes, bounds)?;
    rmp_serde::from_slice(bytes).map_err(|error| {
        let words = error.to_string();
        let plain = |c: char| if c.is_whitespace() || c.is_control() { ' ' } else { c };
        Refusal::Undecodable(words.chars().take(WORDS_CHARS_MAX).map(plain).collect())
    })
}
