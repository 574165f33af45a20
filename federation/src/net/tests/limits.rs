//! Behaviour of a node at its limits.

use super::*;
use crate::net::pairing_rate_limit::ASKS_PER_PEER_MAX;

#[tokio::test]
async fn strangers_do_not_use_connections_of_approved_peers() {
    let mut node = Node::with(70, LOOPBACK, |limits| limits.stranger_connections_max = 2).await;
    let mut strangers = Vec::new();
    for number in 71..74 {
        let mut stranger = Node::new(number).await;
        stranger.handle.dial(node.address.clone()).unwrap();
        stranger.until_connected(node.author).await;
        strangers.push(stranger);
    }
    // The third stranger's own limits admit the connection; the node's limits refuse it.
    strangers[2].until_disconnected(node.author).await;
    let mut friend = Node::new(74).await;
    introduce(&mut friend, &mut node).await;
    assert!(friend.ask(&mut node, Protocol::Sync, b"in?").await.is_ok());
    assert!(strangers[0].ask(&mut node, Protocol::Pair, b"in?").await.is_ok());
}

#[tokio::test]
async fn the_number_of_connections_is_limited() {
    let mut node = Node::with(75, LOOPBACK, |limits| limits.established_connections_max = 2).await;
    let mut peers = Vec::new();
    for number in 76..79 {
        let mut peer = Node::new(number).await;
        node.handle.allow(peer.author, Vec::new());
        peer.handle.dial(node.address.clone()).unwrap();
        peer.until_connected(node.author).await;
        peers.push(peer);
    }
    peers[2].until_disconnected(node.author).await;
    node.handle.dial(peers[2].address.clone()).unwrap();
    assert_eq!(node.until_dial_failed().await, "too many connections are open");
    // A freed slot goes to the next peer.
    node.handle.forbid(peers[0].author);
    peers[0].until_disconnected(node.author).await;
    node.until_disconnected(peers[0].author).await;
    node.handle.dial(peers[2].address.clone()).unwrap();
    node.until_connected(peers[2].author).await;
}

#[tokio::test]
async fn connections_per_peer_are_limited() {
    let (mut a, b) = paired(79, 80).await;
    let (there, _) = b.address.rsplit_once("/p2p/").unwrap();
    a.handle.dial(there.to_owned()).unwrap();
    a.until_connected(b.author).await;
    a.handle.dial(there.to_owned()).unwrap();
    assert_eq!(a.until_dial_failed().await, "too many connections with this peer are open");
}

#[tokio::test]
async fn only_strangers_are_disconnected_after_their_lifetime() {
    let short = Duration::from_millis(300);
    let mut node = Node::with(81, LOOPBACK, |limits| limits.stranger_lifetime = short).await;
    let (mut stranger, mut friend) = (Node::new(82).await, Node::new(83).await);
    friend.handle.dial(node.address.clone()).unwrap();
    node.until_connected(friend.author).await;
    node.handle.allow(friend.author, Vec::new());
    stranger.handle.dial(node.address.clone()).unwrap();
    stranger.until_connected(node.author).await;
    stranger.until_disconnected(node.author).await;
    friend.until_connected(node.author).await;
    friend.handle.allow(node.author, Vec::new());
    assert!(friend.ask(&mut node, Protocol::Sync, b"still").await.is_ok());
}

#[tokio::test]
async fn a_peer_that_floods_pairing_requests_is_banned() {
    let (mut node, mut loud) = (Node::new(93).await, Node::new(94).await);
    loud.handle.dial(node.address.clone()).unwrap();
    loud.until_connected(node.author).await;
    for _ in 0..ASKS_PER_PEER_MAX {
        assert!(loud.ask(&mut node, Protocol::Pair, b"in?").await.is_ok());
    }
    loud.handle.request(node.author, Protocol::Pair, 1, b"in?".to_vec()).unwrap();
    loud.until_disconnected(node.author).await;
    // The peer's own limits admit the dial; the node's ban refuses it.
    loud.handle.dial(node.address.clone()).unwrap();
    loud.until_connected(node.author).await;
    loud.until_disconnected(node.author).await;
    let mut other = Node::new(95).await;
    other.handle.dial(node.address.clone()).unwrap();
    other.until_connected(node.author).await;
    assert!(other.ask(&mut node, Protocol::Pair, b"in?").await.is_ok());
}

#[tokio::test]
async fn above_the_memory_limit_connections_are_refused() {
    let mut node = Node::with(84, LOOPBACK, |limits| limits.memory_bytes_max = 1).await;
    let other = Node::new(85).await;
    node.handle.dial(other.address.clone()).unwrap();
    let reason = node.until_dial_failed().await;
    assert!(reason.contains("memory"), "{reason}");
}

#[tokio::test]
async fn an_unanswered_request_times_out() {
    let short = Duration::from_millis(300);
    let mut a = Node::with(86, LOOPBACK, |limits| limits.request_timeout = short).await;
    let mut b = Node::new(87).await;
    introduce(&mut a, &mut b).await;
    a.handle.request(b.author, Protocol::Sync, 1, b"?".to_vec()).unwrap();
    let (exchange, _, _) = b.until_asked().await;
    assert_eq!(a.until_answered(1).await, Err("the peer did not answer in time".into()));
    b.handle.respond(exchange, b"late".to_vec()).unwrap();
    assert!(b.ask(&mut a, Protocol::Sync, b"well?").await.is_ok());
}

#[tokio::test]
async fn too_many_requests_to_one_peer_fail_at_once() {
    let (mut a, mut b) = paired(88, 89).await;
    for id in 0..17 {
        a.handle.request(b.author, Protocol::Sync, id, vec![id as u8]).unwrap();
    }
    assert_eq!(a.until_answered(16).await, Err("too many requests wait for this peer".into()));
    for _ in 0..16 {
        let (exchange, _, frame) = b.until_asked().await;
        b.handle.respond(exchange, frame).unwrap();
    }
    let mut answered = Vec::new();
    while answered.len() < 16 {
        answered.push(
            a.until(|event| match event {
                Event::Response { id, .. } => Some(id),
                _ => None,
            })
            .await,
        );
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..16).collect::<Vec<_>>());
}

#[tokio::test]
async fn unread_events_slow_peers_and_lose_nothing() {
    let (mut a, mut b) = paired(90, 91).await;
    let mut sent = 0_u64;
    let mut answered = 0;
    // The second node reads no events until the first has nothing more to send.
    while sent < 16 {
        a.handle.request(b.author, Protocol::Sync, sent, vec![7; FRAME_BYTES_MAX]).unwrap();
        sent += 1;
    }
    while answered < sent {
        let (exchange, _, frame) = b.until_asked().await;
        assert_eq!(frame.len(), FRAME_BYTES_MAX);
        b.handle.respond(exchange, Vec::new()).unwrap();
        answered += 1;
    }
    for id in 0..sent {
        a.until(|event| matches!(event, Event::Response { .. }).then_some(id)).await;
    }
}

#[tokio::test]
async fn commands_beyond_the_queue_are_refused_but_approvals_are_not() {
    let a = Node::new(92).await;
    let nobody = SecretKey::from_bytes(&[99; 32]).author();
    // The actor cannot run before this test awaits.
    let taken = (0..1000).filter(|id| {
        a.handle.allow(nobody, Vec::new());
        a.handle.request(nobody, Protocol::Sync, *id, Vec::new()).is_ok()
    });
    assert_eq!(taken.count(), 256);
}
