//! Combines the results of all predicates of an entry into one check.

use super::{AtomResult, PredicateOutcome};

/// Result of checking an entry's anchors in the reader's checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorState {
    /// The entry has anchors, all were checked, and all hold.
    Holds,
    /// At least one anchor is broken.
    Broken,
    /// The entry has anchors, but not all could be checked here.
    Unchecked,
    /// The entry has no anchors.
    Nothing,
}

/// Combined result for one entry, as used by ranking and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredicateCheck {
    /// `Holds` if all predicates hold, `Broken` if any is broken, `Unchecked` if any is unknown.
    pub check: AnchorState,
    /// Broken predicates; if there are none, the unknown ones.
    pub flags: Vec<BrokenPredicate>,
}

/// One predicate that is broken or unknown, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPredicate {
    /// Index among the predicates that were checked.
    pub predicate: usize,
    /// Atoms that decided the result.
    pub because: Vec<AtomResult>,
}

/// Combines the outcomes of all predicates of one entry.
#[must_use]
pub fn check(outcomes: &[PredicateOutcome]) -> PredicateCheck {
    let (mut broken, mut unknown) = (Vec::new(), Vec::new());
    for (predicate, outcome) in outcomes.iter().enumerate() {
        let flag =
            |because: &Vec<AtomResult>| BrokenPredicate { predicate, because: because.clone() };
        match outcome {
            PredicateOutcome::Holds => {}
            PredicateOutcome::Broken { because } => broken.push(flag(because)),
            PredicateOutcome::Unknown { because } => unknown.push(flag(because)),
        }
    }
    if outcomes.is_empty() {
        PredicateCheck { check: AnchorState::Nothing, flags: Vec::new() }
    } else if !broken.is_empty() {
        PredicateCheck { check: AnchorState::Broken, flags: broken }
    } else if !unknown.is_empty() {
        PredicateCheck { check: AnchorState::Unchecked, flags: unknown }
    } else {
        PredicateCheck { check: AnchorState::Holds, flags: Vec::new() }
    }
}
