//! Tests of the disk itself. `tests_redb` tests redb on it.

use std::io;

use quickcheck::{Arbitrary, Gen, QuickCheck};
use redb::StorageBackend;

use super::power_cut::SECTOR_BYTES;
use super::{Disk, Fault, PowerCut};

/// One call. The length of the disk is always a multiple of the sector size: within a sector, a cut
/// could leave part of a version.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// Is cut at the end of the disk.
    Overwrite {
        offset: usize,
        len: usize,
        fill: u8,
    },
    /// Two sectors, which may be past the end.
    Extend {
        sector: usize,
        fill: u8,
    },
    SetLen {
        sectors: usize,
    },
    Sync,
}

impl Arbitrary for Call {
    fn arbitrary(g: &mut Gen) -> Self {
        let sector = usize::arbitrary(g) % 24;
        let fill = u8::arbitrary(g);
        match u8::arbitrary(g) % 8 {
            0 => Call::Sync,
            1 => Call::SetLen { sectors: sector },
            2 => Call::Extend { sector, fill },
            _ => Call::Overwrite {
                offset: usize::arbitrary(g) % 9000,
                len: usize::arbitrary(g) % 3000,
                fill,
            },
        }
    }
}

impl Call {
    /// Applies the call to `disk` and to a plain vector.
    fn make(self, disk: &Disk, plain: &mut Vec<u8>) {
        let (offset, len, fill) = match self {
            Call::Sync => return disk.sync_data().unwrap(),
            Call::SetLen { sectors } => {
                plain.resize(sectors * SECTOR_BYTES, 0);
                return disk.set_len(plain.len() as u64).unwrap();
            }
            Call::Extend { sector, fill } => (sector * SECTOR_BYTES, 2 * SECTOR_BYTES, fill),
            Call::Overwrite { offset, len, fill } => {
                (offset, len.min(plain.len().saturating_sub(offset)), fill)
            }
        };
        if len > 0 {
            plain.resize(plain.len().max(offset + len), 0);
            plain[offset..offset + len].fill(fill);
            disk.write(offset as u64, &vec![fill; len]).unwrap();
        }
    }
}

/// A synced disk of 16 sectors, and the vector that it must equal.
fn sixteen_sectors() -> (Disk, Vec<u8>) {
    let plain = vec![9; 16 * SECTOR_BYTES];
    (Disk::from_bytes(&plain), plain)
}

#[test]
fn a_disk_reads_like_a_vector() {
    fn law(calls: Vec<Call>) -> bool {
        let (disk, mut plain) = sixteen_sectors();
        for call in calls {
            call.make(&disk, &mut plain);
        }
        disk.bytes() == plain
            && disk.fork().bytes() == plain
            && disk.crash_image(PowerCut::KeepAll, 0).bytes() == plain
    }
    QuickCheck::new().tests(300).quickcheck(law as fn(Vec<Call>) -> bool);
}

#[test]
fn every_sector_of_an_image_existed_since_the_last_sync() {
    fn law(calls: Vec<Call>, seed: u64) -> bool {
        let (disk, mut plain) = sixteen_sectors();
        let mut versions = vec![plain.clone()];
        for call in calls {
            call.make(&disk, &mut plain);
            if matches!(call, Call::Sync) {
                versions.clear();
            }
            versions.push(plain.clone());
        }
        let sector = |content: &[u8], start: usize| {
            let mut bytes = content.get(start..).unwrap_or_default().to_vec();
            bytes.resize(bytes.len().max(SECTOR_BYTES), 0);
            bytes[..SECTOR_BYTES].to_vec()
        };
        let is_possible = |cut| {
            let image = disk.crash_image(cut, seed).bytes();
            versions.iter().any(|version| version.len() == image.len())
                && (0..image.len()).step_by(SECTOR_BYTES).all(|start| {
                    let found = sector(&image, start);
                    versions.iter().any(|version| sector(version, start) == found)
                })
        };
        [PowerCut::DropAll, PowerCut::KeepAll, PowerCut::Prefix, PowerCut::Scatter]
            .into_iter()
            .all(is_possible)
            && disk.crash_image(PowerCut::DropAll, seed).bytes() == versions[0]
    }
    QuickCheck::new().tests(300).quickcheck(law as fn(Vec<Call>, u64) -> bool);
}

#[test]
fn a_seed_gives_one_image_and_many_seeds_tear_lose_and_reorder() {
    let disk = Disk::from_bytes(&[0; 4 * SECTOR_BYTES]);
    disk.write(0, &[1; 2 * SECTOR_BYTES]).unwrap();
    disk.write(2 * SECTOR_BYTES as u64, &[2; 2 * SECTOR_BYTES]).unwrap();
    let sectors = |seed| -> Vec<u8> {
        let image = disk.crash_image(PowerCut::Scatter, seed).bytes();
        image.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect()
    };
    let seen: Vec<Vec<u8>> = (0..1000).map(sectors).collect();
    assert_eq!(seen, (0..1000).map(sectors).collect::<Vec<_>>());
    for expected in [[0, 0, 0, 0], [1, 1, 2, 2], [0, 0, 2, 2], [1, 1, 0, 0], [0, 1, 2, 0]] {
        assert!(seen.contains(&expected.to_vec()), "no seed gave {expected:?}");
    }
}

