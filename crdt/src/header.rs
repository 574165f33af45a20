//! Record headers: the signed part of a record.
//!
//! The author encodes a header once. All nodes store and forward exactly these bytes, and verify
//! the signature over them without encoding anything again. On the wire a header is a MessagePack
//! array of eleven values. A later format may append values; this version skips them, but the
//! signature and the digest cover them.

use crate::digest::{self, Context};
use crate::ids::{AuthorId, Boot, Digest, EntryId, Generation};
use crate::limits::{
    ABSORBS_MAX, EDITS_MAX, FORMAT, HEADER_BYTES_MAX, HEADER_ITEMS_MAX, PAYLOAD_BYTES_MAX,
};
use crate::record_error::{RecordError, at_most};
use crate::signing_key::{Purpose, SecretKey, Signature};
use crate::time::Hlc;
use crate::version_vector::{Slot, VersionVector};
use crate::wire;
use crate::wire::msgpack_limits::MsgpackLimits;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// The part of an author's state that a record carries. Facets change at different rates and have
/// different rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Facet {
    /// Texts, sets, citations, links and archival that the author claims.
    Claims,
    /// Counters of successes, failures and confirmations.
    Tally,
    /// A change of a playbook's text.
    Edit,
    /// A retraction of the author's own claims.
    Retraction,
    /// The deletion of the entry.
    Tombstone,
}

impl Facet {
    /// All facets of this format.
    pub const ALL: [Self; 5] =
        [Self::Claims, Self::Tally, Self::Edit, Self::Retraction, Self::Tombstone];

    /// The facets that make up the state of an entry. A document may have thousands of edits, which
    /// are only read to merge its text.
    pub const OF_ENTRY: [Self; 4] = [Self::Claims, Self::Tally, Self::Retraction, Self::Tombstone];

    /// The number of the facet on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Claims => 1,
            Self::Tally => 2,
            Self::Edit => 3,
            Self::Retraction => 4,
            Self::Tombstone => 5,
        }
    }

    /// The facet with this number on the wire; `None` for an unknown number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|facet| facet.code() == code)
    }

    /// True for facets that remove content: retractions and tombstones.
    pub fn is_retraction_or_tombstone(self) -> bool {
        matches!(self, Self::Retraction | Self::Tombstone)
    }
}

/// The signed fields of a record: the entry, the author, the position among the author's records,
/// and the digest of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The entry that the record is about.
    pub entry: EntryId,
    /// The author, whose key signs the header.
    pub author: AuthorId,
    /// The facet of the payload.
    pub facet: Facet,
    /// The slot of the record.
    pub place: Slot,
    /// The counter within the slot. It increases with each record.
    pub counter: u64,
    /// Time of signing, by the author's clock. Set comparison between peers sorts by it; no merge
    /// depends on it.
    pub stamp: Hlc,
    /// Older slots of the same author whose content the payload includes, each up to a counter.
    /// Sorted.
    pub absorbs: Vec<(Slot, u64)>,
    /// Length of the payload in bytes.
    pub payload_bytes: u32,
    /// Digest of the encoded payload.
    pub payload_digest: Digest,
}

/// The wire form: an array instead of a map, to save the field names.
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

/// Reads the eleven values of this format and skips values that a later format appended.
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

const BOUNDS: MsgpackLimits =
    MsgpackLimits { bytes_max: HEADER_BYTES_MAX, items_max: HEADER_ITEMS_MAX };

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

    fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let wire: WireHeader = wire::decode(bytes, BOUNDS)?;
        let facet = Facet::from_code(wire.3).filter(|_| wire.0 <= FORMAT);
        let header = Self {
            entry: wire.1,
            author: wire.2,
            facet: facet.ok_or(RecordError::NewerFormat { format: wire.0, facet: wire.3 })?,
            place: Slot { boot: wire.4, generation: wire.5 },
            counter: wire.6,
            stamp: wire.7,
            absorbs: wire
                .8
                .into_iter()
                .map(|(boot, generation, counter)| (Slot { generation, boot }, counter))
                .collect(),
            payload_bytes: wire.9,
            payload_digest: wire.10,
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), RecordError> {
        at_most("the header", "absorbed slots", self.absorbs.len(), ABSORBS_MAX)?;
        at_most("the payload", "bytes", self.payload_bytes as usize, PAYLOAD_BYTES_MAX)?;
        if self.facet == Facet::Edit {
            check_edit_number(self.counter)?;
            if self.place.generation != Generation(0) || !self.absorbs.is_empty() {
                return Err(RecordError::BadPayload("an edit absorbs nothing"));
            }
        }
        let is_sorted = self.absorbs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let are_older =
            self.absorbs.iter().all(|(place, _)| place.generation < self.place.generation);
        if is_sorted && are_older { Ok(()) } else { Err(RecordError::BadAbsorbs) }
    }
}

/// Checks the number of an edit.
pub(crate) fn check_edit_number(number: u64) -> Result<(), RecordError> {
    if number == 0 {
        return Err(RecordError::BadPayload("edits are numbered from 1"));
    }
    let found = usize::try_from(number).unwrap_or(usize::MAX);
    at_most("the author", "edits of one document", found, EDITS_MAX as usize)
}

/// A header with its signed bytes and its signature. Only [`SignedHeader::seal`],
/// [`SignedHeader::verify`] and [`SignedHeader::read_back`] make one, so the signature was checked
/// here or before the header was stored.
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
    /// # Panics If `key` is not the key of the header's author, or if the header exceeds a limit.
    /// Writers check both before.
    pub fn seal(header: Header, key: &SecretKey) -> Self {
        assert_eq!(header.author, key.author(), "a header is signed by its author");
        assert_eq!(header.check(), Ok(()), "a writer keeps the limits");
        let bytes = header.encode();
        let signature = key.sign(Purpose::Record, &bytes);
        Self { header, digest: Self::digest_of(&bytes), bytes: bytes.into(), signature }
    }

    /// Decodes a header from an untrusted source, and checks its limits and its signature.
    pub fn verify(bytes: &[u8], signature: Signature) -> Result<Self, RecordError> {
        let checked = Self::read_back(bytes, signature)?;
        if !checked.header.author.has_signed(Purpose::Record, bytes, &signature) {
            return Err(RecordError::BadSignature);
        }
        Ok(checked)
    }

    /// True if the author named in the header signed it. Works for headers of later formats, too.
    pub fn is_signed(bytes: &[u8], signature: Signature) -> bool {
        let wire: Result<WireHeader, RecordError> = wire::decode(bytes, BOUNDS);
        wire.is_ok_and(|wire| wire.2.has_signed(Purpose::Record, bytes, &signature))
    }

    /// Decodes a header from the store. It was verified before it was stored, so the signature is
    /// not checked again.
    pub fn read_back(bytes: &[u8], signature: Signature) -> Result<Self, RecordError> {
        let header = Header::decode(bytes)?;
        Ok(Self { header, digest: Self::digest_of(bytes), bytes: bytes.into(), signature })
    }

    /// The digest of a record: the hash of its header bytes, without the signature.
    pub fn digest_of(bytes: &[u8]) -> Digest {
        digest::of(Context::Record, bytes)
    }

    /// The decoded header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The signed bytes, exactly as the author encoded them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The author's signature over the bytes.
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// The digest of the record.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The version vector of the record, for comparison with other records of the author.
    pub fn version(&self) -> VersionVector {
        VersionVector {
            place: self.header.place,
            counter: self.header.counter,
            absorbs: self.header.absorbs.iter().copied().collect(),
            digest: self.digest,
        }
    }
}
