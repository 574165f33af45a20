//! The caller of a request: user, process and client process as the operating system reports them,
//! and the names that the caller gives itself.

use super::errors::ApiError;
use axum::extract::{FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use klnode_api_types::ErrorKind;
use klnode_api_types::headers::{CLIENT_HEADER, COMMAND_LINE, RELAY_HEADER, SESSION_HEADER};
use klnode_home::CallerLabel;
use klnode_store::client_process::ClientProcess;
use klnode_store::row_types::CallerRow;
use std::convert::Infallible;
use std::fmt;
use tokio::net::UnixStream;

/// The caller of a request. Records that it writes store it, on this node only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user id; `None` for a caller over TCP.
    pub uid: Option<u32>,
    /// The process id; `None` for a caller over TCP.
    pub pid: Option<u32>,
    /// The name that the client gave itself.
    pub client: Option<CallerLabel>,
    /// The session name that the client gave.
    pub session: Option<CallerLabel>,
    /// The client process among the caller's ancestors.
    pub client_process: ClientProcess,
    /// True for the browser page. Its reads are not recorded, so it primes no agent, and its own
    /// confirmations count as primed.
    pub is_page: bool,
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
    /// The caller at the other end of a socket connection.
    pub(super) fn of(stream: &UnixStream) -> Self {
        let Ok(credentials) = stream.peer_cred() else { return Self::default() };
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        Self { uid: Some(credentials.uid()), pid, ..Self::default() }
    }
}

impl From<Caller> for CallerRow {
    fn from(Caller { uid, pid, client, session, client_process, .. }: Caller) -> Self {
        Self { uid, pid, client, session, client_process }
    }
}

/// Middleware that adds the names in the headers to the caller and rejects invalid names.
pub(super) async fn identify(mut request: Request, next: Next) -> Result<Response, ApiError> {
    let client = label(request.headers(), CLIENT_HEADER)?;
    let session = label(request.headers(), SESSION_HEADER)?;
    let known = request.extensions().get::<Caller>().copied().unwrap_or_default();
    let is_relay = request.headers().contains_key(RELAY_HEADER);
    let client_process = effective_process(known.client_process, client, is_relay);
    request.extensions_mut().insert(Caller { client, session, client_process, ..known });
    Ok(next.run(request).await)
}

/// The client process of a caller with this name. `Unknown` for a relay, which serves clients
/// elsewhere. `Terminal` is kept only for the command line, because only it prints answers for a
/// person.
fn effective_process(
    process: ClientProcess,
    client: Option<CallerLabel>,
    is_relay: bool,
) -> ClientProcess {
    let is_command_line = client.is_some_and(|client| client.as_str() == COMMAND_LINE);
    match process {
        _ if is_relay => ClientProcess::Unknown,
        ClientProcess::Terminal if !is_command_line => ClientProcess::Unknown,
        process => process,
    }
}

fn label(headers: &HeaderMap, name: &'static str) -> Result<Option<CallerLabel>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let label = value.to_str().ok().and_then(CallerLabel::parse);
    if label.is_none() {
        let message = format!(
            "The header {name} has {} bytes; it must have 1 to {} bytes of visible ASCII.",
            value.len(),
            CallerLabel::BYTES_MAX
        );
        let hint = "Shorten the header or omit it.";
        return Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)));
    }
    Ok(label)
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or_default())
    }
}
