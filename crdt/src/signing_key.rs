//! Ed25519 signing and verification with domain separation.
//!
//! Each signature is bound to a [`Purpose`]. Verification follows the ZIP-215 rules, so single and
//! batch verification accept exactly the same signatures on every node. This module generates no
//! keys: the caller passes in the secret bytes.

use crate::ids::AuthorId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use zeroize::Zeroizing;

/// The domain of a signature. Its prefix is signed together with the message, so a signature for
/// one purpose is invalid for any other purpose and for other protocols that use the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A record header, signed by its author.
    Record,
    /// A grant by which a workspace owner makes another key an admin.
    AdminGrant,
    /// An operator request: an API request that only the person who runs the node may make.
    Operator,
}

impl Purpose {
    const fn prefix(self) -> &'static [u8] {
        match self {
            Self::Record => b"klnode v1 sign record\0",
            Self::AdminGrant => b"klnode v1 sign admin grant\0",
            Self::Operator => b"klnode v1 sign operator request\0",
        }
    }

    fn message(self, bytes: &[u8]) -> Vec<u8> {
        [self.prefix(), bytes].concat()
    }
}

/// An ed25519 signature (64 bytes). Not verified by itself; see [`AuthorId::has_signed`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Makes a signature of these bytes without verifying it.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, as they are on the wire.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({})", data_encoding::HEXLOWER.encode(&self.0[..4]))
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes: serde_bytes::ByteArray<64> = Deserialize::deserialize(from)?;
        Ok(Self(bytes.into_array()))
    }
}

/// The secret key of an author. Zeroed on drop; `Debug` prints only the public key.
#[derive(Clone)]
pub struct SecretKey(ed25519_zebra::SigningKey);

impl SecretKey {
    /// Makes the key from its 32-byte seed.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(ed25519_zebra::SigningKey::from_bytes(bytes))
    }

    /// The 32-byte seed, for writing it to disk. Zeroed on drop.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public key, which identifies the author.
    pub fn author(&self) -> AuthorId {
        AuthorId::from_bytes(self.0.verification_key().into())
    }

    /// Signs the prefix of `purpose` followed by `bytes`.
    pub fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(&purpose.message(bytes)).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {:?})", self.author())
    }
}

impl AuthorId {
    /// Verifies that this author signed `bytes` for `purpose`. False also if the id is not a valid
    /// public key.
    pub fn has_signed(&self, purpose: Purpose, bytes: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_zebra::Signature::from_bytes(&signature.0);
        ed25519_zebra::VerificationKey::try_from(*self.as_bytes())
            .and_then(|key| key.verify(&signature, &purpose.message(bytes)))
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_author_purpose_and_bytes_alone() {
        let key = SecretKey::from_bytes(&[1; 32]);
        let other = SecretKey::from_bytes(&[2; 32]).author();
        let signature = key.sign(Purpose::Record, b"bytes");
        assert!(key.author().has_signed(Purpose::Record, b"bytes", &signature));
        assert!(!key.author().has_signed(Purpose::Record, b"Bytes", &signature));
        for another in [Purpose::AdminGrant, Purpose::Operator] {
            assert!(!key.author().has_signed(another, b"bytes", &signature));
        }
        assert!(!other.has_signed(Purpose::Record, b"bytes", &signature));
    }

    #[test]
    fn bytes_that_are_no_key_have_signed_nothing() {
        let signature = SecretKey::from_bytes(&[1; 32]).sign(Purpose::Record, b"x");
        assert!(!AuthorId::from_bytes([0xFF; 32]).has_signed(Purpose::Record, b"x", &signature));
    }

    #[test]
    fn printing_a_secret_key_shows_no_secret() {
        let key = SecretKey::from_bytes(&[0x5A; 32]);
        assert!(!format!("{key:?}").contains("5a5a"));
    }
}
