//! `klnode serve`: opens the home, starts the node, prints a banner, and stops on a signal.

use super::home::Home;
use super::logging;
use super::memory_release;
use super::node::{NetworkMode, OpenNode, now};
use super::{ProgramError, print, start_hint};
use klnode_cli::Global;
use klnode_config::units::LocalTcp;
use klnode_config::{Config, Layered};
use klnode_doctor::close_key_command;
use klnode_http::BearerToken;
use klnode_index::IndexError;
use klnode_server::{self, BoundListener, Service};
use klnode_store::OpenError;
use klnode_store::peers::Membership;
use klnode_text::plural;
use klnode_text::unicode::harmless_json;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

pub(super) fn serve(home: &Home, layered: &Layered, global: &Global) -> Result<(), ProgramError> {
    let config = layered.config();
    logging::start(config, global);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|source| ProgramError::System { what: "start the runtime", source })?;
    // Install the handlers first, so that a signal during the start stops the node in order.
    let stop = runtime
        .block_on(async { stop_signal() })
        .map_err(|source| ProgramError::System { what: "listen for signals", source })?;
    home.prepare()?;
    let _claimed = home.claim()?;
    if let Some(command) = close_key_command(&home.layout()) {
        tracing::warn!(
            run = command,
            "Other users can read the node's key; run the command in `run`"
        );
    }
    let node = guarded(home, || OpenNode::open(home, config))?;
    let bound = runtime.block_on(bind(home, config))?;
    let lines = guarded(home, || StartupBanner::of(home, &node))?;
    let (service, running) = guarded(home, || node.start(home, config, NetworkMode::Real))?;
    let service = Service { settings: layered.explain().into(), ..service };
    let addresses = runtime.block_on(addresses(&service));
    let banner = match global.json {
        true => lines.line(&addresses, bound.tcp_address(), &home.socket(config)),
        false => lines.banner(&addresses, bound.tcp_address(), &start_hint::program(global)),
    };
    // A closed standard output does not stop the node.
    let _ = print(&banner);
    let tcp = bound.tcp_address().map(tracing::field::display);
    tracing::info!(home = %home.path().display(), tcp, "The node has started");
    let (stop_request, index) = (Arc::clone(&service.stop), service.index.clone());
    let stop = async move {
        tokio::select! {
            () = stop => {}
            () = stop_request.notified() => {}
        }
        // Pending requests may wait for the embedder, and the shutdown waits for them.
        index.leave_embedder();
    };
    runtime.spawn(memory_release::follow(service.engine.clone(), service.index.clone()));
    let served = runtime.block_on(bound.serve(service, api_limits(config), stop));
    drop(runtime);
    running.stop();
    tracing::info!("The node has stopped");
    served?;
    let _ = print(match global.json {
        true => "{\"stopped\":true}\n",
        false => "Stopped. All acknowledged writes are on disk.\n",
    });
    Ok(())
}

/// Answers take microseconds; a second thread keeps one long listing from delaying the others.
const WORKER_THREADS: usize = 2;

/// The most long reads at the same time; more would only slow down each. Further ones wait for a
/// thread.
const BLOCKING_THREADS_MAX: usize = 8;

/// Runs a part of the start that reads the store. redb can panic on a damaged page that was not
/// read when the store was opened; this reports such a panic as damage, with the path of the file.
pub(super) fn guarded<T>(
    home: &Home,
    work: impl FnOnce() -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let done = catch_unwind(AssertUnwindSafe(work));
    std::panic::set_hook(hook);
    let path = home.layout().store_file();
    match done {
        Ok(Err(ProgramError::Store(source) | ProgramError::Index(IndexError::Store(source)))) => {
            Err(OpenError::Prepare { path, source }.into())
        }
        Ok(done) => done,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let detail = format!("its pages are inconsistent: {}", text.unwrap_or("no details"));
            Err(OpenError::Damaged { path, detail }.into())
        }
    }
}

