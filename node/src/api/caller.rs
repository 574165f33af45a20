//! Who is on the other end of a connection, as the system says.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;

/// Who asks. What it writes is recorded with it, on this node alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user; unknown for one that came over TCP.
    pub uid: Option<u32>,
    /// The process; unknown for one that came over TCP.
    pub pid: Option<u32>,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}
