//! `klnode` alone: open the home, start the writer, say so, and stop when told to.

use super::home::Home;
use super::node::Node;
use super::{Failure, print};
use crate::api::Bound;
use crate::cli::Global;
use klnode_config::Config;
use std::io::IsTerminal;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(super) fn serve(home: &Home, config: &Config, global: &Global) -> Result<(), Failure> {
    start_log(config, global);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start", source })?;
    // Before anything else, so that no signal meets a node that does not yet know how to stop.
    let stop = runtime
        .block_on(async { stop_signal() })
        .map_err(|source| Failure::System { what: "listen for signals", source })?;
    home.prepare()?;
    let node = Node::open(home, config)?;
    let socket = runtime.block_on(Bound::bind(&config.api.socket.in_home(home.path())))?;
    let text = banner(home, &node)?;
    let (service, running) = node.start(home, config)?;
    print(&text)?;
    tracing::info!(home = %home.path().display(), "started");
    let connections_max = config.api.connections_max.as_usize();
    let body_bytes_max = config.api.body_bytes_max.as_usize();
    let served = runtime.block_on(socket.serve(service, connections_max, body_bytes_max, stop));
    drop(runtime);
    running.stop();
    tracing::info!("stopped");
    served?;
    print("Stopped; everything that was acknowledged is on disk.\n")
}

/// Answers take microseconds; two threads keep one long listing from holding up the rest.
const WORKER_THREADS: usize = 2;

fn banner(home: &Home, node: &Node) -> Result<String, Failure> {
    let entries = node.engine().store().snapshot()?.entry_count()?;
    Ok(format!(
        "klnode {} is running.\n  node   {}\n  home   {}\n  store  {entries} entries\n\
         Try `klnode add --help` in another terminal; stop with Ctrl-C.\n",
        env!("CARGO_PKG_VERSION"),
        node.engine().author(),
        home.path().display(),
    ))
}

fn start_log(config: &Config, global: &Global) {
    let level = global.log.as_deref().unwrap_or(config.log.level.as_str());
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

/// Done when the process is told to stop.
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
