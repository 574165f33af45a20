//! What the examples share: a node in this process, with its store in memory and its peers on
//! loopback.

pub mod client;

use klnode::engine::{self, Command, Engine, NewEntry, Receipt, Source, Verdict};
use klnode::query::{Numbers, Reader};
use klnode::replicate::{self, Examiner, PairError};
use klnode::store::{Durability, MemoryMedium, Options, Store};
use klnode_config::Config;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::ids::{AuthorId, EntryId, StoreId, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use klnode_federation::{net, proto};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A node that runs until it is dropped.
pub struct Node {
    /// Who it is.
    pub author: AuthorId,
    /// The way to its writer, and to its store for reading.
    pub engine: engine::Handle,
    /// The way to its peers.
    pub peers: replicate::Handle,
    running: Option<(replicate::Running, engine::Running)>,
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
        let setup = engine::Setup {
            key: key.clone(),
            entropy: Box::new(entropy),
            judge: Box::new(|_: &Record, _: Source| Verdict::Admit),
            durability: Durability::Durable,
            cooccurrence: klnode::query::cooccurrence(&config.cooccurrence),
            tasks: klnode::query::tasks(&config),
        };
        let engine =
            engine::spawn(Engine::start(store, setup, now())?, engine::Limits::default(), now);
        let reader = Arc::new(Reader::new(author, Numbers::new(&config)));
        let options = replicate::Options {
            net: net::Settings {
                key,
                listen: vec!["/ip4/127.0.0.1/tcp/0".into()],
                usual_port: None,
                limits: limits(),
            },
            replica: replicate::Setup {
                own: author,
                examiner: Examiner::new(reader, &config.filter),
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
        let replication = replicate::start(options, engine.handle())?;
        let (handle, peers) = (engine.handle(), replication.handle());
        Ok(Self { author, engine: handle, peers, running: Some((replication, engine)) })
    }

    /// Invites another node, which joins.
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

    /// Writes a lesson.
    pub async fn learn(
        &self,
        workspace: WorkspaceId,
        title: &str,
        tags: &[&str],
    ) -> Result<EntryId, Box<dyn Error>> {
        let new = NewEntry {
            workspace,
            memory: Memory::Semantic,
            kind: Kind::Lesson,
            title: title.into(),
            content: format!("What we know about: {title}."),
            registers: Vec::new(),
            claims: tags.iter().map(|tag| Claim::Add(TextSet::TAGS, (*tag).into())).collect(),
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

    /// Whether the node holds an entry now.
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

/// Runs what talks to nodes. Nodes are started and dropped outside of it: they wait for threads of
/// their own.
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
