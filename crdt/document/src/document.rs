//! A document: the merge of all changes that members made to one text.
//!
//! A [`TextDocument`] holds every change that it was given, decides which of them apply, and keeps
//! their merge in automerge. Text, heads, applied changes and waiting changes are a function of the
//! set of changes and of their entitlement: [`TextDocument::insert`] gives the same result as building
//! the document anew, whatever the order and the batches.
//!
//! Applying changes costs time proportional to the whole text, once per call of `insert`. A caller
//! with many changes passes them in one call.

use crate::change::CheckedChange;
use crate::change_graph::{ChangeGraph, HeldChange, HistoryError};
use crate::change_hash::ChangeHash;
use crate::change_selection::{self, AuthorUsage, ChangeState};
use crate::limits::AuthorQuota;
use crate::root_change::{self, ROOT_HASH};
use crate::sequential_merge;
use automerge::{Automerge, ReadDoc};
use klnode_crdt::ids::AuthorId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Estimated memory of a change, of each of its bytes (which are held in automerge's form and in that
/// of the graph), and of each of its operations.
const CHANGE_MEMORY: usize = 1_024;
const CHANGE_MEMORY_PER_BYTE: usize = 2;
const OPERATION_MEMORY: usize = 24;

/// The merge of the changes of one text. It is kept in memory as a cache and rebuilt from records.
#[derive(Clone, Debug)]
pub struct TextDocument {
    quota: AuthorQuota,
    graph: ChangeGraph,
    /// For each admitted change, in the order of the graph.
    states: Vec<ChangeState>,
    /// Sums over all admitted changes, which bound the sums over the applied ones.
    usage: BTreeMap<AuthorId, AuthorUsage>,
    /// The merge of the applied changes.
    merged: Automerge,
    /// The text of the merge, once it was read.
    text: OnceLock<String>,
}

/// A change that cannot be admitted yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingChange {
    /// The change that waits.
    pub hash: ChangeHash,
    /// The author of its record.
    pub author: AuthorId,
    /// Dependencies that the document does not hold. Empty if all of them are held and wait, too.
    pub missing: Vec<ChangeHash>,
}

/// A version of the text that this document cannot show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The document has no version {0}. Read it again to get its present version.")]
pub struct UnknownVersion(pub ChangeHash);

impl TextDocument {
    /// A document with the empty text.
    pub fn new(quota: AuthorQuota) -> Self {
        Self {
            quota,
            graph: ChangeGraph::default(),
            states: Vec::new(),
            usage: BTreeMap::new(),
            merged: root_change::empty_document(),
            text: OnceLock::new(),
        }
    }

    /// Builds a document of changes. See [`Self::insert`] for `is_entitled`.
    pub fn build(
        quota: AuthorQuota,
        changes: impl IntoIterator<Item = CheckedChange>,
        is_entitled: impl FnMut(&CheckedChange) -> bool,
    ) -> Self {
        let mut document = Self::new(quota);
        document.insert(changes, is_entitled);
        document
    }

    /// Adds changes in any order. `is_entitled` tells for each of them whether its author is a member
    /// or the change is in a cut; ancestors of applied changes need not be entitled.
    pub fn insert(
        &mut self,
        changes: impl IntoIterator<Item = CheckedChange>,
        mut is_entitled: impl FnMut(&CheckedChange) -> bool,
    ) {
        let mut applicable = Vec::new();
        let mut needs_selection = false;
        for change in changes {
            let is_entitled = is_entitled(&change);
            let update = self.graph.insert(HeldChange { change, is_entitled });
            needs_selection |= update.is_revised;
            for index in update.admitted {
                let state = self.direct_state(index);
                needs_selection |= state.is_none();
                if state == Some(ChangeState::Applied) {
                    applicable.push(index);
                }
                self.states.push(state.unwrap_or(ChangeState::NotEntitled));
            }
        }
        if needs_selection {
            // Changes that were placed directly are not in automerge yet.
            for index in &applicable {
                self.states[*index] = ChangeState::NotEntitled;
            }
            self.select_again();
        } else {
            self.apply(&applicable);
        }
    }

