//! A playbook with thousands of edits by several authors, for benchmarks, and the same document in
//! automerge alone to compare with.
//!
//! Automerge writes the changes: a [`TextDocument`](crate::document::TextDocument) spends time
//! proportional to the text on each batch of changes.

use crate::edit_identity::EditIdentity;
use crate::root_change::{empty_document, text_id};
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{Automerge, LoadOptions, ReadDoc};
use klnode_crdt::ids::{AuthorId, Boot};

/// Edits that each author makes before the authors exchange their changes.
const EDITS_PER_ROUND: usize = 20;
/// Code points that each edit replaces.
const REPLACED: usize = 8;

/// The bytes of a change, and the author of its record.
pub type WrittenChange = (Vec<u8>, EditIdentity);

/// Edits of a text by several authors, who exchange their changes after each round. `first` are the
/// changes that wrote the text.
pub fn edits(first: &[WrittenChange], authors: &[AuthorId], count: usize) -> Vec<WrittenChange> {
    let mut all: Vec<WrittenChange> = Vec::new();
    let mut merged = PlainAutomerge::build(first).0;
    let mut seed = 1_u64;
    while all.len() < count {
        let mut round = Vec::new();
        for (boot, author) in (1..).zip(authors) {
            let number = u32::try_from(all.len() + 1).expect("a benchmark has fewer edits");
            let identity = EditIdentity { author: *author, boot: Boot(boot), branch: 0, number };
            let mut own = merged.clone();
            own.set_actor(identity.actor().to_automerge());
            for number in (number..).take(EDITS_PER_ROUND) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % (own.length(text_id()) - REPLACED);
                let bytes = replace(&mut own, at);
                round.push((bytes, EditIdentity { number, ..identity }));
            }
        }
        apply(&mut merged, &round);
        all.extend(round);
    }
    all
}

/// A document in automerge, without checks and selection.
#[derive(Clone, Debug)]
pub struct PlainAutomerge(Automerge);

impl PlainAutomerge {
    /// Parses and merges changes.
    pub fn build(changes: &[WrittenChange]) -> Self {
        let mut merged = empty_document();
        apply(&mut merged, changes);
        Self(merged)
    }

    /// The document in automerge's own compact form.
    pub fn save(&self) -> Vec<u8> {
        self.0.save()
    }

    /// Reads the compact form.
    pub fn load(bytes: &[u8]) -> Self {
        let options = LoadOptions::new().text_encoding(crate::root_change::TEXT_ENCODING);
        Self(Automerge::load_with_options(bytes, options).expect("automerge saved it"))
    }

    /// The merged text.
    pub fn text(&self) -> String {
        self.0.text(text_id()).expect("the root change creates the text")
    }

    /// Makes one edit at this code point, as a local transaction, and returns its bytes.
    pub fn edit(&mut self, at: usize) -> Vec<u8> {
        replace(&mut self.0, at)
    }

    /// Merges one change of another author.
    pub fn merge(&mut self, change: &[u8]) {
        self.0.apply_changes([parse(change)]).expect("its dependencies are there");
    }
}

fn replace(document: &mut Automerge, at: usize) -> Vec<u8> {
    let mut transaction = document.transaction();
    transaction.splice_text(text_id(), at, REPLACED as isize, "edited ").expect("within the text");
    transaction.commit_with(CommitOptions::default().with_time(1));
    document.get_last_local_change().expect("committed").raw_bytes().to_vec()
}

fn apply(merged: &mut Automerge, changes: &[WrittenChange]) {
    let changes: Vec<automerge::Change> = changes.iter().map(|(bytes, _)| parse(bytes)).collect();
    merged.apply_changes(changes).expect("dependencies come first");
}

fn parse(bytes: &[u8]) -> automerge::Change {
    automerge::Change::try_from(bytes).expect("automerge wrote it")
}
