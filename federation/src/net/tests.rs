//! Tests with nodes on this machine's loopback interface, on ports that the system chooses.
//!
//! Each test waits for events with one common deadline and prints the events it has seen if the
//! deadline passes. Attacks are in `hostile_streams`, overload in `limits`.

mod hostile_streams;
mod limits;

use super::*;
use tokio::time::timeout;

/// Deadline for every wait. Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

const LOOPBACK: &str = "/ip4/127.0.0.1/tcp/0";

struct Node {
    author: AuthorId,
    handle: Handle,
    events: Events,
    /// The first listen address, with its peer id.
    address: String,
}

impl Node {
    async fn new(number: u8) -> Self {
        Self::with(number, LOOPBACK, |_| {}).await
    }

    async fn with(number: u8, listen: &str, change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::for_tests();
        change(&mut limits);
        Self::at(number, listen, None, limits).await
    }

    async fn at(number: u8, listen: &str, usual_port: Option<u16>, limits: Limits) -> Self {
        let key = SecretKey::from_bytes(&[number; 32]);
        let author = key.author();
        let settings = Settings { key, listen: vec![listen.to_owned()], usual_port, limits };
        let (handle, events) = start(settings).await.unwrap();
        let mut node = Self { author, handle, events, address: String::new() };
        node.address = node
            .until(|event| match event {
                Event::Listening { address, .. } => Some(address),
                _ => None,
            })
            .await;
        node
    }

    /// Reads events until `pick` returns a value.
    async fn until<T>(&mut self, mut pick: impl FnMut(Event) -> Option<T>) -> T {
        let mut seen = Vec::new();
        let wait = async {
            loop {
                let event = self.events.next().await.expect("the task is running");
                let short = format!("{event:?}").chars().take(200).collect::<String>();
                seen.push(short);
                if let Some(picked) = pick(event) {
                    return picked;
                }
            }
        };
        let picked = timeout(PATIENCE, wait).await;
        picked.unwrap_or_else(|_| panic!("not seen in time; instead: {seen:#?}"))
    }

    async fn until_connected(&mut self, peer: AuthorId) {
        self.until(|event| match event {
            Event::Connected { peer: it, .. } if it == peer => Some(()),
            _ => None,
        })
        .await;
    }

    async fn until_disconnected(&mut self, peer: AuthorId) {
        self.until(|event| (event == Event::Disconnected { peer }).then_some(())).await;
    }

    /// The reason of the next failed dial.
    async fn until_dial_failed(&mut self) -> String {
        self.until(|event| match event {
            Event::DialFailed { reason, .. } => Some(reason),
            _ => None,
        })
        .await
    }

    /// The next request: its exchange, protocol and frame.
    async fn until_asked(&mut self) -> (u64, Protocol, Vec<u8>) {
        self.until(|event| match event {
            Event::Request { exchange, protocol, frame, .. } => Some((exchange, protocol, frame)),
            _ => None,
        })
        .await
    }

    /// The answer to a request, or the reason of its failure.
    async fn until_answered(&mut self, wanted: u64) -> Result<Vec<u8>, String> {
        self.until(|event| match event {
            Event::Response { id, frame, .. } if id == wanted => Some(Ok(frame)),
            Event::Failed { id, reason, .. } if id == wanted => Some(Err(reason)),
            _ => None,
        })
        .await
    }

    /// Sends a request and returns the answer, while the other node answers with the request and a
    /// `!`.
    async fn ask(
        &mut self,
        other: &mut Node,
        protocol: Protocol,
        frame: &[u8],
    ) -> Result<Vec<u8>, String> {
        self.handle.request(other.author, protocol, 7, frame.to_vec()).unwrap();
        let answer = async {
            loop {
                let (exchange, _, mut frame) = other.until_asked().await;
                frame.push(b'!');
                other.handle.respond(exchange, frame).unwrap();
            }
        };
        tokio::select! {
            answered = self.until_answered(7) => answered,
            () = answer => unreachable!("it answers for ever"),
        }
    }
}

/// Two connected nodes that have approved each other.
async fn paired(first: u8, second: u8) -> (Node, Node) {
    let (mut a, mut b) = (Node::new(first).await, Node::new(second).await);
    introduce(&mut a, &mut b).await;
    (a, b)
}

/// Makes two nodes approve each other; the first dials.
async fn introduce(a: &mut Node, b: &mut Node) {
    b.handle.allow(a.author, Vec::new());
    a.handle.allow(b.author, vec![b.address.clone()]);
    a.until_connected(b.author).await;
    b.until_connected(a.author).await;
}

