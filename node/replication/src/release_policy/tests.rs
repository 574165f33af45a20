//! Tests of the release policy, rule by rule: a mistake here would go unnoticed.

use super::*;
use klnode_config::Config;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_view::Entitlement;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, Nonce};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::workspace_charter::Charter;
use klnode_engine::testing::{self, NOW, OWN, key, lesson};
use klnode_engine::{Command, DeliveredRecord, Engine, NewEntry, PeerCommand, SourceKey};
use klnode_query::ScoringParams;
use klnode_store::Durability;
use klnode_store::peers::SharedWorkspace;
use klnode_store::peers::row_types::PeerApproval;

const TEAM: WorkspaceId = WorkspaceId::from_bytes([7; 16]);

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn policy(filters: &config::Filters) -> ReleasePolicy {
    let numbers = ScoringParams::new(&Config::default());
    ReleasePolicy::new(Arc::new(Reader::new(key(OWN).author(), numbers)), filters)
}

/// This node and a peer that share a workspace.
fn membership() -> Membership {
    let [own, peer] = [OWN, 2].map(|number| key(number).author());
    let charter = Charter { members: [own, peer].into(), ..Charter::default() };
    let team = SharedWorkspace { name: "team".into(), charter, ..SharedWorkspace::default() };
    Membership {
        own,
        mine: [own].into(),
        workspaces: [(TEAM, team)].into(),
        ..Membership::default()
    }
}

/// The relation of the peer to this node.
fn peer() -> Acquaintance {
    membership().acquaintance(key(2).author())
}

/// The view of an entry with these claims.
fn view(claims: &[ClaimEdit]) -> (EntryView, EntryId) {
    let (key, own) = (key(OWN), LiveRecords::default());
    let origin = Origin::Created {
        creator: key.author(),
        stamp: Hlc::new(NOW, 0),
        nonce: Nonce::default(),
        workspace: TEAM,
        memory: Memory::Semantic,
    };
    let entry = origin.id();
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
    let record = writer.claim(&<_>::default(), Some(origin), claims, Hlc::new(NOW, 1)).unwrap();
    let entitled = Entitlement { mine: [key.author()].into(), members: BTreeSet::new() };
    (record.to_entry().view(NOW, &entitled), entry)
}

#[test]
fn facts_are_taken_from_the_displayed_view() {
    let (view, entry) = view(&[
        ClaimEdit::Set(Register::TYPE, "lesson".into()),
        ClaimEdit::Set(Register::THREAD, "fix-login".into()),
        ClaimEdit::Add(TextSet::TAGS, "auth/jwt".into()),
    ]);
    let of = facts(&view, entry).expect("its origin is known");
    assert_eq!((of.workspace, of.memory, of.kind.as_str()), (TEAM, Memory::Semantic, "lesson"));
    assert_eq!((of.thread.as_deref(), of.tags), (Some("fix-login"), set(&["auth/jwt"])));
    assert!(!of.is_charter);
    assert!(facts(&view, workspace_charter::entry(TEAM)).expect("the same origin").is_charter);
    assert_eq!(facts(&EntryView { origin: None, ..view }, entry), None);
}

#[test]
fn an_empty_thread_counts_as_none() {
    let (view, entry) = view(&[ClaimEdit::Set(Register::THREAD, String::new())]);
    assert_eq!(facts(&view, entry).expect("its origin is known").thread, None);
}

fn examined(of: FilterSubject) -> ExaminedEntry {
    ExaminedEntry { shown: of.clone(), placed: of, is_held: false }
}

fn subject() -> FilterSubject {
    FilterSubject {
        workspace: TEAM,
        memory: Memory::Semantic,
        kind: "lesson".into(),
        thread: None,
        tags: BTreeSet::new(),
        confidence: 0.5,
        status: "candidate".into(),
        creator_hop: Some(0),
        is_charter: false,
        removes: None,
    }
}

