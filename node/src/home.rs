//! The node's home: one private folder with all files of the node.

use klnode_config::Config;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::signing_key::SecretKey;
use klnode_home::{Layout, write_private};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The reason why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum HomeError {
    #[error("There is no home: neither HOME nor XDG_DATA_HOME is an absolute path.")]
    NoHome,
    #[error("Cannot use the home {path}: {source}.")]
    Io { path: PathBuf, source: io::Error },
    #[error("Cannot use the home {path}: another klnode process is using it.")]
    Claimed { path: PathBuf },
    #[error("Cannot use the home {path}: it belongs to another user.")]
    NotOurs { path: PathBuf },
    #[error("Cannot use the home {path}: it is a file.")]
    NotAFolder { path: PathBuf },
    #[error(
        "Cannot use the home {path}: other users can read it (mode {mode:o}), and it holds files \
         that are not klnode's."
    )]
    Shared { path: PathBuf, mode: u32 },
    #[error("Cannot read the node's key {path}: it is not 32 bytes long.")]
    BadKey { path: PathBuf },
    #[error(
        "Cannot start with the key {key}: it belongs to author {found}, and the store {store} to \
         author {expected}. The key is damaged, or was copied from another home."
    )]
    AnotherKey { key: PathBuf, store: PathBuf, found: AuthorId, expected: AuthorId },
    #[error("Cannot start without the key {key}: the store {store} belongs to author {expected}.")]
    MissingKey { key: PathBuf, store: PathBuf, expected: AuthorId },
    #[error("Cannot read the token {path}: it is not {TOKEN_DIGITS} hex digits.")]
    BadToken { path: PathBuf },
}

/// Hex digits of a token: 32 bytes.
const TOKEN_DIGITS: usize = 64;

/// A home folder. It exists from [`Home::prepare`] on.
#[derive(Clone, Debug)]
pub(super) struct Home {
    /// The absolute path, which is valid in messages wherever they are read.
    path: PathBuf,
    /// The path as given on the command line.
    typed: PathBuf,
}

