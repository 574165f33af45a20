//! Proofs of equivocation: an author signed two different records for the same slot and counter.
//!
//! The proof consists of two validly signed headers with equal slot and counter and different
//! digests. It needs no payload, and every node can verify it. A forged or damaged pair proves
//! nothing.

use crate::header::{Header, SignedHeader};
use crate::ids::{AuthorId, EntryId};
use crate::record_error::RecordError;
use crate::signing_key::Signature;
use serde::{Deserialize, Serialize};

/// Two contradicting headers, the one with the lesser digest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EquivocationProof {
    first: SignedHeader,
    second: SignedHeader,
}

/// A proof on the wire and in the store. Not verified; see [`EquivocationProof::verify`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawProof {
    /// The encoded headers.
    #[serde(rename = "h")]
    pub headers: (serde_bytes::ByteBuf, serde_bytes::ByteBuf),
    /// The signatures of the headers, in the same order.
    #[serde(rename = "s")]
    pub signatures: (Signature, Signature),
}

impl EquivocationProof {
    /// Returns a proof if the two headers contradict each other.
    pub fn find(a: &SignedHeader, b: &SignedHeader) -> Option<Self> {
        let (one, two) = (a.header(), b.header());
        let place = |header: &Header| {
            (header.entry, header.author, header.facet, header.place, header.counter)
        };
        if place(one) != place(two) || a.digest() == b.digest() {
            return None;
        }
        let (first, second) = if a.digest() < b.digest() { (a, b) } else { (b, a) };
        Some(Self { first: first.clone(), second: second.clone() })
    }

    /// Verifies a proof from an untrusted source.
    pub fn verify(raw: &RawProof) -> Result<Self, RecordError> {
        let first = SignedHeader::verify(&raw.headers.0, raw.signatures.0)?;
        let second = SignedHeader::verify(&raw.headers.1, raw.signatures.1)?;
        Self::find(&first, &second).ok_or(RecordError::BadPayload("the headers do not contradict"))
    }

    /// The author who equivocated.
    pub fn author(&self) -> AuthorId {
        self.first.header().author
    }

    /// The entry that both headers are about.
    pub fn entry(&self) -> EntryId {
        self.first.header().entry
    }

    /// The wire and store form.
    pub fn to_raw(&self) -> RawProof {
        let bytes = |header: &SignedHeader| serde_bytes::ByteBuf::from(header.bytes());
        RawProof {
            headers: (bytes(&self.first), bytes(&self.second)),
            signatures: (self.first.signature(), self.second.signature()),
        }
    }
}
