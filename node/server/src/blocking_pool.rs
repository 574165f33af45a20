//! Runs long work on the blocking thread pool and answers a panic with an error.

use super::errors::ApiError;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use klnode_api_types::ErrorKind;
use klnode_query::Cancel;
use std::panic::AssertUnwindSafe;

/// Runs `work` on the blocking thread pool. If the client disconnects, the dropped future signals
/// the [`Cancel`]; work that has not started by then never starts. A panic, for example over
/// damaged pages of the store, becomes an error response: otherwise the client would believe that
/// the node had stopped.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce(&Cancel) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let cancel = Cancel::default();
    let _told = cancel.on_drop();
    let ended = || ApiError::new(ErrorKind::Busy, "The request was cancelled.", None);
    let worked = tokio::task::spawn_blocking(move || match cancel.is_cancelled() {
        true => Err(ended()),
        false => work(&cancel),
    });
    match worked.await {
        Ok(worked) => worked,
        Err(error) if error.is_panic() => Err(internal_error()),
        Err(_) => Err(ended()),
    }
}

/// Middleware that answers a panic in a handler with an error.
pub(super) async fn catch_panic(request: Request, next: Next) -> Response {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| internal_error().into_response())
}

/// The error after a panic. The panic's own message is not repeated because it may contain stored
/// text.
pub(super) fn internal_error() -> ApiError {
    tracing::error!("A request handler panicked, and the node continues; run `klnode check store`");
    let hint = "Run `klnode check` to look for damage.";
    ApiError::new(ErrorKind::Failed, "The request failed because of an internal error.", Some(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::middleware;
    use axum::routing::get;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn work_is_cancelled_when_the_client_disconnects() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let waiting = runtime.spawn(run_blocking(move |cancel| {
            begun.send(()).unwrap();
            let deadline = Instant::now() + Duration::from_secs(30);
            while !cancel.is_cancelled() && Instant::now() < deadline {
                std::thread::yield_now();
            }
            ended.send(cancel.is_cancelled()).unwrap();
            Ok(())
        }));
        has_begun.recv_timeout(Duration::from_secs(30)).unwrap();
        waiting.abort();
        assert!(has_ended.recv_timeout(Duration::from_secs(60)).unwrap(), "the work was cancelled");
        assert_eq!(runtime.block_on(run_blocking(|_| Ok(7))).unwrap(), 7);
    }

    fn panicking() -> Result<(), ApiError> {
        panic!("deliberate panic of the test")
    }

    #[test]
    fn a_panic_in_blocking_work_becomes_an_error_response() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(run_blocking(|_| panicking())).unwrap_err().into_detail();
        assert_eq!(error.kind, ErrorKind::Failed);
        assert_eq!(error.message, "The request failed because of an internal error.");
        assert!(error.hint.unwrap().contains("klnode check"));
        assert_eq!(runtime.block_on(run_blocking(|_| Ok(7))).unwrap(), 7);
    }

    #[test]
    fn a_panic_in_a_handler_becomes_an_error_response() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let app: Router = Router::new()
            .route("/", get(async || panicking()))
            .layer(middleware::from_fn(catch_panic));
        let request = Request::new(Body::empty());
        let answered = runtime.block_on(TowerToHyperService::new(app).call(request)).unwrap();
        assert_eq!(answered.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
