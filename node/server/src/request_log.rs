//! Middleware that counts every request and logs it at debug level.
//!
//! The log names the template of the route and never the path, which may contain the caller's
//! search terms, nor any text of a request or a response.

use super::caller::Caller;
use super::metrics::Metrics;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;

/// Counts a request and logs it when its response begins.
pub(super) async fn log_request(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = known(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let caller = request.extensions().get::<Caller>().copied().unwrap_or_default();
    let response = next.run(request).await;
    let (route, took) = (route.as_ref().map_or("other", MatchedPath::as_str), begun.elapsed());
    let status = response.status().as_u16();
    metrics.answered(method, route, status, took);
    let ms = took.as_secs_f64() * 1e3;
    tracing::debug!(
        method,
        route,
        status,
        ms,
        uid = caller.uid,
        pid = caller.pid,
        "A request was answered"
    );
    response
}

/// The name of a known method. Methods that a client invents count as one, "other".
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}
