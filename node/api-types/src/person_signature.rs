//! The signature by which a request proves that the person behind the node made it.
//!
//! The client signs, the server verifies; both build the signed bytes here.

use data_encoding::HEXLOWER;
use klnode_crdt::signing_key::{Purpose, SecretKey};
use klnode_crdt::time::WallTime;

/// The header with the signature: milliseconds since 1970, a colon, 128 hex digits.
pub const HEADER: &str = "klnode-person";

/// The value of the header for a request of the person.
pub fn sign(key: &SecretKey, method: &str, path: &str, body: &[u8], at: WallTime) -> String {
    let signature = key.sign(Purpose::Operator, &signed(method, path, body, at));
    format!("{}:{}", at.as_millis(), HEXLOWER.encode(signature.as_bytes()))
}

/// The signed bytes. Methods and paths contain no zero byte, so the encoding is unambiguous.
pub fn signed(method: &str, path: &str, body: &[u8], at: WallTime) -> Vec<u8> {
    let mut bytes = [method, path].join("\0").into_bytes();
    bytes.push(0);
    bytes.extend(at.as_millis().to_be_bytes());
    bytes.extend(blake3::hash(body).as_bytes());
    bytes
}
