//! Commands about insights. The reading side computes insights; the engine only stores which of
//! them the operator dismissed.

use klnode_store::dismissed_insights::{DismissedInsightRow, InsightKey};

/// A command about an insight.
#[derive(Clone, Debug)]
pub enum InsightCommand {
    /// Dismisses an insight until it has other evidence.
    Dismiss(InsightKey, DismissedInsightRow),
    /// Takes the dismissal back.
    Restore(InsightKey),
}
