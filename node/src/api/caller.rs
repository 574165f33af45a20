//! Who is on the other end of a connection, as the system says.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;
use std::fmt;

/// Who asks. What it writes is recorded with it, on this node alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user; unknown for one that came over TCP.
    pub uid: Option<u32>,
    /// The process; unknown for one that came over TCP.
    pub pid: Option<u32>,
}

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.uid, self.pid) {
            (Some(uid), Some(pid)) => write!(out, "uid {uid}, pid {pid}"),
            (Some(uid), None) => write!(out, "uid {uid}"),
            _ => out.write_str("unknown"),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}