    /// Builds a document like [`Self::build`], in less time: `merged` is an earlier state of the merge,
    /// to which only the missing changes are applied. It is ignored if it contains changes that are not
    /// applied any more.
    pub(crate) fn build_on(
        quota: AuthorQuota,
        changes: impl IntoIterator<Item = CheckedChange>,
        mut is_entitled: impl FnMut(&CheckedChange) -> bool,
        merged: Option<Automerge>,
    ) -> Self {
        let mut document = Self::new(quota);
        for change in changes {
            let is_entitled = is_entitled(&change);
            for index in document.graph.insert(HeldChange { change, is_entitled }).admitted {
                // For its count of the author's usage; the selection below decides about all changes.
                document.direct_state(index);
                document.states.push(ChangeState::NotEntitled);
            }
        }
        document.states = change_selection::select(&document.graph, &document.quota);
        let mut history = document.graph.history_of(&[]);
        if let Some(merged) = merged
            && let Ok(heads) = document.known_heads(&heads(&merged))
        {
            history = document.graph.history_of(&heads);
            document.merged = merged;
            document.text = OnceLock::new();
        }
        let missing: Vec<usize> = (0..document.states.len())
            .filter(|index| document.states[*index] == ChangeState::Applied)
            .filter(|index| !document.graph.is_in(*index, &history))
            .collect();
        document.apply(&missing);
        document
    }

    /// Asks again for every change whether it is entitled: a member was added or removed, or a cut was
    /// made.
    pub fn reassess(&mut self, is_entitled: impl FnMut(&CheckedChange) -> bool) {
        self.graph.set_entitlement(is_entitled);
        self.select_again();
    }

    /// The state of a newly admitted change, if it does not affect the state of any other. The rules
    /// are those of [`change_selection`].
    fn direct_state(&mut self, index: usize) -> Option<ChangeState> {
        let admitted = &self.graph.admitted()[index];
        let change = &admitted.change;
        let usage = self.usage.entry(change.identity().author).or_default();
        usage.add(admitted);
        if !admitted.is_entitled {
            return Some(ChangeState::NotEntitled);
        }
        let is_alone = self.graph.with_sequence(change.actor(), change.sequence()).len() == 1;
        let applied = |index: &usize| self.states.get(*index) == Some(&ChangeState::Applied);
        let is_ready = admitted.dependencies.iter().all(applied);
        (is_alone && is_ready && usage.is_within(&self.quota)).then_some(ChangeState::Applied)
    }

    /// Selects the applied changes anew, and rebuilds the merge if a change is not applied any more.
    fn select_again(&mut self) {
        let before =
            std::mem::replace(&mut self.states, change_selection::select(&self.graph, &self.quota));
        let is_applied =
            |states: &[ChangeState], index: usize| states.get(index) == Some(&ChangeState::Applied);
        let lost = (0..before.len())
            .any(|index| is_applied(&before, index) && !is_applied(&self.states, index));
        if lost {
            self.merged = root_change::empty_document();
            self.text = OnceLock::new();
        }
        let missing: Vec<usize> = (0..self.states.len())
            .filter(|index| is_applied(&self.states, *index))
            .filter(|index| lost || !is_applied(&before, *index))
            .collect();
        self.apply(&missing);
    }

    /// Hands changes to automerge. Their indices ascend, so dependencies come first.
    fn apply(&mut self, indices: &[usize]) {
        if indices.is_empty() {
            return;
        }
        self.text = OnceLock::new();
        if let [index] = indices
            && let Some(merged) =
                sequential_merge::with_change(&self.merged, &self.graph.admitted()[*index].change)
        {
            self.merged = merged;
            return;
        }
        let changes: Vec<automerge::Change> = indices
            .iter()
            .map(|index| self.graph.admitted()[*index].change.to_automerge())
            .collect();
        self.merged.apply_changes(changes).expect(
            "admitted changes have known dependencies, and the selection excludes duplicates",
        );
    }

    /// The present text.
    pub fn text(&self) -> String {
        self.present_text().to_owned()
    }

    pub(crate) fn present_text(&self) -> &str {
        let read = || self.merged.text(root_change::text_id());
        self.text.get_or_init(|| read().expect("the root change creates the text"))
    }

    /// The version of the present text: the applied changes on which no applied change depends,
    /// ascending. A new document has the root change as its only head.
    pub fn heads(&self) -> Vec<ChangeHash> {
        heads(&self.merged)
    }

    /// The text of an earlier version.
    ///
    /// # Errors
    ///
    /// [`UnknownVersion`] if a head is not an applied change.
    pub fn text_at(&self, heads: &[ChangeHash]) -> Result<String, UnknownVersion> {
        let heads = self.known_heads(heads)?;
        if self.is_present(&heads) {
            return Ok(self.text());
        }
        let hashes = self.automerge_heads(&heads);
        let text = self.merged.text_at(root_change::text_id(), &hashes);
        Ok(text.expect("every version follows the root change, which creates the text"))
    }