#[tokio::test]
async fn two_nodes_exchange_frames_both_ways() {
    let (mut a, mut b) = paired(1, 2).await;
    assert_eq!(a.ask(&mut b, Protocol::Sync, b"hello").await, Ok(b"hello!".to_vec()));
    assert_eq!(b.ask(&mut a, Protocol::Sync, b"and you").await, Ok(b"and you!".to_vec()));
    assert_eq!(b.ask(&mut a, Protocol::Pair, b"").await, Ok(b"!".to_vec()));
}

#[tokio::test]
async fn a_connection_is_reported_once_with_peer_and_address() {
    let (mut a, mut b) = (Node::new(3).await, Node::new(4).await);
    b.handle.allow(a.author, Vec::new());
    a.handle.allow(b.author, vec![b.address.clone()]);
    let (there, _) = b.address.rsplit_once("/p2p/").unwrap();
    let connected = |event| matches!(event, Event::Connected { .. }).then_some(event);
    let Event::Connected { peer, address, .. } = a.until(connected).await else {
        unreachable!("only such events are picked")
    };
    assert_eq!(peer, b.author);
    assert!(address.starts_with(there), "{address}");
    let connected = |event| matches!(event, Event::Connected { .. }).then_some(event);
    let Event::Connected { peer, .. } = b.until(connected).await else {
        unreachable!("only such events are picked")
    };
    assert_eq!(peer, a.author);
}

#[tokio::test]
async fn a_dial_without_a_peer_id_reports_the_peer() {
    let (mut a, b) = (Node::new(60).await, Node::new(61).await);
    let (there, _) = b.address.rsplit_once("/p2p/").unwrap();
    a.handle.dial(there.to_owned()).unwrap();
    let (peer, dialled) = a
        .until(|event| match event {
            Event::Connected { peer, dialled, .. } => Some((peer, dialled)),
            _ => None,
        })
        .await;
    assert_eq!((peer, dialled.as_deref()), (b.author, Some(there)));
    let nowhere = "/ip4/127.0.0.1/tcp/1".to_owned();
    a.handle.dial(nowhere.clone()).unwrap();
    let failed = a
        .until(|event| match event {
            Event::DialFailed { dialled, .. } => Some(dialled),
            _ => None,
        })
        .await;
    assert_eq!(failed, Some(nowhere));
}

#[tokio::test]
async fn a_frame_of_maximum_length_is_transferred() {
    let (mut a, mut b) = paired(5, 6).await;
    let frame: Vec<u8> = (0..FRAME_BYTES_MAX).map(|i| (i % 251) as u8).collect();
    a.handle.request(b.author, Protocol::Sync, 1, frame.clone()).unwrap();
    let (exchange, _, heard) = b.until_asked().await;
    assert!(heard == frame);
    b.handle.respond(exchange, frame.clone()).unwrap();
    assert!(a.until_answered(1).await == Ok(frame));
}

#[tokio::test]
async fn a_longer_frame_is_refused_by_the_sender() {
    let (mut a, b) = paired(7, 8).await;
    let long = vec![0; FRAME_BYTES_MAX + 1];
    a.handle.request(b.author, Protocol::Sync, 1, long).unwrap();
    assert_eq!(a.until_answered(1).await, Err("the request is longer than a frame may be".into()));
    let long = vec![0; PAIRING_FRAME_BYTES_MAX + 1];
    a.handle.request(b.author, Protocol::Pair, 2, long).unwrap();
    assert_eq!(a.until_answered(2).await, Err("the request is longer than a frame may be".into()));
}

#[tokio::test]
async fn a_dial_fails_if_another_peer_answers() {
    let (mut a, mut b) = (Node::new(9).await, Node::new(10).await);
    let somebody = SecretKey::from_bytes(&[11; 32]).author();
    let (there, _) = b.address.rsplit_once("/p2p/").unwrap();
    let wrong = format!("{there}/p2p/{}", peer_id_text(somebody));
    a.handle.dial(wrong).unwrap();
    let reason = a.until_dial_failed().await;
    assert!(reason.contains(&peer_id_text(b.author)), "{reason}");
    // The same for an approved peer whose address belongs to another peer.
    a.handle.allow(somebody, vec![there.to_owned()]);
    let reason = a.until_dial_failed().await;
    assert!(reason.contains(&peer_id_text(b.author)), "{reason}");
    a.handle.forbid(somebody);
    a.handle.allow(b.author, vec![format!("{there}/p2p/{}", peer_id_text(somebody))]);
    assert_eq!(a.until_dial_failed().await, "the address names another peer");
    a.handle.dial(there.to_owned()).unwrap();
    a.until_connected(b.author).await;
    b.until_connected(a.author).await;
}

