//! The handle through which callers control the actor.
//!
//! Requests, answers, dials and disconnects are commands in a bounded channel; if it is full, the
//! caller gets [`QueueFull`] and nothing blocks. Approvals must never be lost, so they are stored
//! separately as one intent per peer: a newer intent replaces the older one, so there are at most
//! as many intents as peers. Intents take effect before the commands that follow them.

use super::{DURATION_MAX, Event, Protocol};
use klnode_crdt::ids::AuthorId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};

/// Maximum number of queued commands.
const COMMANDS_MAX: usize = 256;

/// Maximum number of unread events. Each may hold a frame.
const EVENTS_MAX: usize = 64;

/// The command was not accepted: the queue is full, or the network has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The network is busy or has been stopped. Try again.")]
pub struct QueueFull;

/// Controls the network. It is cheap to clone, and only [`Handle::stop`] waits.
#[derive(Clone, Debug)]
pub struct Handle {
    wishes: Arc<PendingIntents>,
    commands: mpsc::Sender<NetCommand>,
    stop: Arc<watch::Sender<bool>>,
    done: watch::Receiver<()>,
}

impl Handle {
    /// Approves a peer and sets its addresses, with or without `/p2p`. The peer is dialled now and
    /// again whenever it is lost. A second call replaces the addresses.
    pub fn allow(&self, peer: AuthorId, addresses: Vec<String>) {
        self.wishes.add(peer, PeerIntent::Allow(addresses));
    }

    /// Revokes the approval: the peer is disconnected and no longer dialled.
    pub fn forbid(&self, peer: AuthorId) {
        self.wishes.add(peer, PeerIntent::Forbid);
    }

    /// Dials an address once, to pair with the node there. [`Event::Connected`] or
    /// [`Event::DialFailed`] follows.
    pub fn dial(&self, address: String) -> Result<(), QueueFull> {
        self.command(NetCommand::Dial { address })
    }

    /// Sends a request to a connected peer. Exactly one [`Event::Response`] or [`Event::Failed`]
    /// with this `id` follows.
    pub fn request(
        &self,
        peer: AuthorId,
        protocol: Protocol,
        id: u64,
        frame: Vec<u8>,
    ) -> Result<(), QueueFull> {
        self.command(NetCommand::Request { peer, protocol, id, frame })
    }

    /// Answers an [`Event::Request`]. Ignored if the exchange has ended.
    pub fn respond(&self, exchange: u64, frame: Vec<u8>) -> Result<(), QueueFull> {
        self.command(NetCommand::Respond { exchange, frame })
    }

    /// Disconnects a peer and bans it for this long: it is neither dialled nor admitted.
    pub fn disconnect(&self, peer: AuthorId, for_: Duration) -> Result<(), QueueFull> {
        self.command(NetCommand::Disconnect { peer, for_: for_.min(DURATION_MAX) })
    }

    /// Closes all connections and listeners and waits until that is done.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut done = self.done.clone();
        // No value is ever sent: `changed` fails when the actor has dropped its side.
        while done.changed().await.is_ok() {}
    }

    fn command(&self, command: NetCommand) -> Result<(), QueueFull> {
        self.commands.try_send(command).map_err(|_| QueueFull)
    }
}

/// Network events in order. If they are not read, the network stops accepting input.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// The next event; `None` after the network has stopped.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
}

/// A one-off instruction to the actor.
#[derive(Debug)]
pub(super) enum NetCommand {
    Dial { address: String },
    Request { peer: AuthorId, protocol: Protocol, id: u64, frame: Vec<u8> },
    Respond { exchange: u64, frame: Vec<u8> },
    Disconnect { peer: AuthorId, for_: Duration },
}

/// Changes of approval that the actor has not applied yet.
#[derive(Debug, Default)]
pub(super) struct PendingIntents {
    new: Mutex<BTreeMap<AuthorId, PeerIntent>>,
    changed: Notify,
}

/// Whether a peer is approved, and its addresses.
#[derive(Debug)]
pub(super) enum PeerIntent {
    Allow(Vec<String>),
    Forbid,
}

impl PendingIntents {
    fn add(&self, peer: AuthorId, wish: PeerIntent) {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).insert(peer, wish);
        self.changed.notify_one();
    }

    pub(super) fn take(&self) -> BTreeMap<AuthorId, PeerIntent> {
        std::mem::take(&mut self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there may be a new intent.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The actor's ends of the channels.
pub(super) struct ActorChannels {
    pub(super) wishes: Arc<PendingIntents>,
    pub(super) commands: mpsc::Receiver<NetCommand>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) stop: watch::Receiver<bool>,
    /// Dropped when the actor has ended, which wakes the callers of [`Handle::stop`].
    pub(super) done: watch::Sender<()>,
}

/// Creates a handle, its events and the actor's ends.
pub(super) fn open() -> (Handle, Events, ActorChannels) {
    let wishes = Arc::new(PendingIntents::default());
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
    (handle, Events(event_receiver), ActorChannels { wishes, commands, events, stop, done })
}
