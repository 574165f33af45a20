//! Where the parts meet the machine: environment, clock, signals, exit codes.
//!
//! Environment, wall clock, signals, terminal and exit codes are read here alone. Elsewhere only spans
//! are measured (`Instant`), and `add`, `import` and `export` use the standard streams.

mod connect;
mod editor;
mod embedder;
mod eval;
mod findings;
mod guarded;
mod home;
mod hook;
mod log;
mod mcp;
mod node;
mod offline;
mod person;
mod progress;
mod serve;
mod settings;
mod start_command;
mod upkeep;

use crate::api::{self, COMMAND_LINE, Client, ClientError};
use crate::cli::backup::BackupVerb;
use crate::cli::watch::{Lines, Watch};
use crate::cli::{self, Around, Cli, Editor, Global, Terminal, Verb, VerbError};
use crate::index::IndexError;
use crate::index::embed::EmbedError;
use crate::store;
use clap::Parser;
use home::{Home, HomeError};
use klnode_config::{Layered, Layers};
use progress::Bar;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tokio::runtime::Runtime;

/// Why the program ends without having done what was asked. Messages fit after "cannot".
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Home(#[from] HomeError),
    #[error("read {path}: {source}")]
    ConfigFile { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Config(#[from] klnode_config::ConfigError),
    #[error("show `{0}`: there is no such key or section")]
    NoSuchKey(String),
    #[error("{0}")]
    Verb(cli::VerbError),
    #[error("{failure}; {note}")]
    Noted { failure: Box<Failure>, note: String },
    #[error("{0}")]
    Serve(#[from] api::ServeError),
    #[error("{0}")]
    Open(#[from] store::OpenError),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{0}")]
    Embed(#[from] EmbedError),
    #[error("{0}")]
    Network(#[from] klnode_federation::net::NetError),
    #[error("print any more: nobody reads it")]
    Unread,
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
}

impl From<VerbError> for Failure {
    fn from(error: VerbError) -> Self {
        match error {
            VerbError::Noted { error, note } => {
                Self::Noted { failure: Box::new(Self::from(*error)), note }
            }
            error => Self::Verb(error),
        }
    }
}

impl Failure {
    /// Whether a running node would have helped.
    fn wants_node(&self) -> bool {
        let error = match self {
            Self::Noted { failure, .. } => return failure.wants_node(),
            Self::Verb(VerbError::Client(error)) => error,
            _ => return false,
        };
        matches!(error, ClientError::NoNode { .. } | ClientError::Ended | ClientError::Stopped)
    }

    /// What kind it is, for programs: as the node has said, else after the exit code.
    fn kind(&self) -> serde_json::Value {
        match self {
            Self::Noted { failure, .. } => failure.kind(),
            Self::Verb(VerbError::Client(ClientError::Refused(detail))) => {
                serde_json::json!(detail.kind)
            }
            _ => kind(self.way_out().0).into(),
        }
    }

    /// The one table from kinds to exit codes and ways out.
    fn way_out(&self) -> (u8, Option<&str>) {
        match self {
            Self::Noted { failure, .. } => failure.way_out(),
            Self::Verb(VerbError::Noted { .. }) => unreachable!("it was made a failure of its own"),
            Self::Verb(VerbError::Client(error)) => {
                let hint = match error {
                    ClientError::Refused(detail) => detail.hint.as_deref(),
                    ClientError::Silent { .. } => Some(
                        "was it stopped with Ctrl-Z? `fg` goes on; `klnode doctor` looks closer",
                    ),
                    ClientError::BrokenOff => {
                        Some("its log says why; `klnode doctor` looks closer")
                    }
                    // How to start a node depends on what was typed, and is added where that is known.
                    ClientError::NoNode { .. }
                    | ClientError::Ended
                    | ClientError::Stopped
                    | ClientError::Closed { .. }
                    | ClientError::Garbled(_) => None,
                };
                (error.exit_code(), hint)
            }
            Self::Verb(VerbError::Input(_)) => (2, None),
            Self::Verb(VerbError::Failed(_)) => (1, None),
            Self::Verb(VerbError::Running(_)) => (1, Some("stop it first")),
            Self::Verb(VerbError::Backup(error)) => offline::backup_way_out(error),
            Self::Verb(VerbError::Restore(error)) => offline::restore_way_out(error),
            Self::Verb(VerbError::Unconfirmed(_)) => {
                (1, Some("nothing was changed; --yes replaces it all the same"))
            }
            Self::Verb(VerbError::Unsaid(_)) => (1, Some("say it with --yes")),
            Self::Verb(VerbError::Declined(_)) => (1, None),
            Self::Verb(VerbError::NobodyToAsk) => {
                (4, Some("type it in a terminal, or name a file with --passphrase-file"))
            }
            Self::Verb(VerbError::NoPerson(_)) => (1, Some("`klnode person new` makes one")),
            Self::Verb(VerbError::Person(error)) => match error {
                klnode_crdt::person::Error::TooShort => (2, None),
                klnode_crdt::person::Error::Wrong => (4, None),
                klnode_crdt::person::Error::Newer(_) => (1, Some("upgrade klnode")),
                _ => (1, Some("put `person.key` back into the home from a copy")),
            },
            // As a shell says of what an interrupt has ended.
            Self::Verb(VerbError::Interrupted(_)) => (130, None),
            Self::Serve(api::ServeError::TooLong { .. }) => {
                (2, Some("choose a shorter --home, or set api.socket to a short absolute path"))
            }
            Self::Serve(api::ServeError::Io { .. }) => (1, Some("`klnode doctor` looks closer")),
            Self::Serve(_) => (1, None),
            Self::Network(_) => (1, Some("see `klnode config network.listen`")),
            Self::Home(error) => home::hint(error),
            Self::ConfigFile { .. } | Self::Config(_) => {
                (2, Some("`klnode config` lists every key, `klnode config KEY` says what it means"))
            }
            Self::NoSuchKey(_) => (1, Some("`klnode config` lists every key")),
            Self::Open(store::OpenError::InUse { .. }) => (1, Some(home::TAKEN)),
            Self::Open(store::OpenError::Newer { .. }) => (1, Some("upgrade klnode")),
            Self::Open(
                store::OpenError::Damaged { .. }
                | store::OpenError::Prepare { source: store::Error::Damaged { .. }, .. },
            ) => (1, Some("restore the file from a backup, or move it away to start anew")),
            Self::Index(_) => {
                (1, Some("delete `index` in the home; it is built again from the store"))
            }
            Self::Embed(_) => (2, Some("`klnode config embedder` shows what is set, and where")),
            Self::Open(store::OpenError::Io { .. }) => {
                (1, Some("`klnode doctor` says what is wrong with the home"))
            }
            Self::Open(_) | Self::Store(_) | Self::Unread | Self::System { .. } => (1, None),
        }
    }
}

/// What kind of failure an exit code stands for.
fn kind(exit_code: u8) -> &'static str {
    match exit_code {
        2 => "invalid",
        3 => "no_node",
        4 => "refused",
        130 => "interrupted",
        _ => "failed",
    }
}

/// The whole program.
pub fn main() -> ExitCode {
    let started = Instant::now();
    if let Some(code) = hook::quick(started) {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return hook::mistake(&error),
    };
    let Cli { verb, mut global } = cli;
    global.home = global.home.or_else(home::in_environment);
    let verb = verb.unwrap_or(Verb::Serve);
    // Nobody starts a node in order to stop it.
    let is_stop = matches!(verb, Verb::Stop);
    match run(verb, &global, started) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let (code, hint) = failure.way_out();
            let start = || format!("start one with `{}`", start_command::of(&global));
            let wants_node = failure.wants_node() && !is_stop;
            let hint = hint.map(str::to_owned).or_else(|| wants_node.then(start));
            let told = told(&failure, hint.as_deref(), &global);
            say(&told);
            ExitCode::from(code)
        }
    }
}

/// What is said of a failure: to people in words, to programs on one line.
fn told(failure: &Failure, hint: Option<&str>, global: &Global) -> String {
    // Who has just said no is told that it was heard: nothing went wrong.
    if let Failure::Verb(VerbError::Declined(what)) = failure {
        return format!("{what}\n");
    }
    let message = format!("cannot {failure}");
    if global.json {
        return cli::failure::line(failure.kind(), &message, hint);
    }
    let hint = hint.map(|hint| format!("  hint: {}\n", cli::harmless(hint)));
    format!("klnode: {}\n{}", cli::harmless(message), hint.unwrap_or_default())
}

/// Does what was asked, and returns how to end.
fn run(verb: Verb, global: &Global, started: Instant) -> Result<u8, Failure> {
    if let Verb::Hook(args) = &verb {
        hook::run(args, global.home.clone(), global.config.as_deref(), &global.set, started);
        return Ok(0);
    }
    if let Some(code) = homeless(&verb, global)? {
        return Ok(code);
    }
    let home = Home::resolve(global.home.clone())?;
    let layered = match settings::read(&home, global.config.as_deref(), &global.set) {
        Ok(layered) => layered,
        Err(wrong) => match misconfigured(&verb, &home, wrong, global)? {
            ControlFlow::Continue(layered) => layered,
            ControlFlow::Break(code) => return Ok(code),
        },
    };
    match verb {
        Verb::Serve => serve::serve(&home, layered.config(), global).map(|()| 0),
        Verb::Config(args) => {
            let reply = cli::config::show(&args, &layered);
            answer(reply.ok_or_else(|| Failure::NoSuchKey(args.key.unwrap_or_default()))?, global)
        }
        Verb::Mcp(args) => mcp::mcp(&args, &home, layered.config(), global).map(|()| 0),
        Verb::Service(args) => answer(offline::service(&args, &home, global)?, global),
        Verb::Connect(args) => {
            let reply = connect::connect(args, &home, layered.config(), global)?;
            answer(reply, global)
        }
        Verb::Restore(args) => answer(offline::restore(args, &home, global)?, global),
        Verb::Identity(verb) => {
            answer(offline::identity(&verb, &home, layered.config(), global)?, global)
        }
        Verb::Eval(args) => answer(eval::eval(args, &home, layered.config())?, global),
        Verb::Person(verb) => answer(person::run(&verb, &home, global)?, global),
        Verb::Doctor => answer(offline::doctor(&home, &layered, None)?, global),
        Verb::Watch(watch) => {
            let client = client(&layered, &home);
            let lines = if global.json { Lines::Json } else { Lines::Text };
            note_unused(global);
            runtime()?.block_on(follow(watch, &client, lines)).map(|()| 0)
        }
        verb => ask_node(verb, &layered, &home, global),
    }
}

/// Has the running node do what was asked, and returns how to end.
fn ask_node(
    mut verb: Verb,
    layered: &Layered,
    home: &Home,
    global: &Global,
) -> Result<u8, Failure> {
    if let Verb::Usage(args) = &mut verb {
        args.columns = columns();
    }
    let mut client = client(layered, home);
    if verb.needs_person()
        && let Some(key) = person::key(home, global)?
    {
        client = client.signing(key, node::now);
    }
    let terminal = if io::stdout().is_terminal() { Terminal::Person } else { Terminal::Pipe };
    let (mut bar, mut ask) = (Bar::of(global), offline::ask);
    let command = editor::command(global);
    let mut open = command.map(|command| move |file: &Path| editor::open(&command, file));
    let editor = open.as_mut().map(|open| Editor { open, folder: std::env::temp_dir() });
    let around = Around {
        terminal,
        ask: if offline::is_attended(global) { Some(&mut ask) } else { None },
        editor,
        program: start_command::program(global),
        home: home.path(),
        progress: &mut bar,
    };
    let reply = runtime()?.block_on(cli::run(verb, &client, around));
    drop(bar);
    let reply = reply?;
    note_unused(global);
    answer(reply, global)
}

/// Does what looks neither at a home nor at what is set, and returns how to end if it was that.
fn homeless(verb: &Verb, global: &Global) -> Result<Option<u8>, Failure> {
    let reply = match verb {
        Verb::Completions(args) => args.script(),
        Verb::Man => cli::help::man()?,
        Verb::Backup(cli::backup::Args { verb: Some(BackupVerb::Verify { file }), .. }) => {
            offline::verify(file)?
        }
        _ => return Ok(None),
    };
    answer(reply, global).map(Some)
}

/// The command line as a client of the running node.
fn client(layered: &Layered, home: &Home) -> Client {
    Client::new(&home.socket(layered.config())).named(COMMAND_LINE, None)
}

/// Says what was set for a verb of the running node, which keeps what it was started with. Where it
/// listens is for the verb to know, too. A program is told nothing beside an answer.
fn note_unused(global: &Global) {
    if global.json {
        return;
    }
    let keys =
        global.set.iter().filter_map(|assignment| Some(assignment.split_once('=')?.0.trim()));
    for key in keys.filter(|key| *key != "api.socket") {
        say(&cli::harmless(format!("klnode: --set {key} acts where the node is started\n")));
    }
}

/// How wide the terminal is; none where there is none, or where it does not say.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// What a verb of the running node needs: one thread.
fn runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|source| Failure::System { what: "start", source })
}

/// Prints what happens until the node stops, or until somebody has seen enough: that is how it is
/// meant to end.
async fn follow(watch: Watch, client: &Client, lines: Lines) -> Result<(), Failure> {
    let enough = serve::stop_signal()
        .map_err(|source| Failure::System { what: "listen for signals", source })?;
    let print = |line: &str| match io::stdout().lock().write_all(line.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Unread),
        Err(source) => Err(Failure::System { what: "print the answer", source }),
        Ok(()) => Ok(()),
    };
    tokio::select! {
        () = enough => Ok(()),
        ended = watch.run(client, lines, print) => match ended {
            Err(Failure::Unread) => Ok(()),
            ended => ended,
        },
    }
}