    /// The applied changes in the canonical order: each change after its dependencies, and concurrent
    /// changes in an order that is the same on every node.
    pub fn history(&self) -> impl Iterator<Item = &CheckedChange> {
        let order = change_selection::canonical_order(self.graph.admitted());
        order
            .into_iter()
            .filter(|index| self.states[*index] == ChangeState::Applied)
            .map(|index| &self.graph.admitted()[index].change)
    }

    /// Changes whose dependencies are missing, in the order of their hashes.
    pub fn waiting(&self) -> impl Iterator<Item = WaitingChange> {
        self.graph.waiting().map(|change| {
            let missing = change.dependencies().iter().copied();
            WaitingChange {
                hash: change.hash(),
                author: change.identity().author,
                missing: missing.filter(|hash| !self.graph.holds(*hash)).collect(),
            }
        })
    }

    /// The changes on which an entitled change of another author depends, directly or through others.
    /// The document need not hold them. Without them the work of the other authors is lost.
    pub fn needed_by_others(&self, author: AuthorId) -> BTreeSet<ChangeHash> {
        self.graph.needed_by_others(author)
    }

    /// Changes that contradict their own dependencies, with the reason, in the order of their hashes.
    pub fn refused(&self) -> impl Iterator<Item = (ChangeHash, &HistoryError)> {
        self.graph.refused().iter().map(|(hash, reason)| (*hash, reason))
    }

    /// The state of a change whose dependencies are complete; `None` for all other changes.
    pub fn state(&self, hash: ChangeHash) -> Option<ChangeState> {
        self.graph.index(hash).map(|index| self.states[index])
    }

    /// Number of changes that the document holds, applied or not.
    pub fn held_count(&self) -> usize {
        self.graph.admitted().len() + self.graph.waiting().count() + self.graph.refused().len()
    }

    /// An estimate of the memory of this document in bytes.
    pub fn memory_bytes(&self) -> usize {
        let of = |change: &CheckedChange| {
            CHANGE_MEMORY
                + CHANGE_MEMORY_PER_BYTE * change.bytes().len()
                + OPERATION_MEMORY * change.operations() as usize
        };
        let admitted = self.graph.admitted().iter().map(|admitted| of(&admitted.change));
        admitted.sum::<usize>() + self.graph.waiting().map(of).sum::<usize>()
    }

    /// Whether the document holds the change, applied or not.
    pub fn holds(&self, hash: ChangeHash) -> bool {
        self.graph.holds(hash)
    }

    pub(crate) fn quota(&self) -> &AuthorQuota {
        &self.quota
    }

    pub(crate) fn graph(&self) -> &ChangeGraph {
        &self.graph
    }

    pub(crate) fn merged(&self) -> &Automerge {
        &self.merged
    }

    /// The indices of applied changes, without those that are ancestors of others. The root change has
    /// no index.
    pub(crate) fn known_heads(&self, heads: &[ChangeHash]) -> Result<Vec<usize>, UnknownVersion> {
        let mut indices = Vec::new();
        for hash in heads.iter().filter(|hash| **hash != ROOT_HASH) {
            let index = self.graph.index(*hash).ok_or(UnknownVersion(*hash))?;
            if self.states[index] != ChangeState::Applied {
                return Err(UnknownVersion(*hash));
            }
            indices.push(index);
        }
        indices.sort_unstable();
        indices.dedup();
        let is_head = |index: &usize| {
            let mut others = indices.iter().filter(|other| *other != index);
            !others.any(|other| self.graph.is_ancestor(*index, *other))
        };
        Ok(indices.iter().copied().filter(is_head).collect())
    }

    /// Whether these heads, without ancestors of each other, are those of the present text.
    pub(crate) fn is_present(&self, heads: &[usize]) -> bool {
        self.hashes(heads) == self.heads()
    }

    /// The hashes of some changes, ascending; the root change for none.
    pub(crate) fn hashes(&self, heads: &[usize]) -> Vec<ChangeHash> {
        if heads.is_empty() {
            return vec![ROOT_HASH];
        }
        let admitted = self.graph.admitted();
        let mut hashes: Vec<_> = heads.iter().map(|index| admitted[*index].change.hash()).collect();
        hashes.sort_unstable();
        hashes
    }

    pub(crate) fn automerge_heads(&self, heads: &[usize]) -> Vec<automerge::ChangeHash> {
        self.hashes(heads).into_iter().map(ChangeHash::to_automerge).collect()
    }
}

fn heads(merged: &Automerge) -> Vec<ChangeHash> {
    merged.get_heads().into_iter().map(|hash| ChangeHash::from_bytes(hash.0)).collect()
}
