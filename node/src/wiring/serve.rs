//! `klnode` alone: open the home, start the writer, say so, and stop when told to.

use super::home::Home;
use super::log;
use super::node::{Network, Node, now};
use super::{Failure, print, start_command};
use crate::api::{self, Bound, Service, Token};
use crate::cli::Global;
use crate::index::IndexError;
use crate::query::characters::harmless_json;
use crate::query::count;
use crate::query::doctor::close_key_command;
use crate::store::OpenError;
use crate::store::peers::Society;
use klnode_config::Config;
use klnode_config::units::LocalTcp;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

pub(super) fn serve(home: &Home, config: &Config, global: &Global) -> Result<(), Failure> {
    log::start(config, global);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "start", source })?;
    // Before anything else, so that no signal meets a node that does not yet know how to stop.
    let stop = runtime
        .block_on(async { stop_signal() })
        .map_err(|source| Failure::System { what: "listen for signals", source })?;
    home.prepare()?;
    let _claimed = home.claim()?;
    if let Some(command) = close_key_command(&home.layout()) {
        tracing::warn!(run = command, "other users can get at the node's key");
    }
    let node = guarded(home, || Node::open(home, config))?;
    let bound = runtime.block_on(bind(home, config))?;
    let lines = guarded(home, || Lines::of(home, &node))?;
    let (service, running) = guarded(home, || node.start(home, config, Network::Real))?;
    let addresses = runtime.block_on(addresses(&service));
    let begun = match global.json {
        true => lines.line(&addresses, bound.tcp_address(), &home.socket(config)),
        false => lines.banner(&addresses, bound.tcp_address(), &start_command::program(global)),
    };
    // Whoever cannot be told is served all the same.
    let _ = print(&begun);
    let tcp = bound.tcp_address().map(tracing::field::display);
    tracing::info!(home = %home.path().display(), tcp, "started");
    let (told, index) = (Arc::clone(&service.stop), service.index.clone());
    let stop = async move {
        tokio::select! {
            () = stop => {}
            () = told.notified() => {}
        }
        // Requests under way may wait for it, and the end for them.
        index.leave_embedder();
    };
    let served = runtime.block_on(bound.serve(service, api_limits(config), stop));
    drop(runtime);
    running.stop();
    tracing::info!("stopped");
    served?;
    let _ = print(match global.json {
        true => "{\"stopped\":true}\n",
        false => "Stopped; everything that was acknowledged is on disk.\n",
    });
    Ok(())
}

/// Answers take microseconds; two threads keep one long listing from holding up the rest.
const WORKER_THREADS: usize = 2;

/// Long readings that go on at once; the next wait for a thread. More would only make each slower.
const BLOCKING_THREADS_MAX: usize = 8;

/// Does a part of the start that reads the store. A damaged one can make redb panic, on a page that
/// was not read when it was opened: that is damage, and it is told as such, with the file.
pub(super) fn guarded<T>(
    home: &Home,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let done = catch_unwind(AssertUnwindSafe(work));
    std::panic::set_hook(hook);
    let path = home.layout().store_file();
    match done {
        Ok(Err(Failure::Store(source) | Failure::Index(IndexError::Store(source)))) => {
            Err(OpenError::Prepare { path, source }.into())
        }
        Ok(done) => done,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let detail =
                format!("its pages contradict each other: {}", text.unwrap_or("no more is known"));
            Err(OpenError::Damaged { path, detail }.into())
        }
    }
}

async fn bind(home: &Home, config: &Config) -> Result<Bound, Failure> {
    let bound = Bound::bind(&home.socket(config)).await?;
    match config.api.tcp {
        LocalTcp::Off => Ok(bound),
        LocalTcp::At(address) => Ok(bound.bind_tcp(address, Token::new(home.token()?)).await?),
    }
}

pub(super) fn api_limits(config: &Config) -> api::Limits {
    let limits = api::Limits::new(config.api.connections_max.as_usize());
    let body_bytes_max = config.api.body_bytes_max.as_usize();
    api::Limits {
        event_streams_max: config.api.event_streams_max.as_usize(),
        body_bytes_max,
        // Two of the largest fit, however large they may be.
        bodies_bytes_max: limits.bodies_bytes_max.max(body_bytes_max.saturating_mul(2)),
        ..limits
    }
}

/// What to type next, and why.
const NEXT: [(&str, &str); 4] = [
    ("add --help", "write down what was learned"),
    ("search WORDS", "ask what is known"),
    ("connect", "have your coding agents ask"),
    ("invite --mine", "let another machine of yours in"),
];

/// What is said before anything is served.
struct Lines {
    node: String,
    home: String,
    entries: u64,
}

impl Lines {
    fn of(home: &Home, node: &Node) -> Result<Self, Failure> {
        let snapshot = node.engine().store().snapshot()?;
        let society = Society::read(&snapshot, node.engine().author(), now())?;
        let entries = society.entries(&snapshot)?;
        let home = home.path().display().to_string();
        Ok(Self { node: node.engine().author().to_string(), home, entries })
    }

    /// What a program is told, on one line.
    fn line(&self, addresses: &[String], tcp: Option<SocketAddr>, socket: &Path) -> String {
        let Self { node, home, entries } = self;
        let mut begun = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"), "node": node, "home": home,
            "socket": socket.display().to_string(), "entries": entries, "addresses": addresses,
        });
        if let Some(address) = tcp {
            begun["tcp"] = format!("http://{address}").into();
        }
        harmless_json(begun.to_string()) + "\n"
    }

    fn banner(&self, addresses: &[String], tcp: Option<SocketAddr>, program: &str) -> String {
        let Self { node, home, entries } = self;
        let tcp = tcp.map(|address| format!("  tcp    http://{address}\n")).unwrap_or_default();
        let peers: String =
            addresses.iter().map(|address| format!("  peers  {address}\n")).collect();
        let entries = count::entries(*entries);
        let next: String = NEXT
            .iter()
            .map(|(verb, why)| format!("  next   {program} {verb:<14} # {why}\n"))
            .collect();
        format!(
            "klnode {} is running.\n  node   {node}\n  home   {home}\n  store  {entries}\n\
             {tcp}{peers}{next}Try these in another terminal; stop with Ctrl-C.\n",
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// Where peers can reach this node, once the system has said so; nothing if that takes long.
async fn addresses(service: &Service) -> Vec<String> {
    let Some(peers) = &service.peers else { return Vec::new() };
    let mut changes = peers.changes();
    let known =
        async { while peers.live().addresses.is_empty() && changes.changed().await.is_ok() {} };
    let _ = tokio::time::timeout(ADDRESSES_PATIENCE, known).await;
    peers.live().addresses
}

/// How long the banner waits for addresses.
const ADDRESSES_PATIENCE: Duration = Duration::from_millis(200);

/// Done when the process is told to stop. A terminal that closes tells it, too.
pub(super) fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = match outlives_terminal() {
        true => None,
        false => Some(signal(SignalKind::hangup())?),
    };
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
    })
}

/// Whether it was started to go on when its terminal closes, as by `nohup`: then that signal is
/// ignored, which listening for it would undo. Where that cannot be told it is not listened for.
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    // The first bit is of the first signal, which this one is.
    ignored.is_none_or(|set| set & 1 == 1)
}
