//! The command line: the verbs, their arguments and their output.
//!
//! Most verbs are thin clients of the running node. `serve`, `config`, `connect`, `generate`,
//! `identity`, `backup verify` and `backup restore` need no node, nor does `eval` for a set that
//! contains entries; `check home store`, `mcp` and `hook` work with and without one. A verb returns
//! a [`Reply`]; one place decides whether to print it for people or for programs.

mod accept_proposal;
mod add;
mod adopted_entries;
mod anchors;
mod api_path;
mod archive;
pub mod backup;
mod briefing;
pub mod check;
pub mod check_gates;
mod commands;
mod commit_norms;
pub mod completions;
mod compound;
pub mod config;
pub mod connect;
mod decapod_commands;
mod diff_query;
mod edit;
mod edit_conflict;
pub mod editor;
mod entry_audit_reports;
mod entry_copy;
mod entry_draft;
mod entry_fields;
mod entry_links;
pub mod entry_schema;
pub mod eval;
pub mod event_stream;
mod export;
mod export_stream;
mod feedback;
mod finding;
mod foreign;
mod forget;
mod friction;
pub mod front_matter;
pub mod generate;
mod hash_predicate;
pub mod help;
mod history;
pub mod home_and_store_check;
pub mod hook_arguments;
pub mod identity;
mod import;
mod inbox;
mod insights;
mod invite;
mod join;
pub mod json_error;
mod knowledge_reflection;
mod limits_review;
mod maintain;
mod mark;
pub mod mcp;
mod peer;
pub mod person_key;
mod pipe_gate;
mod playbook;
mod promotion_ledger;
pub mod read_limited;
mod render_entry;
mod sanitize;
mod search;
pub mod service_unit;
mod serving_log;
mod show;
mod solved_problem;
mod stop;
mod task;
mod task_outcomes;
mod timestamp;
mod ui;
pub mod usage_report;
mod verb_context;
mod wait_progress;
mod workspace;

pub use commands::Verb;
pub use editor::Editor;
pub use sanitize::harmless;
pub use verb_context::{ConfirmPrompt, VerbContext};

use backup::BackupVerb;
use clap::{Args, Parser};
use klnode_client::{Client, ClientError};
use sanitize::harmless_json;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use usage_report::StatusReport;
use wait_progress::SharedProgress;

/// klnode: shared memory for coding agents and people, judged by use and synced peer to peer.
///
/// `klnode` alone starts the node in the foreground; it needs no configuration. Most other verbs
/// talk to the running node. Start with `klnode add`, `klnode search` and `klnode connect`; `klnode
/// VERB --help` explains a verb, with an example.
#[derive(Debug, Parser)]
#[command(name = "klnode", version, max_term_width = 100)]
pub struct Cli {
    /// The verb; `None` starts the node.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of every verb.
    #[command(flatten)]
    pub global: Global,
}

/// Flags that every verb takes.
#[derive(Debug, Args)]
pub struct Global {
    /// The folder of this node [default: KLNODE_HOME, else klnode in the XDG data folder].
    // clap does not read the variable: it would print the flag as given in every usage error.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub home: Option<PathBuf>,
    /// The configuration file [default: klnode.toml in the home, if it exists].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set one configuration key, overriding file and environment. A running node keeps its own.
    ///
    /// Example: klnode --set trust.hop_max=2
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The log level: off, error, warn, info, debug or trace. `RUST_LOG` overrides it.
    ///
    /// At info, the libraries of klnode log warnings only.
    #[arg(long, global = true, value_name = "LEVEL", value_parser = log_level)]
    pub log: Option<String>,
    /// Read the passphrase of the person's key from a file instead of the terminal.
    ///
    /// A program that can read the file can act as you, so keep it away from programs that you run.
    #[arg(long, global = true, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    pub json: bool,
}

/// Parses a log level or a directive of `RUST_LOG`. Any other word would be read as the name of a
/// module, and would silence all others.
fn log_level(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_known = |part: &str| part.contains('=') || LEVELS.contains(&part);
    match text.split(',').all(is_known) {
        true => Ok(text.to_owned()),
        false => Err(format!("it must be one of {}", LEVELS.join(", "))),
    }
}

/// Parses a finite number; JSON has no others.
fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "it must be a number, such as 0.5".to_owned())
}

/// A path for the settings of another program, which must be UTF-8: otherwise the program would
/// start a node at another path.
fn as_text(path: &Path) -> Result<&str, VerbError> {
    path.to_str().ok_or_else(|| {
        let path = path.display();
        VerbError::Input(format!("Cannot give {path} to another program: it is not UTF-8."))
    })
}

