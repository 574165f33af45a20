//! The elements of the text: one code point each, named by the operation that inserted it.
//!
//! Changes refer to elements and not to positions, so blame and edits read the elements of a version.

use crate::document::TextDocument;
use crate::edit_identity::Actor;
use crate::root_change;
use automerge::{ObjId, ReadDoc, ScalarValueRef, ValueRef, legacy};
use std::borrow::Cow;
use std::ops::Range;

/// The name of an element: the operation that inserted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementId {
    /// The actor of the change that inserted it.
    pub(crate) actor: Actor,
    /// The counter of the operation.
    pub(crate) counter: u32,
}

impl ElementId {
    fn of(id: &ObjId) -> Self {
        let ObjId::Id(counter, actor, _) = id else {
            unreachable!("an element of the text is not the root object")
        };
        let actor = Actor::from_slice(actor.to_bytes()).expect("checked actors have 16 bytes");
        Self { actor, counter: u32::try_from(*counter).expect("checked counters have 31 bits") }
    }

    pub(crate) fn to_automerge(self) -> legacy::OpId {
        legacy::OpId(u64::from(self.counter), self.actor.to_automerge())
    }
}

/// The elements of the version that an edit is made on.
#[derive(Debug)]
pub(crate) enum BaseElements<'a> {
    /// All of an earlier version, in the order of the text.
    Earlier(Vec<ElementId>),
    /// Those of the present version, which automerge finds by position.
    Present(&'a TextDocument),
}

/// Most elements that are looked up one by one. More of them are read in a walk over the text.
const LOOKUPS_MAX: usize = 4_096;

impl BaseElements<'_> {
    /// The elements at these positions.
    pub(crate) fn range(&self, at: Range<usize>) -> Vec<ElementId> {
        let document = match self {
            Self::Earlier(all) => return all[at].to_vec(),
            Self::Present(document) => document,
        };
        let (merged, text) = (document.merged(), root_change::text_id());
        if at.len() > LOOKUPS_MAX {
            return merged.list_range(text, at).map(|item| ElementId::of(&item.id())).collect();
        }
        let look_up = |at| {
            let found = merged.get(&text, at).expect("the text is a sequence");
            let (_, id) = found.expect("the position is in the text");
            ElementId::of(&id)
        };
        at.map(look_up).collect()
    }
}

impl TextDocument {
    /// The elements of a version with their code points, in the order of the text. The heads are
    /// indices of applied changes.
    pub(crate) fn elements_at(
        &self,
        heads: &[usize],
    ) -> impl Iterator<Item = (ElementId, Cow<'_, str>)> {
        let hashes = self.automerge_heads(heads);
        self.merged().list_range_at(root_change::text_id(), .., &hashes).map(|item| {
            let element = ElementId::of(&item.id());
            let ValueRef::Scalar(ScalarValueRef::Str(text)) = item.value else {
                unreachable!("checked changes insert strings only")
            };
            (element, text)
        })
    }
}
