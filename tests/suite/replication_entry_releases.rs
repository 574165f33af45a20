//! Releases on a simulated network: after a machine is blocked, after a restart, by time alone, and
//! before a retraction; ownership of imports; privacy of unreleased entries; and the cost of a
//! filter that releases nothing.

use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, EntryId, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::RawRecord;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, NewEntry, SourceKey};
use klnode_federation::proto::OutboxTarget;
use klnode_federation::proto::entry_filter::Reach;
use klnode_federation::sim::{ClockFault, Knobs};
use klnode_store::peers::row_types::PeerRow;
use klnode_store::row_types::Seq;
use klnode_tests::cluster::{Cluster, REST_MS, Sent, TICK_MS};
use klnode_tests::test_engine::{in_workspace, lesson};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[test]
fn a_blocked_own_machine_gets_no_more_personal_records() {
    let mut nodes = Cluster::new(70, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    let shared = nodes.create(0, lesson("shared"));
    nodes.pass(REST_MS);
    assert!(nodes.is_released(0, 1, shared));
    let lost = nodes.author(1);
    nodes.block(0, lost, true);
    let edit = ClaimEdit::Set(Register::CONTENT, "A later lesson zq-since.".into());
    nodes.run(0, Command::Claim { entry: shared, claims: vec![edit] }).expect("set");
    let later = nodes.create(0, lesson("written zq-since"));
    nodes.pass(2 * REST_MS);
    for entry in [shared, later] {
        assert!(!nodes.is_released(0, 1, entry));
    }
    let has = |sent: &Sent| sent.holds(b"zq-since");
    assert!(!nodes.sent.iter().any(|sent| sent.from == 0 && has(sent)));
}

/// No node is a member of a workspace: membership would be re-examined after a start in any case.
#[test]
fn a_release_that_was_ending_at_a_stop_ends_after_the_restart() {
    // More entries than two batches of the sweep.
    const ENTRIES: usize = 600;
    let mut nodes = Cluster::new(71, 2, Knobs::calm());
    nodes.pair(0, 1, true);
    for number in 0..ENTRIES {
        nodes.create(0, lesson(&format!("entry {number}")));
    }
    nodes.pass(REST_MS);
    assert_eq!(nodes.preview(0, 1).released.len(), ENTRIES);
    nodes.set_egress(0, 1, |filter| {
        filter.tags_allow.insert("never".into());
    });
    assert!(!nodes.preview(0, 1).would_end.is_empty(), "the sweep was interrupted");
    nodes.crash(0);
    nodes.restart(0);
    nodes.pass(REST_MS);
    let preview = nodes.preview(0, 1);
    assert!(preview.would_end.is_empty(), "{} would end", preview.would_end.len());
}

#[test]
fn releases_that_depend_on_time_open_at_the_next_sweep() {
    let mut nodes = Cluster::new(72, 2, Knobs::calm());
    let team = nodes.found(&[0, 1]);
    let entry = nodes.create(0, NewEntry { workspace: team, ..lesson("doubted") });
    let (of, amount) = (Observation::Failure, Thousandths(15_000));
    nodes.run(0, Command::Observe { entry, of, amount }).expect("observed");
    nodes.pair(0, 1, false);
    nodes.pass(REST_MS);
    assert!(!nodes.is_released(0, 1, entry), "five successes of twenty-five are too few");
    // The observations decay, and nothing is written meanwhile.
    nodes.disturb_clock(&ClockFault::Jumped { node: 0, by_ms: 60 * DAY_MS });
    nodes.pass(700_000);
    assert!(nodes.is_released(0, 1, entry));
}

#[test]
fn an_entry_moved_into_a_thread_and_back_converges() {
    let mut nodes = Cluster::new(73, 2, Knobs::calm());
    let team = nodes.found(&[0, 1]);
    nodes.pair(0, 1, false);
    let entry = nodes.create(0, NewEntry { workspace: team, ..lesson("to and fro") });
    nodes.pass(REST_MS);
    // The other node reads each change of it, or only the remaining ones.
    for pause_ms in [REST_MS, 0] {
        for thread in ["x", "", "x", ""] {
            let claims = vec![ClaimEdit::Set(Register::THREAD, thread.into())];
            nodes.run(0, Command::Claim { entry, claims }).expect("set");
            nodes.pass(pause_ms);
        }
        nodes.pass(REST_MS);
        assert!(nodes.is_released(0, 1, entry));
        assert!(nodes.is_equal(0, 1) && nodes.is_equal(1, 0), "after pauses of {pause_ms} ms");
        assert_eq!(nodes.digests(0, entry), nodes.digests(1, entry));
        let peer = nodes.author(1);
        let rows = nodes.snapshot(0).outbox(peer, 0).expect("readable");
        let is_notice = |row: &OutboxTarget| {
            [OutboxTarget::Opened(entry), OutboxTarget::Ended(entry)].contains(row)
        };
        let notices = rows.filter(|row| row.as_ref().is_ok_and(|(_, row)| is_notice(row))).count();
        assert_eq!(notices, 2);
    }
}

/// An import line that any node may import.
fn import(workspace: WorkspaceId, key: &str) -> NewEntry {
    let source = SourceKey { format: "markdown".into(), key: key.into() };
    NewEntry { source: Some(source), ..in_workspace(workspace, key) }
}

#[test]
fn a_colleagues_import_counts_as_foreign_until_imported_here() {
    for is_egress in [true, false] {
        let mut nodes = Cluster::new(75, 3, Knobs::calm());
        let team = nodes.found(&[0, 1, 2]);
        nodes.pair(0, 1, false);
        nodes.pair(1, 2, false);
        nodes.pass(REST_MS);
        match is_egress {
            true => nodes.set_egress(1, 2, |filter| filter.reach = Reach::CreatedHere),
            false => nodes.set_ingress(2, 1, |filter| filter.reach = Reach::CreatedHere),
        }
        let [far, both] = ["far.md", "both.md"].map(|key| nodes.create(0, import(team, key)));
        nodes.pass(REST_MS);
        // Other local claims do not make it an own entry.
        let claims = vec![ClaimEdit::Add(TextSet::TAGS, "notes".into())];
        nodes.run(1, Command::Claim { entry: far, claims }).expect("tagged");
        assert_eq!(nodes.create(1, import(team, "both.md")), both);
        nodes.pass(REST_MS);
        assert!(!nodes.digests(1, far).is_empty());
        assert!(nodes.digests(2, far).is_empty(), "egress: {is_egress}");
        assert!(!nodes.digests(2, both).is_empty(), "egress: {is_egress}");
        assert_eq!(nodes.is_released(1, 2, far), !is_egress);
    }
}

#[test]
fn entries_of_a_former_own_machine_count_as_foreign() {
    let mut nodes = Cluster::new(77, 3, Knobs::calm());
    let team = nodes.found(&[1, 0, 2]);
    nodes.pair(0, 1, true);
    nodes.pair(1, 2, false);
    nodes.pass(REST_MS);
    nodes.set_egress(1, 2, |filter| filter.reach = Reach::CreatedHere);
    let entry = nodes.create(0, in_workspace(team, "written on the other machine"));
    nodes.pass(REST_MS);
    assert!(nodes.is_released(1, 2, entry));
    let machine = nodes.author(0);
    let row = nodes.membership(1).peers.get(&machine).expect("paired").clone();
    nodes.put_peer(1, machine, PeerRow { is_mine: false, ..row });
    nodes.pass(REST_MS);
    assert!(!nodes.is_released(1, 2, entry), "before the periodic sweep");
}

#[test]
fn a_proof_about_a_personal_entry_stays_on_own_machines() {
    let mut nodes = Cluster::new(76, 3, Knobs::calm());
    let team = nodes.found(&[1, 2]);
    nodes.pair(0, 1, true);
    nodes.pair(1, 2, false);
    let personal = nodes.create(0, lesson("personal"));
    let shared = nodes.create(1, in_workspace(team, "shared"));
    nodes.pass(REST_MS);
    // A machine is resumed twice from one image: both lives write the same slots.
    nodes.crash(0);
    nodes.restart(0);
    nodes.pass(REST_MS);
    let image = nodes.disk(0);
    let title = |text: &str| {
        let claims = vec![ClaimEdit::Set(Register::TITLE, text.into())];
        Command::Claim { entry: personal, claims }
    };
    nodes.run(0, title("one thing")).expect("set");
    nodes.pass(REST_MS);
    nodes.crash(0);
    nodes.resume_on(0, image);
    nodes.part(0);
    nodes.run(0, title("another thing")).expect("set");
    nodes.calm();
    nodes.pass(REST_MS);
    let author = nodes.author(0);
    assert!(nodes.snapshot(1).equivocation(author).expect("readable").is_some());
    assert!(!nodes.digests(2, shared).is_empty(), "they exchange records");
    let tells = |sent: &Sent| sent.to == 2 && sent.holds(personal.as_bytes());
    assert!(!nodes.sent.iter().any(tells));
}

/// A record about an entry with a guessed id: a retraction of a claim never made, or an
/// observation.
fn guessed(entry: EntryId, now: WallTime, is_retraction: bool) -> (u64, RawRecord) {
    let (key, own) = (SecretKey::from_bytes(&[77; 32]), LiveRecords::default());
    let stamp = Hlc::new(now, 0);
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
    let said = match is_retraction {
        true => writer.retract(None, stamp),
        false => writer.observe(Observation::Success, Thousandths::ONE, now.day(), stamp),
    };
    (stamp.bits(), said.expect("it is valid").to_raw())
}

/// When a node pairs with the peer that guessed the id of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    BeforeItIsHere,
    WhileItIsHere,
    OnceForgotten,
}

