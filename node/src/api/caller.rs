//! Who is on the other end of a connection, as the system says.

use crate::store::rows::CallerRow;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::convert::Infallible;
use std::fmt;
use tokio::net::UnixStream;

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

impl Caller {
    /// Who connected to the socket.
    pub(super) fn of(stream: &UnixStream) -> Self {
        let Ok(credentials) = stream.peer_cred() else { return Self::default() };
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        Self { uid: Some(credentials.uid()), pid }
    }
}

impl From<Caller> for CallerRow {
    fn from(Caller { uid, pid }: Caller) -> Self {
        Self { uid, pid }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}
