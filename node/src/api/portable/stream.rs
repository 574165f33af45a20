//! Answers that come piece by piece from a thread of their own.
//!
//! A caller that goes away, or takes nothing for a while, ends the work. Only so many run at once.

use super::types::{News, Progress};
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

/// Where the work puts what it has.
pub(super) struct Pieces {
    to: mpsc::Sender<io::Result<Bytes>>,
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
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        self.send(Ok(bytes))
    }

    /// Ends the answer before its end: the caller sees that it is not whole.
    pub(super) fn break_off(&mut self, reason: &str) {
        self.buffer.clear();
        let _ = self.send(Err(io::Error::other(reason.to_owned())));
    }

    fn send(&mut self, piece: io::Result<Bytes>) -> Result<(), Gone> {
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
    work: impl FnOnce(&mut Pieces) + Send + 'static,
) -> Result<Response, ApiError> {
    let place = WORK.try_acquire().map_err(|_| {
        let message = format!("begin: {WORK_MAX} exports, backups or checks are under way");
        ApiError::new(Kind::Busy, message, Some("try again when one is done"))
    })?;
    let (to, from) = mpsc::channel(PIECES_MAX);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let _place = place;
        work(&mut Pieces { to, runtime, buffer: Vec::new() });
    });
    let body = Body::from_stream(stream::unfold(from, async |mut from| {
        let piece = from.recv().await?;
        Some((piece, from))
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
        let _ = tell(pieces, &last);
    })
}

fn tell<T: Serialize>(pieces: &mut Pieces, news: &News<T>) -> Result<(), Gone> {
    let line = serde_json::to_vec(news).map_err(|_| Gone)?;
    pieces.line(&line)?;
    pieces.flush()
}
