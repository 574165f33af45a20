//! An in-memory disk that loses power, fills up and fails on command.
//!
//! It replaces the file under the store: it is a redb `StorageBackend`, and models a page cache
//! over durable media. Reads see every write at once; a sync makes all writes so far durable;
//! unsynced writes are kept in a log, from which [`Disk::crash_image`] builds a possible state of
//! the platter after a power cut.
//!
//! A crash test runs the store on a disk with [`Disk::crash_at_call`], takes an image, reopens it,
//! and may do the same again during the recovery. Or it calls [`Disk::record`] first, runs once to
//! the end, and takes images of every moment with [`Disk::crash_image_at`].
//!
//! **Counted calls**: `write`, `set_len` and `sync_data`, including failed ones. Reads have their
//! own counter, so that the size of a cache does not move the points of a crash. Calls after the
//! power cut are not counted.
//!
//! A disk never sleeps, never touches a file, and takes its randomness from seeds alone.

mod faults;
mod pages;
mod power_cut;
mod simulated_drive;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_redb;

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{BackendError, StorageBackend};

pub use faults::Fault;
use pages::{PAGE_BYTES, Pages};
pub use power_cut::PowerCut;
use simulated_drive::Drive;

/// Handle to a simulated disk. A clone is another handle to the same disk, and only one handle at a
/// time can have a database open; [`Disk::fork`] makes another disk.
pub struct Disk {
    drive: Arc<Mutex<Drive>>,
    handle: u64,
}

/// Counters of a disk's activity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of `read` calls.
    pub reads: u64,
    /// Number of `write` calls.
    pub writes: u64,
    /// Number of `set_len` calls.
    pub set_lens: u64,
    /// Number of `sync_data` calls.
    pub syncs: u64,
    /// Bytes that `read` returned.
    pub read_bytes: u64,
    /// Bytes passed to `write`.
    pub written_bytes: u64,
    /// Number of calls that failed by plan or for lack of room; not those after the power cut.
    pub faults: u64,
}

impl Counts {
    /// Number of calls as [`Disk::crash_at_call`] and related functions count them.
    pub fn calls(&self) -> u64 {
        self.writes + self.set_lens + self.syncs
    }
}

/// Creating, copying and inspecting disks.
impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        Disk::at_rest(Pages::default())
    }

    /// A disk with this durable content.
    pub fn from_bytes(content: &[u8]) -> Disk {
        Disk::at_rest(Pages::from_bytes(content))
    }

    fn at_rest(content: Pages) -> Disk {
        Disk { drive: Arc::new(Mutex::new(Drive::at_rest(content))), handle: 0 }
    }

    /// Another disk with the content that reads see now, like a file copied from a running or
    /// stopped machine. The copy is durable; faults, capacity and counters are not copied.
    pub fn fork(&self) -> Disk {
        let content = self.drive().cached.clone();
        Disk::at_rest(content)
    }

    /// The content that reads see now.
    pub fn bytes(&self) -> Vec<u8> {
        self.drive().cached.to_vec()
    }

    /// The length that reads see now.
    pub fn len_bytes(&self) -> u64 {
        self.drive().cached.len() as u64
    }

    /// Counters of the activity so far.
    pub fn counts(&self) -> Counts {
        self.drive().counts
    }

    /// Number of changes that the next sync has to make durable.
    pub fn unsynced(&self) -> usize {
        self.drive().unsynced()
    }

    fn drive(&self) -> MutexGuard<'_, Drive> {
        self.drive.lock().expect("nothing panics while it holds the disk's lock")
    }
}

/// Power cuts.
impl Disk {
    /// Lets `calls` more calls through and then cuts the power: every later call fails for ever.
    /// With 0 it is cut now. A call in progress is covered by the images: a write by the image of
    /// one call more, a sync by the images of its pending writes.
    pub fn crash_at_call(&self, calls: u64) {
        self.drive().cut_power_after(calls);
    }

    /// Whether the power was cut.
    pub fn is_dark(&self) -> bool {
        self.drive().is_dark()
    }

    /// A possible state of the platter after a power cut now: a new disk, with power and without
    /// faults. The same state, cut and seed give the same image.
    pub fn crash_image(&self, cut: PowerCut, seed: u64) -> Disk {
        let platter = self.drive().platter(cut, seed);
        Disk::at_rest(platter)
    }

    /// Starts keeping the history that [`Disk::crash_image_at`] needs, which takes memory for every
    /// write.
    pub fn record(&self) {
        self.drive().record();
    }

    /// As [`Disk::crash_image`], for a power cut right after call number `call` (as counted by
    /// [`Counts::calls`]).
    ///
    /// # Panics
    ///
    /// If a sync that was not recorded has followed that call.
    pub fn crash_image_at(&self, call: u64, cut: PowerCut, seed: u64) -> Disk {
        let platter = self.drive().platter_at(call, cut, seed);
        Disk::at_rest(platter)
    }
}

