//! Wire format of a tombstone: the origin of the entry, and the proof of the author's authority.

use super::origin::WireOrigin;
use crate::ids::{AuthorId, Nonce};
use crate::record_error::RecordError;
use crate::signing_key::Signature;
use crate::tombstone::{AdminGrant, Grounds, Tombstone};
use serde::{Deserialize, Serialize};

/// No optional field means [`Grounds::Origin`], a nonce alone [`Grounds::Owner`], and all three
/// [`Grounds::Admin`].
#[derive(Serialize, Deserialize)]
struct WireTombstone {
    #[serde(rename = "o")]
    origin: WireOrigin,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    nonce: Option<Nonce>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    owner: Option<AuthorId>,
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    grant: Option<Signature>,
}

pub(crate) fn encode(tombstone: &Tombstone) -> Vec<u8> {
    let (nonce, owner, grant) = match &tombstone.grounds {
        Grounds::Origin => (None, None, None),
        Grounds::Owner(nonce) => (Some(*nonce), None, None),
        Grounds::Admin(grant) => (Some(grant.nonce), Some(grant.owner), Some(grant.signature)),
    };
    super::encode(&WireTombstone { origin: (&tombstone.origin).into(), nonce, owner, grant })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Tombstone, RecordError> {
    let wire: WireTombstone = super::decode(bytes, super::PAYLOAD)?;
    let grounds = match (wire.nonce, wire.owner, wire.grant) {
        (None, None, None) => Grounds::Origin,
        (Some(nonce), None, None) => Grounds::Owner(nonce),
        (Some(nonce), Some(owner), Some(signature)) => {
            Grounds::Admin(AdminGrant { owner, nonce, signature })
        }
        _ => return Err(RecordError::BadPayload("a tombstone with half a grant")),
    };
    Ok(Tombstone { origin: wire.origin.try_into()?, grounds })
}
