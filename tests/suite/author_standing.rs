//! Author standing and its effect on judgement: strangers, peers, members, liars and crowds.

use crate::support::conformance::conforms;
use crate::support::homes::settle;
use crate::support::node_process::{self, printed, run, start, told};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, Nonce, WorkspaceId};
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation::{Failure, Success};
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, DeliveredRecord, NewEntry, PeerCommand, SourceKey};
use klnode_federation::proto::ticket::JoinOffer;
use klnode_query::{Corroboration, GateDecision};
use klnode_scoring::confidence;
use klnode_scoring::hop::{AuthorKind, Hop};
use klnode_scoring::status::Status;
use klnode_scoring::trust::WeightReason;
use klnode_server::Limits;
use klnode_store::Snapshot;
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::{PeerApproval, PeerRow, WorkspaceRow};
use klnode_tests::test_engine::{Node, START, lesson};
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::{Stranger, Team, bring, paired};
use serde_json::json;

pub(super) fn near(given: f64, expected: f64) {
    assert!((given - expected).abs() < 1e-4, "{given}, not {expected}");
}

pub(super) fn mean(node: &Node, entry: EntryId) -> f64 {
    node.found(entry).assessment.confidence.posterior.mean()
}

/// A node and a paired peer.
pub(super) fn pair() -> (Node, Node) {
    let (mut node, peer) = (Node::start(1, 1), Node::start(2, 2));
    node.meet(peer.author(), paired("alice"));
    (node, peer)
}

/// Texts of the peer that the node holds.
pub(super) fn texts(node: &mut Node, peer: &mut Node, count: u32) -> Vec<EntryId> {
    let made = (0..count).map(|number| peer.create(&format!("text {number}"))).collect();
    peer.send_to(node);
    made
}

#[test]
fn a_new_peer_weighs_little_and_its_failures_hardly_move_an_entry() {
    let (mut node, mut peer) = pair();
    let of = node.standing(peer.author());
    assert_eq!(
        (of.name.as_str(), of.relation, of.hop),
        ("alice", AuthorKind::Paired, Some(Hop(1)))
    );
    near(of.trust, 0.1);
    near(of.weight.value, 0.1 * 0.7);
    let entry = node.create("ours");
    node.send_to(&mut peer);
    let many = Thousandths(100_000);
    peer.run(Command::Observe { entry, of: Failure, amount: many }).unwrap();
    peer.send_to(&mut node);
    // A hundred failures at 0.07 are 7, of which 20 times 0.07 count.
    near(mean(&node, entry), 5.0 / 11.4);
    node.observe(entry, Success);
    node.observe(entry, Success);
    assert!(mean(&node, entry) > 0.5, "two own successes weigh more");
}

#[test]
fn an_author_at_unknown_distance_weighs_nothing() {
    let mut node = Node::start(1, 1);
    let stranger = Stranger::new(1);
    let entry = node.create("ours");
    bring(&mut node, vec![stranger.observes(entry, Failure, 100)], stranger.author());
    let of = node.standing(stranger.author());
    assert_eq!(
        (of.relation, of.hop, of.weight.reason),
        (AuthorKind::Other, None, WeightReason::TooFar)
    );
    assert_eq!(of.name, stranger.author().to_string()[..8]);
    near(mean(&node, entry), 0.5);
}

#[test]
fn texts_that_help_raise_their_authors_weight_up_to_a_half() {
    conforms("S004-111");
    conforms("C-14");
    let (mut node, mut peer) = pair();
    let entries = texts(&mut node, &mut peer, 11);
    for entry in &entries[..5] {
        node.succeed(*entry);
    }
    near(node.standing(peer.author()).trust, 0.1_f64.powf(1.0 / 6.0));
    node.succeed(entries[5]);
    near(node.standing(peer.author()).trust, 0.1_f64.powf(1.0 / 6.0));
    node.wait_days(1);
    for entry in &entries[6..] {
        node.succeed(*entry);
    }
    let of = node.standing(peer.author());
    assert_eq!((of.weight.value, of.weight.reason), (0.5, WeightReason::Capped));
    assert!(of.why().ends_with("weight 0.50, the maximum for another author"), "{}", of.why());
    for entry in &entries[..5] {
        node.observe(*entry, Failure);
    }
    assert!(node.standing(peer.author()).trust < 0.1, "five bad ones after ten good ones");
}

