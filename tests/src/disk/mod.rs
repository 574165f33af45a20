//! A disk in memory that loses power, fills up and fails on command.
//!
//! It stands where a file stands under the store: it is a redb `StorageBackend`, and models a page
//! cache over durable media. Reads see every write at once; a sync makes all writes so far
//! durable; what is not synced is kept in a log, from which [`Disk::crash_image`] makes what could
//! be on the platter if the power went now.
//!
//! A crash test runs the store on a disk with [`Disk::crash_at_call`], takes an image, reopens on
//! it, and may do the same again during the recovery. Or it calls [`Disk::record`] first, runs
//! once to the end, and takes images of every moment with [`Disk::crash_image_at`].
//!
//! **What counts as a call**: `write`, `set_len` and `sync_data`, failed ones included. Reads have
//! a number of their own, so that the size of a cache does not move the points of a crash. Calls
//! after the power went are not counted.
//!
//! A disk never sleeps, never touches a file, and takes its randomness from seeds alone.

mod crash;
mod drive;
mod faults;
mod pages;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_redb;

use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{BackendError, StorageBackend};

pub use crash::PowerCut;
use drive::Drive;
pub use faults::Fault;
use pages::{PAGE_BYTES, Pages};

/// A handle to a simulated disk. A clone is another handle to the same disk, and only one handle
/// at a time can have a database open; [`Disk::fork`] makes another disk.
pub struct Disk {
    drive: Arc<Mutex<Drive>>,
    handle: u64,
}

/// What a disk has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of `read`.
    pub reads: u64,
    /// Calls of `write`.
    pub writes: u64,
    /// Calls of `set_len`.
    pub set_lens: u64,
    /// Calls of `sync_data`.
    pub syncs: u64,
    /// Bytes that `read` returned.
    pub read_bytes: u64,
    /// Bytes that `write` took.
    pub written_bytes: u64,
    /// Calls that failed by plan or for want of room; not those after the power went.
    pub faults: u64,
}

impl Counts {
    /// The calls that [`Disk::crash_at_call`] and its kin count.
    pub fn calls(&self) -> u64 {
        self.writes + self.set_lens + self.syncs
    }
}

/// Making, copying and looking at disks.
impl Disk {
    /// An empty disk.
    pub fn new() -> Disk {
        Disk::at_rest(Pages::default())
    }

    /// A disk at rest with this content.
    pub fn from_bytes(content: &[u8]) -> Disk {
        Disk::at_rest(Pages::from_bytes(content))
    }

    fn at_rest(content: Pages) -> Disk {
        Disk { drive: Arc::new(Mutex::new(Drive::at_rest(content))), handle: 0 }
    }

    /// Another disk with what reads see now, as a file copied from a running or stopped machine.
    /// The copy is durable; faults, capacity and counts stay behind.
    pub fn fork(&self) -> Disk {
        let content = self.drive().cached.clone();
        Disk::at_rest(content)
    }

    /// What reads see now.
    pub fn bytes(&self) -> Vec<u8> {
        self.drive().cached.to_vec()
    }

    /// The length that reads see now.
    pub fn len_bytes(&self) -> u64 {
        self.drive().cached.len() as u64
    }

    /// What the disk has done so far.
    pub fn counts(&self) -> Counts {
        self.drive().counts
    }

    /// How many changes the next sync has to make durable.
    pub fn unsynced(&self) -> usize {
        self.drive().unsynced()
    }

    fn drive(&self) -> MutexGuard<'_, Drive> {
        self.drive.lock().expect("nothing panics while it holds the disk's lock")
    }
}

/// Losing power.
impl Disk {
    /// Lets `calls` more calls through; then the power is gone, and every call fails for ever.
    /// With 0 it goes now. What was under way is covered: a write by the image of one call more,
    /// a sync by the images of what it had to write.
    pub fn crash_at_call(&self, calls: u64) {
        self.drive().cut_power_after(calls);
    }

    /// Whether the power is gone.
    pub fn is_dark(&self) -> bool {
        self.drive().is_dark()
    }

    /// What could be on the platter if the power went now: a new disk, with power and without
    /// faults. The same state, cut and seed give the same image.
    pub fn crash_image(&self, cut: PowerCut, seed: u64) -> Disk {
        let platter = self.drive().platter(cut, seed);
        Disk::at_rest(platter)
    }

    /// Keeps from now on what [`Disk::crash_image_at`] needs: memory for every write.
    pub fn record(&self) {
        self.drive().record();
    }

    /// As [`Disk::crash_image`], had the power gone right after call number `call` (as counted by
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

/// Failing while the machine lives on.
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

    /// Forgets all faults that were planned; not the capacity.
    pub fn heal(&self) {
        let mut drive = self.drive();
        drive.call_plan = faults::Plan::default();
        drive.read_plan = faults::Plan::default();
    }

    /// Limits the room there is, or with `None` makes room again. On a full disk a file cannot
    /// grow beyond the limit, nor can pages that were never written be written beyond it (a sparse
    /// file may be longer than the room it takes). Overwriting works, as does cutting off.
    pub fn capacity_bytes(&self, limit: Option<u64>) {
        self.drive().capacity_bytes = limit;
    }

    /// The room that the pages written so far take.
    pub fn filled_bytes(&self) -> u64 {
        self.drive().cached.filled_bytes() as u64
    }

    /// Whether there is as much room once more.
    pub fn has_room_for_a_copy(&self) -> bool {
        let drive = self.drive();
        let filled = drive.cached.filled_bytes() as u64;
        drive.capacity_bytes.is_none_or(|limit| 2 * filled <= limit)
    }
}

/// Damage to a disk at rest. What was not synced is durable afterwards.
impl Disk {
    /// Flips bit `bit` (0 is the lowest) of the byte at `offset`; nothing happens past the end.
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

    /// Cuts the file off at `len`; nothing happens to one that is not longer.
    pub fn truncate(&self, len: u64) {
        self.drive().damage(|content| content.set_len(content.len().min(len as usize)));
    }

    /// Zeroes the 4096-byte page number `page`; nothing happens past the end.
    pub fn zero_page(&self, page: u64) {
        self.drive().damage(|content| content.punch(page as usize));
    }

    /// How many 4096-byte pages the file has.
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

    // Whole-file locks alone, which is all that an exclusive writer needs. They catch an engine
    // that reopens before it has let go, as the lock of a real file would.
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
