//! Regression tests: sequences that broke earlier designs, with clones, relays, liars and limits.

use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Generation};
use klnode_crdt::limits::LIVE_SLOTS_MAX;
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Position, RawRecord, Record};
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::{Register, RegisterValue};
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::key;
use klnode_crdt::time::{Day, Hlc};
use klnode_crdt::version_vector::Slot;
use klnode_engine::{
    Command, IngestOutcome, Limits, MarkChange, Receipt, RecordSource, Rejection, ScreenDecision,
};
use klnode_tests::test_engine::{Node, START, exchange};
use klnode_tests::workspace_fixture::{Stranger, bring, paired};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

fn records(node: &Node, entry: EntryId, facet: Facet) -> Vec<Record> {
    let snapshot = node.engine.store().snapshot().unwrap();
    let held = snapshot.holding(entry, node.author()).unwrap();
    held.facet(facet).cloned().collect()
}

#[test]
fn replayed_records_have_no_effect() {
    let (mut home, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let entry = peer.create("replayed");
    let mut said = Vec::new();
    for _ in 0..3 {
        peer.succeed(entry);
        said.extend(records(&peer, entry, Facet::Tally));
    }
    said.extend(records(&peer, entry, Facet::Claims));
    assert_eq!(said.len(), 4);
    exchange(&mut home, &mut peer);
    let from = peer.author();
    let passing = |home: &Node| {
        let snapshot = home.engine.store().snapshot().unwrap();
        (snapshot.release(from, entry).unwrap(), snapshot.outbox_head(from).unwrap())
    };
    let (held, head, before) = (home.everything(), home.engine.head(), passing(&home));
    for record in said {
        assert_eq!(home.ingest(record, from), IngestOutcome::Known);
    }
    assert_eq!((home.everything(), home.engine.head()), (held, head));
    assert_eq!(passing(&home), before);
    assert_eq!(home.successes(entry), 3);
}

#[test]
fn a_clone_that_receives_a_later_text_before_the_retraction_keeps_it() {
    let mut home = Node::start(1, 1);
    let entry = home.create("old text");
    let mut clone = home.clone_home(2);
    home.run(Command::Retract { entry }).unwrap();
    home.retitle(entry, "new text");
    // The retraction is delayed.
    for record in records(&home, entry, Facet::Claims) {
        clone.ingest(record, home.author());
    }
    clone.claim(entry, ClaimEdit::Add(TextSet::TAGS, "tag".into()));
    exchange(&mut home, &mut clone);
    exchange(&mut home, &mut clone);
    for node in [&home, &clone] {
        assert_eq!(node.title(entry).as_deref(), Some("new text"));
        assert!(node.view(entry).texts[&TextSet::TAGS].contains_key("tag"));
        assert!(!format!("{:?}", node.records(entry)).contains("old text"));
    }
}

#[test]
fn a_local_write_refused_by_the_judge_leaves_no_trace_and_no_conviction() {
    let judge = |record: &Record, _: RecordSource| match format!("{record:?}").contains("password")
    {
        true => ScreenDecision::Quarantine("it looks like a credential".into()),
        false => ScreenDecision::Admit,
    };
    let mut node = Node::start_with_screen(1, 1, Box::new(judge));
    let entry = node.create("title");
    let set = |text: &str| vec![ClaimEdit::Set(Register::CONTENT, text.to_owned())];
    let told = node.run(Command::Claim { entry, claims: set("the password is x") }).unwrap_err();
    assert!(matches!(told, Rejection::Judged(_)), "{told}");
    node.run(Command::Claim { entry, claims: set("ask the vault") }).expect("rephrased");
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.quarantine().unwrap().count(), 0);
    assert!(snapshot.equivocation(node.author()).unwrap().is_none());
    assert_eq!(node.view(entry).text(Register::CONTENT), Some("ask the vault"));
}

