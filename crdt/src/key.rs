//! Signing and checking, each signature bound to a purpose.
//!
//! Verification follows the ZIP-215 rules, so that checking one by one and checking in batches
//! accept exactly the same signatures on every node. No key is drawn here: secret bytes come in as
//! an argument.

use crate::ids::AuthorId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use zeroize::Zeroizing;

/// What a signature is for. The prefix is signed with the bytes, so a signature made for one
/// purpose is worth nothing for another, nor for another protocol that uses the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A record's header.
    Record,
    /// An owner makes another key admin of a workspace.
    AdminGrant,
    /// A request to a node that only the person behind it may make.
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

/// Sixty-four bytes of an ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Wraps the bytes.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The bytes themselves.
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

/// The secret half of an author. Wiped when dropped, never printed.
#[derive(Clone)]
pub struct SecretKey(ed25519_zebra::SigningKey);

impl SecretKey {
    /// From 32 secret bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(ed25519_zebra::SigningKey::from_bytes(bytes))
    }

    /// The secret bytes, for storing them.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// The public half.
    pub fn author(&self) -> AuthorId {
        AuthorId::from_bytes(self.0.verification_key().into())
    }

    /// Signs bytes for a purpose.
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
    /// Whether this author signed the bytes for the purpose.
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
