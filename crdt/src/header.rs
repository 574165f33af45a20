//! A record's header: what is signed.
//!
//! The bytes of a header are decided once, by its author, and kept and forwarded exactly as they
//! came; nothing is encoded again to check a signature. On the wire a header is a MessagePack array
//! of eleven values. A later format may append values: they are skipped here, but the signature and
//! the digest cover them.

use crate::digest::{self, Context};
use crate::ids::{AuthorId, Boot, Digest, EntryId, Generation};
use crate::key::{Purpose, SecretKey, Signature};
use crate::limits::{ABSORBS_MAX, FORMAT, HEADER_BYTES_MAX, HEADER_ITEMS_MAX, PAYLOAD_BYTES_MAX};
use crate::record::{Refusal, at_most};
use crate::time::Hlc;
use crate::version::{Place, Version};
use crate::wire::{self, bounded::Bounds};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// What a record speaks about. Facets change at different rates and have rules of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Facet {
    /// Texts and sets.
    Claims,
    /// Counters.
    Tally,
    /// What its author takes back.
    Retraction,
    /// The entry is forgotten.
    Tombstone,
}

impl Facet {
    /// All facets of this format.
    pub const ALL: [Self; 4] = [Self::Claims, Self::Tally, Self::Retraction, Self::Tombstone];

    /// The number that travels. 3 is kept for edits of documents.
    pub const fn code(self) -> u8 {
        match self {
            Self::Claims => 1,
            Self::Tally => 2,
            Self::Retraction => 4,
            Self::Tombstone => 5,
        }
    }

    /// From the number that travels.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|facet| facet.code() == code)
    }

    /// Whether its records take something back.
    pub fn takes_back(self) -> bool {
        matches!(self, Self::Retraction | Self::Tombstone)
    }
}

/// A header, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// About which entry.
    pub entry: EntryId,
    /// By whom.
    pub author: AuthorId,
    /// In which facet.
    pub facet: Facet,
    /// In which slot.
    pub place: Place,
    /// Grows with each record in the slot.
    pub counter: u64,
    /// When, by the author's clock. Sorts records for comparison; decides nothing.
    pub stamp: Hlc,
    /// Older slots of the same author whose content the payload includes.
    pub absorbs: Vec<(Place, u64)>,
    /// How long the payload is.
    pub payload_bytes: u32,
    /// The payload's digest.
    pub payload_digest: Digest,
}

/// As it travels: an array, so that names cost nothing.
#[derive(Serialize)]
struct WireHeader(
    u8,
    EntryId,
    AuthorId,
    u8,
    Boot,
    Generation,
    u64,
    Hlc,
    Vec<(Boot, Generation, u64)>,
    u32,
    Digest,
);

impl<'de> Deserialize<'de> for WireHeader {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(HeaderVisitor)
    }
}

/// Reads the values this format knows and skips what a later one appended.
struct HeaderVisitor;

impl<'de> de::Visitor<'de> for HeaderVisitor {
    type Value = WireHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of at least eleven values")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<WireHeader, A::Error> {
        fn next<'de, T: Deserialize<'de>, A: de::SeqAccess<'de>>(
            seq: &mut A,
        ) -> Result<T, A::Error> {
            seq.next_element()?.ok_or_else(|| de::Error::custom("the header ends too soon"))
        }
        let header = WireHeader(
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
            next(&mut seq)?,
        );
        while seq.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(header)
    }
}

const BOUNDS: Bounds = Bounds { bytes_max: HEADER_BYTES_MAX, items_max: HEADER_ITEMS_MAX };

impl Header {
    fn encode(&self) -> Vec<u8> {
        let absorbs = self.absorbs.iter().map(|(at, count)| (at.boot, at.generation, *count));
        wire::encode(&WireHeader(
            FORMAT,
            self.entry,
            self.author,
            self.facet.code(),
            self.place.boot,
            self.place.generation,
            self.counter,
            self.stamp,
            absorbs.collect(),
            self.payload_bytes,
            self.payload_digest,
        ))
    }

    fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        let wire: WireHeader = wire::decode(bytes, BOUNDS)?;
        let facet = Facet::from_code(wire.3).filter(|_| wire.0 <= FORMAT);
        let header = Self {
            entry: wire.1,
            author: wire.2,
            facet: facet.ok_or(Refusal::NewerFormat { format: wire.0, facet: wire.3 })?,
            place: Place { boot: wire.4, generation: wire.5 },
            counter: wire.6,
            stamp: wire.7,
            absorbs: wire
                .8
                .into_iter()
                .map(|(boot, generation, counter)| (Place { generation, boot }, counter))
                .collect(),
            payload_bytes: wire.9,
            payload_digest: wire.10,
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), Refusal> {
        at_most("the header", "absorbed slots", self.absorbs.len(), ABSORBS_MAX)?;
        at_most("the payload", "bytes", self.payload_bytes as usize, PAYLOAD_BYTES_MAX)?;
        let is_sorted = self.absorbs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let are_older =
            self.absorbs.iter().all(|(place, _)| place.generation < self.place.generation);
        if is_sorted && are_older { Ok(()) } else { Err(Refusal::BadAbsorbs) }
    }
}

/// A header with the bytes that were signed and the signature. Made by sealing or by
/// [`SignedHeader::verify`]: holding one means the signature was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeader {
    header: Header,
    bytes: Box<[u8]>,
    signature: Signature,
    digest: Digest,
}

impl SignedHeader {
    /// Signs a header.
    ///
    /// # Panics
    /// If `key` is not the header's author or the header breaks a limit: both are mistakes of the
    /// writer, which checks its input before.
    pub fn seal(header: Header, key: &SecretKey) -> Self {
        assert_eq!(header.author, key.author(), "a header is signed by its author");
        assert_eq!(header.check(), Ok(()), "a writer keeps the limits");
        let bytes = header.encode();
        let signature = key.sign(Purpose::Record, &bytes);
        Self { header, digest: Self::digest_of(&bytes), bytes: bytes.into(), signature }
    }

    /// Checks limits and signature of a header that came from outside.
    pub fn verify(bytes: &[u8], signature: Signature) -> Result<Self, Refusal> {
        let checked = Self::read_back(bytes, signature)?;
        if !checked.header.author.has_signed(Purpose::Record, bytes, &signature) {
            return Err(Refusal::BadSignature);
        }
        Ok(checked)
    }

    /// Whether a header, also one of a later format, was signed by the author that it names.
    pub fn is_signed(bytes: &[u8], signature: Signature) -> bool {
        let wire: Result<WireHeader, Refusal> = wire::decode(bytes, BOUNDS);
        wire.is_ok_and(|wire| wire.2.has_signed(Purpose::Record, bytes, &signature))
    }

    /// Reads a header that was verified before it was stored.
    pub fn read_back(bytes: &[u8], signature: Signature) -> Result<Self, Refusal> {
        let header = Header::decode(bytes)?;
        Ok(Self { header, digest: Self::digest_of(bytes), bytes: bytes.into(), signature })
    }

    /// A record's digest: the hash of its header's bytes, without the signature.
    pub fn digest_of(bytes: &[u8]) -> Digest {
        digest::of(Context::Record, bytes)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes that were signed.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The signature.
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// The record's digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Where the record stands among its author's.
    pub fn version(&self) -> Version {
        Version {
            place: self.header.place,
            counter: self.header.counter,
            absorbs: self.header.absorbs.iter().copied().collect(),
            digest: self.digest,
        }
    }
}
