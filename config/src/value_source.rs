//! The origin of a configuration value: the layer and the exact place that set it.
//!
//! Error messages and `klnode config` show origins in the same form. An origin is only a
//! description; no code reads from the place it names.

use std::fmt;
use std::path::PathBuf;

use crate::setting_path::Key;

/// The layer and place that set a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueSource {
    /// The embedded `default.toml`.
    Default,
    /// A configuration file.
    File {
        /// The path of the file, as the caller passed it in.
        path: PathBuf,
        /// The line of the key, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// The name of the variable.
        name: String,
    },
    /// A command-line flag.
    Flag {
        /// The name of the flag, as the caller passed it in: `--set`.
        name: String,
    },
}

impl ValueSource {
    /// The spelling of a key in this kind of source.
    pub(crate) fn spell(&self, key: &Key) -> String {
        match self {
            Self::Environment { .. } => key.to_environment(),
            Self::Default | Self::File { .. } | Self::Flag { .. } => key.to_string(),
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
            Self::Environment { name } => write!(f, "environment variable {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}
