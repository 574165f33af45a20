//! The command line: what can be typed, and what is said in return.
//!
//! Most verbs are thin clients of the running node; `serve`, `config`, `completions`, `man`,
//! `restore`, `service`, `person`, `identity`, `connect`, `anchors hash` and `backup verify` need
//! none, nor does `eval` for a set that brings entries; `doctor`, `mcp` and `hook` take it as it is.
//! A verb returns a [`Reply`]; whether people or programs read it is decided in one place.

mod accept;
mod add;
mod anchors;
mod archive;
mod around;
pub mod backup;
pub mod bounded;
mod briefing;
mod change;
pub mod config;
pub mod connect;
pub mod doctor;
pub mod editor;
mod entry;
mod entry_draft;
pub mod eval;
mod export;
pub mod failure;
mod finding;
mod friction;
pub mod front_matter;
mod harmless;
pub mod help;
mod history;
pub mod hook;
pub mod identity;
mod import;
mod invite;
mod join;
mod maintain;
pub mod mcp;
mod peer;
pub mod person;
mod promote;
mod quarantine;
mod read;
mod reset;
mod resolve;
pub mod restore;
mod search;
mod served;
pub mod service;
mod stop;
mod supersede;
mod survey;
mod task;
pub mod usage;
mod verb;
mod waiting;
pub mod watch;
mod when;
mod workspace;
mod written;

pub use around::{Around, Ask};
pub use editor::Editor;
pub use harmless::harmless;
pub use verb::Verb;

use crate::api::{Client, ClientError};
use crate::store::backup::{BackupError, RestoreError};
use clap::{Args, Parser};
use harmless::harmless_json;
use serde::Serialize;
use std::path::{Path, PathBuf};
use waiting::Shared;

/// A node that remembers what coding agents learn, judges it, and shares it peer to peer.
///
/// `klnode` alone starts the node in the foreground; it needs no configuration. Most other verbs
/// talk to the running node. Begin with `klnode add`, `klnode search` and `klnode connect`; `klnode
/// VERB --help` has an example of each.
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
    /// [default: KLNODE_HOME, else klnode in the XDG data folder].
    // Not read by clap, which would show the flag as typed in every mistake.
    #[arg(long, global = true, value_name = "FOLDER")]
    pub home: Option<PathBuf>,
    /// The configuration file [default: klnode.toml in the home, if it is there].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Sets one configuration key, over file and environment; a running node keeps its own.
    ///
    /// Example: klnode --set trust.hop_max=2
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// How much to log: off, error, warn, info, debug or trace; `RUST_LOG` overrides it.
    ///
    /// At info, what klnode is built on only warns.
    #[arg(long, global = true, value_name = "LEVEL", value_parser = log_level)]
    pub log: Option<String>,
    /// Read the passphrase of the person's key from a file, instead of asking on the terminal.
    ///
    /// Whoever can read the file can be you: keep it where no program that runs as you looks.
    #[arg(long, global = true, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
    /// Answer in JSON, for programs.
    #[arg(long, global = true)]
    pub json: bool,
}

/// How much to log: a level, or what `RUST_LOG` may say. A word that is neither would be taken for the
/// name of a part, and silence all others.
fn log_level(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_known = |part: &str| part.contains('=') || LEVELS.contains(&part);
    match text.split(',').all(is_known) {
        true => Ok(text.to_owned()),
        false => Err(format!("it must be one of {}", LEVELS.join(", "))),
    }
}

/// A number that can be sent: neither infinite nor none at all.
fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "it must be a number, such as 0.5".to_owned())
}

/// A path that another program is to start this one with. What is no text would reach it as another
/// path, and a node would make its home there.
fn as_text(path: &Path) -> Result<&str, VerbError> {
    path.to_str().ok_or_else(|| {
        let path = path.display();
        VerbError::Input(format!("have another program use {path}: the name is no text"))
    })
}

/// What a verb answers, for programs and for people.
pub struct Reply {
    json: Result<String, serde_json::Error>,
    text: String,
    notes: String,
    remark: String,
    exit_code: u8,
}