fn filter() -> PeerFilter {
    PeerFilter {
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
fn only_some_rules_end_a_release() {
    let (policy, peer) = (policy(&Config::default().filter), peer());
    let of_other_type = FilterSubject { kind: "norm".into(), ..subject() };
    let not_believed = FilterSubject { confidence: 0.2, ..subject() };
    let of_other_status = FilterSubject { status: "stale".into(), ..subject() };
    let by = |rule| ReleaseChange::Stay(Some(rule));
    let passes = [ReleaseChange::Open, ReleaseChange::Stay(None), ReleaseChange::Open];
    let type_holds = [by(FilterRule::Type), ReleaseChange::End, by(FilterRule::Type)];
    let cases = [
        (Some(subject()), passes),
        (Some(of_other_type), type_holds),
        (Some(not_believed), [by(FilterRule::Confidence); 3]),
        (Some(of_other_status), [by(FilterRule::Status); 3]),
        (None, [ReleaseChange::Stay(None); 3]),
    ];
    for (of, expect) in &cases {
        for (way, expect) in
            [ReleaseState::Never, ReleaseState::Open, ReleaseState::Ended].into_iter().zip(expect)
        {
            let of = of.clone().map(examined);
            let turn = policy.turn(of.as_ref(), &filter(), &membership(), &peer, way);
            assert_eq!(turn, *expect, "{of:?} {way:?}");
            // While the charter is damaged, no release opens or ends.
            let mut damaged = membership();
            damaged.workspaces.entry(TEAM).or_default().is_damaged = true;
            let turn = policy.turn(of.as_ref(), &filter(), &damaged, &peer, way);
            assert_eq!(turn, ReleaseChange::Stay(None), "{of:?} {way:?}");
        }
    }
}

#[test]
fn an_entry_must_pass_as_displayed_and_as_placed() {
    let (policy, peer) = (policy(&Config::default().filter), peer());
    let in_thread = FilterSubject { thread: Some("fix".into()), ..subject() };
    let doubted = FilterSubject { confidence: 0.2, ..subject() };
    let doubted_in_thread = FilterSubject { confidence: 0.2, ..in_thread.clone() };
    for (shown, placed) in [
        (subject(), in_thread.clone()),
        (in_thread, subject()),
        (doubted.clone(), doubted_in_thread.clone()),
        (doubted_in_thread, doubted),
    ] {
        let of = ExaminedEntry { shown, placed, is_held: false };
        let turn = |way| policy.turn(Some(&of), &filter(), &membership(), &peer, way);
        assert_eq!(
            turn(ReleaseState::Never),
            ReleaseChange::Stay(Some(FilterRule::Thread)),
            "{of:?}"
        );
        assert_eq!(turn(ReleaseState::Open), ReleaseChange::End, "{of:?}");
    }
}

fn list<T>(words: &[&str]) -> BoundedList<T>
where
    BoundedList<T>: serde::de::DeserializeOwned,
{
    serde_json::from_value(serde_json::json!(words)).expect("a list")
}

#[test]
fn a_configured_filter_maps_all_keys() {
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
    let (policy, membership, row) = (policy(&filters), membership(), PeerRow::default());
    let given = policy.egress(&row, &membership);
    let expect = PeerFilter {
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
    let given = policy.ingress(&row, &membership);
    assert_eq!((given.tags_deny, given.reach), (set(&["noise"]), Reach::AlsoRelayed));
    // A peer's own filter takes precedence.
    let row = PeerRow { egress: Some(filter()), ingress: Some(filter()), ..row };
    assert_eq!(policy.egress(&row, &membership), filter());
    assert_eq!(policy.ingress(&row, &membership), filter());
}

#[test]
fn an_unknown_workspace_in_a_filter_admits_nothing() {
    let mut filters = Config::default().filter;
    filters.egress.workspaces = list(&["gone"]);
    let (policy, membership) = (policy(&filters), membership());
    let by = policy.egress(&PeerRow::default(), &membership);
    let turn =
        policy.turn(Some(&examined(subject())), &by, &membership, &peer(), ReleaseState::Never);
    assert_eq!(turn, ReleaseChange::Stay(Some(FilterRule::Workspace)));
}

#[test]
fn a_distance_is_the_shortest_reported_by_an_approved_peer() {
    let author = |number: u32| key(number).author();
    let mut membership = membership();
    let approved = PeerRow { approval: PeerApproval::Approved, ..PeerRow::default() };
    let blocked = PeerRow { is_blocked: true, ..approved.clone() };
    let peers = [(3, approved.clone()), (4, approved), (5, PeerRow::default()), (11, blocked)];
    for (peer, row) in peers {
        membership.peers.insert(author(peer), row);
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
        (5, None), // Not approved.
        (6, Some(2)),
        (7, None),
        (8, Some(2)), // A report never yields less than 2.
        (9, Some(u8::MAX)),
        (10, None),
        (12, None), // The reporting peer is blocked.
    ] {
        assert_eq!(hop(&snapshot, &membership, author(of)).unwrap(), expect, "{of}");
    }
}

/// A node with one lesson.
fn engine() -> (Engine, EntryId) {
    let mut engine = testing::engine();
    let entry = create(&mut engine, Vec::new());
    (engine, entry)
}

/// Writes a lesson with additional claims.
fn create(engine: &mut Engine, claims: Vec<ClaimEdit>) -> EntryId {
    testing::create(engine, NewEntry { claims, ..lesson("Retries") })
}

#[test]
fn filters_use_this_nodes_confidence_and_status() {
    let (mut node, entry) = engine();
    let (policy, membership) = (policy(&Config::default().filter), Arc::new(membership()));
    let mut look = |command: Option<Command>| {
        if let Some(command) = command {
            node.step(&[command], NOW).remove(0).unwrap();
        }
        let snapshot = node.store().snapshot().unwrap();
        policy.subject(&policy.reading(&snapshot, &membership, NOW), entry).unwrap()
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
    assert_eq!(look(Some(Command::Retract { entry })), None, "no live text is left");
}

#[test]
fn a_preview_lists_released_new_ended_and_held_entries() {
    let private = || vec![ClaimEdit::Add(TextSet::TAGS, "private".into())];
    let ((mut node, has), peer) = (engine(), key(2).author());
    let gets = create(&mut node, Vec::new());
    let [loses, held] = [(); 2].map(|()| create(&mut node, private()));
    let [taken_back, forgotten] = [(); 2].map(|()| create(&mut node, Vec::new()));
    let open = [has, loses, taken_back, forgotten].map(|of| PeerCommand::Release(peer, of, true));
    for command in [
        Command::Peers(open.to_vec()),
        Command::Retract { entry: taken_back },
        Command::Forget { entry: forgotten },
    ] {
        node.step(&[command], NOW).remove(0).unwrap();
    }
    let (policy, mut membership) = (policy(&Config::default().filter), membership());
    membership.mine.insert(peer);
    let by = PeerFilter { tags_deny: set(&["private"]), ..filter() };
    let snapshot = node.store().snapshot().unwrap();
    assert_eq!(snapshot.release(peer, forgotten).unwrap().out, ReleaseState::Open);
    let mut released = vec![has, taken_back];
    released.sort_unstable();
    let expect = ReleasePreview {
        released,
        would_be: vec![gets],
        would_end: vec![loses],
        held: vec![HeldBack { entry: held, rule: FilterRule::TagDenied }],
    };
    let preview_of = |membership: &Membership, by: Option<&PeerFilter>, only| {
        policy.preview(&snapshot, &Arc::new(membership.clone()), peer, by, (NOW, only)).unwrap()
    };
    let preview =
        |membership: &Membership, by: Option<&PeerFilter>| preview_of(membership, by, None);
    assert_eq!(preview(&membership, Some(&by)), expect);
    // Without a given filter, the peer's own filter applies.
    let row = PeerRow { egress: Some(by), ..PeerRow::default() };
    membership.peers.insert(peer, row);
    assert_eq!(preview(&membership, None), expect);
    // A preview of one entry has the part of the whole preview that is about this entry.
    let none = ReleasePreview::default();
    let one = |entry| preview_of(&membership, None, Some(entry));
    assert_eq!(one(gets), ReleasePreview { would_be: vec![gets], ..none.clone() });
    assert_eq!(one(loses), ReleasePreview { would_end: vec![loses], ..none.clone() });
    assert_eq!(one(held), ReleasePreview { held: expect.held.clone(), ..none.clone() });
    assert_eq!(one(forgotten), none);
}

#[test]
fn the_distance_of_an_import_is_that_of_its_nearest_importer() {
    let author = |number: u32| key(number).author();
    // A workspace of other people, about whom a peer reports distances.
    let mut membership = membership();
    let charter = Charter { members: [author(2), author(6)].into(), ..Charter::default() };
    membership.workspaces.insert(TEAM, SharedWorkspace { charter, ..SharedWorkspace::default() });
    let approved = PeerRow { approval: PeerApproval::Approved, ..PeerRow::default() };
    membership.peers.insert(author(3), approved);
    let membership = Arc::new(membership);
    let source = SourceKey { format: "markdown".into(), key: "notes.md".into() };
    let SourceKey { format, key: name } = source.clone();
    let (workspace, memory) = (TEAM, Memory::Semantic);
    let origin = Origin::Imported { workspace, memory, format, key: name };
    let entry = origin.id();
    let import = |number: u32| {
        let (key, own) = (key(number), LiveRecords::default());
        let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
        let texts = [(Register::TITLE, "Notes"), (Register::TYPE, "lesson")];
        let claims = texts.map(|(register, text)| ClaimEdit::Set(register, text.into()));
        let stamp = Hlc::new(NOW, 1);
        let record = writer.claim(&<_>::default(), Some(origin.clone()), &claims, stamp).unwrap();
        Command::Ingest(vec![DeliveredRecord { record, from: author(3) }])
    };
    let said = [(6, 2), (2, 0)].map(|(of, hop)| PeerCommand::Distance(author(of), author(3), hop));
    let own = NewEntry { workspace, source: Some(source), ..lesson("Notes") };
    let mut node = testing::engine();
    node.step(&[Command::Peers(said.to_vec())], NOW).remove(0).unwrap();
    let policy = policy(&Config::default().filter);
    for (command, expect) in [(import(6), 3), (import(2), 2), (Command::Create(Box::new(own)), 0)] {
        node.step(&[command], NOW).remove(0).unwrap();
        let snapshot = node.store().snapshot().unwrap();
        let reading = policy.reading(&snapshot, &membership, NOW);
        let examined = policy.subject(&reading, entry).unwrap().expect("it is live");
        assert_eq!(examined.shown.creator_hop, Some(expect));
    }
}
