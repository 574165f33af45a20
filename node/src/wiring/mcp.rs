//! `klnode mcp`: what the server needs of the machine, among it a way to start a node.

use super::home::{Home, entropy};
use super::{Failure, print, runtime, serve, start_command};
use crate::api::{Client, Token};
use crate::cli::Global;
use crate::cli::mcp::{self, Args, Surroundings};
use crate::surface::mcp::node::{Node, Started, Starter};
use klnode_config::Config;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

pub(super) fn mcp(
    args: &Args,
    home: &Home,
    config: &Config,
    global: &Global,
) -> Result<(), Failure> {
    let client = Client::new(&home.socket(config));
    // Over HTTP the clients are elsewhere, and the process above this one is none of them.
    let client = if args.http.is_some() { client.relaying() } else { client };
    let may_start = args.start || config.mcp.start_node.is_on();
    let starter = may_start.then(|| starter(home, global)).transpose()?;
    let around =
        Surroundings { node: Node::new(client, starter, start_command::of(global)), entropy };
    let runtime = runtime()?;
    let ended = match args.http {
        None => runtime.block_on(mcp::on_stdio(around)),
        Some(address) => {
            home.prepare()?;
            let token = (Token::new(home.token()?), &*home.layout().token_file());
            runtime.block_on(async {
                let stop = serve::stop_signal()
                    .map_err(|source| Failure::System { what: "listen for signals", source })?;
                // Whoever cannot be told where it is served cannot be told that either.
                let say = |text: &str| drop(print(text));
                tokio::select! {
                    () = stop => Ok(Ok(())),
                    ended = mcp::on_http(around, address, token, say) => Ok::<_, Failure>(ended),
                }
            })?
        }
    };
    // A read of standard input that is under way would hold up the end.
    runtime.shutdown_background();
    Ok(ended?)
}

/// Starts a node that goes on when this process ends: in a group of its own, so that what ends the
/// agent and its servers does not end the node.
fn starter(home: &Home, global: &Global) -> Result<Starter, Failure> {
    let system = |source| Failure::System { what: "find where this program is", source };
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(system);
    let program = std::env::current_exe().map_err(system)?;
    let home = std::path::absolute(home.path()).map_err(system)?;
    let config = global.config.as_ref().map(absolute).transpose()?;
    let assignments = global.set.clone();
    let folder = Home::resolve(Some(home.clone()))?;
    Ok(Arc::new(move || {
        folder.prepare().map_err(io::Error::other)?;
        let lock = File::open(&home)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut command = Command::new(&program);
        command.arg("--home").arg(&home);
        if let Some(config) = &config {
            command.arg("--config").arg(config);
        }
        for assignment in &assignments {
            command.arg("--set").arg(assignment);
        }
        command.arg("serve").current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Some(Started { process: command.spawn()?, lock }))
    }))
}
