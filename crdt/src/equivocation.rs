//! Proof that an author signed two different things in one place.
//!
//! Two valid headers with the same slot and counter and different digests convict their author: no
//! payload is needed, and anyone can check it. A forged or damaged pair convicts nobody.

use crate::header::{Header, SignedHeader};
use crate::ids::{AuthorId, EntryId};
use crate::key::Signature;
use crate::record::Refusal;
use serde::{Deserialize, Serialize};

/// Two headers that contradict each other, the lesser digest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    first: SignedHeader,
    second: SignedHeader,
}

/// A proof as it travels and is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawProof {
    /// The two headers' bytes.
    #[serde(rename = "h")]
    pub headers: (serde_bytes::ByteBuf, serde_bytes::ByteBuf),
    /// Their signatures.
    #[serde(rename = "s")]
    pub signatures: (Signature, Signature),
}

impl Proof {
    /// The proof in two headers, if there is one.
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

    /// Checks a proof from outside.
    pub fn verify(raw: &RawProof) -> Result<Self, Refusal> {
        let first = SignedHeader::verify(&raw.headers.0, raw.signatures.0)?;
        let second = SignedHeader::verify(&raw.headers.1, raw.signatures.1)?;
        Self::find(&first, &second).ok_or(Refusal::BadPayload("the headers do not contradict"))
    }

    /// Whom it convicts.
    pub fn author(&self) -> AuthorId {
        self.first.header().author
    }

    /// The entry on which it contradicted itself.
    pub fn entry(&self) -> EntryId {
        self.first.header().entry
    }

    /// As it travels and is stored.
    pub fn to_raw(&self) -> RawProof {
        let bytes = |header: &SignedHeader| serde_bytes::ByteBuf::from(header.bytes());
        RawProof {
            headers: (bytes(&self.first), bytes(&self.second)),
            signatures: (self.first.signature(), self.second.signature()),
        }
    }
}
