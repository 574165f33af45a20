//! The way to the node: through its API alone, on behalf of a session, and not for ever.

use super::trouble::{Reason, Trouble};
use crate::api::{Client, ClientError};
use hyper::Method;
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

/// How long one answer may take. The node gives up earlier by itself.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(45);
/// How long a node may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether a started node answers.
const START_CHECK_INTERVAL: Duration = Duration::from_millis(30);

/// Starts a node that goes on by itself; nothing where somebody else is starting one.
pub type Starter = Arc<dyn Fn() -> io::Result<Option<Started>> + Send + Sync>;

/// A node that was started.
pub struct Started {
    /// The process.
    pub process: Child,
    /// Held until it answers: of two that start at once one would end, and say so to an agent.
    pub lock: File,
}

/// A node that runs, or may be started.
pub struct Node {
    client: Client,
    starter: Option<Starter>,
    start_command: String,
    start_time_max: Duration,
    /// The end of the process that was started last, if one was: whoever holds this waits for it.
    started: Mutex<Option<Ended>>,
}

/// How a process ended, once it has.
type Ended = oneshot::Receiver<io::Result<ExitStatus>>;

impl Node {
    /// The node behind a client; it is started when it is first needed if there is a way to, else
    /// callers are told the command that starts it.
    pub fn new(client: Client, starter: Option<Starter>, start_command: String) -> Self {
        let (start_time_max, started) = (START_TIME_MAX, Mutex::new(None));
        Self { client, starter, start_command, start_time_max, started }
    }

    /// Asks for something, on behalf of a program and a session of it.
    pub async fn get(&self, behalf: &Behalf<'_>, path: &str) -> Result<Value, Trouble> {
        let client = self.client.named(behalf.client, Some(behalf.session));
        self.reached(|| client.get(path)).await
    }

    /// Sends something, on behalf of a program and a session of it.
    pub async fn send(
        &self,
        behalf: &Behalf<'_>,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, Trouble> {
        let client = self.client.named(behalf.client, Some(behalf.session));
        self.reached(|| client.send_json(method.clone(), path, body)).await
    }

    /// An answer in time; from a node that is started for it, if that is allowed.
    async fn reached<F>(&self, ask: impl Fn() -> F) -> Result<Value, Trouble>
    where
        F: Future<Output = Result<Value, ClientError>>,
    {
        match in_time(ask()).await {
            Err(trouble) if trouble.reason() == Reason::NoNode => {
                self.start().await?;
                in_time(ask()).await
            }
            answered => answered,
        }
    }

