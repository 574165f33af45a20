//! The client's side of the socket: what every verb of the running node goes through.

use super::caller::{CLIENT_HEADER, RELAY_HEADER, SESSION_HEADER};
use super::errors::{CANNOT, Kind};
use super::person;
use super::types::{ErrorBody, ErrorDetail};
use crate::store::Label;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use klnode_crdt::key::SecretKey;
use klnode_crdt::time::WallTime;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Why a request has no answer. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing listens.
    #[error("reach the node: none is running on {path}")]
    NoNode {
        /// The socket.
        path: PathBuf,
    },
    /// Not ours to open.
    #[error("reach the node at {path}: {source}")]
    Closed {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something listens, and says nothing.
    #[error(
        "hear the node at {path}: it has said nothing for {seconds} s; what was asked may still be done"
    )]
    Silent {
        /// The socket.
        path: PathBuf,
        /// For how long.
        seconds: u64,
    },
    /// The node said no; the message is here without the "cannot" that it begins with.
    #[error("{}", .0.message)]
    Refused(ErrorDetail),
    /// It was there, and ended what was being followed.
    #[error("follow the node any longer: it has stopped")]
    Ended,
    /// It was there, and ended before it answered.
    #[error("hear the node's answer: it stopped before; what was asked may have been done")]
    Stopped,
    /// What came back makes no sense.
    #[error("understand the node's answer: {0}")]
    Garbled(String),
    /// The answer ended before its end.
    #[error("read the node's answer to its end: the node broke it off")]
    BrokenOff,
}

impl ClientError {
    /// The exit code of a command that met it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoNode { .. } | Self::Ended | Self::Stopped | Self::Silent { .. } => 3,
            Self::Refused(detail) => detail.kind.exit_code(),
            Self::Closed { .. } | Self::Garbled(_) | Self::BrokenOff => 1,
        }
    }

    /// What the node said when it said no.
    pub(super) fn refused(bytes: &[u8]) -> Self {
        let body: ErrorBody = serde_json::from_slice(bytes).unwrap_or_else(|_| ErrorBody {
            error: ErrorDetail {
                kind: Kind::Failed,
                message: format!("carry out the request: {}", String::from_utf8_lossy(bytes)),
                hint: None,
            },
        });
        Self::no(body.error)
    }

    /// That the node said no. Its sentence begins as whoever prints one of these begins theirs, and
    /// that is said once.
    pub(super) fn no(mut detail: ErrorDetail) -> Self {
        if detail.message.starts_with(CANNOT) {
            detail.message.replace_range(..CANNOT.len(), "");
        }
        Self::Refused(detail)
    }
}

/// A client of the node on one socket.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    person: Option<(SecretKey, fn() -> WallTime)>,
    /// Headers that say on whose behalf it asks.
    behalf: Vec<(&'static str, String)>,
    /// It asks for clients elsewhere, not for the one above its own process.
    is_relay: bool,
    patience: Duration,
}

/// How long an answer may take to begin: longer than a node lets a request take, body and all.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// A client of the node behind this socket.
    pub fn new(socket: &Path) -> Self {
        let (socket, behalf) = (socket.into(), Vec::new());
        Self { socket, person: None, behalf, is_relay: false, patience: PATIENCE }
    }

    /// The same, asking for clients that it does not know.
    pub fn relaying(self) -> Self {
        Self { is_relay: true, ..self }
    }

    /// Connects and hangs up, so that the node knows the client process above this one from now on.
    /// Without a node there is none that would have to know.
    pub async fn announce(&self) {
        let _ = UnixStream::connect(&self.socket).await;
    }

    /// The same, which waits so long for an answer to begin.
    pub fn patient_for(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// The same, on behalf of a program, and of one of its sessions: what it is served is noted with
    /// both. What does not fit into a name is left out of it.
    pub fn named(&self, client: &str, session: Option<&str>) -> Self {
        let named = [(CLIENT_HEADER, Some(client)), (SESSION_HEADER, session)];
        let named = named.into_iter().filter_map(|(header, name)| Some((header, label(name?)?)));
        Self { behalf: named.collect(), ..self.clone() }
    }

    /// The same, for the person behind the node: what it sends is signed at the moment it is sent.
    pub fn signing(self, key: SecretKey, now: fn() -> WallTime) -> Self {
        Self { person: Some((key, now)), ..self }
    }

    /// Asks for something.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(Method::GET, path, Vec::new()).await
    }

    /// Sends something.
    pub async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(garbled)?;
        self.send(method, path, body).await
    }

    /// Sends bytes of another kind.
    pub async fn send_bytes<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Vec<u8>,
    ) -> Result<T, ClientError> {
        let (answer, connection) = self.open(method, path, media_type, body).await?;
        let is_good = answer.status().is_success();
        let bytes = answer.into_body().collect().await.map_err(garbled)?.to_bytes();
        drop(connection);
        if is_good {
            return serde_json::from_slice(&bytes).map_err(garbled);
        }
        Err(ClientError::refused(&bytes))
    }

    /// Follows a stream of events.
    pub async fn events(&self, path: &str) -> Result<Following, ClientError> {
        let (answer, connection) =
            self.open(Method::GET, path, "application/json", Vec::new()).await?;
        if !answer.status().is_success() {
            let bytes = answer.into_body().collect().await.map_err(garbled)?.to_bytes();
            return Err(ClientError::refused(&bytes));
        }
        Ok(Following { body: answer.into_body(), unread: Vec::new(), _connection: connection })
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, ClientError> {
        self.send_bytes(method, path, "application/json", body).await
    }

    /// Sends a request and returns the beginning of the answer.
    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Vec<u8>,
    ) -> Result<(Response<Incoming>, Connection), ClientError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|source| {
            let path = self.socket.clone();
            match source.kind() {
                // A path too long for a socket, or through a file, leads to no node either.
                io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::NotADirectory => ClientError::NoNode { path },
                _ => ClientError::Closed { path, source },
            }
        })?;
        if !is_trusted(&stream) {
            let (path, what) = (self.socket.clone(), "another user listens there");
            let source = io::Error::new(io::ErrorKind::PermissionDenied, what);
            return Err(ClientError::Closed { path, source });
        }
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(garbled)?;
        let connection = Connection(tokio::spawn(connection));
        let mut request = Request::builder();
        if let Some((key, now)) = self.person.as_ref().filter(|_| method != Method::GET) {
            request =
                request.header(person::HEADER, person::sign(key, &method, path, &body, now()));
        }
        for (header, name) in &self.behalf {
            request = request.header(*header, name);
        }
        if self.is_relay {
            request = request.header(RELAY_HEADER, "true");
        }
        let request = request
            .method(method)
            .uri(path)
            .header("host", "klnode")
            .header("content-type", media_type)
            .body(Full::new(Bytes::from(body)))
            .map_err(garbled)?;
        let answer = timeout(self.patience, sender.send_request(request)).await;
        let answer = answer.map_err(|_| ClientError::Silent {
            path: self.socket.clone(),
            seconds: self.patience.as_secs(),
        })?;
        let answer = answer.map_err(|error| match error.is_parse() {
            true => garbled(error),
            false => ClientError::Stopped,
        });
        Ok((answer?, connection))
    }
}

