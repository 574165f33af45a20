//! The same over HTTP, for clients that start nothing: on loopback alone, with the node's token, and
//! for nobody whom a web page sent.

use super::Settings;
use super::server::Server;
use crate::api::{ApiError, Busy, Seat, Seats, Steady, Token};
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";

/// Sessions at once.
const SESSIONS_MAX: usize = 256;
/// Connections at once; for one more, the longest idle that never showed the token goes.
const CONNECTIONS_MAX: usize = 512;
/// How long a session is kept of which nothing is heard: an agent may think for long.
const SESSION_IDLE_TIME_MAX: Duration = Duration::from_secs(3_600);
/// How long a connection may be open without a whole head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// How long what is written may stand unread.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes in the body of one request.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The wait after the system could not hand over a connection.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Why it cannot be served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Others could reach it.
    #[error("serve MCP on {0}: it is no loopback address, and others could reach it")]
    NotLoopback(SocketAddr),
    /// The port is not to be had.
    #[error("serve MCP on {address}: {source}")]
    Port {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A port that is bound and not yet served.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Binds a loopback address.
    pub async fn bind(address: SocketAddr) -> Result<Self, HttpError> {
        if !address.ip().is_loopback() {
            return Err(HttpError::NotLoopback(address));
        }
        let port = |source| HttpError::Port { address, source };
        let listener = TcpListener::bind(address).await.map_err(port)?;
        let address = listener.local_addr().map_err(port)?;
        Ok(Self { listener, address })
    }

    /// The address, with the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for ever.
    pub async fn serve(self, settings: &Settings, token: Token) {
        let app = router(settings, token);
        let seats = Seats::new(CONNECTIONS_MAX);
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // What is short, most likely files, comes back.
                seats.evict();
                sleep(ACCEPT_AGAIN_AFTER).await;
                continue;
            };
            // Answers are small and waited for; an error costs no more than a delay.
            let _ = stream.set_nodelay(true);
            let guest = Arc::new(Guest { admitted: OnceLock::new(), seat: seats.take().await });
            let app = app.clone().layer(Extension(guest.clone()));
            let stream = TokioIo::new(Steady::new(stream, UNREAD_TIME_MAX));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME_MAX)
                .serve_connection(stream, TowerToHyperService::new(app));
            tokio::spawn(async move {
                tokio::select! {
                    // An error is the client's: it hung up, was too slow, or spoke no HTTP.
                    _ = connection => {}
                    () = guest.seat.told_to_leave() => {}
                }
            });
        }
    }
}

/// Who is on the other end of a connection. Whoever has not shown the token goes when a seat is
/// wanted; whoever has stays, however long an agent thinks.
struct Guest {
    admitted: OnceLock<Busy>,
    seat: Seat,
}

fn router(settings: &Settings, token: Token) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_IDLE_TIME_MAX);
    let places = Arc::new(Semaphore::new(SESSIONS_MAX));
    let settings = settings.clone();
    let begin = move || {
        let place = places.clone().try_acquire_owned();
        let place = place.map_err(|_| io::Error::other("too many sessions are open"))?;
        // The checkout of this process is not the client's.
        Ok(Server::with_place(settings.session(None), place))
    };
    // The guard looks at host and origin, by the rules of the API.
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .disable_allowed_hosts();
    let service = StreamableHttpService::new(begin, Arc::new(sessions), config);
    Router::new().route_service(PATH, service).layer(middleware::from_fn_with_state(token, guard))
}

/// Lets in who shows the token and comes from here.
async fn guard(
    State(token): State<Token>,
    Extension(guest): Extension<Arc<Guest>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    token.admits(request.headers())?;
    guest.admitted.get_or_init(|| guest.seat.work());
    Ok(next.run(request).await)
}
