//! Wire format of an entry's origin, created or imported.

use crate::entry_origin::{Memory, Origin};
use crate::ids::{AuthorId, Nonce, WorkspaceId};
use crate::record_error::RecordError;
use crate::time::Hlc;
use serde::{Deserialize, Serialize};

/// A created origin has creator, stamp and nonce; an imported one has format and key. The decoder
/// refuses any other combination.
#[derive(Serialize, Deserialize)]
pub(crate) struct WireOrigin {
    #[serde(rename = "w")]
    workspace: WorkspaceId,
    #[serde(rename = "m")]
    memory: u8,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    creator: Option<AuthorId>,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Hlc>,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    nonce: Option<Nonce>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl From<&Origin> for WireOrigin {
    fn from(origin: &Origin) -> Self {
        let mut wire = Self {
            workspace: origin.workspace(),
            memory: origin.memory().code(),
            creator: None,
            stamp: None,
            nonce: None,
            format: None,
            key: None,
        };
        match origin.clone() {
            Origin::Created { creator, stamp, nonce, .. } => {
                (wire.creator, wire.stamp, wire.nonce) = (Some(creator), Some(stamp), Some(nonce));
            }
            Origin::Imported { format, key, .. } => {
                (wire.format, wire.key) = (Some(format), Some(key));
            }
        }
        wire
    }
}

impl TryFrom<WireOrigin> for Origin {
    type Error = RecordError;

    fn try_from(wire: WireOrigin) -> Result<Self, RecordError> {
        let workspace = wire.workspace;
        let memory =
            Memory::from_code(wire.memory).ok_or(RecordError::BadPayload("an unknown memory"))?;
        match (wire.creator, wire.stamp, wire.nonce, wire.format, wire.key) {
            (Some(creator), Some(stamp), Some(nonce), None, None) => {
                Ok(Self::Created { creator, stamp, nonce, workspace, memory })
            }
            (None, None, None, Some(format), Some(key)) => {
                Ok(Self::Imported { workspace, memory, format, key })
            }
            _ => Err(RecordError::BadPayload("an origin that is neither created nor imported")),
        }
    }
}
