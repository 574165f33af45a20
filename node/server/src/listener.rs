//! Binds the node's Unix socket and, if configured, a loopback TCP port.

use klnode_http::BearerToken;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another node answers on the socket.
    #[error("The node cannot listen on {path}: another klnode answers there.")]
    InUse {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The path is too long for a socket address.
    #[error("The path {path} is too long for a socket (about 100 bytes).")]
    TooLong {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The file system returned an error.
    #[error("The node cannot listen on {path}: {source}.")]
    Io {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The TCP port cannot be bound.
    #[error("The node cannot listen on {address}: {source}.")]
    Port {
        /// The configured address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Size of a socket path, with its terminating zero.
const SOCKET_PATH_BYTES_MAX: usize = 108;

/// A socket that is bound and not yet served.
pub struct BoundListener {
    doors: Listeners,
}

/// The listeners, the TCP token and the socket file.
pub(super) struct Listeners {
    pub(super) socket: UnixListener,
    pub(super) tcp: Option<TcpListener>,
    pub(super) token: Option<BearerToken>,
    pub(super) file: SocketFile,
}

/// The path of the socket; dropping it removes the file.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // An error is ignored: the file may be removed already.
        let _ = remove_socket(&self.0);
    }
}

/// Removes the socket at a path; fails if another type of file is there.
fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path holds a file that is not a socket",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl BoundListener {
    /// Binds the socket. A stale socket file of a dead node is removed first; a socket on which a
    /// node answers is an error.
    pub async fn bind(path: &Path) -> Result<Self, ServeError> {
        let io = |source| ServeError::Io { path: path.into(), source };
        if path.as_os_str().len() >= SOCKET_PATH_BYTES_MAX {
            return Err(ServeError::TooLong { path: path.into() });
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(ServeError::InUse { path: path.into() });
        }
        remove_socket(path).map_err(io)?;
        let socket = UnixListener::bind(path).map_err(io)?;
        // The folder already excludes other users; this also restricts the socket itself.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
        let file = SocketFile(path.into());
        Ok(Self { doors: Listeners { socket, tcp: None, token: None, file } })
    }

    /// Also binds a TCP port, for callers with the token. The configuration allows only loopback
    /// addresses.
    pub async fn bind_tcp(
        mut self,
        address: SocketAddr,
        token: BearerToken,
    ) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await;
        self.doors.tcp = Some(listener.map_err(|source| ServeError::Port { address, source })?);
        self.doors.token = Some(token);
        Ok(self)
    }

    /// The TCP address that was bound, if one was.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.doors.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    pub(super) fn open(self) -> Listeners {
        self.doors
    }
}
