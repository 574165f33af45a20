//! The HTTP client for the node's Unix socket. Every CLI verb that needs a running node uses it.

mod streamed_response;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use klnode_api_types::ErrorKind;
use klnode_api_types::headers::{CLIENT_HEADER, RELAY_HEADER, SESSION_HEADER};
use klnode_api_types::person_signature;
use klnode_api_types::{ErrorBody, ErrorDetail};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_home::CallerLabel;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Why a request failed. Each message is a whole sentence.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process listens on the socket.
    #[error("The node is not reachable: no node is running on {path}.")]
    NoNode {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The socket could not be opened, or a process of another user listens on it.
    #[error("The node at {path} is not reachable: {source}.")]
    Closed {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A process listens on the socket and sent no response within the timeout.
    #[error("The node at {path} sent no response within {seconds} s. It may still carry it out.")]
    Silent {
        /// The path of the socket.
        path: PathBuf,
        /// The timeout in seconds.
        seconds: u64,
    },
    /// The node answered with an error.
    #[error("{}", .0.message)]
    Refused(ErrorDetail),
    /// The node stopped and ended the event stream.
    #[error("The event stream ended because the node stopped.")]
    Ended,
    /// The node closed the connection before it sent a response.
    #[error("The node stopped before it responded. It may have carried out the request.")]
    Stopped,
    /// The response could not be parsed.
    #[error("The response of the node could not be parsed: {0}.")]
    Garbled(String),
    /// The response ended before its final line or byte.
    #[error("The node ended its response early.")]
    BrokenOff,
}

impl ClientError {
    /// The exit code of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoNode { .. } | Self::Ended | Self::Stopped | Self::Silent { .. } => 3,
            Self::Refused(detail) => detail.kind.exit_code(),
            Self::Closed { .. } | Self::Garbled(_) | Self::BrokenOff => 1,
        }
    }

    /// Parses an error response.
    pub(crate) fn refused(bytes: &[u8]) -> Self {
        let body: ErrorBody = serde_json::from_slice(bytes).unwrap_or_else(|_| ErrorBody {
            error: ErrorDetail {
                kind: ErrorKind::Failed,
                message: format!("The request failed: {}", String::from_utf8_lossy(bytes)),
                hint: None,
            },
        });
        Self::Refused(body.error)
    }
}

/// A client for the node behind one socket.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    person: Option<(SecretKey, fn() -> WallTime)>,
    /// Headers that name the client program and its session.
    behalf: Vec<(&'static str, String)>,
    /// The client sends requests for other programs, not for the process that started it.
    is_relay: bool,
    patience: Duration,
}

