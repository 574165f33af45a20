//! A node's parts, opened and started in the right order: store, writer, index.
//!
//! Separate from serving, because an evaluation starts a node of its own as well.

use super::Failure;
use super::embedder::embedder_settings;
use super::findings;
use super::home::{Home, entropy};
use crate::api::person::Person;
use crate::api::portable::marks::MarksKey;
use crate::api::sampling::SampleKey;
use crate::api::{Metrics, Service};
use crate::engine::{self, Engine, Limits, Setup};
use crate::index::{self, embed, vectors};
use crate::query::upkeep::Upkeep;
use crate::query::{self, Numbers, Reader};
use crate::replicate::{self, Examiner};
use crate::store::{Durability, FileMedium, Options, Store};
use klnode_config::Config;
use klnode_config::units::Interval;
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_crdt::time::WallTime;
use klnode_federation::{net, proto};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Whether a node talks to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// It does.
    Real,
    /// It is for itself: an evaluation.
    None,
}

/// A node whose store is open.
pub(super) struct Node(Engine);

/// A node at work, behind its service.
pub(super) struct Running {
    engine: engine::Running,
    index: index::Running,
    findings: findings::Running,
    replication: Option<replicate::Running>,
    upkeep: Option<super::upkeep::Running>,
}

impl Node {
    /// Opens the store of a home, and draws a key for a new one.
    pub(super) fn open(home: &Home, config: &Config) -> Result<Self, Failure> {
        Ok(Self(open(home, config)?))
    }

    /// The writer, not yet at work.
    pub(super) fn engine(&self) -> &Engine {
        &self.0
    }

    /// Starts the writer, the index, and what works beside them.
    pub(super) fn start(
        self,
        home: &Home,
        config: &Config,
        network: Network,
    ) -> Result<(Service, Running), Failure> {
        let author = self.0.author();
        let engine = engine::spawn(self.0, limits(config), now);
        let handle = engine.handle();
        let setup = indexing(home, config, author)?;
        let wakes = index::Wakes { head: handle.head(), society: handle.society() };
        let index = index::start(setup, handle.store().clone(), wakes)?;
        let reader = Arc::new(Reader::new(author, Numbers::new(config)));
        let examiner = Examiner::new(reader.clone(), &config.filter);
        let replication = match network {
            Network::None => None,
            Network::Real => {
                let options = replication(home, config, author, examiner.clone())?;
                Some(replicate::start(options, handle.clone())?)
            }
        };
        let findings = findings::start(findings::Setup {
            engine: handle.clone(),
            index: index.index(),
            reader: reader.clone(),
            now,
        });
        let params = query::upkeep::Params::new(&config.upkeep);
        let upkeep = Arc::new(Upkeep::new(reader.clone(), params));
        let keeping = match network {
            Network::None => None,
            Network::Real => {
                let setup = super::upkeep::Setup::new(&config.upkeep, now);
                Some(super::upkeep::start(setup, &handle, &index.index(), &upkeep))
            }
        };
        let service = Service {
            engine: handle,
            index: index.index(),
            samples: Arc::new(SampleKey::of(&home.key()?)),
            reader,
            author,
            home: Arc::new(home.path().to_owned()),
            now,
            peers: replication.as_ref().map(replicate::Running::handle),
            examiner: Arc::new(examiner),
            person: Arc::new(Person::new(&home.layout(), now())),
            marks: Arc::new(MarksKey::of(&home.key()?)),
            upkeep,
            metrics: Arc::new(Metrics::default()),
            stop: Arc::new(Notify::new()),
        };
        Ok((service, Running { engine, index, findings, replication, upkeep: keeping }))
    }
}

impl Running {
    /// Finishes what was begun and closes the store.
    pub(super) fn stop(self) {
        if let Some(upkeep) = self.upkeep {
            upkeep.stop();
        }
        if let Some(replication) = self.replication {
            replication.stop();
        }
        let findings = self.findings.tell();
        self.index.stop();
        findings.wait();
        drop(self.engine.stop());
    }
}

