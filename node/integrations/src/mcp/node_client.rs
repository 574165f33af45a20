//! Reaches the node through its API, on behalf of a session and with time limits.

use super::tool_error::{ToolError, ToolErrorKind};
use hyper::Method;
use klnode_client::{Client, ClientError};
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::future::Future;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Time limit for one answer. The node's own limit is shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(45);
/// Time limit for starting a node.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// Interval between checks whether a started node answers.
const START_CHECK_INTERVAL: Duration = Duration::from_millis(30);

/// Starts a node as a separate process. Returns `None` if another process is already starting one.
pub type Starter = Arc<dyn Fn() -> io::Result<Option<StartedNode>> + Send + Sync>;

/// A node process that this server started.
pub struct StartedNode {
    /// The child process.
    pub process: Child,
    /// Start lock, held until the node answers. Without it, two nodes could start at once, and one
    /// would fail.
    pub lock: File,
}

/// Connection to the node, which can start the node if it is not running.
pub struct NodeClient {
    client: Client,
    starter: Option<Starter>,
    start_command: String,
    start_time_max: Duration,
    /// Exit status of the process started last. Callers hold this lock while they wait for the
    /// start.
    started: Mutex<Option<ExitReceiver>>,
}

/// Receives the exit status once the process has ended.
type ExitReceiver = oneshot::Receiver<io::Result<ExitStatus>>;

impl NodeClient {
    /// Uses `client` to reach the node. If the node is not running, `starter` starts it; without a
    /// starter, errors name `start_command`.
    pub fn new(client: Client, starter: Option<Starter>, start_command: String) -> Self {
        let (start_time_max, started) = (START_TIME_MAX, Mutex::new(None));
        Self { client, starter, start_command, start_time_max, started }
    }

    /// Sends a GET request on behalf of a client's session.
    pub async fn get(&self, behalf: &RequestIdentity<'_>, path: &str) -> Result<Value, ToolError> {
        let client = self.client.named(behalf.client, Some(behalf.session));
        self.send_or_start(|| client.get(path)).await
    }

    /// Sends a request with a JSON body on behalf of a client's session.
    pub async fn send(
        &self,
        behalf: &RequestIdentity<'_>,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, ToolError> {
        let client = self.client.named(behalf.client, Some(behalf.session));
        self.send_or_start(|| client.send_json(method.clone(), path, body)).await
    }

    /// Sends a request. If no node is running, starts one and sends the request again.
    async fn send_or_start<F>(&self, ask: impl Fn() -> F) -> Result<Value, ToolError>
    where
        F: Future<Output = Result<Value, ClientError>>,
    {
        match with_timeout(ask()).await {
            Err(trouble) if trouble.reason() == ToolErrorKind::NoNode => {
                self.start().await?;
                with_timeout(ask()).await
            }
            answered => answered,
        }
    }

    /// Starts a node or waits for one that is being started, within the time limit. If the call is
    /// cancelled, the lock is released and the node continues to start; the next call waits for it
    /// and does not start a second one.
    async fn start(&self) -> Result<(), ToolError> {
        let start_command = &self.start_command;
        let Some(starter) = &self.starter else { return Err(ToolError::no_node(start_command)) };
        let deadline = Instant::now() + self.start_time_max;
        let failed = |what: String| {
            ToolError::new(format!("The node could not be started: {what}."))
                .hinting(format!("Run `{start_command}` in a terminal to see why."))
        };
        let late = || {
            let seconds = self.start_time_max.as_secs();
            failed(format!("it did not answer within {seconds} s"))
        };
        // Callers that waited here find the node running.
        let started = timeout_at(deadline, self.started.lock()).await;
        let mut started = started.map_err(|_| late())?;
        let mut lock = None;
        loop {
            match timeout_at(deadline, self.answers()).await {
                Ok(true) => return Ok(()),
                // A request that fails immediately does not reach the deadline; check it here.
                Ok(false) if Instant::now() < deadline => {}
                Ok(false) | Err(_) => return Err(late()),
            }
            let ended = started.as_mut().map(oneshot::Receiver::try_recv);
            match (ended, &lock) {
                // A node is starting; wait for it, regardless of which call started it.
                (Some(Err(TryRecvError::Empty)), _) => {}
                // A process that ended during an earlier call does not affect this one.
                (_, None) => {
                    let begun = starter().map_err(|error| failed(error.to_string()))?;
                    *started = None;
                    if let Some(StartedNode { process, lock: held }) = begun {
                        *started = Some(wait_in_background(process));
                        lock = Some(held);
                    }
                }
                (Some(Ok(Ok(status))), Some(_)) => {
                    return Err(failed(format!("it ended with {status}")));
                }
                (_, Some(_)) => return Err(failed("it ended".to_owned())),
            }
            sleep(START_CHECK_INTERVAL).await;
        }
    }

    /// Tells a running node the client process that started this server.
    pub(super) async fn announce(&self) {
        self.client.announce().await;
    }

