//! Implementation behind a disk's handles: the cache, the platter, the log between them, and the
//! admission of each call (power, fault plan, capacity). The only place where bytes change.

use std::io;
use std::ops::Range;

use super::Counts;
use super::faults::{Fault, Plan};
use super::pages::Pages;
use super::power_cut::{Change, PowerCut, Unsynced, survivors};

/// State of a simulated disk.
#[derive(Default)]
pub(super) struct Drive {
    /// Content that reads see.
    pub(super) cached: Pages,
    /// Content of the platter as of the last sync.
    durable: Pages,
    /// Changes from `durable` to `cached`, in order (except after a lost sync:
    /// [`Fault::LostSync`]).
    log: Vec<Unsynced>,
    /// States before the last sync, if recording is on.
    history: Option<Vec<Epoch>>,
    /// Number of the last sync whose epoch was not recorded.
    forgotten_until: u64,
    pub(super) counts: Counts,
    pub(super) call_plan: Plan,
    pub(super) read_plan: Plan,
    pub(super) capacity_bytes: Option<u64>,
    /// Number of the last call that has power.
    last_call: Option<u64>,
    /// Handle that has a database open; acts as a file lock.
    pub(super) holder: Option<u64>,
    /// Number of handles created so far.
    pub(super) handles: u64,
}

/// State between two syncs.
struct Epoch {
    durable: Pages,
    log: Vec<Unsynced>,
    /// Number of the sync that ended the epoch.
    synced_by: u64,
}

/// Power cuts and the resulting images.
impl Drive {
    pub(super) fn at_rest(content: Pages) -> Drive {
        Drive { durable: content.clone(), cached: content, ..Drive::default() }
    }

    pub(super) fn unsynced(&self) -> usize {
        self.log.len()
    }

    pub(super) fn cut_power_after(&mut self, calls: u64) {
        self.last_call = Some(self.counts.calls() + calls);
    }

    pub(super) fn is_dark(&self) -> bool {
        self.last_call.is_some_and(|last| self.counts.calls() >= last)
    }

    pub(super) fn power(&self) -> io::Result<()> {
        if self.is_dark() { Err(io::Error::other("the power is gone")) } else { Ok(()) }
    }

    pub(super) fn platter(&self, cut: PowerCut, seed: u64) -> Pages {
        survivors(&self.durable, &self.log, cut, seed)
    }

    pub(super) fn platter_at(&self, call: u64, cut: PowerCut, seed: u64) -> Pages {
        assert!(call >= self.forgotten_until, "call {call} was not recorded");
        let past = self.history.iter().flatten().find(|epoch| call < epoch.synced_by);
        let (durable, log) =
            past.map_or((&self.durable, &self.log), |epoch| (&epoch.durable, &epoch.log));
        let done = log.partition_point(|entry| entry.call <= call);
        survivors(durable, &log[..done], cut, seed)
    }

    pub(super) fn record(&mut self) {
        self.history.get_or_insert_default();
    }
}

/// Calls of a running machine.
impl Drive {
    pub(super) fn read(&mut self, offset: usize, out: &mut [u8]) -> io::Result<()> {
        self.power()?;
        self.counts.reads += 1;
        if let Some(fault) = self.read_plan.fault_of(self.counts.reads) {
            return self.fail(fault);
        }
        if offset.checked_add(out.len()).is_none_or(|end| end > self.cached.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.cached.read(offset, out);
        self.counts.read_bytes += out.len() as u64;
        Ok(())
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.power()?;
        self.counts.writes += 1;
        match self.planned() {
            Some(Fault::ShortWrite) => {
                self.put(offset, &bytes[..bytes.len() / 2]);
                return self.fail(Fault::ShortWrite);
            }
            Some(fault) => return self.fail(fault),
            None => {}
        }
        if !self.has_room_for(offset..offset + bytes.len()) {
            return self.fail(Fault::NoSpace);
        }
        self.put(offset, bytes);
        Ok(())
    }

    pub(super) fn set_len(&mut self, len: usize) -> io::Result<()> {
        self.power()?;
        self.counts.set_lens += 1;
        if let Some(fault) = self.planned() {
            return self.fail(fault);
        }
        if self.capacity_bytes.is_some_and(|limit| len > self.cached.len() && len as u64 > limit) {
            return self.fail(Fault::NoSpace);
        }
        self.change_len(len);
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.power()?;
        self.counts.syncs += 1;
        match self.planned() {
            Some(Fault::LostSync) => {
                // The length is in the journal; only the pages are lost.
                self.end_epoch(|change| matches!(change, Change::SetLen(_)));
                self.fail(Fault::LostSync)
            }
            Some(fault) => self.fail(fault),
            None => {
                self.end_epoch(|_| true);
                Ok(())
            }
        }
    }

    /// Changes the content without the user of the disk: cache and platter alike.
    pub(super) fn damage(&mut self, change: impl Fn(&mut Pages)) {
        self.end_epoch(|_| true);
        change(&mut self.cached);
        self.durable = self.cached.clone();
    }

    fn planned(&self) -> Option<Fault> {
        self.call_plan.fault_of(self.counts.calls())
    }

    fn fail(&mut self, fault: Fault) -> io::Result<()> {
        self.counts.faults += 1;
        Err(fault.error())
    }

    /// Overwriting always has room; growth and filling holes need capacity.
    fn has_room_for(&self, range: Range<usize>) -> bool {
        let Some(limit) = self.capacity_bytes else { return true };
        let new = self.cached.holes_bytes(range.clone());
        let grows = range.end > self.cached.len();
        (new == 0 || (self.cached.filled_bytes() + new) as u64 <= limit)
            && (!grows || range.end as u64 <= limit)
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if offset + bytes.len() > self.cached.len() {
            self.change_len(offset + bytes.len());
        }
        self.cached.write(offset, bytes);
        self.counts.written_bytes += bytes.len() as u64;
        self.note(Change::sectors_of(&self.cached, offset, bytes.len()));
    }

    fn change_len(&mut self, len: usize) {
        self.cached.set_len(len);
        self.note(Change::SetLen(len));
    }

    fn note(&mut self, change: Change) {
        self.log.push(Unsynced { call: self.counts.calls(), change });
    }

    /// Makes the unsynced changes durable for which `reaches_platter` holds; drops the rest.
    fn end_epoch(&mut self, reaches_platter: impl Fn(&Change) -> bool) {
        let log = std::mem::take(&mut self.log);
        let before = self.history.is_some().then(|| self.durable.clone());
        for entry in log.iter().filter(|entry| reaches_platter(&entry.change)) {
            entry.change.apply(&mut self.durable);
        }
        let synced_by = self.counts.calls();
        match (&mut self.history, before) {
            (Some(history), Some(durable)) => history.push(Epoch { durable, log, synced_by }),
            _ => self.forgotten_until = synced_by,
        }
    }
}
