//! Serves MCP over HTTP, for clients that do not start a process. It listens on loopback only,
//! requires the node's token and rejects requests from web pages.

use super::Settings;
use super::server::Server;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Extension, Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use klnode_api_types::ErrorBody;
use klnode_http::{
    ConnectionSlot, ConnectionTable, RequestGuard, WriteTimeout, authenticate, error_response,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

pub use klnode_http::BearerToken;

/// URL path of the MCP endpoint.
pub const PATH: &str = "/mcp";

/// Maximum number of open sessions.
const SESSIONS_MAX: usize = 256;
/// Maximum number of open connections. A further one evicts the longest idle connection that has
/// not shown the token.
const CONNECTIONS_MAX: usize = 512;
/// A session without requests is closed after this time. It is long, because an agent may think for
/// long.
const SESSION_IDLE_TIME_MAX: Duration = Duration::from_secs(3_600);
/// Time limit for receiving a complete request head.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Time limit for a client to read written data.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum size of a request body in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Wait after the system failed to accept a connection.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Why MCP could not be served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address is not a loopback address, so other machines could reach it.
    #[error(
        "MCP cannot be served on {0}: it is not a loopback address, so other machines could reach \
         it. Use an address such as 127.0.0.1:7800."
    )]
    NotLoopback(SocketAddr),
    /// The port could not be bound.
    #[error("MCP cannot be served on {address}: {source}. Choose another port.")]
    Port {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// A bound port that is not served yet.
pub struct McpListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl McpListener {
    /// Binds a port on a loopback address.
    pub async fn bind(address: SocketAddr) -> Result<Self, HttpError> {
        if !address.ip().is_loopback() {
            return Err(HttpError::NotLoopback(address));
        }
        let port = |source| HttpError::Port { address, source };
        let listener = TcpListener::bind(address).await.map_err(port)?;
        let address = listener.local_addr().map_err(port)?;
        Ok(Self { listener, address })
    }

    /// The bound address with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts and serves connections; never returns.
    pub async fn serve(self, settings: &Settings, token: BearerToken) {
        let app = router(settings, token);
        let seats = ConnectionTable::new(CONNECTIONS_MAX);
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Most likely the process has no file descriptors left; an eviction frees one.
                seats.evict();
                sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            };
            // Responses are small and clients wait for them. If this fails, responses are only
            // delayed.
            let _ = stream.set_nodelay(true);
            let admission = Arc::new(ConnectionAdmission {
                admitted: OnceLock::new(),
                seat: seats.take().await,
            });
            let app = app.clone().layer(Extension(admission.clone()));
            let stream = TokioIo::new(WriteTimeout::new(stream, UNREAD_TIME_MAX));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME_MAX)
                .serve_connection(stream, TowerToHyperService::new(app));
            tokio::spawn(async move {
                tokio::select! {
                    // Errors are the client's: it hung up, was too slow or did not speak HTTP.
                    _ = connection => {}
                    () = admission.seat.wait_evicted() => {}
                }
            });
        }
    }
}

/// State of one connection. A client that has not shown the token is evicted if its seat is needed.
/// A client that has shown it stays connected however long it is idle.
struct ConnectionAdmission {
    admitted: OnceLock<RequestGuard>,
    seat: ConnectionSlot,
}

fn router(settings: &Settings, token: BearerToken) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE_TIME_MAX);
    let places = Arc::new(Semaphore::new(SESSIONS_MAX));
    let settings = settings.clone();
    let begin = move || {
        let place = places.clone().try_acquire_owned();
        let place = place.map_err(|_| {
            io::Error::other("Too many sessions are open. Close one and try again.")
        })?;
        // The checkout of this process is not the client's.
        Ok(Server::with_place(settings.session(None), place))
    };
    // The token guard already checks host and origin, with the rules of the API.
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .disable_allowed_hosts();
    let service = StreamableHttpService::new(begin, Arc::new(sessions), config);
    Router::new().route_service(PATH, service).layer(middleware::from_fn_with_state(token, guard))
}

/// Admits only local requests with the token.
async fn guard(
    State(token): State<BearerToken>,
    Extension(admission): Extension<Arc<ConnectionAdmission>>,
    request: Request,
    next: Next,
) -> Response {
    if let Err(error) = authenticate(request.headers(), Some(&token)) {
        return error_response(error.kind, Json(ErrorBody { error }));
    }
    admission.admitted.get_or_init(|| admission.seat.work());
    next.run(request).await
}
