//! `klnode mcp` on this machine: sockets, signals, and starting a node.

use super::home::{Home, entropy};
use super::{ProgramError, print, runtime, serve, start_hint};
use klnode_cli::Global;
use klnode_cli::mcp::{self, Args, McpContext};
use klnode_client::Client;
use klnode_config::Config;
use klnode_http::BearerToken;
use klnode_integrations::mcp::node_client::{NodeClient, StartedNode, Starter};
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
) -> Result<(), ProgramError> {
    let client = Client::new(&home.socket(config));
    // Over HTTP the parent process of this server is not the client.
    let client = if args.http.is_some() { client.relaying() } else { client };
    let may_start = args.start || config.mcp.start_node.is_on();
    let starter = may_start.then(|| starter(home, global)).transpose()?;
    let context =
        McpContext { node: NodeClient::new(client, starter, start_hint::of(global)), entropy };
    let runtime = runtime()?;
    let ended = match args.http {
        None => runtime.block_on(mcp::on_stdio(context)),
        Some(address) => {
            home.prepare()?;
            let token = (BearerToken::new(home.token()?), &*home.layout().token_file());
            runtime.block_on(async {
                let stop = serve::stop_signal()
                    .map_err(|source| ProgramError::System { what: "listen for signals", source })?;
                // If the address cannot be printed, the error cannot be printed either.
                let say = |text: &str| drop(print(text));
                tokio::select! {
                    () = stop => Ok(Ok(())),
                    ended = mcp::on_http(context, address, token, say) => Ok::<_, ProgramError>(ended),
                }
            })?
        }
    };
    // A pending read of standard input would block a normal shutdown.
    runtime.shutdown_background();
    Ok(ended?)
}

/// Starts a node that outlives this process. It has a process group of its own, so that a signal to
/// the agent and its servers does not reach it.
fn starter(home: &Home, global: &Global) -> Result<Starter, ProgramError> {
    let system = |source| ProgramError::System { what: "find the path of this program", source };
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
        Ok(Some(StartedNode { process: command.spawn()?, lock }))
    }))
}
