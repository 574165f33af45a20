//! Merges a change that was made on the present version in a fraction of the time.
//!
//! Automerge merges the change of another author by a walk over the whole text. Its own local
//! transactions look up the elements that they touch, and nothing else. A change whose dependencies
//! are the present heads is exactly what a local transaction of its author would be now, so this file
//! repeats it as one, on a copy of the merge, which shares its memory with the original. The hash of a
//! change covers all of its operations: if the transaction has the same hash, the copy is the merge. In
//! all other cases the caller merges in the ordinary way.

use crate::change::CheckedChange;
use crate::change_hash::ChangeHash;
use crate::edit_identity::Actor;
use crate::root_change::text_id;
use automerge::legacy::{ElementId, Key, Op, OpId, OpType};
use automerge::transaction::{CommitOptions, Transactable, Transaction};
use automerge::{Automerge, Cursor, ReadDoc, ScalarValue};

/// Most operations that are repeated. Each costs a few lookups, and the walk over a long text as much
/// as some thousand operations.
const OPERATIONS_MAX: u32 = 2_000;

/// The merge with one more change; `None` if the change was not made on the present version, or is
/// not what a local transaction would write.
pub(crate) fn with_change(merged: &Automerge, change: &CheckedChange) -> Option<Automerge> {
    if change.operations() > OPERATIONS_MAX {
        return None;
    }
    // An author's last change is named even if a head follows it.
    let dependencies = change.dependencies();
    let is_named = |head: automerge::ChangeHash| {
        dependencies.binary_search(&ChangeHash::from_bytes(head.0)).is_ok()
    };
    if !merged.get_heads().into_iter().all(is_named) {
        return None;
    }
    let time = i64::try_from(change.time().as_millis()).ok()?;
    let operations = change.to_automerge().decode().operations;
    let mut copy = merged.clone();
    copy.set_actor(change.actor().to_automerge());
    let mut transaction = copy.transaction();
    let first = change.start_operation();
    for splice in splices(&operations, change.actor(), first) {
        splice.repeat(&mut transaction)?;
    }
    let (written, _) = transaction.commit_with(CommitOptions::default().with_time(time));
    let is_same = written.is_some_and(|hash| ChangeHash::from_bytes(hash.0) == change.hash());
    is_same.then_some(copy)
}

/// Insertions behind one element, followed by deletions.
struct Splice<'a> {
    /// The element before the insertions; `None` if the splice only deletes.
    after: Option<&'a ElementId>,
    inserted: String,
    deleted: Vec<&'a OpId>,
}

impl Splice<'_> {
    /// Does the same in a transaction; `None` if an element is not in the text.
    fn repeat(&self, transaction: &mut Transaction<'_>) -> Option<()> {
        let mut at = match self.after {
            Some(ElementId::Head) => Some(0),
            Some(ElementId::Id(id)) => Some(position(transaction, id)? + 1),
            None => None,
        };
        if let Some(at) = &mut at
            && !self.inserted.is_empty()
        {
            transaction.splice_text(text_id(), *at, 0, &self.inserted).ok()?;
            *at += self.inserted.chars().count();
        }
        for id in &self.deleted {
            let at = position(transaction, id)?;
            transaction.splice_text(text_id(), at, 1, "").ok()?;
        }
        Some(())
    }
}

/// The splices that a change consists of.
fn splices(operations: &[Op], actor: Actor, first: u32) -> Vec<Splice<'_>> {
    let own = actor.to_automerge();
    let mut splices: Vec<Splice<'_>> = Vec::new();
    for (counter, operation) in (u64::from(first)..).zip(operations) {
        let Key::Seq(element) = &operation.key else { continue };
        match &operation.action {
            OpType::Put(ScalarValue::Str(text)) => {
                // The element that the operation before inserted.
                let follows = matches!(element, ElementId::Id(OpId(before, by))
                    if before + 1 == counter && *by == own);
                match splices.last_mut() {
                    Some(last) if follows && last.deleted.is_empty() => {
                        last.inserted.push_str(text);
                    }
                    _ => splices.push(Splice {
                        after: Some(element),
                        inserted: text.to_string(),
                        deleted: Vec::new(),
                    }),
                }
            }
            _ => {
                let ElementId::Id(id) = element else { continue };
                match splices.last_mut() {
                    Some(last) => last.deleted.push(id),
                    None => splices.push(Splice {
                        after: None,
                        inserted: String::new(),
                        deleted: vec![id],
                    }),
                }
            }
        }
    }
    splices
}

/// The position of an element in the text.
fn position(transaction: &Transaction<'_>, OpId(counter, actor): &OpId) -> Option<usize> {
    let cursor = Cursor::try_from(format!("{counter}@{actor}").as_str()).ok()?;
    transaction.get_cursor_position(text_id(), &cursor, None).ok()
}
