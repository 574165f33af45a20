//! A person's key that the suite writes into homes and signs with.

use klnode_api_types::person_signature;
use klnode_crdt::encrypted_key::{KdfCost, LockedKey};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const PASSPHRASE: &str = "correct horse battery";
const KEY: [u8; 32] = [7; 32];

/// Writes a key into a home, with a cheap key derivation.
pub(crate) fn write_key(home: &Path) {
    let cost = KdfCost { memory_kib: 8, passes: 1 };
    let key = SecretKey::from_bytes(&KEY);
    let locked = LockedKey::lock(&key, PASSPHRASE, cost, [1; 16], [2; 24]).unwrap();
    std::fs::write(home.join("person.key"), locked.encode()).unwrap();
}

/// The signature header of a request.
pub(crate) fn header(method: &str, path: &str, body: &[u8]) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = WallTime::from_millis(since.as_millis() as u64);
    person_signature::sign(&SecretKey::from_bytes(&KEY), method, path, body, now)
}
