//! Wire format of an edit: the branch of its actor, and the bytes of the change.

use crate::document_edit::DocumentEdit;
use crate::record_error::RecordError;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct WireEdit {
    #[serde(rename = "b", default, skip_serializing_if = "is_zero")]
    branch: u32,
    #[serde(rename = "c", with = "serde_bytes")]
    change: Vec<u8>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(branch: &u32) -> bool {
    *branch == 0
}

pub(crate) fn encode(edit: &DocumentEdit) -> Vec<u8> {
    super::encode(&WireEdit { branch: edit.branch, change: edit.change.clone() })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<DocumentEdit, RecordError> {
    let WireEdit { branch, change } = super::decode(bytes, super::PAYLOAD)?;
    Ok(DocumentEdit { branch, change })
}