async fn bind(home: &Home, config: &Config) -> Result<BoundListener, ProgramError> {
    let bound = BoundListener::bind(&home.socket(config)).await?;
    match config.api.tcp {
        LocalTcp::Off => Ok(bound),
        LocalTcp::At(address) => {
            Ok(bound.bind_tcp(address, BearerToken::new(home.token()?)).await?)
        }
    }
}

pub(super) fn api_limits(config: &Config) -> klnode_server::Limits {
    let limits = klnode_server::Limits::new(config.api.connections_max.as_usize());
    let body_bytes_max = config.api.body_bytes_max.as_usize();
    klnode_server::Limits {
        event_streams_max: config.api.event_streams_max.as_usize(),
        body_bytes_max,
        // Two bodies of the largest size always fit.
        bodies_bytes_max: limits.bodies_bytes_max.max(body_bytes_max.saturating_mul(2)),
        ..limits
    }
}

/// Commands to try next, and their purpose.
const NEXT: [(&str, &str); 4] = [
    ("add --help", "write an entry"),
    ("search WORDS", "find entries"),
    ("connect", "connect your coding agents"),
    ("peer invite --mine", "pair another machine of yours"),
];

/// The banner before the node serves requests.
struct StartupBanner {
    node: String,
    home: String,
    entries: u64,
}

impl StartupBanner {
    fn of(home: &Home, node: &OpenNode) -> Result<Self, ProgramError> {
        let snapshot = node.engine().store().snapshot()?;
        let membership = Membership::read(&snapshot, node.engine().author(), now())?;
        let entries = membership.entries(&snapshot)?;
        let home = home.path().display().to_string();
        Ok(Self { node: node.engine().author().to_string(), home, entries })
    }

    /// The banner for a program: one line of JSON.
    fn line(&self, addresses: &[String], tcp: Option<SocketAddr>, socket: &Path) -> String {
        let Self { node, home, entries } = self;
        let mut banner = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"), "node": node, "home": home,
            "socket": socket.display().to_string(), "entries": entries, "addresses": addresses,
        });
        if let Some(address) = tcp {
            banner["tcp"] = format!("http://{address}").into();
        }
        harmless_json(banner.to_string()) + "\n"
    }

    fn banner(&self, addresses: &[String], tcp: Option<SocketAddr>, program: &str) -> String {
        let Self { node, home, entries } = self;
        let tcp = tcp.map(|address| format!("  tcp    http://{address}\n")).unwrap_or_default();
        let peers: String =
            addresses.iter().map(|address| format!("  peers  {address}\n")).collect();
        let entries = plural::entries(*entries);
        let next: String = NEXT
            .iter()
            .map(|(verb, why)| format!("  next   {program} {verb:<18} # {why}\n"))
            .collect();
        format!(
            "klnode {} is running.\n  node   {node}\n  home   {home}\n  store  {entries}\n\
             {tcp}{peers}{next}Try these in another terminal; stop with Ctrl-C.\n",
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// The addresses at which peers can reach this node; empty if the system does not report them in
/// time.
async fn addresses(service: &Service) -> Vec<String> {
    let Some(peers) = &service.peers else { return Vec::new() };
    let mut changes = peers.changes();
    let known =
        async { while peers.live().addresses.is_empty() && changes.changed().await.is_ok() {} };
    let _ = tokio::time::timeout(ADDRESSES_PATIENCE, known).await;
    peers.live().addresses
}

/// The longest time that the banner waits for addresses.
const ADDRESSES_PATIENCE: Duration = Duration::from_millis(200);

/// Completes on SIGINT, SIGTERM, or SIGHUP from a closed terminal.
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

/// Whether the node was started to outlive its terminal, as by `nohup`: then SIGHUP is ignored, and
/// a handler would undo that. If this is unknown, no handler is installed.
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    // SIGHUP is signal 1, so it is the lowest bit.
    ignored.is_none_or(|set| set & 1 == 1)
}
