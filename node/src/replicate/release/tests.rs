//! What decides about a release, fact by fact and turn by turn: a mistake here is silent.

use super::*;
use crate::engine::testing::{self, NOW, OWN, key, lesson};
use crate::engine::{Arrival, Command, Engine, NewEntry, PeerAct, SourceKey};
use crate::query::Numbers;
use crate::store::Durability;
use crate::store::peers::Workspace;
use crate::store::peers::rows::Approval;
use klnode_config::Config;
use klnode_crdt::charter::Charter;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{Boot, Nonce};
use klnode_crdt::origin::Origin;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::view::Entitlement;
use klnode_crdt::writer::{Claim, Writer};

const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn examiner(filters: &config::Filters) -> Examiner {
    let numbers = Numbers::new(&Config::default());
    Examiner::new(Arc::new(Reader::new(key(OWN).author(), numbers)), filters)
}

/// This node and a peer, who share a workspace.
fn society() -> Society {
    let [own, peer] = [OWN, 2].map(|number| key(number).author());
    let charter = Charter { members: [own, peer].into(), ..Charter::default() };
    let team = Workspace { name: "team".into(), charter, ..Workspace::default() };
    Society { own, mine: [own].into(), workspaces: [(TEAM, team)].into(), ..Society::default() }
}

/// What the peer is to this node.
fn peer() -> Acquaintance {
    society().acquaintance(key(2).author())
}

/// What is shown of an entry of which this is claimed.
fn view(claims: &[Claim]) -> (View, EntryId) {
    let (key, own) = (key(OWN), Holding::default());
    let origin = Origin::Created {
        creator: key.author(),
        stamp: Hlc::new(NOW, 0),
        nonce: Nonce::default(),
        workspace: TEAM,
        memory: Memory::Semantic,
    };
    let entry = origin.id();
    let writer = Writer { key: &key, boot: Boot(1), entry, own: &own };
    let record = writer.claim(&<_>::default(), Some(origin), claims, Hlc::new(NOW, 1)).unwrap();
    let entitled = Entitlement { mine: [key.author()].into(), members: BTreeSet::new() };
    (record.to_entry().view(NOW, &entitled), entry)
}

#[test]
fn the_facts_of_an_entry_are_what_is_shown_of_it() {
    let (view, entry) = view(&[
        Claim::Set(Register::TYPE, "lesson".into()),
        Claim::Set(Register::THREAD, "fix-login".into()),
        Claim::Add(TextSet::TAGS, "auth/jwt".into()),
    ]);
    let of = facts(&view, entry).expect("its origin is known");
    assert_eq!((of.workspace, of.memory, of.kind.as_str()), (TEAM, Memory::Semantic, "lesson"));
    assert_eq!((of.thread.as_deref(), of.tags), (Some("fix-login"), set(&["auth/jwt"])));
    assert!(!of.is_charter);
    assert!(facts(&view, charter::entry(TEAM)).expect("the same origin").is_charter);
    assert_eq!(facts(&View { origin: None, ..view }, entry), None);
}

#[test]
fn a_thread_that_was_taken_off_again_is_none() {
    let (view, entry) = view(&[Claim::Set(Register::THREAD, String::new())]);
    assert_eq!(facts(&view, entry).expect("its origin is known").thread, None);
}

fn examined(of: Subject) -> Examined {
    Examined { shown: of.clone(), placed: of }
}

fn subject() -> Subject {
    Subject {
        workspace: TEAM,
        memory: Memory::Semantic,
        kind: "lesson".into(),
        thread: None,
        tags: BTreeSet::new(),
        confidence: 0.5,
        status: "candidate".into(),
        creator_hop: Some(0),
        is_charter: false,
    }
}

fn filter() -> Filter {
    Filter {
        workspaces: BTreeSet::new(),
        tags_allow: BTreeSet::new(),
        tags_deny: BTreeSet::new(),
        confidence_min: 0.3,
        types: set(&["lesson"]),
        memories: [Memory::Semantic.code()].into(),
        threads_exclude: BTreeSet::new(),
        reach: Reach::AlsoRelayed,
        statuses: set(&["candidate"]),
    }
}

