//! What has become stale, and what is so no longer.
//!
//! Where an entry stands is decided whenever it is read, by one rule (`scoring::status`); this only
//! asks that rule of every entry once in a while, so that the operator hears of it. What an entry
//! depends on can keep it fresh in a checkout; here there is none to look at.

use super::Work;
use super::pairs::progress;
use crate::engine::Note;
use crate::store::Error;
use crate::store::rows::{UseRow, ViewRow};
use crate::store::upkeep::{Matter, ServiceRow, Stage};
use klnode_crdt::ids::EntryId;
use klnode_crdt::time::WallTime;
use klnode_scoring::status::{Reason, Status};

/// Rows that a pass goes over for each entry that it may read.
const ROWS_PER_ENTRY: u64 = 50;

impl Work<'_> {
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
                read += usize::from(self.ask(entry, &row)?);
            }
        }
        (self.found.done, self.found.total) = progress(walk, self.found.is_through);
        let walk = walk.filter(|_| !self.found.is_through);
        let position = self.reading.snapshot.head();
        Ok(ServiceRow { walk, position, ..from })
    }

    /// Asks of one entry. False where that could be told without reading it.
    fn ask(&mut self, entry: EntryId, row: &ViewRow) -> Result<bool, Error> {
        let noted = self.reading.snapshot.noted(Matter::Staleness, &[entry])?;
        let uses = self.reading.snapshot.uses(entry)?;
        let may_be_noted = self.stale_left > 0 && self.may_be_stale(row, &uses);
        if noted.is_none() && !may_be_noted {
            return Ok(false);
        }
        let found = Error::unless_damaged(self.reading.read_whole(entry))?.flatten();
        let Some(found) = found.filter(|found| found.entry == entry) else { return Ok(true) };
        let standing = found.judged.standing;
        match (standing.status, noted) {
            (Status::Stale, None) => {
                let why = why(standing.reason);
                let (matter, stage) = (Matter::Staleness, Stage::Open);
                let entries = vec![(entry, row.seq)];
                self.stale_left -= 1;
                // That nobody needs it is no claim of its author, whoever that is.
                self.note(Note { matter, stage, entries, why, is_foreign: false })?;
            }
            (Status::Stale, _) => {}
            (_, Some((Stage::Open, number))) => self.found.over.push(number),
            _ => {}
        }
        Ok(true)
    }

    /// Whether the dates of the row allow it to be stale; the rule decides.
    fn may_be_stale(&self, row: &ViewRow, uses: &UseRow) -> bool {
        let params = &self.reading.reader.numbers.status;
        let is_served = uses.last_served > WallTime::default();
        let since = if is_served { uses.last_served } else { row.first_seen };
        self.reading.now.day().days_since(since.day()) >= params.stale_after_days
    }
}

/// Why an entry is stale, in words.
pub(in crate::query) fn why(reason: Reason) -> String {
    match reason {
        Reason::NotServed { days } => format!("not served for {days} days"),
        _ => "stale".to_owned(),
    }
}
