//! Work that takes long, on a thread beside those that answer.

use super::errors::{ApiError, Kind};
use crate::query::Cancel;

/// Does work apart from the threads that answer requests. If the caller goes away, which drops the
/// future, the work is told by its [`Cancel`]; if it has not begun by then, it never does.
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
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ended()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