impl Home {
    /// The named folder, or the default of the platform.
    pub(super) fn resolve(named: Option<PathBuf>) -> Result<Self, HomeError> {
        let data = || std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        // A relative path would mean another home in every folder.
        let data = || data().filter(|path| path.is_absolute()).map(|data| data.join("klnode"));
        let typed = named.or_else(data).or_else(of_user).ok_or(HomeError::NoHome)?;
        // Without a current folder the path is used as given.
        let path = std::path::absolute(&typed).unwrap_or_else(|_| typed.clone());
        Ok(Self { path, typed })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the socket. An absolute path may be too long for a socket; then the path as
    /// given is used.
    pub(super) fn socket(&self, config: &Config) -> PathBuf {
        let socket = config.api.socket.in_home(&self.path);
        match SocketAddr::from_pathname(&socket) {
            Ok(_) => socket,
            Err(_) => config.api.socket.in_home(&self.typed),
        }
    }

    /// The absolute path, if `klnode` without flags would not find it, or would not find it in
    /// another environment: programs that are started from a desktop have only `HOME`.
    pub(super) fn explicit_path(&self) -> io::Result<Option<PathBuf>> {
        let path = std::path::absolute(&self.path)?;
        let is_default = Self::resolve(None).is_ok_and(|usual| usual.path == path);
        let is_of_user = of_user().is_some_and(|usual| usual == path);
        let is_usual = is_default && is_of_user && in_environment().is_none();
        Ok((!is_usual).then_some(path))
    }

    /// The paths of the files in it.
    pub(super) fn layout(&self) -> Layout {
        Layout::new(&self.path)
    }

    /// Checks that the path is a folder of this user, or does not exist yet.
    pub(super) fn check(&self) -> Result<(), HomeError> {
        let path = self.path.clone();
        match fs::metadata(&self.path) {
            Ok(found) if !found.is_dir() => Err(HomeError::NotAFolder { path }),
            Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
                Err(HomeError::NotOurs { path })
            }
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(HomeError::Io { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Creates the folder if it does not exist, and makes it private.
    pub(super) fn prepare(&self) -> Result<(), HomeError> {
        let io = |source| HomeError::Io { path: self.path.clone(), source };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        self.check()?;
        made.map_err(io)?;
        let metadata = fs::metadata(&self.path).map_err(io)?;
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            if !self.is_klnodes().map_err(io)? {
                return Err(HomeError::Shared { path: self.path.clone(), mode });
            }
            fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700)).map_err(io)?;
        }
        Ok(())
    }

    /// Whether the folder is empty, or holds a file of a node, so that it may be made private.
    fn is_klnodes(&self) -> io::Result<bool> {
        let layout = self.layout();
        let files = [
            layout.store_file(),
            layout.key_file(),
            layout.person_file(),
            layout.config_file(),
            layout.lock_file(),
        ];
        if files.iter().any(|file| file.exists()) {
            return Ok(true);
        }
        for entry in fs::read_dir(&self.path)? {
            // A new file system has this folder.
            if entry?.file_name() != "lost+found" {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Locks the home as long as the returned file is open. Only one process works on a home.
    pub(super) fn claim(&self) -> Result<File, HomeError> {
        let path = self.layout().lock_file();
        let io = |source| HomeError::Io { path: path.clone(), source };
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(HomeError::Claimed { path: self.path.clone() }),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }

    /// Reads the node's key, or creates one and flushes it to disk before it signs a record.
    pub(super) fn key(&self) -> Result<SecretKey, HomeError> {
        match self.key_in_place()? {
            Some(key) => Ok(key),
            None => self.create_key(),
        }
    }

    /// Reads the node's key; `None` if there is none.
    pub(super) fn key_in_place(&self) -> Result<Option<SecretKey>, HomeError> {
        let path = self.layout().key_file();
        let io = |source| HomeError::Io { path: path.clone(), source };
        match File::open(&path) {
            Ok(mut file) => {
                let mut bytes = Zeroizing::new(Vec::new());
                file.read_to_end(&mut bytes).map_err(io)?;
                let bytes = bytes.as_slice().try_into();
                let bytes: &[u8; 32] =
                    bytes.map_err(|_| HomeError::BadKey { path: path.clone() })?;
                Ok(Some(SecretKey::from_bytes(bytes)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io(error)),
        }
    }

    fn create_key(&self) -> Result<SecretKey, HomeError> {
        let path = self.layout().key_file();
        let mut bytes = Zeroizing::new([0; 32]);
        entropy(&mut bytes[..]);
        write_private(&path, &bytes[..]).map_err(|source| HomeError::Io { path, source })?;
        Ok(SecretKey::from_bytes(&bytes))
    }

    /// The key for a store of this author. A flipped bit makes a valid key of another author, so
    /// only the store can tell whether a key is right. A new key is created only for a store
    /// without author.
    pub(super) fn key_of(&self, store: Option<AuthorId>) -> Result<SecretKey, HomeError> {
        let (path, file) = (self.layout().key_file(), self.layout().store_file());
        match (self.key_in_place()?, store) {
            (Some(key), Some(expected)) if key.author() != expected => {
                let found = key.author();
                Err(HomeError::AnotherKey { key: path, store: file, found, expected })
            }
            (Some(key), _) => Ok(key),
            (None, Some(expected)) => {
                Err(HomeError::MissingKey { key: path, store: file, expected })
            }
            (None, None) => self.create_key(),
        }
    }

    /// The port that peers used last; `None` if it is unknown, and then any port will do.
    pub(super) fn usual_port(&self) -> Option<u16> {
        fs::read_to_string(self.layout().port_file()).ok()?.trim().parse().ok()
    }

    /// Saves the port on which peers reach this node.
    pub(super) fn note_port(&self, port: u16) {
        let path = self.layout().port_file();
        if self.usual_port() == Some(port) {
            return;
        }
        if let Err(error) = fs::write(&path, format!("{port}\n")) {
            tracing::warn!(path = %path.display(), %error, "The port for peers could not be saved; it may change at the next start");
        }
    }

    /// Reads the token that callers over TCP must send, or creates it on first use.
    pub(super) fn token(&self) -> Result<Zeroizing<String>, HomeError> {
        if let Some(token) = self.token_in_place()? {
            return Ok(token);
        }
        let path = self.layout().token_file();
        self.create_token(&path).map_err(|source| HomeError::Io { path: path.clone(), source })?;
        let gone = || HomeError::Io { path, source: io::ErrorKind::NotFound.into() };
        self.token_in_place()?.ok_or_else(gone)
    }

    fn token_in_place(&self) -> Result<Option<Zeroizing<String>>, HomeError> {
        let path = self.layout().token_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(HomeError::Io { path, source }),
        };
        let token = text.trim();
        let fits =
            token.len() == TOKEN_DIGITS && token.bytes().all(|digit| digit.is_ascii_hexdigit());
        let token = fits.then(|| Zeroizing::new(token.to_owned()));
        token.map(Some).ok_or(HomeError::BadToken { path })
    }

    /// Creates a token unless another process has done so meanwhile: a node and an MCP server may
    /// start at the same moment, and both must use the same token.
    fn create_token(&self, path: &Path) -> io::Result<()> {
        let mut bytes = Zeroizing::new([0; TOKEN_DIGITS / 2]);
        entropy(&mut bytes[..]);
        let digits = Zeroizing::new(data_encoding::HEXLOWER.encode(&bytes[..]));
        let line = Zeroizing::new(format!("{}\n", *digits));
        let drawn = path.with_extension(format!("{}.drawn", std::process::id()));
        write_private(&drawn, line.as_bytes())?;
        match fs::hard_link(&drawn, path) {
            Ok(()) => fs::remove_file(&drawn)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(&drawn)?,
            // Some file systems have no hard links.
            Err(_) => fs::rename(&drawn, path)?,
        }
        File::open(&self.path)?.sync_all()
    }
}

/// The default home in the user's own folder, without regard to other variables.
fn of_user() -> Option<PathBuf> {
    let user = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())?;
    Some(user.join(".local/share/klnode"))
}

/// The home in the variable KLNODE_HOME.
pub(super) fn in_environment() -> Option<PathBuf> {
    std::env::var_os("KLNODE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Random bytes from the operating system.
pub(super) fn entropy(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system has random bytes");
}

/// The hint if another klnode process has locked the home or its store.
pub(super) const TAKEN: &str = "Stop the other node, or wait until the `klnode check` or `klnode \
                                backup restore` on it has ended; or use another --home.";

/// The exit code and the hint of an error.
pub(super) fn hint(error: &HomeError) -> (u8, Option<&'static str>) {
    match error {
        HomeError::NoHome => (2, Some("Name one with --home or KLNODE_HOME.")),
        HomeError::BadKey { .. } => {
            (1, Some("Restore the file from a backup; a new key would be another author."))
        }
        HomeError::AnotherKey { .. } | HomeError::MissingKey { .. } => (
            1,
            Some(
                "Restore the right node.key; or move a wrong one away and run `klnode backup \
                 restore`, which restores the key; or run `klnode identity adopt` to continue as \
                 another author.",
            ),
        ),
        HomeError::BadToken { .. } => {
            (1, Some("Delete the file: the node creates a new token, which callers over TCP need."))
        }
        HomeError::Claimed { .. } => (1, Some(TAKEN)),
        HomeError::Io { .. } => (1, Some("`klnode check home` examines the home.")),
        HomeError::NotOurs { .. } => {
            (1, Some("Run it as that user, or name a home of your own with --home."))
        }
        HomeError::NotAFolder { .. } => (2, Some("Name a folder with --home.")),
        HomeError::Shared { .. } => (
            2,
            Some("Name a folder of its own, as with --home FOLDER/klnode; or chmod 700 this one."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_an_absolute_path_and_a_socket_path_that_fits() {
        let here = std::env::current_dir().unwrap();
        let home = Home::resolve(Some("second".into())).unwrap();
        assert_eq!(home.path(), here.join("second"));
        let config = Config::default();
        let deep = Home { path: Path::new("/").join("d".repeat(120)), typed: "second".into() };
        assert_eq!(deep.socket(&config), Path::new("second/klnode.sock"));
        let short = Home { path: "/srv/second".into(), ..deep };
        assert_eq!(short.socket(&config), Path::new("/srv/second/klnode.sock"));
    }

    #[test]
    fn a_second_process_uses_the_existing_token() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::resolve(Some(folder.path().to_owned())).unwrap();
        let first = home.token().unwrap();
        // Another process may have looked before the token existed.
        home.create_token(&home.layout().token_file()).unwrap();
        assert_eq!(*home.token().unwrap(), *first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        let mode = fs::metadata(home.layout().token_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