#[tokio::test]
async fn a_stranger_may_pair_but_not_sync_until_approved() {
    let (mut a, mut b) = (Node::new(12).await, Node::new(13).await);
    b.handle.dial(a.address.clone()).unwrap();
    b.until_connected(a.author).await;
    assert_eq!(b.ask(&mut a, Protocol::Pair, b"may I").await, Ok(b"may I!".to_vec()));
    let not_approved = b.ask(&mut a, Protocol::Sync, b"now").await;
    assert_eq!(not_approved, Err("the peer is not approved".into()));
    // Approval by one side only is not enough.
    b.handle.allow(a.author, Vec::new());
    let not_offered = b.ask(&mut a, Protocol::Sync, b"now").await;
    assert_eq!(not_offered, Err("the peer does not offer this protocol to this node".into()));
    assert_eq!(b.ask(&mut a, Protocol::Pair, b"and").await, Ok(b"and!".to_vec()));
    // The same connection can sync as soon as both sides have approved.
    a.handle.allow(b.author, Vec::new());
    assert_eq!(a.ask(&mut b, Protocol::Sync, b"yes").await, Ok(b"yes!".to_vec()));
    assert_eq!(b.ask(&mut a, Protocol::Sync, b"now").await, Ok(b"now!".to_vec()));
    // Revoking the approval ends it.
    a.handle.forbid(b.author);
    b.until_disconnected(a.author).await;
}

#[tokio::test]
async fn a_lost_peer_is_found_at_its_new_address() {
    let (mut a, mut b) = paired(14, 15).await;
    b.handle.stop().await;
    a.until_disconnected(b.author).await;
    assert_eq!(b.until_end().await, ());
    let mut b = Node::new(15).await;
    b.handle.allow(a.author, Vec::new());
    a.handle.allow(b.author, vec![b.address.clone()]);
    a.until_connected(b.author).await;
    assert_eq!(a.ask(&mut b, Protocol::Sync, b"again").await, Ok(b"again!".to_vec()));
}

#[tokio::test]
async fn an_unreachable_peer_is_redialled() {
    let mut a = Node::new(16).await;
    let b = Node::new(17).await;
    let address = b.address.clone();
    b.handle.stop().await;
    a.handle.allow(b.author, vec![address.clone()]);
    a.until_dial_failed().await;
    a.until_dial_failed().await;
    let (there, _) = address.rsplit_once("/p2p/").unwrap();
    let b = Node::with(17, there, |_| {}).await;
    b.handle.allow(a.author, Vec::new());
    a.until_connected(b.author).await;
}

#[tokio::test]
async fn all_addresses_of_a_peer_are_tried() {
    let (mut a, b) = (Node::new(18).await, Node::new(19).await);
    b.handle.allow(a.author, Vec::new());
    let dead = "/ip4/127.0.0.1/tcp/1".to_owned();
    a.handle.allow(b.author, vec![dead, "nonsense".to_owned(), b.address.clone()]);
    let reason = a.until_dial_failed().await;
    assert!(reason.contains("nonsense"), "{reason}");
    a.until_connected(b.author).await;
}

#[tokio::test]
async fn a_peer_announces_its_addresses() {
    let (a, mut b) = paired(20, 21).await;
    let (there, _) = a.address.rsplit_once("/p2p/").unwrap();
    let learned = Event::Learned { peer: a.author, addresses: vec![there.to_owned()] };
    b.until(|event| (event == learned).then_some(())).await;
    // The second node learns the first one's address only from the announcement.
    a.handle.disconnect(b.author, Duration::ZERO).unwrap();
    a.handle.forbid(b.author);
    b.until_disconnected(a.author).await;
    b.until_connected(a.author).await;
}

#[tokio::test]
async fn a_banned_peer_cannot_reconnect() {
    let (mut a, mut b) = paired(24, 25).await;
    b.handle.disconnect(a.author, Duration::from_secs(3600)).unwrap();
    b.until_disconnected(a.author).await;
    a.until_disconnected(b.author).await;
    b.handle.dial(a.address.clone()).unwrap();
    assert_eq!(b.until_dial_failed().await, "the peer is banned for a while");
}

#[tokio::test]
async fn a_dial_of_a_connected_peer_reports_it_once_more() {
    let (mut a, b) = paired(26, 27).await;
    a.handle.dial(b.address.clone()).unwrap();
    a.until_connected(b.author).await;
    let (there, _) = b.address.rsplit_once("/p2p/").unwrap();
    a.handle.dial(there.to_owned()).unwrap();
    a.until_connected(b.author).await;
}

#[tokio::test]
async fn a_node_does_not_connect_to_itself() {
    let mut a = Node::new(28).await;
    a.handle.allow(a.author, vec![a.address.clone()]);
    a.handle.dial(a.address.clone()).unwrap();
    a.until_dial_failed().await;
    a.handle.dial("/dns4/localhost/udp/5".to_owned()).unwrap();
    a.until_dial_failed().await;
}

