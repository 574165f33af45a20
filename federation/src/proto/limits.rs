//! All bounds of the protocol, with their units.

/// Version of the sync protocol that this crate implements.
pub const VERSION: u8 = 1;

/// Maximum length of one frame in bytes.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of values in one frame, keys included; it bounds the decoder's work.
pub const FRAME_ITEMS_MAX: usize = 64 * 1024;

/// Maximum length of a pairing frame in bytes, where the peer may be a stranger.
pub const PAIR_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of items in one page of changes.
pub const PAGE_ITEMS_MAX: usize = 2_000;

/// Maximum bytes of records in one page or one answer to a fetch; leaves room for the frame's
/// overhead.
pub const PAGE_BYTES_MAX: usize = 900 * 1024;

/// Records up to this many bytes travel inside a page. Larger ones are only named, so that no large
/// record is transferred twice in a mesh.
pub const INLINE_BYTES_MAX: usize = 1_024;

/// Maximum number of digests in one fetch.
pub const FETCH_MAX: usize = 2_000;

/// Maximum bytes of fetched records that wait for the rest of their page.
pub const HELD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum number of receipts in one message.
pub const RECEIPTS_MAX: usize = 1_000;

/// Maximum number of round trips of one comparison. A peer that needs more is left alone until the
/// next comparison.
pub const COMPARE_ROUNDS_MAX: u32 = 64;

/// Maximum number of missing records that one comparison collects; the next comparison finds the
/// rest.
pub const COMPARE_NEED_MAX: usize = 100_000;

/// Maximum length of one comparison message in bytes.
pub const COMPARE_BYTES_MAX: usize = 256 * 1024;

/// Bytes read from the store that count as one row in a peer's budget.
pub const ROW_BYTES: usize = 1_024;

/// Maximum number of addresses of one node in a ticket or a card.
pub const ADDRESSES_MAX: usize = 16;

/// Maximum length of one address in bytes.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// Maximum length of a node's or workspace's name in characters.
pub const NAME_CHARS_MAX: usize = 64;

/// Characters kept of a peer's reason for a refusal.
pub const REASON_CHARS_MAX: usize = 160;

/// Maximum distance to an entry's creator, in hops, up to which the entry is forwarded.
pub const CREATOR_HOPS_MAX: u8 = 2;

/// Maximum number of attempts to join by address that are kept, including ended ones.
pub const JOIN_ROWS_MAX: usize = 32;

/// Window in which new attempts are counted, in milliseconds.
pub const JOIN_WINDOW_MS: u64 = 10 * 60 * 1_000;

/// Maximum number of new attempts per window, from all nodes together.
pub const JOIN_BEGINS_MAX: usize = 32;
/// Maximum number of new attempts per window from one node.
pub const JOIN_BEGINS_PER_PEER_MAX: usize = 6;
/// Maximum number of new attempts per window from one network address.
pub const JOIN_BEGINS_PER_SOURCE_MAX: usize = 12;

/// Time limit from a node's commitment to its nonce, in milliseconds.
pub const JOIN_REVEAL_MS_MAX: u64 = 30 * 1_000;
