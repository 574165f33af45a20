//! What every request passes before it is worked on: its body arrives, a place is free, and it does
//! not take for ever.
//!
//! The body comes first: a client that sends half of one holds a connection, never a place.

use super::errors::{ApiError, Kind};
use super::limits::Limits;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Places and room for bodies.
#[derive(Clone)]
pub(super) struct Gate {
    limits: Limits,
    places: Arc<Semaphore>,
    body_bytes: Arc<Semaphore>,
}

/// How much of a body that is too large is read and thrown away, so that its sender comes to read
/// why: one that is cut off while it writes often reports that and not the answer.
const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Gate {
    pub(super) fn new(limits: Limits) -> Self {
        let places = Arc::new(Semaphore::new(limits.requests_max));
        let body_bytes = limits.bodies_bytes_max.min(Semaphore::MAX_PERMITS);
        Self { limits, places, body_bytes: Arc::new(Semaphore::new(body_bytes)) }
    }

    /// Lets a request in.
    pub(super) async fn pass(
        State(gate): State<Self>,
        request: Request,
        next: Next,
    ) -> Result<Response, ApiError> {
        let (parts, body) = request.into_parts();
        let announced = parts.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
        let received = timeout(gate.limits.body_time_max, gate.receive(body, announced));
        let (bytes, _room) = received.await.map_err(|_| gate.too_slow(announced))??;
        let is_reading = parts.method == Method::GET;
        let request = Request::from_parts(parts, Body::from(bytes));
        let answered = timeout(gate.limits.request_time_max, async {
            let _place = gate.places.acquire().await;
            next.run(request).await
        });
        Ok(answered.await.unwrap_or_else(|_| {
            let seconds = gate.limits.request_time_max.as_secs_f64();
            let (more, hint) = match is_reading {
                true => ("", "try again"),
                false => ("; what was asked may still be done", "look whether it was done"),
            };
            let message = format!("answer within {seconds} s{more}");
            ApiError::new(Kind::Busy, message, Some(hint)).into_response()
        }))
    }

    /// The whole body, and the room it takes among the others.
    async fn receive(
        &self,
        mut body: Body,
        announced: Option<usize>,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), ApiError> {
        let bytes_max = self.limits.body_bytes_max;
        let mut received = Vec::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        let mut total = announced.unwrap_or(0);
        let mut seen = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                ApiError::new(Kind::Invalid, format!("read the request: {error}"), None)
            })?;
            let Ok(data) = frame.into_data() else { continue };
            seen += data.len();
            total = total.max(seen);
            if total > bytes_max {
                received = Vec::new();
                if seen > DISCARDED_BYTES_MAX {
                    break;
                }
                continue;
            }
            let more = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let more = self.body_bytes.clone().try_acquire_many_owned(more).map_err(|_| {
                let message = "read the request: too many large ones are under way";
                ApiError::new(Kind::Busy, message, Some("try again"))
            })?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            received.extend_from_slice(&data);
        }
        if total > bytes_max {
            return Err(self.too_large());
        }
        Ok((received.into(), room))
    }

    fn too_large(&self) -> ApiError {
        let bytes_max = self.limits.body_bytes_max;
        let message = format!(
            "read the request: its body has more than the {bytes_max} bytes that \
             api.body_bytes_max allows"
        );
        let hint = "send it in pieces, or raise api.body_bytes_max";
        ApiError::new(Kind::TooLarge, message, Some(hint))
    }

    /// A body that does not come is too slow, unless it is known that it would be too large.
    fn too_slow(&self, announced: Option<usize>) -> ApiError {
        if announced.is_some_and(|bytes| bytes > self.limits.body_bytes_max) {
            return self.too_large();
        }
        let seconds = self.limits.body_time_max.as_secs_f64();
        let message = format!("read the request: its body did not arrive within {seconds} s");
        ApiError::new(Kind::Busy, message, None)
    }
}