/// The answer of a verb, for programs and for people.
pub struct Reply {
    json: Result<String, serde_json::Error>,
    text: String,
    notes: String,
    remark: String,
    exit_code: u8,
}

/// The reader of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputReader {
    /// A person at a terminal.
    Person,
    /// A program, through a pipe or a file.
    Pipe,
}

impl Reply {
    /// A reply without control characters, since parts of it may be written by peers.
    pub fn new(json: &impl Serialize, text: String) -> Self {
        Self::styled(json, harmless(text))
    }

    /// A reply with terminal styles. The caller must have removed control characters.
    fn styled(json: &impl Serialize, text: String) -> Self {
        let json = serde_json::to_string_pretty(json).map(harmless_json);
        Self { json, text, notes: String::new(), remark: String::new(), exit_code: 0 }
    }

    /// An empty reply, for output that was already printed piece by piece.
    fn nothing() -> Self {
        let (text, notes, remark) = (String::new(), String::new(), String::new());
        Self { json: Ok(String::new()), text, notes, remark, exit_code: 0 }
    }

    /// Adds notes for standard error.
    fn with_notes(mut self, notes: String) -> Self {
        self.notes = harmless(notes);
        self
    }

    /// Adds a remark for people. Programs find the same fact in the JSON form, and it does not
    /// explain the exit code.
    pub fn with_remark(mut self, remark: String) -> Self {
        self.remark = harmless(remark);
        self
    }

    /// Sets the exit code.
    fn with_exit_code(mut self, exit_code: u8) -> Self {
        self.exit_code = exit_code;
        self
    }

    /// The notes for standard error.
    pub fn notes(&self) -> &str {
        &self.notes
    }

    /// The remark for people only.
    pub fn remark(&self) -> &str {
        &self.remark
    }

    /// The exit code of the program.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Puts the JSON form under a key of an object.
    fn keyed(mut self, key: &str) -> Self {
        self.json = self.json.and_then(|json| {
            let inner: Value = serde_json::from_str(&json)?;
            let mut outer = serde_json::Map::new();
            outer.insert(key.to_owned(), inner);
            serde_json::to_string_pretty(&outer).map(harmless_json)
        });
        self
    }

    /// Adds a heading line above the text.
    pub fn headed(mut self, heading: &str) -> Self {
        self.text.insert_str(0, &format!("{heading}\n"));
        self
    }

    /// Joins two replies whose JSON forms are objects. The larger exit code wins.
    pub fn and(self, other: Self) -> Self {
        let joined = || {
            let mut all: serde_json::Map<String, Value> = serde_json::from_str(&self.json?)?;
            let more: serde_json::Map<String, Value> = serde_json::from_str(&other.json?)?;
            all.extend(more);
            serde_json::to_string_pretty(&all).map(harmless_json)
        };
        Self {
            json: joined(),
            text: self.text + &other.text,
            notes: self.notes + &other.notes,
            remark: self.remark + &other.remark,
            exit_code: self.exit_code.max(other.exit_code),
        }
    }

    /// The text for standard output, in the form that was asked for.
    pub fn render(self, global: &Global) -> String {
        match self.json {
            Ok(json) if global.json && !json.is_empty() => json + "\n",
            _ => self.text,
        }
    }
}