fn open(home: &Home, config: &Config) -> Result<Engine, Failure> {
    // A key that is no key is told before anything is made.
    home.key_in_place()?;
    let store = open_store(home, config)?;
    let key = home.key_of(store.snapshot()?.author()?)?;
    // Compiled before the first write waits for it.
    let _ = query::scanner();
    let setup = Setup {
        key,
        entropy: Box::new(entropy),
        judge: Box::new(query::inspect),
        durability: Durability::Durable,
        cooccurrence: query::cooccurrence(&config.cooccurrence),
        tasks: query::tasks(config),
    };
    Ok(Engine::start(store, setup, now())?)
}

/// Opens the store of a home, or makes one.
pub(super) fn open_store(home: &Home, config: &Config) -> Result<Store, Failure> {
    let mut id = [0; StoreId::LEN];
    entropy(&mut id);
    let mut options = Options::new(StoreId::from_bytes(id));
    options.cache_bytes_max = config.engine.cache_bytes_max.as_usize();
    Ok(Store::open(Box::new(FileMedium::new(home.layout().store_file())), &options)?)
}

fn indexing(home: &Home, config: &Config, author: AuthorId) -> Result<index::Setup, Failure> {
    let limits = vectors::Limits {
        hnsw_entries_min: config.index.hnsw_entries_min.as_usize(),
        hnsw_dead_fraction_max: config.index.hnsw_dead_fraction_max.get(),
    };
    // A server is not waited for: without it there are answers by keywords.
    let model = embed::open(embedder_settings(config)?)?;
    Ok(index::Setup { folder: home.layout().index_folder(), model, limits, own: author, now })
}

fn replication(
    home: &Home,
    config: &Config,
    own: AuthorId,
    examiner: Examiner,
) -> Result<replicate::Options, Failure> {
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
        progress_bytes_per_second_min: network.progress_bytes_per_second_min.as_usize() as u64,
        request_timeout: network.request_timeout.get(),
        redial_after: network.redial_after.get(),
        redial_after_max: network.redial_after_max.get(),
        stranger_lifetime: STRANGER_LIFETIME,
    };
    let listen = network.listen.as_slice().iter().map(|one| one.as_str().to_owned()).collect();
    let settings = proto::Settings {
        budget: proto::budget::Budget {
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
        scrub_ms: ms(&federation.scrub_interval),
    };
    let sweep_ms = ms(&federation.release_sweep_interval);
    Ok(replicate::Options {
        net: net::Settings { key: home.key()?, listen, usual_port: home.usual_port(), limits },
        replica: replicate::Setup { own, examiner, settings, sweep_ms },
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

/// Connections of nodes that want to pair.
const STRANGERS_MAX: usize = 16;
/// How long such a connection is kept.
const STRANGER_LIFETIME: Duration = Duration::from_secs(60);

/// What this machine is called; a peer's operator sees it.
fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "a klnode".to_owned() } else { name.to_owned() }
}

fn limits(config: &Config) -> Limits {
    Limits {
        queue_max: config.engine.queue_commands_max.as_usize(),
        group_max: config.engine.group_commands_max.as_usize(),
        group_bytes_max: config.engine.group_bytes_max.as_usize(),
    }
}

pub(super) fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
pub(super) mod testing {
    use super::{Config, Home, Network, Node, Running, Service};
    use tempfile::TempDir;

    /// A node as it is without a configuration, in a home of its own, which goes with the folder.
    pub(in crate::wiring) fn started() -> (TempDir, Service, Running) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::resolve(Some(folder.path().join("home"))).unwrap();
        home.prepare().unwrap();
        let config = Config::default();
        let node = Node::open(&home, &config).unwrap();
        let (service, running) = node.start(&home, &config, Network::None).unwrap();
        (folder, service, running)
    }
}

#[cfg(test)]
mod tests {
    use super::limits;
    use klnode_config::Layers;

    #[test]
    fn the_writer_has_the_limits_that_are_set() {
        let set = [
            "engine.queue_commands_max=11",
            "engine.group_commands_max=12",
            "engine.group_bytes_max=13 B",
        ];
        let layered = Layers::new().flags(set.map(|one| ("--set", one))).resolve();
        let of = limits(layered.expect("they are valid").config());
        assert_eq!((of.queue_max, of.group_max, of.group_bytes_max), (11, 12, 13));
    }
}
