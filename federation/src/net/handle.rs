//! What the task is told, and the two ways by which it hears it.
//!
//! Requests, answers, dials and partings are commands in a channel of bounded length; when it is
//! full the caller is told so and nothing waits. Who is approved must never be lost, so that is kept
//! apart as what is wished for each peer: the newest wish replaces the older one, and there are no
//! more wishes than peers. Wishes are heeded before the commands that follow them.

use super::{Event, LONGEST, Protocol};
use klnode_crdt::ids::AuthorId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// Commands that wait for the task.
const COMMANDS_MAX: usize = 256;

/// Events that wait for whoever reads them. Each may hold a frame.
const EVENTS_MAX: usize = 64;

/// The command was not taken: too many wait, or the network has been stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tell the network: it is busy or has been stopped")]
pub struct Busy;

/// Says what the network is to do. Cheap to clone; nothing here waits but [`Handle::stop`].
#[derive(Clone, Debug)]
pub struct Handle {
    wishes: Arc<Wishes>,
    commands: mpsc::Sender<Command>,
    stop: Arc<watch::Sender<bool>>,
    done: watch::Receiver<()>,
}

impl Handle {
    /// Approves a peer and says where it may be found, with or without `/p2p`. It is dialled now,
    /// and again whenever it is lost. Calling it again replaces the addresses.
    pub fn allow(&self, peer: AuthorId, addresses: Vec<String>) {
        self.wishes.add(peer, Wish::Allow(addresses));
    }

    /// Takes the approval back: the peer is disconnected and no longer dialled.
    pub fn forbid(&self, peer: AuthorId) {
        self.wishes.add(peer, Wish::Forbid);
    }

    /// Dials an address once, to pair with whoever is there: [`Event::Connected`] or
    /// [`Event::DialFailed`] follows.
    pub fn dial(&self, address: String) -> Result<(), Busy> {
        self.command(Command::Dial { address })
    }

    /// Asks a connected peer something. One [`Event::Response`] or [`Event::Failed`] with this
    /// `id` follows.
    pub fn request(
        &self,
        peer: AuthorId,
        protocol: Protocol,
        id: u64,
        frame: Vec<u8>,
    ) -> Result<(), Busy> {
        self.command(Command::Request { peer, protocol, id, frame })
    }

    /// Answers an [`Event::Request`]. An exchange that is over is ignored.
    pub fn respond(&self, exchange: u64, frame: Vec<u8>) -> Result<(), Busy> {
        self.command(Command::Respond { exchange, frame })
    }

    /// Parts from a peer, which stays away for so long: it is neither dialled nor let in.
    pub fn disconnect(&self, peer: AuthorId, for_: Duration) -> Result<(), Busy> {
        self.command(Command::Disconnect { peer, for_: for_.min(LONGEST) })
    }

    /// Closes all connections and listeners, and waits until that is done.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut done = self.done.clone();
        // Nothing is ever sent: it ends with an error when the task has dropped its side.
        while done.changed().await.is_ok() {}
    }

    fn command(&self, command: Command) -> Result<(), Busy> {
        self.commands.try_send(command).map_err(|_| Busy)
    }
}

/// What happens, in order. If it is not read, the network waits.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// The next event; none when the network has stopped.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
}

/// What the task does once, when it comes to it.
#[derive(Debug)]
pub(super) enum Command {
    Dial { address: String },
    Request { peer: AuthorId, protocol: Protocol, id: u64, frame: Vec<u8> },
    Respond { exchange: u64, frame: Vec<u8> },
    Disconnect { peer: AuthorId, for_: Duration },
}

/// What is newly wished for each peer.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    new: Mutex<BTreeMap<AuthorId, Wish>>,
    changed: Notify,
}

/// Whether a peer is to be approved, and where it is.
#[derive(Debug)]
pub(super) enum Wish {
    Allow(Vec<String>),
    Forbid,
}

impl Wishes {
    fn add(&self, peer: AuthorId, wish: Wish) {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).insert(peer, wish);
        self.changed.notify_one();
    }

    pub(super) fn take(&self) -> BTreeMap<AuthorId, Wish> {
        std::mem::take(&mut self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there may be something new.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The task's ends of everything that leads to and from it.
pub(super) struct Ends {
    pub(super) wishes: Arc<Wishes>,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) stop: watch::Receiver<bool>,
    /// Held until the task has ended, for those who wait for that.
    pub(super) done: watch::Sender<()>,
}

/// A handle, its events, and the ends that the task holds.
pub(super) fn open() -> (Handle, Events, Ends) {
    let wishes = Arc::new(Wishes::default());
    let (command_sender, commands) = mpsc::channel(COMMANDS_MAX);
    let (events, event_receiver) = mpsc::channel(EVENTS_MAX);
    let (stop_sender, stop) = watch::channel(false);
    let (done, done_receiver) = watch::channel(());
    let handle = Handle {
        wishes: Arc::clone(&wishes),
        commands: command_sender,
        stop: Arc::new(stop_sender),
        done: done_receiver,
    };
    (handle, Events(event_receiver), Ends { wishes, commands, events, stop, done })
}
