//! The transport of a request: the Unix socket, or TCP, where the request must carry the token.

use super::errors::ApiError;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use klnode_http::{BearerToken, authenticate};

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// The Unix socket; access is controlled by the file system.
    Socket,
    /// The loopback TCP port; the token is required.
    Tcp,
    /// The port of the browser page; the page listener has checked the secret.
    Page,
}

/// Middleware that accepts requests over the socket and of the page, and over TCP those with the
/// token.
pub(super) async fn guard(
    State(token): State<Option<BearerToken>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let way = request.extensions().get::<Transport>();
    if !matches!(way, Some(Transport::Socket | Transport::Page)) {
        authenticate(request.headers(), token.as_ref())?;
    }
    Ok(next.run(request).await)
}
