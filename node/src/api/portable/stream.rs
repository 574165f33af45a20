//! Answers that come piece by piece from a thread of their own.
//!
//! A caller that goes away, or takes nothing for a while, ends the work. Only so many run at once. Where
//! the work does not come to its end, neither does the answer: the caller sees that it is not whole.

use super::types::{News, Progress};
use crate::api::apart::broken;
use crate::api::errors::{ApiError, Kind};
use crate::store::Watch;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

/// Pieces of work at once. Each holds a snapshot, and pages that it holds cannot be used again.
const WORK_MAX: usize = 4;
/// Pieces that wait for the caller.
const PIECES_MAX: usize = 8;
/// Bytes of a piece.
const PIECE_BYTES: usize = 64 * 1024;
/// A caller that takes nothing for so long is taken to be gone.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Between two words on how far it is.
const NEWS_INTERVAL: Duration = Duration::from_millis(200);

static WORK: Semaphore = Semaphore::const_new(WORK_MAX);

/// The caller is not there any more.
#[derive(Debug)]
pub(super) struct Gone;

/// The work has not come to its end.
#[derive(Debug)]
pub(super) struct CutShort;

impl From<Gone> for CutShort {
    fn from(_: Gone) -> Self {
        Self
    }
}

/// Where the work puts what it has.
pub(super) struct Pieces {
    to: mpsc::Sender<Bytes>,
    runtime: tokio::runtime::Handle,
    buffer: Vec<u8>,
}

impl Pieces {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Gone> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        if self.buffer.len() < PIECE_BYTES {
            return Ok(());
        }
        self.flush()
    }

    /// Sends what has gathered.
    pub(super) fn flush(&mut self) -> Result<(), Gone> {
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = tokio::time::timeout(STALL_MAX, self.to.send(piece));
        match self.runtime.block_on(sent) {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    fn is_abandoned(&self) -> bool {
        self.to.is_closed()
    }
}

/// Answers with what a thread puts out.
pub(super) fn pieces(
    media_type: &'static str,
    work: impl FnOnce(&mut Pieces) -> Result<(), CutShort> + Send + 'static,
) -> Result<Response, ApiError> {
    let place = WORK.try_acquire().map_err(|_| {
        let message = format!("begin: {WORK_MAX} exports, backups or checks are under way");
        ApiError::new(Kind::Busy, message, Some("try again when one is done"))
    })?;
    let (to, from) = mpsc::channel(PIECES_MAX);
    let runtime = tokio::runtime::Handle::current();
    let worked = tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&mut Pieces { to, runtime, buffer: Vec::new() })
    });
    let body =
        Body::from_stream(stream::unfold((from, Some(worked)), async |(mut from, worked)| {
            if let Some(piece) = from.recv().await {
                return Some((Ok(piece), (from, worked)));
            }
            let why = match worked?.await {
                Ok(Ok(())) => return None,
                Ok(Err(CutShort)) => "it was cut short".to_owned(),
                Err(_) => broken().to_string(),
            };
            Some((Err(io::Error::other(why)), (from, None)))
        }));
    Ok(([(CONTENT_TYPE, media_type)], body).into_response())
}

/// Does something that takes its time, and tells how far it is.
pub(super) fn news<T: Serialize>(
    work: impl FnOnce(Watch<'_>) -> Result<T, ApiError> + Send + 'static,
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
            let progress = News::<()>::Progress(Progress { done, total });
            match tell(pieces, &progress) {
                Ok(()) => ControlFlow::Continue(()),
                Err(Gone) => ControlFlow::Break(()),
            }
        });
        let last = match result {
            Ok(done) => News::Done(done),
            Err(error) => News::Failed(error.into_detail()),
        };
        // A caller that has gone does not hear of it.
        Ok(tell(pieces, &last)?)
    })
}

fn tell<T: Serialize>(pieces: &mut Pieces, news: &News<T>) -> Result<(), Gone> {
    let line = serde_json::to_vec(news).map_err(|_| Gone)?;
    pieces.line(&line)?;
    pieces.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn collected(
        work: impl FnOnce(&mut Pieces) -> Result<(), CutShort> + Send + 'static,
    ) -> Result<Bytes, axum::Error> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_time().build().unwrap();
        runtime.block_on(async {
            let answer = pieces("text/plain", work).unwrap();
            answer.into_body().collect().await.map(|body| body.to_bytes())
        })
    }

    fn line(pieces: &mut Pieces) -> Result<(), Gone> {
        pieces.line(b"a line")?;
        pieces.flush()
    }

    #[test]
    fn an_answer_that_is_not_whole_does_not_end_as_one() {
        assert_eq!(collected(|pieces| Ok(line(pieces)?)).unwrap(), "a line\n");
        let given_up = collected(|pieces| {
            line(pieces)?;
            Err(CutShort)
        });
        assert_eq!(given_up.unwrap_err().to_string(), "it was cut short");
        let broken = collected(|pieces| {
            line(pieces)?;
            panic!("the test wants it so")
        });
        assert_eq!(broken.unwrap_err().to_string(), "answer: something broke inside the node");
    }
}
