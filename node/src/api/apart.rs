//! Work that takes long, on a thread beside those that answer; and what is said where it breaks.

use super::errors::{ApiError, Kind};
use crate::query::Cancel;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Does work apart from the threads that answer requests. If the caller goes away, which drops the
/// future, the work is told by its [`Cancel`]; if it has not begun by then, it never does. A panic, as
/// of a store whose pages are damaged, is answered: whoever asks would else take the node for stopped.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce(&Cancel) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let cancel = Cancel::default();
    let _told = cancel.on_drop();
    let ended = || ApiError::new(Kind::Busy, "finish the work: nobody waits for it", None);
    let worked = tokio::task::spawn_blocking(move || match cancel.is_cancelled() {
        true => Err(ended()),
        false => work(&cancel),
    });
    match worked.await {
        Ok(worked) => worked,
        Err(error) if error.is_panic() => Err(broken()),
        Err(_) => Err(ended()),
    }
}

/// Answers a request also where a panic meets it that is not of work done apart.
pub(super) async fn caught(request: Request, next: Next) -> Response {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| broken().into_response())
}

/// What is answered after a panic. What it says of itself may hold what was read: it is not repeated.
pub(super) fn broken() -> ApiError {
    tracing::error!("a request met something that broke inside the node, and the node goes on");
    let hint = "`klnode doctor` says whether something is damaged";
    ApiError::new(Kind::Failed, "answer: something broke inside the node", Some(hint))
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
    fn work_is_told_when_nobody_waits_for_it_any_more() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (ended, has_ended) = mpsc::channel();
        let waiting = runtime.spawn(apart(move |cancel| {
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
        assert!(has_ended.recv_timeout(Duration::from_secs(60)).unwrap(), "it was told");
        assert_eq!(runtime.block_on(apart(|_| Ok(7))).unwrap(), 7);
    }

    fn broken_by_the_test() -> Result<(), ApiError> {
        panic!("the test wants it so")
    }

    #[test]
    fn work_that_panics_is_answered_with_an_error_and_no_panic() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let told = runtime.block_on(apart(|_| broken_by_the_test())).unwrap_err().into_detail();
        assert_eq!(told.kind, Kind::Failed);
        assert_eq!(told.message, "cannot answer: something broke inside the node");
        assert!(told.hint.unwrap().contains("klnode doctor"));
        assert_eq!(runtime.block_on(apart(|_| Ok(7))).unwrap(), 7);
    }

    #[test]
    fn a_handler_that_panics_is_answered_with_an_error_and_no_panic() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let app: Router = Router::new()
            .route("/", get(async || broken_by_the_test()))
            .layer(middleware::from_fn(caught));
        let request = Request::new(Body::empty());
        let answered = runtime.block_on(TowerToHyperService::new(app).call(request)).unwrap();
        assert_eq!(answered.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
