//! The judge of records, which decides before a record is merged.
//!
//! Separate from the engine, because the single code path into the store asks it for every record.

use super::command::{RecordSource, ScreenDecision};
use klnode_crdt::record::Record;

/// Decides whether a record is merged.
pub trait RecordScreen: Send {
    /// Decides about one record. Called before the record is merged.
    fn judge(&mut self, record: &Record, source: RecordSource) -> ScreenDecision;
}

impl<F: FnMut(&Record, RecordSource) -> ScreenDecision + Send> RecordScreen for F {
    fn judge(&mut self, record: &Record, source: RecordSource) -> ScreenDecision {
        self(record, source)
    }
}
