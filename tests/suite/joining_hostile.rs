//! Nodes that break the rules of joining by address, against a real process: the operator sees only
//! valid requests, and the node keeps working.

use crate::support::node_process::{eventually, printed, text, told};
use crate::support::peer_processes::Peer;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::signing_key::SecretKey;
use klnode_federation::net::{self, Event, Handle, Limits, Protocol};
use klnode_federation::proto::pairing::{Card, PairRequest, PairResponse};
use klnode_federation::proto::sas::{
    self, AttemptEnd, Initiator, InitiatorStep, Nonce, Parties, RequestedRole,
};
use klnode_tests::test_server::PATIENCE;
use serde_json::{Value, json};
use std::time::Duration;

/// A node that speaks the pairing exchange by hand.
struct Stranger {
    runtime: tokio::runtime::Runtime,
    handle: Handle,
    events: net::Events,
    own: AuthorId,
    victim: AuthorId,
    next_id: u64,
}

fn limits() -> Limits {
    Limits {
        pending_connections_max: 16,
        established_connections_max: 16,
        peer_connections_max: 2,
        stranger_connections_max: 4,
        memory_bytes_max: 16 << 30,
        frame_bytes_max: net::FRAME_BYTES_MAX,
        pairing_frame_bytes_max: net::PAIRING_FRAME_BYTES_MAX,
        progress_bytes_per_second_min: 1,
        request_timeout: Duration::from_secs(5),
        redial_after: Duration::from_millis(50),
        redial_after_max: Duration::from_millis(200),
        stranger_lifetime: Duration::from_secs(60),
    }
}

impl Stranger {
    /// Connects to a node.
    fn meet(number: u8, node: &Peer) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let key = SecretKey::from_bytes(&[number; 32]);
        let own = key.author();
        let settings =
            net::Settings { key, listen: Vec::new(), usual_port: None, limits: limits() };
        let (handle, events) = runtime.block_on(net::start(settings)).unwrap();
        let address = text(&node.json(&["peer", "list"])["addresses"][0]);
        let victim = AuthorId::from_hex(&node.key()).unwrap();
        handle.dial(address).unwrap();
        let mut stranger = Self { runtime, handle, events, own, victim, next_id: 1 };
        stranger.until(|event| matches!(event, Event::Connected { .. }).then_some(()));
        stranger
    }

    fn until<T>(&mut self, mut pick: impl FnMut(Event) -> Option<T>) -> T {
        let Self { runtime, events, .. } = self;
        let wait = async {
            loop {
                if let Some(picked) = pick(events.next().await.expect("it runs")) {
                    return picked;
                }
            }
        };
        let wait = async { tokio::time::timeout(PATIENCE, wait).await };
        runtime.block_on(wait).expect("an answer in time")
    }

    /// Sends a request and returns the response; `None` if the node does not respond.
    fn ask(&mut self, ask: &PairRequest) -> Option<PairResponse> {
        let id = self.next_id;
        self.next_id += 1;
        self.handle.request(self.victim, Protocol::Pair, id, ask.encode()).unwrap();
        self.until(|event| match event {
            Event::Response { id: of, frame, .. } if of == id => {
                Some(PairResponse::decode(&frame).ok())
            }
            Event::Failed { id: of, .. } if of == id => Some(None),
            _ => None,
        })
    }

    fn sas(&mut self, ask: &sas::SasRequest) -> sas::SasResponse {
        match self.ask(&PairRequest::Sas(sas::VERSION, ask.encode().into())) {
            Some(PairResponse::Sas(bytes)) => sas::SasResponse::decode(&bytes).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn initiator(&self, want: RequestedRole, number: u8) -> Initiator {
        let parties = Parties { initiator: self.own, responder: self.victim, want };
        Initiator::new(parties, Nonce::new([number; 32]))
    }
}

fn card(name: &str) -> Card {
    Card { name: name.into(), addresses: Vec::new() }
}

fn requests(node: &Peer) -> Vec<Value> {
    let peers = node.json(&["peer", "list"])["peers"].as_array().cloned().unwrap();
    peers.into_iter().filter(|one| one["request"].is_object()).collect()
}

#[test]
fn an_invalid_or_repeated_reveal_creates_no_request() {
    let node = Peer::start();
    let mut stranger = Stranger::meet(71, &node);
    let one = stranger.initiator(RequestedRole::Mine, 1);
    let nonce = stranger.sas(&one.begin(card("laptop")));
    assert!(matches!(nonce, sas::SasResponse::Nonce(..)), "{nonce:?}");
    assert_eq!(requests(&node), [] as [Value; 0], "a commitment alone is no request");
    let forged = sas::SasRequest::Reveal(one.commitment(), Nonce::new([2; 32]));
    assert_eq!(stranger.sas(&forged), sas::SasResponse::Ended(AttemptEnd::Mismatch));
    assert_eq!(requests(&node), [] as [Value; 0]);
    let mut other = stranger.initiator(RequestedRole::Mine, 3);
    let answer = stranger.sas(&other.begin(card("laptop")));
    let InitiatorStep::Send(reveal) = other.hear(answer) else { panic!("a reveal follows") };
    assert_eq!(stranger.sas(&reveal), sas::SasResponse::Pending(false));
    assert_eq!(requests(&node).len(), 1);
    assert_eq!(stranger.sas(&reveal), sas::SasResponse::Ended(AttemptEnd::Mismatch));
    assert_eq!(requests(&node), [] as [Value; 0], "a replayed reveal ends the attempt");
    let unknown = stranger.ask(&PairRequest::Sas(99, vec![1].into()));
    assert!(matches!(unknown, Some(PairResponse::No(_))), "{unknown:?}");
}

#[test]
fn a_flood_of_attempts_is_limited_and_does_not_affect_other_requests() {
    let (node, honest) = (Peer::start(), Peer::start());
    let address = text(&node.json(&["peer", "list"])["addresses"][0]);
    let code = text(&honest.json(&["peer", "join", &address])["code"]);
    let mut stranger = Stranger::meet(72, &node);
    let mut ends = 0;
    for number in 0..8 {
        let begin = stranger.initiator(RequestedRole::Peer, number).begin(card("flood"));
        let answer = stranger.sas(&begin);
        ends += u32::from(answer == sas::SasResponse::Ended(AttemptEnd::TooMany));
    }
    assert!(ends > 0, "the limit per node");
    let listed = requests(&node);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["request"]["code"], code.as_str());
    printed(&node.type_in(&["peer", "approve", &honest.key(), "--code", &code]));
}

