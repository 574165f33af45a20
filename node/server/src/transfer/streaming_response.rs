//! Responses that are streamed from a blocking thread.
//!
//! The work ends if the client disconnects or stalls. The number of concurrent streams is limited.
//! If the work fails, the stream ends with an error, so the client notices that the response is
//! incomplete.

use crate::blocking_pool::internal_error;
use crate::errors::ApiError;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use klnode_api_types::ErrorKind;
use klnode_api_types::transfer::{Progress, ProgressLine};
use klnode_store::ProgressWatch;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

/// Maximum number of concurrent streams. Each holds a snapshot, whose pages the store cannot reuse
/// meanwhile.
const WORK_MAX: usize = 4;
/// Maximum number of chunks queued for the client.
const PIECES_MAX: usize = 8;
/// Size of a chunk, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// A client that reads nothing for this long counts as disconnected.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Interval between two progress lines.
const NEWS_INTERVAL: Duration = Duration::from_millis(200);

static WORK: Semaphore = Semaphore::const_new(WORK_MAX);

/// The client has disconnected.
#[derive(Debug)]
pub(super) struct ClientGone;

/// The work ended early.
#[derive(Debug)]
pub(super) struct StreamAborted;

impl From<ClientGone> for StreamAborted {
    fn from(_: ClientGone) -> Self {
        Self
    }
}

/// The output of the work.
pub(super) struct StreamWriter {
    to: mpsc::Sender<Bytes>,
    runtime: tokio::runtime::Handle,
    buffer: Vec<u8>,
}

impl StreamWriter {
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), ClientGone> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        if self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        self.flush()
    }

    /// Sends the buffered lines.
    pub(super) fn flush(&mut self) -> Result<(), ClientGone> {
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = tokio::time::timeout(STALL_MAX, self.to.send(piece));
        match self.runtime.block_on(sent) {
            Ok(Ok(())) => Ok(()),
            _ => Err(ClientGone),
        }
    }

    fn is_abandoned(&self) -> bool {
        self.to.is_closed()
    }
}

/// Responds with the output of `work`, which runs on a blocking thread.
pub(super) fn pieces(
    media_type: &'static str,
    work: impl FnOnce(&mut StreamWriter) -> Result<(), StreamAborted> + Send + 'static,
) -> Result<Response, ApiError> {
    let place = WORK.try_acquire().map_err(|_| {
        let message = format!("{WORK_MAX} exports, backups or checks are already in progress.");
        ApiError::new(ErrorKind::Busy, message, Some("Retry when one of them is done."))
    })?;
    let (to, from) = mpsc::channel(PIECES_MAX);
    let runtime = tokio::runtime::Handle::current();
    let worked = tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&mut StreamWriter { to, runtime, buffer: Vec::new() })
    });
    let body =
        Body::from_stream(stream::unfold((from, Some(worked)), async |(mut from, worked)| {
            if let Some(piece) = from.recv().await {
                return Some((Ok(piece), (from, worked)));
            }
            let why = match worked?.await {
                Ok(Ok(())) => return None,
                Ok(Err(StreamAborted)) => "The response is incomplete.".to_owned(),
                Err(_) => internal_error().to_string(),
            };
            Some((Err(io::Error::other(why)), (from, None)))
        }));
    Ok(([(CONTENT_TYPE, media_type)], body).into_response())
}

/// Responds with a progress stream of `work`, which runs on a blocking thread.
pub(super) fn news<T: Serialize>(
    work: impl FnOnce(ProgressWatch<'_>) -> Result<T, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    pieces("application/x-ndjson", move |pieces| {
        let mut last = Instant::now();
        let result = work(&mut |done, total| {
            if pieces.is_abandoned() {
                return ControlFlow::Break(());
            }
            if last.elapsed() < NEWS_INTERVAL {
                return ControlFlow::Continue(());
            }
            last = Instant::now();
            let progress = ProgressLine::<()>::Progress(Progress { done, total });
            match write_news(pieces, &progress) {
                Ok(()) => ControlFlow::Continue(()),
                Err(ClientGone) => ControlFlow::Break(()),
            }
        });
        let last = match result {
            Ok(done) => ProgressLine::Done(done),
            Err(error) => ProgressLine::Failed(error.into_detail()),
        };
        // If the client has disconnected, the last line is lost.
        Ok(write_news(pieces, &last)?)
    })
}

fn write_news<T: Serialize>(
    pieces: &mut StreamWriter,
    news: &ProgressLine<T>,
) -> Result<(), ClientGone> {
    let line = serde_json::to_vec(news).map_err(|_| ClientGone)?;
    pieces.line(&line)?;
    pieces.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn collected(
        work: impl FnOnce(&mut StreamWriter) -> Result<(), StreamAborted> + Send + 'static,
    ) -> Result<Bytes, axum::Error> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_time().build().unwrap();
        runtime.block_on(async {
            let answer = pieces("text/plain", work).unwrap();
            answer.into_body().collect().await.map(|body| body.to_bytes())
        })
    }

    fn line(pieces: &mut StreamWriter) -> Result<(), ClientGone> {
        pieces.line(b"a line")?;
        pieces.flush()
    }

    #[test]
    fn an_incomplete_response_ends_with_an_error() {
        assert_eq!(collected(|pieces| Ok(line(pieces)?)).unwrap(), "a line\n");
        let aborted = collected(|pieces| {
            line(pieces)?;
            Err(StreamAborted)
        });
        assert_eq!(aborted.unwrap_err().to_string(), "The response is incomplete.");
        let broken = collected(|pieces| {
            line(pieces)?;
            panic!("deliberate panic of the test")
        });
        let expect = "The request failed because of an internal error.";
        assert_eq!(broken.unwrap_err().to_string(), expect);
    }
}