    async fn answers(&self) -> bool {
        with_timeout(self.client.get("/v1/status")).await.is_ok()
    }
}

/// Waits for a process on a separate thread, so that it does not stay a zombie.
fn wait_in_background(mut process: Child) -> ExitReceiver {
    let (say, ended) = oneshot::channel();
    // The receiver may be gone.
    std::thread::spawn(move || say.send(process.wait()));
    ended
}

/// The client and session on whose behalf a request is sent.
#[derive(Clone, Copy, Debug)]
pub struct RequestIdentity<'a> {
    /// The client's name for itself.
    pub client: &'a str,
    /// Id of the MCP session.
    pub session: &'a str,
}

async fn with_timeout(
    answer: impl Future<Output = Result<Value, ClientError>>,
) -> Result<Value, ToolError> {
    let answered = timeout(ANSWER_TIME_MAX, answer).await;
    let answered = answered.map_err(|_| {
        let seconds = ANSWER_TIME_MAX.as_secs();
        ToolError::new(format!("The node did not answer within {seconds} s."))
            .hinting("Try again; `klnode status` shows the node's state.")
    })?;
    Ok(answered?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::process::{ChildStdin, Command, Stdio};
    use std::sync::mpsc::{self, Receiver};

    /// A node that never answers. Each start locks the folder and sends the handle that keeps the
    /// process alive.
    fn hanging(folder: &Path, start_time_max: Duration) -> (NodeClient, Receiver<ChildStdin>) {
        let (tell, started) = mpsc::channel();
        let home = folder.to_owned();
        let starter: Starter = Arc::new(move || {
            let lock = File::open(&home)?;
            lock.lock()?;
            let mut process = Command::new("cat").stdin(Stdio::piped()).spawn()?;
            let stdin = process.stdin.take().ok_or_else(|| io::Error::other("it was piped"))?;
            tell.send(stdin).map_err(io::Error::other)?;
            Ok(Some(StartedNode { process, lock }))
        });
        let client = Client::new(&folder.join("klnode.sock"));
        (
            NodeClient {
                start_time_max,
                ..NodeClient::new(client, Some(starter), "klnode".into())
            },
            started,
        )
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn a_node_that_hangs_on_start_is_started_once_and_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_millis(100));
        block_on(async {
            let [one, two] = [node.start(), node.start()];
            let (one, two) = tokio::join!(one, two);
            for message in [one, two, node.start().await] {
                let message = message.unwrap_err().to_string();
                assert!(
                    message.contains("could not be started: it did not answer within 0 s"),
                    "{message}"
                );
                assert!(message.contains("Run `klnode` in a terminal"), "{message}");
            }
        });
        let alive: Vec<ChildStdin> = started.try_iter().collect();
        assert_eq!(alive.len(), 1, "no second node is started");
        drop(alive);
    }

    #[test]
    fn a_cancelled_call_releases_the_start_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_secs(600));
        let alive = block_on(async {
            let mut waiting = std::pin::pin!(node.start());
            loop {
                tokio::select! {
                    biased;
                    done = waiting.as_mut() => panic!("nothing answers: {done:?}"),
                    () = tokio::task::yield_now() => {}
                }
                if let Ok(alive) = started.try_recv() {
                    let held = File::open(folder.path()).unwrap();
                    assert!(held.try_lock().is_err(), "the lock is held while a call waits");
                    break alive;
                }
            }
        });
        let free = File::open(folder.path()).unwrap();
        // A process that another test forks holds all open files until it executes its program.
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while free.try_lock().is_err() {
            assert!(std::time::Instant::now() < deadline, "the lock is still held");
            std::thread::yield_now();
        }
        assert!(node.started.try_lock().is_ok(), "the next call gets its turn");
        drop(alive);
    }

    #[test]
    fn a_request_that_may_have_succeeded_is_not_retried() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_millis(100));
        let listener = UnixListener::bind(folder.path().join("klnode.sock")).unwrap();
        // A node that exits after it has read a request.
        let ending = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 1]).unwrap();
        });
        let behalf = RequestIdentity { client: "test", session: "s1" };
        let message = block_on(node.send(&behalf, Method::POST, "/v1/entries", &())).unwrap_err();
        assert!(message.to_string().contains("may have carried out"), "{message}");
        ending.join().unwrap();
        assert!(started.try_recv().is_err(), "no node is started for a second attempt");
    }

    #[test]
    fn a_node_that_ends_on_start_is_started_again_by_the_next_call() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_secs(60));
        let ending = std::thread::spawn(move || started.iter().map(drop).count());
        for _ in 0..2 {
            let message = block_on(node.start()).unwrap_err().to_string();
            assert!(
                message.contains("could not be started: it ended with exit status: 0"),
                "{message}"
            );
        }
        drop(node);
        assert_eq!(ending.join().unwrap(), 2);
    }
}