/// Faults while the machine keeps running.
impl Disk {
    /// Lets `calls` more calls through and fails the one after them.
    pub fn fail_at_call(&self, calls: u64, fault: Fault) {
        let mut drive = self.drive();
        let call = drive.counts.calls() + calls + 1;
        drive.call_plan.once(call, fault);
    }

    /// Fails every `period`th call from now on, until [`Disk::heal`].
    ///
    /// # Panics
    ///
    /// If `period` is 0.
    pub fn fail_every(&self, period: u64, fault: Fault) {
        assert!(period > 0, "a period is at least one call");
        let mut drive = self.drive();
        let now = drive.counts.calls();
        drive.call_plan.every(now, period, fault);
    }

    /// Lets `reads` more reads through and fails the one after them with EIO.
    pub fn fail_at_read(&self, reads: u64) {
        let mut drive = self.drive();
        let read = drive.counts.reads + reads + 1;
        drive.read_plan.once(read, Fault::Io);
    }

    /// Removes all planned faults; keeps the capacity limit.
    pub fn heal(&self) {
        let mut drive = self.drive();
        drive.call_plan = faults::Plan::default();
        drive.read_plan = faults::Plan::default();
    }

    /// Limits the capacity, or removes the limit with `None`. On a full disk a file cannot grow
    /// beyond the limit, nor can holes be filled beyond it (a sparse file may be longer than the
    /// room it takes). Overwriting and truncating work.
    pub fn capacity_bytes(&self, limit: Option<u64>) {
        self.drive().capacity_bytes = limit;
    }

    /// Room that the pages written so far take.
    pub fn filled_bytes(&self) -> u64 {
        self.drive().cached.filled_bytes() as u64
    }

    /// Whether the capacity suffices for a second copy of the content.
    pub fn has_room_for_a_copy(&self) -> bool {
        let drive = self.drive();
        let filled = drive.cached.filled_bytes() as u64;
        drive.capacity_bytes.is_none_or(|limit| 2 * filled <= limit)
    }
}

/// Damage to a disk at rest. It makes all unsynced writes durable first.
impl Disk {
    /// Flips bit `bit` (0 is the lowest) of the byte at `offset`; no effect past the end.
    pub fn flip_bit(&self, offset: u64, bit: u8) {
        let offset = offset as usize;
        self.drive().damage(|content| {
            if offset < content.len() {
                let mut byte = [0];
                content.read(offset, &mut byte);
                content.write(offset, &[byte[0] ^ (1 << (bit % 8))]);
            }
        });
    }

    /// Truncates the file to `len`; no effect on a shorter file.
    pub fn truncate(&self, len: u64) {
        self.drive().damage(|content| content.set_len(content.len().min(len as usize)));
    }

    /// Zeroes the 4096-byte page number `page`; no effect past the end.
    pub fn zero_page(&self, page: u64) {
        self.drive().damage(|content| content.punch(page as usize));
    }

    /// Number of 4096-byte pages of the file.
    pub fn page_count(&self) -> u64 {
        self.len_bytes().div_ceil(PAGE_BYTES as u64)
    }
}

impl Default for Disk {
    fn default() -> Self {
        Disk::new()
    }
}

impl Clone for Disk {
    fn clone(&self) -> Self {
        let mut drive = self.drive();
        drive.handles += 1;
        Disk { drive: Arc::clone(&self.drive), handle: drive.handles }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drive = self.drive();
        f.debug_struct("Disk")
            .field("len_bytes", &drive.cached.len())
            .field("unsynced", &drive.unsynced())
            .field("counts", &drive.counts)
            .finish()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        let drive = self.drive();
        drive.power()?;
        Ok(drive.cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.drive().read(offset as usize, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.drive().set_len(len as usize)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.drive().sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.drive().write(offset as usize, data)
    }

    fn close(&self) -> io::Result<()> {
        let mut drive = self.drive();
        if drive.holder == Some(self.handle) {
            drive.holder = None;
        }
        drive.power()
    }

    // Only whole-file locks are supported, which is enough for an exclusive writer. They catch an
    // engine that reopens before it has closed, as the lock of a real file would.
    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if !matches!((start, end), (Bound::Unbounded | Bound::Included(0), Bound::Unbounded)) {
            return Err(BackendError::Unsupported);
        }
        let mut drive = self.drive();
        drive.power()?;
        let free = drive.holder.is_none();
        if free {
            drive.holder = Some(self.handle);
        }
        Ok(free)
    }

    fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        let mut drive = self.drive();
        if drive.holder == Some(self.handle) {
            drive.holder = None;
        }
        Ok(())
    }
}
