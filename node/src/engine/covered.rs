//! The records that newer ones have covered lately, kept in memory for readers of the feed.
//!
//! The store drops a record when a newer one of the same slot covers it. A reader that reports what
//! changed needs the older one, too. The log is bounded and begins with the process: a reader that asks
//! for a state before that is told that it is not known. What is erased is erased here as well.

use crate::store::rows::Seq;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record::Record;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Covered records that are kept.
const RECORDS_MAX: usize = 1_024;
/// Bytes of their payloads that are kept.
const BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A record that another one covered.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    /// Its position in the feed.
    pub(super) from: Seq,
    /// The position of the record that covered it.
    pub(super) until: Seq,
    pub(super) entry: EntryId,
    /// The record; none if it was erased since.
    pub(super) record: Option<Record>,
}

impl Covered {
    fn bytes(&self) -> usize {
        self.record.as_ref().map_or(0, |record| record.header().payload_bytes as usize)
    }
}

/// What one step covers and erases.
#[derive(Debug, Default)]
pub(super) struct CoveredInStep {
    pub(super) covered: Vec<Covered>,
    pub(super) erased: Vec<EntryId>,
}

/// The log.
#[derive(Debug)]
pub struct CoveredLog(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    records: VecDeque<Covered>,
    bytes: usize,
    /// From this position on every covered record is in the log.
    complete_from: Seq,
}

impl CoveredLog {
    /// An empty log of a feed that ends there.
    pub(super) fn new(head: Seq) -> Self {
        Self(Mutex::new(Kept { records: VecDeque::new(), bytes: 0, complete_from: head }))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A queue is whole whoever panics beside it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a committed step covered, and erases what it erased.
    pub(super) fn add(&self, step: CoveredInStep) {
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

    /// The records of an entry that were live at a position and are covered by now; none if that is not
    /// known any more.
    pub fn live_at(&self, entry: EntryId, at: Seq) -> Option<Vec<Record>> {
        let kept = self.kept();
        if at < kept.complete_from {
            return None;
        }
        let of_entry = kept.records.iter().filter(|of| of.entry == entry);
        of_entry.filter(|of| of.from <= at && at < of.until).map(|of| of.record.clone()).collect()
    }
}

impl Kept {
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
    use crate::engine::testing::{NOW, key};
    use klnode_crdt::gcounter::Thousandths;
    use klnode_crdt::holding::Holding;
    use klnode_crdt::ids::Boot;
    use klnode_crdt::tally::Observation;
    use klnode_crdt::time::Hlc;
    use klnode_crdt::writer::Writer;

    const ENTRY: EntryId = EntryId::from_bytes([1; 16]);

    fn covered(from: u64, until: u64) -> Covered {
        let (key, own) = (key(1), Holding::default());
        let writer = Writer { key: &key, boot: Boot(1), entry: ENTRY, own: &own };
        let stamp = Hlc::new(NOW, 1);
        let record =
            writer.observe(Observation::Success, Thousandths::ONE, NOW.day(), stamp).unwrap();
        Covered { from: Seq(from), until: Seq(until), entry: ENTRY, record: Some(record) }
    }

    fn count_at(log: &CoveredLog, at: u64) -> Option<usize> {
        log.live_at(ENTRY, Seq(at)).map(|records| records.len())
    }

    #[test]
    fn a_covered_record_was_live_until_the_one_that_covers_it() {
        let log = CoveredLog::new(Seq(3));
        log.add(CoveredInStep { covered: vec![covered(2, 5)], erased: Vec::new() });
        let counts: Vec<Option<usize>> = (2..=5).map(|at| count_at(&log, at)).collect();
        assert_eq!(counts, [None, Some(1), Some(1), Some(0)]);
        assert_eq!(log.live_at(EntryId::from_bytes([2; 16]), Seq(4)), Some(Vec::new()));
    }

    #[test]
    fn an_erased_record_is_unknown_and_an_old_one_makes_room() {
        let log = CoveredLog::new(Seq(0));
        log.add(CoveredInStep { covered: vec![covered(1, 2)], erased: vec![ENTRY] });
        assert_eq!((count_at(&log, 1), count_at(&log, 2)), (None, Some(0)));
        let many = (2..2_000).map(|at| covered(at, at + 1)).collect();
        log.add(CoveredInStep { covered: many, erased: Vec::new() });
        assert_eq!((count_at(&log, 500), count_at(&log, 1_999)), (None, Some(1)));
        assert_eq!(log.kept().records.len(), RECORDS_MAX);
    }
}