#[test]
fn a_release_opens_when_an_entry_passes_and_ends_only_by_rules_that_end_one() {
    let (examiner, peer) = (examiner(&Config::default().filter), peer());
    let of_other_type = Subject { kind: "norm".into(), ..subject() };
    let not_believed = Subject { confidence: 0.2, ..subject() };
    let of_other_status = Subject { status: "stale".into(), ..subject() };
    let by = |rule| Turn::Stay(Some(rule));
    let passes = [Turn::Open, Turn::Stay(None), Turn::Open];
    let type_holds = [by(Rule::Type), Turn::End, by(Rule::Type)];
    let cases = [
        (Some(subject()), passes),
        (Some(of_other_type), type_holds),
        (Some(not_believed), [by(Rule::Confidence); 3]),
        (Some(of_other_status), [by(Rule::Status); 3]),
        (None, [Turn::Stay(None); 3]),
    ];
    for (of, expect) in &cases {
        for (way, expect) in [Way::Never, Way::Open, Way::Ended].into_iter().zip(expect) {
            let of = of.clone().map(examined);
            let turn = examiner.turn(of.as_ref(), &filter(), &society(), &peer, way);
            assert_eq!(turn, *expect, "{of:?} {way:?}");
            // Where it is not known who belongs to the workspace, nothing opens or ends.
            let mut damaged = society();
            damaged.workspaces.entry(TEAM).or_default().is_damaged = true;
            let turn = examiner.turn(of.as_ref(), &filter(), &damaged, &peer, way);
            assert_eq!(turn, Turn::Stay(None), "{of:?} {way:?}");
        }
    }
}

#[test]
fn an_entry_passes_as_it_is_shown_and_as_it_was_placed_or_not_at_all() {
    let (examiner, peer) = (examiner(&Config::default().filter), peer());
    let in_thread = Subject { thread: Some("fix".into()), ..subject() };
    let doubted = Subject { confidence: 0.2, ..subject() };
    let doubted_in_thread = Subject { confidence: 0.2, ..in_thread.clone() };
    for (shown, placed) in [
        (subject(), in_thread.clone()),
        (in_thread, subject()),
        (doubted.clone(), doubted_in_thread.clone()),
        (doubted_in_thread, doubted),
    ] {
        let of = Examined { shown, placed };
        let turn = |way| examiner.turn(Some(&of), &filter(), &society(), &peer, way);
        assert_eq!(turn(Way::Never), Turn::Stay(Some(Rule::Thread)), "{of:?}");
        assert_eq!(turn(Way::Open), Turn::End, "{of:?}");
    }
}

fn list<T>(words: &[&str]) -> List<T>
where
    List<T>: serde::de::DeserializeOwned,
{
    serde_json::from_value(serde_json::json!(words)).expect("a list")
}

#[test]
fn a_filter_of_the_configuration_says_what_its_keys_say() {
    let mut filters = Config::default().filter;
    filters.egress.workspaces = list(&["team", "main"]);
    filters.egress.tags_allow = list(&["auth"]);
    filters.egress.tags_deny = list(&["private"]);
    filters.egress.types = list(&["lesson", "norm"]);
    filters.egress.threads_exclude = list(&["draft"]);
    filters.egress.statuses = list(&["verified"]);
    filters.egress.memories = list(&["procedural"]);
    filters.egress.reach = units::Reach::CreatedHere;
    filters.ingress.tags_deny = list(&["noise"]);
    filters.ingress.reach = units::Reach::AlsoRelayed;
    let (examiner, society, row) = (examiner(&filters), society(), PeerRow::default());
    let given = examiner.egress(&row, &society);
    let expect = Filter {
        workspaces: [TEAM, WorkspaceId::MAIN].into(),
        tags_allow: set(&["auth"]),
        tags_deny: set(&["private"]),
        confidence_min: filters.egress.confidence_min.get(),
        types: set(&["lesson", "norm"]),
        memories: [Memory::Procedural.code()].into(),
        threads_exclude: set(&["draft"]),
        reach: Reach::CreatedHere,
        statuses: set(&["verified"]),
    };
    assert_eq!(given, expect);
    let given = examiner.ingress(&row, &society);
    assert_eq!((given.tags_deny, given.reach), (set(&["noise"]), Reach::AlsoRelayed));
    // What the operator has said for one peer goes before it.
    let row = PeerRow { egress: Some(filter()), ingress: Some(filter()), ..row };
    assert_eq!(examiner.egress(&row, &society), filter());
    assert_eq!(examiner.ingress(&row, &society), filter());
}

