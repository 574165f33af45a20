//! `klnode stop`: the running node ends in good order, also one that nobody can press Ctrl-C at.

use super::waiting::waiting;
use super::{Progress, Reply, VerbError};
use crate::api::Client;
use crate::api::types::Stopping;
use crate::store::Layout;
use hyper::Method;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a node may take: requests under way have ten seconds, and the store is closed then.
const STOP_TIME_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

pub(super) async fn stop(
    client: &Client,
    home: &Path,
    progress: &mut dyn Progress,
) -> Result<Reply, VerbError> {
    let stopped = async {
        let stopping: Stopping = client.send_json(Method::POST, "/v1/stop", &()).await?;
        // The node has another home where only its socket was named. It tells its own as text, which a
        // folder's name need not be.
        let layout = match home.display().to_string() == stopping.home {
            true => Layout::new(home),
            false => Layout::new(&stopping.home),
        };
        freed(&layout).await?;
        Ok::<Stopping, VerbError>(stopping)
    };
    let stopping = waiting("waiting until the home is free", progress, stopped).await?;
    Ok(Reply::new(&stopping, "The node has stopped.\n".to_owned()))
}

/// Waits until the node no longer works on its home.
async fn freed(layout: &Layout) -> Result<(), VerbError> {
    let since = Instant::now();
    while is_claimed(layout)? {
        if since.elapsed() > STOP_TIME_MAX {
            let seconds = STOP_TIME_MAX.as_secs();
            return Err(VerbError::Failed(format!("see the node end within {seconds} s")));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// Whether the node still works on its home.
fn is_claimed(layout: &Layout) -> Result<bool, VerbError> {
    let path = layout.lock_file();
    let failed =
        |error| VerbError::Failed(format!("see the node end: {}: {error}", path.display()));
    match File::open(&path).map_err(failed)?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
