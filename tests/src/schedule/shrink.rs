//! Searches for the smallest part of a plan that still fails.

use super::{Plan, Violation, run};

/// Maximum number of smaller plans that are tried.
const TRIES_MAX: usize = 150;

/// Removes steps as long as the plan still fails in any way; `tried` is called after each try.
pub fn shrink(
    plan: &Plan,
    violation: Violation,
    mut tried: impl FnMut(usize),
) -> (Plan, Violation) {
    let (mut best, mut violation, mut tries) = (plan.clone(), violation, 0);
    let mut chunk = best.steps.len().div_ceil(2);
    while chunk > 0 {
        let (mut at, mut is_smaller) = (0, false);
        while at < best.steps.len() {
            if tries == TRIES_MAX {
                return (best, violation);
            }
            let mut less = best.clone();
            less.steps.drain(at..(at + chunk).min(less.steps.len()));
            tries += 1;
            tried(tries);
            match run(&less) {
                Err(found) => (best, violation, is_smaller) = (less, found, true),
                Ok(_) => at += chunk,
            }
        }
        if chunk == 1 && !is_smaller {
            break;
        }
        chunk = if chunk == 1 { 1 } else { chunk / 2 };
    }
    (best, violation)
}