/// Whether the one who listens may hear what this user says: the user itself, or who may do anything.
/// In a folder that others write to, anybody could listen.
fn is_trusted(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |uid: u32| uid == own || uid == 0 || own == 0;
    stream.peer_cred().is_ok_and(|listener| is_ours(listener.uid()))
}

/// Whatever was typed, as one part of a path.
pub fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let escaped = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    escaped.collect()
}

/// What somebody calls something, as one part of a path; or what to tell whoever says nothing, which
/// would be another path.
pub fn part(name: &str, of: &str, wanted: &str) -> Result<String, String> {
    match name.trim().is_empty() {
        true => Err(format!("find {of} without a name: {wanted}")),
        false => Ok(escape(name)),
    }
}

/// A name as it fits into a header; nothing if none of it does.
fn label(name: &str) -> Option<String> {
    let words = name.split_whitespace().collect::<Vec<_>>().join("-");
    let fits = |c: &char| c.is_ascii_graphic();
    let label: String = words.chars().filter(fits).take(Label::BYTES_MAX).collect();
    (!label.is_empty()).then_some(label)
}

/// The task that moves the bytes; ends with its owner.
pub(super) struct Connection(JoinHandle<hyper::Result<()>>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A stream of events that is being followed.
pub struct Following {
    body: Incoming,
    unread: Vec<u8>,
    _connection: Connection,
}

/// Bytes that one event may have: an event names an entry and holds no text of it.
const EVENT_BYTES_MAX: usize = 64 * 1024;

impl Following {
    /// The next event: its name and its data. Nothing once the node has ended the stream.
    pub async fn next(&mut self) -> Result<Option<(String, String)>, ClientError> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.unread.drain(..end + 2).collect();
                let event = String::from_utf8(event).map_err(garbled)?;
                let field = |name: &str| {
                    let value = event.lines().find_map(|line| line.strip_prefix(name));
                    value.map(|value| value.trim_start().to_owned())
                };
                // What has no data only says that the stream is still there.
                if let Some(data) = field("data:") {
                    return Ok(Some((field("event:").unwrap_or_default(), data)));
                }
                continue;
            }
            if self.unread.len() > EVENT_BYTES_MAX {
                return Err(garbled(format!("an event has more than {EVENT_BYTES_MAX} bytes")));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Ok(data) = frame.map_err(garbled)?.into_data() {
                self.unread.extend_from_slice(&data);
            }
        }
    }
}

pub(super) fn garbled(error: impl std::fmt::Display) -> ClientError {
    ClientError::Garbled(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_header_is_short_and_visible() {
        assert_eq!(label("claude-code").as_deref(), Some("claude-code"));
        assert_eq!(label(" a\r\nHost: b\u{e9} ").as_deref(), Some("a-Host:-b"));
        assert_eq!(label("\u{1F980}\n"), None);
        assert_eq!(label(&"x".repeat(1_000)).map(|label| label.len()), Some(Label::BYTES_MAX));
    }
}
