//! Helpers for tests and benchmarks: broken changes, and long playbooks.

pub mod long_playbook;

/// Writes the right checksum into the bytes of a change, if automerge can read them. Mutated bytes
/// would otherwise fail at the checksum alone.
pub fn repair_checksum(bytes: &mut [u8]) {
    if let Ok(change) = automerge::Change::try_from(&*bytes) {
        bytes[4..8].copy_from_slice(&change.hash().0[..4]);
    }
}
