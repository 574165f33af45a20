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
mod briefing;
mod change;
pub mod config;
pub mod connect;
pub mod doctor;
mod entry;
pub mod eval;
mod export;
pub mod failure;
mod finding;
pub mod front_matter;
mod harmless;
pub mod help;
mod history;
pub mod hook;
pub mod identity;
mod import;
mod invite;
mod maintain;
pub mod mcp;
mod peer;
pub mod person;
mod promote;
mod quarantine;
mod read;
mod reset;
pub mod restore;
mod search;
mod served;
pub mod service;
mod stop;
mod supersede;
mod task;
pub mod usage;
pub mod watch;
mod when;
mod workspace;

pub use around::{Around, Ask};
pub use harmless::harmless;

use crate::api::{Client, ClientError};
use crate::store::backup::{BackupError, RestoreError};
use clap::{Args, Parser, Subcommand};
use harmless::harmless_json;
use serde::Serialize;
use std::path::PathBuf;

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

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start the node in the foreground (the same as `klnode` alone).
    ///
    /// Example: klnode serve --home ~/second
    Serve,
    /// Show what a node started like this would use, and where each value comes from.
    ///
    /// A node that runs keeps what it was started with. A value comes from the defaults, over them
    /// the file, over it the environment, over it `--set`. A variable is KLNODE, the sections and
    /// the key in capitals, joined by two underscores: `KLNODE__TRUST__HOP_MAX=2`.
    ///
    /// Example: klnode config trust
    Config(config::Args),
    /// Print a script that completes verbs and flags in a shell.
    ///
    /// Example: klnode completions bash > ~/.local/share/bash-completion/completions/klnode
    Completions(help::Completions),
    /// Print the man page.
    ///
    /// Example: klnode man | man -l -
    Man,
    /// Ask the running node how it is.
    ///
    /// Example: klnode status --json
    Status,
    /// Stop the running node, and wait until it has.
    ///
    /// Example: klnode stop
    Stop,
    /// Write an entry, from flags, or from Markdown or JSON in a file or on standard input.
    ///
    /// Example: klnode add --title "Check ctx.Err() after upstream calls" --content "Auth
    /// middleware swallows cancellation." --tag auth --evidence commit:1a2b3c4
    Add(add::Add),
    /// Show one entry, by id, code or an unambiguous beginning of the code.
    ///
    /// Example: klnode show L-7F3K
    Show(read::Show),
    /// List what the node holds.
    ///
    /// Example: klnode list -n 20
    List(read::List),
    /// Ask for knowledge: ranked, labelled, and nothing where nothing is relevant.
    ///
    /// Example: klnode search "context cancelled in auth middleware" --explain
    Search(search::Args),
    /// Tell what of a workspace matters now: verified, contested, stale, new from peers, open tasks.
    ///
    /// Example: klnode briefing team --budget 400
    Briefing(briefing::Args),
    /// Show what answers cost and what they were good for: by caller, author or peer.
    ///
    /// Example: klnode usage --since 30d --by author
    Usage(usage::Args),
    /// List what was served last: to whom, to which question; or who was given one entry.
    ///
    /// Example: klnode served L-7F3K
    Served(served::Args),
    /// Check what entries depend on against a checkout: for CI, and after a change.
    ///
    /// Example: klnode anchors check
    #[command(subcommand)]
    Anchors(anchors::AnchorsVerb),
    /// Show what was said about an entry: when, by whom, and on whose behalf.
    ///
    /// Example: klnode history L-7F3K
    History(history::Args),
    /// Print a line for everything that comes in, until Ctrl-C.
    ///
    /// Example: klnode watch --since 0
    Watch(watch::Watch),
    /// Count an observation: the entry helped, or it misled.
    ///
    /// Example: klnode observe L-7F3K --success
    Observe(change::Observe),
    /// Bracket a piece of work: what was served in it is known, and its outcome counts.
    ///
    /// Example: klnode task begin --agent reviewer --goal "Review the auth middleware"
    #[command(subcommand)]
    Task(task::TaskVerb),
    /// Measure how good the answers are, on a labelled set.
    ///
    /// Example: klnode eval queries.jsonl --compare
    Eval(eval::Args),
    /// Say that an entry was of help, or that it did harm.
    ///
    /// Example: klnode feedback L-7F3K --helpful
    Feedback(change::Feedback),
    /// Say that an entry still holds.
    ///
    /// Outside a task, and in one that was served it, it is counted apart: it may be an echo. With
    /// your own key (`--as-person`) it is evidence anywhere.
    ///
    /// Example: klnode confirm L-7F3K --task 01a0c4506c00beeb8da1658eec67f893
    Confirm(change::Confirm),
    /// Have what this node counted of an entry count no longer.
    ///
    /// For what many observations left undecided. Refused, with the numbers, for anything else.
    ///
    /// Example: klnode reset L-7F3K
    Reset(change::One),
    /// Change an entry.
    ///
    /// Example: klnode edit L-7F3K --title "Check ctx.Err()" --tag go
    Edit(change::Edit),
    /// Put an entry away, or a whole thread: kept whole, not served.
    ///
    /// Example: klnode archive --thread fix-login
    Archive(archive::Archive),
    /// Bring an archived entry, or a whole thread, back.
    ///
    /// Example: klnode unarchive L-7F3K
    Unarchive(archive::Archive),
    /// Make a new entry of one that is there: out of its thread, or in another workspace.
    ///
    /// The text goes along, with tags, anchors, verify steps and citations; what was observed stays
    /// with the old entry, to which the new one leads.
    ///
    /// Example: klnode promote L-7F3K --to team
    Promote(promote::Promote),
    /// Say that another entry takes an entry's place: it is shown below it, and says so.
    ///
    /// Example: klnode supersede L-7F3K --by L-9Q2M
    Supersede(supersede::Supersede),
    /// Take what somebody else proposes for an entry as your own word; `show` lists proposals.
    ///
    /// Example: klnode accept L-7F3K --from alice --what title
    Accept(accept::Accept),
    /// Take back what this node said about an entry. Its text is erased wherever this arrives.
    ///
    /// Asks first. Where there is no terminal the whole code is needed, or `--yes`.
    ///
    /// Example: klnode retract L-7F3KQ2MX
    Retract(change::Retract),
    /// Forget an entry for good, here and wherever this arrives.
    ///
    /// Asks first. Where there is no terminal the whole code is needed, or `--yes`.
    ///
    /// Example: klnode forget L-7F3KQ2MX --now
    Forget(change::Forget),
    /// Rank an entry up, on this node alone.
    ///
    /// Example: klnode pin L-7F3K
    Pin(change::Mark),
    /// Hide an entry, on this node alone.
    ///
    /// Example: klnode mute L-7F3K --undo
    Mute(change::Mark),
    /// Hold an entry to be wrong, on this node alone.
    ///
    /// Example: klnode invalidate L-7F3K
    Invalidate(change::Mark),
    /// Put a note on an entry, on this node alone; an empty note removes it.
    ///
    /// Example: klnode annotate L-7F3K "see the incident of March"
    Annotate(change::Note),
    /// Make a ticket with which another node may pair with this one.
    ///
    /// Example: klnode invite --mine
    Invite(invite::InviteArgs),
    /// Pair with another node, by its ticket or its address.
    ///
    /// Example: klnode join klnode1qaz…
    Join(invite::JoinArgs),
    /// Look at other nodes, and decide what they may have.
    ///
    /// Example: klnode peer list
    #[command(subcommand)]
    Peer(peer::PeerVerb),
    /// Replicate now, and say whether both sides hold the same. Ends with 1 if not.
    ///
    /// Example: klnode sync
    Sync(peer::SyncArgs),
    /// Look after shared workspaces.
    ///
    /// Example: klnode workspace list
    #[command(subcommand)]
    Workspace(workspace::WorkspaceVerb),
    /// Look after the key of the person behind this node.
    ///
    /// Where there is one, whatever opens the node to others needs its passphrase: a program that
    /// runs as you cannot do it.
    ///
    /// Example: klnode person new
    #[command(subcommand)]
    Person(person::PersonVerb),
    /// Look at what peers brought and the scan holds back, and decide about it.
    ///
    /// What waits is neither shown nor passed on. Where there is a person's key, deciding needs its
    /// passphrase.
    ///
    /// Example: klnode quarantine list
    #[command(subcommand)]
    Quarantine(quarantine::QuarantineVerb),
    /// Look after the store now: duplicates, contradictions, pairs, stale entries.
    ///
    /// The node does this by itself when enough has changed. What it did can be listed and undone.
    ///
    /// Example: klnode maintain --dry-run duplicates
    Maintain(maintain::Args),
    /// Write every entry to a file, as lines of JSON with the signed records.
    ///
    /// The file holds everything, `local` and the tombstones of what was forgotten included; it is
    /// open to you alone. `import` takes it in again, here or elsewhere, record by record.
    ///
    /// Example: klnode export knowledge.jsonl
    Export(export::Export),
    /// Take in a file: one that `export` wrote, or any lines of JSON with a title and a content.
    ///
    /// What is taken in is told apart from what is known already, so a file can be imported again:
    /// after it has grown, or after something went wrong. A plain line is an entry of this node;
    /// it is called by its `key` or `id`, else by its text, and without `evidence` it cites itself.
    ///
    /// Example: klnode import notes.jsonl --dry-run
    ///
    /// A plain line: {"title": "Check ctx.Err()", "content": "Cancellation is swallowed.",
    /// "type": "lesson", "tags": ["go"], "evidence": ["commit:1a2b3c4"], "key": "note-17"}
    Import(import::Import),
    /// Serve coding agents over MCP, on standard input and output: tools, resources and prompts.
    ///
    /// A client of the running node. Without one it stays up and says so to every call.
    ///
    /// Example: klnode mcp --start
    Mcp(mcp::Args),
    /// Have the running node write a backup: its whole store and its key, in one file.
    ///
    /// The node goes on meanwhile. The file is open to you alone; whoever has it can be this node,
    /// unless the key is left out.
    ///
    /// Example: klnode backup /mnt/backup/klnode.backup
    Backup(backup::Args),
    /// Put a backup in the place of this home's store. No node may be running on it.
    ///
    /// The backup is verified first. What was forgotten here since it was made stays forgotten.
    /// The home keeps its key; one without a key takes the backup's.
    ///
    /// Example: klnode restore /mnt/backup/klnode.backup
    Restore(restore::Args),
    /// Decide whose node this home is, after its key was lost.
    ///
    /// Example: klnode identity adopt --yes
    #[command(subcommand)]
    Identity(identity::IdentityVerb),
    /// Check everything: the home, the store, every record. Ends with 1 if something is wrong.
    ///
    /// Example: klnode doctor --json
    Doctor,
    /// Print what keeps a node running: a systemd user unit, or a launchd agent.
    ///
    /// Example: klnode service --systemd
    Service(service::Args),
    /// Configure the programs that agents run in, so that they find this node.
    ///
    /// What would change is shown first; a copy of every file that is changed is kept beside it.
    /// Settings that cannot be read are left alone.
    ///
    /// Example: klnode connect claude-code --hooks
    Connect(connect::Args),
    /// What a client runs at certain moments: JSON on standard input, JSON or nothing in return.
    ///
    /// `klnode connect --hooks` sets it up. It never fails and never waits long; `hook.log` in the
    /// home says what it did.
    ///
    /// Example: echo '{"prompt": "context cancelled in auth"}' | klnode hook prompt
    Hook(hook::Args),
}

