//! The command line: what can be typed, and what is said in return.
//!
//! Every verb but `serve` and `config` is a thin client of the running node. A verb returns a
//! [`Reply`]; whether people or programs read it is decided in one place.

mod add;
mod change;
pub mod config;
mod entry;
mod history;
mod read;
pub mod watch;
mod when;

use crate::api::{Client, ClientError};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

/// A node that remembers what coding agents learn, judges it, and shares it peer to peer.
///
/// `klnode` alone starts the node in the foreground; it needs no configuration. Every other verb
/// talks to the running node.
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
    /// Example: klnode --set trust.hop_max=2
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// How much to log: error, warn, info, debug or trace; `RUST_LOG` overrides it.
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Answer in JSON, for programs.
    #[arg(long, global = true)]
    pub json: bool,
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
    /// Ask the running node how it is.
    Status,
    /// Write an entry, from flags or from a JSON object in a file or on standard input.
    ///
    /// Example: klnode add --title "Check ctx.Err() after upstream calls" --content "Auth
    /// middleware swallows cancellation." --tag auth --evidence commit:1a2b3c4
    Add(add::Add),
    /// Show one entry, by id, code or any unambiguous beginning of it.
    ///
    /// Example: klnode show L-7F3K
    Show(read::Show),
    /// List what the node holds.
    List(read::List),
    /// Show what was said about an entry: when, by whom, and on whose behalf.
    History(change::One),
    /// Print a line for everything that comes in, until Ctrl-C.
    ///
    /// Example: klnode watch --since 0
    Watch(watch::Watch),
    /// Count an observation: the entry helped, or it misled.
    ///
    /// Example: klnode observe L-7F3K --success
    Observe(change::Observe),
    /// Change an entry.
    ///
    /// Example: klnode edit L-7F3K --title "Check ctx.Err()" --tag go
    Edit(change::Edit),
    /// Put an entry away: kept whole, not served.
    Archive(change::One),
    /// Bring an archived entry back.
    Unarchive(change::One),
    /// Take back what this node said about an entry. Its text is erased wherever this arrives.
    Retract(change::One),
    /// Forget an entry for good, here and wherever this arrives.
    Forget(change::One),
    /// Rank an entry up, on this node alone.
    Pin(change::Mark),
    /// Hide an entry, on this node alone.
    Mute(change::Mark),
    /// Hold an entry to be wrong, on this node alone.
    Invalidate(change::Mark),
    /// Put a note on an entry, on this node alone; an empty note removes it.
    Annotate(change::Note),
}

/// What a verb answers, for programs and for people.
pub struct Reply {
    json: Result<String, serde_json::Error>,
    text: String,
}

impl Reply {
    fn new(json: &impl Serialize, text: String) -> Self {
        Self { json: serde_json::to_string_pretty(json), text }
    }

    /// What to print.
    pub fn render(self, global: &Global) -> String {
        match self.json {
            Ok(json) if global.json => json + "\n",
            _ => self.text,
        }
    }
}

/// Why a verb has no answer. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum VerbError {
    /// The node said no, or is not there.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// What was typed does not make sense.
    #[error("{0}")]
    Input(String),
}

/// Carries out a verb of the running node.
pub async fn run(verb: Verb, client: &Client) -> Result<Reply, VerbError> {
    match verb {
        Verb::Serve | Verb::Config(_) => unreachable!("these need no running node"),
        Verb::Watch(_) => unreachable!("this has no end to reply at"),
        Verb::Status => read::status(client).await,
        Verb::Add(add) => add.run(client).await,
        Verb::Show(show) => show.run(client).await,
        Verb::List(list) => list.run(client).await,
        Verb::History(one) => history::history(one, client).await,
        Verb::Observe(observe) => observe.run(client).await,
        Verb::Edit(edit) => edit.run(client).await,
        Verb::Archive(one) => one.archive(client, true).await,
        Verb::Unarchive(one) => one.archive(client, false).await,
        Verb::Retract(one) => one.post(client, "retract", "retracted").await,
        Verb::Forget(one) => one.post(client, "forget", "forgotten").await,
        Verb::Pin(mark) => mark.run(client, change::Marking::Pin).await,
        Verb::Mute(mark) => mark.run(client, change::Marking::Mute).await,
        Verb::Invalidate(mark) => mark.run(client, change::Marking::Invalidate).await,
        Verb::Annotate(note) => note.run(client).await,
    }
}