#[tokio::test]
async fn a_request_without_a_connection_fails_at_once() {
    let mut a = Node::new(29).await;
    let nobody = SecretKey::from_bytes(&[99; 32]).author();
    a.handle.request(nobody, Protocol::Pair, 1, Vec::new()).unwrap();
    assert_eq!(a.until_answered(1).await, Err("the peer is not connected".into()));
    // An answer to an unknown exchange is ignored.
    a.handle.respond(12345, Vec::new()).unwrap();
    a.handle.request(nobody, Protocol::Pair, 2, Vec::new()).unwrap();
    assert_eq!(a.until_answered(2).await, Err("the peer is not connected".into()));
}

#[tokio::test]
async fn a_request_fails_when_its_peer_disconnects() {
    let (mut a, mut b) = paired(30, 31).await;
    a.handle.request(b.author, Protocol::Sync, 1, b"?".to_vec()).unwrap();
    b.until_asked().await;
    b.handle.stop().await;
    assert!(a.until_answered(1).await.is_err());
}

#[tokio::test]
async fn nodes_connect_over_ipv6() {
    let mut a = Node::with(32, "/ip6/::1/tcp/0", |_| {}).await;
    let mut b = Node::with(33, "/ip6/::1/tcp/0", |_| {}).await;
    introduce(&mut a, &mut b).await;
    assert_eq!(a.ask(&mut b, Protocol::Sync, b"six").await, Ok(b"six!".to_vec()));
}

#[tokio::test]
async fn nodes_connect_by_dns_name() {
    let (mut a, mut b) = (Node::new(34).await, Node::new(35).await);
    let (there, _) = b.address.rsplit_once("/p2p/").unwrap();
    let named = there.replace("/ip4/127.0.0.1/", "/dns4/localhost/");
    b.handle.allow(a.author, Vec::new());
    a.handle.allow(b.author, vec![named.clone()]);
    a.until_connected(b.author).await;
    assert_eq!(a.ask(&mut b, Protocol::Sync, b"name").await, Ok(b"name!".to_vec()));
    let mut c = Node::new(36).await;
    c.handle.dial(named.replace("/dns4/", "/dns/")).unwrap();
    c.until_connected(b.author).await;
}

#[tokio::test]
async fn the_unspecified_address_stands_for_every_interface() {
    let a = Node::with(37, "/ip4/0.0.0.0/tcp/0", |_| {}).await;
    assert!(!a.address.contains("/0.0.0.0/"), "{}", a.address);
    assert!(a.address.ends_with(&format!("/p2p/{}", peer_id_text(a.author))));
}

#[tokio::test]
async fn an_unusable_listen_address_is_reported() {
    let a = Node::new(38).await;
    let (taken, _) = a.address.rsplit_once("/p2p/").unwrap();
    for listen in [taken, "/dns4/localhost/tcp/0", "/ip4/192.0.2.1/tcp/0", "/ip4/1.2.3.4/udp/1"] {
        let key = SecretKey::from_bytes(&[39; 32]);
        let limits = Limits::for_tests();
        let (given, usual_port) = (vec![listen.to_owned()], None);
        let settings = Settings { key, listen: given, usual_port, limits };
        let error = start(settings).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(listen), "{listen}: {error}");
    }
}

#[tokio::test]
async fn the_previous_port_is_reused_if_free() {
    let a = Node::new(90).await;
    let (bare, _) = a.address.rsplit_once("/p2p/").unwrap();
    let usual: u16 = bare.rsplit('/').next().unwrap().parse().unwrap();
    let other = Node::at(91, LOOPBACK, Some(usual), Limits::for_tests()).await;
    assert!(!other.address.contains(&format!("/{usual}/")), "it is taken: {}", other.address);
    let bare = bare.to_owned();
    a.handle.stop().await;
    let back = Node::at(90, LOOPBACK, Some(usual), Limits::for_tests()).await;
    assert!(back.address.starts_with(&bare), "{} is not {bare}", back.address);
}

#[tokio::test]
async fn a_stopped_network_rejects_commands() {
    let (a, mut b) = paired(40, 41).await;
    let again = a.handle.clone();
    a.handle.stop().await;
    again.stop().await;
    assert_eq!(again.dial(b.address.clone()), Err(QueueFull));
    b.until_disconnected(a.author).await;
    // Without a handle the actor ends by itself.
    let mut a = a;
    a.until_end().await;
}

impl Node {
    async fn until_end(&mut self) {
        let end = async { while self.events.next().await.is_some() {} };
        timeout(PATIENCE, end).await.expect("the events come to an end");
    }
}
