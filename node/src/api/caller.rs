//! The other end of a connection: user, process and client process as the system names them, and the
//! names that the caller gives itself.

use super::errors::{ApiError, Kind};
use crate::store::Label;
use crate::store::client_process::ClientProcess;
use crate::store::rows::CallerRow;
use axum::extract::{FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use std::convert::Infallible;
use std::fmt;
use tokio::net::UnixStream;

/// The header in which a client says what it is called.
pub const CLIENT_HEADER: &str = "klnode-client";
/// The header in which it says in which of its sessions it asks.
pub const SESSION_HEADER: &str = "klnode-session";

/// The header in which a program says that it asks for clients that it does not know.
pub(super) const RELAY_HEADER: &str = "klnode-relay";
/// What the command line is called.
pub const COMMAND_LINE: &str = "cli";

/// Who asks. What it writes is recorded with it, on this node alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user; unknown for one that came over TCP.
    pub uid: Option<u32>,
    /// The process; unknown for one that came over TCP.
    pub pid: Option<u32>,
    /// What the client calls itself.
    pub client: Option<Label>,
    /// In which of its sessions.
    pub session: Option<Label>,
    /// The client process above it.
    pub client_process: ClientProcess,
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
        Self { uid: Some(credentials.uid()), pid, ..Self::default() }
    }
}

impl From<Caller> for CallerRow {
    fn from(Caller { uid, pid, client, session, client_process }: Caller) -> Self {
        Self { uid, pid, client, session, client_process }
    }
}

/// Adds to the caller what a request says of it; refuses what is no name.
pub(super) async fn identify(mut request: Request, next: Next) -> Result<Response, ApiError> {
    let client = label(request.headers(), CLIENT_HEADER)?;
    let session = label(request.headers(), SESSION_HEADER)?;
    let known = request.extensions().get::<Caller>().copied().unwrap_or_default();
    let is_relay = request.headers().contains_key(RELAY_HEADER);
    let client_process = believed(known.client_process, client, is_relay);
    request.extensions_mut().insert(Caller { client, session, client_process, ..known });
    Ok(next.run(request).await)
}

/// The client process of a caller that calls itself so. A relay speaks for clients elsewhere, and only
/// the command line prints answers for a person.
fn believed(process: ClientProcess, client: Option<Label>, is_relay: bool) -> ClientProcess {
    let is_command_line = client.is_some_and(|client| client.as_str() == COMMAND_LINE);
    match process {
        _ if is_relay => ClientProcess::Unknown,
        ClientProcess::Terminal if !is_command_line => ClientProcess::Unknown,
        process => process,
    }
}

fn label(headers: &HeaderMap, name: &'static str) -> Result<Option<Label>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let label = value.to_str().ok().and_then(Label::parse);
    if label.is_none() {
        let message = format!(
            "read the header {name}: it has {} bytes; it must be 1 to {} of visible ASCII",
            value.len(),
            Label::BYTES_MAX
        );
        let hint = "shorten it, or leave it out";
        return Err(ApiError::new(Kind::Invalid, message, Some(hint)));
    }
    Ok(label)
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}
