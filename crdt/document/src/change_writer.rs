//! Writes changes: from the splices of an edit to operations on elements.
//!
//! A change refers to the elements of the version that it was made on. Automerge writes changes of the
//! present version only. For an earlier one it has to build that version first, which takes seconds if
//! it has thousands of changes. This file writes the operations itself, with the bytes that automerge
//! would write. The elements of an earlier version are read in one pass, those of the present version
//! one by one.

use crate::change_hash::ChangeHash;
use crate::edit_identity::Actor;
use crate::root_change;
use crate::text_diff::TextSplice;
use crate::text_elements::{BaseElements, ElementId};
use automerge::legacy::{self, Key, ObjectId, Op, OpType};
use automerge::{Change, ExpandedChange, ScalarValue};
use klnode_crdt::time::WallTime;
use std::num::NonZeroU64;

/// Writes the changes of one edit, each made on the one before.
#[derive(Clone, Debug)]
pub(crate) struct ChangeWriter<'a> {
    actor: Actor,
    time: WallTime,
    /// The changes on which the next change is made.
    dependencies: Vec<ChangeHash>,
    /// Sequence number of the next change.
    sequence: u32,
    /// Counter of the next operation.
    counter: u32,
    elements: &'a BaseElements<'a>,
    /// The position in the base.
    base_at: usize,
    /// The element before the position.
    before: Option<ElementId>,
    /// The position, in the text with all operations so far.
    at: usize,
}

impl<'a> ChangeWriter<'a> {
    /// A writer at the beginning of a version with these elements. `last` is the last change of the
    /// actor in the history of the version: its hash and sequence number. `last_counter` is the
    /// greatest operation counter in that history.
    pub(crate) fn new(
        actor: Actor,
        time: WallTime,
        elements: &'a BaseElements<'a>,
        mut heads: Vec<ChangeHash>,
        last: Option<(ChangeHash, u32)>,
        last_counter: u32,
    ) -> Self {
        if let Some((last, _)) = last
            && !heads.contains(&last)
        {
            // Automerge names the actor's last change even if the heads follow it.
            heads.push(last);
        }
        Self {
            actor,
            time,
            dependencies: heads,
            sequence: last.map_or(0, |(_, sequence)| sequence) + 1,
            counter: last_counter + 1,
            elements,
            base_at: 0,
            before: None,
            at: 0,
        }
    }

    /// Writes one change. Positions ascend over all changes of the edit, and refer to the text in
    /// which the earlier changes and the earlier splices of this one are applied.
    pub(crate) fn write(&mut self, splices: &[TextSplice<'_>]) -> Change {
        let first = self.counter;
        let mut operations = Vec::new();
        for splice in splices {
            self.skip_to(splice.at);
            operations.extend(splice.inserted.chars().map(|inserted| self.insert(inserted)));
            let deleted = self.elements.range(self.base_at..self.base_at + splice.deleted);
            self.base_at += splice.deleted;
            operations.extend(deleted.into_iter().map(|element| self.delete(element)));
        }
        let change = Change::from(ExpandedChange {
            operations,
            actor_id: self.actor.to_automerge(),
            hash: None,
            seq: u64::from(self.sequence),
            start_op: NonZeroU64::new(u64::from(first)).expect("the root change has counter 1"),
            time: i64::try_from(self.time.as_millis()).expect("a wall time has 48 bits"),
            message: None,
            deps: self.dependencies.iter().map(|hash| hash.to_automerge()).collect(),
            extra_bytes: Vec::new(),
            author: None,
        });
        self.dependencies = vec![ChangeHash::from_bytes(change.hash().0)];
        self.sequence += 1;
        change
    }

    fn skip_to(&mut self, at: usize) {
        let skipped = at.checked_sub(self.at).expect("the positions of splices ascend");
        if skipped > 0 {
            self.base_at += skipped;
            self.before = self.elements.range(self.base_at - 1..self.base_at).pop();
            self.at = at;
        }
    }

    fn insert(&mut self, inserted: char) -> Op {
        let element = ElementId { actor: self.actor, counter: self.counter };
        let before = self
            .before
            .replace(element)
            .map_or(legacy::ElementId::Head, |before| legacy::ElementId::Id(before.to_automerge()));
        self.at += 1;
        let value = ScalarValue::Str(inserted.encode_utf8(&mut [0; 4]).into());
        self.operation(OpType::Put(value), before, None)
    }

    fn delete(&mut self, deleted: ElementId) -> Op {
        let id = deleted.to_automerge();
        self.operation(OpType::Delete, legacy::ElementId::Id(id.clone()), Some(id))
    }

    fn operation(
        &mut self,
        action: OpType,
        element: legacy::ElementId,
        replaced: Option<legacy::OpId>,
    ) -> Op {
        self.counter += 1;
        let text = legacy::OpId(
            u64::from(root_change::TEXT_COUNTER),
            root_change::ROOT_ACTOR.to_automerge(),
        );
        Op {
            insert: action != OpType::Delete,
            action,
            obj: ObjectId::Id(text),
            key: Key::Seq(element),
            pred: replaced.into_iter().collect(),
        }
    }
}
