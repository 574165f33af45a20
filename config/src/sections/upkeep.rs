//! What the node does by itself: when a service of upkeep begins, and how much it does at a time.
//!
//! Separate from the judgement numbers because these change when something is found, never what.

use serde::Deserialize;

use crate::units::{Fraction, Interval, Whole};

/// `[upkeep]`: what the node does by itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upkeep {
    /// Entries that must have changed.
    pub changed_entries_min: Whole<1, 1_000_000>,
    /// Or this part of the store.
    pub changed_fraction_min: Fraction,
    /// But no fewer than this many.
    pub changed_fraction_entries_min: Whole<1, 1_000_000>,
    /// After this long any change is enough.
    pub interval: Interval,
    /// Entries that one pass looks at.
    pub pass_entries_max: Whole<1, 100_000>,
    /// How long one pass takes.
    pub pass_time_max: Interval,
    /// The pause between two passes.
    pub pause: Interval,
    /// How often it is looked whether enough has changed.
    pub look_interval: Interval,
}
