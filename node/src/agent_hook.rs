//! Runs a hook: reads the event, asks the node, and prints nothing if the deadline passes.
//!
//! All work happens on a thread that is abandoned at the deadline, so neither an open pipe nor a
//! silent node delays the agent.

use super::home::{Home, in_environment};
use super::node::now;
use super::{ProgramError, load_config, runtime};
use klnode_cli::hook_arguments::{self, Args, QuickHook};
use klnode_client::Client;
use klnode_integrations::hooks::{HookCall, HookEvent, HookInput, HookReply, log, output};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Instant, SystemTime};

/// The most bytes that are read from standard input.
const INPUT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Runs a hook that was called in the usual form, without parsing by clap; `None` for any other
/// words.
pub(super) fn quick(started: Instant) -> Option<ExitCode> {
    let QuickHook { args, home, config } = hook_arguments::quick(std::env::args_os().skip(1))?;
    let home = home.or_else(in_environment);
    run(&args, home, config.as_deref(), &[], started);
    Some(ExitCode::SUCCESS)
}

/// Runs a hook to its end or to its deadline.
pub(super) fn run(
    args: &Args,
    home: Option<PathBuf>,
    config_file: Option<&Path>,
    set: &[String],
    started: Instant,
) {
    // Errors go to the log of the hook only.
    std::panic::set_hook(Box::new(|_| {}));
    let (Some(event), Ok(home)) = (args.event(), Home::resolve(home)) else { return };
    let layout = home.layout();
    let note = |what: &str| log::note(&layout, now().as_millis(), event, started.elapsed(), what);
    let layered = match load_config::read(&home, config_file, set) {
        Ok(layered) => layered,
        Err(wrong) => {
            note(&on_one_line(&wrong));
            // A running node still serves the agent.
            let Some(known) = load_config::without_file(&home, config_file, set) else { return };
            known
        }
    };
    let config = layered.config();
    let call = HookCall {
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
        // After the deadline the receiver is gone.
        let _ = done.send(work(&call, &client));
    });
    let left = config.hooks.timeout.get().saturating_sub(started.elapsed());
    match waiting.recv_timeout(left) {
        Ok((name, said)) => {
            // If the client has closed the pipe, the answer was not delivered.
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

fn work(call: &HookCall, client: &Client) -> (String, HookReply) {
    let name = call.event.client_name().to_owned();
    let mut bytes = Vec::new();
    if io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut bytes).is_err() {
        return (name, HookReply::nothing("standard input cannot be read"));
    }
    let Some(input) = HookInput::read(&bytes) else {
        return (name, HookReply::nothing("Standard input is not a JSON object."));
    };
    let Ok(runtime) = runtime() else { return (name, HookReply::nothing("the hook cannot start")) };
    let said = runtime.block_on(call.run(client, &input));
    // Clients use two names for tool events and expect their own name back.
    let is_tool = |of: &String| call.event == HookEvent::ToolError && of.starts_with("PostToolUse");
    (input.event_name.filter(is_tool).unwrap_or(name), said)
}

/// The message of an error on one line, for the log.
fn on_one_line(wrong: &ProgramError) -> String {
    wrong.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
