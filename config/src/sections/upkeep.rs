//! What the node does by itself: when a service of upkeep begins, and how much it does at a time; and
//! when a survey says that somebody should look.
//!
//! Separate from the judgement numbers because these change when something is found or told, never
//! what an entry is worth.

use serde::Deserialize;

use crate::units::{Days, Fraction, Interval, Whole};

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

/// `[survey]`: when what the node holds is out of order, and wants somebody's attention.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survey {
    /// A norm that nobody has confirmed for longer is outdated.
    pub norm_confirmed_within: Days,
    /// Entries under one tag, or one below it.
    pub tag_entries_max: Whole<1, 1_000_000>,
    /// How long friction and tasks are recent.
    pub recent: Days,
    /// Of fewer entries or tasks no fraction is told.
    pub sample_min: Whole<1, 1_000_000>,
    /// The part of all entries that may be stale, or rest on something broken.
    pub stale_fraction_max: Fraction,
    /// The part of all entries that may be contested or contradicted.
    pub disputed_fraction_max: Fraction,
    /// Friction that may be recorded recently.
    pub friction_max: Whole<0, 1_000_000>,
    /// What may wait for a decision.
    pub waiting_max: Whole<0, 1_000_000>,
    /// The part of recent tasks that may have failed.
    pub failed_fraction_max: Fraction,
}
