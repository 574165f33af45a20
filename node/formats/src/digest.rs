//! Digests that tell texts and identities apart.

/// The digest of a text, in hexadecimal digits.
pub fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The digest of a list of texts.
pub(crate) fn of_parts(parts: &[&str]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes()).update(part.as_bytes());
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
