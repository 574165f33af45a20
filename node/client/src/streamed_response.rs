//! The client side of streamed responses.

use crate::{Client, ClientError, garbled};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use klnode_api_types::transfer::{Progress, ProgressLine};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest line of a progress stream.
const NEWS_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Client {
    /// Sends a request and passes on each chunk of the response. An incomplete response is an
    /// error.
    pub async fn receive<E: From<ClientError>>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        mut take: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let body = serde_json::to_vec(body).map_err(garbled)?;
        let (answer, _connection) = self.open(method, path, "application/json", body).await?;
        let status: StatusCode = answer.status();
        let mut body = answer.into_body();
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ClientError::BrokenOff)?;
            let Ok(bytes) = frame.into_data() else { continue };
            if status.is_success() {
                take(bytes)?;
            } else if whole.len() < NEWS_BYTES_MAX {
                whole.extend_from_slice(&bytes);
            }
        }
        if status.is_success() { Ok(()) } else { Err(ClientError::refused(&whole).into()) }
    }

    /// Sends a request with a progress stream as its response; returns the final result.
    pub async fn follow<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        mut tell: impl FnMut(Progress),
    ) -> Result<T, ClientError> {
        let (mut waiting, mut result) = (Vec::new(), None);
        self.receive(method, path, body, |bytes| {
            waiting.extend_from_slice(&bytes);
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                match serde_json::from_slice(&line).map_err(garbled)? {
                    ProgressLine::Progress(progress) => tell(progress),
                    ProgressLine::Done(done) => result = Some(done),
                    ProgressLine::Failed(detail) => return Err(ClientError::Refused(detail)),
                }
            }
            match waiting.len() > NEWS_BYTES_MAX {
                true => Err(garbled("a line is too long")),
                false => Ok(()),
            }
        })
        .await?;
        result.ok_or(ClientError::BrokenOff)
    }
}
