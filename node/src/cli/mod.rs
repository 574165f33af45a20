//! The command line: what can be typed, and nothing of what it does.

pub mod config;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A node that remembers what coding agents learn, judges it, and shares it peer to peer.
///
/// `klnode` alone starts the node in the foreground; it needs no configuration.
#[derive(Debug, Parser)]
#[command(name = "klnode", version, max_term_width = 100)]
pub struct Cli {
    /// What to do; without one, start the node.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// What every verb takes.
    #[command(flatten)]
    pub global: Global,
}

/// Flags that every verb takes.
#[derive(Debug, Args)]
pub struct Global {
    /// The folder that holds everything of this node
    /// [default: klnode in the XDG data folder].
    #[arg(long, global = true, env = "KLNODE_HOME", value_name = "FOLDER")]
    pub home: Option<PathBuf>,
    /// The configuration file [default: klnode.toml in the home, if it is there].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Sets one configuration key, over file and environment.
    ///
    /// Example: klnode --set retrieval.answers_max=3
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// How much to log: error, warn, info, debug or trace; `RUST_LOG` overrides it.
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start the node in the foreground (the same as `klnode` alone).
    Serve,
    /// Show the configuration in force, and where each value comes from.
    ///
    /// Example: klnode config trust
    Config(config::Args),
}
