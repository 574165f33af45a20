//! The bytes of changes, fixed: records of past versions must stay readable, and their hashes the same.

use super::{TestAuthor, check};
use data_encoding::HEXLOWER;

/// The first change of author 1: it inserts `Hi 🦀` at time 1,000 ms.
const INSERTION: &str = "856f4a834e129ece017a01a37e3c89e70e6a3b6c7020f9a1ce9e88089b0b46c38103fc950dc70d21\
    40d9fa103176ccadb8a6c9670471d31c91640a4e0102e8070001106b6c6e6f64652f646f63756d65\
    6e74310901020202110413053402420256045707700204010401000103007e000202010004040103\
    167f46486920f09fa6800400";
/// The second change: it replaces `i` by `o` at time 2,000 ms.
const REPLACEMENT: &str = "856f4a8317cc627c017a014e129ece252cf19c469f7365550fb6745e8d9c28fd49c37a2a74207e7f\
    5f0607103176ccadb8a6c9670471d31c91640a4e0206d00f0001106b6c6e6f64652f646f63756d65\
    6e74310b010202021102130334034203560357017003710273020201020102007e02010001017e01\
    037e16006f7e00017f007f03";

#[test]
fn the_encoding_of_a_change_is_fixed() {
    let mut ann = TestAuthor::new(1);
    let insertion = ann.edit_once("Hi 🦀");
    let replacement = ann.edit_once("Ho 🦀");
    assert_eq!(HEXLOWER.encode(insertion.bytes()), INSERTION);
    assert_eq!(HEXLOWER.encode(replacement.bytes()), REPLACEMENT);
    assert_eq!(
        insertion.hash().to_string(),
        "4e129ece252cf19c469f7365550fb6745e8d9c28fd49c37a2a74207e7f5f0607"
    );
}

#[test]
fn changes_of_past_versions_are_read() {
    let mut bob = TestAuthor::new(2);
    let ann = TestAuthor::new(1);
    for (number, hex) in [(1, INSERTION), (2, REPLACEMENT)] {
        let identity = crate::edit_identity::EditIdentity {
            author: ann.author,
            boot: ann.boot,
            branch: 0,
            number,
        };
        let change = check(&HEXLOWER.decode(hex.as_bytes()).unwrap(), &identity).unwrap();
        assert_eq!(change.time().as_millis(), 1_000 * u64::from(number));
        bob.receive(&[change]);
    }
    assert_eq!(bob.document.text(), "Ho 🦀");
}
