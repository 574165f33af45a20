//! The client's side of the socket: what every verb but `serve` goes through.

use super::errors::Kind;
use super::types::{ErrorBody, ErrorDetail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

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
    /// The node said no.
    #[error("{}", .0.message)]
    Refused(ErrorDetail),
    /// What came back makes no sense.
    #[error("understand the node's answer: {0}")]
    Garbled(String),
}

impl ClientError {
    /// The exit code of a command that met it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoNode { .. } => 3,
            Self::Refused(detail) => detail.kind.exit_code(),
            Self::Closed { .. } | Self::Garbled(_) => 1,
        }
    }
}

/// A client of the node on one socket.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// A client of the node behind this socket.
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.into() }
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

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, ClientError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|source| {
            let path = self.socket.clone();
            match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ClientError::NoNode { path }
                }
                _ => ClientError::Closed { path, source },
            }
        })?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(garbled)?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "klnode")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(garbled)?;
        let answer = sender.send_request(request).await.map_err(garbled)?;
        let is_good = answer.status().is_success();
        let bytes = answer.into_body().collect().await.map_err(garbled)?.to_bytes();
        connection.abort();
        if is_good {
            return serde_json::from_slice(&bytes).map_err(garbled);
        }
        let body: ErrorBody = serde_json::from_slice(&bytes).unwrap_or_else(|_| ErrorBody {
            error: ErrorDetail {
                kind: Kind::Failed,
                message: format!("carry out the request: {}", String::from_utf8_lossy(&bytes)),
                hint: None,
            },
        });
        Err(ClientError::Refused(body.error))
    }
}

fn garbled(error: impl std::fmt::Display) -> ClientError {
    ClientError::Garbled(error.to_string())
}
