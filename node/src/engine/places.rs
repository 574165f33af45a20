//! Checkouts that are mapped to workspaces: how many there may be, and how much is kept of each.

use super::command::Rejection;
use super::ingest::Ingest;
use crate::store::Batch;
use crate::store::places::{CHECKOUTS_MAX, CheckoutRow};

/// Bytes of what says which repository a checkout is of, or where it lies.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// One thing to do about a checkout.
#[derive(Clone, Debug)]
pub enum CheckoutAct {
    /// Maps one to a workspace, under the hash of its identity.
    Map([u8; 16], CheckoutRow),
    /// Maps it no longer.
    Unmap([u8; 16]),
}

impl Ingest<'_> {
    pub(super) fn about_checkout(&self, batch: &Batch, act: &CheckoutAct) -> Result<(), Rejection> {
        match act {
            CheckoutAct::Unmap(at) => batch.drop_checkout(*at)?,
            CheckoutAct::Map(at, row) => {
                let longest = row.identity.len().max(row.folder.len());
                if longest > TEXT_BYTES_MAX {
                    let problem = format!("has {longest} bytes; {TEXT_BYTES_MAX} are allowed");
                    return Err(Rejection::Invalid { field: "checkout", problem });
                }
                if !batch.put_checkout(*at, row)? {
                    let problem = format!("is one too many: {CHECKOUTS_MAX} are mapped already");
                    return Err(Rejection::Invalid { field: "checkout", problem });
                }
            }
        }
        Ok(())
    }
}
