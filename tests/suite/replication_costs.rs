//! What a peer may bring about at others' expense: what it says costs itself, and leaves nothing behind.

use klnode::engine::{Command, Receipt, Rejection};
use klnode::query::{Numbers, Reader};
use klnode::replicate::{Action, Event, Examiner, Replica, Setup, Writer};
use klnode::store::Store;
use klnode_config::Config;
use klnode_crdt::equivocation::{Proof, RawProof};
use klnode_crdt::ids::{AuthorId, Boot, EntryId, StoreId};
use klnode_crdt::key::{Purpose, SecretKey};
use klnode_crdt::record::RawRecord;
use klnode_crdt::tally::Observation;
use klnode_federation::proto::Settings;
use klnode_federation::proto::limits::VERSION;
use klnode_federation::proto::message::{Answer, Ask, Cursor, Greeting, Item};
use klnode_federation::sim::Knobs;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::node::{Node, START};
use klnode_tests::society::{Stranger, paired};
use std::sync::Arc;

/// A node whose engine is stepped at once.
struct InHand(Node);

impl Writer for InHand {
    fn write(&mut self, commands: Vec<Command>) -> Vec<Result<Receipt, Rejection>> {
        self.0.engine.step(&commands, self.0.now)
    }

    fn store(&self) -> &Store {
        self.0.engine.store()
    }
}

/// A node that may talk with somebody.
fn replica(peer: AuthorId) -> Replica<InHand> {
    let mut node = Node::start(1, 1);
    node.meet(peer, paired("peer"));
    let (own, config) = (node.author(), Config::default());
    let reader = Arc::new(Reader::new(own, Numbers::new(&config)));
    let examiner = Examiner::new(reader, &config.filter);
    let settings = Settings::default();
    Replica::new(InHand(node), Setup { own, examiner, settings, sweep_ms: 3_600_000 })
}

/// Two headers with the signature of one of them on both.
fn nothing_proved() -> RawProof {
    let (liar, entry) = (Stranger::new(7), EntryId::from_bytes([3; 16]));
    let [one, two] = [1, 2].map(|times| liar.observes(entry, Observation::Success, times));
    let mut raw = Proof::find(one.signed(), two.signed()).unwrap().to_raw();
    raw.signatures.0 = raw.signatures.1;
    raw
}

#[test]
fn who_brings_proofs_that_prove_nothing_is_sent_away() {
    let peer = Stranger::new(1).author();
    let mut node = replica(peer);
    let (store, epoch) = (StoreId::from_bytes([9; 16]), Boot(1));
    let mut actions = node.handle(Event::Connected(peer), START, 1_000);
    let mut is_sent_away = false;
    for at in (2_000..20_000).step_by(1_000) {
        let asked = actions.iter().filter_map(|action| match action {
            Action::Ask(_, id, frame) => Some((*id, Ask::decode(frame).unwrap())),
            _ => None,
        });
        let mut answers: Vec<(u64, Answer)> = Vec::new();
        for (id, ask) in asked {
            answers.push((
                id,
                match ask {
                    Ask::Hello(_) => {
                        let (version, head, time) = (VERSION, 20, START);
                        Answer::Hello(Greeting { version, store, epoch, head, time })
                    }
                    Ask::Changes(None, _) => {
                        let items = vec![Item::Proof(Box::new(nothing_proved())); 20];
                        Answer::Page(items, Cursor { store, epoch, position: 20 }, false)
                    }
                    _ => Answer::Later(60_000),
                },
            ));
        }
        actions = node.handle(Event::Tick, START, at);
        for (id, answer) in answers {
            actions.extend(node.handle(Event::Answered(peer, id, &answer.encode()), START, at));
        }
        is_sent_away |= actions.iter().any(|action| matches!(action, Action::Disconnect(..)));
    }
    assert!(is_sent_away);
    let snapshot = node.writer().store().snapshot().unwrap();
    assert!(snapshot.convicted().unwrap().is_empty());
}

#[test]
fn nothing_is_kept_of_what_claims_to_be_of_a_newer_format_and_is_signed_by_nobody() {
    for is_signed in [true, false] {
        let mut nodes = Cluster::new(1, 2, Knobs::calm());
        let mut other = Node::start(2, 99);
        let entry = other.create("of today");
        let snapshot = other.engine.store().snapshot().unwrap();
        let record = snapshot.entry_records(entry).unwrap().remove(0);
        let mut header = record.to_raw().header;
        header[1] = 2;
        let key = SecretKey::from_bytes(&[if is_signed { 2 } else { 77 }; 32]);
        let signature = key.sign(Purpose::Record, &header);
        let newer = RawRecord { header, signature, payload: Some(b"of tomorrow".to_vec()) };
        let stamp = record.header().stamp.bits();
        nodes.possess(1, &[entry], vec![(stamp, newer), (stamp, record.to_raw())]);
        nodes.pair(0, 1, true);
        nodes.pass(REST_MS);
        assert!(!nodes.digests(0, entry).is_empty(), "what comes after it is here");
        assert_eq!(nodes.refusals(0, 1).len(), usize::from(is_signed));
        // It is asked for a few times, not over and over.
        let before = nodes.sent.len();
        nodes.pass(300_000);
        let sent = nodes.sent.len() - before;
        assert!(sent <= 5 * 40, "{sent} frames in five minutes");
    }
}