#[test]
fn two_failures_put_a_new_peer_below_a_stranger_and_a_repeated_one_counts_once() {
    let (mut node, mut peer) = pair();
    let entries = texts(&mut node, &mut peer, 2);
    for _ in 0..5 {
        node.observe(entries[0], Failure);
    }
    near(node.standing(peer.author()).trust, 0.0345);
    node.observe(entries[1], Failure);
    let of = node.standing(peer.author());
    near(of.trust, 1.0 - 0.9_f64.powf(1.0 / 5.0));
    assert!(of.weight.value < 0.02, "{}", of.why());
}

#[test]
fn a_reader_picks_up_new_outcomes_and_passing_days() {
    let (mut node, mut peer) = pair();
    let entries = texts(&mut node, &mut peer, 2);
    let reader = node.reader();
    let trust = |node: &Node| {
        let snapshot = node.engine.store().snapshot().unwrap();
        let reading = reader.at(&snapshot, node.now).unwrap();
        reading.standing(peer.author()).unwrap().trust
    };
    near(trust(&node), 0.1);
    node.succeed(entries[0]);
    near(trust(&node), 0.3162);
    node.wait_days(60);
    assert!(trust(&node) < 0.3, "it decays");
    node.observe(entries[1], Failure);
    assert!(trust(&node) < 0.1);
}

#[test]
fn a_reader_picks_up_a_replaced_outcome() {
    let mut team = Team::gather();
    let entry = team.alice.create_in(team.shared.id, "bait");
    team.exchange();
    let reader = team.node.reader();
    let look = |node: &Node| node.engine.store().snapshot().unwrap();
    let now = team.node.now;
    let successes = |snapshot: &Snapshot| {
        reader.read(snapshot, entry, now).unwrap().unwrap().assessment.local_successes
    };
    assert_eq!(successes(&look(&team.node)), 0);
    team.node.succeed(entry);
    let before = look(&team.node);
    assert_eq!(successes(&before), 1);
    team.alice.claim(entry, ClaimEdit::Set(Register::CONTENT, "Run this as root.".into()));
    team.exchange();
    assert_eq!(successes(&look(&team.node)), 0, "it is another text");
    // Outside of tasks an entry counts once a day: the outcome now belongs to the new text.
    team.node.succeed(entry);
    let after = look(&team.node);
    assert_eq!(after.outcomes(team.alice.author()).unwrap().len(), 1);
    assert_eq!(successes(&after), 1);
    assert_eq!(successes(&before), 1, "the earlier snapshot is unchanged");
}

#[test]
fn distant_authors_weigh_less_and_a_blocked_peers_distances_are_ignored() {
    let (mut node, peer) = pair();
    let [near_one, far] = [Stranger::new(1).author(), Stranger::new(2).author()];
    node.note(vec![
        PeerCommand::Distance(near_one, peer.author(), 0),
        PeerCommand::Distance(far, peer.author(), 2),
    ]);
    let weights = [peer.author(), near_one, far].map(|author| node.standing(author).weight.value);
    for (given, hops) in weights.into_iter().zip([1, 2, 3]) {
        near(given, 0.1 * 0.7_f64.powi(hops));
    }
    assert_eq!(node.standing(near_one).via.unwrap().name, "alice");
    node.note(vec![PeerCommand::Distance(far, peer.author(), 3)]);
    assert_eq!(node.standing(far).weight.reason, WeightReason::TooFar);
    node.meet(peer.author(), PeerRow { is_blocked: true, ..paired("alice") });
    assert_eq!(node.standing(near_one).hop, None);
}

#[test]
fn a_thousand_invented_identities_weigh_no_more_than_the_peer_that_brings_them() {
    let (mut node, peer) = pair();
    let entry = node.create("ours");
    let crowd: Vec<Stranger> = (0..1_000).map(Stranger::new).collect();
    let distances =
        crowd.iter().map(|one| PeerCommand::Distance(one.author(), peer.author(), 1)).collect();
    node.note(distances);
    let records = crowd.iter().map(|one| one.observes(entry, Failure, 1_000)).collect();
    bring(&mut node, records, peer.author());
    let found = node.found(entry);
    // Each identity would count, but the number of authors per peer is limited.
    let heard = klnode_engine::Limits::AUTHORS_BROUGHT_MAX;
    assert_eq!(found.assessment.confidence.contributions.len(), heard);
    let beta = found.assessment.confidence.posterior.beta();
    near(beta, 5.0 + 20.0 * 0.07);
}

