//! Reads the golden files under `node/model/golden`, which the reference implementation wrote.

use std::fmt::Debug;
use std::str::FromStr;

/// Numbers separated by spaces.
pub(super) fn numbers<T: FromStr<Err: Debug>>(column: &str) -> Vec<T> {
    column.split(' ').filter(|one| !one.is_empty()).map(|one| one.parse().unwrap()).collect()
}

/// Turns `\{hex}` back into the character with that code point.
pub(super) fn unescape(text: &str) -> String {
    let mut parts = text.split("\\{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        out.push_str(rest);
    }
    out
}
