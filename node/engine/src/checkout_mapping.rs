//! Mappings from checkouts to workspaces, with limits on their number and size.

use super::command::{CheckoutCommand, Rejection};
use super::record_intake::Transaction;
use klnode_store::Batch;
use klnode_store::checkouts::CHECKOUTS_MAX;

/// Most bytes of a checkout's repository identity or of its folder path.
const TEXT_BYTES_MAX: usize = 4 * 1024;

impl Transaction<'_> {
    pub(super) fn about_checkout(
        &self,
        batch: &Batch,
        act: &CheckoutCommand,
    ) -> Result<(), Rejection> {
        match act {
            CheckoutCommand::Unmap(at) => batch.drop_checkout(*at)?,
            CheckoutCommand::Map(at, row) => {
                let longest = row.identity.len().max(row.folder.len());
                if longest > TEXT_BYTES_MAX {
                    let problem = format!("has {longest} bytes; {TEXT_BYTES_MAX} are allowed");
                    return Err(Rejection::Invalid { field: "checkout", problem });
                }
                if !batch.put_checkout(*at, row)? {
                    let problem =
                        format!("is one too many: {CHECKOUTS_MAX} checkouts are mapped already");
                    return Err(Rejection::Invalid { field: "checkout", problem });
                }
            }
        }
        Ok(())
    }
}