/// What a verb answers, for programs and for people.
pub struct Reply {
    json: Result<String, serde_json::Error>,
    text: String,
    notes: String,
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
        Self { json, text, notes: String::new(), exit_code: 0 }
    }

    /// Nothing: the answer was printed already, piece by piece.
    fn nothing() -> Self {
        Self { json: Ok(String::new()), text: String::new(), notes: String::new(), exit_code: 0 }
    }

    /// The same, with something to say beside the answer: on standard error.
    fn noting(mut self, notes: String) -> Self {
        self.notes = harmless(notes);
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
}

/// Hears how far something is, and shows it if somebody looks and it takes long.
pub trait Progress {
    /// So much is done, of so much if that is known.
    fn tell(&mut self, what: &'static str, done: u64, total: Option<u64>);

    /// Something else is about to be shown.
    fn clear(&mut self);
}

/// Carries out a verb of the running node.
pub async fn run(verb: Verb, client: &Client, around: Around<'_>) -> Result<Reply, VerbError> {
    let Around { terminal, ask, program, progress } = around;
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
        Verb::Stop => stop::stop(client).await,
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
        Verb::Edit(edit) => edit.run(client).await,
        Verb::Archive(what) => what.run(client, archive::Direction::Away).await,
        Verb::Unarchive(what) => what.run(client, archive::Direction::Back).await,
        Verb::Promote(promote) => promote.run(client).await,
        Verb::Supersede(supersede) => supersede.run(client).await,
        Verb::Accept(accept) => accept.run(client).await,
        Verb::Retract(retract) => retract.run(client, ask).await,
        Verb::Forget(forget) => forget.run(client, ask).await,
        Verb::Pin(mark) => mark.run(client, change::Marking::Pin).await,
        Verb::Mute(mark) => mark.run(client, change::Marking::Mute).await,
        Verb::Invalidate(mark) => mark.run(client, change::Marking::Invalidate).await,
        Verb::Annotate(note) => note.run(client).await,
        Verb::Invite(invite) => invite.run(client, ask).await,
        Verb::Join(join) => join.run(client).await,
        Verb::Peer(verb) => verb.run(client).await,
        Verb::Sync(sync) => sync.run(client).await,
        Verb::Workspace(verb) => verb.run(client).await,
        Verb::Quarantine(verb) => verb.run(client).await,
        Verb::Maintain(args) => args.run(client, progress).await,
        Verb::Export(export) => export.run(client, progress).await,
        Verb::Import(import) => import.run(client, progress).await,
    }
}
