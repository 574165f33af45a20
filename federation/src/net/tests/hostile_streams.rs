//! Hostile peers: violations end their own stream or connection and affect no other peer.
//!
//! Each hostile peer is a libp2p node that opens streams of our protocols and writes arbitrary
//! bytes. After each attack an honest peer of the same node must still be served.

use super::*;
use crate::net::address::peer_id;
use libp2p::futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::request_response::{self, Codec, Message, ProtocolSupport};
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, StreamProtocol, Swarm, SwarmBuilder, noise, tcp, yamux};
use std::io;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// The bytes a hostile peer writes, and its behaviour afterwards.
#[derive(Clone, Debug)]
enum Attack {
    /// Writes these bytes, closes its side, and waits for an answer.
    Write(Vec<u8>),
    /// Writes these bytes, then one byte from time to time.
    Trickle(Vec<u8>),
    /// Writes these bytes, keeps the stream open, and writes nothing more.
    Stall(Vec<u8>),
    /// Writes without end.
    Flood,
}

#[derive(Clone, Default)]
struct Raw;

impl Codec for Raw {
    type Protocol = StreamProtocol;
    type Request = Attack;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<Attack>
    where
        T: AsyncRead + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut all = Vec::new();
        io.read_to_end(&mut all).await?;
        Ok(all)
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        attack: Attack,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        match attack {
            Attack::Write(bytes) => {
                io.write_all(&bytes).await?;
                io.flush().await
            }
            Attack::Trickle(bytes) => {
                io.write_all(&bytes).await?;
                let mut tick = tokio::time::interval(Duration::from_millis(50));
                loop {
                    io.flush().await?;
                    tick.tick().await;
                    io.write_all(&[0]).await?;
                }
            }
            Attack::Stall(bytes) => {
                io.write_all(&bytes).await?;
                io.flush().await?;
                std::future::pending().await
            }
            Attack::Flood => loop {
                io.write_all(&[0xAB; 4096]).await?;
                io.flush().await?;
            },
        }
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        _: &mut T,
        _: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
}

struct Enemy {
    swarm: Swarm<request_response::Behaviour<Raw>>,
    author: AuthorId,
}

impl Enemy {
    fn new(number: u8, protocol: Protocol) -> Self {
        let key = SecretKey::from_bytes(&[number; 32]);
        let keypair = Keypair::ed25519_from_bytes(*key.to_bytes()).unwrap();
        Self { swarm: swarm(keypair, protocol), author: key.author() }
    }

    /// Connects, and returns once the connection is established.
    async fn connect(&mut self, node: &Node) {
        self.swarm.dial(node.address.parse::<Multiaddr>().unwrap()).unwrap();
        let wait = async {
            while !matches!(self.swarm.next().await, Some(SwarmEvent::ConnectionEstablished { .. }))
            {
            }
        };
        timeout(PATIENCE, wait).await.expect("a connection");
    }

    /// Opens a stream and attacks. Returns the answer or the reason of the failure.
    async fn attack(&mut self, node: &Node, attack: Attack) -> Result<Vec<u8>, String> {
        self.swarm.behaviour_mut().send_request(&peer_id(&node.author), attack);
        let wait = async {
            loop {
                match self.swarm.select_next_some().await {
                    SwarmEvent::Behaviour(request_response::Event::Message {
                        message: Message::Response { response, .. },
                        ..
                    }) => return Ok(response),
                    SwarmEvent::Behaviour(request_response::Event::OutboundFailure {
                        error,
                        ..
                    }) => return Err(error.to_string()),
                    SwarmEvent::ConnectionClosed { .. } => return Err("closed".to_owned()),
                    _ => {}
                }
            }
        };
        timeout(PATIENCE, wait).await.expect("the attack ends")
    }
}

fn swarm(keypair: Keypair, protocol: Protocol) -> Swarm<request_response::Behaviour<Raw>> {
    let names = [(StreamProtocol::new(protocol.name()), ProtocolSupport::Full)];
    let config = request_response::Config::default().with_request_timeout(PATIENCE);
    SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| request_response::Behaviour::<Raw>::new(names, config))
        .unwrap()
        .with_swarm_config(|config| config.with_idle_connection_timeout(PATIENCE))
        .build()
}

/// A node, an honest approved peer, and an enemy that is approved too if the protocol is `Sync`.
async fn besieged(number: u8, protocol: Protocol, progress_min: u64) -> (Node, Node, Enemy) {
    let set_progress = |limits: &mut Limits| limits.progress_bytes_per_second_min = progress_min;
    let mut node = Node::with(number, LOOPBACK, set_progress).await;
    let mut friend = Node::new(number + 1).await;
    introduce(&mut friend, &mut node).await;
    let mut enemy = Enemy::new(number + 2, protocol);
    if protocol == Protocol::Sync {
        node.handle.allow(enemy.author, Vec::new());
        // Approvals take effect before later events.
        assert!(friend.ask(&mut node, Protocol::Sync, b"first").await.is_ok());
    }
    enemy.connect(&node).await;
    node.until_connected(enemy.author).await;
    (node, friend, enemy)
}

