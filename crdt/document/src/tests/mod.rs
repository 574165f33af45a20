//! Tests of whole documents: several authors who write, exchange changes, and agree on the text.

mod blame;
mod golden_changes;
mod hostile_changes;
mod merge;
mod order_independence;
mod sequential_merge;

use crate::change::CheckedChange;
use crate::change_hash::ChangeHash;
use crate::document::TextDocument;
use crate::edit::EditContext;
use crate::edit_identity::EditIdentity;
use crate::limits::AuthorQuota;
use crate::{root_change, text_diff};
use automerge::transaction::{CommitOptions, Transactable};
use klnode_crdt::ids::{AuthorId, Boot};
use klnode_crdt::time::WallTime;

/// An author with a replica of the document.
#[derive(Clone, Debug)]
struct TestAuthor {
    document: TextDocument,
    author: AuthorId,
    boot: Boot,
    number: u32,
}

impl TestAuthor {
    fn new(seed: u8) -> Self {
        Self {
            document: TextDocument::new(AuthorQuota::FORMAT),
            author: author(seed),
            boot: Boot(u64::from(seed)),
            number: 1,
        }
    }

    /// The context of its next edit.
    fn context(&self) -> EditContext {
        EditContext {
            author: self.author,
            boot: self.boot,
            number: self.number,
            time: WallTime::from_millis(1_000 * u64::from(self.number)),
        }
    }

    /// Edits a version of the text and keeps the changes.
    fn edit_at(&mut self, base: &[ChangeHash], text: &str) -> Vec<CheckedChange> {
        let changes = self.document.edit(base, text, &self.context()).unwrap();
        if let [change] = &changes[..] {
            let expected = written_by_automerge(&self.document, base, text, change);
            assert_eq!(change.bytes(), expected, "automerge writes other bytes");
        }
        self.number += changes.len() as u32;
        self.receive(&changes);
        changes
    }

    /// Edits the present text.
    fn edit(&mut self, text: &str) -> Vec<CheckedChange> {
        self.edit_at(&self.document.heads(), text)
    }

    /// Edits the present text into one change.
    fn edit_once(&mut self, text: &str) -> CheckedChange {
        let changes = self.edit(text);
        assert_eq!(changes.len(), 1);
        changes[0].clone()
    }

    fn receive(&mut self, changes: &[CheckedChange]) {
        self.document.insert(changes.iter().cloned(), |_| true);
    }

    /// Receives every applied change of another replica.
    fn pull(&mut self, other: &Self) {
        let changes: Vec<CheckedChange> = other.document.history().cloned().collect();
        self.receive(&changes);
    }
}

/// The bytes that automerge writes for an edit, on a fork of the document at the base. Every edit of
/// the tests is compared with it.
fn written_by_automerge(
    document: &TextDocument,
    base: &[ChangeHash],
    text: &str,
    change: &CheckedChange,
) -> Vec<u8> {
    let heads = document.known_heads(base).unwrap();
    let mut fork = document.merged().fork_at(&document.automerge_heads(&heads)).unwrap();
    fork.set_actor(change.actor().to_automerge());
    let mut transaction = fork.transaction();
    let mut shift = 0_isize;
    for splice in text_diff::splices(&document.text_at(base).unwrap(), text) {
        let at = splice.at.checked_add_signed(shift).unwrap();
        let (deleted, inserted) = (splice.deleted as isize, splice.inserted);
        transaction.splice_text(root_change::text_id(), at, deleted, inserted).unwrap();
        shift += inserted.chars().count() as isize - deleted;
    }
    let time = change.time().as_millis() as i64;
    transaction.commit_with(CommitOptions::default().with_time(time));
    fork.get_last_local_change().unwrap().raw_bytes().to_vec()
}

fn author(seed: u8) -> AuthorId {
    AuthorId::from_bytes([seed; 32])
}

/// Checks bytes against an identity and the quota of the format.
fn check(
    bytes: &[u8],
    identity: &EditIdentity,
) -> Result<CheckedChange, crate::change_error::ChangeError> {
    CheckedChange::check(bytes, *identity, &AuthorQuota::FORMAT)
}

/// Random numbers for tests, from a seed.
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }
}
