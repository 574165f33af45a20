//! `klnode stop`: stops the running node in order, even one without a terminal.

use super::wait_progress::waiting;
use super::{ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::StopResponse;
use klnode_client::Client;
use klnode_home::Layout;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest time to wait: pending requests have ten seconds, and then the store is closed.
const STOP_TIME_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

pub(super) async fn stop(
    client: &Client,
    home: &Path,
    progress: &mut dyn ProgressSink,
) -> Result<Reply, VerbError> {
    let stopped = async {
        let stopping: StopResponse = client.send_json(Method::POST, "/v1/stop", &()).await?;
        // If only the socket was named, the node has another home. It reports its path as text,
        // which may differ for a path that is not UTF-8.
        let layout = match home.display().to_string() == stopping.home {
            true => Layout::new(home),
            false => Layout::new(&stopping.home),
        };
        freed(&layout).await?;
        Ok::<StopResponse, VerbError>(stopping)
    };
    let stopping = waiting("waiting until the home is free", progress, stopped).await?;
    Ok(Reply::new(&stopping, "The node has stopped.\n".to_owned()))
}

/// Waits until the node has released the lock of its home.
async fn freed(layout: &Layout) -> Result<(), VerbError> {
    let since = Instant::now();
    while is_claimed(layout)? {
        if since.elapsed() > STOP_TIME_MAX {
            let seconds = STOP_TIME_MAX.as_secs();
            return Err(VerbError::Failed(format!("The node did not stop within {seconds} s.")));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// Whether the node still holds the lock of its home.
fn is_claimed(layout: &Layout) -> Result<bool, VerbError> {
    let path = layout.lock_file();
    let failed =
        |error| VerbError::Failed(format!("Cannot read the lock {}: {error}.", path.display()));
    match File::open(&path).map_err(failed)?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
