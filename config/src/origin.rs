//! Where a value came from.
//!
//! Separate because it is shown in two places, in problems and in explanations, in the same words.
//! An origin is a description: nothing is ever read from where it points to.

use std::fmt;
use std::path::PathBuf;

use crate::key::Key;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The embedded `default.toml`.
    Default,
    /// A configuration file.
    File {
        /// The path the text was read from, as the caller gave it.
        path: PathBuf,
        /// The line of the key, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// Its name, as the caller gave it: `--set`.
        name: String,
    },
}

impl Origin {
    /// How a key would have to be spelled to be found here.
    pub(crate) fn spell(&self, key: &Key) -> String {
        match self {
            Self::Environment { .. } => key.to_environment(),
            Self::Default | Self::File { .. } | Self::Flag { .. } => key.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
            Self::Environment { name } => write!(f, "environment variable {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}
