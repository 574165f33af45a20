//! Receives the lines of an export from the node.

use super::VerbError;
use hyper::Method;
use klnode_client::Client;

/// Receives the export in chunks. `left` is the sentence for an interrupt.
pub(super) async fn receive(
    client: &Client,
    path: &str,
    left: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), VerbError>,
) -> Result<(), VerbError> {
    let received = client.receive(Method::GET, path, &(), |bytes| take(&bytes));
    tokio::select! {
        received = received => received,
        _ = tokio::signal::ctrl_c() => Err(VerbError::Interrupted(left.into())),
    }
}