#[test]
fn a_home_that_was_cloned_once_can_be_started_thousands_of_times() {
    let mut home = Node::start(1, 1);
    let entry = home.create("many starts");
    for boot in 0..1_200_u64 {
        home = home.restart(10_000 + boot);
        home.succeed(entry);
        if boot == 500 {
            let mut clone = home.clone_home(9_999_999);
            clone.succeed(entry);
            exchange(&mut home, &mut clone);
        }
    }
    assert_eq!(home.successes(entry), 1_201);
    assert!(records(&home, entry, Facet::Tally).len() <= 2);
}

#[test]
fn a_stranger_that_floods_a_register_does_not_block_its_creator() {
    let mut home = Node::start(1, 1);
    let entry = home.create("mine");
    let stranger = key(9);
    for flood in 0..6_u64 {
        let mut claims = klnode_crdt::claims::Claims::default();
        for number in 0..64 {
            let value = RegisterValue {
                text: format!("junk {flood} {number}"),
                stamp: Hlc::new(START.plus(400 * DAY), number),
                author: stranger.author(),
                replaces: [].into(),
                after: [].into(),
            };
            let register = claims.registers.entry(Register::CONTENT).or_default();
            register.insert(entry, Register::CONTENT, value);
        }
        let place = Slot { generation: Generation(1), boot: Boot(flood) };
        let (stamp, absorbs) = (Hlc::from_bits(1), Vec::new());
        let at = Position { entry, place, counter: 1, stamp, absorbs };
        let junk = Record::seal(at, Payload::Claims { origin: None, claims }, &stranger).unwrap();
        assert!(matches!(home.ingest(junk, stranger.author()), IngestOutcome::Merged(_)));
    }
    for edit in 0..6 {
        let text = format!("{edit} {}", "x".repeat(60_000));
        home.claim(entry, ClaimEdit::Set(Register::CONTENT, text.clone()));
        let own = home.entry(entry).claims.remove(&home.author()).unwrap();
        assert_eq!(own.registers[&Register::CONTENT].iter().len(), 1, "the old value is replaced");
    }
}

#[test]
fn a_relay_that_strips_a_payload_hides_no_record() {
    let (mut home, mut peer) = (Node::start(1, 1), Node::start(2, 2));
    let entry = home.create("first");
    home.run(Command::Retract { entry }).unwrap();
    home.retitle(entry, "second");
    exchange(&mut home, &mut peer);
    let backup = home.medium.disk().fork();
    home.retitle(entry, "third");
    let mut newest = records(&home, entry, Facet::Claims).into_iter();
    let newest = newest.find(|record| record.payload().is_some()).unwrap();
    let stripped = RawRecord { payload: None, ..newest.to_raw() };
    let stripped = Record::verify(&stripped).unwrap();

    peer.ingest(stripped.clone(), key(7).author());
    assert_eq!(peer.title(entry).as_deref(), Some("second"), "the earlier text stays visible");
    let snapshot = peer.engine.store().snapshot().unwrap();
    assert!(!snapshot.holds(newest.digest()).unwrap(), "the complete record is still requested");
    assert!(snapshot.check().unwrap().is_empty());
    drop(snapshot);

    // The author, restored from an older copy, receives its own newer record without its text.
    let mut restored = Node::start_on(backup, 1, 50, START).unwrap();
    restored.ingest(stripped, key(7).author());
    restored.claim(entry, ClaimEdit::Add(TextSet::TAGS, "tag".into()));
    restored.send_to(&mut peer);
    home.send_to(&mut peer);
    assert_eq!(peer.title(entry).as_deref(), Some("third"));
}

