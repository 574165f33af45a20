//! What the answers to all predicates of an entry say about it.

use super::{Finding, Outcome};
use crate::rank::signals::Check;

/// What a look at the predicates of one entry said, as ranking and status take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Fresh if all hold, broken if any is; unchecked if one cannot be told.
    pub check: Check,
    /// What is broken, or, where nothing is, what cannot be told.
    pub flags: Vec<Flag>,
}

/// One predicate that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its place among the predicates that were checked.
    pub predicate: usize,
    /// The atoms that decided.
    pub because: Vec<Finding>,
}

/// What the outcomes of all predicates of one entry say together.
#[must_use]
pub fn check(outcomes: &[Outcome]) -> Checked {
    let (mut broken, mut unknown) = (Vec::new(), Vec::new());
    for (predicate, outcome) in outcomes.iter().enumerate() {
        let flag = |because: &Vec<Finding>| Flag { predicate, because: because.clone() };
        match outcome {
            Outcome::Holds => {}
            Outcome::Broken { because } => broken.push(flag(because)),
            Outcome::Unknown { because } => unknown.push(flag(because)),
        }
    }
    if outcomes.is_empty() {
        Checked { check: Check::Nothing, flags: Vec::new() }
    } else if !broken.is_empty() {
        Checked { check: Check::Broken, flags: broken }
    } else if !unknown.is_empty() {
        Checked { check: Check::Unchecked, flags: unknown }
    } else {
        Checked { check: Check::Holds, flags: Vec::new() }
    }
}
