//! Where the node listens: its socket, and a loopback port if that is wanted.

use super::token::Token;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// Why the API cannot be served.
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
    /// The port is not to be had.
    #[error("listen on {address}: {source}")]
    Port {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// Bytes that a socket's path may have, with the zero at its end.
const SOCKET_PATH_BYTES_MAX: usize = 108;

/// A socket that is bound and not yet served.
pub struct Bound {
    doors: Doors,
}

/// What there is to serve.
pub(super) struct Doors {
    pub(super) socket: UnixListener,
    pub(super) tcp: Option<TcpListener>,
    pub(super) token: Option<Token>,
    pub(super) file: SocketFile,
}

/// The socket's name in the file system: goes when the node does.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already is as good as removed.
        let _ = remove_socket(&self.0);
    }
}

/// Removes a socket, if one is there; nothing else of that name is touched.
fn remove_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there, and no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
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
        remove_socket(path).map_err(io)?;
        let socket = UnixListener::bind(path).map_err(io)?;
        // The folder is closed to others already; this closes the door itself.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
        let file = SocketFile(path.into());
        Ok(Self { doors: Doors { socket, tcp: None, token: None, file } })
    }

    /// Binds a port too, for callers with the token. The address is a loopback one: the
    /// configuration takes no other.
    pub async fn bind_tcp(mut self, address: SocketAddr, token: Token) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await;
        self.doors.tcp = Some(listener.map_err(|source| ServeError::Port { address, source })?);
        self.doors.token = Some(token);
        Ok(self)
    }

    /// The port that was bound, if one was.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.doors.tcp.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    pub(super) fn open(self) -> Doors {
        self.doors
    }
}