#[test]
fn too_many_live_records_of_a_liar_are_refused_without_blocking_others() {
    let mut home = Node::start(1, 1);
    let entry = home.create("liar");
    let liar = key(9);
    let own = LiveRecords::default();
    for boot in 0..LIVE_SLOTS_MAX as u64 + 5 {
        let writer = RecordBuilder { key: &liar, boot: Boot(boot), entry, own: &own };
        let of = Observation::Success;
        let stamp = Hlc::from_bits(1);
        let record = writer.observe(of, Thousandths::ONE, Day(1), stamp).unwrap();
        let told = home.ingest(record, liar.author());
        match boot < LIVE_SLOTS_MAX as u64 {
            true => assert!(matches!(told, IngestOutcome::Merged(_))),
            false => assert!(matches!(told, IngestOutcome::Refused(_)), "{told:?}"),
        }
    }
}

#[test]
fn a_clock_glitch_does_not_block_its_author() {
    let (mut one, mut two) = (Node::start(1, 1), Node::start(2, 2));
    let entry = one.create("shared");
    exchange(&mut one, &mut two);
    two.now = START.plus(30 * DAY);
    two.create("something else, while the clock stood wrong");
    two.now = START.plus(Duration::from_secs(60));
    two.retitle(entry, "retitled");
    assert_eq!(two.title(entry).as_deref(), Some("retitled"));
    assert!(!two.view(entry).registers[&Register::TITLE].is_early);
}

#[test]
fn in_one_command_the_later_claim_wins() {
    let mut home = Node::start(1, 1);
    let entry = home.create("order");
    let tag = || "tag".to_owned();
    let claims =
        vec![ClaimEdit::Withdraw(TextSet::TAGS, tag()), ClaimEdit::Add(TextSet::TAGS, tag())];
    home.run(Command::Claim { entry, claims }).unwrap();
    assert!(home.view(entry).texts[&TextSet::TAGS].contains_key("tag"));
}

#[test]
fn withdrawn_tags_do_not_fill_the_set() {
    let mut home = Node::start(1, 1);
    let entry = home.create("tags");
    for number in 0..200 {
        home.claim(entry, ClaimEdit::Add(TextSet::TAGS, format!("tag {number}")));
        home.claim(entry, ClaimEdit::Withdraw(TextSet::TAGS, format!("tag {number}")));
    }
    home.claim(entry, ClaimEdit::Add(TextSet::TAGS, "last".into()));
    assert!(home.view(entry).texts[&TextSet::TAGS].contains_key("last"));
}

#[test]
fn every_claim_can_be_retracted() {
    let mut home = Node::start(1, 1);
    let entry = home.create("again and again");
    let refusal = loop {
        home.run(Command::Retract { entry }).expect("can be taken back");
        let again = home.run(Command::Retract { entry }).unwrap_err();
        assert!(matches!(again, Rejection::NothingToRetract(_)), "{again}");
        let claims = vec![ClaimEdit::Set(Register::TITLE, "said again".into())];
        if let Err(refusal) = home.run(Command::Claim { entry, claims }) {
            break refusal;
        }
    };
    assert!(refusal.to_string().contains("retractions by one author"), "{refusal}");
    assert_eq!(home.title(entry), None, "no claim remains that could not be retracted");
}

#[test]
fn quarantine_is_bounded_and_drops_retracted_records() {
    let judge = |_: &Record, source: RecordSource| match source {
        RecordSource::Local => ScreenDecision::Admit,
        RecordSource::Peer(_) => ScreenDecision::Quarantine("odd".into()),
    };
    let mut careful = Node::start_with_screen(2, 2, Box::new(judge));
    let mut author = Node::start(1, 1);
    let entry = author.create("doubtful secret");
    for edit in 0..LIVE_SLOTS_MAX + 10 {
        // Lives that do not know of each other: none supersedes another's record.
        let mut life = author.clone_home(100 + edit as u64);
        life.retitle(entry, &format!("edit {edit}"));
        for record in records(&life, entry, Facet::Claims) {
            careful.ingest(record, author.author());
        }
    }
    let waiting =
        |node: &Node| node.engine.store().snapshot().unwrap().quarantine().unwrap().count();
    assert_eq!(waiting(&careful), LIVE_SLOTS_MAX);
    let newest = records(&author, entry, Facet::Claims).remove(0);
    author.run(Command::Retract { entry }).unwrap();
    author.send_to(&mut careful);
    assert_eq!(waiting(&careful), 0);
    // Delivered once more with its text, it is neither quarantined nor shown.
    careful.ingest(newest, key(5).author());
    assert_eq!(waiting(&careful), 0);
    assert_eq!(careful.title(entry), None);
}

