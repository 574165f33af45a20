//! Checks MessagePack bytes against size limits before they are decoded.
//!
//! A few bytes can declare billions of elements or endless nesting. This check reads only markers
//! and lengths, and allocates nothing in proportion to a declared size. It refuses bytes that
//! exceed a bound, so the decoder never sees hostile sizes. The bytes must be exactly one value.

pub use crate::record_error::Malformed;

use crate::limits::NESTING_MAX;

/// Size limits for one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct MsgpackLimits {
    /// Maximum total length in bytes.
    pub bytes_max: usize,
    /// Maximum number of values, map keys included. It bounds the work of the decoder.
    pub items_max: usize,
}

/// Checks that the bytes are exactly one MessagePack value within the bounds.
pub fn check(bytes: &[u8], bounds: MsgpackLimits) -> Result<(), Malformed> {
    if bytes.len() > bounds.bytes_max {
        return Err(Malformed::TooLong { found: bytes.len(), max: bounds.bytes_max });
    }
    let mut rest = bytes;
    let mut items = 0_usize;
    // Number of values still expected on each open level; `open[0]` is the message itself.
    let mut open = [0_u64; NESTING_MAX + 1];
    open[0] = 1;
    let mut depth = 0;
    loop {
        while open[depth] == 0 {
            if depth == 0 {
                return if rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) };
            }
            depth -= 1;
        }
        open[depth] -= 1;
        items += 1;
        if items > bounds.items_max {
            return Err(Malformed::TooMany { max: bounds.items_max });
        }
        match next(&mut rest)? {
            Shape::Flat(len) => {
                rest = rest.get(len..).ok_or(Malformed::Truncated)?;
            }
            Shape::Nested(children) => {
                depth += 1;
                *open.get_mut(depth).ok_or(Malformed::TooDeep)? = children;
            }
        }
    }
}

enum Shape {
    /// A scalar or a string, with this many bytes of content.
    Flat(usize),
    /// An array or a map, with this many values inside.
    Nested(u64),
}

fn next(rest: &mut &[u8]) -> Result<Shape, Malformed> {
    let (&marker, after) = rest.split_first().ok_or(Malformed::Truncated)?;
    *rest = after;
    Ok(match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => Shape::Flat(0),
        0x80..=0x8f => Shape::Nested(2 * u64::from(marker & 0x0f)),
        0x90..=0x9f => Shape::Nested(u64::from(marker & 0x0f)),
        0xa0..=0xbf => Shape::Flat(usize::from(marker & 0x1f)),
        0xcc | 0xd0 => Shape::Flat(1),
        0xcd | 0xd1 => Shape::Flat(2),
        0xca | 0xce | 0xd2 => Shape::Flat(4),
        0xcb | 0xcf | 0xd3 => Shape::Flat(8),
        0xc4 | 0xd9 => Shape::Flat(length(rest, 1)? as usize),
        0xc5 | 0xda => Shape::Flat(length(rest, 2)? as usize),
        0xc6 | 0xdb => Shape::Flat(length(rest, 4)? as usize),
        0xdc => Shape::Nested(length(rest, 2)?),
        0xdd => Shape::Nested(length(rest, 4)?),
        0xde => Shape::Nested(2 * length(rest, 2)?),
        0xdf => Shape::Nested(2 * length(rest, 4)?),
        0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return Err(Malformed::Foreign),
    })
}

fn length(rest: &mut &[u8], width: usize) -> Result<u64, Malformed> {
    let (digits, after) = rest.split_at_checked(width).ok_or(Malformed::Truncated)?;
    *rest = after;
    Ok(digits.iter().fold(0, |sum, digit| sum << 8 | u64::from(*digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: 1_000, items_max: 100 };

    fn walk(bytes: &[u8]) -> Result<(), Malformed> {
        check(bytes, BOUNDS)
    }

    #[test]
    fn output_of_the_encoder_passes() {
        let value = (1_u8, -5_i64, 3.5_f64, "text", Some(vec![(7_u64, true), (1 << 40, false)]));
        assert_eq!(walk(&rmp_serde::to_vec(&value).unwrap()), Ok(()));
        let long = vec!["a".repeat(300), "b".repeat(20)];
        assert_eq!(walk(&rmp_serde::to_vec_named(&long).unwrap()), Ok(()));
    }

    #[test]
    fn a_length_of_four_gigabytes_is_truncated_input() {
        assert_eq!(walk(&[0xdb, 0xff, 0xff, 0xff, 0xff, b'x']), Err(Malformed::Truncated));
        assert_eq!(walk(&[0xc6, 0xff, 0xff, 0xff, 0xff]), Err(Malformed::Truncated));
        assert_eq!(walk(&[0xdd, 0xff, 0xff, 0xff, 0xff]), Err(Malformed::Truncated));
        assert_eq!(walk(&[0xdf, 0xff, 0xff, 0xff, 0xff]), Err(Malformed::Truncated));
    }

    #[test]
    fn nesting_stops_at_eight() {
        let nested = |levels: usize| [vec![0x91; levels], vec![0xc0]].concat();
        assert_eq!(walk(&nested(8)), Ok(()));
        assert_eq!(walk(&nested(9)), Err(Malformed::TooDeep));
        assert_eq!(walk(&[0x91; 900]), Err(Malformed::TooDeep));
    }

    #[test]
    fn too_many_values_too_many_bytes_and_leftovers_are_refused() {
        let many = rmp_serde::to_vec(&vec![1_u8; 200]).unwrap();
        assert_eq!(walk(&many), Err(Malformed::TooMany { max: 100 }));
        assert!(matches!(walk(&[0xc0; 1_001]), Err(Malformed::TooLong { .. })));
        assert_eq!(walk(&[0xc0, 0xc0]), Err(Malformed::Trailing));
        assert_eq!(walk(&[]), Err(Malformed::Truncated));
        assert_eq!(walk(&[0x92, 0xc0]), Err(Malformed::Truncated));
        assert_eq!(walk(&[0xc1]), Err(Malformed::Foreign));
        assert_eq!(walk(&[0xd4, 0, 0]), Err(Malformed::Foreign));
    }
}
