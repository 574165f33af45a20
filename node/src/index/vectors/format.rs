//! The bytes of the file: a header, and one slot for each row.
//!
//! Here they are written into buffers and read out of them, with every length and checksum compared;
//! when which of them goes to disk is for [`super::file`]. All numbers are little-endian.

use super::facts::{Facts, TagSignature};
use super::rows::Rows;
use klnode_crdt::ids::EntryId;
use std::io;

/// Longest name of a model, in bytes.
pub const IDENTITY_BYTES_MAX: usize = 256;
/// Longest cursor, in bytes.
pub const CURSOR_BYTES_MAX: usize = 256;
/// Most numbers in a vector.
pub const DIMS_MAX: usize = 4096;
/// Most rows in an index.
pub const ROWS_MAX: usize = 100_000_000;

const MAGIC: [u8; 8] = *b"klnodeV\n";
const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 1024;
/// A slot without its codes: id, scale, facts, and the checksum at its end.
const SLOT_FIXED_BYTES: usize = 56;
/// Why a file of vectors cannot be used. The way out is always the same: build it again.
#[derive(Debug, thiserror::Error)]
pub enum Stale {
    /// There is none.
    #[error("load the vectors: there are none yet")]
    Absent,
    /// It was written for another model or generation.
    #[error("load the vectors: they are of {found:?}, not of the model in use")]
    Identity {
        /// Whose they are.
        found: String,
    },
    /// Its vectors have another length.
    #[error("load the vectors: they have {found} numbers each, those of the model {expected}")]
    Dims {
        /// How many they have.
        found: usize,
        /// How many the model's have.
        expected: usize,
    },
    /// It was written by a later version.
    #[error("load the vectors: their format is version {found}, this klnode reads {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// Writing it was cut off.
    #[error("load the vectors: the last time, writing them was cut off")]
    Interrupted,
    /// Its bytes are not what was written.
    #[error("load the vectors: the file is damaged: {0}")]
    Damaged(&'static str),
    /// It cannot be read.
    #[error("load the vectors: {0}")]
    Io(#[from] io::Error),
}

/// Whether the slots are what the header says, or being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Whole = 1,
    Writing = 2,
}

/// What the first bytes of the file say.
pub(super) struct Header {
    pub(super) state: State,
    pub(super) dims: usize,
    pub(super) rows: usize,
    /// The checksums of all slots, added up.
    pub(super) total: u64,
    pub(super) identity: String,
    pub(super) cursor: Vec<u8>,
}

impl Header {
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

    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Stale> {
        const WRONG: Stale = Stale::Damaged("its header is impossible");
        let (mut rest, sum) = bytes.split_at(HEADER_BYTES - 8);
        let whole = rest;
        if take(&mut rest, 8)? != MAGIC {
            return Err(Stale::Damaged("it is no file of vectors"));
        }
        // A later version may have another header, so its number is read before the checksum.
        let found = u32_of(take(&mut rest, 4)?);
        if found > VERSION {
            return Err(Stale::Version { found });
        }
        if found != VERSION || checksum(0, whole) != u64_of(sum) {
            return Err(Stale::Damaged("its header is not what was written"));
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

/// How many bytes a slot has.
pub(super) fn slot_bytes(dims: usize) -> usize {
    (SLOT_FIXED_BYTES + dims).next_multiple_of(8)
}

/// Writes a row as a slot and returns its checksum.
pub(super) fn write_slot(rows: &Rows, row: usize, out: &mut Vec<u8>) -> u64 {
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

/// Reads a slot into the row after the last, and returns its checksum.
pub(super) fn read_slot(slot: &[u8], rows: &mut Rows) -> Result<u64, Stale> {
    let (body, sum) = slot.split_at(slot.len() - 8);
    let sum = u64_of(sum);
    if checksum(rows.len() as u64 + 1, body) != sum {
        return Err(Stale::Damaged("a row is not what was written"));
    }
    let mut rest = body;
    let entry = EntryId::from_slice(take(&mut rest, EntryId::LEN)?)
        .expect("as many bytes were taken as an id has");
    let scale = f32::from_bits(u32_of(take(&mut rest, 4)?));
    let workspace = u32_of(take(&mut rest, 4)?);
    let thread = u32_of(take(&mut rest, 4)?);
    let [kind, memory, sub_type, _] = *take(&mut rest, 4)? else {
        return Err(Stale::Damaged("a row is cut short"));
    };
    let low = u64_of(take(&mut rest, 8)?);
    let high = u64_of(take(&mut rest, 8)?);
    let tags = TagSignature(u128::from(high) << 64 | u128::from(low));
    let codes = take(&mut rest, rows.codes.dims())?;
    if !(0.0..=1.0).contains(&scale) {
        return Err(Stale::Damaged("the scale of a row is impossible"));
    }
    let facts = Facts { workspace, thread, kind, memory, sub_type, tags };
    if rows.append(entry, codes, scale, facts).is_none() {
        return Err(Stale::Damaged("an entry has two rows"));
    }
    Ok(sum)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], Stale> {
    let (taken, after) = rest.split_at_checked(bytes).ok_or(Stale::Damaged("it is cut short"))?;
    *rest = after;
    Ok(taken)
}

fn size(rest: &mut &[u8], most: usize) -> Result<usize, Stale> {
    let size = usize::try_from(u64_of(take(rest, 8)?)).unwrap_or(usize::MAX);
    if size <= most { Ok(size) } else { Err(Stale::Damaged("its sizes are impossible")) }
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// It finds damage, not malice. Every step is a bijection of the sum so far, so that one changed
/// word always shows; the shift brings the highest bits, where products gather, back to the lowest.
fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    bytes.chunks_exact(8).fold(seed.wrapping_mul(FACTOR) ^ FACTOR, |sum, word| {
        let product = (sum ^ u64_of(word)).wrapping_mul(FACTOR);
        product ^ (product >> 32)
    })
}
