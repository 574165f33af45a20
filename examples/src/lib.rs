//! Shared code of the examples: a node in this process, with its store in memory and its peers on
//! loopback.

pub mod client;

use klnode_config::Config;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, EntryId, StoreId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_engine::{self, Command, Engine, NewEntry, Receipt, RecordSource, ScreenDecision};
use klnode_federation::{net, proto};
use klnode_query::{Reader, ScoringParams};
use klnode_replication::{self, PairError, ReleasePolicy};
use klnode_store::{Durability, MemoryMedium, Options, Store};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A node that runs until it is dropped.
pub struct Node {
    /// The node's identity.
    pub author: AuthorId,
    /// Handle to the writer; also gives read access to the store.
    pub engine: klnode_engine::Handle,
    /// Handle to replication, for pairing and filters.
    pub peers: klnode_replication::Handle,
    running: Option<(klnode_replication::ReplicationThread, klnode_engine::EngineThread)>,
}

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn entropy(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system has random bytes");
}

impl Node {
    /// Starts a node with a fresh key and an empty store.
    pub fn start(name: &str) -> Result<Self, Box<dyn Error>> {
        let mut drawn = [0; 48];
        entropy(&mut drawn);
        let (mut secret, mut id) = ([0; 32], [0; 16]);
        secret.copy_from_slice(&drawn[..32]);
        id.copy_from_slice(&drawn[32..]);
        let key = SecretKey::from_bytes(&secret);
        let (author, config) = (key.author(), Config::default());
        let store = Store::open(Box::new(MemoryMedium), &Options::new(StoreId::from_bytes(id)))?;
        let setup = klnode_engine::Setup {
            key: key.clone(),
            entropy: Box::new(entropy),
            judge: Box::new(|_: &Record, _: RecordSource| ScreenDecision::Admit),
            durability: Durability::Durable,
            cooccurrence: klnode_query::cooccurrence(&config.cooccurrence),
            tasks: klnode_query::tasks(&config),
        };
        let engine = klnode_engine::spawn(
            Engine::start(store, setup, now())?,
            klnode_engine::Limits::default(),
            now,
        );
        let reader = Arc::new(Reader::new(author, ScoringParams::new(&config)));
        let options = klnode_replication::Options {
            net: net::Settings {
                key,
                listen: vec!["/ip4/127.0.0.1/tcp/0".into()],
                usual_port: None,
                limits: limits(),
            },
            replica: klnode_replication::Setup {
                own: author,
                policy: ReleasePolicy::new(reader, &config.filter),
                settings: proto::Settings { debounce_ms: 20, ..proto::Settings::default() },
                sweep_ms: 600_000,
            },
            name: name.to_owned(),
            announced: Vec::new(),
            note_port: Box::new(|_| ()),
            ticket_lifetime: Duration::from_secs(600),
            join_lifetime: Duration::from_secs(600),
            now,
            entropy,
        };
        let replication = klnode_replication::start(options, engine.handle())?;
        let (handle, peers) = (engine.handle(), replication.handle());
        Ok(Self { author, engine: handle, peers, running: Some((replication, engine)) })
    }

    /// Invites another node and lets it join. With `workspace` the other node becomes a member of
    /// it; without, another node of the same person.
    pub async fn pair(&self, other: &Self, workspace: Option<&str>) -> Result<(), PairError> {
        let mut changes = self.peers.changes();
        while self.peers.live().addresses.is_empty() && changes.changed().await.is_ok() {}
        let name = workspace.map(str::to_owned);
        let ticket = self.peers.call(move |core| match name {
            Some(name) => core.invite_member(&name, false),
            None => core.invite_mine(false),
        });
        let ticket = ticket.await??;
        other.peers.join(ticket.to_string(), None).await?;
        Ok(())
    }

    /// Writes a lesson and returns its id.
    pub async fn learn(
        &self,
        workspace: WorkspaceId,
        title: &str,
        tags: &[&str],
    ) -> Result<EntryId, Box<dyn Error>> {
        let new = NewEntry {
            workspace,
            memory: Memory::Semantic,
            kind: EntryType::Lesson,
            title: title.into(),
            content: format!("Notes about: {title}."),
            registers: Vec::new(),
            claims: tags.iter().map(|tag| ClaimEdit::Add(TextSet::TAGS, (*tag).into())).collect(),
            citations: vec![Citation {
                evidence_type: "doc".into(),
                evidence_ref: "examples".into(),
                cited_by: "example".into(),
                cited_at: now(),
                is_context: false,
            }],
            source: None,
        };
        match self.engine.submit(Command::Create(Box::new(new))).await? {
            Receipt::Created(entry) => Ok(entry),
            other => Err(format!("the entry was not created: {other:?}").into()),
        }
    }

    /// Waits until the node holds an entry.
    pub async fn has(&self, entry: EntryId) -> Result<(), Box<dyn Error>> {
        let mut head = self.engine.head();
        while !self.holds(entry)? {
            head.changed().await?;
        }
        Ok(())
    }

    /// True if the node holds an entry now.
    pub fn holds(&self, entry: EntryId) -> Result<bool, Box<dyn Error>> {
        let row = self.engine.store().snapshot()?.view_row(entry)?;
        Ok(row.is_some_and(|row| !row.is_parked()))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some((replication, engine)) = self.running.take() {
            replication.stop();
            drop(engine.stop());
        }
    }
}

/// Runs a future that talks to nodes. Nodes must be started and dropped outside of it, because both
/// wait for threads.
pub fn run<T>(what: impl Future<Output = Result<T, Box<dyn Error>>>) -> Result<T, Box<dyn Error>> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(what)
}

fn limits() -> net::Limits {
    net::Limits {
        pending_connections_max: 32,
        established_connections_max: 128,
        peer_connections_max: 2,
        stranger_connections_max: 16,
        memory_bytes_max: 1 << 30,
        frame_bytes_max: net::FRAME_BYTES_MAX,
        pairing_frame_bytes_max: net::PAIRING_FRAME_BYTES_MAX,
        progress_bytes_per_second_min: 1_024,
        request_timeout: Duration::from_secs(30),
        redial_after: Duration::from_millis(200),
        redial_after_max: Duration::from_secs(5),
        stranger_lifetime: Duration::from_secs(60),
    }
}
