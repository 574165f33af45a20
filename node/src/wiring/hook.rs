//! Runs a hook: reads what the client says, asks the node, and is silent if anything takes too long.
//!
//! All work is done on a thread of its own, which the deadline leaves behind: neither a pipe that
//! nobody closes nor a node that does not answer holds the agent up.

use super::home::{Home, in_environment};
use super::node::now;
use super::{Failure, runtime, settings};
use crate::api::Client;
use crate::cli::hook::{self, Args, Quick};
use crate::surface::hook::{Call, Event, Input, Said, log, output};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Instant, SystemTime};

/// More is not read of what a client says.
const INPUT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The words after the program's name.
fn words() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

/// A hook that was called in the usual way, done; nothing if something else was typed.
pub(super) fn quick(started: Instant) -> Option<ExitCode> {
    let Quick { args, home, config } = hook::quick(words())?;
    let home = home.or_else(in_environment);
    run(&args, home, config.as_deref(), &[], started);
    Some(ExitCode::SUCCESS)
}

/// How a mistake on the command line ends: clients take 2 from a hook as a reason to stop the agent.
pub(super) fn mistake(error: &clap::Error) -> ExitCode {
    // Nothing is left to tell if this cannot be told.
    let _ = error.print();
    let code = match error.exit_code() {
        0 => 0,
        _ if hook::is_meant(words()) => 1,
        code => u8::try_from(code).unwrap_or(1),
    };
    ExitCode::from(code)
}

/// Runs a hook to its end or to its deadline.
pub(super) fn run(
    args: &Args,
    home: Option<PathBuf>,
    config_file: Option<&Path>,
    set: &[String],
    started: Instant,
) {
    // Whatever goes wrong is told in the log.
    std::panic::set_hook(Box::new(|_| {}));
    let (Some(event), Ok(home)) = (args.event(), Home::resolve(home)) else { return };
    let layout = home.layout();
    let note = |what: &str| log::note(&layout, now().as_millis(), event, started.elapsed(), what);
    let layered = match settings::read(&home, config_file, set) {
        Ok(layered) => layered,
        Err(wrong) => {
            note(&on_one_line(&wrong));
            // The agent is served all the same by a node that runs.
            let Some(known) = settings::without_file(&home, config_file, set) else { return };
            known
        }
    };
    let config = layered.config();
    let call = Call {
        event,
        workspace: args.workspace.clone(),
        verdict: args.verdict(),
        briefing_tokens: config.hooks.briefing_tokens.get(),
        answer_tokens: config.hooks.answer_tokens.get(),
        layout: layout.clone(),
        now: SystemTime::now(),
    };
    let client = Client::new(&home.socket(config));
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody waits any more after the deadline.
        let _ = done.send(work(&call, &client));
    });
    let left = config.hooks.deadline.get().saturating_sub(started.elapsed());
    match waiting.recv_timeout(left) {
        Ok((name, said)) => {
            // A client that has gone away wants no answer.
            let written = io::stdout().lock().write_all(output(&name, &said).as_bytes());
            if written.is_ok() {
                said.remember(SystemTime::now());
            }
            note(&said.noted);
        }
        Err(mpsc::RecvTimeoutError::Timeout) => note("the deadline has passed"),
        Err(mpsc::RecvTimeoutError::Disconnected) => note("the hook failed"),
    }
}

fn work(call: &Call, client: &Client) -> (String, Said) {
    let name = call.event.client_name().to_owned();
    let mut bytes = Vec::new();
    if io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut bytes).is_err() {
        return (name, Said::nothing("standard input cannot be read"));
    }
    let Some(input) = Input::read(&bytes) else {
        return (name, Said::nothing("standard input is no JSON object"));
    };
    let Ok(runtime) = runtime() else { return (name, Said::nothing("the hook cannot start")) };
    let said = runtime.block_on(call.run(client, &input));
    // Tools are told of by two names, of which the client wants back its own.
    let is_tool = |of: &String| call.event == Event::ToolError && of.starts_with("PostToolUse");
    (input.event_name.filter(is_tool).unwrap_or(name), said)
}

/// What is wrong, on the one line that the log has for it.
fn on_one_line(wrong: &Failure) -> String {
    let told = format!("cannot {wrong}");
    told.split_whitespace().collect::<Vec<_>>().join(" ")
}