#[test]
fn a_workspace_that_nothing_here_is_called_lets_nothing_pass() {
    let mut filters = Config::default().filter;
    filters.egress.workspaces = list(&["gone"]);
    let (examiner, society) = (examiner(&filters), society());
    let by = examiner.egress(&PeerRow::default(), &society);
    let turn = examiner.turn(Some(&examined(subject())), &by, &society, &peer(), Way::Never);
    assert_eq!(turn, Turn::Stay(Some(Rule::Workspace)));
}

#[test]
fn an_author_is_as_far_as_the_nearest_of_those_says_who_may_talk() {
    let author = |number: u32| key(number).author();
    let mut society = society();
    let approved = PeerRow { approval: Approval::Approved, ..PeerRow::default() };
    let blocked = PeerRow { is_blocked: true, ..approved.clone() };
    let peers = [(3, approved.clone()), (4, approved), (5, PeerRow::default()), (11, blocked)];
    for (peer, row) in peers {
        society.peers.insert(author(peer), row);
    }
    let store = testing::store();
    let batch = store.batch(Durability::Durable).unwrap();
    let said =
        [(6, 3, 2), (6, 4, 1), (6, 5, 0), (7, 5, 0), (8, 3, 0), (9, 3, u8::MAX), (12, 11, 1)];
    for (of, by, said) in said {
        batch.put_distance(author(of), author(by), said).unwrap();
    }
    batch.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    for (of, expect) in [
        (1, Some(0)),
        (2, Some(1)), // A fellow member.
        (3, Some(1)),
        (5, None), // It may not talk.
        (6, Some(2)),
        (7, None),
        (8, Some(2)), // Nobody is near for the asking.
        (9, Some(u8::MAX)),
        (10, None),
        (12, None), // Whoever says so is blocked.
    ] {
        assert_eq!(hop(&snapshot, &society, author(of)).unwrap(), expect, "{of}");
    }
}

/// A node with one lesson.
fn engine() -> (Engine, EntryId) {
    let mut engine = testing::engine();
    let entry = create(&mut engine, Vec::new());
    (engine, entry)
}

/// Writes a lesson of which this is claimed, too.
fn create(engine: &mut Engine, claims: Vec<Claim>) -> EntryId {
    testing::create(engine, NewEntry { claims, ..lesson("Retries") })
}

#[test]
fn a_filter_sees_the_confidence_and_the_status_that_this_node_has_found() {
    let (mut node, entry) = engine();
    let (examiner, society) = (examiner(&Config::default().filter), Arc::new(society()));
    let mut look = |command: Option<Command>| {
        if let Some(command) = command {
            node.step(&[command], NOW).remove(0).unwrap();
        }
        let snapshot = node.store().snapshot().unwrap();
        examiner.subject(&examiner.reading(&snapshot, &society, NOW), entry).unwrap()
    };
    let observe = |of, amount| Some(Command::Observe { entry, of, amount: Thousandths(amount) });
    let mut look = |command| look(command).map(|examined| examined.shown);
    let new = look(None).expect("it is live");
    assert!((new.confidence - 0.5).abs() < 1e-9, "{new:?}");
    assert_eq!((new.status.as_str(), new.creator_hop), ("candidate", Some(0)));
    let failed = look(observe(Observation::Failure, 5_000)).expect("it is live");
    assert!((failed.confidence - 1.0 / 3.0).abs() < 1e-9, "{failed:?}");
    let helped = look(observe(Observation::Success, 1_000)).expect("it is live");
    assert_eq!(helped.status, "active");
    assert_eq!(look(Some(Command::Retract { entry })), None, "there is nothing to show");
}

