//! The listener of the browser page: binds a random loopback port on request, serves the bundle,
//! trades codes for secrets, and passes requests with a secret to the routes.
//!
//! It is separate from the TCP port for programs: that one is configured and needs the token, this
//! one exists only after `klnode ui` and ends with the process.

use super::caller::Caller;
use super::errors::ApiError;
use super::limits::Limits;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, middleware};
use klnode_api_types::headers::{CLIENT_HEADER, RELAY_HEADER, SESSION_HEADER};
use klnode_api_types::{ErrorKind, PageState, PageTicket};
use klnode_http::header_text;
use klnode_page::{CODE_LIFETIME, Sessions, check_request, file_response, protect};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::time::timeout;

/// The name of the page among the callers of this node.
const PAGE_CLIENT: &str = "page";
/// Marks the answer to a request whose session has ended, so that the page can tell it from other
/// refusals.
const PAGE_HEADER: &str = "klnode-page";
const SESSION_PATH: &str = "/session";
/// Maximum size of a request for a session, in bytes; the request holds one code.
const SESSION_BODY_BYTES_MAX: usize = 1024;
/// One of this many connections may be busy with a request for a session. Such a request needs no
/// secret, and the connections are shared with the callers over the socket.
const CONNECTIONS_PER_SESSION_REQUEST: usize = 32;

/// The page of a node. Cheap to clone.
#[derive(Clone)]
pub(super) struct PageListener {
    sessions: Arc<Sessions>,
    /// The bound address; `None` until the first request for the page.
    address: Arc<Mutex<Option<SocketAddr>>>,
    ports: mpsc::Sender<TcpListener>,
    /// Limits the requests for a session that are in progress.
    session_slots: Arc<Semaphore>,
    limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionRequest {
    code: String,
}

#[derive(Serialize)]
struct SessionReply<'a> {
    secret: &'a str,
}

impl PageListener {
    /// A page without a port, and the receiver of the port.
    pub(super) fn new(limits: Limits) -> (Self, mpsc::Receiver<TcpListener>) {
        let (ports, receiver) = mpsc::channel(1);
        let (sessions, address) = (Arc::default(), Arc::default());
        let slots = (limits.connections_max / CONNECTIONS_PER_SESSION_REQUEST).max(1);
        let session_slots = Arc::new(Semaphore::new(slots));
        (Self { sessions, address, ports, session_slots, limits }, receiver)
    }

    /// Issues a code for a user; the first request also binds the port.
    pub(super) async fn open(&self, uid: u32) -> Result<PageTicket, ApiError> {
        let address = self.bind().await?;
        let issued = self.sessions.issue_code(uid, Instant::now())?;
        Ok(PageTicket {
            address: format!("http://{address}/"),
            code: issued.code.to_string(),
            lifetime_seconds: CODE_LIFETIME.as_secs(),
            opened: issued.opened,
        })
    }

    pub(super) async fn state(&self) -> PageState {
        let address = *self.address.lock().await;
        let address = address.map(|address| format!("http://{address}/"));
        PageState { address, opened: self.sessions.opened() }
    }

    async fn bind(&self) -> Result<SocketAddr, ApiError> {
        let mut bound = self.address.lock().await;
        if let Some(address) = *bound {
            return Ok(address);
        }
        let failed = |error: String| {
            let message = format!("The page cannot listen on 127.0.0.1: {error}.");
            ApiError::new(ErrorKind::Failed, message, None)
        };
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let port = port.map_err(|error| failed(error.to_string()))?;
        let address = port.local_addr().map_err(|error| failed(error.to_string()))?;
        let sent = self.ports.try_send(port);
        sent.map_err(|_| failed("the node is stopping".to_owned()))?;
        *bound = Some(address);
        Ok(address)
    }

    /// The routes behind the checks of the page.
    pub(super) fn guard(&self, app: Router) -> Router {
        app.layer(middleware::from_fn_with_state(self.clone(), Self::pass))
    }

    /// Middleware of every request of a browser.
    async fn pass(State(page): State<Self>, request: Request, next: Next) -> Response {
        let mut response = match page.answer(request, next).await {
            Ok(response) => response,
            Err(error) => error_reply(error),
        };
        protect(response.headers_mut());
        response
    }

    async fn answer(&self, mut request: Request, next: Next) -> Result<Response, ApiError> {
        let bound = *self.address.lock().await;
        let Some(address) = bound else {
            let message = "The page has no port yet.";
            return Err(ApiError::new(ErrorKind::Refused, message, None));
        };
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        check_request(&method, &path, request.headers(), address)?;
        if method == Method::POST && path == SESSION_PATH {
            return self.begin_session(request).await;
        }
        if method == Method::GET
            && let Some(file) = file_response(&path)
        {
            return Ok(file);
        }
        let uid = self.sessions.user(bearer(&request))?;
        let headers = request.headers_mut();
        headers.remove(SESSION_HEADER);
        headers.remove(RELAY_HEADER);
        headers.insert(CLIENT_HEADER, HeaderValue::from_static(PAGE_CLIENT));
        let caller = Caller { uid: Some(uid), is_page: true, ..Caller::default() };
        request.extensions_mut().insert(caller);
        Ok(next.run(request).await)
    }

    /// Trades the code in a request for the secret of a session. The request carries no
    /// secret, so its size, its time and the number of such requests are limited.
    async fn begin_session(&self, request: Request) -> Result<Response, ApiError> {
        let unreadable =
            || ApiError::new(ErrorKind::Invalid, "The request for a session is malformed.", None);
        let announced = header_text(request.headers(), header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > SESSION_BODY_BYTES_MAX) {
            let message =
                format!("The request for a session is larger than {SESSION_BODY_BYTES_MAX} bytes.");
            return Err(ApiError::new(ErrorKind::TooLarge, message, None));
        }
        let Ok(_slot) = self.session_slots.try_acquire() else {
            let message = "Too many requests for a session are in progress.";
            return Err(ApiError::new(ErrorKind::Busy, message, Some("Retry in a moment.")));
        };
        let body = to_bytes(request.into_body(), SESSION_BODY_BYTES_MAX);
        let body = timeout(self.limits.body_time_max, body).await.map_err(|_| {
            let seconds = self.limits.body_time_max.as_secs_f64();
            let message = format!("The request for a session did not arrive within {seconds} s.");
            ApiError::new(ErrorKind::Busy, message, None)
        })?;
        let body = body.map_err(|_| unreadable())?;
        let SessionRequest { code } = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        let secret = self.sessions.trade(&code, Instant::now())?;
        tracing::info!("The browser page was opened");
        Ok(Json(SessionReply { secret: &secret }).into_response())
    }
}

/// The secret in the `Authorization` header; empty if there is none.
fn bearer(request: &Request) -> &str {
    let shown = header_text(request.headers(), header::AUTHORIZATION);
    shown.and_then(|shown| shown.strip_prefix("Bearer ")).unwrap_or_default()
}

/// The answer to a request that the page listener rejected.
fn error_reply(error: ApiError) -> Response {
    let detail = error.into_detail();
    let kind = detail.kind;
    let body = Json(klnode_api_types::ErrorBody { error: detail });
    let mut response = klnode_http::error_response(kind, body);
    if kind == ErrorKind::Unauthorised {
        let ended = HeaderValue::from_static("session-ended");
        response.headers_mut().insert(PAGE_HEADER, ended);
        // Without it, the browser shows no dialog for a password.
        response.headers_mut().remove(header::WWW_AUTHENTICATE);
    }
    response
}
