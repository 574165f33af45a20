//! Settings of background maintenance and thresholds of the health reports.
//!
//! They decide when the node looks for something and when it reports it. They never change the
//! value of an entry.

use serde::Deserialize;

use crate::units::{Days, Fraction, Interval, Whole};

/// `[upkeep]`: background maintenance.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upkeep {
    /// Number of changed entries that starts a service.
    pub changed_entries_min: Whole<1, 1_000_000>,
    /// Fraction of the store whose change starts a service, too.
    pub changed_fraction_min: Fraction,
    /// Minimum number of changed entries for `changed_fraction_min`.
    pub changed_fraction_entries_min: Whole<1, 1_000_000>,
    /// Time after which any change starts a service.
    pub interval: Interval,
    /// Maximum number of entries per pass.
    pub pass_entries_max: Whole<1, 100_000>,
    /// Maximum duration of a pass.
    pub pass_time_max: Interval,
    /// Pause between two passes.
    pub pause: Interval,
    /// Interval between two checks for changes.
    pub look_interval: Interval,
}

/// `[survey]`: thresholds of `klnode verify`, `drift` and `health`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// Time after the last confirmation at which a norm is outdated.
    pub norm_confirmed_within: Days,
    /// Maximum number of entries under one tag and its sub-tags.
    pub tag_entries_max: Whole<1, 1_000_000>,
    /// Time for which friction entries and finished tasks are recent.
    pub recent: Days,
    /// Minimum number of entries or tasks for reporting a fraction.
    pub sample_min: Whole<1, 1_000_000>,
    /// Maximum fraction of entries that are stale or depend on something broken.
    pub stale_fraction_max: Fraction,
    /// Maximum fraction of entries that are contested or contradicted.
    pub disputed_fraction_max: Fraction,
    /// Maximum number of recent friction entries.
    pub friction_max: Whole<0, 1_000_000>,
    /// Maximum number of items that wait for a decision of the operator.
    pub waiting_max: Whole<0, 1_000_000>,
    /// Maximum fraction of recent tasks that failed.
    pub failed_fraction_max: Fraction,
}
