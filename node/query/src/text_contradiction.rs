//! Applies the comparison rules of `klnode_scoring::statement_comparison` to the views of two entries.

use super::contradictions::polarity;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_view::EntryView;
use klnode_crdt::register::Register;
use klnode_scoring::duplicates::{DuplicateText, relate};
use klnode_scoring::statement_comparison::{ContradictionReason, StatementRelation};

/// The reason why the texts of two entries of one workspace contradict each other, if they do. Raw
/// observations report events, so they contradict nothing.
pub(super) fn contradiction(one: &EntryView, two: &EntryView) -> Option<ContradictionReason> {
    let workspace = |view: &EntryView| {
        let origin = view.origin.as_ref().filter(|of| of.memory() != Memory::Episodic);
        origin.map(|of| of.workspace())
    };
    let place = workspace(one)?;
    if workspace(two) != Some(place) {
        return None;
    }
    match relate(&text(one), &text(two)) {
        StatementRelation::Contradiction(reason) => Some(reason),
        _ => None,
    }
}

fn text(view: &EntryView) -> DuplicateText<'_> {
    DuplicateText {
        title: view.text(Register::TITLE).unwrap_or_default(),
        content: view.text(Register::CONTENT).unwrap_or_default(),
        kind: "",
        thread: "",
        polarity: polarity(view),
    }
}
