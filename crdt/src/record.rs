//! A record: a signed header and, unless it was erased, its payload.
//!
//! A [`Record`] in hand is a verified one: it was sealed here, or passed [`Record::verify`], or was
//! read back from the store that holds only such. What comes from outside is a [`RawRecord`].

use crate::digest::{self, Context};
use crate::entry::Entry;
use crate::header::{Facet, Header, SignedHeader};
use crate::ids::{AuthorId, Digest, EntryId};
use crate::key::{SecretKey, Signature};
use crate::payload::Payload;
use crate::time::Hlc;
use crate::tombstone::Authority;
use crate::version::{Place, Version};
use crate::wire::{self, bounded, bounded::Malformed};
use serde::{Deserialize, Serialize};

/// A record as it travels and is stored: bytes exactly as its author made them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRecord {
    /// The header's bytes.
    #[serde(rename = "h", with = "serde_bytes")]
    pub header: Vec<u8>,
    /// The author's signature over them.
    #[serde(rename = "s")]
    pub signature: Signature,
    /// The payload's bytes; absent when a retraction or tombstone explains why.
    #[serde(rename = "p", with = "serde_bytes", default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Vec<u8>>,
}

/// Why a record is not taken. Each costs the peer that brought it, except what a newer version
/// may bring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The bytes break a bound of decoding.
    #[error("the bytes are malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The bytes are not what their place asks for.
    #[error("the bytes do not decode: {0}")]
    Undecodable(String),
    /// A later version wrote it. It is kept as a refusal and asked for again after an upgrade.
    #[error("format {format}, facet {facet} is newer than this node understands")]
    NewerFormat {
        /// The header's format.
        format: u8,
        /// The header's facet.
        facet: u8,
    },
    /// A limit of the format.
    #[error("{what} has {found} {unit}; {max} are allowed")]
    OverLimit {
        /// What has too much.
        what: &'static str,
        /// Of what it has too much.
        unit: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        max: usize,
    },
    /// The list of absorbed slots is not sorted, or names a slot that is not older.
    #[error("the list of absorbed slots is not in order")]
    BadAbsorbs,
    /// The author did not sign these bytes.
    #[error("the signature is not the author's")]
    BadSignature,
    /// The payload is not the one the header names.
    #[error("the payload is not the one that was signed")]
    WrongPayload,
    /// The payload says something its facet may not say.
    #[error("the payload breaks a rule: {0}")]
    BadPayload(&'static str),
    /// The tombstone's author may not forget this entry.
    #[error("the tombstone's author is not entitled to forget the entry")]
    NotEntitled,
}

impl Refusal {
    /// Whether the sender is to blame. A newer format is nobody's fault.
    pub fn blames_sender(&self) -> bool {
        !matches!(self, Self::NewerFormat { .. })
    }
}

/// Refuses what has more of something than is allowed.
pub(crate) fn at_most(
    what: &'static str,
    unit: &'static str,
    found: usize,
    max: usize,
) -> Result<(), Refusal> {
    if found <= max { Ok(()) } else { Err(Refusal::OverLimit { what, unit, found, max }) }
}

/// Checks that a payload is the one that a header names, or may be absent.
fn check_named(header: &Header, payload: Option<&[u8]>) -> Result<(), Refusal> {
    let is_named = match payload {
        Some(bytes) => {
            bytes.len() == header.payload_bytes as usize
                && digest::of(Context::Payload, bytes) == header.payload_digest
        }
        // Only claims are ever erased under a header that stays.
        None => header.facet == Facet::Claims,
    };
    if is_named { Ok(()) } else { Err(Refusal::WrongPayload) }
}

/// A verified record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    signed: SignedHeader,
    body: Body,
}

/// A record's payload, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Whole(Box<Payload>, Box<[u8]>),
    Absent(Absence),
}

/// Why a record has no payload here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It was seen here, and a retraction took it away.
    Erased,
    /// It came without. Perhaps rightly so; a relay may also have left out what nothing takes
    /// away. So it counts for less: it covers no payload, and the whole record is still wanted.
    Stripped,
}

/// Where and when a record is written: all of a header that the payload does not decide.
#[derive(Clone, Debug)]
pub struct Position {
    /// About which entry.
    pub entry: EntryId,
    /// In which slot.
    pub place: Place,
    /// Its counter there.
    pub counter: u64,
    /// When.
    pub stamp: Hlc,
    /// The older slots it includes.
    pub absorbs: Vec<(Place, u64)>,
}

