//! The HTTP connection to an embedding server: limited in time and bytes, and cancellable.
//!
//! It is separate because it is independent of vectors. Calls block and may come from any thread,
//! even one that drives another runtime: the work runs on its own thread. Messages and log lines
//! contain neither the key nor the body of an error answer, which may repeat the texts or the key.

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

/// Maximum pause between two attempts, even if the server asks for a longer one.
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// Name lookups run on their own threads and cannot be cancelled.
const LOOKUP_THREADS_MAX: usize = 4;

/// A secret for the server. It is wiped when dropped and never printed.
#[derive(Clone)]
pub struct Key(Zeroizing<String>);

impl Key {
    /// Wraps a secret.
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

/// Timeout and retries.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryPolicy {
    /// The timeout of one attempt, from connecting to the last byte.
    pub(super) timeout: Duration,
    /// Maximum number of retries after the first attempt.
    pub(super) retries_max: u32,
    /// The pause before the first retry; it doubles.
    pub(super) back_off: Duration,
}

/// The address of the server.
#[derive(Debug, Clone)]
pub(super) struct Address {
    uri: Uri,
    server: String,
}

impl Address {
    /// Joins a URL and a path.
    pub(super) fn new(url: &str, path: &str) -> Result<Self, EmbedError> {
        let refused = |why| EmbedError::Url { why };
        // Errors do not repeat the URL, which may contain a password.
        let uri: Uri = format!("{}{path}", url.trim_end_matches('/'))
            .parse()
            .map_err(|_| refused("it is not a URL"))?;
        let authority = uri.authority().ok_or(refused("it names no server"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused("it starts with neither http:// nor https://"));
        }
        if authority.as_str().contains('@') {
            return Err(refused(
                "it contains a password; name a variable in embedder.key_variable",
            ));
        }
        if uri.query().is_some() {
            return Err(refused("it contains a query"));
        }
        let server = authority.to_string();
        Ok(Self { uri, server })
    }

    /// Host name and port.
    pub(super) fn server(&self) -> &str {
        &self.server
    }
}

/// A client of one server, with its own thread.
pub(super) struct EndpointClient {
    address: Address,
    authorization: Option<HeaderValue>,
    pool: Pool,
    stopping: watch::Sender<RunState>,
    /// Always set until dropped.
    runtime: Option<Runtime>,
}

type Pool = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunState {
    Running,
    Stopping,
}

impl EndpointClient {
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
        let stopping = watch::Sender::new(RunState::Running);
        Ok(Self { address, authorization, pool, stopping, runtime: Some(runtime) })
    }

    /// Host name and port of the server.
    pub(super) fn server(&self) -> &str {
        self.address.server()
    }

    /// Ends running calls and makes later ones fail at once.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(RunState::Stopping);
    }

    /// Sends a body and waits for the whole answer.
    pub(super) fn post(
        &self,
        body: Vec<u8>,
        answer_bytes_max: usize,
        retry_policy: RetryPolicy,
    ) -> Result<Vec<u8>, EmbedError> {
        let call = PreparedRequest {
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
                _ = stopping.wait_for(|stage| *stage == RunState::Stopping) => Err(EmbedError::Stopped),
                answer = call.attempts(retry_policy) => answer,
            };
            // An error means that the caller no longer waits, so the answer is not needed.
            let _ = sender.send(answer);
        });
        receiver.recv().unwrap_or(Err(EmbedError::Stopped))
    }
}

impl Drop for EndpointClient {
    fn drop(&mut self) {
        // Blocking shutdown is not allowed inside another runtime.
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

/// One request with everything needed to repeat it.
struct PreparedRequest {
    pool: Pool,
    address: Address,
    authorization: Option<HeaderValue>,
    body: Bytes,
    answer_bytes_max: usize,
}

/// The result of a failed attempt.
struct FailedAttempt {
    why: EmbedError,
    /// The pause that the server asks for; `None` if a retry is useless.
    retry: Option<Duration>,
}

impl PreparedRequest {
    async fn attempts(&self, retry_policy: RetryPolicy) -> Result<Vec<u8>, EmbedError> {
        let mut back_off = retry_policy.back_off;
        let mut retries = 0;
        loop {
            let attempt = tokio::time::timeout(retry_policy.timeout, self.attempt()).await;
            let failed = match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_) => {
                    let why = format!("it did not answer within {:?}", retry_policy.timeout);
                    return Err(self.unreachable(why));
                }
            };
            let Some(asked) = failed.retry.filter(|_| retries < retry_policy.retries_max) else {
                return Err(failed.why);
            };
            tracing::debug!(
                server = self.address.server,
                retries,
                "Retrying the request to the embedder"
            );
            tokio::time::sleep(back_off.max(asked).min(BACK_OFF_MAX)).await;
            back_off = back_off.saturating_mul(2);
            retries += 1;
        }
    }

    async fn attempt(&self) -> Result<Vec<u8>, FailedAttempt> {
        let mut request = Request::post(self.address.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("klnode/", env!("CARGO_PKG_VERSION")));
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request
            .body(Full::new(self.body.clone()))
            .expect("address and headers were checked when the client was made");
        let response = self.pool.request(request).await.map_err(|error| FailedAttempt {
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
                let why = format!("it is larger than {} bytes", self.answer_bytes_max);
                EmbedError::Garbled { server, why }
            } else {
                self.unreachable("its answer ended early".to_owned())
            };
            FailedAttempt { why, retry: None }
        })?;
        Ok(body.to_bytes().into())
    }

    fn unreachable(&self, why: String) -> EmbedError {
        EmbedError::Unreachable { server: self.address.server.clone(), why }
    }

    fn refused(&self, response: &Response<Incoming>) -> FailedAttempt {
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0);
        let retry = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let server = self.address.server.clone();
        FailedAttempt {
            why: EmbedError::Refused { server, status: status.as_u16() },
            retry: retry.then_some(Duration::from_secs(asked)),
        }
    }
}

/// The innermost of nested errors names the cause; the others name the place.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
