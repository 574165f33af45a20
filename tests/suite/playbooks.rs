//! Playbooks: members edit one text apart and together, and all of them show the same text.

use crate::support::playbook_team::{TEXT, assert_same, edit, heads, remove, team, text, write};
use klnode_document::change_hash::ChangeHash;
use klnode_engine::{Command, DocumentCommand, Rejection, RemovalCommand, open_document};
use klnode_tests::cluster::{Cluster, REST_MS};

#[test]
fn edits_made_apart_in_two_sections_and_in_one_sentence_all_stay() {
    let (mut nodes, team) = team(1);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, TEXT);
    nodes.part(3);
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag the commit and push.");
    edit(&mut nodes, 3, entry, "Tag the commit.", "Sign and tag the commit.");
    edit(&mut nodes, 3, entry, "Read the tests first.", "Read the tests first. Then run them.");
    nodes.pass(REST_MS);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    let expect = "# Releasing\n\nSign and tag the commit and push.\n\n# Review\n\nRead the tests \
                  first. Then run them.\n";
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, expect);
    let (snapshot, membership) = (nodes.snapshot(1), nodes.membership(1));
    let blame = open_document(&snapshot, &membership, entry).expect("readable").blame();
    let by = |line: &str| {
        let found = blame.iter().find(|of| of.text.starts_with(line)).expect("the line exists");
        found.authors.clone()
    };
    let mut both = vec![nodes.author(0), nodes.author(3)];
    both.sort_unstable();
    assert_eq!(by("Sign and tag"), both);
    assert_eq!(by("# Review"), [nodes.author(0)]);
}

#[test]
fn a_text_that_was_read_earlier_does_not_revert_the_edits_since() {
    let (mut nodes, team) = team(2);
    let entry = write(&mut nodes, 0, team);
    let base = heads(&mut nodes, 0, entry);
    edit(&mut nodes, 0, entry, "Tag the commit.", "Tag the commit twice.");
    let text = TEXT.replace("Read the tests", "Read all tests");
    let command = DocumentCommand::Edit { entry, base, text };
    nodes.run(0, Command::Document(command)).expect("the version is known");
    nodes.pass(3 * REST_MS);
    let expect = "# Releasing\n\nTag the commit twice.\n\n# Review\n\nRead all tests first.\n";
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, expect);
    let unknown = DocumentCommand::Edit {
        entry,
        base: vec![ChangeHash::from_bytes([7; 32])],
        text: "gone".into(),
    };
    let told = nodes.run(0, Command::Document(unknown)).unwrap_err();
    assert!(matches!(told, Rejection::NotEdited(_)), "{told}");
}

#[test]
fn restarts_copies_and_restored_homes_lose_no_edit() {
    let (mut nodes, team) = team(3);
    let entry = write(&mut nodes, 3, team);
    nodes.pass(3 * REST_MS);
    let copy = nodes.disk(3);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag the commit. One.");
    nodes.pass(3 * REST_MS);
    nodes.crash(3);
    nodes.restart(3);
    edit(&mut nodes, 3, entry, "One.", "One. Two.");
    nodes.pass(3 * REST_MS);
    // The old copy writes with a number that the lost process used already.
    nodes.crash(3);
    nodes.restart_on(3, copy);
    assert_eq!(text(&mut nodes, 3, entry), TEXT);
    nodes.part(3);
    edit(&mut nodes, 3, entry, "Read the tests", "Read all tests");
    nodes.pass(REST_MS);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    let expect = "# Releasing\n\nTag the commit. One. Two.\n\n# Review\n\nRead all tests first.\n";
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, expect);
}

