//! Loads the settings: defaults, then the file, then the environment, then flags.
//!
//! If the file is broken, a client of a running node still gets settings without it.

use super::ProgramError;
use super::home::Home;
use klnode_cli::read_limited;
use klnode_config::{FILE_BYTES_MAX, Layered, Layers};
use std::io;
use std::path::{Path, PathBuf};

/// Loads all layers. A file that was named must exist.
pub(super) fn read(
    home: &Home,
    named: Option<&Path>,
    set: &[String],
) -> Result<Layered, ProgramError> {
    let layers = match file(home, named)? {
        Some((path, text)) => environment_and_flags(set).file(path, text),
        None => environment_and_flags(set),
    };
    Ok(layers.resolve()?)
}

/// The settings for a client if the file is broken. A running node has read the file when it
/// started, so a client needs only the path of the socket from it. `None` if the error is not in
/// the file, or if the file was named and cannot be read.
pub(super) fn without_file(home: &Home, named: Option<&Path>, set: &[String]) -> Option<Layered> {
    let read = file(home, named);
    if read.is_err() && (named.is_some() || home.check().is_err()) {
        return None;
    }
    let only = read.ok().flatten().and_then(|(path, text)| Some((path, socket(&text)?)));
    let layered =
        only.and_then(|(path, text)| environment_and_flags(set).file(path, text).resolve().ok());
    layered.or_else(|| environment_and_flags(set).resolve().ok())
}

/// The path of the socket, as the text of a file with no other setting.
fn socket(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let socket = table.get("api")?.get("socket")?;
    Some(format!("api.socket = {socket}\n"))
}

fn environment_and_flags(set: &[String]) -> Layers {
    Layers::new()
        .environment(std::env::vars_os())
        .flags(set.iter().map(|assignment| ("--set", assignment.clone())))
}

/// Reads the file; `None` if the default file does not exist.
fn file(home: &Home, named: Option<&Path>) -> Result<Option<(PathBuf, String)>, ProgramError> {
    let path = named.map_or_else(|| home.layout().config_file(), Path::to_path_buf);
    match read_limited::file(&path, FILE_BYTES_MAX) {
        Ok(text) => Ok(Some((path, text))),
        // A missing home is reported by the code that uses it.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                && named.is_none() =>
        {
            Ok(None)
        }
        Err(source) => {
            // An unusable home is a better message than an unreadable file in it.
            if named.is_none() {
                home.check()?;
            }
            Err(ProgramError::ConfigFile { path, source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::socket;

    #[test]
    fn the_socket_is_read_from_a_file_with_other_errors() {
        let found = socket("[trust]\nhop_mx = 2\n[api]\nsocket = \"k.sock\"\ntcp = 7\n");
        assert_eq!(found.as_deref(), Some("api.socket = \"k.sock\"\n"));
        for text in ["[trust]\nhop_mx = 2\n", "[api\nsocket = \"k.sock\"\n", ""] {
            assert_eq!(socket(text), None, "{text}");
        }
    }
}
