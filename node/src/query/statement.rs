//! How the texts of two entries relate, as views show them: the rules of `klnode_scoring::statement`
//! for what the store holds.

use super::rivals::polarity;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::view::View;
use klnode_scoring::duplicates::{Text, relate};
use klnode_scoring::statement::{Comparison, Reason};

/// Why the texts of two entries of one workspace contradict each other, if they do. Raw observations
/// are reports of what happened, and contradict nothing.
pub(super) fn contradiction(one: &View, two: &View) -> Option<Reason> {
    let workspace = |view: &View| {
        let origin = view.origin.as_ref().filter(|of| of.memory() != Memory::Episodic);
        origin.map(|of| of.workspace())
    };
    let place = workspace(one)?;
    if workspace(two) != Some(place) {
        return None;
    }
    match relate(&text(one), &text(two)) {
        Comparison::Contradiction(reason) => Some(reason),
        _ => None,
    }
}

fn text(view: &View) -> Text<'_> {
    Text {
        title: view.text(Register::TITLE).unwrap_or_default(),
        content: view.text(Register::CONTENT).unwrap_or_default(),
        kind: "",
        thread: "",
        polarity: polarity(view),
    }
}