#[tokio::test]
async fn a_frame_length_beyond_the_limit_ends_only_its_stream() {
    for (number, protocol, limit) in
        [(50, Protocol::Sync, FRAME_BYTES_MAX), (53, Protocol::Pair, PAIRING_FRAME_BYTES_MAX)]
    {
        // With no minimum rate, only the length can end the stream before the request timeout.
        let (mut node, mut friend, mut enemy) = besieged(number, protocol, 0).await;
        for length in [u32::MAX, limit as u32 + 1] {
            let begun = Instant::now();
            let end = enemy.attack(&node, Attack::Trickle(length.to_be_bytes().to_vec())).await;
            assert!(end.is_err(), "{end:?}");
            assert!(begun.elapsed() < Limits::for_tests().request_timeout / 2);
        }
        assert!(friend.ask(&mut node, Protocol::Sync, b"well?").await.is_ok());
    }
}

#[tokio::test]
async fn an_endless_slow_frame_is_cut_off() {
    let (mut node, mut friend, mut enemy) = besieged(56, Protocol::Sync, 1024).await;
    let begun = Instant::now();
    let claim = (FRAME_BYTES_MAX as u32).to_be_bytes().to_vec();
    let end = enemy.attack(&node, Attack::Trickle(claim)).await;
    assert!(end.is_err(), "{end:?}");
    assert!(begun.elapsed() < Limits::for_tests().request_timeout * 3 / 4);
    assert!(friend.ask(&mut node, Protocol::Sync, b"well?").await.is_ok());
}

#[tokio::test]
async fn a_truncated_frame_is_not_a_request() {
    let (mut node, friend, mut enemy) = besieged(67, Protocol::Sync, 1024).await;
    let end = enemy.attack(&node, Attack::Write(vec![0, 0, 0, 9, 1])).await;
    assert_eq!(end.unwrap_or_default(), b"");
    friend.handle.request(node.author, Protocol::Sync, 1, b"next".to_vec()).unwrap();
    assert_eq!(node.until_asked().await.2, b"next");
}

#[tokio::test]
async fn stalled_streams_and_floods_do_not_affect_others() {
    let (mut node, mut friend, mut enemy) = besieged(59, Protocol::Sync, 1024).await;
    for _ in 0..40 {
        let stall = Attack::Stall(vec![0, 0, 1]);
        enemy.swarm.behaviour_mut().send_request(&peer_id(&node.author), stall);
        enemy.swarm.behaviour_mut().send_request(&peer_id(&node.author), Attack::Flood);
    }
    let keep_attacking = async {
        loop {
            enemy.swarm.select_next_some().await;
        }
    };
    let work = async {
        for _ in 0..50 {
            assert!(friend.ask(&mut node, Protocol::Sync, b"well?").await.is_ok());
        }
    };
    tokio::select! {
        () = keep_attacking => unreachable!("the attack never ends"),
        () = work => {}
    }
}

#[tokio::test]
async fn sync_requests_of_an_unapproved_peer_are_not_read() {
    let (mut node, mut friend) = (Node::new(62).await, Node::new(63).await);
    introduce(&mut friend, &mut node).await;
    let mut enemy = Enemy::new(64, Protocol::Sync);
    enemy.connect(&node).await;
    node.until_connected(enemy.author).await;
    let end = enemy.attack(&node, Attack::Write(vec![0, 0, 0, 1, 9])).await;
    assert!(end.is_err(), "{end:?}");
    // If the enemy's request had been read, it would come before this one.
    friend.handle.request(node.author, Protocol::Sync, 1, b"next".to_vec()).unwrap();
    assert_eq!(node.until_asked().await.2, b"next");
}

#[tokio::test]
async fn garbage_and_half_open_connections_are_tolerated() {
    let (mut node, mut friend) = (Node::new(65).await, Node::new(66).await);
    let port = node.address.split('/').nth(4).unwrap().parse::<u16>().unwrap();
    let mut half_open = Vec::new();
    for _ in 0..200 {
        half_open.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    for _ in 0..50 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        drop(stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await);
    }
    // While all slots for incoming connections are taken, the node can still dial out.
    friend.handle.allow(node.author, Vec::new());
    node.handle.allow(friend.author, vec![friend.address.clone()]);
    node.until_connected(friend.author).await;
    assert!(node.ask(&mut friend, Protocol::Sync, b"well?").await.is_ok());
    drop(half_open);
}

// Other systems have only one loopback address.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn half_open_connections_of_one_host_do_not_block_others() {
    let (node, mut friend) = (Node::new(68).await, Node::new(69).await);
    let port = node.address.split('/').nth(4).unwrap().parse::<u16>().unwrap();
    let mut half_open = Vec::new();
    for _ in 0..50 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        half_open.push(socket.connect(([127, 0, 0, 1], port).into()).await.unwrap());
    }
    friend.handle.dial(node.address.clone()).unwrap();
    let came_in = friend.until(|event| match event {
        Event::Connected { .. } => Some(true),
        Event::DialFailed { .. } => Some(false),
        _ => None,
    });
    assert!(came_in.await);
    drop(half_open);
}
