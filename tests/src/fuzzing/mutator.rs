//! Mutations that find decoder bugs: a flipped bit, a cut, a moved or inserted piece, an inflated
//! length.
//!
//! Seeded, so that a run can be repeated. It handles some MessagePack and the text formats here;
//! libFuzzer covers the rest.

use super::INPUT_BYTES_MAX;
use crate::test_engine::Seeded;

/// Prefixes of values that claim to be long.
const CLAIMS: [&[u8]; 9] = [
    &[0xdb, 0xff, 0xff, 0xff, 0xff],
    &[0xc6, 0xff, 0xff, 0xff, 0xff],
    &[0xdd, 0xff, 0xff, 0xff, 0xff],
    &[0xdf, 0x7f, 0xff, 0xff, 0xff],
    &[0xdc, 0xff, 0xff],
    &[0xde, 0xff, 0xff],
    &[0xc5, 0x01, 0x00],
    &[0xd9, 0xff],
    &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];

/// Pieces with a meaning in one of the formats.
const PIECES: [&str; 20] = [
    "\"",
    "\\",
    "\n",
    "\r\n",
    "---\n",
    "{",
    "[[",
    "]",
    ": ",
    "=",
    "#",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "é",
    "NOT ",
    " AND ",
    "**/",
    "password=",
    "[redacted: ",
];

/// Maximum size of a piece that is moved, duplicated or removed.
const PIECE_BYTES_MAX: u64 = 32;

/// The bytes after one to four mutations; `other` provides bytes to splice in.
pub fn mutated(bytes: &[u8], other: &[u8], random: &mut Seeded) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        change(&mut bytes, other, random);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Seeded) {
    let at = index(bytes.len() + 1, random);
    match random.below(9) {
        0 | 1 => {
            let bit = 1_u8 << random.below(8);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bit;
            }
        }
        2 => {
            let value = [0x00, 0x01, 0x7f, 0x80, 0xc0, 0xff][index(6, random)];
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        3 => bytes.truncate(at),
        4 => {
            let mut noise = vec![0; 1 + index(8, random)];
            random.fill(&mut noise);
            bytes.splice(at..at, noise);
        }
        5 => {
            let piece = PIECES[index(PIECES.len(), random)];
            bytes.splice(at..at, piece.bytes());
        }
        6 => {
            let end = bytes.len().min(at + 1 + random.below(PIECE_BYTES_MAX) as usize);
            let piece: Vec<u8> = bytes.drain(at.min(end)..end).collect();
            // Removes or duplicates a piece.
            if random.below(2) == 0 {
                let to = at.min(bytes.len());
                bytes.splice(to..to, [piece.as_slice(), piece.as_slice()].concat());
            }
        }
        7 => {
            let from = index(other.len() + 1, random);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => inflate(bytes, at, random),
    }
}

/// Replaces the next value that has a length with a long claim.
fn inflate(bytes: &mut Vec<u8>, at: usize, random: &mut Seeded) {
    let has_length = |byte: &u8| matches!(byte, 0x80..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdf);
    let found = bytes.iter().skip(at).position(has_length).map(|further| at + further);
    if let Some(found) = found {
        let claim = CLAIMS[index(CLAIMS.len(), random)];
        bytes.splice(found..=found, claim.iter().copied());
    }
}

fn index(bound: usize, random: &mut Seeded) -> usize {
    random.below(bound as u64) as usize
}
