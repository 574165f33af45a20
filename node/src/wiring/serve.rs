//! `klnode` alone: open the home, start the writer, say so, and stop when told to.

use super::embedder::embedder_settings;
use super::home::{Home, entropy};
use super::{Failure, print};
use crate::api::{Bound, Service};
use crate::cli::Global;
use crate::engine::{self, Engine, Limits, Setup, Source, Verdict};
use crate::index::embed;
use crate::query::{Numbers, Reader};
use crate::store::{Durability, FileMedium, Options, Store};
use klnode_config::Config;
use klnode_crdt::ids::StoreId;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
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
    // A server is not waited for: without it there are answers by keywords.
    let embedder = embed::open(embedder_settings(config)?)?;
    let engine = open(home, config)?;
    let socket = runtime.block_on(Bound::bind(&config.api.socket.in_home(home.path())))?;
    let text = banner(home, &engine)?;
    let (author, limits) = (engine.author(), limits(config));
    let running = engine::spawn(engine, limits, now);
    let service = Service {
        engine: running.handle(),
        reader: Arc::new(Reader { mine: [author].into(), numbers: Numbers::new(config) }),
        author,
        home: Arc::new(home.path().to_owned()),
        now,
    };
    print(&text)?;
    tracing::info!(home = %home.path().display(), embedder = embedder.identity(), "started");
    let connections_max = config.api.connections_max.as_usize();
    let body_bytes_max = config.api.body_bytes_max.as_usize();
    let served = runtime.block_on(socket.serve(service, connections_max, body_bytes_max, stop));
    embedder.stop();
    drop(runtime);
    drop(running.stop());
    tracing::info!("stopped");
    served?;
    print("Stopped; everything that was acknowledged is on disk.\n")
}

/// Answers take microseconds; two threads keep one long listing from holding up the rest.
const WORKER_THREADS: usize = 2;

fn open(home: &Home, config: &Config) -> Result<Engine, Failure> {
    let key = home.key()?;
    let mut id = [0; StoreId::LEN];
    entropy(&mut id);
    let mut options = Options::new(StoreId::from_bytes(id));
    options.cache_bytes_max = config.engine.cache_bytes_max.as_usize();
    let store = Store::open(Box::new(FileMedium::new(home.store_file())), &options)?;
    let setup = Setup {
        key,
        mine: BTreeSet::new(),
        entropy: Box::new(entropy),
        judge: Box::new(|_: &Record, _: Source| Verdict::Admit),
        durability: Durability::Durable,
    };
    Ok(Engine::start(store, setup, now())?)
}

fn limits(config: &Config) -> Limits {
    Limits {
        queue_max: config.engine.queue_commands_max.as_usize(),
        group_max: config.engine.group_commands_max.as_usize(),
        group_bytes_max: config.engine.group_bytes_max.as_usize(),
    }
}

fn banner(home: &Home, engine: &Engine) -> Result<String, Failure> {
    let entries = engine.store().snapshot()?.entry_count()?;
    Ok(format!(
        "klnode {} is running.\n  node   {}\n  home   {}\n  store  {entries} entries\n\
         Try `klnode add --help` in another terminal; stop with Ctrl-C.\n",
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

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