#[test]
fn records_about_guessed_ids_reveal_nothing_about_local_entries() {
    let cases =
        [(WorkspaceId::LOCAL, true), (WorkspaceId::LOCAL, false), (WorkspaceId::MAIN, false)];
    let moments = [Met::BeforeItIsHere, Met::WhileItIsHere, Met::OnceForgotten];
    let all = moments.into_iter().flat_map(|met| [true, false].map(|retracts| (met, retracts)));
    for ((workspace, is_mine), (met, is_retraction)) in
        all.flat_map(|how| cases.map(|case| (case, how)))
    {
        let mut nodes = Cluster::new(79, 2, Knobs::calm());
        let new = import(workspace, "notes.md");
        let (format, key) = ("markdown".to_owned(), "notes.md".to_owned());
        let entry = Origin::Imported { workspace, memory: new.memory, format, key }.id();
        let said = guessed(entry, nodes.now(0), is_retraction);
        nodes.possess(1, &[entry], vec![said]);
        let meet = |nodes: &mut Cluster, moment: Met| {
            if moment == met {
                nodes.pair(0, 1, is_mine);
                nodes.pass(REST_MS);
            }
        };
        meet(&mut nodes, Met::BeforeItIsHere);
        assert_eq!(nodes.create(0, new), entry);
        meet(&mut nodes, Met::WhileItIsHere);
        let held = if met == Met::BeforeItIsHere { 2 } else { 1 };
        assert_eq!(nodes.digests(0, entry).len(), held, "{met:?}: later records are refused");
        for command in [Command::Retract { entry }, Command::Forget { entry }] {
            nodes.run(0, command).expect("taken back");
            nodes.pass(REST_MS);
        }
        meet(&mut nodes, Met::OnceForgotten);
        nodes.pass(2 * REST_MS);
        let tells = |sent: &Sent| sent.from == 0 && sent.holds(entry.as_bytes());
        let case = format!("{workspace}, {is_mine}, {met:?}, {is_retraction}");
        assert!(!nodes.sent.iter().any(tells), "{case}");
    }
}

