//! Wire format of a retraction: its payload, and the origin if its author carries it.

use super::origin::WireOrigin;
use crate::entry_origin::Origin;
use crate::ids::RetractionId;
use crate::record_error::RecordError;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct WireMark {
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    origin: Option<WireOrigin>,
    #[serde(rename = "m")]
    mark: RetractionId,
}

pub(crate) fn encode(origin: Option<&Origin>, mark: RetractionId) -> Vec<u8> {
    super::encode(&WireMark { origin: origin.map(WireOrigin::from), mark })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<(Option<Origin>, RetractionId), RecordError> {
    let wire: WireMark = super::decode(bytes, super::PAYLOAD)?;
    Ok((wire.origin.map(Origin::try_from).transpose()?, wire.mark))
}
