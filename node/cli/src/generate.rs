//! `klnode generate`: texts for a shell, a man page reader, a service manager, an entry, or a program that writes entries.

use super::completions::Completions;
use super::{Reply, VerbError, entry_schema, hash_predicate, service_unit};

/// The text to print.
#[derive(Debug, clap::Subcommand)]
pub enum GenerateVerb {
    /// Print a script that completes verbs and flags in a shell.
    ///
    /// Example: klnode generate completions bash >
    /// ~/.local/share/bash-completion/completions/klnode
    Completions(Completions),
    /// Print the man page.
    ///
    /// Example: klnode generate man > klnode.1 && man ./klnode.1
    Man,
    /// Print a systemd user unit, or a launchd agent, that keeps a node running.
    ///
    /// Example: klnode generate service --systemd
    Service(service_unit::Args),
    /// Print a predicate that holds while a file, or a range of its lines, is unchanged.
    ///
    /// Example: klnode generate predicate src/lib.rs:10-24
    Predicate(hash_predicate::Args),
    /// Print the JSON Schema of a new entry of a type, or of all types.
    ///
    /// Example: klnode generate schema norm/commit
    Schema(entry_schema::Args),
}

impl GenerateVerb {
    /// Generates a text that depends neither on a home nor on settings; `None` for the service
    /// unit, which names the home.
    pub fn run(&self) -> Result<Option<Reply>, VerbError> {
        match self {
            Self::Completions(args) => Ok(Some(args.script())),
            Self::Man => super::completions::man().map(Some),
            Self::Predicate(args) => args.run().map(Some),
            Self::Schema(args) => args.run().map(Some),
            Self::Service(_) => Ok(None),
        }
    }
}
