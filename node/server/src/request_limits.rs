//! Middleware that limits every request: it receives the body, waits for a free slot and applies
//! the timeout.
//!
//! The body is received before a slot is taken, so a client that sends only half a body occupies a
//! connection and no slot.

use super::errors::{ApiError, unreadable};
use super::limits::Limits;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use klnode_api_types::ErrorKind;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The semaphores for concurrent requests and for bytes in bodies.
#[derive(Clone)]
pub(super) struct RequestSlots {
    limits: Limits,
    places: Arc<Semaphore>,
    body_bytes: Arc<Semaphore>,
}

/// How much of an oversized body is read and discarded, so that the client reads the error
/// response: many clients that are cut off while writing report that instead of the response.
const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;

impl RequestSlots {
    pub(super) fn new(limits: Limits) -> Self {
        let places = Arc::new(Semaphore::new(limits.requests_max));
        let body_bytes = limits.bodies_bytes_max.min(Semaphore::MAX_PERMITS);
        Self { limits, places, body_bytes: Arc::new(Semaphore::new(body_bytes)) }
    }

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
                true => ("", "Retry the request."),
                false => (" It may still be carried out.", "Check whether it was carried out."),
            };
            let message = format!("The request took longer than {seconds} s.{more}");
            ApiError::new(ErrorKind::Busy, message, Some(hint)).into_response()
        }))
    }

    /// Receives the whole body and the permits for its bytes.
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
                ApiError::new(ErrorKind::Invalid, unreadable(&error.to_string()), None)
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
                let message = "Too many large requests are in progress.";
                ApiError::new(ErrorKind::Busy, message, Some("Retry in a moment."))
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
            "The request body is larger than the {bytes_max} bytes that \
             tuning.api.body_bytes_max allows."
        );
        let hint = "Split the request, or raise tuning.api.body_bytes_max.";
        ApiError::new(ErrorKind::TooLarge, message, Some(hint))
    }

    /// The error for a body that did not arrive in time: too large if its announced size is, else
    /// too slow.
    fn too_slow(&self, announced: Option<usize>) -> ApiError {
        if announced.is_some_and(|bytes| bytes > self.limits.body_bytes_max) {
            return self.too_large();
        }
        let seconds = self.limits.body_time_max.as_secs_f64();
        let message = format!("The request body did not arrive within {seconds} s.");
        ApiError::new(ErrorKind::Busy, message, None)
    }
}
