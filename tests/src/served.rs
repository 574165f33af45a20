//! A served API in this process, with limits in the test's hand, and a client that can misbehave.

use crate::node::{DiskMedium, admit_all, setup};
use klnode::api::person::Person;
use klnode::api::portable::marks::MarksKey;
use klnode::api::sampling::SampleKey;
use klnode::api::{Bound, Limits, Metrics, Service, Token};
use klnode::engine::{
    self, Command, Confirmation, Engine, Judge, Receipt, Running, Setup, TaskAct, TaskDone,
};
use klnode::index::{self, embed, vectors};
use klnode::query::{Numbers, Reader, upkeep};
use klnode::replicate::Examiner;
use klnode::store::rows::CallerRow;
use klnode::store::{Layout, Options, Store};
use klnode_config::Config;
use klnode_crdt::ids::{EntryId, StoreId, TaskId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::time::WallTime;
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

/// What waits longer than this has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The token of nodes that listen on TCP.
pub const TOKEN: &str = "a token that is not guessed";

/// A node that answers on a socket until it is dropped.
pub struct Served {
    /// The socket.
    pub socket: PathBuf,
    /// The port, if it has one.
    pub tcp: Option<SocketAddr>,
    /// Its writer.
    pub engine: engine::Handle,
    /// Its disk.
    pub medium: DiskMedium,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    running: Option<Running>,
    index: Option<index::Running>,
    _folder: TempDir,
}

/// Whether a node listens on TCP too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doors {
    /// On its socket alone.
    Socket,
    /// On a port as well.
    Both,
}

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    WallTime::from_millis(since.as_millis() as u64)
}

impl Served {
    /// Starts a node on a disk in memory.
    pub fn start(limits: Limits, doors: Doors) -> Self {
        Self::start_judged(limits, doors, admit_all())
    }

    /// Starts a node that has done this some days ago, and nothing since.
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
    pub fn start_judged(limits: Limits, doors: Doors, judge: Box<dyn Judge>) -> Self {
        Self::start_prepared(limits, doors, judge, |_| {})
    }

    fn start_prepared(
        limits: Limits,
        doors: Doors,
        judge: Box<dyn Judge>,
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
        let running = engine::spawn(engine, engine::Limits::default(), now);
        let reader = Arc::new(Reader::new(author, Numbers::new(&Config::default())));
        let examiner = Examiner::new(reader.clone(), &Config::default().filter);
        let handle = running.handle();
        let setup = index::Setup {
            folder: folder.path().join("index"),
            model: embed::open(embed::Settings::BuiltIn).expect("is compiled in"),
            limits: vectors::Limits { hnsw_entries_min: 200_000, hnsw_dead_fraction_max: 0.1 },
            own: author,
            now,
        };
        let wakes = index::Wakes { head: handle.head(), society: handle.society() };
        let index = index::start(setup, handle.store().clone(), wakes).expect("starts");
        let params = upkeep::Params::new(&Config::default().upkeep);
        let upkeep = Arc::new(upkeep::Upkeep::new(reader.clone(), params));
        let service = Service {
            engine: handle,
            index: index.index(),
            samples: Arc::new(SampleKey::of(&SecretKey::from_bytes(&[1; 32]))),
            reader,
            peers: None,
            examiner: Arc::new(examiner),
            author,
            home: Arc::new(folder.path().to_owned()),
            now,
            person: Arc::new(Person::new(&Layout::new(folder.path()), now())),
            marks: Arc::new(MarksKey::of(&SecretKey::from_bytes(&[1; 32]))),
            upkeep,
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
                let mut door = Bound::bind(&path).await.expect("binds");
                if doors == Doors::Both {
                    let address = "127.0.0.1:0".parse().expect("an address");
                    let token = Token::new(TOKEN.to_owned().into());
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

    /// A connection to the port.
    pub fn connect_tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.tcp.expect("a port")).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Asks on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        ask(self.connect(), method, path, headers, body)
    }

    /// Asks in JSON.
    pub fn json(&self, method: &str, path: &str, body: &serde_json::Value) -> Answer {
        let headers = [("Content-Type", "application/json")];
        self.ask(method, path, &headers, body.to_string().as_bytes())
    }

    /// As what a confirmation in a task counts where another user says so, who was served nothing.
    pub fn confirm_as_another(&self, entry: &str, task: &str) -> Confirmation {
        let entry = EntryId::from_hex(entry).expect("an entry's id");
        let task = TaskId::from_hex(task).expect("a task's id");
        let act = TaskAct::Confirm { task, entry, is_lowered: false };
        let caller = CallerRow { uid: Some(u32::MAX), ..CallerRow::default() };
        let command = Box::new(Command::Task(Box::new(act)));
        match self.engine.submit_blocking(Command::As { caller, command }) {
            Ok(Receipt::Task(TaskDone::Confirmed(of))) => of,
            other => panic!("it was not confirmed: {other:?}"),
        }
    }

    /// Tells the node to stop and waits until it has.
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

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status; 0 if nothing came.
    pub status: u16,
    /// The headers, as they came.
    pub head: String,
    /// The body.
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

/// The bytes of a request after which the connection is closed.
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

/// Asks on a connection, and reads the answer to its end.
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

/// Reads an answer to the end of the connection.
pub fn read(mut stream: impl Read) -> Answer {
    let mut bytes = Vec::new();
    // Whatever came before a connection broke is what there is to look at.
    let _ = stream.read_to_end(&mut bytes);
    let end =
        bytes.windows(4).position(|part| part == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes[end..].to_vec() }
}