/// How a release ends.
#[derive(Clone, Copy, Debug)]
enum Narrowed {
    ByFilter,
    ByStrikingOff,
    IntoThread,
}

fn narrow(nodes: &mut Cluster, how: Narrowed, team: WorkspaceId, entry: EntryId) {
    let (of, claim) = match how {
        Narrowed::ByFilter => {
            return nodes.set_egress(0, 1, |filter| {
                filter.tags_allow.insert("never".into());
            });
        }
        Narrowed::ByStrikingOff => {
            let member = nodes.author(1).to_string();
            (workspace_charter::entry(team), ClaimEdit::Withdraw(TextSet::MEMBERS, member))
        }
        Narrowed::IntoThread => (entry, ClaimEdit::Set(Register::THREAD, "fix".into())),
    };
    nodes.run(0, Command::Claim { entry: of, claims: vec![claim] }).expect("claimed");
}

/// Whether any record of a node contains these bytes.
fn holds(nodes: &mut Cluster, at: usize, bytes: &[u8]) -> bool {
    let changes = nodes.snapshot(at).changes_since(Seq(0)).expect("readable");
    let mut payloads =
        changes.filter_map(|change| change.expect("readable").record.to_raw().payload);
    payloads.any(|payload| payload.windows(bytes.len()).any(|part| part == bytes))
}

