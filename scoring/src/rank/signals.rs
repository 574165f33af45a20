//! Formulas for the signals of ranking.
//!
//! Separate from the ranking itself: each signal is a small formula with its own meaning, and a
//! caller that explains a hit shows them one by one. Thompson samples have their own module.

pub use crate::predicate::AnchorState;

use crate::clamp_to_unit::unit;
use crate::recency::recency;
use crate::status::Status;
use klnode_crdt::time::Day;

/// Parameters of the signals; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Half-life in days of the freshness of an entry without a check.
    pub freshness_half_life_days: f64,
    /// Status signal of a verified entry.
    pub status_verified: f64,
    /// Status signal of an active entry.
    pub status_active: f64,
    /// Status signal of a candidate.
    pub status_candidate: f64,
    /// Rate at which the co-occurrence signal saturates.
    pub cooccurrence_rate: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            freshness_half_life_days: crate::recency::HALF_LIFE_DAYS,
            status_verified: 1.0,
            status_active: 0.8,
            status_candidate: 0.5,
            cooccurrence_rate: 0.6,
        }
    }
}

/// Warning that is shown along with the freshness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreshnessCaveat {
    /// An anchor of the entry is broken.
    Broken,
    /// The anchors of the entry could not be checked here.
    Unchecked,
}

/// Freshness signal with its warning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freshness {
    /// Value of the signal, in [0, 1].
    pub value: f64,
    /// Warning to show with it; `None` if there is none.
    pub caveat: Option<FreshnessCaveat>,
}

/// Freshness of an entry; `confirmed` is the day of its last independent confirmation, or of its
/// creation.
///
/// Time decides only if no check succeeded: anchors that were checked give 1 or 0.
#[must_use]
pub fn freshness(check: AnchorState, confirmed: Day, now: Day, params: &Params) -> Freshness {
    let faded = recency(confirmed, now, params.freshness_half_life_days);
    match check {
        AnchorState::Holds => Freshness { value: 1.0, caveat: None },
        AnchorState::Broken => Freshness { value: 0.0, caveat: Some(FreshnessCaveat::Broken) },
        AnchorState::Unchecked => {
            Freshness { value: faded, caveat: Some(FreshnessCaveat::Unchecked) }
        }
        AnchorState::Nothing => Freshness { value: faded, caveat: None },
    }
}

/// Status signal; 0 for a status that is excluded from ordinary retrieval.
#[must_use]
pub fn status(status: Status, params: &Params) -> f64 {
    match status {
        Status::Verified => params.status_verified,
        Status::Active => params.status_active,
        Status::Candidate => params.status_candidate,
        Status::Stale | Status::Archived | Status::Rejected | Status::Retracted => 0.0,
    }
}

/// Bonus of an entry of the caller's workspace. Less than the thread signal can add, and it never
/// lifts an entry over the relevance gate.
pub const WORKSPACE_BONUS: f64 = 0.05;

/// 1 for an entry of the caller's own thread, 0 otherwise.
#[must_use]
pub fn thread<T: PartialEq>(entry: Option<&T>, caller: Option<&T>) -> f64 {
    if entry.is_some() && entry == caller { 1.0 } else { 0.0 }
}

/// `1 − e^(−rate · weight)` of the strongest co-occurrence with another result.
#[must_use]
pub fn cooccurrence(weight_max: f64, params: &Params) -> f64 {
    unit(1.0 - (-params.cooccurrence_rate * weight_max.max(0.0)).exp())
}

#[cfg(test)]
mod tests {
    use super::{AnchorState, FreshnessCaveat, Params, cooccurrence, freshness, status, thread};
    use crate::status::Status;
    use klnode_crdt::time::Day;

    fn near(given: f64, expect: f64) -> bool {
        (given - expect).abs() < 1e-6
    }

    #[test]
    fn checked_entries_are_fresh_or_broken_and_others_decay() {
        for (check, days, expect, caveat) in [
            (AnchorState::Holds, 900, 1.0, None),
            (AnchorState::Broken, 0, 0.0, Some(FreshnessCaveat::Broken)),
            (AnchorState::Unchecked, 90, 0.5, Some(FreshnessCaveat::Unchecked)),
            (AnchorState::Nothing, 0, 1.0, None),
            (AnchorState::Nothing, 90, 0.5, None),
            (AnchorState::Nothing, 270, 0.125, None),
        ] {
            let given = freshness(check, Day(1000), Day(1000 + days), &Params::default());
            assert!(near(given.value, expect), "{check:?} after {days}: {given:?}");
            assert_eq!(given.caveat, caveat, "{check:?}");
        }
    }

    #[test]
    fn the_status_signal_depends_on_the_status() {
        for (of, expect) in [
            (Status::Verified, 1.0),
            (Status::Active, 0.8),
            (Status::Candidate, 0.5),
            (Status::Stale, 0.0),
            (Status::Archived, 0.0),
            (Status::Rejected, 0.0),
            (Status::Retracted, 0.0),
        ] {
            assert_eq!(status(of, &Params::default()), expect, "{of:?}");
        }
    }

    #[test]
    fn only_the_callers_own_thread_counts() {
        for (entry, caller, expect) in [
            (Some(&"a"), Some(&"a"), 1.0),
            (Some(&"a"), Some(&"b"), 0.0),
            (None, Some(&"a"), 0.0),
            (Some(&"a"), None, 0.0),
            (None, None, 0.0),
        ] {
            assert_eq!(thread(entry, caller), expect, "{entry:?} for {caller:?}");
        }
    }

    #[test]
    fn the_cooccurrence_signal_saturates() {
        for (weight, expect) in
            [(0.0, 0.0), (1.0, 0.451_188), (3.0, 0.834_701), (10.0, 0.997_521), (-1.0, 0.0)]
        {
            let given = cooccurrence(weight, &Params::default());
            assert!(near(given, expect), "{weight}: {given}");
        }
    }
}