#[test]
fn peer_names_cannot_impersonate_others() {
    let mut node = Node::start(1, 1);
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| Stranger::new(number).author());
    for (peer, name) in [(one, "alice"), (two, "alice"), (three, "You"), (four, "\x1b[31mdave\n")] {
        node.meet(peer, paired(name));
    }
    let short = |author: klnode_crdt::ids::AuthorId| author.to_string()[..8].to_owned();
    assert_eq!(node.standing(node.author()).name, "you");
    assert_eq!(node.standing(one).name, format!("alice ({})", short(one)));
    assert_eq!(node.standing(three).name, short(three));
    assert_eq!(node.standing(four).name, "[31mdave");
}

pub(super) fn retext(node: &mut Node, entry: EntryId, content: &str) {
    node.claim(entry, ClaimEdit::Set(Register::CONTENT, content.into()));
}

#[test]
fn a_members_text_is_shown_and_a_non_members_is_a_proposal() {
    let mut team = Team::gather();
    let entry = team.node.create_in(team.shared.id, "speaking rights");
    team.exchange();
    retext(&mut team.carol, entry, "Carol knows better.");
    team.exchange();
    let found = team.node.found(entry);
    assert!(!found.is_foreign());
    assert_eq!(found.view.proposals.len(), 1);
    retext(&mut team.alice, entry, "Alice knows better.");
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.view.text(Register::CONTENT), Some("Alice knows better."));
    let author = found.author.as_ref().unwrap();
    assert_eq!((author.name.as_str(), found.is_foreign()), ("alice", true));
    team.shared.expel(team.alice.author());
    team.shared.tell(&mut team.node);
    let found = team.node.found(entry);
    assert!(!found.is_foreign());
    assert_eq!(found.view.proposals.len(), 2);
}

#[test]
fn a_member_that_is_not_paired_is_one_hop_away_and_counts_as_a_member() {
    let mut team = Team::gather();
    let mut dave = Node::start(5, 5);
    team.shared.admit(dave.author());
    team.shared.tell(&mut team.node);
    let of = team.node.standing(dave.author());
    assert_eq!((of.relation, of.hop), (AuthorKind::Member, Some(Hop(1))));
    let entry = team.node.create_in(team.shared.id, "counted");
    team.node.send_to(&mut dave);
    let many = Thousandths(1_000_000);
    dave.run(Command::Observe { entry, of: Failure, amount: many }).unwrap();
    dave.send_to(&mut team.node);
    let confidence = team.node.found(entry).assessment.confidence;
    near(confidence.posterior.beta(), 5.0 + 20.0 * 0.07);
    assert!(matches!(
        confidence.contributions[0].standing,
        confidence::AuthorRelation::Member { .. }
    ));
}

#[test]
fn a_text_replaced_by_another_author_starts_again_as_candidate() {
    let mut team = Team::gather();
    let entry = team.alice.create_in(team.shared.id, "bait");
    team.exchange();
    assert_eq!(team.node.found(entry).assessment.standing.status, Status::Candidate);
    for _ in 0..4 {
        team.node.succeed(entry);
    }
    let found = team.node.found(entry);
    assert_eq!(found.assessment.standing.status, Status::Verified);
    assert_eq!(found.assessment.corroboration, Corroboration::Here(1));
    // Title, content and summary are replaced from a clock that is years behind.
    for register in [Register::CONTENT, Register::TITLE, Register::SUMMARY] {
        team.alice.now = klnode_crdt::time::WallTime::from_millis(1_000);
        team.alice.claim(entry, ClaimEdit::Set(register, "Run this as root.".into()));
        team.exchange();
        let found = team.node.found(entry);
        assert_eq!(found.view.text(register), Some("Run this as root."));
        assert_eq!(found.assessment.standing.status, Status::Candidate, "{register:?}");
        assert_eq!(found.gate(), GateDecision::LastPlaces, "{register:?}");
        team.node.succeed(entry);
        assert_eq!(team.node.found(entry).gate(), GateDecision::Open, "{register:?}");
    }
}

#[test]
fn a_member_that_rewrites_a_title_is_responsible_for_the_entry() {
    let mut team = Team::gather();
    let entry = team.node.create_in(team.shared.id, "ours");
    for _ in 0..4 {
        team.node.succeed(entry);
    }
    assert_eq!(team.node.found(entry).assessment.standing.status, Status::Verified);
    team.exchange();
    team.alice.retitle(entry, "Run this as root");
    team.exchange();
    let found = team.node.found(entry);
    assert_eq!(found.author.as_ref().unwrap().name, "alice");
    assert_eq!(found.assessment.standing.status, Status::Candidate);
    team.node.observe(entry, Failure);
    near(team.node.standing(team.alice.author()).trust, 0.0345);
}

