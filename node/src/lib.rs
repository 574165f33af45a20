//! The application: connects the parts of the node with the machine.
//!
//! Only this module reads the environment, the wall clock, signals and the terminal, and chooses
//! exit codes. Other modules only measure spans (`Instant`), and `add`, `import` and `export` use
//! the standard streams.

mod agent_hook;
mod backup_file;
mod connect_clients;
mod editor;
mod embedder_setup;
mod finding_worker;
mod home;
mod load_config;
mod logging;
mod maintenance_worker;
mod mcp;
mod memory_release;
mod node;
mod offline_commands;
mod passphrase;
mod progress_bar;
mod search_evaluation;
mod serve;
mod start_hint;
mod terminal_prompt;
mod thread_supervision;

pub use embedder_setup::built_in_transformer;

use home::{Home, HomeError};
use klnode_api_types::headers::COMMAND_LINE;
use klnode_cli::backup::BackupVerb;
use klnode_cli::check::{self, CheckPart, Measurement};
use klnode_cli::event_stream::{Watch, WatchFormat};
use klnode_cli::generate::GenerateVerb;
use klnode_cli::identity::IdentityVerb;
use klnode_cli::usage_report::StatusReport;
use klnode_cli::{self, Cli, Editor, Global, OutputReader, Reply, Verb, VerbContext, VerbError};
use klnode_client::{Client, ClientError};
use klnode_config::{Config, Layered, Layers};
use klnode_embed::EmbedError;
use klnode_index::IndexError;
use klnode_index::passage_vectors::PassageModel;
use klnode_store::backup::{BackupError, RestoreError};
use progress_bar::TerminalProgress;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tokio::runtime::Runtime;

