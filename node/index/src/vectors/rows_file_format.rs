//! The byte format of the vector file: a header, and one slot for each row.
//!
//! This module encodes and decodes buffers and checks every length and checksum;
//! [`super::rows_file`] decides when they are written. All numbers are little-endian.

use super::quantized_rows::QuantizedRows;
use super::row_filter::{RowFacts, TagSignature};
use klnode_crdt::ids::EntryId;
use std::io;

/// Maximum length of a model's identity, in bytes.
pub const IDENTITY_BYTES_MAX: usize = 256;
/// Maximum length of a cursor, in bytes.
pub const CURSOR_BYTES_MAX: usize = 256;
/// Maximum number of dimensions.
pub use klnode_embed::DIMS_MAX;
/// Maximum number of rows.
pub const ROWS_MAX: usize = 100_000_000;

const MAGIC: [u8; 8] = *b"klnodeV\n";
const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 1024;
/// The size of a slot without its codes: id, scale, facts, and a checksum at the end.
const SLOT_FIXED_BYTES: usize = 56;
/// Reasons why a vector file cannot be used. The caller always rebuilds it.
#[derive(Debug, thiserror::Error)]
pub enum UnusableFile {
    /// There is no file.
    #[error("There is no vector file yet.")]
    Absent,
    /// The file belongs to another model or generation.
    #[error("The vector file belongs to {found:?}, not to the model in use.")]
    Identity {
        /// The identity in the file.
        found: String,
    },
    /// The vectors in the file have another number of dimensions.
    #[error("The vector file has {found} dimensions; the model has {expected}.")]
    Dims {
        /// The dimensions in the file.
        found: usize,
        /// The dimensions of the model.
        expected: usize,
    },
    /// A later version of klnode wrote the file.
    #[error("The vector file has format version {found}; this klnode reads {VERSION}.")]
    Version {
        /// The format version of the file.
        found: u32,
    },
    /// A checkpoint was interrupted.
    #[error("The last write of the vector file was interrupted.")]
    Interrupted,
    /// A length or a checksum does not match.
    #[error("The vector file is damaged: {0}.")]
    Damaged(&'static str),
    /// The file could not be read.
    #[error("The vector file could not be read: {0}.")]
    Io(#[from] io::Error),
}

/// Whether the slots match the header or are being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Whole = 1,
    Writing = 2,
}

/// The header of the file.
pub(super) struct FileHeader {
    pub(super) state: State,
    pub(super) dims: usize,
    pub(super) rows: usize,
    /// The sum of the checksums of all slots.
    pub(super) total: u64,
    pub(super) identity: String,
    pub(super) cursor: Vec<u8>,
}

impl FileHeader {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend((self.state as u32).to_le_bytes());
        out.extend((self.dims as u64).to_le_bytes());
        out.extend((self.rows as u64).to_le_bytes());
        out.extend(self.total.to_le_bytes());
        for bytes in [self.identity.as_bytes(), &self.cursor] {
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
        out.resize(HEADER_BYTES - 8, 0);
        out.extend(checksum(0, &out).to_le_bytes());
        out
    }

    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, UnusableFile> {
        const WRONG: UnusableFile = UnusableFile::Damaged("its header is impossible");
        let (mut rest, sum) = bytes.split_at(HEADER_BYTES - 8);
        let whole = rest;
        if take(&mut rest, 8)? != MAGIC {
            return Err(UnusableFile::Damaged("it does not begin with the expected magic bytes"));
        }
        // Read the version before the checksum: a later version may have another header.
        let found = u32_of(take(&mut rest, 4)?);
        if found > VERSION {
            return Err(UnusableFile::Version { found });
        }
        if found != VERSION || checksum(0, whole) != u64_of(sum) {
            return Err(UnusableFile::Damaged("the checksum of its header differs"));
        }
        let state = match u32_of(take(&mut rest, 4)?) {
            state if state == State::Whole as u32 => State::Whole,
            state if state == State::Writing as u32 => State::Writing,
            _ => return Err(WRONG),
        };
        let dims = size(&mut rest, DIMS_MAX)?;
        let rows = size(&mut rest, ROWS_MAX)?;
        let total = u64_of(take(&mut rest, 8)?);
        let identity = size(&mut rest, IDENTITY_BYTES_MAX)?;
        let identity = take(&mut rest, identity)?.to_vec();
        let cursor = size(&mut rest, CURSOR_BYTES_MAX)?;
        let cursor = take(&mut rest, cursor)?.to_vec();
        let identity = String::from_utf8(identity).map_err(|_| WRONG)?;
        Ok(Self { state, dims, rows, total, identity, cursor })
    }
}

/// The size of a slot in bytes.
pub(super) fn slot_bytes(dims: usize) -> usize {
    (SLOT_FIXED_BYTES + dims).next_multiple_of(8)
}

/// Writes a row as a slot and returns its checksum.
pub(super) fn write_slot(rows: &QuantizedRows, row: usize, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    let facts = rows.facts(row);
    out.extend(rows.entry(row).as_bytes());
    out.extend(rows.codes.scale(row).to_le_bytes());
    out.extend(facts.workspace.to_le_bytes());
    out.extend(facts.thread.to_le_bytes());
    out.extend([facts.kind, facts.memory, facts.sub_type, 0]);
    out.extend(facts.tags.0.to_le_bytes());
    rows.codes.write_codes(row, out);
    out.resize(start + slot_bytes(rows.codes.dims()) - 8, 0);
    let sum = checksum(row as u64 + 1, &out[start..]);
    out.extend(sum.to_le_bytes());
    sum
}

/// Reads a slot into the next row, and returns its checksum.
pub(super) fn read_slot(slot: &[u8], rows: &mut QuantizedRows) -> Result<u64, UnusableFile> {
    let (body, sum) = slot.split_at(slot.len() - 8);
    let sum = u64_of(sum);
    if checksum(rows.len() as u64 + 1, body) != sum {
        return Err(UnusableFile::Damaged("the checksum of a row differs"));
    }
    let mut rest = body;
    let entry = EntryId::from_slice(take(&mut rest, EntryId::LEN)?)
        .expect("as many bytes were taken as an id has");
    let scale = f32::from_bits(u32_of(take(&mut rest, 4)?));
    let workspace = u32_of(take(&mut rest, 4)?);
    let thread = u32_of(take(&mut rest, 4)?);
    let [kind, memory, sub_type, _] = *take(&mut rest, 4)? else {
        return Err(UnusableFile::Damaged("a row is cut short"));
    };
    let low = u64_of(take(&mut rest, 8)?);
    let high = u64_of(take(&mut rest, 8)?);
    let tags = TagSignature(u128::from(high) << 64 | u128::from(low));
    let codes = take(&mut rest, rows.codes.dims())?;
    if !(0.0..=1.0).contains(&scale) {
        return Err(UnusableFile::Damaged("the scale of a row is impossible"));
    }
    let facts = RowFacts { workspace, thread, kind, memory, sub_type, tags };
    if rows.append(entry, codes, scale, facts).is_none() {
        return Err(UnusableFile::Damaged("an entry has two rows"));
    }
    Ok(sum)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], UnusableFile> {
    let (taken, after) =
        rest.split_at_checked(bytes).ok_or(UnusableFile::Damaged("it is cut short"))?;
    *rest = after;
    Ok(taken)
}

fn size(rest: &mut &[u8], most: usize) -> Result<usize, UnusableFile> {
    let size = usize::try_from(u64_of(take(rest, 8)?)).unwrap_or(usize::MAX);
    if size <= most { Ok(size) } else { Err(UnusableFile::Damaged("its sizes are impossible")) }
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Detects damage, not tampering. Every step is a bijection of the state, so a change of one word
/// is always detected; the shift moves the high bits, where products accumulate, back to the low
/// ones.
fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    bytes.chunks_exact(8).fold(seed.wrapping_mul(FACTOR) ^ FACTOR, |sum, word| {
        let product = (sum ^ u64_of(word)).wrapping_mul(FACTOR);
        product ^ (product >> 32)
    })
}