    /// Starts a node, or waits for one that is being started, no longer than a node may take. If the
    /// call is cancelled meanwhile, no lock stays behind, and the node goes on starting: the next call
    /// waits for that one and starts no second.
    async fn start(&self) -> Result<(), Trouble> {
        let start_command = &self.start_command;
        let Some(starter) = &self.starter else { return Err(Trouble::no_node(start_command)) };
        let deadline = Instant::now() + self.start_time_max;
        let failed = |what: String| {
            Trouble::new(format!("start a node: {what}"))
                .hinting(format!("run `{start_command}` in a terminal to see why"))
        };
        let late = || {
            let seconds = self.start_time_max.as_secs();
            failed(format!("it does not answer after {seconds} s; it may hang"))
        };
        // Those who wait here find it running.
        let started = timeout_at(deadline, self.started.lock()).await;
        let mut started = started.map_err(|_| late())?;
        let mut lock = None;
        loop {
            match timeout_at(deadline, self.answers()).await {
                Ok(true) => return Ok(()),
                // What fails at once is not held up by a deadline.
                Ok(false) if Instant::now() < deadline => {}
                Ok(false) | Err(_) => return Err(late()),
            }
            let ended = started.as_mut().map(oneshot::Receiver::try_recv);
            match (ended, &lock) {
                // One that is on its way is waited for, whoever started it.
                (Some(Err(TryRecvError::Empty)), _) => {}
                // What ended in the course of an earlier call says nothing about this one.
                (_, None) => {
                    let begun = starter().map_err(|error| failed(error.to_string()))?;
                    *started = None;
                    if let Some(Started { process, lock: held }) = begun {
                        *started = Some(noted(process));
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

    /// Lets a node that runs know the client process above this one.
    pub(super) async fn announce(&self) {
        self.client.announce().await;
    }

    async fn answers(&self) -> bool {
        in_time(self.client.get("/v1/status")).await.is_ok()
    }
}

/// Takes note of the end of a process: whoever starts one must, or it stays a zombie.
fn noted(mut process: Child) -> Ended {
    let (say, ended) = oneshot::channel();
    // Nobody may want to know.
    std::thread::spawn(move || say.send(process.wait()));
    ended
}

/// On whose behalf something is asked.
#[derive(Clone, Copy, Debug)]
pub struct Behalf<'a> {
    /// What the program calls itself.
    pub client: &'a str,
    /// Its session.
    pub session: &'a str,
}

async fn in_time(
    answer: impl Future<Output = Result<Value, ClientError>>,
) -> Result<Value, Trouble> {
    let answered = timeout(ANSWER_TIME_MAX, answer).await;
    let answered = answered.map_err(|_| {
        let seconds = ANSWER_TIME_MAX.as_secs();
        Trouble::new(format!("wait for the node any longer: it did not answer within {seconds} s"))
            .hinting("try again; `klnode status` says how it is")
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

    /// A node that never answers: each start of it holds a lock on the folder, and sends what keeps
    /// its process alive.
    fn hanging(folder: &Path, start_time_max: Duration) -> (Node, Receiver<ChildStdin>) {
        let (tell, started) = mpsc::channel();
        let home = folder.to_owned();
        let starter: Starter = Arc::new(move || {
            let lock = File::open(&home)?;
            lock.lock()?;
            let mut process = Command::new("cat").stdin(Stdio::piped()).spawn()?;
            let stdin = process.stdin.take().ok_or_else(|| io::Error::other("it was piped"))?;
            tell.send(stdin).map_err(io::Error::other)?;
            Ok(Some(Started { process, lock }))
        });
        let client = Client::new(&folder.join("klnode.sock"));
        (Node { start_time_max, ..Node::new(client, Some(starter), "klnode".into()) }, started)
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work)
    }

    #[test]
    fn a_node_that_hangs_while_it_starts_is_waited_for_in_bounded_time_and_started_once() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_millis(100));
        block_on(async {
            let [one, two] = [node.start(), node.start()];
            let (one, two) = tokio::join!(one, two);
            for told in [one, two, node.start().await] {
                let told = told.unwrap_err().to_string();
                assert!(told.contains("start a node: it does not answer after 0 s"), "{told}");
                assert!(told.contains("run `klnode` in a terminal"), "{told}");
            }
        });
        let alive: Vec<ChildStdin> = started.try_iter().collect();
        assert_eq!(alive.len(), 1, "one that hangs is enough");
        drop(alive);
    }

    #[test]
    fn a_call_that_is_cancelled_while_it_waits_leaves_no_lock() {
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
                    assert!(held.try_lock().is_err(), "it is held while somebody waits");
                    break alive;
                }
            }
        });
        let free = File::open(folder.path()).unwrap();
        // A process that another test starts has everything open until it runs its own program.
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while free.try_lock().is_err() {
            assert!(std::time::Instant::now() < deadline, "somebody holds it");
            std::thread::yield_now();
        }
        assert!(node.started.try_lock().is_ok(), "the next call gets its turn");
        drop(alive);
    }

    #[test]
    fn what_may_have_been_done_is_told_and_not_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_millis(100));
        let listener = UnixListener::bind(folder.path().join("klnode.sock")).unwrap();
        // A node that ends once it has heard something.
        let ending = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 1]).unwrap();
        });
        let behalf = Behalf { client: "test", session: "s1" };
        let told = block_on(node.send(&behalf, Method::POST, "/v1/entries", &())).unwrap_err();
        assert!(told.to_string().contains("what was asked may have been done"), "{told}");
        ending.join().unwrap();
        assert!(started.try_recv().is_err(), "none is started to be asked once more");
    }

    #[test]
    fn a_node_that_ends_while_it_starts_is_told_and_started_again_by_the_next_call() {
        let folder = tempfile::tempdir().unwrap();
        let (node, started) = hanging(folder.path(), Duration::from_secs(60));
        let ending = std::thread::spawn(move || started.iter().map(drop).count());
        for _ in 0..2 {
            let told = block_on(node.start()).unwrap_err().to_string();
            assert!(told.contains("start a node: it ended with exit status: 0"), "{told}");
        }
        drop(node);
        assert_eq!(ending.join().unwrap(), 2);
    }
}