/// The reason why a verb failed. Messages are whole sentences.
#[derive(Debug, thiserror::Error)]
pub enum VerbError {
    /// The node refused, or no node answered.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// An argument or an input file is wrong.
    #[error("{0}")]
    Input(String),
    /// An operation on this machine failed.
    #[error("{0}")]
    Failed(String),
    /// The operation is impossible while a node runs.
    #[error("{0}")]
    Running(String),
    /// A restore would lose records, and no terminal can confirm it. The loss, as a sentence.
    #[error("{0} The restore needs a confirmation.")]
    Unconfirmed(String),
    /// The operation needs a confirmation, and no terminal can give it.
    #[error("{0}")]
    NeedsConfirmation(String),
    /// The person at the terminal declined. The consequence, as a sentence.
    #[error("{0}")]
    Declined(&'static str),
    /// The person's key could not be created or opened.
    #[error("{0}")]
    Person(#[from] klnode_crdt::encrypted_key::Error),
    /// There is no person's key.
    #[error("{0}")]
    NoPerson(String),
    /// A passphrase is needed, and there is no terminal.
    #[error("Cannot open the person's key: there is no terminal to ask for its passphrase.")]
    NoTerminal,
    /// A signal interrupted the command. The consequence, as a sentence.
    #[error("The command was interrupted. {0}")]
    Interrupted(String),
    /// Another error, with a sentence for the operator.
    #[error("{error} {note}")]
    Noted { error: Box<VerbError>, note: String },
}

impl VerbError {
    /// Adds a sentence for the operator.
    fn with_note(self, note: String) -> Self {
        Self::Noted { error: Box::new(self), note }
    }
}

/// Receives the progress of an operation, and shows it to a person if it takes long.
pub trait ProgressSink {
    /// Reports `done` units, of `total` if that is known.
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>);

    /// Removes the progress line before other output, and restarts the delay.
    fn clear(&mut self);

    /// Prints lines at once, above the progress line. Returns false if a program reads the output;
    /// then the reply must contain them.
    fn announce(&mut self, lines: &str) -> bool {
        let _ = lines;
        false
    }
}

/// Runs a verb of the running node, with "waiting for the node" as progress until the verb reports
/// its own.
pub async fn run(
    verb: Verb,
    client: &Client,
    context: VerbContext<'_>,
) -> Result<Reply, VerbError> {
    // An import may wait for standard input rather than for the node.
    if matches!(verb, Verb::Import(_)) {
        return dispatch(verb, client, context).await;
    }
    let VerbContext { terminal, ask, editor, program, home, progress } = context;
    let shared = &SharedProgress::new(progress);
    let mut asking = ask.map(|ask| move |question: &str| shared.asking(|| ask(question)));
    let ask: ConfirmPrompt<'_> = match &mut asking {
        Some(ask) => Some(ask),
        None => None,
    };
    let mut opening = editor.map(|Editor { open, folder }| {
        let open = move |file: &Path| shared.asking(|| open(file));
        (open, folder)
    });
    let editor = opening.as_mut().map(|(open, folder)| Editor { open, folder: folder.clone() });
    let mut told = shared;
    let context = VerbContext { terminal, ask, editor, program, home, progress: &mut told };
    shared.waiting("waiting for the node", dispatch(verb, client, context)).await
}

async fn dispatch(
    verb: Verb,
    client: &Client,
    context: VerbContext<'_>,
) -> Result<Reply, VerbError> {
    let VerbContext { terminal, ask, editor, program, home, progress } = context;
    match verb {
        Verb::Serve
        | Verb::Config(_)
        | Verb::Connect(_)
        | Verb::Hook(_)
        | Verb::Check(check::Args { measurement: Some(_), .. })
        | Verb::Generate(_)
        | Verb::Schema(_)
        | Verb::Identity(_)
        | Verb::Mcp(_) => {
            unreachable!("the application runs these itself")
        }
        Verb::Status { report: None } => show::status(client).await,
        Verb::Status { report: Some(StatusReport::Usage(usage)) } => {
            usage.run(client, terminal).await
        }
        Verb::Stop => stop::stop(client, home, progress).await,
        Verb::Ui(args) => args.run(client, terminal, home, progress).await,
        Verb::Add(add) => add.run(client, editor).await,
        Verb::Compound(args) => args.add().run(client, editor).await,
        Verb::Edit(edit) => edit.run(client, editor, ask).await,
        Verb::Archive(archive) => archive.run(client).await,
        Verb::Forget(forget) => forget.run(client, ask, progress).await,
        Verb::Search(search) => search.run(client, terminal).await,
        Verb::Briefing(briefing) => briefing.run(client).await,
        Verb::Insights(verb) => verb.run(client).await,
        Verb::Show(show) => show.run(client, terminal).await,
        Verb::Links(links) => links.run(client).await,
        Verb::List(list) => list.run(client, terminal, &program).await,
        Verb::Playbook(verb) => verb.run(client, editor, ask).await,
        Verb::Task(verb) => verb.run(client).await,
        Verb::Feedback(feedback) => feedback.run(client).await,
        Verb::Mark(mark) => mark.run(client).await,
        Verb::Peer(verb) => verb.run(client, ask, progress).await,
        Verb::Workspace(verb) => verb.run(client).await,
        Verb::Inbox(verb) => verb.run(client, ask).await,
        Verb::Check(check) => check.run(client, progress).await,
        Verb::Knowledge(verb) => verb.run(client, terminal, &program, progress).await,
        Verb::Maintain(args) => args.run(client, progress).await,
        Verb::Backup(BackupVerb::Create(create)) => create.run(client, progress).await,
        Verb::Backup(BackupVerb::Verify { .. } | BackupVerb::Restore(_)) => {
            unreachable!("these need no running node")
        }
        Verb::Export(export) => export.run(client, progress).await,
        Verb::Import(import) => import.run(client, ask, progress).await,
    }
}