#[test]
fn quarantine_is_bounded_over_all_authors_and_entries() {
    const WAITING_MAX: u32 = 10_000;
    let judge = |_: &Record, _: RecordSource| ScreenDecision::Quarantine("odd".into());
    let mut careful = Node::start_with_screen(2, 2, Box::new(judge));
    let odd = |number: u32| {
        let mut id = [7; EntryId::LEN];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let claim = ClaimEdit::Set(Register::TITLE, "odd".into());
        Stranger::new(number % 3).claims(EntryId::from_bytes(id), claim)
    };
    let waiting =
        |node: &Node| node.engine.store().snapshot().unwrap().quarantine().unwrap().count();
    for first in (0..WAITING_MAX + 500).step_by(500) {
        let peer = Stranger::new(100 + first / 1_000).author();
        bring(&mut careful, (first..first + 500).map(odd).collect(), peer);
    }
    assert_eq!(waiting(&careful), WAITING_MAX as usize);
    // A rejection by the operator makes room.
    careful.run(Command::Reject(odd(1).digest())).unwrap();
    bring(&mut careful, vec![odd(WAITING_MAX), odd(WAITING_MAX + 1)], key(5).author());
    assert_eq!(waiting(&careful), WAITING_MAX as usize);
}

#[test]
fn one_peer_can_fill_only_its_share_of_the_quarantine() {
    const OF_PEER_MAX: u64 = 1_000;
    let judge = |_: &Record, _: RecordSource| ScreenDecision::Quarantine("odd".into());
    let mut careful = Node::start_with_screen(2, 2, Box::new(judge));
    let odd = |number: u64, counter: u64| {
        let mut id = [7; EntryId::LEN];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let place = Slot { generation: Generation(1), boot: Boot(1) };
        let (entry, stamp, absorbs) = (EntryId::from_bytes(id), Hlc::from_bits(1), Vec::new());
        let at = Position { entry, place, counter, stamp, absorbs };
        let claims = klnode_crdt::claims::Claims::default();
        Record::seal(at, Payload::Claims { origin: None, claims }, &key(9)).unwrap()
    };
    let (flood, other) = (key(5).author(), key(6).author());
    bring(&mut careful, (0..OF_PEER_MAX - 1).map(|number| odd(number, 1)).collect(), flood);
    let two = [OF_PEER_MAX, OF_PEER_MAX + 1].map(|number| odd(number, 1));
    bring(&mut careful, two.to_vec(), flood);
    let waits = |node: &Node, record: &Record| {
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.quarantined_digests().unwrap().contains(&record.digest())
    };
    assert_eq!(two.each_ref().map(|record| waits(&careful, record)), [true, false]);
    // Another peer has room, a replacement needs none, and a removal makes some.
    careful.ingest(two[1].clone(), other);
    careful.ingest(odd(3, 2), flood);
    assert!(waits(&careful, &two[1]) && waits(&careful, &odd(3, 2)));
    assert!(!waits(&careful, &odd(3, 1)));
    let next = odd(OF_PEER_MAX + 2, 1);
    assert!(matches!(careful.ingest(next.clone(), flood), IngestOutcome::Refused(_)));
    careful.run(Command::Reject(odd(5, 1).digest())).unwrap();
    careful.ingest(next.clone(), flood);
    assert!(waits(&careful, &next));
}

