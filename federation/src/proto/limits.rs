//! Every bound of the protocol, with its unit.

/// The version of the protocol that this crate speaks.
pub const VERSION: u8 = 1;

/// Bytes of one frame.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;

/// Values in one frame, keys included: the decoder's work.
pub const FRAME_ITEMS_MAX: usize = 64 * 1024;

/// Bytes of one frame of the pairing exchange, where nobody is known yet.
pub const PAIR_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Items in one page of changes.
pub const PAGE_ITEMS_MAX: usize = 2_000;

/// Bytes of records in one page or one answer to a fetch: a frame's, less its frame.
pub const PAGE_BYTES_MAX: usize = 900 * 1024;

/// Records up to this many bytes travel inside a page; larger ones are named, so that nothing large
/// travels twice in a mesh.
pub const INLINE_BYTES_MAX: usize = 1_024;

/// Digests in one fetch.
pub const FETCH_MAX: usize = 2_000;

/// Bytes of fetched records that wait for the rest of their page.
pub const HELD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Receipts in one message.
pub const RECEIPTS_MAX: usize = 1_000;

/// Round trips of one comparison: a peer that never comes to an end is left alone until the next.
pub const COMPARE_ROUNDS_MAX: u32 = 64;

/// What a peer has and this node lacks, as far as one comparison goes; the next one finds the rest.
pub const COMPARE_NEED_MAX: usize = 100_000;

/// Bytes of one message of a comparison.
pub const COMPARE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of what is read of the store that count as one row which is gone through.
pub const ROW_BYTES: usize = 1_024;

/// Addresses of one node, in a ticket or a greeting.
pub const ADDRESSES_MAX: usize = 16;

/// Bytes of one address.
pub const ADDRESS_BYTES_MAX: usize = 256;

/// Characters of a node's or workspace's name.
pub const NAME_CHARS_MAX: usize = 64;

/// Characters that are kept of a peer's reason for saying no.
pub const REASON_CHARS_MAX: usize = 160;

/// Steps to an entry's creator up to which it is passed on.
pub const CREATOR_HOPS_MAX: u8 = 2;

/// Attempts to join by address that are kept at once, those that are over included.
pub const JOIN_ROWS_MAX: usize = 32;

/// The time over which new attempts are counted, in milliseconds.
pub const JOIN_WINDOW_MS: u64 = 10 * 60 * 1_000;

/// New attempts in a window: of all nodes together, of one node, and from one network address.
pub const JOIN_BEGINS_MAX: usize = 32;
/// See [`JOIN_BEGINS_MAX`].
pub const JOIN_BEGINS_PER_PEER_MAX: usize = 6;
/// See [`JOIN_BEGINS_MAX`].
pub const JOIN_BEGINS_PER_SOURCE_MAX: usize = 12;

/// How long a node may take from its commitment to its nonce, in milliseconds.
pub const JOIN_REVEAL_MS_MAX: u64 = 30 * 1_000;