/// Default timeout for the start of a response. It is longer than the node's own request timeout,
/// body included.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// A client for the node behind this socket.
    pub fn new(socket: &Path) -> Self {
        let (socket, behalf) = (socket.into(), Vec::new());
        Self { socket, person: None, behalf, is_relay: false, patience: PATIENCE }
    }

    /// Sets the relay header: the requests come from client programs that this process does not
    /// know.
    pub fn relaying(self) -> Self {
        Self { is_relay: true, ..self }
    }

    /// Connects and disconnects, so that the node registers the client process above this one. Does
    /// nothing if no node is running.
    pub async fn announce(&self) {
        let _ = UnixStream::connect(&self.socket).await;
    }

    /// Sets the timeout for the start of a response.
    pub fn patient_for(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Names the client program and one of its sessions; the node records both in the serving log.
    /// Characters that do not fit into a header are dropped.
    pub fn named(&self, client: &str, session: Option<&str>) -> Self {
        let named = [(CLIENT_HEADER, Some(client)), (SESSION_HEADER, session)];
        let named = named.into_iter().filter_map(|(header, name)| Some((header, label(name?)?)));
        Self { behalf: named.collect(), ..self.clone() }
    }

    /// Signs each request with the person's key at the moment it is sent.
    pub fn signing(self, key: SecretKey, now: fn() -> WallTime) -> Self {
        Self { person: Some((key, now)), ..self }
    }

    /// Sends a GET request.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(Method::GET, path, Vec::new()).await
    }

    /// Sends a request with a JSON body.
    pub async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(garbled)?;
        self.send(method, path, body).await
    }

    /// Sends a request with a body of another media type.
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

    /// Opens an event stream.
    pub async fn events(&self, path: &str) -> Result<EventStreamReader, ClientError> {
        let (answer, connection) =
            self.open(Method::GET, path, "application/json", Vec::new()).await?;
        if !answer.status().is_success() {
            let bytes = answer.into_body().collect().await.map_err(garbled)?.to_bytes();
            return Err(ClientError::refused(&bytes));
        }
        Ok(EventStreamReader {
            body: answer.into_body(),
            unread: Vec::new(),
            _connection: connection,
        })
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, ClientError> {
        self.send_bytes(method, path, "application/json", body).await
    }

    /// Sends a request and returns the head of the response.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Vec<u8>,
    ) -> Result<(Response<Incoming>, ConnectionTask), ClientError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|source| {
            let path = self.socket.clone();
            match source.kind() {
                // No node can listen on a path that is too long for a socket or leads through a
                // file.
                io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::NotADirectory => ClientError::NoNode { path },
                _ => ClientError::Closed { path, source },
            }
        })?;
        if !is_trusted(&stream) {
            let (path, what) = (self.socket.clone(), "a process of another user listens there");
            let source = io::Error::new(io::ErrorKind::PermissionDenied, what);
            return Err(ClientError::Closed { path, source });
        }
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(garbled)?;
        let connection = ConnectionTask(tokio::spawn(connection));
        let mut request = Request::builder();
        if let Some((key, now)) = self.person.as_ref().filter(|_| method != Method::GET) {
            request = request.header(
                person_signature::HEADER,
                person_signature::sign(key, method.as_str(), path, &body, now()),
            );
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

/// True if the listening process runs as this user or as root, or if this process runs as root. In
/// a folder that others can write to, any user could listen on the socket.
fn is_trusted(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |uid: u32| uid == own || uid == 0 || own == 0;
    stream.peer_cred().is_ok_and(|listener| is_ours(listener.uid()))
}

/// Percent-encodes text for one segment of a path.
pub fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let escaped = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    escaped.collect()
}

/// Percent-encodes a name for one segment of a path. An empty name is an error, because it would
/// lead to another path.
pub fn part(name: &str, of: &str, wanted: &str) -> Result<String, String> {
    match name.trim().is_empty() {
        true => Err(format!("The name of {of} is empty: {wanted}.")),
        false => Ok(escape(name)),
    }
}

/// The name reduced to characters that fit into a header; `None` if none is left.
fn label(name: &str) -> Option<String> {
    let words = name.split_whitespace().collect::<Vec<_>>().join("-");
    let fits = |c: &char| c.is_ascii_graphic();
    let label: String = words.chars().filter(fits).take(CallerLabel::BYTES_MAX).collect();
    (!label.is_empty()).then_some(label)
}

/// The task that drives the connection; aborted on drop.
pub(crate) struct ConnectionTask(JoinHandle<hyper::Result<()>>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An open event stream.
pub struct EventStreamReader {
    body: Incoming,
    unread: Vec<u8>,
    _connection: ConnectionTask,
}

/// Largest event in bytes. An event names an entry and contains no text of it.
const EVENT_BYTES_MAX: usize = 64 * 1024;

impl EventStreamReader {
    /// The next event as its name and its data; `None` once the node has ended the stream.
    pub async fn next(&mut self) -> Result<Option<(String, String)>, ClientError> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.unread.drain(..end + 2).collect();
                let event = String::from_utf8(event).map_err(garbled)?;
                let field = |name: &str| {
                    let value = event.lines().find_map(|line| line.strip_prefix(name));
                    value.map(|value| value.trim_start().to_owned())
                };
                // An event without data is a keep-alive.
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

pub(crate) fn garbled(error: impl std::fmt::Display) -> ClientError {
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
        assert_eq!(
            label(&"x".repeat(1_000)).map(|label| label.len()),
            Some(CallerLabel::BYTES_MAX)
        );
    }
}
