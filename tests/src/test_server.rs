//! An API server in this process, with limits controlled by the test, and a client that can
//! misbehave.

use crate::test_engine::{DiskMedium, admit_all, setup};
use klnode_config::Config;
use klnode_crdt::ids::{EntryId, StoreId, TaskId};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_engine::{
    self, Command, Confirmation, Engine, EngineThread, Receipt, RecordScreen, Setup, TaskCommand,
    TaskReceipt,
};
use klnode_home::Layout;
use klnode_http::BearerToken;
use klnode_index::{self, vectors};
use klnode_query::{Reader, ScoringParams, maintenance};
use klnode_replication::ReleasePolicy;
use klnode_server::exported_marks::MarksKey;
use klnode_server::person_auth::Person;
use klnode_server::sampling_seed::SampleKey;
use klnode_server::{BoundListener, Limits, Metrics, Service};
use klnode_store::row_types::CallerRow;
use klnode_store::{Options, Store};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::sync::oneshot;

const MILLIS_PER_DAY: u64 = 24 * 60 * 60 * 1_000;

/// Timeout of all waits.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Token of nodes that listen on TCP.
pub const TOKEN: &str = "a token that is not guessed";

/// A node that serves its API until it is dropped.
pub struct Served {
    /// Path of the Unix socket.
    pub socket: PathBuf,
    /// TCP address, if it listens on TCP.
    pub tcp: Option<SocketAddr>,
    /// Handle of the writer.
    pub engine: klnode_engine::Handle,
    /// Medium of the store.
    pub medium: DiskMedium,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    running: Option<EngineThread>,
    index: Option<klnode_index::Running>,
    _folder: TempDir,
}

/// Whether a node also listens on TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doors {
    /// Unix socket only.
    Socket,
    /// Unix socket and TCP port.
    Both,
}

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    WallTime::from_millis(since.as_millis() as u64)
}

impl Served {
    /// Starts a node on an in-memory disk.
    pub fn start(limits: Limits, doors: Doors) -> Self {
        Self::start_with_screen(limits, doors, admit_all())
    }

    /// Starts a node that ran these commands some days ago, and nothing since.
    pub fn start_after(days: u64, commands: &[Command]) -> (Self, Vec<Receipt>) {
        let mut receipts = Vec::new();
        let before = |engine: &mut Engine| {
            let then = now().as_millis() - days * MILLIS_PER_DAY;
            for done in engine.step(commands, WallTime::from_millis(then)) {
                receipts.push(done.expect("it was done"));
            }
        };
        let (limits, doors) = (Limits::default(), Doors::Socket);
        (Self::start_prepared(limits, doors, admit_all(), before), receipts)
    }

    /// Starts a node whose writer asks a judge.
    pub fn start_with_screen(limits: Limits, doors: Doors, judge: Box<dyn RecordScreen>) -> Self {
        Self::start_prepared(limits, doors, judge, |_| {})
    }