/// Who reads what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// A person.
    Person,
    /// A pipe or a file.
    Pipe,
}

impl Reply {
    /// An answer. Whatever others wrote of it cannot harm the terminal it is shown on.
    fn new(json: &impl Serialize, text: String) -> Self {
        Self::styled(json, harmless(text))
    }

    /// The same with styles: whoever adds them has seen to it that nothing else in it is harmful.
    fn styled(json: &impl Serialize, text: String) -> Self {
        let json = serde_json::to_string_pretty(json).map(harmless_json);
        Self { json, text, notes: String::new(), remark: String::new(), exit_code: 0 }
    }

    /// Nothing: the answer was printed already, piece by piece.
    fn nothing() -> Self {
        let (text, notes, remark) = (String::new(), String::new(), String::new());
        Self { json: Ok(String::new()), text, notes, remark, exit_code: 0 }
    }

    /// The same, with something to say beside the answer: on standard error.
    fn noting(mut self, notes: String) -> Self {
        self.notes = harmless(notes);
        self
    }

    /// The same, with something that only people are told beside the answer: programs read it there, and
    /// it is no reason of how the program ends.
    fn remarking(mut self, remark: String) -> Self {
        self.remark = harmless(remark);
        self
    }

    /// The same answer, to something that did not go well.
    fn ending(mut self, exit_code: u8) -> Self {
        self.exit_code = exit_code;
        self
    }

    /// What to print beside the answer.
    pub fn notes(&self) -> &str {
        &self.notes
    }

    /// What to print beside it for people alone.
    pub fn remark(&self) -> &str {
        &self.remark
    }

