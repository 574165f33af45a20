//! Which admitted changes are applied: a pure function of the set of changes.
//!
//! Automerge applies changes in the order of arrival, and fails at the second change of an actor with
//! the same sequence number. Two nodes that receive such changes in different orders would show
//! different texts for ever. This file decides before automerge sees a change:
//!
//! 1. A change is **needed** if it is entitled or a needed change depends on it. A removed author's
//!    change therefore stays while a member's work is built on it.
//! 2. Each author's needed changes are counted in the order of their edit numbers. Changes beyond the
//!    [`AuthorQuota`] are left out.
//! 3. The rest is visited in the **canonical order**: by start operation, then by hash. A change starts
//!    after all operations of its dependencies, so dependencies come first. A change is left out if a
//!    dependency is. Of several changes with one actor and sequence number the one with the lesser
//!    hash stays; an entitled change precedes one that is only needed. A change that loses its place
//!    takes its dependants with it.
//! 4. Of the rest, entitled changes and their ancestors are **applied**.
//!
//! Step 3 lets an author who writes two changes with one number remove the later work that others built
//! on the losing change. The author's removal with a cut that contains the losing change restores it.

use crate::change_graph::{AdmittedChange, ChangeGraph};
use crate::limits::AuthorQuota;
use klnode_crdt::ids::AuthorId;
use std::collections::BTreeMap;

/// Whether an admitted change is part of the text, and the reason if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeState {
    /// The change is part of the text.
    Applied,
    /// Its author may not write, and no applied change depends on it.
    NotEntitled,
    /// It exceeds the quota of its author.
    OverQuota,
    /// Another change with the same actor and sequence number is applied.
    Duplicate,
    /// It depends on a change that is not applied.
    DependencyNotApplied,
}

/// Decides about all admitted changes. The result has the order of [`ChangeGraph::admitted`].
pub(crate) fn select(graph: &ChangeGraph, quota: &AuthorQuota) -> Vec<ChangeState> {
    let changes = graph.admitted();
    let needed = with_ancestors(changes, |index| changes[index].is_entitled);
    let mut states: Vec<ChangeState> = needed
        .iter()
        .map(|needed| if *needed { ChangeState::Applied } else { ChangeState::NotEntitled })
        .collect();
    exclude_over_quota(changes, quota, &mut states);
    exclude_duplicates(changes, graph, &mut states);
    let applied = with_ancestors(changes, |index| {
        changes[index].is_entitled && states[index] == ChangeState::Applied
    });
    for (state, applied) in states.iter_mut().zip(applied) {
        if *state == ChangeState::Applied && !applied {
            *state = ChangeState::NotEntitled;
        }
    }
    states
}

/// Marks the changes that `is_chosen` names and all their ancestors.
fn with_ancestors(changes: &[AdmittedChange], is_chosen: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut marked = vec![false; changes.len()];
    // Dependencies have lower indices.
    for index in (0..changes.len()).rev() {
        marked[index] |= is_chosen(index);
        if marked[index] {
            changes[index].dependencies.iter().for_each(|dependency| marked[*dependency] = true);
        }
    }
    marked
}

/// The sums that the quota limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AuthorUsage {
    edits: u32,
    bytes: u64,
    operations: u64,
}

impl AuthorUsage {
    /// Adds a change.
    pub(crate) fn add(&mut self, change: &AdmittedChange) {
        self.edits = self.edits.saturating_add(1);
        self.bytes += change.change.bytes().len() as u64;
        self.operations += u64::from(change.change.operations());
    }

    pub(crate) fn is_within(&self, quota: &AuthorQuota) -> bool {
        self.edits <= quota.edits_max
            && self.bytes <= quota.bytes_max
            && self.operations <= quota.operations_max
    }
}

fn exclude_over_quota(changes: &[AdmittedChange], quota: &AuthorQuota, states: &mut [ChangeState]) {
    let mut by_author: BTreeMap<AuthorId, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        if states[index] == ChangeState::Applied {
            by_author.entry(change.change.identity().author).or_default().push(index);
        }
    }
    for mut indices in by_author.into_values() {
        indices.sort_by_key(|index| {
            let change = &changes[*index].change;
            (change.identity().number, change.hash())
        });
        let mut usage = AuthorUsage::default();
        for index in indices {
            usage.add(&changes[index]);
            if !usage.is_within(quota) {
                states[index] = ChangeState::OverQuota;
            }
        }
    }
}

/// Leaves out changes with a dependency that is left out, and all but one of the changes with one actor
/// and sequence number.
fn exclude_duplicates(changes: &[AdmittedChange], graph: &ChangeGraph, states: &mut [ChangeState]) {
    for index in canonical_order(changes) {
        if states[index] != ChangeState::Applied {
            continue;
        }
        let change = &changes[index];
        let stays = |index: usize, states: &[ChangeState]| states[index] == ChangeState::Applied;
        if !change.dependencies.iter().all(|dependency| stays(*dependency, states)) {
            states[index] = ChangeState::DependencyNotApplied;
            continue;
        }
        let rank = |index: usize| (!changes[index].is_entitled, changes[index].change.hash());
        let key = (change.change.start_operation(), change.change.hash());
        let same = graph.with_sequence(change.change.actor(), change.change.sequence());
        let rival = same.iter().copied().find(|other| {
            let other_change = &changes[*other].change;
            let is_visited = (other_change.start_operation(), other_change.hash()) < key;
            is_visited && stays(*other, states)
        });
        match rival {
            None => {}
            Some(rival) if rank(rival) < rank(index) => states[index] = ChangeState::Duplicate,
            Some(rival) => {
                states[rival] = ChangeState::Duplicate;
                exclude_dependants(changes, rival, states);
            }
        }
    }
}

/// Leaves out all changes that depend on `index`.
fn exclude_dependants(changes: &[AdmittedChange], index: usize, states: &mut [ChangeState]) {
    let mut open = changes[index].dependants.clone();
    while let Some(index) = open.pop() {
        if states[index] == ChangeState::Applied {
            states[index] = ChangeState::DependencyNotApplied;
            open.extend(&changes[index].dependants);
        }
    }
}

/// Indices in the canonical order: by start operation, then by hash.
pub(crate) fn canonical_order(changes: &[AdmittedChange]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by_key(|index| {
        let change = &changes[*index].change;
        (change.start_operation(), change.hash())
    });
    order
}
