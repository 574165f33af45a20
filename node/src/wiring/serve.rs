//! `klnode` alone: open the home, start the writer, say so, and stop when told to.

use super::home::{Home, entropy};
use super::{Failure, print};
use crate::cli::Global;
use crate::engine::{self, Engine, Limits, Setup, Source, Verdict};
use crate::store::{Durability, FileMedium, Options, Store};
use klnode_config::Config;
use klnode_crdt::ids::StoreId;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(super) fn serve(home: &Home, config: &Config, global: &Global) -> Result<(), Failure> {
    start_log(config, global);
    let stop = StopSignal::listen()
        .map_err(|source| Failure::System { what: "listen for signals", source })?;
    home.prepare()?;
    let key = home.key()?;
    let mut id = [0; StoreId::LEN];
    entropy(&mut id);
    let mut options = Options::new(StoreId::from_bytes(id));
    options.cache_bytes_max = config.engine.cache_bytes_max.as_usize();
    let medium = Box::new(FileMedium::new(home.store_file()));
    let store = Store::open(medium, &options)?;
    let setup = Setup {
        key,
        mine: BTreeSet::new(),
        entropy: Box::new(entropy),
        judge: Box::new(|_: &Record, _: Source| Verdict::Admit),
        durability: Durability::Durable,
    };
    let engine = Engine::start(store, setup, now())?;
    print(&banner(home, &engine)?)?;
    let limits = Limits {
        queue_max: config.engine.queue_commands_max.as_usize(),
        group_max: config.engine.group_commands_max.as_usize(),
        group_bytes_max: config.engine.group_bytes_max.as_usize(),
    };
    let running = engine::spawn(engine, limits, now);
    tracing::info!(home = %home.path().display(), "started");
    stop.wait();
    drop(running.stop());
    tracing::info!("stopped");
    print("Stopped; everything that was acknowledged is on disk.\n")
}

fn banner(home: &Home, engine: &Engine) -> Result<String, Failure> {
    let entries = engine.store().snapshot()?.entry_count()?;
    Ok(format!(
        "klnode {} is running.\n  node   {}\n  home   {}\n  store  {entries} entries\n\
         Stop it with Ctrl-C.\n",
        env!("CARGO_PKG_VERSION"),
        engine.author(),
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

/// The signals that end the node. Listening starts before anything else does, so that no signal
/// meets a node that does not yet know how to stop.
struct StopSignal {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignal {
    fn listen() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (interrupt, terminate) = runtime.block_on(async {
            Ok::<_, std::io::Error>((
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            ))
        })?;
        Ok(Self { runtime, interrupt, terminate })
    }

    fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        });
    }
}

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
