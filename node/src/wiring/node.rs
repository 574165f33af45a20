//! A node's parts, opened and started in the right order: store, writer, index.
//!
//! Separate from serving, because an evaluation starts a node of its own as well.

use super::Failure;
use super::embedder::embedder_settings;
use super::home::{Home, entropy};
use crate::api::{Metrics, Service};
use crate::engine::{self, Engine, Limits, Setup, Source, Verdict};
use crate::index::{self, embed, vectors};
use crate::query::{self, Numbers, Reader};
use crate::store::{Durability, FileMedium, Options, Store};
use klnode_config::Config;
use klnode_crdt::ids::{AuthorId, StoreId};
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

/// A node whose store is open.
pub(super) struct Node(Engine);

/// A node at work, behind its service.
pub(super) struct Running {
    engine: engine::Running,
    index: index::Running,
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

    /// Starts the writer and the index.
    pub(super) fn start(self, home: &Home, config: &Config) -> Result<(Service, Running), Failure> {
        let author = self.0.author();
        let engine = engine::spawn(self.0, limits(config), now);
        let handle = engine.handle();
        let setup = indexing(home, config, author)?;
        let index = index::start(setup, handle.store().clone(), handle.head())?;
        let service = Service {
            engine: handle,
            index: index.index(),
            seeds: Arc::new(AtomicU64::new(seed())),
            reader: Arc::new(Reader::new(author, Numbers::new(config))),
            author,
            home: Arc::new(home.path().to_owned()),
            now,
            metrics: Arc::new(Metrics::default()),
        };
        Ok((service, Running { engine, index }))
    }
}

impl Running {
    /// Finishes what was begun and closes the store.
    pub(super) fn stop(self) {
        self.index.stop();
        drop(self.engine.stop());
    }
}

fn open(home: &Home, config: &Config) -> Result<Engine, Failure> {
    let key = home.key()?;
    let mut id = [0; StoreId::LEN];
    entropy(&mut id);
    let mut options = Options::new(StoreId::from_bytes(id));
    options.cache_bytes_max = config.engine.cache_bytes_max.as_usize();
    let store = Store::open(Box::new(FileMedium::new(home.layout().store_file())), &options)?;
    let setup = Setup {
        key,
        mine: BTreeSet::new(),
        entropy: Box::new(entropy),
        judge: Box::new(|_: &Record, _: Source| Verdict::Admit),
        durability: Durability::Durable,
        cooccurrence: query::cooccurrence(&config.cooccurrence),
    };
    Ok(Engine::start(store, setup, now())?)
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

/// Where the seeds of questions begin.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    entropy(&mut bytes);
    u64::from_be_bytes(bytes)
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
