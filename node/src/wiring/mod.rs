//! Where the parts meet the machine: environment, clock, signals, exit codes.
//!
//! The rest of the library reads no environment, no clock and no terminal; all of that is here.

mod embedder;
mod home;
mod serve;

use crate::api::{self, Client, ClientError};
use crate::cli::{self, Cli, Global, Verb, VerbError};
use crate::index::embed::EmbedError;
use crate::store;
use clap::Parser;
use home::{Home, HomeError};
use klnode_config::{Layered, Layers};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Why the program ends without having done what was asked. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Home(#[from] HomeError),
    #[error("read {path}: {source}")]
    ConfigFile { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Config(#[from] klnode_config::ConfigError),
    #[error("show `{0}`: there is no such key or section, or nothing in it was changed")]
    NoSuchKey(String),
    #[error("{0}")]
    Verb(#[from] cli::VerbError),
    #[error("{0}")]
    Serve(#[from] api::ServeError),
    #[error("{0}")]
    Open(#[from] store::OpenError),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("{0}")]
    Embed(#[from] EmbedError),
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

impl Failure {
    /// The one table from kinds to exit codes and ways out.
    fn way_out(&self) -> (u8, Option<&str>) {
        match self {
            Self::Verb(VerbError::Client(error)) => {
                let hint = match error {
                    ClientError::NoNode { .. } => Some("start one with `klnode`"),
                    ClientError::Refused(detail) => detail.hint.as_deref(),
                    ClientError::Closed { .. } | ClientError::Garbled(_) => None,
                };
                (error.exit_code(), hint)
            }
            Self::Verb(VerbError::Input(_)) => (2, None),
            Self::Serve(api::ServeError::TooLong { .. }) => {
                (2, Some("choose a shorter --home, or set api.socket to a short absolute path"))
            }
            Self::Serve(_) => (1, None),
            Self::Home(HomeError::NoHome) => (2, Some("name one with --home or KLNODE_HOME")),
            Self::Home(HomeError::BadKey { .. }) => {
                (1, Some("restore the file from a backup; a new key would be another author"))
            }
            Self::Home(_) => (1, None),
            Self::ConfigFile { .. } | Self::Config(_) => {
                (2, Some("`klnode config` lists every key with its meaning"))
            }
            Self::NoSuchKey(_) => (1, Some("`klnode config` lists every key")),
            Self::Open(store::OpenError::InUse { .. }) => {
                (1, Some("stop the other node, or start this one with another --home"))
            }
            Self::Open(store::OpenError::Newer { .. }) => (1, Some("upgrade klnode")),
            Self::Open(store::OpenError::Damaged { .. }) => {
                (1, Some("restore the file from a backup, or move it away to start anew"))
            }
            Self::Embed(_) => (2, Some("`klnode config embedder` shows what is set, and where")),
            Self::Open(_) | Self::Store(_) | Self::System { .. } => (1, None),
        }
    }
}

/// The whole program.
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let (code, hint) = failure.way_out();
            let mut stderr = io::stderr().lock();
            // Nothing is left to tell if this cannot be told.
            let _ = writeln!(stderr, "klnode: cannot {failure}");
            if let Some(hint) = hint {
                let _ = writeln!(stderr, "  hint: {hint}");
            }
            ExitCode::from(code)
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let home = Home::resolve(cli.global.home.clone())?;
    let layered = configuration(&home, &cli.global)?;
    match cli.verb.unwrap_or(Verb::Serve) {
        Verb::Serve => serve::serve(&home, layered.config(), &cli.global),
        Verb::Config(args) => {
            let reply = cli::config::show(&args, &layered)
                .ok_or_else(|| Failure::NoSuchKey(args.key.unwrap_or_default()))?;
            print(&reply.render(&cli.global))
        }
        verb => {
            let client = Client::new(&layered.config().api.socket.in_home(home.path()));
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|source| Failure::System { what: "start", source })?;
            let reply = runtime.block_on(cli::run(verb, &client))?;
            print(&reply.render(&cli.global))
        }
    }
}

/// Defaults, then the file, then the environment, then flags.
fn configuration(home: &Home, global: &Global) -> Result<Layered, Failure> {
    let mut layers = Layers::new()
        .environment(std::env::vars_os())
        .flags(global.set.iter().map(|assignment| ("--set", assignment.clone())));
    let path = global.config.clone().unwrap_or_else(|| home.config_file());
    match fs::read_to_string(&path) {
        Ok(text) => layers = layers.file(path, text),
        Err(error) if error.kind() == io::ErrorKind::NotFound && global.config.is_none() => {}
        Err(source) => return Err(Failure::ConfigFile { path, source }),
    }
    Ok(layers.resolve()?)
}

/// Prints to standard output. A reader that has gone away is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(Failure::System { what: "print the answer", source }),
        Ok(()) => Ok(()),
    }
}
