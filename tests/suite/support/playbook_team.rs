//! A team of four nodes with a playbook, and an author that forges edits of it.

use klnode_crdt::document_edit::DocumentEdit;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::signed_edit::EditPosition;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_document::change::CheckedChange;
use klnode_document::change_hash::ChangeHash;
use klnode_document::edit::EditContext;
use klnode_engine::{
    Command, DeliveredRecord, DocumentCommand, IngestOutcome, NewEntry, Receipt, RemovalCommand,
    open_document,
};
use klnode_federation::sim::Knobs;
use klnode_store::documents::DocumentRow;
use klnode_tests::cluster::{Cluster, REST_MS};
use klnode_tests::test_engine::in_workspace;

/// The first text of every playbook.
pub(crate) const TEXT: &str =
    "# Releasing\n\nTag the commit.\n\n# Review\n\nRead the tests first.\n";

/// An empty playbook.
pub(crate) fn new_playbook(workspace: WorkspaceId) -> NewEntry {
    NewEntry {
        kind: EntryType::Playbook,
        memory: Memory::Procedural,
        content: String::new(),
        ..in_workspace(workspace, "How we work")
    }
}

/// Writes a playbook.
pub(crate) fn write(nodes: &mut Cluster, at: usize, workspace: WorkspaceId) -> EntryId {
    let new = Box::new(new_playbook(workspace));
    let command = DocumentCommand::Create { new, text: TEXT.into() };
    match nodes.run(at, Command::Document(command)).expect("a member may") {
        Receipt::Created(entry) => entry,
        other => panic!("no entry: {other:?}"),
    }
}

/// The stored merge.
pub(crate) fn row(nodes: &mut Cluster, at: usize, entry: EntryId) -> DocumentRow {
    nodes.snapshot(at).document(entry).expect("readable").unwrap_or_default()
}

/// The text that a node shows.
pub(crate) fn text(nodes: &mut Cluster, at: usize, entry: EntryId) -> String {
    row(nodes, at, entry).text
}

/// The version that a node shows.
pub(crate) fn heads(nodes: &mut Cluster, at: usize, entry: EntryId) -> Vec<ChangeHash> {
    row(nodes, at, entry).heads.iter().map(|head| ChangeHash::from_bytes(**head)).collect()
}

/// Replaces a part of the present text at a node.
pub(crate) fn edit(nodes: &mut Cluster, at: usize, entry: EntryId, from: &str, to: &str) {
    let before = text(nodes, at, entry);
    assert!(before.contains(from), "{before}");
    let (base, text) = (heads(nodes, at, entry), before.replacen(from, to, 1));
    let command = DocumentCommand::Edit { entry, base, text };
    nodes.run(at, Command::Document(command)).expect("a member may");
}

/// A chain of four members; 0 owns the workspace.
pub(crate) fn team(seed: u64) -> (Cluster, WorkspaceId) {
    let mut nodes = Cluster::new(seed, 4, Knobs::calm());
    let team = nodes.found(&[0, 1, 2, 3]);
    for (one, two) in [(0, 1), (1, 2), (2, 3)] {
        nodes.pair(one, two, false);
    }
    nodes.pass(REST_MS);
    (nodes, team)
}

/// Makes the owner remove a node.
pub(crate) fn remove(nodes: &mut Cluster, workspace: WorkspaceId, who: usize) {
    let member = nodes.author(who);
    let command = RemovalCommand::Remove { workspace, member, keep: Vec::new() };
    nodes.run(0, Command::Removal(command)).expect("the owner may");
}

/// Asserts that nodes show this text, and that readers merge the same.
#[track_caller]
pub(crate) fn assert_same(nodes: &mut Cluster, members: &[usize], entry: EntryId, expect: &str) {
    for at in members {
        assert_eq!(text(nodes, *at, entry), expect, "at {at}");
        let (snapshot, membership) = (nodes.snapshot(*at), nodes.membership(*at));
        let opened = open_document(&snapshot, &membership, entry).expect("readable");
        assert_eq!(opened.text(), expect, "a reader merges like the writer at {at}");
    }
}

/// A hostile author with records of its own making.
pub(crate) struct Forger {
    pub(crate) key: SecretKey,
    pub(crate) entry: EntryId,
}

impl Forger {
    /// The position of the next edit.
    pub(crate) fn context(&self, boot: u64, number: u32) -> EditContext {
        let (author, time) = (self.key.author(), WallTime::from_millis(1));
        EditContext { author, boot: Boot(boot), number, time }
    }

    /// A record of a valid change.
    pub(crate) fn sealed(&self, change: &CheckedChange) -> Record {
        let identity = change.identity();
        let edit = DocumentEdit { branch: identity.branch, change: change.bytes().to_vec() };
        self.record(edit, identity.boot.0, identity.number)
    }

    /// A record of any bytes.
    pub(crate) fn record(&self, edit: DocumentEdit, boot: u64, number: u32) -> Record {
        let at =
            EditPosition { entry: self.entry, boot: Boot(boot), number, stamp: Hlc::from_bits(1) };
        edit.seal(&at, &self.key).expect("within the limits")
    }
}

/// Delivers a record of any author to a node.
pub(crate) fn deliver(
    nodes: &mut Cluster,
    at: usize,
    from: AuthorId,
    record: &Record,
) -> IngestOutcome {
    let command = Command::Ingest(vec![DeliveredRecord { record: record.clone(), from }]);
    match nodes.run(at, command).expect("the writer answers") {
        Receipt::Ingested(mut outcomes) => outcomes.remove(0),
        other => panic!("no outcome: {other:?}"),
    }
}