#[test]
fn edits_of_a_removed_member_count_if_the_owner_held_them_or_a_member_built_on_them() {
    let (mut nodes, team) = team(4);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag the commit early.");
    nodes.pass(3 * REST_MS);
    nodes.part(0);
    edit(&mut nodes, 3, entry, "Read the tests", "Read ALL the tests");
    nodes.pass(3 * REST_MS);
    // A member builds on an edit that the owner does not hold.
    edit(&mut nodes, 1, entry, "Read ALL the tests", "Read ALL the new tests");
    nodes.pass(REST_MS);
    remove(&mut nodes, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    edit(&mut nodes, 0, entry, "early", "late");
    nodes.pass(4 * REST_MS);
    let expect =
        "# Releasing\n\nTag the commit late.\n\n# Review\n\nRead ALL the new tests first.\n";
    assert_same(&mut nodes, &[0, 1, 2], entry, expect);
    let (base, text) = (heads(&mut nodes, 3, entry), "mine now".to_owned());
    let edit = DocumentCommand::Edit { entry, base, text };
    let told = nodes.run(3, Command::Document(edit)).unwrap_err();
    assert!(matches!(told, Rejection::RemovedHere(_)), "the removed node knows: {told}");
}

#[test]
fn an_edit_outside_the_cut_on_which_no_member_built_disappears() {
    let (mut nodes, team) = team(5);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    nodes.part(0);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Delete the repository.");
    nodes.pass(3 * REST_MS);
    assert!(text(&mut nodes, 1, entry).contains("Delete"), "a member's edit counts");
    remove(&mut nodes, team, 3);
    nodes.heal();
    nodes.pass(4 * REST_MS);
    assert_same(&mut nodes, &[0, 1, 2], entry, TEXT);
    let member = nodes.author(3);
    let back = RemovalCommand::Reinstate { workspace: team, member };
    nodes.run(0, Command::Removal(back)).expect("taken back");
    let again = klnode_crdt::record_builder::ClaimEdit::Add(
        klnode_crdt::claims::TextSet::MEMBERS,
        member.to_string(),
    );
    let charter = klnode_crdt::workspace_charter::entry(team);
    nodes.run(0, Command::Claim { entry: charter, claims: vec![again] }).expect("listed again");
    nodes.pass(4 * REST_MS);
    assert_same(
        &mut nodes,
        &[0, 1, 2, 3],
        entry,
        &TEXT.replace("Tag the commit", "Delete the repository"),
    );
}

#[test]
fn blocks_do_not_change_the_text() {
    let (mut nodes, team) = team(6);
    let entry = write(&mut nodes, 0, team);
    nodes.pass(3 * REST_MS);
    let author = nodes.author(3);
    nodes.block(1, author, true);
    edit(&mut nodes, 3, entry, "Tag the commit.", "Tag it.");
    nodes.pass(4 * REST_MS);
    assert_same(&mut nodes, &[0, 1, 2, 3], entry, &TEXT.replace("Tag the commit.", "Tag it."));
}

fn is_on_disk(nodes: &Cluster, at: usize, bytes: &[u8]) -> bool {
    nodes.disk(at).bytes().windows(bytes.len()).any(|part| part == bytes)
}

#[test]
fn forgetting_a_playbook_erases_its_text_and_its_edits_everywhere() {
    let (mut nodes, team) = team(7);
    let entry = write(&mut nodes, 0, team);
    edit(&mut nodes, 0, entry, "Tag the commit.", "The password is swordfish.");
    edit(&mut nodes, 0, entry, "swordfish", "elsewhere");
    nodes.pass(3 * REST_MS);
    assert!(is_on_disk(&nodes, 2, b"swordfish"), "the history has it");
    nodes.run(0, Command::Forget { entry }).expect("its author may");
    nodes.pass(3 * REST_MS);
    for at in 0..4 {
        let snapshot = nodes.snapshot(at);
        assert_eq!(snapshot.document(entry).expect("readable"), None, "at {at}");
        assert!(snapshot.edits(entry).expect("readable").is_empty(), "at {at}");
        assert!(snapshot.check().expect("readable").is_empty(), "at {at}");
        drop(snapshot);
        nodes.run(at, Command::Rewrite).expect("the store is rewritten");
        assert!(!is_on_disk(&nodes, at, b"swordfish"), "at {at}");
    }
}