#[test]
fn a_retraction_reaches_a_peer_whose_release_has_ended() {
    for how in [Narrowed::ByFilter, Narrowed::ByStrikingOff, Narrowed::IntoThread] {
        let mut nodes = Cluster::new(77, 2, Knobs::calm());
        let team = nodes.found(&[0, 1]);
        nodes.pair(0, 1, false);
        let entry = nodes.create(0, in_workspace(team, "zq-taken-back"));
        nodes.pass(REST_MS);
        narrow(&mut nodes, how, team, entry);
        nodes.pass(REST_MS);
        assert!(!nodes.is_released(0, 1, entry), "{how:?}");
        assert!(holds(&mut nodes, 1, b"zq-taken-back"), "{how:?}: it keeps the sent records");
        nodes.run(0, Command::Retract { entry }).expect("retracted");
        nodes.pass(REST_MS);
        assert!(!holds(&mut nodes, 1, b"zq-taken-back"), "{how:?}");
        assert!(!nodes.digests(1, entry).is_empty(), "{how:?}: a trace of the entry remains");
    }
}

/// Where the filter is closed.
#[derive(Clone, Copy, Debug)]
enum Shut {
    Egress,
    Ingress,
    Line,
}

#[test]
fn a_closed_filter_is_not_evaluated_repeatedly() {
    // More entries than two batches of the sweep.
    const ENTRIES: usize = 600;
    const PASSED_MS: u64 = 300_000;
    for shut in [Shut::Egress, Shut::Ingress, Shut::Line] {
        let mut nodes = Cluster::new(78, 2, Knobs::calm());
        for number in 0..ENTRIES {
            nodes.create(0, lesson(&format!("entry {number}")));
        }
        nodes.part(1);
        nodes.pair(0, 1, true);
        match shut {
            Shut::Egress => nodes.set_egress(0, 1, |filter| {
                filter.tags_allow.insert("never".into());
            }),
            Shut::Ingress => nodes.set_ingress(1, 0, |filter| {
                filter.tags_allow.insert("never".into());
            }),
            Shut::Line => {}
        }
        if !matches!(shut, Shut::Line) {
            nodes.heal();
        }
        nodes.pass(2 * REST_MS);
        assert!(nodes.holdings(1).is_empty(), "{shut:?}");
        let before = nodes.ticks();
        nodes.pass(PASSED_MS);
        // Number of ticks of both nodes without any work; a comparison a minute adds a few more.
        let idle = 2 * (PASSED_MS / TICK_MS);
        let ticks = nodes.ticks() - before;
        assert!((idle / 2..=2 * idle).contains(&ticks), "{shut:?}: {ticks} ticks");
    }
}
