//! The connection to an embedding server: bounded in time and in bytes, and ended when asked to.
//!
//! Separate because nothing here knows what a vector is. Calls block, from any thread, even one
//! that drives another runtime: the work is done on a thread of its own. The key is in no message
//! and no log line, and neither is what a server says beside its status, since it may repeat the
//! texts or the key.

use super::super::EmbedError;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri, body::Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::error::Error;
use std::fmt;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use zeroize::Zeroizing;

/// No wait between two attempts is longer, whatever the server asks for.
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// Names are looked up on threads of their own, and a lookup cannot be ended.
const LOOKUP_THREADS_MAX: usize = 4;

/// A secret that a server asks for. It is wiped when dropped and never printed.
#[derive(Clone)]
pub struct Key(Zeroizing<String>);

impl Key {
    /// This secret.
    #[must_use]
    pub fn new(secret: String) -> Self {
        Self(Zeroizing::new(secret))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(not shown)")
    }
}

/// How long to wait, and how often.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For one attempt, from connecting to the last byte.
    pub(super) timeout: Duration,
    /// Further attempts after the first.
    pub(super) retries_max: u32,
    /// The wait before the first of them; it doubles.
    pub(super) back_off: Duration,
}

/// Where requests go.
#[derive(Debug, Clone)]
pub(super) struct Address {
    uri: Uri,
    server: String,
}

impl Address {
    /// A url with a path after it.
    pub(super) fn new(url: &str, path: &str) -> Result<Self, EmbedError> {
        let refused = |why| EmbedError::Url { why };
        // The url is not repeated in what is said: a wrong one may hold a password.
        let uri: Uri = format!("{}{path}", url.trim_end_matches('/'))
            .parse()
            .map_err(|_| refused("it is not one"))?;
        let authority = uri.authority().ok_or(refused("it names no server"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused("it starts with neither http:// nor https://"));
        }
        if authority.as_str().contains('@') {
            return Err(refused("it holds a password; name a variable in embedder.key_variable"));
        }
        if uri.query().is_some() {
            return Err(refused("it holds a query"));
        }
        let server = authority.to_string();
        Ok(Self { uri, server })
    }

    /// Name and port.
    pub(super) fn server(&self) -> &str {
        &self.server
    }
}

/// A client of one server, with a thread that does its work.
pub(super) struct Client {
    address: Address,
    authorization: Option<HeaderValue>,
    pool: Pool,
    stopping: watch::Sender<Stage>,
    /// Always there until dropped.
    runtime: Option<Runtime>,
}

type Pool = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Stopping,
}

impl Client {
    pub(super) fn new(address: Address, key: Option<&Key>) -> Result<Self, EmbedError> {
        let start = |error: std::io::Error| EmbedError::Start { why: error.to_string() };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(LOOKUP_THREADS_MAX)
            .thread_name("embedder")
            .enable_all()
            .build()
            .map_err(start)?;
        let connector =
            HttpsConnectorBuilder::new().with_webpki_roots().https_or_http().enable_http1().build();
        let pool = legacy::Client::builder(TokioExecutor::new()).build(connector);
        let authorization = key.map(bearer).transpose()?;
        let stopping = watch::Sender::new(Stage::Running);
        Ok(Self { address, authorization, pool, stopping, runtime: Some(runtime) })
    }

    /// Name and port of the server.
    pub(super) fn server(&self) -> &str {
        self.address.server()
    }

    /// Ends what is under way; what is asked later fails at once.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(Stage::Stopping);
    }

    /// Sends a body and waits for the whole answer.
    pub(super) fn post(
        &self,
        body: Vec<u8>,
        answer_bytes_max: usize,
        patience: Patience,
    ) -> Result<Vec<u8>, EmbedError> {
        let call = Call {
            pool: self.pool.clone(),
            address: self.address.clone(),
            authorization: self.authorization.clone(),
            body: Bytes::from(body),
            answer_bytes_max,
        };
        let mut stopping = self.stopping.subscribe();
        let (sender, receiver) = mpsc::sync_channel(1);
        let runtime = self.runtime.as_ref().expect("the runtime is there until the client is not");
        runtime.spawn(async move {
            let answer = tokio::select! {
                biased;
                _ = stopping.wait_for(|stage| *stage == Stage::Stopping) => Err(EmbedError::Stopped),
                answer = call.attempts(patience) => answer,
            };
            // Whoever asked is still waiting; if not, the answer is of no use.
            let _ = sender.send(answer);
        });
        receiver.recv().unwrap_or(Err(EmbedError::Stopped))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Waiting for the thread is not allowed where another runtime is driven.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn bearer(key: &Key) -> Result<HeaderValue, EmbedError> {
    let text = Zeroizing::new(format!("Bearer {}", key.0.trim()));
    let mut value = HeaderValue::from_str(&text).map_err(|_| EmbedError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

/// One request with everything it needs, to be tried more than once.
struct Call {
    pool: Pool,
    address: Address,
    authorization: Option<HeaderValue>,
    body: Bytes,
    answer_bytes_max: usize,
}

/// What came of one attempt that failed.
struct Failed {
    why: EmbedError,
    /// Whether another attempt may help, and how long the server asks to wait for it.
    retry: Option<Duration>,
}

impl Call {
    async fn attempts(&self, patience: Patience) -> Result<Vec<u8>, EmbedError> {
        let mut back_off = patience.back_off;
        let mut retries = 0;
        loop {
            let attempt = tokio::time::timeout(patience.timeout, self.attempt()).await;
            let failed = match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_) => {
                    let why = format!("it does not answer within {:?}", patience.timeout);
                    return Err(self.unreachable(why));
                }
            };
            let Some(asked) = failed.retry.filter(|_| retries < patience.retries_max) else {
                return Err(failed.why);
            };
            tracing::debug!(server = self.address.server, retries, "the embedder is asked again");
            tokio::time::sleep(back_off.max(asked).min(BACK_OFF_MAX)).await;
            back_off = back_off.saturating_mul(2);
            retries += 1;
        }
    }

    async fn attempt(&self) -> Result<Vec<u8>, Failed> {
        let mut request = Request::post(self.address.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("klnode/", env!("CARGO_PKG_VERSION")));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Full::new(self.body.clone()))
            .expect("address and headers were checked when the client was made");
        let response = self.pool.request(request).await.map_err(|error| Failed {
            retry: error.is_connect().then_some(Duration::ZERO),
            why: self.unreachable(root_cause(&error)),
        })?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(self.refused(&response));
        }
        let body = Limited::new(response.into_body(), self.answer_bytes_max).collect().await;
        let body = body.map_err(|error| {
            let server = self.address.server.clone();
            let why = if error.is::<LengthLimitError>() {
                let why = format!("its answer is larger than {} bytes", self.answer_bytes_max);
                EmbedError::Garbled { server, why }
            } else {
                self.unreachable("its answer ends early".to_owned())
            };
            Failed { why, retry: None }
        })?;
        Ok(body.to_bytes().into())
    }

    fn unreachable(&self, why: String) -> EmbedError {
        EmbedError::Unreachable { server: self.address.server.clone(), why }
    }

    fn refused(&self, response: &Response<Incoming>) -> Failed {
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0);
        let retry = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let server = self.address.server.clone();
        Failed {
            why: EmbedError::Refused { server, status: status.as_u16() },
            retry: retry.then_some(Duration::from_secs(asked)),
        }
    }
}

/// The innermost of nested errors says what happened; the others say where.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