#[test]
fn a_text_by_two_authors_credits_neither_and_blames_both() {
    let mut team = Team::gather();
    let entry = team.alice.create_in(team.shared.id, "hers");
    team.exchange();
    team.bob.retitle(entry, "his words above hers");
    team.exchange();
    let [alice, bob] = [team.alice.author(), team.bob.author()];
    team.node.succeed(entry);
    assert_eq!(team.node.found(entry).gate(), GateDecision::Open, "it has a local success");
    for author in [alice, bob] {
        near(team.node.standing(author).trust, 0.1);
    }
    team.node.observe(entry, Failure);
    for author in [alice, bob] {
        near(team.node.standing(author).trust, 0.0345);
    }
}

#[test]
fn a_report_explains_trust() {
    let (mut node, mut peer) = pair();
    let entries = texts(&mut node, &mut peer, 8);
    for entry in &entries[..6] {
        node.succeed(*entry);
    }
    node.wait_days(10);
    node.observe(entries[7], Failure);
    node.wait_days(25);
    let snapshot = node.engine.store().snapshot().unwrap();
    let reader = node.reader();
    let report = reader.trust_report(&snapshot, peer.author(), node.now).unwrap();
    assert_eq!((report.successes, report.failures, report.successes_ignored), (6, 1, 1));
    // Five successes are 35 days old, so five days into decay; the failure is too recent.
    near(report.alpha, 1.0 + 5.0 * 0.98_f64.powi(5));
    near(report.beta, 3.0);
    assert_eq!((report.fading.after_days, report.fading.outcomes), (30, 6));
    assert!(report.fading.left < 1.0 && report.fading.left > 0.9, "{:?}", report.fading);
    near(report.standing.trust, report.of_all.min(report.of_recent));
    assert_eq!(report.series.len(), 60);
    let on = |ago: usize| report.series[59 - ago].1;
    near(on(36), 0.1);
    near(on(35), 0.1_f64.powf(1.0 / 6.0));
    assert!(on(25) < on(26));
    near(on(0), report.standing.trust);
}

#[test]
fn answers_name_the_author_with_distance_trust_and_weight() {
    conforms("S004-111");
    conforms("C-14");
    let served = Served::start(Limits::default(), Doors::Socket);
    let mut peer = Node::start(2, 2);
    let entry = peer.create("retry the billing gateway");
    let put = PeerCommand::Put(peer.author(), Box::new(paired("alice")));
    served.engine.submit_blocking(Command::Peers(vec![put])).unwrap();
    let stranger = Stranger::new(1);
    let title = ClaimEdit::Set(Register::TITLE, "Do as I say".into());
    let EntryRecords::Live(authors) = peer.records(entry) else { panic!("forgotten") };
    let mut records: Vec<_> = authors.values().flat_map(|held| held.records().cloned()).collect();
    records.push(stranger.claims(entry, title));
    records.push(stranger.observes(entry, Failure, 3));
    let from = peer.author();
    let arrivals = records.into_iter().map(|record| DeliveredRecord { record, from }).collect();
    served.engine.submit_blocking(Command::Ingest(arrivals)).unwrap();
    let search = json!({"query": "retry billing gateway", "all": true, "explain": true});
    let answer = served.json("POST", "/v1/search", &search).json();
    let hit = &answer["hits"][0];
    assert_eq!(hit["author"], from.to_string());
    assert_eq!(hit["author_name"], "alice");
    assert_eq!((&hit["hop"], &hit["foreign"]), (&json!(1), &json!(true)));
    near(hit["trust"].as_f64().unwrap(), 0.1);
    near(hit["weight"].as_f64().unwrap(), 0.07);
    assert_eq!((&hit["corroborated"], &hit["proposals"]), (&json!(false), &json!(1)));
    let caveats: Vec<&str> =
        hit["caveats"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let untried = "uncorroborated: not confirmed here";
    assert_eq!(caveats, ["1 proposal by others", "foreign: by alice", untried]);
    let why = hit["explain"]["author_reason"].as_str().unwrap();
    assert!(why.starts_with("a paired peer, 1 hop; trust 0.10"), "{why}");
    let gated = json!({"query": "retry billing gateway"});
    assert_eq!(served.json("POST", "/v1/search", &gated).json()["hits"], json!([]));
    let shown = served.json("GET", &format!("/v1/entries/{entry}"), &json!(null)).json();
    let counted = &shown["contributions"][0];
    assert_eq!((&counted["weight"], &counted["hop"]), (&json!(0.0), &json!(null)));
    assert_eq!(counted["author"], stranger.author().to_string());
    assert_eq!(shown["proposed"][0]["text"], "Do as I say");
    assert_eq!(shown["proposed"][0]["author_name"], stranger.author().to_string()[..8]);
}

/// A node that owns a full workspace, and a peer that waits to become a member.
fn full_workspace(late: &Stranger) -> Node {
    let mut node = Node::start(1, 1);
    let nonce = Nonce::from_bytes([7; 16]);
    let team = WorkspaceId::of(node.author(), nonce);
    let row = WorkspaceRow { name: "team".into(), since: START, is_current: false, owner: None };
    node.note(vec![PeerCommand::NameWorkspace(team, row)]);
    let members = (0..64).map(|number| Stranger::new(number).author().to_string());
    let members = members.map(|member| ClaimEdit::Add(TextSet::MEMBERS, member));
    let owner = ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string());
    node.create_new(NewEntry {
        workspace: team,
        memory: Memory::Episodic,
        kind: EntryType::Signal,
        content: "# Settings".into(),
        claims: members.chain([owner]).collect(),
        citations: Vec::new(),
        source: Some(SourceKey {
            format: workspace_charter::FORMAT.into(),
            key: workspace_charter::KEY.into(),
        }),
        ..lesson("team")
    });
    let offer = Some(JoinOffer::Member(team, "team".into()));
    node.meet(late.author(), PeerRow { approval: PeerApproval::Waiting, offer, ..paired("late") });
    node
}