impl Record {
    /// Signs a payload at a position.
    pub fn seal(at: Position, payload: Payload, key: &SecretKey) -> Result<Self, Refusal> {
        let bytes = payload.encode();
        payload.check(at.entry, key.author(), &bytes)?;
        bounded::check(&bytes, wire::PAYLOAD)?;
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
        Ok(Self { signed, body: Body::Whole(Box::new(payload), bytes.into()) })
    }

    /// Checks everything about a record from outside: limits, signature, author, payload digest,
    /// payload rules, and for a tombstone the entitlement it carries.
    pub fn verify(raw: &RawRecord) -> Result<Self, Refusal> {
        let signed = SignedHeader::verify(&raw.header, raw.signature)?;
        Self::with_payload(signed, raw.payload.as_deref(), Absence::Stripped)
    }

    /// Reads a record that was verified before it was stored: all checks but the signature.
    /// `absence` is why it has no payload, if it has none.
    pub fn read_back(raw: &RawRecord, absence: Absence) -> Result<Self, Refusal> {
        let signed = SignedHeader::read_back(&raw.header, raw.signature)?;
        Self::with_payload(signed, raw.payload.as_deref(), absence)
    }

    /// Reads the header alone of such a record. The payload must be the one that was signed; what it
    /// says is left unread.
    pub fn header_back(raw: &RawRecord) -> Result<SignedHeader, Refusal> {
        let signed = SignedHeader::read_back(&raw.header, raw.signature)?;
        check_named(signed.header(), raw.payload.as_deref())?;
        Ok(signed)
    }

    fn with_payload(
        signed: SignedHeader,
        bytes: Option<&[u8]>,
        absence: Absence,
    ) -> Result<Self, Refusal> {
        let header = signed.header();
        check_named(header, bytes)?;
        let Some(bytes) = bytes else {
            return Ok(Self { signed, body: Body::Absent(absence) });
        };
        let payload = Payload::decode(header.facet, header.entry, header.author, bytes)?;
        payload.check(header.entry, header.author, bytes)?;
        Ok(Self { signed, body: Body::Whole(Box::new(payload), bytes.into()) })
    }

    /// As it travels and is stored.
    pub fn to_raw(&self) -> RawRecord {
        RawRecord {
            header: self.signed.bytes().to_vec(),
            signature: self.signed.signature(),
            payload: match &self.body {
                Body::Whole(_, bytes) => Some(bytes.to_vec()),
                Body::Absent(_) => None,
            },
        }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        self.signed.header()
    }

    /// The header with bytes and signature.
    pub fn signed(&self) -> &SignedHeader {
        &self.signed
    }

    /// The record's name.
    pub fn digest(&self) -> Digest {
        self.signed.digest()
    }

    /// About which entry.
    pub fn entry(&self) -> EntryId {
        self.header().entry
    }

    /// By whom.
    pub fn author(&self) -> AuthorId {
        self.header().author
    }

    /// Where it stands among its author's records.
    pub fn version(&self) -> Version {
        self.signed.version()
    }

    /// The payload, if it is here.
    pub fn payload(&self) -> Option<&Payload> {
        match &self.body {
            Body::Whole(payload, _) => Some(payload),
            Body::Absent(_) => None,
        }
    }

    /// Why the payload is not here, if it is not.
    pub fn absence(&self) -> Option<Absence> {
        match self.body {
            Body::Whole(..) => None,
            Body::Absent(absence) => Some(absence),
        }
    }

    /// The same record after a retraction took its payload away.
    #[must_use]
    pub fn erased(self) -> Self {
        Self { body: Body::Absent(Absence::Erased), ..self }
    }

    /// How far a tombstone's entitlement is proved; nothing for other facets.
    pub fn authority(&self) -> Authority {
        match self.payload() {
            Some(Payload::Tombstone(stone)) => stone.authority(self.author(), self.entry()),
            _ => Authority::None,
        }
    }

    /// What this one record says, as an entry.
    pub fn to_entry(&self) -> Entry {
        let mut entry = Entry::default();
        let author = self.author();
        match self.payload() {
            None => {}
            Some(Payload::Claims { origin, claims }) => {
                entry.origin = origin.clone();
                entry.claims.insert(author, claims.clone());
            }
            Some(Payload::Tally(tally)) => {
                entry.tallies.insert(author, tally.clone());
            }
            Some(Payload::Retraction { origin, mark }) => {
                entry.origin = origin.clone();
                entry.marks.entry(author).or_default().insert(*mark);
            }
            Some(Payload::Tombstone(_)) => entry = Entry::forgotten(self.digest()),
        }
        entry
    }
}
