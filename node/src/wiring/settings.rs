//! What is set: defaults, then the file, then the environment, then flags. And what is left of it for
//! those who only ask a running node, where the file is broken.

use super::Failure;
use super::home::Home;
use crate::cli::bounded;
use klnode_config::{FILE_BYTES_MAX, Layered, Layers};
use std::io;
use std::path::{Path, PathBuf};

/// Everything. A file that was named must be there.
pub(super) fn read(home: &Home, named: Option<&Path>, set: &[String]) -> Result<Layered, Failure> {
    let layers = match file(home, named)? {
        Some((path, text)) => beside(set).file(path, text),
        None => beside(set),
    };
    Ok(layers.resolve()?)
}

/// What a client goes by where the file cannot be used: the node has read it when it started, and who
/// asks needs to know no more of it than where it listens. Nothing where the mistake is not the file's,
/// or the file was named and cannot be read.
pub(super) fn without_file(home: &Home, named: Option<&Path>, set: &[String]) -> Option<Layered> {
    let read = file(home, named);
    if read.is_err() && (named.is_some() || home.check().is_err()) {
        return None;
    }
    let only = read.ok().flatten().and_then(|(path, text)| Some((path, socket(&text)?)));
    let told = only.and_then(|(path, text)| beside(set).file(path, text).resolve().ok());
    told.or_else(|| beside(set).resolve().ok())
}

/// Where the node listens, as a file that says nothing else.
fn socket(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let socket = table.get("api")?.get("socket")?;
    Some(format!("api.socket = {socket}\n"))
}

fn beside(set: &[String]) -> Layers {
    Layers::new()
        .environment(std::env::vars_os())
        .flags(set.iter().map(|assignment| ("--set", assignment.clone())))
}

/// The file, if there is one.
fn file(home: &Home, named: Option<&Path>) -> Result<Option<(PathBuf, String)>, Failure> {
    let path = named.map_or_else(|| home.layout().config_file(), Path::to_path_buf);
    match bounded::file(&path, FILE_BYTES_MAX) {
        Ok(text) => Ok(Some((path, text))),
        // A home that is none is told where it is used.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                && named.is_none() =>
        {
            Ok(None)
        }
        Err(source) => {
            // Whose home it is says more than that this file of it cannot be read.
            if named.is_none() {
                home.check()?;
            }
            Err(Failure::ConfigFile { path, source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::socket;

    #[test]
    fn where_a_node_listens_is_told_by_a_file_with_other_mistakes() {
        let told = socket("[trust]\nhop_mx = 2\n[api]\nsocket = \"k.sock\"\ntcp = 7\n");
        assert_eq!(told.as_deref(), Some("api.socket = \"k.sock\"\n"));
        for text in ["[trust]\nhop_mx = 2\n", "[api\nsocket = \"k.sock\"\n", ""] {
            assert_eq!(socket(text), None, "{text}");
        }
    }
}