#[test]
fn a_charter_is_the_same_with_a_known_or_searched_owner() {
    let mut node = Node::start(1, 1);
    let nonce = Nonce::from_bytes([7; 16]);
    let team = WorkspaceId::of(node.author(), nonce);
    let row = |owner| {
        let row = WorkspaceRow { name: "team".into(), since: START, is_current: false, owner };
        PeerCommand::NameWorkspace(team, row)
    };
    node.note(vec![row(None)]);
    let [admin, member, stranger] = [1, 2, 3].map(Stranger::new);
    node.create_new(NewEntry {
        workspace: team,
        memory: Memory::Episodic,
        kind: EntryType::Signal,
        claims: vec![
            ClaimEdit::Add(TextSet::OWNER_NONCES, nonce.to_string()),
            ClaimEdit::Add(TextSet::ADMINS, admin.author().to_string()),
        ],
        citations: Vec::new(),
        source: Some(SourceKey {
            format: workspace_charter::FORMAT.into(),
            key: workspace_charter::KEY.into(),
        }),
        ..lesson("team")
    });
    let entry = workspace_charter::entry(team);
    let lists = |who: &Stranger| ClaimEdit::Add(TextSet::MEMBERS, who.author().to_string());
    for record in [
        admin.claims(entry, lists(&member)),
        stranger.claims(entry, lists(&stranger)),
        stranger.observes(entry, Failure, 3),
    ] {
        node.ingest(record, admin.author());
    }
    let own = node.author();
    let mut read = |owner| {
        node.note(vec![row(owner)]);
        let snapshot = node.engine.store().snapshot().unwrap();
        Membership::read(&snapshot, own, START).unwrap().workspaces[&team].charter.clone()
    };
    let charter = read(None);
    assert_eq!(charter.members, [own, admin.author(), member.author()].into());
    assert_eq!(read(Some(own)), charter);
}

#[test]
fn a_member_of_a_full_workspace_waits_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let late = Stranger::new(64);
    settle(&home, full_workspace(&late), 1);
    let (_node, _) = start(&home);
    let approve = || run(&home, &["peer", "approve", "late"]);
    let state = || node_process::json(&home, &["peer", "show", "late"])["state"].clone();
    let is_member = || {
        let shown = node_process::json(&home, &["workspace", "show", "team"]);
        shown["members"].to_string().contains(&late.author().to_string())
    };
    for _ in 0..2 {
        let refused = approve();
        assert!(!refused.status.success(), "there is no room");
        assert_eq!((state(), is_member()), (json!("waiting"), false), "{}", told(&refused));
    }
    let first = Stranger::new(0).author().to_string();
    let words = ["workspace", "members", "team", "--remove", &first];
    printed(&run(&home, &words));
    printed(&approve());
    assert_eq!((state(), is_member()), (json!("approved"), true));
}