#[test]
fn a_strangers_name_cannot_forge_or_hide_a_line() {
    let node = Peer::start();
    let mut stranger = Stranger::meet(73, &node);
    let name = format!("lap\u{202e}top\nstate approved{}", "x".repeat(500));
    let mut one = stranger.initiator(RequestedRole::Peer, 1);
    let answer = stranger.sas(&one.begin(card(&name)));
    let InitiatorStep::Send(reveal) = one.hear(answer) else { panic!("a reveal follows") };
    stranger.sas(&reveal);
    let shown = text(&requests(&node)[0]["name"]);
    assert!(shown.chars().count() <= 64 && !shown.contains(['\n', '\u{202e}']), "{shown:?}");
    let mut other = stranger.initiator(RequestedRole::Member("te\u{202e}am".into()), 2);
    let answer = stranger.sas(&other.begin(card("x")));
    assert_eq!(other.hear(answer), InitiatorStep::Ended(AttemptEnd::BadWant));
    let huge = PairRequest::Sas(sas::VERSION, vec![0; 15_000].into());
    assert!(matches!(stranger.ask(&huge), Some(PairResponse::No(_))));
    assert_eq!(node.json(&["status"])["entries"], 0, "the node keeps working");
}

#[test]
fn a_request_without_a_code_needs_the_whole_key() {
    let node = Peer::start();
    let mut stranger = Stranger::meet(74, &node);
    assert!(matches!(
        stranger.ask(&PairRequest::Knock(card("laptop"))),
        Some(PairResponse::Wait(_))
    ));
    let key = stranger.own.to_string();
    for name in ["laptop", &key[..8]] {
        let refused = node.type_in(&["peer", "approve", name]);
        assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
        assert!(told(&refused).contains("older klnode and sent no code"), "{}", told(&refused));
    }
    printed(&node.type_in(&["peer", "approve", &key]));
    eventually("it may talk", || {
        (node.json(&["peer", "show", &key])["state"] == json!("approved")).then_some(())
    });
}

#[test]
fn a_stranger_cannot_offer_membership() {
    let node = Peer::start();
    let other = Peer::start();
    let ticket = other.ticket(&["team"]);
    let mut stranger = Stranger::meet(75, &node);
    let answer = stranger.ask(&PairRequest::Offer(1, ticket));
    assert!(matches!(answer, Some(PairResponse::No(_))), "{answer:?}");
    assert_eq!(node.json(&["workspace", "list"])["offers"], Value::Null);
}
