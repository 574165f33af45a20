//! Settings of background maintenance and thresholds of the audit reports.
//!
//! They decide when the node looks for something and when it reports it. They never change the
//! value of an entry.

use serde::Deserialize;

use crate::units::{BoundedInteger, Days, Fraction, Interval};

/// `[maintenance]` and `[tuning.maintenance]`: background maintenance.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceSchedule {
    /// Number of changed entries that starts a service.
    pub changed_entries_min: BoundedInteger<1, 1_000_000>,
    /// Fraction of the store whose change starts a service, too.
    pub changed_fraction_min: Fraction,
    /// Minimum number of changed entries for `changed_fraction_min`.
    pub changed_fraction_entries_min: BoundedInteger<1, 1_000_000>,
    /// Time after which any change starts a service.
    pub interval: Interval,
    /// Maximum number of entries per pass.
    pub pass_entries_max: BoundedInteger<1, 100_000>,
    /// Maximum duration of a pass.
    pub pass_time_max: Interval,
    /// Pause between two passes.
    pub pause: Interval,
    /// Interval between two checks for changes.
    pub check_interval: Interval,
}

/// `[tuning.audit]`: thresholds of `klnode check rules`, `check drift` and `limits`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Time after the last confirmation at which a norm is outdated.
    pub norm_confirmed_within: Days,
    /// Maximum number of entries under one tag and its sub-tags.
    pub tag_entries_max: BoundedInteger<1, 1_000_000>,
    /// Time after the last confirmation at which an entry of a reviewer is stale in the report.
    pub review_confirmed_within: Days,
    /// Maximum number of entries of one reviewer.
    pub review_entries_max: BoundedInteger<1, 1_000_000>,
    /// Time for which friction entries and finished tasks are recent.
    pub recent_within: Days,
    /// Minimum number of entries or tasks for reporting a fraction.
    pub sample_size_min: BoundedInteger<1, 1_000_000>,
    /// Maximum fraction of entries that are stale or depend on something broken.
    pub stale_fraction_max: Fraction,
    /// Maximum fraction of entries with an edit conflict or a contradiction.
    pub disputed_fraction_max: Fraction,
    /// Maximum number of recent friction entries.
    pub friction_max: BoundedInteger<0, 1_000_000>,
    /// Maximum number of items that wait for a decision of the operator.
    pub waiting_max: BoundedInteger<0, 1_000_000>,
    /// Maximum fraction of recent tasks that failed.
    pub failed_fraction_max: Fraction,
}