/// The reason why the program ends without success. Messages are whole sentences.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("{0}")]
    Home(#[from] HomeError),
    #[error("Cannot read {path}: {source}.")]
    ConfigFile { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Config(#[from] klnode_config::ConfigError),
    #[error("There is no key or section `{0}`.")]
    NoSuchKey(String),
    #[error("{0}")]
    Verb(klnode_cli::VerbError),
    #[error("{failure} {note}")]
    Noted { failure: Box<ProgramError>, note: String },
    #[error("{0}")]
    Backup(#[from] BackupError),
    #[error("{0}")]
    Restore(#[from] RestoreError),
    #[error("{0}")]
    Serve(#[from] klnode_server::ServeError),
    #[error("{0}")]
    Open(#[from] klnode_store::OpenError),
    #[error("{0}")]
    Store(#[from] klnode_store::Error),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{0}")]
    Embed(#[from] EmbedError),
    #[error("{0}")]
    Network(#[from] klnode_federation::net::NetError),
    #[error("The reader of standard output has closed it.")]
    Unread,
    #[error("Cannot {what}: {source}.")]
    System { what: &'static str, source: io::Error },
}

impl From<VerbError> for ProgramError {
    fn from(error: VerbError) -> Self {
        match error {
            VerbError::Noted { error, note } => {
                Self::Noted { failure: Box::new(Self::from(*error)), note }
            }
            error => Self::Verb(error),
        }
    }
}

impl ProgramError {
    /// Whether the command would have succeeded with a running node.
    fn wants_node(&self) -> bool {
        let error = match self {
            Self::Noted { failure, .. } => return failure.wants_node(),
            Self::Verb(VerbError::Client(error)) => error,
            _ => return false,
        };
        matches!(error, ClientError::NoNode { .. } | ClientError::Ended | ClientError::Stopped)
    }

    /// The kind of the error for programs: the one the node gave, or one derived from the exit
    /// code.
    fn kind(&self) -> serde_json::Value {
        match self {
            Self::Noted { failure, .. } => failure.kind(),
            Self::Verb(VerbError::Client(ClientError::Refused(detail))) => {
                serde_json::json!(detail.kind)
            }
            _ => kind(self.exit_code_and_hint().0).into(),
        }
    }

    /// The one table of exit codes and hints.
    fn exit_code_and_hint(&self) -> (u8, Option<&str>) {
        match self {
            Self::Noted { failure, .. } => failure.exit_code_and_hint(),
            Self::Verb(VerbError::Noted { .. }) => unreachable!("it was made a failure of its own"),
            Self::Verb(VerbError::Client(error)) => (error.exit_code(), client_hint(error)),
            Self::Verb(VerbError::Input(_)) => (2, None),
            Self::Verb(VerbError::Failed(_)) => (1, None),
            Self::Verb(VerbError::Running(_)) => (1, Some("Run `klnode stop` first.")),
            Self::Backup(error) => backup_file::backup_exit_code_and_hint(error),
            Self::Restore(error) => backup_file::restore_exit_code_and_hint(error),
            Self::Verb(VerbError::Unconfirmed(_)) => {
                (1, Some("Nothing was changed; --yes replaces the store without asking."))
            }
            Self::Verb(VerbError::NeedsConfirmation(_)) => (1, Some("Confirm with --yes.")),
            Self::Verb(VerbError::Declined(_)) => (1, None),
            Self::Verb(VerbError::NoTerminal) => {
                (4, Some("Run it in a terminal, or name a file with --passphrase-file."))
            }
            Self::Verb(VerbError::NoPerson(_)) => (1, Some("`klnode identity new` creates one.")),
            Self::Verb(VerbError::Person(error)) => match error {
                klnode_crdt::encrypted_key::Error::TooShort => (2, None),
                klnode_crdt::encrypted_key::Error::Wrong => (
                    4,
                    Some(
                        "Try again. If the passphrase is right, restore `person.key` from a copy.",
                    ),
                ),
                klnode_crdt::encrypted_key::Error::Newer(_) => (1, Some("Upgrade klnode.")),
                _ => (1, Some("Restore `person.key` in the home from a copy.")),
            },
            // The exit code of a shell for a command that SIGINT ended.
            Self::Verb(VerbError::Interrupted(_)) => (130, None),
            Self::Serve(klnode_server::ServeError::TooLong { .. }) => {
                (2, Some("Choose a shorter --home, or set api.socket to a short absolute path."))
            }
            Self::Serve(klnode_server::ServeError::Io { .. }) => {
                (1, Some("`klnode check home` examines it."))
            }
            Self::Serve(_) => (1, None),
            Self::Network(_) => (1, Some("See `klnode config network.listen`.")),
            Self::Home(error) => home::hint(error),
            Self::ConfigFile { .. } | Self::Config(_) => {
                (2, Some("`klnode config` lists every key, and `klnode config KEY` explains one."))
            }
            Self::NoSuchKey(_) => (1, Some("`klnode config` lists every key.")),
            Self::Open(klnode_store::OpenError::InUse { .. }) => (1, Some(home::TAKEN)),
            Self::Open(klnode_store::OpenError::Newer { .. }) => (1, Some("Upgrade klnode.")),
            Self::Open(
                klnode_store::OpenError::Damaged { .. }
                | klnode_store::OpenError::Prepare {
                    source: klnode_store::Error::Damaged { .. },
                    ..
                },
            ) => (1, Some("Restore a backup, or move the file away to start with an empty store.")),
            Self::Index(_) => {
                (1, Some("Delete `index` in the home; the node rebuilds it from the store."))
            }
            Self::Embed(_) => {
                (2, Some("`klnode config embedder` shows the settings and their origin."))
            }
            Self::Open(klnode_store::OpenError::Io { .. }) => {
                (1, Some("`klnode check home` examines the home."))
            }
            Self::Open(_) | Self::Store(_) | Self::Unread | Self::System { .. } => (1, None),
        }
    }
}

/// The hint for a request without an answer. The command that starts a node depends on the flags, so
/// `main` adds that hint.
fn client_hint(error: &ClientError) -> Option<&str> {
    match error {
        ClientError::Refused(detail) => detail.hint.as_deref(),
        ClientError::Silent { .. } => {
            Some("If it was stopped with Ctrl-Z, `fg` resumes it; `klnode check home` examines it.")
        }
        ClientError::BrokenOff => {
            Some("Its log has the reason; `klnode check store` examines the store.")
        }
        ClientError::NoNode { .. }
        | ClientError::Ended
        | ClientError::Stopped
        | ClientError::Closed { .. }
        | ClientError::Garbled(_) => None,
    }
}

/// The kind of error for an exit code.
fn kind(exit_code: u8) -> &'static str {
    match exit_code {
        2 => "invalid",
        3 => "no_node",
        4 => "refused",
        130 => "interrupted",
        _ => "failed",
    }
}

/// The whole program. `transformer`: the model of `embedder.kind = "transformer"`.
pub fn main(transformer: Option<PassageModel>) -> ExitCode {
    let started = Instant::now();
    if let Some(model) = transformer {
        // The program calls this function once.
        let _ = node::TRANSFORMER.set(model);
    }
    if let Some(code) = agent_hook::quick(started) {
        return code;
    }
    let cli = match klnode_cli::help::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return usage_error(&error),
    };
    let Cli { verb, mut global } = cli;
    global.home = global.home.or_else(home::in_environment);
    let verb = verb.unwrap_or(Verb::Serve);
    // A hint to start a node makes no sense for `stop`.
    let is_stop = matches!(verb, Verb::Stop);
    match run(verb, &global, started) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let (code, hint) = failure.exit_code_and_hint();
            let start = || format!("Start one with `{}`.", start_hint::of(&global));
            let wants_node = failure.wants_node() && !is_stop;
            let hint = hint.map(str::to_owned).or_else(|| wants_node.then(start));
            say(&report(&failure, hint.as_deref(), &global));
            ExitCode::from(code)
        }
    }
}

/// Prints an error in the arguments, with a hint if a verb has been renamed. An agent program takes
/// exit code 2 of a hook as an order to stop the agent, so a mistyped hook ends with 1.
fn usage_error(error: &clap::Error) -> ExitCode {
    // If printing fails there is no other way to report it.
    let _ = error.print();
    if let Some(hint) = klnode_cli::help::renamed(error, std::env::args_os()) {
        say(&klnode_cli::harmless(format!("  hint: {hint}\n")));
    }
    let code = match error.exit_code() {
        0 => 0,
        _ if klnode_cli::hook_arguments::is_meant(std::env::args_os().skip(1)) => 1,
        code => u8::try_from(code).unwrap_or(1),
    };
    ExitCode::from(code)
}

/// The report of a failure: a sentence and a hint for people, one line of JSON for programs.
fn report(failure: &ProgramError, hint: Option<&str>, global: &Global) -> String {
    // A person who answered "no" gets a confirmation, not an error.
    if let ProgramError::Verb(VerbError::Declined(consequence)) = failure {
        return format!("{consequence}\n");
    }
    let message = failure.to_string();
    if global.json {
        return klnode_cli::json_error::line(failure.kind(), &message, hint);
    }
    let hint = hint.map(|hint| format!("  hint: {}\n", klnode_cli::harmless(hint)));
    format!("error: {}\n{}", klnode_cli::harmless(message), hint.unwrap_or_default())
}

/// Runs a verb and returns the exit code.
fn run(verb: Verb, global: &Global, started: Instant) -> Result<u8, ProgramError> {
    if let Verb::Hook(args) = &verb {
        agent_hook::run(args, global.home.clone(), global.config.as_deref(), &global.set, started);
        return Ok(0);
    }
    if let Some(code) = without_home(&verb, global)? {
        return Ok(code);
    }
    let home = Home::resolve(global.home.clone())?;
    let layered = match load_config::read(&home, global.config.as_deref(), &global.set) {
        Ok(layered) => layered,
        Err(wrong) => match misconfigured(&verb, &home, wrong, global)? {
            ControlFlow::Continue(layered) => layered,
            ControlFlow::Break(code) => return Ok(code),
        },
    };
    match verb {
        Verb::Serve => serve::serve(&home, &layered, global).map(|()| 0),
        Verb::Config(args) => {
            let reply = klnode_cli::config::show(&args, &layered);
            answer(
                reply.ok_or_else(|| ProgramError::NoSuchKey(args.key.unwrap_or_default()))?,
                global,
            )
        }
        Verb::Mcp(args) => mcp::mcp(&args, &home, layered.config(), global).map(|()| 0),
        Verb::Generate(GenerateVerb::Service(args)) => {
            answer(offline_commands::service(&args, &home, global)?, global)
        }
        Verb::Generate(_) => unreachable!("`without_home` has run the others"),
        Verb::Connect(args) => {
            let reply = connect_clients::connect(args, &home, layered.config(), global)?;
            answer(reply, global)
        }
        Verb::Backup(BackupVerb::Restore(args)) => {
            answer(backup_file::restore(&args, &home, global)?, global)
        }
        Verb::Identity(verb) => answer(identity(&verb, &home, layered.config(), global)?, global),
        Verb::Check(check::Args { measurement: Some(Measurement::Eval(args)), .. }) => {
            answer(search_evaluation::eval(args, &home, layered.config())?, global)
        }
        Verb::Check(args) => answer(check(args, &home, &layered, None, global)?, global),
        Verb::List(list) if list.watch().is_some() => {
            let (client, watch) = (client(&layered, &home), list.watch().unwrap_or_default());
            let lines = if global.json { WatchFormat::Json } else { WatchFormat::Text };
            note_unused(global);
            runtime()?.block_on(follow(watch, &client, lines)).map(|()| 0)
        }
        verb => {
            let reply = ask_node(verb, &layered, &home, global)?;
            note_unused(global);
            answer(reply, global)
        }
    }
}

/// Runs a verb of `klnode identity`, none of which needs a node.
fn identity(
    verb: &IdentityVerb,
    home: &Home,
    config: &Config,
    global: &Global,
) -> Result<Reply, ProgramError> {
    match verb {
        IdentityVerb::New => passphrase::create(home, global),
        IdentityVerb::Show => passphrase::show(home, global),
        IdentityVerb::Adopt(adopt) => offline_commands::adopt(adopt, home, config, global),
    }
}

/// Checks the parts that were named. Without a node, a check of everything is limited to home and
/// store; `wrong` is an error in the settings, which the check of the home reports.
fn check(
    args: check::Args,
    home: &Home,
    known: &Layered,
    wrong: Option<&ProgramError>,
    global: &Global,
) -> Result<Reply, ProgramError> {
    if !args.has(CheckPart::Home) && !args.has(CheckPart::Store) {
        let reply = ask_node(Verb::Check(args), known, home, global)?;
        note_unused(global);
        return Ok(reply);
    }
    let (examined, has_node) = offline_commands::examine(&args, home, known, wrong)?;
    if !args.asks_node() {
        return Ok(examined);
    }
    if args.is_whole() && !has_node {
        let remark = "No node is running, so rules, drift, limits and anchors were not checked.\n";
        return Ok(examined.with_remark(remark.to_owned()));
    }
    let examined = examined.headed(check::HOME_HEADING);
    Ok(examined.and(ask_node(Verb::Check(args), known, home, global)?))
}

/// Sends a verb to the running node and returns its answer.
fn ask_node(
    mut verb: Verb,
    layered: &Layered,
    home: &Home,
    global: &Global,
) -> Result<Reply, ProgramError> {
    if let Verb::Status { report: Some(StatusReport::Usage(args)) } = &mut verb {
        args.columns = columns();
    }
    let mut client = client(layered, home);
    if verb.needs_person()
        && let Some(key) = passphrase::key(home, global)?
    {
        client = client.signing(key, node::now);
    }
    let terminal =
        if io::stdout().is_terminal() { OutputReader::Person } else { OutputReader::Pipe };
    let (mut bar, mut ask) = (TerminalProgress::of(global), terminal_prompt::ask);
    let command = editor::command(global);
    let mut open = command.map(|command| move |file: &Path| editor::open(&command, file));
    let editor = open.as_mut().map(|open| Editor { open, folder: std::env::temp_dir() });
    let context = VerbContext {
        terminal,
        ask: if terminal_prompt::is_attended(global) { Some(&mut ask) } else { None },
        editor,
        program: start_hint::program(global),
        home: home.path(),
        progress: &mut bar,
    };
    let reply = runtime()?.block_on(klnode_cli::run(verb, &client, context));
    drop(bar);
    Ok(reply?)
}

/// Runs a verb that needs neither a home nor settings, and returns the exit code; `None` for any
/// other verb.
fn without_home(verb: &Verb, global: &Global) -> Result<Option<u8>, ProgramError> {
    let reply = match verb {
        Verb::Generate(verb) => verb.run()?,
        Verb::Schema(args) => Some(args.run()?),
        Verb::Backup(BackupVerb::Verify { file }) => Some(backup_file::verify(file)?),
        _ => None,
    };
    reply.map(|reply| answer(reply, global)).transpose()
}

/// The command line as a client of the running node.
fn client(layered: &Layered, home: &Home) -> Client {
    Client::new(&home.socket(layered.config())).named(COMMAND_LINE, None)
}

/// Warns about `--set` for a verb of the running node, which keeps the settings it was started
/// with. `api.socket` is the exception: the verb itself uses it. Programs get no warning.
fn note_unused(global: &Global) {
    if global.json {
        return;
    }
    let keys =
        global.set.iter().filter_map(|assignment| Some(assignment.split_once('=')?.0.trim()));
    for key in keys.filter(|key| *key != "api.socket") {
        say(&klnode_cli::harmless(format!(
            "--set {key} has no effect on a running node. Restart the node with it.\n"
        )));
    }
}

/// The width of the terminal; `None` if there is none or its width is unknown.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A runtime for a verb of the running node: one thread is enough.
fn runtime() -> Result<Runtime, ProgramError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|source| ProgramError::System { what: "start the runtime", source })
}

/// Prints events until the node stops, or until a signal or a closed pipe ends it, which is the
/// normal end.
async fn follow(watch: Watch, client: &Client, lines: WatchFormat) -> Result<(), ProgramError> {
    let stop = serve::stop_signal()
        .map_err(|source| ProgramError::System { what: "listen for signals", source })?;
    let print = |line: &str| match io::stdout().lock().write_all(line.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ProgramError::Unread),
        Err(source) => Err(ProgramError::System { what: "print the answer", source }),
        Ok(()) => Ok(()),
    };
    tokio::select! {
        () = stop => Ok(()),
        ended = watch.run(client, lines, print) => match ended {
            Err(ProgramError::Unread) => Ok(()),
            ended => ended,
        },
    }
}

/// Handles an error in the settings: an exit code, or settings without the faulty file. A typo in a
/// file must not lock the operator out of a running node.
fn misconfigured(
    verb: &Verb,
    home: &Home,
    wrong: ProgramError,
    global: &Global,
) -> Result<ControlFlow<u8, Layered>, ProgramError> {
    let known = load_config::without_file(home, global.config.as_deref(), &global.set);
    match (verb, known) {
        // The check of the home reports the error.
        (Verb::Check(args), known) if args.has(CheckPart::Home) => {
            let known = known.map_or_else(|| Layers::new().resolve(), Ok)?;
            let reply = check(args.clone(), home, &known, Some(&wrong), global)?;
            answer(reply, global).map(ControlFlow::Break)
        }
        (Verb::Config(args), _) => {
            let reply = klnode_cli::config::show_defaults(args, &Layers::new().resolve()?);
            let no_key = || ProgramError::NoSuchKey(args.key.clone().unwrap_or_default());
            let reply = reply.ok_or_else(no_key)?;
            answer(reply, global)?;
            say(&report(&wrong, Some("Correct it; these are the defaults."), global));
            Ok(ControlFlow::Break(wrong.exit_code_and_hint().0))
        }
        // These act on the settings, so they must not run with others than the operator wrote.
        (
            Verb::Serve
            | Verb::Check(check::Args { measurement: Some(_), .. })
            | Verb::Identity(IdentityVerb::Adopt(_)),
            _,
        )
        | (_, None) => Err(wrong),
        (_, Some(known)) => {
            // Programs get the answer alone.
            if !global.json {
                let hint =
                    "correct it: a node cannot start with it; this command uses the defaults";
                say(&report(&wrong, Some(hint), global));
            }
            Ok(ControlFlow::Continue(known))
        }
    }
}

/// Prints to standard error.
fn say(text: &str) {
    // If printing fails there is no other way to report it.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a reply, its notes and its remark. A program gets notes only if the exit code is not 0.
fn answer(reply: klnode_cli::Reply, global: &Global) -> Result<u8, ProgramError> {
    let (code, notes) = (reply.exit_code(), reply.notes().to_owned());
    let remark = reply.remark().to_owned();
    print(&reply.render(global))?;
    match (global.json, code) {
        (false, _) => say(&(notes + &remark)),
        (true, 1..) if !notes.is_empty() => {
            say(&klnode_cli::json_error::line(kind(code), notes.trim_end(), None));
        }
        (true, _) => {}
    }
    Ok(code)
}

/// Prints to standard output. A closed pipe is no failure.
fn print(text: &str) -> Result<(), ProgramError> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(ProgramError::System { what: "print the answer", source }),
        Ok(()) => Ok(()),
    }
}
