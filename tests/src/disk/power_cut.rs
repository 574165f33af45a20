//! State of the platter after a power cut.
//!
//! Between two syncs a disk guarantees nothing: each 512-byte sector may hold any content it had
//! since the last sync, independently of its neighbours. This rule covers writes that are lost,
//! torn and reordered (on a platter, swapping two writes to a sector is the same as losing the
//! later one). The length follows the order in which it was set, since file systems journal it, but
//! may lag behind by any number of steps and independently of the data.
//!
//! A log entry holds whole sectors as the cache had them, because a drive never writes less: half
//! of a sector in one version and half in another is not a state that a power cut can leave.

use super::pages::Pages;

/// Size of an atomic write of the drive.
pub(super) const SECTOR_BYTES: usize = 512;

/// Selects which changes since the last sync are on the platter after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// None: the state of the last sync.
    DropAll,
    /// All: the state of the cache, as after `kill -9` on a machine that keeps running.
    KeepAll,
    /// All up to a random point in time, where a write may be half done.
    Prefix,
    /// A random choice: whole writes lost, torn by sector, reordered; the length behind. The lost
    /// fraction differs between images, from nearly none to nearly all.
    Scatter,
    /// As `Scatter`, and bytes that a longer file exposes hold garbage until they are written. File
    /// systems that guarantee zeros (ext4 and XFS by default) do not do this.
    ScatterStale,
}

impl PowerCut {
    /// All variants, for tests that try each.
    pub const ALL: [PowerCut; 5] = [
        PowerCut::DropAll,
        PowerCut::KeepAll,
        PowerCut::Prefix,
        PowerCut::Scatter,
        PowerCut::ScatterStale,
    ];
}

/// A change that no sync has covered yet.
#[derive(Clone)]
pub(super) struct Unsynced {
    /// Number of the backend call that made it.
    pub(super) call: u64,
    pub(super) change: Change,
}

/// Content of an [`Unsynced`] change.
#[derive(Clone)]
pub(super) enum Change {
    /// Whole sectors (the last may end with the file) from a sector-aligned offset.
    Write {
        offset: usize,
        bytes: Box<[u8]>,
    },
    SetLen(usize),
}

impl Change {
    /// The sectors touched by a write of `len` bytes at `offset`, as the cache has them now.
    pub(super) fn sectors_of(cached: &Pages, offset: usize, len: usize) -> Change {
        let start = offset / SECTOR_BYTES * SECTOR_BYTES;
        let end = (offset + len).next_multiple_of(SECTOR_BYTES).min(cached.len());
        let mut bytes = vec![0; end - start].into_boxed_slice();
        cached.read(start, &mut bytes);
        Change::Write { offset: start, bytes }
    }

    /// Applies the change in full; bytes past the end of the file are dropped.
    pub(super) fn apply(&self, platter: &mut Pages) {
        match self {
            Change::Write { offset, bytes } => write_inside(platter, *offset, bytes),
            Change::SetLen(len) => platter.set_len(*len),
        }
    }
}

/// The disk contents after a power cut: `durable`, plus the changes in `log` that `cut` and `seed`
/// let survive.
pub(super) fn survivors(durable: &Pages, log: &[Unsynced], cut: PowerCut, seed: u64) -> Pages {
    let mut platter = durable.clone();
    let mut rng = SplitMix64(seed);
    match cut {
        PowerCut::DropAll => {}
        PowerCut::KeepAll => log.iter().for_each(|entry| entry.change.apply(&mut platter)),
        PowerCut::Prefix => keep_prefix(&mut platter, log, &mut rng),
        PowerCut::Scatter => scatter(&mut platter, log, &mut rng, Exposed::Zero),
        PowerCut::ScatterStale => scatter(&mut platter, log, &mut rng, Exposed::Garbage),
    }
    platter
}

fn keep_prefix(platter: &mut Pages, log: &[Unsynced], rng: &mut SplitMix64) {
    let whole = rng.below(log.len() + 1);
    log[..whole].iter().for_each(|entry| entry.change.apply(platter));
    if let Some(Unsynced { change: Change::Write { offset, bytes }, .. }) = log.get(whole) {
        let sectors = rng.below(bytes.len().div_ceil(SECTOR_BYTES) + 1);
        write_inside(platter, *offset, &bytes[..bytes.len().min(sectors * SECTOR_BYTES)]);
    }
}

/// Content of a grown file where nothing was written.
#[derive(Clone, Copy, PartialEq)]
enum Exposed {
    Zero,
    Garbage,
}

fn scatter(platter: &mut Pages, log: &[Unsynced], rng: &mut SplitMix64, exposed: Exposed) {
    // One rate for all images would hide the most important cases: with half of everything lost,
    // "all but one sector" and "nothing but the header" never occur.
    let keep_percent = [4, 50, 96][rng.below(3)];
    let torn_percent = [0, 25, 100][rng.below(3)];
    let lengths = log.iter().filter(|entry| matches!(entry.change, Change::SetLen(_))).count();
    let mut lengths_left = rng.below(lengths + 1);
    for entry in log {
        match &entry.change {
            Change::SetLen(len) if lengths_left > 0 => {
                lengths_left -= 1;
                let before = platter.len();
                platter.set_len(*len);
                if exposed == Exposed::Garbage && *len > before {
                    let garbage: Vec<u8> = (before..*len).map(|_| rng.next_u64() as u8).collect();
                    platter.write(before, &garbage);
                }
            }
            Change::SetLen(_) => {}
            Change::Write { offset, bytes } if rng.below(100) < torn_percent => {
                for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                    if rng.below(100) < keep_percent {
                        write_inside(platter, offset + index * SECTOR_BYTES, sector);
                    }
                }
            }
            Change::Write { offset, bytes } => {
                if rng.below(100) < keep_percent {
                    write_inside(platter, *offset, bytes);
                }
            }
        }
    }
}

/// A write that does not extend the file: the length is a separate change.
fn write_inside(platter: &mut Pages, offset: usize, bytes: &[u8]) {
    let room = platter.len().saturating_sub(offset);
    if room > 0 {
        platter.write(offset, &bytes[..bytes.len().min(room)]);
    }
}

/// SplitMix64 generator by Vigna: the same seed gives the same image on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; the modulo bias is negligible for tests.
    fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }
}
