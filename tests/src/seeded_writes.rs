//! A seeded script of writes and the simplest model of the expected result.
//!
//! The model shares no code with the merge: it keeps titles and counts in a map.

use crate::test_engine::{Node, Seeded, lesson};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, Receipt};
use std::collections::BTreeMap;

/// Expected state of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Present, with this title (unless it was retracted) and this many successes.
    There(Option<String>, u64),
    /// Forgotten; only a tombstone remains.
    Forgotten,
}

/// Expected state of a store.
pub type Model = BTreeMap<EntryId, Expected>;

/// Actual state of a node, in the form of the model.
pub fn observed(node: &Node) -> Model {
    let everything = node.everything();
    let entries = everything.into_keys().map(|entry| {
        let tombstone = node.engine.store().snapshot().expect("readable").tombstone(entry);
        let expected = match tombstone.expect("readable") {
            Some(_) => Expected::Forgotten,
            None => Expected::There(node.title(entry), node.successes(entry)),
        };
        (entry, expected)
    });
    entries.collect()
}

/// Next group of commands; an acknowledged group is applied with [`acknowledge`].
pub fn next_group(random: &mut Seeded, model: &Model) -> Vec<Command> {
    let alive: Vec<EntryId> = model
        .iter()
        .filter(|(_, expected)| **expected != Expected::Forgotten)
        .map(|(entry, _)| *entry)
        .collect();
    let mut group = Vec::new();
    for _ in 0..=random.below(4) {
        let fresh = format!("title {}", random.below(1_000));
        // A group changes an entry at most once, so that its effect does not depend on order.
        let used = |entry: &EntryId| group.iter().any(|command| target(command) == Some(*entry));
        let free: Vec<EntryId> = alive.iter().copied().filter(|entry| !used(entry)).collect();
        if free.is_empty() || random.below(4) == 0 {
            group.push(Command::Create(Box::new(lesson(&fresh))));
            continue;
        }
        let entry = free[random.below(free.len() as u64) as usize];
        group.push(match random.below(10) {
            0 => Command::Forget { entry },
            1 if matches!(model.get(&entry), Some(Expected::There(Some(_), _))) => {
                Command::Retract { entry }
            }
            2..=4 => Command::Claim { entry, claims: vec![ClaimEdit::Set(Register::TITLE, fresh)] },
            _ => Command::Observe { entry, of: Observation::Success, amount: Thousandths::ONE },
        });
    }
    group
}

fn target(command: &Command) -> Option<EntryId> {
    match command {
        Command::Forget { entry, .. }
        | Command::Retract { entry }
        | Command::Claim { entry, .. }
        | Command::Observe { entry, .. } => Some(*entry),
        _ => None,
    }
}

/// Applies an acknowledged command to the model.
pub fn acknowledge(model: &mut Model, command: &Command, receipt: &Receipt) {
    match (command, receipt) {
        (Command::Create(new), Receipt::Created(entry)) => {
            model.insert(*entry, Expected::There(Some(new.title.clone()), 0));
        }
        (Command::Forget { entry, .. }, _) => {
            model.insert(*entry, Expected::Forgotten);
        }
        (Command::Retract { entry }, _) => edit(model, *entry, |title, _| *title = None),
        (Command::Claim { entry, claims }, _) => {
            if let Some(ClaimEdit::Set(_, text)) = claims.first() {
                edit(model, *entry, |title, _| *title = Some(text.clone()));
            }
        }
        (Command::Observe { entry, .. }, _) => edit(model, *entry, |_, successes| *successes += 1),
        _ => {}
    }
}

fn edit(model: &mut Model, entry: EntryId, edit: impl FnOnce(&mut Option<String>, &mut u64)) {
    if let Some(Expected::There(title, successes)) = model.get_mut(&entry) {
        edit(title, successes);
    }
}
