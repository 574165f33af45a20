//! The key of a person, as the suite puts it into homes and signs with it.

use klnode::api::person;
use klnode_crdt::key::SecretKey;
use klnode_crdt::person::{Cost, LockedKey};
use klnode_crdt::time::WallTime;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const PASSPHRASE: &str = "correct horse battery";
const KEY: [u8; 32] = [7; 32];

/// Puts a key into a home; one that is cheap to open.
pub(crate) fn write_key(home: &Path) {
    let cost = Cost { memory_kib: 8, passes: 1 };
    let key = SecretKey::from_bytes(&KEY);
    let locked = LockedKey::lock(&key, PASSPHRASE, cost, [1; 16], [2; 24]).unwrap();
    std::fs::write(home.join("person.key"), locked.encode()).unwrap();
}

/// What that key signs a request with.
pub(crate) fn header(method: &str, path: &str, body: &[u8]) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = WallTime::from_millis(since.as_millis() as u64);
    person::sign(&SecretKey::from_bytes(&KEY), &method.parse().unwrap(), path, body, now)
}
