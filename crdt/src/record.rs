//! Records: a signed header and, unless it was erased, its payload.
//!
//! A [`RawRecord`] is untrusted bytes. A [`Record`] is always verified: it was sealed on this node,
//! passed [`Record::verify`], or was read back from the store, which holds only verified records.

pub use crate::record_error::RecordError;

use crate::digest::{self, Context};
use crate::header::{Facet, Header, SignedHeader};
use crate::ids::{AuthorId, Digest, EntryId};
use crate::payload::Payload;
use crate::signing_key::{SecretKey, Signature};
use crate::time::Hlc;
use crate::tombstone::{Authority, TombstoneRank};
use crate::version_vector::{Slot, VersionVector};
use crate::wire;
use crate::wire::msgpack_limits;
use serde::{Deserialize, Serialize};

/// A record on the wire and in the store: the bytes exactly as its author encoded them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRecord {
    /// The encoded header.
    #[serde(rename = "h", with = "serde_bytes")]
    pub header: Vec<u8>,
    /// The author's signature over the header.
    #[serde(rename = "s")]
    pub signature: Signature,
    /// The encoded payload; absent if a retraction suppresses it.
    #[serde(rename = "p", with = "serde_bytes", default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Vec<u8>>,
}

/// Checks the payload against the length and digest in the header. Only claims may lack a payload.
fn check_named(header: &Header, payload: Option<&[u8]>) -> Result<(), RecordError> {
    let is_named = match payload {
        Some(bytes) => {
            bytes.len() == header.payload_bytes as usize
                && digest::of(Context::Payload, bytes) == header.payload_digest
        }
        // A retraction erases the payload of claims and keeps the header. Other facets stay whole.
        None => header.facet == Facet::Claims,
    };
    if is_named { Ok(()) } else { Err(RecordError::WrongPayload) }
}

/// A verified record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    signed: SignedHeader,
    body: RecordBody,
}

/// The payload with its bytes, or the reason why it is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RecordBody {
    Whole(Box<Payload>, Box<[u8]>),
    Absent(Absence),
}

/// The reason why a record has no payload on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The node had the payload and erased it because of a retraction.
    Erased,
    /// The record arrived without its payload. A retraction may explain that, but a relay may also
    /// have removed the payload on its own. The record therefore covers no record that has a
    /// payload, and the node still wants the whole record.
    Stripped,
}

/// The fields of a header that do not depend on the payload.
#[derive(Clone, Debug)]
pub struct Position {
    /// The entry that the record is about.
    pub entry: EntryId,
    /// The slot of the record.
    pub place: Slot,
    /// The counter within the slot.
    pub counter: u64,
    /// Time of signing, by the author's clock.
    pub stamp: Hlc,
    /// The older slots that the payload includes, each up to a counter.
    pub absorbs: Vec<(Slot, u64)>,
}

impl Record {
    /// Checks a payload, encodes it and signs it at this position.
    pub fn seal(at: Position, payload: Payload, key: &SecretKey) -> Result<Self, RecordError> {
        let bytes = payload.encode();
        payload.check(at.entry, key.author(), &bytes)?;
        msgpack_limits::check(&bytes, wire::PAYLOAD)?;
        let header = Header {
            entry: at.entry,
            author: key.author(),
            facet: payload.facet(),
            place: at.place,
            counter: at.counter,
            stamp: at.stamp,
            absorbs: at.absorbs,
            payload_bytes: u32::try_from(bytes.len()).expect("checked against a limit below 2^32"),
            payload_digest: digest::of(Context::Payload, &bytes),
        };
        let signed = SignedHeader::seal(header, key);
        Ok(Self { signed, body: RecordBody::Whole(Box::new(payload), bytes.into()) })
    }

    /// Verifies a record from an untrusted source: limits, signature, payload digest, rules of the
    /// facet, and the authority of a tombstone.
    pub fn verify(raw: &RawRecord) -> Result<Self, RecordError> {
        let signed = SignedHeader::verify(&raw.header, raw.signature)?;
        Self::with_payload(signed, raw.payload.as_deref(), Absence::Stripped)
    }

    /// Decodes a record from the store, with all checks except the signature. `absence` is the
    /// reason for a missing payload.
    pub fn read_back(raw: &RawRecord, absence: Absence) -> Result<Self, RecordError> {
        let signed = SignedHeader::read_back(&raw.header, raw.signature)?;
        Self::with_payload(signed, raw.payload.as_deref(), absence)
    }

    /// Decodes only the header of a record from the store. Checks the payload's digest without
    /// decoding the payload.
    pub fn header_back(raw: &RawRecord) -> Result<SignedHeader, RecordError> {
        let signed = SignedHeader::read_back(&raw.header, raw.signature)?;
        check_named(signed.header(), raw.payload.as_deref())?;
        Ok(signed)
    }

    fn with_payload(
        signed: SignedHeader,
        bytes: Option<&[u8]>,
        absence: Absence,
    ) -> Result<Self, RecordError> {
        let header = signed.header();
        check_named(header, bytes)?;
        let Some(bytes) = bytes else {
            return Ok(Self { signed, body: RecordBody::Absent(absence) });
        };
        let payload = Payload::decode(header.facet, header.entry, header.author, bytes)?;
        payload.check(header.entry, header.author, bytes)?;
        Ok(Self { signed, body: RecordBody::Whole(Box::new(payload), bytes.into()) })
    }

    /// The wire and store form.
    pub fn to_raw(&self) -> RawRecord {
        RawRecord {
            header: self.signed.bytes().to_vec(),
            signature: self.signed.signature(),
            payload: match &self.body {
                RecordBody::Whole(_, bytes) => Some(bytes.to_vec()),
                RecordBody::Absent(_) => None,
            },
        }
    }

    /// The decoded header.
    pub fn header(&self) -> &Header {
        self.signed.header()
    }

    /// The header with its signed bytes and signature.
    pub fn signed_header(&self) -> &SignedHeader {
        &self.signed
    }

    /// The digest of the record: the hash of its header.
    pub fn digest(&self) -> Digest {
        self.signed.digest()
    }

    /// The entry that the record is about.
    pub fn entry(&self) -> EntryId {
        self.header().entry
    }

    /// The author of the record.
    pub fn author(&self) -> AuthorId {
        self.header().author
    }

    /// The version vector of the record.
    pub fn version(&self) -> VersionVector {
        self.signed.version()
    }

    /// The payload; `None` if it is absent on this node.
    pub fn payload(&self) -> Option<&Payload> {
        match &self.body {
            RecordBody::Whole(payload, _) => Some(payload),
            RecordBody::Absent(_) => None,
        }
    }

    /// The reason why the payload is absent; `None` if it is present.
    pub fn absence(&self) -> Option<Absence> {
        match self.body {
            RecordBody::Whole(..) => None,
            RecordBody::Absent(absence) => Some(absence),
        }
    }

    /// The same record without its payload, after a retraction.
    #[must_use]
    pub fn erased(self) -> Self {
        Self { body: RecordBody::Absent(Absence::Erased), ..self }
    }

    /// The authority of a tombstone; [`Authority::None`] for other facets.
    pub fn authority(&self) -> Authority {
        match self.payload() {
            Some(Payload::Tombstone(stone)) => stone.authority(self.author(), self.entry()),
            _ => Authority::None,
        }
    }

    /// The order in which nodes keep one of several tombstones of an entry.
    pub fn tombstone_rank(&self) -> TombstoneRank {
        let is_by_grant =
            matches!(self.payload(), Some(Payload::Tombstone(stone)) if stone.is_by_grant());
        TombstoneRank { is_by_grant, digest: self.digest() }
    }
}
