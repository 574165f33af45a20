//! Opens and starts the parts of a node in order: store, writer, index, workers.
//!
//! It is separate from `serve` because an evaluation also starts a node.

use super::ProgramError;
use super::embedder_setup::embedder_settings;
use super::finding_worker;
use super::home::{Home, entropy};
use klnode_config::Config;
use klnode_config::units::{EmbedderKind, Interval};
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_crdt::time::WallTime;
use klnode_engine::{self, Engine, Limits, Setup};
use klnode_federation::{net, proto};
use klnode_index::passage_vectors::PassageModel;
use klnode_index::{self, vectors};
use klnode_query::maintenance::Maintenance;
use klnode_query::{self, Reader, ScoringParams};
use klnode_replication::{self, ReleasePolicy};
use klnode_server::exported_marks::MarksKey;
use klnode_server::person_auth::Person;
use klnode_server::sampling_seed::SampleKey;
use klnode_server::{Metrics, Service};
use klnode_store::{Durability, FileMedium, Options, Store};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// The transformer of the program, which its `main` function sets: a test program has none.
pub(super) static TRANSFORMER: OnceLock<PassageModel> = OnceLock::new();

/// Whether a node connects to peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkMode {
    /// It listens for peers and connects to them.
    Real,
    /// It has no network, as in an evaluation.
    None,
}

/// A node whose store is open.
pub(super) struct OpenNode(Engine);

/// The threads of a running node.
pub(super) struct RunningNode {
    engine: klnode_engine::EngineThread,
    index: klnode_index::Running,
    findings: finding_worker::FindingWorker,
    replication: Option<klnode_replication::ReplicationThread>,
    maintenance: Option<super::maintenance_worker::MaintenanceWorker>,
}

impl OpenNode {
    /// Opens the store of a home, and creates a key for a new home.
    pub(super) fn open(home: &Home, config: &Config) -> Result<Self, ProgramError> {
        Ok(Self(open(home, config)?))
    }

    /// The writer, which is not started yet.
    pub(super) fn engine(&self) -> &Engine {
        &self.0
    }

    /// Starts the writer, the index and the workers.
    pub(super) fn start(
        self,
        home: &Home,
        config: &Config,
        network: NetworkMode,
    ) -> Result<(Service, RunningNode), ProgramError> {
        let author = self.0.author();
        let engine = klnode_engine::spawn(self.0, limits(config), now);
        let handle = engine.handle();
        let setup = indexing(home, config, author, network)?;
        let wakes = klnode_index::Wakes { head: handle.head(), membership: handle.membership() };
        let index = klnode_index::start(setup, handle.store().clone(), wakes)?;
        let reader = Arc::new(Reader::new(author, ScoringParams::new(config)));
        let policy = ReleasePolicy::new(reader.clone(), &config.filter);
        let replication = match network {
            NetworkMode::None => None,
            NetworkMode::Real => {
                let options = replication(home, config, author, policy.clone())?;
                Some(klnode_replication::start(options, handle.clone())?)
            }
        };
        let findings = finding_worker::start(finding_worker::Setup {
            engine: handle.clone(),
            index: index.index(),
            reader: reader.clone(),
            now,
        });
        let params = klnode_query::maintenance::Params::new(&config.maintenance);
        let maintenance = Arc::new(Maintenance::new(reader.clone(), params));
        let keeping = match network {
            NetworkMode::None => None,
            NetworkMode::Real => {
                let setup = super::maintenance_worker::Setup::new(&config.maintenance, now);
                Some(super::maintenance_worker::start(setup, &handle, &index.index(), &maintenance))
            }
        };
        let service = Service {
            engine: handle,
            index: index.index(),
            samples: Arc::new(SampleKey::of(&home.key()?)),
            reader,
            author,
            home: Arc::new(home.path().to_owned()),
            settings: Arc::default(),
            now,
            peers: replication.as_ref().map(klnode_replication::ReplicationThread::handle),
            policy: Arc::new(policy),
            person: Arc::new(Person::new(&home.layout(), now())),
            marks: Arc::new(MarksKey::of(&home.key()?)),
            maintenance,
            metrics: Arc::new(Metrics::default()),
            stop: Arc::new(Notify::new()),
        };
        Ok((service, RunningNode { engine, index, findings, replication, maintenance: keeping }))
    }
}

impl RunningNode {
    /// Stops all threads in order, and closes the store after the last write.
    pub(super) fn stop(self) {
        if let Some(maintenance) = self.maintenance {
            maintenance.stop();
        }
        if let Some(replication) = self.replication {
            replication.stop();
        }
        let findings = self.findings.signal_stop();
        self.index.stop();
        findings.wait();
        drop(self.engine.stop());
    }
}

fn open(home: &Home, config: &Config) -> Result<Engine, ProgramError> {
    // Report a damaged key before any file is created.
    home.key_in_place()?;
    let store = open_store(home, config)?;
    let key = home.key_of(store.snapshot()?.author()?)?;
    // Compile the scan rules now, so that the first write does not wait for it.
    let _ = klnode_scoring::content_scan::scanner();
    let setup = Setup {
        key,
        entropy: Box::new(entropy),
        judge: Box::new(klnode_query::screen_record),
        durability: Durability::Durable,
        cooccurrence: klnode_query::cooccurrence(&config.cooccurrence),
        tasks: klnode_query::tasks(config),
    };
    Ok(Engine::start(store, setup, now())?)
}

/// Opens the store of a home, or creates one.
pub(super) fn open_store(home: &Home, config: &Config) -> Result<Store, ProgramError> {
    let mut id = [0; StoreId::LEN];
    entropy(&mut id);
    let mut options = Options::new(StoreId::from_bytes(id));
    options.cache_bytes_max = config.engine.cache_bytes_max.as_usize();
    Ok(Store::open(Box::new(FileMedium::new(home.layout().store_file())), &options)?)
}

