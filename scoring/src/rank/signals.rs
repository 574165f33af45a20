//! How each signal of ranking is read off what is known about a candidate.
//!
//! Separate from the ranking itself: each is a small formula with a meaning of its own, and a
//! caller that explains a hit shows them one by one. Thompson samples have their own module.

use crate::recency::recency;
use crate::status::Status;
use crate::unit::unit;
use klnode_crdt::time::Day;

/// The numbers behind the signals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Days after which an unchecked entry counts as half as fresh.
    pub freshness_half_life_days: f64,
    /// The status signal of a verified entry.
    pub status_verified: f64,
    /// The status signal of an active entry.
    pub status_active: f64,
    /// The status signal of a candidate.
    pub status_candidate: f64,
    /// How fast the co-occurrence signal saturates.
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

/// What a look into the reader's checkout said about `depends_on` and anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// There is something to check, all was checked, and all holds.
    Holds,
    /// At least one is broken.
    Broken,
    /// There is something to check, and it could not be checked here.
    Unchecked,
    /// There is nothing to check.
    Nothing,
}

/// What a reader must be told along with the freshness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caveat {
    /// Something the entry depends on is broken.
    Broken,
    /// What the entry depends on could not be checked here.
    Unchecked,
}

/// How surely an entry still holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freshness {
    /// The signal, in [0, 1].
    pub value: f64,
    /// What must be said along with it.
    pub caveat: Option<Caveat>,
}

/// The freshness of an entry last independently confirmed on `confirmed`, or made then.
///
/// Only where nothing can be checked does time decide; what was looked at is as it is.
#[must_use]
pub fn freshness(check: Check, confirmed: Day, now: Day, params: &Params) -> Freshness {
    let faded = recency(confirmed, now, params.freshness_half_life_days);
    match check {
        Check::Holds => Freshness { value: 1.0, caveat: None },
        Check::Broken => Freshness { value: 0.0, caveat: Some(Caveat::Broken) },
        Check::Unchecked => Freshness { value: faded, caveat: Some(Caveat::Unchecked) },
        Check::Nothing => Freshness { value: faded, caveat: None },
    }
}

/// The signal of a status; what takes no part in ordinary retrieval has none.
#[must_use]
pub fn status(status: Status, params: &Params) -> f64 {
    match status {
        Status::Verified => params.status_verified,
        Status::Active => params.status_active,
        Status::Candidate => params.status_candidate,
        Status::Stale | Status::Archived | Status::Rejected | Status::Retracted => 0.0,
    }
}

/// What an entry of the caller's workspace gains over those of others. Less than the thread can add,
/// and never over the relevance gate.
pub const WORKSPACE_BONUS: f64 = 0.05;

/// 1 for an entry of the caller's own thread.
#[must_use]
pub fn thread<T: PartialEq>(entry: Option<&T>, caller: Option<&T>) -> f64 {
    if entry.is_some() && entry == caller { 1.0 } else { 0.0 }
}

/// `1 − e^(−rate · weight)` of the strongest tie to another result.
#[must_use]
pub fn cooccurrence(weight_max: f64, params: &Params) -> f64 {
    unit(1.0 - (-params.cooccurrence_rate * weight_max.max(0.0)).exp())
}

#[cfg(test)]
mod tests {
    use super::{Caveat, Check, Params, cooccurrence, freshness, status, thread};
    use crate::status::Status;
    use klnode_crdt::time::Day;

    fn near(given: f64, expect: f64) -> bool {
        (given - expect).abs() < 1e-6
    }

    #[test]
    fn what_was_checked_is_fresh_or_broken_and_time_decides_the_rest() {
        for (check, days, expect, caveat) in [
            (Check::Holds, 900, 1.0, None),
            (Check::Broken, 0, 0.0, Some(Caveat::Broken)),
            (Check::Unchecked, 90, 0.5, Some(Caveat::Unchecked)),
            (Check::Nothing, 0, 1.0, None),
            (Check::Nothing, 90, 0.5, None),
            (Check::Nothing, 270, 0.125, None),
        ] {
            let given = freshness(check, Day(1000), Day(1000 + days), &Params::default());
            assert!(near(given.value, expect), "{check:?} after {days}: {given:?}");
            assert_eq!(given.caveat, caveat, "{check:?}");
        }
    }

    #[test]
    fn a_status_counts_by_how_far_the_entry_has_come() {
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
    fn ties_saturate() {
        for (weight, expect) in
            [(0.0, 0.0), (1.0, 0.451_188), (3.0, 0.834_701), (10.0, 0.997_521), (-1.0, 0.0)]
        {
            let given = cooccurrence(weight, &Params::default());
            assert!(near(given, expect), "{weight}: {given}");
        }
    }
}
