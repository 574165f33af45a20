//! Log of recently replaced records, kept in memory for readers of the feed.
//!
//! The store drops a record when a newer one in the same slot covers it, but a reader that reports
//! changes needs the older one too. The log is bounded and starts empty with the process; for an
//! earlier position a reader gets `None`. Erased payloads are erased here as well.

use klnode_crdt::ids::EntryId;
use klnode_crdt::record::Record;
use klnode_store::row_types::Seq;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most records in the log.
const RECORDS_MAX: usize = 1_024;
/// Most payload bytes in the log.
const BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A record that a newer one replaced.
#[derive(Clone, Debug)]
pub(super) struct ReplacedRecord {
    /// The position of the replaced record in the feed.
    pub(super) from: Seq,
    /// The feed position of the record that replaced this one.
    pub(super) until: Seq,
    pub(super) entry: EntryId,
    /// The replaced record; `None` if a retraction or tombstone erased it since.
    pub(super) record: Option<Record>,
}

impl ReplacedRecord {
    fn bytes(&self) -> usize {
        self.record.as_ref().map_or(0, |record| record.header().payload_bytes as usize)
    }
}

/// Records that one step replaced, and entries it erased.
#[derive(Debug, Default)]
pub(super) struct StepReplacements {
    pub(super) covered: Vec<ReplacedRecord>,
    pub(super) erased: Vec<EntryId>,
}

/// The log of recently replaced records.
#[derive(Debug)]
pub struct ReplacedLog(Mutex<ReplacedRecords>);

#[derive(Debug)]
struct ReplacedRecords {
    records: VecDeque<ReplacedRecord>,
    bytes: usize,
    /// The log is complete from this feed position on.
    complete_from: Seq,
}

impl ReplacedLog {
    /// An empty log for a feed that ends at `head`.
    pub(super) fn new(head: Seq) -> Self {
        Self(Mutex::new(ReplacedRecords {
            records: VecDeque::new(),
            bytes: 0,
            complete_from: head,
        }))
    }

    fn kept(&self) -> MutexGuard<'_, ReplacedRecords> {
        // The queue is consistent after a panic of another thread.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the records a committed step replaced, and erases the payloads it erased.
    pub(super) fn add(&self, step: StepReplacements) {
        let mut kept = self.kept();
        for covered in step.covered {
            kept.bytes += covered.bytes();
            kept.records.push_back(covered);
        }
        for entry in step.erased {
            kept.erase(entry);
        }
        while kept.records.len() > RECORDS_MAX || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.records.pop_front() else { break };
            kept.bytes -= oldest.bytes();
            kept.complete_from = kept.complete_from.max(oldest.until);
        }
    }

    /// The replaced records of an entry that were live at a feed position; `None` if the log does
    /// not reach back that far.
    pub fn live_at(&self, entry: EntryId, at: Seq) -> Option<Vec<Record>> {
        let kept = self.kept();
        if at < kept.complete_from {
            return None;
        }
        let of_entry = kept.records.iter().filter(|of| of.entry == entry);
        of_entry.filter(|of| of.from <= at && at < of.until).map(|of| of.record.clone()).collect()
    }
}

impl ReplacedRecords {
    fn erase(&mut self, entry: EntryId) {
        for covered in self.records.iter_mut().filter(|of| of.entry == entry) {
            self.bytes -= covered.bytes();
            covered.record = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW, key};
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::ids::Boot;
    use klnode_crdt::live_records::LiveRecords;
    use klnode_crdt::record_builder::RecordBuilder;
    use klnode_crdt::tally::Observation;
    use klnode_crdt::time::Hlc;

    const ENTRY: EntryId = EntryId::from_bytes([1; 16]);

    fn covered(from: u64, until: u64) -> ReplacedRecord {
        let (key, own) = (key(1), LiveRecords::default());
        let writer = RecordBuilder { key: &key, boot: Boot(1), entry: ENTRY, own: &own };
        let stamp = Hlc::new(NOW, 1);
        let record =
            writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap();
        ReplacedRecord { from: Seq(from), until: Seq(until), entry: ENTRY, record: Some(record) }
    }

    fn count_at(log: &ReplacedLog, at: u64) -> Option<usize> {
        log.live_at(ENTRY, Seq(at)).map(|records| records.len())
    }

    #[test]
    fn a_replaced_record_is_live_until_its_replacement() {
        let log = ReplacedLog::new(Seq(3));
        log.add(StepReplacements { covered: vec![covered(2, 5)], erased: Vec::new() });
        let counts: Vec<Option<usize>> = (2..=5).map(|at| count_at(&log, at)).collect();
        assert_eq!(counts, [None, Some(1), Some(1), Some(0)]);
        assert_eq!(log.live_at(EntryId::from_bytes([2; 16]), Seq(4)), Some(Vec::new()));
    }

    #[test]
    fn erased_records_are_unknown_and_the_oldest_are_dropped() {
        let log = ReplacedLog::new(Seq(0));
        log.add(StepReplacements { covered: vec![covered(1, 2)], erased: vec![ENTRY] });
        assert_eq!((count_at(&log, 1), count_at(&log, 2)), (None, Some(0)));
        let many = (2..2_000).map(|at| covered(at, at + 1)).collect();
        log.add(StepReplacements { covered: many, erased: Vec::new() });
        assert_eq!((count_at(&log, 500), count_at(&log, 1_999)), (None, Some(1)));
        assert_eq!(log.kept().records.len(), RECORDS_MAX);
    }
}
