//! Reports entries that have become stale, and closes reports of entries that are no longer stale.
//!
//! The status of an entry is derived on every read by one rule (`scoring::status`); this service
//! only applies that rule to every entry from time to time, so that the operator is notified.
//! Predicates can keep an entry fresh in a checkout, but here is no checkout to evaluate them in.

use super::PassState;
use super::cooccurrence::progress;
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_engine::MaintenanceNote;
use klnode_scoring::status::{Status, StatusReason};
use klnode_store::Error;
use klnode_store::maintenance_journal::{Matter, ServiceRow, Stage};
use klnode_store::row_types::{UseRow, ViewRow};

/// Rows that a pass scans per entry that it may read.
const ROWS_PER_ENTRY: u64 = 50;

impl PassState<'_> {
    pub(super) fn stale(&mut self, from: ServiceRow) -> Result<ServiceRow, Error> {
        let first = from.walk.map_or([0; 16], |walk| *walk.as_bytes());
        let rows_max = self.params.entries_max as u64 * ROWS_PER_ENTRY;
        let (mut walk, mut read) = (from.walk, 0);
        self.found.is_through = true;
        for row in self.reading.snapshot.entries_between(first, [0xFF; 16])? {
            let Some((entry, row)) = Error::unless_damaged(row)? else { continue };
            if from.walk == Some(entry) {
                continue;
            }
            let is_full = self.found.examined >= rows_max || read >= self.params.entries_max;
            if is_full || (self.found.examined > 0 && self.is_spent()) {
                self.found.is_through = false;
                break;
            }
            self.found.examined += 1;
            walk = Some(entry);
            if !row.is_forgotten && !row.is_parked() {
                read += usize::from(self.check_entry(entry, &row)?);
            }
        }
        (self.found.done, self.found.total) = progress(walk, self.found.is_through);
        let walk = walk.filter(|_| !self.found.is_through);
        let position = self.reading.snapshot.head();
        Ok(ServiceRow { walk, position, ..from })
    }

    /// Checks one entry. Returns false if the row alone was enough.
    fn check_entry(&mut self, entry: EntryId, row: &ViewRow) -> Result<bool, Error> {
        let noted = self.reading.snapshot.noted(Matter::Staleness, &[entry])?;
        let uses = self.reading.snapshot.uses(entry)?;
        let may_be_noted = self.stale_left > 0 && self.may_be_stale(row, &uses);
        if noted.is_none() && !may_be_noted {
            return Ok(false);
        }
        let found = Error::unless_damaged(self.reading.read_whole(entry))?.flatten();
        let Some(found) = found.filter(|found| found.entry == entry) else { return Ok(true) };
        let standing = found.assessment.standing;
        match (standing.status, noted) {
            (Status::Stale, None) => {
                let why = why(standing.reason);
                let (matter, stage) = (Matter::Staleness, Stage::Open);
                let entries = vec![(entry, row.seq)];
                self.stale_left -= 1;
                // Staleness concerns no author's claim, so the note never counts as foreign.
                self.add_note(MaintenanceNote { matter, stage, entries, why, is_foreign: false })?;
            }
            (Status::Stale, _) => {}
            (_, Some((Stage::Open, number))) => self.found.over.push(number),
            _ => {}
        }
        Ok(true)
    }

    /// True if the dates in the row allow the entry to be stale; the rule decides after a read.
    fn may_be_stale(&self, row: &ViewRow, uses: &UseRow) -> bool {
        let params = &self.reading.reader.numbers.status;
        let is_served = uses.last_served > WallTime::default();
        let since = if is_served { uses.last_served } else { row.first_seen };
        self.reading.now.day().days_since(since.day()) >= params.stale_after_days
    }
}

/// The reason in words.
pub(crate) fn why(reason: StatusReason) -> String {
    match reason {
        StatusReason::NotServed { days } => format!("not served for {days} days"),
        _ => "stale".to_owned(),
    }
}
