//! The server's side of the socket: who may connect, how long, how much.

use super::caller::Caller;
use super::errors::{ApiError, Kind};
use super::{exchange, routes};
use crate::engine::{Command, Handle, Receipt};
use crate::index::Index;
use crate::query::Reader;
use crate::store::{self, Snapshot};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::WallTime;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// A request that takes longer than this is given up.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// What the routes need. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    /// The way to the writer.
    pub engine: Handle,
    /// What makes entries findable.
    pub index: Index,
    /// Who reads.
    pub reader: Arc<Reader>,
    /// The seed of the next question.
    pub seeds: Arc<AtomicU64>,
    /// Who this node is.
    pub author: AuthorId,
    /// Where it lives.
    pub home: Arc<PathBuf>,
    /// What its clock says.
    pub now: fn() -> WallTime,
}

impl Service {
    pub(super) fn snapshot(&self) -> Result<Snapshot, store::Error> {
        self.engine.store().snapshot()
    }

    /// A seed that no question before had.
    pub(super) fn seed(&self) -> u64 {
        self.seeds.fetch_add(1, Ordering::Relaxed)
    }

    /// Hands a command to the writer, on a caller's behalf, and waits until it is durable.
    pub(super) async fn submit(
        &self,
        caller: Caller,
        command: Command,
    ) -> Result<Receipt, ApiError> {
        let _ = caller;
        Ok(self.engine.submit(command).await?)
    }
}

/// Why the socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another node answers there.
    #[error("listen on {path}: another klnode answers there")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path does not fit.
    #[error("listen on {path}: the path is too long for a socket (about 100 bytes)")]
    TooLong {
        /// The socket.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("listen on {path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Bytes that a socket's path may have, with the zero at its end.
const SOCKET_PATH_BYTES_MAX: usize = 108;

/// A socket that is bound and not yet served.
pub struct Bound {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket's name in the file system: goes when the node does.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already is as good as removed.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Bound {
    /// Binds the socket. One that a dead node left behind is removed; one that answers is not.
    pub async fn bind(path: &Path) -> Result<Self, ServeError> {
        let io = |source| ServeError::Io { path: path.into(), source };
        if path.as_os_str().len() >= SOCKET_PATH_BYTES_MAX {
            return Err(ServeError::TooLong { path: path.into() });
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(ServeError::InUse { path: path.into() });
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(io)?;
        // The folder is closed to others already; this closes the door itself.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
        Ok(Self { listener, file: SocketFile(path.into()) })
    }

    /// Serves until `stop` is done; requests under way are finished.
    pub async fn serve(
        self,
        service: Service,
        connections_max: usize,
        body_bytes_max: usize,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let Self { listener, file } = self;
        let places = Arc::new(Semaphore::new(connections_max));
        let app = routes::router(service)
            .layer(middleware::from_fn_with_state(places, within_limits))
            .layer(middleware::from_fn(exchange::negotiate))
            .layer(DefaultBodyLimit::max(body_bytes_max));
        let served = axum::serve(listener, app).with_graceful_shutdown(stop).await;
        served.map_err(|source| ServeError::Io { path: file.0.clone(), source })
    }
}

/// Only so many requests at once, none for ever.
async fn within_limits(
    State(places): State<Arc<Semaphore>>,
    request: Request,
    next: Next,
) -> Response {
    let answered = tokio::time::timeout(REQUEST_TIME_MAX, async {
        let _place = places.acquire().await;
        next.run(request).await
    });
    match answered.await {
        Ok(response) => response,
        Err(_) => {
            let message = format!("answer within {} seconds", REQUEST_TIME_MAX.as_secs());
            ApiError::new(Kind::Busy, message, Some("try again")).into_response()
        }
    }
}
