//! Removal of members: records outside the cut count nowhere, and records in it stay.

use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::{Digest, EntryId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::workspace_charter;
use klnode_engine::{Command, REMOVED, Receipt, Rejection, RemovalCommand};
use klnode_federation::sim::Knobs;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::test_engine::in_workspace;

fn remove(nodes: &mut Cluster, by: usize, workspace: WorkspaceId, who: usize) {
    let member = nodes.author(who);
    let command = RemovalCommand::Remove { workspace, member, keep: Vec::new() };
    nodes.run(by, Command::Removal(command)).expect("removed");
}

fn reinstate(nodes: &mut Cluster, by: usize, workspace: WorkspaceId, who: usize) {
    let member = nodes.author(who);
    let command = RemovalCommand::Reinstate { workspace, member };
    nodes.run(by, Command::Removal(command)).expect("taken back");
}

fn title(entry: EntryId, text: &str) -> Command {
    Command::Claim { entry, claims: vec![ClaimEdit::Set(Register::TITLE, text.into())] }
}

fn charter_claim(workspace: WorkspaceId, claim: ClaimEdit) -> Command {
    Command::Claim { entry: workspace_charter::entry(workspace), claims: vec![claim] }
}

/// The title that a node shows; `None` if it shows none.
fn shown(nodes: &mut Cluster, at: usize, entry: EntryId) -> Option<String> {
    let (snapshot, membership, now) = (nodes.snapshot(at), nodes.membership(at), nodes.now(at));
    let held = snapshot.entry(entry).expect("readable").to_entry();
    let workspace = held.origin.as_ref().map(|origin| origin.workspace());
    let view = held.view(now, &membership.entitlement(workspace));
    view.text(Register::TITLE).map(str::to_owned)
}

/// Quarantined records with the reason of a removal.
fn set_aside(nodes: &mut Cluster, at: usize) -> usize {
    let snapshot = nodes.snapshot(at);
    let rows = snapshot.quarantine().expect("readable");
    rows.filter(|row| row.as_ref().is_ok_and(|(_, row)| row.reason == REMOVED)).count()
}

/// A chain of four members: 0 owns the workspace, 3 is paired with 2 alone.
fn chain(seed: u64) -> (Cluster, WorkspaceId) {
    let mut nodes = Cluster::new(seed, 4, Knobs::calm());
    let team = nodes.found(&[0, 1, 2, 3]);
    for (one, two) in [(0, 1), (1, 2), (2, 3)] {
        nodes.pair(one, two, false);
    }
    nodes.pass(REST_MS);
    (nodes, team)
}

#[test]
fn records_before_the_removal_stay_and_later_ones_reach_no_member() {
    let (mut nodes, team) = chain(1);
    let (before, other) = (
        nodes.create(3, in_workspace(team, "before the removal")),
        nodes.create(0, in_workspace(team, "by the owner")),
    );
    nodes.pass(REST_MS);
    nodes.run(3, title(other, "improved by the member")).expect("a member may");
    nodes.pass(REST_MS);
    remove(&mut nodes, 0, team, 3);
    // The removed node and its neighbour have not heard of it yet.
    nodes.run(3, title(before, "after the removal")).expect("it does not know");
    nodes.run(3, title(other, "spoiled by the member")).expect("it does not know");
    let late = nodes.create(3, in_workspace(team, "new after the removal"));
    nodes.pass(4 * REST_MS);
    for at in 0..3 {
        let titles = [before, other, late].map(|entry| shown(&mut nodes, at, entry));
        let expect = [Some("before the removal"), Some("improved by the member"), None];
        assert_eq!(titles, expect.map(|title| title.map(str::to_owned)), "at {at}");
        assert!(!nodes.membership(at).is_member(nodes.author(3), team), "at {at}");
    }
    assert_eq!(nodes.digests(0, before), nodes.digests(2, before), "the same records everywhere");
    let told = nodes.run(3, Command::Create(Box::new(in_workspace(team, "more")))).unwrap_err();
    assert!(matches!(told, Rejection::RemovedHere(_)), "the removed node knows: {told}");
}

#[test]
fn accepted_records_outside_the_cut_are_set_aside_and_return_when_the_removal_is_taken_back() {
    let (mut nodes, team) = chain(2);
    let entry = nodes.create(3, in_workspace(team, "first"));
    nodes.pass(REST_MS);
    // The owner is away while the member writes, so its cut lacks the second title.
    nodes.part(0);
    nodes.run(3, title(entry, "second")).expect("a member may");
    let new = nodes.create(3, in_workspace(team, "new"));
    nodes.pass(REST_MS);
    assert_eq!(shown(&mut nodes, 1, entry).as_deref(), Some("second"));
    remove(&mut nodes, 0, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    for at in 0..3 {
        assert_eq!(shown(&mut nodes, at, entry).as_deref(), Some("first"), "at {at}");
        assert_eq!(shown(&mut nodes, at, new), None, "at {at}");
    }
    assert_eq!(set_aside(&mut nodes, 1), 2);
    reinstate(&mut nodes, 0, team, 3);
    nodes.run(0, charter_claim(team, member(&nodes, 3))).expect("listed again");
    nodes.pass(4 * REST_MS);
    for at in 0..4 {
        assert_eq!(shown(&mut nodes, at, entry).as_deref(), Some("second"), "at {at}");
        assert_eq!(shown(&mut nodes, at, new).as_deref(), Some("new"), "at {at}");
        assert_eq!(set_aside(&mut nodes, at), 0, "at {at}");
    }
    nodes.run(3, title(entry, "third")).expect("it is a member again");
    nodes.pass(2 * REST_MS);
    assert_eq!(shown(&mut nodes, 0, entry).as_deref(), Some("third"));
}

#[test]
fn a_member_states_a_record_that_was_set_aside_as_its_own() {
    let (mut nodes, team) = chain(6);
    let entry = nodes.create(0, in_workspace(team, "first"));
    nodes.pass(REST_MS);
    nodes.part(0);
    nodes.run(3, title(entry, "second")).expect("a member may");
    let new = nodes.create(3, in_workspace(team, "new"));
    nodes.pass(REST_MS);
    remove(&mut nodes, 0, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    let rows = nodes.snapshot(1).quarantine().expect("readable");
    let digests: Vec<Digest> = rows.map(|row| row.expect("readable").0).collect();
    assert_eq!(digests.len(), 2);
    let mut made = Vec::new();
    for digest in digests {
        let adopt = Command::Removal(RemovalCommand::Adopt(digest));
        if let Receipt::Created(entry) = nodes.run(1, adopt.clone()).expect("a member may") {
            made.push(entry);
        }
        let again = nodes.run(1, adopt).unwrap_err();
        assert!(matches!(again, Rejection::NotQuarantined(_)), "{again}");
    }
    nodes.pass(2 * REST_MS);
    assert_eq!(made.len(), 1);
    for at in 0..3 {
        assert_eq!(shown(&mut nodes, at, entry).as_deref(), Some("second"), "at {at}");
        assert_eq!(shown(&mut nodes, at, made[0]).as_deref(), Some("new"), "at {at}");
        assert_eq!(shown(&mut nodes, at, new), None, "at {at}");
    }
}

fn member(nodes: &Cluster, at: usize) -> ClaimEdit {
    ClaimEdit::Add(TextSet::MEMBERS, nodes.author(at).to_string())
}

fn admin(nodes: &Cluster, at: usize) -> ClaimEdit {
    ClaimEdit::Add(TextSet::ADMINS, nodes.author(at).to_string())
}

#[test]
fn the_owner_removes_a_member_that_an_admin_listed_and_an_admin_a_plain_member() {
    let (mut nodes, team) = chain(3);
    nodes.run(0, charter_claim(team, admin(&nodes, 1))).expect("the owner may");
    nodes.pass(REST_MS);
    nodes.run(1, charter_claim(team, member(&nodes, 3))).expect("an admin may");
    nodes.pass(REST_MS);
    remove(&mut nodes, 0, team, 3);
    nodes.pass(2 * REST_MS);
    for at in 0..3 {
        assert!(!nodes.membership(at).is_member(nodes.author(3), team), "the admin still lists it");
    }
    let workspace = team;
    let of = |member| RemovalCommand::Remove { workspace, member, keep: Vec::new() };
    let (owner, one, two) = (nodes.author(0), nodes.author(1), nodes.author(2));
    for (by, who) in [(1, owner), (2, one), (2, nodes.author(3))] {
        let refused = nodes.run(by, Command::Removal(of(who))).unwrap_err();
        assert!(matches!(refused, Rejection::MayNotRemove), "{by}: {refused}");
    }
    nodes.run(1, Command::Removal(of(two))).expect("an admin removes a plain member");
    nodes.pass(2 * REST_MS);
    assert!(!nodes.membership(0).is_member(two, team));
}

#[test]
fn a_removed_admin_cannot_erase_and_its_earlier_tombstones_stand() {
    let (mut nodes, team) = chain(4);
    nodes.run(0, charter_claim(team, admin(&nodes, 3))).expect("the owner may");
    let [early, late] = ["early", "late"].map(|title| nodes.create(0, in_workspace(team, title)));
    nodes.pass(2 * REST_MS);
    nodes.run(3, Command::Forget { entry: early }).expect("an admin may");
    nodes.pass(2 * REST_MS);
    // The owner is away while the lost laptop erases.
    nodes.part(0);
    nodes.run(3, Command::Forget { entry: late }).expect("it does not know");
    nodes.pass(2 * REST_MS);
    assert_eq!(shown(&mut nodes, 2, late), None, "the neighbour has followed it");
    remove(&mut nodes, 0, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    for at in 0..3 {
        assert_eq!(shown(&mut nodes, at, late).as_deref(), Some("late"), "at {at}");
        assert_eq!(shown(&mut nodes, at, early), None, "at {at}");
    }
}

#[test]
fn a_removed_member_still_retracts_and_forgets_its_own_entries() {
    let (mut nodes, team) = chain(5);
    let [one, two] = ["one", "two"].map(|title| nodes.create(3, in_workspace(team, title)));
    nodes.pass(REST_MS);
    remove(&mut nodes, 0, team, 3);
    nodes.pass(2 * REST_MS);
    nodes.run(3, Command::Retract { entry: one }).expect("its own");
    nodes.run(3, Command::Forget { entry: two }).expect("its own");
    nodes.pass(4 * REST_MS);
    for at in 0..3 {
        assert_eq!(shown(&mut nodes, at, one), None, "at {at}");
        assert_eq!(shown(&mut nodes, at, two), None, "at {at}");
    }
}

#[test]
fn an_entry_that_was_refused_as_a_whole_comes_when_the_removal_is_taken_back() {
    let (mut nodes, team) = chain(7);
    nodes.part(3);
    remove(&mut nodes, 0, team, 3);
    nodes.pass(2 * REST_MS);
    // The removed node has not heard of it, and all others refuse its entry.
    let entry = nodes.create(3, in_workspace(team, "refused everywhere"));
    nodes.heal();
    nodes.pass_messages(40);
    nodes.pass(4 * REST_MS);
    assert_eq!(shown(&mut nodes, 2, entry), None);
    reinstate(&mut nodes, 0, team, 3);
    nodes.run(0, charter_claim(team, member(&nodes, 3))).expect("listed again");
    nodes.pass(6 * REST_MS);
    for at in 0..4 {
        assert_eq!(shown(&mut nodes, at, entry).as_deref(), Some("refused everywhere"), "at {at}");
        for from in (0..4_usize).filter(|from| from.abs_diff(at) == 1) {
            assert_eq!(nodes.refused_for(at, from), [], "{at} refuses nothing of {from}");
        }
    }
}