fn indexing(
    home: &Home,
    config: &Config,
    author: AuthorId,
    network: NetworkMode,
) -> Result<klnode_index::Setup, ProgramError> {
    let limits = vectors::Limits {
        hnsw_entries_min: config.index.hnsw_entries_min.as_usize(),
        hnsw_dead_fraction_max: config.index.hnsw_deleted_fraction_max.get(),
    };
    // This does not wait for an embedding server: without it, keyword search still answers.
    let model = klnode_embed::open(embedder_settings(config)?)?;
    let passages = match config.embedder.kind {
        EmbedderKind::Transformer => TRANSFORMER.get().map(|model| match network {
            // An evaluation waits for the vectors.
            NetworkMode::None => {
                PassageModel { pause_share: 0, pause_max: Duration::ZERO, ..model.clone() }
            }
            NetworkMode::Real => model.clone(),
        }),
        EmbedderKind::Static | EmbedderKind::OpenAi | EmbedderKind::Ollama => None,
    };
    Ok(klnode_index::Setup {
        folder: home.layout().index_folder(),
        model,
        passages,
        limits,
        own: author,
        now,
    })
}

fn replication(
    home: &Home,
    config: &Config,
    own: AuthorId,
    policy: ReleasePolicy,
) -> Result<klnode_replication::Options, ProgramError> {
    let (network, federation) = (&config.network, &config.federation);
    let budget = &federation.budget;
    let ms = |interval: &Interval| u64::try_from(interval.get().as_millis()).unwrap_or(u64::MAX);
    let limits = net::Limits {
        pending_connections_max: network.pending_connections_max.as_usize(),
        established_connections_max: network.established_connections_max.as_usize(),
        peer_connections_max: network.peer_connections_max.as_usize(),
        stranger_connections_max: STRANGERS_MAX,
        memory_bytes_max: network.memory_bytes_max.as_usize() as u64,
        frame_bytes_max: net::FRAME_BYTES_MAX,
        pairing_frame_bytes_max: net::PAIRING_FRAME_BYTES_MAX,
        progress_bytes_per_second_min: network.stream_bytes_per_second_min.as_usize() as u64,
        request_timeout: network.request_timeout.get(),
        redial_after: network.redial_after.get(),
        redial_after_max: network.redial_after_max.get(),
        stranger_lifetime: STRANGER_LIFETIME,
    };
    let listen = network.listen.as_slice().iter().map(|one| one.as_str().to_owned()).collect();
    let settings = proto::Settings {
        budget: proto::peer_budget::Budget {
            window_ms: ms(&budget.window),
            frames_max: u64::from(budget.frames_max.get()),
            bytes_max: budget.bytes_max.as_usize() as u64,
            records_max: u64::from(budget.records_max.get()),
            new_entries_max: u64::from(budget.new_entries_max.get()),
            rows_max: u64::from(budget.rows_max.get()),
            faults_max: u64::from(budget.failed_signatures_max.get()),
            back_off_ms: ms(&budget.back_off),
            back_off_max_ms: ms(&budget.back_off_max),
        },
        debounce_ms: ms(&federation.notify_debounce),
        scrub_ms: ms(&federation.set_comparison_interval),
    };
    let sweep_ms = ms(&federation.release_sweep_interval);
    Ok(klnode_replication::Options {
        net: net::Settings { key: home.key()?, listen, usual_port: home.usual_port(), limits },
        replica: klnode_replication::Setup { own, policy, settings, sweep_ms },
        name: network.name.get().map_or_else(machine_name, str::to_owned),
        announced: network.announce.as_slice().iter().map(|one| one.as_str().to_owned()).collect(),
        note_port: Box::new({
            let home = home.clone();
            move |port| home.note_port(port)
        }),
        ticket_lifetime: federation.ticket_lifetime.get(),
        join_lifetime: federation.join_lifetime.get(),
        now,
        entropy,
    })
}

/// The most connections of nodes that are not paired.
const STRANGERS_MAX: usize = 16;
/// The longest time that such a connection stays open.
const STRANGER_LIFETIME: Duration = Duration::from_secs(60);

/// The name of this machine, which operators of peers see.
fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "a klnode".to_owned() } else { name.to_owned() }
}

fn limits(config: &Config) -> Limits {
    Limits {
        queue_max: config.engine.queue_commands_max.as_usize(),
        group_max: config.engine.commit_commands_max.as_usize(),
        group_bytes_max: config.engine.commit_bytes_max.as_usize(),
    }
}

pub(super) fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
pub(super) mod testing {
    use super::{Config, Home, NetworkMode, OpenNode, RunningNode, Service};
    use tempfile::TempDir;

    /// A node with the default configuration in a temporary home.
    pub(crate) fn started() -> (TempDir, Service, RunningNode) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::resolve(Some(folder.path().join("home"))).unwrap();
        home.prepare().unwrap();
        let config = Config::default();
        let node = OpenNode::open(&home, &config).unwrap();
        let (service, running) = node.start(&home, &config, NetworkMode::None).unwrap();
        (folder, service, running)
    }
}

#[cfg(test)]
mod tests {
    use super::limits;
    use klnode_config::Layers;

    #[test]
    fn the_writer_has_the_configured_limits() {
        let set = [
            "tuning.engine.queue_commands_max=11",
            "tuning.engine.commit_commands_max=12",
            "tuning.engine.commit_bytes_max=13 B",
        ];
        let layered = Layers::new().flags(set.map(|one| ("--set", one))).resolve();
        let of = limits(layered.expect("they are valid").config());
        assert_eq!((of.queue_max, of.group_max, of.group_bytes_max), (11, 12, 13));
    }
}
