//! The way to the node: through its API alone, on behalf of a session, and not for ever.

use super::trouble::{Reason, Trouble};
use crate::api::{Client, ClientError};
use hyper::Method;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::future::Future;
use std::io;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep, timeout};

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
    starting: Mutex<()>,
}

impl Node {
    /// The node behind a client; it is started when it is first needed if there is a way to, else
    /// callers are told the command that starts it.
    pub fn new(client: Client, starter: Option<Starter>, start_command: String) -> Self {
        Self { client, starter, start_command, starting: Mutex::new(()) }
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

    async fn start(&self) -> Result<(), Trouble> {
        let start_command = &self.start_command;
        let Some(starter) = &self.starter else { return Err(Trouble::no_node(start_command)) };
        // Those who wait here find it running.
        let _alone = self.starting.lock().await;
        if self.answers().await {
            return Ok(());
        }
        let failed = |what: String| {
            Trouble::new(format!("start a node: {what}"))
                .hinting(format!("run `{start_command}` in a terminal to see why"))
        };
        let started = starter().map_err(|error| failed(error.to_string()))?;
        let (say, mut ended) = oneshot::channel();
        let _lock = started.map(|Started { mut process, lock }| {
            // Whoever starts a process must take note of its end, or it stays a zombie.
            std::thread::spawn(move || say.send(process.wait()));
            lock
        });
        let deadline = Instant::now() + START_TIME_MAX;
        while !self.answers().await {
            if let Ok(Ok(status)) = ended.try_recv() {
                return Err(failed(format!("it ended with {status}")));
            }
            if Instant::now() > deadline {
                let seconds = START_TIME_MAX.as_secs();
                return Err(failed(format!("it does not answer after {seconds} s")));
            }
            sleep(START_CHECK_INTERVAL).await;
        }
        Ok(())
    }

    async fn answers(&self) -> bool {
        in_time(self.client.get("/v1/status")).await.is_ok()
    }
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