    fn start_prepared(
        limits: Limits,
        doors: Doors,
        judge: Box<dyn RecordScreen>,
        prepare: impl FnOnce(&mut Engine),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("klnode.sock");
        let medium = DiskMedium::new(crate::disk::Disk::new());
        let options = Options::new(StoreId::from_bytes([1; 16]));
        let store = Store::open(Box::new(medium.clone()), &options).expect("a fresh disk opens");
        let setup = Setup { judge, ..setup(1, 1) };
        let mut engine = Engine::start(store, setup, now()).expect("starts");
        prepare(&mut engine);
        let author = engine.author();
        let running = klnode_engine::spawn(engine, klnode_engine::Limits::default(), now);
        let reader = Arc::new(Reader::new(author, ScoringParams::new(&Config::default())));
        let policy = ReleasePolicy::new(reader.clone(), &Config::default().filter);
        let handle = running.handle();
        let setup = klnode_index::Setup {
            folder: folder.path().join("index"),
            model: klnode_embed::open(klnode_embed::Settings::BuiltIn).expect("is compiled in"),
            passages: None,
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own: author,
            now,
        };
        let wakes = klnode_index::Wakes { head: handle.head(), membership: handle.membership() };
        let index = klnode_index::start(setup, handle.store().clone(), wakes).expect("starts");
        let params = maintenance::Params::new(&Config::default().maintenance);
        let maintenance = Arc::new(maintenance::Maintenance::new(reader.clone(), params));
        let service = Service {
            engine: handle,
            index: index.index(),
            samples: Arc::new(SampleKey::of(&SecretKey::from_bytes(&[1; 32]))),
            reader,
            peers: None,
            policy: Arc::new(policy),
            author,
            home: Arc::new(folder.path().to_owned()),
            settings: Arc::default(),
            now,
            person: Arc::new(Person::new(&Layout::new(folder.path()), now())),
            marks: Arc::new(MarksKey::of(&SecretKey::from_bytes(&[1; 32]))),
            maintenance,
            metrics: Arc::new(Metrics::default()),
            stop: Arc::new(tokio::sync::Notify::new()),
        };
        let (stop, stopped) = oneshot::channel();
        let (ready, bound) = mpsc::channel();
        let (path, engine) = (socket.clone(), running.handle());
        let serving = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut door = BoundListener::bind(&path).await.expect("binds");
                if doors == Doors::Both {
                    let address = "127.0.0.1:0".parse().expect("an address");
                    let token = BearerToken::new(TOKEN.to_owned().into());
                    door = door.bind_tcp(address, token).await.expect("binds");
                }
                ready.send(door.tcp_address()).expect("the test waits");
                let stop = async { stopped.await.unwrap_or_default() };
                door.serve(service, limits, stop).await.expect("serves");
            });
        });
        let tcp = bound.recv_timeout(PATIENCE).expect("binds");
        let (stop, serving) = (Some(stop), Some(serving));
        let (running, index) = (Some(running), Some(index));
        Self { socket, tcp, engine, medium, stop, serving, running, index, _folder: folder }
    }

    /// A connection to the socket.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A connection to the TCP port.
    pub fn connect_tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.tcp.expect("a port")).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends a request on a new connection.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        ask(self.connect(), method, path, headers, body)
    }

    /// Sends a request with a JSON body.
    pub fn json(&self, method: &str, path: &str, body: &serde_json::Value) -> Answer {
        let headers = [("Content-Type", "application/json")];
        self.ask(method, path, &headers, body.to_string().as_bytes())
    }

    /// The result of a confirmation in a task by another user that was served nothing.
    pub fn confirm_as_another(&self, entry: &str, task: &str) -> Confirmation {
        let entry = EntryId::from_hex(entry).expect("an entry's id");
        let task = TaskId::from_hex(task).expect("a task's id");
        let act = TaskCommand::Confirm { task, entry, is_lowered: false };
        let caller = CallerRow { uid: Some(u32::MAX), ..CallerRow::default() };
        let command = Box::new(Command::Task(Box::new(act)));
        match self.engine.submit_blocking(Command::As { caller, command }) {
            Ok(Receipt::Task(TaskReceipt::Confirmed(of))) => of,
            other => panic!("it was not confirmed: {other:?}"),
        }
    }

    /// Stops the node and waits for its end.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended already.
            let _ = stop.send(());
        }
        if let Some(serving) = self.serving.take() {
            serving.join().expect("the server does not panic");
        }
        if let Some(index) = self.index.take() {
            index.stop();
        }
        if let Some(running) = self.running.take() {
            drop(running.stop());
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status; 0 if the connection closed without a response.
    pub status: u16,
    /// Header lines as received.
    pub head: String,
    /// Bytes of the body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Bytes of a request with `Connection: close`.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        text.push_str("Host: klnode\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}

/// Sends a request on a connection, and reads the response to its end.
pub fn ask(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    stream.write_all(&request(method, path, headers, body)).expect("sent");
    read(stream)
}

/// Reads a response to the end of the connection.
pub fn read(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    // The bytes received before a connection broke are used.
    let _ = stream.read_to_end(&mut bytes);
    let end =
        bytes.windows(4).position(|part| part == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes[end..].to_vec() }
}