/// What follows from a mistake in what is set: how to end, or what to go by all the same. A typo in a
/// file keeps nobody from a node that runs well.
fn misconfigured(
    verb: &Verb,
    home: &Home,
    wrong: Failure,
    global: &Global,
) -> Result<ControlFlow<u8, Layered>, Failure> {
    let known = settings::without_file(home, global.config.as_deref(), &global.set);
    match (verb, known) {
        // What is wrong with it is part of their answer.
        (Verb::Doctor, known) => {
            let defaults = Layers::new().resolve()?;
            let reply = offline::doctor(home, &known.unwrap_or(defaults), Some(&wrong))?;
            answer(reply, global).map(ControlFlow::Break)
        }
        (Verb::Config(args), _) => {
            let reply = cli::config::show_defaults(args, &Layers::new().resolve()?);
            let no_key = || Failure::NoSuchKey(args.key.clone().unwrap_or_default());
            let reply = reply.ok_or_else(no_key)?;
            answer(reply, global)?;
            say(&told(&wrong, Some("correct it; shown are the defaults"), global));
            Ok(ControlFlow::Break(wrong.way_out().0))
        }
        // These do by it what nobody has meant.
        (Verb::Serve | Verb::Eval(_) | Verb::Identity(_), _) | (_, None) => Err(wrong),
        (_, Some(known)) => {
            // A program is told nothing beside an answer.
            if !global.json {
                let hint = "correct it: no node starts with it; here the defaults stand in for it";
                say(&told(&wrong, Some(hint), global));
            }
            Ok(ControlFlow::Continue(known))
        }
    }
}

/// Prints beside the answer.
fn say(text: &str) {
    // Nothing is left to tell if this cannot be told.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints an answer, and what there is to say beside it. To a program that is only what went wrong.
fn answer(reply: cli::Reply, global: &Global) -> Result<u8, Failure> {
    let (code, notes) = (reply.exit_code(), reply.notes().to_owned());
    let remark = reply.remark().to_owned();
    print(&reply.render(global))?;
    match (global.json, code) {
        (false, _) => say(&(notes + &remark)),
        (true, 1..) if !notes.is_empty() => {
            say(&cli::failure::line(kind(code), notes.trim_end(), None));
        }
        (true, _) => {}
    }
    Ok(code)
}

/// Prints to standard output. A reader that has gone away is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(Failure::System { what: "print the answer", source }),
        Ok(()) => Ok(()),
    }
}
