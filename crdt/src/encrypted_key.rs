//! The key file of a person: a signing key, encrypted with a passphrase.
//!
//! Argon2id derives an encryption key from the passphrase, and XChaCha20-Poly1305 encrypts the
//! secret. The public key and the Argon2 cost are associated data, so any change to the file is
//! detected. The caller passes in salt and nonce.

use crate::ids::AuthorId;
use crate::signing_key::SecretKey;
use crate::wire;
use crate::wire::msgpack_limits::MsgpackLimits;
use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Argon2id cost parameters: the price of one guess at the passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KdfCost {
    /// Memory in KiB.
    #[serde(rename = "m")]
    pub memory_kib: u32,
    /// Number of passes over the memory.
    #[serde(rename = "t")]
    pub passes: u32,
}

impl KdfCost {
    /// Cost for new keys: about half a second on a laptop.
    pub const DEFAULT: Self = Self { memory_kib: 64 * 1024, passes: 3 };
    /// The largest cost that is accepted. A hostile file must not exhaust the machine that opens
    /// it.
    pub const MAX: Self = Self { memory_kib: 1024 * 1024, passes: 16 };
}

/// Minimum length of a passphrase, in characters.
pub const PASSPHRASE_CHARS_MIN: usize = 8;

const FORMAT: u8 = 1;
const BOUNDS: MsgpackLimits = MsgpackLimits { bytes_max: 1_024, items_max: 32 };

/// The reason why a key could not be encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The passphrase is so short that it could be guessed.
    #[error(
        "The passphrase has fewer than {PASSPHRASE_CHARS_MIN} characters. Choose a longer one."
    )]
    TooShort,
    /// Wrong passphrase or damaged file. Authenticated encryption does not distinguish the two.
    #[error("Cannot open the person's key: the passphrase is wrong or the file is damaged.")]
    Wrong,
    /// The bytes are not a key file of this format.
    #[error("Cannot read the person's key: the file is damaged, or is not a key file.")]
    Malformed,
    /// A later version wrote the file.
    #[error("Cannot read the person's key: a newer klnode wrote the file (format {0}).")]
    Newer(u8),
    /// The cost in the file exceeds [`KdfCost::MAX`] or is invalid.
    #[error("Cannot read the person's key: the file demands more work than a passphrase may cost.")]
    Cost,
}

/// An encrypted signing key, as stored in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedKey {
    #[serde(rename = "v")]
    format: u8,
    #[serde(rename = "a")]
    author: AuthorId,
    #[serde(rename = "k")]
    cost: KdfCost,
    #[serde(rename = "s")]
    salt: serde_bytes::ByteArray<16>,
    #[serde(rename = "n")]
    nonce: serde_bytes::ByteArray<24>,
    #[serde(rename = "c")]
    ciphertext: serde_bytes::ByteBuf,
}

impl LockedKey {
    /// Encrypts a key. `salt` and `nonce` must be fresh random bytes.
    pub fn lock(
        key: &SecretKey,
        passphrase: &str,
        cost: KdfCost,
        salt: [u8; 16],
        nonce: [u8; 24],
    ) -> Result<Self, Error> {
        if passphrase.chars().count() < PASSPHRASE_CHARS_MIN {
            return Err(Error::TooShort);
        }
        let mut locked = Self {
            format: FORMAT,
            author: key.author(),
            cost,
            salt: salt.into(),
            nonce: nonce.into(),
            ciphertext: serde_bytes::ByteBuf::new(),
        };
        let cipher = locked.cipher(passphrase)?;
        let payload = Payload { msg: &key.to_bytes()[..], aad: &locked.bound() };
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| Error::Malformed)?;
        locked.ciphertext = sealed.into();
        Ok(locked)
    }

    /// Decrypts the key.
    pub fn unlock(&self, passphrase: &str) -> Result<SecretKey, Error> {
        let cipher = self.cipher(passphrase)?;
        let payload = Payload { msg: &self.ciphertext, aad: &self.bound() };
        let nonce = XNonce::from(self.nonce.into_array());
        let secret = Zeroizing::new(cipher.decrypt(&nonce, payload).map_err(|_| Error::Wrong)?);
        let bytes: &[u8; 32] = secret.as_slice().try_into().map_err(|_| Error::Malformed)?;
        let key = SecretKey::from_bytes(bytes);
        if key.author() == self.author { Ok(key) } else { Err(Error::Wrong) }
    }

    /// The public key, which is readable without the passphrase.
    pub fn author(&self) -> AuthorId {
        self.author
    }

    /// Encodes the key file.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Decodes a key file and checks its cost, without decrypting it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let locked: Self = wire::decode(bytes, BOUNDS).map_err(|_| Error::Malformed)?;
        if locked.format > FORMAT {
            return Err(Error::Newer(locked.format));
        }
        let is_sane = locked.cost.memory_kib <= KdfCost::MAX.memory_kib
            && locked.cost.passes <= KdfCost::MAX.passes;
        if is_sane { Ok(locked) } else { Err(Error::Cost) }
    }

    fn cipher(&self, passphrase: &str) -> Result<XChaCha20Poly1305, Error> {
        let params = Params::new(self.cost.memory_kib, self.cost.passes, 1, Some(32))
            .map_err(|_| Error::Cost)?;
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), &self.salt[..], &mut key[..])
            .map_err(|_| Error::Cost)?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }

    /// The associated data of the encryption: every field that an attacker could otherwise change.
    fn bound(&self) -> Vec<u8> {
        let mut bound = b"klnode v1 person key\0".to_vec();
        bound.push(self.format);
        bound.extend(self.author.as_bytes());
        bound.extend(self.cost.memory_kib.to_be_bytes());
        bound.extend(self.cost.passes.to_be_bytes());
        bound.extend(&self.salt[..]);
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: KdfCost = KdfCost { memory_kib: 8, passes: 1 };

    fn locked() -> (SecretKey, LockedKey) {
        let key = SecretKey::from_bytes(&[3; 32]);
        let locked = LockedKey::lock(&key, "correct horse", CHEAP, [1; 16], [2; 24]).unwrap();
        (key, locked)
    }

    #[test]
    fn the_right_passphrase_opens_the_key_after_a_trip_through_bytes() {
        let (key, locked) = locked();
        let read = LockedKey::decode(&locked.encode()).unwrap();
        assert_eq!(read.unlock("correct horse").unwrap().author(), key.author());
        assert_eq!(read.author(), key.author());
    }

    #[test]
    fn a_wrong_or_short_passphrase_is_refused() {
        let (key, locked) = locked();
        assert_eq!(locked.unlock("wrong horse!").unwrap_err(), Error::Wrong);
        let short = LockedKey::lock(&key, "short", CHEAP, [1; 16], [2; 24]);
        assert_eq!(short.unwrap_err(), Error::TooShort);
    }

    #[test]
    fn no_byte_of_the_file_can_change_unnoticed() {
        let (_, locked) = locked();
        let bytes = locked.encode();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let opened = LockedKey::decode(&changed).and_then(|key| key.unlock("correct horse"));
            assert!(opened.is_err(), "byte {at} changed and the key still opened");
        }
    }

    #[test]
    fn a_file_that_asks_for_too_much_work_is_refused() {
        let (_, mut locked) = locked();
        locked.cost.memory_kib = u32::MAX;
        assert_eq!(LockedKey::decode(&locked.encode()).unwrap_err(), Error::Cost);
        locked.cost = CHEAP;
        locked.format = 2;
        assert_eq!(LockedKey::decode(&locked.encode()).unwrap_err(), Error::Newer(2));
    }
}