    /// How the program ends.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// What to print.
    pub fn render(self, global: &Global) -> String {
        match self.json {
            Ok(json) if global.json && !json.is_empty() => json + "\n",
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
    /// It could not be done here.
    #[error("{0}")]
    Failed(String),
    /// It cannot be done while a node runs.
    #[error("{0}")]
    Running(String),
    /// A backup cannot be used.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// A backup cannot be put in place.
    #[error("{0}")]
    Restore(#[from] RestoreError),
    /// Nobody said yes.
    #[error("restore without a yes: {0}")]
    Unconfirmed(String),
    /// Nobody said yes.
    #[error("{0}")]
    Unsaid(String),
    /// Somebody was asked and said no. What that means, as a whole sentence.
    #[error("{0}")]
    Declined(&'static str),
    /// The person's key cannot be made or opened.
    #[error("{0}")]
    Person(#[from] klnode_crdt::person::Error),
    /// There is no person's key.
    #[error("{0}")]
    NoPerson(String),
    /// A passphrase is needed, and there is no terminal.
    #[error("open the person's key: there is no terminal to ask for its passphrase on")]
    NobodyToAsk,
    /// Told to stop.
    #[error("finish: it was interrupted; {0}")]
    Interrupted(String),
    /// Another error, with what the operator must know beside it.
    #[error("{error}; {note}")]
    Noted {
        /// The error.
        error: Box<VerbError>,
        /// What to know.
        note: String,
    },
}

impl VerbError {
    /// The same error, with something that the operator must know beside it.
    fn noting(self, note: String) -> Self {
        Self::Noted { error: Box::new(self), note }
    }
}

/// Hears how far something is, and shows it if somebody looks and it takes long.
pub trait Progress {
    /// So much is done, of so much if that is known.
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>);

    /// Something else is about to be shown, or to begin: it has its own time.
    fn clear(&mut self);

    /// Shows lines at once, and keeps them there. False if a program reads the answer, which then has to
    /// say the same.
    fn announce(&mut self, lines: &str) -> bool {
        let _ = lines;
        false
    }
}

/// Carries out a verb of the running node. Until it tells itself how far it is, it is told that the node
/// is waited for.
pub async fn run(verb: Verb, client: &Client, around: Around<'_>) -> Result<Reply, VerbError> {
    // An import may wait for its own input.
    if matches!(verb, Verb::Import(_)) {
        return carry_out(verb, client, around).await;
    }
    let Around { terminal, ask, editor, program, home, progress } = around;
    let shared = &Shared::new(progress);
    let mut asking = ask.map(|ask| move |question: &str| shared.asking(|| ask(question)));
    let ask: Ask<'_> = match &mut asking {
        Some(ask) => Some(ask),
        None => None,
    };
    let mut opening = editor.map(|Editor { open, folder }| {
        let open = move |file: &Path| shared.asking(|| open(file));
        (open, folder)
    });
    let editor = opening.as_mut().map(|(open, folder)| Editor { open, folder: folder.clone() });
    let mut told = shared;
    let around = Around { terminal, ask, editor, program, home, progress: &mut told };
    shared.waiting("waiting for the node", carry_out(verb, client, around)).await
}

async fn carry_out(verb: Verb, client: &Client, around: Around<'_>) -> Result<Reply, VerbError> {
    let Around { terminal, ask, editor, program, home, progress } = around;
    match verb {
        Verb::Serve
        | Verb::Completions(_)
        | Verb::Config(_)
        | Verb::Connect(_)
        | Verb::Hook(_)
        | Verb::Eval(_)
        | Verb::Identity(_)
        | Verb::Man
        | Verb::Mcp(_)
        | Verb::Person(_)
        | Verb::Restore(_)
        | Verb::Doctor
        | Verb::Service(_) => {
            unreachable!("these need no running node")
        }
        Verb::Watch(_) => unreachable!("this has no end to reply at"),
        Verb::Backup(args) => args.run(client, progress).await,
        Verb::Status => read::status(client).await,
        Verb::Stop => stop::stop(client, home, progress).await,
        Verb::Add(add) => add.run(client).await,
        Verb::Show(show) => show.run(client, terminal).await,
        Verb::List(list) => list.run(client, terminal, &program).await,
        Verb::Search(search) => search.run(client, terminal).await,
        Verb::Briefing(briefing) => briefing.run(client).await,
        Verb::Usage(usage) => usage.run(client, terminal).await,
        Verb::Served(served) => served.run(client).await,
        Verb::Anchors(verb) => verb.run(client).await,
        Verb::Feedback(feedback) => feedback.run(client).await,
        Verb::Confirm(confirm) => confirm.run(client).await,
        Verb::Task(verb) => verb.run(client).await,
        Verb::History(args) => args.run(client, terminal).await,
        Verb::Observe(observe) => observe.run(client).await,
        Verb::Reset(one) => reset::run(one, client).await,
        Verb::Edit(edit) => edit.run(client, editor).await,
        Verb::Resolve(resolve) => resolve.run(client, editor, ask).await,
        Verb::Archive(what) => what.run(client, archive::Direction::Away).await,
        Verb::Unarchive(what) => what.run(client, archive::Direction::Back).await,
        Verb::Promote(promote) => promote.run(client).await,
        Verb::Supersede(supersede) => supersede.run(client).await,
        Verb::Accept(accept) => accept.run(client).await,
        Verb::Retract(retract) => retract.run(client, ask).await,
        Verb::Forget(forget) => forget.run(client, ask, progress).await,
        Verb::Pin(mark) => mark.run(client, change::Marking::Pin).await,
        Verb::Mute(mark) => mark.run(client, change::Marking::Mute).await,
        Verb::Invalidate(mark) => mark.run(client, change::Marking::Invalidate).await,
        Verb::Annotate(note) => note.run(client).await,
        Verb::Invite(invite) => invite.run(client, ask).await,
        Verb::Join(join) => join.run(client, progress).await,
        Verb::Peer(verb) => verb.run(client).await,
        Verb::Sync(sync) => sync.run(client, progress).await,
        Verb::Workspace(verb) => verb.run(client).await,
        Verb::Quarantine(verb) => verb.run(client, ask).await,
        Verb::Maintain(args) => args.run(client, progress).await,
        Verb::Verify(args) => args.verify(client, progress).await,
        Verb::Drift(args) => args.drift(client, progress).await,
        Verb::Health(args) => args.health(client, progress).await,
        Verb::Friction(verb) => verb.run(client).await,
        Verb::Export(export) => export.run(client, progress).await,
        Verb::Import(import) => import.run(client, progress).await,
    }
}
