//! What a power cut leaves on the platter.
//!
//! Between two syncs a disk owes nothing: each 512-byte sector may hold any content it had since
//! the last sync, whatever its neighbours hold. That one rule covers writes that are lost, torn
//! and reordered (for a platter, two writes to a sector that change places are the later one
//! lost). The length follows the order in which it was set, since file systems journal it, but
//! lags behind by any number of steps and independently of the data.
//!
//! A log entry holds whole sectors as the cache had them, because a drive never writes less: half
//! of a sector in one version and half in another is not a state that a power cut can leave.

use super::pages::Pages;

/// What a drive writes in one piece, whatever else happens.
pub(super) const SECTOR_BYTES: usize = 512;

/// Which of the changes since the last sync are on the platter after the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// None: the last sync exactly.
    DropAll,
    /// All: the cache exactly, as after `kill -9` of a process on a machine that lives on.
    KeepAll,
    /// All up to a random point in time, where a write may be half done.
    Prefix,
    /// A random choice: whole writes lost, torn by the sector, reordered; the length behind.
    /// Between images the share that is lost differs, from nearly nothing to nearly all.
    Scatter,
    /// As `Scatter`, and bytes that a longer file exposes hold garbage until they are written.
    /// File systems that promise zeros (ext4 and XFS in their defaults) do not do this.
    ScatterStale,
}

impl PowerCut {
    /// All of them, for tests that try each.
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
    /// The number of the backend call that made it.
    pub(super) call: u64,
    pub(super) change: Change,
}

/// See [`Unsynced`].
#[derive(Clone)]
pub(super) enum Change {
    /// Whole sectors (the last may end with the file) from an offset at a sector's start.
    Write {
        offset: usize,
        bytes: Box<[u8]>,
    },
    SetLen(usize),
}

impl Change {
    /// The sectors that a write to `len` bytes at `offset` touched, as the cache has them now.
    pub(super) fn sectors_of(cached: &Pages, offset: usize, len: usize) -> Change {
        let start = offset / SECTOR_BYTES * SECTOR_BYTES;
        let end = (offset + len).next_multiple_of(SECTOR_BYTES).min(cached.len());
        let mut bytes = vec![0; end - start].into_boxed_slice();
        cached.read(start, &mut bytes);
        Change::Write { offset: start, bytes }
    }

    /// Carries the change out in full; what lies past the end of the file has no place to go.
    pub(super) fn apply(&self, platter: &mut Pages) {
        match self {
            Change::Write { offset, bytes } => write_inside(platter, *offset, bytes),
            Change::SetLen(len) => platter.set_len(*len),
        }
    }
}

/// The platter after a power cut: `durable`, and of `log` what `cut` and `seed` let through.
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

/// What a file that grew shows where nothing was written.
#[derive(Clone, Copy, PartialEq)]
enum Exposed {
    Zero,
    Garbage,
}

fn scatter(platter: &mut Pages, log: &[Unsynced], rng: &mut SplitMix64, exposed: Exposed) {
    // One rate for all images would hide the cases that matter most: with half of everything
    // lost, "all but one sector" and "nothing but the header" never come up.
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

/// A write that cannot make the file longer: the length is a change of its own.
fn write_inside(platter: &mut Pages, offset: usize, bytes: &[u8]) {
    let room = platter.len().saturating_sub(offset);
    if room > 0 {
        platter.write(offset, &bytes[..bytes.len().min(room)]);
    }
}

/// A tiny generator (Vigna's SplitMix64): the same seed gives the same image on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; the bias of the remainder is far below what a test could see.
    fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }
}