#[test]
fn edits_are_validated_like_new_entries() {
    let mut home = Node::start(1, 1);
    let entry = home.create("valid");
    for (register, text) in [
        (Register::TYPE, "nonsense"),
        (Register::TITLE, " "),
        (Register::POLARITY, "up"),
        (Register::DECAY_CLASS, "forever"),
    ] {
        let claims = vec![ClaimEdit::Set(register, text.into())];
        let told = home.run(Command::Claim { entry, claims }).unwrap_err();
        assert!(matches!(told, Rejection::Invalid { .. }), "{told}");
    }
    let marks = MarkChange { note: Some("x".repeat(600_000)), ..MarkChange::default() };
    let told = home.run(Command::Mark { entry, marks }).unwrap_err();
    assert!(told.to_string().contains("4096 are allowed"), "{told}");
}

#[test]
fn a_conflicting_record_of_the_same_boot_starts_a_new_boot() {
    let mut home = Node::start(1, 1);
    let entry = home.create("image");
    home.succeed(entry);
    // The same memory image resumed twice: same boot, same slot, other content.
    let image = home.medium.disk().fork();
    let mut resumed = Node::start_on(image, 1, 1, START).unwrap();
    assert_eq!(resumed.engine.boot(), home.engine.boot());
    home.succeed(entry);
    let failed = Command::Observe { entry, of: Observation::Failure, amount: Thousandths::ONE };
    resumed.run(failed).unwrap();
    exchange(&mut home, &mut resumed);
    assert_ne!(resumed.engine.boot(), home.engine.boot());
    let receipt = home.run(Command::Create(Box::new(klnode_tests::test_engine::lesson("goes on"))));
    assert!(matches!(receipt, Ok(Receipt::Created(_))));
}

#[test]
fn the_number_of_unknown_authors_per_peer_and_entry_is_limited() {
    let max = Limits::AUTHORS_BROUGHT_MAX;
    let mut node = Node::start(1, 1);
    let entry = node.create("crowded");
    let peers: Vec<AuthorId> = (2..=7).map(|seed| Node::start(seed, 1).author()).collect();
    for peer in &peers {
        node.meet(*peer, paired("peer"));
    }
    let authors = |node: &Node| node.engine.store().snapshot().unwrap().authors(entry).unwrap();
    let observes = |one: &Stranger| one.observes(entry, Observation::Failure, 1);
    let crowd = |number: u32| (1_000 * number..).map(Stranger::new).take(max + 50);
    bring(&mut node, crowd(0).map(|one| observes(&one)).collect(), peers[0]);
    assert_eq!(authors(&node).len(), 1 + max, "this node, and the first of them");
    let late = Stranger::new(80_000);
    let IngestOutcome::Refused(reason) = node.ingest(observes(&late), peers[0]) else {
        panic!("one too many")
    };
    assert!(reason.contains("256 unknown authors"), "{reason}");
    // Authors are accepted that already have records, that send their own, or that are known.
    let is_merged = |ingested: IngestOutcome| matches!(ingested, IngestOutcome::Merged(_));
    let more = ClaimEdit::Add(TextSet::TAGS, "more".into());
    assert!(is_merged(node.ingest(Stranger::new(0).claims(entry, more), peers[0])));
    assert!(is_merged(node.ingest(observes(&late), late.author())));
    let known = Stranger::new(90_000);
    node.meet(known.author(), paired("known"));
    assert!(is_merged(node.ingest(observes(&known), peers[0])));
    // Another peer has its own limit; there is also a limit for all together.
    bring(&mut node, crowd(1).map(|one| observes(&one)).collect(), peers[1]);
    assert_eq!(authors(&node).len(), 1 + max + 2 + max);
    for (number, peer) in (2..).zip(&peers[2..]) {
        bring(&mut node, crowd(number).map(|one| observes(&one)).collect(), *peer);
    }
    // This node and known authors are not counted.
    assert_eq!(authors(&node).len(), Limits::AUTHORS_UNKNOWN_MAX + 2);
    node.succeed(entry);
    assert_eq!(node.successes(entry), 1, "local writes are not limited");
}