#[test]
fn a_preview_tells_what_a_peer_has_would_get_would_lose_and_does_not_get_and_by_which_rule() {
    let private = || vec![Claim::Add(TextSet::TAGS, "private".into())];
    let ((mut node, has), peer) = (engine(), key(2).author());
    let gets = create(&mut node, Vec::new());
    let [loses, held] = [(); 2].map(|()| create(&mut node, private()));
    let [taken_back, forgotten] = [(); 2].map(|()| create(&mut node, Vec::new()));
    let open = [has, loses, taken_back, forgotten].map(|of| PeerAct::Release(peer, of, true));
    for command in [
        Command::Peers(open.to_vec()),
        Command::Retract { entry: taken_back },
        Command::Forget { entry: forgotten },
    ] {
        node.step(&[command], NOW).remove(0).unwrap();
    }
    let (examiner, mut society) = (examiner(&Config::default().filter), society());
    society.mine.insert(peer);
    let by = Filter { tags_deny: set(&["private"]), ..filter() };
    let snapshot = node.store().snapshot().unwrap();
    assert_eq!(snapshot.release(peer, forgotten).unwrap().out, Way::Open);
    let mut released = vec![has, taken_back];
    released.sort_unstable();
    let expect = Preview {
        released,
        would_be: vec![gets],
        would_end: vec![loses],
        held: vec![Held { entry: held, rule: Rule::TagDenied }],
    };
    let preview = |society: &Society, by: Option<&Filter>| {
        examiner.preview(&snapshot, &Arc::new(society.clone()), peer, by, NOW).unwrap()
    };
    assert_eq!(preview(&society, Some(&by)), expect);
    // Where no filter is given, it is the one that the peer has.
    let row = PeerRow { egress: Some(by), ..PeerRow::default() };
    society.peers.insert(peer, row);
    assert_eq!(preview(&society, None), expect);
}

#[test]
fn an_import_is_as_far_away_as_the_nearest_of_those_who_imported_it() {
    let author = |number: u32| key(number).author();
    // A workspace of others, of whom a peer tells.
    let mut society = society();
    let charter = Charter { members: [author(2), author(6)].into(), ..Charter::default() };
    society.workspaces.insert(TEAM, Workspace { charter, ..Workspace::default() });
    let approved = PeerRow { approval: Approval::Approved, ..PeerRow::default() };
    society.peers.insert(author(3), approved);
    let society = Arc::new(society);
    let source = SourceKey { format: "markdown".into(), key: "notes.md".into() };
    let SourceKey { format, key: name } = source.clone();
    let (workspace, memory) = (TEAM, Memory::Semantic);
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let entry = origin.id();
    let import = |number: u32| {
        let (key, own) = (key(number), Holding::default());
        let writer = Writer { key: &key, boot: Boot(1), entry, own: &own };
        let texts = [(Register::TITLE, "Notes"), (Register::TYPE, "lesson")];
        let claims = texts.map(|(register, text)| Claim::Set(register, text.into()));
        let stamp = Hlc::new(NOW, 1);
        let record = writer.claim(&<_>::default(), Some(origin.clone()), &claims, stamp).unwrap();
        Command::Ingest(vec![Arrival { record, from: author(3) }])
    };
    let said = [(6, 2), (2, 0)].map(|(of, hop)| PeerAct::Distance(author(of), author(3), hop));
    let own = NewEntry { workspace, source: Some(source), ..lesson("Notes") };
    let mut node = testing::engine();
    node.step(&[Command::Peers(said.to_vec())], NOW).remove(0).unwrap();
    let examiner = examiner(&Config::default().filter);
    for (command, expect) in [(import(6), 3), (import(2), 2), (Command::Create(Box::new(own)), 0)] {
        node.step(&[command], NOW).remove(0).unwrap();
        let snapshot = node.store().snapshot().unwrap();
        let reading = examiner.reading(&snapshot, &society, NOW);
        let examined = examiner.subject(&reading, entry).unwrap().expect("it is live");
        assert_eq!(examined.shown.creator_hop, Some(expect));
    }
}