#[test]
fn unsynced_growth_may_be_missing_and_shows_garbage_only_on_request() {
    let disk = Disk::new();
    disk.set_len(8192).unwrap();
    let images = |cut| (0..20).map(move |seed| disk.crash_image(cut, seed).bytes());
    let plain: Vec<Vec<u8>> = images.clone()(PowerCut::Scatter).collect();
    assert!(plain.contains(&vec![]) && plain.contains(&vec![0; 8192]));
    assert!(plain.iter().flatten().all(|byte| *byte == 0));
    assert!(images(PowerCut::ScatterStale).flatten().any(|byte| byte != 0));
}

#[test]
fn without_power_every_call_fails_and_none_counts() {
    let disk = Disk::from_bytes(&[0; 64]);
    disk.crash_at_call(1);
    disk.write(0, &[1]).unwrap();
    assert!(disk.is_dark());
    let handle: &dyn StorageBackend = &disk;
    let results = [
        handle.len().map(drop),
        handle.read(0, &mut [0]),
        handle.write(0, &[2]),
        handle.set_len(8),
        handle.sync_data(),
        handle.close(),
    ];
    assert!(results.iter().all(Result::is_err));
    assert_eq!((disk.counts().calls(), disk.bytes()[0]), (1, 1));
}

#[test]
fn a_planned_fault_fires_once_and_a_periodic_one_until_it_is_healed() {
    let disk = Disk::from_bytes(&[0; 64]);
    disk.fail_at_call(1, Fault::NoSpace);
    disk.write(0, &[1]).unwrap();
    assert_eq!(disk.sync_data().unwrap_err().kind(), io::ErrorKind::StorageFull);
    disk.sync_data().unwrap();

    disk.fail_every(2, Fault::Io);
    let fails: Vec<bool> = (0..4).map(|_| disk.write(0, &[2]).is_err()).collect();
    assert_eq!(fails, [false, true, false, true]);
    disk.heal();
    disk.write(0, &[3]).unwrap();
    disk.write(0, &[3]).unwrap();
    assert_eq!(disk.counts().faults, 3);

    disk.fail_at_read(0);
    assert_eq!(disk.read(0, &mut [0]).unwrap_err().raw_os_error(), Some(5));
    disk.read(0, &mut [0]).unwrap();
}

#[test]
fn a_short_write_leaves_the_first_half() {
    let disk = Disk::from_bytes(&[0; 4]);
    disk.fail_at_call(0, Fault::ShortWrite);
    assert!(disk.write(0, &[7; 4]).is_err());
    assert_eq!(disk.bytes(), [7, 7, 0, 0]);
}

#[test]
fn writes_of_a_lost_sync_are_read_but_never_become_durable() {
    let disk = Disk::from_bytes(&[0; 4]);
    disk.write(0, &[7; 4]).unwrap();
    disk.fail_at_call(0, Fault::LostSync);
    assert!(disk.sync_data().is_err());
    disk.sync_data().unwrap();
    assert_eq!(disk.bytes(), [7; 4]);
    assert_eq!(disk.crash_image(PowerCut::KeepAll, 0).bytes(), [0; 4]);
}

#[test]
fn a_full_disk_accepts_only_overwrites_until_there_is_room() {
    let disk = Disk::from_bytes(&[1; 8192]);
    disk.set_len(20_000).unwrap();
    disk.capacity_bytes(Some(8192));
    let full = |result: io::Result<()>| {
        result.is_err_and(|error| error.kind() == io::ErrorKind::StorageFull)
    };
    assert!(full(disk.set_len(20_001)), "growth");
    assert!(full(disk.write(8192, &[1])), "a hole");
    assert!(full(disk.write(19_999, &[1, 2])), "a write past the end");
    disk.write(8191, &[2]).unwrap();
    disk.set_len(10_000).unwrap();
    assert_eq!(disk.counts().faults, 3);
    disk.capacity_bytes(None);
    disk.set_len(20_001).unwrap();
    disk.write(19_999, &[1, 2]).unwrap();
}

#[test]
fn damage_reaches_the_platter_and_not_a_fork() {
    let disk = Disk::from_bytes(&[0xFF; 3 * 4096]);
    let fork = disk.fork();
    disk.flip_bit(5, 0);
    disk.zero_page(1);
    disk.truncate(2 * 4096 + 1);
    let found = disk.crash_image(PowerCut::DropAll, 0).bytes();
    assert_eq!(found, disk.bytes());
    assert_eq!((found.len(), disk.page_count()), (2 * 4096 + 1, 3));
    assert_eq!((found[5], found[6], found[4096], found[8192]), (0xFE, 0xFF, 0, 0xFF));
    assert_eq!(fork.bytes(), [0xFF; 3 * 4096]);
}
